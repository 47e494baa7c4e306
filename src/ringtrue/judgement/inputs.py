"""What is looked at before a procedure is called wrong: truths, data and draws that cannot be what they should be.

Each function here looks for one mistake and returns a sentence that names it, or None. All read the record alone, of
its first replicates. Whatever is legitimate must pass: discrete parameters, few draws, heavy tails, outputs that ignore
the data. Where chance could produce a finding, it does so in at most one of 10^6 runs of a sound study, and in one of
10^4 for the test of truths against the belief; outputs that are worse than the belief are a clue without such a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..characters import one_line
from ..replicates.record import GROUP, IGNORES_STREAM, INPUT, LOOKED, NO_STREAM, SAME_SHIFT, Replicates
from ..statistics import twosample, uniformity
from ..statistics.effects import usefulness
from ..values import Floats
from . import groups
from .column import Column, strong_columns
from .levels import uniform
from .sentences.phrases import listed
from .text import format_p, number, percent

#: The chance of a false alarm of each look, over all test functions; of the test of truths against the belief.
RARE, RARE_OF_BELIEF = 1e-6, 1e-4
#: A run has repeats if fewer than this share of its truths or datasets are different.
_DIFFERENT = 0.8
#: Truths and test functions that are enough to see repeats; it takes sorting.
_ENOUGH, _COLUMNS = 50_000, 20
#: So many numbers that are not whole make a dataset that does not occur twice by chance.
_NUMBERS = 10


@dataclass(frozen=True)
class Suspicion:
    """A mistake in what went in: its sentence, and whether no certificate can be given while it stands."""

    text: str
    voids: bool = True


class Looked:
    """The replicates of a record that were looked at and not lost.

    Parameters
    ----------
    replicates
        What happened.
    """

    def __init__(self, replicates: Replicates) -> None:
        self.replicates = replicates
        self.rows = np.flatnonzero(replicates.kept[: max(LOOKED - replicates.first, 0)])
        self.n = len(self.rows)
        every = [column for column in strong_columns(replicates) if np.isfinite(self.of(column, "truth")).all()]
        self.columns = [column for column in every if column.kind == "coordinate"] or every

    def array(self, name: str) -> NDArray[Any] | None:
        """Return an array of what went in; None if the record has none."""
        found = self.replicates.arrays.get(f"{INPUT}{name}")
        return None if found is None else found[self.rows]

    def of(self, column: Column, name: str) -> Floats:
        """Return the numbers of a test function; nan where there are none."""
        found = self.replicates.arrays.get(name)
        return np.full(self.n, np.nan) if found is None else np.asarray(found[self.rows, column.k], float)

    def seen(self, column: Column, name: str) -> Floats:
        """Return the numbers of a test function of what went in."""
        return self.of(column, f"{INPUT}{name}")

    def never_hit(self, column: Column) -> bool:
        """Whether no truth equals a draw of its output, as is the case where either has a density."""
        return not self.seen(column, "hit").any() and not np.isnan(self.seen(column, "hit")).any()

    @cached_property
    def repeating(self) -> list[Column]:
        """The test functions whose truths repeat each other though no draw ever equals its truth."""
        return [column for column in self.columns[:_COLUMNS] if _repeats(self, column)]


def suspicions(replicates: Replicates) -> tuple[Suspicion, ...]:
    """Return what is wrong with the inputs, the most certain first."""
    seen = Looked(_independent(replicates))
    if seen.n < 2:
        return ()
    with np.errstate(over="ignore", invalid="ignore"):  # sizes near the largest number
        found = [one for look in _LOOKS if (one := look(seen)) is not None]
        # Outputs that are worse than the belief follow from most other mistakes; alone they are a clue.
        return tuple(found or [one for one in [_worse_than_belief(seen)] if one is not None])


def _independent(replicates: Replicates) -> Replicates:
    """Return the replicates, or one of each group among those that were looked at."""
    if GROUP not in replicates.arrays:
        return replicates
    return groups.one_of_each(replicates.pick(slice(0, max(LOOKED - replicates.first, 0))))


def _mean_and_sd(seen: Looked) -> Suspicion | None:
    """Two draws that are not exchangeable, the second like a standard deviation."""
    pairs = [(column, 2 * seen.of(column, "mean") - (b := seen.seen(column, "second")), b) for column in seen.columns]
    found = [column.name for column, a, b in pairs if _like_mean_and_sd(a, b, RARE / len(pairs))]
    if not found:
        return None
    return Suspicion(
        f"every output has two draws, of which the second, for {listed(found[:3])}, is like a standard deviation: it "
        f"is never negative, and the two cannot be exchanged. For a mean and a standard deviation return "
        f"ringtrue.Normal(mean, sd)"
    )


def _like_mean_and_sd(a: Floats, b: Floats, chance: float) -> bool:
    """Whether the second of two draws is never negative, and negative firsts or a steady second are no chance."""
    if np.isnan(b).any() or (b < 0).any():
        return False
    # Of two draws of one output either may come first: each order is a fair coin, whatever the values are.
    return bool(0.5 ** int((a < 0).sum()) <= chance / 2 or _steady(a, b, chance / 2))


def _steady(a: Floats, b: Floats, chance: float) -> bool:
    middle = np.median([a, b])
    closer = np.abs(a - middle) - np.abs(b - middle)
    nearer, farther = int((closer > 0).sum()), int((closer < 0).sum())
    # Sorted pairs are no coins either, but both of a pair spread alike.
    alike = 3 * _deviation(b) > _deviation(a) or nearer < 9 * farther
    return not alike and nearer > 0 and float(special.bdtrc(nearer - 1, nearer + farther, 0.5)) <= chance


def _deviation(x: Floats) -> float:
    return float(np.median(np.abs(x - np.median(x))))


def _same_draws(seen: Looked) -> Suspicion | None:
    """Draws that are those of another replicate, which had other data."""
    draws, data = seen.array("draws"), seen.array("data")
    if draws is None or not draws.all() or not seen.columns:
        return None
    _, place, counts = np.unique(draws, return_inverse=True, return_counts=True)
    shared = (counts > 1)[place]
    if data is not None and data.all():
        # Equal data may have equal outputs, if these are made once for each dataset that can occur.
        pairs = np.unique(np.stack([draws, data]), axis=1)
        shared = (np.unique(pairs[0], return_counts=True)[1] > 1)[place]
    if shared.mean() < 0.05 or not _never_by_chance(seen, counts):
        return None
    kinds = "the same" if len(counts) == 1 else f"of only {len(counts)} kinds"
    return Suspicion(
        f"the draws are {kinds} in all {seen.n} replicates: look for rows that were copied, or a procedure that "
        f"returns the same draws whatever it is given; if equal data have equal draws, pass y="
    )


def _never_by_chance(seen: Looked, counts: NDArray[Any]) -> bool:
    """Whether draws that repeat in so many replicates are no chance of a parameter with few values."""
    column = seen.columns[0]
    many, tied = seen.of(column, "draws"), seen.seen(column, "tied")
    if many.min() >= 10 and not tied.any():
        return True  # so many different values come in the same order once in 10! times
    # With few values truths equal draws of their own output at least as often as draws of two outputs are equal.
    rate = float(np.sum(counts * (counts - 1.0))) / (seen.n * (seen.n - 1))
    return seen.never_hit(column) and seen.n * rate >= 40


def _equal_truths(seen: Looked) -> Suspicion | None:
    """One truth for all, or a few truths that are used again and again."""
    same = [column for column in seen.columns if _same(seen, column)]
    if same:
        value = number(float(seen.of(same[0], "truth")[0]), 3)
        return Suspicion(
            f"the truth of {listed([column.name for column in same[:3]])} is the same in all {seen.n} replicates "
            f"({value}): every replicate needs a truth of its own, drawn from the belief"
        )
    if not seen.repeating:
        return None
    column = seen.repeating[0]
    truth = column.array("truth")[:_ENOUGH]
    return Suspicion(
        f"there are only {np.unique(truth).size} different truths of {column.name} in {truth.size} replicates, though "
        f"no draw ever equals its truth: replicates that share a truth are not independent; say which of them do, with "
        f"groups= to check_draws, one label per replicate, or datasets= of a Study"
    )


def _same(seen: Looked, column: Column) -> bool:
    return seen.n >= 5 and np.ptp(seen.of(column, "truth")) == 0 and seen.never_hit(column)


def _repeats(seen: Looked, column: Column) -> bool:
    """Whether truths repeat that should be different; whole numbers, and rounded ones, may repeat."""
    if seen.n < 20 or not seen.never_hit(column):
        return False
    truth, fresh = column.array("truth")[:_ENOUGH], seen.replicates.reference
    values = np.unique(truth)
    if values.size > _DIFFERENT * truth.size:
        return False
    # A belief that is known by its draws repeats them, and so do its truths.
    if len(fresh) and np.unique(fresh[:, column.k]).size < 0.95 * len(fresh):
        return False
    if (values == np.floor(values)).all():
        return False
    return not _on_lattice(values) or (values.size <= 20 and truth.size >= 10 * values.size)


def _on_lattice(values: Floats) -> bool:
    """Whether sorted values are whole multiples of a step apart, as rounded numbers are."""
    gaps = np.diff(values)
    if not gaps.size:
        return True
    steps = gaps / gaps.min()
    return bool(np.all(np.abs(steps - np.round(steps)) < 1e-3))


def _equal_data(seen: Looked) -> Suspicion | None:
    """One dataset for all, or a few datasets that are used again and again."""
    data, fractions, many = (seen.array(name) for name in ("data", "fractions", "fractional"))
    if data is None or fractions is None or many is None or not fractions.all() or seen.n < 10:
        return None
    different = np.unique(data).size
    if different == 1:
        text = (
            f"the dataset is the same in all {seen.n} replicates: the model must simulate new data from each theta "
            f"that it is given"
        )
        return Suspicion(text, voids=False)
    # What is not whole must vary too: a fixed design repeats, and so may the counts observed at it.
    most = _DIFFERENT * seen.n
    if many.min() < _NUMBERS or different > most or not 1 < np.unique(fractions).size <= most:
        return None
    return Suspicion(
        f"there are only {different} different datasets in {seen.n} replicates: each needs data of its own, simulated "
        f"from its own theta"
    )


def _same_random_numbers(seen: Looked) -> Suspicion | None:
    """The same draw is the largest, and the same the smallest, of most outputs."""
    high, low = seen.array("highest"), seen.array("lowest")
    if high is None or low is None or _same_draws(seen) is not None:  # which says more
        return None
    shares = [_usual_place(places) for places in (high, low)]
    # At an end may be the largest of draws that are sorted, or of a chain that drifts, but hardly both in the middle.
    if not all(share >= 0.5 or np.mean(places < 0) >= 0.5 for share, places in zip(shares, (high, low), strict=True)):
        return None
    most = max(shares)
    # The place of the largest of ten or more independent draws is each with a chance of at most a tenth.
    if most < 0.5 or 20 * special.bdtrc(round(most * seen.n) - 1, seen.n, 0.1) > RARE:
        return None
    return Suspicion(
        f"draws of different replicates are made of the same random numbers: the same draw is the largest or the "
        f"smallest of its output in {percent(most)} of the replicates. Give every fit a seed of its own, or use the "
        f"rng that the procedure is handed"
    )


def _usual_place(places: NDArray[Any]) -> float:
    """Return the share of the most frequent place."""
    inside = places[places >= 0]
    return float(np.bincount(inside).max() / len(places)) if inside.size else 0.0


def _equal_draws(seen: Looked) -> Suspicion | None:
    """Draws that equal the one before, though no truth equals any draw, and draws are not whole numbers of steps."""
    if seen.replicates.treated[seen.rows].any():
        return None  # a Markov chain that was declared may stay where it is, and weighted draws are repeated by us
    for column in seen.columns:
        tied = seen.seen(column, "tied")
        if seen.seen(column, "lattice").mean() > 0.5:
            continue  # rounded, or made of counts, as those of a bootstrap may be: such an output has equal draws
        # With few values the truth would equal a draw at least as often. If one draw equals the next with chance p, no
        # truth of n equals any of M draws with chance exp(-0.63 sum min(sqrt p, M p)) at most, and sqrt(tied) has no
        # larger mean: a sum of 55 and no hit have a chance of 10^-6 together, by Chernoff's bound.
        if np.sqrt(tied).sum() >= 55 + 2 * np.log(len(seen.columns)) and tied.mean() >= 0.01 and seen.never_hit(column):
            text = (
                f"of the draws of {column.name} {percent(float(tied.mean()))} equal the draw before, though no truth "
                f"equals any draw: a chain that stood still, or draws that were repeated; they are not so many "
                f"independent draws"
            )
            return Suspicion(text, voids=False)
    return None


def _fixed_noise(seen: Looked) -> Suspicion | None:
    """A model that gives the same data for the same theta whatever its random stream."""
    noise, fractions = seen.array("noise"), seen.array("fractions")
    if noise is None or fractions is None or not noise.any() or np.unique(fractions).size < 2:
        return None
    same = "one theta gave the same data twice, from two random streams"
    remedy = "write the model as P(theta, rng) and draw noise from rng, not from a random state that starts afresh"
    if noise.max() == IGNORES_STREAM:
        return Suspicion(
            f"the model takes rng and does not use it: {same}. If it has a random state of its own, let it draw from "
            f"rng; if it has no noise, leave rng out of its arguments"
        )
    if noise.max() == SAME_SHIFT:
        return Suspicion(f"the noise in the data is the same in every replicate: {remedy}")
    if noise.max() == NO_STREAM and _read_off(seen):
        return Suspicion(
            f"the data have no noise of their own, and more numbers than there are parameters: {same}. If noise is "
            f"meant, {remedy}",
            voids=False,
        )
    return None


def remarks(replicates: Replicates) -> list[str]:
    """Return what is worth knowing of the inputs and no mistake where a procedure solves a problem without noise."""
    seen = Looked(_independent(replicates))
    noise = seen.array("noise")
    if noise is None or not noise.size or noise.max() != NO_STREAM or not _follows_truth(seen):
        return []
    return ["the model has no noise: the same theta gives the same data, and positions are a function of the truth."]


def _read_off(seen: Looked) -> bool:
    """Whether data without noise have so many numbers that theta could be read off them."""
    many = seen.array("fractional")
    return many is not None and many.min() > len(seen.columns) and _follows_truth(seen)


def _follows_truth(seen: Looked) -> bool:
    """Whether the position of an entry is a smooth function of all of them, which noise in the data would prevent."""
    asked = [column for column in seen.columns if _differ(seen, column)]
    if seen.n < 10 * (3 * len(seen.columns) + 1):
        return False
    entries = [_scores(seen.of(column, "truth")) for column in seen.columns]
    smooth = np.stack([np.ones(seen.n), *(entry**power for entry in entries for power in (1, 2, 3))], axis=1)
    positions = [(_scores(seen.of(column, "z")), seen.of(column, "truth")) for column in asked]
    return any(_explained(z, smooth) > 0.9 or _steps(z[np.argsort(truth)]) < 0.1 for z, truth in positions)


def _steps(values: Floats) -> float:
    """Return von Neumann's ratio: the mean square of the steps in units of the variance, 2 without any order."""
    return float(np.square(np.diff(values)).mean()) / max(float(values.var()), 1e-300)


