"""Posteriors of sbi itself as studies, on a normal mean whose posterior is known.

Samplers of sbi that are given the exact density are right; a network is as good as its training.
"""

import contextlib
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.adapters.libraries import seeded
from ringtrue.adapters.sbi_posteriors import Sampling, _draw
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

torch = pytest.importorskip("torch")
pytest.importorskip("sbi")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

#: Of N(0, 1) after one observation with noise of sd 1/2: mean 0.8 y, sd 0.2 ** 0.5; entries are independent.
WEIGHT, SD, NOISE = 0.8, 0.2**0.5, 0.5
NAMES = ["a", "b"]


def prior(scale: float = 1.0) -> Any:
    """Return two independent normals."""
    return torch.distributions.MultivariateNormal(torch.zeros(2), scale**2 * torch.eye(2))


def simulator(theta: Any) -> Any:
    """Return one observation of each entry."""
    return theta + NOISE * torch.randn_like(theta)


def potential(theta: Any, x_o: Any, noise: float = NOISE) -> Any:
    """Return the log density of the posterior, up to a constant."""
    return (-(theta**2) / 2 - ((x_o - theta) / noise) ** 2 / 2).sum(dim=-1)


def sure(theta: Any, x_o: Any) -> Any:
    """Return the same for noise that is thought to be a fifth of what it is."""
    return potential(theta, x_o, NOISE / 5)


def sampled(kind: str, density: Any = potential, **options: Any) -> Any:
    """Return a posterior that sbi draws from by a sampler, without a network."""
    from sbi.inference import posteriors

    made: Any = getattr(posteriors, kind)(density, prior(), **options)
    return made


def trained(epochs: int, simulations: int = 3000) -> Any:
    """Return a posterior by a network: one normal whose mean and covariance are functions of the data."""
    from sbi.inference import NPE
    from sbi.neural_nets import posterior_nn

    # Training writes a log into the folder that it is in.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), seeded(np.random.default_rng(1)):
        theta = prior().sample((simulations,))
        network = posterior_nn("mdn", hidden_features=20, num_components=1)
        inference = NPE(prior(), density_estimator=network, show_progress_bars=False)
        inference.append_simulations(theta, simulator(theta)).train(
            max_num_epochs=epochs, learning_rate=5e-3, training_batch_size=200
        )
        return inference.build_posterior()


@pytest.fixture(scope="module")
def network() -> Any:
    """Return one trained posterior for all tests."""
    return trained(40)


def study(posterior: Any, law: Any = None, **options: Any) -> Any:
    """Return a study with names."""
    return adapters.sbi(posterior, prior() if law is None else law, simulator, **{"names": NAMES, **options})


def exact(y: Any) -> Any:
    """Return the exact posteriors of datasets, entry by entry."""
    return stats.norm(WEIGHT * y, SD)


def test_entries_and_the_density_are_asked_about(network: Any) -> None:
    """By name or by number; the log density of a network, which samplers do not know, is asked about too."""
    assert [f.name for f in study(network).functions] == [*NAMES, "sum", "distance", "log density"]
    assert [f.name for f in study(network, names=None).functions][:2] == ["theta[0]", "theta[1]"]
    assert [f.name for f in study(sampled("RejectionPosterior")).functions] == [*NAMES, "sum", "distance"]


def test_density_is_that_of_the_network(network: Any) -> None:
    """For truths and for draws, each with the data of its own dataset."""
    machine = study(network).machine
    theta = machine.prior(3, np.random.default_rng(1))
    y = machine.simulate(theta, np.random.default_rng(2))
    output = machine.fitted(None, y, np.random.default_rng(3))
    found = output.log_density(output.values)
    assert found.shape == (99, 3)
    for j in range(3):
        points = np.stack([output.values[name][:, j] for name in NAMES], axis=-1)
        alone = network.log_prob(torch.as_tensor(points), x=torch.as_tensor(y[j : j + 1]), norm_posterior=False)
        assert found[:, j] == pytest.approx(alone.numpy(), rel=1e-4, abs=1e-4)
    assert output.log_density(theta).shape == (3,)


@pytest.mark.parametrize(
    ("kind", "options", "settings"),
    [
        ("MCMCPosterior", {"warmup_steps": 20, "thin": 1}, {"draws": 10}),
        ("MCMCPosterior", {"warmup_steps": 10, "thin": 1, "method": "slice_np"}, {"draws": 5}),
        ("RejectionPosterior", {}, {"draws": 20}),
        ("ImportanceSamplingPosterior", {"method": "sir"}, {"draws": 20}),
        ("ImportanceSamplingPosterior", {"method": "importance"}, {"draws": 300}),
    ],
    ids=["slices side by side", "slices one by one", "rejection", "resampling", "weights"],
)
def test_samplers_of_the_exact_density_draw_from_the_posterior(kind: str, options: Any, settings: Any) -> None:
    """Every dataset has draws of its own posterior; those of a density that is too sure have not."""
    for density, right in ((potential, True), (sure, False)):
        machine = study(sampled(kind, density, **options), **settings).machine
        y = np.where(np.arange(20).reshape(10, 2) % 3, 0.5, -0.5)
        output = machine.fitted(None, y, np.random.default_rng(4))
        weights = 1.0 if output.weights is None else len(output.weights) * output.weights
        z = np.stack([exact(y[:, i]).cdf(output.values[name]) for i, name in enumerate(NAMES)], axis=-1)
        # One number per dataset: datasets are independent, whatever happens inside of them. A t-test of their mean
        # square at 1e-6; with a fifth of the noise it is 0.01 or so. Draws of another's posterior, a sign of y away,
        # would have 0.17.
        spread = ((z - 0.5) ** 2 * np.broadcast_to(weights, z.shape[:2])[..., None]).mean(axis=(0, 2))
        assert (stats.ttest_1samp(spread, 1 / 12).pvalue > 1e-6) == right


