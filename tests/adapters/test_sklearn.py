"""Models of scikit-learn itself as studies: Gaussian processes are exact, others are what they are."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.adapters.sklearn_models import ClassLaw, KernelBelief, LinearBelief, Smooth
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

pytest.importorskip("sklearn")
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, LogisticRegression

#: Where functions are observed and asked about.
X, AT = np.linspace(0, 1, 6)[:, None], np.array([[0.3], [1.2]])


def process(length: float = 0.3, alpha: float = 0.01, **options: Any) -> Any:
    """Return a Gaussian process whose kernel stays as it is."""
    return GaussianProcessRegressor(RBF(length), alpha=alpha, optimizer=None, **options)


def build(estimator: Any = None, **options: Any) -> Any:
    """Return a study of a Gaussian process."""
    return adapters.sklearn(process() if estimator is None else estimator, X, AT, **options)


def simulate(X: Any, at: Any, rng: Any) -> Any:
    """Return data and values of the process."""
    return KernelBelief(X, at, RBF(0.3), 0.01)(rng)


def test_values_and_their_average_are_asked_about() -> None:
    """Each by its place; of a linear model, coefficients."""
    assert [f.name for f in build().functions] == ["at 0.3", "at 1.2", "average"]
    assert next(f.name for f in adapters.sklearn(process(), X).functions) == "at 0"
    twice = adapters.sklearn(process(), X, np.ones((2, 1)))
    assert [f.name for f in twice.functions][:2] == ["at 1 (row 0)", "at 1 (row 1)"]
    linear = adapters.sklearn(BayesianRidge(), np.ones((5, 2)) * np.arange(5)[:, None])
    assert [f.name for f in linear.functions] == ["coefficient 0", "coefficient 1", "sum"]


@pytest.mark.parametrize("noise", [0.0, 0.5], ids=["function", "observations"])
def test_predictions_are_the_conditional_law_of_the_prior(noise: float) -> None:
    """The joint law that data are drawn from, conditioned on y by linear algebra, is what the process predicts."""
    kernel = RBF(0.3) + WhiteKernel(noise**2) if noise else RBF(0.3)
    belief = KernelBelief(X, AT, kernel, 0.01)
    many = 4000
    drawn = np.array([np.concatenate(belief(rng)) for rng in map(np.random.default_rng, range(many))])
    ours = kernel(X) + 0.01 * np.eye(6)
    cov = np.block([[ours, kernel(X, AT)], [kernel(AT, X), kernel(AT)]])
    # Sums of squares in 8 random directions are chi-squared: 1e-6 over all of them and both tails.
    for row in np.random.default_rng(1).normal(size=(8, 8)):
        squares = np.square(drawn @ row).sum() / (row @ cov @ row)
        low, high = stats.chi2(many).ppf([1e-6 / 16, 1 - 1e-6 / 16])
        assert low < squares < high
        assert not low < 1.2 * squares < high  # the broken twin: a variance that is off by a fifth
    y = np.sin(5 * X[:, 0])
    regressor = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None)
    output = build(regressor).procedure(None, y)
    gain = cov[6:, :6] @ np.linalg.inv(ours)
    assert output.mean == pytest.approx(gain @ y, abs=1e-8)
    assert output.cov == pytest.approx(cov[6:, 6:] - gain @ cov[:6, 6:], abs=1e-8)


@pytest.mark.slow
def test_right_process_passes_and_wrong_ones_are_caught() -> None:
    """The process that data come from is not called; one of another length scale or noise is."""
    assert rt.check(build(), n=200, alpha=1e-6).verdict is not rt.Verdict.MISCALIBRATED
    for wrong in (process(length=1.0), process(alpha=0.1)):
        found = rt.check(build(wrong, simulate=simulate), n=200)
        assert found.verdict is rt.Verdict.MISCALIBRATED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_kernel_that_is_fitted_anew_is_over_confident() -> None:
    """Six points do not tell the length scale, and a plug-in says how sure it is as if they did."""
    fitted = GaussianProcessRegressor(RBF(0.3), alpha=0.01)
    found = rt.check(build(fitted), n=200)
    assert found.verdict is rt.Verdict.MISCALIBRATED


def test_smooth_functions_have_singular_covariances() -> None:
    """Laws of entries and sums are exact where a Cholesky factor does not exist, and draws follow them."""
    cov = RBF(5.0)(np.linspace(0, 1, 30)[:, None])
    output = Smooth(np.zeros(30), cov)
    drawn = output.sample(4000, np.random.default_rng(2))
    # Kolmogorov's test at 1e-6.
    assert stats.kstest(drawn.mean(axis=1) / cov.mean() ** 0.5, "norm").pvalue > 1e-6
    assert stats.kstest(1.2 * drawn.mean(axis=1) / cov.mean() ** 0.5, "norm").pvalue < 1e-6


def test_linear_models_say_what_their_formulas_say() -> None:
    """Ridge has the covariance of its coefficients; what ARD left out is known to be 0, with no doubt."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 3))
    y, truth = LinearBelief(rows, None, None, False, 0.1)(rng)
    assert y == pytest.approx(rows @ truth, abs=0.8)  # 8 sd of the noise
    ridge = adapters.sklearn(BayesianRidge(fit_intercept=False), rows).procedure(None, y)
    fitted = BayesianRidge(fit_intercept=False).fit(rows, y)
    precision = fitted.lambda_ * np.eye(3) + fitted.alpha_ * rows.T @ rows
    assert ridge.cov == pytest.approx(np.linalg.inv(precision), rel=1e-2, abs=1e-6)
    sparse = adapters.sklearn(ARDRegression(), rows).procedure(None, rows[:, 0] + 0.1 * rng.normal(size=30))
    left_out = np.flatnonzero(sparse.mean == 0)
    assert left_out.size
    assert not sparse.cov[left_out].any()
    assert sparse.cov[0, 0] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ridge_is_right_with_many_data_and_wrong_about_other_noise() -> None:
    """With a hundred data the scales are known, and the plug-in does little harm; noise with outliers does."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(100, 2))
    many = rt.check(adapters.sklearn(BayesianRidge(), rows, rows[:2]), n=300, alpha=1e-6)
    # A plug-in is not exact: of its sizes it is said that they are near.
    assert all(0.8 < row.estimate < 1.25 for row in many.measures if row.name == "spread")

    def wild(X: Any, at: Any, rng: Any) -> Any:
        coefficients = rng.normal(size=2)
        return tuple(part @ coefficients + rng.standard_t(1.5, len(part)) for part in (X, at))

    found = rt.check(adapters.sklearn(BayesianRidge(), rows, rows[:2], simulate=wild), n=300)
    assert found.verdict is rt.Verdict.MISCALIBRATED


def test_class_laws_have_steps() -> None:
    """Both tails and what lies left of a point add up."""
    law = ClassLaw(np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.3, 0.5]))
    assert law.cdf([0, 1, 2]) == pytest.approx([0.2, 0.5, 1.0])
    assert law.cdf_left([0, 1, 2]) == pytest.approx([0.0, 0.2, 0.5])
    assert law.sf([0, 1, 2]) == pytest.approx([0.8, 0.5, 0.0])
    drawn = law.sample(4000, np.random.default_rng(5))
    # Binomial: 5 sd, 6e-7.
    assert abs((drawn == 1).mean() - 0.3) < 5 * (0.3 * 0.7 / 4000) ** 0.5


class Known(LogisticRegression):  # type: ignore[misc]
    """Knows the probabilities, and may be too sure of them."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def fit(self, X: Any, y: Any) -> "Known":
        """Learn nothing."""
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of a slope of 1, times the factor."""
        up = 1 / (1 + np.exp(-self.factor * X[:, 0]))
        return np.stack([1 - up, up], axis=1)


@pytest.mark.slow
def test_classifiers_are_judged_by_their_probabilities() -> None:
    """True probabilities pass; those of a classifier that is four times too sure are caught."""

    def tossed(X: Any, at: Any, rng: Any) -> Any:
        return tuple((rng.random(len(part)) < 1 / (1 + np.exp(-part[:, 0]))).astype(int) for part in (X, at))

    points = np.array([[1.5], [-1.5]])
    right = rt.check(adapters.sklearn(Known(), X, points, simulate=tossed), n=400, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    sure = rt.check(adapters.sklearn(Known(4.0), X, points, simulate=tossed), n=400)
    assert sure.verdict is rt.Verdict.MISCALIBRATED


def test_classes_of_a_latent_process_follow_its_kernel() -> None:
    """Classes are even on average and alike at near points."""
    study = adapters.sklearn(GaussianProcessClassifier(RBF(0.3)), X, np.array([[0.5], [0.5], [9.0]]))
    drawn = np.array([study.belief.simulate(rng)[0] for rng in map(np.random.default_rng, range(2000))])
    # Shares of 2000: 5 sd are 0.056. E s(f)^2 = 0.25 + Var s(f), 0.0433 for a standard normal f: alike with 0.587.
    assert drawn.mean(axis=0) == pytest.approx([0.5] * 3, abs=0.056)
    assert (drawn[:, 0] == drawn[:, 1]).mean() == pytest.approx(0.587, abs=0.056)
    assert (drawn[:, 0] == drawn[:, 2]).mean() == pytest.approx(0.5, abs=0.056)


@pytest.mark.process
def test_store_is_gone_on_with_by_another_process(tmp_path: Path) -> None:
    """The same model built again has the same identity, in whichever process; another kernel has not."""
    code = "from tests.adapters.test_sklearn import *; print(fingerprint(build())['procedure'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(build())["procedure"]
    assert run.stdout.strip().splitlines()[-1] == here
    assert fingerprint(build(process(0.4)))["procedure"] != here
    alone = rt.run(build(), n=40)
    rt.run(build(), n=20, store=tmp_path / "run.db")
    assert np.array_equal(alone.u, rt.run(build(), n=40, store=tmp_path / "run.db").u)
    assert np.array_equal(alone.u, rt.run(build(), n=40, workers=2).u)


def test_what_cannot_be_asked_is_refused() -> None:
    """A class, a model without a prior or without an uncertainty, wrong shapes, a model of theta: one sentence each."""

    says(refusal(lambda: build(GaussianProcessRegressor)), "instance")
    says(refusal(lambda: build(LogisticRegression())), "simulate=", "LogisticRegression")
    says(refusal(lambda: build(LinearRegression(), simulate=simulate)), "return_std")
    says(refusal(lambda: build(simulate=lambda X, at, rng: (X[:, 0], at))), "6 observations", "(2, 1)")
    says(refusal(lambda: adapters.sklearn(process(), X[:, 0])), "X[:, None]")
    says(refusal(lambda: adapters.sklearn(process(), X, np.ones((2, 2)))), "columns of X")
    says(refusal(lambda: rt.check(build(), model=lambda theta: theta, n=10)), "theta and y together", "model=")
    says(refusal(lambda: adapters.sklearn(BayesianRidge(), X, coefficients=rt.Normal([0, 0], 1))), "coefficients")


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with what to run."""
    for module, call in (
        ("sklearn", lambda: build()),
        ("sbi", lambda: adapters.sbi(None, None, simulate)),
        ("bayesflow", lambda: adapters.bayesflow(None, None)),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(rt.errors.RingtrueError, match=rf"needs {module}; run: pip install 'ringtrue\[{module}\]'"):
            call()  # type: ignore[no-untyped-call]
