"""blackjax as a procedure: NUTS, or another of its algorithms that are tuned alike, on a log density of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..distributions import Draws
from ..errors import InvalidStudy
from ..question.study import at_least
from ..values import Generator
from .libraries import need, one_behind_the_other, seed_of


def blackjax(
    log_density: Callable[[Any, Any], Any],
    start: Callable[[Any, Any, int, Generator], Any],
    *,
    algorithm: Any = None,
    theta: Callable[[Any], Any] | None = None,
    warmup: int = 300,
    draws: int = 300,
    chains: int = 2,
    **options: Any,
) -> Trajectories:
    """Make a procedure of a sampler of blackjax, for ``rt.check(belief, model, blackjax(...), n=200)``.

    It is compiled once per process, for data of one shape.

    Parameters
    ----------
    log_density
        ``log_density(position, y)`` in terms of jax: prior times likelihood, at an array or a dict of arrays without
        bounds.
    start
        ``start(belief, y, chains, rng)`` returns where the chains start, with the chain on the first axis.
    algorithm
        ``blackjax.hmc`` or another that ``blackjax.window_adaptation`` tunes; left out, ``blackjax.nuts``.
    theta
        ``theta(position)`` is the parameter at a position, for those that have bounds: ``{"sd": jnp.exp(position)}``.
        Its Jacobian belongs into the log density. Left out, positions are parameters.
    warmup, draws, chains
        Of the sampler: at least two chains, each the reference for the others.
    **options
        Handed on to ``blackjax.window_adaptation``, such as ``target_acceptance_rate``.

    Returns
    -------
    Trajectories
        A procedure, whose outputs are chains with their divergences, leapfrog steps and acceptance.

    Examples
    --------
    >>> procedure = blackjax(lambda mu, y: -((mu - y) ** 2), lambda mu0, y, chains, rng: rng.normal(size=chains))
    >>> procedure.draws, procedure.chains
    (300, 2)
    """
    settings = at_least(1, "warmup", warmup), at_least(1, "draws", draws), at_least(2, "chains", chains)
    return Trajectories(log_density, start, algorithm, theta, *settings, dict(options))


@dataclass(frozen=True, eq=False)
class Trajectories:
    """A procedure: chains that follow the gradient of a log density."""

    log_density: Callable[[Any, Any], Any]
    start: Callable[[Any, Any, int, Generator], Any]
    algorithm: Any
    theta: Callable[[Any], Any] | None
    warmup: int
    draws: int
    chains: int
    options: Mapping[str, Any]

    def __call__(self, belief: Any, y: Any, rng: Generator) -> Draws:
        """Return the draws of all chains, one behind the other."""
        jax = need("jax", "blackjax")
        first = jax.tree.map(np.asarray, self.start(belief, y, self.chains, rng))
        wrong = [np.shape(part) for part in jax.tree.leaves(first) if np.shape(part)[:1] != (self.chains,)]
        if wrong:
            raise InvalidStudy(f"start must return arrays of {self.chains} chains, axis 0, but {wrong[0]} came.")
        drawn, said = _compiled(self)(seed_of(rng), first, y)
        values = jax.tree.map(one_behind_the_other, drawn)
        return Draws(values, chains=self.chains, diagnostics={name: float(one) for name, one in said.items()})

    def run(self, key: Any, first: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Return the draws of one chain, and what the sampler says of each."""
        import jax

        library = need("blackjax", "blackjax")
        algorithm = library.nuts if self.algorithm is None else self.algorithm

        def density(position: Any) -> Any:
            return self.log_density(position, y)

        tuning, going = jax.random.split(key)
        warm = library.window_adaptation(algorithm, density, **self.options)
        (state, found), _ = warm.run(tuning, first, num_steps=self.warmup)
        step = algorithm(density, **found).step

        def one(state: Any, key: Any) -> Any:
            state, info = step(key, state)
            drawn = state.position if self.theta is None else self.theta(state.position)
            return state, (drawn, (info.is_divergent, info.num_integration_steps, info.acceptance_rate))

        return jax.lax.scan(one, state, jax.random.split(going, self.draws))[1]  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _compiled(procedure: Trajectories) -> Callable[..., Any]:
    """Return a function of a seed, of where chains start, and of data; kept here, so that procedures can be sent on."""
    import jax

    def chains(seed: Any, first: Any, y: Any) -> Any:
        keys = jax.random.split(jax.random.PRNGKey(seed), procedure.chains)
        drawn, (divergent, steps, rates) = jax.vmap(lambda key, one: procedure.run(key, one, y))(keys, first)
        said = {"divergences": divergent.sum(), "leapfrog steps": steps.max()}
        return drawn, {**said, "acceptance": rates.mean(axis=1).min()}

    return jax.jit(chains)  # type: ignore[no-any-return]
