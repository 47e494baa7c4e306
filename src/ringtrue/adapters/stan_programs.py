"""A Stan program as a study, run by PyStan 3 or CmdStanPy.

A program has a posterior and neither draws of its prior nor simulated data, so that these are named: beliefs and
functions of Python, a second program, or generated quantities of the program itself, which are run with the parameters
held fixed.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws, as_distribution
from ..errors import InvalidStudy, RingtrueError
from ..functions import Coordinate, Vectorized
from ..question.study import Adapted, Joint, at_least
from ..values import Generator, Identified
from .libraries import Prior, mark_of, need, one_behind_the_other, seed_of

Values = dict[str, NDArray[Any]]
#: Fits whose log-likelihoods are kept until they are asked for.
_REMEMBERED = 100


def stan(
    program: Any,
    data: Mapping[str, Any],
    *,
    observed: Iterable[str] = ("y",),
    names: Iterable[str] | None = None,
    prior: Any = None,
    simulator: Any = None,
    log_likelihood: str = "log_lik",
    chains: int = 2,
    draws: int = 300,
    warmup: int = 300,
    seed: int = 0,
    **options: Any,
) -> StanStudy:
    """Turn a Stan program into a study; its prior and its simulator are named, since a program has none.

    Parameters
    ----------
    program
        The program's text, which PyStan 3 compiles once and keeps, or a ``CmdStanModel``.
    data
        What the program's data block asks for; the observed ones give the shape of simulated data.
    observed
        The names in data that are simulated.
    names
        Which parameters are asked about; left out, all that the prior draws.
    prior
        What the parameters are drawn from: a belief, as any study takes one, with the names of the program's
        parameters; {parameter: generated quantity of this program}; or a second program, with generated quantities of
        the parameters' names. If the second program has quantities of the observed names too, it draws both together,
        and there is no simulator.
    simulator
        A function ``simulator(theta, rng)`` that returns {observed name: data}; {observed name: generated quantity of
        this program}; or a program that has the parameters among its data and quantities of the observed names. Left
        out, y is simulated by the quantity ``y_rep``.
    log_likelihood
        The generated quantity that is the log-likelihood, or its terms. If the program has it, it is asked about at
        the exact level.
    chains, draws, warmup
        Of the sampler; at least two chains, each the reference for the others.
    seed
        That of the study.
    **options
        Handed on to ``sample`` of PyStan or of CmdStanPy.

    Returns
    -------
    StanStudy
        For ``rt.check(stan(program, data, prior=..., simulator=...), n=200)``.

    Raises
    ------
    InvalidStudy
        If nothing draws the parameters or the data, or names do not fit.
    """
    at_least(2, "chains", chains)
    called = tuple([observed] if isinstance(observed, str) else observed)
    given = {name: np.asarray(part) for name, part in data.items()}
    if missing := [name for name in called if name not in given]:
        raise InvalidStudy(
            f"observed= must name data of the program, whose shape simulated data have, but {missing[0]!r} is not in "
            f"data=, which has {sorted(given)}."
        )
    source = as_program(program)
    known = source.names(given)
    belief = _belief(prior, source, given, known)
    first = _one(belief)
    joint = _draws_both(belief, called) and simulator is None
    free = tuple(name for name in first if name in known and name not in called)
    if not free:
        raise InvalidStudy(f"prior= must draw parameters of the program, but draws {sorted(first)}.")
    asked = tuple(names or free)
    if wrong := [name for name in asked if name not in free]:
        raise InvalidStudy(
            f"names= must name parameters that the prior draws and the program has, {sorted(free)}, but {wrong[0]!r} "
            f"arrived."
        )
    fit = Fit(chains, at_least(1, "draws", draws), at_least(0, "warmup", warmup), dict(options))
    said = log_likelihood if log_likelihood in known else None
    machine = Machine(source, given, called, free, said, fit, np.ndim(first[free[0]]))
    functions = [Coordinate(name, index) for name in asked for index in product(*map(range, np.shape(first[name])))]
    exact = [] if said is None else [Vectorized(machine.log_likelihood, "log-likelihood", sees="data")]
    pair = Pair(belief.machine, called, given) if joint else None
    return StanStudy(
        belief if pair is None else Together(pair),
        _simulator(simulator, machine, known, first) if pair is None else pair,
        machine.fitted,
        f=[*functions, *exact],
        seed=seed,
        machine=machine,
    )


def _belief(prior: Any, program: Program, data: Values, known: Sequence[str]) -> Any:
    """Return what draws the parameters."""
    if prior is None:
        raise InvalidStudy(
            "a Stan program has no draws of its prior; pass prior=, which is a belief, {parameter: generated quantity "
            "of this program}, or a second program that draws the parameters in its generated quantities."
        )
    if _names_quantities(prior):
        return Prior(Quantities(program, data, _known(prior, known, "prior")))
    if is_program(prior):
        second = as_program(prior)
        # What is a parameter there would be a starting point of Stan's, and no draw.
        if parameter := second.lacking(data, {}):
            raise InvalidStudy(
                f"prior= must be a program without parameters, whose generated quantities draw them, but it has the "
                f"parameter {parameter!r}."
            )
        return Prior(Quantities(second, data, {name: name for name in second.names(data)}))
    return prior


def _one(belief: Any) -> Mapping[str, Any]:
    """Return one draw of the parameters, by name."""
    drawn = as_distribution(belief, what="the prior", role="belief").sample(1, np.random.default_rng(0))
    if not isinstance(drawn, Mapping):
        raise InvalidStudy("prior= must draw parameters by name, as {'mu': rt.Normal(0, 1)} does, but has no names.")
    return {str(name): np.asarray(part)[0] for name, part in drawn.items()}


def _draws_both(belief: Any, observed: Sequence[str]) -> bool:
    """Whether a second program draws the data together with the parameters."""
    return isinstance(belief, Prior) and all(name in belief.machine.called for name in observed)


def _simulator(simulator: Any, machine: Machine, known: Sequence[str], theta: Mapping[str, Any]) -> Any:
    """Return what simulates data from parameters."""
    replicated = {name: f"{name}_rep" for name in machine.observed}
    if simulator is None and not all(name in known for name in replicated.values()):
        raise InvalidStudy(
            f"the program must have generated quantities {sorted(replicated.values())} to simulate data, but has none; "
            f"pass simulator=, which is {{observed name: generated quantity}}, a function of theta and rng, or a "
            f"program that draws the data from parameters that are its data."
        )
    if is_program(simulator):
        second = as_program(simulator)
        same = {name: name for name in machine.observed}
        return Quantities(
            second, machine.data, _known(same, second.names({**machine.data, **theta}), "simulator"), "data"
        ).simulate
    if simulator is None or _names_quantities(simulator):
        called = _known(simulator or replicated, known, "simulator")
        if lacking := machine.program.lacking(machine.data, theta):
            raise InvalidStudy(
                f"generated quantities are simulated with all parameters held fixed, but the prior does not draw "
                f"{lacking!r}; add it to prior=, or pass a function as simulator=."
            )
        return Quantities(machine.program, machine.data, called).simulate
    return simulator


def _names_quantities(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(name, str) for name in value.values())


def _known(called: Mapping[str, str], known: Sequence[str], argument: str) -> Mapping[str, str]:
    if wrong := [name for name in called.values() if name not in known]:
        raise InvalidStudy(f"{argument}= must name quantities of the program, but {wrong[0]!r} is none of them.")
    return called


@dataclass(frozen=True, eq=False)
class StanStudy(Adapted):
    """A study whose procedure is the sampler of a Stan program."""

    machine: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True)
class Fit:
    """How a program is fitted."""

    chains: int
    draws: int
    warmup: int
    options: Mapping[str, Any]


def _marks(data: Values) -> dict[str, str]:
    return {name: mark_of(data[name]) for name in sorted(data)}


@dataclass(frozen=True, eq=False)
class Quantities(Identified):
    """Generated quantities of a program that draw parameters, data or both: what they are called there, by name.

    Parameters that are given are held fixed, or are data of a program that has them there.
    """

    program: Program
    data: Values
    called: Mapping[str, str]
    place: Literal["parameters", "data"] = "parameters"

    @property
    def identity(self) -> str:
        """The program, its data, and what is taken from it."""
        return f"{self.program.text} {_marks(self.data)} {dict(self.called)} {self.place}"

    def prior(self, m: int, rng: Generator) -> Values:
        """Return m draws of all quantities, jointly."""
        drawn = self.program.generated(self.data, self.called.values(), m, seed_of(rng), None)
        return {name: drawn[theirs] for name, theirs in self.called.items()}

    def simulate(self, theta: Mapping[str, Any], rng: Generator) -> Values:
        """Return data for one truth."""
        inside = self.place == "data"
        data = {**self.data, **theta} if inside else self.data
        drawn = self.program.generated(data, self.called.values(), 1, seed_of(rng), None if inside else theta)
        return {name: _like(drawn[theirs][0], self.data[name]) for name, theirs in self.called.items()}


@dataclass(frozen=True, eq=False)
class Pair(Identified):
    """Truths and their data, drawn together by one program."""

    quantities: Quantities
    observed: Sequence[str]
    data: Values

    @property
    def identity(self) -> str:
        """That of the quantities."""
        return f"{self.quantities.identity} {tuple(self.observed)}"

    def __call__(self, rng: Generator) -> tuple[Values, Values]:
        """Return parameters and data."""
        thetas, (y,) = self.pairs(1, rng)
        return {name: part[0] for name, part in thetas.items()}, y

    def pairs(self, m: int, rng: Generator) -> tuple[Values, list[Values]]:
        """Return m parameters on axis 0, and their datasets, by one run of the program."""
        drawn = self.quantities.prior(m, rng)
        y = {name: _like(drawn.pop(name), self.data[name]) for name in self.observed}
        return drawn, [{name: part[i] for name, part in y.items()} for i in range(m)]


@dataclass(frozen=True, eq=False)
class Together(Joint):
    """A belief and a model in one program, which draws as many pairs as are asked for in one run."""

    def pairs(self, m: int, rng: Generator) -> tuple[Any, Any]:
        """Return m true parameters on axis 0, and their datasets."""
        return self.simulate.pairs(m, rng)  # type: ignore[no-any-return]


def _like(value: NDArray[Any], data: NDArray[Any]) -> NDArray[Any]:
    """Return simulated data as whole numbers if the data are: draws of Stan are all real."""
    return np.rint(value).astype(data.dtype) if data.dtype.kind in "iu" else value


@dataclass(frozen=True, eq=False)
class Machine(Identified):
    """A program, its data, and how it is fitted."""

    program: Program
    data: Values
    observed: Sequence[str]
    free: Sequence[str]
    quantity: str | None
    fit: Fit
    axes: int  # of the first free parameter
    remembered: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @property
    def identity(self) -> str:
        """The program, its data, what is drawn, and how it is fitted."""
        return f"{self.program.text} {_marks(self.data)} {self.observed} {self.free} {self.quantity} {self.fit}"

    def _with(self, y: Mapping[str, Any]) -> Values:
        """Return the program's data with others in place of the observed ones."""
        simulated = {name: np.asarray(y[name]) for name in self.observed}
        for name, part in simulated.items():
            if part.shape != self.data[name].shape:
                raise InvalidStudy(
                    f"data {name!r} must have shape {self.data[name].shape}, as in data=, but shape {part.shape} was "
                    f"simulated."
                )
        return {**self.data, **simulated}

    def fitted(self, belief: Any, y: Mapping[str, Any], rng: Generator) -> Draws:
        """Return draws of the posterior of one dataset."""
        wanted = [*self.free, *([] if self.quantity is None else [self.quantity])]
        values, said = self.program.sampled(self._with(y), wanted, self.fit, seed_of(rng))
        if self.quantity is not None:
            self._remember(values, y, values.pop(self.quantity))
        diagnostics = {"divergences": float(said["divergent__"].sum()), "tree depth": float(said["treedepth__"].max())}
        return Draws(values, chains=self.fit.chains, diagnostics=diagnostics)

    # The log-likelihood. Stan computes it along with the draws, and is much slower when it is asked for one by one.

    def log_likelihood(self, theta: Mapping[str, Any], y: Mapping[str, Any]) -> Any:
        """Return the log-likelihood of one parameter, or of many, whose draws are on the last axis."""
        rows = {name: np.asarray(theta[name]) for name in self.free}
        if rows[self.free[0]].ndim == self.axes:
            return self._one(rows, y)
        rows = {name: np.moveaxis(row, -1, 0) for name, row in rows.items()}
        known = self.remembered.get(self._mark(rows, y))
        many = range(len(rows[self.free[0]]))
        return np.array([self._one({n: r[i] for n, r in rows.items()}, y) for i in many]) if known is None else known

    def _one(self, theta: Values, y: Mapping[str, Any]) -> float:
        assert self.quantity is not None
        return self.program.total(self._with(y), self.quantity, theta)

    def _remember(self, values: Values, y: Mapping[str, Any], terms: NDArray[Any]) -> None:
        if len(self.remembered) >= _REMEMBERED:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[self._mark(values, y)] = terms.reshape(len(terms), -1).sum(axis=1)

    def _mark(self, values: Values, y: Mapping[str, Any]) -> str:
        """Return what tells fits apart: their draws and their data."""
        return " ".join([mark_of(part) for part in (*(values[n] for n in self.free), *(y[n] for n in self.observed))])


