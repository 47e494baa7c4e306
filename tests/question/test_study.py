"""A study: the question as it is written down, names of what is asked, theta and y from one simulator."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.question.study import Adapted, as_study
from ringtrue.values import Generator
from tests.builders import BELIEF, SD, noisy, posterior, refusal, says, too_narrow

NAMED = rt.Independent({"mu": rt.Normal(np.zeros(2), 1), "tau": rt.Normal(0, 1)})


def seen(theta: Any, rng: Generator) -> Any:
    """Return the means with noise; the other part of theta is not seen."""
    return theta["mu"] + rng.normal(size=np.shape(theta["mu"]))


def of_mu(mu0: Any, y: Any, rng: Generator) -> Any:
    """Return draws of the posterior of the means, and of nothing else."""
    return {"mu": y / 2 + SD * rng.normal(size=(19, *np.shape(y)))}


# The question and how long it is asked.


def test_a_study_is_asked_for_as_long_as_one_likes() -> None:
    """A study has no n: a longer run begins with the replicates of the shorter one."""
    study = rt.Study(BELIEF, noisy, posterior)
    short, long = rt.run(study, n=20, progress="off"), rt.run(study, n=50, progress="off")
    assert np.array_equal(short.u, long.u[:20])


def test_check_takes_a_study_or_its_parts() -> None:
    """Both ways of asking are the same question; the parts of a study cannot be given twice."""
    study = rt.Study(BELIEF, noisy, posterior, seed=3)
    whole = rt.check(study, n=30, progress="off")
    parts = rt.check(BELIEF, noisy, posterior, n=30, seed=3, progress="off")
    assert np.array_equal(whole.replicates.u, parts.replicates.u)
    assert whole.pvalue == parts.pvalue
    says(refusal(lambda: as_study(study, seed=4)), "a Study says all there is to ask", "seed", "put it into the Study")
    says(refusal(lambda: as_study(study, noisy)), "model came too")
    says(refusal(lambda: as_study(BELIEF, noisy)), "Normal came without a procedure")


# Names.


@pytest.mark.parametrize(
    ("f", "names"),
    [
        ("mu[0]", ["mu[0]"]),
        (["mu"], ["mu[0]", "mu[1]"]),
        (["tau", "mu[1]"], ["tau", "mu[1]"]),
        (rt.BestOf(["mu", "tau"]), ["mu[0]", "mu[1]", "tau"]),
    ],
    ids=str,
)
def test_names_ask_about_entries_of_theta(f: Any, names: list[str]) -> None:
    """A name of theta's asks about its entries, in a study and of arrays of draws."""
    study = rt.Study(NAMED, seen, lambda mu0, y: NAMED, f=f)
    assert [one.name for one in study.functions] == names
    theta, draws = (NAMED._sample(m, np.random.default_rng(m)) for m in (30, 30 * 9))
    values = {name: part.reshape(30, 9, *part.shape[1:]) for name, part in draws.items()}
    found = rt.check_draws(theta, values, f=f).replicates
    assert [one.name for one in found.functions] == names


def test_a_name_is_the_coordinate() -> None:
    """Asking by name gives the numbers of asking by coordinate."""
    by_name, by_hand = (
        rt.run(rt.Study(NAMED, seen, of_mu, f=f), n=20, progress="off") for f in ("mu[1]", rt.Coordinate("mu", (1,)))
    )
    assert np.array_equal(by_name.u, by_hand.u)
    assert by_name.functions[0].kind == by_hand.functions[0].kind == "coordinate"


# Parts of theta that the output has not.


@pytest.mark.parametrize("batch", [None, 10])
@pytest.mark.parametrize(
    "procedure",
    [of_mu, lambda mu0, y: {"mu": rt.Normal(y / 2, np.full(np.shape(y), SD))}],
    ids=["draws", "laws"],
)
def test_outputs_may_leave_out_what_nobody_asks_about(procedure: Any, batch: int | None) -> None:
    """Nuisance parts of theta need no posterior, if f says what is asked; they have no energy score."""
    ran = rt.run(rt.Study(NAMED, seen, procedure, f=["mu"], batch=batch), n=30, progress="off")
    assert [one.name for one in ran.functions] == ["mu[0]", "mu[1]"]
    assert np.isfinite(ran.u).all()
    assert np.isfinite(ran.weak_value).all()
    assert np.isnan(ran.energy).all()


