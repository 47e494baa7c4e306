"""Richardson's iteration passes linear test functions and fails the others."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.paper import richardson

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return a small run."""
    return richardson.make(scale=0.1, seed=3, progress=iter)


@pytest.mark.parametrize("factor", richardson.FACTORS)
def test_exact_distances_are_the_reference(factor: float) -> None:
    """Integration over theta reproduces the independent reference."""
    assert richardson.exact_distances(factor) == pytest.approx(richardson.REFERENCE[factor], abs=2e-5)


def test_roots_of_the_cubic() -> None:
    """The roots solve the cubic, in order, and a single one comes three times."""
    c = np.array([-5.0, -2.0, -1.0, 0.0, 1.5, 2.0, 40.0])
    low, middle, high = richardson.cubic_roots(c)
    for root in (low, middle, high):
        assert root**3 - 3 * root == pytest.approx(c, abs=1e-12)
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert low[[0, -1]] == pytest.approx(high[[0, -1]])


def test_law_of_the_cubic() -> None:
    """The exact law agrees with quadrature, has both tails, and fits its draws."""
    law = richardson.CubicLaw(rt.Normal(0.3, 0.8))
    x = np.linspace(-8, 8, 2_000_001)
    weights = stats.norm(0.3, 0.8).pdf(x) * (x[1] - x[0])
    for c in (-3.0, -1.0, 0.5, 1.9, 4.0):
        assert float(law.cdf(c)) == pytest.approx(float(weights[x**3 - 3 * x <= c].sum()), abs=1e-5)
        assert float(law.cdf(c) + law.sf(c)) == pytest.approx(1)
    u = law.cdf(law.sample(2000, np.random.default_rng(1)))
    # False-alarm rate 1e-6; the twin, draws of another cubic, is far off.
    assert rt.uniformity.ks(u).pvalue > 1e-6
    other = richardson.CubicLaw(rt.Normal(-0.3, 0.8)).cdf(law.sample(2000, np.random.default_rng(1)))
    assert rt.uniformity.ks(other).pvalue < 1e-6


def test_measured_distances_are_near_the_exact_ones(data: dict[str, Any]) -> None:
    """Every measured distance is within the uniform bound on an empirical law; that of another f is not."""
    # Twelve distances: P(any off by eps) <= 24 exp(-2 n eps^2) = 1e-6.
    bound = math.sqrt(math.log(24 / 1e-6) / (2 * data["settings"]["n"]))
    assert all(abs(row["ks"] - row["ks_exact"]) < bound for row in data["rows"])
    first = {row["kind"]: row for row in data["rows"] if row["g"] == 0.5}
    assert abs(first["theta"]["ks"] - first["weak"]["ks_exact"]) > bound


def test_the_identity_passes_and_the_square_fails(data: dict[str, Any]) -> None:
    """For every step size the identity is not rejected, theta^2 and the weak test are."""
    # Each of the identity's three p-values is below 3e-7 with that chance. Least visible is the weak test at g = 0.9,
    # of variance 0.82: at n = 10,000 its sum of squares is 12.7 null sd low, 5.2 suffice for p < 1e-6.
    for row in data["rows"]:
        if row["kind"] == "theta":
            assert row["p_default"] > 3e-7
            assert row["n_needed"] is None
        elif row["kind"] in ("theta^2", "weak"):
            assert row["p_default"] < 1e-6
            assert row["n_needed"] < 3000


def test_the_default_family_finds_it() -> None:
    """Without a choice of f, the package's family contains a non-linear member that rejects."""
    # KS distance 0.24 at n = 1000: p below 1e-6 but for a chance below 1e-9.
    belief = richardson.Scalar(rt.Normal(0.0, 1.0))
    result = rt.check(belief, lambda theta: theta, richardson.OneDimensional(0.5), n=1000, batch=1000)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert {row.f: row.pvalue < 1e-6 for row in result.tests if row.level == "strong"} == {
        "theta": False,
        "distance": True,
    }


def test_data_is_plain_and_said_in_words(data: dict[str, Any]) -> None:
    """The data is JSON, with a curve per row and a conclusion per step size."""
    assert json.loads(json.dumps(data, allow_nan=False))["rows"] == data["rows"]
    assert len(data["curves"]) == len(data["rows"]) == 12
    assert "g = 0.5: rejected by theta^2" in "\n".join(richardson.lines(data))


def test_figure(data: dict[str, Any]) -> None:
    """The figure has a panel per step size and fits a page."""
    figure = richardson.draw(data)
    assert len(figure.axes) == 3
    assert figure.get_size_inches()[0] <= 7.2
