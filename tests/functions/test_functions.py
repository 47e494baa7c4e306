"""Test functions: leading axes, names, levels, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import ringtrue as rt
from ringtrue.distributions import Beta, Gaussian, Mixture, Normal
from ringtrue.errors import InvalidStudy
from ringtrue.functions import (
    SEVERAL,
    BestOf,
    Context,
    Coordinate,
    Distance,
    Evaluate,
    Function,
    Linear,
    LogDensity,
    Mahalanobis,
    Sees,
    Vectorized,
    as_testfunctions,
    default_family,
    identity,
)
from ringtrue.functions import TestFunction as AnyFunction
from ringtrue.functions.families import Renamed
from ringtrue.values import Floats, leading_shape, take

RNG = np.random.default_rng(5)
MATRIX = RNG.normal(size=(2, 3))

ON_MATRICES: list[AnyFunction] = [
    Coordinate(index=(1, 2)),
    Linear(MATRIX),
    Distance(MATRIX, 0.5 + MATRIX**2),
    Function(lambda t: t[0, 1] * t[1, 2], "product"),
    Vectorized(lambda t: t[0, 1] * t[1, 2], "product"),
]
ON_DICTS: list[AnyFunction] = [
    Coordinate("b", (1,)),
    Linear({"a": 2.0, "b": [1.0, -1.0, 0.5]}),
    Distance({"a": 0.3, "b": np.zeros(3)}, {"a": 2.0, "b": np.ones(3)}),
    Function(lambda t: t["a"] * t["b"][2], "product"),
    Vectorized(lambda t: t["a"] * t["b"][2], "product"),
]


@pytest.mark.parametrize("f", ON_MATRICES, ids=lambda f: type(f).__name__)
def test_many_arrays_are_one_by_one(f: AnyFunction) -> None:
    """On draws x replicates of matrices, a test function gives what it gives for each."""
    theta = RNG.normal(size=(4, 5, 2, 3))
    alone = np.array([[f.evaluate(theta[i, j], Context(0)) for j in range(5)] for i in range(4)])
    assert f.evaluate(theta, Context(2)) == pytest.approx(alone, rel=1e-14)
    assert f.evaluate(theta[0], Context(1)) == pytest.approx(alone[0], rel=1e-14)


@pytest.mark.parametrize("f", ON_DICTS, ids=lambda f: type(f).__name__)
def test_many_dicts_are_one_by_one(f: AnyFunction) -> None:
    """On draws x replicates of named arrays, a test function gives what it gives for each."""
    theta = {"a": RNG.normal(size=(4, 5)), "b": RNG.normal(size=(4, 5, 3))}
    alone = np.array([[f.evaluate(take(theta, (i, j)), Context(0)) for j in range(5)] for i in range(4)])
    assert f.evaluate(theta, Context(2)) == pytest.approx(alone, rel=1e-14)
    assert f.evaluate(take(theta, 0), Context(1)) == pytest.approx(alone[0], rel=1e-14)


def test_values_are_those_of_the_formulas() -> None:
    """Coordinate, linear function and distance are what they say."""
    theta = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert float(Coordinate(index=(1, 2)).evaluate(theta, Context(0))) == 6.0
    assert float(Linear(np.ones((2, 3))).evaluate(theta, Context(0))) == 21.0
    assert float(Distance(np.zeros((2, 3)), 1.0).evaluate(theta, Context(0))) == pytest.approx(91**0.5, rel=1e-15)
    assert float(Distance({"a": 1.0}, {"a": 2.0}).evaluate({"a": -5.0}, Context(0))) == 3.0
    assert float(identity.evaluate(2.5, Context(0))) == 2.5


@given(st.integers(0, 3), st.integers(0, 3))
def test_leading_shape_stops_before_the_parameter(lead: int, own: int) -> None:
    """The leading shape of an array or dict has as many axes as asked for."""
    array = np.zeros((2, 3, 4)[:lead] + (5,) * own)
    assert leading_shape(array, lead) == (2, 3, 4)[:lead]
    assert leading_shape({"a": array}, lead) == (2, 3, 4)[:lead]


def test_function_valued_parameters_are_evaluated_one_by_one() -> None:
    """A list of functions gives one value each; a batch in one callable gives its own array."""
    functions = [np.sqrt, np.square]
    assert Evaluate(0.25).evaluate(functions, Context(1)) == pytest.approx([0.5, 0.0625])
    assert Evaluate(0.25).evaluate(lambda x: x * np.array([1.0, 2.0]), Context(1)) == pytest.approx([0.25, 0.5])
    assert Evaluate(0.5, component=1).evaluate(lambda x: np.array([x, 3 * x]), Context(0)) == pytest.approx(1.5)
    assert Evaluate(0.5, component=1).name == "theta(0.5)[1]"


def test_users_function_sees_function_valued_parameters() -> None:
    """A user's f of a function-valued parameter is called once per function."""
    f = Function(lambda g: g(0.25), "value")
    assert f.evaluate([np.sqrt, np.square], Context(1)) == pytest.approx([0.5, 0.0625])
    assert f.evaluate(np.sqrt, Context(0)) == pytest.approx(0.5)


