"""Laplace's approximation for a Student-t location: over-confident, and how hard that is to see.

Belief N(0, 1), N observations from a Student-t law with nu degrees of freedom about theta. One-sample
Kolmogorov-Smirnov tests, strong and weak, over nu at N = 5 and over N at nu = 3, a million realisations each in the
paper. Beside them: what the package's default test sees in the same realisations, and how many would have sufficed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

import ringtrue as rt

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

TITLE = "Laplace's approximation: Student-t location"
QUICK = 0.03
#: Realisations per setting at scale 1.
REALISATIONS = 1_000_000
#: Replicates per block; their arrays stay in the cache.
BATCH = 8192
#: Fewer realisations than this are not worth a second process.
_WORTH = 10_000
LEVELS: tuple[Literal["strong", "weak"], ...] = ("strong", "weak")
#: The two sweeps: (nu, N) along each.
SERIES = {"nu": [(nu, 5) for nu in range(1, 21)], "N": [(3, size) for size in range(1, 21)]}
#: At these multiples of 1 / sqrt(n) a Kolmogorov-Smirnov test at 5 % has power 0.8 and 0.93 against an error of spread.
LIKELY, SURE = 1.1, 1.25

#: Kolmogorov distances in the population by (nu, N): strong, weak. Nothing is simulated: the law of u given y is
#: integrated numerically, and averaged over 65,536 quasi-random datasets. Errors are about 1e-5 (nu = 1: 5e-5).
#: Settings with nu in 1, 3, 5, 10, 20 or N in 1, 2, 3, 10, 20 were computed twice, by independent programs; the others
#: once, with the modes of StudentLocation, so they do not test the search for the mode (its own tests do).
REFERENCE = {
    (1, 5): (0.018633, 0.003707), (2, 5): (0.009026, 0.002256), (3, 5): (0.006351, 0.001575),
    (4, 5): (0.005058, 0.001215), (5, 5): (0.004284, 0.001005), (6, 5): (0.003740, 0.000861),
    (7, 5): (0.003340, 0.000752), (8, 5): (0.003027, 0.000674), (9, 5): (0.002774, 0.000610),
    (10, 5): (0.002566, 0.000559), (11, 5): (0.002385, 0.000514), (12, 5): (0.002230, 0.000476),
    (13, 5): (0.002097, 0.000448), (14, 5): (0.001979, 0.000419), (15, 5): (0.001874, 0.000395),
    (16, 5): (0.001780, 0.000374), (17, 5): (0.001695, 0.000356), (18, 5): (0.001618, 0.000339),
    (19, 5): (0.001548, 0.000322), (20, 5): (0.001485, 0.000308), (3, 1): (0.011410, 0.005507),
    (3, 2): (0.009395, 0.003475), (3, 3): (0.008420, 0.002657), (3, 4): (0.007211, 0.002023),
    (3, 6): (0.005639, 0.001256), (3, 7): (0.005056, 0.001053), (3, 8): (0.004593, 0.000881),
    (3, 9): (0.004211, 0.000735), (3, 10): (0.003872, 0.000621), (3, 11): (0.003589, 0.000533),
    (3, 12): (0.003344, 0.000471), (3, 13): (0.003135, 0.000415), (3, 14): (0.002940, 0.000364),
    (3, 15): (0.002779, 0.000326), (3, 16): (0.002630, 0.000283), (3, 17): (0.002497, 0.000264),
    (3, 18): (0.002377, 0.000237), (3, 19): (0.002266, 0.000217), (3, 20): (0.002167, 0.000198),
}  # fmt: skip


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run every setting once and test it in all ways."""
    n, started = max(round(REALISATIONS * scale), 100), time.perf_counter()
    settings = list(dict.fromkeys(SERIES["nu"] + SERIES["N"]))
    # A seed for each, or all statistics would err in the same direction.
    seeds = {key: 1000 * seed + k for k, key in enumerate(settings)}
    # The longest first, so that the processes end together.
    settings.sort(key=lambda key: -key[1])
    tasks = [(*key, n, seeds[key]) for key in settings]
    found = dict(zip(settings, outcomes(_judged, tasks, progress, worth=n >= _WORTH), strict=True))
    rows = [{"setting": series, **row} for series, keys in SERIES.items() for key in keys for row in found[key]]
    info = {"n": n, "seed": seed, "scale": scale, "critical": critical(n), "seconds": time.perf_counter() - started}
    return {"settings": info, "rows": rows}


