"""Does a Markov kernel leave the posterior alone? From a kernel to a sentence: check_kernel and its result.

Chains start at the truth, where a right kernel is stationary at once: there is no burn-in, and nothing is thinned. What
is tested is the kernel, not whether chains find the posterior from elsewhere.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NoReturn

import numpy as np

from ..characters import one_line, printable
from ..errors import Inconclusive, InvalidStudy, Miscalibrated
from ..question.study import Study, at_least
from ..replicates.kernels import FRESH, KernelTrial, Moved
from ..statistics import combining, drift, uniformity
from ..statistics.swaps import pooled_scores
from ..streams import Streams
from ..values import Floats
from .judging import need_settings
from .levels import ADDED
from .sentences.phrases import listed
from .text import cell, counted, format_p, number, percent, plain, table

#: Above this a kernel hardly moves: the share of replicates that it leaves as they are, and the correlation of what
#: it moves with where it was.
_STILL = 0.99
#: How many further findings a sentence names.
_NAMED = 2


class KernelVerdict(StrEnum):
    """What can be said of a kernel; that it is right is not among it."""

    WRONG_KERNEL = "WRONG_KERNEL"
    NOTHING_FOUND = "NOTHING_FOUND"
    HARDLY_MOVES = "HARDLY_MOVES"


@dataclass(frozen=True)
class KernelRow:
    """One test of one test function.

    Attributes
    ----------
    test
        "moved": after some steps, against fresh truths and data; "renewed": after several rounds with new data, against
        the same; "paired": after some steps, against where the chain began; "ranks": the truth's place in a chain that
        ran both ways from it.
    f, measure
        The test function, and what of it: "location", in sds (normal scores of ranks), or "spread", the factor of the
        sd; "rank" if no size is told.
    estimate, low, high
        How far off, with an interval that is simultaneous over all rows; nan where no size is told.
    pvalue, adjusted
        Alone, and over all rows of all tests.
    """

    test: str
    f: str
    measure: str
    estimate: float
    low: float
    high: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False, repr=False)
class KernelResult:
    """The answer of :func:`~ringtrue.check_kernel`.

    Attributes
    ----------
    verdict, sentence
        The answer, and its size.
    pvalue
        That the kernel leaves the posterior alone, over all tests and test functions.
    rows
        The tests.
    unchanged
        The share of replicates whose theta was the same after all steps of a round.
    correlations
        Of every test function, the rank correlation of its values before and after these steps.
    detectable
        The shift of a test function, in sds, that would have been found with 80 % chance.
    n, steps, rounds, seed, alpha
        What was asked.
    """

    verdict: KernelVerdict
    sentence: str
    pvalue: float
    rows: tuple[KernelRow, ...]
    unchanged: float
    correlations: dict[str, float]
    detectable: float
    n: int
    steps: int
    rounds: int
    seed: int
    alpha: float

    def assert_nothing_found(self) -> KernelResult:
        """Return the result if the verdict is NOTHING_FOUND; else raise, with the sentence as message.

        What is raised is Miscalibrated for a wrong kernel, and Inconclusive for one that hardly moves, which nothing
        could be found of.
        """
        if self.verdict is KernelVerdict.WRONG_KERNEL:
            raise Miscalibrated(self.sentence)
        if self.verdict is KernelVerdict.HARDLY_MOVES:
            raise Inconclusive(self.sentence)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; numbers that are not finite become None."""
        found: dict[str, Any] = plain({**vars(self), "verdict": self.verdict.value, "rows": [*map(asdict, self.rows)]})
        return found

    def __str__(self) -> str:
        cells = [("test", "test function", "measure", "estimate", "interval*", "p", "adjusted p")]
        for row in self.rows:
            sized = math.isfinite(row.estimate)
            interval = f"{number(row.low)} to {number(row.high)}" if sized else "-"
            size = number(row.estimate) if sized else "-"
            cells.append((row.test, row.f, row.measure, size, interval, cell(row.pvalue), cell(row.adjusted)))
        slowest = max(self.correlations, key=lambda name: self.correlations[name])
        lines = [
            f"* {100 * (1 - self.alpha):g} %, simultaneous over all rows; normal scores of ranks: locations in sds, "
            f"ideal 0; spreads as factors, ideal 1",
            "",
            f"n = {self.n}, steps = {self.steps}, rounds = {self.rounds}, seed = {self.seed}, alpha = {self.alpha:g}",
            f"After {counted(self.steps, 'step')} theta was unchanged in {percent(self.unchanged)} of replicates, and "
            f"{slowest} had the largest correlation with where it was, {number(self.correlations[slowest])}.",
        ]
        footer = "\n".join(lines)
        return printable(f"{one_line(self.sentence)}\n\n{table(cells, right={3, 5, 6})}\n{footer}")

    def _repr_html_(self) -> str:
        head, _, rest = str(self).partition("\n\n")
        return f"<p><strong>{html.escape(head)}</strong></p><pre>{html.escape(rest)}</pre>"

    def __repr__(self) -> str:
        return f"KernelResult({self.verdict.name}, {format_p(self.pvalue)}, n={self.n})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("KernelResult is not iterable; use result.verdict, result.pvalue, result.rows.")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a KernelResult is neither true nor false; compare result.verdict, or call result.assert_nothing_found()."
        )


