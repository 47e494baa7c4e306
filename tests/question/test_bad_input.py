"""Deliberate misuse of the front doors: every refusal names what was expected, what arrived and what to do."""

import functools
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from tests.builders import refusal, says

SD = math.sqrt(0.5)
BELIEF = rt.Normal(0, 1)


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def _bayes(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, SD)


def _draws(mu0: Any, y: Any, rng: Any) -> Any:
    return y / 2 + SD * rng.normal(size=19)


def _check(
    belief: Any = BELIEF, model: Any = _model, procedure: Any = _bayes, n: Any = 40, **settings: Any
) -> rt.Result:
    return rt.check(belief, model, procedure, n=n, progress="off", **settings)


def _raises_in(replicate: int, function: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Return a procedure that raises in one replicate of the default study, recognised by its data."""
    bad = rt.replay(rt.Study(BELIEF, _model, _bayes), replicate)[1]

    def procedure(mu0: Any, y: Any) -> Any:
        if y == bad:
            raise error
        return function(mu0, y)

    return procedure


def _instead_in(replicate: int, output: Any) -> Callable[..., Any]:
    """Return a procedure that returns something else in one replicate of the default study."""
    bad = rt.replay(rt.Study(BELIEF, _model, _bayes), replicate)[1]
    return lambda mu0, y, rng: output if y == bad else _bayes(mu0, y)


# What a procedure may return.


@pytest.mark.parametrize(
    "output", [rt.Normal(np.nan, 1), np.full(9, np.nan), np.full(9, np.inf), np.array([0.1, 0.2, -np.inf])]
)
@pytest.mark.parametrize("where", ["everywhere", "in replicate 17"])
def test_numbers_that_are_not_finite_are_refused(output: Any, where: str) -> None:
    """A procedure that returns nan or inf is stopped, with the replicate named and the replay call given."""
    procedure = (lambda mu0, y: output) if where == "everywhere" else _instead_in(17, output)
    message = refusal(lambda: _check(procedure=procedure), rt.errors.ReplicateFailed)
    number = "0" if where == "everywhere" else "17"
    says(message, "finite", "nan or inf", "theta", rf"replicate {number}\b", rf"replay\(study, {number}\)")


@pytest.mark.parametrize(
    "output", [np.zeros((9, 2)), rt.Normal([0.0, 0.0], 1), rt.Gaussian([0.0, 0.0], np.eye(2)), np.zeros((9, 1))]
)
def test_outputs_of_the_wrong_shape_are_refused(output: Any) -> None:
    """An output that does not fit theta is refused before the run, and the two shapes are named."""
    says(refusal(lambda: _check(procedure=lambda mu0, y: output)), "theta", "shape", r"\(|match")


@pytest.mark.parametrize("output", [np.empty(0), [], np.empty((0, 3))])
def test_empty_draws_are_refused(output: Any) -> None:
    """An output without a single draw is refused with the shape that arrived."""
    message = refusal(lambda: _check(procedure=lambda mu0, y: output), rt.errors.RingtrueError)
    says(message, "at least one draw", r"\(0,", "replay|draws on axis 0")


@pytest.mark.parametrize("output", [1.5, np.float64(1.5), np.array(1.5), None, "posterior", stats.norm.cdf])
def test_what_is_no_distribution_is_refused(output: Any) -> None:
    """A number, None or another object is refused, and what would do is listed."""
    message = refusal(lambda: _check(procedure=lambda mu0, y: output))
    says(message, "procedure's output must be a distribution", "array of draws", "sample and marginal", "arrived")


def test_mean_and_sd_in_a_tuple_are_not_two_draws() -> None:
    """A procedure that returns (mean, sd) is refused: read as two draws, it would get a verdict on nonsense."""
    message = refusal(lambda: _check(procedure=lambda mu0, y: (y / 2, SD)))
    says(message, "tuple", "array|Normal")


def test_draws_of_unequal_length_work() -> None:
    """Outputs with different numbers of draws are ranked each among its own."""
    result = _check(procedure=lambda mu0, y, rng: y / 2 + SD * rng.normal(size=rng.integers(5, 50)))
    assert re.fullmatch(r"ranks of \d+-\d+", result.tests[0].route)
    assert len(set(result.replicates.draws[:, 0])) > 1


@pytest.mark.parametrize("cov", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]])
def test_covariance_that_is_not_positive_definite_is_refused(cov: Any) -> None:
    """Gaussian says which eigenvalue is wrong; inside a procedure the replicate is named and the error chained."""
    message = refusal(lambda: rt.Gaussian([0.0, 0.0], cov), ValueError)
    says(message, "positive definite", "smallest eigenvalue is -?[0-9.e-]+", "degenerate|direction")
    belief = rt.Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(rt.errors.ReplicateFailed, match="positive definite") as caught:
        _check(belief, lambda theta: theta, lambda mu0, y: rt.Gaussian(y, cov))
    assert isinstance(caught.value.__cause__, ValueError)


def test_covariance_with_nan_is_not_called_asymmetric() -> None:
    """A covariance with nan is refused because of the nan."""
    says(refusal(lambda: rt.Gaussian([0.0, 0.0], [[1.0, np.nan], [np.nan, 1.0]]), ValueError), "nan|finite")


def test_output_without_a_route_is_refused() -> None:
    """An output that has neither a law nor draws for a test function is refused before the run."""

    class _MarginalOnly:
        sample = None

        def marginal(self, f: Any) -> Any:
            return rt.Normal(0, 1) if f == rt.identity else None

    message = refusal(lambda: _check(procedure=lambda mu0, y: _MarginalOnly()), rt.errors.NoRoute)
    says(message, "_MarginalOnly", "'distance'", "exact law", "draws", "sample|choose")
    assert "'theta'" not in message


def test_output_without_a_route_in_one_replicate_is_that_replicates_failure() -> None:
    """A single output without a route names its replicate and its type, and can be recorded like any failure."""

    class _Nothing:
        sample = None
        marginal = None

    procedure = _instead_in(17, _Nothing())
    says(refusal(lambda: _check(procedure=procedure), rt.errors.RingtrueError), "_Nothing", "17")
    result = _check(procedure=procedure, on_failure="record")
    assert [failure.replicate for failure in result.replicates.failures] == [17]


# Randomness.


def test_model_with_randomness_of_its_own_is_refused() -> None:
    """A model that does not use the rng it is given is not reproducible and is refused."""
    message = refusal(lambda: _check(model=lambda theta: theta + np.random.default_rng().normal()))
    says(message, "same answer twice", "moved", "use the rng", r"P\(theta, rng\)")


@pytest.mark.parametrize("centre", [0.0, 1e6])
def test_procedure_with_randomness_of_its_own_is_refused(centre: float) -> None:
    """A procedure with its own randomness is refused, even where the rank of the truth happens not to move."""
    message = refusal(lambda: _check(procedure=lambda mu0, y: centre + np.random.default_rng().normal(size=99)))
    says(message, "same", "twice", "use the rng", r"mu\(belief, y, rng\)")


def test_procedure_with_few_irreproducible_draws_is_refused() -> None:
    """One draw of its own randomness is enough to be refused, whatever the chance that its rank repeats."""
    for seed in range(20):
        with pytest.raises(rt.errors.InvalidStudy, match="twice"):
            _check(procedure=lambda mu0, y: np.random.default_rng().normal(size=1), seed=seed)


# Failures in one replicate.


def test_a_lambda_that_raises_names_the_replicate_and_the_replay_call() -> None:
    """The original exception is chained, and the replay call raises it again unchanged."""
    error = KeyError("boom")
    procedure = _raises_in(17, _bayes, error)
    with pytest.raises(rt.errors.ReplicateFailed) as caught:
        _check(procedure=procedure)
    says(
        str(caught.value),
        r"replicate 17\b",
        "procedure",
        "KeyError",
        "boom",
        r"ringtrue\.replay\(study, 17\)",
        "record",
    )
    assert caught.value.__cause__ is error
    with pytest.raises(KeyError, match="boom") as again:
        rt.replay(rt.Study(BELIEF, _model, procedure), 17)
    assert again.value is error


def test_a_model_that_raises_is_told_from_a_procedure() -> None:
    """The message says whose function raised."""
    bad = rt.replay(rt.Study(BELIEF, _model, _bayes), 17)[0]

    def model(theta: Any, rng: Any) -> Any:
        return 1 / 0 if theta == bad else _model(theta, rng)

    says(
        refusal(lambda: _check(model=model), rt.errors.ReplicateFailed),
        r"replicate 17\b",
        "in the model",
        "ZeroDivisionError",
    )


def test_a_test_function_that_raises_in_one_replicate_is_named_and_can_be_replayed() -> None:
    """A failure of f names the replicate, and the replay call that the message gives shows the failure."""
    bad = rt.replay(rt.Study(BELIEF, _model, _bayes), 17)[0]

    def f(theta: Any) -> Any:
        if theta == bad:
            raise OSError("f boom")
        return theta

    with pytest.raises(rt.errors.ReplicateFailed) as caught:
        _check(f=f)
    says(str(caught.value), r"replicate 17\b", "test function", "f boom", r"replay\(study, 17\)")
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(OSError, match="f boom"):
        rt.replay(rt.Study(BELIEF, _model, _bayes, f=f), 17)


def test_messages_have_one_full_stop() -> None:
    """A sentence quoted inside another does not bring its full stop along."""
    message = refusal(lambda: _check(procedure=lambda mu0, y: []), rt.errors.RingtrueError)
    assert ".." not in message


@pytest.mark.parametrize("replicate", [True, 2.5, "3", None, -1])
def test_replay_wants_the_number_of_a_replicate(replicate: Any) -> None:
    """Replaying anything but a replicate's number is refused, never rounded."""
    study = rt.Study(BELIEF, _model, _bayes)
    says(refusal(lambda: rt.replay(study, replicate)), "^replicate", "at least 0", re.escape(repr(replicate)))


def test_preflight_does_not_end_with_the_first_replicate() -> None:
    """If replicate 0 is lost and recorded, a constant f is refused all the same."""
    procedure = _raises_in(0, _bayes, ValueError("unlucky"))
    says(refusal(lambda: _check(procedure=procedure, f=lambda theta: 1.0, on_failure="record")), "must vary")


def test_all_replicates_lost() -> None:
    """A run that loses every replicate has no verdict, and shows one of the causes."""
    settings = {"procedure": lambda mu0, y: 1 / 0, "on_failure": "record"}
    message = refusal(lambda: _check(**settings, failures_allowed=1), rt.errors.RingtrueError)
    says(message, "at least one replicate", "all 40", "ZeroDivisionError", "replay")


def test_a_run_of_failures_stops_the_run() -> None:
    """A run that loses nearly everything stops early and says why."""
    settings = {"procedure": lambda mu0, y: 1 / 0, "on_failure": "record"}
    message = refusal(lambda: _check(**settings), rt.errors.RingtrueError)
    says(message, "replicates failed", "procedure: ZeroDivisionError", "replay", "failures_allowed=1")


# Models.


def test_model_that_returns_none_is_refused() -> None:
    """A model without a return statement is asked about it."""
    says(refusal(lambda: _check(model=lambda theta: None)), "dataset", "None", "return statement")


def test_model_that_changes_theta_in_place_does_not_change_the_truth() -> None:
    """A model that works in place is refused, or judged as its copy is; never silently judged on what it left."""

    def in_place(theta: Any, rng: Any) -> Any:
        theta += rng.normal(size=theta.shape)
        return theta

    def on_a_copy(theta: Any, rng: Any) -> Any:
        return in_place(theta.copy(), rng)

    belief, procedure = rt.Normal(np.zeros(3), np.ones(3)), lambda mu0, y: rt.Normal(y / 2, np.full(3, SD))
    right = rt.run(rt.Study(belief, on_a_copy, procedure), n=20, progress="off")
    try:
        found = rt.run(rt.Study(belief, in_place, procedure), n=20, progress="off")
    except rt.errors.RingtrueError as error:
        says(str(error), "in place|read-only|copy")
    else:
        np.testing.assert_array_equal(found.u, right.u)


# Test functions.


@pytest.mark.parametrize("belief", [BELIEF, stats.bernoulli(0.5), stats.poisson(3)])
def test_constant_test_function_is_refused(belief: Any) -> None:
    """A test function that never varies is refused under any belief: its u would be uniform whatever the output."""
    message = refusal(lambda: _check(belief, _model, lambda mu0, y: belief, f={"flat": lambda theta: 5.0}, n=10))
    says(message, "'flat'", "must vary", "5", "choose|drop|leave|another")


def test_rare_event_is_not_constant() -> None:
    """The indicator of an event of probability 1/50 is a good test function and is not mistaken for a constant."""
    for seed in range(5):
        _check(f={"rare": lambda theta: float(theta > 2.05)}, n=10, seed=seed)


@pytest.mark.parametrize(
    ("value", "arrived"),
    [
        (lambda theta: np.array([theta, theta]), r"ndarray of shape \(2,\)"),
        (lambda theta: 1j * theta, "complex"),
        (lambda theta: "a", "str"),
        (lambda theta: None, "NoneType"),
        (lambda theta, y: [theta, y], r"list of shape \(2,\)"),
    ],
)
def test_test_functions_return_one_real_number(value: Any, arrived: str) -> None:
    """A test function that returns an array, a complex number, a string or None is refused."""
    says(refusal(lambda: _check(f={"mine": value})), "'mine'", "one real number", arrived)


def test_test_function_that_raises_is_refused() -> None:
    """A test function that raises everywhere is refused before the run, with its own exception chained."""
    with pytest.raises(rt.errors.InvalidStudy, match=r"'mine'.*ZeroDivisionError") as caught:
        _check(f={"mine": lambda theta: 1 / 0})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_test_function_that_is_not_finite_is_refused() -> None:
    """A test function that is nan somewhere on the belief is refused."""
    with np.errstate(all="ignore"):
        message = refusal(lambda: _check(f={"log": lambda theta: np.log(theta)}))
    says(message, "'log'", "finite", "nan", "restrict|another")


@pytest.mark.parametrize(
    ("f", "patterns"),
    [
        ("thetas", ("must name entries of theta", "theta, distance", "'thetas' arrived")),
        (3, ("callable", "int", "lambda")),
        ({}, ("at least one", "none", "leave f out")),
        ([], ("at least one", "none", "leave f out")),
        ([lambda theta: theta, lambda theta: theta**2], ("different names", "<lambda>", "dict")),
        ([rt.identity, rt.Coordinate()], ("different names", "theta", "dict")),
        ({1: lambda theta: theta, "1": lambda theta: theta**2}, ("different names", "'1'")),
        (lambda: 0.0, ("1 and", "takes 0", "wrap")),
        (lambda a, b, c: 0.0, ("1 and", "takes 3", "wrap")),
        (rt.BestOf([]), ("at least one", "none")),
        (rt.LogDensity(), ("log_density", "Draws", "another")),
        (rt.Coordinate(index=(3,)), (r"theta\[3\]", "shape|axis|index")),
        (rt.Linear([1.0, 2.0]), ("linear", "shape")),
    ],
)
def test_test_functions_that_cannot_be(f: Any, patterns: tuple[str, ...]) -> None:
    """What is not a test function of this parameter is refused before the run."""
    says(refusal(lambda: _check(procedure=_draws, f=f)), *patterns)


@pytest.mark.parametrize(
    ("build", "patterns"),
    [
        (lambda: rt.BestOf([rt.identity], share=1), ("between 0 and 1", "1")),
        (lambda: rt.BestOf([rt.identity], share=0), ("between 0 and 1", "0")),
        (lambda: rt.BestOf([rt.identity], splits=0), ("at least 1", "0")),
        (lambda: rt.BestOf([rt.identity], splits=2.5), ("whole|integer", r"2\.5")),  # type: ignore[arg-type]
        (lambda: rt.Tolerance(spread=0.0), ("spread", "positive", "0.0")),
        (lambda: rt.Tolerance(bias=math.inf), ("bias", "positive", "inf")),
    ],
)
def test_settings_are_refused_where_they_are_made(build: Any, patterns: tuple[str, ...]) -> None:
    """A choice that cannot be judged is refused when it is written down, not after the run."""
    says(refusal(build), *patterns)


# Numbers.


@pytest.mark.parametrize("value", [0, -3, True, 2.5, 10.0, "10", None, math.nan])
@pytest.mark.parametrize("name", ["n", "draws", "batch"])
def test_counts_are_whole_and_positive(name: str, value: Any) -> None:
    """n, draws and batch are whole numbers of at least 1; True and 10.0 are not."""
    if name != "draws" and value is None:
        return  # leaving batch out, or n, which until= may stand for
    message = refusal(lambda: _check(**{name: value}))
    says(message, rf"^{name} must be a whole number", "at least 1", re.escape(repr(value)))


@pytest.mark.parametrize("value", [-1, True, 1.5, "a", None])
@pytest.mark.parametrize("door", ["check", "check_draws"])
def test_seeds_are_whole_and_not_negative(door: str, value: Any) -> None:
    """Both doors refuse a seed that does not fix the answer."""
    theta, draws = np.arange(4.0), np.arange(12.0).reshape(4, 3)
    call = (lambda: _check(seed=value)) if door == "check" else (lambda: rt.check_draws(theta, draws, seed=value))
    says(refusal(call), "seed must be a whole number", "at least 0", re.escape(repr(value)))


def test_numpy_integers_are_integers() -> None:
    """A count that comes out of NumPy is as good as an int."""
    assert _check(n=np.int64(30), draws=np.int32(9), seed=np.uint8(3)).replicates.n == 30


@pytest.fixture
def calls() -> list[float]:
    """Count the calls of a procedure."""
    return []


@pytest.mark.parametrize(
    ("settings", "patterns"),
    [
        ({"alpha": 0}, ("alpha", "between 0 and 1", "0")),
        ({"alpha": 1}, ("alpha", "between 0 and 1", "1")),
        ({"alpha": -0.5}, ("alpha", "between 0 and 1", r"-0\.5")),
        ({"alpha": math.nan}, ("alpha", "between 0 and 1", "nan")),
        ({"alpha": "0.05"}, ("alpha", "between 0 and 1", r"0\.05")),
        ({"alpha": None}, ("alpha", "between 0 and 1", "None")),
        ({"test": "kolmogorov"}, ("test must be one of", "'ks'", "'kolmogorov'")),
        ({"test": None}, ("test must be one of", "None")),
        ({"tolerance": 0.1}, ("Tolerance", "float|0.1")),
        ({"on_failure": "ignore"}, ("on_failure", "'raise' or 'record'", "'ignore'")),
        ({"progress": "loud"}, ("progress", "'auto' or 'off'", "'loud'")),
    ],
)
def test_settings_are_refused_before_the_run(settings: Any, patterns: tuple[str, ...], calls: list[float]) -> None:
    """A bad setting is refused before the procedure has been called once: no simulation is lost to a typo."""

    def procedure(mu0: Any, y: Any) -> Any:
        calls.append(y)
        return _bayes(mu0, y)

    says(refusal(lambda: rt.check(BELIEF, _model, procedure, **{"n": 20, "progress": "off", **settings})), *patterns)
    assert not calls


@pytest.mark.slow
@pytest.mark.parametrize("f", [None, lambda theta: theta], ids=["exact", "ranks"])
@pytest.mark.parametrize("n", [1, 2])
def test_one_replicate_is_inconclusive(f: Any, n: int) -> None:
    """A single replicate settles nothing, and the sentence blames the replicates, not the draws."""
    result = _check(n=n, f=f)
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert "one draw" not in result.sentence


def test_an_alpha_below_rounding_is_refused_by_name() -> None:
    """An alpha so small that 1 - alpha is 1 works or is refused as alpha, not as some other number."""
    try:
        _check(alpha=1e-300)
    except rt.errors.InvalidStudy as error:
        says(str(error), "alpha", "1e-300")


@pytest.mark.parametrize(
    ("call", "patterns"),
    [
        (lambda: rt.run(3, n=1), ("Study", "int")),
        (lambda: rt.replay(3, 0), ("Study", "int")),  # type: ignore[arg-type]
        (lambda: rt.judge(rt.Study(BELIEF, _model, _bayes)), ("Replicates", "Study", "run")),  # type: ignore[arg-type]
        (lambda: rt.stack([]), ("at least one", "none|empty")),
        (lambda: rt.stack([1, 2]), ("distribution", "int|number")),
    ],
)
def test_verbs_on_the_wrong_noun(call: Callable[[], Any], patterns: tuple[str, ...]) -> None:
    """run wants a Study, judge what run returned, stack distributions; each says so."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    says(str(caught.value), *patterns)


# Beliefs.


@pytest.mark.parametrize(
    ("belief", "patterns"),
    [
        (None, ("belief must be a distribution", "None")),
        (3.0, ("belief must be a distribution", r"number 3\.0")),
        ("normal", ("belief must be a distribution", "str")),
        (rt.Normal, ("belief", "Normal", "instance|class|call")),
        (stats.norm, ("belief", "frozen|freeze", "norm")),
        (lambda: 0.0, ("belief", "rng", "takes 0")),
        (lambda rng: "a", ("numbers", "list|str", "f=")),
    ],
)
def test_beliefs_that_cannot_be(belief: Any, patterns: tuple[str, ...]) -> None:
    """What is no belief is refused when the study is made."""
    says(refusal(lambda: _check(belief)), *patterns)


def test_belief_that_cannot_be_sampled_is_refused() -> None:
    """A belief must be something to draw from."""

    class _Silent:
        sample = None
        marginal = None

    says(refusal(lambda: _check(_Silent())), "belief", "draw from", "_Silent")


@pytest.mark.parametrize(
    "belief", [lambda rng: rng.nope(), lambda rng: rng.normal(size=rng.integers(1, 4)), lambda rng: 1 / 0]
)
def test_belief_that_raises_or_changes_its_shape_is_refused(belief: Any) -> None:
    """A belief that raises, or whose draws do not stack, is ringtrue's error with the cause chained."""
    with pytest.raises(rt.errors.RingtrueError, match="belief") as caught:
        _check(belief)
    assert caught.value.__cause__ is not None


def test_belief_that_is_nan_is_refused() -> None:
    """A belief that draws nan is refused."""
    says(refusal(lambda: _check(lambda rng: np.nan)), "finite", "belief", "nan")


def test_procedures_see_the_belief_that_was_handed_over() -> None:
    """A procedure gets the user's own belief object: a scipy distribution has its mean(), a dict its keys."""
    seen: list[Any] = []

    def procedure(mu0: Any, y: Any) -> Any:
        seen.append(mu0)
        return stats.norm(y / 2, SD)

    belief = stats.norm(0, 1)
    _check(belief, _model, procedure, n=3)
    assert all(one is belief for one in seen)
    named = {"a": rt.Normal(0, 1)}
    _check(named, lambda theta: theta["a"], lambda mu0, y: {"a": rt.Normal(mu0["a"].mean + y, 1)}, n=3)


# Callables of every kind.


class _Kit:
    """Methods and a callable object."""

    def model(self, theta: Any, rng: Any) -> Any:
        return theta + rng.normal()

    def procedure(self, mu0: Any, y: Any) -> Any:
        return rt.Normal(y / 2, SD)

    def cube(self, theta: Any) -> Any:
        return theta**3

    def __call__(self, mu0: Any, y: Any, rng: Any) -> Any:
        return y / 2 + SD * rng.normal(size=19)


def _scaled(scale: float, theta: Any) -> Any:
    return scale * theta


def _noisy(theta: Any, rng: Any, noise: float = 1.0) -> Any:
    return theta + noise * rng.normal()


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        {"model": _Kit().model, "procedure": _Kit().procedure, "f": _Kit().cube},
        {"procedure": _Kit()},
        {"model": functools.partial(_noisy, noise=1.0), "f": functools.partial(_scaled, 2.0)},
        {"model": _noisy, "procedure": lambda mu0, y, scale=1.0: rt.Normal(y / 2, scale * SD)},
        {"model": lambda theta, rng=None: theta + rng.normal()},
        {"model": lambda *args: args[0] + args[1].normal(), "procedure": lambda *args: rt.Normal(args[1] / 2, SD)},
        {"model": np.sin, "f": np.exp},
        {"f": [np.abs, math.exp, np.sum]},
        {"f": lambda theta, power=3: theta**power},
    ],
)
def test_callables_of_every_kind_are_welcome(parts: dict[str, Any]) -> None:
    """Bound methods, callable objects, partials, defaults, *args, ufuncs and builtins are called as they are meant."""
    assert _check(**parts).replicates.kept.all()


