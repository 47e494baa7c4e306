"""From vignettes to a folder: figures, data, and an index page.

Knows how to run, save and resume vignettes; nothing of what they compute.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InvalidStudy, RingtrueError

#: The vignettes, in the order of the paper.
NAMES = ("examples", "richardson", "forecasters", "laplace", "abc", "odes", "tolerances", "gp", "robust")
#: What an index page of ours is known by.
_TITLE = "<title>Testing whether a learning procedure is calibrated: the figures</title>"


@dataclass(frozen=True)
class Exhibit:
    """A finished vignette: its name and title, what it says, its files' common stem, and the stems of its figures."""

    name: str
    title: str
    lines: tuple[str, ...]
    stem: Path
    figures: tuple[Path, ...]


def vignette(name: str) -> ModuleType:
    """Return the module of a vignette, or say which there are.

    Examples
    --------
    >>> vignette("robust").TITLE != ""
    True
    """
    if name not in NAMES:
        raise InvalidStudy(f"the vignettes are {', '.join(NAMES)} (or all), but {name!r} was asked for.")
    return import_module(f"{__package__}.{name}")


def produce(
    names: Sequence[str], folder: Path, *, scale: float | None = None, seed: int = 0, say: Callable[[str], Any] = print
) -> list[Exhibit]:
    """Run vignettes one after the other and save each as soon as it is done.

    Parameters
    ----------
    names
        Names of vignettes.
    folder
        Where to; it is tried before anything is computed.
    scale
        1 is the paper's number of realisations; left out, each vignette's quick one.
    seed
        Seed of all.
    say
        What to do with lines of text.

    Notes
    -----
    A vignette whose data of the same scale and seed are in the folder is drawn from them, not run again: an interrupted
    call goes on where it stopped.
    """
    # All of them now: a wrong name must not be found out after hours.
    modules = {name: vignette(name) for name in names}
    if scale is not None and not 0 < scale <= 1:
        raise InvalidStudy(f"scale must lie in (0, 1], 1 being the paper's, but {scale!r} arrived.")
    for needed in ("matplotlib", "jinja2"):
        try:
            import_module(needed)
        except ImportError:
            raise RingtrueError(f"figures need {needed}; run: pip install 'ringtrue[plot]'") from None
    _need_folder(folder)
    done = []
    for name, module in modules.items():
        done.append(_exhibit(name, module, folder, module.QUICK if scale is None else scale, seed, say))
        # Each time: an interrupted call leaves a page of what is done.
        _write_index(folder)
    return done


def _exhibit(
    name: str, module: ModuleType, folder: Path, scale: float, seed: int, say: Callable[[str], Any]
) -> Exhibit:
    stem = folder / name
    say(f"{module.TITLE} (scale {scale:g}, seed {seed})")
    data = _saved(stem.with_suffix(".json"), scale, seed)
    if data is None:
        from tqdm.auto import tqdm

        # disable=None: no bar where nobody watches, as in a log.
        start, progress = time.perf_counter(), partial(tqdm, desc=name, delay=2, leave=False, disable=None)
        data = module.make(scale=scale, seed=seed, progress=progress)
        data["run"] = {"scale": scale, "seed": seed, "seconds": round(time.perf_counter() - start, 2)}
        _save(data, stem)
    lines = tuple(module.lines(data))
    for line in lines:
        say(f"  {line}")
    say(f"  {data['run']['seconds']:g} s")
    drawn = module.draw(data)
    # One figure has the vignette's stem, several have it and a word of their own.
    several = drawn if isinstance(drawn, Mapping) else {"": drawn}
    figures = {stem.with_name(f"{name}_{word}" if word else name): figure for word, figure in several.items()}
    for path, figure in figures.items():
        for suffix in (".png", ".svg"):
            figure.savefig(path.with_suffix(suffix))
    return Exhibit(name, module.TITLE, lines, stem, tuple(figures))


def _shown(name: str, folder: Path) -> Exhibit:
    """Return an exhibit of the folder from its saved data."""
    module, stem = vignette(name), folder / name
    data = json.loads(stem.with_suffix(".json").read_text("utf-8"))
    further = sorted(path.with_suffix("") for path in folder.glob(f"{name}_*.svg"))
    return Exhibit(name, module.TITLE, tuple(module.lines(data)), stem, (stem, *further))


def _saved(path: Path, scale: float, seed: int) -> dict[str, Any] | None:
    """Return data of an earlier call with the same scale and seed, if they are there and whole."""
    try:
        data = json.loads(path.read_text("utf-8"))
        same = data["run"]["scale"] == scale and data["run"]["seed"] == seed
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return data if same else None


def _save(data: dict[str, Any], stem: Path) -> None:
    """Write JSON through a temporary file, so that an interruption leaves no half, and the rows as CSV."""
    whole = stem.with_suffix(".json.part")
    # NumPy's numbers and arrays alike know themselves as JSON does.
    whole.write_text(json.dumps(data, indent=1, default=lambda value: value.tolist()), "utf-8")
    os.replace(whole, stem.with_suffix(".json"))
    names = list(dict.fromkeys(key for row in data["rows"] for key in row))
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(data["rows"])


def _need_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before hours are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidStudy(f"{folder} must be a folder to write to, but it is not: {error.strerror}.") from error
    index = folder / "index.html"
    if index.exists() and _TITLE not in index.read_text("utf-8", errors="replace"):
        raise InvalidStudy(f"{index} is not a page of ours and would be written over; pass another folder (--out).")


def _write_index(folder: Path) -> None:
    """Write the index page of everything in the folder, made by this call or an earlier one."""
    from jinja2 import Environment, PackageLoader

    exhibits = [_shown(name, folder) for name in NAMES if (folder / name).with_suffix(".svg").exists()]
    environment = Environment(loader=PackageLoader("ringtrue.paper", "."), autoescape=True)
    page = environment.get_template("index.html").render(exhibits=exhibits)
    (folder / "index.html").write_text(page, "utf-8")
