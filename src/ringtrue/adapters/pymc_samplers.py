"""How a PyMC model is fitted: samplers whose data are slots of the model, made once and called for every dataset.

Each is made of a model and its settings, and is then called with data and a seed. All but Pathfinder compile when they
are made and never again. What is asked about the draws is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from .libraries import need, one_behind_the_other

Sampler = Literal["nuts", "pymc", "advi", "pathfinder", "smc"]
SAMPLERS = get_args(Sampler)
#: What is kept of a sampler's own account: its name, what PyMC and nutpie call it, and the worst of (chain, draw).
_SAID: tuple[tuple[str, tuple[str, ...], Callable[[NDArray[Any]], Any]], ...] = (
    ("divergences", ("diverging",), np.sum),
    ("max depth reached", ("reached_max_treedepth", "maxdepth_reached"), np.sum),
    ("tree depth", ("tree_depth", "depth"), np.max),
    ("leapfrog steps", ("n_steps", "tree_size"), np.max),
    ("acceptance", ("acceptance_rate", "mean_tree_accept"), lambda rates: rates.mean(axis=1).min()),
)
#: All that PyMC and nutpie call them.
_KEYS = {key for _, keys, _ in _SAID for key in keys}
#: Options of samplers that take few.
_OPTIONS = {"advi": ("n", "obj_optimizer"), "smc": ("kernel", "threshold", "correlation_threshold")}
#: How often a chain of PyMC's looks for a place to start from where the density is not zero; PyMC's own number.
_STARTS = 11

Point = Mapping[str, Any]
Stats = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Fit:
    """How a model is fitted."""

    sampler: Sampler
    draws: int
    tune: int
    chains: int
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise InvalidStudy(f"sampler must be one of {', '.join(SAMPLERS)}, but {self.sampler!r} arrived.")
        if self.sampler == "pathfinder":
            need("pymc_extras", "pathfinder")
        known = _OPTIONS.get(self.sampler)
        if known is not None and (wrong := [name for name in self.options if name not in known]):
            raise InvalidStudy(
                f"sampler={self.sampler!r} takes the options {', '.join(known)}, but {wrong[0]!r} arrived; leave it "
                f"out."
            )


@dataclass(frozen=True, eq=False)
class Slots:
    """A model whose data are slots, and the variables whose draws are wanted."""

    model: Any
    observed: Sequence[str]
    wanted: Sequence[str]

    def of(self, name: str) -> Any:
        """Return the slot of an observed variable."""
        return self.model.rvs_to_values[self.model[name]]

    def fill(self, y: Mapping[str, Any]) -> None:
        """Put data into the slots."""
        for name in self.observed:
            self.of(name).set_value(np.asarray(y[name], dtype=self.model[name].dtype), borrow=False)

    @cached_property
    def _back(self) -> Callable[..., Any]:
        outputs = {value.name: value for value in self.model.unobserved_value_vars}
        return self.model.compile_fn(  # type: ignore[no-any-return]
            [outputs[name] for name in self.wanted], inputs=self.model.value_vars, on_unused_input="ignore"
        )

    def values(self, points: Sequence[Point]) -> dict[str, NDArray[Any]]:
        """Return the wanted variables at points of the space that samplers move in."""
        rows = [self._back(point) for point in points]
        return {name: np.stack(part) for name, part in zip(self.wanted, zip(*rows, strict=True), strict=True)}


def sampler_of(slots: Slots, fit: Fit) -> Callable[[Mapping[str, Any], int], Draws]:
    """Return what fits the model: a function of data and a seed."""
    made: dict[str, Callable[..., Any]] = {"advi": ADVI, "pathfinder": Pathfinder, "smc": Particles}
    if fit.sampler in made:
        return made[fit.sampler](slots, fit)  # type: ignore[no-any-return]
    if fit.sampler == "nuts" and not slots.model.discrete_value_vars and _has("nutpie"):
        return Nutpie(slots, fit)
    import pymc as pm

    # Options are those of steps, which are made once, or of the function, which is then the only one to know them.
    return Sampling(slots, fit) if set(fit.options) & set(signature(pm.sample).parameters) else Steps(slots, fit)


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _said(stats: Stats) -> dict[str, float]:
    """Return what gradient-based samplers say of themselves, from arrays with axes (chain, draw)."""
    return {
        name: float(reduced(np.asarray(stats[key], float)))
        for name, keys, reduced in _SAID
        if (key := next((one for one in keys if one in stats), None)) is not None
    }


class Nutpie:
    """NUTS by nutpie."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        import nutpie

        self.slots, self.fit = slots, fit
        self.compiled = nutpie.compile_pymc_model(slots.model)

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return the draws of all chains."""
        import nutpie

        slots, fit = self.slots, self.fit
        trace = nutpie.sample(
            self.compiled.with_data(**{slots.of(name).name: np.asarray(y[name]) for name in slots.observed}),
            seed=seed,
            draws=fit.draws,
            tune=fit.tune,
            chains=fit.chains,
            cores=1,
            progress_bar=False,
            # Making an InferenceData of the trace takes three times as long as sampling a small model.
            return_raw_trace=True,
            **fit.options,
        )
        draws, stats = trace.get_arrow_trace()
        kept = [int(np.sum(_column(told, "tuning"))) for told in stats]
        said = {
            name: np.stack([_column(told, name)[first:] for told, first in zip(stats, kept, strict=True)])
            for name in _KEYS.intersection(stats[0].schema.names)
        }
        values = {
            name: np.concatenate([_column(chain, name)[first:] for chain, first in zip(draws, kept, strict=True)])
            for name in slots.wanted
        }
        return Draws(values, chains=fit.chains, diagnostics=_said(said))


def _column(batch: Any, name: str) -> NDArray[Any]:
    """Return a column of a table of nutpie's as one array; its rows are numbers, or arrays of a shape that it says."""
    shape = (batch.field(name).metadata or {}).get(b"shape", b"").decode()
    if not shape:
        return np.asarray(batch.column(name))
    import pyarrow

    numbers = pyarrow.array(batch.column(name)).flatten().to_numpy(zero_copy_only=False)
    return np.asarray(numbers).reshape(batch.num_rows, *map(int, shape.split(",")))


