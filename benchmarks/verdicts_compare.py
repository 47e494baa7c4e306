"""Comparisons through the public interface: who is told apart, who is called ahead, and how often that is false.

``python -m benchmarks.verdicts_compare [--scale 1]``
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue.comparison import Comparison
from ringtrue.procedures import Inflated, NormalMean

BAYES, BELIEF, SD = NormalMean(), rt.Normal(0, 1), 0.5**0.5
#: Spread factors 1 / sqrt(variance) that are equally far from 1 in divergence: 3 s^2 / 2 = log 2, and its double.
LOW = (2 * np.log(2) / 3) ** 0.5


def compare(scale: float = 1.0) -> None:
    """Print the rows of the table that are about ``ringtrue.compare``."""
    seeds, many = 20, max(20, int(300 * scale))
    print("compare, 95 %, exact laws: share of runs in which")
    print(f"{'':46} {'n':>5} {'runs':>5} {'differ':>7} {'right ahead':>12} {'wrong ahead':>12} {'any star':>9}")
    for n in (200, 800, 3200):
        _row(f"spread 1 against 1.1, n = {n}", narrow(1.1), n, seeds, right="right")
    _row("spread 1 against 1.3", narrow(1.3), 200, seeds, right="right")
    _row("equal: the same, up to rounding", rounded, 200, 60)
    for n in (20, 60, 200):
        _row("equal: three, each of its own observation", own_observations, n, many)
    _row("equally wrong, spread 0.68 and 1.36", equally_wrong, 60, many)


def narrow(factor: float) -> Callable[[int, int], Comparison]:
    """Return a comparison of the posterior with one whose sd is too small by a factor."""
    return lambda n, seed: _of({"right": BAYES, "narrow": Inflated(BAYES, factor**-2)}, n, seed)


def rounded(n: int, seed: int) -> Comparison:
    """Compare a procedure with itself, rounded otherwise."""
    return _of({"a": BAYES, "b": Inflated(BAYES, 1 + 1e-15)}, n, seed)


def equally_wrong(n: int, seed: int) -> Comparison:
    """Compare two procedures that are equally far from calibrated, one too wide and one too narrow."""
    return _of({"wide": Inflated(BAYES, LOW**-2), "narrow": Inflated(BAYES, (2 * LOW) ** -2)}, n, seed)


def own_observations(n: int, seed: int) -> Comparison:
    """Compare three posteriors, each given its own observation of the same theta."""

    def observed(theta: Any, rng: np.random.Generator) -> Any:
        return theta[..., None] + rng.normal(size=(*np.shape(theta), 3))

    def given(place: int) -> Any:
        return lambda belief, y: rt.Normal(y[..., place] / 2, np.full(y.shape[:-1], SD))

    procedures = {f"p{place}": given(place) for place in range(3)}
    return rt.compare(procedures, BELIEF, observed, n=n, batch=n, f=rt.identity, seed=seed)


def _of(procedures: dict[str, Any], n: int, seed: int) -> Comparison:
    return rt.compare(procedures, BELIEF, BAYES.simulate, n=n, batch=n, f=rt.identity, seed=seed)


def _row(title: str, build: Callable[[int, int], Comparison], n: int, runs: int, right: str = "") -> None:
    found = [build(n, seed) for seed in range(runs)]
    ahead = [one.best for one in found if len(one.best) < len(one.results)]
    truly = sum(best == (right,) for best in ahead)
    stars = sum(any(row.clear for row in one.differences) for one in found)
    shares = (sum(bool(one.apart) for one in found), truly, len(ahead) - truly, stars)
    texts = [f"{share}/{runs}" for share in shares]
    print(f"{title:46} {n:5d} {runs:5d} {texts[0]:>7} {texts[1]:>12} {texts[2]:>12} {texts[3]:>9}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of runs of the levels")
    compare(parser.parse_args().scale)


if __name__ == "__main__":
    main()