@pytest.mark.parametrize("f", [np.vectorize(lambda theta: theta**2), lambda *args: args[0] ** 2])
def test_functions_of_any_number_of_arguments_do_not_see_the_data(f: Any) -> None:
    """An f whose signature says nothing (np.vectorize, *args) is a function of theta alone, at the strong level."""
    assert {row.level for row in _check(f=f).tests if row.kind != "data"} == {"strong", "reversible", "weak"}


def test_rng_goes_to_the_parameter_called_rng() -> None:
    """An rng behind another default is handed over by name; it never lands in the other parameter."""

    def model(theta: Any, noise: float = 1.0, rng: Any = None) -> Any:
        return theta + noise * rng.normal()

    def procedure(mu0: Any, y: Any, size: int = 19, rng: Any = None) -> Any:
        return y / 2 + SD * rng.normal(size=size)

    result = _check(model=model, procedure=procedure)
    assert result.tests[0].route == "ranks of 19"


def test_rng_as_keyword_only_works() -> None:
    """``P(theta, *, rng)`` and ``mu(belief, y, *, rng)`` get the rng."""

    def model(theta: Any, *, rng: Any) -> Any:
        return theta + rng.normal()

    def procedure(mu0: Any, y: Any, *, rng: Any) -> Any:
        return y / 2 + SD * rng.normal(size=19)

    assert _check(model=model, procedure=procedure).replicates.kept.all()