def test_users_function_gets_the_data_of_its_replicate() -> None:
    """f(theta, y) sees the y of the last leading axis, be y an array, a tuple or one dataset."""
    f = Function(lambda theta, y: 10 * theta + y, "residual")
    draws = np.arange(6.0).reshape(3, 2)
    expected = 10 * draws + np.array([0.5, 0.7])
    assert f.evaluate(draws, Context(2, y=(0.5, 0.7))) == pytest.approx(expected)
    assert f.evaluate(draws, Context(2, y=np.array([0.5, 0.7]))) == pytest.approx(expected)
    assert f.evaluate(draws[0], Context(1, y=np.array([0.5, 0.7]))) == pytest.approx(expected[0])
    assert f.evaluate(draws[0, 1], Context(0, y=0.7)) == pytest.approx(expected[0, 1])


def test_what_is_seen_is_declared() -> None:
    """Functions see theta, or the output or the data too, which decides their level; a new name changes nothing."""
    exact = Function(lambda theta, y: theta - y, "residual")
    assert Function(lambda theta: theta, "f").sees == identity.sees == Linear([1.0]).sees == "theta"
    assert Distance(0, 1).sees == Evaluate(0).sees == Vectorized(np.abs, "abs").sees == "theta"
    assert LogDensity().sees == Mahalanobis().sees == "output"
    assert exact.sees == Renamed(exact, "other").sees == "data"
    assert Renamed(exact, "other").evaluate(np.array([1.0]), Context(1, y=[3.0])) == pytest.approx([-2.0])


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), "text", 1j, None], ids=repr)
def test_function_must_return_one_real_number(value: Any) -> None:
    """A user's function that returns anything but one real number is refused by name."""
    with pytest.raises(InvalidStudy, match="'mine' must return one real number"):
        Function(lambda theta: value, "mine").evaluate(np.zeros(3), Context(1))


@pytest.mark.parametrize("value", [True, 1, np.float32(1), np.array([[1.0]])], ids=repr)
def test_function_may_return_any_kind_of_real_number(value: Any) -> None:
    """Booleans, integers and arrays of one entry are numbers."""
    assert Function(lambda theta: value, "mine").evaluate(np.zeros(3), Context(1)) == pytest.approx([1.0, 1.0, 1.0])


def test_vectorized_checks_its_shape() -> None:
    """A function declared vectorized that returns a wrong shape is refused, with both shapes."""
    with pytest.raises(InvalidStudy, match=r"'mean' .* trailing axes \(4,\) .* shape \(\)"):
        Vectorized(np.mean, "mean").evaluate(np.zeros((4, 2)), Context(1))


def test_log_density_of_a_vector_is_the_joint_one() -> None:
    """Independent entries add up, so a diagonal Gaussian and a vector of normals agree."""
    theta, mean, sd = RNG.normal(size=(4, 5, 3)), RNG.normal(size=(5, 3)), np.array([0.5, 1.0, 2.0])
    joint = LogDensity().evaluate(theta, Context(2, output=Gaussian(mean, np.diag(sd**2))))
    assert joint.shape == (4, 5)
    assert LogDensity().evaluate(theta, Context(2, output=Normal(mean, sd))) == pytest.approx(joint, rel=1e-12)


def test_log_density_is_refused_where_there_is_none() -> None:
    """An output that declares no density is refused with a sentence."""
    with pytest.raises(InvalidStudy, match="Beta has none"):
        LogDensity().evaluate(np.array([0.5]), Context(1, output=Beta(1, 1)))


