"""What one would write in a paper: a paragraph about how a result came about, and the references that it cites.

Every sentence is about what this run did. It reads a result and computes no statistics.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ..replicates.record import GROUP, WEIGHTED
from .column import Column, columns_of, strong_columns
from .levels import ADDED, budget, chain, levels
from .outcomes import outcomes_of
from .sentences.phrases import interval, listed, share_of
from .summary import sizes_worst_first
from .text import Text, counted, format_p, percent
from .verdict import Tolerance

if TYPE_CHECKING:
    from .result import Result


@dataclass(frozen=True)
class Reference:
    """A publication: its key, how a text cites it, and its BibTeX entry."""

    key: str
    cited: str
    kind: str
    fields: tuple[tuple[str, str], ...]

    @property
    def bibtex(self) -> str:
        """The entry."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields)
        return f"@{self.kind}{{{self.key},\n{lines}\n}}"


PAPER = Reference(
    "cockayne2022",
    "Cockayne et al., 2022",
    "article",
    (
        ("author", "Cockayne, Jon and Graham, Matthew M. and Oates, Chris J. and Sullivan, T. J. and Teymur, Onur"),
        ("title", "Testing Whether a Learning Procedure is Calibrated"),
        ("journal", "Journal of Machine Learning Research"),
        ("volume", "23"),
        ("number", "203"),
        ("pages", "1--36"),
        ("year", "2022"),
    ),
)
SBC = Reference(
    "talts2018",
    "Talts et al., 2018",
    "misc",
    (
        ("author", "Talts, Sean and Betancourt, Michael and Simpson, Daniel and Vehtari, Aki and Gelman, Andrew"),
        ("title", "Validating {B}ayesian Inference Algorithms with Simulation-Based Calibration"),
        ("note", "arXiv:1804.06788"),
        ("year", "2018"),
    ),
)
QUANTILES = Reference(
    "cook2006",
    "Cook et al., 2006",
    "article",
    (
        ("author", "Cook, Samantha R. and Gelman, Andrew and Rubin, Donald B."),
        ("title", "Validation of Software for {B}ayesian Models Using Posterior Quantiles"),
        ("journal", "Journal of Computational and Graphical Statistics"),
        ("volume", "15"),
        ("number", "3"),
        ("pages", "675--692"),
        ("doi", "10.1198/106186006X136976"),
        ("year", "2006"),
    ),
)
ECDF = Reference(
    "sailynoja2022",
    "Säilynoja et al., 2022",
    "article",
    (
        ("author", 'S{\\"a}ilynoja, Teemu and B{\\"u}rkner, Paul-Christian and Vehtari, Aki'),
        (
            "title",
            "Graphical Test for Discrete Uniformity and its Applications in Goodness-of-Fit Evaluation and Multiple "
            "Sample Comparison",
        ),
        ("journal", "Statistics and Computing"),
        ("volume", "32"),
        ("number", "2"),
        ("pages", "32"),
        ("doi", "10.1007/s11222-022-10090-6"),
        ("year", "2022"),
    ),
)
QUANTITIES = Reference(
    "modrak2025",
    "Modrák et al., 2025",
    "article",
    (
        (
            "author",
            "Modr{\\'a}k, Martin and Moon, Angie H. and Kim, Shinyoung and B{\\\"u}rkner, Paul and Huurre, Niko and "
            "Faltejskov{\\'a}, Kate{\\v{r}}ina and Gelman, Andrew and Vehtari, Aki",
        ),
        (
            "title",
            "Simulation-Based Calibration Checking for {B}ayesian Computation: The Choice of Test Quantities Shapes "
            "Sensitivity",
        ),
        ("journal", "Bayesian Analysis"),
        ("volume", "20"),
        ("number", "2"),
        ("pages", "461--488"),
        ("doi", "10.1214/23-BA1404"),
        ("year", "2025"),
    ),
)
GIVEN = Reference(
    "sailynoja2025",
    "Säilynoja et al., 2025",
    "misc",
    (
        (
            "author",
            'S{\\"a}ilynoja, Teemu and Schmitt, Marvin and B{\\"u}rkner, Paul-Christian and Vehtari, Aki',
        ),
        ("title", "Posterior {SBC}: Simulation-Based Calibration Checking Conditional on Data"),
        ("note", "arXiv:2502.03279"),
        ("year", "2025"),
    ),
)
#: All that may be cited.
REFERENCES = (PAPER, SBC, QUANTILES, ECDF, QUANTITIES, GIVEN)

