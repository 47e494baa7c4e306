"""NumPyro models as studies, with NumPyro itself: priors, data, fits and log-likelihoods are the model's own."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.execution.store.identity import fingerprint
from ringtrue.functions.contract import Context
from tests.builders import refusal, says

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")
jnp = pytest.importorskip("jax.numpy")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

#: Where the line is observed.
X = np.linspace(-1, 1, 8)


def line(x: Any, scale: float = 1.0, y: Any = None) -> None:
    """Two slopes, one left and one right of zero, with noise of unknown size."""
    slope = numpyro.sample("slope", dist.Normal(0, scale).expand([2]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(0.5))
    numpyro.deterministic("difference", slope[0] - slope[1])
    numpyro.sample("y", dist.Normal(slope[(x > 0).astype(int)] * x, sd), obs=y)


def build(scale: float = 1.0, **options: Any) -> Any:
    """Return a study of the line."""
    return adapters.numpyro(line, X, scale=scale, **{"draws": 100, "warmup": 150, "batch": 40, **options})


@pytest.fixture(scope="module")
def study() -> Any:
    """Return one study for all tests: it compiles once."""
    return build()


def test_entries_and_the_log_likelihood_are_asked_about(study: Any) -> None:
    """Every entry of what is sampled has a name; deterministic sites are asked about if they are named."""
    assert [f.name for f in study.functions] == ["slope[0]", "slope[1]", "sd", "log-likelihood"]
    assert study.functions[-1].sees == "data"
    assert [f.name for f in build(names=["difference"]).functions] == ["difference", "log-likelihood"]


def test_prior_and_data_follow_the_model(study: Any) -> None:
    """Draws of the prior have its law, deterministic ones agree with their parents, data have noise of their own."""
    drawn = build(names=["sd", "difference"]).machine.prior(2500, np.random.default_rng(1))
    # Kolmogorov's test at 1e-6 for each of two laws; half the scale would fail by far.
    for values, law in ((drawn["slope"][:, 0], stats.norm()), (drawn["sd"], stats.halfnorm(scale=0.5))):
        assert stats.kstest(values, law.cdf).pvalue > 1e-6
        assert stats.kstest(values / 2, law.cdf).pvalue < 1e-6
    # Numbers below 8 in float32, rounded a few times: 2**-22 each.
    assert drawn["difference"] == pytest.approx(drawn["slope"][:, 0] - drawn["slope"][:, 1], rel=0, abs=4 * 2**-22)
    y = study.machine.simulate(drawn, np.random.default_rng(2))["y"]
    mean = drawn["slope"][:, (X > 0).astype(int)] * X
    noise = ((y - mean) / drawn["sd"][:, None]).ravel()
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert stats.kstest(1.1 * noise, "norm").pvalue < 1e-6
    assert np.array_equal(y, study.machine.simulate(drawn, np.random.default_rng(2))["y"])


def test_log_likelihood_is_that_of_scipy(study: Any) -> None:
    """For draws of several datasets, for one parameter of each, and for one alone, to the precision of the library."""
    rng = np.random.default_rng(2)
    slope, sd, y = rng.normal(size=(5, 3, 2)), rng.gamma(2.0, size=(5, 3)), rng.normal(size=(3, 8))
    expected = stats.norm.logpdf(y, slope[..., (X > 0).astype(int)] * X, sd[..., None]).sum(axis=-1)
    f = study.functions[-1]
    many = f.evaluate({"slope": slope, "sd": sd}, Context(2, {"y": y}))
    each = f.evaluate({"slope": slope[1], "sd": sd[1]}, Context(1, {"y": y}))
    single = f.evaluate({"slope": slope[1, 2], "sd": sd[1, 2]}, Context(0, {"y": y[2]}))
    assert many == pytest.approx(expected, rel=1e-5)
    assert each == pytest.approx(expected[1], rel=1e-5)
    assert float(single) == pytest.approx(expected[1, 2], rel=1e-5)


def test_log_likelihoods_of_a_batch_are_one_call(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many datasets and draws there are."""
    calls, compiled = [], study.machine._log_likelihood

    def counted(*parts: Any) -> Any:
        calls.append(parts)
        return compiled(*parts)

    monkeypatch.setitem(study.machine.__dict__, "_log_likelihood", counted)
    theta = study.machine.prior(40, np.random.default_rng(1))
    y = study.machine.simulate(theta, np.random.default_rng(2))
    assert study.functions[-1].evaluate(theta, Context(1, y)).shape == (40,)
    assert len(calls) == 1


