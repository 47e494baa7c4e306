"""Procedures side by side, on the same truths and data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Unpack

import numpy as np

from ..characters import one_line, printable
from ..errors import InvalidStudy
from ..execution.runs import run
from ..functions import ALL
from ..judgement.column import strong_columns
from ..judgement.groups import one_of_each
from ..judgement.judging import CheckSettings, judge, need_settings, split
from ..judgement.result import Result
from ..judgement.summary import SHOWN, place, said
from ..judgement.text import Text, counted, cut, table
from ..question.study import Study, StudySettings, as_study, need_known
from ..replicates.record import Replicates
from ..statistics.arguments import need_fraction
from ..statistics.effects import Interval
from .ranking import apart, best_of, divergence
from .rows import MEASURES, differences_of, divergence_difference, joint_difference, joint_row, rows_of
from .sentences import sentence_of
from .shared import ends, ideal, need_strong, noted, own_store

#: Columns that a name has in a line.
_NAME = 20
_FOOT = "* simultaneous over procedures, test functions and measures; behind a difference: its interval excludes 0"
_UNLIKE = (
    "procedures are compared on the same truths and test functions, but these studies have others; give them one "
    "belief, one seed, one batch and one f."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Procedures side by side.

    Attributes
    ----------
    rows
        Spread, bias, coverage of nominal 90 % intervals and mean CRPS of every procedure and test function, and the
        mean energy score if theta has several entries; intervals hold jointly. ``of`` is the procedure's name.
    differences
        The same for pairs, ``of`` being two names, the first minus the second, from the replicates that neither lost:
        of those measures that both have a finite estimate of, and of coverage where both have the same nominal one;
        and of the divergence, which decides who is ahead.
    divergence
        For every procedure, the Kullback-Leibler divergence of its z, taken as normal, from the standard normal law,
        averaged over test functions: 0 is calibrated in spread and bias; infinite where one of them is.
    best
        The names that no other is ahead of for sure; a single one if it is ahead of all others. See the notes of
        :func:`~ringtrue.compare`.
    results
        The result of each procedure.
    """

    rows: tuple[Interval, ...]
    differences: tuple[Interval, ...]
    divergence: Mapping[str, float]
    best: tuple[str, ...]
    results: Mapping[str, Result]
    confidence: float

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """The pairs whose calibration differs for sure, whichever of the two is nearer to calibrated."""
        return apart(self.differences)

    @property
    def sentence(self) -> str:
        """Who is ahead, or who differs, or that no difference is clear; whom to prefer; and every verdict."""
        return sentence_of(self)

    def __str__(self) -> str:
        pairs = [("difference", "divergence", "")]
        pairs += [(" - ".join(r.of), said(r), "*" if r.clear else "") for r in self.differences if r.f == ALL]
        blocks = [one_line(self.sentence), _verdicts(self.results), self._lines()]
        if len(pairs) > 1:
            blocks.append(table(pairs))
        foot = f"{100 * self.confidence:g} % intervals, all together; *: excludes 0. Every difference: .details()."
        return "\n\n".join([*blocks, foot])

    def _lines(self) -> str:
        """Return one line per test function and procedure, worst first; of many test functions the worst."""
        found = {(r.f, r.of, r.name): said(r) for r in self.rows}
        names = list(dict.fromkeys(r.f for r in self.rows if r.f != ALL))
        names.sort(key=lambda name: min(place(result, name) for result in self.results.values()))
        cells: list[tuple[str, ...]] = [("function", "procedure", *MEASURES)]
        for f, of in product(names[:SHOWN], self.results):
            cells.append((cut(f, _NAME), cut(of, _NAME), *(found.get((f, of, name), "-") for name in MEASURES)))
        more = len(names) - SHOWN
        return table(cells) + (f"\nand {counted(more, 'more test function')}: .details()" if more > 0 else "")

    def details(self) -> Text:
        """Return every measure and difference as tables of text, which show themselves at a prompt."""
        percent = f"{100 * self.confidence:g} % interval*"
        cells = [("procedure", "test function", "measure", "estimate", percent, "ideal")]
        cells += [(r.of, r.f, r.name, f"{r.estimate:.3g}", ends(r), ideal(r.ideal)) for r in self.rows]
        pairs = [("difference", "test function", "measure", "estimate", percent, "")]
        pairs += [
            (" - ".join(r.of), r.f, r.name, f"{r.estimate:.3g}", ends(r), "*" if r.clear else "")
            for r in self.differences
        ]
        blocks = [one_line(self.sentence), _verdicts(self.results), table(cells, right={3, 5})]
        if self.differences:
            blocks.append(table(pairs, right={3}))
        return Text(printable("\n\n".join([*blocks, _FOOT])))

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.results)}; best: {', '.join(self.best)})"


