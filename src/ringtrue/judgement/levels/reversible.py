"""Reversible: theta and a draw of the output can be exchanged. It has a line of its own in a result.

Strong calibration implies it, so that who fails it is not calibrated. It sees one draw of each output and so less than
the strong tests see of the functions asked about, but it looks at several entries together; the verdict's error budget
is not cut for it.
"""

from __future__ import annotations

import numpy as np

from ...replicates.record import SAME_DRAW, Header, Replicates
from ...statistics import combining, swaps
from .. import groups
from ..column import Column, strong_columns
from . import ADDED, Evidence, Level, TestRow, labels


class Reversible(Level):
    """Exchangeable truth and draw."""

    name, order, implied = "reversible", 3, 3
    null = "theta and a draw of the output can be exchanged"
    untested = (
        "whether truth and output can be exchanged: that needs truths from the belief, outputs that can be sampled, "
        "and no lost replicates"
    )

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Swap truth and draw at random, in all entries of theta at once."""
        alone, columns = _columns(replicates)
        if not columns:
            return None
        if alone.lost:
            return Evidence(self.name, (), 1.0, ("reversible level not tested: replicates were lost.",))
        found = _swapped(columns)
        p, route = found.pvalue, "one draw of each output"
        row = TestRow(self.name, "truth and draw", "sign flips", found.statistic, p, p, route, alone.n, "joint")
        return Evidence(self.name, (row,), p, _notes(len(columns)))

    def lacks(self, header: Header) -> str | None:
        """Return what a run lacks; of truths that do not follow the belief it could not have been tested."""
        return self.untested if header.of_belief else None


#: f at the truths and at one draw of each output.
_PAIR = ("truth", "weak_value")


def _columns(replicates: Replicates) -> tuple[Replicates, list[Column]]:
    """Return independent replicates, and of them the entries of theta, or if there are none the user's functions."""
    alone = groups.one_of_each(replicates)
    # Truths of another law than the belief cannot be exchanged with draws of the exact posterior either.
    if not alone.header.of_belief or SAME_DRAW not in alone.arrays:
        return alone, []
    known = [one for one in strong_columns(alone) if not any(np.isnan(one.array(name)).any() for name in _PAIR)]
    return alone, [one for one in known if one.kind == "coordinate"] or [one for one in known if one.kind not in ADDED]


def _swapped(columns: list[Column]) -> swaps.SwapTest:
    truth, drawn = (np.stack([column.array(name) for column in columns]).T for name in _PAIR)
    # The signs are the same for every seed, as labels are.
    return combining.in_stages(lambda many: swaps.swap_test(truth, drawn, rng=labels(), flips=many))


def _notes(many: int) -> tuple[str, ...]:
    pairs = sum(one.form == "crossed" for one in swaps.features_of(many, labels()))
    if 2 * pairs == many * (many - 1):
        return ()
    some = f"the first {swaps.ENTRIES} of {many}" if many > swaps.ENTRIES else f"all {many}"
    return (f"reversible level: {some} entries were looked at, and {pairs} pairs of them, chosen at random.",)


def difference(replicates: Replicates) -> str:
    """Say in what truths and draws differ most."""
    _, columns = _columns(replicates)
    found = _swapped(columns)
    a, b = columns[found.largest.a].name, columns[found.largest.b].name
    side = "larger" if found.total > 0 else "smaller"
    return {
        "value": f"{a} is {side} in draws",
        "square": f"{a} lies {'further out' if found.total > 0 else 'nearer to the middle'} in draws",
        "product": f"the product of {a} and {b} is {side} in draws",
        "crossed": f"{a} of the truth with {b} of the draw is not as {b} of the truth with {a} of the draw",
        "turned": f"{a} of the truth goes with the draw in another way than {a} of the draw with the truth",
    }[found.largest.form]


LEVEL = Reversible()
