"""Reducers: one file is one more number per replicate; chains, weights and diagnostics on their way to the record."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.distributions import Draws
from ringtrue.replicates import reducers
from ringtrue.replicates.block import Block
from ringtrue.replicates.chains import Placed, serial
from ringtrue.replicates.given import replicates_from_draws
from ringtrue.replicates.record import CHAINS, WEIGHTED, Field, join
from ringtrue.replicates.simulate import compute, simulate
from ringtrue.streams import Streams
from ringtrue.values import Floats, Generator
from tests.builders import BELIEF, SD, noisy, posterior, refusal, says


def run(procedure: Any, n: int = 40, **settings: Any) -> rt.Replicates:
    """Run the study of one number."""
    return rt.run(rt.Study(BELIEF, noisy, procedure, f="theta", **settings), n=n, progress="off")


# One more number.

TOY = '''
"""The data themselves, and how many there are in a block."""
import numpy as np
from ringtrue.replicates.record import Field


class Toy:
    fields = (Field("toy/data", ()), Field("toy/wide", ("function",)))
    keep = None

    def __call__(self, block):
        y = np.array([float(one) for one in block.y])
        return {"toy/data": y, "toy/wide": np.stack([y] * len(block.functions), axis=1), "toy/form": y[:, None, None]}


REDUCER = Toy()
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a file beside the reducers."""
    (tmp_path / "toy_of_the_tests.py").write_text(TOY, "utf-8")
    monkeypatch.setattr(reducers, "__path__", [*reducers.__path__, str(tmp_path)])
    reducers.reducers.cache_clear()
    yield
    reducers.reducers.cache_clear()


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("batch", [None, 16])
def test_a_new_number_is_one_file(batch: int | None) -> None:
    """What a new file in the folder computes is in the record, declared or not, and nothing else is touched."""
    study = rt.Study(BELIEF, noisy, posterior, batch=batch)
    ran = rt.run(study, n=40, progress="off")
    y = np.array([float(rt.replay(study, i)[1]) for i in range(40)])
    np.testing.assert_array_equal(ran.arrays["toy/data"], y)
    np.testing.assert_array_equal(ran.arrays["toy/wide"], np.stack([y, y], axis=1))
    np.testing.assert_array_equal(ran.arrays["toy/form"], y[:, None, None])
    assert rt.judge(ran).pvalue > 0


@pytest.mark.usefixtures("toy")
def test_a_new_number_is_carried_and_blank_where_a_replicate_is_lost() -> None:
    """Parts of a run, and replicates that were lost, have the new number too, blank where there is none."""

    def sometimes(mu0: Any, y: Any) -> Any:
        if y > 1:
            raise ValueError("too large")
        return posterior(mu0, y)

    study = rt.Study(BELIEF, noisy, sometimes)
    ran = rt.run(study, n=40, on_failure="record", failures_allowed=1, progress="off")
    assert 0 < ran.lost < 40
    assert np.isnan(ran.arrays["toy/data"]).tolist() == (~ran.kept).tolist()
    np.testing.assert_array_equal(ran.part(10, 20).arrays["toy/form"], ran.arrays["toy/form"][10:20])


def test_without_the_file_the_number_is_gone() -> None:
    """The record has what the reducers say, and no more."""
    assert not [name for name in run(posterior).arrays if name.startswith("toy")]


def test_a_reducer_may_be_asked_for_only() -> None:
    """A reducer that a run must ask for by keep= is called by no other run."""
    study = rt.Study(BELIEF, noisy, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=9), f="theta")
    plain, kept = compute(study, 0, 12).record, compute(study, 0, 12, keep="draws").record
    assert not plain.kept_arrays()
    assert {name: array.shape for name, array in kept.kept_arrays().items()} == {"theta": (12,), "draws": (12, 9)}
    np.testing.assert_array_equal(kept.kept_arrays()["theta"], kept.truth[:, 0])
    np.testing.assert_array_equal(kept.u, plain.u)


def test_every_reducer_fills_what_it_declares() -> None:
    """The arrays that a reducer declares are those it returns, whatever the block."""
    study = rt.Study(BELIEF, noisy, posterior)
    block = simulate(study, 3)
    for one in reducers.reducers():
        assert {field.name for field in one.fields} <= set(one(block))


# Diagnostics.


def with_diagnostics(mu0: Any, y: Any, rng: Generator) -> Draws:
    """Return draws with what the sampler says of itself."""
    said = {"rhat": 1 + 0.01 * np.abs(y), "steps": 7}
    return Draws(y / 2 + SD * rng.normal(size=(19, *np.shape(y))), diagnostics=said)


