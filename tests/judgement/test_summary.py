"""A printed result: the sentence, one line per test function, worst first, and the levels; the rest are details."""

import re
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.functions import ALL
from ringtrue.judgement.summary import ranked, sizes_worst_first
from ringtrue.judgement.text import cut, width
from ringtrue.report import content

from ..builders import BELIEF, checked, complete, grid, hostile, noisy, replicates, says


def _many(k: int, wrong: int) -> rt.Result:
    """Return a result of k test functions, one of which is wrong."""
    u = [grid(200, spread=3.0) if j == wrong else grid(200)[(7 * np.arange(200) + j) % 200] for j in range(k)]
    return rt.judge(replicates(np.column_stack(u)))


def _lines(text: str) -> dict[str, str]:
    """Return the lines of the table by the name that they begin with."""
    rows = re.split(r"^-+$", text, maxsplit=1, flags=re.MULTILINE)[1].split("! outside")[0].strip().splitlines()
    return {re.split(r"\s{2,}", row)[0]: row for row in rows}


def test_a_printed_result_has_one_line_per_test_function() -> None:
    """Each has the estimates and intervals of its four sizes, as they are in the measures."""
    result = _many(3, wrong=1)
    lines = _lines(str(result))
    assert list(lines) == [name for name, _ in sizes_worst_first(result)]
    for name, line in lines.items():
        theta = result[name]
        for m in (theta.spread, theta.bias, theta.distance):
            assert f"{m.estimate:.2f} ({m.low:.2f}" in line.replace("-0.00", "0.00")
        assert f"{100 * theta.coverage.estimate:.0f} % (" in line
    assert str(result).startswith(result.sentence)
    assert str(result).endswith("result.details().")


def test_another_result_has_other_lines() -> None:
    """The broken twin: the line of a wrong function is not that of a right one."""
    assert _lines(str(_many(3, wrong=1)))["f1"] != _lines(str(_many(3, wrong=2)))["f1"]


def test_marks_say_what_is_in_tolerance() -> None:
    """No mark where a size is shown to be within, a question mark where that is open, an exclamation mark outside."""
    marks = {"yes": "", "no": "!", "open": "?"}
    seen = set()
    for result in (_many(2, wrong=0), rt.judge(replicates(grid(4000), names=["f0"]))):
        for name, line in _lines(str(result)).items():
            found = [cell[-1] if cell[-1] in "!?" else "" for cell in re.split(r"\s{2,}", line)[1:]]
            sizes = [result[name].measure(one).within for one in ("spread", "bias", "coverage", "KS distance")]
            assert found == [marks[one] for one in sizes]
            seen |= set(sizes)
    assert seen == {"yes", "no", "open"}


def test_of_many_test_functions_the_worst_are_printed() -> None:
    """Ten of them, the worst first, and it is said where the others are; the details have all."""
    result = _many(40, wrong=33)
    lines = _lines(str(result))
    assert len(lines) == 11
    assert next(iter(lines)) == "f33"
    assert "\nand 30 more: result.details()\n" in str(result)
    assert len(re.findall(r"^f\d+ +spread", result.details(), re.MULTILINE)) == 40
    assert "more: result" not in str(_many(10, wrong=0))


def test_the_report_has_the_same_order() -> None:
    """The page, the pictures and the printed lines call the same test function worst."""
    result = _many(12, wrong=7)
    _, rows = content.cells(result)
    assert [name for name, _ in rows] == [name for name, _ in sizes_worst_first(result)]
    assert rows[0][0] == "f7" == result.replicates.functions[ranked(result)[0]].name


def test_details_show_every_test_and_measure() -> None:
    """All rows are in them, and at a prompt they look as they print."""
    result = checked(rt.procedures.NormalMean(), 300)
    text = result.details()
    assert repr(text) == text
    for row in result.tests:
        says(text, rf"{row.level} +{re.escape(row.f)} +{re.escape(row.method)}")
    for m in result.measures:
        says(text, rf"{re.escape(m.f)} +{re.escape(m.name)} ")
    assert "adjusted p" not in str(result)


def test_nothing_is_marked_as_outside_whose_interval_holds_the_ideal() -> None:
    """Of four replicates an estimate may be far out, and says nothing; of many that are wrong it does."""
    rng, marked = np.random.default_rng(0), 0
    for _ in range(20):
        theta = rng.normal(size=4)
        few = rt.check_draws(theta, theta[:, None] + rng.normal(size=(4, 19)))
        for m in few.measures:
            marked += m.within == "no"
            assert m.shown == ("open" if m.within == "no" and not m.clear else m.within)
        assert ("!" in _lines(str(few))["theta"]) == any(
            m.clear and m.within == "no" for m in few.measures if m.f == "theta"
        )
    assert marked  # the estimates of four replicates alone would be called outside
    assert "!" in _lines(str(_many(2, wrong=1)))["f1"]