def test_chains_are_chains_and_draws_are_not() -> None:
    """The draws of a Markov chain lie one behind the other; weights are kept."""
    y = np.zeros((3, 2))
    rng = np.random.default_rng(5)
    chains = study(sampled("MCMCPosterior", warmup_steps=10, thin=1), draws=20, chains=3).machine.fitted(None, y, rng)
    assert (chains.size, chains.chains) == (60, 3)
    drawn = study(sampled("RejectionPosterior"), draws=20).machine.fitted(None, y, rng)
    assert (drawn.size, drawn.chains, drawn.iid) == (20, None, True)
    weighted = study(sampled("ImportanceSamplingPosterior", method="importance"), draws=20).machine
    assert weighted.fitted(None, y, rng).weights.shape == (20, 3)


def test_right_sampler_passes() -> None:
    """A sampler of the exact density is not called miscalibrated, and its draws are taken for the chains they are."""
    right = study(sampled("MCMCPosterior", warmup_steps=15, thin=1), draws=10, batch=20)
    found = rt.check(right, n=40, alpha=1e-6)
    assert found.verdict is not rt.Verdict.MISCALIBRATED
    assert {row.route for row in found.tests if row.level == "strong"} == {"2 chains of 10"}


def log_likelihood(theta: Any, y: Any) -> Any:
    """Return that of one dataset, up to a constant, for all draws at once."""
    return sum(stats.norm.logpdf(y[i], theta[name], NOISE) for i, name in enumerate(NAMES))


def test_trained_network_is_near_and_a_wrong_prior_is_caught(network: Any) -> None:
    """Training brings the spread near 1; truths of another prior have another."""
    near = rt.check(study(network), n=500)
    # A network is never exact: its sizes are what is asked about. The log of a spread is known to 1 / sqrt(2 n), 3.2 %,
    # so that a network within 12 % leaves these bounds with probability 6e-7, 5 errors; 6 trained ones were within 9 %.
    spreads = [row.estimate for row in near.measures if row.name == "spread" and row.f in NAMES]
    assert len(spreads) == 2
    assert all(0.75 < spread < 1.33 for spread in spreads)
    wider = rt.check(study(network, prior(3.0)), n=500)
    assert wider.verdict is rt.Verdict.MISCALIBRATED


def test_untrained_network_is_not_the_exact_posterior() -> None:
    """After one epoch it gives the prior, more or less: calibrated, and of no use, as the log-likelihood sees.

    A check at 1e-6, which the exact posterior passes; 20 networks had p-values below 1e-44.
    """
    f = [rt.Vectorized(log_likelihood, "log-likelihood", sees="data")]
    untrained = rt.check(study(trained(1, 200)), n=100, f=f, alpha=1e-6)
    assert "NOT THE EXACT POSTERIOR" in untrained.sentence
    exact = rt.check(study(sampled("RejectionPosterior")), n=100, f=f, alpha=1e-6)
    assert "NOT THE EXACT POSTERIOR" not in exact.sentence


class Constant:
    """A posterior that is sure."""

    def __init__(self, value: float) -> None:
        self.value = value

    def sample_batched(self, shape: Any, x: Any, **options: Any) -> Any:
        """Return the same for all datasets."""
        return torch.full((*shape, len(x), 2), self.value)


def test_ensembles_are_mixed_for_every_dataset(network: Any) -> None:
    """Members are chosen draw by draw: how many come from each has the binomial law, of its own for every dataset."""
    from sbi.inference.posteriors import EnsemblePosterior

    both = EnsemblePosterior([network, network], weights=[0.25, 0.75])
    assert study(both).machine.fitted(None, np.zeros((3, 2)), np.random.default_rng(6)).values["a"].shape == (99, 3)
    members = SimpleNamespace(posteriors=[Constant(0.0), Constant(1.0)], weights=torch.tensor([0.25, 0.75]))
    found = _draw(members, torch.zeros(1000, 2), Sampling(100, 2, {}), np.random.default_rng(7))
    assert np.array_equal(found.values[..., 0], found.values[..., 1])
    counts = found.values[..., 0].sum(axis=0)
    # The mean of 1000 counts: 5 sd of 0.137, 6e-7. Their variance, 18.75: chi-squared up to the counts' kurtosis, below
    # 3, and 5 sd of 4.5 % each. Equal counts, as sbi draws them, have none.
    assert abs(counts.mean() - 75) < 5 * (18.75 / 1000) ** 0.5
    assert counts.var() == pytest.approx(18.75, rel=5 * 0.045)


