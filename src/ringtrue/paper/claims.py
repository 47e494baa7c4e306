"""The index of the paper's numbered statements: what each comes to here, and the command that shows it.

Numbers are those that LaTeX gives the source text: statements share one counter per section, figures have their own.
What the text names without a number is listed where a reader would look for it. Data and their printing, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["Definition", "Lemma", "Remark", "Example", "Corollary", "Figure", "Named"]
#: What is said of a claim that nothing here shows.
NOT_YET = "not here yet"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper.

    Attributes
    ----------
    kind, number
        As in the text; what has no number has an empty one.
    title
        What it is about.
    finding
        What came out: "holds", or what holds instead.
    command
        A command line of ``ringtrue`` or ``pytest`` that shows it; empty for what is not here yet.
    """

    kind: Kind
    number: str
    title: str
    finding: str
    command: str

    @property
    def name(self) -> str:
        """What the text calls it."""
        return f"{self.kind} {self.number}".strip()


_EXAMPLES, _RICHARDSON, _ROBUST = (f"ringtrue paper {name}" for name in ("examples", "richardson", "robust"))

CLAIMS: tuple[Claim, ...] = (
    Claim("Definition", "2.1", "learning procedure", "as defined", "ringtrue check examples/study.py"),
    Claim(
        "Definition",
        "2.2",
        "regular distribution",
        "not needed: atoms are spread at random",
        "pytest tests/replicates/test_positions.py::test_atoms_give_exactly_uniform_u",
    ),
    Claim(
        "Lemma",
        "2.3",
        "F(X) is uniform",
        "holds",
        "pytest tests/replicates/test_positions.py::test_exact_route_is_the_distribution_function",
    ),
    Claim(
        "Definition",
        "2.4",
        "test functions",
        "what is constant is refused",
        "pytest tests/question/test_bad_input.py::test_constant_test_function_is_refused",
    ),
    Claim("Lemma", "2.5", "test functions tell laws apart", "holds; one of them need not", _RICHARDSON),
    Claim("Definition", "2.6", "data-generating model", "as defined", "ringtrue check examples/study.py"),
    Claim(
        "Definition",
        "2.7",
        "regular learning procedure",
        "not needed: a point mass has its u",
        "pytest tests/replicates/test_positions.py::test_point_masses_have_a_place_among_normals",
    ),
    Claim("Definition", "2.8", "strongly calibrated", "tested for one belief", _EXAMPLES),
    Claim(
        "Remark",
        "2.9",
        "credible sets cover",
        "holds",
        "pytest tests/plots/test_positions.py::test_coverage_at_every_level_is_that_of_the_measure",
    ),
    Claim("Remark", "2.10", "testing strong calibration", "f = theta is not enough for d = 1", _RICHARDSON),
    Claim(
        "Remark",
        "2.11",
        "several datasets per parameter",
        "tested by groups",
        "pytest tests/judgement/test_groups.py::test_two_datasets_per_theta_find_an_error",
    ),
    Claim("Remark", "2.12", "how far from calibrated", "holds", _EXAMPLES),
    Claim("Example", "2.13", "Bayes is strongly calibrated", "holds", _EXAMPLES),
    Claim("Example", "2.14", "so is the data-agnostic procedure", "holds", _EXAMPLES),
    Claim(
        "Example",
        "2.15",
        "so are partial posteriors",
        "holds",
        "pytest tests/procedures/test_bayes.py::test_partial_posterior_is_strong_and_weak_but_not_exact",
    ),
    Claim("Example", "2.16", "so are stationary iterations", "for linear f only", _RICHARDSON),
    Claim("Definition", "2.17", "weakly calibrated", "tested for one belief", _EXAMPLES),
    Claim("Remark", "2.18", "testing weak calibration", "holds", _EXAMPLES),
    Claim("Lemma", "2.19", "strong implies weak", "holds; the proof needs a repair", _RICHARDSON),
    Claim("Example", "2.20", "weak does not imply strong", "holds", _EXAMPLES),
    Claim("Example", "2.21", "fractional posteriors are not weak", "holds", _ROBUST),
    Claim("Example", "2.22", "too narrow and too wide", "holds, with eta for sigma", _EXAMPLES),
    Claim(
        "Corollary",
        "A.1",
        "P(f(theta) <= f(draw)) = 1/2 for all f",
        "holds for independent draws; for f = theta alone it does not",
        "pytest tests/paper/test_claims.py::test_the_corollary_needs_more_than_the_identity",
    ),
    Claim("Figure", "2.1", "Bayes and mirror Bayes", "holds", _EXAMPLES),
    Claim("Figure", "2.2", "eta = 0.5 and 2", "holds", _EXAMPLES),
    Claim("Figure", "3.1", "Laplace", "strong holds, weak up to N = 20 cannot", "ringtrue paper laplace"),
    Claim("Figure", "3.2", "ABC, distribution functions", "holds", "ringtrue paper abc"),
    Claim(
        "Figure", "3.3", "ABC, statistics and the dip", "holds; a strong dip is not established", "ringtrue paper abc"
    ),
    Claim("Figure", "3.4", "ODE solvers", "holds but for one panel", "ringtrue paper odes"),
    Claim("Figure", "3.5", "data-driven f", "holds; the best x is 1, not 0", "ringtrue paper gp"),
    Claim("Figure", "3.6", "robust calibration", "above a cross-over only", _ROBUST),
    Claim("Named", "", "footnote on the unfocused forecaster", "the wrong way round", "ringtrue paper forecasters"),
    Claim(
        "Named",
        "",
        "detailed balance (the reversible level)",
        "tested, exact at any n",
        "pytest tests/judgement/test_reversible.py::test_a_turned_mean_is_weak_and_not_reversible",
    ),
    Claim(
        "Named",
        "",
        "the output as an invariant Markov kernel",
        "kernels are tested, exact at any n",
        "pytest tests/judgement/test_kernels.py::test_an_output_is_a_kernel",
    ),
    Claim("Named", "", "Harrison et al.'s multi-dimensional test", NOT_YET, ""),
    Claim(
        "Named",
        "",
        "Geweke's successive-conditional test",
        "short chains from the truth in place of one",
        "pytest tests/judgement/test_kernels.py::test_wrong_kernels_are_found",
    ),
)


def text(claims: Iterable[Claim] = CLAIMS) -> str:
    """Return the index as lines for a terminal, and how many are shown.

    Examples
    --------
    >>> print(text(CLAIMS[:1]))
    Definition 2.1  learning procedure  as defined  ringtrue check examples/study.py
    1 of 1 shown.
    """
    rows = [(claim.name, claim.title, claim.finding, claim.command) for claim in claims]
    wide = [max(len(row[j]) for row in rows) for j in range(3)]
    lines = ["  ".join([*(cell.ljust(n) for cell, n in zip(row, wide, strict=False)), row[3]]).rstrip() for row in rows]
    return "\n".join([*lines, f"{sum(bool(row[3]) for row in rows)} of {len(rows)} shown."])


def markdown(claims: Iterable[Claim] = CLAIMS) -> str:
    """Return the index as a table for the documentation.

    Examples
    --------
    >>> markdown(CLAIMS[:1]).splitlines()[-1]
    '| Definition 2.1 | learning procedure | as defined | `ringtrue check examples/study.py` |'
    """
    head = ["| in the paper | about | here | shown by |", "|---|---|---|---|"]
    shown = [(claim, f"`{claim.command}`" if claim.command else "") for claim in claims]
    return "\n".join([*head, *(f"| {c.name} | {c.title} | {c.finding} | {command} |" for c, command in shown)])
