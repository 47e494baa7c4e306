"""What is said first of each mistake in truths, data and draws, and how often of sound ones that look alike.

``python -m benchmarks.verdicts_inputs [--runs 20]``. The first block runs every mistake through ``check`` or
``check_draws`` and prints the first sentence of the result; a star marks one that does not speak of the inputs. The
second counts runs of legitimate inputs in which something is said; there should be none.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import ringtrue as rt
from ringtrue.errors import InvalidStudy

N, M, SD = 300, 99, math.sqrt(0.5)
BELIEF = rt.Normal(0, 1)
Arrays = dict[str, Any]


def sound(rng: np.random.Generator, n: int = N, m: int = M) -> tuple[Any, Any, Any]:
    """Return truths, data, and draws of the exact posteriors."""
    theta = rng.normal(size=n)
    y = theta + rng.normal(size=n)
    return theta, y, y[:, None] / 2 + SD * rng.normal(size=(n, m))


def noisy(theta: Any, rng: np.random.Generator) -> Any:
    """Return theta with noise."""
    return theta + rng.normal()


def in_arrays(rng: np.random.Generator) -> Iterator[tuple[str, Arrays]]:
    """Yield mistakes in what check_draws is given."""
    theta, y, draws = sound(rng)
    stuck = draws.copy()
    stuck[:, : M // 4] = stuck[:, :1]
    often = np.repeat(y[:30], 10)
    other = pd.DataFrame(draws).sample(frac=1, random_state=1)
    yield "truths of another law than belief=", {"theta": theta, "draws": draws, "belief": rt.Normal(1, 2)}
    yield "the same, belief only sampled", {"theta": theta, "draws": draws, "belief": lambda rng: rng.normal(0, 2)}
    yield "the same truth everywhere", {"theta": np.full(N, 0.7), "draws": draws}
    yield "each truth used ten times", {"theta": np.repeat(theta[:30], 10), "draws": often[:, None] / 2 + SD * draws}
    yield "sign error", {"theta": theta, "draws": -draws}
    yield "rows in another order", {"theta": theta, "draws": rng.permutation(draws)}
    yield "the same seed in every fit", {"theta": theta, "draws": y[:, None] / 2 + SD * rng.normal(size=M)}
    yield "mean and sd as two draws", {"theta": theta, "draws": np.stack([y / 2, np.full(N, SD)], axis=1)}
    yield "identical draws in all rows", {"theta": theta, "draws": np.tile(draws[0], (N, 1))}
    yield "a quarter of the draws equal", {"theta": theta, "draws": stuck}
    yield "pandas rows in another order", {"theta": pd.Series(theta), "draws": other}


def in_studies() -> Iterator[tuple[str, Any, Any]]:
    """Yield mistakes in a model or a procedure."""
    fixed = np.random.default_rng(1).normal(size=(30, 12))

    def five(mu0: Any, y: Any) -> rt.Normal:
        return rt.Normal(np.sum(y) / 6, 6**-0.5)

    def own_state(theta: Any, rng: Any = None) -> Any:
        return theta + np.random.default_rng(0).normal(size=5)

    yield "model with a fixed random state", lambda theta: own_state(theta), five
    yield "the same, though it takes rng", lambda theta, rng: own_state(theta), five
    yield "the same dataset everywhere", lambda theta: fixed[0], five
    yield "thirty datasets for all", lambda theta, rng: fixed[rng.integers(30)], five
    yield "sign error in the procedure", noisy, lambda mu0, y: rt.Normal(-y / 2, SD)
    yield "a list of mean and sd", noisy, lambda mu0, y: [y / 2, SD]
    yield "a fixed seed in the procedure", noisy, lambda mu0, y: np.random.default_rng(3).normal(y / 2, SD, M)
    yield "the same truth everywhere (check)", noisy, None


def first_sentences() -> Iterator[tuple[str, str]]:
    """Yield each mistake with what is said first."""
    for name, arrays in in_arrays(np.random.default_rng(1)):
        yield name, _first(lambda arrays=arrays: rt.check_draws(**arrays))  # type: ignore[misc]
    for name, model, procedure in in_studies():
        belief = BELIEF if procedure else lambda rng: 0.7
        learn = procedure or (lambda mu0, y: BELIEF)
        yield name, _first(lambda b=belief, m=model, p=learn: rt.check(b, m, p, n=N))  # type: ignore[misc]


def _first(call: Callable[[], rt.Result]) -> str:
    try:
        return call().sentence.splitlines()[0]
    except InvalidStudy as error:
        return f"refused: {error}"


def look_alikes(rng: np.random.Generator, n: int, m: int) -> dict[str, Arrays]:
    """Return legitimate arrays that resemble a mistake."""
    theta, y, draws = sound(rng, n, m)
    odds = np.exp(y - 0.5)[:, None]
    counts = rng.poisson(3, n).astype(float)
    cauchy = rng.standard_cauchy(n)
    values = np.array([0.1, 0.45, 0.93])
    return {
        "sound": {"theta": theta, "draws": draws, "belief": BELIEF},
        "sound, belief only sampled": {"theta": theta, "draws": draws, "belief": lambda rng: rng.normal()},
        "coins": {"theta": (theta > 0) * 1.0, "draws": (rng.random((n, m)) < odds / (1 + odds)) * 1.0},
        "three values": {"theta": rng.choice(values, n), "draws": rng.choice(values, (n, m))},
        "counts": {"theta": counts, "draws": rng.poisson(3, (n, m)).astype(float)},
        "counts by normals": {"theta": counts, "draws": counts[:, None] + rng.normal(size=(n, m))},
        "Cauchy": {"theta": cauchy, "draws": cauchy[:, None] + rng.standard_cauchy((n, m))},
        "outputs of the belief": {"theta": theta, "draws": rng.normal(size=(n, m)), "belief": BELIEF},
        "outputs far off": {"theta": theta, "draws": draws + 3},
        "positive": {"theta": np.exp(theta), "draws": np.exp(draws)},
        "sorted": {"theta": theta, "draws": np.sort(draws, axis=1)},
        "rounded truths": {"theta": np.round(theta, 1), "draws": draws},
        "rounded": {"theta": np.round(theta, 1), "draws": np.round(draws, 1)},
        "often zero": {"theta": np.maximum(theta, 0), "draws": np.maximum(draws, 0)},
        "members with biases": {"theta": theta, "draws": draws + 0.5 * rng.normal(size=m)},
    }


def false_alarms(runs: int) -> dict[str, tuple[int, int]]:
    """Return how often something was said of legitimate inputs, and in how many runs."""
    from ringtrue.judgement.inputs import suspicions
    from ringtrue.replicates.given import replicates_from_draws

    counts: dict[str, tuple[int, int]] = {}
    for seed in range(runs):
        for n, m in ((3, 2), (5, 99), (60, 1), (100, 2), (200, 3), (200, 10), (300, 99)):
            for name, arrays in look_alikes(np.random.default_rng([seed, n, m]), n, m).items():
                said, asked = counts.get(name, (0, 0))
                try:
                    found = suspicions(replicates_from_draws(**arrays, seed=seed))
                except InvalidStudy:  # of few coins all may be equal
                    continue
                counts[name] = said + bool(found), asked + 1
    return counts


def inputs(runs: int = 20) -> None:
    """Print both blocks."""
    print("What is said first")
    for name, sentence in first_sentences():
        star = " " if sentence.startswith(("LOOK AT THE INPUTS", "refused")) else "*"
        print(f"{star} {name:34s} {sentence}")
    print("\nRuns of legitimate inputs in which something was said")
    for name, (said, asked) in false_alarms(runs).items():
        print(f"  {name:34s} {said} of {asked}")


def main() -> None:
    """Read the arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    inputs(parser.parse_args().runs)


if __name__ == "__main__":
    main()