@pytest.mark.parametrize("f", [None, "tau", lambda theta: theta["tau"] + 1], ids=["default", "name", "function"])
@pytest.mark.parametrize("batch", [None, 10])
def test_what_is_asked_about_and_missing_is_named(f: Any, batch: int | None) -> None:
    """A function that asks for what the output has not is refused before the run, with the part's name."""
    message = refusal(lambda: rt.run(rt.Study(NAMED, seen, of_mu, f=f, batch=batch), n=30, progress="off"))
    says(message, "asks about 'tau'", "lack", r"pass f=\['mu'\]")


def test_arrays_of_draws_may_leave_out_what_nobody_asks_about() -> None:
    """check_draws takes theta with parts that the draws have not, if f asks for none of them, and says so otherwise."""
    rng = np.random.default_rng(1)
    theta, draws = {"mu": rng.normal(size=30), "tau": rng.normal(size=30)}, {"mu": rng.normal(size=(30, 9))}
    found = rt.check_draws(theta, draws, f=["mu"]).replicates
    alone = rt.check_draws({"mu": theta["mu"]}, draws, f=["mu"]).replicates
    assert np.array_equal(found.u, alone.u)
    says(refusal(lambda: rt.check_draws(theta, draws)), r"\['tau'\] are missing", "pass f=")
    says(refusal(lambda: rt.check_draws(theta, draws, f="tau")), "must name entries of theta", "'tau' arrived")
    says(refusal(lambda: rt.check_draws(theta, draws, f={"t": lambda one: one["tau"]})), "'t'", "KeyError: 'tau'")


# Theta and y together.


def together(rng: Generator) -> tuple[Any, Any]:
    """Draw theta and y."""
    theta = rng.normal()
    return theta, theta + rng.normal()


def together_batched(m: int, rng: Generator) -> tuple[Any, Any]:
    """Draw m of both."""
    theta = rng.normal(size=m)
    return theta, theta + rng.normal(size=m)


JOINT = {"single": (together, None), "batched": (together_batched, 100)}
ALPHA = 1e-6


@pytest.mark.parametrize("form", JOINT)
def test_a_joint_simulator_is_judged_like_belief_and_model(form: str) -> None:
    """The exact posterior of a joint simulator is not rejected, and one with half its sd is.

    The level of the test is the false-alarm rate, 1e-6. An sd of half the right one puts P(2 |Z| > 1.645) = 41 % of all
    u outside of (.05, .95), where 10 % belong: of 500 that is 23 standard errors, a miss rate far below 1e-3.
    """
    simulate, batch = JOINT[form]
    right, wrong = (
        rt.check(rt.Study.from_joint(simulate, procedure, batch=batch), n=500, alpha=ALPHA, progress="off")
        for procedure in (posterior, too_narrow)
    )
    assert right.pvalue > ALPHA
    assert wrong.pvalue <= ALPHA
    assert wrong.verdict is rt.Verdict.MISCALIBRATED


@pytest.mark.parametrize("form", JOINT)
def test_a_joint_simulator_is_the_law_of_its_truths(form: str) -> None:
    """The weak level compares with draws of the simulator: the belief itself passes, one with another mean fails."""
    simulate, batch = JOINT[form]
    levels = []
    for mean in (0.0, 1.0):
        output = rt.Normal(mean, 1) if batch is None else rt.Normal(np.full(batch, mean), 1)
        study = rt.Study.from_joint(simulate, lambda mu0, y, output=output: output, batch=batch, f="theta")
        levels.append(rt.check(study, n=500, alpha=ALPHA, progress="off").levels["weak"].pvalue)
    # Means of 500 that differ by 1 are 16 standard errors apart.
    assert levels[0] > ALPHA >= levels[1]


@pytest.mark.parametrize("form", JOINT)
def test_replicates_of_a_joint_simulator_are_functions_of_their_index(form: str) -> None:
    """A joint replicate can be replayed, in any order, and a longer run has the same beginning."""
    simulate, batch = JOINT[form]
    study = rt.Study.from_joint(simulate, posterior, batch=batch)
    ran = rt.run(study, n=200, progress="off")
    assert np.array_equal(rt.run(study, n=150, progress="off").u, ran.u[:150])
    for i in (120, 7):
        assert rt.replay(study, i)[0] == ran.truth[i, 0]


