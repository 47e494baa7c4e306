"""Evidence at any time: false alarms, stopping times, and sequences that ever miss.

``python -m benchmarks.sequential [--runs 2000] [--only null|stops|sequences|decided|cost]``. The evidence is looked at
after every replicate up to n = 2000 (threshold 20), on exact positions and on ranks; means of stopping times are of all
runs, to a limit that next to none reaches. Sequences are looked at from n = 100 to 5000, at 5 %, in a quarter of runs.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.judgement.until import Decided
from ringtrue.statistics import effects
from ringtrue.statistics.sequential import level, log_evalues
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
    """Print how often an end of an interval is missed at some look, of 5 % each."""
    looks = np.unique(np.geomspace(100, 5000, 60).astype(int)).tolist()
    print(
        f"ends missed at one of {len(looks)} looks, nominal 0.05 each: spread, bias, coverage, distance; the worse end"
    )
    for name, law in LAWS.items():
        rng, truth, missed = np.random.default_rng(len(name)), sizes_of(law), np.zeros((4, 2))
        for _ in range(runs):
            z = law(rng, looks[-1])
            rows = [_rows(z[:n], 1 - 2 * level(n, 0.05)) for n in looks]
            ends = [
                [any(row[j].low > truth[j] for row in rows), any(row[j].high < truth[j] for row in rows)]
                for j in range(4)
            ]
            missed += ends
        print(f"  {name:15} {'  '.join(f'{rate:.3f}' for rate in (missed / runs).max(axis=1))}", flush=True)


def _rows(z: Floats, confidence: float) -> tuple[effects.Interval, ...]:
    both, u = effects.spread_and_bias(z, confidence=confidence), special.ndtr(z)
    return (
        both.spread,
        both.bias,
        effects.coverage(u, confidence=confidence),
        effects.distance(u, confidence=confidence),
    )


def decided(runs: int) -> None:
    """Print verdicts and stopping times of whole checks that run until decided."""
    print(
        "until decided, one parameter, exact outputs, max_n 6000: within, miscalibrated, inconclusive; mean n, median"
    )
    for name, s, b in (
        ("calibrated", 1.0, 0.0),
        ("spread 1.05", 1.05, 0.0),
        ("spread 1.1", 1.1, 0.0),
        ("bias .1", 1.0, 0.1),
        ("eta .5", math.sqrt(2), 0.0),
        ("eta 2", math.sqrt(0.5), 0.0),
        ("bias .2", 1.0, 0.2),
    ):
        found = [_checked(s, b, seed) for seed in range(runs)]
        share = [sum(verdict is one for verdict, _ in found) / runs for one in (*VERDICTS,)]
        n = np.array([count for _, count in found])
        print(
            f"  {name:12} {'  '.join(f'{one:.3f}' for one in share)}   {n.mean():6.0f}  {np.median(n):6.0f}", flush=True
        )


VERDICTS = (rt.Verdict.WITHIN_TOLERANCE, rt.Verdict.MISCALIBRATED, rt.Verdict.INCONCLUSIVE)


def _checked(s: float, b: float, seed: int) -> tuple[rt.Verdict, int]:
    sd = math.sqrt(0.5)
    result = rt.check(
        rt.Normal(0, 1),
        lambda t, rng: t + rng.normal(size=np.shape(t)),
        lambda mu0, y: rt.Normal(y / 2 - b * sd / s, sd / s),
        until="decided",
        max_n=6000,
        batch=50,
        seed=seed,
        f=[rt.Coordinate(index=())],
        progress=False,
    )
    return result.verdict, result.replicates.n


def cost(n: int = 100_000) -> None:
    """Print what looking costs a run of trivial replicates."""
    each = (
        min(_timed(lambda: rt.run(rt.Normal(0, 1), _noisy, _posterior, n=20_000, progress=False)) for _ in range(3))
        / 20_000
    )
    whole = rt.run(rt.Normal(0, 1), _noisy_batch, _posterior, n=n, batch=n, progress=False)
    rule = Decided(alpha=1e-9, tolerance=rt.Tolerance(spread=1e-3, bias=1e-3, coverage=1e-3))  # never decided
    step = 20_000 // 50
    looking = _timed(lambda: [rule(whole.part(k, min(k + step, n))) for k in range(0, n, step)])
    print(
        f"looking at {n} replicates: {1e6 * looking / n:.2f} us a replicate, {looking / n / each:.1%} of the "
        f"{1e6 * each:.1f} that it takes"
    )


def _noisy(t: float, rng: Generator) -> float:
    return t + float(rng.normal())


def _noisy_batch(t: Floats, rng: Generator) -> Floats:
    return t + rng.normal(size=np.shape(t))


def _posterior(mu0: object, y: Floats) -> rt.Normal:
    return rt.Normal(y / 2, 0.5**0.5)


def _timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def sizes_of(law: Law) -> tuple[float, float, float, float]:
    """Return the sizes of a law of mean 0 and variance 1, coverage and distance from a large sample."""
    u = np.sort(special.ndtr(law(np.random.default_rng(0), 10_000_000)))
    away = np.abs(u - (np.arange(len(u)) + 0.5) / len(u)).max()
    return 1.0, 0.0, float(np.mean(np.abs(u - 0.5) <= 0.45)), float(away)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", choices=("null", "stops", "sequences", "decided", "cost"))
    given = parser.parse_args()
    few = max(given.runs // 4, 1)
    for name, table, runs in (
        ("null", null, given.runs),
        ("stops", stops, given.runs),
        ("sequences", sequences, few),
        ("decided", decided, few),
    ):
        if given.only in (None, name):
            table(runs)
    if given.only in (None, "cost"):
        cost()


if __name__ == "__main__":
    main()
