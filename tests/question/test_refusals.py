"""Settings that cannot be meant: every door refuses them in its own words before anything is computed."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from tests.builders import refusal, says

#: The front doors as they look to somebody without a type checker.
DOORS: Any = rt
BELIEF = rt.Normal(0, 1)
SD = math.sqrt(0.5)


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def _bayes(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, SD)


def _joint(rng: Any) -> Any:
    theta = rng.normal()
    return theta, theta + rng.normal()


STUDY = rt.Study(BELIEF, _model, _bayes, f="theta")
JOINT = rt.Study.from_joint(_joint, _bayes, f="theta")


def _check(procedure: Any = _bayes, *, belief: Any = BELIEF, model: Any = _model, **settings: Any) -> rt.Result:
    return rt.check(belief, model, procedure, n=20, progress="off", **settings)


# A model that draws theta and y together cannot hold theta fixed.


def test_a_joint_study_has_no_coverage_map() -> None:
    """Coverage at a fixed theta is refused where nothing takes a theta: it would be that of other truths."""
    says(refusal(lambda: rt.coverage_map(JOINT, [0.0], n=5)), "coverage_map", "together", r"Study\(belief")


def test_a_joint_belief_takes_no_truth() -> None:
    """A law of truths is refused beside a simulator that draws them, by whatever door it comes."""
    says(refusal(lambda: rt.Study(JOINT.belief, JOINT.model, _bayes, truth=BELIEF)), "simulate", "leave out truth=")
    says(refusal(lambda: rt.Study.from_joint(_joint, _bayes, truth=BELIEF)), "simulate", "leave out truth=")


# What is yes or no, and what is a word.


@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_reproducible_is_yes_or_no(value: Any, tmp_path: Path) -> None:
    """Anything but a bool is refused before a store is made."""
    file = tmp_path / "run.db"
    says(refusal(lambda: _check(reproducible=value, store=file)), "reproducible must be True or False", repr(value))
    assert not file.exists()


@pytest.mark.parametrize("value", [np.False_, np.True_])
def test_a_bool_of_numpy_is_a_bool(value: Any, tmp_path: Path) -> None:
    """numpy's bool is one too, and can be stored."""
    assert type(rt.Study(BELIEF, _model, _bayes, reproducible=value).reproducible) is bool
    _check(reproducible=value, store=tmp_path / "run.db")


def test_draws_that_exist_know_two_words_for_failures() -> None:
    """A misspelt on_failure is refused, not taken for "record"."""
    theta, draws = np.zeros(3), np.arange(12.0).reshape(3, 4)
    message = refusal(lambda: DOORS.check_draws(theta, draws, on_failure="rais"))
    says(message, "on_failure must be 'raise' or 'record'", "'rais'")


# What is to be held fixed.


@pytest.mark.parametrize(
    ("call", "error", "patterns"),
    [
        (lambda: DOORS.coverage_map(None, [0.0], n=5), TypeError, ("Study is needed", "NoneType")),
        (lambda: DOORS.coverage_map(BELIEF, [0.0], n=5), TypeError, ("Study is needed", "Normal")),
        (lambda: DOORS.coverage_map(STUDY, 3, n=5), ValueError, ("thetas must be a list", "int", r"\[theta\]")),
        (lambda: DOORS.coverage_map(STUDY, [], n=5), ValueError, ("thetas", "at least one", "none arrived")),
    ],
)
def test_maps_of_coverage_need_a_study_and_parameters(
    call: Callable[[], Any], error: type[Exception], patterns: tuple[str, ...]
) -> None:
    """What is no study, and what is no list of parameters, is named."""
    says(refusal(call, error), *patterns)


# What cannot be run again.


def _fails(mu0: Any, y: Any) -> Any:
    if y > 0:
        raise ArithmeticError("no convergence")
    return _bayes(mu0, y)


def test_what_cannot_be_seeded_is_not_offered_for_replay(tmp_path: Path) -> None:
    """No table, page, file or message of a study that is not reproducible names a call that would not reproduce it."""
    result = _check(_fails, reproducible=False, on_failure="record")
    assert result.failures
    assert [one["replay"] for one in result.to_dict()["failures"]] == [None]
    page = result.report(tmp_path / "run.html")
    twin = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert [one["replay"] for one in twin["failures"]] == [None]
    lost = refusal(lambda: _check(lambda mu0, y: 1 / 0, reproducible=False, on_failure="record"))
    says(lost, "all 20 were lost", "ZeroDivisionError", "traceback")
    for text in (str(result), page.read_text("utf-8"), lost):
        assert "replay(" not in text


def test_what_can_be_seeded_is_offered_for_replay(tmp_path: Path) -> None:
    """The twin of the above: the call is in all of them."""
    result = _check(_fails, on_failure="record")
    page = result.report(tmp_path / "run.html")
    lost = refusal(lambda: _check(lambda mu0, y: 1 / 0, on_failure="record"))
    call = f"ringtrue.replay(study, {result.failures[0].replicate})"
    assert [one["replay"] for one in result.to_dict()["failures"]] == [call]
    for text in (str(result), page.read_text("utf-8"), page.with_suffix(".json").read_text("utf-8")):
        assert call in text
    assert "ringtrue.replay(study, 0)" in lost


def test_replay_refuses_what_cannot_be_seeded() -> None:
    """Another dataset under the number of a lost one would be taken for it."""
    study = rt.Study(BELIEF, _model, _bayes, reproducible=False)
    says(
        refusal(lambda: rt.replay(study, 3)), "replicate 3 cannot be run again", "reproducible=False", "rng", "failures"
    )


# Functions of rng.


def test_a_law_of_truths_may_be_a_function_as_a_belief_may() -> None:
    """Truths from a function of rng, alone or as a part, are those of the law that it draws from."""
    law = rt.Normal(3, 1)
    truth = rt.run(BELIEF, _model, _bayes, n=20, truth=lambda rng: 3 + rng.normal(), f="theta", progress="off").truth
    assert truth == pytest.approx(rt.run(BELIEF, _model, _bayes, n=20, truth=law, f="theta", progress="off").truth)
    named = rt.Study({"a": lambda rng: rng.normal(), "b": BELIEF}, lambda theta: theta["a"], _bayes, f="a")
    assert set(named.truths(3, np.random.default_rng(0))) == {"a", "b"}


@pytest.mark.parametrize(
    ("call", "patterns"),
    [
        (lambda: rt.Study(BELIEF, _model, _bayes, truth=lambda: 3.0), ("the truth's law must take rng", "0 arguments")),
        (lambda: rt.Study(lambda: 3.0, _model, _bayes), ("the belief must take rng", "0 arguments")),
        (lambda: rt.Study("a", _model, _bayes), ("the belief must be a distribution", "a function of rng", "str")),
        (lambda: _check(lambda mu0, y: _model), ("procedure's output must be a distribution", "type function arrived")),
    ],
)
def test_functions_that_are_no_laws(call: Callable[[], Any], patterns: tuple[str, ...]) -> None:
    """A function without rng is no belief, and no function is an output."""
    says(refusal(call), *patterns)
