"""Mutants that change no answer, found by reading them: the file, the function, the change, and why."""

EQUIVALENT: dict[tuple[str, str, str], str] = {}