def _differ(seen: Looked, column: Column) -> bool:
    """Whether outputs differ by more than the noise of draws: some that ignore the data may have rows in any order."""
    mean, many = seen.of(column, "mean"), seen.of(column, "draws")
    noise = np.where(many > 0, np.square(seen.of(column, "sd")) / np.maximum(many, 1), 0)
    beyond = np.square(mean - mean.mean()) - noise
    return bool(beyond.mean() > 4 * beyond.std() / np.sqrt(seen.n))  # false if a mean or an sd is not known


def _explained(values: Floats, smooth: Floats) -> float:
    """Return the share of the variance that a least squares fit explains."""
    left = values - smooth @ np.linalg.lstsq(smooth, values, rcond=None)[0]
    return 1 - float(left.var()) / max(float(values.var()), 1e-300)


def _other_belief(seen: Looked) -> Suspicion | None:
    """Truths that were given and do not follow the belief that was given."""
    if seen.array("belief_u") is None or seen.repeating or any(_same(seen, column) for column in seen.columns):
        return None
    tested = [(p, column) for column in seen.columns if (p := _belief_pvalue(seen, column)) is not None]
    if not tested or (worst := min(tested, key=lambda one: one[0]))[0] * len(tested) > RARE_OF_BELIEF:
        return None
    p, column = worst
    return Suspicion(
        f"the truths do not follow the belief{_how_far(seen, column)} ({format_p(p * len(tested))}): pass the belief "
        f"that they were drawn from, or leave it out"
    )


