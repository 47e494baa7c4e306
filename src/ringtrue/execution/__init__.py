"""Who computes the replicates, and where they are kept."""
