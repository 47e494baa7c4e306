"""Posterior SBC with PyMC and NumPyro: the likelihood is in the fit twice, for observed and for new data."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.execution.store.identity import fingerprint
from ringtrue.replicates.simulate import compute
from tests.builders import refusal, says

pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]
Y_OBS = np.array([4.0, 5.5, 4.5, 6.0])
FIT = {"draws": 150, "chains": 2}


def pymc_study(y_obs: Any = Y_OBS) -> Any:
    """Return four observations with unknown mean and sd, as PyMC has them."""
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mean, sd = pm.Normal("mean", 0, 3), pm.HalfNormal("sd", 2)
        pm.Normal("y", mean, sd, observed=y_obs)
    return adapters.pymc(model, tune=200, **FIT)


def numpyro_study() -> Any:
    """Return the same, as NumPyro has it."""
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions

    def model(y: Any = None) -> None:
        mean, sd = numpyro.sample("mean", dist.Normal(0, 3)), numpyro.sample("sd", dist.HalfNormal(2))
        with numpyro.plate("point", len(Y_OBS)):
            numpyro.sample("y", dist.Normal(mean, sd), obs=y)

    return adapters.numpyro(model, warmup=200, batch=25, **FIT)


@pytest.fixture(scope="module", params=[pymc_study, numpyro_study], ids=["pymc", "numpyro"])
def given(request: Any) -> Any:
    """Return one study of each library, given data: it compiles once."""
    return request.param().given(Y_OBS)


def test_right_fits_pass_and_narrow_ones_are_caught(given: Any) -> None:
    """Also for the log-likelihood of the new data; fits with half the spread would be called."""
    ran = compute(given, 0, 50, keep="draws").record
    right = rt.judge(ran, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    assert right.sentence.startswith("GIVEN y_obs, ")
    assert {"strong", "exact"} <= {*right.levels}
    assert "weak" not in right.levels
    assert right.levels["exact"].pvalue > 1e-6
    truth = right.replicates.truth[:, 0]
    assert len(np.unique(truth)) == 50
    # Means of four observations around 5 with sd 1 or so: the belief's mean of 0 is out of the question.
    assert 3 < truth.mean() < 7

    # Truths twice as far out as outputs say: 50 of them show it at 0.05 with p-values around 1e-6.
    kept = ran.kept_arrays()
    truths, draws = ({name: kept[f"{part}/{name}"] for name in ("mean", "sd")} for part in ("theta", "draws"))
    halved = {name: (part + part.mean(axis=1, keepdims=True)) / 2 for name, part in draws.items()}
    assert rt.check_draws(truths, halved, chains=2).verdict is rt.Verdict.MISCALIBRATED


def test_density_has_both_likelihoods_in_pymc() -> None:
    """The log density of the fit is prior plus likelihood of new and of observed data; mixtures included."""
    pm = pytest.importorskip("pymc")
    other = np.array([1.0, -2.0])
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 3)
        pm.Normal("y", mean, 1, observed=Y_OBS)
        pm.NormalMixture("z", np.array([0.3, 0.7]), [0, mean], [1, 2], observed=other)
    study = adapters.pymc(model).given({"y": Y_OBS, "z": other})
    machine = study.procedure.__self__
    new = {"y": Y_OBS - 1, "z": other * 2}
    for name, part in new.items():
        machine.model.rvs_to_values[machine.model[name]].set_value(part)

    def log_likelihood(mean: float, y: Any, z: Any) -> float:
        mixture = 0.3 * stats.norm.pdf(z) + 0.7 * stats.norm.pdf(z, mean, 2)
        return float(stats.norm.logpdf(y, mean).sum() + np.log(mixture).sum())

    def once(mean: float) -> float:
        return float(stats.norm.logpdf(mean, 0, 3)) + log_likelihood(mean, **new)

    def twice(mean: float) -> float:
        return once(mean) + log_likelihood(mean, Y_OBS, other)

    def drop(density: Any) -> float:
        return float(density(0.7) - density(-0.2))

    # PyMC's normal densities have a constant that is off by 4e-9 each; differences have none.
    compiled = machine.model.compile_logp()
    assert drop(lambda mean: compiled({"mean": mean})) == pytest.approx(drop(twice), rel=1e-11)
    assert drop(twice) != pytest.approx(drop(once), rel=0.01)
    found = drop(lambda mean: machine.log_likelihood({"mean": np.array(mean)}, new))
    assert found == pytest.approx(drop(lambda mean: log_likelihood(mean, **new)), rel=1e-11)


def test_density_has_both_likelihoods_in_numpyro() -> None:
    """The same, with scaled observations, which count as often in the observed data."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro.infer.util import log_density

    dist = numpyro.distributions

    def model(y: Any = None) -> None:
        mean = numpyro.sample("mean", dist.Normal(0, 3))
        with numpyro.plate("point", len(Y_OBS)), numpyro.handlers.scale(scale=2.0):
            numpyro.sample("y", dist.Normal(mean, 1), obs=y)

    machine = adapters.numpyro(model).given(Y_OBS).procedure.__self__
    density, _ = log_density(machine._fitted_model, (), {"y": Y_OBS - 1}, {"mean": 0.7})
    once = stats.norm.logpdf(0.7, 0, 3) + 2 * stats.norm.logpdf(Y_OBS - 1, 0.7).sum()
    assert float(density) == pytest.approx(once + 2 * stats.norm.logpdf(Y_OBS, 0.7).sum(), rel=1e-5)


def test_identity_has_the_observed_data() -> None:
    """A study built again is the same; other data make another; those of the model are the default."""
    marks = [fingerprint(study)["procedure"] for study in (pymc_study().given(), pymc_study(Y_OBS).given(Y_OBS))]
    assert marks[0] == marks[1]
    assert fingerprint(pymc_study().given(Y_OBS + 1))["procedure"] != marks[0]
    assert fingerprint(pymc_study())["procedure"] != marks[0]


@pytest.mark.parametrize("make", [pymc_study, numpyro_study])
def test_data_of_another_form_are_refused(make: Any) -> None:
    """Another length, another name: one sentence with what was expected."""
    study = make()
    says(refusal(lambda: study.given(Y_OBS[:3])), r"\(4,\)", r"\(3,\)")
    says(refusal(lambda: study.given({"x": Y_OBS})), "'y'", "'x'")
