"""From a question to what happened: simulating, and reducing every replicate to a few numbers."""
