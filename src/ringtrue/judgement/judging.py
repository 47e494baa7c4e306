"""From replicates to a verdict, and the calls most users need: judge, check, check_draws.

This module puts together what others compute: evidence, sizes, decision, sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from ..errors import InvalidStudy, RingtrueError, StoreDamaged
from ..execution.runs import RunSettings, run
from ..question.study import StudySettings, at_least, need_known
from ..replicates.given import replicates_from_draws
from ..replicates.record import CHAINS, DIAGNOSTIC, WEIGHTED, Replicates
from ..replicates.simulate import OnFailure
from ..statistics import planning, sequential
from ..statistics.effects import Interval
from ..statistics.planning import OVER_TIME
from ..statistics.uniformity import TESTS
from ..values import Floats, Numbers
from . import anytime as anytime_
from . import chains, fits, inputs, joint, measures, order
from . import groups as grouped
from .column import strong_columns
from .levels import ADDED, Evidence, TestRow, evidence
from .looks import Look
from .outcomes import outcomes_of
from .result import Resolution, Result, Tested
from .sentences.verdicts import Findings, sentence, useless
from .until import Decided, need_until
from .verdict import Tolerance, Verdict, overall, rejecting, weighed

#: What a reader must know of truths that the procedure drew itself.
_OF_OUTPUT = (
    "truths are draws of the procedure's own output for y_obs, and it was fitted to y_obs and new data: what is said "
    "is about data like y_obs, and about whether the procedure agrees with itself.",
    "not seen given y_obs: a wrong prior, and whatever is wrong in the same way with and without new data, such as "
    "leaving all data unused. The weak level is left out, and what theta has of single observations is shared by y_obs "
    "and new data.",
)


class JudgeSettings(TypedDict, total=False):
    """The settings of :func:`judge`, for those who pass them on."""

    alpha: float
    tolerance: Tolerance | None
    test: str


class CheckSettings(RunSettings, JudgeSettings, StudySettings, total=False):
    """Everything that :func:`check` takes by name besides n."""


def check(
    question: Any,
    model: Any = None,
    procedure: Any = None,
    *,
    n: int | None = None,
    until: Literal["decided"] | None = None,
    max_n: int = 5000,
    **settings: Unpack[CheckSettings],
) -> Result:
    """Simulate, learn, and say whether the procedure's uncertainty can be trusted.

    Parameters
    ----------
    question, model, procedure
        A :class:`~ringtrue.Study`, or a belief, a model and a procedure as a study takes them.
    n
        The number of replicates.
    until
        "decided", instead of a number: the run goes on until the verdict is MISCALIBRATED or WITHIN_TOLERANCE, or to
        ``max_n``. What is said holds although the run stopped for it; ``result.stopped`` says why it did.
    max_n
        With ``until``, the most replicates.
    **settings
        ``f``, ``draws``, ``seed``, ``batch``, ``truth``, ``summary`` and so on, as in :class:`~ringtrue.Study`;
        ``alpha``, ``tolerance`` and ``test`` as in :func:`judge`; ``workers``, ``store``, ``on_failure`` and so on, as
        in :func:`~ringtrue.run`. A run with ``max_seconds`` is judged like one with ``until``: when it stops is not
        fixed before.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> result = check(
    ...     Normal(0, 1),
    ...     lambda theta, rng: theta + rng.normal(),
    ...     lambda mu0, y: Normal(y / 2, 0.5),
    ...     until="decided",
    ... )
    >>> result.verdict, result.stopped
    (<Verdict.MISCALIBRATED: 'MISCALIBRATED'>, 'evidence')
    """
    need_known("check", settings, {"n", "until", "max_n", *CheckSettings.__optional_keys__})
    judging, running = split(settings)
    need_settings(**judging)
    most = _most(n, until, max_n)
    if until is None and running.get("max_seconds") is None:
        return judge(run(question, model, procedure, n=most, **running), **judging)
    about: Any = {"alpha": judging.get("alpha", 0.05), "tolerance": judging.get("tolerance") or Tolerance()}
    rule = Decided(**about, store=running.get("store")) if until else None
    return ended(judge(run(question, model, procedure, n=most, until=rule, **running), **judging, anytime=True), most)


def _most(n: Any, until: Any, max_n: Any) -> int:
    """Return how many replicates there may be."""
    if until is None:
        if n is None:
            raise InvalidStudy("check needs n=, the number of replicates, or until='decided'.")
        return int(at_least(1, "n", n))
    need_until(until)
    if n is not None:
        raise InvalidStudy(f"n= and until= exclude each other; with until= the most replicates are max_n={n!r}.")
    return int(at_least(1, "max_n", max_n))


def ended(result: Result, most: int) -> Result:
    """Return a result that says why its run ended, which might have had more replicates."""
    n, verdict = result.replicates.n, result.verdict
    why, words = {
        Verdict.MISCALIBRATED: ("evidence", f"Stopped after {n} replicates, when there was enough evidence."),
        Verdict.WITHIN_TOLERANCE: ("certified", f"Stopped after {n} replicates, when sizes were known well enough."),
    }.get(verdict, ("", ""))
    if verdict is Verdict.INCONCLUSIVE or n >= most:
        left = ("max_n", f"Not decided by {n} replicates, the most allowed.")
        why, words = left if n >= most else ("max_seconds", f"Not decided by {n} replicates, when time was up.")
        words = words if verdict is Verdict.INCONCLUSIVE else ""
    return replace(result, stopped=why, sentence=f"{result.sentence} {words}".rstrip())


def split(settings: Any) -> tuple[JudgeSettings, Any]:
    """Part the settings of judging from all others."""
    judging: Any = {name: part for name, part in settings.items() if name in JudgeSettings.__annotations__}
    return judging, {name: part for name, part in settings.items() if name not in judging}


def check_draws(
    theta: Any,
    draws: Any,
    *,
    y: Any = None,
    f: Any = None,
    belief: Any = None,
    iid: bool | None = None,
    chains: int | None = None,
    weights: Numbers = None,
    groups: Any = None,
    order: Any = None,
    summary: Any = None,
    seed: int = 0,
    on_failure: OnFailure = "raise",
    **settings: Unpack[JudgeSettings],
) -> Result:
    """Judge draws that exist already.

    Parameters
    ----------
    theta
        The true parameters: (n,), (n, d), or a dict of such arrays.
    draws
        For each, draws of the output: (n, M), (n, M, d), a dict of such arrays, or a list of n arrays of possibly
        different lengths. With ``chains=``, also (n, chains, M), (n, chains, M, d), and so on. A list of n posteriors
        of ArviZ (InferenceData, DataTree, xarray Dataset) says itself how many chains there are.
    y
        The datasets, if a test function sees them, or outputs are to be compared with summaries of them.
    f
        Test functions, as in :class:`~ringtrue.Study`.
    belief
        mu0, if the weak level is to be tested.
    iid
        True if the draws are independent, or their order means nothing; False for one Markov chain in its order, as
        ``chains=1``. If nothing is said, draws are taken for independent and looked at: where neighbours are clearly
        alike (false alarm 1e-6) the call stops and says what to pass.
    chains
        The number of Markov chains that the draws of each output are, on an axis of their own before that of the draws
        or chain after chain on that of the draws. Whether an axis is that of the chains is never guessed.
    weights
        (n, M), or a list if draws are one: a weight for every draw; draws are resampled to their effective number,
        which is approximate.
    groups
        (n,): a label for every replicate, equal for those that share a truth, a patient or anything else that makes
        them depend on each other. Only groups are then taken for independent; see :func:`judge`.
    order
        (n,): a number or date for every replicate, all different, if they are a series, such as forecasts: the result
        then has a line on whether they are independent over that order; see :func:`independence`. Only which comes
        after which counts. It does not enter the verdict.
    summary
        What to look at in the data, as in :class:`~ringtrue.Study`.
    seed
        Of what is random here: breaking ties, resampling, permuting the order.
    on_failure
        "raise" refuses nan in truths or draws; "record" takes such replicates for lost ones, and the verdict then
        holds whatever they would have been. Leaving them out yourself would condition on success.
    **settings
        ``alpha``, ``tolerance`` and ``test``, as in :func:`judge`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=1000)
    >>> theta, draws = y + rng.normal(size=1000), y[:, None] + rng.normal(size=(1000, 99))
    >>> check_draws(theta, draws).levels["strong"].pvalue > 0.001
    True
    """
    need_known("check_draws", settings, {*(check_draws.__kwdefaults__ or ()), *JudgeSettings.__optional_keys__})
    need_settings(**settings)
    given = replicates_from_draws(
        theta,
        draws,
        y=y,
        f=f,
        belief=belief,
        iid=iid,
        chains=chains,
        weights=weights,
        groups=groups,
        order=order,
        summary=summary,
        seed=seed,
        on_failure=on_failure,
    )
    return judge(given, **settings)


def judge(
    replicates: Replicates,
    *,
    alpha: float = 0.05,
    tolerance: Tolerance | None = None,
    test: str = "combination",
    anytime: bool | None = None,
) -> Result:
    """Reach a verdict on what happened.

    Parameters
    ----------
    replicates
        From :func:`~ringtrue.run`.
    alpha
        The chance of calling a calibrated procedure miscalibrated, at any n, over all levels and test functions. A run
        that is kept in a file may be judged again when it has grown: all looks share alpha, the first at a finished run
        has four fifths of it, and ``result.look`` says which this is. The same test of the same replicates is the same
        look.
    tolerance
        How large an error may be and still not matter.
    test
        The uniformity test; the default combination sees bias, spread, shape and outliers. Markov chains and discrete
        test functions, where truth and draws tie, have tests of their own, whatever is chosen here.
    anytime
        True judges by evidence and intervals that hold whenever one looks; False by tests for one n that was chosen
        before. Left out, a stored run that is not finished, or has grown since it was last judged, is judged in the
        first way, and everything else in the second.

    Notes
    -----
    *Groups.* Replicates that share a truth (``datasets=`` of a study, ``groups=`` of arrays) depend on each other, and
    what is said holds whatever that dependence is, if groups are independent. A test is one half on scores summed over
    groups and one half on one replicate of each group, chosen 15 times; spread, bias, coverage and distance have
    intervals from the variance between groups. Usefulness, the kind of an error, the two-sample tests of the weak level
    and pictures are of one replicate of each group. The joint test of all test functions is left out. See
    ``ringtrue.statistics.groups`` for what was measured.

    Raises
    ------
    InvalidStudy
        Among others, if draws clearly follow each other and nobody said whether they are independent or chains.
    """
    need_settings(alpha, tolerance, test)
    need_replicates(replicates)
    try:
        return _judged(replicates, alpha, tolerance, test, anytime)
    except (RingtrueError, MemoryError):
        raise
    except Exception as error:
        # Checksums say that bytes are those that were written, not who wrote them: arrays may have any form.
        if replicates.stored is None:
            raise
        raise StoreDamaged(
            f"{replicates.stored.path} holds arrays that no run writes so, and cannot be judged "
            f"({type(error).__name__}: {error}); run the study again into a new file."
        ) from error


def _judged(
    replicates: Replicates, alpha: float, tolerance: Tolerance | None, test: str, anytime: bool | None
) -> Result:
    """Reach a verdict on a record whose arrays may have any form."""
    doubts = inputs.suspicions(replicates)
    # Draws that are the same everywhere follow each other too: the more telling mistake is named.
    if not doubts:
        chains.need_independent(replicates)
    limits = tolerance or Tolerance()
    look = _look(replicates, test, anytime)
    spent = look.of(alpha)
    weigh = _over_time if look.anytime else _at_one_n
    grounds = weigh(replicates, spent, limits, test)
    use = measures.of_use(replicates, spent)
    verdict = weighed(grounds.rows, grounds.sizes, replicates, limits)
    tolerable = None
    if verdict is Verdict.INCONCLUSIVE and replicates.failures:
        tolerable = _tolerable(replicates, spent, limits, partial(weigh, test=test))
    certified = verdict is Verdict.WITHIN_TOLERANCE
    if certified and any(one.voids for one in doubts):
        verdict, text = Verdict.INCONCLUSIVE, inputs.VOID
    elif certified and not fits.certain(replicates, alpha=grounds.of_sizes, tolerance=limits, test=test):
        verdict, text = Verdict.INCONCLUSIVE, chains.VOID
    else:
        later = _later(look, alpha, replicates.n)
        findings = Findings(
            grounds.found,
            grounds.pvalue,
            grounds.rows or [],
            grounds.sizes,
            use,
            replicates,
            spent,
            limits,
            tolerable,
            later,
            bool(doubts),
        )
        text = sentence(verdict, findings)
    text = f"GIVEN y_obs, {text}" if replicates.header.of_output else text
    again = f" {look.said(alpha)}" if look.number > 1 and look.said(alpha) else ""
    return Result(
        verdict,
        inputs.in_front(doubts, f"{text}{chains.trouble(replicates)}{again}"),
        grounds.pvalue,
        Tested({one.level: one for one in grounds.found}),
        measures.with_use(grounds.sizes, use, replicates, spent),
        _resolution(replicates, spent, test, over_time=look.anytime),
        replicates,
        alpha,
        limits,
        (
            *look.notes(),
            *order.note(replicates, alpha),
            *_notes(replicates),
            *grounds.notes,
            *useless(use, replicates),
            *inputs.remarks(replicates),
        ),
        tuple(one.text for one in doubts),
        look,
        test,
    )


@dataclass(frozen=True, eq=False)
class _Grounds:
    """What a verdict rests on: evidence, the tests that reject (None without evidence), sizes and their level."""

    found: Sequence[Evidence]
    notes: Sequence[str]
    pvalue: float
    rows: Sequence[TestRow] | None
    sizes: tuple[Interval, ...]
    of_sizes: float


def _at_one_n(replicates: Replicates, alpha: float, tolerance: Tolerance, test: str) -> _Grounds:
    found, notes = evidence(replicates, test=test)
    p = overall(found)
    rows = rejecting(found, alpha) if p <= alpha else None
    return _Grounds(found, notes, p, rows, measures.judged(replicates, alpha, tolerance), alpha)


def _over_time(replicates: Replicates, alpha: float, tolerance: Tolerance, test: str) -> _Grounds:
    followed = anytime_.follow(replicates)
    rows = anytime_.rejecting(followed, alpha) if followed.pvalue <= alpha else None
    sizes, level = anytime_.sizes(replicates, alpha, tolerance), anytime_.level(replicates, alpha)
    return _Grounds(followed.found, anytime_.notes(replicates), followed.pvalue, rows, sizes, level)


def _later(look: Look, alpha: float, n: int) -> float:
    """Return at which level sizes will be certified when there are more replicates."""
    # What is kept in a file is judged over time then.
    return sequential.level(max(n, 1000), look.later(alpha)) if look.number or look.anytime else alpha


def _look(replicates: Replicates, test: str, anytime: bool | None) -> Look:
    """Have the file that replicates came from remember that they were judged, before anybody sees how."""
    if replicates.stored is None:
        return Look(anytime=bool(anytime))
    from ..execution.store.looks import look

    unfinished = replicates.first + replicates.n < replicates.stored.n
    if anytime or (unfinished and anytime is None):
        anytime_.need_fixed_functions(replicates)  # a look that cannot be must not be remembered
    return Look(*look(replicates, replicates.stored, test, anytime))


def need_settings(alpha: Any = 0.05, tolerance: Any = None, test: Any = "combination") -> None:
    """Refuse what would only fail after the simulations."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InvalidStudy(f"alpha must be a number strictly between 0 and 1, but {alpha!r} arrived.")
    if alpha < 1e-12:  # intervals of confidence 1 - alpha would round to certainty
        raise InvalidStudy(f"alpha must be at least 1e-12, but {alpha!r} arrived.")
    if tolerance is not None and not isinstance(tolerance, Tolerance):
        raise InvalidStudy(f"tolerance must be a ringtrue.Tolerance, but {tolerance!r} arrived.")
    if not isinstance(test, str) or test not in TESTS:
        raise InvalidStudy(f"test must be one of {sorted(TESTS)}, but {test!r} arrived.")


