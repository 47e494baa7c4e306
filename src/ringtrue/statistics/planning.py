"""How many replicates to see an error of a given size.

Three questions, asked before or after a run: how many replicates will find an error of this size (`plan`), which
errors could a run of this size have found (`detectable`), and how many replicates certify a calibrated procedure
(`plan_certificate`). The answers are closed forms or one-dimensional root searches; only
the length of a run that goes on until it is decided is simulated.

The test meant is that of ``check``: for every parameter the smallest p-value of several tests of uniformity,
recalibrated, at that parameter's share of alpha. It is treated as its best member at a stricter level.

This module knows levels, powers and the information in ranks. It must not know studies, runs or verdicts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from scipy import special

from ..errors import InvalidStudy
from .arguments import need_count, need_fraction, need_number
from .effects import rank_efficiency
from .roots import Bracket, narrow
from .sequential import Expected, expected_n

__all__ = ["Certificate", "Detectable", "Expected", "Plan", "detectable", "plan", "plan_certificate"]

# The default test rejects about when one of its members has p <= alpha / 2.6: the members are correlated, so four
# of them cost less than a factor four. The value reproduces the simulated requirements of the default test at
# 5 % and 80 % within 5 % or three replicates, for spread factors between 0.7 and 1.4 and biases between 0.2 and 0.5.
_MULTIPLICITY = 2.6
#: Of alpha, what the strong level has in `check` beside the auto level, whose tests of the joint law need two
#: parameters or more; together they have four fifths, and the rest is for the weak level, whose tests see less.
STRONG_SHARE, AUTO_SHARE, WEAK_SHARE = 0.45, 0.35, 0.2
#: Of that, what the user's parameters share; the rest is for what the default family adds to them. At one parameter an
#: equal share would cost every error of it 11 % more replicates; a tenth costs what only the added ones see 30 %.
OWN_SHARE = 0.9
#: Of that, on draws, what the joint test of all functions has; it cannot reject below 1/1000, Bonferroni's rule can.
JOINT_SHARE = 0.9
# Chance that a calibrated procedure is certified.
_CHANCE = 0.8
#: Sizes of errors whose squares are still numbers.
_SIZES = (1e-100, 1e100)
_NOMINAL = 0.9
#: What is planned: a check with all its levels and functions, or the default test of one function alone.
Of = Literal["check", "test"]


@dataclass(frozen=True)
class Plan:
    """The number of replicates that finds an error, and the question it answers.

    ``n`` is a whole number, or inf where no number of replicates suffices.
    """

    n: float
    effect: str
    size: float
    power: float
    alpha: float
    draws: int | None
    parameters: int

    def __str__(self) -> str:
        route = "exact u" if self.draws is None else f"{self.draws} draws per replicate"
        head = f"{self.effect} {self.size:.6g}, seen with probability {self.power:.3g} at level {self.alpha:.3g}"
        if math.isinf(self.n):
            return f"{head}: no number of replicates suffices ({route})"
        return f"{head}: {self.n} replicates ({route}, {_parameters(self.parameters)})"


@dataclass(frozen=True)
class Detectable:
    """The smallest errors that a run finds with the stated power.

    ``over_confident`` is a spread factor above 1 (inf: none can be found), ``under_confident`` one below 1 (0: none
    can be found), ``bias`` is in standard deviations of the output.
    """

    over_confident: float
    under_confident: float
    bias: float
    power: float

    def __str__(self) -> str:
        ends = [
            f"{word} {size:.3g}"
            for word, size in (("above", self.over_confident), ("below", self.under_confident))
            if 0 < size < math.inf
        ]
        spread = f"a spread factor {' or '.join(ends)}, and " if ends else ""
        nothing = "" if ends else ", but no error of spread"
        return f"with probability {self.power:.3g} this run finds {spread}a bias above {self.bias:.3g} sd{nothing}"


@dataclass(frozen=True)
class Certificate:
    """The number of replicates that certifies a calibrated procedure, and what each measure asks for.

    The other three are what each measure would ask for alone; each is a whole number, or inf where no number suffices.
    """

    n: float
    spread: float
    bias: float
    coverage: float

    def __str__(self) -> str:
        parts = {"spread": self.spread, "bias": self.bias, "coverage": self.coverage}
        if math.isinf(self.n):
            without = " or ".join(name for name, need in parts.items() if math.isinf(need))
            return f"no number of replicates certifies the {without} of a calibrated procedure; return more draws"
        asked = ", ".join(f"{name} {need:.0f}" for name, need in parts.items() if need)
        return f"{self.n:.0f} replicates certify a calibrated procedure with probability {_CHANCE:g} (alone: {asked})"


#: Evidence that may be looked at all the time needs so many times the replicates of a test for one n, for the same
#: chance of seeing an error: 1.6 to 1.8 for spreads, biases and shapes (benchmarks/sequential.py).
OVER_TIME = 1.8


def plan(
    *,
    spread: float | None = None,
    bias: float | None = None,
    eta: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    draws: int | None = None,
    parameters: int = 1,
    of: Of = "check",
    until: Literal["decided"] | None = None,
) -> Plan | Expected:
    """Compute how many replicates find an error of a given size of one parameter.

    Parameters
    ----------
    spread : float, optional
        Factor by which the reported standard deviation should be multiplied: 1.25 is over-confident, 0.8
        under-confident. Give exactly one of `spread`, `bias` and `eta`.
    bias : float, optional
        Bias in standard deviations of the output.
    eta : float, optional
        Reported variance over correct variance; the same as ``spread = eta ** -0.5``.
    power : float
        Probability with which the error should be found.
    alpha : float
        Level of the test.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact.
    parameters : int
        Parameters asked about. The level is shared by Bonferroni's rule, as if only one is wrong.
    of : {"check", "test"}
        "check" is what ``ringtrue.check`` does with its default test functions, levels and shares; "test" is the
        default test of uniformity alone, of that many functions.
    until : {"decided"}, optional
        How many replicates a run takes on average that goes on until it is decided, with this error, or without one if
        none is given; simulated, at the default tolerances. ``power`` and ``of`` do not matter then.

    Notes
    -----
    With z ~ N(delta, s^2) and a = alpha share / (2.6 parameters), where share is 0.8 x 0.9 = 0.72 of a check of one
    parameter (0.65 with draws), 0.45 x 0.9 = 0.41 of one of several (0.36), whose joint law is tested too, and 1 of a
    test: for bias, n = ((q(1 - a/2) + q(power)) / delta)^2 with
    normal quantiles q; for spread, n solves F(lo / s^2) + 1 - F(hi / s^2) = power, where F is the chi-squared law
    with n degrees of freedom and lo, hi its a/2 and 1 - a/2 quantiles. On ranks n is divided by their efficiency,
    which is exact for small errors only. Against simulations of the default test at 5 % and 80 % on exact u the
    answer is within 6 %, the uncertainty of the simulations. Below about 20 replicates it is an order of magnitude.

    Examples
    --------
    >>> print(plan(spread=1.25))
    spread 1.25, seen with probability 0.8 at level 0.05: 103 replicates (exact u, 1 parameter)
    """
    if until is not None:
        return _until(until, spread, bias, eta, alpha, draws, parameters)
    effect, size = _the_effect(spread=spread, bias=bias, eta=eta)
    each = _each(power, alpha, parameters, draws, of)
    kept_spread, kept_bias = _efficiency(draws)
    if effect == "bias":
        n = _divided(_replicates_for_bias(abs(size), each, power), kept_bias)
    else:
        s = size if effect == "spread" else size**-0.5
        n = _divided(_replicates_for_spread(s, each, power), kept_spread)
    return Plan(n, effect, size, power, alpha, draws, parameters)


def _until(
    until: str,
    spread: float | None,
    bias: float | None,
    eta: float | None,
    alpha: float,
    draws: int | None,
    parameters: int,
) -> Expected:
    """Simulate runs until decided, with one error or none."""
    if until != "decided":
        raise InvalidStudy(f"until must be 'decided', but {until!r} arrived.")
    factor, shift = 1.0, 0.0
    if (spread, bias, eta) != (None, None, None):
        effect, size = _the_effect(spread=spread, bias=bias, eta=eta)
        if effect == "bias":
            shift = size
        else:
            factor = size if effect == "spread" else size**-0.5
    strong = STRONG_SHARE + (AUTO_SHARE if parameters == 1 else 0.0)
    share = strong * OWN_SHARE / parameters
    return expected_n(share=share, spread=factor, bias=shift, draws=draws, parameters=parameters, alpha=alpha)


def detectable(
    n: int,
    *,
    draws: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    parameters: int = 1,
    of: Of = "check",
) -> Detectable:
    """Compute the smallest errors that a run of n replicates finds with the stated power.

    This is the resolution of a run: the inverse of `plan`, with its formulas and its accuracy.

    Parameters
    ----------
    n : int
        Number of replicates.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact. One draw cannot see a spread at all.
    power, alpha, parameters, of
        As in `plan`.

    Examples
    --------
    >>> print(detectable(100))
    with probability 0.8 this run finds a spread factor above 1.25 or below 0.784, and a bias above 0.33 sd
    """
    each = _each(power, alpha, parameters, draws, of)
    need_count(1, n=n)
    kept_spread, kept_bias = _efficiency(draws)
    bias = (_two_sided(each) + float(special.ndtri(power))) / math.sqrt(n * kept_bias)
    # Ranks count as fewer exact u; a chi-squared law allows a fraction of a degree of freedom.
    over = _detectable_spread(n * kept_spread, each, power, 1.0)
    under = _detectable_spread(n * kept_spread, each, power, -1.0)
    return Detectable(over, under, bias, power)


def plan_certificate(
    *,
    spread: float = 0.1,
    bias: float = 0.1,
    coverage: float = 0.05,
    alpha: float = 0.05,
    draws: int | None = None,
    parameters: int = 1,
) -> Certificate:
    """Compute how many replicates certify, with probability 0.8, a procedure that is perfectly calibrated.

    Certified means that spread, bias and coverage of every parameter are shown to lie within tolerance, as ``check``
    does it: each limit is tested at alpha.

    Parameters
    ----------
    spread : float
        Tolerance on the spread factor: between 1 / (1 + spread) and 1 + spread. inf asks for nothing.
    bias : float
        Tolerance on the bias, in standard deviations of the output. inf asks for nothing.
    coverage : float
        Tolerance on the coverage of the central 90 % interval. inf asks for nothing.
    alpha : float
        The chance of certifying an error that lies at a limit.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact.
    parameters : int
        Parameters asked about, taken as independent.

    Notes
    -----
    A size with standard error e is certified within t with probability 2 F(t / e - q(1 - alpha)) - 1, where F is the
    normal law and q its quantile: e is 1 / sqrt(2 n) for log spread and 1 / sqrt(n) for bias, n times the efficiency of
    ranks, and 0.3 / sqrt(n - 1 / t) for the coverage, where 1 / t is the price of an exact binomial interval. The
    answer makes the product over sizes and parameters 0.8; the three are close to independent. Standard errors are
    estimated, which costs a little: of 800 runs of ``check`` at the answer for one parameter 79 % were certified.

    Examples
    --------
    >>> plan_certificate().n, plan_certificate(parameters=10, draws=99).n
    (884, 1601)
    """
    tolerances = {"spread": spread, "bias": bias, "coverage": coverage}
    need_number(**tolerances)
    for name, tolerance in tolerances.items():
        if not tolerance > 0:
            raise InvalidStudy(f"the tolerance on {name} must be positive (inf for none), got {tolerance}")
    need_fraction(alpha=alpha)
    need_count(1, parameters=parameters)
    kept_spread, kept_bias = _efficiency(draws)
    asked = (
        (math.log1p(spread) * math.sqrt(2 * kept_spread), 0.0),
        (bias * math.sqrt(kept_bias), 0.0),
        # One draw leaves no interval between the lowest and the highest rank.
        (0.0 if draws == 1 else coverage / math.sqrt(_NOMINAL * (1 - _NOMINAL)), 1 / coverage),
    )
    alone = [_replicates_for_certificate([one], alpha, parameters) for one in asked]
    return Certificate(_replicates_for_certificate(asked, alpha, parameters), *alone)


def _replicates_for_certificate(asked: Sequence[tuple[float, float]], alpha: float, parameters: int) -> float:
    """Return the n that certifies all that is asked, each a tolerance at n = 1 and a price, with probability 0.8."""
    asked = [one for one in asked if one[0] < math.inf]
    if not asked:
        return 0
    if min(size for size, _ in asked) <= 0:
        return math.inf
    wanted, limit = math.log(_CHANCE) / parameters, -float(special.ndtri(alpha))

    def surplus(log_n: float) -> float:
        reach = [size * math.sqrt(max(math.exp(log_n) - price, 0.0)) - limit for size, price in asked]
        # Both ends must stay inside: 2 F - 1, which is negative where the interval alone is wider than the tolerance.
        chances = [1 - 2 * float(special.ndtr(-one)) for one in reach]
        return sum(math.log(max(chance, 1e-300)) for chance in chances) - wanted

    return math.ceil(math.exp(narrow(surplus, 0.0, 80.0, done=_narrow_enough).high) * (1 - 1e-9))


def _parameters(count: int) -> str:
    return "1 parameter" if count == 1 else f"{count} parameters"


def _the_effect(**asked: float | None) -> tuple[str, float]:
    given = {name: size for name, size in asked.items() if size is not None}
    if len(given) != 1:
        raise InvalidStudy(f"expected exactly one of spread, bias and eta, got {sorted(given) or 'none'}")
    need_number(**given)
    ((effect, size),) = ((name, float(size)) for name, size in given.items())
    low, high = _SIZES
    if effect != "bias" and not (low <= size <= high and size != 1):
        raise InvalidStudy(
            f"{effect} must be positive, from {low:g} to {high:g}, and not 1 (1 is calibrated), got {size}"
        )
    if effect == "bias" and not low <= abs(size) <= high:
        raise InvalidStudy(f"bias must be from {low:g} to {high:g} in size and not 0 (0 is calibrated), got {size}")
    return effect, size


def _each(power: float, alpha: float, parameters: int, draws: int | None, of: Of) -> float:
    """Return the level at which the best member of the default test of one parameter rejects."""
    need_fraction(alpha=alpha, power=power)
    need_count(1, parameters=parameters)
    if alpha >= power:
        raise InvalidStudy(f"power must be larger than alpha, but power {power} and alpha {alpha} arrived.")
    if of not in get_args(Of):
        raise InvalidStudy(f"of must be one of {list(get_args(Of))}, but {of!r} arrived.")
    strong = STRONG_SHARE + (AUTO_SHARE if parameters == 1 else 0.0)
    share = 1.0 if of == "test" else strong * OWN_SHARE * (1.0 if draws is None else JOINT_SHARE)
    return alpha * share / (_MULTIPLICITY * parameters)


def _efficiency(draws: int | None) -> tuple[float, float]:
    """What ranks keep of the information about spread and bias."""
    if draws is None:
        return 1.0, 1.0
    kept = rank_efficiency(draws)
    return kept.spread, kept.bias


def _divided(n: float, kept: float) -> float:
    """Whole replicates when each carries a fraction of the information."""
    # A tolerance of inf asks for nothing, also of ranks that keep nothing, where 0 / 0 would be an error.
    if n == 0:
        return 0
    return math.ceil(n / kept) if kept > 0 else math.inf


def _two_sided(alpha: float) -> float:
    return -float(special.ndtri(alpha / 2))


def _replicates_for_bias(delta: float, alpha: float, power: float) -> float:
    return ((_two_sided(alpha) + float(special.ndtri(power))) / delta) ** 2


def _power_against_spread(n: float, s: float, alpha: float) -> float:
    """Power of the two-sided chi-squared test on the sum of z^2."""
    # chdtri takes the upper tail: its 1 - alpha / 2 point is the lower quantile.
    low, high = special.chdtri(n, 1 - alpha / 2), special.chdtri(n, alpha / 2)
    return float(special.chdtr(n, low / s**2) + special.chdtrc(n, high / s**2))


def _replicates_for_spread(s: float, alpha: float, power: float) -> float:
    # The log of a sample's sd has variance 1 / (2 n): the same formula as for the bias, halved.
    quick = 0.5 * ((_two_sided(alpha) + float(special.ndtri(power))) / math.log(s)) ** 2
    # The exact answer differs by a relative O(log s) = O(1 / sqrt(n)); here it no longer matters.
    if quick > 1e8:
        return quick
    # One replicate may be enough for a gross error, and then there is no change of sign to look for.
    if _power_against_spread(1.0, s, alpha) >= power:
        return 1.0

    def shortfall(log_n: float) -> float:
        return _power_against_spread(math.exp(log_n), s, alpha) - power

    return math.exp(narrow(shortfall, 0.0, math.log(100 * quick + 1000), done=_narrow_enough).high)


def _detectable_spread(n: float, alpha: float, power: float, sign: float) -> float:
    """The spread factor exp(sign * x), x > 0, found with the given power by n exact u."""
    # exp(200) squared is 5e173, still a float; what is missed even there is called undetectable.
    furthest = 200.0

    def shortfall(x: float) -> float:
        return _power_against_spread(n, math.exp(sign * x), alpha) - power

    if n == 0 or shortfall(furthest) < 0:
        return math.inf if sign > 0 else 0.0
    return math.exp(sign * narrow(shortfall, 0.0, furthest, done=_narrow_enough).high)


def _narrow_enough(at: Bracket) -> bool:
    return at.high - at.low <= 1e-11 * (1 + at.low)