def _from_trace(slots: Slots, trace: Any) -> Draws:
    posterior, stats = trace.posterior, trace.sample_stats
    values = {name: one_behind_the_other(posterior[name].values) for name in slots.wanted if name in posterior}
    said = _said({name: stats[name].values for name in stats})
    return Draws(values, chains=int(posterior.sizes["chain"]), diagnostics=said)


class Sampling:
    """``pm.sample``, which compiles for every fit."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        self.slots, self.fit = slots, fit

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return the draws of all chains."""
        import pymc as pm

        fit = self.fit
        self.slots.fill(y)
        logging.getLogger("pymc").setLevel(logging.ERROR)
        settings = {"cores": 1, "progressbar": False, "compute_convergence_checks": False, **fit.options}
        with self.slots.model:
            trace = pm.sample(draws=fit.draws, tune=fit.tune, chains=fit.chains, random_seed=seed, **settings)
        return _from_trace(self.slots, trace)


class Steps:
    """PyMC's own choice of steps, NUTS where it can be, as ``pm.sample`` makes and runs them with ``cores=1``."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        import pymc as pm
        from pymc.initial_point import make_initial_point_fn
        from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers

        self.slots, self.fit, model = slots, fit, slots.model
        with model:
            given, chosen = assign_step_methods(model, None, methods=pm.STEP_METHODS)
            self.smooth = list(chosen) == [pm.NUTS]
            self.start = make_initial_point_fn(model=model, jitter_rvs=set(model.free_RVs if self.smooth else ()))
            if self.smooth:
                self.density = model.logp_dlogp_function(ravel_inputs=True)
                self.density.trust_input = True
            else:
                own = {"step_kwargs": _by_step(fit.options), "initial_point": self.start(0)}
                steps = instantiate_steppers(model, steps=given, selected_steps=chosen, **own)
                self.steps = pm.CompoundStep(steps) if isinstance(steps, list) else steps
                self.first = self.steps.sampling_state

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return the draws of all chains."""
        self.slots.fill(y)
        generators = np.random.default_rng(seed).spawn(self.fit.chains)
        seeds = [int(rng.integers(2**30)) for rng in generators]
        points = [self._first(one) for one in seeds]
        step = self._nuts(points, seeds[0]) if self.smooth else self.steps
        first = step.sampling_state if self.smooth else self.first
        runs = [self._run(step, first, point, rng) for point, rng in zip(points, generators, strict=True)]
        values = self.slots.values([point for run, _ in runs for point in run])
        told = [_columns(stats) for _, stats in runs]
        said = _said({name: np.stack([one[name] for one in told]) for name in told[0]})
        return Draws(values, chains=self.fit.chains, diagnostics=said)

    def _first(self, seed: int) -> Point:
        """Return where a chain starts: with NUTS, a place whose density is not zero."""
        names = [value.name for value in self.slots.model.value_vars]
        others = np.random.default_rng(seed)
        for _ in range(_STARTS):
            point = {name: part for name, part in self.start(seed).items() if name in names}
            if not self.smooth or np.isfinite(self.density([_raveled(point).data], extra_vars={})[0]):
                break
            seed = int(others.integers(2**30))
        return point

    def _nuts(self, points: Sequence[Point], seed: int) -> Any:
        """Return NUTS whose mass matrix is to be found, from the mean of where chains start."""
        import pymc as pm
        from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt

        mean = np.mean([_raveled(point).data for point in points], axis=0)
        own = {name: value for name, value in self.fit.options.items() if name != "nuts"}
        return pm.NUTS(
            model=self.slots.model,
            potential=QuadPotentialDiagAdapt(len(mean), mean, np.ones_like(mean), 10, rng=seed),
            logp_dlogp_func=self.density,
            initial_point=points[0],
            rng=seed,
            **{**self.fit.options.get("nuts", {}), **own},
        )

    def _run(self, step: Any, first: Any, point: Point, rng: Any) -> tuple[list[Point], list[Any]]:
        """Return the places of one chain, and what the steps said at each."""
        step.sampling_state = first
        step.set_rng(rng)
        step.tune = self.fit.tune > 0
        step.reset_tuning()
        points, told = [], []
        for i in range(self.fit.tune + self.fit.draws):
            if i == self.fit.tune:
                step.stop_tuning()
            point, stats = step.step(point)
            if i >= self.fit.tune:
                points.append(point)
                told.append(stats)
        return points, told


