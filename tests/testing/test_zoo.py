"""The conformance kit on every procedure of the zoo, scalar and batched, and on broken twins it must refuse."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ringtrue import procedures
from ringtrue.distributions import (
    Beta,
    Draws,
    Gamma,
    Gaussian,
    Independent,
    Law,
    Mixture,
    Normal,
)
from ringtrue.distributions.frozen import ScipyLaw
from ringtrue.functions import Linear, identity
from ringtrue.functions import TestFunction as AnyFunction
from ringtrue.procedures import (
    BetaBinomial,
    DataAgnostic,
    GammaPoisson,
    GaussianVariational,
    Inflated,
    Jacobi,
    Laplace,
    LinearGaussian,
    Mirrored,
    NormalMean,
    Richardson,
    StudentLocation,
)
from ringtrue.testing.conformance import Conformance, NonConforming, check_procedure
from ringtrue.values import Floats

DESIGN = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, -1.0]])
SYSTEM = np.array([[3.0, 1.0], [0.5, 2.0]])
UNIT, PLANE = Normal(0.0, 1.0), Gaussian([0.0, 1.0], [[1.0, 0.3], [0.3, 2.0]])

STUDENT = StudentLocation(3, 2)
# procedure, belief, model
ZOO: dict[str, tuple[Any, Any, Any]] = {
    "NormalMean": (NormalMean(), UNIT, NormalMean().simulate),
    "NormalMean, several": (NormalMean(0.5, 4), UNIT, NormalMean(0.5, 4).simulate),
    "NormalMean, fractional": (NormalMean(power=0.3), UNIT, NormalMean().simulate),
    "NormalMean, partial": (NormalMean(size=4, summary=1), UNIT, NormalMean(size=4).simulate),
    "LinearGaussian": (LinearGaussian(DESIGN), PLANE, LinearGaussian(DESIGN).simulate),
    "LinearGaussian, fractional": (LinearGaussian(DESIGN, power=0.3), PLANE, LinearGaussian(DESIGN).simulate),
    "LinearGaussian, partial": (LinearGaussian(DESIGN, summary=1), PLANE, LinearGaussian(DESIGN).simulate),
    "BetaBinomial": (BetaBinomial(5), Beta(2.0, 3.0), BetaBinomial(5).simulate),
    "BetaBinomial, fractional": (BetaBinomial(5, 0.3), Beta(2.0, 3.0), BetaBinomial(5).simulate),
    "BetaBinomial, partial": (BetaBinomial(5, summary=2), Beta(2.0, 3.0), BetaBinomial(5).simulate),
    "GammaPoisson": (GammaPoisson(3), Gamma(2.0, 1.0), GammaPoisson(3).simulate),
    "GammaPoisson, fractional": (GammaPoisson(3, 0.3), Gamma(2.0, 1.0), GammaPoisson(3).simulate),
    "GammaPoisson, partial": (GammaPoisson(3, summary=1), Gamma(2.0, 1.0), GammaPoisson(3).simulate),
    "DataAgnostic": (DataAgnostic(), UNIT, NormalMean().simulate),
    "DataAgnostic, vectors": (DataAgnostic(1), PLANE, LinearGaussian(DESIGN).simulate),
    "DataAgnostic, several": (DataAgnostic(1), Gamma(2.0, 1.0), GammaPoisson(3).simulate),
    "Mirrored": (Mirrored(NormalMean()), UNIT, NormalMean().simulate),
    "Mirrored, vectors": (Mirrored(LinearGaussian(DESIGN)), PLANE, LinearGaussian(DESIGN).simulate),
    "Inflated": (Inflated(NormalMean(), 0.5), UNIT, NormalMean().simulate),
    "Inflated, vectors": (Inflated(LinearGaussian(DESIGN), 2.0), PLANE, LinearGaussian(DESIGN).simulate),
    "Richardson": (Richardson(SYSTEM, step=0.2), PLANE, Richardson(SYSTEM).simulate),
    "Richardson, steps": (Richardson(SYSTEM, 3, step=0.2), PLANE, Richardson(SYSTEM).simulate),
    "Jacobi": (Jacobi(SYSTEM), PLANE, Jacobi(SYSTEM).simulate),
    "StudentLocation": (StudentLocation(3, 8), UNIT, StudentLocation(3, 8).simulate),
    "Laplace": (Laplace(STUDENT.log_likelihood, data_ndim=1), UNIT, STUDENT.simulate),
    "GaussianVariational": (GaussianVariational(STUDENT.log_likelihood, data_ndim=1), UNIT, STUDENT.simulate),
}


#: Procedures that need more than a belief and a model to be put through the kit, and the tests that do it.
ELSEWHERE = {"FittedGP": "test_gp.py", "LocationRejection": "test_rejection.py", "Rejection": "test_rejection.py"}


#: Solvers of differential equations, whose data are problems.
SOLVERS = {
    "AdamsMoulton": "test_randomised.py",
    "BBPN": "test_extrapolation.py",
    "Chkrebtii": "test_particles.py",
    "EK0": "test_filters.py",
    "EK1": "test_filters.py",
    "RandomisedEuler": "test_randomised.py",
    "RandomisedRK4": "test_randomised.py",
}


def test_every_solver_is_put_through_the_kit() -> None:
    """Every solver of differential equations conforms, in the file of its own tests."""
    callable_ones = {name for name in procedures.ode.__all__ if "__call__" in dir(getattr(procedures.ode, name))}
    solvers = {name for name in callable_ones if isinstance(getattr(procedures.ode, name), type)}
    assert solvers - {"ReferenceSolutions"} == set(SOLVERS)
    for name, file in SOLVERS.items():
        text = (Path(__file__).parents[1] / "procedures" / "ode" / file).read_text("utf-8")
        assert "check_procedure(" in text, name
        assert name in text


def test_the_whole_zoo_is_here() -> None:
    """Every procedure that the package offers is put through the kit, here or where its own tests are."""
    here = {type(procedure).__name__ for procedure, _, _ in ZOO.values()}
    assert here | set(ELSEWHERE) == set(procedures.__all__) - {"ode"}
    for name, file in ELSEWHERE.items():
        text = (Path(__file__).parents[1] / "procedures" / file).read_text("utf-8")
        assert "check_procedure(" in text, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_zoo_conforms(name: str) -> None:
    """A procedure of the zoo conforms one dataset at a time and in batches."""
    # The kit's own false-alarm rate is 1e-6 per procedure; its broken twins are below.
    procedure, belief, model = ZOO[name]
    found = check_procedure(procedure, belief=belief, model=model, batched=(model, procedure))
    assert isinstance(found, Conformance)
    assert found.checks[:2] == ("reproducible", "shapes")
    assert found.checks[-1] == "batched equals scalar"
    assert any("agrees with draws" in check for check in found.checks)


@pytest.mark.parametrize(
    ("name", "laws"),
    [
        ("NormalMean", ["theta", "distance"]),
        ("LinearGaussian", ["theta[0]", "theta[1]", "sum"]),
        ("BetaBinomial", ["theta", "distance"]),
    ],
)
def test_kit_says_which_laws_it_compared(name: str, laws: list[str]) -> None:
    """The report lists every test function whose law is exact."""
    procedure, belief, model = ZOO[name]
    found = check_procedure(procedure, belief=belief, model=model)
    assert list(found.checks[2:]) == [f"exact law of {law!r} agrees with draws" for law in laws]
    assert found.procedure == repr(procedure)


def honest(belief: Any, y: Any) -> Normal:
    """Return the posterior."""
    return NormalMean()(belief, y)


def honest_draws(belief: Any, y: Any, rng: np.random.Generator) -> Draws:
    """Return draws of the posterior, for one dataset or a batch."""
    return Draws(np.asarray(y) / 2 + np.sqrt(0.5) * rng.standard_normal((99, *np.shape(y))))


@dataclass(frozen=True)
class Output:
    """A user's output: the law of one normal, the draws of another."""

    law: Normal
    draws: Normal

    def sample(self, m: int, rng: np.random.Generator) -> Floats:
        """Return draws."""
        return self.draws.sample(m, rng)

    def marginal(self, f: AnyFunction) -> Law | None:
        """Return the law."""
        return self.law.marginal(f)


