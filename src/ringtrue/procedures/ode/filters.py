"""Gaussian filters for initial value problems: EK0 (Schober et al., 2018) and EK1 (Tronarp et al., 2018).

The solution and its first derivatives are an integrated Wiener process a priori; a step predicts, and corrects the
prediction to obey the equation, which is linearised by nothing (EK0) or by its Jacobian (EK1). The prior treats
components alike, and so does EK0's correction, whose covariance is therefore that of one component: the d components
are c copies of blocks of e, (e, c) = (1, d) for EK0 and (d, 1) for EK1, and copies share one covariance.

Axes: a block's state, derivative by derivative (D = (order + 1) e), copies, problems. In a step of length h a state is
scaled so that transition and noise are constant matrices, and covariances are made symmetric, without which their
antisymmetric part grows fourfold per step. This keeps ten digits of variances at order 4, seven at order 6, and leaves
no eigenvalue more negative than rounding. Nothing here knows beliefs or studies.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from math import factorial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy
from ...values import Floats
from .jets import derivatives
from .problem import Flow, InitialValueProblem, Rows, need_solution
from .solution import GaussianSolution, Process

#: Numbers in a batch's covariances: few enough for the processor's cache, enough to spread the cost of Python.
_TOGETHER = 2**17
#: Shortest step in units of the span, and most steps tried.
_COLLAPSED, _ENDLESS = 1e-12, 100_000
#: Steps in a row, so short that more than _ENDLESS would follow, after which an implicit integrator is asked whether
#: the solution explodes; and how often it may evaluate the vector field (a few thousand times settle it, if at all).
_STALLED, _PATIENCE = 100, 20_000


@cache
def _noise(order: int) -> Floats:
    """Return the covariance of the scaled process noise of one component."""
    i = np.arange(order + 1)
    # The integral over a unit step of s^(q - i) s^(q - j), factorials being part of the units.
    return np.asarray(1 / (2 * order + 1 - i[:, None] - i))


class _Units:
    """The units of states in steps of given lengths."""

    def __init__(self, h: Floats, order: int, block: int) -> None:
        self.order, self.block = order, block
        # h^(q - i + 1/2) / (q - i)!: in these units transition and noise are the same for every h.
        powers = np.stack([h ** (order - i) / factorial(order - i) for i in range(order + 1)]) * np.sqrt(h)
        state = np.repeat(powers, block, axis=0)
        # Of means (D, c, n) and covariances (D, D, n), and of first derivatives and of residuals of the equation.
        self.mean, self.cov, self.slope = state[:, None], state[:, None] * state, state[block]

    def ahead(self, x: Floats) -> Floats:
        """Return scaled states (D, ..., n) a step later: Pascal's triangle times their derivatives."""
        parts = x.copy().reshape(self.order + 1, -1)
        # Neighbours added up make Pascal's triangle, without a product of matrices.
        for k in range(self.order, 0, -1):
            parts[:k] += parts[1 : k + 1]
        return parts.reshape(x.shape)

    def predicted(self, cov: Floats, diffusion: Floats) -> tuple[Floats, Floats]:
        """Return scaled covariances after a step, and those of the states after (first) with the states before."""
        cross = self.ahead(cov)
        after = self.ahead(np.swapaxes(cross, 0, 1))
        after = 0.5 * (after + np.swapaxes(after, 0, 1))
        noise = _noise(self.order)[:, :, None] * diffusion
        blocks = after.reshape(self.order + 1, self.block, self.order + 1, self.block, -1)
        for i in range(self.block):
            blocks[:, i, :, i] += noise
        return after, cross


def _times(a: Floats, b: Floats) -> Floats:
    """Return matrices (k, l, n) times (l, m, n), summed in one order however many problems there are."""
    # einsum and matmul choose their order of summation by shape, and with it the last digits.
    found = a[:, 0, None] * b[None, 0]
    for j in range(1, len(b)):
        found += a[:, j, None] * b[None, j]
    return found


