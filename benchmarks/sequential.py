"""Evidence at any time: false alarms, stopping times, and sequences that ever miss.

``python -m benchmarks.sequential [--runs 2000] [--only null|stops|sequences]``. The evidence is looked at after every
replicate up to n = 2000 (threshold 20), on exact positions and on ranks; means of stopping times are of all runs, to a
limit that next to none reaches. Sequences are looked at from n = 100 to 5000, at 5 %, in a quarter of the runs.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from ringtrue.statistics.sequential import confidence_sequences, log_evalues
from ringtrue.values import Floats, Generator

Law = Callable[[Generator, int], Floats]

#: Wrong positions: what they are called, the law of z, and a limit for n.
WRONG: list[tuple[str, Law, int]] = [
    ("eta .5", lambda rng, n: math.sqrt(2) * rng.normal(size=n), 1000),
    ("eta 2", lambda rng, n: math.sqrt(0.5) * rng.normal(size=n), 1000),
    ("bias .5", lambda rng, n: 0.5 + rng.normal(size=n), 1000),
    ("bias .2", lambda rng, n: 0.2 + rng.normal(size=n), 3000),
]
LAWS: dict[str, Law] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skew (Gamma 4)": lambda rng, n: (rng.gamma(4, size=n) - 4) / 2,
    "t with 5": lambda rng, n: rng.standard_t(5, size=n) / math.sqrt(5 / 3),
}


def stop(z: Floats, draws: int | None, rng: Generator) -> int | None:
    """Return where the evidence crosses 20, looked for a few replicates at a time."""
    values = z if draws is None else rng.binomial(draws, special.ndtr(z))
    state, done = None, 0
    while done < len(values):
        found = log_evalues(values[done : done + 128], draws=draws, state=state)
        if (first := found.first(0.05)) is not None and found.state.log_maximum >= math.log(20):
            return done + first
        state, done = found.state, done + 128
    return None


def named(draws: int | None) -> str:
    """Return what positions are called."""
    return "exact" if draws is None else f"M = {draws}"


def null(runs: int) -> None:
    """Print how often calibrated positions cross."""
    print("calibrated, looked at after every replicate to n = 2000: crossed 20")
    for draws in (None, 9, 19, 99):
        rng = np.random.default_rng(draws or 0)
        rate = sum(stop(rng.normal(size=2000), draws, rng) is not None for _ in range(runs)) / runs
        print(f"  {named(draws):7} {rate:.4f} (se {math.sqrt(rate * (1 - rate) / runs):.4f})", flush=True)


def stops(runs: int) -> None:
    """Print mean stopping times."""
    print("stops: mean (se), median, 80 % point, not stopped")
    for name, law, limit in WRONG:
        for draws in (None, 99, 9):
            rng = np.random.default_rng([limit, draws or 0])
            found = [stop(law(rng, limit), draws, rng) for _ in range(runs)]
            at = np.array([limit if one is None else one for one in found], float)
            points = f"{np.median(at):5.0f}  {np.quantile(at, 0.8):5.0f}  {found.count(None)}"
            print(
                f"  {name:8} {named(draws):7} {at.mean():6.1f} ({at.std() / math.sqrt(runs):.1f})  {points}", flush=True
            )


def sequences(runs: int) -> None:
    """Print how often sequences miss at some look."""
    looks = np.unique(np.geomspace(100, 5000, 60).astype(int)).tolist()
    print(f"sequences that miss at one of {len(looks)} looks, nominal 0.05: spread, bias, coverage, distance")
    for name, law in LAWS.items():
        rng, truth, missed = np.random.default_rng(len(name)), sizes_of(law), np.zeros(4)
        for _ in range(runs):
            every = confidence_sequences(law(rng, looks[-1]), looks)
            rows = [(one.spread, one.bias, one.coverage, one.distance) for one in every]
            missed += [any(not row[j].low <= truth[j] <= row[j].high for row in rows) for j in range(4)]
        print(f"  {name:15} {'  '.join(f'{rate:.3f}' for rate in missed / runs)}", flush=True)


def sizes_of(law: Law) -> tuple[float, float, float, float]:
    """Return the sizes of a law of mean 0 and variance 1, coverage and distance from a large sample."""
    u = np.sort(special.ndtr(law(np.random.default_rng(0), 10_000_000)))
    away = np.abs(u - (np.arange(len(u)) + 0.5) / len(u)).max()
    return 1.0, 0.0, float(np.mean(np.abs(u - 0.5) <= 0.45)), float(away)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", choices=("null", "stops", "sequences"))
    given = parser.parse_args()
    for name, table in (("null", null), ("stops", stops), ("sequences", sequences)):
        if given.only in (None, name):
            table(given.runs if name != "sequences" else max(given.runs // 4, 1))


if __name__ == "__main__":
    main()
