"""Calibration to a set of beliefs: one statement over all of them.

A procedure is calibrated to a set B if it is calibrated to every belief in it. That it is not is shown by one belief,
at a share of the error; that it is within tolerance must be shown for each, at no share. This module decides that;
each belief is simulated and judged as always.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Unpack

from ..characters import printable
from ..errors import InvalidStudy, Miscalibrated
from ..execution.runs import run
from ..judgement.judging import CheckSettings, judge, need_settings, split
from ..judgement.result import Result
from ..judgement.text import counted, format_p, table
from ..judgement.verdict import Verdict, need_within_tolerance
from ..question.study import Study, StudySettings, as_study, need_known
from ..replicates.record import Replicates
from .shared import noted, own_store

#: Names that a sentence lists; a table has them all.
_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class OverBeliefs:
    """One answer for a set of beliefs.

    Attributes
    ----------
    verdict, sentence
        The answer over all beliefs, and what a person can do about it.
    pvalue
        Of calibration to all beliefs: the smallest of their p-values times their number.
    verdicts
        That on each belief, by name, as far as the statement over all goes: miscalibrated at a share alpha / K of the
        error, within tolerance at alpha.
    results
        The result of each belief alone, by name, at alpha.
    worst
        The name of the belief with the smallest p-value; of equal ones, with the largest distance.
    """

    verdict: Verdict
    sentence: str
    pvalue: float
    verdicts: Mapping[str, Verdict]
    results: Mapping[str, Result]
    worst: str
    alpha: float

    def adjusted(self, name: str) -> float:
        """Return the p-value of a belief, times their number."""
        return min(1.0, len(self.results) * self.results[name].pvalue)

    def assert_not_miscalibrated(self) -> OverBeliefs:
        """Return the answer, or raise Miscalibrated with the sentence as message if the verdict is MISCALIBRATED."""
        if self.verdict is Verdict.MISCALIBRATED:
            raise Miscalibrated(self.sentence)
        return self

    def assert_within_tolerance(self) -> OverBeliefs:
        """Return the answer if it is WITHIN_TOLERANCE; else raise, with the sentence as message.

        What is raised is Miscalibrated if there is evidence of an error, and Inconclusive if the run could not tell;
        both are NotWithinTolerance, and AssertionErrors.
        """
        need_within_tolerance(self.verdict, self.sentence)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON, with the results of all beliefs."""
        return {
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "pvalue": self.pvalue,
            "worst": self.worst,
            "alpha": self.alpha,
            "verdicts": {name: one.value for name, one in self.verdicts.items()},
            "results": {name: result.to_dict() for name, result in self.results.items()},
        }

    def __str__(self) -> str:
        cells = [("belief", "verdict", "p", "adjusted p", "n", "lost")]
        for name, result in self.results.items():
            ran = result.replicates
            p, adjusted = (f"{x:.2g}" for x in (result.pvalue, self.adjusted(name)))
            cells.append((name, self.verdicts[name].words, p, adjusted, str(ran.n), str(ran.lost)))
        foot = f"alpha = {self.alpha:g}, over all beliefs; adjusted: times {len(self.results)}"
        return printable("\n\n".join([self.sentence, table(cells, right={2, 3, 4, 5}), foot]))

    def __repr__(self) -> str:
        return f"OverBeliefs({self.verdict.name}, {format_p(self.pvalue)}, {counted(len(self.results), 'belief')})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("OverBeliefs is not iterable; use its verdict, verdicts, results and worst.")

    def __bool__(self) -> NoReturn:
        raise TypeError("an answer is not true or false; ask whether .verdict is ringtrue.Verdict.WITHIN_TOLERANCE.")


def check_beliefs(
    beliefs: Any, model: Any, procedure: Any, *, n: int, **settings: Unpack[CheckSettings]
) -> OverBeliefs:
    """Simulate, learn and judge for every one of several beliefs, and make one statement over all of them.

    Parameters
    ----------
    beliefs
        Name to belief, or a list of beliefs. A belief with named parts is a dict itself: put it under a name, as in
        ``{"wide": {"a": ..., "b": ...}}``. For beliefs that are drawn at random see ``Study.from_family``.
    model, procedure, n
        As in :func:`~ringtrue.check`; n replicates for each belief. The procedure is handed the belief.
    **settings
        As in :func:`~ringtrue.check`; ``alpha`` is that of the statement over all beliefs, and ``store`` is a folder
        here, with a file per belief.

    Notes
    -----
    *Miscalibrated* is said with a chance of at most alpha if the procedure is calibrated to all K beliefs: each is
    judged at alpha / K. The beliefs that are named are so with the same chance of any mistake among them.
    *Within tolerance* needs every belief to be so, each at alpha and with no division: if the claim is false, one
    particular belief is off, and that one passes with a chance of at most alpha. All beliefs have the same seed, so
    that ``check(beliefs[name], ...)`` gives the same replicates; the rules hold whatever the dependence. Nothing is
    said of beliefs that are not in the set.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> beliefs = {"narrow": Normal(0, 1), "wide": Normal(0, 3)}
    >>> def stubborn(mu0, y):  # takes every belief for the narrow one
    ...     return Normal(y / 2, 0.5**0.5)
    >>> found = check_beliefs(beliefs, lambda theta, rng: theta + rng.normal(), stubborn, n=300)
    >>> found.worst, found.verdict
    ('wide', <Verdict.MISCALIBRATED: 'MISCALIBRATED'>)
    """
    need_known("check_beliefs", settings, {"n", *CheckSettings.__optional_keys__})
    judging, running = split(settings)
    need_settings(**judging)
    asking = {name: running.pop(name) for name in StudySettings.__annotations__ if name in running}
    # All of them before any is simulated: what is refused costs nothing then.
    studies = {name: as_study(one, model, procedure, **asking) for name, one in _named(beliefs).items()}
    return over({name: _replicates(name, study, n, running) for name, study in studies.items()}, **judging)