def test_variational_posterior_is_trained_for_every_dataset() -> None:
    """It follows the data of each, with the spread of the exact posterior."""
    posterior = sampled("VIPosterior", q="gaussian")
    machine = study(posterior, draws=400, batch=2, max_num_iters=300, learning_rate=0.02).machine
    y = np.array([[1.0, -1.0], [-2.0, 2.0]])
    output = machine.fitted(None, y, np.random.default_rng(8))
    for i, name in enumerate(NAMES):
        # The fit is good to a few per cent; a posterior that was not trained again would be wrong for one dataset.
        assert output.values[name].mean(axis=0) == pytest.approx(WEIGHT * y[:, i], abs=0.3)
        assert output.values[name].std(axis=0) == pytest.approx(SD, rel=0.35)


def test_same_posterior_has_the_same_identity(network: Any, tmp_path: Path) -> None:
    """Copied, used, or in another process; other weights, another prior, simulator or setting change it."""
    here = fingerprint(study(network))["procedure"]
    study(network).machine.fitted(None, np.zeros((2, 2)), np.random.default_rng(1))
    copy = pickle.loads(pickle.dumps(network))
    assert fingerprint(study(copy))["procedure"] == here
    (tmp_path / "posterior").write_bytes(pickle.dumps(network))
    code = (
        "from tests.adapters.test_sbi import *; "
        "print(fingerprint(study(pickle.loads(Path(sys.argv[1]).read_bytes())))['procedure'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "posterior"], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip().splitlines()[-1] == here
    with torch.no_grad():
        next(copy.posterior_estimator.parameters()).add_(1e-3)
    others = [
        study(copy),
        study(network, prior(2.0)),
        study(network, draws=50),
        adapters.sbi(network, prior(), lambda theta: theta, names=NAMES),
    ]
    for other in others:
        assert fingerprint(other)["procedure"] != here


@pytest.mark.process
def test_workers_and_stores_give_the_same_bits(network: Any, tmp_path: Path) -> None:
    """Two processes, and a run that is gone on with by a copy, compute what one does."""
    alone = rt.run(study(network), n=200)
    shared = rt.run(study(network), n=200, workers=2)
    rt.run(study(network), n=100, store=tmp_path / "run.db")
    again = rt.run(study(pickle.loads(pickle.dumps(network))), n=200, store=tmp_path / "run.db")
    for other in (shared, again):
        assert np.array_equal(alone.u, other.u)


def test_priors_and_simulators_of_all_kinds(network: Any) -> None:
    """Lists of priors, and simulators of one parameter at a time written in NumPy, whose random numbers are seeded."""

    def single(theta: Any) -> Any:
        return np.asarray(theta) + NOISE * np.random.normal(size=2)  # noqa: NPY002 - as people write it

    listed = [torch.distributions.Normal(torch.zeros(1), torch.ones(1))] * 2
    for given, made in ((listed, simulator), (prior(), single)):
        machine = adapters.sbi(network, given, made).machine
        theta = machine.prior(2000, np.random.default_rng(1))
        assert theta.shape == (2000, 2)
        # Kolmogorov's test at 1e-6; twice the scale would fail by far.
        assert stats.kstest(theta[:, 0], "norm").pvalue > 1e-6
        assert stats.kstest(2 * theta[:, 0], "norm").pvalue < 1e-6
        y = machine.simulate(theta[:50], np.random.default_rng(2))
        assert np.array_equal(y, machine.simulate(theta[:50], np.random.default_rng(2)))
        assert not np.array_equal(y, machine.simulate(theta[:50], np.random.default_rng(3)))


def test_data_with_nan_are_lost(network: Any) -> None:
    """A dataset without numbers has no draws, where sbi would look for them without end; the others have theirs."""
    y = np.zeros((3, 2))
    y[1, 0] = np.nan
    values = study(network).machine.fitted(None, y, np.random.default_rng(1)).values["a"]
    assert np.isnan(values).all(axis=0).tolist() == [False, True, False]


def test_what_is_no_posterior_is_refused(network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference that was not trained, an estimator, other names, a simulator of other parameters: one sentence each."""
    from sbi.inference import NPE

    monkeypatch.chdir(tmp_path)  # a log is begun there
    untrained = NPE(prior(), show_progress_bars=False)
    says(refusal(lambda: study(untrained)), "build_posterior", "NPE")
    says(refusal(lambda: study(network.posterior_estimator)), "build_posterior")
    says(refusal(lambda: study(network, names=["a"])), "names=", "2 entries")
    says(refusal(lambda: study(network, object())), "prior must be")
    says(refusal(lambda: adapters.sbi(network, prior(), lambda theta: theta @ torch.eye(3))), "simulator must")
    says(refusal(lambda: study(network, chains=1)), "chains")