def need_replicates(replicates: Any) -> None:
    """Refuse what is no record, and one of which all replicates were lost."""
    if not isinstance(replicates, Replicates):
        raise TypeError(f"judge needs the Replicates that run(study) returns, but {type(replicates).__name__} arrived.")
    if replicates.lost == replicates.n:
        cause, _, failure = replicates.causes()[0]
        look = replicates.replay_of(failure) or "the traceback in .failures of its run"
        raise InvalidStudy(
            f"at least one replicate is needed, but all {replicates.n} were lost, most often with {cause}; see {look}."
        )


def _notes(replicates: Replicates) -> list[str]:
    """Say what a reader must know of how the replicates came about."""
    header = replicates.header
    lines = []
    if not header.of_belief:
        lines.append("theta was drawn from another law than the belief: even the exact posterior need not be uniform.")
    if header.of_output:
        lines += _OF_OUTPUT
    if not header.reproducible:
        lines.append("the study was declared not to be reproducible: its replicates cannot be replayed.")
    about = [*grouped.notes(replicates), *_treatments(replicates), *_diagnostics(replicates), *joint.notes(replicates)]
    return [*lines, *header.notes, *about, *measures.heavy_tails(replicates)]


def _treatments(replicates: Replicates) -> list[str]:
    """Say what was done to draws."""
    done = int(np.bitwise_or.reduce(replicates.treated, initial=0))
    found = chains.notes(replicates) if done & CHAINS else []
    if not done & WEIGHTED:
        return found
    used = replicates.draws[replicates.draws > 0]
    left = f"{used.min()} to {used.max()} draws are left" if used.size else "none are left"
    return [*found, f"weighted draws were resampled to their effective number (approximate): {left} of each."]


