"""Settings that cannot be meant: every door refuses them in its own words before anything is computed."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.slow
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


@pytest.mark.slow
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


# Keywords that nobody takes.

THETA, DRAWS = np.zeros(3), np.arange(12.0).reshape(3, 4)
PAIR = {"a": STUDY, "b": STUDY}


@pytest.mark.parametrize(
    ("call", "takes"),
    [
        (lambda: DOORS.check(STUDY, n=5, foo=1), "check takes no .* alpha, .*, n, .*, seed, .* workers"),
        (lambda: DOORS.check(STUDY, n=5, foo=1, seed=2), "check takes no"),
        (lambda: DOORS.check(BELIEF, _model, _bayes, n=5, foo=1), "check takes no"),
        (lambda: DOORS.run(BELIEF, _model, _bayes, n=5, foo=1), "run takes no .* batch, .*, n, .*, seed, .* workers"),
        (lambda: DOORS.run(STUDY, n=5, foo=1), "run takes no"),
        (lambda: DOORS.check_draws(THETA, DRAWS, foo=1), "check_draws takes no .* alpha, belief, chains, f, .*, y"),
        (
            lambda: DOORS.compare({"a": _bayes, "b": _bayes}, BELIEF, _model, n=5, foo=1),
            "compare takes no .* confidence",
        ),
        (lambda: DOORS.compare(PAIR, n=5, foo=1), "compare takes no .* confidence"),
        (lambda: DOORS.sweep(lambda x: STUDY, [1], n=5, foo=1), "sweep takes no .* alpha, .* workers"),
        (lambda: DOORS.coverage_map(STUDY, [0.0], n=5, foo=1), "coverage_map takes no .* nominal"),
        (lambda: rt.Study.from_joint(_joint, _bayes, foo=1), "from_joint takes no .* batch, .* seed"),
    ],
)
def test_unknown_keywords_are_refused_with_those_that_are_known(call: Callable[[], Any], takes: str) -> None:
    """The door that was knocked at says that it does not know the keyword, and which it knows."""
    message = refusal(call, TypeError)
    says(message, "'foo'", takes)
    assert "put it into the Study" not in message
    assert "__init__" not in message


@pytest.mark.parametrize(
    "call",
    [
        lambda: rt.check(STUDY, n=5, seed=1),
        lambda: DOORS.sweep(lambda x: STUDY, [1], n=5, seed=1),
        lambda: DOORS.coverage_map(STUDY, [0.0], n=5, seed=1),
        lambda: rt.compare(PAIR, n=5, seed=1),
    ],
)
def test_settings_of_a_study_belong_into_it(call: Callable[[], Any]) -> None:
    """A setting that a study has is not taken beside one."""
    says(refusal(call), "seed came too", "put it into the Study")


def test_studies_are_compared_without_a_belief_and_a_model() -> None:
    """What no procedure would be run with is refused; beside a study, a procedure is run with it."""
    says(refusal(lambda: rt.compare(PAIR, BELIEF, _model, n=5)), "belief and model came too", "leave them out")
    says(refusal(lambda: rt.compare(PAIR, model=_model, n=5)), "but model came too")
    mixed = rt.compare({"a": rt.Study(BELIEF, _model, _bayes), "b": _bayes}, BELIEF, _model, n=20, progress="off")
    assert set(mixed.results) == {"a", "b"}


# Numbers, names and files.

RESULT = rt.check(STUDY, n=20, progress="off")


@pytest.mark.parametrize(
    ("call", "error", "patterns"),
    [
        (lambda: DOORS.sweep(None, [1], n=5), TypeError, ("build must be a function", "None arrived")),
        (lambda: DOORS.sweep(lambda x: STUDY, None, n=5), TypeError, ("over must be a list", "None arrived")),
        (lambda: _check(test=["ks"]), ValueError, ("test must be one of", "'ks'", r"\['ks'\] arrived")),
        (lambda: _check(timeout="a"), ValueError, ("timeout must be a positive number of seconds", "'a' arrived")),
        (lambda: _check(store=3), TypeError, ("store must be the name of a file", "3 arrived")),
        (lambda: DOORS.compare(PAIR, n=5, store=3), TypeError, ("store must be the name of a file", "3 arrived")),
        (lambda: DOORS.store.load(None), TypeError, ("the name of a file", "None arrived")),
        (lambda: DOORS.store.merge("a.db", "b.db"), TypeError, ("list of the stores", "'a.db' arrived", r"\['a.db'\]")),
        (lambda: DOORS.store.merge(None, "b.db"), TypeError, ("list of the stores", "None arrived")),
        (lambda: DOORS.measure(RESULT, confidence="a"), ValueError, ("confidence must be a number", "'a' arrived")),
        (lambda: DOORS.measure(RESULT, confidence=None), ValueError, ("confidence must be a number", "None arrived")),
        (lambda: DOORS.compare(PAIR, n=5, confidence="a"), ValueError, ("confidence must be a number", "'a' arrived")),
        (lambda: DOORS.planning.plan(spread="a"), ValueError, ("spread must be a number", "'a' arrived")),
        (lambda: DOORS.planning.plan(bias=[1]), ValueError, ("bias must be a number", r"\[1\] arrived")),
        (lambda: DOORS.planning.plan(spread=1.2, power="a"), ValueError, ("power must be a number", "'a' arrived")),
        (lambda: DOORS.planning.detectable("a"), ValueError, ("n must be a number", "'a' arrived")),
        (lambda: DOORS.planning.plan_certificate(bias="a"), ValueError, ("bias must be a number", "'a' arrived")),
        (lambda: DOORS.plots.ecdf(RESULT, f=rt.identity), ValueError, ("name of a test function", "Coordinate")),
        (lambda: DOORS.plots.ecdf(RESULT, f=3), ValueError, ("name of a test function", "3 came")),
        (lambda: DOORS.plots.coverage_map(None), TypeError, ("Result, Replicates, or the rows", "NoneType arrived")),
    ],
)
def test_what_is_of_another_type_is_named(
    call: Callable[[], Any], error: type[Exception], patterns: tuple[str, ...]
) -> None:
    """A refusal says what was expected and what arrived, and is no error of Python's about our own code."""
    says(refusal(call, error), *patterns)


