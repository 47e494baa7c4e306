"""Initial value problems, one or many side by side.

Inside the solvers, arrays have the component on the first axis and the problem on the last; particles sit between.
It is SciPy's vectorised layout, so that a vector field written for one problem serves a batch. A vector field that
raises or returns nan spoils its own problem only: the others go on, and the reason is kept. Nothing here knows how to
solve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidStudy, ReplicateFailed
from ...values import Floats, Ints

#: Numbers of problems of a batch.
Rows = Ints

#: Step of central differences, relative to the size of what is varied: the cube root of the rounding error.
_NUDGE = float(np.finfo(float).eps) ** (1 / 3)


@dataclass(frozen=True, eq=False)
class InitialValueProblem:
    """x' = field(t, x, *parameters), x(start) = initial, for t in the span.

    Parameters
    ----------
    field
        Takes the time, the components on the first axis (``prey, predators = x``) and the parameters, and returns as
        many derivatives. Written with arithmetic and NumPy functions it serves one problem and a batch alike.
    initial
        (d,), or (n, d) for a batch.
    span
        Start and end.
    parameters
        (p,), or (n, p) for a batch; left out, the field is called without.
    jacobian
        Called like the field, returns rows of partial derivatives, [[df0/dx0, df0/dx1], ...]. Left out, central
        differences serve.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x, rate: -rate * x, [1.0], (0.0, 2.0), parameters=[0.5])
    >>> decay.dimension, decay.size
    (1, None)
    >>> InitialValueProblem(lambda t, x, rate: -rate * x, [1.0], (0.0, 2.0), parameters=[[0.5], [1.0]]).size
    2
    """

    field: Callable[..., Any]
    initial: ArrayLike
    span: tuple[float, float]
    parameters: ArrayLike | None = None
    jacobian: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        initial = np.asarray(self.initial, float)
        parameters = None if self.parameters is None else np.asarray(self.parameters, float)
        start, end = (float(t) for t in self.span)
        if initial.ndim not in (1, 2) or not np.isfinite(initial).all() or initial.size == 0:
            raise InvalidStudy(f"initial must be finite, of shape (d,) or (n, d), but {initial!r} arrived.")
        if not (np.isfinite([start, end]).all() and start < end):
            raise InvalidStudy(f"span must be a start and a later end, but {self.span} arrived.")
        if parameters is not None and parameters.ndim not in (1, 2):
            raise InvalidStudy(f"parameters must have shape (p,) or (n, p), but {parameters.shape} arrived.")
        for name, value in (("initial", initial), ("parameters", parameters), ("span", (start, end))):
            object.__setattr__(self, name, value)
        _ = self.size

    @property
    def dimension(self) -> int:
        """The number of components."""
        return int(np.shape(self.initial)[-1])

    @property
    def size(self) -> int | None:
        """The number of problems of a batch; None for a single one."""
        arrays = [self.initial] if self.parameters is None else [self.initial, self.parameters]
        sizes = {len(np.asarray(array)) for array in arrays if np.ndim(array) == 2}
        if len(sizes) > 1:
            raise InvalidStudy(f"initial and parameters must be of one batch, but {sorted(sizes)} problems arrived.")
        return sizes.pop() if sizes else None

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("a single problem has no length.")
        return self.size

    def __getitem__(self, index: Any) -> InitialValueProblem:
        """Return one problem of a batch, or several."""
        if self.size is None:
            raise TypeError("a single problem cannot be indexed.")
        initial, parameters = np.asarray(self.initial), self.parameters
        if parameters is not None:
            parameters = np.asarray(parameters)
            parameters = parameters[index] if parameters.ndim == 2 else parameters
        return replace(self, initial=initial[index] if initial.ndim == 2 else initial, parameters=parameters)

    def need_inside(self, t: ArrayLike) -> Floats:
        """Return times as an array, or refuse those outside the span."""
        times = np.asarray(t, float)
        start, end = self.span
        if not ((times >= start) & (times <= end)).all():
            raise InvalidStudy(f"times must lie in the span [{start:g}, {end:g}] of the problem, but {times} arrived.")
        return times


class Flow:
    """A problem's vector field as solvers call it, and what went wrong in it.

    Attributes
    ----------
    initial
        (d, n), one column per problem.
    lost
        Problem to reason, for those whose solution cannot be had.
    """

    def __init__(self, problem: InitialValueProblem) -> None:
        self.problem = problem
        n = problem.size or 1
        self.initial = np.broadcast_to(np.atleast_2d(problem.initial), (n, problem.dimension)).T.copy()
        self.lost: dict[int, str] = {}
        rows = np.empty((1, 0)) if problem.parameters is None else np.atleast_2d(problem.parameters)
        self._parameters = np.broadcast_to(rows, (n, rows.shape[1])).T.copy()

    @property
    def shape(self) -> tuple[int, int]:
        """Components and problems."""
        return self.initial.shape[0], self.initial.shape[1]

    def __call__(self, t: ArrayLike, x: Floats, rows: Rows | None = None) -> Floats:
        """Return the derivatives (d, ..., k) at states (d, ..., k) of the problems ``rows``, all if left out.

        ``t`` is a number or one per problem. Where the field raises, the derivatives are nan.
        """
        return self._total(self.problem.field, t, x, rows, "the vector field")

    def jacobian(self, t: ArrayLike, x: Floats, rows: Rows | None = None) -> Floats:
        """Return the partial derivatives (d, d, ..., k): of component i with respect to j at [i, j]."""
        if self.problem.jacobian is not None:
            return self._total(self.problem.jacobian, t, x, rows, "the Jacobian")
        # A component at 0 is varied by the size of the others.
        steps = _NUDGE * np.maximum(np.abs(x), np.abs(x).mean(axis=0) + _NUDGE)
        columns = []
        for j in range(len(x)):
            up, down = x.copy(), x.copy()
            up[j] += steps[j]
            down[j] -= steps[j]
            # Divided by what was really added: steps are rounded too.
            columns.append((self(t, up, rows) - self(t, down, rows)) / (up[j] - down[j]))
        return np.stack(columns, axis=1)

    def lose(self, rows: Any, reason: str) -> None:
        """Note why problems have no solution; the first reason stays."""
        for row in np.atleast_1d(rows):
            self.lost.setdefault(int(row), reason)

    def _total(self, function: Callable[..., Any], t: ArrayLike, x: Floats, rows: Rows | None, what: str) -> Floats:
        """Call a user's function for all problems at once, or one by one if that raises."""
        ahead = (len(x), *(() if function is self.problem.field else (len(x),)))
        index = np.arange(x.shape[-1]) if rows is None else rows
        parameters = self._parameters if rows is None else self._parameters[:, rows]
        try:
            values = stacked(function(t, x, *parameters), x.shape[1:], len(ahead))
        # A refusal concerns the user, not one problem of many.
        except InvalidStudy:
            raise
        except Exception as error:
            if x.shape[-1] == 1:
                self.lose(index, f"{what} raised {type(error).__name__}: {error}")
                return np.full((*ahead, *x.shape[1:]), np.nan)
        else:
            # A wrong shape is wrong for every problem; one by one it would only be refused later.
            if values.shape == (*ahead, *x.shape[1:]):
                return values
            raise InvalidStudy(
                f"{what} must return shape {ahead} for a state of {ahead[0]} components, but shape "
                f"{values.shape[: values.ndim - x.ndim + 1]} arrived (components come first, problems behind)."
            )
        times, ones = np.broadcast_to(np.asarray(t, float), x.shape[-1:]), [slice(j, j + 1) for j in range(len(index))]
        return np.concatenate([self._total(function, times[i], x[..., i], index[i], what) for i in ones], axis=-1)


