"""A PyMC model as a study: its prior draws, its simulator, its sampler compiled once per process, its log-likelihood.

The data of the observed variables become slots that are filled anew for every replicate, so that nothing is compiled
again. What has no prior draws is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from ..execution.store.identity import described
from ..functions import Coordinate, Vectorized
from ..question.study import Adapted, Study
from ..values import Generator, Identified
from .libraries import Prior, as_data, mark_of, need, seed_of
from .pymc_samplers import Fit, Sampler, Slots, sampler_of


def pymc(
    model: Any,
    *,
    observed: Iterable[str] | None = None,
    names: Iterable[str] | None = None,
    sampler: Sampler = "nuts",
    draws: int = 300,
    tune: int = 300,
    chains: int = 2,
    seed: int = 0,
    **options: Any,
) -> PyMCStudy:
    """Turn a PyMC model into a study: prior, simulator, fit and log-likelihood are the model's own.

    Parameters
    ----------
    model
        A ``pm.Model`` with observed variables; their values give the shape of simulated data.
    observed
        Names of the variables that are data; left out, all observed ones.
    names
        Which variables are asked about; left out, all free ones. Deterministics may be among them.
    sampler
        "nuts" (nutpie's if it is installed and the model has no discrete variables, else PyMC's own choice), "pymc"
        (that choice in any case), "advi", "smc", or "pathfinder" (that of pymc-extras). What is compiled is compiled
        once per process; Pathfinder compiles for every fit, and so does PyMC's choice with options that ``pm.sample``
        alone knows, such as ``init``.
    draws, tune, chains
        Of the sampler. Variational fits have ``draws`` independent draws and no chains.
    seed
        That of the study.
    **options
        Handed on to the sampler: ``target_accept`` and others of its steps; ``n``, the number of steps of ADVI, and
        ``obj_optimizer``, which makes them; ``threshold``, ``correlation_threshold`` and ``kernel`` of SMC; those of
        ``fit_pathfinder``.

    Returns
    -------
    PyMCStudy
        For ``rt.check(pymc(model), n=200)``; ``.given(y_obs)`` asks about data like those that are there.

    Raises
    ------
    InvalidStudy
        If the model has no observed variables, or parts that have no prior draws: potentials, improper priors,
        transforms that cut the prior, missing values.
    """
    need("pymc", "pymc")
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise InvalidStudy(f"a pymc.Model is needed, but {type(model).__name__} arrived.")
    chosen = tuple(observed or (rv.name for rv in model.observed_RVs))
    asked = tuple(names or (rv.name for rv in model.free_RVs))
    fit = Fit(sampler, draws, tune, chains, dict(options))
    _refuse(model, chosen, asked)
    machine = Machine(model, chosen, asked, fit)
    return PyMCStudy(
        Prior(machine),
        machine.simulate,
        machine.fitted,
        f=[*machine.functions(), Vectorized(machine.log_likelihood, "log-likelihood", sees="data")],
        seed=seed,
        machine=machine,
    )


@dataclass(frozen=True, eq=False)
class PyMCStudy(Adapted):
    """A study whose belief, model and procedure are those of a PyMC model."""

    machine: Any = field(default=None, kw_only=True, repr=False)

    def given(self, y_obs: Any = None, *, both: Callable[[Any, Any], Any] | None = None) -> Study:
        """Ask about data like those that are there; see :meth:`ringtrue.Study.given`.

        The likelihood is put into the model twice, once for the observed data and once for new ones.

        Parameters
        ----------
        y_obs
            Data by name, or an array if one variable is observed; left out, those that the model was built with.
        both
            Only for a procedure of your own, which is handed both datasets as one.
        """
        return super().given(self.machine.as_data(y_obs), both=both)

    def _fitted_twice(self, y_obs: Any) -> Any:
        machine = self.machine
        return Machine(machine.source, machine.observed, machine.names, machine.fit, y_obs).fitted


class Machine(Identified):
    """A model with slots for its data, and what is compiled of it; a copy in another process compiles its own.

    Data that are ``given`` are in every fit, beside those of the slots.
    """

    def __init__(
        self,
        model: Any,
        observed: Sequence[str],
        names: Sequence[str],
        fit: Fit,
        given: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.source, self.observed, self.names, self.fit = model, tuple(observed), tuple(names), fit
        self.given = dict(given or {})

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("source", "observed", "names", "fit", "given")}

    @cached_property
    def identity(self) -> str:
        """The model as text, the constants in it, what is asked, and how it is fitted."""
        model = self.source
        data = [mark_of(self._observed_value(name)) for name in self.observed]
        given = [(name, mark_of(part)) for name, part in self.given.items()]
        fit = replace(self.fit, options={}), described(dict(self.fit.options))
        return f"{_text(model)} {_constants(model)} {self.observed} {self.names} {fit} {data} {given}"

    def _observed_value(self, name: str) -> Any:
        value = self.source.rvs_to_values[self.source[name]]
        return value.get_value() if hasattr(value, "get_value") else value.data

    def as_data(self, y_obs: Any) -> dict[str, NDArray[Any]]:
        """Return observed data by name, in the form that the model has them; its own if none are passed."""
        own = {name: np.asarray(self._observed_value(name)) for name in self.observed}
        return own if y_obs is None else as_data(y_obs, {name: part.shape for name, part in own.items()})

    @cached_property
    def model(self) -> Any:
        """A clone of the model whose data are slots."""
        import pytensor
        from pymc.model.fgraph import clone_model

        model = clone_model(self.source)
        for rv in (model[name] for name in self.observed):
            old = model.rvs_to_values[rv]
            if not hasattr(old, "set_value"):
                slot = pytensor.shared(np.array(old.data, dtype=rv.dtype), name=f"{rv.name}__slot")
                model.values_to_rvs.pop(old, None)
                model.rvs_to_values[rv], model.values_to_rvs[slot] = slot, rv
        for name, data in self.given.items():
            model.register_rv(_again(model[name]), name=f"{name}__given", observed=data.astype(model[name].dtype))
        return model

    @property
    def free(self) -> list[str]:
        """Names of the free variables: what a truth consists of."""
        return [rv.name for rv in self.source.free_RVs]

    def functions(self) -> list[Coordinate]:
        """Return a test function for every entry of the variables asked about, named by its coordinates."""
        shapes = {name: np.shape(value) for name, value in self.prior(1, np.random.default_rng(0)).items()}
        return [
            Coordinate(name, index, _entry(self.source, name, index))
            for name in self.names
            for index in product(*map(range, shapes[name][1:]))
        ]

    # Prior and data.

    @cached_property
    def _prior(self) -> Callable[[int, Generator], list[NDArray[Any]]]:
        """A function that draws all variables of the prior, m times."""
        import pytensor.tensor as pt

        one, m = [self.model[name] for name in self._drawn], pt.lscalar("m")
        if (many := _repeated(one, m)) is not None:
            together = self._forward([m], many)
            return lambda m, rng: list(_seeded(together, rng)(m))
        alone = self._forward([], one)

        def drawn(m: int, rng: Generator) -> list[NDArray[Any]]:
            function = _seeded(alone, rng)
            return [np.stack(parts) for parts in zip(*(function() for _ in range(m)), strict=True)]

        return drawn

    @property
    def _drawn(self) -> list[str]:
        return list(dict.fromkeys([*self.free, *self.names]))

    @cached_property
    def _data(self) -> tuple[Callable[..., Any], list[Any]]:
        return self._forward([self.model[name] for name in self.free], [self.model[name] for name in self.observed])

    def _forward(self, given: list[Any], wanted: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        import pymc as pm

        function = pm.pytensorf.compile(given, wanted, on_unused_input="ignore")
        held = [one for one in function.get_shared() if isinstance(one.get_value(borrow=True), np.random.Generator)]
        return function, held

    def prior(self, m: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Return m draws of the prior, jointly, so that deterministic variables agree with their parents."""
        return dict(zip(self._drawn, map(np.asarray, self._prior(m, rng)), strict=True))

    def simulate(self, theta: Mapping[str, Any], rng: Generator) -> dict[str, NDArray[Any]]:
        """Return data for one truth."""
        values = [np.asarray(theta[name], dtype=self.model[name].dtype) for name in self.free]
        return dict(zip(self.observed, map(np.asarray, _seeded(self._data, rng)(*values)), strict=True))

    # The fit.

    def fitted(self, belief: Any, y: Mapping[str, Any], rng: Generator) -> Draws:
        """Return draws of the posterior of one dataset."""
        return self._sampler(y, seed_of(rng))

    @cached_property
    def _sampler(self) -> Callable[[Mapping[str, Any], int], Draws]:
        """What fits the model, compiled once."""
        return sampler_of(Slots(self.model, self.observed, self._drawn), self.fit)

    # The log-likelihood.

    @cached_property
    def _log_likelihood(self) -> Callable[..., Any]:
        """The log-likelihood of untransformed parameters, for all draws at once."""
        import pytensor
        import pytensor.tensor as pt
        from pymc.model.transform.conditioning import remove_value_transforms
        from pytensor.graph.replace import clone_replace, vectorize_graph

        flat = remove_value_transforms(self.model)
        theta = [flat.rvs_to_values[flat[name]] for name in self.free]
        slots = [flat.rvs_to_values[flat[name]] for name in self.observed]
        data = [pt.tensor(dtype=slot.dtype, shape=(None,) * slot.ndim) for slot in slots]
        one = clone_replace(
            flat.logp(vars=[flat[name] for name in self.observed]),
            dict(zip(slots, data, strict=True)),
            rebuild_strict=False,
        )
        many = [pt.tensor(dtype=value.dtype, shape=(None, *value.type.shape)) for value in theta]
        values = vectorize_graph(one, dict(zip(theta, many, strict=True)))
        return pytensor.function([*many, *data], values, on_unused_input="ignore")  # type: ignore[no-any-return]

    def log_likelihood(self, theta: Mapping[str, Any], y: Mapping[str, Any]) -> Any:
        """Return the log-likelihood of parameters whose own axes come first, the draws last."""
        single = np.ndim(theta[self.free[0]]) == np.ndim(self._blank[self.free[0]])
        rows = [np.asarray(theta[name], dtype=self.model[name].dtype) for name in self.free]
        rows = [row[None] if single else np.moveaxis(row, -1, 0) for row in rows]
        data = [np.asarray(y[name], dtype=self.model[name].dtype) for name in self.observed]
        values = np.asarray(self._log_likelihood(*rows, *data), float)
        values = np.broadcast_to(values, (len(rows[0]),)) if values.ndim == 0 else values
        return values[0] if single else values

    @cached_property
    def _blank(self) -> dict[str, NDArray[Any]]:
        return {name: part[0] for name, part in self.prior(1, np.random.default_rng(0)).items()}


