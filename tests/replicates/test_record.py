"""What happened: parts of a run are runs of their own."""

import numpy as np
import pytest

import ringtrue as rt


def _model(theta: float, rng: np.random.Generator) -> float:
    if theta > 1:
        raise ValueError("too large")
    return theta + rng.normal()


def _run(n: int = 60) -> rt.Replicates:
    study = rt.Study(rt.Normal(0, 1), _model, lambda mu0, y, rng: y / 2 + 0.7 * rng.normal(size=19))
    return rt.run(study, n=n, on_failure="record", failures_allowed=1)


@pytest.mark.parametrize("rows", [slice(10, 40), np.arange(0, 60, 3)], ids=["slice", "numbers"])
def test_a_part_has_its_rows_and_their_failures(rows: slice | np.ndarray) -> None:
    """Every array is cut, failures keep their cause and get their new number, and the rest is as it was."""
    whole = _run()
    part = whole.pick(rows)
    numbers = np.arange(60)[rows]
    assert 0 < len(part.failures) < len(whole.failures)
    assert [numbers[one.replicate] for one in part.failures] == [
        one.replicate for one in whole.failures if one.replicate in numbers
    ]
    np.testing.assert_array_equal(part.kept, whole.kept[rows])
    for name in ("u", "rank", "truth", "crps", "members", "energy"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], err_msg=name)
    np.testing.assert_array_equal(part.reference, whole.reference)
    assert rt.judge(part).replicates.n == numbers.size


def test_the_first_replicates_are_those_of_a_smaller_study() -> None:
    """The beginning of a run is judged like a run that was asked for no more."""
    assert rt.judge(_run().part(0, 25)).pvalue == rt.judge(_run(25)).pvalue
