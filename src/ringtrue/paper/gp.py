"""Data-driven choice of the test function, for Gaussian-process regression with a fitted scale.

theta(x) = (1 + x) g(x), where g has the kernel exp(-(x - x')^2 / l^2), l = 0.1; it is observed at ten uniform points.
The procedure believes in a constant scale and fits it. Which x shows that best? Half of S = 2 s replicates choose x*
from a grid by the two-sided chi-squared p-value, the other half test it; x_b = 0.5 is the choice made without looking.
The p-value belongs to the held-out half: on the half that chose, a calibrated procedure is rejected half of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.procedures.gp import FittedGP, GaussianProcess, Paths, squared_exponential
from ringtrue.values import Floats

from .rows import Data, Progress, Row, column, first_test
from .style import COLOURS, MARKERS, NULL, STYLES, Axes, Figure, footnote, legend_above, sheet
from .workers import outcomes

TITLE = "Data-driven choice of the test function: Gaussian-process regression"
QUICK = 0.1
#: Repetitions at scale 1, and at least.
REPETITIONS, FEWEST = 100, 5
SIZES = (10, 50, 100, 150)
#: S of the paper's panel: "varied from 10 to 150".
PANEL = tuple(range(10, 151, 10))
#: Rounded, so that 0.5 and the points of the reference are found in it.
GRID = tuple(round(0.01 * j, 2) for j in range(101))
BASELINE = 50  # the grid's 0.5
OBSERVATIONS = 10
#: s: mean log p at x* and at x_b with standard errors; 12,000 repetitions of an independent implementation.
REFERENCE = {10: (-2.75, 0.02, -1.50, 0.02), 50: (-10.35, 0.06, -2.38, 0.03), 150: (-30.84, 0.11, -4.02, 0.03)}
#: x: mean of z^2, and mean log p for s = 150 at the two ends, from the same source.
REFERENCE_SQUARES = {0.0: 0.5575, 0.1: 0.6765, 0.5: 1.2537, 1.0: 2.2198}
REFERENCE_ENDS = {0.0: -12.9, 1.0: -35.1}
#: Repetitions that share a study: each is one batch, so that a study's overhead is paid once.
_TOGETHER = 10
#: Repetitions of the control for each of the experiment, and its s.
_CONTROL, _CONTROL_SIZE = 10, 10

# The procedure has the kernel without the factor 1 + x: that is its error, and the fitted scale cannot mend it.
KERNEL = squared_exponential(0.1)
TRUE_KERNEL = KERNEL.scaled(lambda x: 1 + x)
BELIEF = GaussianProcess(TRUE_KERNEL)
FAMILY = rt.BestOf([rt.Evaluate(x) for x in GRID])


def observe(theta: Paths, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the values of every function at ten uniform points of its own."""
    # Two points can nearly coincide. No jitter is added for that: 1e-6 would move mean log p by up to 2.
    x = rng.random((len(theta), OBSERVATIONS))
    return {"x": x, "y": theta(x)}


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Repeat the experiment for every size, and the choice alone for a calibrated control."""
    repetitions = max(round(REPETITIONS * scale), FEWEST)
    # A thousand seeds for each size, the last thousand for the control: no two studies share one.
    jobs = [(s, many, 1000 * (100 * seed + i) + j) for i, s in enumerate(SIZES) for j, many in _chunks(repetitions)]
    jobs += [(0, many, 1000 * (100 * seed + 99) + j) for j, many in _chunks(_CONTROL * repetitions)]
    found: dict[int, list[Row]] = {s: [] for s in (*SIZES, 0)}
    for (s, _, _), some in zip(jobs, outcomes(_job, jobs, progress, worth=repetitions > FEWEST), strict=True):
        found[s] += some
    settings = {"repetitions": repetitions, "seed": seed, "scale": scale, "n": [2 * s for s in SIZES]}
    return {
        "settings": settings,
        "rows": [_row(s, found[s]) for s in SIZES],
        "repetitions": [{key: one[key] for key in _KEPT} for s in SIZES for one in found[s]],
        "curves": [_curve(s, found[s]) for s in (SIZES[0], SIZES[-1])],
        "squares": np.mean([one["squares"] for s in SIZES for one in found[s]], axis=0).tolist(),
        "panel": _panel(found[SIZES[-1]]),
        "control": _sizes(found[0]),
    }


_KEPT = ("s", "x", "log_p", "log_p_base", "log_p_default", "log_p_default_base")


def _chunks(repetitions: int) -> list[tuple[int, int]]:
    """Return numbered groups of repetitions."""
    starts = range(0, repetitions, _TOGETHER)
    return [(j, min(_TOGETHER, repetitions - start)) for j, start in enumerate(starts)]


def _job(job: tuple[int, int, int]) -> list[Row]:
    s, many, seed = job
    return _experiment(s, many, seed) if s else _control(many, seed)


def _experiment(s: int, many: int, seed: int) -> list[Row]:
    """Run a study in which every batch is a repetition, and judge each alone."""
    study = rt.Study(BELIEF, observe, FittedGP(KERNEL), f=FAMILY, seed=seed, batch=2 * s)
    replicates = rt.run(study, n=many * 2 * s, progress="off")
    return [_repetition(part, s) for part in _parts(replicates, 2 * s)]


def _parts(replicates: rt.Replicates, size: int) -> list[rt.Replicates]:
    """Cut replicates into runs of equal size."""
    return [replicates.pick(slice(first, first + size)) for first in range(0, replicates.n, size)]


def _repetition(replicates: rt.Replicates, s: int) -> Row:
    # The p-value is that of the held-out half, as the caption of the paper's figure has it; its text names the other.
    chosen = first_test(replicates, "strong", "cook")
    best = [function.name for function in replicates.functions].index(chosen.f)
    held = slice(s, 2 * s)
    return {
        "s": s,
        "x": GRID[best],
        "log_p": float(np.log(chosen.pvalue)),
        "log_p_base": _log_p(replicates, BASELINE, held),
        "log_p_default": _log_p(replicates, best, held, rt.uniformity.combination),
        "log_p_default_base": _log_p(replicates, BASELINE, held, rt.uniformity.combination),
        "choosing": _log_ps(replicates, slice(0, s)).tolist(),
        "testing": _log_ps(replicates, held).tolist(),
        "squares": np.square(replicates.z).mean(axis=0),
        "prefixes": [_prefix(replicates, size) for size in PANEL if size <= 2 * s] if s == SIZES[-1] else [],
    }


def _prefix(replicates: rt.Replicates, size: int) -> tuple[float, float]:
    """Return log p at x* and at x_b for the first replicates of a repetition, as if there were no more of them."""
    best, held = int(np.argmin(_log_ps(replicates, slice(0, size // 2)))), slice(size // 2, size)
    return _log_p(replicates, best, held), _log_p(replicates, BASELINE, held)


def _panel(found: Sequence[Row]) -> list[Row]:
    """Return mean log p over S; a repetition's sizes are nested, so that neighbours share most of their replicates."""
    values = np.array(column(found, "prefixes"))
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return [
        {"S": size, "log_p": mean[0], "log_p_se": error[0], "log_p_base": mean[1], "log_p_base_se": error[1]}
        for size, mean, error in zip(PANEL, values.mean(axis=0).tolist(), errors.tolist(), strict=True)
    ]


