"""Robust calibration: the data are contaminated and the procedure does not know.

Belief N(0, 3), likelihood N(theta, 1), but with probability eps the datum comes from N(5, 1). Bayes and fractional
posteriors are compared by the Kolmogorov distance of u from uniform. Everything is a mixture of two normals, so the
exact distances are drawn beside the measured ones. The paper does not say whether 3 is a variance, nor how many
realisations it used: here a variance, and ten thousand per point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

import ringtrue as rt
from ringtrue.values import Floats

from .rows import Data, Progress, Row, chosen, column, first_test, needed_by_ks, p_text
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

TITLE = "Robust calibration: Bayes and fractional posteriors under contaminated data"
QUICK = 1.0
#: Realisations per point at scale 1.
REALISATIONS = 10_000
OUTLIER = 5.0
POWERS = (1.0, 0.1, 0.2, 0.3)
#: Where the sum of squares of z has its calibrated mean for t = 0.1 although u is far from uniform.
BLIND = (0.1, 0.1875)
SHARES = (0.0, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.1875, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

#: Kolmogorov distances of the two-component mixtures by (power, eps), belief variance 3, maximised on a fine grid
#: independently of this module; and the share at which Bayes becomes worse than the fractional posterior.
REFERENCE = {
    (1.0, 0.1): 0.08418, (1.0, 0.3): 0.25253, (1.0, 0.5): 0.42088, (1.0, 1.0): 0.84175,
    (0.1, 0.0): 0.02813, (0.1, 0.1): 0.03751, (0.1, 0.3): 0.07367, (0.1, 0.5): 0.13006, (0.1, 1.0): 0.28113,
    (0.3, 0.0): 0.04857, (0.3, 0.1): 0.06212, (0.3, 0.3): 0.14002, (0.3, 1.0): 0.57364,
}  # fmt: skip
REFERENCE_CROSSINGS = {0.1: 0.037, 0.2: 0.059, 0.3: 0.068}
#: Values of z among which the largest gap between two laws is looked for.
#: Beyond 8.3 the normal law rounds to 1.
_POINTS = np.linspace(-9, 9, 721)


#: From power and the belief's variance to the two normals that something is a mixture of.
Components = Callable[[float, float], tuple[float, float, float]]


@dataclass(frozen=True)
class Contaminated:
    """A batched model: theta + N(0, 1), but N(5, 1) with probability ``share``, each replicate by its own coin."""

    share: float

    def __call__(self, theta: Floats, rng: np.random.Generator) -> Floats:
        """Return one datum per theta."""
        center = np.where(rng.random(len(theta)) < self.share, OUTLIER, theta)
        return np.asarray(center + rng.standard_normal(len(theta)))


def mixture(power: float, variance: float) -> tuple[float, float, float]:
    """Return the sd of z on clean data, and its mean and sd on outliers.

    The output for y is N(w y, s^2) with w = t v / (1 + t v) and s^2 = v / (1 + t v).
    """
    weight, s2 = power * variance / (1 + power * variance), variance / (1 + power * variance)
    # An outlier says nothing about theta, so that all of its variance is left beside that of w y.
    clean = math.sqrt(((1 - weight) ** 2 * variance + weight**2) / s2)
    return clean, -OUTLIER * weight / math.sqrt(s2), math.sqrt((variance + weight**2) / s2)


def averaged(power: float, variance: float) -> tuple[float, float, float]:
    """Return the sd of one draw of the output on clean data, and its mean and sd on outliers, in sds of the belief."""
    weight, s2 = power * variance / (1 + power * variance), variance / (1 + power * variance)
    clean, outlier = weight**2 * (variance + 1) + s2, weight**2 + s2
    return math.sqrt(clean / variance), OUTLIER * weight / math.sqrt(variance), math.sqrt(outlier / variance)


def excess(share: float, power: float, variance: float, q: ArrayLike, of: Components = mixture) -> Floats:
    """Return P(z <= q) - Phi(q) under contamination; of :func:`averaged`, for one draw of each output."""
    clean, mean, sd = of(power, variance)
    x = np.asarray(q, float)
    law = (1 - share) * special.ndtr(x / clean) + share * special.ndtr((x - mean) / sd)
    return np.asarray(law - special.ndtr(x))


def exact_distance(share: float, power: float, variance: float = 3.0, of: Components = mixture) -> float:
    """Return the Kolmogorov distance of the law of u from uniform; of :func:`averaged`, that of the weak test.

    Examples
    --------
    >>> round(exact_distance(0.1, 1.0), 5), round(exact_distance(0.1, 1.0, of=averaged), 5)
    (0.08418, 0.08128)
    """
    # The gap of a mixture has several humps: a search alone might end on a lower one.
    top = _POINTS[np.argmax(np.abs(excess(share, power, variance, _POINTS, of)))]
    step = _POINTS[1] - _POINTS[0]
    gap = lambda x: -abs(float(excess(share, power, variance, x, of)))  # noqa: E731
    near = (top - step, top + step)
    return -float(optimize.minimize_scalar(gap, bounds=near, method="bounded", options={"xatol": 1e-10}).fun)


def crossing(power: float, variance: float = 3.0, of: Components = mixture) -> float:
    """Return the share of outliers beyond which the fractional posterior is nearer to calibrated than Bayes.

    Examples
    --------
    >>> round(crossing(0.1), 3)
    0.037
    """

    def gap(share: float) -> float:
        return exact_distance(share, 1.0, variance, of) - exact_distance(share, power, variance, of)

    # Without outliers Bayes is calibrated and nothing is nearer; with half of them it is the farthest.
    return float(optimize.brentq(gap, 0.0, 0.5, xtol=1e-8))


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter, variance: float = 3.0) -> Data:
    """Run every procedure at every share of outliers.

    ``variance`` is the belief's; 9 is the other reading of the paper's N(0, 3).
    """
    n = max(round(REALISATIONS * scale), 100)
    jobs = [(power, i) for i in range(len(SHARES)) for power in POWERS]
    # One seed per share: all procedures meet the same data, so that their difference is not noise.
    rows = [_row(power, SHARES[i], variance, n=n, seed=1000 * seed + i) for power, i in progress(jobs)]
    grid = [round(0.01 * k, 2) for k in range(101)]
    curves = [
        {"power": power, "eps": grid, "ks": [exact_distance(eps, power, variance) for eps in grid]} for power in POWERS
    ]
    crossings = [_crossing(power, rows, variance) for power in POWERS[1:]]
    settings = {"n": n, "seed": seed, "scale": scale, "variance": variance, "outlier": OUTLIER}
    return {"settings": settings, "rows": rows, "curves": curves, "crossings": crossings}


def _row(power: float, share: float, variance: float, *, n: int, seed: int) -> Row:
    belief = rt.Normal(0.0, math.sqrt(variance))
    procedure = rt.procedures.NormalMean(power=power)
    study = rt.Study(belief, Contaminated(share), procedure, f=rt.identity, seed=seed, batch=n)
    replicates = rt.run(study, n=n, progress="off")
    tests = {test: first_test(replicates, "strong", test) for test in ("ks", "cook", "combination")}
    weak = first_test(replicates, "weak", "ks")
    exact = exact_distance(share, power, variance)
    return {
        "power": power,
        "eps": share,
        "ks": tests["ks"].statistic,
        "ks_exact": exact,
        "p_ks": tests["ks"].pvalue,
        "ks_weak": weak.statistic,
        "ks_weak_exact": exact_distance(share, power, variance, averaged),
        "p_weak": weak.pvalue,
        "p_cook": tests["cook"].pvalue,
        "p_default": tests["combination"].pvalue,
        "mean_z2": float(np.square(replicates.z[:, 0]).mean()),
        "n_needed": needed_by_ks(exact, excess(share, power, variance, _POINTS)),
        "n_needed_default": _needed_default(share, power, variance),
    }


def _needed_default(share: float, power: float, variance: float) -> int | None:
    """Return how many the default test needs, from the mean and the mean square of z, whichever shows first."""
    clean, mean, sd = mixture(power, variance)
    spread = math.sqrt((1 - share) * clean**2 + share * (mean**2 + sd**2))
    # There is no plan for an error of 0.
    asked = [rt.planning.plan(bias=share * mean, of="test")] if share else []
    asked += [rt.planning.plan(spread=spread, of="test")] if abs(spread - 1) > 1e-6 else []
    return min((int(one.n) for one in asked), default=None)


def _crossing(power: float, rows: list[Row], variance: float) -> dict[str, float | None]:
    """Return the exact cross-over with Bayes and the measured one, interpolated between the shares."""
    measured = {(row["power"], row["eps"]): row["ks"] for row in rows}
    gaps = [measured[1.0, eps] - measured[power, eps] for eps in SHARES]
    # Below the cross-over both are near 0, and noise may change the sign more than once.
    last = max((i for i, gap in enumerate(gaps) if gap <= 0), default=None)
    found = None
    if last is not None and last + 1 < len(SHARES):
        part = -gaps[last] / (gaps[last + 1] - gaps[last])
        found = SHARES[last] + part * (SHARES[last + 1] - SHARES[last])
    weak = crossing(power, variance, averaged)
    return {"power": power, "exact": crossing(power, variance), "measured": found, "weak": weak}


def lines(data: Data) -> list[str]:
    """Say what came out: distances beside the exact ones, cross-overs, and where the chi-squared test is blind."""
    settings = data["settings"]
    text = [
        f"Robust calibration, n = {settings['n']} per point, belief N(0, variance {settings['variance']:g}).",
        "procedure    eps    KS measured  exact    p (KS)    p (default)  n needed (KS / default)  weak KS  exact    p",
    ]
    for row in data["rows"]:
        if row["eps"] in (0.0, 0.1, 0.3, 0.5, 1.0):
            needed = f"{row['n_needed'] or 'inf'} / {row['n_needed_default'] or 'inf'}"
            text.append(
                f"{_name(row['power']):<11}  {row['eps']:<5g}  {row['ks']:<11.5f}  {row['ks_exact']:.5f}  "
                f"{p_text(row['p_ks']):<8}  {p_text(row['p_default']):<11}  {needed:<23}  {row['ks_weak']:.5f}  "
                f"{row['ks_weak_exact']:.5f}  {p_text(row['p_weak'])}"
            )
    for item in data["crossings"]:
        seen = "not on the grid" if item["measured"] is None else f"{item['measured']:.3f}"
        text.append(
            f"{_name(item['power'])} is nearer to calibrated than Bayes only above eps = {item['exact']:.3f} "
            f"(measured: {seen}); weakly, above {item['weak']:.3f}."
        )
    blind = _blind(data)
    text.append(
        f"Where chi2 is blind: {_name(BLIND[0])}, eps = {BLIND[1]}: mean z^2 = {blind['mean_z2']:.3f}, p = "
        f"{blind['p_cook']:.2g} (chi2), {blind['p_ks']:.1g} (KS), {blind['p_default']:.1g} (default); the KS distance "
        f"is {blind['ks_exact']:.4f}."
    )
    return text


def _blind(data: Data) -> Row:
    return chosen(data["rows"], power=BLIND[0], eps=BLIND[1])[0]


def _name(power: float) -> str:
    return "Bayes" if power == 1 else f"t = {power:g}"


def draw(data: Data) -> Figure:
    """Draw the distances over the share of outliers, their cross-overs, and the p-values of three tests."""
    with sheet(7.2, 3.1, margin=0.06) as figure:
        axes = figure.subplots(1, 3)
        _draw_distances(axes[0], data, limit=1.0)
        _draw_distances(axes[1], data, limit=0.12)
        _draw_pvalues(axes[2], data)
        titles = ("(a) all shares", "(b) the cross-over", "(c) three tests, t = 0.1")
        for axis, title in zip(axes, titles, strict=True):
            axis.set_title(title, loc="left")
        legend_above(figure, axes[0], axes[2], ncols=5)
        settings = data["settings"]
        footnote(figure, f"n = {settings['n']} per point, seed {settings['seed']}, lines: exact, markers: measured")
    return figure


def _draw_distances(axis: Axes, data: Data, *, limit: float) -> None:
    # The 5 % point of Kolmogorov's distribution.
    critical = 1.358 / math.sqrt(data["settings"]["n"])
    axis.axhspan(0, critical, color=NULL, alpha=0.35, lw=0, label="5 % test accepts")
    for i, curve in enumerate(data["curves"]):
        axis.plot(curve["eps"], curve["ks"], STYLES[i], color=COLOURS[i])
        rows = [row for row in chosen(data["rows"], power=curve["power"]) if row["eps"] <= limit]
        label = _name(curve["power"])
        axis.plot(column(rows, "eps"), column(rows, "ks"), MARKERS[i], color=COLOURS[i], ms=3, label=label)
    axis.set(xlabel="share of outliers $\\epsilon$", xlim=(-0.02 * limit, 1.02 * limit), ylim=(0, 0.9))
    if limit == 1:
        axis.set_ylabel("KS distance of $u$ from uniform")
        return
    axis.set_ylim(0, 0.11)
    variance = data["settings"]["variance"]
    for i, item in enumerate(data["crossings"], start=1):
        height = exact_distance(item["exact"], 1.0, variance)
        axis.plot(item["exact"], height, "o", ms=8, mfc="none", mec=COLOURS[i], mew=1)
    # In the corner, since between the lines a number would lie on one.
    equal = [f"{item['exact']:.3f}, {_name(item['power'])}" for item in data["crossings"]]
    axis.text(0.03, 0.99, "\n".join(["equal at", *equal]), transform=axis.transAxes, va="top", fontsize="small")


def _draw_pvalues(axis: Axes, data: Data) -> None:
    rows = chosen(data["rows"], power=BLIND[0])
    axis.axhspan(0.05, 10, color=NULL, alpha=0.35, lw=0)
    tests = (("p_cook", "(c) $\\chi^2$ test"), ("p_ks", "(c) KS test"), ("p_default", "(c) default test"))
    for i, (name, label) in enumerate(tests):
        draw_pvalues(
            axis, column(rows, "eps"), column(rows, name), STYLES[i] + MARKERS[i], color=COLOURS[i], label=label
        )
    point = (BLIND[1], _blind(data)["p_cook"])
    axis.annotate("$\\chi^2$ is blind", point, (0.4, 1e-5), fontsize="small", arrowprops={"arrowstyle": "-"})
    axis.set(xlabel="share of outliers $\\epsilon$", ylabel="p-value")
    log_pvalues(axis)
