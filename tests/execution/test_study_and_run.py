"""From a study to a verdict: every kind of parameter, output and test function, and what must not change the answer."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.judgement.result import Resolution
from ringtrue.replicates import simulate as blocks
from ringtrue.statistics import uniformity

SD = math.sqrt(0.5)
BELIEF = rt.Normal(0, 1)
# Every p-value holds its level, so a calibrated procedure is called miscalibrated with chance at most ALPHA.
ALPHA = 1e-6


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def _bayes(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, SD)


@dataclass(frozen=True, eq=False)
class _Asked(rt.Study):
    """A study with the number of replicates that is asked of it here."""

    n: int = 1


def _run(study: _Asked, **settings: Any) -> rt.Replicates:
    return rt.run(study, n=study.n, progress="off", **settings)


def _judged(study: _Asked, alpha: float = ALPHA, **settings: Any) -> rt.Result:
    return rt.judge(_run(study), alpha=alpha, **settings)


# Outputs of the posterior N(y/2, scale^2/2) in every form. scale = 1 is calibrated, 0.3 the broken twin.


class _MarginalOnly:
    """Knows the law of the identity and cannot be sampled."""

    sample = None

    def __init__(self, y: Any, sd: float) -> None:
        self.law = rt.Normal(y / 2, sd)

    def marginal(self, f: Any) -> Any:
        return self.law if f == rt.identity else None


class _SampleOnly:
    """Can be sampled and knows no law."""

    marginal = None

    def __init__(self, y: Any, sd: float) -> None:
        self.y, self.sd = y, sd

    def sample(self, m: int, rng: Any) -> Any:
        return self.y / 2 + self.sd * rng.normal(size=m)


def _chain(y: float, sd: float, rng: Any, correlation: float = 0.8) -> rt.Draws:
    """Return a stationary AR(1) chain."""
    noise = rng.normal(size=400)
    chain = np.empty(400)
    chain[0] = noise[0]
    for i in range(1, 400):
        chain[i] = correlation * chain[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    return rt.Draws(y / 2 + sd * chain, iid=False)


def _weighted(y: float, sd: float, rng: Any) -> rt.Draws:
    """Return draws of a wider normal with the weights that make up for it."""
    x = rng.normal(size=200) * 1.5
    return rt.Draws(y / 2 + sd * x, weights=np.exp(-0.5 * x**2 * (1 - 1 / 1.5**2)))


def _changing_kind(y: float, sd: float, rng: Any) -> Any:
    return y / 2 + sd * rng.normal(size=9) if y > 0 else rt.Normal(y / 2, sd)


OUTPUTS: dict[str, Callable[[float, float, Any], Any]] = {
    "normal": lambda y, sd, rng: rt.Normal(y / 2, sd),
    "scipy": lambda y, sd, rng: stats.norm(y / 2, sd),
    "array of draws": lambda y, sd, rng: y / 2 + sd * rng.normal(size=19),
    "two draws": lambda y, sd, rng: y / 2 + sd * rng.normal(size=2),
    "float32 draws": lambda y, sd, rng: (y / 2 + sd * rng.normal(size=19)).astype(np.float32),
    "unequal draws": lambda y, sd, rng: y / 2 + sd * rng.normal(size=rng.integers(2, 60)),
    "sampler": lambda y, sd, rng: _SampleOnly(y, sd),
    "law only": lambda y, sd, rng: _MarginalOnly(y, sd),
    "mixture": lambda y, sd, rng: rt.Mixture([rt.Normal(y / 2, sd), rt.Normal(y / 2, sd)], [0.3, 0.7]),
    "chain": _chain,
    "weighted draws": _weighted,
    "draws or a law": _changing_kind,
}


def _study(kind: str, *, scale: float = 1.0, n: int = 600, seed: int = 0) -> _Asked:
    output = OUTPUTS[kind]
    return _Asked(BELIEF, _model, lambda mu0, y, rng: output(y, scale * SD, rng), n, f=rt.identity, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OUTPUTS)
def test_calibrated_outputs_of_every_kind_are_not_called_miscalibrated(kind: str) -> None:
    """The exact posterior passes in every form it can be returned in (false alarm 1e-6 by the level of the tests)."""
    result = _judged(_study(kind))
    assert result.verdict is not rt.Verdict.MISCALIBRATED, result.sentence


@pytest.mark.slow
@pytest.mark.parametrize("kind", OUTPUTS)
def test_over_confident_outputs_of_every_kind_are_found(kind: str) -> None:
    """The broken twin, with 0.3 times the sd, is called miscalibrated in every form.

    Two draws see least: the share of truths between them falls from 1/3 to arccos(1/1.09)/pi = 0.13. At n = 600 that is
    0.2, where p = 1e-6 needs 0.1, and the difference is seven standard errors: a miss has chance far below 1e-6.
    """
    result = _judged(_study(kind, scale=0.3))
    assert result.verdict is rt.Verdict.MISCALIBRATED, result.sentence
    assert "over-confident" in result.sentence


@pytest.mark.slow
@pytest.mark.parametrize("group", [1, 7])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_grouping_changes_nothing(kind: str, group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many replicates are measured together changes no position, no route and no draw for the weak level."""
    whole = _run(_study(kind, n=20))
    for name in ("_GROUP", "_LARGE"):
        monkeypatch.setattr(blocks, name, group)
    parts = _run(_study(kind, n=20))
    _assert_same(parts, whole, 20)


