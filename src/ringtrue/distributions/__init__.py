"""Beliefs and outputs, and the laws of real numbers that they give."""