def check(procedure: Any, **options: Any) -> Conformance:
    """Run the kit on the normal mean."""
    return check_procedure(procedure, belief=UNIT, model=NormalMean().simulate, **options)


def test_users_outputs_conform() -> None:
    """The honest versions of the broken twins pass: scipy's, draws, mixtures, named parts, law without draws."""
    batched = NormalMean().simulate
    assert check(honest, batched=(batched, honest)).checks[-1] == "batched equals scalar"
    assert check(honest_draws, batched=(batched, honest_draws)).checks[2] == "draws only"
    assert "theta" in check(lambda belief, y: stats.norm(y / 2, np.sqrt(0.5))).checks[2]
    assert "theta" in check(lambda belief, y: Output(honest(belief, y), honest(belief, y))).checks[2]
    assert "theta" in check(lambda belief, y: Mixture([honest(belief, y), UNIT])).checks[2]
    named = check_procedure(
        lambda belief, y: Independent({"a": Normal(y / 2, np.sqrt(0.5)), "b": Gamma(2.0, 1.0)}),
        belief={"a": UNIT, "b": Gamma(2.0, 1.0)},
        model=lambda theta, rng: theta["a"] + rng.normal(),
    )
    assert {"exact law of 'a' agrees with draws", "exact law of 'b' agrees with draws"} <= set(named.checks)