def test_log_density_is_refused_if_a_component_has_none() -> None:
    """A mixture has a density only if all its components have one."""
    with pytest.raises(InvalidStudy, match="Mixture has none"):
        LogDensity().evaluate(np.array([0.5]), Context(1, output=Mixture([Beta(1, 1), Beta(2, 2)])))


def no_arguments() -> float:
    """Return a number."""
    return 0.0


def with_default(theta: float, scale: float = 2.0) -> float:
    """Return a product."""
    return scale * theta


def with_data(theta: float, y: float = 0.0) -> float:
    """Return a difference."""
    return theta - y


@pytest.mark.parametrize(
    ("function", "sees"),
    [(with_default, "theta"), (with_data, "data"), (max, "theta"), (np.abs, "theta"), (lambda t, data: t, "data")],
)
def test_what_is_seen_is_read_from_the_signature(function: Callable[..., Any], sees: Sees) -> None:
    """A second argument without a default, or one called y, is the data; any other default stays."""
    assert Function(function, "f").sees == sees


def test_wrong_number_of_arguments_is_refused() -> None:
    """The message names the function, what it takes and what it should."""
    words = r"test function 'f' must take 1 positional argument, or 1 and y, .* takes 0; .* wrap it"
    with pytest.raises(InvalidStudy, match=words):
        _ = Function(no_arguments, "f").sees


def test_names_come_from_the_user_or_the_function() -> None:
    """A mapping names its functions, a list takes their own names, and BestOf gives its family."""
    assert [f.name for f in as_testfunctions({"mine": np.abs, "yours": identity})] == ["mine", "yours"]
    assert [f.name for f in as_testfunctions([with_default, Coordinate("b", (1, 2))])] == ["with_default", "b[1, 2]"]
    assert [f.name for f in as_testfunctions(BestOf([Evaluate(0), Evaluate(1)]))] == ["theta(0)", "theta(1)"]
    assert as_testfunctions(identity) == (identity,)


OURS: list[AnyFunction] = [*ON_MATRICES, Evaluate(0.5), LogDensity(), Mahalanobis()]


@pytest.mark.parametrize("f", OURS, ids=lambda f: type(f).__name__)
def test_functions_of_ours_stay_what_they_are_under_another_name(f: AnyFunction) -> None:
    """A new name changes neither type, kind nor what is seen, so that exact laws and wording know the function."""
    (renamed,) = as_testfunctions({"mine": f})
    assert type(renamed) is type(f)
    assert (renamed.name, renamed.kind, renamed.sees) == ("mine", f.kind, f.sees)


def test_a_coordinate_under_another_name_has_the_same_law() -> None:
    """A renamed coordinate equals the one it was, so that an output knows its law."""
    (renamed,) = as_testfunctions({"mine": Coordinate(index=(1,))})
    assert renamed == Coordinate(index=(1,))
    law = Gaussian([1.0, 2.0], np.diag([1.0, 9.0])).marginal(renamed)
    assert isinstance(law, Normal)
    assert (float(law.mean), float(law.sd)) == (2.0, 3.0)


