"""What went in, in a few numbers: by hand, on both sides of every edge."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.replicates.given import replicates_from_draws
from ringtrue.replicates.record import IGNORES_STREAM, INPUT, LOOKED, NO_STREAM, SAME_SHIFT
from ringtrue.replicates.reducers import inputs
from tests.builders import BELIEF, posterior


def given(theta: Any, draws: Any, **settings: Any) -> dict[str, Any]:
    """Return what is kept of the inputs of arrays, by its own name."""
    ran = replicates_from_draws(np.array(theta), np.array(draws), f=rt.identity, iid=True, **settings)
    return {name.removeprefix(INPUT): array for name, array in ran.arrays.items() if name.startswith(INPUT)}


def test_equal_draws_and_hits_are_shares_of_the_draws() -> None:
    """Of four draws one in three equals the one before, and one in four the truth; two draws keep the second."""
    kept = given([1.0, 2.0, 3.0], [[1.0, 0.0, 0.0, 5.0], [2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 2.0, 4.0]])
    np.testing.assert_allclose(kept["tied"][:, 0], [1 / 3, 1, 0])
    np.testing.assert_allclose(kept["hit"][:, 0], [1 / 4, 1, 0])
    assert "second" not in kept
    two = given([1.0, 2.0, 3.0], [[1.0, 0.5], [2.0, 2.5], [0.0, 1.0]])
    assert two["second"][:, 0].tolist() == [0.5, 2.5, 1.0]
    assert "second" not in given([1.0, 2.0, 3.0], [[1.0, 0.5, 3.0], [2.0, 2.5, 0.0], [0.0, 1.0, 7.0]])


def test_draws_that_are_whole_numbers_of_steps_are_on_a_lattice() -> None:
    """Three values at least, some of them equal; a chain that stood still has steps of any size."""
    steps = [[0.1, 0.1, 0.3, 0.7], [0.1, 0.1, 0.3, 0.3], [0.1, 0.1, 0.3, 0.45], [0.0, 1.0, 2.0, 3.0], [2.0] * 4]
    assert given(np.arange(5.0) + 0.5, steps)["lattice"][:, 0].tolist() == [1, 0, 0, 0, 0]
    rng = np.random.default_rng(0)
    stuck, counted = rng.normal(size=(50, 30))[:, rng.integers(0, 30, 99)], rng.poisson(90, (50, 99)) / 20
    assert given(np.zeros(50), stuck)["lattice"].sum() == 0
    assert given(np.zeros(50), counted)["lattice"].sum() > 40  # the least step may be missing


@pytest.mark.parametrize(
    ("draws", "place", "kept"),
    [(9, 4, -1), (10, 0, -1), (10, 1, 1), (10, 8, 8), (10, 9, -1), (40, 1, -1), (40, 2, 2), (40, 37, 37), (40, 38, -1)],
)
def test_the_place_of_the_largest_is_kept_off_the_ends(draws: int, place: int, kept: int) -> None:
    """A twentieth at either end is left to sorted draws, one at least, and so are fewer than ten draws."""
    values = np.zeros((draws, 2))
    values[place] = 1.0
    assert inputs._place_of_largest(values).tolist() == [kept, kept]
    values[5] = 1.0
    values[6] = 1.0  # two are the largest
    assert inputs._place_of_largest(values).tolist() == [-1, -1]


def test_the_first_datasets_are_rows_of_numbers_whatever_their_axes() -> None:
    """As many as are looked at, or as there are; parts of a dict side by side in the order of their names."""
    y = np.arange(24.0).reshape(4, 3, 2)
    for few, many in ((3, 3), (9, 4)):
        np.testing.assert_array_equal(inputs._table(y, few), np.arange(6.0 * many).reshape(many, 6))
    both = inputs._table({"b": y, "a": -y[:, :1, 0]}, 2)
    np.testing.assert_array_equal(both, [[0, 0, 1, 2, 3, 4, 5], [-6, 6, 7, 8, 9, 10, 11]])


@pytest.mark.parametrize(("width", "sizes"), [(2, [3, 3, 1]), (7, [1] * 7), (6, [1] * 7), (3, [2, 2, 2, 1])])
def test_no_more_numbers_are_marked_at_once_than_fit(
    width: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six numbers at once are whole rows of them, one at least, and together all rows in their order."""
    monkeypatch.setattr(inputs, "_CHUNK", 6)
    y = np.arange(7.0 * width).reshape(7, width)
    parts = inputs._datasets(y, 7)
    assert parts is not None
    assert [len(rows) for _, rows in parts] == sizes
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), y)
    assert [part for part, _ in parts] == [slice(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(len(sizes))]


def test_what_lies_behind_the_first_replicates_is_blank() -> None:
    """Marks are there for the replicates that are looked at, and for no others."""
    theta = np.linspace(-1, 1, LOOKED + 5)
    kept = given(theta, np.tile([0.5, 0.25], (theta.size, 1)), y=np.stack([theta, theta], axis=1))
    for name in ("data", "draws"):
        assert (kept[name] != 0).tolist() == [True] * LOOKED + [False] * 5
    assert np.isnan(kept["hit"][:, 0]).tolist() == [False] * LOOKED + [True] * 5


NOISE = np.array([0.3, -0.4, 0.1])


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (lambda theta: theta[..., None] + NOISE, SAME_SHIFT),
        (lambda theta: theta + 0.3, SAME_SHIFT),
        (lambda theta: 1.1 * theta[..., None] + NOISE, NO_STREAM),
        (lambda theta, rng: theta + 0.3, IGNORES_STREAM),
        (lambda theta, rng: theta + rng.normal(size=np.shape(theta)), 0),
    ],
    ids=["same shift, more axes", "same shift", "other shift", "ignores its stream", "sound"],
)
def test_what_is_wrong_with_the_noise_is_kept_of_the_first_replicate(model: Any, kept: int, batch: int | None) -> None:
    """The same theta twice, and another theta, tell a model without noise from one whose noise is always the same."""

    def first(mu0: Any, y: Any) -> rt.Normal:
        return posterior(mu0, y[..., 0] if np.ndim(y) > (batch is not None) else y)

    study = rt.Study(BELIEF, model, first, batch=batch, f=rt.identity)
    noise = rt.run(study, n=8).arrays[f"{INPUT}noise"]
    assert noise.tolist() == [kept] + [0] * 7
