"""What is kept of every replicate besides its position."""
