"""Stan programs as studies, with PyStan itself: one program, that of the page, since each takes a minute to compile.

CmdStan is not there: what is read from its tables is tested with CmdStanPy, and that it would be called rightly.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.adapters import stan_programs
from ringtrue.adapters.libraries import seed_of
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

pytest.importorskip("stan", reason="PyStan cannot be imported")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

PAGE = (Path(__file__).parents[2] / "docs" / "stan.md").read_text("utf-8")
PROGRAM = re.findall(r'program = """(.*?)"""', PAGE, flags=re.DOTALL)[0]
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
DATA = {"J": 8, "y": np.zeros(8), "error": ERROR}
PRIOR = {"mu": "mu_prior", "tau": "tau_prior", "z": "z_prior"}


def build(**options: Any) -> Any:
    """Return a study of the schools."""
    return adapters.stan(PROGRAM, DATA, **{"prior": PRIOR, "draws": 100, "warmup": 150, **options})


@pytest.fixture(scope="module")
def study() -> Any:
    """Return one study for all tests."""
    return build()


@pytest.fixture(scope="module")
def drawn(study: Any) -> Any:
    """Return draws of the prior."""
    return study.belief.sample(2000, np.random.default_rng(1))


def first(values: Any) -> Any:
    """Return the first of some draws."""
    return {name: part[0] for name, part in values.items()}


def test_parameters_and_the_log_likelihood_are_asked_about(study: Any) -> None:
    """Every entry that the prior draws; the log-likelihood at the exact level."""
    assert [f.name for f in study.functions] == ["mu", "tau", *(f"z[{i}]" for i in range(8)), "log-likelihood"]
    assert study.functions[-1].sees == "data"


def test_prior_and_data_follow_the_program(study: Any, drawn: Any) -> None:
    """Quantities of the program have its laws, and data have noise of their own; Kolmogorov's test at 1e-6 each."""
    for values, law in ((drawn["mu"], stats.norm(0, 5)), (drawn["tau"], stats.gamma(2, scale=2.5))):
        assert stats.kstest(values, law.cdf).pvalue > 1e-6
        assert stats.kstest(values / 2, law.cdf).pvalue < 1e-6
    assert drawn["z"].shape == (2000, 8)
    theta = {**first(drawn), "mu": 1000.0}
    y = [study.model(theta, np.random.default_rng(seed))["y"] for seed in range(10)]
    noise = (np.array(y) - 1000 - theta["tau"] * theta["z"]) / ERROR
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6
    assert np.array_equal(y[0], study.model(theta, np.random.default_rng(0))["y"])


def test_chains_lie_one_behind_the_other(study: Any) -> None:
    """PyStan mixes its chains: the first of two is what it draws when there is one."""
    y = {"y": np.arange(8.0)}
    two = study.machine.fitted(None, y, np.random.default_rng(5))
    data, seed = {**study.machine.data, **y}, seed_of(np.random.default_rng(5))
    alone, _ = study.machine.program.sampled(data, ["z"], stan_programs.Fit(1, 100, 150, {}), seed)
    assert two.chains == 2
    assert two.values["z"].shape == (200, 8)
    assert np.array_equal(two.values["z"][:100], alone["z"])
    assert not np.isclose(two.values["z"][100:], alone["z"]).any()
    assert {name: np.ndim(value) for name, value in two.diagnostics.items()} == {"divergences": 0, "tree depth": 0}
    assert two.diagnostics["tree depth"] >= 1


def test_log_likelihood_is_that_of_scipy(study: Any, drawn: Any) -> None:
    """Of one parameter, of draws as they come from a fit, and of draws that were never seen."""
    y = {"y": np.arange(8.0)}
    output = study.machine.fitted(None, y, np.random.default_rng(6))
    some = {name: part[:3] for name, part in drawn.items()}
    for values in (output.values, some):
        centre = values["mu"][:, None] + values["tau"][:, None] * values["z"]
        expected = stats.norm.logpdf(y["y"], centre, ERROR).sum(axis=1)
        last = {name: np.moveaxis(part, 0, -1) for name, part in values.items()}
        # Draws travel as text with all their digits.
        assert study.machine.log_likelihood(last, y) == pytest.approx(expected, rel=1e-10)
        assert study.machine.log_likelihood(first(values), y) == pytest.approx(expected[0], rel=1e-10)