def _assert_same(found: rt.Replicates, expected: rt.Replicates, rows: int) -> None:
    for name in ("rank", "draws"):
        np.testing.assert_array_equal(getattr(found, name)[:rows], getattr(expected, name)[:rows], err_msg=name)
    for name in ("u", "z", "weak_value", "weak_u"):
        np.testing.assert_allclose(
            getattr(found, name)[:rows], getattr(expected, name)[:rows], rtol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("kind", OUTPUTS)
def test_extending_n_keeps_the_first_replicates(kind: str) -> None:
    """A longer run starts with the shorter one."""
    _assert_same(_run(_study(kind, n=20)), _run(_study(kind, n=11)), 11)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_replay_gives_the_replicate_of_the_run(kind: str) -> None:
    """Replaying replicate i gives the theta and y that the run had, whatever ran before."""
    study = _study(kind, n=20)
    seen: list[Any] = []

    def model(theta: Any, rng: Any) -> Any:
        seen.append((theta, y := _model(theta, rng)))
        return y

    _run(replace(study, model=model))
    for i in (0, 7, 19):
        assert rt.replay(study, i)[:2] == seen[i - 20] if i else rt.replay(study, i)[:2] in seen


def test_vector_outputs_with_one_sd_for_all_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normal(vector, number) is the same output as Normal(vector, vector), in groups of any size."""

    def model(theta: Any, rng: Any) -> Any:
        noise = rng.choice([0.1, 10.0])
        return np.append(theta + noise * rng.normal(size=3), noise)

    def sd_of(y: Any) -> float:
        return float(1 / math.sqrt(1 + 1 / y[3] ** 2))

    def number(mu0: Any, y: Any) -> Any:
        return rt.Normal(sd_of(y) ** 2 * y[:3] / y[3] ** 2, sd_of(y))

    def vector(mu0: Any, y: Any) -> Any:
        return rt.Normal(sd_of(y) ** 2 * y[:3] / y[3] ** 2, np.full(3, sd_of(y)))

    belief, family = rt.Normal(np.zeros(3), np.ones(3)), [rt.Coordinate(index=(j,)) for j in range(3)]
    expected = _run(_Asked(belief, model, vector, 12, f=family))
    for group in (1, 3, 128):
        for name in ("_GROUP", "_LARGE"):
            monkeypatch.setattr(blocks, name, group)
        np.testing.assert_allclose(_run(_Asked(belief, model, number, 12, f=family)).u, expected.u, rtol=1e-12)


def test_procedures_may_reuse_their_buffers() -> None:
    """A procedure that writes its draws into one array again and again is judged on what it returned each time."""
    buffer = np.empty(19)

    def into_buffer(mu0: Any, y: Any, rng: Any) -> Any:
        buffer[:] = y / 2 + SD * rng.normal(size=19)
        return buffer

    found = _run(_Asked(BELIEF, _model, into_buffer, 20, f=rt.identity))
    expected = _run(_Asked(BELIEF, _model, lambda mu0, y, rng: into_buffer(mu0, y, rng).copy(), 20, f=rt.identity))
    np.testing.assert_array_equal(found.rank, expected.rank)


def test_models_may_reuse_their_buffers() -> None:
    """A model that writes its data into one array does not mix up what an f of the data sees."""
    buffer = np.empty(2)

    def into_buffer(theta: Any, rng: Any) -> Any:
        buffer[:] = theta + rng.normal(size=2)
        return buffer

    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        return y.mean() / 1.5 + rng.normal(size=19)

    f = {"log lik": lambda theta, y: -np.square(y - theta).sum()}
    found = _run(_Asked(BELIEF, into_buffer, procedure, 20, f=f))
    expected = _run(_Asked(BELIEF, lambda theta, rng: into_buffer(theta, rng).copy(), procedure, 20, f=f))
    np.testing.assert_array_equal(found.rank, expected.rank)


# Streams.


def test_changing_the_procedure_keeps_truths_and_data() -> None:
    """Two procedures, one of which uses randomness, are judged on the same (theta, y)."""
    first, second = _Asked(BELIEF, _model, _bayes, 5), _study("array of draws", n=5)
    assert [rt.replay(first, i)[:2] for i in range(5)] == [rt.replay(second, i)[:2] for i in range(5)]


def test_seeds_and_replicates_have_streams_of_their_own() -> None:
    """No truth and no data repeat over replicates or seeds."""
    values = [rt.replay(_Asked(BELIEF, _model, _bayes, 8, seed=seed), i)[:2] for seed in range(4) for i in range(8)]
    assert len(np.unique(np.ravel(values))) == 2 * 32


def test_batches_of_one_are_scalars() -> None:
    """A batched study with batch=1 has the streams of the scalar study, replicate by replicate."""
    zoo = rt.procedures.NormalMean()
    scalar = _run(_Asked(BELIEF, zoo.simulate, zoo, 12))
    batched = _run(_Asked(BELIEF, zoo.simulate, zoo, 12, batch=1))
    np.testing.assert_allclose(batched.u, scalar.u, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 49, 50, 51])
def test_batches_are_always_whole(n: int) -> None:
    """The replicates of a batched study do not depend on n, though n need not be a multiple of the batch."""
    zoo = rt.procedures.NormalMean()
    study = _Asked(BELIEF, zoo.simulate, zoo, 100, batch=50)
    _assert_same(_run(replace(study, n=n)), _run(study), n)


def test_batched_draws_are_the_scalar_draws_side_by_side() -> None:
    """Draws in a batch (draws x replicates) are ranked as each replicate's own draws are."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(19, 40))

    def batched(mu0: Any, y: Any) -> Any:
        return y / 2 + SD * noise

    zoo = rt.procedures.NormalMean()
    study = _Asked(BELIEF, zoo.simulate, batched, 40, f=rt.identity, batch=40)
    theta, y = (np.array(part) for part in zip(*(rt.replay(study, i)[:2] for i in range(40)), strict=True))
    expected = (y / 2 + SD * noise < theta).sum(axis=0)
    np.testing.assert_array_equal(_run(study).rank[:, 0], expected)


def test_mixtures_of_draws_are_not_resampled() -> None:
    """A mixture with draws for a component is refused, or ranked among the draws it has (false alarm 1e-6)."""

    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        return rt.Mixture([y / 2 + SD * rng.normal(size=5) for _ in range(2)])

    try:
        result = _judged(_Asked(BELIEF, _model, procedure, 1000, f=rt.identity))
    except (rt.errors.RingtrueError, ValueError):
        return
    assert result.verdict is not rt.Verdict.MISCALIBRATED, result.sentence


# Parameters of every form.


def _named_model(theta: Any, rng: Any) -> Any:
    return theta["mu"] + rng.normal()


@pytest.mark.slow
@pytest.mark.parametrize(
    "procedure",
    [
        lambda mu0, y: {"mu": rt.Normal(y / 2, SD), "tau": rt.Gamma(2, 1)},
        lambda mu0, y: rt.Independent({"mu": stats.norm(y / 2, SD), "tau": stats.gamma(2)}),
        lambda mu0, y, rng: {"mu": y / 2 + SD * rng.normal(size=19), "tau": rng.gamma(2, size=19)},
        lambda mu0, y, rng: {"mu": y / 2 + SD * rng.normal(size=19), "tau": rt.Gamma(2, 1)},
        lambda mu0, y, rng: {"mu": rt.Normal(y / 2, SD), "tau": rng.gamma(2, size=9)},
    ],
    ids=["laws", "scipy", "draws", "draws and a law", "a law and draws"],
)
def test_named_parameters(procedure: Any) -> None:
    """A dict of laws, of draws or of both is judged part by part; the exact posterior passes (false alarm 1e-6)."""
    result = _judged(_Asked({"mu": rt.Normal(0, 1), "tau": rt.Gamma(2, 1)}, _named_model, procedure, 600))
    assert {row.f for row in result.tests if row.level == "strong"} == {"mu", "tau", "sum", "distance"}
    assert result.verdict is not rt.Verdict.MISCALIBRATED, result.sentence


def test_named_parameters_broken_twin() -> None:
    """A dict of draws with half the sd in one part is found, and the part is named."""
    study = _Asked(
        {"mu": rt.Normal(0, 1), "tau": rt.Gamma(2, 1)},
        _named_model,
        lambda mu0, y, rng: {"mu": y / 2 + 0.5 * SD * rng.normal(size=19), "tau": rng.gamma(2, size=19)},
        600,
    )
    result = _judged(study)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "mu is over-confident" in result.sentence


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (lambda mu0, y: {"mu": rt.Normal(0, 1)}, "'tau'.*lack; .*pass f=\\['mu'\\]"),
        (lambda mu0, y: rt.Normal(0, 1), "dict of \\['mu', 'tau'\\]"),
        (lambda mu0, y, rng: rng.normal(size=(9, 2)), "dict of \\['mu', 'tau'\\]"),
    ],
)
def test_named_parameters_must_match(output: Any, words: str) -> None:
    """An output that lacks a name, or has none, is refused before the run."""
    with pytest.raises(rt.errors.InvalidStudy, match=words):
        _run(_Asked({"mu": rt.Normal(0, 1), "tau": rt.Gamma(2, 1)}, _named_model, output, 5))