def _diagnostics(replicates: Replicates) -> list[str]:
    """Say what samplers said of themselves."""
    found = {name.removeprefix(DIAGNOSTIC): x for name, x in replicates.arrays.items() if name.startswith(DIAGNOSTIC)}
    ranges = [f"{name}: {_range(found[name][replicates.rows])}." for name in sorted(found)]
    # That chains did not mix is in the sentence.
    flags = [one for one in fits.diagnostics(replicates).flags if one.name in found]
    return [*ranges, *(f"{one.text}; see result.diagnostics." for one in flags)]


def _range(values: Floats) -> str:
    """Say where numbers lie, and how many of them there are if some are missing."""
    known = values[np.isfinite(values)]
    if not known.size:
        return f"no finite number in any of {values.size} replicates"
    low, middle, high = np.quantile(known, [0, 0.5, 1])
    missing = values.size - known.size
    rest = f"; missing or not finite in {missing} of {values.size} replicates" if missing else ""
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}{rest}"


def _tolerable(replicates: Replicates, alpha: float, tolerance: Tolerance, weigh: Any) -> int | None:
    """Return how many of the lost replicates would leave a verdict, had the others not been asked for; None if none."""

    def settled(lost: int) -> bool:
        fewer = _with_lost(replicates, lost)
        grounds = weigh(fewer, alpha, tolerance)
        return weighed(grounds.rows, grounds.sizes, fewer, tolerance) is not Verdict.INCONCLUSIVE

    most, too_many = -1, replicates.lost
    # Bisection: more losses never help a verdict, so that there is one border.
    while too_many - most > 1:
        middle = (most + too_many) // 2
        most, too_many = (middle, too_many) if settled(middle) else (most, middle)
    return most if most >= 0 else None


