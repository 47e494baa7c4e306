"""A NumPyro model as a study: its prior draws, its simulator, its log-likelihood, its sampler for a batch at once.

The datasets of a batch are fitted side by side by one compiled function, one chain of each after the other. What has no
prior draws is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from ..execution.store.identity import described
from ..functions import Coordinate
from ..functions.contract import Context
from ..question.study import Adapted, Study, at_least
from ..values import Generator, Identified, leading_shape
from .libraries import Prior, as_data, need, seed_of

#: Draws of the prior that are made at once: one size, since every size is compiled anew.
_PRIOR = 1000

#: What is kept of a sampler's own account: its name, what NumPyro calls it, and the worst of (dataset, chain, draw).
_SAID: tuple[tuple[str, str, Callable[[NDArray[Any]], Any]], ...] = (
    ("divergences", "diverging", lambda found: found.sum(axis=(1, 2))),
    # A tree of depth d has 2^d - 1 steps, of which the last doubling may be cut short.
    ("tree depth", "num_steps", lambda steps: np.ceil(np.log2(steps.max(axis=(1, 2)) + 1.0))),
    ("leapfrog steps", "num_steps", lambda steps: steps.max(axis=(1, 2))),
    ("acceptance", "accept_prob", lambda rates: rates.mean(axis=2).min(axis=1)),
)


def numpyro(
    model: Callable[..., Any],
    *args: Any,
    observed: Iterable[str] | Mapping[str, str] = ("y",),
    names: Iterable[str] | None = None,
    kernel: Callable[[Any], Any] | None = None,
    guide: Callable[..., Any] | None = None,
    optimizer: Any = None,
    steps: int = 2000,
    warmup: int = 300,
    draws: int = 300,
    chains: int = 2,
    batch: int = 100,
    seed: int = 0,
    **kwargs: Any,
) -> NumPyroStudy:
    """Turn a NumPyro model into a study: prior, simulator, fit and log-likelihood are the model's own.

    Numbers have the precision that NumPyro has when the study is made, float32 if it was not told otherwise: a
    log-likelihood is then known to 7 digits, and ``numpyro.enable_x64()`` beforehand is for models that need more.

    Parameters
    ----------
    model
        A function with ``numpyro.sample`` sites, which takes its data as keywords and simulates them if they are None.
    *args
        What the model is called with besides the data: covariates, sizes.
    observed
        The sites that are data, each handed to the model by a keyword of its name; {site: keyword} if names differ.
    names
        Which sites are asked about; left out, all that are sampled. Deterministic ones may be among them.
    kernel
        Makes the sampler of a model, as ``functools.partial(NUTS, target_accept_prob=0.9)`` does; left out, NUTS.
    guide
        For variational inference in place of a sampler: a class that makes the guide of a model, such as ``AutoNormal``
        or a ``functools.partial`` of it, or a function that is the guide and takes what the model takes.
    optimizer, steps
        Of variational inference; left out, ``numpyro.optim.Adam(0.01)``.
    warmup, draws, chains
        Of the sampler; at least two chains, each the reference for the others. A guide has ``draws`` independent
        draws.
    batch
        Datasets that are fitted side by side. All wait for the slowest of them, so that more than a few hundred do not
        pay.
    seed
        That of the study.
    **kwargs
        As args, by keyword.

    Returns
    -------
    NumPyroStudy
        For ``rt.check(numpyro(model, X), n=500)``, n a multiple of batch; ``.given(y_obs)`` asks about data like those
        that are there.

    Raises
    ------
    InvalidStudy
        If the model has no data to simulate, or parts that have no prior draws: factors, improper, masked or scaled
        priors, data that are not simulated.
    """
    need("numpyro", "numpyro")
    at_least(2, "chains", chains)
    keywords = {str(name): str(key) for name, key in _pairs(observed)}
    call = Call(model, args, kwargs, keywords)
    free, known = _sites(call)
    if kernel is None and (guide is None or _makes_guides(guide)):
        _refuse_discrete(known, free)
    asked = tuple(names or free)
    if wrong := [name for name in asked if name not in known or name in keywords]:
        raise InvalidStudy(f"names= must name sites of the model that are no data, but {wrong[0]!r} arrived.")
    at_least(1, "draws", draws)
    if guide is None:
        machine = Machine(call, free, asked, Sampler(kernel, at_least(0, "warmup", warmup), draws, chains))
    else:
        _refuse_guide(guide, kernel)
        machine = Machine(call, free, asked, Variational(guide, optimizer, at_least(1, "steps", steps), draws))
    shapes = {name: np.shape(known[name]["value"]) for name in asked}
    entries = [Coordinate(name, index) for name in asked for index in product(*map(range, shapes[name]))]
    return NumPyroStudy(
        Prior(machine),
        machine.simulate,
        machine.fitted,
        f=[*entries, LogLikelihood(machine)],
        seed=seed,
        batch=batch,
        machine=machine,
    )


def _pairs(observed: Iterable[str] | Mapping[str, str]) -> Iterable[tuple[str, str]]:
    if isinstance(observed, Mapping):
        return observed.items()
    return [(name, name) for name in ([observed] if isinstance(observed, str) else observed)]


@dataclass(frozen=True, eq=False)
class NumPyroStudy(Adapted):
    """A study whose belief, model and procedure are those of a NumPyro model."""

    machine: Any = field(default=None, kw_only=True, repr=False)

    def given(self, y_obs: Any, *, both: Callable[[Any, Any], Any] | None = None) -> Study:
        """Ask about data like those that are there; see :meth:`ringtrue.Study.given`.

        The likelihood is put into the model twice, once for the observed data and once for new ones.

        Parameters
        ----------
        y_obs
            Data by the names of the observed sites, or an array if there is one.
        both
            Only for a procedure of your own, which is handed both datasets as one.
        """
        return super().given(self.machine.as_data(y_obs), both=both)

    def _fitted_twice(self, y_obs: Any) -> Any:
        machine = self.machine
        return Machine(machine.call, machine.free, machine.names, machine.sampler, y_obs).fitted


@dataclass(frozen=True, eq=False)
class Call:
    """How a model is called: its arguments, and the keyword that each observed site gets its data by."""

    model: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    keywords: Mapping[str, str]

    def options(self, y: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the keywords for a call with data, or without: the model then simulates them."""
        return {**self.kwargs, **{key: None if y is None else y[name] for name, key in self.keywords.items()}}


