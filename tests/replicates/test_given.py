"""Arrays of draws from anybody's sampler: what is read, what is refused, what must not change the answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from tests.builders import refusal, says

# Every p-value holds its level, so calibrated draws are called miscalibrated with chance at most ALPHA.
ALPHA = 1e-6
N, M = 60, 19


def _data(n: int = N, draws: int = M, *, scale: float = 1.0, seed: int = 1) -> tuple[Any, Any, Any]:
    """Return (theta, draws, y) with theta ~ N(y, 1) and draws ~ N(y, scale^2)."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y + rng.normal(size=n), y[:, None] + scale * rng.normal(size=(n, draws)), y


def test_ranks_are_the_numbers_of_draws_below() -> None:
    """Draws placed half a gap from the truths give the ranks they were placed for."""
    wanted = np.arange(10)
    draws = np.arange(9.0)[None, :].repeat(10, axis=0)
    result = rt.check_draws(wanted - 0.5, draws, f=rt.identity, iid=True)
    np.testing.assert_array_equal(result.replicates.rank[:, 0], wanted)
    assert result.tests[0].route == "ranks of 9"


@pytest.mark.parametrize("part", [None, "abc", np.array(["a", "b"]), 3.0, [[1.0], [2.0, 3.0]], {"a": np.ones(3)}])
def test_parts_of_a_list_must_be_arrays_of_numbers(part: Any) -> None:
    """A list of draws with something else inside is refused, and what it is and where is said."""
    theta, draws, _ = _data(5)
    parts = [draws[0], draws[1, :7], part, draws[3], draws[4]]
    says(refusal(lambda: rt.check_draws(theta, parts)), r"draws\[2\]|number 2", "array", "numbers|shape")


@pytest.mark.slow
@pytest.mark.parametrize("draws", [1, 2, 9, 99])
@pytest.mark.parametrize("seed", range(3))
def test_calibrated_draws_are_not_called_miscalibrated(draws: int, seed: int) -> None:
    """Draws of the exact posterior pass at any number of draws (false alarm 1e-6 by the level of the tests)."""
    theta, values, _ = _data(1500, draws, seed=seed)
    assert rt.check_draws(theta, values, alpha=ALPHA).verdict is not rt.Verdict.MISCALIBRATED


@pytest.mark.parametrize("draws", [2, 9, 99])
def test_over_confident_draws_are_found(draws: int) -> None:
    """The broken twin, with 0.3 times the sd, is found.

    Two draws see least: the share of truths between them falls from 1/3 to 0.13, at n = 1500 more than ten standard
    errors beyond what p = 1e-6 needs.
    """
    theta, values, _ = _data(1500, draws, scale=0.3)
    assert rt.check_draws(theta, values, alpha=ALPHA).verdict is rt.Verdict.MISCALIBRATED


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("draws", [1, 2])
def test_tiny_samples_are_inconclusive(n: int, draws: int) -> None:
    """A handful of replicates or draws never settles anything, and never crashes."""
    theta, values, _ = _data(n, draws)
    result = rt.check_draws(theta, values)
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert str(result)
    assert result.to_dict()


# Arrays of every make.


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.tolist(),
        np.asfortranarray,
        lambda a: a[::-1][::-1],
        lambda a: np.ma.array(a),
        lambda a: a.astype(">f8"),
        lambda a: np.array(list(a)),
    ],
    ids=["lists", "Fortran", "strides", "masked array without masks", "big endian", "stacked"],
)
def test_the_make_of_an_array_changes_nothing(make: Callable[[Any], Any]) -> None:
    """Lists, memory order, strides and byte order do not change a rank."""
    theta, draws, _ = _data()
    expected = rt.check_draws(theta, draws).replicates
    found = rt.check_draws(make(theta), make(draws)).replicates
    np.testing.assert_array_equal(found.rank, expected.rank)


