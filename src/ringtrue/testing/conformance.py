"""A conformance kit for procedures, and stochastic assertions with stated error rates.

For authors of procedures and for test suites. Nothing in the package imports it but the front door.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Batch, Draws, Law
from ..errors import InvalidStudy, Miscalibrated, RingtrueError
from ..functions import SEVERAL, Context
from ..question.study import Study
from ..replicates.block import Block, fitting, law_of
from ..replicates.chains import effective_size, split
from ..replicates.preflight import preflight
from ..replicates.reducers import reduce
from ..replicates.simulate import Raised, simulate, singles
from ..statistics import planning, twosample, uniformity
from ..streams import Streams
from ..values import Floats, stack_values, take

T = TypeVar("T")

#: Default chance that an assertion fails although what it asserts is true.
FALSE_ALARM = 1e-6
#: Chance of missing an error of the size that an assertion states it would see.
MISS = 1e-3


class NonConforming(RingtrueError, AssertionError):
    """A procedure does not keep its side of the contract."""


@dataclass(frozen=True)
class Conformance:
    """What was checked of a procedure, in order."""

    procedure: str
    checks: tuple[str, ...]


def check_procedure(
    procedure: Any, *, belief: Any, model: Any, f: Any = None, batched: Any = None, seed: int = 0, size: int = 16
) -> Conformance:
    """Check that a procedure keeps its side of the contract; raise NonConforming if not.

    Checked: it runs, twice with the same answer; its shapes fit theta; the exact laws it declares agree with its own
    draws; and, given a batched form, that a batch of outputs is what its members are one by one. Not checked: whether
    it is calibrated.

    Parameters
    ----------
    procedure, belief, model
        As in :class:`~ringtrue.Study`, one dataset at a time.
    f
        Test functions; the default family if left out.
    batched
        The (model, procedure) pair that takes batches, if there is one; often the same two functions again.
    seed, size
        Seed, and number of replicates to look at.

    Notes
    -----
    Comparisons of laws with draws, and of batches with their members, have a false-alarm rate below 1e-5 in all.
    """
    study = Study(belief, model, procedure, f=f, seed=seed)
    what = "reproducible, finite and of fitting shape"
    _conforms(what, lambda: preflight(study))
    block = _conforms(what, lambda: _reduced(study, size))
    checks = ["reproducible", "shapes", *_truthful(study, block, seed)]
    if batched is not None:
        checks += _batched_equals_scalar(study, block, *batched)
    return Conformance(repr(procedure), tuple(checks))


def _reduced(study: Study, size: int) -> Block:
    """Simulate and reduce every replicate, alone and together; a position that is nan does not conform."""
    each = [simulate(study, i) for i in range(size)]
    for i, one in enumerate(each):
        if np.isnan(reduce(one)["u"]).any():
            raise InvalidStudy(f"the output of replicate {i} must give finite numbers, but it is nan or infinite.")
    index, thetas, ys, outputs = zip(
        *((i, take(one.theta, 0), one.y[0], one.outputs.members[0]) for i, one in enumerate(each)), strict=True
    )
    return singles(study, Streams(study.seed), index, thetas, ys, outputs)


def _conforms(what: str, act: Callable[[], T]) -> T:
    try:
        return act()
    except Raised as raised:
        raise NonConforming(
            f"expected a procedure that is {what}, but its {raised.stage} raised {raised.error!r}."
        ) from raised.error
    except InvalidStudy as error:
        raise NonConforming(f"expected a procedure that is {what}: {error}") from error


def _truthful(study: Study, block: Block, seed: int) -> list[str]:
    """Check the declared exact laws against the declared draws: u of own draws must be uniform."""
    output = block.outputs.whole
    if output.sample is None:
        return ["no sample declared"]
    draws = fitting(output.sample(200, np.random.default_rng(seed)), block.theta)
    laws = [(f, law) for f in study.functions if (law := law_of(output, f)) is not None]
    for f, law in laws:
        u = np.asarray(law.cdf(f.evaluate(draws, Context(2))))
        if law.atoms:  # spread atoms, or a discrete law would never look uniform
            left = np.asarray(law.cdf_left(f.evaluate(draws, Context(2))))
            u = left + np.random.default_rng(seed).random(u.shape) * (u - left)
        # The ECDF test sees any difference between two laws, wherever it is; rounding may leave u beyond 0 or 1.
        p = uniformity.ecdf_gamma(np.clip(u, 0, 1).ravel()).pvalue
        if p < FALSE_ALARM / len(laws):
            raise NonConforming(
                f"the exact law of {f.name!r} that {type(output).__name__} declares must be that of its own draws, but "
                f"it is not (p = {p:.1e}); declare marginal(f) = None for what is not exact."
            )
    return [f"exact law of {f.name!r} agrees with draws" for f, _ in laws] or ["draws only"]


def _batched_equals_scalar(study: Study, block: Block, model: Any, procedure: Any) -> list[str]:
    """Compare the outputs of one batch with those of its members, on the data of the scalar run."""
    y = np.stack([np.asarray(one) for one in block.y])
    whole = Study(study.belief, model, procedure, f=study.functions, seed=study.seed, batch=block.b)
    _conforms("able to take batches", lambda: preflight(whole))
    output, alone = whole.learn(y, lambda: Streams(study.seed).generator("procedure")), block.outputs.whole
    _truthful(whole, Block(whole, block.streams, block.index, block.theta, y, output), study.seed)
    for f in study.functions:
        one_by_one, at_once = law_of(alone, f), law_of(output, f)
        if (one_by_one is None) != (at_once is None):
            raise NonConforming(f"the batched output must know the law of {f.name!r} exactly when the scalar one does.")
        if one_by_one is not None and at_once is not None:
            _same_laws(f.name, one_by_one, at_once, f.evaluate(block.theta, SEVERAL))
    if alone.sample is not None and output.sample is not None:
        _same_draws(study, block, output)
    return ["batched equals scalar"]


def _same_laws(name: str, one_by_one: Law, at_once: Law, truth: Floats) -> None:
    a, b = np.asarray(one_by_one.cdf(truth)), np.asarray(at_once.cdf(truth))
    if a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-12):
        raise NonConforming(
            f"a batch of outputs must be its members side by side, but the law of {name!r} differs by "
            f"{np.max(np.abs(a - b)) if a.shape == b.shape else 'its shape'}."
        )


def _same_draws(study: Study, block: Block, output: Any) -> None:
    """Compare draws of each member with draws of its place in the batch."""
    rng, members = np.random.default_rng(study.seed), block.outputs.whole
    alone, together = (fitting(_draws(one, rng), block.theta) for one in (members, output))
    strong = [f for f in study.functions if f.sees == "theta"]
    for f in strong:
        x, y = (_independent(one, f.evaluate(d, Context(2))) for one, d in ((members, alone), (output, together)))
        p = min(twosample.ks(x[:, i], y[:, i]).pvalue for i in range(block.b))
        if p < FALSE_ALARM / (block.b * len(strong)):
            raise NonConforming(
                f"a batch of outputs must be its members side by side, but the draws of {f.name!r} have another law "
                f"(p = {p:.1e})."
            )


def _independent(output: Any, values: Floats) -> Floats:
    """Keep values of Markov chains that are far apart: at twice the time that a draw of theirs is worth."""
    members = output.outputs if isinstance(output, Batch) else [output]
    chains = any(isinstance(one, Draws) and one.chains for one in members)
    if not chains:
        return values
    # Two draws one such time apart still have correlation e^-2. The step is odd, or it would pick the same phase of a
    # chain that swings.
    worth = np.nan_to_num(effective_size(split(np.ascontiguousarray(values.T)[:, None])), nan=1.0)
    return values[:: 2 * math.ceil(len(values) / max(float(worth.min()), 1.0)) + 1]


def _draws(output: Any, rng: np.random.Generator) -> Any:
    """Return the draws an output has, or some."""
    if isinstance(output, Draws):
        return output.values
    if isinstance(output, Batch) and all(isinstance(one, Draws) for one in output.outputs):
        return stack_values([one.values for one in output.outputs], axis=1)
    return output.sample(200, rng)


def assert_uniform(u: ArrayLike, *, draws: int | None = None, false_alarm: float = FALSE_ALARM) -> None:
    """Raise Miscalibrated unless u (or ranks among ``draws`` draws) may well be uniform.

    The chance of raising for uniform u is at most ``false_alarm``. The message states the smallest error of spread and
    bias that would be missed at most once in 1000 times with as many values.

    Examples
    --------
    >>> assert_uniform((np.arange(100) + 0.5) / 100)
    """
    values = np.asarray(u)
    found = uniformity.combination(values, draws=draws)
    if found.pvalue <= false_alarm:
        raise Miscalibrated(
            f"u must be uniform, but p = {found.pvalue:.2e} <= {false_alarm:g}; "
            f"{sensitivity(len(values), draws=draws)}."
        )


def assert_same_law(x: ArrayLike, y: ArrayLike, *, false_alarm: float = FALSE_ALARM) -> None:
    """Raise Miscalibrated unless two independent samples of real numbers may well have the same law.

    The chance of raising for equal laws is at most ``false_alarm``. Blind to differences smaller than about
    ``sqrt(log(2 / false_alarm) (1/n + 1/m) / 2)`` in Kolmogorov distance.

    Examples
    --------
    >>> assert_same_law(np.arange(50.0), np.arange(50.0) + 0.5)
    """
    found = twosample.ks(x, y)
    if found.pvalue <= false_alarm:
        raise Miscalibrated(
            f"two samples must have the same law, but p = {found.pvalue:.2e} <= {false_alarm:g} (Kolmogorov distance "
            f"{found.statistic:.3g})."
        )


def sensitivity(n: int, *, draws: int | None = None, false_alarm: float = FALSE_ALARM, miss: float = MISS) -> str:
    """Say what :func:`assert_uniform` with n values would see, missing it at most with chance ``miss``.

    Examples
    --------
    >>> "spread" in sensitivity(1000)
    True
    """
    seen = planning.detectable(n, draws=draws, alpha=false_alarm, power=1 - miss, of="test")
    return (
        f"n = {n} sees a spread factor above {seen.over_confident:.3g} or below {seen.under_confident:.3g} and a bias "
        f"beyond {seen.bias:.3g} sd, missing it once in {1 / miss:.0f} times"
    )


__all__ = [
    "FALSE_ALARM",
    "MISS",
    "Conformance",
    "NonConforming",
    "assert_same_law",
    "assert_uniform",
    "check_procedure",
    "sensitivity",
]
