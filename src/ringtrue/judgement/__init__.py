"""From what happened to what it means: evidence, size, verdict, sentence."""