def test_matrix_parameters() -> None:
    """A parameter of shape (2, 3) has six coordinates, named as one would write them."""
    belief = rt.Normal(np.zeros((2, 3)), np.ones((2, 3)))
    study = _Asked(belief, lambda theta: theta, lambda mu0, y, rng: rng.normal(size=(9, 2, 3)), 20)
    names = [function.name for function in _run(study).functions]
    assert names == [f"theta[{i}, {j}]" for i in range(2) for j in range(3)] + ["sum", "distance"]


class _Line:
    """A random function: x -> slope x."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: Any) -> Any:
        return self.slope * x


class _Lines:
    """The posterior of the slope after one noisy look at the line's value at 1, as functions."""

    marginal = None

    def __init__(self, y: float, sd: float = SD) -> None:
        self.y, self.sd = y, sd

    def sample(self, m: int, rng: Any) -> Any:
        return [_Line(slope) for slope in self.y / 2 + self.sd * rng.normal(size=m)]


def _line_study(f: Any, *, sd: float = SD, n: int = 400) -> _Asked:
    return _Asked(
        lambda rng: _Line(rng.normal()),
        lambda theta, rng: theta(1.0) + rng.normal(),
        lambda mu0, y: _Lines(y, sd),
        n,
        f=f,
        draws=19,
    )


