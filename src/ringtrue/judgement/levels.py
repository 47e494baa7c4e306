"""The evidence, level by level: which test is run on which numbers, and how many become one.

Reads Replicates, writes test rows and one global p-value per level. It knows nothing of verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidStudy
from ..functions.contract import BestOf, Level
from ..replicates.record import Replicates
from ..replicates.streams import Streams
from ..statistics import combining as pvalues
from ..statistics import twosample, uniformity
from .result import TestRow

Floats = NDArray[np.float64]

#: Points per sample of the joint weak test; its cost grows with the square.
_JOINT = 1000
#: Split of the error budget between the exact joint p-value, which cannot go below 1/1000, and Bonferroni.
_JOINT_SHARE = 0.9


@dataclass(frozen=True)
class LevelEvidence:
    """The tests of one level and their global p-value."""

    level: Level
    rows: tuple[TestRow, ...]
    pvalue: float


def evidence(replicates: Replicates, *, test: str) -> tuple[list[LevelEvidence], list[str]]:
    """Return the evidence of every level that the replicates can speak about, and notes on what could not be tested.

    Parameters
    ----------
    replicates
        What happened.
    test
        A name in ``ringtrue.statistics.uniformity.TESTS``.
    """
    found: list[LevelEvidence] = []
    levels: tuple[Level, ...] = ("strong", "auto", "exact")
    for level in levels:
        columns = [k for k, column in enumerate(replicates.columns) if column.level == level]
        if columns:
            found.append(_of_positions(replicates, level, columns, test))
    weak, notes = _weak(replicates, test)
    return [*found, *weak], notes


def _of_positions(replicates: Replicates, level: Level, columns: list[int], test: str) -> LevelEvidence:
    if replicates.selection is not None and level == "strong":
        return _selected(replicates, columns, test, replicates.selection)
    rows = [_row(replicates, level, k, test) for k in columns]
    combined = pvalues.bonferroni([row.pvalue for row in rows])
    adjusted = pvalues.holm([row.pvalue for row in rows])
    if level == "strong" and replicates.members is not None and not replicates.failures:
        joint = pvalues.label_randomised(replicates.members, rng=_rng(replicates, 0))
        weights = [_JOINT_SHARE, 1 - _JOINT_SHARE]
        combined = pvalues.weighted_minimum([joint.pvalue, combined], weights)
        adjusted = np.minimum(1.0, np.minimum(joint.adjusted / weights[0], adjusted / weights[1]))
    rows = [replace(row, adjusted=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    return LevelEvidence(level, tuple(rows), float(combined))


def _row(replicates: Replicates, level: Level, k: int, test: str, rows: Any = None) -> TestRow:
    """Test one column, on all kept replicates or on the given ones."""
    kept = replicates.rows if rows is None else rows
    draws = replicates.lattice(k)
    if draws is not None:
        values, z = replicates.rank[kept, k], None
    else:  # no test asks which z belongs to which u
        values = replicates.ordered(k) if rows is None else replicates.u[kept, k]
        z = replicates.z[kept, k]
    found = _uniformity(values, z, draws=draws, test=test, lost=len(replicates.failures))
    return _test_row(level, replicates.columns[k].name, found, replicates.route(k), values.size)


def _uniformity(
    values: NDArray[Any], z: Floats | None, *, draws: int | None, test: str, lost: int
) -> uniformity.UniformityTest:
    """Run a uniformity test; if replicates are lost, one whose p-value holds whatever they would have been."""
    if lost:
        worst = uniformity.ecdf_gamma(values, draws=draws, lost=lost)
        return replace(worst, method=f"{worst.method}, worst case of {lost} lost")
    chosen = uniformity.TESTS[test]
    if z is not None and test in ("combination", "cook", "mean_z"):
        return chosen(values, z=z)
    return chosen(values, draws=draws)


def _selected(replicates: Replicates, columns: list[int], test: str, selection: BestOf) -> LevelEvidence:
    """Choose a test function on some replicates and test it on the others."""
    if replicates.failures:
        raise InvalidStudy("BestOf cannot be judged with lost replicates: repair them, or test the whole family.")
    kept = np.flatnonzero(replicates.kept)
    rng = _rng(replicates, 1)
    orders = [kept] if selection.splits == 1 else [rng.permutation(kept) for _ in range(selection.splits)]
    rows = [_one_split(replicates, columns, test, order, selection.share) for order in orders]
    if len(rows) == 1:
        return LevelEvidence("strong", (rows[0],), rows[0].pvalue)
    combined = pvalues.prefix_two_median([row.pvalue for row in rows])
    often = max({row.f for row in rows}, key=[row.f for row in rows].count)
    row = next(row for row in rows if row.f == often)
    row = replace(row, method=f"{row.method}, {len(rows)} splits", pvalue=combined, adjusted=combined)
    return LevelEvidence("strong", (row,), combined)


def _one_split(replicates: Replicates, columns: list[int], test: str, order: Any, share: float) -> TestRow:
    cut = round(share * len(order))
    if not 0 < cut < len(order):
        raise InvalidStudy(
            f"BestOf needs replicates on both sides of its split, but {len(order)} at share {share} came."
        )
    chosen = min(columns, key=lambda k: _row(replicates, "strong", k, test, order[:cut]).pvalue)
    row = _row(replicates, "strong", chosen, test, order[cut:])
    return replace(row, method=f"{row.method}, best of {len(columns)} on the other {cut}")


def _weak(replicates: Replicates, test: str) -> tuple[list[LevelEvidence], list[str]]:
    """Test whether one draw of every output, averaged over data, follows mu0."""
    kept, lost = replicates.rows, len(replicates.failures)
    n = replicates.n - lost
    rows: list[TestRow] = []
    notes: list[str] = []
    for k, column in enumerate(replicates.columns):
        if column.level != "strong" or np.isnan(replicates.weak_value[kept, k]).any():
            continue
        if not np.isnan(replicates.weak_u[kept, k]).any():
            u, z = replicates.weak_ordered(k), replicates.weak_z[kept, k]
            found = _uniformity(u, z, draws=None, test=test, lost=lost)
            rows.append(_test_row("weak", column.name, found, "exact law of mu0", n))
        elif len(replicates.reference) > 1 and not lost:
            both = twosample.ks(replicates.weak_value[kept, k], replicates.reference[:, k])
            rows.append(_test_row("weak", column.name, both, "fresh draws of mu0", n))
        elif lost and len(replicates.reference):
            notes.append(
                f"weak level of {column.name!r} not tested: replicates were lost and mu0 has no exact law of it."
            )
    rows += _weak_joint(replicates) if not lost else []
    if not rows:
        return [], notes
    adjusted = pvalues.holm([row.pvalue for row in rows])
    combined = pvalues.bonferroni([row.pvalue for row in rows])
    finished = tuple(replace(row, adjusted=float(p)) for row, p in zip(rows, adjusted, strict=True))
    return [LevelEvidence("weak", finished, float(combined))], notes


def _test_row(level: Level, name: str, found: Any, route: str, n: int) -> TestRow:
    return TestRow(level, name, found.method, found.statistic, found.pvalue, found.pvalue, route, n)


def _weak_joint(replicates: Replicates) -> list[TestRow]:
    """Compare all coordinates at once with fresh draws of mu0."""
    columns = [k for k, column in enumerate(replicates.columns) if column.coordinate]
    if len(columns) < 2 or len(replicates.reference) < 2 or replicates.n < 2:
        return []
    x = replicates.weak_value[:_JOINT, columns]
    y = replicates.reference[:_JOINT, columns]
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return []
    # The scale is a function of the pooled sample, so the permutation test stays exact.
    both = np.concatenate([x, y])
    both = both / np.maximum(np.abs(both).max(axis=0), np.finfo(float).tiny)  # squares must not overflow
    both = both / np.maximum(both.std(axis=0), np.finfo(float).tiny)
    found = twosample.mmd(both[: len(x)], both[len(x) :], rng=_rng(replicates, 2))
    return [_test_row("weak", "all coordinates", found, "fresh draws of mu0", len(x))]


def _rng(replicates: Replicates, purpose: int) -> np.random.Generator:
    return Streams(replicates.seed).generator("judgement", (1 << 32) + purpose)


def levels_of(found: Sequence[LevelEvidence]) -> dict[Level, float]:
    """Return the global p-values by level."""
    return {item.level: item.pvalue for item in found}
