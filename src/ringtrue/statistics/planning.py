"""How many replicates to see an error of a given size.

Three questions, asked before or after a run: how many replicates will find an error of this size (`plan`), which
errors could a run of this size have found (`detectable`), and how many replicates certify a calibrated procedure
(`plan_certificate`). The answers are closed forms or one-dimensional root searches; nothing is simulated.

The test meant is the default one, the smallest p-value of several tests of uniformity, recalibrated. It is
treated as its best member at a stricter level.

This module knows levels, powers and the information in ranks. It must not know studies, runs or verdicts.
"""

import math
from dataclasses import dataclass

from scipy import special

from ..errors import InvalidStudy
from .arguments import need_count, need_fraction, need_number
from .effects import rank_efficiency
from .roots import Bracket, narrow

__all__ = ["Certificate", "Detectable", "Plan", "detectable", "plan", "plan_certificate"]

# The default test rejects about when one of its members has p <= alpha / 2.6: the members are correlated, so four
# of them cost less than a factor four. The value reproduces the simulated requirements of the default test at
# 5 % and 80 % within 6 %, for spread factors between 0.7 and 1.4 and biases between 0.2 and 0.5.
_MULTIPLICITY = 2.6
# Chance that a calibrated procedure is certified.
_CHANCE = 0.8
_NOMINAL = 0.9


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
    functions: int

    def __str__(self) -> str:
        route = "exact u" if self.draws is None else f"{self.draws} draws per replicate"
        head = f"{self.effect} {self.size:.6g}, seen with probability {self.power:.3g} at level {self.alpha:.3g}"
        if math.isinf(self.n):
            return f"{head}: no number of replicates suffices ({route})"
        return f"{head}: {self.n} replicates ({route}, {_functions(self.functions)})"


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

    ``n`` is the largest of the other three; each is a whole number, or inf where no number suffices.
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


def plan(
    *,
    spread: float | None = None,
    bias: float | None = None,
    eta: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    draws: int | None = None,
    functions: int = 1,
) -> Plan:
    """Compute how many replicates the default test needs to find an error of a given size.

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
    functions : int
        Test functions tested together. The level is shared by Bonferroni's rule, as if only one is wrong.

    Notes
    -----
    With z ~ N(delta, s^2) and a = alpha / (2.6 functions): for bias, n = ((q(1 - a/2) + q(power)) / delta)^2 with
    normal quantiles q; for spread, n solves F(lo / s^2) + 1 - F(hi / s^2) = power, where F is the chi-squared law
    with n degrees of freedom and lo, hi its a/2 and 1 - a/2 quantiles. On ranks n is divided by their efficiency,
    which is exact for small errors only. Against simulations of the default test at 5 % and 80 % on exact u the
    answer is within 6 %, the uncertainty of the simulations. Below about 20 replicates it is an order of magnitude.

    Examples
    --------
    >>> print(plan(spread=1.25))
    spread 1.25, seen with probability 0.8 at level 0.05: 96 replicates (exact u, 1 test function)
    """
    effect, size = _the_effect(spread=spread, bias=bias, eta=eta)
    _check(power, alpha, functions)
    each = alpha / (_MULTIPLICITY * functions)
    kept_spread, kept_bias = _efficiency(draws)
    if effect == "bias":
        n = _divided(_replicates_for_bias(abs(size), each, power), kept_bias)
    else:
        s = size if effect == "spread" else size**-0.5
        n = _divided(_replicates_for_spread(s, each, power), kept_spread)
    return Plan(n, effect, size, power, alpha, draws, functions)