class Program(Protocol):
    """A Stan program and who runs it."""

    @property
    def text(self) -> str:
        """Its source."""

    def names(self, data: Values) -> Sequence[str]:
        """Return what its draws are called: parameters, transformed ones and generated quantities."""

    def lacking(self, data: Values, theta: Mapping[str, Any]) -> str:
        """Return a parameter that is not in theta, or an empty text."""

    def sampled(self, data: Values, names: Iterable[str], fit: Fit, seed: int) -> tuple[Values, Values]:
        """Return draws, chain after chain, and what the sampler says of each."""

    def generated(
        self, data: Values, names: Iterable[str], m: int, seed: int, fixed: Mapping[str, Any] | None
    ) -> Values:
        """Return m draws of generated quantities, with parameters held fixed."""

    def total(self, data: Values, name: str, theta: Mapping[str, Any]) -> float:
        """Return the sum of a generated quantity at a parameter."""


def is_program(value: Any) -> bool:
    """Whether something is a program's text or a CmdStanModel."""
    return isinstance(value, str) or (hasattr(value, "code") and hasattr(value, "sample"))


def as_program(value: Any) -> Program:
    """Return a program with who runs it."""
    if not is_program(value):
        raise InvalidStudy(
            f"a Stan program must be its text, for PyStan, or a CmdStanModel, but a {type(value).__name__} arrived."
        )
    return PyStan(value) if isinstance(value, str) else CmdStan(value)