class Norm:
    """A test function of a user's own class."""

    name, kind = "norm", "function"
    sees: Sees = "theta"

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the length of every parameter."""
        return np.asarray(np.linalg.norm(theta, axis=-1))


def test_functions_of_users_are_wrapped_for_another_name() -> None:
    """A function of another class is not touched: it is asked through a wrapper."""
    (renamed,) = as_testfunctions({"mine": Norm()})
    assert isinstance(renamed, Renamed)
    assert (renamed.name, renamed.kind, renamed.sees) == ("mine", "function", "theta")
    assert renamed.evaluate(np.array([[3.0, 4.0]]), Context(1)) == pytest.approx([5.0])
    assert as_testfunctions(Norm())[0].name == "norm"


NAMED = {"mu": RNG.normal(size=(50, 2)), "tau": RNG.normal(size=50)}


@pytest.mark.parametrize(
    ("f", "names"),
    [
        ("tau", ["tau"]),
        ("mu", ["mu[0]", "mu[1]"]),
        ("mu[1]", ["mu[1]"]),
        (["mu[0]", "tau"], ["mu[0]", "tau"]),
        (["mu", "distance"], ["mu[0]", "mu[1]", "distance"]),
        (BestOf(["mu"]), ["mu[0]", "mu[1]"]),
    ],
    ids=str,
)
def test_names_stand_for_entries_of_theta(f: Any, names: list[str]) -> None:
    """A name asks about a part, all its entries, or one; it gives what the default family would ask."""
    found = as_testfunctions(f, NAMED)
    default = {one.name: one for one in default_family(NAMED)}
    assert [one.name for one in found] == names
    for one in found:
        assert np.array_equal(one.evaluate(NAMED, Context(1)), default[one.name].evaluate(NAMED, Context(1)))


def test_an_entry_may_be_asked_about_under_another_name() -> None:
    """A text in a mapping stands for an entry of theta, and the key is what the result calls it."""
    (first, second) = as_testfunctions({"m": "mu[1]", "square": lambda theta: theta["tau"] ** 2}, NAMED)
    assert (first, first.name, first.kind) == (Coordinate("mu", (1,)), "m", "coordinate")
    assert second.name == "square"


@pytest.mark.parametrize(
    "f",
    [iter(["tau"]), np.array(["tau"]), {"tau": 1}.keys(), {"tau": "tau"}, BestOf(("tau",))],
    ids=lambda f: type(f).__name__,
)
def test_names_are_found_in_whatever_holds_them(f: Any) -> None:
    """A study looks names up in its belief, in what they may come."""
    belief = {"mu": Normal(0, 1), "tau": Normal(0, 1)}
    study = rt.Study(belief, lambda theta: theta, lambda mu0, y: mu0, f=f)
    assert [one.name for one in study.functions] == ["tau"]


def test_an_array_without_names_is_called_theta() -> None:
    """The entries of an array are theta[0], theta[1], and theta stands for all of them."""
    two = RNG.normal(size=(50, 2))
    assert [f.name for f in as_testfunctions("theta", two)] == ["theta[0]", "theta[1]"]
    assert as_testfunctions("theta[1]", two) == (Coordinate(index=(1,)),)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        ([], "at least one test function"),
        ({}, "at least one test function"),
        ([identity, Coordinate()], r"\['theta'\] came more than once"),
        (3.0, "must be callable, .* float arrived"),
        (["theta"], r"such as mu\[0\], mu\[1\], tau, .* 'theta' arrived"),
        ("mu[2]", r"such as mu\[0\], mu\[1\], tau, .* 'mu\[2\]' arrived"),
        (Mahalanobis, r"must be an instance, but the class Mahalanobis arrived; call it"),
        ([identity, Coordinate], r"must be an instance, but the class Coordinate arrived; call it"),
        ({"tau"}, "must have an order, .* a set arrived; pass a list"),
        ({"m": "mu"}, r"'mu' has 2 entries to be called 'm'; .* {'m': 'mu\[0\]'}"),
        ({"m": "nu"}, r"such as mu\[0\], mu\[1\], tau, .* 'nu' arrived"),
    ],
)
def test_ill_posed_families_are_refused(f: Any, message: str) -> None:
    """Empty families, equal names, names that theta has not and things that are no functions are refused."""
    with pytest.raises(InvalidStudy, match=message):
        as_testfunctions(f, NAMED)


@pytest.mark.parametrize("change", [{"share": 0.0}, {"share": 1.0}, {"splits": 0}], ids=str)
def test_best_of_refuses_impossible_splits(change: Any) -> None:
    """A split must leave something on both sides."""
    with pytest.raises(InvalidStudy, match="BestOf needs"):
        BestOf([identity], **change)


def test_default_family_of_a_scalar_has_a_nonlinear_member() -> None:
    """A scalar parameter gets itself and a distance; without the latter some errors are invisible."""
    normal_quantiles = 3 + 2 * special.ndtri((np.arange(4000) + 0.5) / 4000)
    one, two = default_family(normal_quantiles)
    assert one == identity
    assert isinstance(two, Distance)
    assert float(two.center) == pytest.approx(3.0, abs=1e-12)
    assert float(two.scale) == pytest.approx(2.0, rel=1e-3)


def test_default_family_asks_about_all_entries() -> None:
    """However many there are and whatever their units; sum and distance see them all in units of their own."""
    units = np.geomspace(1e-6, 1e6, 40)
    family = default_family(np.random.default_rng(1).normal(size=(500, 40)) * units)
    assert [f.name for f in family] == [*(f"theta[{k}]" for k in range(40)), "sum", "distance"]
    total, distance = family[-2], family[-1]
    assert total.evaluate(np.ones(40), Context(0)) == pytest.approx(np.sum(1 / distance.scale))  # type: ignore[attr-defined]
    steps = np.zeros(40)
    steps[[0, 39]] = 3.0, 4.0
    moved = distance.center + distance.scale * steps  # type: ignore[attr-defined]
    assert distance.evaluate(moved, Context(0)) == pytest.approx(5.0)


def test_what_the_default_family_adds_is_known_by_its_kind() -> None:
    """Unless the user asks for it by name: then it is the user's own, like a function that the user makes."""
    reference = np.random.default_rng(1).normal(size=(50, 2))
    assert [f.kind for f in default_family(reference)] == ["coordinate", "coordinate", "sum", "overall"]
    named = as_testfunctions(["sum", "distance"], reference)
    assert [f.kind for f in named] == ["linear", "distance"]
    assert Distance(np.zeros(2), np.ones(2)).kind == "distance"


