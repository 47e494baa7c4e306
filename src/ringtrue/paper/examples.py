"""The illustrations: five procedures for one normal mean, all answers known in closed form.

Belief N(0, 1), y = theta + N(0, 1), outputs N(a y, v). Then u = Phi(z) with z ~ N(0, tau^2), and one draw of each
output, averaged over data, is N(0, 2 a^2 + v). The paper draws these and gives no number of realisations: here a
hundred thousand.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.procedures import DataAgnostic, Inflated, Mirrored, NormalMean

from .rows import Data, Progress, Row, chosen, needed_by_ks, p_text
from .style import COLOURS, NULL, Axes, Figure, footnote, legend_above, sheet
from .workers import outcomes

TITLE = "Illustrations: Bayes, data-agnostic, mirror Bayes, too narrow and too wide"
QUICK = 0.1
#: Realisations per procedure at scale 1.
REALISATIONS = 100_000
#: Fewer are not worth a second process.
_WORTH = 50_000
BELIEF = rt.Normal(0.0, 1.0)
#: name: procedure, slope a and variance v of its output N(a y, v)
PROCEDURES: dict[str, tuple[Any, float, float]] = {
    "Bayes": (NormalMean(), 0.5, 0.5),
    "data-agnostic": (DataAgnostic(), 0.0, 1.0),
    "mirror Bayes": (Mirrored(NormalMean()), -0.5, 0.5),
    "eta = 0.5": (Inflated(NormalMean(), 0.5), 0.5, 0.25),
    "eta = 2": (Inflated(NormalMean(), 2.0), 0.5, 1.0),
}
#: Strong and weak Kolmogorov distance, variance of u and of the data-averaged output, by quadrature of the normal
#: integrals independently of the formulas below.
REFERENCE = {
    "Bayes": (0.0, 0.0, 1 / 12, 1.0),
    "data-agnostic": (0.0, 0.0, 1 / 12, 1.0),
    "mirror Bayes": (0.184896, 0.0, 0.156785, 1.0),
    "eta = 0.5": (0.083032, 0.034745, 0.116140, 0.75),
    "eta = 2": (0.083032, 0.048888, 0.054087, 1.5),
}
#: Bars of a histogram, outputs drawn, and the height at which bars are cut off: the outer ones of mirror Bayes are
#: 4.6 high, and would dwarf the others.
_BINS, _SHOWN, _TALLEST = 20, 12, 3.4


def scale_distance(sd: float) -> float:
    """Return the Kolmogorov distance between N(0, sd^2) and N(0, 1), at the point where their densities are equal.

    Examples
    --------
    >>> round(scale_distance(2**0.5), 6)
    0.083032
    """
    if sd == 1:
        return 0.0
    # The laws are farthest apart where their densities are equal: log sd = x^2 (1 - 1 / sd^2) / 2.
    x = math.sqrt(2 * math.log(sd) / (1 - sd**-2))
    return float(abs(special.ndtr(x / sd) - special.ndtr(x)))


def closed_form(a: float, v: float) -> dict[str, float]:
    """Return what is known of the output N(a y, v)."""
    # theta - a y = (1 - a) theta - a noise. A draw is a y and its own noise, and y has the variance 2.
    tau2, spread = ((1 - a) ** 2 + a**2) / v, 2 * a**2 + v
    return {
        "ks_strong": scale_distance(math.sqrt(tau2)),
        "ks_weak": scale_distance(math.sqrt(spread)),
        # Var Phi(z) for z ~ N(0, tau^2), from the orthant probability of two correlated normals.
        "var_u": math.asin(tau2 / (1 + tau2)) / (2 * math.pi),
        "var_averaged": spread,
        "tau2": tau2,
    }


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run the five procedures on the same data."""
    n = max(round(REALISATIONS * scale), 100)
    rows, panels = zip(
        *outcomes(partial(_one, n=n, seed=seed), list(PROCEDURES), progress, worth=n >= _WORTH), strict=True
    )
    settings = {"n": n, "seed": seed, "scale": scale, "bins": _BINS, "band": _histogram_band(n)}
    return {"settings": settings, "rows": list(rows), "panels": list(panels)}


def _one(name: str, n: int, seed: int) -> tuple[Row, Data]:
    procedure, a, v = PROCEDURES[name]
    # One seed: all procedures meet the same data, so that they differ by nothing else.
    study = rt.Study(BELIEF, NormalMean().simulate, procedure, f=rt.identity, seed=seed, batch=n)
    replicates = rt.run(study, n=n, progress="off")
    found = rt.judge(replicates, test="ks").levels
    strong, weak = found["strong"].rows[0], found["weak"].rows[0]
    result = rt.judge(replicates)
    u, drawn = replicates.u[:, 0], replicates.weak_value[:, 0]
    known = closed_form(a, v)
    row = {
        "procedure": name,
        "ks_strong": strong.statistic,
        "ks_weak": weak.statistic,
        "var_u": float(u.var()),
        "var_averaged": float(drawn.var()),
        **{f"{key}_exact": value for key, value in known.items()},
        "p_strong": strong.pvalue,
        "p_weak": weak.pvalue,
        "p_default": result.levels["strong"].pvalue,
        "p_default_weak": result.levels["weak"].pvalue,
        "verdict": result.verdict.words,
        "n_needed": needed_by_ks(known["ks_strong"]),
        "n_needed_weak": needed_by_ks(known["ks_weak"]),
        "n_needed_default": None
        if known["tau2"] == 1
        else int(rt.planning.plan(spread=math.sqrt(known["tau2"]), of="test").n),
    }
    # Without batches: a batch is replayed as a whole.
    single = rt.Study(BELIEF, NormalMean().simulate, procedure, f=rt.identity, seed=seed)
    outputs = [rt.replay(single, i)[2] for i in range(_SHOWN)]
    density, edges = np.histogram(drawn, bins=48, range=(-4, 4))
    panel = {
        "procedure": name,
        "counts": np.histogram(u, bins=_BINS, range=(0, 1))[0].tolist(),
        "edges": edges.tolist(),
        "averaged": (density / (n * (edges[1] - edges[0]))).tolist(),
        "outputs": [(float(output.mean), float(output.sd)) for output in outputs],
    }
    return row, panel


