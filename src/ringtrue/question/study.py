"""The question: a belief, a model, a procedure, and what is asked of them.

A :class:`Study` coerces what a user hands over, once, and refuses what is ill-posed. It runs nothing and judges
nothing; how long it is asked is a matter of running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol, TypedDict

import numpy as np

from ..callables import called, with_optional
from ..distributions import Distribution, as_distribution
from ..distributions.frozen import Sampler
from ..errors import InvalidStudy
from ..functions import BestOf, Reference, TestFunction, as_testfunctions, default_family, unasked
from ..streams import Streams
from ..values import Generator, copied, stack_values, take
from .family import NOTE, FamilyModel, FamilyProcedure
from .models import contaminated
from .observed import Both, Observed

#: Draws of the belief that set the centre and the scale of the default test functions.
_REFERENCE = 1000
#: As many of a belief that is called once per draw, which may take its time.
_FEW = 100


class Question(Protocol):
    """What the reducing of replicates needs to know: a study has it, and so have arrays of draws."""

    def __hash__(self) -> int:
        """What is worked out once for a question is found by it."""

    @property
    def draws(self) -> int:
        """How many draws to take where there is no exact law."""

    @property
    def seed(self) -> int:
        """The seed of all streams."""

    @property
    def batch(self) -> int | None:
        """Replicates per block, None for one."""

    @property
    def mu0(self) -> Any:
        """The belief as a distribution, or None if it is not known."""

    @property
    def functions(self) -> tuple[TestFunction, ...]:
        """The test functions."""

    @property
    def selection(self) -> BestOf | None:
        """How to choose among them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result must know about it."""

    @property
    def of_belief(self) -> bool:
        """Whether the truths are draws of the belief."""

    @property
    def of_output(self) -> bool:
        """Whether the truths are draws of the procedure's own output for observed data."""

    @property
    def datasets(self) -> int:
        """How many replicates in a row have one truth."""

    @property
    def reproducible(self) -> bool:
        """Whether a replicate can be computed again."""

    @property
    def truths_known(self) -> Any:
        """All truths, if they exist already; None if they are drawn as they are needed."""

    @property
    def summary(self) -> Any:
        """What is to be known of every dataset; None if it is chosen here."""