@pytest.mark.parametrize(
    ("parts", "patterns"),
    [
        ({"model": 3}, ("model must be a function", "theta", "int")),
        ({"model": lambda: 0}, ("the model", "1 and rng", "takes 0", "wrap")),
        ({"model": lambda a, b, c: 0}, ("the model", "1 and rng", "takes 3", "wrap")),
        (
            {"procedure": None},
            ("belief, a model and a procedure", "came without a procedure", r"adapters\.pymc\(model\)"),
        ),
        ({"procedure": 3}, (r"procedure must be a function of \(belief, y\) or \(belief, y, rng\)", "int")),
        ({"procedure": lambda theta, rng: 0}, ("the procedure", "2 and rng", "takes 1 beside rng", "in its place")),
        ({"procedure": lambda y: 0}, ("the procedure", "2 and rng", "takes 1", "wrap")),
        ({"procedure": lambda a, b, c, d: 0}, ("the procedure", "2 and rng", "takes 4", "wrap")),
    ],
)
def test_functions_of_the_wrong_number_of_arguments_are_refused(parts: Any, patterns: tuple[str, ...]) -> None:
    """A model or a procedure that cannot be called is refused when the study is made."""
    says(refusal(lambda: _check(**parts)), *patterns)


# Batches.


_ZOO = rt.procedures.NormalMean()