@pytest.mark.parametrize("batch", [None, 8])
def test_diagnostics_are_kept_with_their_replicates(batch: int | None) -> None:
    """What a sampler says of itself is in the record under its name, one number per replicate, in the right row."""
    ran = run(with_diagnostics, batch=batch)
    study = rt.Study(BELIEF, noisy, with_diagnostics, batch=batch)
    y = np.array([rt.replay(study, i)[1] for i in range(40)])
    np.testing.assert_array_equal(ran.arrays["diagnostic/rhat"], 1 + 0.01 * np.abs(y))
    np.testing.assert_array_equal(ran.arrays["diagnostic/steps"], np.full(40, 7.0))


@pytest.mark.parametrize("rare", [0.0, 1.5, 99.0], ids=["half of them", "few", "none"])
@pytest.mark.parametrize("sizes", [(19, 20), (20, 29)], ids=["equal sizes", "unequal sizes"])
def test_diagnostics_that_only_some_outputs_have_are_nan_in_the_others(rare: float, sizes: tuple[int, int]) -> None:
    """A name that some replicates have is nan in the others, however replicates are put together."""

    def sometimes(mu0: Any, y: Any, rng: Generator) -> Draws:
        said = {"steps": 7} | ({"divergences": y} if y > rare else {})
        return Draws(y / 2 + SD * rng.normal(size=rng.integers(*sizes)), diagnostics=said)

    def weighted(mu0: Any, y: Any, rng: Generator) -> Draws:
        draws = sometimes(mu0, y, rng)
        return Draws(draws.values, weights=1 + rng.random(draws.size), diagnostics=draws.diagnostics)

    y = np.array([rt.replay(rt.Study(BELIEF, noisy, sometimes), i)[1] for i in range(40)])
    for procedure in (sometimes, weighted):
        study = rt.Study(BELIEF, noisy, procedure, f="theta")
        parts = [compute(study, first, 5).record for first in range(0, 40, 5)]
        for ran in (run(procedure), join(parts)):
            np.testing.assert_array_equal(ran.arrays["diagnostic/steps"], np.full(40, 7.0))
            expected = np.where(y > rare, y, np.nan)
            np.testing.assert_array_equal(ran.arrays.get("diagnostic/divergences", np.full(40, np.nan)), expected)


def test_outputs_without_diagnostics_are_nan_beside_those_that_have_some() -> None:
    """An output that is no array of draws, now and then, takes nothing from the others."""

    def mixed(mu0: Any, y: Any, rng: Generator) -> Any:
        return with_diagnostics(mu0, y, rng) if y > 0 else posterior(mu0, y)

    y = np.array([rt.replay(rt.Study(BELIEF, noisy, mixed), i)[1] for i in range(40)])
    np.testing.assert_array_equal(run(mixed).arrays["diagnostic/steps"], np.where(y > 0, 7.0, np.nan))


def test_diagnostics_must_be_one_number_per_output() -> None:
    """Diagnostics that do not fit a batch are a failure of the batch that had them, and are not cut."""

    def wrong(mu0: Any, y: Any, rng: Generator) -> Draws:
        return Draws(y / 2 + SD * rng.normal(size=(19, len(y))), diagnostics={"rhat": np.ones(3)})

    says(refusal(lambda: run(wrong, batch=8), rt.errors.ReplicateFailed), "replicate 0", "'rhat'", r"\(3,\)", "8 of")


@pytest.mark.parametrize(
    ("said", "patterns"),
    [
        (3, ("must be a dict", "3 arrived", "leave them out")),
        (None, ("must be a dict", "None arrived", "leave them out")),
        ({"a": "b"}, ("one number each", "'a' is 'b'")),
        ({"a": None}, ("one number each", "'a' is None")),
        ({"a": [1, 2]}, ("one number each", r"'a' has shape \(2,\)", "pass the worst")),
        ({"a": [[1], [2, 3]]}, ("one number each", "'a' is")),
    ],
)
def test_diagnostics_that_are_no_numbers_fail_their_replicate(said: Any, patterns: tuple[str, ...]) -> None:
    """What is no number by name is refused, with the replicate; it can be recorded like any failure."""

    def always(mu0: Any, y: Any, rng: Generator) -> Draws:
        return Draws(rng.normal(size=19), diagnostics=said)

    def once(mu0: Any, y: Any, rng: Generator) -> Draws:
        return Draws(y / 2 + SD * rng.normal(size=19), diagnostics=said if y == bad else {"a": 1})

    bad = rt.replay(rt.Study(BELIEF, noisy, posterior), 17)[1]
    says(refusal(lambda: run(always), rt.errors.ReplicateFailed), "replicate 0", "diagnostics must be", *patterns)
    lost = rt.run(rt.Study(BELIEF, noisy, once), n=40, progress="off", on_failure="record").failures
    assert [one.replicate for one in lost] == [17]
    says(lost[0].error, "diagnostics must be", *patterns)