def _log_ps(replicates: rt.Replicates, rows: slice) -> Floats:
    """Return what `_log_p` does for every point of the grid, in one call."""
    z = replicates.z[rows]
    total = np.square(z).sum(axis=0)
    tails = np.minimum(special.chdtr(len(z), total), special.chdtrc(len(z), total))
    return np.asarray(np.log(np.minimum(2 * tails, 1)))


def _log_p(replicates: rt.Replicates, column: int, rows: slice, test: Any = rt.uniformity.cook) -> float:
    return float(np.log(test(replicates.u[rows, column], z=replicates.z[rows, column]).pvalue))


def _control(many: int, seed: int) -> list[Row]:
    """Choose x* for the exact posterior, and test it on both halves."""
    # A fitted scale would be no control: even where the true one is constant, z is then Student t with ten degrees of
    # freedom, and z^2 has the mean 1.25.
    s, procedure = _CONTROL_SIZE, FittedGP(TRUE_KERNEL, scale=1.0)
    study = rt.Study(BELIEF, observe, procedure, f=FAMILY, seed=seed, batch=2 * s * many)
    found = []
    for part in _parts(rt.run(study, n=many * 2 * s, progress="off"), 2 * s):
        choosing = _log_ps(part, slice(0, s))
        best = int(np.argmin(choosing))
        found.append({"same": float(choosing[best]), "held": _log_p(part, best, slice(s, 2 * s))})
    return found


def _sizes(found: Sequence[Row]) -> Row:
    """Return how often a calibrated procedure is rejected at 5 % by either half."""
    rejected = {key: float(np.mean([one[key] <= np.log(0.05) for one in found])) for key in ("same", "held")}
    return {**rejected, "repetitions": len(found), "s": _CONTROL_SIZE}