def _batched(model: Any = _ZOO.simulate, procedure: Any = _ZOO, **settings: Any) -> rt.Result:
    return _check(model=model, procedure=procedure, n=100, batch=50, **settings)


def test_batched_model_with_shared_noise_is_refused() -> None:
    """One noise term for a whole batch has the right shape and the wrong law: refused, with the remedy."""
    says(refusal(lambda: _batched(lambda theta, rng: theta + rng.normal())), "noise of its own", "size=theta.shape")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_small_batches_of_discrete_data_are_not_called_shared_noise(seed: int) -> None:
    """Two coin tosses that agree by chance are no shared noise."""
    coin = rt.procedures.BetaBinomial(1)
    rt.check(rt.Beta(1, 1), coin.simulate, coin, n=4, batch=2, seed=seed, f=rt.identity, progress="off")


@pytest.mark.parametrize(
    "procedure",
    [
        lambda mu0, y: rt.Normal(y[:-1] / 2, SD),
        lambda mu0, y, rng: rng.normal(size=(19, len(y) - 1)),
        lambda mu0, y, rng: rng.normal(size=(len(y), 19)),
        lambda mu0, y: rt.Normal(0.0, 1.0),
        lambda mu0, y: rt.stack([rt.Normal(one / 2, SD) for one in y[1:]]),
    ],
)
def test_batches_of_the_wrong_number_of_outputs_are_refused(procedure: Any) -> None:
    """A batched procedure that returns fewer outputs than datasets, or draws first, is told how many were wanted."""
    says(refusal(lambda: _batched(procedure=procedure)), "50", "replicates|outputs", "axis|shape|batch")


