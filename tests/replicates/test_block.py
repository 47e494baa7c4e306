"""A block of replicates: what test functions are shown, and that company changes nothing."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.functions import Context, Sees
from ringtrue.replicates.record import join
from ringtrue.replicates.simulate import compute
from ringtrue.streams import Streams
from ringtrue.values import Floats, Generator
from tests.builders import BELIEF, SD, noisy, posterior

N = 24


@dataclass(frozen=True)
class FromReference:
    """The distance from a point of the replicate's own, between 0 and 1."""

    sees: Sees = "output"
    name: str = "from reference"
    kind: str = "function"

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the distances."""
        assert context.uniforms is not None
        return np.abs(np.asarray(theta) - context.uniforms(3)[..., 1])


def some_draws(mu0: Any, y: Any, rng: Generator) -> Floats:
    """Return draws of the posterior."""
    return np.asarray(y / 2 + SD * rng.normal(size=(19, *np.shape(y))))


def uneven_draws(mu0: Any, y: Any, rng: Generator) -> Floats:
    """Return draws of the posterior, as many as it happens."""
    return np.asarray(y / 2 + SD * rng.normal(size=10 + int(5 * abs(y))))


def mixed(mu0: Any, y: Any) -> Any:
    """Return outputs of several families."""
    if np.ndim(y):
        return rt.stack([mixed(mu0, one) for one in y])
    return posterior(mu0, y) if y > 0 else rt.Mixture([posterior(mu0, y), posterior(mu0, y)])


ROUTES: dict[str, tuple[Any, int | None]] = {
    "laws": (posterior, None),
    "laws, batched": (posterior, 8),
    "draws": (some_draws, None),
    "draws, batched": (some_draws, 8),
    "draws of many lengths": (uneven_draws, None),
    "families": (mixed, None),
    "families, batched": (mixed, 8),
}


@pytest.mark.parametrize("route", ROUTES)
def test_reference_points_belong_to_the_replicate(route: str) -> None:
    """The numbers that a context hands out are a function of the replicate's index, whatever form outputs come in."""
    procedure, batch = ROUTES[route]
    study = rt.Study(BELIEF, noisy, procedure, f=[FromReference()], draws=9, batch=batch)
    ran = rt.run(study, n=N, progress="off")
    points = Streams(0).uniforms("points", np.arange(N), 3)[:, 1]
    thetas = np.array([rt.replay(study, i)[0] for i in range(N)])
    np.testing.assert_array_equal(ran.truth[:, 0], np.abs(thetas - points))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("cuts", [(8,), (8, 16)], ids=str)
def test_company_changes_nothing(route: str, cuts: tuple[int, ...]) -> None:
    """Replicates that are computed in several parts are those that are computed at once, reference points included."""
    procedure, batch = ROUTES[route]
    study = rt.Study(BELIEF, noisy, procedure, f=[rt.identity, FromReference()], draws=9, batch=batch)
    ends = (0, *cuts, N)
    parts = [compute(study, a, b - a).record for a, b in pairwise(ends)]
    whole, joined = compute(study, 0, N).record, join(parts)
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(array, joined.arrays[name], err_msg=name)