def _factor(matrix: Floats) -> Floats:
    """Return lower triangular factors of (k, k, n); a direction without variance gets a column of zeros."""
    root, left = np.zeros_like(matrix), matrix.copy()
    for j in range(len(matrix)):
        # Below rounding a direction is determined by the earlier ones.
        flat = left[j, j] <= 1e-15 * matrix[j, j]
        root[j:, j] = np.where(flat, 0.0, left[j:, j] / np.sqrt(left[j, j]))
        left[j + 1 :, j + 1 :] -= root[j + 1 :, j, None] * root[j + 1 :, j]
    return root


def _whiten(root: Floats, x: Floats) -> Floats:
    """Return root^{-1} x for x (k, m, n); what has no variance does not move."""
    found = x.copy()
    for j in range(len(root)):
        found[j] = np.where(root[j, j] == 0, 0.0, found[j] / root[j, j])
        found[j + 1 :] -= root[j + 1 :, j, None] * found[j]
    return found


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of some problems, one each: all that is needed to repeat their covariances."""

    rows: Rows
    start: Floats
    length: Floats
    diffusion: Floats
    mean: Floats  # before the step
    slopes: Floats | None  # the Jacobian after it

    def over(self, some: NDArray[np.bool_]) -> _Steps:
        """Return the steps of some of the problems."""
        slopes = None if self.slopes is None else self.slopes[..., some]
        parts = (self.start[some], self.length[some], self.diffusion[some], self.mean[..., some])
        return _Steps(self.rows[some], *parts, slopes)

    def slant(self, order: int) -> Floats | None:
        """Return the Jacobian in units of the scaled derivatives."""
        return None if self.slopes is None else self.slopes * (self.length / order)

    def local(self, order: int) -> Floats:
        """Return the covariance of the residual if the state before were known, for unit diffusion."""
        noise, slant = _noise(order), self.slant(order)
        if slant is None:
            return np.full((1, 1, len(self.rows)), noise[1, 1])
        both = slant + np.swapaxes(slant, 0, 1)
        squared = _times(slant, np.swapaxes(slant, 0, 1))
        return np.asarray(noise[1, 1] * np.eye(len(slant))[..., None] - noise[0, 1] * both + noise[0, 0] * squared)

    def corrected(self, cov: Floats, units: _Units) -> tuple[Floats, Floats, Floats]:
        """Return covariances after the step, its whitened gain (D, e, n), and factors of the residual's covariance."""
        e, slant = units.block, self.slant(units.order)
        after, _ = units.predicted(cov / units.cov, self.diffusion)
        seen = after[:, e : 2 * e]
        if slant is not None:
            seen = seen - _times(after[:, :e], np.swapaxes(slant, 0, 1))
        residual = seen[e : 2 * e] if slant is None else seen[e : 2 * e] - _times(slant, seen[:e])
        root = _factor(residual)
        gain = np.swapaxes(_whiten(root, np.swapaxes(seen, 0, 1)), 0, 1)
        for i in range(e):
            after -= gain[:, None, i] * gain[None, :, i]
        return after * units.cov, gain * units.mean, root


