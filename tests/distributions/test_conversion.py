"""Posteriors with named axes, of xarray itself; those of ArviZ are in tests/adapters."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import ringtrue as rt
from ringtrue.distributions import as_distribution
from tests.builders import refusal, says

#: Three chains of four draws: a number, and a vector of two whose axes are in another order.
MU = np.arange(12.0).reshape(3, 4)
BETA = np.arange(24.0).reshape(2, 4, 3)


def dataset(shift: float = 0.0) -> Any:
    """Return a posterior, with a constant that has no draws."""
    return xr.Dataset(
        {"mu": (("chain", "draw"), MU + shift), "beta": (("k", "draw", "chain"), BETA), "x": (("k",), [1.0, 2.0])}
    )


@pytest.mark.parametrize(
    "value",
    [
        dataset(),
        xr.DataTree.from_dict({"posterior": dataset(), "sample_stats": dataset(1.0)}),
        {"mu": dataset()["mu"], "beta": dataset()["beta"]},
    ],
    ids=["Dataset", "DataTree", "dict"],
)
def test_chains_are_found_by_the_names_of_axes(value: Any) -> None:
    """Chain after chain, each in its order, wherever their axes are; what has no draws is left out."""
    found = as_distribution(value, what="the output")
    assert found.chains == 3
    assert set(found.values) == {"mu", "beta"}
    assert found.values["mu"].tolist() == list(range(12))
    assert found.values["beta"].shape == (12, 2)
    assert found.values["beta"][5, 1] == BETA[1, 1, 1]  # draw 1 of chain 1


def test_single_arrays_have_chains_too() -> None:
    """One with the names of axes; one without them is an array of draws as ever."""
    found = as_distribution(dataset()["mu"], what="the output")
    assert found.chains == 3
    assert found.values.tolist() == list(range(12))
    assert as_distribution(xr.DataArray(MU), what="the output").values.shape == (3, 4)


def test_without_a_posterior_is_refused() -> None:
    """One sentence, for trees and for tables."""
    tree = xr.DataTree.from_dict({"prior": dataset()})
    table = xr.Dataset({"mu": (("sample",), MU[0])})
    says(refusal(lambda: as_distribution(tree, what="the output")), "the output", "chain and draw", "DataTree")
    says(refusal(lambda: as_distribution(table, what="the output")), "the output", "chain and draw", "Dataset")


def test_a_list_of_posteriors_is_the_arrays_in_it() -> None:
    """A list gives what check_draws makes of the same numbers as arrays, with the number of chains said."""
    rng = np.random.default_rng(1)
    draws, theta = rng.normal(size=(30, 2, 50)), rng.normal(size=30)
    some = [xr.Dataset({"mu": (("chain", "draw"), one), "lp": (("chain", "draw"), one)}) for one in draws]
    expected = rt.check_draws({"mu": theta}, {"mu": draws}, chains=2)
    assert rt.check_draws({"mu": theta}, some).to_dict() == expected.to_dict()
    single = rt.check_draws(theta, [one["mu"] for one in some])
    assert single.levels["strong"].pvalue == rt.check_draws(theta, draws, chains=2).levels["strong"].pvalue


def test_lists_that_do_not_fit_are_refused() -> None:
    """Other numbers of chains, a number that is not theirs, truths without names, a name that is missing."""
    theta, some = {"mu": np.zeros(2)}, [dataset(), dataset()]
    says(refusal(lambda: rt.check_draws(theta, [some[0], some[1].isel(chain=[0])])), "number 1", "equally many")
    says(refusal(lambda: rt.check_draws(theta, [some[0], np.zeros(3)])), "number 1", "equally many")
    says(refusal(lambda: rt.check_draws(theta, some, chains=2)), "3 chains", "chains=2")
    says(refusal(lambda: rt.check_draws(np.zeros(2), some)), "names")
    says(refusal(lambda: rt.check_draws({"nu": np.zeros(2)}, some)), "nu")


def test_a_procedure_may_return_one() -> None:
    """The study judges its chains as it judges the same draws with chains=2."""

    def model(theta: Any, rng: Any) -> Any:
        return theta["mu"] + rng.normal()

    def drawn(y: Any, rng: Any) -> Any:
        return y / 2 + 0.5**0.5 * rng.normal(size=(2, 40))

    def named(belief: Any, y: Any, rng: Any) -> Any:
        return xr.Dataset({"mu": (("chain", "draw"), drawn(y, rng))})

    def plain(belief: Any, y: Any, rng: Any) -> Any:
        return rt.Draws({"mu": drawn(y, rng).ravel()}, chains=2)

    belief = {"mu": rt.Normal(0, 1)}
    one, other = (rt.run(belief, model, procedure, n=20) for procedure in (named, plain))
    assert np.array_equal(one.u, other.u)