def test_right_program_passes_and_a_wrong_simulator_is_caught() -> None:
    """The program judged on its own simulations is not called; data that are 20 higher than it thinks are, by name."""
    right = rt.check(build(names=["mu", "tau"]), n=25, seed=1, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    assert {row.route for row in right.tests if row.level == "strong"} == {"2 chains of 100"}

    def higher(theta: Any, rng: Any) -> Any:
        return {"y": theta["mu"] + 20 + theta["tau"] * theta["z"] + ERROR * rng.normal(size=8)}

    # The mean of eight schools has an sd of about 4.2, and is shrunk by a half: mu is off by more than two of its sds.
    belief = {"mu": rt.Normal(0, 5), "tau": rt.Gamma(2, 0.4), "z": rt.Normal(np.zeros(8), np.ones(8))}
    wrong = rt.check(build(prior=belief, simulator=higher, names=["mu"]), n=25)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert "mu is" in wrong.sentence


def test_same_program_has_the_same_identity(study: Any) -> None:
    """In this process and in another; other data, options or quantities change it."""
    code = "from tests.adapters.test_stan import *; print(fingerprint(build())['procedure'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(study)
    assert run.stdout.strip().splitlines()[-1] == here["procedure"]
    assert fingerprint(build(draws=50))["procedure"] != here["procedure"]
    other = adapters.stan(PROGRAM, {**DATA, "error": 2 * ERROR}, prior=PRIOR, draws=100, warmup=150)
    assert all(fingerprint(other)[part] != here[part] for part in ("belief", "model", "procedure"))


@pytest.mark.process
def test_workers_and_stores_give_the_same_bits(study: Any, tmp_path: Path) -> None:
    """Two processes, and a run that is gone on with, compute what one does."""
    alone = rt.run(study, n=4)
    shared = rt.run(study, n=4, workers=2)
    rt.run(study, n=2, store=tmp_path / "run.db")
    again = rt.run(build(), n=4, store=tmp_path / "run.db")
    for other in (shared, again):
        assert np.array_equal(alone.u, other.u)


def test_what_does_not_fit_together_is_refused(study: Any) -> None:
    """No prior, a prior that lacks a parameter, unknown names, data of another length: one sentence each."""
    some = {"mu": rt.Normal(0, 5), "tau": rt.Gamma(2, 0.4)}
    says(refusal(lambda: build(prior=None)), "prior=", "second program")
    says(refusal(lambda: build(prior=some)), "does not draw 'z'", "simulator=")
    says(refusal(lambda: build(prior=rt.Normal(0, 1))), "by name")
    says(refusal(lambda: build(prior={"nu": rt.Normal(0, 1)})), "parameters of the program", "nu")
    says(refusal(lambda: build(prior={**PRIOR, "mu": "nu_prior"})), "nu_prior")
    says(refusal(lambda: build(prior=PROGRAM)), "without parameters", "'mu'")
    says(refusal(lambda: build(simulator={"y": "y_new"})), "y_new")
    says(refusal(lambda: build(observed=["error"])), "error_rep", "simulator=")
    says(refusal(lambda: build(observed=["x"])), "'x'")
    says(refusal(lambda: build(names=["theta"])), "'theta'")
    says(refusal(lambda: build(chains=1)), "chains")
    says(refusal(lambda: adapters.stan(3, DATA, prior=PRIOR)), "CmdStanModel")
    says(
        refusal(lambda: study.machine.fitted(None, {"y": np.zeros(9)}, np.random.default_rng(1))), r"\(8,\)", r"\(9,\)"
    )


class Coins:
    """A program of our own, in Python: what is drawn together, and whole numbers that come back as whole numbers."""

    text = "coins"

    def generated(self, data: Any, names: Any, m: int, seed: int, fixed: Any) -> Any:
        """Return m draws of a chance, and as many of coins as data have."""
        rng = np.random.default_rng(seed)
        chance = np.full(m, data["p"]) if "p" in data else rng.uniform(size=m)
        return {"p": chance, "y": rng.binomial(1, chance[:, None], (m, len(data["y"]))).astype(float)}


def test_a_second_program_draws_parameters_and_data_together() -> None:
    """Truth and data come from one draw; given the truth as data, data alone are drawn."""
    data = {"y": np.zeros(500, int)}
    quantities = stan_programs.Quantities(Coins(), data, {"p": "p", "y": "y"})  # type: ignore[arg-type]
    pair = stan_programs.Pair(quantities, ["y"], data)
    theta, y = pair(np.random.default_rng(1))
    assert list(theta) == ["p"]
    assert stan_programs.Together(pair).sample(7, np.random.default_rng(1))["p"].shape == (7,)
    assert y["y"].dtype == data["y"].dtype
    # Coins of another draw would have another chance: 6 sd of a mean of 500.
    assert abs(y["y"].mean() - theta["p"]) < 6 * np.sqrt(theta["p"] * (1 - theta["p"]) / 500)
    simulate = stan_programs.Quantities(Coins(), data, {"y": "y"}, "data").simulate  # type: ignore[arg-type]
    assert simulate({"p": np.float64(1.0)}, np.random.default_rng(1))["y"].tolist() == [1] * 500


def table(file: Path, chain: int) -> str:
    """Write a table as CmdStan does, of three draws, and return its path."""
    sizes = ["num_samples = 3", "num_warmup = 3", "save_warmup = 0", "thin = 1"]
    how = ["method = sample", "algorithm = hmc", "max_depth = 10", "metric = diag_e"]
    settings = ["model = schools", *how, *sizes, f"id = {chain}"]
    comments = "".join(f"# {line}\n" for line in settings)
    head = "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,mu,z.1,z.2\n"
    rows = "".join(f"-1,0.9,0.5,{2 + i},3,{i % 2},1,{10 * chain + i},{chain},{i}\n" for i in range(3))
    masses = "# Diagonal elements of inverse mass matrix:\n# 1, 1, 1\n"
    times = "# \n#  Elapsed Time: 0.1 seconds (Warm-up)\n#                0.1 seconds (Sampling)\n"
    file.write_text(comments + head + "# Adaptation terminated\n# Step size = 0.5\n" + masses + rows + times)
    return str(file)


def test_tables_of_cmdstan_are_read(tmp_path: Path) -> None:
    """By CmdStanPy itself: chain after chain, with what the sampler says of each draw."""
    library = pytest.importorskip("cmdstanpy")
    found = library.from_csv([table(tmp_path / f"schools_{chain}.csv", chain) for chain in (1, 2)])
    values, said = stan_programs._from_cmdstan(found, ["mu", "z"])
    assert values["mu"].tolist() == [10, 11, 12, 20, 21, 22]
    assert values["z"].tolist() == [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]]
    assert said["divergent__"].sum() == 2
    assert said["treedepth__"].max() == 4


def test_keywords_are_those_of_cmdstan() -> None:
    """Everything that its model is asked for exists under that name, and everything that it is given."""
    model = pytest.importorskip("cmdstanpy").CmdStanModel
    given = set(inspect.signature(model.sample).parameters)
    source = inspect.getsource(stan_programs.CmdStan)
    asked = {"chains", "iter_sampling", "iter_warmup", "parallel_chains", "fixed_param", "inits", "data", "seed"}
    assert asked | {"show_progress", "output_dir"} <= given
    assert all(re.search(rf"\b{name}\b", source) for name in asked)
    assert all(hasattr(model, name) for name in ("code", "src_info", "sample"))
