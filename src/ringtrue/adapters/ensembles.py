"""emcee as a procedure: ensembles of walkers on a log density of one's own.

The walkers of an ensemble move by looking at each other, so that an ensemble is one chain, however many walkers it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from ..question.study import at_least
from ..values import Generator
from .libraries import need, one_behind_the_other, seed_of


def emcee(
    log_prob: Callable[[NDArray[Any], Any], float],
    start: Callable[[Any, Any, int, Generator], Any],
    *,
    walkers: int = 32,
    steps: int = 1000,
    discard: int = 300,
    ensembles: int = 2,
    names: Iterable[str] | None = None,
) -> Ensembles:
    """Make a procedure of emcee's sampler, for ``rt.check(belief, model, emcee(log_prob, start), n=200)``.

    Parameters
    ----------
    log_prob
        ``log_prob(theta, y)``, the log of prior times likelihood for a vector theta.
    start
        ``start(belief, y, walkers, rng)`` returns where the walkers of an ensemble start, shape (walkers, d).
    walkers
        Of each ensemble: even, and at least 2 d.
    steps, discard
        Of each walker, and how many of them are not kept.
    ensembles
        Independent of each other: at least two, each the reference for the others.
    names
        What the entries of theta are called, for beliefs that are dicts of numbers; left out, theta is an array.

    Returns
    -------
    Ensembles
        A procedure, whose outputs are chains with their ``acceptance``: the lowest of the ensembles'.

    Examples
    --------
    >>> procedure = emcee(lambda theta, y: -((theta[0] - y) ** 2), lambda mu0, y, m, rng: rng.normal(size=(m, 1)))
    >>> procedure.walkers, procedure.ensembles
    (32, 2)
    """
    if at_least(0, "discard", discard) >= at_least(1, "steps", steps):
        raise InvalidStudy(f"steps must be more than are discarded, but steps={steps} and discard={discard} arrived.")
    called = None if names is None else tuple(names)
    return Ensembles(
        log_prob, start, at_least(2, "walkers", walkers), steps, discard, at_least(2, "ensembles", ensembles), called
    )


@dataclass(frozen=True, eq=False)
class Ensembles:
    """A procedure: ensembles of walkers, each of them a chain."""

    log_prob: Callable[[NDArray[Any], Any], float]
    start: Callable[[Any, Any, int, Generator], Any]
    walkers: int
    steps: int
    discard: int
    ensembles: int
    names: tuple[str, ...] | None

    def __call__(self, belief: Any, y: Any, rng: Generator) -> Draws:
        """Return the draws of all ensembles, one ensemble after the other, each step by step."""
        runs = [self._run(belief, y, rng) for _ in range(self.ensembles)]
        drawn = np.concatenate([one_behind_the_other(kept) for kept, _ in runs])
        values = drawn if self.names is None else dict(zip(self.names, drawn.T, strict=True))
        return Draws(values, chains=self.ensembles, diagnostics={"acceptance": min(rate for _, rate in runs)})

    def _run(self, belief: Any, y: Any, rng: Generator) -> tuple[NDArray[Any], float]:
        """Return the kept draws of one ensemble, axes (step, walker, entry), and the share of moves accepted."""
        library = need("emcee", "emcee")
        first = self._first(np.asarray(self.start(belief, y, self.walkers, rng), float))
        sampler = library.EnsembleSampler(self.walkers, first.shape[1], self.log_prob, args=(y,))
        # A generator of the old kind is what the library has inside; its state is all that is taken from here.
        sampler.random_state = np.random.RandomState(seed_of(rng)).get_state()
        sampler.run_mcmc(first, self.steps)
        return sampler.get_chain(discard=self.discard), float(np.mean(sampler.acceptance_fraction))

    def _first(self, first: NDArray[Any]) -> NDArray[Any]:
        d = "d" if self.names is None else len(self.names)
        if first.ndim != 2 or len(first) != self.walkers or d not in ("d", first.shape[1]):
            raise InvalidStudy(f"start must return an array of shape ({self.walkers}, {d}), but {first.shape} came.")
        return first