def _repeated(variables: Sequence[Any], m: Any) -> list[Any] | None:
    """Return variables m times over, drawn side by side, with m on the first axis; None if they must be drawn in turn.

    What depends on nothing random is made m times as large; what depends on it follows. Only PyTensor's own random
    variables follow with random numbers for each of the m: others that are not first in the graph are drawn in turn.
    """
    from pymc.distributions.distribution import SymbolicRandomVariable
    from pymc.distributions.shape_utils import change_dist_size
    from pytensor.graph.replace import vectorize_graph
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.op import RandomVariable

    def random(variables: Sequence[Any]) -> dict[Any, None]:
        nodes = dict.fromkeys(one.owner for one in ancestors(variables) if one.owner is not None)
        return {node: None for node in nodes if isinstance(node.op, (RandomVariable, SymbolicRandomVariable))}

    nodes = random(variables)
    roots = [node for node in nodes if not random(node.inputs)]
    if not all(isinstance(node.op, RandomVariable) for node in nodes if node not in roots):
        return None
    first = [node.default_output() for node in roots]
    many = vectorize_graph(variables, {one: change_dist_size(one, (m,), expand=True) for one in first})
    # A deterministic variable that depends on nothing random has no axis for m.
    return many if all(a.ndim == b.ndim + 1 for a, b in zip(many, variables, strict=True)) else None


