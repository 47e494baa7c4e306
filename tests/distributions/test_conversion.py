"""What other libraries hold draws in: named axes of xarray, tables of pandas, kernels of scipy, tensors.

Posteriors of ArviZ are in tests/adapters.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import ringtrue as rt
from ringtrue.distributions import as_distribution
from ringtrue.functions import SEVERAL, Coordinate, Linear
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


def table(rng: Any, rows: int = 40) -> Any:
    """Return a table of draws of two parameters."""
    return pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows)})


def test_columns_of_a_table_are_names() -> None:
    """A DataFrame is draws by name; nothing is said of their independence."""
    found = as_distribution(frame := table(np.random.default_rng(1)), what="the output")
    assert (found.size, found.chains, found.iid) == (40, None, None)
    assert found.values["b"].tolist() == frame["b"].tolist()


def test_chain_and_draw_columns_say_where_a_row_belongs() -> None:
    """As ArviZ writes them; rows may be in any order, but chains must be equally long."""
    frame = pd.DataFrame({"chain": np.repeat([0, 1], 4), "draw": np.tile(range(4), 2), "mu": np.arange(8.0)})
    found = as_distribution(frame.sample(frac=1, random_state=1), what="the output")
    assert found.chains == 2
    assert {name: part.tolist() for name, part in found.values.items()} == {"mu": list(range(8))}
    says(refusal(lambda: as_distribution(frame[:-1], what="the output")), "equally many", "[3, 4]")


def test_tables_are_checked_as_the_arrays_in_them() -> None:
    """A table of truths with a list of tables, a dict of arrays, or, without names, an array."""
    rng = np.random.default_rng(2)
    theta, frames = table(rng), [table(rng, 50) for _ in range(40)]
    arrays = {name: np.stack([frame[name] for frame in frames]) for name in ("a", "b")}
    expected = rt.check_draws({name: theta[name].to_numpy() for name in theta}, arrays).to_dict()
    assert rt.check_draws(theta, frames).to_dict() == expected
    assert rt.check_draws(theta, arrays).to_dict() == expected
    plain = rt.check_draws(theta.to_numpy(), np.stack([frame.to_numpy() for frame in frames])).to_dict()
    assert rt.check_draws(theta.to_numpy(), frames).to_dict() == plain


class Tensor:
    """Has what a tensor of torch has that carries gradients: it is no array before it is detached."""

    def __init__(self, values: Any, attached: bool = True) -> None:
        self.values, self.attached = np.asarray(values), attached

    def detach(self) -> "Tensor":
        """Return it without gradients."""
        return Tensor(self.values, attached=False)

    def cpu(self) -> "Tensor":
        """Return it where it is."""
        return self

    @property
    def shape(self) -> Any:
        """The axes."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.attached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values


def test_tensors_with_gradients_are_arrays() -> None:
    """Alone and in dicts, as outputs and in check_draws."""
    values = np.arange(6.0).reshape(3, 2)
    assert as_distribution(Tensor(values), what="the output").values.tolist() == values.tolist()
    assert as_distribution({"a": Tensor(values)}, what="the output").values["a"].tolist() == values.tolist()
    rng = np.random.default_rng(3)
    theta, draws = rng.normal(size=30), rng.normal(size=(30, 9))
    assert rt.check_draws(Tensor(theta), Tensor(draws)).to_dict() == rt.check_draws(theta, draws).to_dict()


def test_kernels_have_exact_laws() -> None:
    """Of one number that of scipy, of a vector those of its entries and sums: kernels of the entries and sums."""
    rng = np.random.default_rng(4)
    points, weights = rng.normal(size=(2, 50)), rng.dirichlet(np.ones(50))
    one = stats.gaussian_kde(points[0], weights=weights)
    law = as_distribution(one, what="the output").marginal(Coordinate())
    x = np.linspace(-3, 3, 7)
    assert law.cdf(x) == pytest.approx([one.integrate_box_1d(-np.inf, at) for at in x], rel=1e-12)
    assert law.cdf(x) + law.sf(x) == pytest.approx(np.ones(7), rel=1e-12)
    # Far out, where both tails are 0 in floating point, a score is that of the nearest point: others weigh nothing.
    nearest = (60 - points[0].max()) / law.sd
    assert float(law.zscore(60.0)) == pytest.approx(nearest, rel=1e-3)
    two = stats.gaussian_kde(points)
    output = as_distribution(two, what="the output")
    for f, weight in ((Coordinate(index=(1,)), [0, 1]), (Linear([1.0, 2.0]), [1, 2])):
        law = output.marginal(f)
        along = stats.gaussian_kde(np.array(weight) @ points)
        along.set_bandwidth(law.sd / np.std(along.dataset, ddof=1))
        assert law.cdf(x) == pytest.approx([along.integrate_box_1d(-np.inf, at) for at in x], rel=1e-9)
        mean, sd = law.moments()
        # Means of 4000 draws: 5 of their sds, 6e-7; twice the spread would be 30 away.
        drawn = f.evaluate(output.sample(4000, rng), SEVERAL)
        assert abs(drawn.mean() - mean) < 5 * sd / 4000**0.5
    theta = rng.normal(size=(3, 4, 2))
    assert output.log_density(theta)[1, 2] == pytest.approx(two.logpdf(theta[1, 2])[0])


def test_kernels_are_outputs() -> None:
    """A study whose procedure smooths exact draws takes the exact route, and finds the smoothing."""

    def smooth(belief: Any, y: Any, rng: Any, width: float = 0.2) -> Any:
        return stats.gaussian_kde(rng.normal(y / 2, 0.5**0.5, 400), bw_method=width)

    def too_smooth(belief: Any, y: Any, rng: Any) -> Any:
        return smooth(belief, y, rng, 2.0)

    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal()

    near = rt.check(rt.Normal(0, 1), model, smooth, n=200, alpha=1e-6)
    assert near.verdict is not rt.Verdict.MISCALIBRATED
    assert near.tests[0].route == "exact"
    assert rt.check(rt.Normal(0, 1), model, too_smooth, n=200).verdict is rt.Verdict.MISCALIBRATED
