"""Coverage where theta is held fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from ..errors import InvalidStudy
from ..execution.runs import RunSettings, run
from ..question.study import Study, at_least
from ..replicates.record import Replicates
from .rows import coverage
from .shared import need_level, need_strong, noted, own_store


@dataclass(frozen=True)
class FixedRow:
    """How often central intervals contain one fixed truth, with Clopper and Pearson's interval."""

    theta: Any
    f: str
    estimate: float
    low: float
    high: float
    ideal: float
    n: int


def coverage_map(
    study: Study,
    thetas: Iterable[Any],
    *,
    n: int,
    nominal: float = 0.9,
    level: float = 0.95,
    **settings: Unpack[RunSettings],
) -> tuple[FixedRow, ...]:
    """Return the coverage of central intervals at fixed parameters.

    Calibration is an average over the belief: a procedure can be calibrated and cover some parameters never. Intervals
    are pointwise.

    Parameters
    ----------
    study
        The question; its n is not used.
    thetas
        The parameters to hold fixed.
    n
        Datasets per parameter.
    nominal
        The probability that an output gives to its central interval.
    level
        Of the interval of each coverage.
    **settings
        As in :func:`~ringtrue.run`; ``store`` is a folder here, with a file per parameter.

    Examples
    --------
    >>> from ringtrue.distributions.contract import Normal
    >>> from ringtrue.procedures import NormalMean
    >>> study = Study(Normal(0, 1), NormalMean().simulate, NormalMean(), 1, f=lambda t: t)
    >>> [row.estimate > 0.9 for row in coverage_map(study, [0.0, 4.0], n=200)]
    [True, False]
    """
    size = at_least(1, "n", n)
    need_level(level)
    if not 0 < nominal < 1:
        raise InvalidStudy(f"nominal must lie strictly between 0 and 1, but {nominal!r} arrived; for 90 % pass 0.9.")
    need_strong(study)
    rows = []
    for i, theta in enumerate(thetas):
        ran = _at(study, theta, i, size, settings)
        rows += [_row(ran, k, theta, nominal, level) for k, c in enumerate(ran.columns) if c.level == "strong"]
    return tuple(rows)


def _at(study: Study, theta: Any, i: int, n: int, settings: RunSettings) -> Replicates:
    """Run the study with theta held fixed, the i-th of them."""
    with noted(f"theta = {theta!r}"):
        asked = replace(study, n=n, f=study.functions, truth=Fixed(theta), seed=study.seed + i, batch=study.batch and n)
        # The seed depends on the place in the list, and so does what is in the file.
        return run(asked, **own_store(settings, f"{i}_{theta}"))


def _row(ran: Replicates, k: int, theta: Any, nominal: float, level: float) -> FixedRow:
    one = coverage(ran, k, level, nominal)
    return FixedRow(theta, ran.columns[k].name, one.estimate, one.low, one.high, one.ideal, ran.n)


@dataclass(frozen=True, eq=False)
class Fixed:
    """The law of a parameter that is always the same."""

    theta: Any
    marginal = None

    def sample(self, m: int, rng: np.random.Generator) -> Any:
        """Return m copies on axis 0."""
        if isinstance(self.theta, Mapping):
            return {name: np.repeat(np.asarray(part, float)[None], m, axis=0) for name, part in self.theta.items()}
        return np.repeat(np.asarray(self.theta, float)[None], m, axis=0)
