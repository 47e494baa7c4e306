"""Probabilistic ODE solvers: five of them on Lotka and Volterra's equations with random rates.

The datum is the equation, the truth its accurate solution, theta(10) what is asked about. Twice: 100 draws, the
Kolmogorov test and MMD, as in the paper; and 2,000 draws with the default test and measures of size, as one would do it
today. Where the paper leaves a choice open, docs/odes.md says which was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue.distributions import Distribution
from ringtrue.judgement.measures import without_losses
from ringtrue.procedures import ode
from ringtrue.values import Floats

from .rows import Data, Progress, Row, chosen
from .style import COLOURS, MARKERS, NULL, Axes, Figure, footnote, sheet
from .workers import outcomes

TITLE = "Probabilistic ODE solvers on Lotka and Volterra's equations"
QUICK = 0.25
#: Draws in the paper, and draws that show how far off a solver is.
PAPER, TODAY = 100, 2000
END = 10.0
#: Replicates solved together.
_BATCH = 500
#: Cells of the unit interval in which the figure counts u.
_CELLS = 200

SOLVERS: Mapping[str, Any] = {
    "Chkrebtii 2016": ode.Chkrebtii(),
    "Teymur 2018": ode.AdamsMoulton(),
    "Schober 2018 (EK0)": ode.EK0(),
    "Tronarp 2018 (EK1)": ode.EK1(),
    "Teymur 2021 (BBPN)": ode.BBPN(),
}
#: Medians over 20 repetitions with 100 draws of an independent implementation: KS p-values and coverages of nominal
#: 50 % and 90 % intervals, each for the two components.
REFERENCE: Mapping[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "Chkrebtii 2016": ((3e-43, 3e-43), (0.01, 0.02), (0.03, 0.04)),
    "Teymur 2018": ((1.5e-3, 5e-12), (0.55, 0.41), (0.93, 0.89)),
    "Schober 2018 (EK0)": ((1e-12, 9e-19), (0.18, 0.13), (0.42, 0.33)),
    "Tronarp 2018 (EK1)": ((5e-13, 2e-12), (1.0, 1.0), (1.0, 1.0)),
    "Teymur 2021 (BBPN)": ((9e-8, 6e-9), (0.93, 0.93), (1.0, 1.0)),
}
COMPONENTS = ("prey", "predators")


class SharedTruths(Distribution):
    """A belief over solutions that gives the object it gave before when it draws the same equations again.

    A solution remembers its values: accurate ones take longer than those of a solver, and solvers meet the same
    equations.
    """

    def __init__(self, belief: ode.SolutionBelief) -> None:
        self.belief = belief
        self._drawn: dict[bytes, Any] = {}

    def sample(self, m: int, rng: np.random.Generator) -> Any:
        """Return m solutions."""
        drawn = self.belief.sample(m, rng)
        return self._drawn.setdefault(np.asarray(drawn.problem.parameters).tobytes(), drawn)


BELIEF = SharedTruths(ode.lotka_volterra())


def study(solver: Any, n: int, seed: int) -> rt.Study:
    """Return the study of one solver: both components at the end.

    Examples
    --------
    >>> study(ode.EK0(), 100, 0).batch
    100
    """
    family = {name: rt.Evaluate(END, j) for j, name in enumerate(COMPONENTS)}
    return rt.Study(BELIEF, ode.equation, solver, f=family, seed=seed, batch=min(n, _BATCH))


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run every solver at both sizes; a scale below 1 shortens the second."""
    sizes = {"paper": PAPER, "today": max(round(TODAY * scale), 2 * PAPER)}
    jobs = [(when, n, name, seed) for when, n in sizes.items() for name in SOLVERS]
    rows = list(outcomes(_row, jobs, progress, worth=sizes["today"] > 2 * PAPER))
    # Other equations than the solvers met: the contours show the belief, not the sample.
    truth = ode.lotka_volterra().sample(1000, np.random.default_rng([seed, 1]))(END)
    settings = {"n": sizes["today"], "n_paper": PAPER, "seed": seed, "scale": scale, "t": END}
    return {"settings": settings, "rows": rows, "belief": truth.round(5).tolist()}


