"""Approximate Bayesian computation, plain and noisy, on the g-and-k location model.

Belief N(0, 1), twenty observations, five order summaries, tolerance eps from 1 to 10. Strong: 10^4 datasets with 100
draws each, ranks against the discrete uniform law. Weak: 10^6 datasets with one draw each. Noisy ABC is calibrated at
every eps; plain ABC is over-cautious: its draws are too spread out, and the ranks crowd in the middle.
The sampler is exact: it has the law of literal rejection, and no dataset is dropped because it takes long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

import ringtrue as rt

from ..procedures.rejection import Algorithm, GAndK, LocationRejection
from ..statistics.effects import spread_and_bias
from ..statistics.planning import plan
from .rows import Data, Progress, Row, about, chosen, column, first_test, for_tests
from .rows import agrees as agrees
from .style import (
    COLOURS,
    MARKERS,
    NULL,
    STYLES,
    Axes,
    Figure,
    draw_pvalues,
    footnote,
    legend_above,
    log_pvalues,
    sheet,
)
from .workers import outcomes

TITLE = "Approximate Bayesian computation: ABC and noisy ABC for the g-and-k location model"
QUICK = 0.01
Level = Literal["strong", "weak"]
LEVELS: tuple[Level, ...] = ("strong", "weak")
ALGORITHMS: tuple[Algorithm, ...] = ("ABC", "noisy ABC")
TOLERANCES = tuple(range(1, 11))
#: Below this scale only some of them are run, among them those with a known population value.
SMALL, FEW = 0.05, (1, 2, 3, 5, 7, 10)
#: Tolerances whose empirical distribution functions are drawn.
SHOWN = (1, 2, 10)
#: Datasets at scale 1, draws per dataset, and datasets simulated at once, by level.
REALISATIONS = {"strong": 10_000, "weak": 1_000_000}
DRAWS = {"strong": 100, "weak": 1}
BATCH = {"strong": 500, "weak": 10_000}
#: Fewer realisations than this are not worth a second process.
_WORTH = 10_000

#: Kolmogorov distances of plain ABC in the population by eps: strong (of the rank law with 100 draws) and weak, by
#: randomised quasi-Monte Carlo, independently of this package. Noisy ABC has 0 throughout.
REFERENCE = {
    1: (0.10495, 0.006384),
    3: (0.084788, 0.030138),
    5: (0.036618, 0.029136),
    7: (0.016341, 0.017408),
}


class Task(NamedTuple):
    """One study of the vignette."""

    eps: int
    algorithm: Algorithm
    level: Level
    n: int
    seed: int


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run all tolerances, both algorithms, strong and weak; each study has a seed of its own.

    Large scales use two processes; how many there are changes nothing but the time.
    """
    started = time.perf_counter()
    many = {level: max(round(n * scale), 20) for level, n in REALISATIONS.items()}
    tolerances = FEW if scale < SMALL else TOLERANCES
    # The longest first, so that the processes end together.
    tasks = [
        Task(eps, algorithm, level, many[level], _own_seed(seed, eps, algorithm, level))
        for eps in tolerances
        for level in reversed(LEVELS)
        for algorithm in reversed(ALGORITHMS)
    ]
    worth = max(many.values()) >= _WORTH
    found = dict(zip(tasks, outcomes(outcome, tasks, progress, worth=worth), strict=True))
    done = [found[task] for task in sorted(tasks, key=lambda t: (t.eps, t.algorithm, t.level))]
    settings = {
        "n": many,
        "tolerances": list(tolerances),
        "draws": DRAWS,
        "seed": seed,
        "scale": scale,
        "critical": {level: critical(n) for level, n in many.items()},
        "seconds": time.perf_counter() - started,
    }
    band = rt.uniformity.band(many["strong"], draws=DRAWS["strong"])
    drawn = {"t": band.points.tolist(), "low": band.low.tolist(), "high": band.high.tolist(), "level": 0.95}
    curves = [one["curve"] for one in done if one["curve"]]
    return {"settings": settings, "rows": column(done, "row"), "curves": curves, "band": drawn}


def _own_seed(seed: int, eps: int, algorithm: Algorithm, level: Level) -> int:
    # From the setting, not from its place in the list: a study has the same draws whichever others are run.
    key = (seed, eps, ALGORITHMS.index(algorithm), LEVELS.index(level))
    return int(np.random.SeedSequence(key).generate_state(1)[0])


def outcome(task: Task) -> Data:
    """Run one study and return its row, and the curve of its ranks if that is drawn."""
    replicates = for_tests(rt.run(study(task), n=task.n, progress="off"))
    by_ks, by_default = first_test(replicates, task.level, "ks"), first_test(replicates, task.level)
    row = {
        "eps": task.eps,
        "algorithm": task.algorithm,
        "level": task.level,
        "n": task.n,
        "draws": DRAWS[task.level],
        "seed": task.seed,
        "ks": float(by_ks.statistic),
        "p_ks": float(by_ks.pvalue),
        "p_default": float(by_default.pvalue),
        "reference": _reference(task),
        **_needed(replicates, task, float(by_ks.statistic), float(by_ks.pvalue)),
    }
    drawn = task.level == "strong" and task.eps in SHOWN
    return {"row": row, "curve": _curve(task, replicates) if drawn else None}


