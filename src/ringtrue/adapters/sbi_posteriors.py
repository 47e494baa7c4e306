"""A posterior of sbi as a study: its prior, its simulator, and draws of the posteriors of a batch of datasets.

A trained network is not fitted again: a study asks whether what it says of simulated data can be trusted. Torch is
imported by whoever has a posterior; arrays that leave this file are NumPy's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws
from ..errors import InvalidStudy
from ..execution.store.identity import described
from ..functions import LogDensity, default_family
from ..question.study import Adapted, at_least
from ..values import Floats, Generator, Identified, as_array
from .libraries import Prior, mark_of, need, seeded

#: Draws of the prior that set the centre and the scale of the default test functions.
_REFERENCE = 1000
#: Proposals that sbi makes at once for a batch of datasets, above which it complains.
_PROPOSALS = 100_000


def sbi(
    posterior: Any,
    prior: Any,
    simulator: Callable[[Any], Any],
    *,
    names: Iterable[str] | None = None,
    draws: int = 99,
    chains: int = 2,
    batch: int = 100,
    seed: int = 0,
    **options: Any,
) -> SBIStudy:
    """Turn a posterior of sbi into a study: are its posteriors right for data that the simulator makes?

    All entries of theta are asked about, their sum and a distance; of a posterior that is a density, the log density
    too, which sees what happens between entries. Draws of an ensemble are mixed for every dataset anew. Datasets with
    nan have no draws, and their replicates are lost.

    Parameters
    ----------
    posterior
        What ``inference.build_posterior()`` returns, of any kind. A variational posterior that was not trained for all
        data (``train_amortized``) is trained again for every dataset.
    prior
        That of the training: a distribution of torch, sbi's ``BoxUniform``, or a list of independent ones.
    simulator
        ``simulator(theta)`` as sbi takes it; its random numbers are those of torch, NumPy or Python, which are seeded.
    names
        What the entries of theta are called, which is then a dict of numbers; left out, theta is a vector.
    draws
        Of each posterior; of one that is sampled by Markov chains, of each chain.
    chains
        Markov chains for each dataset, where they are used: at least two, each the reference for the others.
    batch
        Datasets that are simulated and drawn for side by side.
    seed
        That of the study.
    **options
        Handed on to the posterior's ``sample``, ``sample_batched`` or ``train``.

    Returns
    -------
    SBIStudy
        For ``rt.check(sbi(posterior, prior, simulator), n=500)``, n a multiple of batch.

    Raises
    ------
    InvalidStudy
        If the posterior is none, or not trained, or the simulator does not take draws of the prior.
    """
    need("sbi", "sbi")
    _refuse(posterior)
    sampling = Sampling(at_least(1, "draws", draws), at_least(2, "chains", chains), dict(options))
    machine = Machine(posterior, prior, simulator, None if names is None else tuple(names), sampling)
    machine.need_fitting_parts()
    reference = machine.prior(_REFERENCE, np.random.default_rng(0))
    return SBIStudy(
        Prior(machine),
        machine.simulate,
        machine.fitted,
        f=[*default_family(reference), LogDensity()] if machine.has_density else None,
        seed=seed,
        batch=batch,
        machine=machine,
    )


@dataclass(frozen=True, eq=False)
class SBIStudy(Adapted):
    """A study whose belief, model and procedure are a prior, a simulator and a posterior of sbi."""

    machine: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True)
class Sampling:
    """How posteriors are drawn from."""

    draws: int
    chains: int
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Dense(Draws):
    """Draws of a batch of posteriors that know their density."""

    log_density: Any = None


class Machine(Identified):
    """A posterior, its prior and its simulator, for batches of parameters and datasets."""

    def __init__(
        self, posterior: Any, prior: Any, simulator: Any, names: tuple[str, ...] | None, sampling: Sampling
    ) -> None:
        self.posterior, self.given, self.source = posterior, prior, simulator
        self.names, self.sampling = names, sampling

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("posterior", "given", "source", "names", "sampling")}

    @cached_property
    def identity(self) -> str:
        """The weights of the networks, how they are sampled, the simulator's source, and what the prior draws."""
        law = [type(self._law).__name__, mark_of(as_array(self._drawn(16, np.random.default_rng(0))))]
        return f"{_text(self.posterior)} {law} {described(self.source)} {self.names} {self.sampling}"

    @property
    def has_density(self) -> bool:
        """Whether the density of all draws of a batch is to be had at once."""
        return hasattr(self.posterior, "log_prob_batched")

    # Prior and data.

    @cached_property
    def _law(self) -> Any:
        """The prior as sbi sees it."""
        from sbi.utils.user_input_checks import process_prior

        with seeded(np.random.default_rng(0)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Prior was provided as a sequence")
            return process_prior(self.given)[0]

    @cached_property
    def _simulator(self) -> Callable[[Any], Any]:
        """The simulator as sbi sees it: for one parameter or many, of arrays or of tensors."""
        from sbi.utils.user_input_checks import process_prior, process_simulator

        law = self._law
        with seeded(np.random.default_rng(0)):
            return process_simulator(self.source, law, process_prior(law)[2])  # type: ignore[no-any-return]

    def need_fitting_parts(self) -> None:
        """Refuse a prior that cannot be drawn from, or a simulator that does not take its draws."""
        try:
            theta = self.prior(2, np.random.default_rng(0))
        except InvalidStudy:
            raise
        except Exception as error:
            raise InvalidStudy(
                f"prior must be a distribution of torch, a BoxUniform, or a list of independent ones, but drawing from "
                f"{type(self.given).__name__} raised {type(error).__name__}: {error}."
            ) from error
        try:
            self.simulate(theta, np.random.default_rng(0))
        except Exception as error:
            raise InvalidStudy(
                f"simulator must take draws of the prior as a tensor, {self._array(theta).shape} for two, but raised "
                f"{type(error).__name__}: {error}."
            ) from error

    def _drawn(self, m: int, rng: Generator) -> Any:
        law = self._law  # sbi draws from it to see what it is, and must not do so from this stream
        with seeded(rng):
            return law.sample((m,))

    def prior(self, m: int, rng: Generator) -> Any:
        """Return m draws of the prior."""
        return self._unpacked(as_array(self._drawn(m, rng)))

    def simulate(self, theta: Any, rng: Generator) -> NDArray[Any]:
        """Return a dataset for each of a batch of truths."""
        simulator = self._simulator
        with seeded(rng):
            return as_array(simulator(_tensor(self._array(theta))))

    def _unpacked(self, array: NDArray[Any]) -> Any:
        """Return theta as users see it, of an array whose last axis has its entries."""
        if self.names is None:
            return array
        if len(self.names) != array.shape[-1]:
            raise InvalidStudy(f"names= must name the {array.shape[-1]} entries of theta, but {self.names} arrived.")
        return {name: array[..., i] for i, name in enumerate(self.names)}

    def _array(self, theta: Any) -> NDArray[Any]:
        return np.asarray(theta) if self.names is None else np.stack([theta[name] for name in self.names], axis=-1)

    # The posterior.

    def fitted(self, belief: Any, y: Any, rng: Generator) -> Draws:
        """Return draws of the posteriors of a batch of datasets."""
        import torch

        x = _tensor(y)
        whole = np.isfinite(np.asarray(y)).reshape(len(y), -1).all(axis=1)
        # Somebody else may have switched gradients off in this process, as BayesFlow does; sbi counts on them.
        with seeded(rng), torch.enable_grad(), warnings.catch_warnings():
            # How many chains there are in all is what a study is about.
            warnings.filterwarnings("ignore", message="Note that for batched sampling")
            found = _draw(self.posterior, x[_tensor(whole)], self.sampling, rng) if whole.any() else None
        if found is None:
            raise InvalidStudy(f"the simulator must return numbers, but all {len(y)} datasets of a batch have nan.")
        values = np.full((found.values.shape[0], len(y), found.values.shape[2]), np.nan, found.values.dtype)
        values[:, whole] = found.values
        weights = None if found.weights is None else np.ones(values.shape[:2])
        if weights is not None:
            weights[:, whole] = found.weights
        density = (lambda theta: self.log_density(theta, x)) if self.has_density and whole.all() else None
        return Dense(self._unpacked(values), found.iid, weights, found.chains, log_density=density)

    def log_density(self, theta: Any, x: Any) -> Floats:
        """Return the log density of parameters with axes (dataset,) or (draw, dataset) in front, up to a constant."""
        array = self._array(theta)
        with seeded(np.random.default_rng(0)):
            # Without the share of the network's draws that lies outside of the prior: it is the same for all draws.
            found = self.posterior.log_prob_batched(_tensor(array), x=x, norm_posterior=False)
        return np.asarray(as_array(found), float).reshape(array.shape[:-1])


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws x datasets x entries, what they are, and their weights."""

    values: NDArray[Any]
    iid: bool | None
    chains: int | None
    weights: NDArray[Any] | None = None


def _draw(posterior: Any, x: Any, sampling: Sampling, rng: Generator) -> Drawn:
    """Draw from the posteriors of datasets side by side, or one by one where sbi cannot otherwise."""
    if hasattr(posterior, "posteriors"):
        return _draw_mixed(posterior, x, sampling, rng)
    if hasattr(posterior, "warmup_steps"):
        return _draw_chains(posterior, x, sampling)
    if getattr(posterior, "_mode", "amortized") != "amortized":
        return _draw_trained(posterior, x, sampling)
    shape, quiet = (sampling.draws,), {"show_progress_bars": False, **sampling.options}
    try:
        most = {"max_sampling_batch_size": max(_PROPOSALS // len(x), 1)}
        drawn = posterior.sample_batched(shape, x=x, **({**most, **quiet} if hasattr(posterior, "prior") else quiet))
    except NotImplementedError:
        return _beside([posterior.sample(shape, x=one, **quiet) for one in x.split(1)])
    return Drawn(as_array(drawn), True, None)


def _draw_mixed(posterior: Any, x: Any, sampling: Sampling, rng: Generator) -> Drawn:
    """Draw from an ensemble: sbi draws equally many from a member for all datasets, which ties them to each other."""
    each = [_draw(one, x, sampling, rng) for one in posterior.posteriors]
    weights = as_array(posterior.weights).astype(float)
    chosen = rng.choice(len(each), size=each[0].values.shape[:2], p=weights / weights.sum())
    values = np.take_along_axis(np.stack([one.values for one in each]), chosen[None, :, :, None], axis=0)[0]
    return Drawn(values, each[0].iid, each[0].chains)


def _draw_chains(posterior: Any, x: Any, sampling: Sampling) -> Drawn:
    """Draw chain after chain."""
    quiet = {"show_progress_bars": False, **sampling.options}
    if quiet.get("method", posterior.method) == "slice_np_vectorized":
        shape = (sampling.draws * sampling.chains,)
        drawn = posterior.sample_batched(shape, x=x, num_chains=sampling.chains, **quiet)
        return Drawn(as_array(drawn), None, sampling.chains)
    rows = [
        np.concatenate(
            [
                as_array(posterior.sample((sampling.draws,), x=one, num_chains=1, **quiet))
                for _ in range(sampling.chains)
            ]
        )
        for one in x.split(1)
    ]
    return Drawn(np.stack(rows, axis=1), None, sampling.chains)


def _draw_trained(posterior: Any, x: Any, sampling: Sampling) -> Drawn:
    """Train a variational posterior for each dataset and draw from it."""

    def drawn() -> Iterator[Any]:
        for one in x.split(1):
            posterior.train(
                one,
                **{"retrain_from_scratch": True, "show_progress_bar": False, "quality_control": False}
                | dict(sampling.options),
            )
            yield posterior.sample((sampling.draws,), x=one)

    return _beside(list(drawn()))


def _beside(drawn: list[Any]) -> Drawn:
    """Put draws of one dataset each side by side; importance sampling returns logarithms of weights with them."""
    if not isinstance(drawn[0], tuple):
        return Drawn(np.stack([as_array(one) for one in drawn], axis=1), True, None)
    values, logs = (np.stack([as_array(part) for part in parts], axis=1) for parts in zip(*drawn, strict=True))
    return Drawn(values, None, None, np.exp(logs - logs.max(axis=0)).astype(float))


def _tensor(array: Any) -> Any:
    import torch

    found = torch.as_tensor(np.array(array))
    return found if found.dtype == torch.bool else found.to(torch.float32)


def _text(posterior: Any) -> str:
    """Return what a posterior is: its kind, settings and weights, but nothing of the data that it saw last."""
    held = {**vars(posterior), **vars(getattr(posterior, "potential_fn", posterior))}
    plain = {
        name: value
        for name, value in sorted(held.items())
        if name[0] != "_" and type(value) in (bool, int, float, str, type(None))
    }
    parts = [_text(one) for one in getattr(posterior, "posteriors", ())]
    networks = [f"{name} {_weights(part)}" for name, part in sorted(held.items()) if hasattr(part, "state_dict")]
    own = [described(held["potential_fn"])] if callable(held.get("potential_fn")) and not networks else []
    return f"{type(posterior).__name__} {plain} {networks} {own} {parts}"


def _weights(network: Any) -> str:
    marks = [f"{name} {mark_of(as_array(part))}" for name, part in sorted(network.state_dict().items())]
    return mark_of(np.frombuffer(f"{network!r} {marks}".encode(), np.uint8))


def _refuse(posterior: Any) -> None:
    """Refuse what is no posterior, or none that was trained."""
    kind = posterior.__name__ if isinstance(posterior, type) else type(posterior).__name__
    if isinstance(posterior, type) or not hasattr(posterior, "sample_batched"):
        raise InvalidStudy(
            f"posterior must be a fitted posterior of sbi, but {kind} arrived; train, and pass what build_posterior() "
            f"of the inference object returns."
        )