def critical(n: int) -> float:
    """Return the 5 % critical value of the Kolmogorov-Smirnov statistic, for large n.

    Examples
    --------
    >>> round(critical(10**6), 5)
    0.00136
    """
    # 1.3581 is the 5 % point of Kolmogorov's distribution.
    return 1.3581 / float(np.sqrt(n))


def _judged(task: tuple[int, int, int, int]) -> list[Row]:
    """Return one row per level for a setting, a number of realisations and a seed."""
    nu, size, n, seed = task
    procedure = rt.procedures.StudentLocation(nu, size)
    study = rt.Study(rt.Normal(0, 1), procedure.simulate, procedure, f=rt.identity, seed=seed, batch=min(BATCH, n))
    replicates = for_tests(rt.run(study, n=n, progress="off"))
    by_ks, by_default = (
        {level: first_test(replicates, level, test) for level in LEVELS} for test in ("ks", "combination")
    )
    scores = {"strong": replicates.z[:, 0], "weak": replicates.weak_z[:, 0]}
    return [
        {
            "nu": nu,
            "N": size,
            "level": level,
            "n": n,
            "seed": seed,
            "ks": float(by_ks[level].statistic),
            "p_ks": float(by_ks[level].pvalue),
            "p_default": float(by_default[level].pvalue),
            "reference": reference,
            "n_needed_ks": round((LIKELY / reference) ** 2),
            **_needed(scores[level]),
        }
        for level, reference in zip(LEVELS, REFERENCE[nu, size], strict=True)
    ]


def _needed(z: Any) -> dict[str, Any]:
    """Return the spread of z, and how many replicates the default test needs for it, if it clearly is not 1."""
    # Eighty spreads are looked at: at 95 % four would be taken for errors by chance.
    spread = spread_and_bias(z, confidence=0.999).spread
    seen = not spread.low <= 1 <= spread.high
    return {"spread": spread.estimate, "n_needed": int(plan(spread=spread.estimate, of="test").n) if seen else None}


def lines(data: Data) -> list[str]:
    """Say what came out, setting by setting, beside the population's values."""
    info, rows = data["settings"], data["rows"]
    head = (
        f"{TITLE}: n = {info['n']:,} per setting, seed {info['seed']}, 5 % critical value {info['critical']:.5f}, "
        f"{info['seconds']:.0f} s"
    )
    columns = (
        f"{'nu':>3} {'N':>3} {'level':<6} {'KS':>8} {'exact':>8} {'agrees':>6} {'p (KS)':>8} {'p (default)':>11} "
        f"{'rejects':>8} {'foreseen':>8} {'n for KS':>10} {'n default':>10}"
    )
    return [head, columns, *(_line(row) for row in rows), *_claims(rows, info["n"])]


def _line(row: Row) -> str:
    return (
        f"{row['nu']:>3} {row['N']:>3} {row['level']:<6} {row['ks']:8.5f} {row['reference']:8.5f} "
        f"{'yes' if agrees(row) else 'NO':>6} {row['p_ks']:8.1e} {row['p_default']:11.1e} "
        f"{'yes' if row['p_ks'] <= 0.05 else 'no':>8} {foreseen(row):>8} "
        f"{about(row['n_needed_ks']):>10} {about(row['n_needed']):>10}"
    )


def foreseen(row: Row) -> str:
    """Say whether the population's distance lets the KS test reject at this n: yes (power above 0.9), no (below 0.1).

    Examples
    --------
    >>> foreseen({"reference": 0.000198, "n": 10**6})
    'no'
    """
    size = row["reference"] * np.sqrt(row["n"])
    return "yes" if size >= SURE else "no" if size <= 0.3 else "open"