FUNCTION_VALUED = {
    "Evaluate": rt.Evaluate(2.0),
    "bare function": {"at 2": lambda theta: theta(2.0)},
    "of theta and data": {"log lik": lambda theta, y: -((theta(1.0) - y) ** 2)},
}


@pytest.mark.parametrize("f", FUNCTION_VALUED.values(), ids=FUNCTION_VALUED.keys())
def test_function_valued_parameters(f: Any) -> None:
    """A random function is tested through its values, by Evaluate or by a function of one's own (false alarm 1e-6)."""
    result = _judged(_line_study(f))
    assert min(found.pvalue for found in result.levels.values()) > ALPHA, result.sentence


def test_function_valued_parameters_broken_twin() -> None:
    """A posterior over functions with half the sd is found."""
    assert _judged(_line_study(rt.Evaluate(2.0), sd=SD / 2)).verdict is rt.Verdict.MISCALIBRATED


def test_evaluations_of_one_draw_belong_together() -> None:
    """Evaluate at x and at 2x ranks alike: both see the same drawn functions."""
    ran = _run(_line_study([rt.Evaluate(1.0), rt.Evaluate(2.0)], n=50))
    np.testing.assert_array_equal(ran.rank[:, 0], ran.rank[:, 1])


def test_function_valued_parameters_need_test_functions() -> None:
    """There is no default family for functions, and the error says to pass f."""
    with pytest.raises(rt.errors.InvalidStudy, match=r"made of numbers.*pass f="):
        _line_study(None)