def test_default_family_of_named_parts() -> None:
    """Named parts give named coordinates, and one sum and one distance over all of them."""
    rng = np.random.default_rng(1)
    theta = {"mu": rng.normal(size=50), "tau": rng.normal(size=(50, 2))}
    family = default_family(theta)
    assert [f.name for f in family] == ["mu", "tau[0]", "tau[1]", "sum", "distance"]
    assert all(f.evaluate(theta, Context(1)).shape == (50,) for f in family)


@pytest.mark.parametrize(
    ("theta", "names"),
    [
        ({"distance": ()}, ["distance", "distance (of all)"]),
        ({"sum": (), "b": ()}, ["sum", "b", "sum (of all)", "distance"]),
        ({"sum": (2,)}, ["sum[0]", "sum[1]", "sum (of all)", "distance"]),
        ({"sum": (), "sum (of all)": ()}, ["sum", "sum (of all)", "sum (of all) (of all)", "distance"]),
        ({"distance": (), "sum": ()}, ["distance", "sum", "sum (of all)", "distance (of all)"]),
    ],
)
def test_parameters_keep_their_names(theta: dict[str, tuple[int, ...]], names: list[str]) -> None:
    """The sum and the distance of the default family give way to parameters that are called so."""
    drawn = {name: RNG.normal(size=(50, *shape)) for name, shape in theta.items()}
    family = default_family(drawn)
    assert [one.name for one in family] == names
    assert [one.name for one in as_testfunctions(family)] == names
    for name, shape in theta.items():
        found = as_testfunctions(name, drawn)
        assert [one.kind for one in found] == ["coordinate"] * int(np.prod(shape))
        assert {one.key for one in found if isinstance(one, Coordinate)} == {name}


@pytest.mark.parametrize("name", ["distance", "sum"])
def test_a_parameter_called_like_one_of_ours_is_asked_about(name: str) -> None:
    """A study of it runs without f, and its own row is that of the entry."""
    belief = {name: Normal(0, 1), "b": Normal(0, 1)}
    study = rt.Study(belief, lambda theta: theta[name], lambda mu0, y: {name: Normal(y, 1), "b": Normal(0, 1)})
    ran = rt.run(study, n=5, progress="off")
    assert [(one.name, one.kind) for one in ran.functions[:2]] == [(name, "coordinate"), ("b", "coordinate")]
    np.testing.assert_array_equal(ran.truth[:, 0], [rt.replay(study, i)[0][name] for i in range(5)])


def test_default_family_survives_constants_and_no_moments() -> None:
    """A constant coordinate gets scale one; a Cauchy belief gets a finite centre and scale."""
    rng = np.random.default_rng(1)
    *_, distance = default_family(np.column_stack([np.ones(100), rng.standard_cauchy(100)]))
    assert distance.scale[0] == 1.0  # type: ignore[attr-defined]
    assert np.isfinite(distance.evaluate(np.zeros(2), Context(0)))


def test_default_family_refuses_what_has_no_coordinates() -> None:
    """A belief over functions needs test functions from its user."""
    with pytest.raises(InvalidStudy, match="pass f="):
        default_family([np.sqrt, np.square])