def test_numbers_may_be_of_any_type_that_is_one() -> None:
    """What another library calls a number is one."""
    expected = rt.planning.plan(spread=1.25)
    for size in (np.float64(1.25), np.float32(1.25), np.array(1.25), Fraction(5, 4)):
        assert rt.planning.plan(spread=size).n == expected.n  # type: ignore[arg-type]


def test_what_was_measured_only_has_no_p_value() -> None:
    """The row of all functions together has sizes, and says where the p-value of all is."""
    belief = {"a": BELIEF, "b": BELIEF}
    result = _check(
        lambda mu0, y: {"a": rt.Normal(y / 2, SD), "b": BELIEF},
        belief=belief,
        model=lambda theta, rng: theta["a"] + rng.normal(),
    )
    assert result["(all)"].measures
    says(refusal(lambda: result["(all)"].pvalue), r"'\(all\)' was measured, not tested", "result.pvalue")


@pytest.mark.parametrize(
    ("simulate", "settings", "patterns"),
    [
        (lambda: (1.0, 1.0), {}, (r"of \(rng\), but", "lambda rng:")),
        (lambda a, b, c: (1.0, 1.0), {}, (r"of \(rng\), but", "lambda rng:")),
        (lambda rng: (1.0, 1.0), {"batch": 5}, (r"of \(batch, rng\) with batch=", "lambda batch, rng:")),
    ],
)
def test_a_joint_simulator_takes_rng(simulate: Any, settings: Any, patterns: tuple[str, ...]) -> None:
    """A simulator without rng is refused as one, not as a belief."""
    message = refusal(lambda: rt.Study.from_joint(simulate, _bayes, **settings))
    says(message, "simulate must be a function", "takes other arguments", *patterns)
    assert "belief" not in message


def test_a_joint_simulator_may_take_rng_by_name() -> None:
    """The generator is handed over as the simulator takes it."""
    study = rt.Study.from_joint(lambda *, rng: _joint(rng), _bayes, f="theta")
    assert rt.replay(study, 3)[:2] == rt.replay(JOINT, 3)[:2]


class _Says:
    """A distribution that says something about its marginals."""

    def __init__(self, law: Any) -> None:
        self.law = law

    def sample(self, m: int, rng: Any) -> Any:
        return rng.normal(size=m)

    def marginal(self, f: Any) -> Any:
        return self.law


class _OwnLaw:
    def cdf(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("law", [3, _OwnLaw(), np.zeros(3), stats.norm(0, 1)])
def test_what_is_no_law_is_no_marginal(law: Any) -> None:
    """The law that a user's distribution gives must be one of ours, and the message says what that is."""
    message = refusal(lambda: _check(lambda mu0, y: _Says(law)))
    says(message, "marginal of _Says", "'theta'", "distributions.Law", "None", f"{type(law).__name__} arrived")
