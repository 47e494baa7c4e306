"""Results and replicates as other tools want them: pandas, xarray, JSON, CSV.

Every number here was computed elsewhere; this module only arranges them. It knows nothing of pictures and pages.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .errors import RingtrueError
from .execution.store import Store
from .execution.store.identity import versions as run_versions
from .judgement.column import columns_of
from .judgement.fits import diagnostics
from .judgement.levels import TestRow, chain, level_of
from .judgement.result import Result
from .judgement.text import MEASURED, as_row
from .replicates.record import Replicates

#: The arrays of Replicates that have one number per replicate and test function.
ARRAYS = ("u", "z", "rank", "draws", "truth", "mean", "sd", "crps", "interval")
#: Those that have one number per replicate.
JOINT = ("energy", "belief_energy")
#: The form of the JSON; it changes when a field changes its meaning or goes.
FORM = "ringtrue-report-2"
#: Causes of failures that are written out; the others are counted.
_CAUSES = 100
_TESTED = [field.name for field in fields(TestRow)]
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: Characters of a text that are written out: a traceback may hold a whole array.
_TEXT = 20_000


@dataclass(frozen=True)
class Frames:
    """Four pandas DataFrames: one row per test, per measure, per replicate and test function, and per replicate."""

    tests: Any
    measures: Any
    replicates: Any
    diagnostics: Any


@dataclass(frozen=True)
class Origin:
    """The store that replicates came from: how far its run was, what made it, and what the study is made of."""

    file: str
    n: int
    done: int
    failed: int
    seconds: float
    last_write: str | None
    fingerprint: Mapping[str, str]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, store: Store) -> Origin:
        """Read it from an open store."""
        state = store.progress()
        written = None if state.last_write is None else _said(datetime.fromtimestamp(state.last_write, UTC))
        counts = state.n, state.done, state.failed, state.seconds
        # The last versions: a run that was resumed may have been written by several.
        return cls(Path(store.path).name, *counts, written, store.fingerprint, store.versions[-1])


def to_pandas(source: Result | Replicates) -> Frames:
    """Return tests, measures, replicates and diagnostics of single fits as pandas DataFrames.

    Parameters
    ----------
    source
        A Result; of Replicates alone, the tests and measures are empty.

    Examples
    --------
    >>> from ringtrue import check_draws, identity
    >>> result = check_draws([0.0, 1.0], [[0.5, 1.5, -1.0], [0.0, 2.0, 3.0]], f=identity)
    >>> [len(frame) for frame in (to_pandas(result).tests, to_pandas(result).replicates)]
    [2, 2]
    """
    pandas: Any = _need("pandas", "to_pandas")
    replicates = _replicates(source)
    tests, measures = (source.tests, source.measures) if isinstance(source, Result) else ((), ())
    table = _long(replicates)
    # Codes and not text, since a name in every row would be most of the memory.
    table["f"] = pandas.Categorical.from_codes(table["f"], [function.name for function in replicates.functions])
    return Frames(
        pandas.DataFrame([asdict(row) for row in tests], columns=_TESTED),
        pandas.DataFrame([as_row(row) for row in measures], columns=list(MEASURED)),
        pandas.DataFrame(table),
        pandas.DataFrame(_fits(source)),
    )


def to_xarray(source: Result | Replicates) -> Any:
    """Return an xarray DataTree that ArviZ understands.

    Its group ``replicates`` has u, z, rank, draws, truth, mean, sd, crps and interval over the dimensions replicate and
    test_function, energy and belief_energy over replicate; lost replicates are nan. Its group ``diagnostics`` has what
    is known of single fits over replicate. Its group ``prior_sbc`` has u of
    the replicates that were kept, over chain (always 1), draw and test_function, where
    ``arviz_plots.plot_ecdf_pit`` looks for it. Seed, versions and verdict are attributes of the root.

    Parameters
    ----------
    source
        A Result, or Replicates alone.

    Examples
    --------
    >>> from ringtrue import check_draws, identity
    >>> tree = to_xarray(check_draws([0.0, 1.0], [[0.5, 1.5, -1.0], [0.0, 2.0, 3.0]], f=identity))
    >>> tree["replicates"]["rank"].values.tolist(), tree["prior_sbc"]["u"].dims
    ([[1], [1]], ('chain', 'draw', 'test_function'))
    """
    xarray: Any = _need("xarray", "to_xarray")
    replicates = _replicates(source)
    numbers = replicates.first + np.arange(replicates.n)
    names = np.array([clean(function.name) for function in replicates.functions], dtype=object)
    levels = np.array([level_of(function.sees) for function in replicates.functions], dtype=object)
    functions = {"test_function": names, "level": ("test_function", levels)}
    every = xarray.Dataset(
        {name: (("replicate", "test_function"), getattr(replicates, name)) for name in ARRAYS}
        | {name: (("replicate",), getattr(replicates, name)) for name in JOINT},
        coords={"replicate": numbers, "lost": ("replicate", ~replicates.kept), **functions},
    )
    kept = xarray.Dataset(
        {"u": (("chain", "draw", "test_function"), replicates.u[replicates.rows][None])},
        coords={"chain": [0], "draw": numbers[replicates.kept], **functions},
    )
    said = {name: (("replicate",), values) for name, values in _fits(source).items() if name != "replicate"}
    fits = xarray.Dataset({clean(name): pair for name, pair in said.items()}, coords={"replicate": numbers})
    attributes = _attributes(source)
    tree = xarray.DataTree.from_dict({"replicates": every, "diagnostics": fits, "prior_sbc": kept})
    # Groups carry them too, because one may be taken out of the tree and saved alone.
    for node in (tree, *tree.children.values()):
        node.attrs.update(attributes)
    return tree


def document(result: Result, *, origin: Origin | None = None) -> dict[str, Any]:
    """Return a result as plain data: the machine-readable twin of the report.

    Its fields are those of ``ringtrue/report/schema.json``. Numbers that are unknown or unbounded are None.

    Parameters
    ----------
    result
        The answer.
    origin
        The store that its replicates came from, if any.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> document(check_draws([0.0, 1.0], [[0.5, 1.5, -1.0], [0.0, 2.0, 3.0]]))["lost"]
    0
    """
    replicates = result.replicates
    causes = replicates.causes()
    whole = {
        "form": FORM,
        "made": _said(datetime.now(UTC)),
        "versions": versions(),
        **result.to_dict(),
        "lost": len(replicates.failures),
        "levels_not_tested": [level.name for level in chain() if level.name not in result.levels],
        "functions": [
            {"name": one.name, "kind": one.kind, "level": level_of(one.sees), "route": one.route}
            for one in columns_of(replicates)
        ],
        "failures": [
            {
                "stage": one.stage,
                "error": one.error,
                "count": many,
                "replicate": one.replicate,
                "replay": replicates.replay_of(one),
                "traceback": one.traceback,
            }
            for _, many, one in causes[:_CAUSES]
        ],
        "diagnostics": result.diagnostics.to_dict(),
        "failures_left_out": sum(many for _, many, _ in causes[_CAUSES:]),
        "store": None if origin is None else asdict(origin),
    }
    plain: dict[str, Any] = _plain(whole)
    return plain


def to_json(result: Result, path: str | os.PathLike[str], *, origin: Origin | None = None) -> Path:
    """Write a result as JSON, in the form of ``ringtrue/report/schema.json``, and return the file."""
    return write(path, as_text(document(result, origin=origin)))


def as_text(plain: Mapping[str, Any]) -> str:
    """Return plain data as JSON text without nan."""
    # NaN is not JSON, and readers in other languages refuse it; one that is left here is a mistake of ours.
    return json.dumps(plain, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def to_csv(source: Result | Replicates, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write replicates.csv, diagnostics.csv, and of a Result also tests.csv and measures.csv, into a folder.

    Returns the files. A name that a spreadsheet would take for a formula, since it begins with ``=``, ``+``, ``-``,
    ``@``, a tab or a new line, has ``'`` before it, which spreadsheets take for "this is text"; numbers stay numbers.

    Parameters
    ----------
    source
        A Result, or Replicates alone.
    folder
        It is made if it does not exist.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RingtrueError(f"{place} must be a folder to write to, but it is not: {error.strerror}.") from error
    replicates = _replicates(source)
    # The texts are generators: millions of rows are written without ever being in memory together.
    files = {"replicates.csv": _csv_text(["replicate", "f", "lost", *ARRAYS], _lines(replicates))}
    fits = _fits(source)
    files["diagnostics.csv"] = _csv_text(list(fits), zip(*(values.tolist() for values in fits.values()), strict=True))
    if isinstance(source, Result):
        files["tests.csv"] = _csv_text(_TESTED, (asdict(row).values() for row in source.tests))
        files["measures.csv"] = _csv_text(MEASURED, (as_row(row).values() for row in source.measures))
    return tuple(write(place / name, pieces) for name, pieces in files.items())


def versions() -> dict[str, str]:
    """Return the versions that numbers and pages depend on.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'ringtrue', 'scipy']
    """
    import scipy

    return {**run_versions(), "scipy": scipy.__version__}


def clean(text: str) -> str:
    r"""Return text that every encoding of Unicode can hold: lone surrogates are spelled out.

    Examples
    --------
    >>> clean("a\udc80")
    'a\\udc80'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write(path: str | os.PathLike[str], pieces: str | Iterable[str]) -> Path:
    """Write a text file through a temporary one, so that an interruption leaves no half."""
    target = Path(path)
    # In the same folder: between file systems a rename is a copy, which can be interrupted.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        # A new file, never one that is there or that a link points to. csv writes its own line ends, to which a text
        # file on Windows would add.
        with part.open("x", encoding="utf-8", newline="") as file:
            file.writelines([pieces] if isinstance(pieces, str) else pieces)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RingtrueError(f"{target} must be a file that can be written, but it is not: {error.strerror}.") from error
    return target


