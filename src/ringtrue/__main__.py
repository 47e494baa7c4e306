"""``python -m ringtrue``."""

from .cli import main

main()
