"""A network of BayesFlow as a study: its simulator draws theta and data together, and the network draws posteriors.

Arrays that leave this file are NumPy's, whatever Keras computes with.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from ..execution.store.identity import described
from ..question.study import Adapted, Joint, at_least
from ..values import Generator, Identified, as_array
from .libraries import mark_of, need, seed_of, seeded

#: Datasets that are simulated to see what there is: a number that no axis is likely to have by chance.
_PROBE = 7


def bayesflow(
    network: Any,
    simulator: Any,
    *,
    names: Iterable[str] | None = None,
    draws: int = 99,
    batch: int = 100,
    seed: int = 0,
    **options: Any,
) -> BayesFlowStudy:
    """Turn a network of BayesFlow into a study: are its posteriors right for data that the simulator makes?

    Parameters
    ----------
    network
        A trained workflow or approximator.
    simulator
        What ``bayesflow.make_simulator`` returns: its ``sample(batch)`` is a dict of parameters and data. Its random
        numbers are those of NumPy, Python or torch, which are seeded; one that draws from a generator of its own cannot
        be repeated, and ``rt.check(..., reproducible=False)`` says so.
    names
        The parameters that are asked about; left out, all that the network draws.
    draws
        Of each posterior.
    batch
        Datasets that are simulated and drawn for side by side.
    seed
        That of the study.
    **options
        Handed on to the network's ``sample``.

    Returns
    -------
    BayesFlowStudy
        For ``rt.check(bayesflow(workflow, simulator), n=500)``, n a multiple of batch.

    Raises
    ------
    InvalidStudy
        If the network draws nothing that the simulator has, or is not trained.
    """
    need("bayesflow", "bayesflow")
    if not (callable(getattr(network, "sample", None)) and callable(getattr(simulator, "sample", None))):
        raise InvalidStudy(
            f"a workflow or an approximator and a simulator of BayesFlow are needed, both with a method sample, but "
            f"{type(network).__name__} and {type(simulator).__name__} arrived."
        )
    machine = Machine(network, simulator, at_least(1, "draws", draws), dict(options))
    machine.ask(None if names is None else tuple(names))
    return BayesFlowStudy(
        Joint(machine.simulate, at_least(1, "batch", batch)),
        machine.simulate,
        machine.fitted,
        seed=seed,
        batch=batch,
        machine=machine,
    )


@dataclass(frozen=True, eq=False)
class BayesFlowStudy(Adapted):
    """A study whose belief and model are a simulator of BayesFlow's, and whose procedure is a network."""

    machine: Any = field(default=None, kw_only=True, repr=False)


class Machine(Identified):
    """A network and its simulator, for batches of datasets."""

    def __init__(self, network: Any, simulator: Any, draws: int, options: Mapping[str, Any]) -> None:
        self.network, self.simulator, self.draws, self.options = network, simulator, draws, options
        self.names: tuple[str, ...] = ()
        self.shared: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> str:
        """The weights of the network, the simulator's source, what is asked, and how it is drawn from."""
        approximator = getattr(self.network, "approximator", self.network)
        # Without their names: Keras numbers layers as they are made in a process.
        weights = [mark_of(as_array(one.value)) for one in approximator.weights]
        settings = (self.names, self.draws, sorted(self.options.items()))
        return f"{type(approximator).__name__} {weights} {described(self.simulator)} {settings}"

    def ask(self, names: tuple[str, ...] | None) -> None:
        """Find out, by drawing a few, which parameters there are and what belongs to all datasets of a batch."""
        rng = np.random.default_rng(0)
        simulated = self._simulated(_PROBE, rng)
        self.shared = tuple(name for name, part in simulated.items() if np.shape(part)[:1] != (_PROBE,))
        try:
            drawn = self._drawn(simulated, 2, rng)
        except Exception as error:
            raise InvalidStudy(
                f"the network must draw posteriors of simulated data, but raised {type(error).__name__}: {error}; was "
                f"it trained?"
            ) from error
        known = tuple(name for name in drawn if name in simulated)
        if not known or (wrong := [name for name in names or () if name not in known]):
            said = f"{wrong[0]!r} arrived" if known else "the simulator has none of them"
            raise InvalidStudy(f"names= must be parameters that the network draws, {sorted(drawn)}, but {said}.")
        self.names = names or known

    def _simulated(self, many: int, rng: Generator) -> dict[str, Any]:
        with seeded(rng):
            found: dict[str, Any] = self.simulator.sample(many)
        return found

    def _drawn(self, conditions: Mapping[str, Any], draws: int, rng: Generator) -> dict[str, NDArray[Any]]:
        seed = seed_of(rng)
        with seeded(rng), quiet():
            return self.network.sample(  # type: ignore[no-any-return]
                num_samples=draws, conditions=dict(conditions), seed=seed, **self.options
            )

    def simulate(self, batch: int, rng: Generator) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return parameters of a batch and their datasets; what all datasets share stands beside each."""
        found = self._simulated(batch, rng)
        theta = {name: _one_number(np.asarray(found[name])) for name in self.names}
        shared = {name: np.repeat(np.asarray(found[name])[None], batch, axis=0) for name in self.shared}
        data = {name: np.asarray(part) for name, part in found.items() if name not in self.names}
        return theta, {**data, **shared}

    def fitted(self, belief: Any, y: Mapping[str, Any], rng: Generator) -> Draws:
        """Return draws of the posteriors of a batch of datasets."""
        conditions = {name: part[0] if name in self.shared else part for name, part in y.items()}
        drawn = self._drawn(conditions, self.draws, rng)
        return Draws({name: np.swapaxes(_one_number(drawn[name]), 0, 1) for name in self.names}, iid=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep BayesFlow from showing its progress, of which a run has hundreds."""
    logger = logging.getLogger("bayesflow")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)


def _one_number(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array without its last axis, if that has one entry: BayesFlow writes numbers as vectors of one."""
    return array[..., 0] if array.ndim > 1 and array.shape[-1] == 1 else array
