"""Test functions: what turns a parameter into one real number."""