def _row(job: tuple[str, int, str, int]) -> Row:
    when, n, name, seed = job
    # One seed per size: all solvers meet the same equations.
    ran = rt.run(study(SOLVERS[name], n, 2 * seed + (when == "today")), n=n, on_failure="record", progress="off")
    default, ks = rt.judge(ran), rt.judge(ran, test="ks")
    rng = np.random.default_rng([seed, n])
    # Against fresh draws of the belief: the truths belong to the same equations as the outputs, and the two samples
    # would not be independent.
    values, fresh = ran.weak_value[ran.kept], ran.reference[: int(ran.kept.sum())]
    row: Row = {"when": when, "solver": name, "n": n, "lost": len(ran.failures)}
    row["p_mmd"] = rt.twosample.mmd(values, fresh, rng=rng).pvalue
    # Of the equations that were solved: a lost one could be anywhere, and would leave no bounds.
    sizes = without_losses(ran, default.alpha, default.tolerance)
    for j, part in enumerate(COMPONENTS):
        u = ran.u[ran.kept, j]
        row[f"p_ks_{part}"] = _p(ks, part)
        row[f"p_default_{part}"] = _p(default, part)
        # The truth lies in the central interval of probability p where u is within p / 2 of a half.
        row[f"covers_50_{part}"] = float((np.abs(u - 0.5) < 0.25).mean())
        row[f"covers_90_{part}"] = float((np.abs(u - 0.5) < 0.45).mean())
        for measure in (m for m in sizes if m.f == part and m.name in ("spread", "bias")):
            key = f"{measure.name}_{part}"
            row |= {key: measure.estimate, f"{key}_low": measure.low, f"{key}_high": measure.high}
        # Digits that the figure shows; with all of them the file would be several times as large.
        row[f"u_{part}"] = np.sort(u).round(4).tolist()
    row["drawn"] = values[:PAPER].round(5).tolist()
    row["verdict"], row["sentence"] = default.verdict.words, default.sentence
    return row


def _p(result: rt.Result, name: str) -> float:
    """Return the p-value of a component at the strong level."""
    return next(float(test.pvalue) for test in result.tests if test.level == "strong" and test.f == name)


def lines(data: Data) -> list[str]:
    """Say what came out, beside the reference, and a sentence for every solver."""
    text = [
        f"{data['settings']['n_paper']} draws, as in the paper (in brackets: medians of 20 repetitions elsewhere)",
        "solver               KS p, prey             KS p, predators        covers 50 %  covers 90 %  MMD p  lost",
    ]
    for row in chosen(data["rows"], when="paper"):
        p, half, most = REFERENCE[row["solver"]]
        cells = [f"{row[f'p_ks_{part}']:<8.1g} ({p[j]:.1g})" for j, part in enumerate(COMPONENTS)]
        covers = [
            f"{row[f'covers_{k}_prey']:.2f} {row[f'covers_{k}_predators']:.2f} ({a:.2f} {b:.2f})"
            for k, (a, b) in ((50, half), (90, most))
        ]
        text.append(
            f"{row['solver']:<20} {cells[0]:<22} {cells[1]:<22} {covers[0]}  {covers[1]}  {row['p_mmd']:.2f}  "
            f"{row['lost']}"
        )
    text.append(f"{data['settings']['n']} draws, the default test, and how far off:")
    text.extend(f"{row['solver']}: {row['sentence']}" for row in chosen(data["rows"], when="today"))
    return text


def draw(data: Data) -> dict[str, Figure]:
    """Draw the paper's figure, and the one to draw today."""
    return {"": _draw_paper(data), "today": _draw_today(data)}


