"""Averages of bounded features, and where they come from."""

from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.replicates.averages import AVERAGES, looked_at, mean_features, pairs_of, parts
from ringtrue.replicates.record import join
from ringtrue.replicates.reducers import averages as reducer
from ringtrue.replicates.simulate import compute
from tests.builders import BELIEF, SD, noisy


def _exact(d: int) -> Any:
    """Return the exact posterior of a standard normal vector seen with noise of its own size."""
    return lambda mu0, y: rt.Gaussian(np.asarray(y) / 2, np.broadcast_to(np.eye(d) / 2, (*np.shape(y)[:-1], d, d)))


def _drawn(d: int, draws: int) -> Any:
    return lambda mu0, y, rng: y / 2 + SD * rng.normal(size=(draws, d))


def _gaussian(d: int) -> Any:
    return rt.Gaussian(np.zeros(d), np.eye(d))


def test_features_of_uniform_positions_are_standard() -> None:
    """On a fine grid of independent uniform positions all means are 0 and all variances 1, and none are correlated."""
    grid = (np.arange(200) + 0.5) / 100 - 1
    places = [one.ravel()[None] for one in np.meshgrid(grid, grid)]
    found = mean_features(places)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(found.T @ found / len(found), np.eye(5), atol=1e-3)


@pytest.mark.parametrize("d", [1, 2, 10, 11, 40])
def test_there_is_a_part_for_every_feature(d: int) -> None:
    """Two for every entry and one for every pair, of which there are at most 45 up to ten entries and 50 above."""
    found = parts(d)
    assert len(found) == mean_features([np.zeros(3)] * d).shape[-1]
    assert [part for part, _ in found[: 2 * d]] == ["mean"] * d + ["spread"] * d
    pairs = pairs_of(d)
    assert len(pairs) == min(d * (d - 1) // 2, 50 if d > 10 else 45)
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] < pairs[:, 1]).all()


def test_of_a_thousand_entries_a_hundred_are_looked_at() -> None:
    """The first and the last among them."""
    found = looked_at(1000)
    assert (len(found), found[0], found[-1]) == (100, 0, 999)


