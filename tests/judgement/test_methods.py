"""The paragraph for a paper: it states what this run did, and cites what it has entries for."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.judgement.levels import budget
from ringtrue.judgement.methods import REFERENCES
from ringtrue.judgement.text import format_p

from ..builders import BELIEF, complete, grid, noisy, replicates, says, too_narrow


def _drawn(n: int, shape: tuple[int, ...] = (19,)) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    return rng.normal(size=n), rng.normal(size=(n, *shape))


def _fails(mu0: Any, y: Any) -> Any:
    if y > 1.5:
        raise ArithmeticError("no convergence")
    return too_narrow(mu0, y)


@cache
def _results() -> dict[str, rt.Result]:
    """Return results that came about in different ways."""
    rng = np.random.default_rng(3)
    p = rng.random(150)
    switch = (rng.random(150) < p).astype(float), (rng.random((150, 29)) < p[:, None]).astype(float)
    return {
        "exact laws": rt.check(BELIEF, noisy, too_narrow, n=120, seed=7),
        "ranks": rt.check_draws(*_drawn(90), alpha=0.01, tolerance=rt.Tolerance(spread=0.25)),
        "several": rt.check_draws(rng.normal(size=(80, 3)), rng.normal(size=(80, 9, 3))),
        "chains": rt.check_draws(*_drawn(60, (2, 25)), chains=2),
        "labels": rt.check_draws(*switch, f={"hit": lambda t: t}),
        "until": rt.check(BELIEF, noisy, too_narrow, until="decided", max_n=400),
        "losses": rt.check(BELIEF, noisy, _fails, n=70, on_failure="record"),
        "another test": rt.check_draws(*_drawn(50), test="ks"),
        "groups": rt.check_draws(*_drawn(100), groups=np.repeat(np.arange(50), 2)),
        "one function": rt.judge(replicates(grid(200), names=["theta"])),
        "of the data": rt.check(BELIEF, noisy, rt.procedures.NormalMean(), n=40, f={"gap": lambda t, y: t - y}),
    }


NAMES = ["exact laws", "ranks", "several", "chains", "labels", "until", "losses", "another test", "groups"]
NAMES += ["one function", "of the data"]


def _number(pattern: str, text: str) -> float:
    """Return the one number that the text has at this place."""
    (found,) = re.findall(pattern, text)
    return float(found)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_the_result(name: str) -> None:
    """The number of replicates, test functions and losses, the seed, alpha, tolerance and p-value can be read back."""
    result = _results()[name]
    text, ran = str(result.methods_text()), result.replicates
    assert _number(r"n = (\d+) replicates", text) == ran.n
    assert _number(r"; seed (\d+)", text) == ran.seed
    assert _number(r"There w\w+ (\d+) test function", text) == len(ran.functions)
    assert _number(r"miscalibrated is at most ([\d.]+);", text) == result.alpha
    assert f"The verdict was {result.verdict.words} ({format_p(result.pvalue)})." in text
    if "in spread" in text:
        assert _number(r"errors of ([\d.]+) % in spread", text) == 100 * result.tolerance.spread
        assert _number(r"([\d.]+) posterior sd", text) == result.tolerance.bias
        assert _number(r"([\d.]+) percentage points in the coverage", text) == 100 * result.tolerance.coverage
    losses = re.findall(r"Of these, (\d+) w", text)
    assert losses == ([str(len(ran.failures))] if ran.failures else [])
    assert f"version {rt.__version__}, with NumPy {np.__version__}" in text


@pytest.mark.parametrize("name", NAMES)
def test_levels_are_those_that_were_tested(name: str) -> None:
    """Every level of the result is named, no other, and those of the verdict with their shares of the error rate."""
    result = _results()[name]
    text = str(result.methods_text())
    assert set(re.findall(r"(\w+) calibration \(whether", text)) == set(result.levels)
    shares = budget(list(result.levels.values()))
    if len(shares) > 1:
        found = dict(re.findall(r"(\w+) (\d+) %(?:,| and|\))", text.partition("share the error rate (")[2]))
        assert {level: round(100 * share) for level, share in shares.items()} == {k: int(v) for k, v in found.items()}
    else:
        assert "share the error rate" not in text


@pytest.mark.parametrize("name", NAMES)
def test_what_is_cited_has_an_entry(name: str) -> None:
    """Names and years in the paragraph are those of the BibTeX entries, one each, and no entry is cited nowhere."""
    result = _results()[name]
    text, entries = str(result.methods_text()), str(result.references())
    cited = set(re.findall(r"[A-ZÀ-Ž][\w-]+ et al\., \d{4}", text))
    known = {one.cited: one for one in REFERENCES}
    assert cited <= known.keys()
    assert set(re.findall(r"^@\w+\{(\w+),$", entries, re.MULTILINE)) == {known[one].key for one in cited}
    for one in cited:
        assert known[one].bibtex in entries
        assert f"year = {{{one[-4:]}}}" in known[one].bibtex
    assert entries.count("{") == entries.count("}")


#: Those of draws that were there already.
GIVEN = {"ranks", "several", "chains", "labels", "another test", "groups"}
#: What a paragraph says of some results, and of these only.
SAID = {
    "exact distribution function": {"exact laws", "until", "losses", "one function"},
    "ranked among 19 draws": {"ranks", "another test", "groups"},
    "ranked among 9 draws": {"several"},
    r"placed in the other chains \(50 draws in all\)": {"chains"},
    "shares of 29 draws": {"labels"},
    "percentage points in probabilities": {"labels"},
    "hold at any such number": {"until"},
    "with enough evidence of an error": {"until"},
    "whatever values they would have had": {"losses"},
    "the smallest p-value of several tests": {"exact laws", "ranks", "several", "groups", "one function"},
    "that of the ks test": {"another test"},
    "50 groups": {"groups"},
    "simulated before, and handed over": GIVEN,
    "parameter taken to be drawn from the prior": GIVEN,
    "parameter drawn from the prior": {*NAMES} - GIVEN,
    "which had the most evidence": {*NAMES} - {"labels", "one function", "of the data"},
}


@pytest.mark.parametrize("pattern", SAID)
def test_sentences_are_about_the_run(pattern: str) -> None:
    """What is said of one way of checking is said of results that were checked so, and of no other."""
    found = {name for name, result in _results().items() if re.search(pattern, str(result.methods_text()))}
    assert found == SAID[pattern]


def test_every_result_is_looked_at() -> None:
    """The names above are those of the results."""
    assert list(_results()) == NAMES


def test_another_run_has_another_paragraph() -> None:
    """The broken twin: with one replicate more, or another seed or tolerance, the paragraph differs."""
    theta, draws = _drawn(50)
    text = rt.check_draws(theta, draws).methods_text()
    assert text == rt.check_draws(theta, draws).methods_text()
    fewer = rt.check_draws(theta[:49], draws[:49]).methods_text()
    assert _number(r"n = (\d+) replicates", fewer) == 49 != _number(r"n = (\d+) replicates", text)
    assert rt.check_draws(theta, draws, seed=1).methods_text() != text
    assert rt.check_draws(theta, draws, tolerance=rt.Tolerance(bias=0.2)).methods_text() != text


def test_sizes_are_those_of_the_worst_test_function() -> None:
    """The factor, the bias and the coverage in the text are the result's, with their intervals."""
    result = _results()["exact laws"]
    theta = result["theta"]
    text = str(result.methods_text())
    spread = f"{theta.spread.estimate:.2f} ({theta.spread.low:.2f}-{theta.spread.high:.2f})"
    says(
        text,
        re.escape(
            "For theta, which had the most evidence of single test functions, the reported sd should be multiplied by "
            f"{spread}"
        ),
    )
    says(text, rf"contained the truth in {100 * theta.coverage.estimate:.0f} %")


def test_one_loss_and_doubts_are_said() -> None:
    """One replicate was lost, not were; what seems wrong with inputs is part of the text."""
    says(str(rt.judge(complete(50, lost=(3,))).methods_text()), "Of these, 1 was lost")
    theta, draws = _drawn(60)
    same = rt.check_draws(theta, np.tile(draws[:1], (60, 1)))
    assert all(one in same.methods_text() for one in same.suspicions)
    assert same.suspicions


def test_texts_show_themselves_at_a_prompt() -> None:
    """Paragraph and references look as they print."""
    result = _results()["ranks"]
    assert repr(result.methods_text()) == str(result.methods_text())
    assert repr(result.references()).startswith("@article{cockayne2022,")
