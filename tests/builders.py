"""Small things that many tests build; each stands for itself."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.values import Floats, Generator

#: The belief, the noise and the posterior of one number seen once, all of variance 1, 1 and 1/2.
BELIEF = rt.Normal(0, 1)
SD = math.sqrt(0.5)


def noisy(theta: Any, rng: Generator) -> Any:
    """Return theta with noise of its own for every entry."""
    return theta + rng.normal(size=np.shape(theta))


def posterior(mu0: Any, y: Any) -> rt.Normal:
    """Return the exact posterior of :data:`BELIEF` and :func:`noisy`, entry by entry."""
    return rt.Normal(np.asarray(y) / 2, np.full(np.shape(y), SD))


def too_narrow(mu0: Any, y: Any) -> rt.Normal:
    """Return a posterior with half its standard deviation: the broken twin."""
    return rt.Normal(np.asarray(y) / 2, np.full(np.shape(y), SD / 2))


def kolmogorov(u: Floats) -> float:
    """Return the Kolmogorov distance of a sample from U(0,1)."""
    ordered, n = np.sort(u.ravel()), u.size
    above = np.arange(1, n + 1) / n - ordered
    return float(max(above.max(), (1 / n - above).max()))


def refusal(call: Callable[[], Any], error: type[Exception] = rt.errors.InvalidStudy) -> str:
    """Return the message of the refusal."""
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def says(message: str, *patterns: str) -> None:
    """Check that the message holds every pattern: expected, arrived, what to do."""
    missing = [pattern for pattern in patterns if not re.search(pattern, message)]
    assert not missing, f"{missing} not in: {message}"
