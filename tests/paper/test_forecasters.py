"""Four forecasters are what the literature says they are, and not what a footnote says."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.paper import forecasters

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return a run of 20,000."""
    return forecasters.make(scale=0.2, seed=2)


def test_measured_distances_are_the_population_s(data: dict[str, Any]) -> None:
    """Strong and weak statistics are within sampling noise of closed forms; those of another forecaster are not."""
    # Massart: beyond 2.7 / sqrt(n) with a chance of 9e-7.
    noise = 2.7 / np.sqrt(data["settings"]["n"])
    rows = {row["forecaster"]: row for row in data["rows"]}
    for row in rows.values():
        assert abs(row["ks_strong_theta"] - row["exact_strong"]) < noise
        assert abs(row["ks_weak_theta"] - row["exact_weak"]) < noise
    assert abs(rows["sign-reversed"]["ks_strong_theta"] - rows["unfocused"]["exact_strong"]) > noise


def test_the_unfocused_forecaster_is_probabilistically_and_not_marginally_calibrated() -> None:
    """Exactly: given mu and tau the two halves of u average to uniform, and the averaged forecast is not N(0, 2)."""
    x = np.linspace(-12, 12, 400_001)
    grid, density, found = np.linspace(0.05, 0.95, 19), np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), []
    # With theta = mu + x: u = (Phi(x) + Phi(x - tau)) / 2, tau = 1 or -1 with equal chance.
    for tau in (1.0, -1.0):
        u = (stats.norm.cdf(x) + stats.norm.cdf(x - tau)) / 2
        found.append([density[u <= level].sum() * (x[1] - x[0]) for level in grid])
    assert np.mean(found, axis=0) == pytest.approx(grid, abs=1e-4)
    assert found[0] != pytest.approx(grid, abs=1e-2)
    assert forecasters.unfocused_distance() > 0.02


def test_data_follow_the_model() -> None:
    """mu has variance 1 and covariance 1 with theta, whose law is the belief."""
    rng = np.random.default_rng(0)
    theta = rt.Normal(0.0, np.sqrt(2)).sample(200_000, rng)
    mu = forecasters.see(theta, rng)["mu"]
    # Standard errors are at most 2 sqrt(2 / n) = .0063: 5.5 of them, false-alarm rate below 2e-7 for all entries.
    assert np.cov(theta, mu) == pytest.approx(np.array([[2.0, 1.0], [1.0, 1.0]]), abs=0.035)


def test_data_is_plain_and_said_in_words(data: dict[str, Any]) -> None:
    """The data is JSON; every forecaster has a line, and the figure a column."""
    assert json.loads(json.dumps(data, default=lambda value: value.tolist()))
    assert [line.split()[0] for line in forecasters.lines(data)[2:]] == list(forecasters.FORECASTERS)
    assert len(forecasters.draw(data).axes) == 8