class _Sweep:
    """Some problems of a flow, advanced together: number i here is number rows[i] there."""

    def __init__(self, rule: _ExtendedKalman, flow: Flow, rows: Rows, start: Floats) -> None:
        self.rule, self.flow, self.rows, n = rule, flow, rows, len(rows)
        self.block = rule._block(len(start[0]))
        size = (rule.order + 1) * self.block
        copies = len(start[0]) // self.block
        self.mean, self.cov = start.reshape(size, copies, n).copy(), np.zeros((size, size, n))
        self.begin, self.end = flow.problem.span
        self.t, self.h = np.full(n, self.begin), self._first(start)
        self.accepted, self.rejected, self.evidence = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
        # Steps in a row that lead nowhere, and the largest value of a component so far.
        self.hopeless, self.largest = np.zeros(n, np.int64), np.zeros(n)
        self.log: list[_Steps] = []

    def units(self, h: Floats) -> _Units:
        """Return the units of steps."""
        return _Units(h, self.rule.order, self.block)

    def _first(self, start: Floats) -> Floats:
        """Return the first step: a hundredth of the time to change by one's own size."""
        span = self.end - self.begin
        if self._count:
            return np.full(start.shape[-1], span / self._count)
        size, speed = np.sqrt(np.square(start[:2]).sum(axis=1))
        # A solution that starts at 0 has the absolute tolerance for a size.
        return np.asarray(np.minimum(0.01 * np.where(size > 0, size, self.rule.atol) / speed, span))

    @property
    def _count(self) -> int:
        """The number of steps, if they are fixed."""
        # A span of 10 in steps of 0.1 is 100 of them, not a hundred and first of 2e-14.
        return 0 if self.rule.step is None else int(np.ceil((self.end - self.begin) / self.rule.step - 1e-9))

    def run(self) -> _Sweep:
        """Advance all problems to the end or to their failure."""
        active = self._going(np.arange(len(self.rows)))
        for _ in range(self._count or _ENDLESS):
            if not len(active):
                break
            self._advance(active)
            active = self._going(active)
        self._lose(active, f"not at the end after {_ENDLESS} steps")
        if self.rule.diffusion == "constant":
            self._rescale()
        if (lost := np.isin(self.rows, list(self.flow.lost))).any():
            self.mean[..., lost] = self.cov[..., lost] = np.nan
            # Those who fail have often taken the most steps.
            self.log = [steps.over(~lost[steps.rows]) for steps in self.log if not lost[steps.rows].all()]
        return self

    def _going(self, active: Rows) -> Rows:
        """Return those that are neither at the end nor lost."""
        active = active[self.t[active] < self.end]
        return active[~np.isin(self.rows[active], list(self.flow.lost))] if self.flow.lost else active

    def _lose(self, rows: Rows, reason: str) -> None:
        for row in rows:
            self.flow.lose(self.rows[row], f"{reason}, at t = {self.t[row]:g}")

    def _advance(self, active: Rows) -> None:
        """Try one step of every active problem, and take those that are good enough."""
        t, h = self.t[active], self.h[active]
        until = self._until(active, t, h)
        if not self._count:
            h = np.minimum(h, self.end - t)
        units = self.units(h)
        scaled = units.ahead(self.mean[..., active] / units.mean)
        residual, slopes = self._tried(active, until, units, scaled)
        steps = _Steps(active, t, h, np.ones(len(active)), self.mean[..., active], slopes)
        diffusion, error = self._judged(steps, units, residual)
        if self.rule.diffusion == "dynamic":
            steps = replace(steps, diffusion=diffusion)
        good = np.ones(len(active), bool) if self._count else error < 1
        if self._count:
            self._doubt(steps, units, diffusion)
        else:
            self._adapt(steps, error, until)
        self.t[active[good]] = until[good]
        self._take(steps.over(good), (scaled * units.mean)[..., good], residual[..., good])

    def _until(self, active: Rows, t: Floats, h: Floats) -> Floats:
        """Return the times that steps lead to; the last is the end exactly."""
        if not self._count:
            return np.where(h >= self.end - t, self.end, t + h)
        steps = self.accepted[active] + 1
        # Multiplied, because rounding adds up in sums.
        return np.where(steps == self._count, self.end, self.begin + steps * h)

    def _tried(self, active: Rows, until: Floats, units: _Units, scaled: Floats) -> tuple[Floats, Floats | None]:
        """Return the scaled residual of the equation at predicted states, (e, c, n), and the Jacobian."""
        e, rows = self.block, self.rows[active]
        value = (scaled[:e] * units.mean[:e]).reshape(-1, len(active))
        slope = self.flow(until, value, rows).reshape(e, -1, len(active))
        slopes = self.flow.jacobian(until, value, rows) if self.rule._linearised else None
        return scaled[e : 2 * e] - slope / units.slope, slopes

    def _judged(self, steps: _Steps, units: _Units, residual: Floats) -> tuple[Floats, Floats]:
        """Return the local diffusion, and the local error in units of the tolerance."""
        # Without the covariance before the step, as Schober et al. do: the error is that of this step alone.
        local = steps.local(self.rule.order)
        diffusion = np.square(_whiten(_factor(local), residual)).sum((0, 1)) / (residual.size / residual.shape[-1])
        size = np.einsum("iin->in", local)[:, None] * (diffusion * units.slope**2)
        tolerance = self.rule.atol + self.rule.rtol * np.abs(steps.mean[: self.block])
        return diffusion, np.sqrt((size / tolerance**2).mean((0, 1)))

    def _adapt(self, steps: _Steps, error: Floats, until: Floats) -> None:
        """Choose the next step by the error of this one; one that is nan asks for a shorter step."""
        active, bad = steps.rows, ~(error < 1)
        # The factors of probnum's solver.
        factor = np.clip(0.95 * error ** (-1 / (self.rule.order + 1)), 0.2, 10)
        self.h[active] = steps.length * np.where(np.isnan(factor), 0.2, factor)
        self.rejected[active[bad]] += 1
        # What has arrived needs no further step, however short its last one was.
        short = self.h[active] < _COLLAPSED * (self.end - self.begin)
        self._lose(active[short & (bad | (until < self.end))], "the step size collapsed")
        # Towards an explosion steps shorten for tens of thousands of times before they are the shortest.
        far = self.h[active] * _ENDLESS < self.end - steps.start
        for row in self._in_a_row(active, far, _STALLED):
            if _explodes(self.flow.problem, self.rows[row], self.t[row], self.mean[: self.block, :, row].ravel()):
                self._lose(np.array([row]), "the solution explodes, and the step size collapsed")

    def _in_a_row(self, active: Rows, hopeless: NDArray[np.bool_], most: int) -> Rows:
        """Count hopeless steps in a row, and return the problems that have just had the most."""
        self.hopeless[active] = np.where(hopeless, self.hopeless[active] + 1, 0)
        reached: Rows = active[self.hopeless[active] == most]
        return reached

    def _doubt(self, steps: _Steps, units: _Units, diffusion: Floats) -> None:
        """Lose those whose fixed steps do not resolve the equation: what such a filter returns is finite, no more.

        The error that a single step adds, by the filter's own estimate, is then larger than the solution has ever been,
        and not for once: a state of order + 1 numbers has forgotten a bad step after as many.
        """
        active, error = steps.rows, np.sqrt(_noise(self.rule.order)[0, 0] * diffusion) * units.mean[0, 0]
        self.largest[active] = np.maximum(self.largest[active], np.abs(steps.mean[: self.block]).max((0, 1)))
        lost = self._in_a_row(active, error > self.largest[active], self.rule.order + 2)
        self._lose(lost, f"steps of {steps.length[0]:g} are too long: one adds an error larger than the solution")

    def _take(self, steps: _Steps, mean: Floats, residual: Floats) -> None:
        """Correct predictions and note the steps."""
        rows = steps.rows
        self.cov[..., rows], gain, root = steps.corrected(self.cov[..., rows], self.units(steps.length))
        white = _whiten(root, residual)
        self.mean[..., rows] = mean - _times(gain, white)
        self.evidence[rows] += np.square(white).sum((0, 1))
        self.accepted[rows] += 1
        self.log.append(steps)
        size = np.abs(self.mean[..., rows]).sum((0, 1)) + np.einsum("iin->n", self.cov[..., rows])
        self._lose(rows[~np.isfinite(size)], "diverged")

    def _rescale(self) -> None:
        """Replace the unit diffusion by the most likely one of each problem."""
        scale = self.evidence / (np.maximum(self.accepted, 1) * self.block * self.mean.shape[1])
        self.cov *= scale
        self.log = [replace(steps, diffusion=scale[steps.rows]) for steps in self.log]

    def covariances(self) -> list[Floats]:
        """Return the covariances before each entry of the log, by repeating the filter."""
        # Keeping them would take D / c times the memory of the means.
        cov, before = np.zeros_like(self.cov), []
        for steps in self.log:
            before.append(cov[..., steps.rows])
            cov[..., steps.rows] = steps.corrected(before[-1], self.units(steps.length))[0]
        return before


