"""PyMC models as studies, with PyMC itself: priors, data, fits and log-likelihoods are the model's own."""

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
from tests.builders import refusal, says

pm = pytest.importorskip("pymc")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]


def regression(scale: float = 1.0, noise: float = 0.5) -> Any:
    """Return a line through eight points, with a slope per group of points."""
    x = np.linspace(-1, 1, 8)
    with pm.Model(coords={"group": ["left", "right"]}) as model:
        slope = pm.Normal("slope", 0, scale, dims="group")
        sd = pm.HalfNormal("sd", noise)
        pm.Deterministic("ratio", slope[0] - slope[1])
        pm.Normal("y", slope[(x > 0).astype(int)] * x, sd, observed=np.zeros(8))
    return model


@pytest.fixture(scope="module")
def study() -> Any:
    """Return one study for all tests: it compiles once."""
    return adapters.pymc(regression(), draws=100, tune=200, chains=2)


def test_names_are_those_of_coordinates(study: Any) -> None:
    """Entries are called by the coordinates of the model; the log-likelihood is asked about at the exact level."""
    assert [f.name for f in study.functions] == ["slope[left]", "slope[right]", "sd", "log-likelihood"]
    assert study.functions[-1].sees == "data"


def test_prior_and_data_follow_the_model(study: Any) -> None:
    """Draws of the prior have its law, deterministic ones agree with their parents, and data have their own noise."""
    drawn = study.machine.prior(2000, np.random.default_rng(1))
    # Kolmogorov's test at 1e-6 for each of three laws; half the scale would fail by far.
    for values, law in ((drawn["slope"][:, 0], stats.norm()), (drawn["sd"], stats.halfnorm(scale=0.5))):
        assert stats.kstest(values, law.cdf).pvalue > 1e-6
        assert stats.kstest(values / 2, law.cdf).pvalue < 1e-6
    theta = {name: part[0] for name, part in drawn.items()}
    one, other = (study.machine.simulate(theta, np.random.default_rng(seed))["y"] for seed in (1, 2))
    assert np.array_equal(one, study.machine.simulate(theta, np.random.default_rng(1))["y"])
    assert not np.array_equal(one, other)
    mean = theta["slope"][(np.linspace(-1, 1, 8) > 0).astype(int)] * np.linspace(-1, 1, 8)
    assert np.abs((one - mean) / theta["sd"]).max() < 6


def test_log_likelihood_is_that_of_scipy(study: Any) -> None:
    """For one parameter and for many at once."""
    x, rng = np.linspace(-1, 1, 8), np.random.default_rng(2)
    slope, sd, y = rng.normal(size=(2, 5)), rng.gamma(2.0, size=5), rng.normal(size=8)
    mean = slope[(x > 0).astype(int)].T * x
    expected = stats.norm.logpdf(y, mean, sd[:, None]).sum(axis=1)
    many = study.machine.log_likelihood({"slope": slope, "sd": sd}, {"y": y})
    single = study.machine.log_likelihood({"slope": slope[:, 0], "sd": sd[0]}, {"y": y})
    assert many == pytest.approx(expected, rel=1e-10)
    assert float(single) == pytest.approx(expected[0], rel=1e-10)


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


def test_eight_schools_centred_is_a_result() -> None:
    """Chains that do not mix and fits that diverge, from the first replicate on, end nothing and are counted.

    The centred model is the textbook case: of 60 fits with other seeds all diverged, so that none of 12 would with
    probability below 1e-11 (at a share of 0.11, which 60 of 60 exclude with confidence 0.999).
    """
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 5)
        pm.Normal("y", pm.Normal("theta", mu, tau, shape=8), error, observed=np.zeros(8))
    result = rt.check(adapters.pymc(model, names=["mu", "tau"], draws=100, tune=150), n=12)
    found = result.diagnostics
    assert set(found.columns) == {
        "R-hat",
        "effective size",
        "divergences",
        "max depth reached",
        "tree depth",
        "leapfrog steps",
        "acceptance",
    }
    assert all(np.isfinite(values).all() for values in found.columns.values())
    assert (found.columns["divergences"] > 0).any()
    says(str(found), r"\d+ of 12 fits diverged", "all, as they came")
    assert result.replicates.lost == 0


