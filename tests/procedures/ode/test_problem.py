"""Initial value problems, one or many, are what their vector fields say; failures stay with their problem."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ringtrue.errors import InvalidStudy, ReplicateFailed
from ringtrue.procedures import ode
from ringtrue.procedures.ode.problem import Flow, InitialValueProblem, need_solution, stacked

Floats = NDArray[np.float64]


def pair(t: Any, x: Any, a: Any, b: Any) -> Any:
    """Return a field of two components with parameters and time."""
    return [a * x[1] + t, b * x[0] * x[1]]


BATCH = InitialValueProblem(pair, [1.0, 2.0], (0.0, 1.0), parameters=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_sizes() -> None:
    """A problem is single if neither its initial value nor its parameters are many."""
    single = InitialValueProblem(pair, [1.0, 2.0], (0.0, 1.0), parameters=[1.0, 2.0])
    assert (single.size, single.dimension) == (None, 2)
    assert (len(BATCH), BATCH.dimension) == (3, 2)
    assert replace(single, initial=np.ones((4, 2))).size == 4
    with pytest.raises(TypeError, match="no length"):
        len(single)
    with pytest.raises(TypeError, match="cannot be indexed"):
        single[0]


def test_indexing_picks_what_is_many() -> None:
    """Parts of a batch keep what is common; one problem is single."""
    assert BATCH[1].size is None
    assert np.array_equal(BATCH[1].parameters, [3.0, 4.0])  # type: ignore[arg-type]
    assert np.array_equal(BATCH[1].initial, [1.0, 2.0])
    assert BATCH[1:].size == 2
    assert BATCH[np.array([2, 0])].size == 2
    moved = replace(BATCH, initial=np.arange(6.0).reshape(3, 2), parameters=[1.0, 2.0])
    assert np.array_equal(moved[2].initial, [4.0, 5.0])
    assert np.array_equal(moved[2].parameters, [1.0, 2.0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": 1.0}, "initial must be finite"),
        ({"initial": [np.nan, 1.0]}, "initial must be finite"),
        ({"initial": np.zeros((0, 2))}, "initial must be finite"),
        ({"span": (1.0, 1.0)}, "a start and a later end"),
        ({"span": (0.0, np.inf)}, "a start and a later end"),
        ({"parameters": 3.0}, "parameters must have shape"),
        ({"initial": np.ones((2, 2))}, "one batch"),
    ],
)
def test_bad_problems_are_refused(change: dict[str, Any], message: str) -> None:
    """Each refusal says what was expected."""
    with pytest.raises(InvalidStudy, match=message):
        replace(BATCH, **change)


def test_times_outside_the_span_are_refused() -> None:
    """Times in the span come back as an array; others, and nan, do not."""
    assert BATCH.need_inside([0.0, 1.0]).tolist() == [0.0, 1.0]
    for t in (-0.1, 1.1, np.nan, [0.5, 2.0]):
        with pytest.raises(InvalidStudy, match="must lie in the span"):
            BATCH.need_inside(t)


def test_flow_calls_the_field_for_all_problems_at_once() -> None:
    """With and without particles between, for all problems or some, the derivatives are the field's one by one."""
    flow = Flow(BATCH)
    assert flow.shape == (2, 3)
    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    found = flow(0.5, x)
    for i, (a, b) in enumerate(np.asarray(BATCH.parameters)):
        assert found[:, :, i] == pytest.approx(np.array(pair(0.5, x[:, :, i], a, b)))
    assert np.array_equal(flow(0.5, x[..., [2, 0]], np.array([2, 0])), found[..., [2, 0]])
    own = flow(np.array([0.1, 0.2, 0.3]), x[:, 0])
    assert own[0] == pytest.approx(found[0, 0] + np.array([0.1, 0.2, 0.3]) - 0.5)
    assert not flow.lost


