"""A hundred thousand calls of check_draws, judge, compare and report with anything: a result or a sentence each.

    python -m benchmarks.fuzz --calls 100000 --seed 0 [--minutes 15]

Prints how calls ended, and every kind of end that is neither a result nor an error of ours, with a call that has it.
Exit code 1 if there is one, or if memory grew by more than 200 MB after the first tenth of the calls.
"""

import argparse
import contextlib
import math
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests import fuzz

mpl.use("Agg")

#: Calls that Hypothesis makes in one go.
_PART = 5000


def _place(error: BaseException) -> str:
    """Return the last line of ours that an error came through."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/ringtrue/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('/ringtrue/')[2]}:{ours[-1].lineno}" if ours else "elsewhere"
    return f"{type(error).__name__} in {where}: {str(error)[:100]}"


def _memory() -> int:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class _Enough(KeyboardInterrupt):
    """Time is over; Hypothesis ends for nothing less."""


@dataclass
class Found:
    """How calls ended, leaks with how often and an example, and the memory after a tenth of the calls."""

    ends: Counter[str] = field(default_factory=Counter)
    leaks: dict[str, tuple[int, str]] = field(default_factory=dict)
    early: int = 0


def fuzz_calls(calls: int, first: int, targets: tuple[str, ...], until: float, found: Found, folder: Path) -> None:
    """Make some calls and note how they ended, until it is a time of the clock."""

    @seed(first)
    @settings(
        max_examples=calls,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(targets), fuzz.call())
    def one(target: str, call: tuple[Any, Any, dict[str, Any]]) -> None:
        try:
            found.ends[fuzz.attempt(target, *call, folder)] += 1
        except fuzz.Leak as leak:
            cause = leak.__cause__ or leak
            place = _place(cause)
            many, example = found.leaks.get(place, (0, f"{target}{call!r}"))
            found.leaks[place] = (many + 1, min(example, f"{target}{call!r}", key=len))
            found.ends["leak"] += 1
        if time.monotonic() > until:
            raise _Enough

    one()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="End after so many, whatever is left.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=sorted(set(fuzz.TARGETS)), help="Only this one of the four.")
    asked = parser.parse_args()
    warnings.simplefilter("error")
    start = time.monotonic()
    targets = (asked.target,) if asked.target else fuzz.TARGETS
    found, until = Found(), start + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(_Enough):
        # A part at a time: Hypothesis remembers all calls of one, which would look like memory that we keep.
        for part in range(-(-asked.calls // _PART)):
            left = asked.calls - part * _PART
            fuzz_calls(min(_PART, left), asked.seed + part, targets, until, found, Path(folder))
            if found.ends.total() <= max(asked.calls // 10, _PART):
                found.early = _memory()
    ends, leaks, grown = found.ends, found.leaks, _memory() - (found.early or _memory())
    print(f"{ends.total()} calls in {time.monotonic() - start:.0f} s; memory {_memory()} MB, grew by {grown} MB")
    for end, many in ends.most_common():
        print(f"{many:8d}  {end}")
    for place, (many, example) in sorted(leaks.items(), key=lambda one: -one[1][0]):
        print(f"LEAK {many} times: {place}\n    {example[:600]}")
    sys.exit(1 if leaks or grown > 200 else 0)


if __name__ == "__main__":
    main()