def _verdicts(results: Mapping[str, Result]) -> str:
    """Return the table of verdicts, with the losses if there were any."""
    cells = [("procedure", "verdict", "p", "lost")]
    for name, result in results.items():
        lost = str(len(result.replicates.failures))
        cells.append((name, result.verdict.words, f"{result.pvalue:.2g}", lost))
    if any(result.replicates.failures for result in results.values()):
        return table(cells, right={3})
    return table([row[:3] for row in cells])


def compare(
    procedures: Mapping[str, Any],
    belief: Any = None,
    model: Any = None,
    *,
    n: int,
    confidence: float = 0.95,
    **settings: Unpack[CheckSettings],
) -> Comparison:
    """Compare procedures on the same truths and data.

    Parameters
    ----------
    procedures
        Name to procedure, two or more; or to a :class:`~ringtrue.Study`, all of which draw the same truths.
    belief, model, n
        As in :func:`~ringtrue.check`; one test function at least must be of theta alone.
    confidence
        Of the intervals, jointly.
    **settings
        As in :func:`~ringtrue.check`; ``alpha`` is 1 - confidence if left out, and ``store`` is a folder here, with a
        file per procedure.

    Notes
    -----
    Everything that is said holds jointly with chance ``confidence``: of procedures that are equal none is called ahead
    of another, and no difference is starred, but with chance 1 - confidence, over all pairs, test functions and
    measures. Half of that is for the rows; a quarter for the one difference of every pair that decides; a quarter for
    all other differences. Procedures that are equal up to rounding have no clear difference at all: no interval is
    shorter than 1e-9 sd to either side.

    A procedure is ahead of another if the interval of the paired difference of their divergences says so: the
    divergence of N(bias, spread^2) from N(0, 1), averaged over test functions, which is what multiplying the reported
    sd by the spread and adding the bias would gain in log score, less what noise adds to it. It is also ahead if that
    follows from the rows of both alone, which is all that decides where replicates were lost or an estimate is
    infinite; coverage bounds the divergence from below where the spread is unbounded. It sees spread and bias only, on
    average over test functions.

    Of replicates that share a theta (``datasets=``) one of each is compared, the same for all procedures; the results
    of each are of all replicates.

    To differ is less than to be ahead. Scores of spread 1 and 1.1 on the same 200 datasets differ beyond doubt, but
    0.95 and 1.05 would look nearly the same: even the best test of which is nearer to calibrated finds it in 17 % of
    runs at 95 %, since P(X > 0.91 q) = 0.17 for chi-squared X with 200 degrees of freedom and 97.5 % quantile q.

    Differences of spread are differences of its logarithm. They and those of bias are differences of the estimates that
    the rows have, on ranks those of the rank likelihood; what every replicate adds to the one less what it adds to the
    other gives their standard error, and Student's quantile has Satterthwaite's degrees of freedom, or is Hall's for
    skewed means where that is larger. A difference of coverage is clear only if McNemar's exact test says so. If z is
    not Gaussian, exact outputs and draws of different numbers have different spreads, since ranks do not see how far
    out a truth is: see :func:`~ringtrue.statistics.effects.spread_and_bias`.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> from ringtrue.procedures import Inflated, NormalMean
    >>> bayes = NormalMean()
    >>> compare({"Bayes": bayes, "narrow": Inflated(bayes, 0.5)}, Normal(0, 1), bayes.simulate, n=500, batch=500).best
    ('Bayes',)
    """
    need_known("compare", settings, {"n", "confidence", *CheckSettings.__optional_keys__})
    need_fraction(confidence=confidence)
    judging, running = split(settings)
    judging.setdefault("alpha", 1 - confidence)
    need_settings(**judging)
    asking = {name: running.pop(name) for name in StudySettings.__annotations__ if name in running}
    named = _named(procedures)
    _need_takers(named.values(), belief=belief, model=model)
    studies = {name: _study(one, belief, model, asking) for name, one in named.items()}
    # The first speaks for all: others with other test functions are refused below.
    need_strong(next(iter(studies.values())))
    _need_alike(studies)
    ran = {name: _replicates(name, study, n, running) for name, study in studies.items()}
    _need_pairs(ran)
    results = {name: judge(one, **judging) for name, one in ran.items()}
    # Paired differences need independent pairs: of groups, the same replicate of each for all procedures.
    return _compared({name: one_of_each(one) for name, one in ran.items()}, results, confidence)


