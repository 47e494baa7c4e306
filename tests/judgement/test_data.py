"""Outputs along the data: the exact level's own line, curves, and what cannot be looked at."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.errors import InvalidStudy
from ringtrue.judgement import data
from ringtrue.replicates.record import OF_DATA
from ringtrue.values import Generator
from tests.builders import SD, noisy, posterior

BELIEF = rt.Normal(np.zeros(2), np.ones(2))


def _leaning(mu0: Any, y: Any) -> Any:
    """Return outputs that are .5 sd too high or too low in their second entry, by the sign of the first of y."""
    centre = y / 2 + np.array([0.0, 0.5 * SD * np.sign(y[0])])
    return rt.Normal(centre, np.full(2, SD))


def _partial(mu0: Any, y: Any) -> Any:
    return rt.Normal(y[0] / 2, SD)


def _twice(theta: Any, rng: Generator) -> Any:
    return theta + rng.normal(size=2)


def test_an_error_that_depends_on_the_data_is_found_and_named() -> None:
    """A line of its own names entry, summary and direction; the verdict's own says less, if there is one.


    The slope of .5 sd times the sign, .4 per sd of y, is eight standard errors at n = 400.
    """
    result = rt.check(BELIEF, noisy, _leaning, n=400, progress=False)
    assert result.levels["exact"].pvalue < 1e-6
    assert result.levels["strong"].pvalue > 1e-6
    last = result.sentence.splitlines()[-1]
    assert last.startswith("NOT THE EXACT POSTERIOR (exact, p = ")
    assert "outputs for theta[1] are too high when y[0] is high, by 0." in last


def test_the_exact_posterior_has_no_line_unless_it_is_asked_about() -> None:
    """Nothing found is said in the table; in words only if somebody asked for a function of the data."""
    result = rt.check(BELIEF, noisy, posterior, n=200, progress=False)
    assert result.levels["exact"].pvalue > 1e-6
    assert "xact posterior" not in result.sentence.upper().replace("NOT THE EXACT", "")
    asked = rt.check(rt.Normal(0, 1), noisy, posterior, n=200, f={"t": lambda t: t, "ty": lambda t, y: t * y})
    assert "Exact posterior: nothing found against it" in asked.sentence


def test_data_that_are_ignored_are_found() -> None:
    """A posterior from the first of two numbers is calibrated, and not exact."""
    result = rt.check(rt.Normal(0, 1), _twice, _partial, n=200, progress=False)
    assert result.verdict is not rt.Verdict.MISCALIBRATED
    assert "outputs for theta are too low when y[1] is high" in result.sentence


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (lambda t, g: t + g.normal(), ["y"]),
        (lambda t, g: t + g.normal(size=3), ["y[0]", "y[1]", "y[2]"]),
        (lambda t, g: t + g.normal(size=7), ["y mean", "y sd", "y change"]),
        (lambda t, g: {"b": g.normal(), "a": t + g.normal(size=2)}, ["a[0]", "a[1]", "b"]),
        (lambda t, g: (t + g.normal(), g.normal(size=1)), ["y[0]", "y[1][0]"]),
        (lambda t, g: "a text", []),
        (lambda t, g: t + g.normal(size=int(g.integers(1, 3))), []),
    ],
)
def test_summaries_that_are_chosen(y: Any, names: list[str]) -> None:
    """Entries of short data, three numbers of long ones, nothing of what is not made of numbers."""
    ran = rt.run(rt.Normal(0, 1), y, lambda mu0, y: rt.Normal(0, 1), n=20, progress=False)
    assert [name.removeprefix(OF_DATA) for name in ran.arrays if name.startswith(OF_DATA)] == names


@pytest.mark.parametrize("batch", [None, 10])
def test_batches_are_summarised_as_singles_are(batch: int | None) -> None:
    """The names and numbers of summaries do not depend on how many datasets come at once."""
    ran = rt.run(
        BELIEF, lambda t: 2 * t, lambda mu0, y: rt.Normal(y / 2, np.ones(2)), n=20, batch=batch, progress=False
    )
    for j in range(2):
        assert np.array_equal(ran.arrays[f"{OF_DATA}y[{j}]"], 2 * ran.truth[:, j])


@pytest.mark.parametrize("summary", [lambda y: {"total": y.sum()}, {"total": np.sum}])
def test_summaries_that_are_named(summary: Any) -> None:
    """A function that returns a dict, or a dict of functions, names what is looked at."""
    result = rt.check(rt.Normal(0, 1), _twice, _partial, n=100, summary=summary, progress=False)
    found = data.against(result.replicates)
    assert found is not None
    assert found.names == ["total"]
    assert result.local("theta", "total").summary == "total"


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (3, "function of y"),
        ({}, "function of y"),
        (lambda y: "text", "must return numbers"),
        ({"a": lambda y: y}, "one number"),
    ],
)
def test_summaries_that_are_refused(summary: Any, words: str) -> None:
    """What says nothing of a dataset is refused in words."""
    with pytest.raises((InvalidStudy, rt.errors.ReplicateFailed), match=words):
        rt.run(BELIEF, noisy, posterior, n=5, summary=summary, progress=False)


def test_constant_and_repeated_summaries_do_no_harm() -> None:
    """A summary that is always the same is left out, and one that comes twice counts once."""
    twice = {"a": lambda y: y[0], "b": lambda y: y[0], "c": lambda y: 1.0}
    once = {"a": lambda y: y[0]}
    p = [
        rt.check(BELIEF, noisy, _leaning, n=300, summary=s, progress=False).levels["exact"].pvalue
        for s in (twice, once)
    ]
    assert max(p) < 1e-5
    found = data.against(rt.run(BELIEF, noisy, _leaning, n=30, summary=twice, progress=False))
    assert found is not None
    assert found.names == ["a", "b"]


def test_the_curve_shows_where_outputs_are_off() -> None:
    """Bias is -.5 where y[0] is high and .5 where it is low, within the intervals; the spread factor is 1.

    Each interval of the curve holds with 99.5 %; ten of bias miss with a chance of 5 %, so that they are widened.
    """
    result = rt.check(BELIEF, noisy, _leaning, n=2000, progress=False)
    found = result.local("theta[1]", "y[0]")
    expected = -0.5 * np.sign(found.at)
    clear = np.abs(found.at) > 0.5
    width = found.bias[:, 2] - found.bias[:, 1]
    assert (np.abs(found.bias[clear, 0] - expected[clear]) < width[clear]).all()
    assert ((found.spread[clear, 1] < 1.1) & (found.spread[clear, 2] > 0.9)).all()
    assert found.sentence.startswith("Outputs for theta[1] are too high when y[0] is high: by 0.")
    quiet = result.local("theta[0]", "y[1]")
    assert abs(quiet.slope[0]) < 0.15


def test_given_draws_are_compared_with_given_data() -> None:
    """check_draws takes y, and a summary of it."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=300)
    theta, draws = y + rng.normal(size=300), 0.5 * y[:, None] + rng.normal(size=(300, 49))
    result = rt.check_draws(theta, draws, y=y)
    assert result.levels["exact"].pvalue < 1e-6
    with pytest.raises(InvalidStudy, match="no y came"):
        rt.check_draws(theta, draws, summary=np.mean)


@pytest.mark.parametrize(("f", "summary"), [("theta[5]", "y[0]"), ("theta[0]", "y[7]"), ("sum", "y[0]")])
def test_curves_that_cannot_be_drawn(f: str, summary: str) -> None:
    """Names that are not there are answered with those that are."""
    with pytest.raises(InvalidStudy, match=r"theta\[0\].*y\[1\]"):
        rt.check(BELIEF, noisy, posterior, n=60, progress=False).local(f, summary)


def test_without_numbers_there_is_no_curve() -> None:
    """Data that are not made of numbers leave nothing to look along."""
    result = rt.check(rt.Normal(0, 1), lambda t: "text", lambda mu0, y: rt.Normal(0, 1), n=30, progress=False)
    with pytest.raises(InvalidStudy, match="pass summary="):
        result.local("theta", "y")