@dataclass(frozen=True)
class PyStan:
    """A program that PyStan 3 compiles once and keeps in its cache."""

    text: str

    def _built(self, data: Values, seed: int) -> Any:
        library = need("stan", "stan")
        try:
            return library.build(self.text, data=dict(data), random_seed=seed)
        except TimeoutError as error:
            raise RingtrueError(
                "PyStan waits five minutes for a program to compile, and stopped; run again."
            ) from error

    def names(self, data: Values) -> Sequence[str]:
        """Return the names of all draws."""
        return tuple(_quietly(lambda: self._built(data, 1)).param_names)

    def lacking(self, data: Values, theta: Mapping[str, Any]) -> str:
        """Return a parameter that is not in theta, or an empty text."""
        try:
            _quietly(lambda: self._built(data, 1).unconstrain_pars(_plain(theta)))
        except RingtrueError as error:
            if (found := re.search(r"variable does not exist.*variable name=(\w+)", str(error))) is None:
                raise
            return found[1]
        return ""

    def sampled(self, data: Values, names: Iterable[str], fit: Fit, seed: int) -> tuple[Values, Values]:
        """Return draws, chain after chain, and what the sampler says of each."""
        settings = {"num_chains": fit.chains, "num_samples": fit.draws, "num_warmup": fit.warmup, **fit.options}
        found = _quietly(lambda: self._built(data, seed).sample(**settings))
        return _from_pystan(found, names), _from_pystan(found, ("divergent__", "treedepth__"))

    def generated(
        self, data: Values, names: Iterable[str], m: int, seed: int, fixed: Mapping[str, Any] | None
    ) -> Values:
        """Return m draws of generated quantities, with parameters held fixed."""
        start = {} if fixed is None else {"init": [_plain(fixed)]}
        found = _quietly(lambda: self._built(data, seed).fixed_param(num_chains=1, num_samples=m, **start))
        return _from_pystan(found, names)

    def total(self, data: Values, name: str, theta: Mapping[str, Any]) -> float:
        """Return the sum of a generated quantity at a parameter."""

        def all_at(built: Any) -> tuple[Any, Any]:
            return built, built.constrain_pars(built.unconstrain_pars(_plain(theta)))

        built, numbers = _quietly(lambda: all_at(self._built(data, 1)))
        place = built.param_names.index(name)
        before, own = (
            int(sum(np.prod(dims, dtype=int) for dims in part)) for part in (built.dims[:place], [built.dims[place]])
        )
        return float(np.sum(numbers[before : before + own]))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers and lists in place of arrays."""
    return {name: np.asarray(part).tolist() for name, part in values.items()}


def _from_pystan(fit: Any, names: Iterable[str]) -> Values:
    """Return draws chain after chain; PyStan has draw after draw of all chains, on the last axis."""
    shapes = dict(zip(fit.param_names, fit.dims, strict=True))
    found = {}
    for name in names:
        draws = np.moveaxis(fit[name], -1, 0).reshape(-1, fit.num_chains, *shapes.get(name, ()))
        found[name] = one_behind_the_other(np.swapaxes(draws, 0, 1))
    return found


def _quietly(call: Callable[[], Any]) -> Any:
    """Return what a call of PyStan returns, in silence unless it fails.

    It stays in this thread: Stan's own memory belongs to the thread that loaded the program, and others crash.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries beneath PyStan warn of each other
            return call()
    except (ValueError, RuntimeError) as error:
        if "running event loop" in str(error):
            raise RingtrueError(
                "PyStan cannot run inside the event loop of a notebook; run first: import nest_asyncio; "
                "nest_asyncio.apply()"
            ) from error
        raise RingtrueError(f"Stan stopped: {error} {said.getvalue()}".strip()) from error