def test_named_parameters_of_a_joint_simulator() -> None:
    """Theta may be a dict, whose names the default family has."""

    def simulate(rng: Generator) -> tuple[Any, Any]:
        theta: dict[str, Any] = {"a": rng.normal(), "b": rng.normal(size=2)}
        return theta, theta["a"] + rng.normal()

    study = rt.Study.from_joint(simulate, lambda mu0, y, rng: mu0.sample(19, rng))
    assert [f.name for f in study.functions] == ["a", "b[0]", "b[1]", "sum", "distance"]
    assert rt.run(study, n=20, progress="off").u.shape == (20, 5)


def test_a_buffer_that_is_used_again_does_not_change_the_data() -> None:
    """A simulator that returns the same arrays every time is judged like one that returns new ones."""
    theta, y = np.empty(2), np.empty(2)

    def reuses(rng: Generator) -> tuple[Any, Any]:
        theta[:] = rng.normal(size=2)
        y[:] = theta + rng.normal(size=2)
        return theta, y

    def fresh(rng: Generator) -> tuple[Any, Any]:
        one, other = reuses(rng)
        return one.copy(), other.copy()

    again, new = (rt.run(rt.Study.from_joint(one, posterior), n=30, progress="off") for one in (reuses, fresh))
    assert np.array_equal(again.u, new.u)


@pytest.mark.parametrize(
    ("simulate", "settings", "patterns"),
    [
        (3.0, {}, ("simulate must be a function of rng", "float")),
        (together, {"truth": BELIEF}, ("truths come from simulate", "leave out truth=")),
        (lambda rng: rng.normal(), {}, ("simulate must return theta and y", "float")),
        (lambda rng: [1.0, 2.0], {}, ("simulate must return theta and y", "list")),
        (lambda rng: (1.0, 2.0, 3.0), {}, ("simulate must return theta and y", "tuple of 3")),
        (lambda m, rng: rng.normal(size=m), {"batch": 4}, ("simulate must return theta and y", "ndarray")),
        (lambda rng: (rng.normal(), None), {}, ("must return a dataset", "None")),
        (lambda m, rng: (rng.normal(size=m), rng.normal(size=m - 1)), {"batch": 4}, ("4 datasets", r"\(3,\)")),
        (lambda m, rng: (rng.normal(size=m - 1), rng.normal(size=m)), {"batch": 4}, ("theta.*4", "3 replicates")),
        (lambda rng: 1 / 0, {}, ("ZeroDivisionError",)),
    ],
    ids=["number", "truth", "one", "list", "three", "one batched", "no data", "few data", "few truths", "raises"],
)
def test_joint_simulators_that_cannot_be(simulate: Any, settings: Any, patterns: tuple[str, ...]) -> None:
    """A simulator that does not return theta and y, one of each per replicate, is refused with what it returned."""

    def ask() -> Any:
        return rt.run(rt.Study.from_joint(simulate, posterior, **settings), n=8, progress="off")

    says(refusal(ask, rt.errors.RingtrueError), *patterns)


# What cannot be repeated.


def test_what_cannot_be_seeded_is_declared() -> None:
    """Randomness of a procedure's own is refused, with the way to declare it; declared, it runs and is judged."""
    own = np.random.default_rng()

    def unseeded(mu0: Any, y: Any) -> Any:
        return y / 2 + SD * own.normal(size=(99, *np.shape(y)))

    message = refusal(lambda: rt.check(BELIEF, noisy, unseeded, n=20, progress="off"))
    says(message, "same answer twice", "the output moved", "reproducible=False")
    for batch in (None, 10):
        study = rt.Study(BELIEF, noisy, unseeded, reproducible=False, batch=batch)
        result = rt.check(study, n=60, alpha=1e-9, progress="off")  # its false-alarm rate
        assert result.replicates.kept.all()
        assert result.pvalue > 1e-9
        assert not result.replicates.header.reproducible
    assert rt.run(rt.Study(BELIEF, noisy, posterior), n=5, progress="off").header.reproducible


def test_parts_that_were_put_in_are_not_forgotten() -> None:
    """An adapter's own parts are known to repeat themselves; parts of the user's are not, whatever is set later."""
    adapted = Adapted(rt.Normal(0, 1), lambda theta: theta, lambda mu0, y: rt.Normal(y, 1))
    assert as_study(adapted, seed=3).repeats_itself
    own = as_study(adapted, lambda theta: 2 * theta)
    assert not own.repeats_itself
    assert not as_study(own, seed=3).repeats_itself