def test_diagnostics_per_entry_of_a_vector_are_refused() -> None:
    """One number per entry of theta looks like one per output of a batch; a single output may not have them."""
    belief = rt.Normal(np.zeros(3), 1)

    def rhats(mu0: Any, y: Any, rng: Generator) -> Draws:
        return Draws(rng.normal(size=(19, 3)), diagnostics={"rhat": np.ones(3)})

    study = rt.Study(belief, lambda theta: theta, rhats)
    says(refusal(lambda: rt.run(study, n=5)), "diagnostics of a single output", "'rhat' has 3", "pass the worst")


# Chains.


def chains_of(y: Any, rng: Generator, chains: int, length: int) -> Floats:
    """Return slow chains with the posterior as their law, one behind the other, for one dataset or a batch."""
    states = rng.standard_normal((chains, length, *np.shape(y)))
    for t in range(1, length):
        states[:, t] = 0.8 * states[:, t - 1] + 0.6 * states[:, t]
    return np.asarray(y / 2 + SD * states.reshape(chains * length, *np.shape(y)))


@pytest.mark.parametrize("batch", [None, 8])
def test_chains_are_placed_replicate_by_replicate(batch: int | None) -> None:
    """What is kept of chains is a function of the replicate alone, and u is the place among all draws."""

    def procedure(mu0: Any, y: Any, rng: Generator) -> Draws:
        return Draws(chains_of(y, rng, 4, 100), chains=4)

    ran = run(procedure, n=16, batch=batch)
    study = rt.Study(BELIEF, noisy, procedure, f="theta", batch=batch)
    for i in range(16):
        theta, _, output = rt.replay(study, i)
        values = output.values if batch is None else output.values[:, i % batch]
        alone = Placed(values.reshape(1, 4, 100), np.array([theta]))
        np.testing.assert_array_equal(ran.arrays["chains/differences"][i], alone.differences())
        np.testing.assert_array_equal(ran.arrays["chains/size"][i], alone.agreement()[1])
        assert (ran.draws[i, 0], ran.rank[i, 0]) == (400, np.sum(values < theta))
    assert (ran.treated == CHAINS).all()
    assert (ran.arrays["chain_count"] == 4).all()
    assert ran.members is None


def test_nothing_is_kept_of_draws_that_are_said_to_be_independent() -> None:
    """iid=True costs nothing; if nothing is said, neighbours are looked at."""
    said = run(lambda mu0, y, rng: Draws(y / 2 + SD * rng.normal(size=19), iid=True))
    unsaid = run(lambda mu0, y, rng: y / 2 + SD * rng.normal(size=19))
    assert [name for name in said.arrays if "chain" in name] == []
    assert [name for name in unsaid.arrays if "chain" in name] == ["chains/serial"]
    assert [name for name in run(lambda mu0, y: rt.Normal(y / 2, SD)).arrays if "chain" in name] == []


def test_neighbours_of_a_vector_of_one_entry_are_those_of_the_number() -> None:
    """Entries that are ranked together leave no values behind: they are read again, up to 200 draws of them."""
    rng = np.random.default_rng(0)
    theta, draws = rng.normal(size=9), rng.normal(size=(9, 230)).cumsum(axis=1)
    number = replicates_from_draws(theta, draws, f=rt.identity)
    vector = replicates_from_draws(theta[:, None], draws[:, :, None], f=rt.Coordinate(index=(0,)))
    np.testing.assert_array_equal(vector.rank, number.rank)
    np.testing.assert_array_equal(vector.arrays["chains/serial"], number.arrays["chains/serial"])
    np.testing.assert_allclose(vector.arrays["chains/serial"][:, 0], serial(draws[:, :200].T), rtol=1e-12)


