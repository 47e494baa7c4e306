"""Can the uncertainty that comes out of an inference procedure be trusted?"""
