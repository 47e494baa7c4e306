"""The four forecasters of Gneiting, Balabdaoui and Raftery (2007), which two footnotes of the paper mention.

Nature draws mu ~ N(0, 1) and then theta ~ N(mu, 1), which is what is forecast; the datum is mu, and a coin tau = 1 or
-1. Probabilistic calibration of a forecaster is the paper's strong calibration for f(theta) = theta alone, marginal
calibration is its weak one. The unfocused forecaster has the first and not the second; the paper's footnote has it the
other way round, and it is the sign-reversed one, its own mirror Bayes, that is so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.values import Floats

from .examples import scale_distance
from .rows import Data, Progress, Row, p_text
from .style import COLOURS, NULL, Axes, Figure, footnote, sheet
from .workers import outcomes

TITLE = "Four forecasters: what a footnote has the wrong way round"
QUICK = 0.1
#: Realisations per forecaster at scale 1.
REALISATIONS = 100_000
#: Fewer are not worth a second process.
_WORTH = 50_000
BELIEF = rt.Normal(0.0, math.sqrt(2))
FORECASTERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "ideal": lambda belief, y: rt.Normal(y["mu"], np.ones(len(y["mu"]))),
    "climatological": lambda belief, y: rt.Normal(0 * y["mu"], np.full(len(y["mu"]), math.sqrt(2))),
    "unfocused": lambda belief, y: rt.Mixture(
        [rt.Normal(y["mu"], np.ones(len(y["mu"]))), rt.Normal(y["mu"] + y["tau"], np.ones(len(y["mu"])))], ndim=0
    ),
    "sign-reversed": lambda belief, y: rt.Normal(-y["mu"], np.ones(len(y["mu"]))),
}
#: |theta| has a law that is as well known, and sees what theta does not.
FUNCTIONS = (rt.identity, rt.Distance(0.0, 1.0, "|theta|"))


def see(theta: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    """Return mu given what it led to, and a fair coin."""
    mu = theta / 2 + math.sqrt(0.5) * rng.standard_normal(len(theta))
    return {"mu": mu, "tau": rng.choice([-1.0, 1.0], len(theta))}


def unfocused_distance() -> float:
    """Return the Kolmogorov distance between the unfocused forecaster's average forecast and N(0, 2).

    Examples
    --------
    >>> round(unfocused_distance(), 5)
    0.02789
    """
    x = np.linspace(-6, 6, 120_001) / math.sqrt(2)
    shift = 1 / math.sqrt(2)
    return float(np.abs((special.ndtr(x - shift) + special.ndtr(x + shift)) / 4 - special.ndtr(x) / 2).max())


def known() -> dict[str, tuple[float, float]]:
    """Return the strong distance of theta and the weak one, of every forecaster, in the population."""
    # Sign-reversed: theta + mu = 2 mu + noise has the variance 5.
    return {
        "ideal": (0.0, 0.0),
        "climatological": (0.0, 0.0),
        "unfocused": (0.0, unfocused_distance()),
        "sign-reversed": (scale_distance(math.sqrt(5)), 0.0),
    }


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run the four forecasters on the same data."""
    n = max(round(REALISATIONS * scale), 100)
    rows, panels = zip(
        *outcomes(partial(_one, n=n, seed=seed), list(FORECASTERS), progress, worth=n >= _WORTH), strict=True
    )
    return {"settings": {"n": n, "seed": seed, "scale": scale}, "rows": list(rows), "panels": list(panels)}


def _one(name: str, n: int, seed: int) -> tuple[Row, Data]:
    study = rt.Study(BELIEF, see, FORECASTERS[name], f=FUNCTIONS, seed=seed, batch=n)
    replicates = rt.run(study, n=n, progress="off")
    tests = {(test.level, test.f): test for test in rt.judge(replicates, test="ks").tests}
    row: Row = {"forecaster": name}
    for level, f in (("strong", "theta"), ("strong", "|theta|"), ("weak", "theta")):
        test = tests[level, f]
        row |= {f"ks_{level}_{f}": test.statistic, f"p_{level}_{f}": test.pvalue}
    row["exact_strong"], row["exact_weak"] = known()[name]
    counts = [np.histogram(x, 20, ends)[0] for x, ends in zip(_seen(replicates), _ENDS, strict=True)]
    return row, {"forecaster": name, "u": counts[0].tolist(), "drawn": counts[1].tolist()}


_ENDS = ((0.0, 1.0), (-5.0, 5.0))


def _seen(replicates: rt.Replicates) -> tuple[Floats, Floats]:
    return replicates.u[:, 0], replicates.weak_value[:, 0]


def lines(data: Data) -> list[str]:
    """Say what each forecaster is, beside the population's distances."""
    text = [
        f"Four forecasters, n = {data['settings']['n']}: KS distances (population) and p-values.",
        "forecaster      strong, theta              strong, |theta|   weak",
    ]
    for row in data["rows"]:
        strong = f"{row['ks_strong_theta']:.4f} ({row['exact_strong']:.4f}) {p_text(row['p_strong_theta'])}"
        folded = f"{row['ks_strong_|theta|']:.4f} {p_text(row['p_strong_|theta|'])}"
        weak = f"{row['ks_weak_theta']:.4f} ({row['exact_weak']:.4f}) {p_text(row['p_weak_theta'])}"
        text.append(f"{row['forecaster']:<14}  {strong:<25}  {folded:<16}  {weak}")
    return text


def draw(data: Data) -> Figure:
    """Draw, for every forecaster, u of theta and one draw of each forecast over the belief."""
    with sheet(7.2, 3.3, margin=0.06) as figure:
        axes = figure.subplots(2, len(FORECASTERS), sharey="row")
        for column, panel in zip(axes.T, data["panels"], strict=True):
            column[0].set_title(panel["forecaster"], fontsize="medium")
            for axis, key, ends in zip(column, ("u", "drawn"), _ENDS, strict=True):
                _bars(axis, np.array(panel[key]), ends, data["settings"]["n"])
            column[0].set_xlabel("$u$ of $\\theta$")
            column[1].set_xlabel("a draw of each forecast")
        for axis in axes[:, 0]:
            axis.set_ylabel("density")
        footnote(figure, f"n = {data['settings']['n']}, seed {data['settings']['seed']}; grey: if calibrated")
    return figure


def _bars(axis: Axes, counts: Floats, ends: tuple[float, float], n: int) -> None:
    edges = np.linspace(*ends, len(counts) + 1)
    axis.stairs(counts / (n * (edges[1] - edges[0])), edges, fill=True, color=COLOURS[0], alpha=0.75)
    grid = np.linspace(*ends, 201)
    # Of u the uniform law, of draws the belief N(0, 2).
    density = np.ones(201) if ends == _ENDS[0] else np.exp(-(grid**2) / 4) / math.sqrt(4 * math.pi)
    axis.plot(grid, density, color=NULL, lw=1.2)
    axis.set_xlim(*ends)
