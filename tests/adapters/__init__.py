"""Adapters to other libraries, with these libraries themselves."""
