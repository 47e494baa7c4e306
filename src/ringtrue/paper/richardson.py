"""Richardson's iteration as a learning procedure: passes every linear test function, fails the others.

One step of x -> x + eps (y - A x) with y = A theta, applied to the belief N(0, 1) instead of to a start, gives the
output N((1 - g) theta, g^2) with g = 1 - eps A. For f(theta) = theta, u is exactly uniform; for theta^2 it is not, and
one draw of the output is not distributed like the belief. So the procedure is neither strongly nor weakly calibrated;
the paper's claim that it is holds for linear test functions, and one of those is not enough even in one dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

import ringtrue as rt
from ringtrue.distributions import Distribution, Law
from ringtrue.functions import Context, Sees, TestFunction
from ringtrue.values import Floats

from .examples import scale_distance
from .rows import Data, Progress, Row, chosen, needed_by_ks, p_text
from .style import COLOURS, NULL, STYLES, Axes, Figure, footnote, legend_above, sheet
from .workers import outcomes

TITLE = "Richardson's iteration: calibrated for linear test functions only"
QUICK = 0.1
#: Realisations per step size at scale 1; the paper has no experiment here.
REALISATIONS = 100_000
#: Fewer are not worth a second process.
_WORTH = 50_000
#: Values of g = 1 - eps A: a good step, one that is too short, and one that overshoots.
FACTORS = (0.5, 0.9, -0.5)
KINDS = ("theta", "theta^2", "theta^3 - 3 theta", "weak")
#: Kolmogorov distances for the four kinds by g, from quadrature independent of this module.
REFERENCE = {
    0.5: (0.0, 0.24217, 0.03324, 0.08303),
    0.9: (0.0, 0.04840, 0.01164, 0.02399),
    -0.5: (0.0, 0.67644, 0.14950, 0.10896),
}


@dataclass(frozen=True)
class Cubic:
    """The test function theta^3 - 3 theta: odd, uncorrelated with theta under N(0, 1), and not monotone."""

    name: str = "theta^3 - 3 theta"
    kind: str = field(default="function", init=False)
    sees: Sees = field(default="theta", init=False)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the cubic of every parameter."""
        x = np.asarray(theta, float)
        return np.asarray(x * (x**2 - 3))


@dataclass(frozen=True, eq=False)
class CubicLaw(Law):
    """The exact law of X^3 - 3 X for normal X.

    Examples
    --------
    >>> float(CubicLaw(rt.Normal(0, 1)).cdf(0.0))
    0.5
    """

    law: rt.Normal

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability below the lowest root, and between the other two if there are three."""
        low, middle, high = cubic_roots(np.asarray(x, float))
        # Where there is one root, the bracket is 0 exactly.
        return np.asarray(self.law.cdf(low) + (self.law.cdf(high) - self.law.cdf(middle)))

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability above the highest root, and between the other two if there are three."""
        low, middle, high = cubic_roots(np.asarray(x, float))
        return np.asarray(self.law.sf(high) + (self.law.sf(low) - self.law.sf(middle)))

    def sample(self, m: int, rng: np.random.Generator) -> Floats:
        """Return m draws on axis 0."""
        return Cubic().evaluate(self.law.sample(m, rng), Context(1))


