"""The illustrations meet their closed forms."""

import json
import math
from typing import Any

import numpy as np
import pytest

from ringtrue.paper import examples

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return a small run."""
    return examples.make(scale=0.05, seed=3, progress=iter)


@pytest.mark.parametrize("name", examples.PROCEDURES)
def test_closed_forms_are_the_reference(name: str) -> None:
    """The formulas give the independently computed table."""
    _, a, v = examples.PROCEDURES[name]
    known = examples.closed_form(a, v)
    found = [known[key] for key in ("ks_strong", "ks_weak", "var_u", "var_averaged")]
    assert found == pytest.approx(examples.REFERENCE[name], abs=6e-7)


def test_measured_numbers_are_near_the_closed_forms(data: dict[str, Any]) -> None:
    """Distances and variances are within Monte Carlo error; those of the neighbouring procedure are not."""
    # Distances: P(any of ten off by eps) <= 20 exp(-2 n eps^2) = 1e-6. Var u: (u - 1/2)^2 lies in [0, 1/4], so by
    # Hoeffding five means are off by more than e with chance 10 exp(-32 n e^2) = 1e-6; centring at the mean of u adds
    # less than 1e-3. Data-averaged variance: normal draws, relative sd sqrt(2/n), 5.5 sd.
    n = data["settings"]["n"]
    bound, hoeffding = math.sqrt(math.log(20 / 1e-6) / (2 * n)), math.sqrt(math.log(10 / 1e-6) / (32 * n)) + 1e-3
    for row in data["rows"]:
        assert abs(row["ks_strong"] - row["ks_strong_exact"]) < bound
        assert abs(row["ks_weak"] - row["ks_weak_exact"]) < bound
        assert abs(row["var_u"] - row["var_u_exact"]) < hoeffding
        assert abs(row["var_averaged"] / row["var_averaged_exact"] - 1) < 5.5 * math.sqrt(2 / n)
    bayes, mirror = data["rows"][0], data["rows"][2]
    assert abs(mirror["ks_strong"] - bayes["ks_strong_exact"]) > bound
    assert abs(mirror["var_u"] - bayes["var_u_exact"]) > hoeffding


def test_verdicts(data: dict[str, Any]) -> None:
    """The three wrong procedures are called so, and told how few realisations would have sufficed."""
    # At n = 5000 the weakest of the three errors has p below 1e-100; a false alarm on the two right ones: 5 % each.
    found = {row["procedure"]: row for row in data["rows"]}
    for name in ("mirror Bayes", "eta = 0.5", "eta = 2"):
        assert found[name]["verdict"] == "miscalibrated"
        assert found[name]["n_needed_default"] < found[name]["n_needed"] < 200
    assert found["mirror Bayes"]["n_needed_weak"] is None
    assert found["Bayes"]["n_needed"] is None
    assert found["Bayes"]["p_default"] > 1e-6


def test_histogram_band_is_simultaneous() -> None:
    """All bars of a uniform histogram lie in the band with the stated chance, checked on exact binomial tails."""
    low, high = examples._histogram_band(1000)
    counts = np.random.default_rng(0).multinomial(1000, np.full(20, 1 / 20), size=4000)
    inside = ((counts >= low) & (counts <= high)).all(axis=1).mean()
    # Coverage at least 0.95 by Bonferroni; 4000 trials, sd 0.0034: 5 sd below, and the pointwise band would be far off.
    assert inside > 0.95 - 0.017
    assert ((counts >= 37) & (counts <= 63)).all(axis=1).mean() < 0.9


def test_data_is_plain_and_said_in_words(data: dict[str, Any]) -> None:
    """The data is JSON; every procedure has a line and a panel."""
    assert json.loads(json.dumps(data, allow_nan=False))["rows"] == data["rows"]
    text = "\n".join(examples.lines(data))
    assert all(name in text for name in examples.PROCEDURES)
    assert len(data["panels"]) == 5
    assert all(len(panel["outputs"]) == 12 for panel in data["panels"])


def test_figure(data: dict[str, Any]) -> None:
    """The figure has two rows of five panels and fits a page."""
    figure = examples.draw(data)
    assert len(figure.axes) == 10
    assert figure.get_size_inches()[0] <= 7.2