@pytest.mark.slow
def test_names_that_cannot_be_shown_are_spelled_out() -> None:
    """A name with a line break, half a character or a change of direction is shown, and stays one line."""
    odd = {"a\nb": lambda t: t, "\ud800": lambda t: t**2, "x\u202ey": lambda t: t**3}
    rng = np.random.default_rng(0)
    result = rt.check_draws(rng.normal(size=20), rng.normal(size=(20, 9)), f=odd)
    assert [f.name for f in result.replicates.functions] == ["a\\nb", "\\ud800", "x\\u202ey"]
    str(result).encode()
    assert "\u202e" not in str(result)


def test_a_name_for_all_is_refused() -> None:
    """A test function cannot take the name that rows over all of them have."""
    with pytest.raises(rt.errors.InvalidStudy, match="cannot be named"):
        rt.check_draws(np.zeros(3), np.zeros((3, 2)), f={"(all)": lambda t: t})


@pytest.mark.slow
def test_a_parameter_in_small_units_is_asked_about() -> None:
    """Of 21 entries one in units a thousand times smaller is 30 % over-confident: it is named."""
    rng = np.random.default_rng(0)
    units = np.where(np.arange(21) == 7, 1e-3, 1.0)
    y = rng.normal(size=(2000, 21))
    theta = y + rng.normal(size=y.shape)
    draws = y[:, None] + rng.normal(size=(2000, 99, 21)) / np.where(np.arange(21) == 7, 1.3, 1.0)
    result = rt.check_draws(theta * units, draws * units)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "theta[7] is over-confident" in result.sentence


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (None, None),
        ("mu", "tau[0], tau[1]"),
        (["mu", "tau[1]"], "tau[0]"),
        (["mu", "tau"], None),
        (["mu", Coordinate("tau", (-1,)), "tau[0]"], None),
        ({"mine": lambda theta: theta["mu"]}, None),
    ],
)
def test_entries_that_nobody_asks_about_are_named(f: Any, left: str | None) -> None:
    """Where entries are all that is asked about, those left out are said; a function may look at anything."""
    rng = np.random.default_rng(0)
    theta = {"mu": rng.normal(size=30), "tau": rng.normal(size=(30, 2))}
    draws = {"mu": rng.normal(size=(30, 9)), "tau": rng.normal(size=(30, 9, 2))}
    said = [note for note in rt.check_draws(theta, draws, f=f).notes if note.startswith("not asked about")]
    assert said == ([] if left is None else [f"not asked about, so that nothing is said of: {left}."])
    belief = {"mu": rt.Normal(0, 1), "tau": rt.Normal(np.zeros(2), np.ones(2))}
    study = rt.Study(belief, lambda theta: theta["mu"], lambda mu0, y: belief, f=f)
    assert list(rt.run(study, n=3).header.notes) == said


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0, 3.0], [[1.0, 5.0], [2.0, 5.0], [3.0, 7.0]]])
def test_no_draw_of_a_belief_lies_at_the_centre_of_the_distance(values: Any) -> None:
    """A distance of 0 has no chance under a law with a density: one such truth in a thousand rejected all."""
    reference = np.repeat(np.asarray(values), 7, axis=0)
    distance = default_family(reference)[-1]
    found = distance.evaluate(reference, SEVERAL)
    assert (found > 0).all()
    assert np.ptp(found) > 0


def test_a_belief_known_by_its_draws_has_a_distance() -> None:
    """The median is one of 101 draws, and then a truth in 101; p was 1e-307. Right to 1/sqrt(n), so p is not tiny."""
    atoms = stats.norm.ppf((np.arange(101) + 0.5) / 101)

    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal()

    result = rt.check(
        rt.Draws(atoms, iid=True), model, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=500, progress=False
    )
    assert {row.f: row.pvalue for row in result.tests if row.level == "strong"}["distance"] > 1e-6


def test_a_sum_of_parts_beyond_all_numbers_is_infinite() -> None:
    """As that of one array is, without a warning of NumPy's."""
    huge = np.full((2, 1), np.finfo(float).max)
    assert np.isinf(Linear({"a": [1.0], "b": [1.0]}).evaluate({"a": huge, "b": huge}, Context(1))).all()
    assert np.isnan(Linear({"a": [2.0], "b": [-2.0]}).evaluate({"a": huge, "b": huge}, Context(1))).all()