def _by_step(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the name of a step; that of NUTS may be left out for one of its own."""
    own = {name: value for name, value in options.items() if name != "target_accept"}
    aim = {"target_accept": options["target_accept"]} if "target_accept" in options else {}
    return {**own, "nuts": {**own.get("nuts", {}), **aim}} if aim else own


def _raveled(point: Point) -> Any:
    from pymc.blocking import DictToArrayBijection

    return DictToArrayBijection.map(point)


def _columns(stats: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, NDArray[Any]]:
    """Return what was said, by name, from what each of several steps said at each draw."""
    rows = [{name: value for one in said for name, value in one.items()} for said in stats]
    return {name: np.array([row[name] for row in rows]) for name in rows[0] if name in _KEYS}


class ADVI:
    """Mean-field variational inference, step by step from the same start."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        import pymc as pm

        self.slots, self.fit = slots, fit
        with slots.model:
            found = pm.ADVI()
            own = {name: value for name, value in fit.options.items() if name != "n"}
            self.step = found.objective.step_function(score=True, **own)
            self.drawn = found.approx.sample_dict_fn
        data = [slots.of(name) for name in slots.observed]
        self.held = [(one, one.get_value(borrow=False)) for one in self.step.get_shared() if one not in data]

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return independent draws of what is found after the last step, with the bound."""
        self.slots.fill(y)
        for one, value in self.held:
            random = isinstance(value, np.random.Generator)
            one.set_value(np.random.default_rng(seed) if random else value, borrow=False)
        steps = int(self.fit.options.get("n", 10_000))
        losses = [float(self.step()) for _ in range(steps)]
        points = self.drawn(self.fit.draws, random_seed=seed)
        values = self.slots.values([{name: part[i] for name, part in points.items()} for i in range(self.fit.draws)])
        # One step's bound is noisy: the last tenth of them, on average.
        return Draws(values, iid=True, diagnostics={"ELBO": -float(np.mean(losses[-max(steps // 10, 1) :]))})


class Pathfinder:
    """Pathfinder by pymc-extras, which compiles for every fit: what it compiles can be kept by private names only."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        self.slots, self.fit = slots, fit

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return draws that were chosen from those of all paths by their importance, with k-hat of the weights."""
        fit_pathfinder = need("pymc_extras", "pathfinder").fit_pathfinder
        self.slots.fill(y)
        # One process and no table on the screen have had different names.
        quiet = {"progressbar": False, "concurrent": None, "parallel": False, "display_summary": False}
        known = {name: value for name, value in quiet.items() if name in signature(fit_pathfinder).parameters}
        with self.slots.model as model:
            trace = fit_pathfinder(
                model=model, num_draws=self.fit.draws, random_seed=seed, **{**known, **self.fit.options}
            )
        values = {name: one_behind_the_other(trace.posterior[name].values) for name in self.slots.wanted}
        # Versions put it into one group or the other; without importance sampling there is none.
        groups = [trace[name] for name in ("sample_stats", "pathfinder") if name in trace]
        found = [float(group["pareto_k"]) for group in groups if "pareto_k" in group]
        return Draws(values, iid=True, diagnostics=dict(zip(["k-hat"], found, strict=False)))


class Particles:
    """Sequential Monte Carlo, a population per chain."""

    def __init__(self, slots: Slots, fit: Fit) -> None:
        import pymc as pm
        from pymc.initial_point import make_initial_point_fn

        self.slots, self.fit = slots, fit
        own = dict(fit.options)
        kernel = own.pop("kernel", pm.smc.IMH)
        with slots.model:
            self.kernel = kernel(draws=fit.draws, model=slots.model, random_seed=0, **own)
        self.start = make_initial_point_fn(model=slots.model, default_strategy="prior")

    def __call__(self, y: Mapping[str, Any], seed: int) -> Draws:
        """Return the draws of all populations after the last stage, with the number of stages and acceptance."""
        self.slots.fill(y)
        runs = [self._run(rng) for rng in np.random.default_rng(seed).spawn(self.fit.chains)]
        values = self.slots.values([point for kernel in runs for point in self._points(kernel)])
        rates = [one for kernel in runs if (one := kernel.sample_stats().get("accept_rate")) is not None]
        said = {"stages": float(max(kernel.iteration for kernel in runs))}
        said |= {"acceptance": float(np.min(rates))} if rates else {}
        return Draws(values, chains=self.fit.chains, diagnostics=said)

    def _run(self, rng: Any) -> Any:
        """Return a kernel after its last stage; the calls and their order are those of PyMC's guide to kernels."""
        kernel = copy(self.kernel)
        kernel.rng = rng
        points = [self.start(int(rng.integers(2**30))) for _ in range(self.fit.draws)]
        kernel.start = {name: np.stack([point[name] for point in points]) for name in points[0]}
        kernel._initialize_kernel()
        kernel.setup_kernel()
        while kernel.beta < 1:
            kernel.update_beta_and_weights()
            kernel.resample()
            kernel.tune()
            kernel.mutate()
        return kernel

    def _points(self, kernel: Any) -> list[Point]:
        """Return the particles by name; discrete ones move among all numbers and are rounded."""
        points: list[Point] = []
        for particle in kernel.tempered_posterior:
            parts = np.split(particle, np.cumsum([size for _, size in kernel.var_info.values()])[:-1])
            points.append(
                {
                    value.name: _as_type(part.reshape(kernel.var_info[value.name][0]), value.dtype)
                    for value, part in zip(kernel.variables, parts, strict=True)
                }
            )
        return points


def _as_type(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    return (np.round(array) if np.dtype(dtype).kind in "iub" else array).astype(dtype)
