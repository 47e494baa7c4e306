"""Several procedures on the same data, one procedure over a grid, and coverage where theta is fixed.

Truths and data are functions of the seed alone, so procedures are compared on the same (theta_i, y_i) and differences
have the intervals of paired data. This module decides what to compare; how a measure is computed is decided elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import special

from . import miscalibration
from .errors import InvalidStudy
from .judgement import judge
from .replicates import Replicates
from .results import ALL, Result, Verdict, number, table
from .runs import RunSettings, run
from .study import Study, at_least
from .wording import listed

Floats = NDArray[np.float64]

#: What is compared: the name, and how it varies from replicate to replicate (see _influence).
MEASURES = ("spread", "bias", "coverage", "crps")
#: And of all entries of theta together, if there are several.
_JOINT = "energy score"


@dataclass(frozen=True)
class ComparisonRow:
    """A measure of one procedure and test function, with its simultaneous interval."""

    name: str
    f: str
    measure: str
    estimate: float
    low: float
    high: float
    ideal: float


@dataclass(frozen=True)
class DifferenceRow:
    """The difference of a measure between two procedures on the same data, with its simultaneous interval."""

    first: str
    second: str
    f: str
    measure: str
    estimate: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Procedures side by side.

    Attributes
    ----------
    rows
        Spread, bias, coverage of nominal 90 % intervals and mean CRPS of every procedure and test function, and the
        mean energy score if theta has several entries; intervals hold jointly.
    differences
        The same for pairs, first minus second, from the replicates that neither lost.
    divergence
        For every procedure, the Kullback-Leibler divergence of its z, taken as normal, from the standard normal law,
        averaged over test functions: 0 is calibrated in spread and bias.
    best
        The names that no other is ahead of for sure; a single one if it is ahead of all others.
    results
        The result of each procedure.
    """

    rows: tuple[ComparisonRow, ...]
    differences: tuple[DifferenceRow, ...]
    divergence: Mapping[str, float]
    best: tuple[str, ...]
    results: Mapping[str, Result]
    level: float

    @property
    def sentence(self) -> str:
        """Which is the most calibrated, or that it cannot be told; how far off the others are, and what to do."""
        worse = [name for name in self.results if name not in self.best]
        tags = listed([f"{name} ({_farthest(name, self.rows)})" for name in worse])
        behind = f"; {tags} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
        return f"{_ahead_of_all(self.best, self.results)}{behind}{_advice(self)}."

    def __str__(self) -> str:
        percent = f"{100 * self.level:g} % interval*"
        verdicts = [("procedure", "verdict", "p"), *(_verdict_cells(*item) for item in self.results.items())]
        cells = [("procedure", "test function", "measure", "estimate", percent, "ideal")]
        cells += [(r.name, r.f, r.measure, f"{r.estimate:.3g}", _ends(r), _ideal(r.ideal)) for r in self.rows]
        pairs = [("difference", "test function", "measure", "estimate", percent, "")]
        pairs += [
            (f"{r.first} - {r.second}", r.f, r.measure, f"{r.estimate:.3g}", _ends(r), "*" if r.clear else "")
            for r in self.differences
        ]
        blocks = [self.sentence, table(verdicts), table(cells, right={3, 5})]
        if self.differences:
            blocks.append(table(pairs, right={3}))
        return "\n\n".join([*blocks, "* simultaneous over procedures, test functions and measures"])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.results)}; best: {', '.join(self.best)})"


def _ahead_of_all(best: Sequence[str], results: Mapping[str, Result]) -> str:
    if len(best) == 1:
        return f"{best[0]} is the most calibrated of {len(results)} procedures in spread and bias"
    everyone = len(best) == len(results) > 2
    whom = f"The {len(best)} procedures" if everyone else listed(best)
    return f"{whom} cannot be told apart by their calibration"


def _farthest(name: str, rows: Sequence[ComparisonRow]) -> str:
    """Return the spread or bias of a procedure that is farthest from its ideal, in the currency of divergence."""
    own = [row for row in rows if row.name == name and row.measure in ("spread", "bias")]

    def size(row: ComparisonRow) -> float:
        far = _of_spread(math.log(max(row.estimate, 1e-300))) if row.measure == "spread" else 0.5 * row.estimate**2
        return float(far) if math.isfinite(far) else math.inf

    worst = max(own, key=size)
    return f"{worst.measure} of {worst.f} {number(worst.estimate)}{' sd' if worst.measure == 'bias' else ''}"


