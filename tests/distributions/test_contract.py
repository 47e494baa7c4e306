"""What a distribution can is what it declares: users' objects need a sample and a marginal, and None means cannot."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.distributions import Beta, Distribution, Draws, Gamma, Gaussian, Normal, Repeated, as_distribution, stack
from ringtrue.errors import InvalidStudy, NoRoute
from ringtrue.functions import TestFunction as AnyFunction
from ringtrue.values import Floats, Generator
from tests.builders import BELIEF, SD, noisy, posterior, refusal, says


@dataclass(frozen=True)
class Own:
    """A user's output with the two things that it needs."""

    mean: Any

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return draws."""
        return np.asarray(rng.normal(self.mean, SD, (m, *np.shape(self.mean))))

    def marginal(self, f: AnyFunction) -> Normal | None:
        """Return the law of the number itself, and of nothing else."""
        return Normal(self.mean, SD) if f == rt.identity else None


@dataclass(frozen=True)
class Silent:
    """A user's output that says that it can nothing."""

    sample = None
    marginal = None


def check(procedure: Any, **settings: Any) -> rt.Result:
    """Run the study of one number."""
    return rt.check(BELIEF, noisy, procedure, n=40, progress="off", **settings)


@pytest.mark.parametrize("batch", [None, 8])
def test_a_sample_and_a_marginal_are_enough(batch: int | None) -> None:
    """An object with both goes the exact route where it knows the law and is ranked where it does not."""
    ran = check(lambda mu0, y: Own(y / 2), batch=batch).replicates
    exact = check(posterior, batch=batch, f=rt.identity).replicates
    assert np.array_equal(ran.u[:, 0], exact.u[:, 0])
    assert ran.draws.tolist() == [[0, 99]] * 40
    assert not ran.failures


@pytest.mark.parametrize("batch", [None, 8])
def test_an_output_that_can_nothing_has_no_route(batch: int | None) -> None:
    """Neither law nor draws is NoRoute, which names the user's class and every function that misses a route."""
    message = refusal(lambda: check(lambda mu0, y: Silent(), batch=batch), NoRoute)
    says(message, "output Silent has neither", "'theta', 'distance'", "give it a sample")


def test_an_object_that_declares_only_one_of_them_is_no_distribution() -> None:
    """What cannot be drawn from, or has no law, says so with None; leaving it out is refused with the remedy."""

    class Half:
        def sample(self, m: int, rng: Generator) -> Floats:
            return rng.normal(size=m)

    says(refusal(lambda: check(lambda mu0, y: Half()), InvalidStudy), "an object with sample and marginal", "type Half")


def test_what_is_not_declared_cannot_be() -> None:
    """A distribution that declares nothing can nothing, and needs no attribute to say so."""
    nothing = Distribution()
    names = ("sample", "marginal", "log_density", "mahalanobis", "size", "batch")
    assert all(getattr(nothing, name) is None for name in names)
    assert not nothing.lost


def test_further_capabilities_of_users_are_found() -> None:
    """A density, a number of draws or a batch that a user's object declares are asked for by those who need them."""

    class Dense(Own):
        size, batch = 7, 3

        def log_density(self, theta: Any) -> Any:
            return -np.square(theta)

    found = as_distribution(Dense(0.0), what="it")
    assert (found.size, found.batch) == (7, 3)
    assert found.log_density(3.0) == -9.0
    assert found.mahalanobis is None


@pytest.mark.parametrize("f", [rt.LogDensity(), rt.Mahalanobis()], ids=lambda f: f.name)
def test_a_capability_that_is_missing_is_named_with_the_users_class(f: Any) -> None:
    """A test function that needs what an output has not says which class has not got it."""
    says(refusal(lambda: check(lambda mu0, y: Own(y / 2), f=f)), repr(f.name), r"\bOwn\b", "another test function")


def test_replay_hands_back_the_users_own_object() -> None:
    """What a procedure returned comes back as what it is."""
    output = rt.replay(rt.Study(BELIEF, noisy, lambda mu0, y: Own(y / 2)), 3)[2]
    assert isinstance(output, Own)


def test_outputs_of_users_must_repeat_themselves_too() -> None:
    """A user's output whose numbers move is refused, even where the position of the truth does not."""

    @dataclass(frozen=True)
    class Certain:
        width: float
        marginal = None

        def sample(self, m: int, rng: Generator) -> Floats:
            return np.full(m, -1e9) + self.width

    own = np.random.default_rng(0)
    says(refusal(lambda: check(lambda mu0, y: Certain(own.random()))), "same answer twice", "the output moved")


@pytest.mark.parametrize(
    ("distribution", "batch"),
    [
        (Normal(0, 1), 0),
        (Normal(np.zeros(4), 1), 4),
        (Beta(1, np.ones((3, 2))), 3),
        (Gaussian([0.0, 1.0], np.eye(2)), 0),
        (Gaussian(np.zeros((5, 2)), np.eye(2)), 5),
        (Draws(np.zeros(9)), 0),
        (Draws(np.zeros((9, 4, 2))), 4),
        (stack([Normal(0, 1), Gamma(1, 1)]), 2),
        (Repeated(Normal(0, 1), 6), 6),
        (rt.Mixture([Normal(np.zeros(4), 1), Normal(np.ones(4), 1)], ndim=0), 4),
        (rt.Independent({"a": Normal(np.zeros(4), 1)}), 4),
        (as_distribution(Own(0.0), what="it"), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Distribution) else str(value),
)
def test_outputs_say_how_many_lie_side_by_side(distribution: Any, batch: int | None) -> None:
    """The number of outputs of a batch is declared; 0 is a single one, and None cannot be told."""
    assert distribution.batch == batch


@pytest.mark.parametrize(
    ("distribution", "size"),
    [
        (Draws(np.zeros((9, 4))), 9),
        (Draws({"a": np.zeros(9), "b": np.zeros((9, 2))}), 9),
        (Normal(0, 1), None),
        (rt.Independent({"a": Normal(0, 1), "b": np.zeros(9), "c": np.zeros(5)}), 5),
        (rt.Independent({"a": Normal(0, 1)}), None),
    ],
    ids=["draws", "named draws", "normal", "parts with draws", "parts without"],
)
def test_outputs_say_how_many_draws_they_are_known_by(distribution: Any, size: int | None) -> None:
    """What can make as many draws as are wanted has no size; what is known by draws has that of the fewest."""
    assert distribution.size == size


def test_places_of_a_batch_may_be_declared_lost() -> None:
    """A batch that names the places without a law loses those replicates, for the reason it gives."""

    class Partly(Normal):
        lost = MappingProxyType({1: "the optimiser diverged"})

    def procedure(mu0: Any, y: Floats) -> Partly:
        mean = y / 2
        mean[1] = np.nan
        return Partly(mean, SD)

    ran = rt.run(rt.Study(BELIEF, noisy, procedure, batch=8), n=24, on_failure="record", progress="off")
    assert [one.replicate for one in ran.failures] == [1, 9, 17]
    assert {one.error for one in ran.failures} == {"the optimiser diverged"}
