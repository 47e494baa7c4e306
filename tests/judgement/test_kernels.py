"""check_kernel: right kernels of every sort at their level, wrong ones found, and words that are true."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

import ringtrue as rt
from benchmarks import kernels as bench
from ringtrue.judgement.kernels import KernelResult, KernelRow, KernelVerdict, _rows
from ringtrue.replicates.kernels import KernelTrial
from tests.builders import BELIEF, noisy, refusal, says

FALSE_ALARM = 1e-6
PLANE = rt.Gaussian([0.0, 0.0], np.eye(2))


def checked(kernel: Any, n: int = 400, **settings: Any) -> KernelResult:
    """Check a kernel of the model of the benchmark."""
    return rt.check_kernel(PLANE, bench.model, kernel, n=n, **{"batch": n, **settings})


@cache
def wrong() -> KernelResult:
    """Return the result of a Gibbs sampler without its prior."""
    return checked(bench.gibbs(prior=0.0))


def test_a_wrong_kernel_is_found_with_its_size() -> None:
    """Without its prior theta drifts away from 0: direction, size and interval are in the sentence."""
    result = wrong()
    assert result.verdict is KernelVerdict.WRONG_KERNEL
    assert result.pvalue < FALSE_ALARM
    says(result.sentence, r"^WRONG KERNEL \(p = 1?\S+\): after 4 rounds of 10 steps with new data, distance is ")
    says(result.sentence, r"\d\.\d\d sd too high \(\d\.\d\d-\d\.\d\d\)", "Also off: theta")
    row = min(result.rows, key=lambda row: row.adjusted)
    assert row.low < row.estimate < row.high
    with pytest.raises(rt.errors.Miscalibrated, match="WRONG KERNEL"):
        result.assert_nothing_found()


@pytest.mark.parametrize("name", bench.RIGHT)
def test_right_kernels_are_not_called_wrong(name: str) -> None:
    """None of the four, at a false-alarm rate of 1e-6 each; the sentence says what would have been seen."""
    result = checked(bench.RIGHT[name], alpha=FALSE_ALARM)
    assert result.assert_nothing_found() is result
    says(result.sentence, "^NOTHING FOUND", f"beyond {result.detectable:.2f} sd", "whether chains mix")


@pytest.mark.parametrize("name", bench.WRONG)
def test_wrong_kernels_are_found(name: str) -> None:
    """Of every sort, with four times the replicates at which the power is 0.8 or more: missed less than once in 1e3."""
    kernel, steps, n, _ = bench.WRONG[name]
    assert checked(kernel, 4 * n, steps=steps).verdict is KernelVerdict.WRONG_KERNEL


@cache
def around() -> list[tuple[KernelRow, ...]]:
    """Return the tests of 120 groups of 25 replicates of a cycle, which data say nothing to.

    It moves theta on by a twentieth of the belief's probability.
    """
    study = rt.Study(BELIEF, noisy, lambda mu0, y: y, batch=3000)
    cycle = KernelTrial(study, lambda t, y: ndtri((ndtr(t) + 0.05) % 1), steps=1, rounds=2, length=2)
    return [_rows(one, 0, 0.05) for one in bench.groups(cycle.run(3000), 25)]


def turns(test: str) -> int:
    """Count how many of these groups a test alone rejects at 5 %."""
    return sum(min(row.adjusted for row in rows if row.test == test) / 4 <= 0.05 for rows in around())


#: More than so many of 120 exact tests at 5 % reject with probability 1e-6 at most.
MOST = int(stats.binom.isf(FALSE_ALARM, 120, 0.05))


@pytest.mark.slow
def test_kernels_that_are_not_reversible_keep_the_level() -> None:
    """A cycle leaves its law alone, and nearly all of its moves go the same way: the tests by default are exact."""
    assert turns("moved") <= MOST
    assert turns("renewed") <= MOST


@pytest.mark.slow
def test_tests_of_reversible_kernels_would_not_keep_it() -> None:
    """The broken twin: pairs and ranks are for kernels that are declared reversible."""
    assert turns("paired") > MOST
    assert turns("ranks") > MOST


def test_reversible_kernels_pass_all_tests() -> None:
    """Metropolis, with its four tests, at a false-alarm rate of 1e-6."""
    result = checked(bench.RIGHT["Metropolis"], reversible=True, alpha=FALSE_ALARM)
    assert {row.test for row in result.rows} == {"moved", "renewed", "paired", "ranks"}
    assert result.verdict is KernelVerdict.NOTHING_FOUND


@pytest.mark.slow
def test_a_gibbs_sampler_in_a_fixed_order_is_not_reversible() -> None:
    """It is right, and fails the ranks: P(rank 0) is 0.1836 in chains of five steps, and the sentence says why.

    Five standard errors of 60 000 ranks: false alarm 6e-7; the uniform 1/6 is eleven away.
    """
    whole = bench.moved(bench.RIGHT["Gibbs, fixed order"], 60_000, steps=1, length=5)
    assert whole.ranks is not None
    share = float(np.mean(whole.ranks[:, 0] == 0))
    assert abs(share - 0.1836) < 5 * np.sqrt(0.1836 * 0.8164 / 60_000)
    result = checked(bench.RIGHT["Gibbs, fixed order"], 20_000, batch=20_000, steps=2, reversible=True, alpha=1e-4)
    says(result.sentence, "^WRONG KERNEL", "Only tests for reversible kernels found this", "leave out reversible=True")


def test_a_kernel_that_does_nothing_is_not_passed() -> None:
    """It leaves every posterior alone; nor is one that hardly moves."""
    for kernel, said in ((lambda t, y: t, "unchanged in 100 %"), (lambda t, y: t + 1e-5, "correlation above 0.99")):
        result = rt.check_kernel(BELIEF, noisy, kernel, n=60, alpha=FALSE_ALARM)
        assert result.verdict is KernelVerdict.HARDLY_MOVES
        says(result.sentence, "^THE KERNEL HARDLY MOVES: after 10 steps", said, "passes every test")
        with pytest.raises(rt.errors.Inconclusive, match="HARDLY MOVES"):
            result.assert_nothing_found()


def test_an_entry_that_is_never_moved_is_named() -> None:
    """A Gibbs sampler that forgets the second entry is right, and says nothing of it."""

    def half(theta: Any, y: Any, rng: Any) -> Any:
        theta[:, 0] = (y - theta[:, 1]) * 0.8 + np.sqrt(0.2) * rng.normal(size=len(theta))
        return theta

    result = checked(half, alpha=FALSE_ALARM)
    assert result.correlations["theta[1]"] == pytest.approx(1.0)
    says(result.sentence, "^NOTHING FOUND", r"Of theta\[1\] nothing is known: the kernel hardly moves it")


def test_an_output_is_a_kernel() -> None:
    """Data from theta, then a draw of the output: of Bayes it leaves theta and y alone, of mirror Bayes theta only."""

    def residual(theta: float, y: float) -> float:
        return y - theta

    found = {}
    for name, sign in (("Bayes", 1), ("mirror", -1)):
        result = rt.check_kernel(BELIEF, noisy, _drawn(sign), n=200, steps=1, f=["theta", residual], alpha=FALSE_ALARM)
        found[name] = {f: min(row.pvalue for row in result.rows if row.f == f) for f in ("theta", "residual")}
    assert min(found["Bayes"].values()) > FALSE_ALARM / 8
    assert found["mirror"]["theta"] > FALSE_ALARM / 8  # weakly calibrated
    assert found["mirror"]["residual"] < FALSE_ALARM  # its residual has twice the sd


def _drawn(sign: int) -> Any:
    return lambda theta, y, rng: sign * y / 2 + np.sqrt(0.5) * rng.normal()


def test_the_functions_asked_about_may_see_the_data() -> None:
    """A posterior that is too wide lowers the log-likelihood: by 0.9 sd or more, with an error of 0.06 at n = 300."""

    def log_likelihood(theta: float, y: float) -> float:
        return -0.5 * (y - theta) ** 2

    def wide(theta: float, y: float, rng: Any) -> float:
        return float(y / 2 + 3 * rng.normal())

    result = rt.check_kernel(BELIEF, noisy, wide, n=300, steps=1, f=["theta", log_likelihood])
    rows = {(row.test, row.f, row.measure): row for row in result.rows}
    assert rows["moved", "log_likelihood", "location"].high < 0
    assert rows["moved", "theta", "spread"].low > 1


def test_heavy_tails_do_no_harm() -> None:
    """Scores of ranks: the same kernel on another scale has the same p-values."""
    plain = rt.check_kernel(BELIEF, noisy, lambda t, y, rng: y / 2 + rng.normal(), n=50, f=lambda t: t)
    wild = rt.check_kernel(BELIEF, noisy, lambda t, y, rng: y / 2 + rng.normal(), n=50, f=lambda t: np.sinh(9 * t))
    assert [row.pvalue for row in plain.rows] == [row.pvalue for row in wild.rows]


def test_a_result_prints_and_is_plain_data() -> None:
    """The sentence comes first, then a table; there is no bool and no order of parts."""
    result = wrong()
    assert str(result).startswith(result.sentence)
    says(str(result), "simultaneous over all rows", "n = 400, steps = 10, rounds = 4, seed = 0", "unchanged in 0 %")
    assert result.to_dict()["verdict"] == "WRONG_KERNEL"
    assert result.to_dict()["rows"][0]["test"] == "moved"
    assert repr(result).startswith("KernelResult(WRONG_KERNEL, p = ")
    assert result._repr_html_().startswith("<p><strong>WRONG KERNEL")
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(result)
    with pytest.raises(TypeError, match="not iterable"):
        list(result)


def test_settings_are_refused_with_a_reason() -> None:
    """What was expected, and what arrived."""
    kernel = bench.gibbs()
    says(refusal(lambda: checked(kernel, 1)), "n must be a whole number of at least 2", "1 arrived")
    says(refusal(lambda: checked(kernel, 9, steps=0)), "steps must be a whole number of at least 1")
    says(refusal(lambda: checked(kernel, 9, reversible=1)), "reversible must be True or False")
    says(refusal(lambda: checked(kernel, 9, alpha=2)), "alpha must be")
    says(refusal(lambda: rt.check_kernel(PLANE, bench.model, 3, n=9)), "the kernel must be a function", "int arrived")
    says(refusal(lambda: checked(kernel, 9, f=rt.BestOf([rt.identity]))), "no choice")


def test_batches_and_singles_find_the_same() -> None:
    """A kernel written for one theta, and for many, are both found wrong."""

    def single(theta: float, y: float, rng: Any) -> float:
        return float(y / 2 + 2 * rng.normal())

    def several(theta: Any, y: Any, rng: Any) -> Any:
        return y / 2 + 2 * rng.normal(size=len(y))

    for kernel, batch in ((single, None), (several, 100)):
        result = rt.check_kernel(BELIEF, noisy, kernel, n=200, steps=2, batch=batch)
        assert result.pvalue < 1e-4
