"""The floor plan in numbers: what a check runs through, how large the house is, how many files a new thing touches.

``python -m benchmarks.house``
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import sys
import tempfile
import textwrap
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
#: What a replicate is on its way, after theta, y and output exist: a class, or the name it has in the design page.
SHAPES = ("Block", "arrays by name from the reducers", "Replicates", "a row of the store")
_TRACED = """
import sys
import ringtrue as rt

seen = set()

def look(frame, event, arg):
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    ours = module.startswith("ringtrue") and code.co_filename.endswith(".py")
    if event == "call" and ours and not code.co_name.startswith("<"):
        seen.add((module, code.co_qualname))

sys.setprofile(look)
rt.check(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), {procedure}, n=3)
sys.setprofile(None)
print(len(seen), len({{module for module, _ in seen}}))
"""
_PROCEDURES = {
    "an exact law": "lambda mu0, y: rt.Normal(y / 2, 0.5**0.5)",
    "99 draws": "lambda mu0, y, rng: rng.normal(y / 2, 0.5**0.5, size=99)",
}
_TOYS = {
    "reducer": (
        "replicates/reducers/toy.py",
        """
        import numpy as np
        from ..record import Field

        class Toy:
            fields, keep = (Field("toy", ()),), None

            def __call__(self, block):
                return {"toy": np.asarray(block.index, float)}

        REDUCER = Toy()
        """,
        "assert result.replicates.arrays['toy'].tolist() == [0.0, 1.0, 2.0]",
    ),
    "level": (
        "judgement/levels/toy.py",
        """
        from . import Evidence, Level, TestRow

        class Toy(Level):
            name, order, implied, share = "toy", 9, 9, 0.1
            null, untested = "nothing", "nothing"

            def evidence(self, replicates, test):
                row = TestRow("toy", "theta", "toy", 0.0, 1e-9, 1e-9, "exact", replicates.n)
                return Evidence("toy", (row,), 1e-9)

            def complaint(self, row, findings):
                return "the toy complains"

        LEVEL = Toy()
        """,
        "assert result.levels['toy'].pvalue == 1e-9 and 'the toy complains' in result.sentence",
    ),
    "adapter": (
        "adapters/toy.py",
        """
        from ringtrue.distributions import Normal
        from ringtrue.question.study import Study

        def study(model):
            return Study(Normal(0, 1), lambda t, rng: t + model * rng.normal(), lambda mu0, y: Normal(y / 2, 0.5**0.5))
        """,
        "from ringtrue.adapters.toy import study; assert rt.check(study(1.0), n=3).replicates.n == 3",
    ),
}


def trace() -> None:
    """Print how many functions and modules a check of three scalar replicates runs through."""
    for name, procedure in _PROCEDURES.items():
        code = _TRACED.format(procedure=procedure)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        functions, modules = done.stdout.split()
        print(
            f"check of three scalar replicates, {name}: {functions} functions (limit 300), {modules} modules (limit 30)"
        )
    print(f"shapes of a replicate: {len(SHAPES)} of at most 4 ({', '.join(SHAPES)})")


def sizes() -> None:
    """Print lines of code, lengths of functions, and comments."""
    code, comments, lengths = 0, 0, list[int]()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text("utf-8")
        documented, own = _docstrings(ast.parse(text))
        lengths += own
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        comments += sum(token.type == tokenize.COMMENT and _is_reason(token.string) for token in tokens)
        code += len({line for token in tokens if token.type not in _EMPTY for line in _lines(token)} - documented)
    ordered = sorted(lengths)
    share = 100 * sum(length < 15 for length in ordered) / len(ordered)
    print(f"{code} lines of code without blank lines, comments and docstrings (limit 15000)")
    print(f"functions: median {statistics.median(ordered):g} lines, {share:.0f} % under 15")
    print(f"comments: {100 * comments / code:.1f} per 100 lines of code")


_EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def _is_reason(comment: str) -> bool:
    """Whether a comment is for people; the others are for tools."""
    return not comment.startswith(("# type:", "# noqa", "# fmt"))


def _lines(token: tokenize.TokenInfo) -> range:
    return range(token.start[0], token.end[0] + 1)


def _docstrings(tree: ast.Module) -> tuple[set[int], list[int]]:
    """Return the lines of docstrings, and the lengths of functions without theirs."""
    documented, lengths = set[int](), list[int]()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        has = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        own = set(range(first.lineno, (first.end_lineno or 0) + 1)) if has else set()
        documented |= own
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lengths.append((node.end_lineno or 0) - node.lineno + 1 - len(own))
    return documented, lengths


def touches() -> None:
    """Add a toy reducer, level and adapter to a copy of the package, one file each, and use them."""
    for what, (place, text, proof) in _TOYS.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", str(SOURCE / "ringtrue"), folder], check=True)
            file = Path(folder) / "ringtrue" / place
            file.parent.mkdir(exist_ok=True)
            file.write_text(textwrap.dedent(text))
            code = (
                "import ringtrue as rt; result = rt.check(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), "
                f"lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=3); {proof}"
            )
            environment = {"PYTHONPATH": folder, "PATH": ""}
            subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=folder)
            print(f"a new {what}: 1 file of src ({place}); it was used, and is thrown away")


if __name__ == "__main__":
    trace()
    sizes()
    touches()