def _replicates(source: Any) -> Replicates:
    if isinstance(source, Result):
        return source.replicates
    if isinstance(source, Replicates):
        return source
    raise TypeError(f"a Result or Replicates was expected, but {type(source).__name__} arrived.")


def _need(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise RingtrueError(f"{what} needs {module}; run: pip install 'ringtrue[export]'") from None


def _long(replicates: Replicates) -> dict[str, Any]:
    """Return one row per replicate and test function, by column; test functions as numbers."""
    n, functions = replicates.u.shape
    return {
        "replicate": np.repeat(replicates.first + np.arange(n), functions),
        "f": np.tile(np.arange(functions), n),
        "lost": np.repeat(~replicates.kept, functions),
        **{name: np.ravel(getattr(replicates, name)) for name in ARRAYS},
    }


def _fits(source: Result | Replicates) -> dict[str, Any]:
    """Return one row per replicate, by column: what is known of its fit, and what it is flagged for."""
    found = source.diagnostics if isinstance(source, Result) else diagnostics(source)
    ran = found.replicates
    # A sampler may call what it says as it likes, also as we do.
    flags = {f"flagged: {one.name}": one.fits for one in found.flags}
    head = {"replicate": ran.first + np.arange(ran.n), "lost": ~ran.kept, "flagged": found.flagged}
    rest = {name: values for name, values in {**found.columns, **flags}.items() if name not in head}
    return {**head, **rest}


def _lines(replicates: Replicates, at_once: int = 10_000) -> Iterator[list[Any]]:
    """Yield the rows of the long table, nan as nothing, a piece of the replicates at a time."""
    names = [function.name for function in replicates.functions]
    for start in range(0, replicates.n, at_once):
        piece = slice(start, start + at_once)
        # Lists, since taking single numbers out of arrays is many times slower.
        columns = [getattr(replicates, name)[piece].tolist() for name in ARRAYS]
        lost = (~replicates.kept[piece]).tolist()
        for i, gone in enumerate(lost):
            for k, name in enumerate(names):
                numbers = [column[i][k] for column in columns]
                yield [replicates.first + start + i, name, gone, *numbers]


def _csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    line = _Line()
    writer = csv.writer(line)
    writer.writerow([_csv_cell(name) for name in head])
    yield line.text
    for row in rows:
        writer.writerow([_csv_cell(value) for value in row])
        yield line.text


class _Line:
    """A file that remembers the last line."""

    text = ""

    def write(self, text: str) -> int:
        self.text = text
        return len(text)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return clean(f"'{value}" if value.startswith(_FORMULA) else value)
    # Only nan differs from itself; np.isnan would refuse what is not a number.
    return "" if value != value else value


def _attributes(source: Result | Replicates) -> dict[str, Any]:
    """Return attributes that netCDF can hold, with ArviZ's names where it has one."""
    replicates = _replicates(source)
    made = versions()
    found: dict[str, Any] = {
        "created_at": _said(datetime.now(UTC)),
        "inference_library": "ringtrue",
        "inference_library_version": made["ringtrue"],
        **{f"{name}_version": version for name, version in made.items() if name != "ringtrue"},
        # The integers of netCDF have 64 bits, one of them a sign.
        "seed": replicates.seed if replicates.seed < 2**63 else str(replicates.seed),
        "lost": len(replicates.failures),
    }
    if isinstance(source, Result):
        found |= {"verdict": source.verdict.name, "sentence": clean(source.sentence), "pvalue": source.pvalue}
        found |= {"alpha": source.alpha, "alpha_of_this_look": source.spent}
    return found


def _said(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    """Return what JSON can hold: no nan, no NumPy, no lone surrogates, no endless text."""
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        # Cut before it is cleaned, so that cleaning costs no more than what is kept.
        return clean(value) if len(value) <= _TEXT else f"{clean(value[:_TEXT])}…"
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
