"""Models: calling a user's simulator, and contaminating it."""

from typing import Any

import numpy as np
import pytest

from ringtrue.errors import InvalidStudy
from ringtrue.question.models import as_model, contaminated


def test_both_signatures_become_one() -> None:
    """P(theta) and P(theta, rng) are both called with theta and rng."""
    rng = np.random.default_rng(0)
    assert as_model(lambda theta: 2 * theta)(3.0, rng) == 6.0
    assert as_model(lambda theta, rng: (theta, rng))(3.0, rng) == (3.0, rng)
    assert as_model(lambda theta, rng=None: rng)(3.0, rng) is rng
    assert as_model(lambda theta, scale=2.0: scale)(3.0, rng) == 2.0


@pytest.mark.parametrize(("value", "message"), [(3.0, "float arrived"), (lambda: 1.0, "takes 0")])
def test_what_is_no_model_is_refused(value: Any, message: str) -> None:
    """Numbers and functions of nothing are refused with a sentence."""
    with pytest.raises(InvalidStudy, match=message):
        as_model(value)


@pytest.mark.parametrize(("share", "expected"), [(0.0, "clean"), (1.0, "outlier")])
def test_extreme_shares_are_certain(share: float, expected: str) -> None:
    """Share 0 never contaminates and share 1 always does."""
    model = contaminated(lambda theta: "clean", lambda theta, rng: "outlier", share)
    rng = np.random.default_rng(0)
    assert {model(0.0, rng) for _ in range(200)} == {expected}


def test_theta_and_rng_reach_the_chosen_model() -> None:
    """Both models get the parameter, and randomness from the same stream."""
    model = contaminated(lambda theta, rng: theta + rng.random(), lambda theta: -theta, 0.5)
    twin = np.random.default_rng(3)
    expected = [-5.0 if twin.random() < 0.5 else 5.0 + twin.random() for _ in range(50)]
    rng = np.random.default_rng(3)
    assert [model(5.0, rng) for _ in range(50)] == expected


def test_contaminated_is_itself_a_model() -> None:
    """Contamination composes: a contaminated model can be clean or outlier of another."""
    model = as_model(contaminated(contaminated(lambda t: 0, lambda t: 1, 1.0), lambda t: 2, 0.0))
    assert model(0.0, np.random.default_rng(0)) == 1


def test_share_is_the_probability() -> None:
    """Outliers come as often as asked for."""
    # Hoeffding: |share - 0.3| > 0.0606 in 2000 has probability at most 2 exp(-2 * 2000 * 0.0606^2) = 9e-7. The twin,
    # with clean and outlier swapped, has share 0.7 and is missed with probability exp(-2 * 2000 * 0.339^2) < 1e-100.
    rng = np.random.default_rng(0)
    model, swapped = contaminated(lambda t: 0, lambda t: 1, 0.3), contaminated(lambda t: 1, lambda t: 0, 0.3)
    share, twin = (np.mean([one(0.0, rng) for _ in range(2000)]) for one in (model, swapped))
    assert abs(share - 0.3) <= 0.0606
    assert abs(twin - 0.3) > 0.0606


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_share_must_be_a_probability(share: float) -> None:
    """Shares outside [0, 1] are refused."""
    with pytest.raises(InvalidStudy, match=r"must lie in \[0, 1\]"):
        contaminated(lambda t: 0, lambda t: 1, share)