def _explodes(problem: InitialValueProblem, row: int, t: float, x: Floats) -> bool:
    """Return whether an implicit integrator gets stuck too, on the way from a state to the end.

    Short steps alone do not tell: van der Pol's equation with mu = 1000 needs thousands that are a millionth of what is
    left. An implicit method takes long ones again after the turn, and its steps collapse before an explosion only.
    """
    from scipy.integrate import solve_ivp

    alone = problem if problem.size is None else problem[row]
    # A flow of its own: where the field raises on trial nothing is lost.
    flow, asked = Flow(alone), count()

    def slope(at: float, x: Floats) -> Floats:
        if next(asked) > _PATIENCE:
            raise _Undecided
        return flow(at, x[:, None])[:, 0]

    try:
        size = 1e-6 * float(np.abs(x).max())
        found = solve_ivp(slope, (t, problem.span[1]), x, method="Radau", rtol=1e-3, atol=size)
    # Its algebra refuses a Jacobian that is not finite.
    except (_Undecided, ValueError):
        return False
    return not found.success


class _Undecided(Exception):
    """An integrator takes too long to be of use."""


class _Smoothing:
    """A backward pass over a sweep, from the end to the earliest of some increasing times.

    Steps are taken in reverse. A time inside a step divides it: the state there is predicted from the step's start and
    smoothed from what follows.
    """

    def __init__(self, sweep: _Sweep, times: Floats) -> None:
        k, e, (size, c, n) = len(times), sweep.block, sweep.mean.shape
        self.sweep, self.times = sweep, times
        self.mean, self.cov = sweep.mean.copy(), sweep.cov.copy()
        # Covariances of the state with the values at times already passed.
        self.cross = np.zeros((size, k * e, n))
        self.means, self.covs = np.full((k, e, c, n), np.nan), np.full((k * e, k * e, n), np.nan)

    def run(self) -> tuple[Floats, Floats]:
        """Return means (k, e, c, n) and covariances (k e, k e, n) at the times."""
        if self.times[-1] == self.sweep.end:
            self._note(len(self.times) - 1, np.arange(len(self.sweep.rows)))
        for steps, cov in zip(reversed(self.sweep.log), reversed(self.sweep.covariances()), strict=True):
            later = steps.start + steps.length > self.times[0]
            if later.any():
                self._back(steps.over(later), cov[..., later])
        return self.means, self.covs

    def _back(self, steps: _Steps, cov: Floats) -> None:
        """Go from the ends of steps to their starts, through the times inside."""
        left = steps.length.copy()
        for j in reversed(range(len(self.times))):
            into = self.times[j] - steps.start
            inside = (into > 0) & (into < left)
            if inside.any():
                self._divide(steps.over(inside), cov[..., inside], left[inside], into[inside])
                self._note(j, steps.rows[inside])
                left[inside] = into[inside]
        self._smooth(steps, cov, left)
        for node in np.flatnonzero(np.isin(self.times, steps.start)):
            self._note(int(node), steps.rows[steps.start == self.times[node]])

    def _divide(self, steps: _Steps, cov: Floats, left: Floats, into: Floats) -> None:
        """Go back to a time inside steps."""
        units = self.sweep.units(into)
        mean = units.mean * units.ahead(steps.mean / units.mean)
        cov = units.cov * units.predicted(cov / units.cov, steps.diffusion)[0]
        self._smooth(replace(steps, mean=mean), cov, left - into)

    def _note(self, j: int, rows: Rows) -> None:
        """Keep what is known about a time that has been reached."""
        e = self.sweep.block
        here = slice(j * e, (j + 1) * e)
        self.cross[:, here][..., rows] = self.cov[:, :e][..., rows]
        known = self.cross[:e][..., rows]
        self.means[j][..., rows] = self.mean[:e][..., rows]
        self.covs[here][..., rows] = known
        self.covs[:, here][..., rows] = np.swapaxes(known, 0, 1)

    def _smooth(self, steps: _Steps, cov: Floats, h: Floats) -> None:
        """Go back by h to states whose filtered means and covariances are given."""
        rows, units = steps.rows, self.sweep.units(h)
        gain, rest = _gain(cov / units.cov, units, steps.diffusion)
        news = self.mean[..., rows] / units.mean - units.ahead(steps.mean / units.mean)
        self.mean[..., rows] = steps.mean + units.mean * _times(gain, news)
        known = _times(_times(gain, self.cov[..., rows] / units.cov), np.swapaxes(gain, 0, 1)) + rest
        self.cov[..., rows] = units.cov * 0.5 * (known + np.swapaxes(known, 0, 1))
        self.cross[..., rows] = units.mean * _times(gain, self.cross[..., rows] / units.mean)


