"""The command line: ``ringtrue check study.py``.

Reads a study from a Python file of the user's, runs it, prints, and answers with its exit code: 0 within tolerance,
1 miscalibrated, 2 inconclusive, 3 the question could not be asked. It computes nothing itself.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from .blocks import run
from .errors import InvalidStudy, RingtrueError
from .judgement import judge
from .planning import plan
from .results import Verdict
from .study import Study
from .uniformity import TESTS

EXIT_CODES = {Verdict.WITHIN_TOLERANCE: 0, Verdict.MISCALIBRATED: 1, Verdict.INCONCLUSIVE: 2}
#: Neither a verdict nor click's own 2, which would read as "inconclusive".
EXIT_ERROR = 3
ALPHA = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ringtrue")
def cli() -> None:
    """Can the uncertainty that comes out of an inference procedure be trusted?"""


@cli.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--n", type=click.IntRange(min=1), help="Number of replicates, instead of the study's own.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed, instead of the study's own.")
@click.option("--alpha", type=ALPHA, default=0.05, show_default=True, help="Chance of a false alarm.")
@click.option(
    "--test", type=click.Choice(sorted(TESTS)), default="combination", show_default=True, help="Uniformity test."
)
@click.option("--on-failure", type=click.Choice(["raise", "record"]), default="raise", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(file: Path, n: int | None, seed: int | None, alpha: float, test: str, on_failure: Any, as_json: bool) -> None:
    """Run the study in FILE and say whether its procedure is calibrated.

    FILE is a Python file that defines `study`, or `belief`, `model`, `procedure` and `n` (and, if wanted, `f`, `draws`,
    `seed`, `batch`). Exit code: 0 within tolerance, 1 miscalibrated, 2 inconclusive, 3 it could not be run.
    """
    changed = {name: value for name, value in (("n", n), ("seed", seed)) if value is not None}
    # What a study prints must not end up in the JSON.
    with _beside(file), contextlib.redirect_stdout(sys.stderr):
        result = judge(run(load_study(file, **changed), on_failure=on_failure), alpha=alpha, test=test)
    click.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else str(result))
    sys.exit(EXIT_CODES[result.verdict])


@cli.command("plan")
@click.option("--spread", type=float, help="Spread factor to be seen, e.g. 1.25: the reported sd is a fifth too small.")
@click.option("--bias", type=float, help="Bias to be seen, in units of the reported sd.")
@click.option("--power", type=float, default=0.8, show_default=True, help="Chance of seeing it.")
@click.option("--alpha", type=ALPHA, default=0.05, show_default=True, help="Chance of a false alarm.")
@click.option("--draws", type=click.IntRange(min=1), help="Draws per output; exact laws if left out.")
def plan_command(spread: float | None, bias: float | None, power: float, alpha: float, draws: int | None) -> None:
    """Say how many replicates see an error of a given size."""
    if (spread is None) == (bias is None):
        raise click.UsageError("give exactly one of --spread and --bias.")
    click.echo(str(plan(spread=spread, bias=bias, power=power, alpha=alpha, draws=draws)))


@cli.command()
@click.argument("name")
@click.option("--scale", type=float, help="Share of the paper's realisations; 1 is the paper's. Default: a quick look.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("paper"), show_default=True, help="Folder.")
def paper(name: str, scale: float | None, seed: int, out: Path) -> None:
    """Reproduce the vignette NAME of the paper, or all of them: numbers, figure (PNG, SVG), data (CSV, JSON)."""
    from .paper import gallery

    names = gallery.NAMES if name == "all" else (name,)
    try:
        gallery.produce(names, out, scale=scale, seed=seed, say=click.echo)
    except KeyboardInterrupt:
        click.echo(f"\nWhat is finished is in {out}; the same command goes on from there.", err=True)
        raise
    click.echo(f"The figures are in {out.resolve()}; open {out / 'index.html'}.")


@contextlib.contextmanager
def _beside(file: Path) -> Iterator[None]:
    """Let a study import its neighbours, also while it runs."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def load_study(file: Path, **changed: Any) -> Study:
    """Read a study from a Python file, with some of its fields changed."""
    try:
        names = runpy.run_path(str(file))
    except (Exception, SystemExit) as error:
        raise InvalidStudy(
            f"{file} must be a Python file that runs, but it raised {type(error).__name__}: {error}."
        ) from error
    if isinstance(names.get("study"), Study):
        study = names["study"]
        settings = {item.name: getattr(study, item.name) for item in fields(Study) if item.init}
    else:
        settings = {item.name: names[item.name] for item in fields(Study) if item.name in names}
        settings.update(changed)
        if missing := [name for name in ("belief", "model", "procedure", "n") if name not in settings]:
            raise InvalidStudy(
                f"{file} must define `study = ringtrue.Study(...)`, or `belief`, `model`, `procedure` and `n`, but "
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
    return Study(**{**settings, **changed})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors are one sentence on stderr and exit code 3."""
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="ringtrue", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("ringtrue: interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_ERROR)
    except (RingtrueError, ValueError) as error:
        click.echo(f"ringtrue: {error}", err=True)
        sys.exit(EXIT_ERROR)
    except Exception:  # Python's own exit code for it, 1, would read as "miscalibrated"
        traceback.print_exc()
        sys.exit(EXIT_ERROR)