def test_one_chain_is_iid_false() -> None:
    """chains=1 and iid=False are the same thing."""
    one, other = (
        run(lambda mu0, y, rng, said=said: Draws(chains_of(y, rng, 1, 200), **said), n=12)
        for said in ({"chains": 1}, {"iid": False})
    )
    np.testing.assert_array_equal(one.u, other.u)
    np.testing.assert_array_equal(one.arrays["chains/differences"], other.arrays["chains/differences"])


# Weights.


def weighted(mu0: Any, y: Any, rng: Generator) -> Draws:
    """Return draws of the belief with the likelihood of each dataset as their weights."""
    values = rng.normal(size=(200, *np.shape(y)))
    return Draws(values, weights=np.exp(-0.5 * np.square(values - y)))


def test_weights_per_replicate_are_those_of_the_members() -> None:
    """A batch whose outputs have weights of their own is reduced like its members one by one, to the bit."""
    study, rng = rt.Study(BELIEF, noisy, weighted, batch=12), np.random.default_rng(3)
    theta = rng.normal(size=12)
    y = noisy(theta, rng)
    output = weighted(None, y, rng)
    together = reducers.reduce(Block(study, Streams(0), np.arange(12), theta, y, output))
    for j, one in enumerate(output.members()):
        alone = reducers.reduce(Block(study, Streams(0), np.array([j]), theta[j : j + 1], (y[j],), (one,)))
        assert set(alone) - set(together) == {"members"}  # which has another form where there are other draws
        for name, array in together.items():
            np.testing.assert_array_equal(array[j : j + 1], alone[name], err_msg=name)


def test_weights_per_replicate_run_in_batches() -> None:
    """A batched importance sampler runs, says what was done to its draws, and each output has its own size."""
    ran = run(weighted, batch=10)
    assert (ran.treated == WEIGHTED).all()
    assert len(set(ran.draws[:, 0].tolist())) > 10
    assert np.isfinite(ran.u).all()


def test_weights_of_named_data_in_batches() -> None:
    """Data of a batch may be a dict, also where outputs must be looked at one by one."""

    def model(theta: Any, rng: Generator) -> Any:
        return {"y": noisy(theta, rng), "x": np.ones(len(theta))}

    study = rt.Study(BELIEF, model, lambda mu0, y, rng: weighted(mu0, y["y"], rng), f="theta", batch=10)
    plain = rt.Study(BELIEF, noisy, weighted, f="theta", batch=10)
    named, unnamed = (rt.run(one, n=20, progress="off") for one in (study, plain))
    np.testing.assert_array_equal(named.u, unnamed.u)


def test_weights_belong_to_their_replicate() -> None:
    """Draws of the belief weighted by the likelihood of the data are calibrated; by that of other data they are not.

    The false-alarm rate is the level, 1e-6; resampling to the effective size is approximate, and on 20 other seeds the
    smallest p was 0.005. The twin's truth has variance 1 + 1/2 about the output's mean where the output says 1/2, a
    spread of 1.7: on 20 other seeds the largest p was 1e-27.
    """

    def mixed_up(mu0: Any, y: Any, rng: Generator) -> Draws:
        return weighted(mu0, np.roll(y, 1), rng)

    right, wrong = (rt.judge(run(one, n=400, batch=100)) for one in (weighted, mixed_up))
    assert right.pvalue > 1e-6
    assert wrong.pvalue <= 1e-6


def test_arrays_of_draws_with_weights_are_one_by_one() -> None:
    """check_draws with weights (n, M) is the route of every replicate alone."""
    rng = np.random.default_rng(5)
    theta, draws = rng.normal(size=12), rng.normal(size=(12, 50))
    weights = np.exp(-0.5 * np.square(draws - noisy(theta, rng)[:, None]))
    ran = rt.check_draws(theta, draws, weights=weights, f=rt.identity).replicates
    sizes = [int((1 + 1e-9) * w.sum() ** 2 / np.square(w).sum()) for w in weights]
    assert ran.draws[:, 0].tolist() == sizes
    says(refusal(lambda: rt.check_draws(theta, draws, weights=weights[:, :9])), r"weights must have shape \(n, M\)")


def importance(n: int = 12, draws: int = 50) -> tuple[Floats, Floats, Floats]:
    """Return truths, draws of the belief, and weights by the likelihood of the truths' data."""
    rng = np.random.default_rng(5)
    theta, values = rng.normal(size=n), rng.normal(size=(n, draws))
    return theta, values, np.exp(-0.5 * np.square(values - noisy(theta, rng)[:, None]))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