def test_draws_that_exist_are_averaged_in_the_belief() -> None:
    """Of nine draws all count, and a scalar with an exact law has nothing subtracted."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=30), rng.normal(size=(30, 9))
    ran = rt.check_draws(theta, draws, belief=BELIEF).replicates
    w, own = (2 * special.ndtr(x) - 1 for x in (draws, theta[:, None]))
    for row, places in ((0, w), (1, own)):
        expected = np.stack([np.sqrt(3) * places, np.sqrt(5) * (3 * places**2 - 1) / 2]).mean(axis=-1).T
        np.testing.assert_allclose(ran.arrays[AVERAGES][:, row], expected, rtol=1e-6, atol=1e-6)


def test_of_many_draws_sixteen_count() -> None:
    """They are evenly spaced, from the first to the last, so that a chain is not judged by its start."""
    draws = np.tile(np.linspace(-2, 2, 151), (20, 1))
    ran = rt.check_draws(np.zeros(20) + np.arange(20), draws, belief=BELIEF, iid=True).replicates
    w = 2 * special.ndtr(draws[0, ::10]) - 1
    np.testing.assert_allclose(ran.arrays[AVERAGES][:, 0, 0], np.sqrt(3) * w.mean(), atol=1e-6)


def test_the_same_numbers_are_subtracted_from_both() -> None:
    """An output that is one point, the truth, differs from it in nothing, whatever was drawn of the belief."""
    ran = rt.run(
        rt.Study(_gaussian(3), noisy, lambda mu0, y, rng: np.repeat(y[None], 3, axis=0), f=None), n=5
    )  # the draws are the data, not the truth
    assert ran.arrays[AVERAGES].shape == (5, 2, 9)
    same = rt.run(rt.Study(_gaussian(3), lambda theta: theta, lambda mu0, y: np.repeat(y[None], 3, axis=0)), n=5)
    np.testing.assert_array_equal(same.arrays[AVERAGES][:, 0], same.arrays[AVERAGES][:, 1])
    # Features of single entries have known means; those of pairs do not.
    assert (np.abs(same.arrays[AVERAGES][:, 1, :3]) <= np.sqrt(3)).all()


def _means(belief: Any, d: int, n: int) -> tuple[Any, Any]:
    ran = rt.run(rt.Study(belief, noisy, _drawn(d, 4), seed=3), n=n)
    return ran.arrays[AVERAGES].mean(axis=0), ran.arrays[AVERAGES].std(axis=0)


@pytest.mark.parametrize(
    "belief",
    [
        _gaussian(2),
        rt.Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]]),
        rt.Draws(np.random.default_rng(0).normal(size=(400, 2))),
        lambda rng: rng.normal(size=2),
    ],
    ids=["independent", "correlated", "draws", "one by one"],
)
def test_features_at_the_truth_have_mean_zero(belief: Any) -> None:
    """Whether the belief's means are known, estimated, or replaced by the truth.

    Features are at most 4 in size and centred by as many draws of their own: six standard errors of their sd, with a
    false-alarm rate of 1e-8 for all five.
    """
    mean, sd = _means(belief, 2, 400)
    assert (np.abs(mean[1]) <= 6 * sd[1] / np.sqrt(400) + 1e-9).all()


def test_broken_twin_truths_of_another_belief_are_off() -> None:
    """Truths that are given and not drawn from the belief fail the same assertion."""
    rng = np.random.default_rng(2)
    ran = rt.check_draws(2 * rng.normal(size=(400, 2)), rng.normal(size=(400, 4, 2)), belief=_gaussian(2)).replicates
    mean, sd = ran.arrays[AVERAGES].mean(axis=0), ran.arrays[AVERAGES].std(axis=0)
    assert (np.abs(mean[1]) > 6 * sd[1] / np.sqrt(400) + 1e-9).any()


def test_a_belief_with_atoms_has_its_own_means_subtracted() -> None:
    """A discrete entry is placed in the middle of its atoms, whose features do not have mean 0 by themselves."""
    from scipy import stats

    ran = rt.run(
        rt.Study(stats.poisson(1.0), lambda theta, rng: rng.poisson(theta), lambda mu0, y, rng: rng.poisson(1.0, 8)),
        n=400,
    )
    mean, sd = ran.arrays[AVERAGES].mean(axis=0), ran.arrays[AVERAGES].std(axis=0)
    # Six standard errors, as above. Without what is subtracted the second would be off by 0.6.
    assert (np.abs(mean) <= 6 * sd / np.sqrt(400)).all()


def test_who_computes_a_replicate_changes_nothing() -> None:
    """Batches that end within a group of draws of the belief, and memory that allows one replicate at a time."""
    study = rt.Study(rt.Gaussian(np.zeros(2), np.eye(2)), noisy, _drawn(2, 5))
    whole = rt.run(study, n=150).arrays[AVERAGES]
    np.testing.assert_array_equal(rt.run(study, n=70).arrays[AVERAGES], whole[:70])


def test_averaging_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few numbers are placed at once."""
    study = rt.Study(_gaussian(2), noisy, _drawn(2, 5))
    whole = rt.run(study, n=20).arrays[AVERAGES]
    monkeypatch.setattr(reducer, "_CACHED", 1)
    np.testing.assert_array_equal(rt.run(study, n=20).arrays[AVERAGES], whole)


@pytest.mark.parametrize("batch", [None, 25])
def test_outputs_with_exact_laws_are_drawn_from(batch: int | None) -> None:
    """A few draws of their own stream, in one piece or one by one; all other arrays are what they were."""
    ran = rt.run(rt.Study(_gaussian(2), noisy, _exact(2), batch=batch), n=50)
    assert ran.arrays[AVERAGES].shape == (50, 2, 5)
    assert np.isfinite(ran.arrays[AVERAGES]).all()


def test_there_is_nothing_to_average_without_belief_or_entries() -> None:
    """Fixed truths, no belief, functions of the user's own, and truths that are draws of outputs."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=20), rng.normal(size=(20, 9))
    assert AVERAGES not in rt.check_draws(theta, draws).replicates.arrays
    assert AVERAGES not in rt.check_draws(theta, draws, belief=BELIEF, f=lambda t: t**2).replicates.arrays
    fixed = rt.Study(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, SD), truth=rt.Normal(1, 1))
    assert AVERAGES not in rt.run(fixed, n=5).arrays


def test_which_replicates_have_averages_depends_on_their_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first ones have; in blocks of any size the record is the same."""
    study = rt.Study(rt.Normal([0.0, 0.0], 1), noisy, lambda mu0, y, rng: y / 2 + rng.normal(size=(9, 2)))
    features = len(parts(2))
    monkeypatch.setattr(reducer, "_BYTES", 13 * 2 * features * 4)
    whole = compute(study, 0, 30).record.arrays[AVERAGES]
    assert whole.shape == (13, 2, features)
    for size in (1, 4, 7, 14):
        joined = join([compute(study, k, min(size, 30 - k)).record for k in range(0, 30, size)], stop=30)
        assert joined.arrays[AVERAGES].tobytes() == whole.tobytes()
