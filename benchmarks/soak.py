"""Runs that are killed, stopped, timed out and resumed, over and over: do bits, memory and open files stay?

    python -m benchmarks.soak --minutes 20 --seed 0

Each round runs a study with two workers, a timeout and a store in a process of its own, ends it at a random moment
(SIGKILL, SIGTERM, SIGINT, a worker killed, the tree stopped for a while, or not at all), resumes it in this process,
and compares every bit with an undisturbed run. Memory and file descriptors of this process are printed; exit code 1 if
bits differ, or if after the first quarter memory grew by more than 50 MB or there are more than 5 more files open.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import ringtrue as rt
from tests.execution.test_faults import children

N = 400
ENDS = ("kill", "terminate", "interrupt", "kill a worker", "stop for a while", "nothing")


def model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def procedure(mu0: Any, y: Any) -> rt.Normal:
    time.sleep(0.002)
    if y > 3.9:  # a few take too long, always the same ones
        time.sleep(60)
    return rt.Normal(y / 2, 0.5**0.5)


STUDY = rt.Study(rt.Normal(0, 1), model, procedure)
SETTINGS: dict[str, Any] = {"n": N, "workers": 2, "timeout": 2.0, "on_failure": "record", "progress": "off"}


def _disturb(process: subprocess.Popen[bytes], how: str) -> None:
    """Do something to a process, or to those that it started."""
    tree = sorted(children(process.pid))
    if how == "kill a worker" and tree:
        os.kill(random.choice(tree), signal.SIGKILL)
    elif how == "stop for a while":
        for sent, pause in ((signal.SIGSTOP, 4.0), (signal.SIGCONT, 0.0)):
            for pid in (process.pid, *tree):
                os.kill(pid, sent)
            time.sleep(pause)
    elif how in ("kill", "terminate", "interrupt"):
        process.send_signal({"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}[how])


def _round(path: Path, how: str) -> rt.Replicates:
    """Start a run, disturb it, and finish it here."""
    command = [sys.executable, "-m", "benchmarks.soak", "--child", str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(random.uniform(1.0, 8.0))
        try:
            if process.poll() is None:
                _disturb(process, how)
        except ProcessLookupError:
            pass
        process.wait(timeout=600)
    return rt.run(STUDY, store=path, **SETTINGS)


def _standing() -> tuple[float, int]:
    """Return the memory of this process in MB, and how many files it has open."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        rt.run(STUDY, store=asked.child, **SETTINGS)
        return
    random.seed(asked.seed)
    # Under another name in the child, so that its sources are those of another module: the numbers decide.
    warnings.simplefilter("ignore")
    expected = rt.run(STUDY, **SETTINGS)
    lost = {one.replicate for one in expected.failures}
    start, ends, wrong, seen = time.monotonic(), Counter[str](), 0, []
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - start < 60 * asked.minutes:
            how = random.choice(ENDS)
            found = _round(Path(folder) / f"{ends.total()}.db", how)
            same = {one.replicate for one in found.failures} == lost
            same = same and all(np.array_equal(found.arrays[k], a, equal_nan=True) for k, a in expected.arrays.items())
            ends[how] += 1
            wrong += not same
            seen.append(_standing())
    early, (memory, files) = seen[len(seen) // 4], seen[-1]
    print(
        f"{ends.total()} rounds in {(time.monotonic() - start) / 60:.1f} minutes, {wrong} with other bits: {dict(ends)}"
    )
    print(f"memory {early[0]:.0f} to {memory:.0f} MB, open files {early[1]} to {files}; {len(lost)} lost in each")
    sys.exit(1 if wrong or memory - early[0] > 50 or files - early[1] > 5 else 0)


if __name__ == "__main__":
    main()