def check_kernel(
    belief: Any,
    model: Any,
    kernel: Any,
    *,
    n: int,
    steps: int = 10,
    rounds: int = 4,
    f: Any = None,
    reversible: bool = False,
    seed: int = 0,
    batch: int | None = None,
    alpha: float = 0.05,
) -> KernelResult:
    """Run a Markov kernel from the truth, and say whether it leaves the posterior alone.

    A truth is a draw of its own posterior. So theta is one too after any number of steps of a right kernel, without a
    burn-in; and with new data at the end of every round, theta and data follow the joint law of belief and model.

    Parameters
    ----------
    belief, model
        mu0 and P, as in :class:`~ringtrue.Study`.
    kernel
        ``kernel(theta, y)`` or ``kernel(theta, y, rng)``: one step from theta, meant to leave the posterior given y
        invariant; returns the next theta. It must not adapt itself on the way, and anything that it carries along, such
        as a momentum, must be drawn anew.
    n
        The number of replicates.
    steps
        Of the kernel in one round.
    rounds
        At the end of each, data are drawn anew from the model.
    f
        Test functions, as in :class:`~ringtrue.Study`; they may see the data, as a log-likelihood does. Left out:
        coordinates, their sum and a distance.
    reversible
        True declares that the kernel is reversible, and adds two tests that are exact for such kernels only: theta
        before and after the steps of a round, pair by pair, which sees more where a kernel is slow; and the rank of the
        truth in a chain of twice as many steps that runs both ways from it. A *right* kernel that is not reversible,
        such as a Gibbs sampler that visits its coordinates in a fixed order, fails these.
    seed
        Every random number is a function of it: a replicate is the same in runs of any n.
    batch
        Left out, model and kernel get one theta at a time. A number declares that both take that many at once, the
        replicate on axis 0.
    alpha
        The chance of calling a right kernel wrong, over all tests and test functions.

    Returns
    -------
    KernelResult
        With a sentence, a p-value and a table.

    Notes
    -----
    *Null hypothesis*: the kernel leaves the posterior invariant, for almost all data. Values of f after a round, and
    after all rounds, are compared with those at fresh draws of belief and model, ten per replicate, by exchanging
    labels within each replicate. All are independent, and alike under the null, so that p-values are exact at any n for
    any such kernel, reversible or not. The tests have equal shares of alpha. Values are replaced by normal scores of
    their ranks: heavy tails do no harm.

    *What it cannot see*: whether chains mix, or find the posterior from a bad start; a kernel that does nothing leaves
    every posterior alone. So the share of states that did not change, and correlations, are part of the result, and a
    kernel that hardly moves is not passed. Of slow kernels that are not reversible, errors take many replicates to see:
    raise ``steps`` or ``rounds``.

    It runs in this process.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> def gibbs(theta, y, rng):  # the posterior is N(y/2, 1/2)
    ...     return y / 2 + rng.normal()
    >>> result = check_kernel(Normal(0, 1), lambda theta, rng: theta + rng.normal(), gibbs, n=200, steps=1)
    >>> result.verdict
    <KernelVerdict.WRONG_KERNEL: 'WRONG_KERNEL'>
    """
    n, steps, rounds = at_least(2, "n", n), at_least(1, "steps", steps), at_least(1, "rounds", rounds)
    need_settings(alpha)
    if not isinstance(reversible, bool):
        raise InvalidStudy(f"reversible must be True or False, but {reversible!r} arrived.")
    study = Study(belief, model, _no_procedure, f=f, seed=seed, batch=batch)
    if study.joint is not None or study.selection is not None:
        raise InvalidStudy(
            "check_kernel needs a belief, a model of theta and test functions, but no choice among them."
        )
    trial = KernelTrial(study, kernel, steps=steps, rounds=rounds, length=2 * steps if reversible else 0)
    moved = trial.run(n)
    rows = _rows(moved, study.seed, alpha)
    correlations = _correlations(moved)
    p = min(row.adjusted for row in rows)
    seen = drift.detectable_drift(n, FRESH, tests=len(rows), alpha=alpha)
    verdict = _verdict(p, alpha, moved, correlations)
    asked = _Asked(n, steps, rounds, alpha, seen)
    sentence = _sentence(verdict, p, rows, moved.unchanged, correlations, asked)
    return KernelResult(
        verdict, sentence, p, rows, moved.unchanged, correlations, seen, n, steps, rounds, study.seed, alpha
    )