def honest_chain(belief: Any, y: Any, rng: np.random.Generator) -> Draws:
    """Return slow Markov chains with the posterior as their law, for one dataset or a batch."""
    states = rng.standard_normal((1000, *np.shape(y)))
    for t in range(1, 1000):
        states[t] = 0.9 * states[t - 1] + np.sqrt(1 - 0.9**2) * states[t]
    return Draws(np.asarray(y) / 2 + np.sqrt(0.5) * states, iid=False)


def test_markov_chains_conform() -> None:
    """Two slow chains of one law may look different; the kit must not take that for a broken batch."""
    # A chain of 1000 states with rho = 0.9 is worth 50 draws: compared as if it were 1000, right ones would be refused.
    found = check(honest_chain, batched=(NormalMean().simulate, honest_chain))
    assert found.checks[2] == "draws only"


def weighted(belief: Any, y: Any, rng: np.random.Generator) -> Draws:
    """Return draws of the belief with the likelihood as their weights."""
    values = belief.sample(400, rng)
    return Draws(values, weights=np.exp(-0.5 * (values - y) ** 2))


def test_weighted_draws_conform() -> None:
    """Importance sampling is a procedure like any other."""
    assert check(weighted).checks[2] == "draws only"


def test_discrete_outputs_conform() -> None:
    """A discrete posterior is compared with its draws across its atoms."""
    found = check_procedure(
        lambda belief, y: stats.poisson(1.5, loc=y),
        belief=stats.poisson(3.0),
        model=lambda theta, rng: rng.binomial(theta, 0.5),
    )
    assert "exact law of 'theta' agrees with draws" in found.checks


# Broken twins.


@pytest.mark.parametrize(
    "wrong",
    [
        lambda right: Normal(right.mean + 0.3, right.sd),
        lambda right: Normal(right.mean, 1.3 * right.sd),
        lambda right: Normal(-right.mean, right.sd),
    ],
    ids=["shifted", "spread", "mirrored"],
)
@pytest.mark.parametrize("f", [None, identity], ids=["default", "identity"])
def test_a_marginal_that_is_not_that_of_its_draws_is_refused(wrong: Any, f: Any) -> None:
    """An exact law that its own draws contradict is refused, with the name of the test function."""
    # 3200 draws: a shift of 0.42 sd is 24 standard errors of the mean, a spread of 1.3 is 21 of the log sd. On 200
    # seeds the kit's p-value was at most 1e-60 and 1e-20, against a bound of 5e-7.
    with pytest.raises(NonConforming, match=r"exact law of 'theta' that .* its own draws, but it is not"):
        check(lambda belief, y: Output(wrong(honest(belief, y)), honest(belief, y)), f=f)