#: What each level asks, in a sentence about it.
_ASKED = {
    "exact": "whether the output is the distribution of the parameter given the data",
    "auto": "whether the truth follows the output, given the output",
    "strong": "whether the position of the true value in the output is uniform",
    "reversible": "whether the truth and a draw of the output can be exchanged",
    "weak": "whether draws of the outputs, averaged over data, follow the prior",
}
_STOPPED = {
    "evidence": "the run stopped before the largest number allowed, with enough evidence of an error",
    "certified": "the run stopped before the largest number allowed, with all errors shown to be tolerable",
    "max_n": "the run might have stopped earlier, and went on to the largest number allowed",
    "max_seconds": "the run stopped when its time was up",
}
#: What tests are called in a text, by how their names begin.
_TESTS = {
    "combination": (
        f"the smallest p-value of several tests, corrected for the choice: of the ECDF ({ECDF.cited}), of Neyman's "
        f"smooth test and of the mean of normal scores, and, where there is more than one draw, of the sum of their "
        f"squares ({QUANTILES.cited})"
    ),
    "ecdf_gamma": f"the ECDF and its simultaneous confidence band ({ECDF.cited})",
    "cook": f"the sum of squares of normal scores ({QUANTILES.cited})",
    "chains": "mean differences between the places of truths and of draws in the chains, which are 0 if all is right",
    "probabilities": "outcomes drawn anew with the reported probabilities",
    "randomised labels": "randomising which of truth and draws is called the truth",
}


def methods_text(result: Result) -> Text:
    """Return a paragraph about how the result came about."""
    parts = [
        _framework(),
        _replicates(result),
        *_losses(result),
        *_positions(result),
        *_tests(result),
        _levels(result),
        _error_rates(result),
        *_stopping(result),
        _verdict(result),
        *_sizes(result),
        *(f"The inputs gave reason for doubt: {one}." for one in result.suspicions),
    ]
    return Text(" ".join(parts))


def references(result: Result) -> Text:
    """Return the BibTeX entries of what the paragraph cites."""
    text = methods_text(result)
    return Text("\n\n".join(one.bibtex for one in REFERENCES if one.cited in text))


def _framework() -> str:
    # By name: the package itself imports more than a judgement may see.
    own = import_module(__name__.partition(".")[0]).__version__
    versions = f"version {own}, with NumPy {np.__version__}, SciPy {scipy.__version__} and Python "
    return (
        f"The inference procedure was checked by simulation-based calibration ({SBC.cited}; {PAPER.cited}) with the "
        f"Python package ringtrue ({versions}{platform.python_version()})."
    )


def _replicates(result: Result) -> str:
    ran, header = result.replicates, result.replicates.header
    law = "drawn from the prior" if header.of_belief else "drawn from another distribution than the prior"
    if header.of_output:
        law = f"drawn from the procedure's output for the observed data (posterior SBC; {GIVEN.cited})"
    seed = f"; seed {ran.seed}" if header.reproducible else "; not reproducible from a seed"
    if header.given and header.of_belief:
        law = "taken to be drawn from the prior"
    text = (
        f"Each of n = {ran.n} replicates consists of a true parameter {law}, data simulated from it, and the output of "
        f"the procedure for these data{seed}."
    )
    if header.given:
        text += " They were simulated before, and handed over."
    if GROUP in ran.arrays:
        many = len(np.unique(ran.arrays[GROUP]))
        text += f" Replicates come in {many} groups, and only groups are taken to be independent."
    return text


def _losses(result: Result) -> list[str]:
    ran = result.replicates
    if not ran.failures:
        return []
    verb = "was" if len(ran.failures) == 1 else "were"
    return [
        f"Of these, {len(ran.failures)} {verb} lost to errors; p-values and intervals hold whatever values they would "
        f"have had."
    ]


def _positions(result: Result) -> list[str]:
    """Say how the position of the truth came about, of all test functions by what was known of the outputs."""
    found: dict[str, list[str]] = {}
    for column in columns_of(result.replicates):
        found.setdefault(_route(column), []).append(column.name)
    if not found:
        return []
    lines = [f"for {listed(names)} {how}" for how, names in found.items()]
    weighted = bool(np.bitwise_or.reduce(result.replicates.treated, initial=0) & WEIGHTED)
    rest = " Weighted draws were resampled to their effective number, which makes this approximate." if weighted else ""
    many = counted(len(result.replicates.functions), "test function")
    were = "was" if len(result.replicates.functions) == 1 else "were"
    return [f"There {were} {many}: {'; '.join(lines)}.{_added(result)}{rest}"]


