"""The joint law in a result: what is found, how large it is, what is said, and what cannot be looked at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.judgement import joint
from ringtrue.replicates.record import JOINT, Replicates, join
from ringtrue.values import Generator
from tests.builders import SD

R = np.array([[1.0, 0.5], [0.5, 1.0]])
ROOT = np.linalg.cholesky(R)
BELIEF = rt.Gaussian(np.zeros(2), R)


def _model(theta: Any, rng: Generator) -> Any:
    return theta + ROOT @ rng.normal(size=2)


def _exact(mu0: Any, y: Any) -> Any:
    return rt.Gaussian(y / 2, R / 2)


def _dropped(mu0: Any, y: Any) -> Any:
    return rt.Gaussian(y / 2, np.eye(2) / 2)


def _draws(mu0: Any, y: Any, rng: Generator) -> Any:
    return y / 2 + SD * rng.normal(size=(19, 2))


def _chains(mu0: Any, y: Any, rng: Generator) -> Any:
    """Return four chains of autocorrelation .8 with the right margins and no correlation."""
    steps = rng.normal(size=(4, 30, 2))
    for t in range(1, 30):
        steps[:, t] = 0.8 * steps[:, t - 1] + 0.6 * steps[:, t]
    return rt.Draws((y / 2 + SD * steps).reshape(120, 2), chains=4)


def _checked(procedure: Any, n: int, **settings: Any) -> rt.Result:
    return rt.check(BELIEF, _model, procedure, n=n, progress=False, **settings)


def _rows(result: rt.Result) -> dict[str, Any]:
    return {row.kind: row for row in result.tests if row.level == "auto"}


@pytest.mark.parametrize("procedure", [_dropped, _draws, _chains])
def test_a_dropped_correlation_is_found_named_and_sized(procedure: Any) -> None:
    """By exact laws, draws and chains: its pair, what is reported, and an interval that contains the error of -.5.

    At n = 300 the error is more than eight standard errors large; the interval misses it once in 50 at most.
    """
    result = _checked(procedure, 300)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "the correlation of theta[0] and theta[1] is reported as" in result.sentence
    assert "too low by 0." in result.sentence
    m = result["theta[0] and theta[1]"].measure("correlation error")
    assert m.low - 0.1 < -0.5 < m.high + 0.1 < 0
    assert m.within == "no"


def test_the_exact_posterior_is_certified_and_its_correlation_told() -> None:
    """A certificate says how well the correlation is known; nothing is called where nothing is wrong."""
    result = _checked(_exact, 2000)
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert "Of the joint law nothing was found: their correlation is right to within 0.0" in result.sentence


def test_without_members_a_certificate_says_what_it_is_not_about() -> None:
    """Without the joint arrays it is about each entry alone."""
    ran = _checked(_exact, 2000).replicates
    bare = replace(ran, arrays={name: x for name, x in ran.arrays.items() if not name.startswith(JOINT)})
    result = rt.judge(bare)
    assert "about each entry alone, not about how they depend on each other" in result.sentence
    assert any("joint law of all entries not looked at" in note for note in result.notes)


def test_an_error_of_correlation_inside_the_tolerance_is_not_called() -> None:
    """Evidence of a small error, here .08 of a tolerance of .3, is no reason to call a procedure miscalibrated."""
    slight = rt.Gaussian(np.zeros(2), np.array([[1.0, 0.42], [0.42, 1.0]]) / 2)

    def procedure(mu0: Any, y: Any) -> Any:
        return rt.Gaussian(y / 2, slight.cov)

    result = _checked(procedure, 4000, tolerance=rt.Tolerance(correlation=0.3))
    assert _rows(result)["correlations"].adjusted < 0.01
    assert result.verdict is not rt.Verdict.MISCALIBRATED


@pytest.mark.parametrize(
    ("procedure", "settings", "words"),
    [
        (lambda mu0, y, rng: rng.normal(size=(1, 2)), {}, "two draws or more"),
        (lambda mu0, y, rng: rng.normal(size=(rng.integers(5, 8), 2)), {}, "as many of all"),
        (lambda mu0, y, rng: rt.Draws(rng.normal(size=(9, 2)), weights=rng.uniform(size=9)), {}, "weighted"),
        (lambda mu0, y, rng: rt.Draws(rng.normal(size=(40, 2)), chains=1), {}, "two chains"),
        (lambda mu0, y, rng: rng.normal(size=(9, 2)) / (y[0] < 2), {"on_failure": "record"}, "lost"),
    ],
)
def test_what_cannot_be_looked_at_is_a_note(procedure: Any, settings: Any, words: str) -> None:
    """One draw, unequal numbers of draws, weights, a single chain, losses: the result says why."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result = _checked(procedure, 60, **settings)
    assert any("joint law of all entries not looked at" in note and words in note for note in result.notes)
    assert "correlations" not in _rows(result)