def _need_takers(procedures: Iterable[Any], **given: Any) -> None:
    """Refuse a belief and a model that no procedure is run with, since all of them are studies."""
    extra = [name for name, part in given.items() if part is not None]
    if extra and all(isinstance(one, Study) for one in procedures):
        raise InvalidStudy(f"Studies say all there is to ask, but {' and '.join(extra)} came too; leave them out.")


def _study(procedure: Any, belief: Any, model: Any, asking: Any) -> Study:
    """Return the study of a procedure, or the one that stands in its place."""
    if isinstance(procedure, Study):
        return as_study(procedure, **asking)
    return as_study(belief, model, procedure, **asking)


def _need_alike(studies: Mapping[str, Study]) -> None:
    """Refuse studies that cannot be paired, as far as that shows before they run."""
    asked = [
        (one.seed, one.batch, one.datasets, [(f.name, f.kind, f.sees) for f in one.functions])
        for one in studies.values()
    ]
    if any(one != asked[0] for one in asked):
        raise InvalidStudy(_UNLIKE)


def _need_pairs(ran: Mapping[str, Replicates]) -> None:
    """Refuse studies that did not draw the same truths."""
    first, *others = ran.values()
    for other in others:
        # A lost replicate has nan for a truth, and nan equals nothing.
        both = first.kept & other.kept
        if not np.array_equal(first.truth[both], other.truth[both]):
            raise InvalidStudy(_UNLIKE)


def _named(procedures: Any) -> dict[str, Any]:
    """Return the procedures by names that differ as text, which is what tables and files have of them."""
    if not isinstance(procedures, Mapping) or len(procedures) < 2:
        raise InvalidStudy("compare needs a dict of two or more procedures, {name: procedure}.")
    named = {str(name): procedure for name, procedure in procedures.items()}
    if len(named) < len(procedures):
        raise InvalidStudy(f"procedures need names that differ as text, but {list(procedures)} arrived.")
    return named


def _replicates(name: str, study: Study, n: int, settings: Any) -> Replicates:
    with noted(f"the procedure {name!r}"):
        ran = run(study, n=n, **own_store(settings, name))
    if ran.lost == ran.n:
        raise InvalidStudy(f"at least one replicate is needed to compare, but {name} lost all {ran.n}; fix or drop it.")
    return ran


def _compared(ran: Mapping[str, Replicates], results: Mapping[str, Result], confidence: float) -> Comparison:
    names, pairs = list(ran), list(combinations(ran, 2))
    columns = {name: strong_columns(one) for name, one in ran.items()}
    places = [column.k for column in columns[names[0]]]
    alone, decisive, paired = _confidences(confidence, len(names), len(pairs), len(places))
    rows = [row for name in names for column in columns[name] for row in rows_of(name, column, alone)]
    rows += [row for name in names for row in joint_row(name, ran[name], alone)]
    gaps = [row for a, b in pairs for row in divergence_difference(a, b, ran, places, decisive)]
    gaps += [row for a, b in pairs for k in places for row in differences_of(a, b, ran, k, paired)]
    gaps += [row for a, b in pairs for row in joint_difference(a, b, ran, paired)]
    # The rows allow for whatever was lost, and differences do not.
    whole = [row for row in gaps if not any(ran[name].failures for name in row.of)]
    sizes = {name: divergence(rows, name) for name in names}
    return Comparison(tuple(rows), tuple(gaps), sizes, best_of(names, rows, whole), results, confidence)


def _confidences(confidence: float, names: int, pairs: int, functions: int) -> tuple[float, float, float]:
    """Return that of each row, of each difference of divergences and of each other difference, by Bonferroni's rule.

    Half of the error is for the rows, which decide where replicates were lost; a quarter for the one difference of a
    pair that decides otherwise, so that more test functions do not hide it; a quarter for all other differences.
    """
    # One more for the score of all entries together.
    error, each = 1 - confidence, functions * len(MEASURES) + 1
    return 1 - error / 2 / (names * each), 1 - error / 4 / pairs, 1 - error / 4 / (pairs * each)