def test_an_atom_that_its_draws_do_not_have_is_refused() -> None:
    """A discrete law with the wrong rate is refused too."""
    with pytest.raises(NonConforming, match="exact law of 'theta'"):
        check_procedure(
            lambda belief, y: WrongRate(y),
            belief=stats.poisson(3.0),
            model=lambda theta, rng: rng.binomial(theta, 0.5),
            f=identity,
        )


@dataclass(frozen=True)
class WrongRate:
    """Declares Poisson(2), draws Poisson(3/2)."""

    y: float

    def sample(self, m: int, rng: np.random.Generator) -> Any:
        """Return draws."""
        return self.y + rng.poisson(1.5, m)

    def marginal(self, f: AnyFunction) -> Any:
        """Return the wrong law."""
        return ScipyLaw(stats.poisson(2.0, loc=self.y))


@pytest.mark.parametrize(
    "batched",
    [
        lambda belief, y: Normal(0 * y + np.mean(y) / 2, np.sqrt(0.5)),
        lambda belief, y: Normal(y / 2, np.sqrt(0.5) * (1 + 0.01 * np.std(y))),
        lambda belief, y: Normal(y[::-1] / 2, np.sqrt(0.5)),
    ],
    ids=["mean", "spread", "reversed"],
)
def test_a_batch_that_mixes_its_members_is_refused(batched: Any) -> None:
    """A batched form whose outputs depend on the other data of the batch is refused."""
    with pytest.raises(NonConforming, match="must be its members side by side"):
        check(honest, batched=(NormalMean().simulate, batched))


def test_a_batch_of_draws_that_mixes_its_members_is_refused() -> None:
    """Averaging over the batch is refused where outputs are draws, too."""

    def averaged(belief: Any, y: Floats, rng: np.random.Generator) -> Draws:
        return Draws(0 * y + np.mean(y) / 2 + np.sqrt(0.5) * rng.standard_normal((99, *np.shape(y))))

    with pytest.raises(NonConforming):
        check(honest_draws, batched=(NormalMean().simulate, averaged))


def test_a_batch_whose_draws_are_not_those_of_its_laws_is_refused() -> None:
    """Right laws do not excuse a batch whose draws mix its members."""

    def half_right(belief: Any, y: Floats) -> Output:
        return Output(honest(belief, y), Normal(0 * y + np.mean(y) / 2, np.sqrt(0.5)))

    with pytest.raises(NonConforming):
        check(honest, batched=(NormalMean().simulate, half_right))


def test_a_batch_that_knows_less_than_its_members_is_refused() -> None:
    """If the scalar form knows a law, so must the batched one."""

    def draws_only(belief: Any, y: Floats, rng: np.random.Generator) -> Draws:
        return Draws(honest(belief, y).sample(99, rng))

    with pytest.raises(NonConforming, match="must know the law of 'theta'"):
        check(honest, batched=(NormalMean().simulate, draws_only))


def test_irreproducible_procedures_are_refused() -> None:
    """Randomness of the procedure's own is refused, in draws, in exact laws and in batches."""
    own = np.random.default_rng(0)
    with pytest.raises(NonConforming, match="same answer twice"):
        check(lambda belief, y: y / 2 + np.sqrt(0.5) * own.standard_normal(99))
    with pytest.raises(NonConforming, match="same answer twice"):
        check(lambda belief, y: Normal(y / 2 + 1e-9 * own.standard_normal(), np.sqrt(0.5)))
    with pytest.raises(NonConforming, match="same answer twice"):
        check(honest, batched=(NormalMean().simulate, lambda belief, y: Normal(y / 2 + own.random(len(y)), 1.0)))