# Levels.


def test_log_density_tests_auto_calibration() -> None:
    """The output's log density is its own level: passes for Bayes (false alarm 1e-6), fails for half the sd."""
    f = [rt.identity, rt.LogDensity()]
    good, bad = (
        _judged(_Asked(BELIEF, _model, lambda mu0, y, s=s: rt.Normal(y / 2, s), 400, f=f)) for s in (SD, SD / 2)
    )
    assert good.verdict is not rt.Verdict.MISCALIBRATED
    assert bad.levels["auto"].pvalue < ALPHA < good.levels["auto"].pvalue
    assert {row.f for row in good.tests if row.level == "auto"} == {"log density"}


def test_exact_level_has_a_line_of_its_own() -> None:
    """A procedure that ignores the data is not called miscalibrated (false alarm 1e-6) and not called exact either."""
    f = [rt.identity, rt.Function(lambda theta, y: -((y - theta) ** 2), "log lik")]
    agnostic = _judged(_Asked(BELIEF, _model, lambda mu0, y: mu0, 400, f=f))
    bayes = _judged(_Asked(BELIEF, _model, _bayes, 400, f=f))
    assert agnostic.verdict is not rt.Verdict.MISCALIBRATED
    assert agnostic.levels["exact"].pvalue < ALPHA < bayes.levels["exact"].pvalue
    assert "NOT THE EXACT POSTERIOR" in agnostic.sentence
    assert "nothing found against it" in bayes.sentence


def test_exact_level_alone_measures_no_calibration() -> None:
    """With nothing but an f that sees the data, the verdict is open and says why."""
    result = _judged(_Asked(BELIEF, _model, _bayes, 50, f=lambda theta, y: theta * y))
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert "no test function of theta alone" in result.sentence
    with pytest.raises(rt.errors.InvalidStudy, match=r"level must be one of.*'strong'"):
        _ = result.levels["strong"]


def test_weak_level_with_and_without_the_law_of_mu0() -> None:
    """A belief with a law is compared with the law, a belief that is a function of rng with fresh draws of it."""
    with_law = _judged(_Asked(BELIEF, _model, _bayes, 300, f=rt.identity))
    without = _judged(_Asked(lambda rng: rng.normal(), _model, _bayes, 300, f=rt.identity))
    routes = [{row.route for row in result.tests if row.level == "weak"} for result in (with_law, without)]
    of_all = "draws, controlled by truths"
    assert routes == [{"exact law of mu0", of_all}, {"fresh draws of mu0", of_all}]
    assert min(with_law.levels["weak"].pvalue, without.levels["weak"].pvalue) > ALPHA


@pytest.mark.parametrize("belief", [BELIEF, lambda rng: rng.normal()], ids=["law", "draws"])
def test_weak_level_broken_twin(belief: Any) -> None:
    """Outputs that are all N(0, 1/16) do not average to the belief N(0, 1).

    The Kolmogorov distance is 0.29; the two-sample test of 600 and 600 needs 0.155 for p = 1e-6, 4.7 standard errors
    (0.029) away: a miss has chance 1e-6. The one-sample test needs less.
    """
    result = _judged(_Asked(belief, _model, lambda mu0, y: rt.Normal(0, 0.25), 600, f=rt.identity))
    assert result.levels["weak"].pvalue < ALPHA


def test_marginal_only_outputs_are_tested_weakly_through_their_law() -> None:
    """An output that cannot be sampled still has a weak test: f(vartheta) is drawn from its law."""
    result = _judged(_study("law only", n=50))
    routes = {(row.level, row.route) for row in result.tests if row.kind != "data"}
    assert routes == {("strong", "exact"), ("weak", "exact law of mu0")}


# Chains, weights.


@pytest.mark.slow
def test_what_chains_are_worth_is_part_of_the_result() -> None:
    """The result of a single chain says that it was cut in two, which is approximate, and what its draws are worth."""
    result = _judged(_study("chain", n=30))
    assert re.search("cut into two.*approximate", str(result))
    assert re.search("R-hat.*effective size", str(result), re.DOTALL)


