"""From replicates to a verdict, and the calls most users need: judge, check, check_draws.

A verdict is about size, not only about evidence. This module decides; how a test or a measure is computed, and how a
sentence reads, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from ..errors import InvalidStudy
from ..execution.runs import RunSettings, run
from ..functions.contract import ALL
from ..question.study import Study
from ..replicates.given import replicates_from_draws
from ..replicates.record import Replicates
from ..replicates.recording import OnFailure
from ..statistics import effects, planning
from ..statistics.effects import Interval, usefulness
from ..statistics.roots import adjacent, narrow, whole
from ..statistics.uniformity import TESTS
from .levels import LevelEvidence, evidence, levels_of
from .result import Resolution, Result, TestRow, Tolerance, Verdict
from .sentences import Findings, sentence, useless

#: Share of the error budget by level. Strong calibration implies weak, and its tests see more.
_SHARES = {"strong": 0.8, "auto": 0.8, "weak": 0.2}

#: Replicates that are enough to say whether outputs are of use; it takes sorting.
_ENOUGH = 50_000


def check(
    belief: Any,
    model: Any,
    procedure: Any,
    *,
    n: int,
    f: Any = None,
    draws: int = 99,
    seed: int = 0,
    batch: int | None = None,
    alpha: float = 0.05,
    tolerance: Tolerance | None = None,
    test: str = "combination",
    **settings: Unpack[RunSettings],
) -> Result:
    """Simulate, learn, and say whether the procedure's uncertainty can be trusted.

    Parameters
    ----------
    belief, model, procedure, n, f, draws, seed, batch
        As in :class:`~ringtrue.Study`.
    alpha, tolerance, test
        As in :func:`judge`.
    **settings
        ``workers``, ``store``, ``on_failure`` and so on, as in :func:`~ringtrue.run`.

    Examples
    --------
    >>> from ringtrue.distributions.contract import Normal
    >>> result = check(
    ...     Normal(0, 1),
    ...     lambda theta, rng: theta + rng.normal(),
    ...     lambda mu0, y: Normal(y / 2, 0.5),
    ...     n=500,
    ... )
    >>> result.verdict
    <Verdict.MISCALIBRATED: 'miscalibrated'>
    """
    _check_settings(alpha, tolerance, test)
    study = Study(belief, model, procedure, n, f=f, draws=draws, seed=seed, batch=batch)
    return judge(run(study, **settings), alpha=alpha, tolerance=tolerance, test=test)


def check_draws(
    theta: Any,
    draws: Any,
    *,
    y: Any = None,
    f: Any = None,
    belief: Any = None,
    iid: bool = True,
    seed: int = 0,
    alpha: float = 0.05,
    tolerance: Tolerance | None = None,
    test: str = "combination",
    on_failure: OnFailure = "raise",
) -> Result:
    """Judge draws that exist already.

    Parameters
    ----------
    theta
        The true parameters: (n,), (n, d), or a dict of such arrays.
    draws
        For each, draws of the output: (n, M), (n, M, d), a dict of such arrays, or a list of n arrays of possibly
        different lengths.
    y
        The datasets, if a test function sees them.
    f
        Test functions, as in :class:`~ringtrue.Study`.
    belief
        mu0, if the weak level is to be tested.
    iid
        False for Markov chains in their order: they are thinned to their effective size first.
    seed, alpha, tolerance, test
        As in :func:`check`.
    on_failure
        "raise" refuses nan in truths or draws; "record" takes such replicates for lost ones, and the verdict then
        holds whatever they would have been. Leaving them out yourself would condition on success.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=1000)
    >>> theta, draws = y + rng.normal(size=1000), y[:, None] + rng.normal(size=(1000, 99))
    >>> check_draws(theta, draws).pvalue("strong") > 0.001
    True
    """
    _check_settings(alpha, tolerance, test)
    replicates = replicates_from_draws(theta, draws, y=y, f=f, belief=belief, iid=iid, seed=seed, on_failure=on_failure)
    return judge(replicates, alpha=alpha, tolerance=tolerance, test=test)


def judge(
    replicates: Replicates, *, alpha: float = 0.05, tolerance: Tolerance | None = None, test: str = "combination"
) -> Result:
    """Reach a verdict on what happened.

    Parameters
    ----------
    replicates
        From :func:`~ringtrue.run`.
    alpha
        The chance of calling a calibrated procedure miscalibrated, at any n, over all levels and test functions.
    tolerance
        How large an error may be and still not matter.
    test
        The uniformity test; the default combination sees bias, spread, shape and outliers.
    """
    _check_settings(alpha, tolerance, test)
    if not isinstance(replicates, Replicates):
        raise TypeError(f"judge needs the Replicates that run(study) returns, but {type(replicates).__name__} arrived.")
    if len(replicates.failures) == replicates.n:
        cause, _, failure = replicates.causes()[0]
        raise InvalidStudy(
            f"at least one replicate is needed, but all {replicates.n} were lost, most often with {cause}; see "
            f"{failure.replay}."
        )
    limits = tolerance or Tolerance()
    found, notes = evidence(replicates, test=test)
    measures = _measures(replicates, alpha, limits)
    use = _use(replicates, alpha)
    overall = _overall(found)
    rejecting = _rejecting(found, alpha) if overall <= alpha else []
    verdict = _verdict(overall <= alpha, rejecting, measures)
    levels = levels_of(found)
    resolution = _resolution(replicates, alpha, test)
    tolerable = None
    if verdict is Verdict.INCONCLUSIVE and replicates.failures:
        tolerable = _tolerable(replicates, alpha, limits, test)
    text = sentence(verdict, Findings(found, overall, rejecting, measures, use, replicates, alpha, limits, tolerable))
    rows = tuple(row for item in found for row in item.rows)
    return Result(
        verdict,
        text,
        rows,
        (*_with_use(measures, use), *(_joint_use(replicates, alpha) if measures else [])),
        levels,
        overall,
        resolution,
        replicates,
        alpha,
        limits,
        (*replicates.notes, *notes, *useless(use)),
    )


def _check_settings(alpha: Any, tolerance: Any, test: Any) -> None:
    """Refuse what would only fail after the simulations."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InvalidStudy(f"alpha must be a number strictly between 0 and 1, but {alpha!r} arrived.")
    if alpha < 1e-12:  # intervals of confidence 1 - alpha would round to certainty
        raise InvalidStudy(f"alpha must be at least 1e-12, but {alpha!r} arrived.")
    if tolerance is not None and not isinstance(tolerance, Tolerance):
        raise InvalidStudy(f"tolerance must be a ringtrue.Tolerance, but {tolerance!r} arrived.")
    if test not in TESTS:
        raise InvalidStudy(f"test must be one of {sorted(TESTS)}, but {test!r} arrived.")