@dataclass(frozen=True)
class CmdStan:
    """A program that CmdStanPy has compiled."""

    model: Any

    @property
    def text(self) -> str:
        """Its source."""
        return str(self.model.code())

    def names(self, data: Values) -> Sequence[str]:
        """Return the names of all draws."""
        blocks = self.model.src_info()
        kinds = ("parameters", "transformed parameters", "generated quantities")
        return tuple(name for kind in kinds for name in blocks.get(kind, ()))

    def lacking(self, data: Values, theta: Mapping[str, Any]) -> str:
        """Return a parameter that is not in theta, or an empty text."""
        return next((name for name in self.model.src_info().get("parameters", ()) if name not in theta), "")

    def sampled(self, data: Values, names: Iterable[str], fit: Fit, seed: int) -> tuple[Values, Values]:
        """Return draws, chain after chain, and what the sampler says of each."""
        settings = {"chains": fit.chains, "iter_sampling": fit.draws, "iter_warmup": fit.warmup, "parallel_chains": 1}
        return self._run(data, names, seed, {**settings, **fit.options})

    def generated(
        self, data: Values, names: Iterable[str], m: int, seed: int, fixed: Mapping[str, Any] | None
    ) -> Values:
        """Return m draws of generated quantities, with parameters held fixed."""
        start = {} if fixed is None else {"inits": _plain(fixed)}
        settings = {"chains": 1, "iter_sampling": m, "fixed_param": True, **start}
        return self._run(data, names, seed, settings)[0]

    def total(self, data: Values, name: str, theta: Mapping[str, Any]) -> float:
        """Return the sum of a generated quantity at a parameter."""
        return float(self.generated(data, [name], 1, 1, theta)[name].sum())

    def _run(self, data: Values, names: Iterable[str], seed: int, settings: Mapping[str, Any]) -> tuple[Values, Values]:
        logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
        # The tables of a fit are read and gone: a study has thousands of them.
        with TemporaryDirectory() as folder:
            found = self.model.sample(
                data=_plain(data), seed=max(seed, 1), show_progress=False, output_dir=folder, **settings
            )
            return _from_cmdstan(found, names)


def _from_cmdstan(fit: Any, names: Iterable[str]) -> tuple[Values, Values]:
    """Return draws, which lie chain after chain, and what the sampler says of each."""
    return {name: np.asarray(fit.stan_variable(name)) for name in names}, dict(fit.method_variables())
