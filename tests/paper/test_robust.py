"""Robust calibration meets its closed forms."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ringtrue.paper import robust

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return a small run."""
    return robust.make(scale=0.2, seed=3, progress=iter)


@pytest.mark.parametrize(("power", "eps"), robust.REFERENCE)
def test_exact_distances_are_the_reference(power: float, eps: float) -> None:
    """The closed forms reproduce the independent reference to its five digits."""
    assert robust.exact_distance(eps, power) == pytest.approx(robust.REFERENCE[power, eps], abs=6e-6)


@pytest.mark.parametrize("power", robust.REFERENCE_CROSSINGS)
def test_crossings_are_the_reference(power: float) -> None:
    """Bayes is better below the cross-over and worse above."""
    found = robust.crossing(power)
    assert found == pytest.approx(robust.REFERENCE_CROSSINGS[power], abs=6e-4)
    assert robust.exact_distance(found - 0.01, 1.0) < robust.exact_distance(found - 0.01, power)
    assert robust.exact_distance(found + 0.01, 1.0) > robust.exact_distance(found + 0.01, power)


def test_calibrated_without_outliers() -> None:
    """Bayes without outliers has distance 0, whatever the belief."""
    assert robust.exact_distance(0.0, 1.0, 3.0) < 1e-12
    assert robust.exact_distance(0.0, 1.0, 9.0) < 1e-12


@pytest.mark.parametrize("power", robust.POWERS)
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5, 1.0])
def test_weak_distances_are_those_of_simulated_draws(power: float, eps: float) -> None:
    """One draw of each output has the averaged law, by a simulation that knows no mixture; that of another has not."""
    rng, n = np.random.default_rng(5), 400_000
    theta = np.sqrt(3) * rng.standard_normal(n)
    y = np.where(rng.random(n) < eps, 5.0, theta) + rng.standard_normal(n)
    weight = 3 * power / (1 + 3 * power)
    drawn = weight * y + np.sqrt(3 / (1 + 3 * power)) * rng.standard_normal(n)
    statistic = stats.kstest(drawn / np.sqrt(3), "norm").statistic
    # Massart: two ECDFs differ by more than 2.7 / sqrt(n) with a chance of 2 exp(-2 * 2.7^2) = 9e-7.
    assert abs(statistic - robust.exact_distance(eps, power, of=robust.averaged)) < 2.7 / np.sqrt(n)
    if eps == 1:
        assert abs(statistic - robust.exact_distance(eps, 1.0 if power < 1 else 0.1, of=robust.averaged)) > 0.1


def test_weak_crossings() -> None:
    """Without outliers fractional posteriors are not weakly calibrated and Bayes is; at the crossing they are equal."""
    for power in robust.POWERS[1:]:
        share = robust.crossing(power, of=robust.averaged)
        both = [robust.exact_distance(share, t, of=robust.averaged) for t in (1.0, power)]
        assert both[0] == pytest.approx(both[1], abs=1e-7)
        assert robust.exact_distance(0.0, power, of=robust.averaged) > 0.02
    assert robust.exact_distance(0.0, 1.0, of=robust.averaged) < 1e-12


def test_where_chi2_is_blind() -> None:
    """At the blind point the mean square of z is 1 to three digits, and the law of u is far from uniform."""
    power, eps = robust.BLIND
    clean, mean, sd = robust.mixture(power, 3.0)
    assert (1 - eps) * clean**2 + eps * (mean**2 + sd**2) == pytest.approx(1, abs=1e-3)
    assert robust.exact_distance(eps, power) == pytest.approx(0.0499, abs=1e-4)


def test_contamination_is_by_replicate() -> None:
    """About a share of the data comes from the outlier law, each by its own coin."""
    y = robust.Contaminated(0.25)(np.full(10_000, -100.0), np.random.default_rng(0))
    # Binomial with sd 43: 5 sd, false-alarm rate 6e-7; one coin for all would give 0 or 10,000.
    assert abs((y > -50).sum() - 2500) < 217


def test_measured_distances_are_near_the_exact_ones(data: dict[str, Any]) -> None:
    """Every measured distance is within the uniform bound on an empirical law; distances of other powers are not."""
    # Dvoretzky-Kiefer-Wolfowitz-Massart over 68 points: P(any off by eps) <= 2 * 68 exp(-2 n eps^2) = 1e-6.
    n = data["settings"]["n"]
    bound = math.sqrt(math.log(2 * len(data["rows"]) / 1e-6) / (2 * n))
    assert all(abs(row["ks"] - row["ks_exact"]) < bound for row in data["rows"])
    last = {row["power"]: row for row in data["rows"] if row["eps"] == 1.0}
    assert abs(last[0.1]["ks"] - last[0.2]["ks_exact"]) > bound


def test_the_default_test_sees_the_blind_point() -> None:
    """Where chi2 is blind, the default test and KS are not."""
    # The sum of squares has 1.1 times its null sd: p below 1e-8, 5.7 null sd, has chance 3e-7. The other two have p
    # near 1e-37 and 1e-19.
    row = robust._row(*robust.BLIND, 3.0, n=10_000, seed=1)
    assert row["p_cook"] > 1e-8
    assert row["p_default"] < 1e-8
    assert row["p_ks"] < 1e-8


def test_numbers_needed(data: dict[str, Any]) -> None:
    """No number of realisations shows a calibrated procedure wrong; the larger the distance, the fewer are needed."""
    needed = {(row["power"], row["eps"]): row["n_needed"] for row in data["rows"]}
    assert needed[1.0, 0.0] is None
    assert needed[1.0, 0.1] == math.ceil(1.7 / robust.exact_distance(0.1, 1.0) ** 2)  # all on one side
    assert needed[0.1, 0.0] == math.ceil(1.25 / robust.exact_distance(0.0, 0.1) ** 2)  # an error of spread
    assert needed[1.0, 1.0] < needed[1.0, 0.5] < needed[1.0, 0.1]


def test_data_is_plain_and_said_in_words(data: dict[str, Any]) -> None:
    """The data is JSON, and its lines name the cross-overs."""
    assert json.loads(json.dumps(data, allow_nan=False))["settings"] == data["settings"]
    text = "\n".join(robust.lines(data))
    assert "only above eps = 0.037" in text
    assert "chi2 is blind" in text


def test_the_other_reading_of_the_belief() -> None:
    """A standard deviation of 3 moves the cross-over."""
    found = robust.make(scale=0.01, progress=iter, variance=9.0)
    assert found["crossings"][0]["exact"] == pytest.approx(0.0923, abs=1e-4)


def test_figure(data: dict[str, Any]) -> None:
    """The figure has its three panels and fits a page."""
    figure = robust.draw(data)
    assert len(figure.axes) == 3
    assert figure.get_size_inches()[0] <= 7.2
