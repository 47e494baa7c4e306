"""Values of parameters: what is put side by side is what NumPy stacks, by whichever way."""

from typing import Any

import numpy as np
import pytest

from ringtrue.values import stack_values

RNG = np.random.default_rng(0)
ALIKE: tuple[list[Any], ...] = (
    [np.float64(1.5), np.float64(-0.0)],
    [np.zeros(()), np.ones(())],
    [RNG.normal(size=(4, 3)) for _ in range(5)],
    [np.arange(6, dtype=np.float32), np.ones(6, np.float32)],
)
UNLIKE: tuple[list[Any], ...] = (
    [np.float64(1.5), 2],
    [1, 2.5, True],
    [np.float32(1.5), np.float64(1.5)],
    [np.zeros(2), np.zeros(2, np.float32)],
    [RNG.normal(size=(3, 4)).T, RNG.normal(size=(3, 4)).T],
    [np.zeros(4)[::2], np.ones(2)],
    [[1.0, 2.0], [3.0, 4.0]],
)


@pytest.mark.parametrize("values", [*ALIKE, *UNLIKE])
@pytest.mark.parametrize("axis", [0, 1])
def test_stacks_are_those_of_numpy(values: list[Any], axis: int) -> None:
    """Numbers, their type and their layout, on which sums depend in the last bit, are those of np.stack."""
    if axis > np.ndim(values[0]):
        return
    found, expected = stack_values(values, axis), np.stack([np.asarray(one) for one in values], axis)
    assert np.array_equal(found, expected)
    assert (found.dtype, found.strides) == (expected.dtype, expected.strides)


def test_shapes_that_differ_are_refused() -> None:
    """Arrays that do not lie side by side are no stack of objects."""
    with pytest.raises(ValueError, match="same shape"):
        stack_values([np.zeros(2), np.zeros(3)])
