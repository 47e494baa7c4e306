"""Calibration as an assertion of a test suite: a stated chance of false alarms, and few replicates if nothing is wrong.

It needs no test framework. Stages are those of ``statistics.sequential.budget``, replicates those of a run.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

from ..errors import InvalidStudy, Miscalibrated
from ..execution.progress import Show
from ..execution.runs import go_on
from ..judgement import chains
from ..judgement.column import strong_columns
from ..judgement.judging import judge, need_replicates
from ..judgement.levels.strong import LEVEL
from ..judgement.text import counted, format_p
from ..judgement.verdict import Verdict
from ..question.study import Study, StudySettings, as_study, at_least, need_known
from ..replicates.record import Replicates, join
from ..replicates.simulate import OnFailure
from ..statistics.sequential import Stage, stages

#: Default chance that a calibrated procedure fails :func:`assert_not_miscalibrated`.
BUDGET = 1e-5


class SuiteSettings(StudySettings, total=False):
    """Settings of a study, and of how its replicates are computed, for those who pass them on."""

    on_failure: OnFailure
    failures_allowed: float
    workers: int | None
    executor: Executor | None
    timeout: float | None
    progress: Show


@dataclass(frozen=True)
class Passed:
    """What an assertion came to that did not fail: the p-value of every stage, and how many replicates they took."""

    pvalues: tuple[float, ...]
    n: int


def assert_not_miscalibrated(
    question: Any,
    model: Any = None,
    procedure: Any = None,
    *,
    false_alarm: float = BUDGET,
    first: int = 100,
    report: str | os.PathLike[str] | None = None,
    **settings: Unpack[SuiteSettings],
) -> Passed:
    """Raise Miscalibrated if a procedure is clearly not calibrated, with few replicates if it seems to be.

    The chance of raising for a calibrated procedure is at most ``false_alarm``. Replicates come in stages: one that
    sees nothing ends it, and one that is not sure calls for fresh replicates, so that with the defaults a calibrated
    procedure takes 168 replicates on average and 2500 at most. Where outputs have exact laws, a reported sd that is 1.4
    times too small or too large, or a bias of half an sd, fails in 99 % of cases or more; smaller errors may pass (see
    ``docs/testing.md``). To show that errors are small, see :meth:`Result.assert_within_tolerance`.

    Parameters
    ----------
    question, model, procedure
        A :class:`~ringtrue.Study`, or a belief, a model and a procedure, as in :func:`~ringtrue.check`.
    false_alarm
        The chance of raising although the procedure is calibrated.
    first
        Replicates of the first stage; each of at most six later ones has four times as many. Of a batched study they
        are rounded up to whole batches.
    report
        Where a page about a failure goes, such as "failure.html".
    **settings
        ``f``, ``draws``, ``seed``, ``batch`` and so on, as in :class:`~ringtrue.Study`; ``workers``, ``executor``,
        ``timeout``, ``on_failure``, ``failures_allowed`` and ``progress`` as in :func:`~ringtrue.run`.

    Notes
    -----
    The p-value of a stage is a weighted Bonferroni one over the test functions of theta alone, each with the default
    test of :func:`~ringtrue.judge`: these hold their level as far out as a small ``false_alarm`` needs. Left out are
    the joint, auto, exact, reversible and weak tests of a verdict. Where draws are weighted, or Markov chains, the
    level is approximate, as it is in a verdict.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> belief, model = Normal(0, 1), lambda theta, rng: theta + rng.normal()
    >>> assert_not_miscalibrated(belief, model, lambda mu0, y: Normal(y / 2, 0.5**0.5)).n
    100
    """
    __tracebackhide__ = True
    need_known("assert_not_miscalibrated", settings, {"false_alarm", "first", "report", *_KNOWN})
    running: Any = {name: part for name, part in settings.items() if name not in StudySettings.__optional_keys__}
    asking = {name: part for name, part in settings.items() if name not in running}
    study = as_study(question, model, procedure, **asking)
    plan = stages(false_alarm, first=at_least(1, "first", first))
    _need_independent(study)
    if report is not None:
        from ..report import need_place

        need_place(report)
    parts: list[Replicates] = []
    pvalues: list[float] = []
    for stage, (start, stop) in zip(plan, _ranges(plan, study.batch or 1), strict=True):
        parts.append(go_on(study, start, stop - start, **running))
        pvalues.append(_pvalue(parts[-1]))
        decision = stage.decide(pvalues[-1])
        if decision == "reject":
            call = _call(question, parts[-1].stop, {**asking, **_of_losses(running)})
            raise Miscalibrated(_message(parts, stage, pvalues[-1], false_alarm, call, report))
        if decision == "accept":
            break
    return Passed(tuple(pvalues), parts[-1].stop)


_KNOWN = SuiteSettings.__optional_keys__


def _need_independent(study: Study) -> None:
    """Refuse replicates that share a truth: their tests are not known to hold far out."""
    if study.datasets > 1:
        raise InvalidStudy(
            f"datasets must be 1 here, but {study.datasets} arrived: with several datasets per theta p-values are "
            f"approximate, too much so for a rate of false alarms this small; leave out datasets=."
        )


def _ranges(plan: tuple[Stage, ...], unit: int) -> list[tuple[int, int]]:
    """Return the replicates of every stage, whole batches of them: a batch is computed whole in any case."""
    ends = [0]
    for stage in plan:
        ends.append(ends[-1] + -(-stage.n // unit) * unit)
    return list(pairwise(ends))


def _pvalue(replicates: Replicates) -> float:
    """Return the p-value of a stage."""
    need_replicates(replicates)
    untested = [one.name for one in strong_columns(replicates) if one.chains and chains.chained(one) is None]
    found = LEVEL.one_by_one(replicates, "combination")
    if found is None or untested:
        what = f"chains of {untested[0]!r} are too few or too slow" if untested else "every test function sees more"
        raise InvalidStudy(
            f"a test function of theta alone is needed, with outputs that can be tested, but {what}; run longer chains "
            f"and several, or leave out f=."
        )
    return found.pvalue


def _message(
    parts: list[Replicates],
    stage: Stage,
    p: float,
    false_alarm: float,
    call: str,
    report: str | os.PathLike[str] | None,
) -> str:
    """Say what is wrong, how sure that is, how to see it again, and where the page is."""
    # The number of replicates was not fixed before.
    result = judge(join(parts, reference=parts[-1].reference), anytime=True)
    n, fresh = result.replicates.n, parts[-1].n
    found = result.verdict is Verdict.MISCALIBRATED
    lines = [
        result.sentence if found else f"MISCALIBRATED by stages, though all replicates at once say {result.sentence}",
        f"Evidence: {format_p(p)} on {counted(fresh, 'fresh replicate')} (stage {len(parts)}, which fails at "
        f"{stage.rejects:.2g}); a calibrated procedure fails with a chance of {false_alarm:.2g} at most.",
        f"Replay, for the sentence about all {counted(n, 'replicate')}: {call}"
        if parts[-1].header.reproducible
        else _LOST,
    ]
    if report is not None:
        lines.append(f"Report: {result.report(Path(report))}")
    return "\n".join(lines)


_LOST = "The study was declared not to be reproducible: its replicates cannot be replayed."


def _of_losses(running: dict[str, Any]) -> dict[str, Any]:
    """Return what a call needs that is to go on where this one did."""
    return {name: part for name, part in running.items() if name in ("on_failure", "failures_allowed")}


def _call(question: Any, n: int, settings: dict[str, Any]) -> str:
    """Return the call that gives the sentence again; what cannot be written in a line has its own name."""
    of_study = isinstance(question, Study)
    given = settings if of_study else {"seed": 0, **settings}
    plain = (int, float, str, type(None))
    words = [f"{name}={part!r}" if isinstance(part, plain) else f"{name}={name}" for name, part in given.items()]
    asked = ", ".join(["study" if of_study else "belief, model, procedure", f"n={n}", *words])
    return f"ringtrue.judge(ringtrue.run({asked}), anytime=True)"