def test_a_table_fits_a_terminal() -> None:
    """Whatever the names, lines of the table have at most 100 columns; wide letters count twice."""
    names = ["温度" * 30, "coefficient of something[Deerfield]" * 3, "θ", "x" * 300]
    for n in (200, 100_000):
        result = rt.judge(replicates(np.column_stack([grid(n)] * 4), names=names))
        lines = str(result).split("! outside")[0].splitlines()[2:]
        assert max(map(width, lines)) <= 100
        # Columns begin at the same place in every line.
        starts = {width(line[: re.search(r"  (?=\d\.\d+ \()", line).end()]) for line in lines[3:-1]}  # type: ignore[union-attr]
        assert len(starts) == 1
    assert width(hostile().details()) > 100


def test_a_name_without_its_middle_keeps_both_ends() -> None:
    """It is as wide as it may be, and one that fits is left alone."""
    assert cut("effect[Choate]", 14) == "effect[Choate]"
    assert cut("effect[Choate]", 11) == "effe...ate]"
    assert width(cut("温度" * 9, 12)) <= 12


def test_levels_are_printed_with_what_they_have_of_the_verdict() -> None:
    """Those that enter the verdict come first, each with its p-value and the test function with its smallest."""
    result = checked(rt.procedures.NormalMean(), 300)
    found = " ".join(str(result).partition("p by level: ")[2].split())
    says(found, r"^strong [\d.e-]+ \(\w+\), weak [\d.e-]+ \(", r"; not part of the verdict: exact .*reversible ")


def test_an_error_of_the_weak_level_is_printed() -> None:
    """Positions are right, and draws averaged over data are three times as wide as the belief: that is said."""
    wide = 3 * np.random.default_rng(1).normal(size=(2000, 1))
    result = rt.judge(complete(2000, weak_value=wide, weak_z=wide, weak_u=special.ndtr(wide), names=["theta"]))
    says(str(result), r"Also outside: theta: weak KS 0\.\d+ \(", r"weak < 1e-300 \(theta\)")
    assert "Also outside" not in str(rt.judge(complete(2000, names=["theta"])))


def test_a_wrong_correlation_is_printed() -> None:
    """Entries whose outputs are right one by one, and whose correlation is dropped, are named as a pair."""

    def alike(theta: Any, rng: np.random.Generator) -> Any:
        return np.array([np.sum(theta) + 0.5 * rng.normal()])

    covariance = np.eye(2) - np.full((2, 2), 1 / 2.25)

    def apart(mu0: Any, y: Any) -> rt.Gaussian:
        return rt.Gaussian(np.full(2, y[0] / 2.25), np.diag(np.diag(covariance)))

    result = rt.check(rt.Gaussian(np.zeros(2), np.eye(2)), alike, apart, n=500, draws=99)
    says(" ".join(str(result).split()), r"Also outside: .*theta\[0\] and theta\[1\]: correlation error 0\.7")


def test_probabilities_have_one_line_per_class() -> None:
    """With slope, shift and error, the largest error first; the tests are in the details."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1.0] * 3, 600)
    outcome = (p.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    result = rt.check_probabilities(outcome, p)
    errors = [result.measure("calibration error", name).estimate for name in _lines(str(result))]
    assert len(errors) == 3
    assert errors == sorted(errors, reverse=True)
    assert "adjusted p" in result.details()
    assert "adjusted p" not in str(result)


def test_labels_and_numbers_have_tables_of_their_own() -> None:
    """A switch has slope, shift and error of its probabilities beside the sizes of the other parameter."""
    rng = np.random.default_rng(4)
    theta = {"on": (rng.random(300) < 0.5).astype(float), "mu": rng.normal(size=300)}
    draws = {"on": (rng.random((300, 99)) < 0.5).astype(float), "mu": rng.normal(size=(300, 99))}
    text = str(rt.check_draws(theta, draws))
    says(text, r"function +spread +bias +coverage +KS", r"function +log odds slope", r"(?m)^on +\S+ \(")


def test_lost_replicates_are_printed_with_their_cause() -> None:
    """What was lost and why stays in the short form."""
    says(str(rt.judge(complete(50, lost=(3, 4)))), "lost 2 replicates: procedure: ValueError: no")


@pytest.mark.parametrize("draws", [1, 4])
def test_few_draws_have_a_line_without_nan(draws: int) -> None:
    """What so few draws cannot tell is unknown, and no number is made up."""
    rng = np.random.default_rng(5)
    text = str(rt.check_draws(rng.normal(size=60), rng.normal(size=(60, draws))))
    assert "nan" not in text
    assert "(all)" == ALL not in text


def test_functions_of_the_data_have_no_line() -> None:
    """Their sizes are not measured; their p-value is that of the exact level."""
    result = rt.check(BELIEF, noisy, rt.procedures.NormalMean(), n=50, f={"gap": lambda t, y: t - y})
    says(str(result), r"exact [\d.e-]+ \(")
    assert "tolerated" not in str(result)
