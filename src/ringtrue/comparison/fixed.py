"""Coverage where theta is held fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from ..distributions import Distribution
from ..errors import InvalidStudy
from ..execution.runs import RunSettings, run
from ..judgement.column import strong_columns
from ..judgement.measures import coverage
from ..question.study import Study, StudySettings, at_least, need_known
from ..replicates.record import Replicates
from ..replicates.simulate import need_study
from ..statistics.arguments import need_fraction
from ..statistics.effects import Interval
from .shared import need_strong, noted, own_store


def coverage_map(
    study: Study,
    thetas: Iterable[Any],
    *,
    n: int,
    nominal: float = 0.9,
    confidence: float = 0.95,
    **settings: Unpack[RunSettings],
) -> tuple[Interval, ...]:
    """Return the coverage of central intervals at fixed parameters.

    Calibration is an average over the belief: a procedure can be calibrated and cover some parameters never. Intervals
    are Clopper and Pearson's, pointwise; ``of`` is the theta that was held fixed.

    Parameters
    ----------
    study
        The question.
    thetas
        The parameters to hold fixed.
    n
        Datasets per parameter.
    nominal
        The probability that an output gives to its central interval.
    confidence
        Of the interval of each coverage.
    **settings
        As in :func:`~ringtrue.run`; ``store`` is a folder here, with a file per parameter.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> from ringtrue.procedures import NormalMean
    >>> study = Study(Normal(0, 1), NormalMean().simulate, NormalMean(), f=lambda t: t)
    >>> [row.estimate > 0.9 for row in coverage_map(study, [0.0, 4.0], n=200)]
    [True, False]
    """
    takes = {"n", "nominal", "confidence", *RunSettings.__optional_keys__}
    need_known("coverage_map", settings, takes, StudySettings.__optional_keys__)
    size = at_least(1, "n", n)
    need_fraction(confidence=confidence, nominal=nominal)
    need_study(study)
    if study.joint:
        raise InvalidStudy(
            "coverage_map needs a model that takes the theta that is held fixed, but this study draws theta and y "
            "together; pass a Study(belief, model, procedure)."
        )
    need_strong(study)
    rows = []
    for i, theta in enumerate(_listed(thetas)):
        ran = _at(study, theta, i, size, settings)
        for column in strong_columns(ran):
            rows.append(replace(coverage(column, confidence=confidence, nominal=nominal), f=column.name, of=theta))
    return tuple(rows)


def _listed(thetas: Any) -> list[Any]:
    """Return the parameters to hold fixed, one at least."""
    if isinstance(thetas, (str, Mapping)) or not isinstance(thetas, Iterable):
        raise InvalidStudy(f"thetas must be a list of parameters, but {type(thetas).__name__} arrived; pass [theta].")
    found = list(thetas)
    if not found:
        raise InvalidStudy("thetas must hold at least one parameter to hold fixed, but none arrived.")
    return found


def _at(study: Study, theta: Any, i: int, n: int, settings: RunSettings) -> Replicates:
    """Run the study with theta held fixed, the i-th of them."""
    with noted(f"theta = {theta!r}"):
        # Each theta has a seed of its own: with the same noise at all of them the errors of a map would go together.
        asked = replace(
            study, f=study.functions, truth=Fixed(theta), seed=study.seed + i, batch=study.batch and n, datasets=1
        )
        # The seed depends on the place in the list, and so does what is in the file.
        return run(asked, n=n, **own_store(settings, f"{i}_{theta}"))


@dataclass(frozen=True, eq=False)
class Fixed(Distribution):
    """The law of a parameter that is always the same."""

    theta: Any

    def sample(self, m: int, rng: np.random.Generator) -> Any:
        """Return m copies on axis 0."""
        if isinstance(self.theta, Mapping):
            return {name: np.repeat(np.asarray(part, float)[None], m, axis=0) for name, part in self.theta.items()}
        return np.repeat(np.asarray(self.theta, float)[None], m, axis=0)
