"""Which share of a run a job of an array is, from what batch schedulers say in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidStudy

Shard = tuple[int, int]

#: By scheduler: the variables of a job's number, the first and the last of its array, and the step between them.
_SCHEDULERS = {
    "Slurm": ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"),
    "Grid Engine": ("SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"),
}
#: Of arrays that are lists, Slurm says how many jobs there are.
_COUNT = "SLURM_ARRAY_TASK_COUNT"
#: Those of which only a job's number is known.
_NUMBERS = ("PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX")


def as_shard(value: Any) -> Shard | None:
    """Return (i, k): the i-th of k shares, counted from 0; "array" stands for the place of this job in its array.

    Examples
    --------
    >>> as_shard((0, 4))
    (0, 4)
    """
    if value is None:
        return None
    if value == "array":
        return from_environment(os.environ)
    whole = isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, int) for part in value)
    if not whole or not 0 <= value[0] < value[1]:
        raise InvalidStudy(f"shard must be (i, k) with 0 <= i < k, or 'array', but {value!r} arrived.")
    i, k = value
    return i, k


def from_environment(variables: Mapping[str, str]) -> Shard:
    """Return which share a job of an array is, and of how many.

    Parameters
    ----------
    variables
        Of the environment. Slurm and Grid Engine say what the whole array is; other schedulers do not, and neither
        they nor an array with gaps tell how many shares there are.

    Examples
    --------
    >>> names = ("ID", "MIN", "MAX", "STEP", "COUNT")
    >>> slurm = dict(zip((f"SLURM_ARRAY_TASK_{name}" for name in names), ("7", "1", "16", "3", "6")))
    >>> from_environment(slurm)
    (2, 6)
    """
    for scheduler, names in _SCHEDULERS.items():
        if variables.get(names[0], "undefined") != "undefined":  # Grid Engine says so outside of arrays
            return _place(scheduler, names, variables)
    alone = next((name for name in _NUMBERS if variables.get(name, "0") != "0"), None)  # LSF's are 0 outside of arrays
    if alone is not None:
        raise InvalidStudy(
            f"shard='array' must find out how many jobs there are, but beside {alone} nothing says so; pass both, as "
            f"in --shard ${alone}/16, or shard=(i, 16), with i counted from 0."
        )
    raise InvalidStudy(
        "shard='array' is for a job of an array, but no variable such as SLURM_ARRAY_TASK_ID is set here; submit it "
        "with sbatch --array=0-15, or pass shard=(i, k)."
    )


def _place(scheduler: str, names: tuple[str, ...], variables: Mapping[str, str]) -> Shard:
    try:
        number, first, last = (int(variables[name]) for name in names[:3])
        step = int(variables.get(names[3], 1))
        count = (last - first) // step + 1
        i, rest = divmod(number - first, step)
        even = rest == 0 and 0 <= i < count == int(variables.get(_COUNT, count))
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise InvalidStudy(
            f"shard='array' reads whole numbers from {', '.join(names)}, which {scheduler} sets, but one is missing or "
            f"is none ({error!r}); pass shard=(i, k)."
        ) from None
    if not even:
        raise InvalidStudy(
            f"shard='array' needs an array of jobs at equal steps, such as 0-15, but {names[0]} is {number} in one "
            f"from {first} to {last} with gaps; submit the whole array again, where jobs that are done end at once, or "
            f"pass shard=(i, k) as it was before."
        )
    return i, count
