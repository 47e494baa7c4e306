"""Mutants of the source: how many small mistakes the tests nearest to them notice.

``python -m benchmarks.mutants [--sample 200] [--seed 0] [--processes 1] [--only statistics/combining]``

A mutant is the source with one mistake in it: ``<`` for ``<=``, minus for plus, another constant, ``any`` for ``all``,
a `not` or a guard left out. A sample of all of them is drawn, each is written into a copy of the source tree in a
temporary folder, and the quick tests of its room (``tests/statistics`` for ``statistics/``) that call the function it
is in, and the examples in its docstrings, are run until one fails. Annotations, docstrings, messages and the text of
errors are left alone, and tests marked slow are not run: what only a simulation sees has no exact test. Which test
calls what is found by running the tests once with every cache emptied, file by file; it is kept in ``.mutants/``, and
found again where tests or source have changed. Killed mutants are kept there too, and are not run again while their
file stays as it is: a run that was stopped goes on where it was.

A survivor is read: is there an input for which it gives another answer? If so a test is missing, best an identity or a
closed form at that input. If there is none, or a comment calls the number arbitrary, it goes to `equivalents.py` with
the reason, and is counted apart.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import doctest
import functools
import gc
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

import pytest

from .equivalents import EQUIVALENT

HOUSE = Path(__file__).parents[1]
SOURCE = HOUSE / "src" / "ringtrue"
ROOMS = ("statistics", "judgement", "replicates")
KEPT = HOUSE / ".mutants"
#: A mutant may take this many times as long as the tests it is shown to, and this many seconds to start.
PATIENCE, START = 5, 60

_COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = [("min", "max"), ("any", "all"), ("minimum", "maximum"), ("floor", "ceil"), ("ndtr", "ndtri"), ("std", "var")]
_NAMED = dict(_PAIRS) | {b: a for a, b in _PAIRS} | {"sorted": "list", "abs": "float", "isf": "ppf", "sf": "cdf"}


@dataclass(frozen=True)
class Mutant:
    """One mistake: the file, the function and its lines, what was written and what is now, and all of the file.

    What is written outside functions is run by being imported: it has no lines, and any call into the file counts.
    """

    path: str
    function: str
    lines: tuple[int, int]
    line: int
    change: str
    text: str

    @property
    def room(self) -> str:
        """The folder whose tests are asked."""
        return self.path.split("/")[0]

    @property
    def name(self) -> tuple[str, str, str]:
        """What it is called in the list of those that change no answer."""
        return self.path, self.function, self.change

    @property
    def key(self) -> str:
        """What stays the same while its file keeps its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.change}"


def mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what could have been written by mistake in place of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield from (ast.Compare(left, [other()], right) for other in _COMPARED[type(op)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(1.25 * value if value else 0.1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _NAMED:
            yield ast.Call(ast.Name(_NAMED[name]), args, [] if name == "sorted" else keywords)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=keywords) if name in _NAMED:
            yield ast.Call(ast.Attribute(value, _NAMED[name]), args, keywords)
        case ast.If(test=test, body=[*_, ast.Return()], orelse=[]):
            yield ast.If(ast.Constant(False), node.body, [])
            yield ast.If(ast.UnaryOp(ast.Not(), test), node.body, [])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)


def _is_text(node: Any) -> bool:
    """Whether a node is text, or a rule about the code rather than part of it."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()) | ast.Raise() | ast.Import() | ast.ImportFrom():
            return True
        case ast.BinOp(left=left, right=right):
            return any(isinstance(side, ast.JoinedStr) or _is_string(side) for side in (left, right))
        case ast.keyword(arg="strict" | "maxsize" | "frozen" | "eq"):
            return True
    return False


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def sites(node: ast.AST, within: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ast.AST, str, int | None]]:
    """Yield the outermost function of every node in which a mistake can be made, its parent, field and place."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            inner = (*within, child) if named and not any(isinstance(w, ast.FunctionDef) for w in within) else within
            yield inner[-1] if inner else node, node, field, place
            yield from sites(child, inner)


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, int]]:
    """Put every mistake into a tree in turn, and yield its outermost function and line while it is there."""
    for function, parent, field, place in list(sites(tree)):
        value = getattr(parent, field)
        old = value if place is None else value[place]
        for new in mistakes(old):
            _put(parent, field, place, new)
            yield function, old.lineno
            _put(parent, field, place, old)


def mutants_of(path: Path, numbers: set[int]) -> Iterator[Mutant]:
    """Yield the mutants of one file that have these numbers."""
    tree = ast.parse(path.read_text())
    lines = ast.unparse(tree).split("\n")
    for number, (function, line) in enumerate(changes(tree)):
        if number in numbers:
            yield _mutant(path, function, line, lines, ast.unparse(ast.fix_missing_locations(tree)))