def over(ran: Mapping[str, Replicates], *, alpha: float = 0.05, **judging: Any) -> OverBeliefs:
    """Return one answer from the replicates of several beliefs."""
    results = {name: judge(one, alpha=alpha, **judging) for name, one in ran.items()}
    shared = {name: judge(one, alpha=alpha / len(ran), **judging) for name, one in ran.items()}
    verdicts = {name: _verdict(shared[name].verdict, results[name].verdict) for name in ran}
    worst = min(results, key=lambda name: (results[name].pvalue, -_distance(results[name])))
    pvalue = min(1.0, len(ran) * results[worst].pvalue)
    verdict = _overall(list(verdicts.values()))
    told = shared if verdict is Verdict.MISCALIBRATED else results
    text = _sentence(verdict, pvalue, verdicts, {name: told[name].sentence for name in ran}, worst)
    return OverBeliefs(verdict, text, pvalue, verdicts, results, worst, alpha)


def _verdict(at_share: Verdict, at_alpha: Verdict) -> Verdict:
    """Return the verdict on one belief among several: an error needs evidence at its share, a certificate none."""
    if at_share is Verdict.MISCALIBRATED:
        return at_share
    return at_alpha if at_alpha is Verdict.WITHIN_TOLERANCE else Verdict.INCONCLUSIVE


def _overall(verdicts: list[Verdict]) -> Verdict:
    if Verdict.MISCALIBRATED in verdicts:
        return Verdict.MISCALIBRATED
    return Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.WITHIN_TOLERANCE


def _distance(result: Result) -> float:
    return max((m.estimate for m in result.measures if m.name == "KS distance"), default=0.0)


def _sentence(
    verdict: Verdict, pvalue: float, verdicts: Mapping[str, Verdict], sentences: Mapping[str, str], worst: str
) -> str:
    """Say the verdict over all beliefs, for which it is so, and what is said of the worst of these."""
    head = f"{verdict.words.upper()} over a set of {counted(len(verdicts), 'belief')} ({format_p(pvalue)})"
    if verdict is Verdict.WITHIN_TOLERANCE:
        return f"{head}: each is certified, and nothing is said of others. Of {worst!r}: {sentences[worst]}"
    which = [name for name, one in verdicts.items() if one is verdict]
    some = ", ".join(map(repr, which[:_NAMED])) + (f" and {len(which) - _NAMED} more" if len(which) > _NAMED else "")
    told = worst if worst in which else which[0]
    state = "not calibrated to" if verdict is Verdict.MISCALIBRATED else "open for"
    return f"{head}: {state} {some}. Of {told!r}: {sentences[told]}"


def _named(beliefs: Any) -> dict[str, Any]:
    """Return the beliefs by names that differ as text, which is what tables and files have of them."""
    if isinstance(beliefs, Study):
        raise InvalidStudy("check_beliefs needs beliefs, a model and a procedure, but a Study came, which has one.")
    if isinstance(beliefs, (list, tuple)):
        beliefs = {f"belief {i + 1}": one for i, one in enumerate(beliefs)}
    if not isinstance(beliefs, Mapping) or not beliefs:
        arrived = "an empty one" if isinstance(beliefs, Mapping) else type(beliefs).__name__
        hint = "; for beliefs drawn at random use ringtrue.Study.from_family" if callable(beliefs) else ""
        raise InvalidStudy(
            f"beliefs must be a dict of at least one, {{name: belief}}, or a list of them, but {arrived} arrived{hint}."
        )
    named = {str(name): belief for name, belief in beliefs.items()}
    if len(named) < len(beliefs):
        raise InvalidStudy(f"beliefs need names that differ as text, but {list(beliefs)} arrived.")
    return named


def _replicates(name: str, study: Study, n: int, settings: Any) -> Replicates:
    with noted(f"the belief {name!r}"):
        return run(study, n=n, **own_store(settings, name))