def _advice(found: Comparison) -> str:
    """Say what else tells the best apart, and whether they are calibrated at all."""
    verdicts = [found.results[name].verdict for name in found.best]
    texts = []
    if len(verdicts) > 1 and (first := _better_scored(found)):
        texts.append(f"prefer {first}, whose outputs have the better scores")
    them = "both" if len(verdicts) == 2 else "all of them"
    if all(verdict is Verdict.MISCALIBRATED for verdict in verdicts):
        which = f"{found.best[0]} is miscalibrated all the same" if len(verdicts) == 1 else f"{them} are miscalibrated"
        texts.append(which)
    elif len(verdicts) > 1 and all(verdict is Verdict.WITHIN_TOLERANCE for verdict in verdicts):
        texts.append(f"{them} are within tolerance")
    elif len(verdicts) > 1:
        texts.append("more replicates may tell")
    return "".join(f"; {text}" for text in texts)


def _better_scored(found: Comparison) -> str:
    """Return the one of the best that scores better than every other for sure, by some score and worse by none."""
    ahead: dict[tuple[str, str], list[int]] = {}
    for row in found.differences:
        if row.measure in ("crps", _JOINT) and row.clear:
            sign = 1 if row.high < 0 else -1
            ahead.setdefault((row.first, row.second), []).append(sign)
            ahead.setdefault((row.second, row.first), []).append(-sign)
    for name in found.best:
        if all(min(ahead.get((name, other), [-1])) > 0 for other in found.best if other != name):
            return name
    return ""


def _verdict_cells(name: str, result: Result) -> tuple[str, str, str]:
    return name, result.verdict.value, f"{result.pvalue():.2g}"


def _ends(row: Any) -> str:
    return f"{row.low:.3g} to {row.high:.3g}"