def test_chains_taken_for_independent_broken_twin() -> None:
    """Chains taken for independent draws look miscalibrated: saying what they are is what saves the verdict.

    Of 40 draws at autocorrelation 0.95 the truth is beyond all in 35 % of the replicates where 2 of 41 are allowed, at
    n = 600 thirty standard errors away.
    """

    def careless(mu0: Any, y: Any, rng: Any) -> Any:
        return rt.Draws(_chain(y, SD, rng, correlation=0.95).values[:40], iid=True)

    def silent(mu0: Any, y: Any, rng: Any) -> Any:
        return careless(mu0, y, rng).values

    assert _judged(_Asked(BELIEF, _model, careless, 600, f=rt.identity)).verdict is rt.Verdict.MISCALIBRATED
    with pytest.raises(rt.errors.InvalidStudy, match="neighbouring draws"):
        _judged(_Asked(BELIEF, _model, silent, 600, f=rt.identity))


def test_iid_is_yes_or_no_and_nothing_else() -> None:
    """A value that only looks like "not independent" is refused; it is never taken for "independent"."""
    with pytest.raises((ValueError, TypeError), match="iid"):
        rt.Draws(np.zeros(9), iid="no")  # type: ignore[arg-type]


def test_resampling_by_weight_is_part_of_the_result() -> None:
    """The result of weighted draws says that they were resampled, which is approximate."""
    result = _judged(_study("weighted draws", n=30))
    assert "weight" in str(result)


def test_equal_weights_are_no_weights() -> None:
    """Fifty draws of equal weight are worth fifty draws."""
    for m in (3, 7, 49, 50, 100):
        study = _Asked(
            BELIEF, _model, lambda mu0, y, rng, m=m: rt.Draws(rng.normal(size=m), weights=np.ones(m)), 4, f=rt.identity
        )
        assert set(_run(study).draws[:, 0]) == {m}


def test_a_draw_without_weight_does_not_exist() -> None:
    """Weights of zero remove draws: the truth is ranked among the others only."""
    values, weights = np.r_[np.full(30, 1e9), np.arange(10.0)], np.r_[np.zeros(30), np.ones(10)]
    output = rt.Draws(values, weights=weights)
    ran = _run(_Asked(rt.Normal(100, 0.1), lambda theta: theta, lambda mu0, y: output, 5, f=rt.identity))
    np.testing.assert_array_equal(ran.rank, ran.draws)


# Choosing a test function.


def _correlated(seed: int = 0, n: int = 400) -> _Asked:
    """Six coordinates of which the fourth has half the sd it should."""
    sd = np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0]) * SD
    belief = rt.Normal(np.zeros(6), np.ones(6))
    family = [rt.Coordinate(index=(j,)) for j in range(6)]
    return _Asked(
        belief, lambda t, rng: t + rng.normal(size=6), lambda mu0, y: rt.Normal(y / 2, sd), n, f=family, seed=seed
    )


@pytest.mark.slow
@pytest.mark.parametrize("splits", [1, 9])
def test_best_of_finds_the_bad_coordinate(splits: int) -> None:
    """The choice falls on the coordinate that is wrong, and the method says on how many replicates it was made.

    On 200 replicates half the sd is more than ten standard errors away: a miss has chance below 1e-6.
    """
    study = _correlated()
    result = _judged(replace(study, f=rt.BestOf(study.f, splits=splits)))
    (row,) = [row for row in result.tests if row.level == "strong"]
    assert row.f == "theta[3]"
    assert result.levels["strong"].pvalue < 1e-6
    assert "best of 6 on the other 200" in row.method
    assert ("9 splits" in row.method) == (splits > 1)


@pytest.mark.slow
@pytest.mark.parametrize("splits", [1, 9])
def test_best_of_does_not_invent(splits: int) -> None:
    """Choosing among calibrated coordinates raises no alarm (1e-6)."""
    study = _correlated()
    bayes = replace(study, procedure=lambda mu0, y: rt.Normal(y / 2, np.full(6, SD)))
    assert _judged(replace(bayes, f=rt.BestOf(study.f, splits=splits))).verdict is not rt.Verdict.MISCALIBRATED


def test_best_of_chooses_on_the_first_and_tests_on_the_last() -> None:
    """A single split is the share of the replicates in their order: the p-value is that of the rest alone."""
    study = _correlated(n=2000)
    ran = _run(replace(study, f=rt.BestOf(study.f, share=0.3)))
    result = rt.judge(ran, test="ks")
    # On 600 replicates the bad coordinate has sqrt(n) D = 3.9 +- 0.5; the others exceed 2 once in 1500 times.
    assert result.levels["strong"].pvalue == uniformity.ks(ran.u[600:, 3]).pvalue