def _draw_paper(data: Data) -> Figure:
    rows = chosen(data["rows"], when="paper")
    with sheet(7.2, 4.6, margin=0.045) as figure:
        axes = figure.subplots(3, len(SOLVERS), sharex="row", sharey="row")
        for column, row in zip(axes.T, rows, strict=True):
            column[0].set_title(row["solver"].replace(" (", "\n("), fontsize="small")
            for axis, part in zip(column[:2], COMPONENTS, strict=True):
                _histogram(axis, np.array(row[f"u_{part}"]), 10)
                _label(axis, f"KS $p$ = {_number(row[f'p_ks_{part}'])}")
            _scatter(column[2], data["belief"], row["drawn"])
            _label(column[2], f"MMD $p$ = {_number(row['p_mmd'])}")
            column[1].set_xlabel("$u$")
            column[2].set_xlabel("prey at 10")
        for axis, text in zip(axes[:, 0], ("prey\ncount", "predators\ncount", "predators at 10"), strict=True):
            axis.set_ylabel(text)
        footnote(
            figure,
            f"{_run(data['settings']['n_paper'], data, rows)}; grey: 99 % band, all counts together; "
            f"contours: the belief; points: one draw of each output, crosses: beyond",
        )
    return figure


def _run(n: int, data: Data, rows: list[Row]) -> str:
    return f"{n} draws, seed {data['settings']['seed']}, {sum(row['lost'] for row in rows)} lost"


def _histogram(axis: Axes, u: Floats, bins: int) -> None:
    """Draw counts over the band that all calibrated counts of all histograms stay in with 99 % chance."""
    from scipy.special import bdtrik

    # Bonferroni, over both tails of all bars of the ten histograms.
    tail = 0.005 / (bins * 2 * len(SOLVERS))
    low, high = (float(bdtrik(p, len(u), 1 / bins)) for p in (tail, 1 - tail))
    axis.axhspan(low, high, color=NULL, alpha=0.35, lw=0)
    axis.axhline(len(u) / bins, color=NULL, lw=0.8)
    counts = np.histogram(u, bins, (0, 1))[0]
    axis.stairs(counts, np.linspace(0, 1, bins + 1), fill=True, color=COLOURS[0], alpha=0.75)
    axis.set(xlim=(0, 1), xticks=(0, 0.5, 1))


def _scatter(axis: Axes, belief: Any, drawn: Any) -> None:
    """Draw one draw of every output over contours of the belief that hold 50, 80 and 95 % of it."""
    from scipy.stats import gaussian_kde

    # Populations are positive and skew, so their density is estimated on logarithms; a draw of a
    # solver may be below 0, where there is none.
    points, truth = np.log(np.maximum(np.array(drawn), 1e-3)).T, np.log(np.array(belief)).T
    density = gaussian_kde(truth)
    x, y = np.meshgrid(*(np.linspace(row.min() - 0.5, row.max() + 0.5, 60) for row in truth))
    # Where a twentieth of the belief has a lower density, the contour holds the rest.
    levels = np.quantile(density(truth), [0.05, 0.2, 0.5])
    axis.contour(np.exp(x), np.exp(y), density(np.stack([x.ravel(), y.ravel()])).reshape(x.shape), levels, colors="0.5")
    # Further out, points are crosses at the edge.
    low, high = 0.8, 60.0
    there = np.exp(points)
    edge = ((there < low) | (there > high)).any(axis=0)
    axis.plot(*there[:, ~edge], ".", color=COLOURS[1], ms=2.5)
    if edge.any():
        axis.plot(*np.clip(there[:, edge], low, high), "x", color=COLOURS[1], ms=3.5, clip_on=False)
    axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))


def _label(axis: Axes, text: str) -> None:
    box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1}
    axis.text(0.5, 0.97, text, transform=axis.transAxes, ha="center", va="top", fontsize="small", bbox=box)