def test_names_of_the_users_come_first() -> None:
    """A parameter called energy keeps its name, and the row of the joint law gives way."""
    rng = np.random.default_rng(1)
    theta = {"energy": rng.normal(size=50), "mu": rng.normal(size=50)}
    draws = {name: rng.normal(size=(50, 9)) for name in theta}
    found = joint.members_of(rt.check_draws(theta, draws).replicates)
    assert found is not None
    assert joint.names_of_rows(found.replicates)["energy"] == "energy (of all)"


def test_members_do_not_depend_on_who_computed_them() -> None:
    """Workers, parts joined in any order and picked rows have the arrays of one run."""
    whole = rt.run(BELIEF, _model, _draws, n=300, progress=False)
    apart = [rt.run(BELIEF, _model, _draws, n=300, progress=False).part(a, b) for a, b in ((200, 300), (0, 200))]
    again = join(apart)
    for name in (name for name in whole.arrays if name.startswith(JOINT)):
        assert np.array_equal(whole.arrays[name], again.arrays[name])
        assert np.array_equal(whole.pick([3, 7]).arrays[name], whole.arrays[name][[3, 7]])


def test_members_of_the_first_replicates_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of bytes no members are kept, records are cut and joined all the same, and the result says so."""
    monkeypatch.setattr("ringtrue.replicates.reducers.joint._BYTES", 100 * 20 * 4)
    ran: Replicates = rt.run(BELIEF, _model, _draws, n=400, progress=False)
    kept = ran.arrays[f"{JOINT}ranks"]
    assert np.flatnonzero(kept.any(axis=(1, 2))).tolist() == list(range(100))
    assert len(kept) < 400
    again = join([ran.part(90, 400), ran.part(0, 90)])
    assert np.array_equal(again.arrays[f"{JOINT}ranks"], kept)
    assert len(ran.part(300, 400).arrays[f"{JOINT}ranks"]) == 0
    assert "joint law: looked at in the first 100 replicates." in rt.judge(ran).notes


def test_a_store_keeps_members(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from a file is judged as what was written, also where only the first replicates have members."""
    monkeypatch.setattr("ringtrue.replicates.reducers.joint._BYTES", 100 * 20 * 4)
    first = _checked(_draws, 300)
    stored = _checked(_draws, 300, store=tmp_path / "run.db")
    assert stored.levels["auto"] == first.levels["auto"]


def test_grouped_replicates_are_looked_at_one_of_each() -> None:
    """With two datasets per truth half of the replicates are looked at."""
    found = joint.members_of(_checked(_draws, 100, datasets=2).replicates)
    assert found is not None
    assert found.n == 50


def test_energy_and_depth_have_words() -> None:
    """A ring, whose margins and correlations are right, is found by how far out truths lie."""

    def ring(mu0: Any, y: Any, rng: Generator) -> Any:
        angle = rng.uniform(0, 2 * np.pi, 99)
        return y / 2 + np.stack([np.cos(angle), np.sin(angle)], axis=1) @ ROOT.T

    result = _checked(ring, 200)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "all entries together, truths lie" in joint_sentence(result)


def joint_sentence(result: rt.Result) -> str:
    """Return what would be said of the energy, whichever row leads."""
    from ringtrue.judgement.sentences.joint import of_joint_law

    class Findings:
        replicates, alpha, measures = result.replicates, 0.05, result.measures

    return of_joint_law(_rows(result)["energy"], Findings())  # type: ignore[arg-type]