def test_best_of_needs_replicates_on_both_sides() -> None:
    """One replicate cannot be split."""
    study = _correlated(n=1)
    with pytest.raises(rt.errors.InvalidStudy, match="both sides of its split"):
        _judged(replace(study, f=rt.BestOf(study.f)))


def test_best_of_states_what_half_of_the_replicates_could_have_seen() -> None:
    """The resolution of a choice is that of the replicates that were left for the test."""
    whole, half = (rt.judge(_run(_Asked(BELIEF, _model, _bayes, n, f=rt.identity))) for n in (200, 100))
    split = rt.judge(_run(_Asked(BELIEF, _model, _bayes, 200, f=rt.BestOf([rt.identity]))))
    assert split.resolution.over_confident >= half.resolution.over_confident > whole.resolution.over_confident


def test_resolution_is_that_of_the_test_that_was_run() -> None:
    """mean_z does not see spread, KS sees less than the combination: the footer must not promise otherwise."""
    ran = _run(_Asked(BELIEF, _model, _bayes, 200, f=rt.identity))
    best, ks, blind = (rt.judge(ran, test=test).resolution.over_confident for test in ("combination", "ks", "mean_z"))
    assert not ks <= best
    assert not blind <= ks


# Failures.


def _losing(
    lost: Callable[[float, float], bool], *, n: int = 300, seed: int = 0
) -> tuple[rt.Replicates, rt.Replicates]:
    """Return the run of exact Bayes, and the same run with some replicates lost, chosen by theta and y."""
    study = _Asked(BELIEF, _model, _bayes, n, f=rt.identity, seed=seed)
    bad = {y for theta, y, _ in (rt.replay(study, i) for i in range(n)) if lost(theta, y)}

    def failing(mu0: Any, y: Any) -> Any:
        if y in bad:
            raise ArithmeticError("did not converge")
        return _bayes(mu0, y)

    return _run(study), _run(replace(study, procedure=failing), on_failure="record")


def _in_tail(theta: float, y: float) -> bool:
    return abs(theta - y / 2) / SD > 1.6