def _added(result: Result) -> str:
    names = [one.name for one in result.replicates.functions if one.kind in ADDED]
    return f" The package adds {_and(names)}, of all parameters together." if names else ""


def _route(column: Column) -> str:
    few, most = column.fewest_and_most
    draws = f"{most} draws" if few == most else f"{few} to {most} draws"
    if column.chains:
        return (
            f"the truth and the draws of each Markov chain were placed in the other chains ({draws} in all), without "
            f"thinning"
        )
    if not column.lost and outcomes_of(column):
        return "outcomes were compared with " + (f"shares of {draws}" if most else "the reported probabilities")
    if most == 0:
        return f"the position is the value of the output's exact distribution function at the truth ({QUANTILES.cited})"
    if few == 0:
        return f"the position comes from the output's exact distribution function or from a rank among up to {draws}"
    ties = ", ties included" if column.tied else ""
    return f"the truth was ranked among {draws} of the output{ties} ({SBC.cited})"


def _tests(result: Result) -> list[str]:
    if result.look.anytime or not strong_columns(result.replicates):
        return []
    methods = dict.fromkeys(_named(row.method) for row in result.tests if row.level == "strong")
    text = f"The test statistic was {_and(list(methods))}."
    if result.replicates.header.selection is not None:
        text += " The test function was chosen on some of the replicates and tested on the others."
    return [text]


def _named(method: str) -> str:
    return next((text for name, text in _TESTS.items() if method.startswith(name)), f"that of the {method} test")


def _levels(result: Result) -> str:
    """Say which levels were tested, which share of the error rate each had, and what was beside the verdict."""
    shares = budget(list(result.levels.values()))
    named = [_level(level.name) for level in chain() if level.name in shares]
    rates = [f"{name} {percent(share)}" for name, share in shares.items()]
    text = f"The verdict rests on {_and(named)}."
    if len(rates) > 1:
        text += f" P-values were adjusted for test functions and levels, which share the error rate ({_and(rates)})."
    elif len(result.replicates.functions) > 1:
        text += " P-values were adjusted for the number of test functions."
    beside = [_level(name) for name in result.levels if levels()[name].share is None]
    return text + (f" Also tested, beside the verdict: {_and(beside)}." if beside else "")


def _level(name: str) -> str:
    cited = f"; {QUANTITIES.cited}" if name == "exact" else ""
    return f"{name} calibration ({_ASKED[name]}{cited})"


def _error_rates(result: Result) -> str:
    text = (
        f"The chance of calling a calibrated procedure miscalibrated is at most {result.alpha:g}; tolerated were "
        f"{_tolerated(result)}."
    )
    return f"{text} {said}" if (said := result.look.said(result.alpha)) else text


def _tolerated(result: Result) -> str:
    limits: Tolerance = result.tolerance
    every = [outcomes_of(column) for column in strong_columns(result.replicates)]
    parts = []
    if not all(every) or not every:
        parts += [
            f"errors of {100 * limits.spread:g} % in spread",
            f"{limits.bias:g} posterior sd in location",
            f"{100 * limits.coverage:g} percentage points in the coverage of 90 % intervals",
        ]
    if any(every):
        parts.append(f"{100 * limits.probability:g} percentage points in probabilities")
    return _and(parts)


def _stopping(result: Result) -> list[str]:
    if not result.look.anytime:
        return []
    why = f": {_STOPPED[result.stopped]}" if result.stopped else ""
    return [
        f"The number of replicates may depend on what was seen{why}. P-values and intervals hold at any such number: "
        f"evidence was accumulated over replicates as e-values, and p is 1 over the largest."
    ]


def _verdict(result: Result) -> str:
    return f"The verdict was {result.verdict.words} ({format_p(result.pvalue)})."


def _sizes(result: Result) -> list[str]:
    """Give the sizes of the test function with most evidence."""
    every = [(name, sizes) for name, sizes in sizes_worst_first(result) if "spread" in sizes]
    if not every or not all(np.isfinite(every[0][1][name].estimate) for name in ("spread", "bias", "coverage")):
        return []
    name, sizes = every[0]
    which = f"For {name}" if len(every) == 1 else f"For {name}, which had the most evidence of single test functions"
    together = f"{100 * (1 - result.spent):g} % intervals, simultaneous over all {counted(len(every), 'test function')}"
    return [
        f"{which}, the reported sd should be multiplied by {interval(sizes['spread'])}, the bias was "
        f"{interval(sizes['bias'])} reported sd, and nominal {percent(sizes['coverage'].ideal)} intervals contained "
        f"the truth in {share_of(sizes['coverage'])} ({together})."
    ]


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
