"""Networks of BayesFlow itself as studies, on normal means whose posterior is known."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.adapters.libraries import seeded
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

# With torch behind it, BayesFlow switches gradients off for the whole process, and sbi could not be trained there.
os.environ.setdefault("KERAS_BACKEND", "jax")
pytest.importorskip("jax")
pytest.importorskip("bayesflow")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

NAMES = ["mu", "b[0]", "b[1]"]


def prior() -> Any:
    """Return a number and a vector of two."""
    return {"mu": np.random.normal(), "b": np.random.normal(size=2)}  # noqa: NPY002 - as people write it


def wide() -> Any:
    """Return the same from a prior that is three times as wide."""
    return {name: 3 * part for name, part in prior().items()}


def likelihood(mu: Any, b: Any) -> Any:
    """Return one observation of each, with noise of sd 1/2."""
    return {"y": np.concatenate([[mu], b]) + 0.5 * np.random.normal(size=3)}  # noqa: NPY002


def simulator(law: Any = prior) -> Any:
    """Return a simulator of BayesFlow."""
    import bayesflow

    return bayesflow.make_simulator([law, likelihood])


def trained(epochs: int, simulations: int = 2000) -> Any:
    """Return a workflow with a small flow."""
    import bayesflow
    import keras

    keras.utils.set_random_seed(1)
    workflow = bayesflow.BasicWorkflow(
        simulator=simulator(),
        inference_network=bayesflow.networks.CouplingFlow(depth=2, subnet_kwargs={"widths": (32, 32)}),
        inference_variables=["mu", "b"],
        inference_conditions=["y"],
        initial_learning_rate=5e-3,
    )
    with seeded(np.random.default_rng(1)):
        workflow.fit_offline(workflow.simulator.sample(simulations), epochs=epochs, batch_size=100, verbose=0)
    return workflow


@pytest.fixture(scope="module")
def network() -> Any:
    """Return one trained workflow for all tests."""
    return trained(12)


def test_parameters_are_found_and_data_are_the_rest(network: Any) -> None:
    """What the network draws is theta, numbers as numbers; all else that is simulated is data."""
    study = adapters.bayesflow(network, simulator())
    assert [f.name for f in study.functions] == [*NAMES, "sum", "distance"]
    assert [f.name for f in adapters.bayesflow(network, simulator(), names=["b"]).functions][:2] == ["b[0]", "b[1]"]
    theta, y = study.machine.simulate(5, np.random.default_rng(1))
    assert {name: part.shape for name, part in theta.items()} == {"mu": (5,), "b": (5, 2)}
    assert {name: part.shape for name, part in y.items()} == {"y": (5, 3)}
    output = study.machine.fitted(None, y, np.random.default_rng(2))
    assert {name: part.shape for name, part in output.values.items()} == {"mu": (99, 5), "b": (99, 5, 2)}
    assert output.iid
    again = study.machine.fitted(None, y, np.random.default_rng(2))
    assert np.array_equal(output.values["mu"], again.values["mu"])


def test_draws_belong_to_their_datasets(network: Any) -> None:
    """Posterior means follow the data of their own dataset, entry by entry."""
    machine = adapters.bayesflow(network, simulator()).machine
    _, y = machine.simulate(200, np.random.default_rng(3))
    values = machine.fitted(None, y, np.random.default_rng(4)).values
    for found, data in ((values["mu"], y["y"][:, 0]), (values["b"][..., 1], y["y"][:, 2])):
        # Exact: correlation 1 with 0.8 y. Of 200 pairs that do not belong together one of 0.5 has p < 1e-13.
        assert stats.pearsonr(found.mean(axis=0), data).statistic > 0.9
        assert stats.pearsonr(np.roll(found.mean(axis=0), 1), data).statistic < 0.5


def log_likelihood(theta: Any, y: Any) -> Any:
    """Return that of one dataset, up to a constant, for all draws at once."""
    return sum(stats.norm.logpdf(y["y"][i], part, 0.5) for i, part in enumerate((theta["mu"], *theta["b"])))


def test_trained_network_is_near_and_a_wrong_prior_is_caught(network: Any) -> None:
    """Training brings the spread near 1; truths of another prior have another."""
    near = rt.check(adapters.bayesflow(network, simulator()), n=500)
    # A network is never exact: its sizes are what is asked about. The log of a spread is known to 1 / sqrt(2 n), 3.2 %,
    # so that a network within 12 % leaves these bounds with probability 6e-7, 5 errors; 2 trained ones were within 4 %.
    spreads = [row.estimate for row in near.measures if row.name == "spread" and row.f in NAMES]
    assert len(spreads) == 3
    assert all(0.75 < spread < 1.33 for spread in spreads)
    wider = rt.check(adapters.bayesflow(network, simulator(wide)), n=500)
    assert wider.verdict is rt.Verdict.MISCALIBRATED


def test_untrained_network_is_not_the_exact_posterior() -> None:
    """After one epoch it gives the prior, more or less: calibrated, and of no use, as the log-likelihood sees.

    A check at 1e-6; four networks had p-values below 1e-85.
    """
    f = [rt.Vectorized(log_likelihood, "log-likelihood", sees="data")]
    untrained = rt.check(adapters.bayesflow(trained(1, 200), simulator()), n=100, f=f, alpha=1e-6)
    assert "NOT THE EXACT POSTERIOR" in untrained.sentence


def test_what_all_datasets_share_is_no_dataset(network: Any) -> None:
    """A number that a simulator draws once for a batch, and its like, goes to the network as it came."""

    class Shared:
        """A simulator that says how many there are."""

        def sample(self, many: int) -> Any:
            """Return a batch."""
            return {**simulator().sample(many), "count": np.array(3.0)}

    machine = adapters.bayesflow(network, Shared()).machine
    _, y = machine.simulate(4, np.random.default_rng(1))
    assert y["count"].tolist() == [3] * 4
    assert machine.fitted(None, y, np.random.default_rng(2)).values["mu"].shape == (99, 4)


@pytest.mark.process
def test_copies_and_stores_give_the_same_bits(network: Any, tmp_path: Path) -> None:
    """A copy, and a run that another process began, compute what one does; weights are the identity."""
    study = adapters.bayesflow(network.approximator, simulator())
    network.approximator.save(tmp_path / "network.keras")
    code = (
        "import sys; from tests.adapters.test_bayesflow import *; import keras, bayesflow; "
        "study = adapters.bayesflow(keras.saving.load_model(sys.argv[1]), simulator()); "
        "print(fingerprint(study)['procedure']); rt.run(study, n=100, store=sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "network.keras"), str(tmp_path / "run.db")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip().splitlines()[-1] == fingerprint(study)["procedure"]
    alone = rt.run(study, n=200)
    assert np.array_equal(alone.u, rt.run(study, n=200, store=tmp_path / "run.db").u)
    other = adapters.bayesflow(network.approximator, simulator(), draws=50)
    assert fingerprint(other)["procedure"] != fingerprint(study)["procedure"]
    # What a worker gets.
    assert np.array_equal(alone.u, rt.run(pickle.loads(cloudpickle.dumps(study)), n=200).u)


def test_what_is_no_network_is_refused(network: Any) -> None:
    """Things without a sample, other names, networks that were not built: one sentence each."""
    import bayesflow

    says(refusal(lambda: adapters.bayesflow(network, likelihood)), "sample", "function")
    says(refusal(lambda: adapters.bayesflow(network, simulator(), names=["nu"])), "'nu'")
    untrained = bayesflow.BasicWorkflow(
        simulator=simulator(),
        inference_network=bayesflow.networks.CouplingFlow(depth=2),
        inference_variables=["mu", "b"],
        inference_conditions=["y"],
    )
    says(refusal(lambda: adapters.bayesflow(untrained, simulator())), "trained")