def test_list_of_outputs_is_refused_with_the_remedy() -> None:
    """A batched procedure that returns a list of distributions is pointed to ``stack``."""
    message = refusal(
        lambda: _batched(procedure=lambda mu0, y: [_bayes(mu0, one) for one in y]), rt.errors.RingtrueError
    )
    says(message, "stack")


@pytest.mark.parametrize("model", [lambda theta: 3.0, lambda theta: theta[:-1]])
def test_batched_model_of_the_wrong_length_is_refused(model: Any) -> None:
    """A batched model that does not return one dataset per parameter is refused, and is the one named."""
    says(refusal(lambda: _batched(model)), "model", "50")


def test_batched_data_in_a_tuple_are_refused_for_an_f_that_sees_them() -> None:
    """A batch of data that cannot be cut into datasets is refused, or cut part by part, when f wants one dataset."""

    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal(size=theta.shape), np.ones(len(theta))

    f = {"log lik": lambda theta, y: -((theta - y[0]) ** 2)}
    try:
        result = _batched(model, lambda mu0, y: _ZOO(mu0, y[0]), f=f)
    except rt.errors.InvalidStudy as error:
        says(str(error), "tuple", "array|dict")
    else:
        assert result.levels["exact"].pvalue > 1e-6  # the level of the test


