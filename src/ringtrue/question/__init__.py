"""The question: a belief, a model, a procedure, and what is asked of them."""
