"""dynesty as a procedure: nested sampling of a log-likelihood of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..question.study import at_least
from ..values import Generator
from .libraries import need, seed_of


def dynesty(
    log_likelihood: Callable[[NDArray[Any], Any], float],
    prior_transform: Callable[[NDArray[Any]], Any],
    size: int,
    *,
    live: int = 250,
    names: Iterable[str] | None = None,
    **options: Any,
) -> Nested:
    """Make a procedure of dynesty's sampler, for ``rt.check(belief, model, dynesty(...), n=200)``.

    Parameters
    ----------
    log_likelihood
        ``log_likelihood(theta, y)`` for a vector theta.
    prior_transform
        Maps a point of the unit cube to a vector theta that has the law of the prior.
    size
        How many entries theta has.
    live
        How many points are alive at a time.
    names
        What the entries of theta are called, for beliefs that are dicts of numbers; left out, theta is an array.
    **options
        Handed on to ``dynesty.NestedSampler``.

    Returns
    -------
    Nested
        A procedure, whose outputs are weighted draws with the standard error of their ``log evidence``. They are
        resampled to their effective number before a truth is placed among them.

    Examples
    --------
    >>> procedure = dynesty(lambda theta, y: -((theta[0] - y) ** 2), lambda u: 10 * u - 5, 1)
    >>> procedure.live
    250
    """
    called = None if names is None else tuple(names)
    return Nested(
        log_likelihood, prior_transform, at_least(1, "size", size), at_least(2, "live", live), called, dict(options)
    )


@dataclass(frozen=True, eq=False)
class Nested:
    """A procedure: a nested sampler, run until the evidence is known."""

    log_likelihood: Callable[[NDArray[Any], Any], float]
    prior_transform: Callable[[NDArray[Any]], Any]
    size: int
    live: int
    names: tuple[str, ...] | None
    options: Mapping[str, Any]

    def __call__(self, belief: Any, y: Any, rng: Generator) -> Draws:
        """Return all points that were ever alive, with their weights."""
        sampler = need("dynesty", "dynesty").NestedSampler(
            self.log_likelihood,
            self.prior_transform,
            self.size,
            nlive=self.live,
            logl_args=(y,),
            rstate=np.random.default_rng(seed_of(rng)),
            **self.options,
        )
        sampler.run_nested(print_progress=False)
        found = sampler.results
        values = found.samples if self.names is None else dict(zip(self.names, found.samples.T, strict=True))
        said = {"log evidence, its error": float(found.logzerr[-1])}
        return Draws(values, weights=found.importance_weights(), diagnostics=said)