@pytest.mark.slow
@pytest.mark.parametrize("lost", [_in_tail, lambda theta, y: y > 1.5, lambda theta, y: abs(theta) < 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_lost_replicates_count_for_the_worst(lost: Callable[[float, float], bool], seed: int) -> None:
    """p-value and intervals hold for what the lost replicates really would have been, whichever were lost."""
    whole, some = _losing(lost, seed=seed)
    assert 0 < len(some.failures) < 100
    result = rt.judge(some)
    truth = uniformity.ecdf_gamma(whole.u[:, 0]).pvalue
    (row,) = [row for row in result.tests if row.level == "strong"]
    assert row.pvalue >= truth
    full = {m.name: m.estimate for m in rt.judge(whole).measures}
    bounded = [m for m in result.measures if "KS" not in m.name and m.within != "-"]  # not those of use
    assert all(m.low <= full[m.name] <= m.high for m in bounded)


@pytest.mark.slow
def test_dropping_lost_replicates_would_be_wrong() -> None:
    """The broken twin: losses in the tails make the rest look under-confident; the worst case does not (1e-6)."""
    _, some = _losing(_in_tail, n=600)
    naive = uniformity.ecdf_gamma(some.u[some.kept, 0]).pvalue
    result = rt.judge(some, alpha=ALPHA)
    assert naive < ALPHA
    assert result.verdict is not rt.Verdict.MISCALIBRATED


def test_lost_replicates_are_records() -> None:
    """Every lost replicate is a row of nan and a record with stage, error, traceback and replay call."""
    _, some = _losing(_in_tail)
    failure = some.failures[0]
    assert np.isnan(some.u[failure.replicate]).all()
    assert [one.replicate for one in some.failures] == list(np.flatnonzero(~some.kept))
    assert (failure.stage, failure.error) == ("procedure", "ArithmeticError: did not converge")
    assert "in failing" in failure.traceback
    assert failure.replay == f"ringtrue.replay(study, {failure.replicate})"
    assert f"lost {len(some.failures)} replicate" in str(rt.judge(some))


def test_losses_can_make_a_verdict_inconclusive_but_not_innocent() -> None:
    """Half the replicates lost at random leave the verdict open, and the sentence says so."""
    _, some = _losing(lambda theta, y: y > 0)
    result = rt.judge(some)
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert f"{len(some.failures)} of 300 replicates were lost" in result.sentence


def test_losses_lower_what_the_run_could_have_seen() -> None:
    """A run that lost half its replicates could have seen less than a run of the other half alone."""
    _, some = _losing(lambda theta, y: y > 0)
    alone = rt.judge(_run(_Asked(BELIEF, _model, _bayes, int(some.kept.sum()), f=rt.identity)))
    assert not rt.judge(some).resolution.over_confident <= alone.resolution.over_confident


def test_a_lost_batch_loses_its_replicates() -> None:
    """A batch that raises loses all its replicates and no others."""
    zoo = rt.procedures.NormalMean()
    bad = rt.replay(_Asked(BELIEF, zoo.simulate, zoo, 60, batch=20), 25)[1]

    def procedure(mu0: Any, y: Any) -> Any:
        if bad in y:
            raise ArithmeticError("singular")
        return zoo(mu0, y)

    ran = _run(_Asked(BELIEF, zoo.simulate, procedure, 60, batch=20), on_failure="record")
    assert [failure.replicate for failure in ran.failures] == list(range(20, 40))


def test_a_run_can_be_judged_again() -> None:
    """Judging is a pure function of the replicates: twice the same answer, another alpha another verdict's level."""
    ran = _run(_study("array of draws", n=100))
    assert rt.judge(ran).to_dict() == rt.judge(ran).to_dict()
    assert rt.judge(ran, alpha=0.2).alpha == 0.2


def test_results_and_replicates_are_not_iterable() -> None:
    """Unpacking a result is refused with the attributes to use."""
    result = _judged(_study("normal", n=10))
    for value in (result, result.replicates):
        with pytest.raises(TypeError, match="not iterable; use"):
            iter(value)


def test_assert_calibrated_raises_with_the_sentence() -> None:
    """An assertion in a test suite fails with the sentence, as an AssertionError."""
    result = _judged(_study("normal", scale=0.5))
    with pytest.raises(AssertionError) as caught:
        result.assert_not_miscalibrated()
    assert str(caught.value) == result.sentence
    _judged(_study("normal", n=10)).assert_not_miscalibrated()


# The sentence.


@pytest.mark.parametrize("shift", [50.0, -50.0])
def test_sentences_are_finite(shift: float) -> None:
    """An output that is nowhere near the truth gets a lower bound, not an infinite estimate, in the sentence."""
    study = _Asked(BELIEF, _model, lambda mu0, y, rng: y / 2 + shift + SD * rng.normal(size=19), 60, f=rt.identity)
    sentence = _judged(study).sentence
    assert "biased" in sentence
    assert "inf" not in sentence


def test_the_footer_has_the_figures_it_needs() -> None:
    """A spread factor of 1.0021 is not printed as "above 1": any error at all would be above 1."""
    result = replace(_judged(_study("normal", n=10)), resolution=Resolution(1.0021, 0.9979, 0.0035))
    assert "above 1.002" in str(result)
    assert re.search(r"below 0\.99[78]", str(result))


def test_settling_names_what_is_open() -> None:
    """The number of further replicates is promised for the measure that the sentence calls unknown."""
    sentence = rt.judge(_run(_Asked(BELIEF, _model, _bayes, 60, f=rt.identity))).sentence
    assert "bias" in sentence.split(";")[-1] or "spread of" in sentence


@pytest.mark.parametrize("n", [10**10, 10**15])
def test_more_replicates_than_memory_holds_are_refused_before_any_is_computed(n: int) -> None:
    """The sentence says what was asked for, what it takes, what there is and what to do."""
    asked = rt.Study(rt.Normal(0, 1), lambda t, rng: 1 / 0, lambda mu0, y: 1 / 0)
    for call in (rt.run, rt.check):
        with pytest.raises(rt.errors.InvalidStudy, match=rf"{n} .* GiB at least .* machine has .* ask for at most"):
            call(asked, n=n)


def test_a_run_that_may_end_before_needs_room_for_what_it_has() -> None:
    """With a limit of time n may be as large as one likes."""
    asked = rt.Study(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: rt.Normal(y / 2, 0.5**0.5))
    ran = rt.run(asked, n=10**12, until=lambda part: 20 if part.stop >= 20 else None)
    assert ran.n == 20