@dataclass(frozen=True, eq=False)
class Sampler:
    """How a model is fitted by Markov chains."""

    kernel: Callable[[Any], Any] | None
    warmup: int
    draws: int
    chains: int

    @property
    def identity(self) -> str:
        """All of it."""
        return f"{described(self.kernel)} {(self.warmup, self.draws, self.chains)}"

    @property
    def kind(self) -> dict[str, Any]:
        """What the draws are."""
        return {"chains": self.chains}

    def run(self, call: Call, names: Sequence[str], key: Any, y: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the draws of one chain for one dataset, and what the sampler says of itself."""
        from numpyro.infer import HMC, MCMC, NUTS

        kernel = (self.kernel or NUTS)(call.model)
        mcmc = MCMC(kernel, num_warmup=self.warmup, num_samples=self.draws, progress_bar=False)
        told = ("diverging", "num_steps", "accept_prob") if isinstance(kernel, HMC) else ()
        mcmc.run(key, *call.args, **call.options(y), extra_fields=told)
        drawn, said = mcmc.get_samples(), mcmc.get_extra_fields()
        return {name: drawn[name] for name in names}, {name: said[name] for name in told}

    def diagnostics(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return a number for each dataset, from what was said in each draw of its chains."""
        return {name: reduced(said[key]) for name, key, reduced in _SAID if key in said}


@dataclass(frozen=True, eq=False)
class Variational:
    """How a model is fitted by a guide."""

    guide: Callable[..., Any]
    optimizer: Any
    steps: int
    draws: int

    #: One fit per dataset.
    chains = 1
    kind: ClassVar[dict[str, Any]] = {"iid": True}

    @property
    def identity(self) -> str:
        """All of it."""
        return f"{described(self.guide)} {described(self.optimizer)} {(self.steps, self.draws)}"

    def run(self, call: Call, names: Sequence[str], key: Any, y: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return draws of the guide after the last step, and the evidence lower bound."""
        import jax
        from numpyro.infer import SVI, Predictive, Trace_ELBO
        from numpyro.optim import Adam

        first, second, third = jax.random.split(key, 3)
        guide = self.guide(call.model) if _makes_guides(self.guide) else self.guide
        svi = SVI(call.model, guide, self.optimizer or Adam(0.01), Trace_ELBO())
        options = call.options(y)
        found = svi.run(first, self.steps, *call.args, progress_bar=False, **options)
        drawn = Predictive(guide, params=found.params, num_samples=self.draws, parallel=True)(
            second, *call.args, **options
        )
        if computed := [name for name in names if name not in drawn]:
            rest = Predictive(call.model, drawn, params=found.params, return_sites=computed, parallel=True)
            drawn = {**drawn, **rest(third, *call.args, **options)}
        # One step's bound is noisy: the last tenth of them, on average.
        bound = -found.losses[-max(self.steps // 10, 1) :].mean()
        return {name: drawn[name] for name in names}, {"ELBO": bound}

    def diagnostics(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bound of each dataset."""
        return {"ELBO": said["ELBO"][:, 0]}


def _makes_guides(guide: Any) -> bool:
    """Whether something makes the guide of a model, and is not one itself."""
    return isinstance(guide, type) or isinstance(getattr(guide, "func", None), type)


def _refuse_guide(guide: Any, kernel: Any) -> None:
    from numpyro.infer.autoguide import AutoGuide

    if kernel is not None:
        raise InvalidStudy(
            "a model is fitted by a sampler or by a guide, but kernel= and guide= arrived; leave one out."
        )
    if isinstance(guide, AutoGuide) or not callable(guide):
        name = type(guide).__name__
        raise InvalidStudy(
            f"guide= must be a class that makes guides or a function that is one, but a {name} arrived; pass the class "
            f"itself, or functools.partial of it with its options."
        )


@dataclass(frozen=True, eq=False)
class Twice:
    """A model into which the likelihood of given data is put besides that of its own."""

    call: Call
    given: Mapping[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model, and once more with the given data and the same values of all that is not observed."""
        from numpyro import factor, handlers

        with handlers.trace() as sites:
            value = self.call.model(*args, **kwargs)
        same = {name: site["value"] for name, site in sites.items() if _is_free(site)}
        with handlers.block(), handlers.trace() as again, handlers.substitute(data=same):
            self.call.model(*args, **{**kwargs, **self.call.options(self.given)})
        parts = [again[name] for name in self.call.keywords]
        logs = [(site["scale"] or 1) * site["fn"].log_prob(site["value"]).sum() for site in parts]
        factor("likelihood of given data", sum(logs))
        return value


def _is_free(site: Mapping[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


class Machine(Identified):
    """A model and what is compiled of it; a copy in another process compiles its own.

    Whether numbers have 32 or 64 bits is a switch of the process; it is kept here, so that others compute the same.
    Data that are ``given`` are in every fit, beside those that come with it.
    """

    def __init__(
        self,
        call: Call,
        free: Sequence[str],
        names: Sequence[str],
        sampler: Sampler | Variational,
        given: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        import jax

        self.call, self.free, self.names, self.sampler = call, tuple(free), tuple(names), sampler
        self.given = dict(given or {})
        self.bits64 = bool(jax.config.jax_enable_x64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("call", "free", "names", "sampler", "given", "bits64")}

    @cached_property
    def identity(self) -> str:
        """The model's source and what it reaches, its arguments, what is asked, and how it is fitted."""
        import jax

        call = self.call
        given = jax.tree.map(
            lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, (call.args, call.kwargs)
        )
        parts = [call.model, *given, dict(call.keywords), self.given]
        return f"{[described(part) for part in parts]} {self.sampler.identity} {(self.names, self.bits64)}"

    @property
    def _drawn(self) -> list[str]:
        return list(dict.fromkeys([*self.free, *self.names]))

    def _computed(self, function: Callable[..., Any], *parts: Any) -> Any:
        """Return what a compiled function makes of arrays, as arrays of numpy, in the precision of the study."""
        import jax

        with jax.enable_x64(self.bits64):
            return jax.tree.map(np.asarray, function(*jax.tree.map(jax.numpy.asarray, parts)))

    # Prior and data.

    @cached_property
    def _prior(self) -> Callable[..., Any]:
        return self._predictive(lambda: {"num_samples": _PRIOR})

    @cached_property
    def _data(self) -> Callable[..., Any]:
        return self._predictive(lambda theta: {"posterior_samples": theta, "batch_ndims": 1})

    def _predictive(self, settings: Callable[..., Mapping[str, Any]]) -> Callable[..., Any]:
        """Return a compiled function of a seed, and of what the settings are made from, that draws all sites."""
        import jax
        from numpyro.infer import Predictive

        call = self.call

        def drawn(seed: Any, *parts: Any) -> Any:
            predictive = Predictive(call.model, parallel=True, **settings(*parts))
            return predictive(jax.random.PRNGKey(seed), *call.args, **call.options())

        return jax.jit(drawn)  # type: ignore[no-any-return]

    def prior(self, m: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Return m draws of the prior, jointly, so that deterministic sites agree with their parents."""
        parts = [self._computed(self._prior, seed_of(rng)) for _ in range(-(-m // _PRIOR))]
        return {name: np.concatenate([part[name] for part in parts])[:m] for name in self._drawn}

    def simulate(self, theta: Mapping[str, Any], rng: Generator) -> dict[str, NDArray[Any]]:
        """Return a dataset for each of a batch of truths."""
        drawn = self._computed(self._data, seed_of(rng), {name: theta[name] for name in self.free})
        return {name: drawn[name] for name in self.call.keywords}

    def as_data(self, y_obs: Any) -> dict[str, NDArray[Any]]:
        """Return observed data by site, in the shapes that the model simulates."""
        theta = self.prior(1, np.random.default_rng(0))
        shapes = {name: part.shape[1:] for name, part in self.simulate(theta, np.random.default_rng(0)).items()}
        return as_data(y_obs, shapes)

    # The fit.

    @property
    def _fitted_model(self) -> Callable[..., Any]:
        """The model, or, where there are given data, the model with their likelihood too."""
        return Twice(self.call, self.given) if self.given else self.call.model

    @cached_property
    def _fit(self) -> Callable[..., Any]:
        """Return a compiled function of a seed and a batch of datasets; its axes are dataset, chain, draw."""
        import jax

        def fitted(seed: Any, y: Any) -> Any:
            many = len(next(iter(y.values())))
            keys = jax.random.split(jax.random.PRNGKey(seed), (self.sampler.chains, many))
            # Chain by chain: all that run side by side wait for the slowest, and twice as many wait longer.
            each = jax.lax.map(lambda some: jax.vmap(self._one)(some, y), keys)
            return jax.tree.map(lambda part: jax.numpy.swapaxes(part, 0, 1), each)

        return jax.jit(fitted)  # type: ignore[no-any-return]

    def _one(self, key: Any, y: Mapping[str, Any]) -> tuple[Any, Any]:
        return self.sampler.run(replace(self.call, model=self._fitted_model), self._drawn, key, y)

    def fitted(self, belief: Any, y: Mapping[str, Any], rng: Generator) -> Draws:
        """Return draws of the posteriors of a batch of datasets."""
        drawn, said = self._computed(self._fit, seed_of(rng), {name: y[name] for name in self.call.keywords})
        values = {name: _draws_first(array) for name, array in drawn.items()}
        return Draws(values, diagnostics=self.sampler.diagnostics(said), **self.sampler.kind)

    # The log-likelihood.

    @cached_property
    def _log_likelihood(self) -> Callable[..., Any]:
        """A compiled function of parameters with axes (dataset, draw, ...) and of a batch of datasets."""
        import jax
        from numpyro.infer import log_likelihood

        call = self.call

        def summed(parts: tuple[Any, Any]) -> Any:
            theta, y = parts
            values = log_likelihood(call.model, theta, *call.args, parallel=True, **call.options(y))
            return sum(part.reshape(len(part), -1).sum(axis=1) for part in values.values())

        # One dataset after the other: a batch of draws times a batch of data may not fit into memory.
        return jax.jit(lambda theta, y: jax.lax.map(summed, (theta, y)))  # type: ignore[no-any-return]

    def log_likelihood(self, theta: Mapping[str, Any], y: Mapping[str, Any]) -> NDArray[Any]:
        """Return the log-likelihoods of parameters with axes (draw, dataset, ...), in the order (draw, dataset)."""
        rows = {name: np.swapaxes(np.asarray(theta[name]), 0, 1) for name in self.free}
        many = rows[self.free[0]].shape[1]
        # Every size is compiled anew: there are as many sizes as powers of two.
        places = np.minimum(np.arange(1 << (many - 1).bit_length()), many - 1)
        padded = {name: row[:, places] for name, row in rows.items()}
        data = {name: y[name] for name in self.call.keywords}
        values = np.asarray(self._computed(self._log_likelihood, padded, data), float)
        return np.swapaxes(values[:, :many], 0, 1)


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """The log-likelihood as a test function, for all datasets of a batch in one call.

    With a call per dataset the conversions would cost far more than the numbers.
    """

    machine: Machine
    name: str = field(default="log-likelihood", init=False)
    kind: str = field(default="function", init=False)
    sees: Literal["data"] = field(default="data", init=False)

    def evaluate(self, theta: Any, context: Context) -> NDArray[Any]:
        """Return a value per parameter; the last leading axis is the dataset, and without one there is one dataset."""
        shape = leading_shape(theta, context.lead)
        y = context.y if shape else {name: np.asarray(part)[None] for name, part in context.y.items()}
        datasets = shape[-1] if shape else 1
        parts = {name: np.asarray(theta[name]) for name in self.machine.free}
        rows = {name: part.reshape(-1, datasets, *part.shape[context.lead :]) for name, part in parts.items()}
        return self.machine.log_likelihood(rows, y).reshape(shape)


def _draws_first(array: NDArray[Any]) -> NDArray[Any]:
    """Return draws with axes (dataset, chain, draw, ...) as (chain after chain, dataset, ...)."""
    return np.swapaxes(array.reshape(len(array), -1, *array.shape[3:]), 0, 1)


def _sites(call: Call) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the free sites, and all sites by name; refuse what cannot be simulated from its prior."""
    if not call.keywords:
        raise InvalidStudy("the model must have observed sites, whose data are simulated; name them by observed=.")
    found = _traced(call)
    for name, key in call.keywords.items():
        if name not in found or found[name]["type"] != "sample":
            sampled = [site for site in found if found[site]["type"] == "sample"]
            raise InvalidStudy(f"observed= must name sites of the model, {sampled}, but {name!r} arrived.")
        if found[name]["is_observed"]:
            raise InvalidStudy(
                f"site {name!r} must be simulated if {key}=None, but has data; hand {key} on as obs={key}."
            )
    for site in found.values():
        if site["type"] == "sample" and site["name"] not in call.keywords:
            _refuse(site)
    again = _traced(call, {name: found[name]["value"] for name in call.keywords})
    for name, key in call.keywords.items():
        if not again[name]["is_observed"]:
            raise InvalidStudy(f"site {name!r} must be observed if {key} is given, but is not; write obs={key} in it.")
    free = [name for name, site in found.items() if site["type"] == "sample" and name not in call.keywords]
    if not free:
        raise InvalidStudy("the model must have sites that are not observed, but has none: there is nothing to learn.")
    return free, found


def _traced(call: Call, y: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run the model once and return its sites."""
    from numpyro import handlers

    seeded = handlers.seed(handlers.substitute(call.model, substitute_fn=_refuse_improper), 0)
    try:
        return dict(handlers.trace(seeded).get_trace(*call.args, **call.options(y)))
    except InvalidStudy:
        raise
    except Exception as error:
        said = ", ".join(f"{key}={'None' if y is None else '...'}" for key in call.keywords.values())
        raise InvalidStudy(
            f"the model must run with {said} besides the arguments given, but raised {type(error).__name__}: {error}."
        ) from error


def _refuse_improper(site: Any) -> None:
    """Refuse a site before it is drawn from, which an improper one cannot be."""
    fn = site.get("fn")
    while fn is not None and type(fn).__name__ != "ImproperUniform":
        fn = getattr(fn, "base_dist", None)
    if site["type"] == "sample" and fn is not None and not site["is_observed"]:
        raise InvalidStudy(f"the prior of {site['name']!r} is improper and has no draws; give it a proper one.")


def _refuse(site: Mapping[str, Any]) -> None:
    """Refuse a site that the fit sees otherwise than draws of the prior do."""
    name, kind = site["name"], type(site["fn"]).__name__
    if kind == "Unit":
        raise InvalidStudy(
            f"a model with a factor has no prior draws, and {name!r} is one; write it as a prior, or pass a belief of "
            f"your own."
        )
    if site["is_observed"]:
        raise InvalidStudy(f"site {name!r} has data that are not simulated; name it in observed=, with its keyword.")
    if kind == "MaskedDistribution" or site.get("scale") is not None:
        raise InvalidStudy(
            f"the prior of {name!r} is masked or scaled in the fit but not in its draws, which would then be found "
            f"wrong; write the prior that is meant."
        )


def _refuse_discrete(known: Mapping[str, Any], free: Sequence[str]) -> None:
    if wrong := [name for name in free if known[name]["fn"].support.is_discrete]:
        raise InvalidStudy(
            f"NUTS and guides cannot draw {wrong[0]!r}, which is discrete; pass a kernel= that can, such as "
            f"lambda model: DiscreteHMCGibbs(NUTS(model))."
        )