def stacked(value: Any, shape: tuple[int, ...], depth: int = 1) -> Floats:
    """Return what a field gave, an array or lists nested to ``depth`` whose entries may be numbers, as an array."""
    if depth == 0:
        entry = np.asarray(value, float)
        return entry if entry.shape == shape else np.asarray(np.broadcast_to(entry, shape))
    if isinstance(value, np.ndarray) and value.dtype == float:
        return value if value.ndim == depth + len(shape) else _spread(value, shape, depth)
    return np.stack([stacked(part, shape, depth - 1) for part in value])


def _spread(value: Floats, shape: tuple[int, ...], depth: int) -> Floats:
    """Return an array whose entries do not depend on the state, numbers or one per problem, for every state."""
    missing = depth + len(shape) - value.ndim
    if value.ndim < depth or missing < 0:
        return value
    wide = value.reshape(*value.shape[:depth], *[1] * missing, *value.shape[depth:])
    return np.asarray(np.broadcast_to(wide, (*value.shape[:depth], *shape)))


def need_solution(problem: InitialValueProblem, lost: dict[int, str], who: str) -> None:
    """Raise if a single problem was lost; a batch keeps its reasons, and its lost members are nan."""
    if problem.size is None and lost:
        raise ReplicateFailed(f"{who}: {lost[0]}")