def _row(s: int, found: Sequence[Row]) -> Row:
    row: Row = {"s": s, "S": 2 * s}
    for key in ("log_p", "log_p_base", "log_p_default", "log_p_default_base", "x"):
        values = np.array(column(found, key))
        row[key], row[f"{key}_se"] = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    # p-values of repetitions differ by orders of magnitude, and their mean would be that of the largest.
    row["p_default"] = float(np.exp(np.median(column(found, "log_p_default"))))
    squares = np.mean(column(found, "squares"), axis=0)
    row["mean_z2_base"], row["mean_z2_end"] = float(squares[BASELINE]), float(squares[-1])
    row["n_needed_base"], row["n_needed"] = _needed(squares[BASELINE]), _needed(squares[-1])
    row["reference"], _, row["reference_base"], _ = REFERENCE.get(s, (None,) * 4)
    return row


def _needed(square: float) -> int | None:
    """Return how many held-out replicates find an error of this size with 80 % power at 5 %."""
    # Nearer to 1 a plan would ask for tens of millions.
    return int(rt.planning.plan(spread=float(np.sqrt(square)), of="test").n) if abs(square - 1) > 1e-3 else None


def _curve(s: int, found: Sequence[Row]) -> Row:
    """Return log p over x: of the first repetition's choosing half, and averaged over held-out halves."""
    return {
        "s": s,
        "x": list(GRID),
        "choosing": found[0]["choosing"],
        "mean": np.mean(column(found, "testing"), axis=0).tolist(),
        "best": found[0]["x"],
        "all_best": column(found, "x"),
    }


def lines(data: Data) -> list[str]:
    """Print mean log p beside the reference, where the best x is, and what re-using the choosing half does."""
    settings, control = data["settings"], data["control"]
    text = [
        f"Data-driven test function, {settings['repetitions']} repetitions: mean log p (standard error).",
        "S    at x*           reference  at x_b = 0.5   reference  default at x*   mean x*  n needed at x = 1 / x_b",
    ]
    for row in data["rows"]:
        text.append(
            f"{row['S']:<3}  {_cell(row, 'log_p'):<14}  {_known(row['reference']):<9}  "
            f"{_cell(row, 'log_p_base'):<13}  {_known(row['reference_base']):<9}  {_cell(row, 'log_p_default'):<14}  "
            f"{row['x']:<7.2f}  {row['n_needed']} / {row['n_needed_base']}"
        )
    squares = ", ".join(
        f"{data['squares'][GRID.index(x)]:.3f} ({known:.3f}) at {x:g}" for x, known in REFERENCE_SQUARES.items()
    )
    text.append(f"Mean of z^2 (reference): {squares}.")
    last = data["curves"][-1]
    ends = ", ".join(f"{last['mean'][GRID.index(x)]:.1f} ({known:.1f}) at {x:g}" for x, known in REFERENCE_ENDS.items())
    best = GRID[int(np.argmin(last["mean"]))]
    text.append(
        f"Mean log p for S = {2 * last['s']} (reference): {ends}. It is smallest at x = {best:g}; the paper says 0."
    )
    panel = data["panel"]
    some = ", ".join(
        f"{row['log_p']:.2f} / {row['log_p_base']:.2f} at {row['S']}" for row in panel if row["S"] % 50 == 0
    )
    text.append(f"Over S = {panel[0]['S']} to {panel[-1]['S']}, at x* / at x_b: {some}; {_winner(panel)}.")
    text.append(
        f"Calibrated control, S = {2 * control['s']}, {control['repetitions']} repetitions, at 5 %: testing on the "
        f"half that chose rejects {control['same']:.3f}, on the other half {control['held']:.3f}."
    )
    return text


def _winner(rows: Sequence[Row]) -> str:
    """Say for which S the chosen x has the smaller mean log p.

    Examples
    --------
    >>> _winner([{"S": 20, "log_p": -1.0, "log_p_base": -2.0}, {"S": 40, "log_p": -3.0, "log_p_base": -2.0}])
    'x* has the smaller mean at S = 40, not at S = 20'
    """
    better = [row["S"] for row in rows if row["log_p"] < row["log_p_base"]]
    worse = [row["S"] for row in rows if row["S"] not in better]
    if not better or not worse:
        return f"x* has the {'smaller' if better else 'larger'} mean at every S"
    return f"x* has the smaller mean at S = {_listed(better)}, not at S = {_listed(worse)}"


def _listed(sizes: Sequence[int]) -> str:
    """Return neighbours of the panel as a range, others one by one."""
    whole = len(sizes) > 2 and list(sizes) == [size for size in PANEL if sizes[0] <= size <= sizes[-1]]
    return f"{sizes[0]} to {sizes[-1]}" if whole else ", ".join(map(str, sizes))


def _cell(row: Row, key: str) -> str:
    return f"{row[key]:.2f} ({row[key + '_se']:.2f})"