def detectable(
    n: int, *, draws: int | None = None, power: float = 0.8, alpha: float = 0.05, functions: int = 1
) -> Detectable:
    """Compute the smallest errors that a run of n replicates finds with the stated power.

    This is the resolution of a run: the inverse of `plan`, with its formulas and its accuracy.

    Parameters
    ----------
    n : int
        Number of replicates.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact. One draw cannot see a spread at all.
    power, alpha, functions
        As in `plan`.

    Examples
    --------
    >>> print(detectable(100))
    with probability 0.8 this run finds a spread factor above 1.24 or below 0.791, and a bias above 0.318 sd
    """
    _check(power, alpha, functions)
    need_count(1, n=n)
    each = alpha / (_MULTIPLICITY * functions)
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
    confidence: float = 0.95,
    draws: int | None = None,
) -> Certificate:
    """Compute how many replicates certify, with probability 0.8, a procedure that is perfectly calibrated.

    Certified means that the interval of each measure lies within its tolerance. The answer for each measure is
    as if it were the only one; the largest is returned, so that the chance of all three is a little lower.

    Parameters
    ----------
    spread : float
        Tolerance on the spread factor: between 1 / (1 + spread) and 1 + spread. inf asks for nothing.
    bias : float
        Tolerance on the bias, in standard deviations of the output. inf asks for nothing.
    coverage : float
        Tolerance on the coverage of the central 90 % interval. inf asks for nothing.
    confidence : float
        That of each interval.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact.

    Notes
    -----
    With b = q((1 + confidence) / 2) + q(0.9): both ends of an interval stay within the tolerance t with probability 0.8
    if n = b^2 / (2 log(1 + t)^2) for the spread and b^2 / t^2 for the bias, divided by the efficiency of ranks. For the
    coverage n = b^2 p (1 - p) / t^2 + 1 / t, where the last term is the price of an exact binomial interval; this is
    up to 8 % below the exact number. The interval of the spread also pays for an unknown kurtosis: the chance
    reached at the n given was between 0.77 and 0.82 in simulations, 0.71 at n = 294 with confidence 0.998.

    Examples
    --------
    >>> plan_certificate(spread=0.1, bias=float("inf"), coverage=float("inf"), confidence=0.9).n
    472
    """
    tolerances = {"spread": spread, "bias": bias, "coverage": coverage}
    need_number(**tolerances)
    for name, tolerance in tolerances.items():
        if not tolerance > 0:
            raise InvalidStudy(f"the tolerance on {name} must be positive (inf for none), got {tolerance}")
    need_fraction(confidence=confidence)
    # Either end may leave the tolerance, each with half of 1 - _CHANCE: hence the 0.9 quantile and not the 0.8.
    reach = (_two_sided(1 - confidence) + float(special.ndtri((1 + _CHANCE) / 2))) ** 2
    kept_spread, kept_bias = _efficiency(draws)
    needs = (
        _divided(reach / (2 * math.log1p(spread) ** 2), kept_spread),
        _divided(reach / bias**2, kept_bias),
        # One draw leaves no interval between the lowest and the highest rank.
        _divided(reach * _NOMINAL * (1 - _NOMINAL) / coverage**2 + 1 / coverage, 0.0 if draws == 1 else 1.0),
    )
    return Certificate(max(needs), *needs)


def _functions(count: int) -> str:
    return "1 test function" if count == 1 else f"{count} test functions"


def _the_effect(**asked: float | None) -> tuple[str, float]:
    given = {name: size for name, size in asked.items() if size is not None}
    if len(given) != 1:
        raise InvalidStudy(f"expected exactly one of spread, bias and eta, got {sorted(given) or 'none'}")
    need_number(**given)
    ((effect, size),) = given.items()
    if effect != "bias" and not (0 < size < math.inf and size != 1):
        raise InvalidStudy(f"{effect} must be positive, finite and not 1 (1 is calibrated), got {size}")
    if effect == "bias" and not 0 < abs(size) < math.inf:
        raise InvalidStudy(f"bias must be finite and not 0 (0 is calibrated), got {size}")
    return effect, size


def _check(power: float, alpha: float, functions: int) -> None:
    need_fraction(alpha=alpha, power=power)
    need_count(1, functions=functions)
    if alpha >= power:
        raise InvalidStudy(f"power must be larger than alpha, but power {power} and alpha {alpha} arrived.")


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