def _no_procedure(belief: Any, y: Any) -> NoReturn:
    raise TypeError("a kernel is tried, and no procedure")


# Numbers.


def _rows(moved: Moved, seed: int, alpha: float) -> tuple[KernelRow, ...]:
    """Return all tests, which have equal shares of the error."""
    tests = 2 if moved.ranks is None else 4
    own = [k for k, kind in enumerate(moved.kinds) if kind not in ADDED]
    sized = (tests if moved.ranks is None else tests - 1) * (len(moved.names) + len(own))
    confidence = 1 - alpha / sized
    fresh = np.moveaxis(moved.fresh, 1, 0)
    rows = [
        *_drifts("moved", [moved.after, *fresh], moved, own, tests, confidence, seed),
        *_drifts("renewed", [moved.renewed, *fresh], moved, own, tests, confidence, seed),
    ]
    if moved.ranks is not None:
        rows += _drifts("paired", [moved.after, moved.before], moved, own, tests, confidence, seed)
        rows += _of_ranks(moved.ranks, moved, tests)
    return tuple(rows)


def _drifts(
    test: str, members: Sequence[Floats], moved: Moved, own: list[int], tests: int, confidence: float, seed: int
) -> list[KernelRow]:
    """Test location and spread of every function, of the first members against the others."""
    scores = np.stack(pooled_scores(*members), axis=1)
    # The sum and the distance of the default family say what they say by their location.
    columns = np.concatenate([scores, np.square(scores[:, :, own])], axis=2)
    about = [(name, "location") for name in moved.names] + [(moved.names[k], "spread") for k in own]
    found = drift.drift_test(columns, rng=Streams(seed).generator("judgement", 1 << 34))
    adjusted = np.minimum(1.0, tests * found.adjusted)
    rows = []
    for k, (name, measure) in enumerate(about):
        sizes = drift.drift_interval(columns[:, :, k], confidence=confidence)
        if measure == "spread":
            base = max(float(columns[:, 1:, k].mean()), 1e-300)  # a function that is constant has none
            sizes = tuple(math.sqrt(max(1 + x / base, 0.0)) for x in sizes)  # type: ignore[assignment]
        rows.append(KernelRow(test, name, measure, *sizes, float(found.pvalues[k]), float(adjusted[k])))
    return rows


def _of_ranks(ranks: Any, moved: Moved, tests: int) -> list[KernelRow]:
    """Test that the truth has any place in a chain that runs both ways from it."""
    p = [uniformity.TESTS["combination"](column, draws=moved.length).pvalue for column in ranks.T]
    adjusted = np.minimum(1.0, tests * combining.holm(p))
    return [
        KernelRow("ranks", name, "rank", math.nan, math.nan, math.nan, float(one), float(all_of_them))
        for name, one, all_of_them in zip(moved.names, p, adjusted, strict=True)
    ]


def _correlations(moved: Moved) -> dict[str, float]:
    """Return the rank correlation of every function before and after; 1 if it is constant."""
    pairs = zip(*(one.T for one in pooled_scores(moved.before, moved.after)), strict=True)
    return {name: _correlation(x, y) for name, (x, y) in zip(moved.names, pairs, strict=True)}


