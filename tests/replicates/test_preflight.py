"""Test functions are tried at draws of the belief before anything is run; what is computed first is kept."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import ringtrue as rt
from ringtrue.errors import InvalidStudy, ReplicateFailed
from ringtrue.replicates.simulate import compute
from tests.builders import BELIEF, noisy, posterior, refusal, says


def run(f: Any, **settings: Any) -> rt.Replicates:
    """Run the study of one number for these test functions."""
    return rt.run(rt.Study(BELIEF, noisy, posterior, f=f, **settings), n=6, progress="off")


@pytest.mark.parametrize("batch", [None, 3])
def test_a_function_that_never_varies_is_refused_and_a_rare_event_is_not(batch: int | None) -> None:
    """Eight equal values are not enough to refuse: an event of probability 1/20 is seen among a thousand."""
    says(refusal(lambda: run({"flat": lambda theta: 0 * theta + 2.0}, batch=batch)), "'flat' must vary", "it is 2 at")
    rare = {"rare": lambda theta: 1.0 * (theta > 1.645), "theta": rt.identity}
    assert run(rare, batch=batch).n == 6


def test_a_function_of_the_data_is_tried_at_one_parameter_at_a_time() -> None:
    """Beside one dataset there is one parameter: a function of single numbers works."""
    assert run({"distance": lambda theta, y: math.hypot(float(theta), float(y)), "theta": rt.identity}).n == 6
    says(refusal(lambda: run({"flat": lambda theta, y: 3.0})), "'flat' must vary")


# What the pre-flight costs: nothing that is computed twice counts.


def _batched(batch: int, rows: list[int], **settings: Any) -> rt.Study:
    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal(size=theta.shape)

    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        rows.append(len(y))
        return rng.normal(y / 2, 0.5**0.5, size=(9, len(y)))

    return rt.Study(rt.Normal(0, 1), model, procedure, batch=batch, **settings)


@pytest.mark.parametrize("workers", [None, pytest.param(1, marks=pytest.mark.process)])
def test_the_first_replicate_is_computed_once_more_and_no_other(workers: int | None, tmp_path: Path) -> None:
    """A fit that takes ten minutes costs ten more, whoever computes it."""

    def procedure(mu0: Any, y: float) -> Any:
        with (tmp_path / "calls").open("a") as calls:
            calls.write(f"{y}\n")
        return rt.Normal(y / 2, 0.5**0.5)

    study = rt.Study(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), procedure)
    rt.run(study, n=20, workers=workers, progress=False)
    calls = (tmp_path / "calls").read_text().split()
    assert len(calls) == 21
    assert len(set(calls)) == 20


def test_a_small_part_of_the_first_batch_is_computed_again() -> None:
    """Of 200 fits 16 are done for nothing, where it were 400."""
    rows: list[int] = []
    rt.run(_batched(100, rows), n=200, progress=False)
    assert rows == [100, 8, 8, 100]


def test_datasets_of_one_truth_stay_together_in_the_small_part() -> None:
    """Eight is no multiple of three."""
    rows: list[int] = []
    rt.run(_batched(99, rows, datasets=3), n=99, progress=False)
    assert rows == [99, 9, 9]


def test_a_procedure_that_takes_batches_of_one_size_is_run_twice_on_the_first() -> None:
    """And one that is not reproducible is found out that way too."""
    study = _batched(100, [])

    def sized(mu0: Any, y: Any, rng: Any) -> Any:
        assert len(y) == 100
        return study.procedure(mu0, y, rng)

    rt.run(replace(study, procedure=sized), n=100, progress=False)
    own = np.random.default_rng()
    with pytest.raises(InvalidStudy, match="the output moved"):
        rt.run(replace(study, procedure=lambda mu0, y: sized(mu0, y, own)), n=100, progress=False)


def test_a_batch_that_is_not_reproducible_is_refused_by_its_small_part() -> None:
    """A generator of one's own moves between two runs of eight replicates, in the procedure and in the model."""
    study, own = _batched(100, []), np.random.default_rng()
    with pytest.raises(InvalidStudy, match="the output moved"):
        rt.run(replace(study, procedure=lambda mu0, y: study.procedure(mu0, y, own)), n=100, progress=False)
    with pytest.raises(InvalidStudy, match="the data moved"):
        rt.run(replace(study, model=lambda theta: theta + own.normal(size=theta.shape)), n=100, progress=False)


def test_models_that_draw_theta_and_data_together_are_repeated_in_a_small_part() -> None:
    """Simulating may be what takes long."""
    asked: list[int] = []

    def simulate(batch: int, rng: Any) -> Any:
        asked.append(batch)
        theta = rng.normal(size=batch)
        return theta, theta + rng.normal(size=batch)

    study = rt.Study.from_joint(simulate, _batched(100, []).procedure, batch=100, f=["theta"])
    asked.clear()
    rt.run(study, n=100, progress=False)
    assert asked.count(100) <= 3, "a batch, fresh values of the belief, and rivals of the truth"
    assert 8 in asked


@pytest.mark.parametrize(("first", "n"), [(0, 150), (2, 150)])
def test_what_the_preflight_computed_is_what_the_run_would_have(first: int, n: int) -> None:
    """Also if batches failed before it, and the last reaches beyond n."""
    study, calls = _batched(40, []), [0]

    def failing(mu0: Any, y: Any, rng: Any) -> Any:
        calls[0] += 1
        if calls[0] <= first:
            raise ArithmeticError
        return study.procedure(mu0, y, rng)

    found = rt.run(replace(study, procedure=failing), n=n, on_failure="record", progress=False)
    np.testing.assert_array_equal(found.u, compute(study, 0, n).record.u)
    assert found.n == n
    assert not found.failures


def test_a_failure_in_the_first_batch_stops_a_run_that_is_to_stop() -> None:
    """As a failure in any other does."""
    study = _batched(40, [])

    def holed(mu0: Any, y: Any, rng: Any) -> Any:
        draws = study.procedure(mu0, y, rng)
        draws[:, 5] = np.nan
        return draws

    with pytest.raises(ReplicateFailed, match="replicate 5"):
        rt.run(replace(study, procedure=holed), n=40, progress=False)


def test_a_belief_that_is_called_once_per_draw_is_not_called_thousands_of_times() -> None:
    """It was called 3258 times for 50 replicates."""
    calls = []

    def belief(rng: Any) -> Any:
        calls.append(1)
        return rng.normal(size=2)

    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal(size=2)

    rt.check(belief, model, lambda mu0, y, rng: rng.normal(y / 2, 0.5**0.5, size=(9, 2)), n=50, progress=False)
    assert len(calls) < 500


def test_a_study_travels_without_the_draws_of_its_belief() -> None:
    """A thousand draws of a long vector are larger than most studies."""
    study = rt.Study(rt.Normal(np.zeros(1000), 1.0), _model, _procedure)
    assert len(study._reference) == 1000
    assert len(cloudpickle.dumps(study)) < 1_000_000


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=np.shape(theta))


def _procedure(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, 0.5**0.5)