def study(task: Task) -> rt.Study:
    """Return the study of one task."""
    model, draws = GAndK(), DRAWS[task.level]
    procedure = LocationRejection(model, float(task.eps), draws, task.algorithm)
    belief, f = rt.Normal(0.0, 1.0), rt.identity
    # The first batch is run once more before the others: small batches in small runs.
    batch = max(min(BATCH[task.level], task.n // 10), 1)
    return rt.Study(belief, model.simulate, procedure, f=f, draws=draws, seed=task.seed, batch=batch)


def _reference(task: Task) -> float | None:
    if task.algorithm == "noisy ABC":
        return 0.0
    return REFERENCE[task.eps][LEVELS.index(task.level)] if task.eps in REFERENCE else None


def _needed(replicates: rt.Replicates, task: Task, ks: float, p: float) -> Row:
    """Return how many replicates the default test and the KS test need to see what was measured, if it was seen.

    For KS: sqrt(n) D must exceed the 5 % point by 0.84 standard deviations of the distribution function, at most 1/2.
    """
    # Strong: ranks, on a lattice. Weak: the belief is normal, and gives one draw of the output a z on the continuum.
    lattice = DRAWS[task.level] if task.level == "strong" else None
    scores = replicates.rank[:, 0] if task.level == "strong" else replicates.weak_z[:, 0]
    both = spread_and_bias(scores, draws=lattice, confidence=0.999)
    plans = [
        plan(**{name: m.estimate}, draws=lattice, of="test").n  # type: ignore[arg-type]
        for name, m in (("spread", both.spread), ("bias", both.bias))
        if not m.low <= m.ideal <= m.high
    ]
    # Whichever error shows first; neither, if both intervals contain the ideal.
    needed = min(plans, default=math.inf)
    return {
        "spread": both.spread.estimate,
        "bias": both.bias.estimate,
        "n_needed": int(needed) if math.isfinite(needed) else None,
        "n_needed_ks": math.ceil(((1.3581 + 0.8416 / 2) / ks) ** 2) if p <= 0.001 else None,
    }


def _curve(task: Task, replicates: rt.Replicates) -> Data:
    """Return the empirical distribution function of the ranks on their lattice."""
    # Ranks among 100 draws take 101 values, each equally likely if calibrated: the law steps there and nowhere else.
    cells = DRAWS["strong"] + 1
    counts = np.bincount(replicates.rank[:, 0], minlength=cells)
    heights = np.concatenate([[0], np.cumsum(counts)]) / task.n
    points = np.arange(cells + 1) / cells
    return {"eps": task.eps, "algorithm": task.algorithm, "t": points.tolist(), "ecdf": heights.tolist()}


def critical(n: int) -> float:
    """Return the 5 % critical value of the Kolmogorov-Smirnov statistic for large n; on ranks it is a little smaller.

    Examples
    --------
    >>> round(critical(10_000), 5)
    0.01358
    """
    return float(special.kolmogi(0.05)) / math.sqrt(n)


def lines(data: Data) -> list[str]:
    """Say what came out, setting by setting, beside the population's values."""
    info = data["settings"]
    head = (
        f"{TITLE}: strong n = {info['n']['strong']:,} with {DRAWS['strong']} draws, weak n = {info['n']['weak']:,} "
        f"with {DRAWS['weak']}, seed {info['seed']}, {info['seconds']:.0f} s"
    )
    columns = (
        f"{'eps':>3} {'algorithm':<9} {'level':<6} {'KS':>8} {'exact':>8} {'agrees':>6} {'p (KS)':>8} "
        f"{'p (default)':>11} {'spread':>7} {'bias':>7} {'n for KS':>9} {'n default':>9}"
    )
    return [head, columns, *map(_line, data["rows"]), *_claims(data["rows"])]


def _line(row: Row) -> str:
    known = row["reference"] is not None
    exact, verdict = (f"{row['reference']:.5f}", "yes" if agrees(row) else "NO") if known else ("", "")
    return (
        f"{row['eps']:>3} {row['algorithm']:<9} {row['level']:<6} {row['ks']:8.5f} {exact:>8} {verdict:>6} "
        f"{row['p_ks']:8.1e} {row['p_default']:11.1e} {row['spread']:7.3f} {row['bias']:+7.3f} "
        f"{about(row['n_needed_ks']):>9} {about(row['n_needed']):>9}"
    )


def _dip(rows: Sequence[Row], level: Level) -> list[str]:
    """Say whether plain ABC is nearer to calibrated at the smallest tolerance than at the next, if both were run."""
    first, second = (chosen(rows, algorithm="ABC", level=level, eps=eps) for eps in TOLERANCES[:2])
    if not first or not second:
        return []
    low, high = first[0]["ks"], second[0]["ks"]
    word = "a dip" if low < high else "no dip"
    return [f"ABC, {level}: KS is {low:.4f} at eps = {TOLERANCES[0]} and {high:.4f} at {TOLERANCES[1]}, {word}."]


def _claims(rows: Sequence[Row]) -> list[str]:
    """Say what the numbers show."""
    known = [row for row in rows if row["reference"] is not None]
    rejected = [row for row in rows if row["p_ks"] <= 0.05]
    seen = {level: column(chosen(rejected, algorithm="ABC", level=level), "eps") for level in LEVELS}
    noisy = len(chosen(rejected, algorithm="noisy ABC"))
    default = sum(row["p_default"] <= 0.05 for row in chosen(rows, algorithm="noisy ABC"))
    return [
        f"{sum(map(agrees, known))} of {len(known)} statistics with a known population value agree with it.",
        *(f"ABC, {k}: the KS test rejects at eps = {', '.join(map(str, seen[k])) or 'none'}." for k in LEVELS),
        *(line for level in LEVELS for line in _dip(rows, level)),
        f"Noisy ABC: of {len(rows) // 2} tests at 5 % the KS test rejects {noisy} and the default {default}; by "
        f"chance {0.05 * len(rows) / 2:.1f}.",
    ]


def draw(data: Data) -> Figure:
    """Draw the ranks' distribution functions above, statistics and p-values over eps below."""
    info = data["settings"]
    with sheet(7.0, 5.4, margin=0.035) as figure:
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.15))[:, 0]
        ranks = upper.subplots(1, len(SHOWN), sharey=True)
        for axes, eps in zip(ranks, SHOWN, strict=True):
            _draw_ranks(axes, data, eps)
        legend_above(upper, ranks[0], ncols=3)
        left, right = lower.subplots(1, 2)
        _draw_statistics(left, data)
        _draw_pvalues(right, data["rows"])
        legend_above(lower, left, right, ncols=4)
        n = info["n"]
        footnote(
            figure,
            f"strong n = {n['strong']:,}, {DRAWS['strong']} draws; weak n = {n['weak']:,}, {DRAWS['weak']} draw; "
            f"seed {info['seed']}",
        )
    return figure