@pytest.mark.process
def test_precision_is_that_of_the_study(study: Any, tmp_path: Path) -> None:
    """A study that was made with 64 bits has them in processes that have 32, as a worker has that was told nothing."""
    code = (
        "from tests.adapters.test_numpyro import *; import cloudpickle; numpyro.enable_x64(); "
        "open(sys.argv[1], 'wb').write(cloudpickle.dumps(build().machine))"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "machine"], check=True)
    wide = pickle.loads((tmp_path / "machine").read_bytes())
    rng = np.random.default_rng(3)
    theta = wide.prior(5, rng)
    y = wide.simulate(theta, rng)["y"][0]
    assert {array.dtype for array in (*theta.values(), y)} == {np.dtype(float)}
    expected = stats.norm.logpdf(y, theta["slope"][:, (X > 0).astype(int)] * X, theta["sd"][:, None]).sum(axis=1)
    rows = {name: part[:, None] for name, part in theta.items()}
    assert wide.log_likelihood(rows, {"y": y[None]})[:, 0] == pytest.approx(expected, rel=1e-12)
    assert study.machine.log_likelihood(rows, {"y": y[None]})[:, 0] != pytest.approx(expected, rel=1e-12)
    assert wide.identity != study.machine.identity


def test_right_model_passes_and_a_wrong_one_is_caught(study: Any) -> None:
    """A model judged on its own simulations is not called; one that was fitted to noisier data is, by name."""
    right = rt.check(study, n=80, seed=1, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    assert {row.route for row in right.tests if row.level == "strong"} == {"2 chains of 100"}

    def noisier(theta: Any, rng: Any) -> Any:
        return study.machine.simulate({**theta, "sd": 2 * theta["sd"]}, rng)

    # Of eight points the sd is known to a quarter or so: twice the sd is three of its own away.
    wrong = rt.check(study, model=noisier, n=80)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert "sd is" in wrong.sentence


def test_chains_lie_one_behind_the_other_and_say_how_they_went(study: Any) -> None:
    """The axes are draws, datasets, parameter; divergences and steps are one number per dataset."""
    theta = study.machine.prior(40, np.random.default_rng(3))
    y = study.machine.simulate(theta, np.random.default_rng(4))
    output = study.machine.fitted(None, y, np.random.default_rng(5))
    assert output.values["slope"].shape == (200, 40, 2)
    assert output.chains == 2
    assert {name: value.shape for name, value in output.diagnostics.items()} == {
        "divergences": (40,),
        "tree depth": (40,),
        "leapfrog steps": (40,),
        "acceptance": (40,),
    }
    assert (output.diagnostics["leapfrog steps"] >= 1).all()
    assert (2 ** output.diagnostics["tree depth"] > output.diagnostics["leapfrog steps"]).all()
    assert ((output.diagnostics["acceptance"] > 0.3) & (output.diagnostics["acceptance"] <= 1)).all()
    # The two chains of a dataset, and those of two datasets, are different ones.
    sd = output.values["sd"]
    assert not np.isclose(sd[:100], sd[100:]).any()
    assert not np.isclose(sd[:, 0], sd[:, 1]).any()


def test_same_model_built_again_has_the_same_identity() -> None:
    """In this process and in another; an argument, an option or the source that changes, changes it."""
    code = "from tests.adapters.test_numpyro import *; print(fingerprint(build())['procedure'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(build())["procedure"]
    assert run.stdout.strip().splitlines()[-1] == here
    for other in (build(2.0), build(draws=50), adapters.numpyro(line, X / 2, draws=100, warmup=150, batch=40)):
        assert fingerprint(other)["procedure"] != here


@pytest.mark.process
def test_workers_and_stores_give_the_same_bits(study: Any, tmp_path: Path) -> None:
    """Two processes, each with its own compiled model, and a run that is gone on with, compute what one does."""
    alone = rt.run(study, n=80)
    shared = rt.run(study, n=80, workers=2)
    rt.run(study, n=40, store=tmp_path / "run.db")
    again = rt.run(build(), n=80, store=tmp_path / "run.db")
    for other in (shared, again):
        assert np.array_equal(alone.u, other.u)


# Wrong models, each beside a right one.


def flat(x: Any, used: Any = True, y: Any = None) -> None:
    """A line with known noise, all or some of whose points are used in the fit."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    numpyro.deterministic("end", a + b)
    numpyro.sample("y", dist.Normal(a + b * x, 0.5).mask(used), obs=y)


def guided(x: Any = X, **options: Any) -> Any:
    """Return the line fitted by a guide without correlations."""
    guide = numpyro.infer.autoguide.AutoNormal
    return adapters.numpyro(flat, x, guide=guide, **{"steps": 1000, "draws": 100, **options})


@pytest.fixture(scope="module")
def centred() -> Any:
    """Return a line whose two parameters are independent given the data, so that this guide can be right."""
    return guided()


def test_guides_are_right_where_they_can_be(centred: Any) -> None:
    """Independent draws, with the bound; deterministic sites are computed from the draws."""
    result = rt.check(centred, n=100, seed=1, alpha=1e-6)
    assert result.verdict is not rt.Verdict.MISCALIBRATED
    machine = guided(names=["a", "b", "end"], steps=1).machine
    output = machine.fitted(None, {"y": np.zeros((3, 8))}, np.random.default_rng(1))
    assert output.iid
    assert output.diagnostics["ELBO"].shape == (3,)
    values = output.values
    assert values["end"] == pytest.approx(values["a"] + values["b"], rel=0, abs=1e-5)
    assert not np.isclose(values["a"][:, 0], values["a"][:, 1]).any()
    # The bound is below the log of the evidence of y = 0, N(0, 1 + x x' + 1/4) at 0, and near it after 1000 steps.
    law = stats.multivariate_normal(np.zeros(8), 1 + np.outer(X, X) + 0.25 * np.eye(8))
    bound = centred.machine.fitted(None, {"y": np.zeros((100, 8))}, np.random.default_rng(1)).diagnostics["ELBO"]
    assert bound.mean() == pytest.approx(law.logpdf(np.zeros(8)), abs=0.1)


def test_mean_field_and_too_few_steps_are_caught(centred: Any) -> None:
    """Away from the centre a and b have a correlation of -0.7 or more, which halves the variance of such a guide."""
    shifted = rt.check(guided(X + 1.5), n=100)
    assert shifted.verdict is rt.Verdict.MISCALIBRATED
    assert "over-confident" in shifted.sentence
    assert rt.check(centred, procedure=guided(steps=20).machine.fitted, n=100).verdict is rt.Verdict.MISCALIBRATED


def test_ignored_data_are_seen_through_the_log_likelihood(centred: Any) -> None:
    """The posterior of the four inner points is calibrated; the log-likelihood of all eight sees that it is another."""
    half = guided(used=np.abs(X) < 0.5).machine
    wrong = rt.check(centred, procedure=half.fitted, n=200, alpha=1e-6)
    assert wrong.verdict is not rt.Verdict.MISCALIBRATED
    assert "NOT THE EXACT POSTERIOR" in wrong.sentence


def test_wrong_priors_and_swapped_indices_are_caught(study: Any) -> None:
    """Truths four times as wide as the prior; slopes that the simulator has the other way round."""
    wide = {"slope": rt.Normal(np.zeros(2), np.full(2, 4.0)), "sd": stats.halfnorm(scale=0.5)}
    assert rt.check(study, truth=wide, n=80).verdict is rt.Verdict.MISCALIBRATED

    def swapped(theta: Any, rng: Any) -> Any:
        return study.machine.simulate({**theta, "slope": theta["slope"][:, ::-1]}, rng)

    assert rt.check(study, model=swapped, n=80).verdict is rt.Verdict.MISCALIBRATED


class Forgetful(dist.HalfNormal):  # type: ignore[misc, name-defined]
    """A prior that was written for log(sd), without the Jacobian."""

    def log_prob(self, value: Any) -> Any:
        """Return the log density of sd taken for that of log(sd)."""
        return super().log_prob(value) - jnp.log(value)


def forgetful(x: Any, y: Any = None) -> None:
    """The line with the prior that forgets."""
    slope = numpyro.sample("slope", dist.Normal(0, 1).expand([2]).to_event(1))
    sd = numpyro.sample("sd", Forgetful(0.5))
    numpyro.sample("y", dist.Normal(slope[(x > 0).astype(int)] * x, sd), obs=y)


def test_a_missing_jacobian_is_caught(study: Any) -> None:
    """One factor of 1/sd too many makes sd too small by a quarter of its posterior sd."""
    wrong = adapters.numpyro(forgetful, X, draws=100, warmup=150, batch=40).machine
    result = rt.check(study, procedure=wrong.fitted, n=800)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "sd is" in result.sentence


def test_sites_may_have_other_names_than_their_keywords() -> None:
    """With observed={site: keyword}, and kernels of one's own; others than HMC have nothing to say."""

    def model(data: Any = None) -> None:
        numpyro.sample("obs", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=data)

    sampler = numpyro.infer.BarkerMH
    machine = adapters.numpyro(model, observed={"obs": "data"}, kernel=sampler, draws=20, warmup=20).machine
    output = machine.fitted(None, {"obs": np.zeros(3)}, np.random.default_rng(1))
    assert output.values["mu"].shape == (40, 3)
    assert output.diagnostics == {}


def test_what_has_no_prior_draws_is_refused() -> None:
    """Factors, improper, masked and discrete priors, data that are not simulated, no data: one sentence each."""

    def factor(y: Any = None) -> None:
        mu = numpyro.sample("mu", dist.Normal())
        numpyro.factor("extra", -(mu**2))
        numpyro.sample("y", dist.Normal(mu), obs=y)

    def prior(law: Any) -> Any:
        def model(y: Any = None) -> None:
            numpyro.sample("y", dist.Normal(numpyro.sample("mu", law)), obs=y)

        return model

    def forgotten(y: Any = None) -> None:
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal())))

    def fixed(y: Any = None) -> None:
        numpyro.sample("z", dist.Normal(numpyro.sample("mu", dist.Normal())), obs=1.0)
        numpyro.sample("y", dist.Normal(), obs=y)

    def needs_data(y: Any = None) -> None:
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal())).expand([len(y)]), obs=y)

    flat = dist.ImproperUniform(dist.constraints.real, (), ())
    says(refusal(lambda: adapters.numpyro(factor)), "factor", "extra")
    says(refusal(lambda: adapters.numpyro(prior(flat))), "improper", "mu")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal().mask(False)))), "masked", "mu")
    says(refusal(lambda: adapters.numpyro(prior(dist.Poisson(2.0)))), "discrete", "mu")
    says(refusal(lambda: adapters.numpyro(forgotten)), "obs=y")
    says(refusal(lambda: adapters.numpyro(fixed)), "'z'", "observed=")
    says(refusal(lambda: adapters.numpyro(needs_data)), "y=None")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), observed=())), "observed")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), observed=["z"], z=None)), "z")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), names=["nu"])), "'nu'")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), chains=1)), "chains")
    guide = numpyro.infer.autoguide.AutoNormal
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), guide=guide, kernel=lambda m: m)), "kernel=", "guide=")
    says(refusal(lambda: adapters.numpyro(prior(dist.Normal()), guide=guide(prior(dist.Normal())))), "class", "partial")
    says(refusal(lambda: adapters.numpyro(prior(dist.Poisson(2.0)), guide=guide)), "discrete", "mu")