@pytest.mark.parametrize("cut", [None, 49], ids=["an array", "a list"])
def test_a_replicate_whose_weights_will_not_do_is_lost_alone(bad: float, cut: int | None) -> None:
    """It is named, or recorded; the numbers of the others are those that they would have been."""
    theta, draws, weights = importance()
    whole = rt.check_draws(theta, draws, weights=weights, f="theta").replicates
    weights[3] = bad
    values, broken = ([rows[0][:cut], *rows[1:]] for rows in (draws, weights))  # of equal length they are an array
    message = refusal(lambda: rt.check_draws(theta, values, weights=broken, f="theta"), rt.errors.ReplicateFailed)
    says(message, r"replicate 3\b", "weights must be 50 non-negative numbers", "record")
    ran = rt.check_draws(theta, values, weights=broken, f="theta", on_failure="record").replicates
    assert [one.replicate for one in ran.failures] == [3]
    says(ran.failures[0].error, "weights must be 50 non-negative numbers with a positive sum")
    others = np.r_[1:3, 4:12]
    np.testing.assert_array_equal(ran.u[others], whole.u[others])


def test_a_bad_output_does_not_cost_its_batch() -> None:
    """Of a batch of importance samplers the one without weight is lost, and the others are as they were."""

    def broken(mu0: Any, y: Any, rng: Generator) -> Draws:
        values = rng.normal(size=(200, len(y)))
        return Draws(values, weights=np.exp(-0.5 * np.square(values - y)) * (np.arange(len(y)) != 2))

    ran = rt.run(rt.Study(BELIEF, noisy, broken, f="theta", batch=10), n=20, on_failure="record", progress="off")
    assert [one.replicate for one in ran.failures] == [2, 12]
    others = np.setdiff1d(np.arange(20), [2, 12])
    np.testing.assert_array_equal(ran.u[others], run(weighted, n=20, batch=10).u[others])


def test_equal_weights_with_a_bad_output_are_no_weights() -> None:
    """Where all others are weighted alike, they are ranked among all of their draws, as without weights."""
    theta, draws, _ = importance()
    weights = np.ones(draws.shape)
    weights[3] = 0.0
    ran = rt.check_draws(theta, draws, weights=weights, on_failure="record").replicates
    plain = rt.check_draws(theta, draws).replicates
    np.testing.assert_array_equal(np.delete(ran.u, 3, axis=0), np.delete(plain.u, 3, axis=0))
    assert (ran.treated == 0).all()


def test_weights_of_a_list_of_draws_are_a_list() -> None:
    """Draws of unequal numbers have their weights in a list; those of equal numbers are what they are in an array."""
    theta, draws, weights = importance()
    cut = [50, 40, *[50] * 10]
    some, their = ([row[:m] for row, m in zip(rows, cut, strict=True)] for rows in (draws, weights))
    ran = rt.check_draws(theta, some, weights=their, f="theta").replicates
    whole = rt.check_draws(theta, draws, weights=weights, f="theta").replicates
    np.testing.assert_array_equal(np.delete(ran.u, 1, axis=0), np.delete(whole.u, 1, axis=0))
    assert ran.draws[1, 0] == int((1 + 1e-9) * their[1].sum() ** 2 / np.square(their[1]).sum())
    for wrong, patterns in (
        (their[:-1], ("must be a list too", "12 replicates")),
        (np.ones((12, 50)), (r"weights\[1\] must have shape \(40,\)", r"\(50,\)")),
        ([None] * 12, (r"weights\[0\] must be an array of numbers", "NoneType")),
        (3.0, ("must be a list too", "float")),
    ):
        says(refusal(lambda wrong=wrong: rt.check_draws(theta, some, weights=wrong)), *patterns)  # type: ignore[misc]


def test_a_single_output_has_one_weight_per_draw() -> None:
    """Weights with an axis more are those of a batch, though an output of a vector has as many axes: refused."""
    values = np.random.default_rng(0).normal(size=(20, 20))
    study = rt.Study(rt.Normal(np.zeros(20), 1), lambda theta: theta, lambda mu0, y: Draws(values, weights=values**2))
    says(refusal(lambda: rt.run(study, n=5)), r"shape \(20,\), one per draw", r"\(20, 20\)", "batch")


def test_fields_say_how_a_lost_replicate_looks() -> None:
    """A field is a float with nan for lost replicates, or a whole number with another blank."""
    assert (Field("a").dtype, Field("a", blank=-1).dtype) == (np.float64, np.int64)