class _ArrayLike:
    """What xarray, torch and jax have in common."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)


def test_objects_that_are_arrays_underneath() -> None:
    """Anything with ``__array__`` is an array."""
    theta, draws, _ = _data()
    found = rt.check_draws(_ArrayLike(theta), _ArrayLike(draws)).replicates
    np.testing.assert_array_equal(found.rank, rt.check_draws(theta, draws).replicates.rank)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8, bool])
def test_narrow_dtypes(dtype: Any) -> None:
    """Small floats, integers and booleans are compared as the numbers they are, ties broken at random."""
    theta, draws, _ = _data(1500)
    as_type: Callable[[Any], Any] = lambda a: (100 + 10 * a if dtype is not bool else a > 0).astype(dtype)  # noqa: E731
    assert rt.check_draws(as_type(theta), as_type(draws), alpha=ALPHA).verdict is not rt.Verdict.MISCALIBRATED


def test_draws_stored_in_single_precision_tie_with_truths_in_double() -> None:
    """A parameter on a grid of tenths whose draws were saved as float32 ties with its truth (false alarm 1e-6).

    float32(0.1) is not 0.1: without rounding the truth to the draws' precision no truth would ever tie.
    """
    rng = np.random.default_rng(3)
    grid = np.array([0.1, 0.2, 0.3])
    theta, draws = rng.choice(grid, size=1500), rng.choice(grid, size=(1500, M)).astype(np.float32)
    result = rt.check_draws(theta, draws, f=rt.identity, alpha=ALPHA)
    assert result.verdict is not rt.Verdict.MISCALIBRATED, result.sentence


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_scales_change_no_rank(scale: float) -> None:
    """Ranks do not depend on the unit, up to the ends of the floating-point range."""
    theta, draws, _ = _data()
    found = rt.check_draws(scale * theta, scale * draws).replicates
    np.testing.assert_array_equal(found.rank, rt.check_draws(theta, draws).replicates.rank)


def test_heavy_tails() -> None:
    """Cauchy draws are ranked like any others (false alarm 1e-6)."""
    rng = np.random.default_rng(2)
    y = rng.standard_cauchy(size=1500)
    theta, draws = y + rng.standard_cauchy(1500), y[:, None] + rng.standard_cauchy((1500, M))
    assert rt.check_draws(theta, draws, alpha=ALPHA).verdict is not rt.Verdict.MISCALIBRATED


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many replicates are read at once changes no number."""
    theta, draws, _ = _data()
    whole = rt.check_draws(theta, draws).replicates
    monkeypatch.setattr("ringtrue.replicates.given._CHUNK", 7 * M)
    parts = rt.check_draws(theta, draws).replicates
    for name in ("u", "rank", "members"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_unequal_numbers_of_draws() -> None:
    """A list of arrays of different lengths ranks every truth among its own draws."""
    theta, draws, _ = _data()
    ragged = [row[: 3 + i % 10] for i, row in enumerate(draws)]
    found = rt.check_draws(theta, ragged, f=rt.identity).replicates
    expected = [int((part < one).sum()) for part, one in zip(ragged, theta, strict=True)]
    np.testing.assert_array_equal(found.rank[:, 0], expected)
    np.testing.assert_array_equal(found.draws[:, 0], [len(part) for part in ragged])


def test_unequal_numbers_of_draws_in_an_object_array() -> None:
    """Ragged draws in an object array, as pickles and h5py give them, are read like a list."""
    theta, draws, _ = _data()
    ragged = np.empty(N, object)
    ragged[:] = [row[: 3 + i % 10] for i, row in enumerate(draws)]
    found = rt.check_draws(theta, ragged, f=rt.identity).replicates
    assert set(found.draws[:, 0]) == set(range(3, 13))


def test_named_arrays() -> None:
    """Dicts of arrays are judged under their names; further draws, such as lp__, are ignored."""
    theta, draws, _ = _data()
    result = rt.check_draws({"mu": theta, "nu": theta**3}, {"mu": draws, "nu": draws**3, "lp__": draws})
    assert [row.f for row in result.levels["strong"].rows] == ["mu", "nu", "sum", "distance"]


def test_the_default_family_leaves_out_what_is_constant() -> None:
    """A default test function that cannot vary, such as the sum of theta and -theta, is left out and not refused."""
    theta, draws, _ = _data()
    result = rt.check_draws(np.c_[theta, -theta], np.stack([draws, -draws], -1))
    assert [row.f for row in result.levels["strong"].rows] == ["theta[0]", "theta[1]", "distance"]


# What is refused.


def _shapes() -> list[tuple[str, Callable[[Any, Any], tuple[Any, Any]], tuple[str, ...]]]:
    return [
        ("draws first", lambda t, d: (t, d.T), (r"\(60, M\)", r"\(19, 60\)", "swapaxes")),
        ("draws first, 2-d", lambda t, d: (np.c_[t, t], np.stack([d, d], -1).swapaxes(0, 1)), ("swapaxes",)),
        ("draws last", lambda t, d: (np.c_[t, t], np.stack([d, d], 1)), (r"\(60, 2, 19\)", "swapaxes|moveaxis")),
        ("one axis more", lambda t, d: (t, d[..., None]), (r"\(60, 19, 1\)", r"\[\.\.\., 0\]|squeeze|reshape")),
        ("one axis less", lambda t, d: (t[:, None], d), (r"\(60, 19\)", r"\[\.\.\., None\]|squeeze|reshape|ravel")),
        ("chains", lambda t, d: (t, np.stack([d, d], 1)), (r"\(60, 2, 19\)", "axis 1 is the chain", "chains=2")),
        ("other d", lambda t, d: (np.c_[t, t], np.stack([d, d, d], -1)), (r"M, 2\)", r"\(60, 19, 3\)")),
        ("swapped", lambda t, d: (d, t), ("theta", r"\(60, 19\)", r"\(60,\)", "in each other's place")),
        ("no draws", lambda t, d: (t, d[:, :0]), (r"\(60, M\)", r"\(60, 0\)")),
        ("no replicates", lambda t, d: (t[:0], d[:0]), ("at least one replicate", "0")),
        ("other n", lambda t, d: (t[:-1], d), (r"\(59, M\)", r"\(60, 19\)")),
    ]


@pytest.mark.parametrize(("change", "patterns"), [row[1:] for row in _shapes()], ids=[row[0] for row in _shapes()])
def test_shapes_that_do_not_fit(change: Callable[[Any, Any], Any], patterns: tuple[str, ...]) -> None:
    """A shape that does not fit is named beside the one wanted, with a hint where the mistake is a known one."""
    theta, draws = change(*_data()[:2])
    says(refusal(lambda: rt.check_draws(theta, draws)), *patterns)


@pytest.mark.parametrize(
    ("theta", "draws", "patterns"),
    [
        (None, [[1.0]], ("theta must be an array of numbers", "NoneType")),
        ("abc", [[1.0]], ("theta must be an array of numbers", "str")),
        (1.0, [[1.0]], ("theta must be an array of numbers", "float")),
        ([1.0], None, ("draws must be an array of numbers", "NoneType")),
        ([1j], [[1.0]], ("theta must be an array of numbers", "complex")),
        ({"a": [1.0]}, [[1.0]], ("both be dicts", "same names", "arrays")),
        ({"a": [1.0], "b": [2.0]}, {"a": [[1.0]]}, ("'b'", "missing|same names")),
        ({}, {}, ("at least one",)),
        ({"a": [1.0], "b": [2.0]}, {"a": [[1.0]], "b": [[1.0, 2.0]]}, ("draws", "1", "2", "same number|equally many")),
    ],
)
def test_what_is_no_array_of_numbers(theta: Any, draws: Any, patterns: tuple[str, ...]) -> None:
    """Anything but arrays of numbers, or dicts of them, is refused by name."""
    says(refusal(lambda: rt.check_draws(theta, draws)), *patterns)


@pytest.mark.parametrize(
    ("ragged", "patterns"),
    [
        (lambda d: [row[: i % 10] for i, row in enumerate(d)], (r"'M',\)", "number 0", r"\(0,\)")),
        (lambda d: [row[: 3 + i % 10] for i, row in enumerate(d)][:-1], ("59 came", "60 replicates")),
        (lambda d: [np.c_[row, row][: 3 + i % 10] for i, row in enumerate(d)], ("number 0", r"\(3, 2\)")),
    ],
    ids=["empty", "too few", "wrong shape"],
)
def test_ragged_draws_that_do_not_fit(ragged: Callable[[Any], Any], patterns: tuple[str, ...]) -> None:
    """In a list of arrays, the first that does not fit is named by its number."""
    theta, draws, _ = _data()
    says(refusal(lambda: rt.check_draws(theta, ragged(draws))), *patterns)


@pytest.mark.parametrize("where", ["theta", "draws", "ragged draws"])
@pytest.mark.parametrize("f", [None, rt.identity], ids=["default family", "identity"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_replicate_with_nan_is_named(where: str, f: Any, value: float) -> None:
    """A nan is reported for the replicate that has it, with nothing advised that check_draws does not take."""
    theta, draws, _ = _data()
    (theta if where == "theta" else draws)[17, ...] = value
    given = [row[: 3 + i % 10] for i, row in enumerate(draws)] if where == "ragged draws" else draws
    message = refusal(lambda: rt.check_draws(theta, given, f=f), rt.errors.RingtrueError)
    says(message, r"\b17\b", "finite", "nan|inf", "on_failure")
    assert "replay" not in message


def test_masked_draws_are_missing_draws() -> None:
    """A mask is not silently dropped: masked values are refused like nan."""
    theta, draws, _ = _data()
    masked = np.ma.array(draws, mask=np.zeros_like(draws, bool))
    masked[5, 3] = np.ma.masked
    says(refusal(lambda: rt.check_draws(theta, masked, f=rt.identity), rt.errors.RingtrueError), "mask|nan")


# Test functions and data.


def test_constant_test_functions_are_refused() -> None:
    """An f without variation over truths and draws has a uniform u whatever the draws are: refused."""
    theta, draws, _ = _data()
    says(refusal(lambda: rt.check_draws(theta, draws, f={"flat": lambda t: 2.0})), "'flat'", "must vary", "2")


def test_constant_columns_are_said_to_be_constant() -> None:
    """A fixed entry of theta whose draws are fixed too is left out or refused, not certified."""
    theta, draws, _ = _data()
    both = np.stack([draws, np.ones_like(draws)], -1)
    try:
        result = rt.check_draws(np.c_[theta, np.ones(N)], both)
    except rt.errors.InvalidStudy as error:
        says(str(error), r"theta\[1\]", "vary|constant")
        return
    assert "theta[1]" not in {row.f for row in result.tests}


@pytest.mark.parametrize(
    ("f", "patterns"),
    [
        (lambda t: 1 / 0, ("ZeroDivisionError",)),
        (lambda t: [t, t], ("one real number", r"list of shape \(2")),
        (lambda t, y: t, ("see the data", "no y", "pass y=")),
        (rt.LogDensity(), ("log density", "draws have none")),
        (rt.Coordinate(index=(5,)), (r"theta\[5\]", "shape|axis|index|ind")),
    ],
    ids=["raises", "array", "sees data", "log density", "no such entry"],
)
def test_test_functions_that_cannot_be(f: Any, patterns: tuple[str, ...]) -> None:
    """A test function that arrays of draws cannot answer is refused, without advice that does not apply."""
    theta, draws, _ = _data()
    message = refusal(
        lambda: rt.check_draws(np.c_[theta, theta], np.stack([draws, draws], -1), f=f), rt.errors.RingtrueError
    )
    says(message, *patterns)
    assert "on_failure" not in message


def _log_lik(theta: Any, y: Any) -> Any:
    return -((theta - y) ** 2)


class _Labelled:
    """A sequence with labels in the manner of a pandas Series: [] is by label, iteration is by position."""

    def __init__(self, values: Any, labels: Any) -> None:
        self.values, self.labels = list(values), list(labels)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _Labelled(self.values[key], self.labels[key])
        return self.values[self.labels.index(key)]


@pytest.mark.parametrize(
    "make", [list, tuple, lambda y: _Labelled(y, range(N)[::-1]), lambda y: _Labelled(y, map(str, range(N)))]
)
@pytest.mark.parametrize("ragged", [False, True])
def test_data_belong_to_replicates_by_position(make: Callable[[Any], Any], ragged: bool) -> None:
    """Datasets go to replicates in their order, also when their container counts by labels, as pandas does."""
    theta, draws, y = _data()
    given = [row[: 3 + i % 10] for i, row in enumerate(draws)] if ragged else draws
    expected = rt.check_draws(theta, given, y=y, f=_log_lik).replicates
    found = rt.check_draws(theta, given, y=make(y), f=_log_lik).replicates
    np.testing.assert_array_equal(found.rank, expected.rank)


def test_exact_level_of_arrays() -> None:
    """With y, an f of theta and data tests exactness: the posterior passes, the belief's draws do not."""
    theta, draws, y = _data(1500)
    prior = np.sqrt(2) * np.random.default_rng(9).normal(size=draws.shape)
    good, bad = (rt.check_draws(theta, values, y=y, f=_log_lik).levels["exact"].pvalue for values in (draws, prior))
    # False alarm 1e-6; the broken twin ignores the data, which moves the mean of u by 0.1, thirteen standard errors.
    assert bad < ALPHA < good


@pytest.mark.parametrize(
    ("y", "patterns"),
    [
        (lambda y: y[:-1], ("one dataset per replicate", "59", "60")),
        (lambda y: 3.0, ("one dataset per replicate", "float|number")),
        (lambda y: {"y": y}, ("one dataset per replicate", "dict")),
    ],
)
def test_data_that_do_not_fit(y: Callable[[Any], Any], patterns: tuple[str, ...]) -> None:
    """y is one dataset per replicate; anything else is refused with what came."""
    theta, draws, data = _data()
    says(refusal(lambda: rt.check_draws(theta, draws, y=y(data), f=_log_lik)), *patterns)


# Belief, chains, settings.


def test_without_a_belief_the_weak_level_is_not_tested_and_said_so() -> None:
    """A note says what was not tested and how to have it tested."""
    theta, draws, _ = _data()
    assert "pass belief=" in str(rt.check_draws(theta, draws))
    assert "weak" not in rt.check_draws(theta, draws).levels
    assert "weak" in rt.check_draws(theta, draws, belief=rt.Normal(0, np.sqrt(2))).levels


def test_weak_level_broken_twin() -> None:
    """Draws that average to N(0, 2) are told from the belief N(0, 1/4), and not from N(0, 2) (false alarm 1e-6).

    The Kolmogorov distance is 0.32, at n = 1500 five times what p = 1e-6 needs.
    """
    theta, draws, _ = _data(1500)
    wrong, right = (
        rt.check_draws(theta, draws, belief=rt.Normal(0, sd)).levels["weak"].pvalue for sd in (0.5, np.sqrt(2))
    )
    assert wrong < ALPHA < right


@pytest.mark.parametrize(
    "belief", [rt.Normal(np.zeros(2), 1), rt.Gaussian([0.0, 0.0], np.eye(2)), {"mu": rt.Normal(0, 1)}]
)
def test_a_belief_of_another_shape_is_refused(belief: Any) -> None:
    """A belief whose draws are not like theta is refused by name."""
    theta, draws, _ = _data()
    says(refusal(lambda: rt.check_draws(theta, draws, belief=belief)), "belief", "theta", "shape|dict|match")


def test_a_belief_that_cannot_be_sampled_is_refused() -> None:
    """A belief that has neither law nor draws is refused as in a study."""

    class _Silent:
        sample = None
        marginal = None

    theta, draws, _ = _data()
    says(refusal(lambda: rt.check_draws(theta, draws, belief=_Silent())), "belief", "draw", "_Silent")


def _chains(n: int, length: int, correlation: float) -> tuple[Any, Any]:
    """Return truths N(y, 1) and stationary AR(1) chains of the same law."""
    rng = np.random.default_rng(4)
    chain = rng.normal(size=(length, n))
    for i in range(1, length):
        chain[i] = correlation * chain[i - 1] + np.sqrt(1 - correlation**2) * chain[i]
    y = rng.normal(size=n)
    return y + rng.normal(size=n), y[:, None] + chain.T


def test_draws_that_follow_each_other_stop_the_call_unless_something_is_said() -> None:
    """Of a chain without a word the call says what to pass; taken for independent it is called wrong.

    The lag-1 rank correlation of .95 in 800 x 40 draws has a score of about 160 where 5 is the limit. Taken for
    independent, truths are beyond all 40 draws in 35 % of the replicates where 2 of 41 are allowed.
    """
    theta, draws = _chains(800, 40, 0.95)
    says(refusal(lambda: rt.check_draws(theta, draws, f=rt.identity)), "independent", "0.8", "chains=", "iid=True")
    assert rt.check_draws(theta, draws, iid=True, f=rt.identity).verdict is rt.Verdict.MISCALIBRATED
    result = rt.check_draws(theta, draws, iid=False, f=rt.identity)
    # Its two ends are alike, so that it cannot be told from an over-confident output: no verdict is based on it.
    assert (result.verdict, result.pvalue) == (rt.Verdict.INCONCLUSIVE, 1.0)
    says(result.sentence, "too few draws", "more of them")
    assert "cut into two" in str(result)


def test_interleaved_and_antithetic_chains_stop_the_call() -> None:
    """Two chains in turns show at lag 2, chains that swing at lag 1 with a minus sign."""
    theta, draws = _chains(200, 100, 0.9)
    in_turns = np.stack([draws[:, :50], draws[:, 50:]], axis=2).reshape(200, 100)
    swinging = _chains(200, 100, -0.9)[1]
    says(refusal(lambda: rt.check_draws(theta, in_turns, f=rt.identity)), "draw", "chains=")
    says(refusal(lambda: rt.check_draws(theta, swinging, f=rt.identity)), "-0.", "chains=")


@pytest.mark.parametrize("shape", ["an axis", "one behind the other", "dicts", "lists"])
def test_chains_in_any_shape_are_the_same(shape: str) -> None:
    """An axis of chains, chains one behind the other, a dict of them and a list of them have the same numbers."""
    theta, draws = _chains(80, 60, 0.5)
    axis = draws.reshape(80, 3, 20)
    expected = rt.check_draws(theta, axis, chains=3, f=rt.identity).replicates
    given: tuple[Any, Any] = {
        "an axis": (theta, axis.tolist()),
        "one behind the other": (theta, draws),
        "dicts": ({"mu": theta}, {"mu": axis}),
        "lists": (theta, list(axis)),
    }[shape]
    found = rt.check_draws(*given, chains=3, f="mu" if shape == "dicts" else rt.identity).replicates
    for name in ("chains/differences", "chains/rhat", "rank"):
        np.testing.assert_array_equal(found.arrays[name], expected.arrays[name])
    assert (found.arrays["chain_count"] == 3).all()


def test_chains_of_vectors_have_an_axis_before_the_draws() -> None:
    """(n, chains, M, d) is each entry's (n, chains, M)."""
    theta, draws = _chains(80, 60, 0.5)
    both = np.stack([theta, -theta], axis=1), np.stack([draws, draws**3], axis=2).reshape(80, 3, 20, 2)
    whole = rt.check_draws(*both, chains=3).replicates
    alone = rt.check_draws(theta, draws, chains=3, f=rt.identity).replicates
    np.testing.assert_array_equal(whole.arrays["chains/differences"][:, 0], alone.arrays["chains/differences"][:, 0])


def test_an_axis_is_never_guessed_to_be_that_of_chains() -> None:
    """Another number of chains than the axis has, or contradicting words, are refused."""
    theta, draws = _chains(80, 60, 0.5)
    says(refusal(lambda: rt.check_draws(theta, draws.reshape(80, 3, 20), chains=4)), "chains=4", r"\(80, 3, 20\)")
    says(refusal(lambda: rt.check_draws(theta, draws, chains=7), ValueError), "chains", "60")
    says(refusal(lambda: rt.check_draws(theta, draws, chains=3, iid=True), ValueError), "iid=True", "chains=3")


def test_iid_must_be_true_or_false() -> None:
    """A word such as "no" is refused: as a truth value it would mean yes."""
    theta, draws, _ = _data()
    with pytest.raises((TypeError, ValueError), match="iid"):
        rt.check_draws(theta, draws, iid="no")  # type: ignore[arg-type]


def test_the_seed_breaks_ties_and_nothing_else() -> None:
    """Two seeds agree on ranks where nothing ties; one seed always agrees with itself."""
    theta, draws, _ = _data()
    first, second = (rt.check_draws(theta, draws, seed=seed).replicates for seed in (0, 1))
    np.testing.assert_array_equal(first.rank, second.rank)
    coarse = np.round(theta), np.round(draws)
    again = [rt.check_draws(*coarse, seed=3).replicates.rank for _ in range(2)]
    np.testing.assert_array_equal(again[0], again[1])
    assert (rt.check_draws(*coarse, seed=4).replicates.rank != again[0]).any()


@pytest.mark.parametrize("settings", [{"alpha": 2}, {"test": "kolmogorov"}, {"tolerance": 0.1}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    """A bad setting is refused by name, as in a study."""
    theta, draws, _ = _data()
    says(refusal(lambda: rt.check_draws(theta, draws, **settings)), f"(?i){next(iter(settings))}")


def _wave(frequency: int, t: Any) -> Any:
    return np.sin(frequency * t)


@pytest.mark.slow
def test_many_test_functions() -> None:
    """A hundred test functions are judged at once, with names from any script, at the level of one."""
    theta, draws, _ = _data(100)
    family = {f"θ·{k}": rt.Vectorized(partial(_wave, k + 1), "") for k in range(100)}
    result = rt.check_draws(theta, draws, f=family, alpha=ALPHA)
    assert result.verdict is not rt.Verdict.MISCALIBRATED
    assert "θ·99" in str(result)


def test_a_list_of_dicts_is_told_how_to_become_one() -> None:
    """Draws as a dict per replicate are refused with the call that stacks them."""
    with pytest.raises(rt.errors.InvalidStudy, match=r"of dicts pass one, \{name: np\.stack"):
        rt.check_draws({"a": np.zeros(3)}, [{"a": np.zeros(5)}] * 3)


def test_a_lost_replicate_of_named_parameters_is_lost_whole() -> None:
    """A nan in one part of a named parameter leaves the other parts of that replicate out of what is pooled."""
    rng = np.random.default_rng(0)
    theta = {"a": rng.normal(size=60), "b": rng.normal(size=60)}
    theta["a"][3] = np.nan
    draws = {name: rng.normal(size=(60, 19)) for name in theta}
    found = rt.check_draws(theta, draws, on_failure="record")
    assert [failure.replicate for failure in found.replicates.failures] == [3]
    assert sum("weak level" in note for note in found.notes) == 1


def test_outputs_that_are_one_point_are_judged() -> None:
    """Draws that are all the same in most replicates, and truths that are not: a result, and no division by zero."""
    theta = np.random.default_rng(0).integers(-3, 4, 20).astype(float)
    draws = np.full((20, 40), 0.3)
    draws[3:5] = 5.0
    assert rt.check_draws(theta, draws).replicates.n == 20


def test_a_truth_that_is_no_number_is_told_from_draws_that_are_none() -> None:
    """Whoever has handed over both knows where to look."""
    rng = np.random.default_rng(0)
    theta, draws = rng.normal(size=9), rng.normal(size=(9, 5))
    with pytest.raises(rt.errors.ReplicateFailed, match="is nan or infinite at the truth"):
        rt.check_draws(np.where(np.arange(9) == 5, np.nan, theta), draws)
    with pytest.raises(rt.errors.ReplicateFailed, match=r"is nan or infinite\. Pass"):
        rt.check_draws(theta, np.where(np.arange(5) == 3, np.nan, draws))
    with pytest.raises(rt.errors.ReplicateFailed, match="is nan or infinite at the truth"):  # draws of uneven numbers
        rt.check_draws(np.full(9, np.nan), [draws[0], *(row[:4] for row in draws[1:])])
    weights = rng.random(draws.shape)
    with pytest.raises(rt.errors.ReplicateFailed, match="is nan or infinite at the truth"):
        rt.check_draws(np.full(9, np.nan), draws, weights=weights)