def _overall(found: Sequence[LevelEvidence]) -> float:
    """Combine the levels that concern calibration by a weighted Bonferroni rule."""
    shares = _budget(found)
    return min([1.0, *(item.pvalue / shares[item.level] for item in found if item.level in shares)])


def _budget(found: Sequence[LevelEvidence]) -> dict[str, float]:
    shares = {item.level: _SHARES[item.level] for item in found if item.level in _SHARES}
    total = sum(shares.values())
    return {level: share / total for level, share in shares.items()}


def _rejecting(found: Sequence[LevelEvidence], alpha: float) -> list[TestRow]:
    """Return the tests that reject after adjustment over test functions and levels."""
    shares = _budget(found)
    return [
        row for item in found if item.level in shares for row in item.rows if row.adjusted <= alpha * shares[item.level]
    ]


def _verdict(evident: bool, rejecting: Sequence[TestRow], measures: Sequence[Interval]) -> Verdict:
    size = [row for row in measures if not row.name.endswith("KS distance")]
    certified = bool(size) and all(row.certified for row in size)
    if not evident:
        return Verdict.WITHIN_TOLERANCE if certified else Verdict.INCONCLUSIVE
    harmless = bool(rejecting) and all(_harmless(row, measures) for row in rejecting)
    if not harmless:
        return Verdict.MISCALIBRATED
    return Verdict.WITHIN_TOLERANCE if certified else Verdict.INCONCLUSIVE


def _tolerable(replicates: Replicates, alpha: float, tolerance: Tolerance, test: str) -> int | None:
    """Return how many of the lost replicates would leave a verdict, had the others not been asked for; None if none."""

    def settled(lost: int) -> bool:
        fewer = _with_lost(replicates, lost)
        found, _ = evidence(fewer, test=test)
        evident = _overall(found) <= alpha
        rejecting = _rejecting(found, alpha) if evident else []
        return _verdict(evident, rejecting, _measures(fewer, alpha, tolerance)) is not Verdict.INCONCLUSIVE

    most = narrow(lambda lost: -settled(int(lost)), -1, len(replicates.failures), done=adjacent, rule=whole).low
    return int(most) if most >= 0 else None


def _with_lost(replicates: Replicates, lost: int) -> Replicates:
    """Return the replicates as if only the first few of the lost ones had been asked for."""
    few = np.flatnonzero(~replicates.kept)[:lost]
    return replicates.part(np.sort(np.concatenate([np.flatnonzero(replicates.kept), few])))