def _claims(rows: Sequence[Row], n: int) -> list[str]:
    """Say which of the text's claims hold."""
    wrong = [row for row in rows if foreseen(row) == ("no" if row["p_ks"] <= 0.05 else "yes")]
    rejects = {level: [row for row in chosen(rows, level=level) if row["p_ks"] <= 0.05] for level in LEVELS}
    sizes = column(chosen(rejects["weak"], setting="N"), "N")
    # Both sweeps count (3, 5), which was run once: 40 settings in all.
    (last,) = chosen(rows, N=20, level="weak")
    default = sum(row["p_default"] <= 0.05 for row in chosen(rows, level="weak"))
    return [
        f"{sum(map(agrees, rows))} of {len(rows)} statistics agree with the population within sampling noise; "
        f"{len(wrong)} decisions differ from what the population foresees (in both directions 1 in 10 may).",
        f"Strong: the KS test rejects {len(rejects['strong'])} of 40 settings; at a million its power is above 0.99 in "
        f"all of them.",
        f"Weak: the KS test rejects {len(rejects['weak'])} of 40 settings, where 2 would be chance; over N, those with "
        f"N = {', '.join(map(str, sizes)) or 'none'}. The default test rejects {default}.",
        'The text\'s "weak rejects up to N = 20" is not reproduced, and cannot be: the weak distance at N = 20 is '
        f"{last['reference']:.6f}, the critical value at n = {n:,} is {critical(n):.5f} ({critical(10**6):.5f} at a "
        f"million, power 0.06); KS would need {about(last['n_needed_ks'])} realisations.",
    ]


def draw(data: Data) -> Figure:
    """Draw statistics and p-values, over nu and over N."""
    info = data["settings"]
    with sheet(7.0, 5.2, margin=0.035) as figure:
        axes = figure.subplots(2, 2, sharex="col", sharey="row")
        for (upper, lower), series in zip(axes.T, SERIES, strict=True):
            rows = chosen(data["rows"], setting=series)
            _draw_statistics(upper, rows, series, info)
            _draw_pvalues(lower, rows, series)
        axes[0, 0].set(title="degrees of freedom, N = 5", ylabel="KS statistic")
        axes[0, 1].set(title="observations, $\\nu$ = 3")
        axes[1, 0].set(xlabel="$\\nu$", ylabel="p-value")
        axes[1, 1].set(xlabel="N")
        legend_above(figure, axes[0, 0], axes[1, 0], axes[1, 1], ncols=4)
        footnote(figure, f"n = {info['n']:,} per setting, seed {info['seed']}")
    return figure


def _draw_statistics(axes: Axes, rows: Sequence[Row], series: str, info: dict[str, Any]) -> None:
    for k, level in enumerate(LEVELS):
        some = chosen(rows, level=level)
        x = column(some, series)
        axes.plot(x, column(some, "reference"), STYLES[k], color=COLOURS[k], label=f"{level}, population")
        axes.plot(x, column(some, "ks"), MARKERS[k], color=COLOURS[k], mfc="white", label=f"{level}, measured")
    axes.axhspan(0, info["critical"], color=NULL, alpha=0.25, lw=0, label="not rejected at 5 %")
    axes.set(yscale="log", ylim=(1e-4, 0.1), xticks=[1, 5, 10, 15, 20])


def _draw_pvalues(axes: Axes, rows: Sequence[Row], series: str) -> None:
    for k, level in enumerate(LEVELS):
        some, look = chosen(rows, level=level), MARKERS[k] + STYLES[k]
        for name, test, fill in (("p_ks", "KS", "white"), ("p_default", "default", COLOURS[k])):
            p, label = column(some, name), f"{level}, {test} test"
            draw_pvalues(axes, column(some, series), p, look, color=COLOURS[k], mfc=fill, lw=0.7, label=label)
    axes.axhspan(0.05, 10, color=NULL, alpha=0.25, lw=0)
    log_pvalues(axes)
