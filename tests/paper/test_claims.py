"""The index of the paper's statements is complete, and every command in it exists."""

import ast
import math
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ringtrue.cli import cli
from ringtrue.paper import claims, gallery
from ringtrue.paper.claims import CLAIMS, NOT_YET, Claim

ROOT = Path(__file__).parents[2]
#: Read off the source text, environment by environment, with LaTeX's counters.
NUMBERS = {
    "Definition": ["2.1", "2.2", "2.4", "2.6", "2.7", "2.8", "2.17"],
    "Lemma": ["2.3", "2.5", "2.19"],
    "Remark": ["2.9", "2.10", "2.11", "2.12", "2.18"],
    "Example": ["2.13", "2.14", "2.15", "2.16", "2.20", "2.21", "2.22"],
    "Corollary": ["A.1"],
    "Figure": ["2.1", "2.2", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6"],
}
#: What other work is about: joint tests, and several datasets per parameter.
MISSING = [
    "Harrison et al.'s multi-dimensional test",
]


def complaint(claim: Claim) -> str | None:
    """Return what is wrong with the command of a claim, or None."""
    if not claim.command:
        return None if claim.finding == NOT_YET else "no command"
    program, *words = shlex.split(claim.command)
    if program == "pytest":
        return _not_a_test(words[0])
    if program != "ringtrue" or words[0] not in cli.commands:
        return "no such command"
    # Parsed and not run; click raises if it is not accepted.
    context = cli.commands[words[0]].make_context(words[0], [str(ROOT / w) if "/" in w else w for w in words[1:]])
    return None if words[0] != "paper" or context.params["name"] in gallery.NAMES else "no such vignette"


def _not_a_test(node: str) -> str | None:
    file, _, name = node.partition("::")
    if not (ROOT / file).exists():
        return "no such file"
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return None if name in {item.name for item in tree.body if isinstance(item, ast.FunctionDef)} else "no such test"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.title)
def test_every_claim_has_a_command_that_exists(claim: Claim) -> None:
    """A command is accepted by the command line, or is a test that is there; only what is not here yet has none."""
    assert complaint(claim) is None


@pytest.mark.parametrize(
    ("command", "finding", "message"),
    [
        ("", "holds", "no command"),
        ("ringtrue paper nothing", "holds", "no such vignette"),
        ("ringtrue dance", "holds", "no such command"),
        ("pytest tests/paper/test_claims.py::test_nothing", "holds", "no such test"),
        ("pytest tests/test_nothing.py::test_nothing", "holds", "no such file"),
    ],
)
def test_what_does_not_exist_is_found_out(command: str, finding: str, message: str) -> None:
    """The twin: claims with wrong commands, or none, are complained about."""
    assert complaint(Claim("Remark", "0.0", "a twin", finding, command)) == message


def test_every_numbered_statement_is_listed_once() -> None:
    """The numbers of the text are the numbers of the index, kind by kind: 23 statements and 8 figures."""
    listed = Counter((claim.kind, claim.number) for claim in CLAIMS if claim.number)
    assert listed == Counter((kind, number) for kind, numbers in NUMBERS.items() for number in numbers)
    assert sum(len(numbers) for numbers in NUMBERS.values()) == 23 + 8
    together = sorted(int(n.split(".")[1]) for k, ns in NUMBERS.items() if k != "Figure" for n in ns if n[0] == "2")
    # Statements of a section share a counter, so that none can be missing in between.
    assert together == list(range(1, 23))


def test_what_is_not_here_is_known_and_counted() -> None:
    """What has no command is exactly what is worked on elsewhere; the printed count leaves it out."""
    assert [claim.title for claim in CLAIMS if claim.finding == NOT_YET] == MISSING
    assert claims.text().endswith(f"{len(CLAIMS) - len(MISSING)} of {len(CLAIMS)} shown.")


def test_the_command_line_prints_the_index() -> None:
    """`ringtrue paper --list` needs no name and runs nothing."""
    answer = CliRunner().invoke(cli, ["paper", "--list"])
    assert answer.exit_code == 0
    assert answer.output == claims.text() + "\n"


def test_the_page_shows_the_index() -> None:
    """The table of the documentation is the data's."""
    assert claims.markdown() in (ROOT / "docs" / "paper.md").read_text("utf-8")


@pytest.mark.parametrize("sd", [0.5, 1.0, 3.0])
def test_the_corollary_needs_more_than_the_identity(sd: float) -> None:
    """P(theta <= draw) is 1/2 for independent N(0, 1) and N(0, sd^2), whatever sd; P(|theta| <= |draw|) if it is 1.

    The latter is 2 atan(sd) / pi, an angle of the plane, here also by quadrature.
    """
    x = (np.arange(200_000) + 0.5) / 200_000 * 12
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    farther = np.array([math.erfc(v / (sd * math.sqrt(2))) for v in x])
    below = float((2 * density * farther).sum() * 12 / 200_000)
    assert below == pytest.approx(2 * math.atan(sd) / math.pi, abs=1e-6)
    assert (abs(below - 0.5) < 1e-6) == (sd == 1)