def _draw_ranks(axes: Axes, data: Data, eps: int) -> None:
    band = data["band"]
    axes.fill_between(band["t"], band["low"], band["high"], color=NULL, alpha=0.4, lw=0, label="95 % band")
    axes.plot([0, 1], [0, 1], color=NULL, lw=0.6)
    found = []
    for curve in chosen(data["curves"], eps=eps):
        k = ALGORITHMS.index(curve["algorithm"])
        (row,) = chosen(data["rows"], algorithm=curve["algorithm"], level="strong", eps=eps)
        axes.plot(curve["t"], curve["ecdf"], STYLES[k], color=COLOURS[k], label=curve["algorithm"])
        found.append(f"{row['ks']:.3f}")
    axes.set_title(f"$\\epsilon$ = {eps}, KS {' and '.join(found)}", fontsize="small")
    axes.set(xlabel="rank / 101", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    if eps == SHOWN[0]:
        axes.set_ylabel("proportion below")


def _draw_statistics(axes: Axes, data: Data) -> None:
    rows = data["rows"]
    for a, algorithm in enumerate(ALGORITHMS):
        for k, level in enumerate(LEVELS):
            some = chosen(rows, algorithm=algorithm, level=level)
            axes.plot(column(some, "eps"), column(some, "ks"), MARKERS[k] + STYLES[k], color=COLOURS[a], mfc="white")
    for k, level in enumerate(LEVELS):
        limit = data["settings"]["critical"][level]
        axes.axhline(limit, color="0.4", ls=STYLES[k], lw=0.7, zorder=0)
        axes.text(10.5, limit, f"5 %,\n{level}", va="center", fontsize="small", color="0.3")
        known = [row for row in rows if row["reference"] and row["level"] == level]
        eps, values = column(known, "eps"), column(known, "reference")
        axes.plot(eps, values, "x+"[k], color="black", ms=6, label=f"population, {level}")
    low, high = min(column(rows, "ks")), max(column(rows, "ks"))
    axes.set(xlabel="$\\epsilon$", ylabel="KS statistic", yscale="log", xticks=TOLERANCES, xlim=(0.5, 10.5))
    axes.set_ylim(min(low, 0.005) / 1.3, high * 1.3)


def _draw_pvalues(axes: Axes, rows: Sequence[Row]) -> None:
    for a, algorithm in enumerate(ALGORITHMS):
        for k, level in enumerate(LEVELS):
            some = chosen(rows, algorithm=algorithm, level=level)
            for name, fill, label in (("p_ks", "white", f"{algorithm}, {level}"), ("p_default", COLOURS[a], None)):
                p, look = column(some, name), MARKERS[k] + STYLES[k]
                draw_pvalues(axes, column(some, "eps"), p, look, color=COLOURS[a], mfc=fill, lw=0.7, label=label)
    axes.axhspan(0.05, 10, color=NULL, alpha=0.25, lw=0, label="not rejected at 5 %")
    axes.set(xlabel="$\\epsilon$", ylabel="p-value", xticks=TOLERANCES)
    axes.set_title("open: KS; filled: default test", fontsize="small", loc="left")
    log_pvalues(axes)