def _ideal(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def compare(
    procedures: Mapping[str, Any],
    belief: Any,
    model: Any,
    *,
    n: int,
    f: Any = None,
    draws: int = 99,
    seed: int = 0,
    batch: int | None = None,
    level: float = 0.95,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Compare procedures on the same truths and data.

    Parameters
    ----------
    procedures
        Name to procedure, two or more.
    belief, model, n, f, draws, seed, batch
        As in :class:`~ringtrue.Study`.
    level
        Of the intervals, jointly.
    **settings
        As in :func:`~ringtrue.run`; ``store`` is a folder here, with a file per procedure.

    Notes
    -----
    Differences of spread are differences of its logarithm; where outputs are draws, they are differences of the spread
    of randomised ranks, which is drawn towards 1 where there are few draws. A procedure is ahead of another if its
    divergence from calibration is smaller for all spreads and biases that the intervals allow, those of the differences
    included: it errs on the side of "cannot be told apart", and sees spread and bias only.

    Examples
    --------
    >>> from ringtrue.distributions import Normal
    >>> from ringtrue.procedures import Inflated, NormalMean
    >>> bayes = NormalMean()
    >>> compare({"Bayes": bayes, "narrow": Inflated(bayes, 0.5)}, Normal(0, 1), bayes.simulate, n=500, batch=500).best
    ('Bayes',)
    """
    if not isinstance(procedures, Mapping) or len(procedures) < 2:
        raise InvalidStudy("compare needs a dict of two or more procedures, {name: procedure}.")
    if not 0 < level < 1:
        raise InvalidStudy(f"level must lie strictly between 0 and 1, but {level!r} arrived.")
    names = [str(name) for name in procedures]
    studies = {
        str(name): Study(belief, model, procedure, n, f=f, draws=draws, seed=seed, batch=batch)
        for name, procedure in procedures.items()
    }
    ran = {name: run(study, **_own_store(settings, name)) for name, study in studies.items()}
    results = {name: judge(one, alpha=1 - level) for name, one in ran.items()}
    columns = [k for k, column in enumerate(ran[names[0]].columns) if column.level == "strong"]
    pairs = list(combinations(names, 2))
    # Half of the error for the procedures alone, half for their differences: both enter into who is ahead.
    each = (1 - level) / 2 / (len(columns) * len(MEASURES) + 1)
    rows = [row for name in names for k in columns for row in _rows(name, ran[name], k, 1 - each / len(names))]
    rows += [row for name in names for row in _joint_row(name, ran[name], 1 - each / len(names))]
    gaps = [row for a, b in pairs for k in columns for row in _differences(a, b, ran, k, 1 - each / len(pairs))]
    gaps += [row for a, b in pairs for row in _joint_difference(a, b, ran, 1 - each / len(pairs))]
    divergence = {name: float(np.mean([_divergence(ran[name], k) for k in columns])) for name in names}
    return Comparison(tuple(rows), tuple(gaps), divergence, _best(names, rows, gaps), results, level)


def _own_store(settings: RunSettings, name: str) -> RunSettings:
    """Return the settings with a file of the procedure's own in the folder that was asked for."""
    folder = settings.get("store")
    if folder is None:
        return settings
    from pathlib import Path

    Path(folder).mkdir(parents=True, exist_ok=True)
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return {**settings, "store": Path(folder) / f"{safe}.db"}


def _fit(ran: Replicates, k: int, level: float) -> miscalibration.SpreadAndBias:
    draws, lost = ran.lattice(k), len(ran.failures)
    values = ran.z[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    return miscalibration.spread_and_bias(values, draws=draws, level=level, lost=lost)


def _rows(name: str, ran: Replicates, k: int, level: float) -> Iterator[ComparisonRow]:
    draws, lost, f = ran.lattice(k), len(ran.failures), ran.columns[k].name
    fit = _fit(ran, k, level)
    values = ran.u[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    covers = miscalibration.coverage(values, draws=draws, level=level, lost=lost)
    for measure, one in (("spread", fit.spread), ("bias", fit.bias), ("coverage", covers)):
        yield ComparisonRow(name, f, measure, one.estimate, one.low, one.high, one.ideal)
    scores = ran.crps[ran.rows, k]
    if scores.size > 1 and np.isfinite(scores).all():
        mean, reach = float(scores.mean()), _reach(scores, level)
        yield ComparisonRow(name, f, "crps", mean, mean - reach, mean + reach, math.nan)


def _joint_row(name: str, ran: Replicates, level: float) -> Iterator[ComparisonRow]:
    scores = ran.energy[ran.rows]
    if scores.size > 1 and np.isfinite(scores).all():
        mean, reach = float(scores.mean()), _reach(scores, level)
        yield ComparisonRow(name, ALL, _JOINT, mean, mean - reach, mean + reach, math.nan)


def _joint_difference(a: str, b: str, ran: Mapping[str, Replicates], level: float) -> Iterator[DifferenceRow]:
    both = ran[a].kept & ran[b].kept
    apart = ran[a].energy[both] - ran[b].energy[both]
    if apart.size > 2 and np.isfinite(apart).all():
        mean, reach = float(apart.mean()), _reach(apart, level)
        yield DifferenceRow(a, b, ALL, _JOINT, mean, mean - reach, mean + reach)


def _reach(values: Floats, level: float) -> float:
    """Return the half-width of Student's interval of a mean."""
    n = len(values)
    return float(special.stdtrit(n - 1, 0.5 + level / 2) * values.std(ddof=1) / math.sqrt(n))


def _differences(a: str, b: str, ran: Mapping[str, Replicates], k: int, level: float) -> Iterator[DifferenceRow]:
    one, other = ran[a], ran[b]
    both = one.kept & other.kept
    if both.sum() < 3:
        return
    for measure in MEASURES:
        x, y = (_influence(found, k, measure, both) for found in (one, other))
        if x is None or y is None:
            continue
        difference = float(x.mean() - y.mean())
        reach = _reach(x - y, level)
        name = "log spread" if measure == "spread" else measure
        yield DifferenceRow(a, b, one.columns[k].name, name, difference, difference - reach, difference + reach)


def _influence(ran: Replicates, k: int, measure: str, rows: NDArray[np.bool_]) -> Floats | None:
    """Return one number per replicate whose mean is the measure and whose spread is its sampling error."""
    z = ran.z[rows, k]
    if measure == "crps":
        scores = ran.crps[rows, k]
        return np.asarray(scores) if np.isfinite(scores).all() else None
    if measure == "coverage":
        return np.asarray(np.abs(ran.u[rows, k] - 0.5) <= 0.45, float)
    if not np.isfinite(z).all():
        return None
    if measure == "bias":
        return np.asarray(z)
    square = np.square(z - z.mean())
    return np.asarray(0.5 * (np.log(square.mean()) + square / square.mean() - 1))


def _divergence(ran: Replicates, k: int) -> float:
    fit = _fit(ran, k, 0.5)
    return float(_of_spread(np.log(fit.spread.estimate)) + 0.5 * fit.bias.estimate**2)


def _of_spread(log: Any) -> Any:
    """Return the divergence of N(0, s^2) from N(0, 1), given log s."""
    return 0.5 * np.expm1(2 * log) - log


def _best(names: Sequence[str], rows: Sequence[ComparisonRow], gaps: Sequence[DifferenceRow]) -> tuple[str, ...]:
    """Return those that nobody is ahead of for sure."""
    return tuple(name for name in names if not any(_ahead(other, name, rows, gaps) for other in names if other != name))


def _ahead(a: str, b: str, rows: Sequence[ComparisonRow], gaps: Sequence[DifferenceRow]) -> bool:
    """Whether a's divergence is smaller than b's for all spreads and biases that the intervals allow."""
    least = 0.0
    for f in dict.fromkeys(row.f for row in rows if row.measure == "spread"):
        for measure, of in (("spread", _of_spread), ("bias", lambda bias: 0.5 * np.square(bias))):
            ends = [_row_ends(rows, name, f, measure) for name in (a, b)]
            apart = _gap_ends(gaps, a, b, f, measure)
            if apart is None or not np.isfinite(ends[0]).all():
                return False
            least += _least_gap(of, ends[0], ends[1], apart)
    return least > 0


def _row_ends(rows: Sequence[ComparisonRow], name: str, f: str, measure: str) -> Floats:
    row = next(row for row in rows if (row.name, row.f, row.measure) == (name, f, measure))
    with np.errstate(divide="ignore"):
        return np.log([row.low, row.high]) if measure == "spread" else np.array([row.low, row.high])


def _gap_ends(gaps: Sequence[DifferenceRow], a: str, b: str, f: str, measure: str) -> tuple[float, float] | None:
    """Return the interval of b's measure minus a's."""
    name = "log spread" if measure == "spread" else measure
    for row in gaps:
        if (row.f, row.measure) == (f, name) and (row.first, row.second) == (b, a):
            return row.low, row.high
        if (row.f, row.measure) == (f, name) and (row.first, row.second) == (a, b):
            return -row.high, -row.low
    return None


def _least_gap(of: Callable[[Any], Any], mine: Floats, others: Floats, apart: tuple[float, float]) -> float:
    """Return the least of of(y) - of(x) over x, y in their intervals with y - x in its; of is convex, least at 0."""
    x = np.linspace(mine[0], mine[1], 2001)
    low, high = np.maximum(others[0], x + apart[0]), np.minimum(others[1], x + apart[1])
    allowed = low <= high
    if not allowed.any():
        return 0.0  # the intervals contradict each other: nothing is sure
    nearest = np.clip(0.0, low[allowed], high[allowed])
    return float((of(nearest) - of(x[allowed])).min())


@dataclass(frozen=True)
class SweepRow:
    """A measure at one value of what is varied."""

    x: Any
    f: str
    measure: str
    estimate: float
    low: float
    high: float
    ideal: float


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Results over a grid.

    Attributes
    ----------
    rows
        The measures of every result, with its x.
    results
        x to result.
    """

    rows: tuple[SweepRow, ...]
    results: Mapping[Any, Result]

    def __str__(self) -> str:
        cells = [("x", "verdict", "p", "test function", "measure", "estimate", "interval", "ideal")]
        for row in self.rows:
            result = self.results[row.x]
            shown = (str(row.x), result.verdict.value, f"{result.pvalue():.2g}")
            cells.append((*shown, row.f, row.measure, f"{row.estimate:.3g}", _ends(row), _ideal(row.ideal)))
        return table(cells, right={2, 5, 7})

    def __repr__(self) -> str:
        bad = sum(result.verdict is Verdict.MISCALIBRATED for result in self.results.values())
        return f"Sweep({len(self.results)} studies, {bad} miscalibrated)"


def sweep(build: Callable[[Any], Study], over: Iterable[Any], **settings: Unpack[RunSettings]) -> Sweep:
    """Run and judge a study for every value of a grid.

    Parameters
    ----------
    build
        Makes the study of a value.
    over
        The values, each different.
    **settings
        As in :func:`~ringtrue.run`; ``store`` is a folder here, with a file per value.

    Examples
    --------
    >>> from ringtrue.distributions import Normal
    >>> from ringtrue.procedures import Inflated, NormalMean
    >>> bayes = NormalMean()
    >>> build = lambda s: Study(Normal(0, 1), bayes.simulate, Inflated(bayes, s), 400, batch=400)
    >>> [result.verdict.value for result in sweep(build, [0.5, 2.0]).results.values()]
    ['miscalibrated', 'miscalibrated']
    """
    values = list(over)
    if not values or len(set(map(str, values))) < len(values):
        raise InvalidStudy(f"sweep needs values that differ, at least one, but {values} arrived.")
    results = {x: judge(run(build(x), **_own_store(settings, str(x)))) for x in values}
    rows = tuple(
        SweepRow(x, m.f, m.name, m.estimate, m.low, m.high, m.ideal)
        for x, result in results.items()
        for m in result.measures
    )
    return Sweep(rows, results)


@dataclass(frozen=True)
class FixedRow:
    """How often central intervals contain one fixed truth, with Clopper and Pearson's interval."""

    theta: Any
    f: str
    estimate: float
    low: float
    high: float
    ideal: float
    n: int


def coverage_map(
    study: Study, thetas: Iterable[Any], *, n: int, nominal: float = 0.9, level: float = 0.95, **settings: Any
) -> tuple[FixedRow, ...]:
    """Return the coverage of central intervals at fixed parameters.

    Calibration is an average over the belief: a procedure can be calibrated and cover some parameters never. Intervals
    are pointwise.

    Parameters
    ----------
    study
        The question; its n is not used.
    thetas
        The parameters to hold fixed.
    n
        Datasets per parameter.
    nominal
        The probability that an output gives to its central interval.
    level
        Of the interval of each coverage.
    **settings
        As in :func:`~ringtrue.run`.

    Examples
    --------
    >>> from ringtrue.distributions import Normal
    >>> from ringtrue.procedures import NormalMean
    >>> study = Study(Normal(0, 1), NormalMean().simulate, NormalMean(), 1, f=lambda t: t)
    >>> [row.estimate > 0.9 for row in coverage_map(study, [0.0, 4.0], n=200)]
    [True, False]
    """
    size = at_least(1, "n", n)
    rows = []
    for i, theta in enumerate(thetas):
        asked = replace(
            study, n=size, f=study.functions, truth=Fixed(theta), seed=study.seed + i, batch=study.batch and size
        )
        ran = run(asked, **settings)
        rows += [_fixed_row(ran, k, theta, nominal, level) for k, c in enumerate(ran.columns) if c.level == "strong"]
    return tuple(rows)


def _fixed_row(ran: Replicates, k: int, theta: Any, nominal: float, level: float) -> FixedRow:
    draws = ran.lattice(k)
    values = ran.u[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    one = miscalibration.coverage(values, draws=draws, nominal=nominal, level=level, lost=len(ran.failures))
    return FixedRow(theta, ran.columns[k].name, one.estimate, one.low, one.high, one.ideal, ran.n)


@dataclass(frozen=True, eq=False)
class Fixed:
    """The law of a parameter that is always the same."""

    theta: Any
    marginal = None

    def sample(self, m: int, rng: np.random.Generator) -> Any:
        """Return m copies on axis 0."""
        if isinstance(self.theta, Mapping):
            return {name: np.repeat(np.asarray(part, float)[None], m, axis=0) for name, part in self.theta.items()}
        return np.repeat(np.asarray(self.theta, float)[None], m, axis=0)