def _gain(cov: Floats, units: _Units, diffusion: Floats) -> tuple[Floats, Floats]:
    """Return the weights of states after a step in those before, all scaled, and the covariance they leave.

    The latter is a sum of squares, whatever rounding did to the weights.
    """
    after, cross = units.predicted(cov, diffusion)
    root = _factor(after)
    # Solving with the transposed factor is solving with it flipped in both axes.
    flipped = np.ascontiguousarray(np.swapaxes(root, 0, 1)[::-1, ::-1])
    weights = _whiten(flipped, _whiten(root, cross)[::-1])[::-1]
    gain = np.ascontiguousarray(np.swapaxes(weights, 0, 1))
    one = np.eye(len(cov))[..., None]
    kept = one - _times(gain, units.ahead(one))
    # (1 - G A) P (1 - G A)' + G Q G', Joseph's form: P - G (A P A' + Q) G' may lose its sign.
    noise: Floats = np.asarray(np.kron(_noise(units.order), np.eye(units.block))[..., None], float)
    rest = _times(_times(kept, cov), np.swapaxes(kept, 0, 1))
    return gain, rest + _times(_times(gain, noise) * diffusion, weights)


class Filtered(Process):
    """The law of solutions found by a Gaussian filter: filtered at the end of the span, smoothed before it.

    Attributes
    ----------
    exact
        Whether a problem's derivatives at the start were exact; if not, they were fitted.
    accepted, rejected
        The numbers of steps taken, and of steps tried and not taken, per problem.
    """

    def __init__(self, end: float, sweeps: list[_Sweep], exact: NDArray[np.bool_]) -> None:
        self._end, self._sweeps, self.exact = end, sweeps, exact
        self.accepted = np.concatenate([sweep.accepted for sweep in sweeps])
        self.rejected = np.concatenate([sweep.rejected for sweep in sweeps])
        self._known: dict[float, tuple[Floats, Floats]] = {}

    def moments(self, t: float) -> tuple[Floats, Floats]:
        """Return means and variances at one time, (d, n) each."""
        if t not in self._known:
            parts = [_marginal(*self._at(sweep, np.array([t]))) for sweep in self._sweeps]
            means, variances = zip(*parts, strict=True)
            self._known[t] = np.concatenate(means, axis=-1), np.concatenate(variances, axis=-1)
        return self._known[t]

    def joint(self, times: Sequence[float]) -> tuple[Floats, Floats]:
        """Return means (n, k d), component fastest, and covariances (n, k d, k d) at k times in any order."""
        distinct, index = np.unique(np.asarray(times, float), return_inverse=True)
        parts = [_dense(*self._at(sweep, distinct), index) for sweep in self._sweeps]
        return np.concatenate([mean for mean, _ in parts]), np.concatenate([cov for _, cov in parts])

    def _at(self, sweep: _Sweep, times: Floats) -> tuple[Floats, Floats]:
        """Return means (k, e, c, n) and covariances (k e, k e, n) at increasing times."""
        if times[0] == self._end:
            return sweep.mean[None, : sweep.block], sweep.cov[: sweep.block, : sweep.block]
        with np.errstate(all="ignore"):
            return _Smoothing(sweep, times).run()