def _harmless(row: TestRow, measures: Sequence[Interval]) -> bool:
    """Whether everything the test can have seen is certified to be small: for weak tests, the distance alone."""
    about = [m for m in measures if m.f == row.f and (m.name.startswith("weak") == (row.level == "weak"))]
    return row.level in ("strong", "weak") and bool(about) and all(m.certified for m in about)


def _measures(replicates: Replicates, alpha: float, tolerance: Tolerance) -> tuple[Interval, ...]:
    """Measure every strong test function, with intervals that hold jointly."""
    strong = [k for k, column in enumerate(replicates.columns) if column.level == "strong"]
    rows = []
    for k in strong:
        name = replicates.columns[k].name
        for what, m in _measure_column(replicates, k, alpha, len(strong)):
            within = _within(m, *tolerance.limits(what, m.ideal))
            rows.append(replace(m, name=what, f=name, within=within))
    return tuple(rows)


def _within(m: Interval, low: float, high: float) -> Literal["yes", "no", "open"]:
    if low <= m.low and m.high <= high:
        return "yes"
    return "no" if m.high < low or m.low > high else "open"


def _measure_column(replicates: Replicates, k: int, alpha: float, functions: int) -> list[tuple[str, Interval]]:
    kept, lost, draws = replicates.rows, len(replicates.failures), replicates.lattice(k)
    # Spread, bias and coverage hold jointly at 1 - alpha; so do the distances, strong and weak.
    confidence, of_distance = 1 - alpha / (3 * functions), 1 - alpha / (2 * functions)
    values = replicates.rank[kept, k] if draws else replicates.ordered(k)
    scores = values if draws else replicates.z[kept, k]
    both = effects.spread_and_bias(scores, draws=draws, confidence=confidence, lost=lost)
    measures = [
        ("spread", both.spread),
        ("bias", both.bias),
        ("coverage", effects.coverage(values, draws=draws, confidence=confidence, lost=lost)),
        ("KS distance", effects.distance(values, draws=draws, confidence=of_distance, lost=lost)),
    ]
    weak = replicates.weak_ordered(k)
    if not np.isnan(weak[-1:]).any():  # nan sorts last
        measures.append(("weak KS distance", effects.distance(weak, confidence=of_distance, lost=lost)))
    return measures


def _use(replicates: Replicates, alpha: float) -> dict[str, list[Interval]]:
    """Return contraction and skill by strong test function where both are known, each with an interval of its own.

    They describe the replicates that were not lost, at most the first fifty thousand of them.
    """
    kept = replicates.rows
    found = {}
    for k, column in enumerate(replicates.columns):
        truth, sd, crps = (getattr(replicates, name)[kept, k][:_ENOUGH] for name in ("truth", "sd", "crps"))
        if column.level == "strong" and replicates.of_belief and np.isfinite(truth).all():
            both = [
                usefulness.contraction(truth, sd, confidence=1 - alpha),
                usefulness.skill(truth, crps, confidence=1 - alpha),
            ]
            if all(np.isfinite(m.estimate) for m in both):
                found[column.name] = both
    return found


def _joint_use(replicates: Replicates, alpha: float) -> list[Interval]:
    """Return the skill for all entries of theta together, if there are several."""
    scores = (array[replicates.rows][:_ENOUGH] for array in (replicates.energy, replicates.belief_energy))
    m = usefulness.energy_skill(*scores, confidence=1 - alpha)
    return [replace(m, f=ALL)] if np.isfinite(m.estimate) else []


def _with_use(measures: Sequence[Interval], use: dict[str, list[Interval]]) -> tuple[Interval, ...]:
    """Return the measures, those of use behind the others of their test function."""
    rows = []
    for name in dict.fromkeys(row.f for row in measures):
        rows += [row for row in measures if row.f == name]
        rows += [replace(m, f=name) for m in use.get(name, [])]
    return tuple(rows)


def _resolution(replicates: Replicates, alpha: float, test: str) -> Resolution:
    """Return the smallest errors that this run would have found with 80 % chance, where that is known."""
    strong = sum(column.level == "strong" for column in replicates.columns)
    if not strong or test != "combination" or replicates.failures:
        return Resolution(np.nan, np.nan, np.nan)
    n, functions = replicates.n, strong
    if replicates.selection is not None:
        n, functions = max(n - round(replicates.selection.share * n), 1), 1
    draws = replicates.fewest_draws()
    seen = planning.detectable(n, draws=draws, alpha=_SHARES["strong"] * alpha, functions=functions)
    return Resolution(seen.over_confident, seen.under_confident, seen.bias)
