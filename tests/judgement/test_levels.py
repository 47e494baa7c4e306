"""Levels of calibration: what each says, what share of the error it has, and that a new one is a file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy import special

import ringtrue as rt
from ringtrue.export import document
from ringtrue.judgement import levels as package
from ringtrue.judgement.levels import Evidence, budget, chain, level_of, levels
from ringtrue.report import content

from ..builders import grid, normal, replicates, scores

#: A level that rejects everything; what is missing is its share of the error.
TOY = '''
from ringtrue.judgement.levels import Evidence, Level, TestRow


class Toy(Level):
    """No replicate at all."""

    name, order, implied, share = "toy", 5, 5, {share}
    null = "there are no replicates"
    untested = "whether there are replicates"

    def evidence(self, replicates, test):
        """Reject if there are {least} replicates."""
        if replicates.n < {least}:
            return None
        row = TestRow("toy", "f0", "counting", float(replicates.n), 1e-9, 1e-9, "counted", replicates.n)
        return Evidence("toy", (row,), 1e-9)

    def complaint(self, row, findings):
        """Say how many there are."""
        return f"there are {{row.n}} replicates"


LEVEL = Toy()
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are levels too, as long as the test lasts."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    levels.cache_clear()
    yield tmp_path
    levels.cache_clear()
    sys.modules.pop(f"{package.__name__}.toy", None)
    vars(package).pop("toy", None)


def _put(folder: Path, *, share: float | None, least: int = 1) -> None:
    (folder / "toy.py").write_text(TOY.format(share=share, least=least), "utf-8")


def test_a_level_is_a_file(folder: Path) -> None:
    """A module in the folder of levels is tested and shown like the others, and nothing else had to change."""
    ran = replicates(grid(4000), names=["f0"])
    before = rt.judge(ran)
    _put(folder, share=None)
    levels.cache_clear()
    result = rt.judge(ran)
    assert set(result.levels) == {"strong", "toy"}
    assert result.levels["toy"].pvalue == 1e-9
    assert [row.level for row in result["f0"].tests] == ["strong", "toy"]
    assert "counting" in result.details()
    # Without a share of the error it says what it says, and the verdict is that of the others.
    assert (result.verdict, result.pvalue, result.sentence) == (before.verdict, before.pvalue, before.sentence)


def test_a_level_with_a_share_enters_into_the_verdict(folder: Path) -> None:
    """The same level with a share of the error decides, with its own sentence."""
    _put(folder, share=0.2)
    result = rt.judge(replicates(grid(4000), names=["f0"]))
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert result.pvalue == pytest.approx(1e-9 / 0.2)  # strong has 0.8 of what the two share
    assert result.sentence == "MISCALIBRATED (toy, p = 5e-9): there are 4000 replicates."


def test_a_level_that_was_not_tested_is_a_blind_spot(folder: Path) -> None:
    """Reports name it with what it would have needed."""
    _put(folder, share=None, least=10**9)
    result = rt.judge(replicates(grid(50)))
    assert "toy" not in result.levels
    assert document(result)["levels_not_tested"][-1] == "toy"
    assert "Level toy, not tested: whether there are replicates." in content.blind_spots(result)


def test_the_toy_is_gone() -> None:
    """The fixture leaves the levels as they were."""
    assert list(levels()) == ["strong", "auto", "exact", "reversible", "weak"]


def test_the_chain_of_implications() -> None:
    """exact implies auto implies strong implies reversible implies weak."""
    assert [level.name for level in chain()] == ["exact", "auto", "strong", "reversible", "weak"]
    assert [level.implied for level in chain()] == [0, 1, 2, 3, 4]


def test_the_weak_level_never_leads() -> None:
    """Where strong and weak reject, the sentence begins with strong, although the weak p-value is smaller."""
    z, drawn = 1.2 * normal(400), 3 * normal(400)
    result = rt.judge(
        # Not a parameter, which would lead for being one.
        scores(z, weak_u=special.ndtr(drawn), weak_z=drawn, weak_value=drawn, kinds=["function"])
    )
    assert result.levels["weak"].pvalue < result.levels["strong"].pvalue < 0.01
    assert result.sentence.startswith("MISCALIBRATED (strong, p = ")


def test_what_a_function_sees_decides_of_which_level_it_speaks() -> None:
    """theta alone is strong, the output auto, the data exact."""
    assert (level_of("theta"), level_of("output"), level_of("data")) == ("strong", "auto", "exact")


@pytest.mark.parametrize(
    ("tested", "shares"),
    [
        (["strong"], {"strong": 1.0}),
        (["strong", "weak"], {"strong": 0.8, "weak": 0.2}),
        (["strong", "exact"], {"strong": 1.0}),
        (["strong", "auto", "weak"], {"strong": 0.45, "auto": 0.35, "weak": 0.2}),
        (["auto", "weak"], {"auto": 0.8, "weak": 0.2}),
        (["exact"], {}),
    ],
)
def test_the_error_is_shared_among_the_levels_that_were_tested(tested: list[str], shares: dict[str, float]) -> None:
    """Shares add up to one, and the exact level, which answers another question, has none."""
    assert budget([Evidence(name, (), 0.5) for name in tested]) == pytest.approx(shares)


def test_every_level_says_what_it_is() -> None:
    """A level has a null hypothesis, a place, and words for what a run lacks that did not test it."""
    for name, level in levels().items():
        assert level.name == name
        assert level.null
        assert level.untested
    assert len({level.order for level in levels().values()}) == len(levels())


def test_a_level_without_a_share_has_no_complaint() -> None:
    """Asking for one is a mistake of ours, and says so."""
    row = rt.judge(replicates(grid(50))).tests[0]
    with pytest.raises(TypeError, match="exact has no share"):
        levels()["exact"].complaint(row, None)  # type: ignore[arg-type]