def _histogram_band(n: int) -> tuple[int, int]:
    """Return counts between which all bars of a uniform histogram lie with 95 % chance (Bonferroni over bars)."""
    below = special.bdtr(np.arange(n + 1), n, 1 / _BINS)
    # Counts that share a sum hold each other down, so that Bonferroni gives away almost nothing.
    tail = 0.05 / (2 * _BINS)
    return int(np.searchsorted(below, tail)), int(np.searchsorted(below, 1 - tail))


def lines(data: Data) -> list[str]:
    """Print measured numbers beside the closed forms."""
    text = [
        f"Illustrations, n = {data['settings']['n']}: measured (closed form).",
        "procedure      KS strong          KS weak            Var u              averaged variance  p default  verdict",
    ]
    for row in data["rows"]:
        keys = ("ks_strong", "ks_weak", "var_u", "var_averaged")
        cells = [f"{row[key]:.4f} ({row[key + '_exact']:.4f})" for key in keys]
        body = "  ".join(f"{cell:<17}" for cell in cells)
        text.append(f"{row['procedure']:<13}  {body}  {p_text(row['p_default']):<9}  {row['verdict']}")
    for row in data["rows"]:
        if row["n_needed"]:
            text.append(
                f"{row['procedure']} would have shown with n = {row['n_needed']} (KS) or {row['n_needed_default']} "
                f"(default test); by the weak test with {row['n_needed_weak'] or 'no number'}."
            )
    return text


def draw(data: Data) -> Figure:
    """Draw outputs with the data-averaged output against the belief, and histograms of u with a simultaneous band."""
    with sheet(7.2, 3.9, margin=0.05) as figure:
        axes = figure.subplots(2, len(data["panels"]), sharey="row", sharex="row")
        for column, panel in enumerate(data["panels"]):
            _draw_outputs(axes[0, column], panel)
            _draw_histogram(axes[1, column], panel, data)
            axes[0, column].set_title(panel["procedure"].replace("eta", "$\\eta$"))
        axes[0, 0].set_ylabel("density")
        axes[1, 0].set_ylabel("density of $u$")
        legend_above(figure, axes[0, 0], ncols=3)
        settings = data["settings"]
        footnote(
            figure,
            f"n = {settings['n']}, seed {settings['seed']}; grey: 95 % simultaneous band; arrows: bars cut off",
        )
    return figure


def _draw_outputs(axis: Axes, panel: Data) -> None:
    x = np.linspace(-4, 4, 201)
    for i, (mean, sd) in enumerate(panel["outputs"]):
        density = np.exp(-0.5 * np.square((x - mean) / sd)) / (sd * math.sqrt(2 * math.pi))
        axis.plot(x, density, color=COLOURS[5], lw=0.5, alpha=0.8, label="outputs" if i == 0 else None)
    axis.fill_between(x, np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi), color=NULL, alpha=0.5, lw=0, label="belief")
    axis.stairs(panel["averaged"], panel["edges"], color=COLOURS[1], lw=1.2, label="data-averaged output")
    axis.set(xlabel="$\\theta$", xlim=(-4, 4), ylim=(0, 0.85), xticks=(-3, 0, 3))


def _draw_histogram(axis: Axes, panel: Data, data: Data) -> None:
    n, bins, (low, high) = (data["settings"][key] for key in ("n", "bins", "band"))
    (row,) = chosen(data["rows"], procedure=panel["procedure"])
    axis.axhspan(low * bins / n, high * bins / n, color=NULL, alpha=0.5, lw=0)
    density = np.array(panel["counts"]) * bins / n
    axis.stairs(density, np.linspace(0, 1, bins + 1), color=COLOURS[0])
    for i in np.flatnonzero(density > _TALLEST):  # cut off, and said so beside the bar
        left = i < bins / 2
        text = f"$\\leftarrow$ {density[i]:.1f}" if left else f"{density[i]:.1f} $\\rightarrow$"
        place = ((i + 1) / bins + 0.02, "left", 0.8) if left else (i / bins - 0.02, "right", 0.62)
        axis.text(place[0], place[2], text, transform=axis.transAxes, ha=place[1], va="top", fontsize="small")
    axis.set_title(f"KS = {row['ks_strong']:.3f}", fontsize="small")
    axis.set(xlabel="$u$", xlim=(0, 1), ylim=(0, _TALLEST), xticks=(0, 0.5, 1))