def cubic_roots(c: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the real roots of x^3 - 3 x = c in order; a single one is returned three times.

    Examples
    --------
    >>> [round(float(root), 3) for root in cubic_roots(np.array(0.0))]
    [-1.732, 0.0, 1.732]
    """
    # Vieta: x = 2 cos a makes x^3 - 3 x = 2 cos 3a. Beyond 2 the hyperbolic cosine takes its place.
    angle = np.arccos(np.clip(c / 2, -1, 1)) / 3
    three = [2 * np.cos(angle + shift) for shift in (2 * np.pi / 3, -2 * np.pi / 3, 0)]
    only = np.sign(c) * 2 * np.cosh(np.arccosh(np.maximum(np.abs(c) / 2, 1)) / 3)
    single = np.abs(c) > 2
    low, middle, high = (np.where(single, only, root) for root in three)
    return low, middle, high


@dataclass(frozen=True, eq=False)
class Scalar(Distribution):
    """A normal belief or batch of outputs that also knows the exact law of the cubic."""

    law: rt.Normal

    def sample(self, m: int, rng: np.random.Generator) -> Floats:
        """Return m draws on axis 0."""
        return self.law.sample(m, rng)

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of a test function."""
        return CubicLaw(self.law) if isinstance(f, Cubic) else self.law.marginal(f)


@dataclass(frozen=True)
class OneDimensional:
    """The package's Richardson iteration with error factor g, on numbers instead of vectors of length one."""

    factor: float

    def __call__(self, belief: Scalar, y: Floats) -> Scalar:
        """Return the outputs for a batch of data."""
        iteration = rt.procedures.Richardson([[1.0]], step=1 - self.factor)
        output = iteration(rt.Gaussian([0.0], [[1.0]]), np.asarray(y)[:, None])
        return Scalar(rt.Normal(output.mean[:, 0], np.sqrt(output.cov[:, 0, 0])))


#: |theta| orders parameters as theta^2 does and has an exact law; the default family's distance is the same.
FUNCTIONS = (rt.identity, rt.Distance(0.0, 1.0, "theta^2"), Cubic())


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run the iteration for three step sizes: distances and curves of three test functions and of the weak test."""
    n = max(round(REALISATIONS * scale), 100)
    rows, curves = [], []
    tasks = [(factor, n, seed + i) for i, factor in enumerate(FACTORS)]
    for found, drawn in outcomes(_one, tasks, progress, worth=n >= _WORTH):
        rows += found
        curves += drawn
    band = rt.uniformity.band(n)
    shown = {key: getattr(band, key).tolist() for key in ("points", "low", "high")}
    return {"settings": {"n": n, "seed": seed, "scale": scale}, "rows": rows, "curves": curves, "band": shown}


def _one(task: tuple[float, int, int]) -> tuple[list[Row], list[Data]]:
    factor, n, seed = task
    belief = Scalar(rt.Normal(0.0, 1.0))
    study = rt.Study(belief, lambda theta: theta, OneDimensional(factor), f=FUNCTIONS, seed=seed, batch=n)
    replicates = rt.run(study, n=n, progress="off")
    # The weak row of the identity; those of the other test functions follow from the same draws.
    ks, default = (_rows(rt.judge(replicates, test=test)) for test in ("ks", "combination"))
    samples = [*replicates.u.T, replicates.weak_u[:, 0]]
    rows = [
        {
            "g": factor,
            "kind": kind,
            "ks": ks[kind].statistic,
            "ks_exact": exact,
            "p_ks": ks[kind].pvalue,
            "p_default": default[kind].pvalue,
            "n_needed": needed_by_ks(exact, np.arange(1, n + 1) / n - np.sort(u)),
        }
        for kind, u, exact in zip(KINDS, samples, exact_distances(factor), strict=True)
    ]
    points = rt.uniformity.band(n).points
    gaps = [np.searchsorted(np.sort(u), points, side="right") / n - points for u in samples]
    return rows, [
        {"g": factor, "kind": kind, "difference": gap.tolist()} for kind, gap in zip(KINDS, gaps, strict=True)
    ]


def _rows(result: rt.Result) -> dict[str, Any]:
    strong = {row.f: row for row in result.tests if row.level == "strong"}
    return {**strong, "weak": next(row for row in result.tests if row.level == "weak" and row.f == "theta")}


def exact_distances(factor: float) -> tuple[float, float, float, float]:
    """Return the Kolmogorov distances for the three test functions and the weak test, by integrating over theta.

    Examples
    --------
    >>> [round(d, 3) for d in exact_distances(0.5)]
    [0.0, 0.242, 0.033, 0.083]
    """
    theta = special.ndtri((np.arange(400_000) + 0.5) / 400_000)  # equally likely points: errors of order 1e-5
    output = Scalar(rt.Normal((1 - factor) * theta, abs(factor)))
    strong = [_distance(output.marginal(f), f.evaluate(theta, Context(1))) for f in FUNCTIONS]
    # For the identity z = (theta - (1 - g) theta) / |g| is theta or -theta: normal, whatever the step.
    return 0.0, strong[1], strong[2], scale_distance(math.sqrt(factor**2 + (1 - factor) ** 2))


def _distance(law: Law | None, truth: Floats) -> float:
    assert law is not None
    return float(rt.uniformity.ks(law.cdf(truth)).statistic)


def lines(data: Data) -> list[str]:
    """Print distances beside the exact ones, and what they mean."""
    text = [
        f"Richardson, one step with error factor g, n = {data['settings']['n']}: output N((1-g) theta, g^2).",
        "g     f                  KS measured  exact    p (KS)    p (default)  n needed",
    ]
    for row in data["rows"]:
        text.append(
            f"{row['g']:<4g}  {row['kind']:<17}  {row['ks']:<11.5f}  {row['ks_exact']:.5f}  {p_text(row['p_ks']):<8}  "
            f"{p_text(row['p_default']):<11}  {row['n_needed'] or 'none'}"
        )
    for factor in FACTORS:
        # The four tests share an error of 5 %.
        seen = [row["kind"] for row in chosen(data["rows"], g=factor) if row["p_default"] <= 0.05 / len(KINDS)]
        blind = [kind for kind in KINDS if kind not in seen]
        text.append(f"g = {factor:g}: rejected by {', '.join(seen) or 'none'}; not by {', '.join(blind) or 'none'}.")
    return text


def draw(data: Data) -> Figure:
    """Draw the empirical distribution of u minus the uniform one, a panel per step size, with a simultaneous band."""
    with sheet(7.2, 2.8, margin=0.06) as figure:
        axes = figure.subplots(1, len(FACTORS), sharex=True)
        for axis, letter, factor in zip(axes, "abc", FACTORS, strict=True):
            _draw_panel(axis, data, factor)
            axis.set_title(f"({letter}) $g = {factor:g}$", loc="left")
        axes[0].set_ylabel("ECDF of $u$ minus uniform")
        legend_above(figure, axes[0], ncols=5)
        footnote(figure, f"n = {data['settings']['n']}, seed {data['settings']['seed']}")
    return figure


def _draw_panel(axis: Axes, data: Data, factor: float) -> None:
    points, low, high = (np.array(data["band"][key]) for key in ("points", "low", "high"))
    axis.fill_between(points, low - points, high - points, color=NULL, alpha=0.6, lw=0, label="95 % band")
    labels = ("$\\theta$", "$\\theta^2$", "$\\theta^3-3\\theta$", "weak, $\\theta$")
    for i, curve in enumerate(chosen(data["curves"], g=factor)):
        axis.plot(points, curve["difference"], STYLES[i], color=COLOURS[i], label=labels[i])
    axis.set(xlabel="$u$", xlim=(0, 1))