@dataclass(frozen=True, eq=False)
class Study:
    """Is this procedure calibrated to this belief and this model?

    Parameters
    ----------
    belief
        mu0: a distribution, a frozen scipy distribution, a dict of named ones, or a function of rng.
    model
        P: ``P(theta)`` or ``P(theta, rng)``, returns a dataset.
    procedure
        mu: ``mu(belief, y)`` or ``mu(belief, y, rng)``, returns a distribution: an array of draws (draws on axis 0),
        a frozen scipy distribution, an ArviZ or xarray posterior, or one of ringtrue's.
    f
        Test functions: a function, a name of theta's, a {name: either} mapping, a list of these, or a
        :class:`~ringtrue.BestOf`. Left out: the coordinates, their sum and a distance.
    draws
        How many draws to take from an output that has no exact law for a test function but can be sampled.
    seed
        Every random number of the study is a function of it.
    batch
        Left out, model and procedure get one dataset at a time. A number declares that both take that many at
        once: theta and y with the replicate on axis 0, a batch of outputs back.
    truth
        The law that theta is drawn from, if it is not the belief: what happens to a procedure whose belief is wrong.
        Even the exact posterior is then not calibrated, and the weak level is not tested.
    datasets
        How many datasets to simulate from every theta: so many replicates in a row have the same truth, and n counts
        replicates. They are not independent; tests and intervals allow for it, see :func:`~ringtrue.judge`.
    reproducible
        False for a procedure that cannot be seeded: a program, a GPU, a threaded sampler. Its replicates cannot be
        replayed, and a store knows the study by its source and its tag alone.
    summary
        What to look at in the data: ``summary(y)`` returns a number, several, or a dict of them; or a {name: function}
        mapping. Whether outputs are right whatever these are is a line of its own, at the exact level. Left out: the
        entries of data of at most six numbers, and mean, sd and change (second half less first) of longer ones.
    prepare
        A function without arguments that is called once in every process that computes replicates, before the first
        of them: to compile a model, or to load what is too large to be sent. Without workers, once per run.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> study = Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1))
    >>> [f.name for f in study.functions]
    ['theta', 'distance']
    """

    belief: Any
    model: Any
    procedure: Any
    f: Any = field(default=None, kw_only=True)
    draws: int = field(default=99, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    batch: int | None = field(default=None, kw_only=True)
    truth: Any = field(default=None, kw_only=True)
    datasets: int = field(default=1, kw_only=True)
    reproducible: bool = field(default=True, kw_only=True)
    summary: Any = field(default=None, kw_only=True)
    prepare: Callable[[], object] | None = field(default=None, kw_only=True)
    observed: Observed | None = field(default=None, kw_only=True, repr=False)
    mu0: Any = field(init=False)

    def __post_init__(self) -> None:
        for name in ("draws", "datasets") + (("batch",) if self.batch is not None else ()):
            object.__setattr__(self, name, at_least(1, name, getattr(self, name)))
        object.__setattr__(self, "seed", at_least(0, "seed", self.seed))
        object.__setattr__(self, "reproducible", _yes_or_no("reproducible", self.reproducible))
        if self.joint and self.truth is not None:
            raise InvalidStudy("truths come from simulate here; leave out truth=.")
        if self.observed is not None and self.truth is not None:
            raise InvalidStudy("truths are draws of the procedure's output for y_obs here; leave out truth=.")
        self._need_whole_groups()
        need_summary(self.summary)
        if self.prepare is not None and not callable(self.prepare):
            raise InvalidStudy(
                f"prepare must be a function without arguments, but {type(self.prepare).__name__} arrived; pass the "
                f"function itself, without calling it."
            )
        if isinstance(self.f, Iterator):  # which can be looked at once only
            object.__setattr__(self, "f", tuple(self.f))
        object.__setattr__(self, "_belief", _sampled(self.belief, "the belief"))
        # What was known before new data is the output for y_obs, whose law nobody else knows.
        object.__setattr__(self, "mu0", None if self.observed else self._belief)  # type: ignore[attr-defined]
        truth = self._belief if self.truth is None else _sampled(self.truth, "the truth's law")  # type: ignore[attr-defined]
        object.__setattr__(self, "_truth", truth)
        # One coin for a whole batch would make all of its datasets outliers, or none.
        if self.batch is not None and isinstance(self.model, contaminated):
            raise InvalidStudy("a contaminated model tosses one coin per call and cannot be batched; leave out batch=.")
        object.__setattr__(self, "_model", None if self.joint else called(self.model, ("theta",), "the model"))
        object.__setattr__(self, "_procedure", called(self.procedure, ("belief", "y"), "the procedure"))
        _ = self.functions

    def _need_whole_groups(self) -> None:
        """Refuse several datasets per theta where a theta cannot have them."""
        if self.joint and self.datasets > 1:
            raise InvalidStudy(
                f"simulate draws one dataset with every theta, but datasets={self.datasets} arrived; pass a belief and "
                f"a model of theta instead."
            )
        if self.batch is not None and self.batch % self.datasets:
            raise InvalidStudy(
                f"batch must be a multiple of datasets, so that no theta is in two batches, but batch={self.batch} and "
                f"datasets={self.datasets} arrived; pass batch={-(-self.batch // self.datasets) * self.datasets}."
            )

    @classmethod
    def from_joint(cls, simulate: Any, procedure: Any, **settings: Any) -> Study:
        """Ask about a model that draws theta and y together.

        Parameters
        ----------
        simulate
            ``simulate(rng)`` returns (theta, y); with ``batch``, ``simulate(batch, rng)`` returns that many of both,
            the replicate on axis 0.
        procedure
            As in :class:`Study`; the belief that it is handed is something to draw theta from.
        **settings
            The others of :class:`Study`.

        Examples
        --------
        >>> from ringtrue import Normal
        >>> def simulate(rng):
        ...     theta = rng.normal()
        ...     return theta, theta + rng.normal()
        >>> Study.from_joint(simulate, lambda mu0, y: Normal(y / 2, 0.5**0.5)).functions[0].name
        'theta'
        """
        if not callable(simulate):
            raise InvalidStudy(f"simulate must be a function of rng, but {type(simulate).__name__} arrived.")
        need_known("Study.from_joint", settings, StudySettings.__optional_keys__)
        return cls(Joint(simulate, settings.get("batch")), simulate, procedure, **settings)

    @classmethod
    def from_family(cls, family: Any, model: Any, procedure: Any, **settings: Any) -> Study:
        """Ask about beliefs that are drawn at random: every replicate has one of its own.

        What is found holds on average over the family; the result says so. For one statement over a few beliefs, each
        of which must be right, see :func:`~ringtrue.check_beliefs`.

        Parameters
        ----------
        family
            A function of rng that returns a belief, in any of the forms that a study takes.
        model, procedure
            As in :class:`Study`; the procedure is handed the belief of its replicate.
        **settings
            The others of :class:`Study`, but for ``batch``. A test function that sees the data is handed an object with
            ``.belief`` and ``.data``.

        Examples
        --------
        >>> from ringtrue import Normal
        >>> def bayes(mu0, y):
        ...     weight = mu0.sd**2 / (mu0.sd**2 + 1)
        ...     return Normal(weight * y, weight**0.5)
        >>> def family(rng):
        ...     return Normal(0, rng.uniform(1, 3))
        >>> Study.from_family(family, lambda theta, rng: theta + rng.normal(), bayes).functions[0].name
        'theta'
        """
        need_known("Study.from_family", settings, StudySettings.__optional_keys__)
        if settings.get("batch") is not None:
            raise InvalidStudy("beliefs of a family are drawn one by one and cannot be batched; leave out batch=.")
        drawn = FamilyModel(family, model)
        _ = drawn._calls  # what cannot be called is refused now
        return cls(Joint(drawn, note=NOTE), drawn, FamilyProcedure(procedure), **settings)

    @cached_property
    def functions(self) -> tuple[TestFunction, ...]:
        """The test functions asked about."""
        if self.f is None or _needs_belief(self.f):
            reference = self._reference
            return as_testfunctions(default_family(reference) if self.f is None else self.f, reference)
        return as_testfunctions(self.f)

    @property
    def selection(self) -> BestOf | None:
        """How to choose among the test functions, if the study asks for a choice."""
        return self.f if isinstance(self.f, BestOf) else None

    @property
    def of_belief(self) -> bool:
        """Whether the truths are draws of the belief."""
        return self.truth is None

    @property
    def of_output(self) -> bool:
        """Whether the truths are draws of the procedure's own output for observed data."""
        return self.observed is not None

    @property
    def truths_known(self) -> None:
        """No truths exist before they are drawn."""
        return

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result must know."""
        # The default family leaves nothing out; one draw tells which entries a parameter has.
        drawn = (self.joint.note,) if self.joint and self.joint.note else ()
        return drawn if self.f is None else (*drawn, *unasked(self.functions, self.reference(1)))

    @property
    def joint(self) -> Joint | None:
        """What draws theta and y together, if one thing does."""
        return self.belief if isinstance(self.belief, Joint) else None

    @property
    def draws_noise(self) -> bool:
        """Whether the model takes a random stream."""
        return bool(self._model is not None and self._model[1])  # type: ignore[attr-defined]

    def truths(self, m: int, rng: Generator) -> Any:
        """Draw m true parameters."""
        return self._truth.sample(m, rng)  # type: ignore[attr-defined]

    def reference(self, m: int) -> Any:
        """Return m draws of the belief that no replicate has seen; the same ones again, if they were drawn before."""
        known = self.__dict__.get("_reference")
        return self._fresh(m) if known is None or m > self._enough else take(known, slice(0, m))

    @property
    def _enough(self) -> int:
        """How many draws of the belief set the centre and the scale of test functions."""
        one_by_one = isinstance(self.mu0, Sampler) or (self.joint is not None and self.joint.batch is None)
        return _FEW if one_by_one else _REFERENCE

    @cached_property
    def _reference(self) -> Any:
        return self._fresh(self._enough)

    def __getstate__(self) -> dict[str, Any]:
        """Leave drawn beliefs behind: who needs them draws them again."""
        return {name: part for name, part in self.__dict__.items() if name != "_reference"}

    def _fresh(self, m: int) -> Any:
        try:
            return self._belief.sample(m, Streams(self.seed).generator("reference"))  # type: ignore[attr-defined]
        except InvalidStudy:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}".rstrip(".")
            raise InvalidStudy(
                f"the belief must give draws of one shape, but drawing from it raised {cause}."
            ) from error

    @property
    def repeats_itself(self) -> bool:
        """Whether it is known already that the same replicate gives the same answer twice."""
        return False

    def make_ready(self) -> None:
        """Call what prepares a process for replicates, if there is something."""
        if self.prepare is None:
            return
        try:
            self.prepare()
        except (Exception, SystemExit) as error:
            raise InvalidStudy(
                f"prepare must get a process ready for replicates, but it raised {type(error).__name__}: {error}."
            ) from error

    def simulate(self, theta: Any, rng: Callable[[], Generator]) -> Any:
        """Draw a dataset; the stream is made for a model that takes one."""
        call, random = self._model  # type: ignore[attr-defined]
        return call(theta, rng() if random else None)

    def learn(self, y: Any, rng: Callable[[], Generator]) -> Any:
        """Run the procedure, on the belief as the user handed it over, and return its output as a distribution."""
        call, random = self._procedure  # type: ignore[attr-defined]
        return as_distribution(call(self.belief, y, rng() if random else None), what="the procedure's output")

    def learn_observed(self, rng: Generator) -> Any:
        """Run the procedure on the observed data alone, as often as there are datasets in a batch."""
        assert self.observed is not None
        output = self.observed.learn(self.belief, self.batch, rng)
        return as_distribution(output, what="the procedure's output for y_obs")

    def given(self, y_obs: Any, *, both: Callable[[Any, Any], Any] | None = None) -> Study:
        """Ask about data like those that are there: posterior simulation-based calibration.

        Truths are draws of the procedure's own output for ``y_obs``, new data are simulated from them, and the
        procedure is fitted to the observed and the new data together. If it is right, the truth falls where this
        second output says, whatever ``y_obs`` is: so the question is about parameters that are plausible now, and not
        about all that the belief allows.

        Truths are never used twice. Those of a Markov chain are three autocorrelation times apart, and the procedure
        is run on ``y_obs`` as many times as it takes; of weighted draws, each run gives one.

        Parameters
        ----------
        y_obs
            One dataset, of the kind that the model returns.
        both
            ``both(y_obs, y)`` returns the two datasets as one, for the procedure; with ``batch``, both have the
            replicate on axis 0. Studies of adapters that can put data into a model twice need none.

        Returns
        -------
        Study
            To be run as any other.

        Notes
        -----
        What it cannot see: since truths come from the procedure, what is tested is that it agrees with itself. A wrong
        prior, and whatever is wrong in the same way with and without new data, passes; the weak level is left out,
        because it would compare the procedure with its own draws. What theta has of single observations, such as
        random effects, is shared by the observed and the new data.

        A procedure that takes its own outputs for beliefs needs none of this:
        ``Study(procedure(belief, y_obs), model, procedure)`` asks the same in two steps.

        Examples
        --------
        >>> from ringtrue import Normal
        >>> def bayes(mu0, y):
        ...     return Normal(y.sum() / (len(y) + 1), (len(y) + 1) ** -0.5)
        >>> study = Study(Normal(0, 1), lambda theta, rng: theta + rng.normal(size=3), bayes)
        >>> data = np.array([1.5, 2.0, 0.5])
        >>> study.given(data, both=lambda y_obs, y: np.concatenate([y_obs, y])).of_output
        True
        """
        self._need_updatable()
        fitted = self._fitted_twice(y_obs) if both is None else Both(self.procedure, y_obs, both, self.batch)
        if fitted is None:
            raise InvalidStudy(
                "the procedure must be fitted to y_obs and to new data together, but how was not said; pass "
                "both=lambda y_obs, y: ..., which returns the two as one dataset, such as np.concatenate([y_obs, y])."
            )
        # What scales the default test functions must not depend on the truths.
        f = self.functions if self.f is None else self.f
        return replace(self, f=f, procedure=fitted, observed=Observed(y_obs, self.procedure))

    def _fitted_twice(self, y_obs: Any) -> Any:
        """Return a procedure that is fitted to observed and new data; None if it is not known how."""
        return None

    def _need_updatable(self) -> None:
        """Refuse studies that have no truths to put the output's in the place of."""
        if self.joint:
            raise InvalidStudy(
                "posterior SBC needs a model that takes the theta that a fit to y_obs drew, but this study draws theta "
                "and y together; pass a Study(belief, model, procedure)."
            )
        if self.truth is not None or self.observed is not None:
            already = "truth= says where truths come from" if self.observed is None else "there are observed data"
            raise InvalidStudy(f"truths are to be draws given y_obs, but {already} already; start from a plain Study.")


@dataclass(frozen=True, eq=False)
class Adapted(Study):
    """A study made from a model of another library; whoever runs it may put in parts of their own."""

    parts_put_in: bool = field(default=False, kw_only=True, repr=False)

    @property
    def repeats_itself(self) -> bool:
        """Adapters take all seeds from the study; of others' parts it is not known."""
        return not self.parts_put_in


def as_study(question: Any, model: Any = None, procedure: Any = None, **settings: Any) -> Study:
    """Turn a study, or a belief, a model and a procedure, into a study; settings are those that the user gave.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> as_study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1), seed=3).seed
    3
    """
    if isinstance(question, Adapted):
        parts = {name: part for name, part in (("model", model), ("procedure", procedure)) if part is not None}
        if question.joint and "model" in parts:
            raise InvalidStudy(
                "this study draws theta and y together, so that a model of theta has no place in it, but model= came; "
                "give the adapter another simulator."
            )
        put_in = question.parts_put_in or bool(parts)
        return replace(question, **parts, **settings, parts_put_in=put_in) if parts or settings else question
    if isinstance(question, Study):
        if model is not None or procedure is not None or settings:
            extra = [
                *(name for name, part in (("model", model), ("procedure", procedure)) if part is not None),
                *settings,
            ]
            raise InvalidStudy(
                f"a Study says all there is to ask, but {', '.join(extra)} came too; put it into the Study."
            )
        return question
    if model is None or procedure is None:
        raise InvalidStudy(
            f"a Study, or a belief, a model and a procedure are needed, but {type(question).__name__} came without "
            f"{'a model' if model is None else 'a procedure'}; models of PyMC, NumPyro, Stan and others become a Study "
            f"by a function of ringtrue.adapters, such as adapters.pymc(model)."
        )
    return Study(question, model, procedure, **settings)


def _sampled(value: Any, what: str) -> Any:
    """Return a distribution that can be drawn from."""
    found = as_distribution(value, what=what, role="belief")
    if found.sample is None:
        raise InvalidStudy(f"{what} must be something to draw from, but {type(value).__name__} cannot.")
    return found


def _needs_belief(f: Any) -> bool:
    """Whether it takes draws of the belief to know what is asked about: names, or reference points of its own."""
    family = f.family if isinstance(f, BestOf) else f
    parts = family.values() if isinstance(family, Mapping) else family
    plural = isinstance(parts, Iterable) and not isinstance(parts, (str, TestFunction))
    return any(isinstance(g, (str, Reference)) for g in (parts if plural else [parts]))


@dataclass(frozen=True, eq=False)
class Joint(Distribution):
    """A belief and a model in one: what draws theta and y together, and what a reader must know of it."""

    simulate: Any
    batch: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        _ = self._call  # a signature that cannot be called is refused now

    @cached_property
    def _call(self) -> Callable[..., Any]:
        """Simulate as a function of rng, or of batch and rng, whatever it calls them."""
        arguments = ("rng",) if self.batch is None else ("batch", "rng")
        try:
            call, random = with_optional(self.simulate, len(arguments) - 1, "rng", what="simulate")
        except InvalidStudy:
            random = False
        if not random:
            said = ", ".join(arguments)
            raise InvalidStudy(
                f"simulate must be a function of ({said}){' with batch=' if self.batch else ''}, but {self.simulate!r} "
                f"takes other arguments; pass lambda {said}: ..."
            )
        return call

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m true parameters on axis 0; their data are not used."""
        return self.pairs(m, rng)[0]

    def pairs(self, m: int, rng: Generator) -> tuple[Any, Any]:
        """Return m true parameters on axis 0, and their datasets."""
        if self.batch is not None:
            return self._both(self._call(m, rng))
        thetas, ys = zip(*(self._both(self._call(rng)) for _ in range(m)), strict=True)
        return stack_values(thetas), ys

    def _both(self, value: Any) -> tuple[Any, Any]:
        # A list of two, or an array with two rows, is more likely a dataset than a pair.
        if not isinstance(value, tuple) or len(value) != 2:
            many = f" of {len(value)}" if isinstance(value, tuple) else ""
            raise InvalidStudy(f"simulate must return theta and y, but a {type(value).__name__}{many} arrived.")
        theta, y = value
        return copied(theta), copied(y)  # simulators use their buffers again


def need_known(call: str, given: Iterable[str], known: Iterable[str], elsewhere: Iterable[str] = ()) -> None:
    """Refuse keywords that a call does not take; of those that belong elsewhere somebody else will say so."""
    names = {*known}
    unknown = [name for name in given if name not in names | {*elsewhere}]
    if unknown:
        raise TypeError(f"{call} takes no keyword {unknown[0]!r}; those that it takes are {', '.join(sorted(names))}.")


def need_summary(summary: Any) -> None:
    """Refuse what says nothing of a dataset."""
    each = summary.values() if isinstance(summary, Mapping) else [summary]
    if summary is not None and not (each and all(map(callable, each))):
        raise InvalidStudy(
            f"summary must be a function of y, or a dict of named ones, but {type(summary).__name__} arrived; pass "
            f"summary=lambda y: ..."
        )


def at_least(least: int, name: str, value: Any) -> int:
    """Return a whole number of at least ``least``, or say what arrived instead."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidStudy(f"{name} must be a whole number of at least {least}, but {value!r} arrived.")
    return int(value)


def _yes_or_no(name: str, value: Any) -> bool:
    """Return a bool, or say what arrived instead: a 0 or a None may mean either."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidStudy(f"{name} must be True or False, but {value!r} arrived.")
    return bool(value)


class StudySettings(TypedDict, total=False):
    """The settings of a study, for those who pass them on."""

    f: Any
    draws: int
    seed: int
    batch: int | None
    truth: Any
    datasets: int
    reproducible: bool
    summary: Any
    prepare: Callable[[], object] | None
