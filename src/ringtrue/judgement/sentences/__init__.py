"""Sentences a person can act on: what is wrong, by how much, which way, and what to do. They decide nothing."""