def test_contaminated_models_are_not_batched() -> None:
    """A contaminated model tosses one coin per call, the wrong law for a batch: refused in a batched study."""
    model = rt.contaminated(_ZOO.simulate, _ZOO.simulate, 0.1)
    says(refusal(lambda: _batched(model)), "contaminated", "batch")


def test_scipy_laws_off_the_integers() -> None:
    """A discrete scipy law on {1/4, 1/2, 3/4} gives u inside the atom of the truth, or is refused."""
    places, chances = np.array([0.25, 0.5, 0.75]), np.array([0.2, 0.5, 0.3])
    law = stats.rv_discrete(values=(places, chances))()
    try:
        ran = rt.run(rt.Study(law, lambda theta: theta, lambda mu0, y: law, f=rt.identity), n=50, progress="off")
    except rt.errors.RingtrueError as error:
        says(str(error), "integers|atoms")
        return
    truth = np.array([rt.replay(rt.Study(law, lambda theta: theta, lambda mu0, y: law), i)[0] for i in range(50)])
    top = np.cumsum(chances)[np.searchsorted(places, truth)]
    bottom = top - chances[np.searchsorted(places, truth)]
    assert ((ran.u[:, 0] <= top + 1e-12) & (ran.u[:, 0] >= bottom - 1e-12)).all()


def test_no_warning_reaches_the_user_from_extreme_scales() -> None:
    """Parameters of size 1e300 and 1e-300 are judged without a warning and as those of size 1."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=(40, 2)), rng.normal(size=(40, 19, 2))
    family = [rt.Coordinate(index=(0,)), rt.Coordinate(index=(1,))]
    plain = rt.check_draws(theta, draws, f=family, belief=rt.Normal(np.zeros(2), np.ones(2)))
    for size in (1e300, 1e-300):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = rt.check_draws(
                size * theta, size * draws, f=family, belief=rt.Normal(np.zeros(2), np.full(2, size))
            )
        assert found.levels["strong"].pvalue == plain.levels["strong"].pvalue