def _marginal(means: Floats, covs: Floats) -> tuple[Floats, Floats]:
    """Return means and variances of all components, (d, n) each; copies share theirs."""
    _, e, c, n = means.shape
    # Next to the start, where the variance is 0, rounding may leave it negative.
    variances = np.maximum(np.einsum("iin->in", covs), 0.0)
    return means.reshape(e * c, n), np.repeat(variances, c, axis=0)


def _dense(means: Floats, covs: Floats, index: Rows) -> tuple[Floats, Floats]:
    """Return means and covariances at indexed times, problems first and copies written out."""
    k, (_, e, c, n) = len(index), means.shape
    mean = means[index].reshape(k * e * c, n).T
    blocks = covs.reshape(len(means), e, len(means), e, n)[index][:, :, index]
    cov = np.einsum("iajbn,xy->niaxjby", blocks, np.eye(c))
    return mean, np.ascontiguousarray(cov).reshape(n, k * e * c, k * e * c)


@dataclass(frozen=True)
class _ExtendedKalman(ABC):
    """What EK0 and EK1 share."""

    order: int = 3
    rtol: float = 1e-2
    atol: float = 1e-2
    step: float | None = None
    diffusion: Literal["dynamic", "constant"] = "dynamic"

    #: Whether the Jacobian is used.
    _linearised: ClassVar[bool]

    def __post_init__(self) -> None:
        name = type(self).__name__
        whole = isinstance(self.order, int | np.integer) and not isinstance(self.order, bool)
        if not whole or not 1 <= self.order <= 6:
            raise InvalidStudy(f"{name} needs an order from 1 to 6, but {self.order!r} arrived.")
        if not (0 < self.rtol < np.inf and 0 < self.atol < np.inf):
            raise InvalidStudy(f"{name} needs positive rtol and atol, but {self.rtol} and {self.atol} arrived.")
        if self.step is not None and not 0 < self.step < np.inf:
            raise InvalidStudy(f"{name} needs a positive step, or None to adapt it, but {self.step} arrived.")
        if self.diffusion not in ("dynamic", "constant"):
            raise InvalidStudy(f"{name} needs diffusion 'dynamic' or 'constant', but {self.diffusion!r} arrived.")

    def _block(self, d: int) -> int:
        """Return how many components are correlated."""
        return d if self._linearised else 1

    def __call__(self, belief: Any, problem: InitialValueProblem) -> GaussianSolution:
        """Return the law of the solution of one problem or a batch; the belief is ignored."""
        flow = Flow(problem)
        n, size = flow.shape[1], (self.order + 1) * self._block(problem.dimension)
        with np.errstate(all="ignore"):
            start, exact = derivatives(flow, self.order)
            groups = np.array_split(np.arange(n), max(1, min(n, -(-n * size**2 // _TOGETHER))))
            sweeps = [_Sweep(self, flow, rows, start[..., rows]).run() for rows in groups]
        need_solution(problem, flow.lost, type(self).__name__)
        return GaussianSolution(problem, Filtered(problem.span[1], sweeps, exact), flow.lost)


@dataclass(frozen=True)
class EK0(_ExtendedKalman):
    """The Gaussian filter that takes the vector field as constant near the prediction (Schober et al., 2018).

    Parameters
    ----------
    order
        The number of derivatives in the state, 1 to 6; the mean converges with this order at least.
    rtol, atol
        Tolerances of the local error; a step is taken if it is below them in the mean square over components.
    step
        None adapts it. A number fixes it: the span is divided into equal steps, as few as are no longer than that.
    diffusion
        "dynamic" scales the process noise anew in every step, "constant" once for the whole solution, by maximum
        likelihood.

    Notes
    -----
    The first step is a hundredth of |x| / |x'|; a step changes by .95 error^(-1 / (order + 1)), at least by .2 and at
    most by 10. The start is exact: derivatives of the solution found by power series where the vector field is
    arithmetic and NumPy functions, by a fitted polynomial where it is not (see :func:`~.jets.derivatives`);
    ``output.process.exact`` says which. All components have the same variance at the end. The higher the order, the
    shorter the steps have to be for stability: with 5 and 6 it may fail where :class:`EK1` does not.

    The law at the end of the span is the filter's. Before it, it is the smoother's, which needs a second pass over the
    steps, made when it is first asked for.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 2.0))
    >>> law = EK0(step=0.1)(None, decay).joint(2.0)
    >>> bool(abs(law.mean[0] - np.exp(-2)) < 1e-5)
    True
    """

    _linearised = False


@dataclass(frozen=True)
class EK1(_ExtendedKalman):
    """The Gaussian filter that linearises the vector field at the prediction (Tronarp et al., 2018).

    Parameters
    ----------
    order
        The number of derivatives in the state, 1 to 6; the mean converges with this order at least.
    rtol, atol
        Tolerances of the local error; a step is taken if it is below them in the mean square over components.
    step
        None adapts it. A number fixes it: the span is divided into equal steps, as few as are no longer than that.
    diffusion
        "dynamic" scales the process noise anew in every step, "constant" once for the whole solution, by maximum
        likelihood.

    Notes
    -----
    As :class:`EK0`, with the problem's Jacobian, or central differences if it has none. Components are correlated, and
    a state has (order + 1) d entries: the cost grows with the third power of d.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 2.0))
    >>> law = EK1(step=0.1)(None, decay).joint(2.0)
    >>> bool(abs(law.mean[0] - np.exp(-2)) < 1e-5)
    True
    """

    _linearised = True
