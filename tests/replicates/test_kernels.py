"""Chains from the truth: replicates that depend on their number alone, exact constructions, and clear refusals."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.replicates.kernels import FRESH, KernelTrial, Moved
from ringtrue.values import Generator
from tests.builders import BELIEF, noisy, refusal, says


def moved(kernel: Any, n: int, *, belief: Any = BELIEF, model: Any = noisy, length: int = 0, **settings: Any) -> Moved:
    """Return what a kernel does in two rounds of three steps."""
    asking: dict[str, Any] = {name: settings.pop(name) for name in ("steps", "rounds") if name in settings}
    study = rt.Study(belief, model, lambda mu0, y: y, **settings)
    return KernelTrial(study, kernel, length=length, **({"steps": 3, "rounds": 2} | asking)).run(n)


def walk(theta: Any, y: Any, rng: Generator) -> Any:
    """Return a step of a random walk."""
    return theta + rng.normal(size=np.shape(theta))


def test_a_replicate_depends_on_its_number_alone() -> None:
    """The first five of nine are those of five; another seed gives others."""
    few, many = moved(walk, 5, length=4), moved(walk, 9, length=4)
    for name in ("before", "after", "renewed", "fresh", "ranks"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:5])
    assert (moved(walk, 5, seed=1).before != few.before).all()


def test_a_truth_is_that_of_a_study() -> None:
    """With the same seed it is that of the replicates of a run."""
    ran = rt.run(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 1), n=4, f=rt.identity, progress="off")
    np.testing.assert_array_equal(moved(walk, 4, f=rt.identity).before, ran.truth)


def test_steps_and_rounds_are_counted() -> None:
    """A kernel that adds 1 has added all steps of a round, and of all rounds; data are drawn anew after the last."""
    seen = []

    def kernel(theta: float, y: float) -> float:
        seen.append(y)
        return theta + 1

    model = _numbered()
    found = moved(kernel, 1, model=model, f={"theta": lambda t: t, "y": lambda t, y: y}, steps=3, rounds=4)
    assert found.after[0, 0] - found.before[0, 0] == pytest.approx(3)
    assert found.renewed[0, 0] - found.before[0, 0] == pytest.approx(12)
    assert found.after[0, 1] == found.before[0, 1] == 0
    assert found.renewed[0, 1] == 4
    assert seen == [0.0] * 3 + [1.0] * 3 + [2.0] * 3 + [3.0] * 3
    assert found.fresh.shape == (1, FRESH, 2)


def _numbered() -> Any:
    """Return a model whose data are the number of the call."""
    calls = iter(range(100))
    return lambda theta: float(next(calls))


def test_a_batch_gets_arrays_and_is_always_whole() -> None:
    """Five replicates of batches of four are the first five of eight."""

    def kernel(theta: Any, y: Any, rng: Generator) -> Any:
        assert theta.shape == y.shape == (4, 2)
        theta += rng.normal(size=theta.shape)  # in place
        return theta

    belief = rt.Gaussian([0.0, 0.0], np.eye(2))
    five, eight = (moved(kernel, n, belief=belief, batch=4, length=5) for n in (5, 8))
    assert five.before.shape == (5, 4)
    np.testing.assert_array_equal(five.renewed, eight.renewed[:5])
    np.testing.assert_array_equal(five.ranks, eight.ranks[:5])  # type: ignore[index]
    assert five.unchanged == 0.0


def test_what_does_not_move_is_unchanged() -> None:
    """The identity leaves everything where it was, also if it rounds; all ranks are then a matter of ties."""
    for kernel in (lambda t, y: t, lambda t, y: np.float32(t), lambda t, y: np.exp(np.log(np.abs(t))) * np.sign(t)):
        found = moved(kernel, 30, length=4, f=rt.identity)
        assert found.unchanged == 1.0
        np.testing.assert_array_equal(found.after, found.before)
        assert found.ranks is not None
        assert set(found.ranks[:, 0]) == {0, 1, 2, 3, 4}


def test_ranks_are_counted_in_a_chain_both_ways() -> None:
    """A kernel that adds 1 makes the truth the smallest, whatever its place."""
    found = moved(lambda t, y: t + 1, 20, length=6, f=rt.identity)
    assert found.ranks is not None
    assert (found.ranks == 0).all()
    both = moved(lambda t, y: t + 1, 20, length=6, f=rt.identity, batch=5, model=lambda t, rng: noisy(t, rng))
    assert both.ranks is not None
    assert (both.ranks == 0).all()


def test_named_parameters_keep_their_names() -> None:
    """A dict goes in and must come out, with its parts in any order."""
    belief = {"a": rt.Normal(0, 1), "b": rt.Normal(np.zeros(2), np.ones(2))}
    found = moved(
        lambda t, y: {"b": t["b"] + 1, "a": t["a"]}, 4, belief=belief, model=lambda t, rng: t["a"] + rng.normal()
    )
    assert found.names == ("a", "b[0]", "b[1]", "sum", "distance")
    np.testing.assert_allclose((found.after - found.before)[:, :3], [[0, 3, 3]] * 4)


BAD: dict[str, tuple[Any, ...]] = {
    "None": (lambda t, y: None, "returned None", "return statement"),
    "shape": (lambda t, y: np.zeros(3), r"shape \(\), as theta has", r"\(3,\) arrived"),
    "nan": (lambda t, y: np.nan, "finite numbers"),
    "text": (lambda t, y: "no", "numbers of shape", "str arrived"),
    "error": (lambda t, y: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_kernel_returns_is_looked_at(case: str) -> None:
    """The replicate and the step are named, and what was expected and arrived."""
    kernel, *patterns = BAD[case]
    message = refusal(lambda: moved(kernel, 3), rt.errors.ReplicateFailed)
    says(message, "^replicate 0 failed in the kernel, at step 1: ", *patterns)


def test_the_replicate_and_the_step_are_named() -> None:
    """The third call of the second replicate is step 3 of replicate 1; of a batch, all of it is named."""
    calls = iter(range(100))
    message = refusal(lambda: moved(lambda t, y: np.nan if next(calls) == 8 else t, 3), rt.errors.ReplicateFailed)
    says(message, "replicate 1 failed in the kernel, at step 3")
    message = refusal(lambda: moved(lambda t, y: t[:1], 8, batch=4), rt.errors.ReplicateFailed)
    says(message, "the batch of replicates 0 to 3 failed", r"shape \(4,\)", r"\(1,\) arrived")


def test_other_functions_that_fail_are_named_too() -> None:
    """The model, and a test function that is not finite where the kernel goes."""
    message = refusal(lambda: moved(walk, 3, model=lambda t: None), rt.errors.ReplicateFailed)
    says(message, "replicate 0 failed in the model", "returned None")
    message = refusal(
        lambda: moved(lambda t, y: -np.abs(t), 9, f={"root": lambda t: np.nan if t < 0 else t}),
        rt.errors.ReplicateFailed,
    )
    says(message, "failed in the test function", "'root' is not", "support")
    says(refusal(lambda: moved(walk, 3, f=rt.LogDensity())), "no output")
    says(
        refusal(lambda: moved(lambda t, y: 3, 3, belief={"a": BELIEF}, model=lambda t: 1.0), rt.errors.ReplicateFailed),
        r"a dict of \['a'\]",
        "int arrived",
    )