def _put(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def _mutant(path: Path, function: ast.AST, line: int, lines: list[str], text: str) -> Mutant:
    span = (0, 0)
    if isinstance(function, ast.FunctionDef):
        span = (min([function.lineno, *(d.lineno for d in function.decorator_list)]), function.end_lineno or 0)
    was, now = next((a, b) for a, b in zip(lines, text.split("\n"), strict=False) if a != b)
    name = getattr(function, "name", "module")
    return Mutant(str(path.relative_to(SOURCE)), name, span, line, f"{was.strip()} -> {now.strip()}", text)


def sample(many: int, seed: int, only: str) -> list[Mutant]:
    """Draw mutants of all rooms, and keep those of the files meant."""
    paths = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    every = [(path, number) for path in paths for number, _ in enumerate(changes(ast.parse(path.read_text())))]
    chosen = random.Random(seed).sample(every, min(many, len(every)))
    print(f"{len(chosen)} of {len(every)} mutants, seed {seed}", flush=True)
    wanted = {path: {number for other, number in chosen if other == path} for path, _ in chosen}
    meant = [path for path in paths if path in wanted and str(path.relative_to(SOURCE)).startswith(only)]
    return [mutant for path in meant for mutant in mutants_of(path, wanted[path])]


# Who calls what: this module is also a plugin of pytest, which writes the calls of every test to a file.

_calls: dict[str, Any] = {"seconds": {}, "called": {}, "shared": []}
_now: set[str] = set()
_caches: list[Any] = []


def _look(frame: FrameType, event: str, arg: object) -> None:
    name = frame.f_code.co_filename
    if name.startswith(str(SOURCE)):
        _now.add(f"{name[len(str(SOURCE)) + 1 :]}:{frame.f_code.co_firstlineno}")


def pytest_collection_finish() -> None:
    """Run the examples of a mutant; or find the caches: what one test has computed would hide who else needs it."""
    if "MUTANTS_EXAMPLES" in os.environ and doctest.testmod(import_module(os.environ["MUTANTS_EXAMPLES"])).failed:
        pytest.exit("an example fails", returncode=1)
    if "MUTANTS_CALLS" in os.environ:
        found = [o for o in gc.get_objects() if isinstance(o, functools._lru_cache_wrapper)]
        _caches[:] = [cache for cache in found if str(cache.__module__).startswith("ringtrue.")]


def pytest_runtest_setup() -> None:
    """Empty the caches; what fixtures call counts for every test of the file."""
    if "MUTANTS_CALLS" in os.environ:
        for cache in _caches:
            cache.cache_clear()
        sys.settrace(_look)


def pytest_runtest_call() -> None:
    """From here on calls are those of one test."""
    _calls["shared"] = sorted({*_calls["shared"], *_now})
    _now.clear()


def pytest_runtest_logreport(report: Any) -> None:
    """Keep what was called, and how long it took."""
    if report.when == "call" and report.passed:
        sys.settrace(None)
        _calls["seconds"][report.nodeid] = report.duration
        _calls["called"][report.nodeid] = sorted(_now)
        _now.clear()


def pytest_sessionfinish() -> None:
    """Write the calls."""
    if "MUTANTS_CALLS" in os.environ:
        Path(os.environ["MUTANTS_CALLS"]).write_text(json.dumps(_calls))


# Running.


def _pytest(*arguments: str, source: Path = HOUSE / "src", limit: float | None = None, **environment: str) -> int:
    """Run tests against a source tree; whoever takes too long has failed."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-c", str(HOUSE / "pyproject.toml")]
    command += [
        f"--rootdir={HOUSE}",
        "-p",
        "no:cacheprovider",
        "-p",
        "benchmarks.mutants",
        "-m",
        "not slow",
        *arguments,
    ]
    storage = {"HYPOTHESIS_STORAGE_DIRECTORY": str(KEPT / "hypothesis"), "PYTHONPATH": f"{source}:{HOUSE}"}
    settings = {**os.environ, **storage, **environment}
    try:
        return subprocess.run(command, cwd=HOUSE, env=settings, capture_output=True, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return 1


def _places() -> str:
    """Return where every function of the rooms begins: while that stays, who calls what is known."""
    paths = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    trees = {path: ast.walk(ast.parse(path.read_text())) for path in paths}
    return repr([(p.name, [n.lineno for n in tree if isinstance(n, ast.FunctionDef)]) for p, tree in trees.items()])


def calls(room: str) -> dict[str, tuple[float, frozenset[str]]]:
    """Return how long every test of a room takes, and which functions it calls; found once for every test file."""
    found, places = {}, _places().encode()
    for file in sorted((HOUSE / "tests" / room).rglob("test_*.py")):
        kept = KEPT / f"{room}-{file.stem}-{hashlib.sha256(file.read_bytes() + places).hexdigest()[:16]}.json"
        if not kept.exists():
            print(f"who calls what: {file.relative_to(HOUSE)}", flush=True)
            # Files all of whose tests are slow have nothing to say.
            if _pytest(str(file), MUTANTS_CALLS=str(kept)) not in (0, 5):
                kept.unlink(missing_ok=True)
                raise SystemExit(f"{file} fails without any mutant: mend that first.")
        read = json.loads(kept.read_text())
        for test, called in read["called"].items():
            found[test] = (read["seconds"][test], frozenset(called) | frozenset(read["shared"]))
    return found


def asked(mutant: Mutant, room: dict[str, tuple[float, frozenset[str]]]) -> tuple[list[str], float]:
    """Return the tests that call the function of a mutant, quickest first, and how long they take."""
    first, last = mutant.lines
    places = [f"{mutant.path}:{line}" for line in range(first, last + 1)] if first else []
    chosen = {
        test: seconds
        for test, (seconds, called) in room.items()
        if (called.intersection(places) if places else any(place.startswith(f"{mutant.path}:") for place in called))
    }
    if not chosen:  # a module of constants: whoever is named for it, or for its folder
        names = {f"/test_{part}.py::" for part in mutant.path.removesuffix(".py").split("/")[1:]}
        chosen = {test: seconds for test, (seconds, _) in room.items() if any(name in test for name in names)}
    return sorted(chosen, key=lambda test: chosen[test]), sum(chosen.values())


def outcome(mutant: Mutant, tests: list[str], seconds: float, copy: Path) -> str:
    """Write a mutant into a copy of the source, run what is asked, and put the file back."""
    file = copy / "ringtrue" / mutant.path
    kept = file.read_text()
    file.write_text(mutant.text)
    try:
        # Without a name pytest would run everything.
        code = _pytest(*tests, source=copy, limit=START + PATIENCE * seconds, **_known(mutant.path)) if tests else 0
    finally:
        file.write_text(kept)
    return "killed" if code else "survived"


def _known(path: str) -> dict[str, Any]:
    """Return what a run of tests on a copy is told: whose examples to run, and to write no byte code.

    A byte code file could be taken for that of the next mutant.
    """
    module = f"ringtrue.{path}".removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return {"PYTHONDONTWRITEBYTECODE": "1", "MUTANTS_EXAMPLES": module}


def need_sound(paths: Iterable[str], tests: Iterable[str], copy: Path) -> None:
    """Refuse to go on if tests fail on files that were written anew and not changed: all mutants would be killed."""
    for path in paths:
        file = copy / "ringtrue" / path
        file.write_text(ast.unparse(ast.parse(file.read_text())))
    if _pytest(*tests, source=copy, **_known(path)):
        raise SystemExit(f"tests fail although nothing was changed in {path} and others.")


def run(chosen: list[Mutant], processes: int) -> dict[Mutant, str]:
    """Show every mutant to its tests, and print as it goes."""
    ledger = KEPT / "killed.txt"
    killed = set(ledger.read_text().split()) if ledger.exists() else set()
    found = {mutant: "equivalent" for mutant in chosen if mutant.name in EQUIVALENT}
    found |= {mutant: "killed" for mutant in chosen if mutant.key in killed}
    open_ones = [mutant for mutant in chosen if mutant not in found]
    rooms = {room: calls(room) for room in sorted({mutant.room for mutant in open_ones})}
    copies: SimpleQueue[Path] = SimpleQueue()

    def one(mutant: Mutant) -> str:
        tests, seconds = asked(mutant, rooms[mutant.room])
        copy, start = copies.get(), time.perf_counter()
        what = outcome(mutant, tests, seconds, copy)
        copies.put(copy)
        print(f"{what:10} {time.perf_counter() - start:4.0f} s, {len(tests):3d} tests  {mutant}", flush=True)
        if what == "killed":
            with ledger.open("a") as file:
                print(mutant.key, file=file)
        return what

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        for process in range(processes):
            copies.put(copy := Path(folder) / str(process))
            shutil.copytree(HOUSE / "src", copy)
            compileall.compile_dir(copy, quiet=2)
        for room, tests in rooms.items():
            need_sound({mutant.path for mutant in open_ones if mutant.room == room}, tests, copy)
        return found | dict(zip(open_ones, pool.map(one, open_ones), strict=True))


def main() -> None:
    """Draw, run, and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, choices=(1, 2))
    parser.add_argument("--only", default="", help="the beginning of a path below src/ringtrue")
    given = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    found = run(sample(given.sample, given.seed, given.only), given.processes)
    counts = {name: list(found.values()).count(name) for name in ("killed", "survived", "equivalent")}
    for mutant, what in found.items():
        if what == "survived":
            print(f"survived: {mutant}")
    share = counts["killed"] / max(1, counts["killed"] + counts["survived"])
    print(", ".join(f"{many} {name}" for name, many in counts.items()) + f"; {share:.1%} of those that matter killed")


if __name__ == "__main__":
    main()