def _with_lost(replicates: Replicates, lost: int) -> Replicates:
    """Return the replicates as if only the first few of the lost ones had been asked for."""
    few = np.flatnonzero(~replicates.kept)[:lost]
    return replicates.pick(np.sort(np.concatenate([np.flatnonzero(replicates.kept), few])))


def _resolution(replicates: Replicates, alpha: float, test: str, *, over_time: bool) -> Resolution:
    """Return the smallest errors that this run would have found with 80 % chance, where that is known."""
    # What probabilities show has no spread and no bias.
    columns = [column for column in strong_columns(replicates) if not outcomes_of(column)]
    unknown = replicates.failures or any(column.chains or column.groups is not None for column in columns)
    if not columns or test != "combination" or unknown:
        return Resolution(np.nan, np.nan, np.nan)
    # What the default family adds has a share of its own, which planning knows of.
    n, own = replicates.n, max(sum(column.kind not in ADDED for column in columns), 1)
    if over_time:  # which takes so many times the replicates of a test for one n
        n = max(round(n / OVER_TIME), 1)
    if (selection := replicates.header.selection) is not None:
        # Replicates that were spent on choosing a function do not test it.
        n, own = max(n - round(selection.share * n), 1), 1
    seen = planning.detectable(n, draws=fewest_draws(replicates), alpha=alpha, parameters=own)
    return Resolution(seen.over_confident, seen.under_confident, seen.bias)


def fewest_draws(replicates: Replicates) -> int | None:
    """Return the smallest number of draws that a strong test function was ranked among; None if none was."""
    ranges = (column.fewest_and_most for column in strong_columns(replicates))
    return min((low or high for low, high in ranges if high), default=None)