@pytest.mark.parametrize("belief", [ode.lotka_volterra(), ode.logistic_growth(), ode.fitzhugh_nagumo(), ode.lorenz()])
@pytest.mark.parametrize("particles", [(), (5,), (2, 3)])
def test_central_differences_are_the_jacobian(belief: ode.SolutionBelief, particles: tuple[int, ...]) -> None:
    """Without a Jacobian central differences serve, to nine digits; with particles between or without."""
    problem = belief.sample(4, np.random.default_rng(0)).problem
    x = 1 + np.random.default_rng(1).random((problem.dimension, *particles, 4))
    given, without = Flow(problem), Flow(replace(problem, jacobian=None))
    expected = given.jacobian(0.0, x)
    assert expected.shape == (problem.dimension, *x.shape)
    assert without.jacobian(0.0, x) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert not given.lost


def test_entries_may_be_numbers_or_parameters() -> None:
    """What does not depend on the state is spread over problems and particles."""
    constant = InitialValueProblem(lambda t, x, a: [a, 1.0], [0.0, 0.0], (0.0, 1.0), parameters=[[1.0], [2.0]])
    assert Flow(constant)(0.0, np.zeros((2, 3, 2)))[:, 1].tolist() == [[1.0, 2.0], [1.0, 1.0]]
    for field in (lambda t, x, a: np.stack([a, a]), lambda t, x, a: np.array([3.0, 4.0]), lambda t, x, a: [3, 4]):
        assert Flow(replace(constant, field=field))(0.0, np.zeros((2, 3, 2))).shape == (2, 3, 2)
    slopes = [[0.0, 1.0], [np.arange(2.0), np.ones((3, 2))]]
    assert stacked(slopes, (3, 2), 2)[1, 0].tolist() == [[0.0, 1.0]] * 3


@pytest.mark.parametrize(
    "field", [lambda t, x: x[:1], lambda t, x: np.concatenate([x, x]), lambda t, x: [x[0]], lambda t, x: x[0]]
)
def test_wrong_shapes_are_refused(field: Any) -> None:
    """A field with too many or too few components is a mistake of the study, not of a problem."""
    problem = InitialValueProblem(field, np.ones((4, 2)), (0.0, 1.0))
    for x in (np.ones((2, 4)), np.ones((2, 3, 4))):
        with pytest.raises(InvalidStudy, match="components come first"):
            Flow(problem)(0.0, x)


def test_fields_that_raise_spoil_their_own_problem() -> None:
    """The derivatives of that problem are nan, the others as ever; the first reason stays."""

    def field(t: Any, x: Any, a: Any) -> Any:
        if np.any(a > 1):
            raise ZeroDivisionError("a is large")
        return a * x

    flow = Flow(InitialValueProblem(field, [1.0], (0.0, 1.0), parameters=[[0.5], [2.0], [1.0]]))
    found = flow(np.array([0.0, 0.1, 0.2]), np.ones((1, 4, 3)))
    assert np.isnan(found[..., 1]).all()
    assert found[0, 0, [0, 2]].tolist() == [0.5, 1.0]
    flow.lose([0, 1], "diverged")
    assert flow.lost == {0: "diverged", 1: "the vector field raised ZeroDivisionError: a is large"}
    assert np.isnan(flow(0.0, np.ones((1, 1)), np.array([1]))).all()


def test_jacobians_that_raise_say_so() -> None:
    """The reason names the Jacobian."""

    def jacobian(t: Any, x: Any, a: Any, b: Any) -> Any:
        raise RuntimeError("no slopes")

    flow = Flow(replace(BATCH, jacobian=jacobian))
    assert flow.jacobian(0.0, np.ones((2, 3))).shape == (2, 2, 3)
    assert flow.lost[2] == "the Jacobian raised RuntimeError: no slopes"


def test_lost_single_problems_raise() -> None:
    """A batch keeps its reasons; a single problem without a solution has failed."""
    need_solution(BATCH, {0: "diverged"}, "EK1")
    need_solution(BATCH[0], {}, "EK1")
    with pytest.raises(ReplicateFailed, match="EK1: diverged"):
        need_solution(BATCH[0], {0: "diverged"}, "EK1")