def _again(rv: Any) -> Any:
    """Return another variable with the parameters of this one, and random numbers of its own."""
    import pytensor
    from pytensor.tensor.random.type import RandomType

    def own(part: Any) -> Any:
        return pytensor.shared(np.random.default_rng(0)) if isinstance(part.type, RandomType) else part

    node = rv.owner.clone_with_new_inputs([own(part) for part in rv.owner.inputs])
    return node.outputs[rv.owner.outputs.index(rv)]


def _seeded(forward: tuple[Callable[..., Any], list[Any]], rng: Generator) -> Callable[..., Any]:
    """Return a compiled function whose random numbers follow from rng."""
    function, held = forward
    for one in held:
        one.set_value(np.random.Generator(np.random.PCG64(int(rng.integers(2**63)))), borrow=True)
    return function


def _entry(model: Any, name: str, index: tuple[int, ...]) -> str:
    """Return what an entry is called: by coordinates where the model has them."""
    dims = model.named_vars_to_dims.get(name) or ()
    labels = [
        str(model.coords[dim][i]) if dim in model.coords and model.coords[dim] is not None else str(i)
        for dim, i in zip(dims, index, strict=False)
    ]
    labels += [str(i) for i in index[len(labels) :]]
    return f"{name}[{', '.join(labels)}]" if labels else name