def _belief_pvalue(seen: Looked, column: Column) -> float | None:
    """Return the p-value of truths being draws of the belief; None if that cannot be tested."""
    u, z = seen.seen(column, "belief_u"), seen.seen(column, "belief_z")
    lost = seen.replicates.lost
    if not np.isnan(u).any():
        if lost:  # whatever the lost truths were
            return uniform(u, None, draws=None, test="ecdf_gamma", lost=lost).pvalue
        single = [uniformity.ks(u), *(test(u, z=z) for test in (uniformity.mean_z, uniformity.cook))]
        return float(min(1.0, len(single) * min(one.pvalue for one in single)))
    fresh = seen.replicates.reference[:LOOKED]
    if lost or len(fresh) < 2 or not np.isfinite(fresh[:, column.k]).all():
        return None
    truth, drawn = seen.of(column, "truth"), fresh[:, column.k]
    # Folded at the centre of both together, which keeps the test exact, it sees the spread.
    centre = float(np.median(np.concatenate([truth, drawn])))
    pairs = (truth, drawn), (np.abs(truth - centre), np.abs(drawn - centre))
    return min(1.0, 2 * min(float(twosample.ks(*pair).pvalue) for pair in pairs))


def _how_far(seen: Looked, column: Column) -> str:
    """Say by how much, in units of the belief, where quartiles tell."""
    x, ideal = seen.seen(column, "belief_z"), special.ndtri([0.25, 0.5, 0.75])
    if np.isnan(x).any():
        x, ideal = seen.of(column, "truth"), np.quantile(seen.replicates.reference[:, column.k], [0.25, 0.5, 0.75])
    (low, middle, high), unit = np.quantile(x, [0.25, 0.5, 0.75]), (ideal[2] - ideal[0]) / 1.349
    if not unit > 0 or not np.isfinite([low, high]).all():
        return f": those of {column.name} have another law"
    shift, spread = (middle - ideal[1]) / unit, (high - low) / 1.349 / unit
    side = "above" if shift > 0 else "below"
    return f": {column.name} lies {number(abs(shift))} of its sd {side} it and spreads {number(spread)} times as wide"