def _known(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def draw(data: Data) -> Figure:
    """Draw log p over x for two sizes, mean log p over S, and the size of the test on either half."""
    with sheet(7.2, 5.4, margin=0.035) as figure:
        axes = figure.subplots(2, 2)
        for axis, letter, curve in zip(axes[0], "ab", data["curves"], strict=True):
            _draw_curve(axis, curve)
            axis.set_title(f"({letter}) choosing $x$ with half of $S = {2 * curve['s']}$", loc="left")
        _draw_means(axes[1, 0], data)
        _draw_control(axes[1, 1], data["control"])
        legend_above(figure, *axes.flat, ncols=4)
        settings = data["settings"]
        footnote(figure, f"{settings['repetitions']} repetitions, seed {settings['seed']}; bars: standard errors")
    return figure


def _draw_curve(axis: Axes, curve: Data) -> None:
    # Of a uniform p, -log p is exponential with mean 1.
    axis.axhline(-1, color=NULL, lw=1, label="mean if calibrated")
    axis.plot(curve["x"], curve["choosing"], color=COLOURS[0], label="first repetition, choosing half")
    axis.plot(curve["x"], curve["mean"], "--", color=COLOURS[1], label="mean, held-out halves")
    low, high = axis.get_ylim()
    axis.set_ylim(low - 0.12 * (high - low), high)
    axis.plot(curve["all_best"], [low - 0.06 * (high - low)] * len(curve["all_best"]), "|", color="0.3", ms=5)
    index = curve["x"].index(curve["best"])
    axis.plot(curve["best"], curve["choosing"][index], "*", color=COLOURS[0], ms=9, clip_on=False, zorder=5)
    # At the right end curves come down from the left, and there is room outside.
    aside = (-20, -3) if curve["best"] < 0.9 else (6, -3)
    star = axis.annotate("$x^*$", (curve["best"], curve["choosing"][index]), aside, textcoords="offset points")
    star.set(fontsize="medium", annotation_clip=False)
    axis.axvline(GRID[BASELINE], color="0.3", lw=0.6, ls=":")
    axis.annotate("$x_b$", (GRID[BASELINE], low), (2, 0), textcoords="offset points", fontsize="medium")
    axis.set(xlabel="$x$ (ticks at the bottom: $x^*$ of all repetitions)", ylabel="$\\log p$", xlim=(-0.01, 1.01))


def _draw_means(axis: Axes, data: Data) -> None:
    rows = data["rows"]
    axis.axhline(-1, color=NULL, lw=1, label="mean if calibrated")
    series = (("log_p", "at $x^*$"), ("log_p_base", "at $x_b$"), ("log_p_default", "at $x^*$, default test"))
    for i, (key, label) in enumerate(series):
        x, y, error = (column(rows, name) for name in ("S", key, f"{key}_se"))
        axis.errorbar(x, y, error, fmt=STYLES[i] + MARKERS[i], color=COLOURS[i], capsize=2, label=label)
    sizes = column(data["panel"], "S")
    for i, (key, _) in enumerate(series[:2]):
        mean, se = (np.array(column(data["panel"], name)) for name in (key, f"{key}_se"))
        band = axis.fill_between(sizes, mean - se, mean + se, color=COLOURS[i], alpha=0.25, lw=0)
        if i == 0:
            band.set_label("nested $S$")
    known = [row for row in rows if row["reference"] is not None]
    both = column(known, "reference") + column(known, "reference_base")
    axis.plot(column(known, "S") * 2, both, "x", color="k", ms=6, mew=0.8, zorder=5, label="reference")
    axis.set(xlabel="$S$", ylabel="mean $\\log p$")
    found = _winner(rows).replace("x*", "$x^*$").replace("S =", "$S$ =").replace(" mean at ", " mean\nat ")
    axis.set_title(f"(c) {found}", loc="left")


def _draw_control(axis: Axes, control: Data) -> None:
    axis.axhline(0.05, color=NULL, lw=1, label="nominal 0.05")
    for i, (key, where) in enumerate((("same", "on the half\nthat chose"), ("held", "on the\nheld-out half"))):
        rate = control[key]
        # A rate of 0 has no standard error of its own; the nominal one is the least that makes sense.
        error = np.sqrt(max(rate * (1 - rate), 0.05 * 0.95) / control["repetitions"])
        axis.errorbar(i, rate, error, fmt=MARKERS[i], color=COLOURS[1 - i], capsize=3, ms=5)
        axis.annotate(f"{rate:.3f}", (i, rate), (8, 5), textcoords="offset points", fontsize="medium")
        axis.annotate(where, (i, 0), (0, -4), xycoords=("data", "axes fraction"), textcoords="offset points", **_BELOW)
    axis.set(xlim=(-0.6, 1.6), ylim=(0, 0.75), xticks=[], ylabel="rejected at 5 %")
    axis.set_title(
        f"(d) a calibrated control, $S = {2 * control['s']}$,\n{control['repetitions']} repetitions", loc="left"
    )


_BELOW: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": "small"}