def remembers() -> Any:
    """Return a procedure whose answer depends on what it saw before."""
    seen: list[float] = []

    def procedure(belief: Any, y: float) -> Normal:
        seen.append(float(y))
        return Normal(np.mean(seen) / 2, 0.5 + 0.1 / len(seen))

    return procedure


def test_procedures_with_a_memory_are_refused() -> None:
    """An answer that depends on earlier calls is irreproducible."""
    with pytest.raises(NonConforming, match="same answer twice"):
        check(remembers())


@pytest.mark.parametrize(
    ("procedure", "message"),
    [
        (lambda belief, y, rng: rng.standard_normal((99, 2)), "shape"),
        (lambda belief, y: Gaussian([0.0, 0.0], np.eye(2)), "shape"),
        (lambda belief, y: Normal([0.0, 0.0], 1.0), "shape"),
        (lambda belief, y: {"a": np.zeros(9)}, "they must match"),
        (lambda belief, y: 3.0, "the single number 3.0"),
        (lambda belief, y: None, "None"),
    ],
    ids=["draws", "gaussian", "vector", "dict", "number", "nothing"],
)
def test_wrong_shapes_are_refused(procedure: Any, message: str) -> None:
    """Outputs that do not have the shape of theta, or are no outputs, are refused."""
    with pytest.raises(NonConforming, match=message):
        check(procedure)


@pytest.mark.parametrize(
    "batched",
    [
        lambda belief, y, rng: rng.standard_normal((99, len(y) + 1)),
        lambda belief, y, rng: rng.standard_normal((len(y), 99)),
        lambda belief, y: Normal(np.zeros(len(y) - 1), 1.0),
        lambda belief, y: Normal(y[0] / 2, 1.0),
    ],
    ids=["one more", "transposed", "one less", "one for all"],
)
def test_wrong_shapes_of_batches_are_refused(batched: Any) -> None:
    """A batch must hold one output per dataset, with draws on the first axis."""
    with pytest.raises(NonConforming):
        check(honest, batched=(NormalMean().simulate, batched))


def test_procedures_that_raise_are_refused() -> None:
    """An exception is the procedure's, and is chained; whichever replicate it comes from."""

    def sometimes(belief: Any, y: float) -> Normal:
        if y < 0:  # none of 64 datasets with probability 2^-64; the first is not
            raise RuntimeError("negative")
        return honest(belief, y)

    def always(belief: Any, y: float) -> Normal:
        raise RuntimeError("never")

    for procedure in (always, sometimes):
        with pytest.raises(NonConforming, match="its procedure raised RuntimeError") as caught:
            check(procedure, size=64)
        assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "procedure",
    [
        lambda belief, y: Normal(np.nan, 1.0),
        lambda belief, y: np.full(99, np.nan),
        lambda belief, y: Normal(y / 2 if y > 0 else np.inf, 1.0),
    ],
    ids=["law", "draws", "sometimes"],
)
def test_procedures_that_are_not_finite_are_refused(procedure: Any) -> None:
    """An output without numbers does not conform."""
    with pytest.raises(NonConforming):
        check(procedure)


def test_shapes_that_change_with_the_data_are_refused() -> None:
    """A procedure must conform on every dataset, not only the first."""

    def sometimes(belief: Any, y: float, rng: np.random.Generator) -> Any:
        return rng.standard_normal((99, 2)) if y < 0 else rng.standard_normal(99)

    with pytest.raises(NonConforming):
        check(sometimes)


def test_unequal_numbers_of_draws_conform() -> None:
    """A procedure may return as many draws as it likes, a different number each time."""
    found = check(lambda belief, y, rng: rng.normal(y / 2, np.sqrt(0.5), 50 + int(10 * abs(y))))
    assert found.checks[2] == "draws only"


def test_linear_functions_are_compared_on_request() -> None:
    """The kit asks about the test functions it is given."""
    procedure, belief, model = ZOO["LinearGaussian"]
    found = check_procedure(procedure, belief=belief, model=model, f={"contrast": Linear([1.0, -1.0])})
    assert found.checks[2] == "exact law of 'contrast' agrees with draws"