def _number(p: float) -> str:
    """Return a p-value for a figure, rounded to two figures, or to one where it is small."""
    if p >= 0.001:
        return f"{p:.2g}"
    digit, exponent = f"{p:.0e}".split("e")
    return f"${digit} \\cdot 10^{{{int(exponent)}}}$" if p > 1e-300 else "$10^{-300}$ or less"


def _draw_today(data: Data) -> Figure:
    rows = chosen(data["rows"], when="today")
    with sheet(7.2, 5.3, margin=0.045) as figure:
        parts: Any = figure.subfigures(2, 1, height_ratios=(2, 1.1))
        axes = parts[0].subplots(len(COMPONENTS), len(SOLVERS), sharex=True, sharey=True)
        for column, row in zip(axes.T, rows, strict=True):
            column[0].set_title(row["solver"].replace(" (", "\n("), fontsize="small")
            column[-1].set_xlabel("$u$")
            for axis, part in zip(column, COMPONENTS, strict=True):
                _excess(axis, np.array(row[f"u_{part}"]))
                _label(axis, f"$p$ = {_number(row[f'p_default_{part}'])}")
        for axis, part in zip(axes[:, 0], COMPONENTS, strict=True):
            axis.set_ylabel(f"{part}\nECDF $- u$")
        for axis, measure in zip(parts[1].subplots(1, 2, sharey=True), ("spread", "bias"), strict=True):
            _forest(axis, rows, measure)
        footnote(
            figure,
            f"{_run(data['settings']['n'], data, rows)}; grey: where 95 % of calibrated curves lie; "
            f"bars: simultaneous 95 % intervals, arrows: unbounded",
        )
    return figure


def _excess(axis: Axes, u: Floats) -> None:
    """Draw the ECDF minus the diagonal, over its simultaneous band."""
    # Counted in cells the band is exact at every point that is drawn; between its own points it would not be.
    band = rt.uniformity.band(len(u), draws=_CELLS - 1)
    grid, share = np.asarray(band.points), np.searchsorted(u, band.points, side="left") / len(u)
    axis.fill_between(grid, band.low - grid, band.high - grid, color=NULL, alpha=0.35, lw=0)
    axis.plot([0, *grid, 1], [0, *(share - grid), 0], color=COLOURS[0])
    axis.set(xlim=(0, 1), ylim=(-0.8, 0.8), xticks=(0, 0.5, 1))


def _forest(axis: Axes, rows: list[Row], measure: str) -> None:
    """Draw a measure of all solvers with its interval; where an end is unbounded, an arrow to the edge."""
    low, high = (0.1, 60.0) if measure == "spread" else (-1.5, 12.0)
    axis.axvline(1.0 if measure == "spread" else 0.0, color=NULL, lw=0.8)
    for j, part in enumerate(COMPONENTS):
        for i, row in enumerate(rows):
            middle, *ends = (row[f"{measure}_{part}{end}"] for end in ("", "_low", "_high"))
            place = i + (j - 0.5) * 0.3
            axis.plot(np.clip(ends, low, high), [place, place], color=COLOURS[j], lw=1)
            if low < middle < high:
                axis.plot(middle, place, MARKERS[j], color=COLOURS[j], ms=3, label=part if i == 1 else None)
            if not ends[1] < high:
                axis.plot(high, place, ">", color=COLOURS[j], ms=3, clip_on=False)
    axis.set_yticks(range(len(rows)), [row["solver"] for row in rows], fontsize="small")
    axis.set_ylim(len(rows) - 0.5, -0.5)
    if measure == "spread":
        axis.set(xscale="log", xlim=(low, high), xlabel="factor on the reported sd")
        axis.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
        axis.minorticks_off()
    else:
        axis.set_xscale("symlog", linthresh=1.0)
        axis.set(xlim=(low, high), xlabel="bias in reported sds (above 0: too low)")
        axis.set_xticks([-1, 0, 1, 3, 10], ["\N{MINUS SIGN}1", "0", "1", "3", "10"])
        axis.legend(loc="lower right")