def _worse_than_belief(seen: Looked) -> Suspicion | None:
    """Outputs that predict worse than the belief and do not follow the truth."""
    header = seen.replicates.header
    # Given y_obs the truths are the procedure's own: what such outputs say against it is for the verdict.
    if not header.of_belief or header.of_output or seen.n < 20:
        return None
    found = [one for column in seen.columns if (one := _against_truth(seen, column)) is not None]
    if not found:
        return None
    correlation, skill, name = min(found)
    rows = "rows in another order than the truths', or a sign error"
    look = "a sign error" if correlation < -4 / np.sqrt(seen.n) else rows
    return Suspicion(
        f"the outputs are worse than the belief (skill {number(skill)} for {name}) and do not follow the truth (rank "
        f"correlation {number(correlation)}): look for {look}",
        voids=False,
    )


def _against_truth(seen: Looked, column: Column) -> tuple[float, float, str] | None:
    """Return rank correlation and skill of outputs that are clearly worse than the belief."""
    truth, mean, crps = (seen.of(column, name) for name in ("truth", "mean", "crps"))
    if not _differ(seen, column):
        return None
    skill = usefulness.skill(truth, crps, confidence=0.999)
    if not skill.high < 0:
        return None
    correlation = float(np.corrcoef(_scores(truth), _scores(mean))[0, 1])
    # Sound outputs that differ so much correlate with the truth so well. Whoever follows it badly has rows and signs
    # right: the correlation must not be positive for sure, and four standard errors above it must still be little.
    varied, width = _deviation(mean) ** 2, float(np.square(seen.of(column, "sd")).mean()) * 0.6745**2
    share = varied / (varied + width) if varied + width > 0 else 0.0  # most are one and the same point: follows nothing
    little, error = min(0.35, 0.75 * float(np.sqrt(share))), 1 / np.sqrt(seen.n)
    unrelated = correlation < 3 * error and correlation + 4 * error < little
    return (correlation, skill.estimate, column.name) if unrelated else None


def _scores(x: Floats) -> Floats:
    """Return normal scores of the ranks; equal values share theirs."""
    ordered = np.sort(x)
    middle = (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / 2
    return np.asarray(special.ndtri((middle + 0.25) / (len(x) + 0.5)))


#: What is looked for, the most certain first.
_LOOKS = (
    _mean_and_sd,
    _same_draws,
    _equal_truths,
    _equal_data,
    _same_random_numbers,
    _equal_draws,
    _fixed_noise,
    _other_belief,
)


#: What is left of a certificate while the inputs are in doubt.
VOID = "INCONCLUSIVE: all sizes lie within tolerance, which certifies nothing while the inputs are in doubt."


def in_front(found: Sequence[Suspicion], text: str) -> str:
    """Return the sentence of a verdict, and in front of it what is wrong with the inputs."""
    return "\n".join([*(f"LOOK AT THE INPUTS FIRST: {one_line(one.text)}." for one in found), text])