def test_advi_is_compiled_once_and_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second dataset compiles nothing, and leaves nothing behind: the first, fitted again, gives the same bits."""
    from pytensor.compile import FunctionMaker

    machine = adapters.pymc(regression(), sampler="advi", n=100, draws=20, names=["sd", "ratio"]).machine
    one, other = ({"y": np.full(8, value)} for value in (0.0, 9.0))
    before = machine.fitted(None, one, np.random.default_rng(1))

    def refused(*parts: Any, **settings: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(FunctionMaker, "__init__", refused)
    between = machine.fitted(None, other, np.random.default_rng(2))
    after = machine.fitted(None, one, np.random.default_rng(1))
    assert before.iid
    assert before.values["slope"].shape == (20, 2)
    slope, ratio = after.values["slope"], after.values["ratio"]
    assert ratio == pytest.approx(slope[:, 0] - slope[:, 1], rel=1e-12)
    for name, part in before.values.items():
        assert np.array_equal(part, after.values[name])
        assert not np.isclose(part, between.values[name]).any()
    # Data that are nine times the noise away from the model have a far lower bound.
    assert between.diagnostics["ELBO"] < before.diagnostics["ELBO"] - 10


def test_same_model_built_again_has_the_same_identity() -> None:
    """In this process and in another; a constant or an option that changes, changes it."""
    code = (
        "from tests.adapters.test_pymc import *; "
        "print(fingerprint(adapters.pymc(regression(), draws=100, tune=200))['procedure'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(adapters.pymc(regression(), draws=100, tune=200))
    assert run.stdout.strip().splitlines()[-1] == here["procedure"]
    for other in (adapters.pymc(regression(2.0), draws=100, tune=200), adapters.pymc(regression(), draws=50, tune=200)):
        assert fingerprint(other)["procedure"] != here["procedure"]


@pytest.mark.process
def test_workers_and_stores_give_the_same_bits(study: Any, tmp_path: Path) -> None:
    """Two processes, each with its own compiled model, and a run that is gone on with, compute what one does."""
    alone = rt.run(study, n=8)
    shared = rt.run(study, n=8, workers=2)
    rt.run(study, n=3, store=tmp_path / "run.db")
    again = rt.run(adapters.pymc(regression(), draws=100, tune=200, chains=2), n=8, store=tmp_path / "run.db")
    for other in (shared, again):
        assert np.array_equal(alone.u, other.u)


def test_what_has_no_prior_draws_is_refused() -> None:
    """Potentials, improper priors, missing data, no data: one sentence each."""
    with pm.Model() as potential:
        mu = pm.Normal("mu")
        pm.Potential("extra", -(mu**2))
        pm.Normal("y", mu, observed=[1.0])
    with pm.Model() as flat:
        pm.Normal("y", pm.Flat("mu"), observed=[1.0])
    with pm.Model() as gaps:
        pm.Normal("y", pm.Normal("mu"), observed=np.ma.masked_invalid([1.0, np.nan]))
    with pm.Model() as nothing:
        pm.Normal("mu")
    says(refusal(lambda: adapters.pymc(potential)), "potential", "extra")
    says(refusal(lambda: adapters.pymc(flat)), "improper", "mu")
    says(refusal(lambda: adapters.pymc(gaps)), "missing values")
    says(refusal(lambda: adapters.pymc(nothing)), "observed")
    says(refusal(lambda: adapters.pymc(regression(), observed=["z"])), "'z'")
    says(refusal(lambda: adapters.pymc(regression(), sampler="gibbs")), "gibbs")
    says(refusal(lambda: adapters.pymc(regression(), sampler="advi", method="svgd")), "'method'", "leave it out")