@pytest.mark.parametrize(("belief", "step"), [(BELIEF, 3), (rt.Normal(np.zeros(2), np.ones(2)), 1)], ids=["1", "2"])
def test_no_more_is_drawn_at_once_than_fits(belief: Any, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 24 numbers at once, outputs of 8 replicates with 1 or 2 entries have 3 draws or 1, which changes no rank."""
    asked: list[int] = []
    real = rt.Normal.sample

    def sample(self: rt.Normal, m: int, rng: Generator) -> Floats:
        if self is not belief:
            asked.append(m)
        return real(self, m, rng)

    study = rt.Study(belief, noisy, posterior, f={"waves": lambda theta: np.sin(theta).sum()}, draws=9, batch=8)
    whole = compute(study, 0, 8).record
    monkeypatch.setattr("ringtrue.replicates.block._CHUNK", 24)
    monkeypatch.setattr(rt.Normal, "sample", sample)
    parts = compute(study, 0, 8).record
    assert sorted(asked) == [1] + [step] * (9 // step)  # and one for the weak level
    np.testing.assert_array_equal(parts.rank, whole.rank)


@pytest.mark.parametrize("size", [1, 5])
def test_single_replicates_may_be_cut_anywhere(size: int) -> None:
    """Of single replicates every group gives the same numbers."""
    study = rt.Study(BELIEF, noisy, some_draws, f=[rt.identity, FromReference()])
    whole = compute(study, 0, N).record
    joined = join(compute(study, a, min(size, N - a)).record for a in range(0, N, size))
    np.testing.assert_array_equal(whole.u, joined.u)


def test_ranks_are_among_distances_from_the_same_point() -> None:
    """Truth and draws of a replicate are measured from the same point."""
    study = rt.Study(BELIEF, noisy, some_draws, f=[FromReference()])
    ran = rt.run(study, n=N, progress="off")
    points = Streams(0).uniforms("points", np.arange(N), 3)[:, 1]
    for i in range(N):
        theta, _, output = rt.replay(study, i)
        assert ran.rank[i, 0] == np.sum(np.abs(output.values - points[i]) < np.abs(theta - points[i]))


@pytest.mark.parametrize("batch", [None, 8])
def test_functions_that_see_the_data_have_points_too(batch: int | None) -> None:
    """A function of theta and the data may use reference points, from the first look at the study on."""
    study = rt.Study(BELIEF, noisy, posterior, f=[FromReference(sees="data")], draws=9, batch=batch)
    ran = rt.run(study, n=N, progress="off")
    points = Streams(0).uniforms("points", np.arange(N), 3)[:, 1]
    thetas = np.array([rt.replay(study, i)[0] for i in range(N)])
    np.testing.assert_array_equal(ran.truth[:, 0], np.abs(thetas - points))


def test_outside_a_run_there_are_no_points() -> None:
    """A function of theta alone is asked about draws of the belief, which are no replicates: it must do without."""
    assert Context().uniforms is None
    with pytest.raises(rt.errors.InvalidStudy, match="must work on draws of the belief"):
        rt.run(rt.Study(BELIEF, noisy, posterior, f=[FromReference(sees="theta")]), n=N, progress="off")


def test_a_function_sees_the_dataset_of_its_replicate_in_a_dict_of_data() -> None:
    """Data of a batch may be a dict; a function that sees outputs of several families gets its own dataset."""

    def model(theta: Any, rng: Generator) -> Any:
        return {"y": noisy(theta, rng)}

    study = rt.Study(
        BELIEF, model, lambda mu0, y: mixed(mu0, y["y"]), f=[rt.identity, FromReference()], draws=9, batch=8
    )
    plain = rt.Study(BELIEF, noisy, mixed, f=[rt.identity, FromReference()], draws=9, batch=8)
    named, unnamed = (rt.run(one, n=N, progress="off") for one in (study, plain))
    np.testing.assert_array_equal(named.u, unnamed.u)


def test_points_of_function_valued_parameters() -> None:
    """Draws that are objects are evaluated one by one, with the points of their replicate."""

    @dataclass(frozen=True)
    class AtPoint:
        sees: Sees = "data"
        name: str = "at point"
        kind: str = "function"

        def evaluate(self, theta: Any, context: Context) -> Floats:
            assert context.uniforms is not None
            if callable(theta):
                return np.asarray(theta(context.uniforms(1)[..., 0]))
            points = context.uniforms(1)[:, 0]
            return np.array([one(point) for one, point in zip(theta, points, strict=True)])

    class Lines:
        marginal = None

        def sample(self, m: int, rng: Generator) -> list[Any]:
            return [lambda x, slope=slope: slope * x for slope in rng.normal(size=m)]

    ran = rt.run(
        rt.Study(
            lambda rng: Lines().sample(1, rng)[0], lambda theta: theta(1.0), lambda mu0, y: Lines(), f=[AtPoint()]
        ),
        n=N,
        progress="off",
    )
    points = Streams(0).uniforms("points", np.arange(N), 1)[:, 0]
    slopes = np.array([Streams(0).generator("truth", i).normal(size=1)[0] for i in range(N)])
    np.testing.assert_allclose(ran.truth[:, 0], slopes * points, rtol=1e-15)
