"""What adapters share: a library, or how to get it in one sentence; seeds; chains in the order of the core; priors."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidStudy, RingtrueError
from ..values import Generator, Identified


def need(module: str, extra: str) -> Any:
    """Return a module, or say how to install it.

    Examples
    --------
    >>> need("no_such_library", "pymc")
    Traceback (most recent call last):
    ringtrue.errors.RingtrueError: this adapter needs no_such_library; run: pip install 'ringtrue[pymc]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise RingtrueError(f"this adapter needs {module}; run: pip install 'ringtrue[{extra}]'") from None


def seed_of(rng: Generator) -> int:
    """Return a seed for a library that takes a whole number.

    Examples
    --------
    >>> seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    True
    """
    return int(rng.integers(2**31 - 1))


@contextmanager
def seeded(rng: Generator) -> Iterator[None]:
    """Let code that draws from the generators of the process, those of Python, NumPy and torch, follow from rng.

    Afterwards they are as they were. Torch computes on one thread meanwhile: the last bits of a sum depend on how many
    there are, and a worker may have others.

    Examples
    --------
    >>> with seeded(np.random.default_rng(1)):
    ...     first = random.random()
    >>> with seeded(np.random.default_rng(1)):
    ...     first == random.random()
    True
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - those of others are what is seeded
    with ExitStack() as restored:
        restored.callback(random.setstate, python)
        restored.callback(np.random.set_state, numpy)
        random.seed(seed_of(rng))
        np.random.seed(seed_of(rng))  # noqa: NPY002
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            restored.enter_context(torch.random.fork_rng())
            restored.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            torch.manual_seed(seed_of(rng))
        yield


def one_behind_the_other(draws: Any) -> NDArray[Any]:
    """Return draws with axes (chain, draw, ...) as (chain after chain, ...).

    Examples
    --------
    >>> one_behind_the_other([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    array = np.asarray(draws)
    return array.reshape(-1, *array.shape[2:])


def mark_of(array: Any) -> str:
    """Return a short text that tells arrays apart by shape, type and content.

    Examples
    --------
    >>> mark_of(np.zeros(3)) == mark_of(np.zeros(3)), mark_of(np.zeros(3)) == mark_of(np.ones(3))
    (True, False)
    """
    found = np.ascontiguousarray(array)
    return f"{found.dtype}{found.shape} {hashlib.blake2b(found.tobytes(), digest_size=8).hexdigest()}"


def as_data(y_obs: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Return observed data by name, or say what does not fit; one variable needs no name.

    Examples
    --------
    >>> as_data([1.0, 2.0], {"y": (2,)})
    {'y': array([1., 2.])}
    """
    named = y_obs if isinstance(y_obs, Mapping) else {next(iter(shapes)): y_obs} if len(shapes) == 1 else {}
    found = {name: np.asarray(named[name]) for name in shapes if name in named}
    if {name: part.shape for name, part in found.items()} != dict(shapes) or len(named) != len(shapes):
        came = {str(name): np.shape(part) for name, part in named.items()} or type(y_obs).__name__
        raise InvalidStudy(
            f"y_obs must have the observed variables and shapes of the model, {dict(shapes)}, but {came} arrived."
        )
    return found


class Prior(Identified):
    """The prior of a model, known by its draws.

    Parameters
    ----------
    machine
        The model: it has an ``identity``, and ``prior(m, rng)`` draws what is asked about and what is free.
    """

    marginal = None

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    @property
    def identity(self) -> str:
        """That of the model."""
        return str(self.machine.identity)

    def sample(self, m: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Return m draws, by name."""
        drawn: dict[str, NDArray[Any]] = self.machine.prior(m, rng)
        return drawn