def _correlation(x: Floats, y: Floats) -> float:
    if x.std() <= 0 or y.std() <= 0:
        return 1.0
    return float(np.corrcoef(x, y)[0, 1])


def _verdict(p: float, alpha: float, moved: Moved, correlations: dict[str, float]) -> KernelVerdict:
    if p <= alpha:
        return KernelVerdict.WRONG_KERNEL
    still = moved.unchanged > _STILL or min(correlations.values()) > _STILL
    return KernelVerdict.HARDLY_MOVES if still else KernelVerdict.NOTHING_FOUND


# Words.


@dataclass(frozen=True)
class _Asked:
    n: int
    steps: int
    rounds: int
    alpha: float
    seen: float

    @property
    def told(self) -> str:
        return counted(self.steps, "step")


def _sentence(
    verdict: KernelVerdict,
    p: float,
    rows: Sequence[KernelRow],
    unchanged: float,
    correlations: dict[str, float],
    asked: _Asked,
) -> str:
    """Return what was found, its size, and what could not have been seen."""
    if verdict is KernelVerdict.WRONG_KERNEL:
        return _wrong(p, rows, asked)
    if verdict is KernelVerdict.HARDLY_MOVES:
        how = (
            f"theta was unchanged in {percent(unchanged)} of {asked.n} replicates"
            if unchanged > _STILL
            else f"every function has a correlation above {_STILL:g} with where it was"
        )
        return (
            f"THE KERNEL HARDLY MOVES: after {asked.told} {how}. A kernel that does nothing passes every test, "
            f"so that nothing is known of this one ({format_p(p)}); raise steps=, or see why it stays."
        )
    slow = [name for name, one in correlations.items() if one > _STILL]
    stuck = f" Of {listed(slow)} nothing is known: the kernel hardly moves {'it' if len(slow) == 1 else 'them'}."
    return (
        f"NOTHING FOUND ({format_p(p)}): after {asked.told} from the truth, and after {counted(asked.rounds, 'round')} "
        f"with new data, no function asked about was seen to be off; a shift beyond {number(asked.seen)} sd would have "
        f"been seen with 80 % chance.{stuck if slow else ''} This is about the kernel: whether chains mix, or find "
        f"the posterior from elsewhere, was not tested."
    )


def _wrong(p: float, rows: Sequence[KernelRow], asked: _Asked) -> str:
    found = sorted((row for row in rows if row.adjusted <= asked.alpha), key=lambda row: (row.adjusted, row.pvalue))
    worst = found[0]
    others = list(dict.fromkeys(row.f for row in found if row.f != worst.f))
    more = f" Also off: {listed(others[:_NAMED])}{' and others' if len(others) > _NAMED else ''}." if others else ""
    return f"WRONG KERNEL ({format_p(p)}): {_told(worst, asked)}.{more}{_only_if_reversible(found)}"


def _told(row: KernelRow, asked: _Asked) -> str:
    when = f"after {asked.told} from the truth"
    if row.test == "renewed":
        when = f"after {counted(asked.rounds, 'round')} of {asked.told} with new data"
    if row.measure == "rank":
        return (
            f"in chains of {2 * asked.steps} steps that run both ways from the truth, the truth has some ranks of "
            f"{row.f} more often than others"
        )
    if row.measure == "spread":
        way = "wide" if row.estimate > 1 else "narrow"
        size = f"{number(row.estimate)} times its sd ({_ends(row, 1.0)}), in normal scores"
        return f"{when}, {row.f} is spread too {way}: {size}"
    size = f"{number(abs(row.estimate))} sd too {'high' if row.estimate > 0 else 'low'}"
    return f"{when}, {row.f} is {size} ({_ends(row, 0.0)}), in normal scores"


def _ends(row: KernelRow, ideal: float) -> str:
    """Return an interval; the words before it say on which side of the ideal it lies, if it lies on one."""
    if row.low <= ideal <= row.high:
        return f"{number(row.low)} to {number(row.high)}"
    low, high = sorted((abs(row.low), abs(row.high)))
    return f"{number(low)}-{number(high)}"


def _only_if_reversible(found: Sequence[KernelRow]) -> str:
    if any(row.test in ("moved", "renewed") for row in found):
        return ""
    return (
        " Only tests for reversible kernels found this: a right kernel that is not reversible, such as a Gibbs sampler "
        "in a fixed order, fails them; leave out reversible=True if yours is none."
    )
