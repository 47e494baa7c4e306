"""Ask every peer and write docs/benchmarks.md: ``python -m benchmarks.peers`` (``make peers``).

It makes an environment per group of peers, ``.venv-peers-<name>``; ``--python sbi=PATH`` uses one that exists.
``--again power cost:ks`` asks some questions only and keeps the answers to the others; ``--again`` alone renders.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from pathlib import Path
from typing import Any

from . import page
from .environments import ENVIRONMENTS, ROOT, Environment, make
from .work import WORKS

QUESTIONS = ("versions", "words", "picture", *(f"cost:{name}" for name in WORKS), "alarms", "power")
#: What a module must have to be asked; everything else is asked of all.
_NEEDS = {"words": "def says", "picture": "def draw", "alarms": "TESTS", "power": "TESTS"}
#: No single question may take longer than this.
_LIMIT = 3600


def asked_of(module: str) -> list[str]:
    """Return the questions that a module can answer, read from its source: importing it needs its library."""
    source = (ROOT / "benchmarks" / "peers" / f"{module}.py").read_text("utf-8")
    costs = "".join(line for line in source.splitlines() if line.startswith("COSTS"))

    def answers(question: str) -> bool:
        kind, _, name = question.partition(":")
        return f'"{name}":' in costs if kind == "cost" else _NEEDS.get(kind, "") in source

    return [question for question in QUESTIONS if answers(question)]


def ask(python: Path, module: str, question: str, folder: Path) -> list[dict[str, Any]]:
    """Return the rows that a peer answers, or one that says why it did not."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "MPLBACKEND": "Agg"}
    environment |= {"OMP_NUM_THREADS": "1", "KERAS_BACKEND": "jax", "PYTHONDONTWRITEBYTECODE": ""}
    command = [str(python), "-m", "benchmarks.peers.asked", module, question, str(folder)]
    start = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_LIMIT, check=False)
        reason = (ran.stderr.strip().splitlines() or [f"it ended with {ran.returncode}"])[-1] if ran.returncode else ""
        rows = [json.loads(line) for line in ran.stdout.splitlines()] if not reason else []
    except (subprocess.TimeoutExpired, OSError) as error:
        rows, reason = [], str(error).replace(str(ROOT), ".")
    print(f"{module} {question}: {time.perf_counter() - start:.0f} s {reason}", file=sys.stderr, flush=True)
    return [{"peer": module, "question": question, "missing": reason}] if reason else rows


def questions(given: dict[str, Path], wanted: Iterable[str]) -> list[tuple[Path, str, str]]:
    """Return (interpreter, module, question), the long ones first; environments are made on the way."""
    found = []
    for environment in ENVIRONMENTS:
        python = given.get(environment.name) or _made(environment)
        found += [(python, module, each) for module in environment.modules for each in asked_of(module)]
    order = {question: k for k, question in enumerate(reversed(QUESTIONS))}
    return sorted((one for one in found if one[2] in wanted), key=lambda one: order[one[2]])


def _made(environment: Environment) -> Path:
    python, failed = make(environment)
    for packages, reason in failed.items():
        print(f"{packages} could not be installed: {reason}", file=sys.stderr, flush=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--again", nargs="*", choices=QUESTIONS, metavar="QUESTION")
    parser.add_argument("--scale", default="1", help="multiplies runs and seconds of the cells of alarms and power")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-peers-answers")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    os.environ["PEERS_SCALE"] = options.scale
    wanted = QUESTIONS if options.again is None else options.again
    file = options.folder / "answers.jsonl"
    kept = [] if options.again is None else [row for row in page.read(file) if row["question"] not in wanted]
    given = {name: Path(path).absolute() for name, _, path in (text.partition("=") for text in options.python)}
    with ThreadPoolExecutor(options.workers) as pool:
        calls = [pool.submit(ask, *each, options.folder) for each in (questions(given, wanted) if wanted else [])]
        # Answers are kept as they come: a run that is stopped loses the questions that are open.
        with file.open("w", encoding="utf-8") as out:
            for row in chain(kept, chain.from_iterable(call.result() for call in as_completed(calls))):
                print(json.dumps(row), file=out, flush=True)
    page.write(page.read(file), ROOT / "docs")


if __name__ == "__main__":
    main()
