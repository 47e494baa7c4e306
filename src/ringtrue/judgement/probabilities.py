"""Reported probabilities against what came: the call for those who have both as arrays, and its result."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..characters import one_line, printable
from ..errors import InvalidStudy, Miscalibrated
from ..statistics.arguments import Floats
from ..statistics.effects import Interval
from ..statistics.effects.reliability import Corp, corp, outcomes_to_certify
from ..statistics.probabilities import as_classes, as_coins, class_test, posterior
from ..streams import Streams
from .levels import TestRow
from .outcomes import ERROR, Outcomes, unexplained
from .reliability import STEADY, blurred, sizes
from .sentences.phrases import listed, rounded
from .sentences.probabilities import of_probabilities, points_of
from .summary import MORE, outcome_lines
from .text import Text, as_row, cell, decimals, format_p, number, plain, table
from .verdict import Tolerance, Verdict, joint_confidence, need_within_tolerance

#: What probabilities come as.
_FORMS = "probability=, with draws=M if it is a share of M draws, or log_bayes_factor= with prior="


@dataclass(frozen=True, eq=False, repr=False)
class ProbabilityResult:
    """What outcomes say of the probabilities that were reported for them.

    Attributes
    ----------
    verdict, sentence
        The answer, and what a person can do about it.
    pvalue
        Of "every outcome has the probability that was reported for it", given these; exact at any n.
    tests, measures
        Rows of evidence and of size, of several classes one of each. Intervals are simultaneous.
    outcomes
        What was judged, of several classes each against all others.
    alpha, tolerance, seed
        How.
    """

    verdict: Verdict
    sentence: str
    pvalue: float
    tests: tuple[TestRow, ...]
    measures: tuple[Interval, ...]
    outcomes: tuple[Outcomes, ...]
    alpha: float
    tolerance: Tolerance
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many outcomes there are."""
        return len(self.outcomes[0].outcome)

    @cached_property
    def scores(self) -> tuple[Corp, ...]:
        """The score of Brier of every class, taken apart: miscalibration, discrimination and uncertainty."""
        rng = _stream(self.seed, 1)
        return tuple(corp(one.outcome, one.probability, rng=rng) for one in self.outcomes)

    def measure(self, name: str, f: str = "") -> Interval:
        """Return a measure by its name, of several classes that of one, or say which there are."""
        found = next((m for m in self.measures if m.name == name and m.f in (f, "")), None)
        if found is None:
            known = [(m.name, m.f) if m.f else m.name for m in self.measures]
            raise InvalidStudy(f"{name!r} of {f!r} was not measured; measured were {known}.")
        return found

    def assert_not_miscalibrated(self) -> ProbabilityResult:
        """Return the result, or raise Miscalibrated with the sentence as message if the verdict is MISCALIBRATED."""
        if self.verdict is Verdict.MISCALIBRATED:
            raise Miscalibrated(self.sentence)
        return self

    def assert_within_tolerance(self) -> ProbabilityResult:
        """Return the result if it is WITHIN_TOLERANCE; else raise, with the sentence as message.

        What is raised is Miscalibrated if there is evidence of an error, and Inconclusive if the run could not tell;
        both are NotWithinTolerance, and AssertionErrors.
        """
        need_within_tolerance(self.verdict, self.sentence)
        return self

    def plot(self) -> Any:
        """Draw the reliability diagram and return the figure; see :func:`ringtrue.plots.reliability`."""
        from ..plots import reliability

        return np.ravel(np.asarray(reliability(self), object))[0].figure

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; numbers that are not finite become None."""
        parts = ("miscalibration", "discrimination", "uncertainty", "excess")
        found: dict[str, Any] = plain(
            {
                "verdict": self.verdict.value,
                "sentence": self.sentence,
                "pvalue": self.pvalue,
                "tests": [asdict(row) for row in self.tests],
                "measures": [as_row(row) for row in self.measures],
                "scores": [{name: getattr(one, name) for name in parts} for one in self.scores],
                "n": self.n,
                "seed": self.seed,
                "alpha": self.alpha,
                "tolerance": self.tolerance.probability,
                "notes": list(self.notes),
            }
        )
        return found

    def details(self) -> Text:
        """Return every test and every measure as tables of text, which show themselves at a prompt."""
        parts = [one_line(self.sentence), _tests(self.tests), _sizes(self.measures, self.alpha), self._footer()]
        return Text(printable("\n\n".join(parts)))

    def __str__(self) -> str:
        lines = outcome_lines(self.measures, self.tolerance, self.alpha)
        return printable(f"{one_line(self.sentence)}\n\n{lines}\n\n{self._footer()}\n{MORE}")

    def _footer(self) -> str:
        foot = [f"n = {self.n}, seed = {self.seed}, alpha = {self.alpha:g}", *self._scored(), *self.notes]
        return "\n".join(foot)

    def _scored(self) -> list[str]:
        return [
            f"Brier score{f' of {outcomes.name}' if outcomes.name else ''}: miscalibration "
            f"{one.miscalibration:.4f} ({one.excess:+.4f} beyond that of right probabilities), discrimination "
            f"{one.discrimination:.4f}, uncertainty {one.uncertainty:.4f}"
            for one, outcomes in zip(self.scores, self.outcomes, strict=True)
        ]

    def _repr_html_(self) -> str:
        head, _, rest = str(self).partition("\n\n")
        return f"<p><strong>{html.escape(head)}</strong></p><pre>{html.escape(rest)}</pre>"

    def __repr__(self) -> str:
        return f"ProbabilityResult({self.verdict.name}, {format_p(self.pvalue)}, n={self.n})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("ProbabilityResult is not iterable; use result.verdict, result.pvalue, result.measures.")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a ProbabilityResult is neither true nor false, since there are three verdicts; compare result.verdict, or "
            "call result.assert_within_tolerance() or result.assert_not_miscalibrated()."
        )


def check_probabilities(
    outcome: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    draws: ArrayLike | None = None,
    log_bayes_factor: ArrayLike | None = None,
    prior: float | None = None,
    alpha: float = 0.05,
    tolerance: Tolerance | None = None,
    seed: int = 0,
) -> ProbabilityResult:
    """Say whether reported probabilities can be trusted, from what came.

    Null hypothesis: given all reported probabilities, outcomes are independent and have just these. What cannot be
    seen: errors that cancel among outcomes with about the same probability, and whether probabilities are of any use.

    Parameters
    ----------
    outcome
        (n,): true or false, 0 or 1; of several classes, or models, their numbers from 0.
    probability
        (n,): the reported probability of 1; or (n, K), those of all classes.
    draws
        M, or (n,) of them, if probabilities are shares of M draws: outcomes are then tested against the share among
        truth and draws, which is exact, since a share is not the probability that draws were made with.
    log_bayes_factor, prior
        (n,): the log of B, in favour of 1 over 0, and the share of outcomes that are 1 by design, instead of
        probabilities: these are pi B / (1 - pi + pi B).
    alpha
        The chance of calling right probabilities miscalibrated, and of certifying an error at the limit of its
        tolerance.
    tolerance
        ``Tolerance(probability=0.025)``: how much probabilities may be off on average.
    seed
        Of what is drawn to know the law of the test.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> log_odds = 1.5 * rng.normal(size=400)
    >>> came = rng.random(400) < 1 / (1 + np.exp(-log_odds))
    >>> print(check_probabilities(came, 1 / (1 + np.exp(-2 * log_odds))).sentence)
    ... # doctest: +ELLIPSIS
    MISCALIBRATED (p = ...): too sure: divide log odds by ...
    """
    _need_alpha(alpha, tolerance)
    limits = tolerance or Tolerance()
    cases = _cases(outcome, probability, draws, log_bayes_factor, prior)
    pvalue, tests = _tested(cases, _stream(seed, 0))
    confidence = joint_confidence(alpha, len(cases))
    each = [sizes(case, alpha=alpha, confidence=confidence, tolerance=limits) for case in cases]
    measures = [replace(m, f=case.name) for case, rows in zip(cases, each, strict=True) for m in rows]
    verdict = _decide(pvalue <= alpha, cases, each, tests, alpha)
    sentence = _sentence(verdict, pvalue, cases, each, tests, alpha, limits)
    notes = _notes(cases)
    return ProbabilityResult(
        verdict, sentence, pvalue, tests, tuple(measures), tuple(cases), alpha, limits, seed, tuple(notes)
    )


def _need_alpha(alpha: Any, tolerance: Any) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 1e-12 <= alpha < 1:
        raise InvalidStudy(f"alpha must be a number strictly between 0 and 1, but {alpha!r} arrived.")
    if tolerance is not None and not isinstance(tolerance, Tolerance):
        raise InvalidStudy(f"tolerance must be a ringtrue.Tolerance, but {tolerance!r} arrived.")


def _stream(seed: int, purpose: int) -> np.random.Generator:
    return Streams(seed).generator("judgement", (1 << 34) + purpose)


def _cases(
    outcome: ArrayLike,
    probability: ArrayLike | None,
    draws: ArrayLike | None,
    log_bayes_factor: ArrayLike | None,
    prior: float | None,
) -> list[Outcomes]:
    """Return what is judged: one case of outcomes with two values, one per class of more."""
    if (probability is None) == (log_bayes_factor is None):
        came = "none" if probability is None else "two"
        raise InvalidStudy(f"probabilities must come in one form, but {came} came; pass {_FORMS}.")
    if (log_bayes_factor is None) != (prior is None) or (log_bayes_factor is not None and draws is not None):
        raise InvalidStudy(f"log_bayes_factor and prior belong together, without draws; pass {_FORMS}.")
    if log_bayes_factor is not None and prior is not None:
        t, p, q = as_coins(outcome, *posterior(log_bayes_factor, prior))
        return [Outcomes(t, p, q)]
    reported = np.asarray(probability, float)
    if reported.ndim == 2:
        return _classes(outcome, reported, draws)
    t, p, q = as_coins(outcome, reported)
    return [Outcomes(t, p, q)] if draws is None else [Outcomes.of_draws(t, *_ones(p, draws))]


def _ones(share: Floats, draws: ArrayLike) -> tuple[Floats, Floats]:
    """Return how many ones a share of draws is, and of how many."""
    many = np.broadcast_to(np.asarray(draws, float), share.shape[:1])
    each = many if share.ndim == 1 else many[:, None]
    ones = np.round(share * each)
    if not (np.isfinite(many).all() and (many >= 1).all() and (many % 1 == 0).all()):
        raise InvalidStudy(f"draws must be whole numbers, at least 1, but {draws!r} arrived.")
    if np.abs(ones - share * each).max() > 1e-3:
        raise InvalidStudy(
            "probability must be a share of draws, k / M, but others arrived; leave draws= out if they are exact."
        )
    return ones, many


def _classes(outcome: ArrayLike, reported: Floats, draws: ArrayLike | None) -> list[Outcomes]:
    t, p = as_classes(outcome, reported)
    came = t[:, None] == np.arange(p.shape[1])
    many = None
    if draws is not None:
        ones, many = _ones(reported, draws)
        p = (ones + came) / (many[:, None] + 1)
    others = np.stack([np.delete(p, k, axis=1).sum(axis=1) for k in range(p.shape[1])], axis=1)
    wanted = range(p.shape[1]) if p.shape[1] > 2 else [1]
    return [Outcomes(came[:, k].astype(float), p[:, k], others[:, k], many, f"class {k}") for k in wanted]


def _tested(cases: Sequence[Outcomes], rng: np.random.Generator) -> tuple[float, tuple[TestRow, ...]]:
    """Return the p-value of all together, and the tests."""
    n = len(cases[0].outcome)
    if len(cases) == 1:
        found = cases[0].test(rng)
        return found.pvalue, (_row(cases[0], found, found.pvalue, n),)
    labels = np.argmax([case.outcome for case in cases], axis=0)
    whole = class_test(labels, np.stack([case.probability for case in cases], axis=1), rng=rng)
    rows = [
        _row(case, one, min(1.0, 2 * len(cases) * one.pvalue), n) for case, one in zip(cases, whole.each, strict=True)
    ]
    joint = replace(rows[0], f="all classes", method=whole.joint.method, statistic=whole.joint.statistic, kind="joint")
    p = whole.joint.pvalue
    return whole.pvalue, (*rows, replace(joint, pvalue=p, adjusted=min(1.0, 2 * p)))


def _row(case: Outcomes, found: Any, adjusted: float, n: int) -> TestRow:
    route = "exact" if case.draws is None else f"shares of {_span(case.draws)} draws"
    f = case.name or "outcome"
    return TestRow("auto", f, found.method, found.statistic, found.pvalue, adjusted, route, n, "indicator")


def _span(draws: Floats) -> str:
    low, high = int(draws.min()), int(draws.max())
    return f"{low}" if low == high else f"{low}-{high}"


def _decide(
    evident: bool, cases: Sequence[Outcomes], each: Sequence[Sequence[Interval]], tests: Sequence[TestRow], alpha: float
) -> Verdict:
    errors = [m for rows in each for m in rows if m.name == ERROR]
    certified = all(m.certified for m in errors)
    if not evident:
        return Verdict.WITHIN_TOLERANCE if certified else Verdict.INCONCLUSIVE
    large = any(case.impossible for case in cases) or any(m.within == "no" for m in errors)
    convicted = [pair for pair, row in zip(zip(each, cases, strict=True), tests, strict=False) if row.adjusted <= alpha]
    # Where the joint test of all classes alone rejects, nothing says what it saw, unless all errors are small.
    vague = not certified and (not convicted or any(unexplained(rows, [case]) for rows, case in convicted))
    if large or vague:
        return Verdict.MISCALIBRATED
    return Verdict.WITHIN_TOLERANCE if certified else Verdict.INCONCLUSIVE


def _sentence(
    verdict: Verdict,
    pvalue: float,
    cases: Sequence[Outcomes],
    each: Sequence[Sequence[Interval]],
    tests: Sequence[TestRow],
    alpha: float,
    tolerance: Tolerance,
) -> str:
    p = format_p(pvalue)
    worst = min(range(len(cases)), key=lambda k: (not cases[k].impossible, tests[k].pvalue))
    of = f"{cases[worst].name} is " if len(cases) > 1 else ""
    complaint = f"{of}{of_probabilities(each[worst], cases[worst])}"
    if verdict is Verdict.MISCALIBRATED:
        others = [row.f for row in tests if row.adjusted <= alpha and row.f not in (cases[worst].name, "all classes")]
        also = f" Also off: {listed(others)}." if others and len(cases) > 1 else ""
        return f"MISCALIBRATED ({p}): {complaint}.{also}"
    most = points_of(max(rows[-1].high for rows in each))
    known = f"groups of similar probabilities are off by at most {most} on average"
    found = f"nothing found ({p})"
    if pvalue <= alpha:
        found = f"an error is there ({p}): {complaint}"
    if verdict is Verdict.WITHIN_TOLERANCE:
        real = "; it is real and smaller than tolerated" if pvalue <= alpha else ""
        return f"WITHIN TOLERANCE: {found}{real}; {known}."
    small = "; it is not clearly larger than tolerated" if pvalue <= alpha else ""
    return f"INCONCLUSIVE: {found}{small}; {known}{_more(cases, each, tolerance, alpha)}."


def _more(cases: Sequence[Outcomes], each: Sequence[Sequence[Interval]], tolerance: Tolerance, alpha: float) -> str:
    """Say how many more outcomes would certify probabilities that are right."""
    limit = tolerance.probability
    if all(rows[-1].high <= limit for rows in each):
        return ""
    if any(blurred(case) for case in cases):
        return f", and shares of so few draws do not certify {points_of(limit)}; make {STEADY} or more"
    need = max(outcomes_to_certify(case.probability, error=limit, alpha=alpha) for case in cases)
    n = len(cases[0].outcome)
    more = rounded(max(int(need) - n, math.ceil(0.1 * n), 1))
    return f", and about {more} more outcomes would certify {points_of(limit)}"


def _notes(cases: Sequence[Outcomes]) -> list[str]:
    if cases[0].draws is None:
        return []
    return [
        "probabilities are shares of draws; each outcome is held against the share among truth and draws, which is "
        "exact, and slope and error are those of such shares."
    ]


def _tests(rows: Sequence[TestRow]) -> str:
    cells = [("of", "method", "statistic", "p", "adjusted p", "route")]
    cells += [
        (row.f, row.method, f"{row.statistic:.4g}", cell(row.pvalue), cell(row.adjusted), row.route) for row in rows
    ]
    return table(cells, right={2, 3, 4})


def _sizes(rows: Sequence[Interval], alpha: float) -> str:
    cells = [("of", "measure", "estimate", f"{100 * (1 - alpha):g} % interval*", "ideal", "in tolerance")]
    for row in rows:
        digits = decimals(row)
        ends = f"{number(row.low, digits)} to {number(row.high, digits)}"
        cells.append((row.f or "outcome", row.name, number(row.estimate, digits), ends, f"{row.ideal:.3g}", row.within))
    return f"{table(cells, right={2, 4})}\n* simultaneous over classes and measures"