def _text(model: Any) -> str:
    """Return the model as text, which is the same whenever it is built."""
    return str(model.str_repr(formatting="plain"))


def _constants(model: Any) -> list[str]:
    """Return marks of all constants that the model's variables depend on."""
    from pytensor.graph.traversal import ancestors

    found = [node for node in ancestors(model.basic_RVs) if hasattr(node, "data") or hasattr(node, "get_value")]
    values = [node.data if hasattr(node, "data") else node.get_value(borrow=True) for node in found]
    arrays = [value for value in values if isinstance(value, (np.ndarray, np.number, float, int))]
    return sorted(mark_of(value) for value in arrays)


def _refuse(model: Any, observed: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a model that cannot be simulated from its prior."""
    known = {rv.name for rv in model.observed_RVs}
    if not observed:
        raise InvalidStudy(
            "the model must have observed variables, whose data are simulated, but has none; build it with observed=."
        )
    if wrong := [name for name in observed if name not in known]:
        raise InvalidStudy(f"observed= must name observed variables, {sorted(known)}, but {wrong[0]!r} arrived.")
    if wrong := [name for name in names if name not in model.named_vars]:
        raise InvalidStudy(f"names= must name variables of the model, but {wrong[0]!r} arrived.")
    if model.potentials:
        raise InvalidStudy(
            f"a model with a potential has no prior draws, and {model.potentials[0].name!r} is one; write it as a "
            f"prior, or pass a belief of your own."
        )
    missing = [rv.name for rv in model.free_RVs if rv.name.endswith("_unobserved")]
    if missing:
        raise InvalidStudy(
            f"observed data must be complete, but {missing[0].removesuffix('_unobserved')!r} has missing values; "
            f"simulated data have none, so leave the gaps out of the model."
        )
    improper = [rv.name for rv in model.free_RVs if type(rv.owner.op).__name__ in ("FlatRV", "HalfFlatRV")]
    if improper:
        raise InvalidStudy(f"the prior of {improper[0]!r} is improper and has no draws; give it a proper one.")
    _refuse_cuts(model)


def _refuse_cuts(model: Any) -> None:
    """Refuse transforms that restrict the posterior and leave prior draws as they are."""
    for rv in model.free_RVs:
        transform = type(model.rvs_to_transforms.get(rv)).__name__
        if transform in ("Ordered", "SumTo1", "ZeroSumTransform") and "ZeroSum" not in type(rv.owner.op).__name__:
            raise InvalidStudy(
                f"the transform of {rv.name!r} ({transform}) restricts the posterior but not draws of the prior, which "
                f"would then be found wrong; write the restriction as a prior."
            )
