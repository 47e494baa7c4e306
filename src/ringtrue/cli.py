"""The command line: ``ringtrue check study.py``.

Reads a study from a Python file of the user's, runs it, prints, and answers with its exit code: 0 within tolerance,
1 miscalibrated, 2 inconclusive, 3 the question could not be asked. It computes nothing itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import runpy
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import click

from . import __version__
from .characters import one_line, printable
from .errors import InvalidStudy, RingtrueError, StoreError
from .execution.progress import duration, per_time
from .execution.signals import Terminated, terminable

# Commands import what they need themselves: `ringtrue --help` should not wait for SciPy.
if TYPE_CHECKING:
    from .execution.store import Standing, Store
    from .judgement.result import Result
    from .judgement.watching import Sight, Watch
    from .question.study import Study
    from .replicates.record import Replicates

#: By the name of the verdict.
EXIT_CODES = {"WITHIN_TOLERANCE": 0, "MISCALIBRATED": 1, "INCONCLUSIVE": 2}
#: Neither a verdict nor click's own 2, which would read as "inconclusive".
EXIT_ERROR = 3
ALPHA = click.FloatRange(0, 1, min_open=True, max_open=True)
ALPHA_OPTION = click.option("--alpha", type=ALPHA, default=0.05, show_default=True, help="Chance of a false alarm.")
#: Those of `ringtrue.uniformity.TESTS`, which is not imported for them.
TESTS = (
    *("anderson_darling", "binned_chi2", "combination", "cook", "cramer_von_mises", "ecdf_gamma"),
    *("ks", "kuiper", "mean_z", "neyman", "watson"),
)
TEST_OPTION = click.option(
    "--test", type=click.Choice(TESTS), default="combination", show_default=True, help="Uniformity test."
)
TOLERANCE_OPTION = click.option(
    "--tolerance",
    metavar="NAME=X",
    multiple=True,
    help="Error that does not matter, as spread=0.2, bias=0.1, coverage=0.05 or distance=0.05; may be repeated.",
)
FORCE = click.option("--force", is_flag=True, help="Write over a page that is there.")
#: Both set one parameter, so that the last one counts.
JSON = click.option("--json", "form", flag_value="json", help="Print the result as JSON.")
DETAILS = click.option("--details", "form", flag_value="details", help="Print every test and measure.")
PAGE = click.Path(dir_okay=False, path_type=Path)
REPORT = click.option("--report", "page", type=PAGE, metavar="FILE", help="Write an HTML page, and JSON beside it.")
STORE = click.argument("store", type=click.Path(exists=True, path_type=Path))


def _judging(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the tolerances that were typed as what `judge` takes."""
    from .judgement.verdict import Tolerance

    pairs = [part.partition("=") for part in settings.pop("tolerance")]
    known = [item.name for item in fields(Tolerance)]
    try:
        sizes = {name: float(size) for name, _, size in pairs}
    except ValueError:
        sizes = {"": math.nan}
    if not sizes.keys() <= set(known):
        typed = " ".join("".join(pair) for pair in pairs)
        raise click.UsageError(f"--tolerance takes NAME=X, NAME one of {', '.join(known)}, but {typed!r} arrived.")
    return {**settings, "tolerance": Tolerance(**sizes)}


def _as_shard(context: Any, option: Any, value: str | None) -> tuple[int, int] | str | None:
    """Read I/K, or the word that stands for the place of a job in its array."""
    if value in (None, "array"):
        return value
    part, slash, whole = str(value).partition("/")
    if not (slash and part.isdecimal() and whole.isdecimal()):
        raise click.BadParameter(f"I/K was expected, such as 0/4, or array, but {value!r} arrived.")
    return int(part), int(whole)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Can the uncertainty that comes out of an inference procedure be trusted?"""


def _running(command: Any) -> Any:
    """Give a command the options of who computes, and where it is kept."""
    for option in reversed(
        (
            click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
            click.option("--n", type=click.IntRange(min=1), help="Number of replicates, instead of the file's own."),
            click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after this time."),
            click.option("--seed", type=click.IntRange(min=0), help="Seed, instead of the study's own."),
            click.option("--on-failure", type=click.Choice(["raise", "record"]), default="raise", show_default=True),
            click.option("--workers", type=click.IntRange(min=1), help="Processes of this machine."),
            click.option("--dask", metavar="ADDRESS", help="A Dask scheduler to run on, e.g. tcp://host:8786."),
            click.option("--timeout", type=float, help="Seconds that one replicate may take."),
            # As it was typed: the slash at the end of a name says that it is a directory.
            click.option("--store", metavar="FILE|DIR/", help="File or directory to keep replicates in and resume."),
            click.option("--tag", default="", help="Goes into the store's fingerprint."),
            click.option(
                "--shard",
                metavar="I/K|array",
                callback=_as_shard,
                help="The I-th of K shares, from 0, or that of this job in its array; needs --store.",
            ),
            click.option("--keep", type=click.Choice(["draws"]), help="Keep draws in the store."),
            click.option("--retry-failures", is_flag=True, help="Compute the lost replicates of the store again."),
        )
    ):
        command = option(command)
    return command


@cli.command()
@_running
@click.option("--until", type=click.Choice(["decided"]), help="Run until there is a verdict, instead of --n.")
@click.option("--max-n", type=click.IntRange(min=1), default=5000, show_default=True, help="The most, with --until.")
@ALPHA_OPTION
@TOLERANCE_OPTION
@TEST_OPTION
@REPORT
@FORCE
@JSON
@DETAILS
def check(
    file: Path,
    n: int | None,
    until: Literal["decided"] | None,
    max_n: int,
    seed: int | None,
    alpha: float,
    tolerance: tuple[str, ...],
    test: str,
    dask: str | None,
    page: Path | None,
    force: bool,
    form: str | None,
    **settings: Any,
) -> None:
    """Run the study in FILE and say whether its procedure is calibrated.

    FILE is a Python file that defines `study` and `n`, or `belief`, `model`, `procedure` and `n` (and, if wanted, `f`,
    `draws`, `seed`, `batch`, `datasets`). Exit code: 0 within tolerance, 1 miscalibrated, 2 inconclusive, 3 it could
    not be run.
    With --until the number of replicates is the run's own answer, and with --max-seconds it is what there was time for:
    the verdict holds all the same. With --shard nothing is judged: merge the shares and judge the whole.
    """
    from .execution.runs import run
    from .judgement.judging import check as check_study
    from .report import need_place

    if until is not None and n is not None:
        raise click.UsageError("--n and --until exclude each other; with --until the most replicates are --max-n.")
    if until is not None and settings["shard"] is not None:
        raise click.UsageError("a share of a run does not see the others, so that --shard goes with --n only.")
    if settings["shard"] is not None and (page is not None or form == "json"):
        raise click.UsageError("a share of a run is not judged, so that --shard goes with neither --report nor --json.")
    judging = _judging({"alpha": alpha, "tolerance": tolerance, "test": test})
    if page is not None:
        _need_free(need_place(page), force)  # no simulation is lost to a typo
    # What a study prints must not end up in the JSON.
    with _beside(file), contextlib.redirect_stdout(sys.stderr), _cluster(dask) as executor:
        study, many = load_study(file, n=max_n if until else n, seed=seed)
        # A verdict on each share would be a look at the whole, and cost it that much of alpha.
        if settings["shard"] is not None:
            run(study, n=many, executor=executor, **settings)
            result = None
        else:
            stop: Any = {"until": until, "max_n": max_n} if until else {"n": many}
            result = check_study(study, **stop, executor=executor, **judging, **settings)
    if result is None:
        _describe(settings["store"])
        return
    _answer(result, form, page, settings["store"])


@cli.command("check-draws")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--chains", type=click.IntRange(min=1), help="Number of Markov chains that the draws of each fit are.")
@click.option("--iid", is_flag=True, default=None, help="Draws are independent, or their order means nothing.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of what breaks ties.")
@click.option("--on-failure", type=click.Choice(["raise", "record"]), default="raise", show_default=True)
@ALPHA_OPTION
@TOLERANCE_OPTION
@TEST_OPTION
@REPORT
@FORCE
@JSON
@DETAILS
def check_draws_command(file: Path, page: Path | None, force: bool, form: str | None, **settings: Any) -> None:
    """Say whether draws that exist already are calibrated: FILE holds true parameters, and draws of each fit.

    FILE is an npz file with arrays `theta` (n,) or (n, d) and `draws` (n, M) or (n, M, d), the dataset first, or
    `theta/NAME` and `draws/NAME` for every parameter; `weights` (n, M) if draws have them. Exit code: 0 within
    tolerance, 1 miscalibrated, 2 inconclusive, 3 it could not be judged.
    """
    from .execution.archives import read_draws
    from .judgement.judging import check_draws
    from .report import need_place

    if page is not None:
        _need_free(need_place(page), force)
    given = read_draws(file)
    if given.unused:
        click.echo(printable(f"ringtrue: not read, since nothing asks for it: {', '.join(given.unused)}"), err=True)
    result = check_draws(given.theta, given.draws, weights=given.weights, **_judging(settings))
    _answer(result, form, page)


@cli.command("run")
@_running
def run_command(file: Path, n: int | None, seed: int | None, dask: str | None, **settings: Any) -> None:
    """Run the study in FILE and keep its replicates in a store; nothing is judged.

    FILE is as for check. Exit code: 0 if all replicates are there, 3 if it could not be run.
    """
    from .execution.runs import run

    if settings["store"] is None:
        raise click.UsageError("what is not judged must be kept; pass --store, or use check.")
    with _beside(file), contextlib.redirect_stdout(sys.stderr), _cluster(dask) as executor:
        study, many = load_study(file, n=n, seed=seed)
        run(study, n=many, executor=executor, **settings)
    _describe(settings["store"])


def _need_free(files: Iterable[Path], force: bool) -> None:
    """Refuse to write over something."""
    there = [str(file) for file in files if file.exists() or file.is_symlink()]
    if there and not force:
        raise click.UsageError(f"{' and '.join(there)} would be written over; pass --force, or another name.")


def _answer(result: Result, form: str | None, page: Path | None = None, store: Path | str | None = None) -> NoReturn:
    """Print a result, write its page if one is wanted, and exit with its verdict's code."""
    from .execution.store import Store
    from .export import Origin
    from .report import report

    # The answer comes before the page: a page that cannot be written must not cost it.
    click.echo(_shown(result, form))
    if page is not None:
        with Store.read(store) if store else contextlib.nullcontext() as opened:
            origin = Origin.of(opened) if opened else None
        report(result, page, origin=origin)
        # Not on stdout, which may be JSON for a program.
        click.echo(f"ringtrue: the report is {page}", err=True)
    sys.exit(EXIT_CODES[result.verdict.name])


def _shown(result: Result, form: str | None) -> str:
    if form == "json":
        return json.dumps(result.to_dict(), indent=2, allow_nan=False)
    return result.details() if form == "details" else str(result)


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Connect to a Dask scheduler and lend its executor."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise RingtrueError("--dask needs Dask; run: pip install 'ringtrue[dask]'") from None
    try:
        # A scheduler that is there answers at once; a wrong address should not take minutes to be told.
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise RingtrueError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client.get_executor()


@cli.command("judge")
@STORE
@ALPHA_OPTION
@TOLERANCE_OPTION
@TEST_OPTION
@JSON
@DETAILS
def judge_command(store: Path, form: str | None, **settings: Any) -> None:
    """Reach a verdict on what is in STORE, without the study's code; of a run that is going on, on what is done."""
    from .judgement.judging import judge

    _answer(judge(_done(store), **_judging(settings)), form)


@cli.command("report")
@STORE
@click.option("-o", "--out", type=PAGE, metavar="FILE", help="The page.  [default: STORE with the ending .html]")
@ALPHA_OPTION
@TOLERANCE_OPTION
@TEST_OPTION
@FORCE
@JSON
@DETAILS
def report_command(store: Path, out: Path | None, force: bool, form: str | None, **settings: Any) -> None:
    """Judge what is in STORE and write it up as an HTML page, and as JSON beside it; exit codes as for check."""
    from .judgement.judging import judge
    from .report import need_place

    page = out or store.with_suffix(".html")
    # Before the store is read and judged, as in `check`.
    _need_free(need_place(page), force)
    _answer(judge(_done(store), **_judging(settings)), form, page, store)


def _done(store: Path) -> Replicates:
    """Return the replicates before the first missing one, and say so if there is one."""
    from .execution.store import Store

    with Store.read(store) as opened:
        # Of what is done beyond a gap, quick replicates are done first: only a prefix is not selected by speed.
        done = opened.prefix()
        if done < opened.n:
            click.echo(
                f"ringtrue: {done} of {opened.n} replicates, those before the first missing one. They are judged by "
                f"evidence that holds whenever one looks.",
                err=True,
            )
        if done == 0:
            raise InvalidStudy(f"{store} must have replicate 0 to be judged, but it is not done yet.")
        return opened.replicates(0, done)


@cli.command()
@STORE
def show(store: Path) -> None:
    """Say how far the run in STORE is, how fast, and what failed; it may be going on."""
    _describe(store)


@cli.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--every", type=click.FloatRange(min=0, min_open=True), help="Seconds.  [default: 2; in a log 30]")
@click.option("--once", is_flag=True, help="Show the run as it is now, and end.")
@click.option("--progress", is_flag=True, help="Show neither evidence nor sizes, so that nobody has looked at them.")
@click.option("--html", "page", type=PAGE, metavar="FILE", help="Write a page that a browser loads again and again.")
@FORCE
@ALPHA_OPTION
def watch(
    store: Path, every: float | None, once: bool, progress: bool, page: Path | None, force: bool, alpha: float
) -> None:
    """Show how far the run in STORE is, what failed, and what may be said of it so far, until it has ended.

    STORE, a file or a directory, may be written meanwhile, and need not be there yet. Exit code at the end: as for
    judge, and 0 with --progress or after Ctrl-C. Evidence holds whenever one looks, and STORE remembers that it was
    looked at.
    """
    from . import terminal
    from .judgement.judging import judge
    from .judgement.watching import Watch
    from .report import need_place
    from .report.watched import write_watched

    if page is not None:
        _need_free(need_place(page)[:1], force)
    show: Show = terminal.Screen() if page is None else partial(write_watched, path=page)
    pause = every or (2.0 if page is not None or sys.stdout.isatty() else 30.0)
    watching = Watch(store, None if progress else partial(judge, alpha=alpha))
    try:
        with terminable():
            seen = _last_sight(watching, show, None if once else pause)
    except Terminated:
        raise
    except KeyboardInterrupt:  # the way to end it, and no failure
        return
    if seen.result is None and seen.unjudged:
        raise InvalidStudy(seen.unjudged)
    if seen.result is not None:
        if page is not None:
            click.echo(seen.result.sentence)
        sys.exit(EXIT_CODES[seen.result.verdict.name])


class Show(Protocol):
    """Shows what is seen of a run; ``every`` says after how many seconds again, None that it is for the last time."""

    def __call__(self, seen: Sight | str, *, every: float | None, trouble: str = "") -> object:
        """Show it, and why nobody watches any more if that is an error."""


def _last_sight(watching: Watch, show: Show, pause: float | None) -> Sight:
    """Show a run until it has ended, or once if there is no pause, and return what was seen last."""
    from .judgement.watching import Sight

    seen: Sight | str = "nothing was seen"
    try:
        while True:
            seen = watching.see()
            if isinstance(seen, Sight) and (pause is None or seen.ended):
                show(seen, every=None)
                return seen
            if pause is None:
                watching.see()  # a file that is the same and still cannot be read is said to be damaged
                raise StoreError(f"{seen}.")
            show(seen, every=pause)
            time.sleep(max(pause, watching.rest))
    except (RingtrueError, KeyboardInterrupt) as error:
        # A page that nobody writes any more should not be loaded again.
        show(seen, every=None, trouble=str(error))
        raise


@cli.command("merge")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("stores", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def merge_command(out: Path, stores: tuple[Path, ...]) -> None:
    """Put the shards STORES together in OUT, which must not exist."""
    from .execution.store import merge

    merge(stores, out)
    _describe(out)


@cli.command("repair")
@STORE
@click.argument("out", type=click.Path(path_type=Path))
def repair_command(store: Path, out: Path) -> None:
    """Save what can be read of a damaged STORE to OUT; the same study then computes what is missing."""
    from .execution.store import repair

    click.echo(str(repair(store, out)))


@cli.command("plan")
@click.option("--spread", type=float, help="Spread factor to be seen, e.g. 1.25: the reported sd is a fifth too small.")
@click.option("--bias", type=float, help="Bias to be seen, in units of the reported sd.")
@click.option("--power", type=float, default=0.8, show_default=True, help="Chance of seeing it.")
@ALPHA_OPTION
@click.option("--draws", type=click.IntRange(min=1), help="Draws per output; exact laws if left out.")
@click.option("--until", type=click.Choice(["decided"]), help="How long a run until decided takes, with or without it.")
def plan_command(
    spread: float | None,
    bias: float | None,
    power: float,
    alpha: float,
    draws: int | None,
    until: Literal["decided"] | None,
) -> None:
    """Say how many replicates see an error of a given size, or how many a run takes until it is decided."""
    from .statistics.planning import plan

    if until is None and (spread is None) == (bias is None):
        raise click.UsageError("give exactly one of --spread and --bias.")
    click.echo(str(plan(spread=spread, bias=bias, power=power, alpha=alpha, draws=draws, until=until)))


def _print_claims(context: Any, option: Any, wanted: bool) -> None:
    """Print the index of the paper's statements, and stop."""
    if wanted:
        from .paper import claims

        click.echo(claims.text())
        context.exit()


@cli.command()
@click.argument("name")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_claims,
    help="Print every statement of the paper with the command that shows it.",
)
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
        # Click makes an Abort of it, and `main` the exit code of an interruption.
        raise
    click.echo(f"The figures are in {out.resolve()}; open {out / 'index.html'}.")


def _describe(store: Path | str) -> None:
    from .execution.store import Store
    from .execution.store.directory import survey

    with Store.read(store) as opened:
        # The files of a directory are copied to be one: when they were written, they say themselves.
        state = survey(Path(store)).standing if Path(store).is_dir() else opened.progress()
        click.echo(described(opened, state))


def described(store: Store, state: Standing) -> str:
    """Say how far a stored run is, in a few lines."""
    from .judgement.text import counted

    lines = [f"{store.path}: {state.done} of {state.n} replicates, {state.failed} failed"]
    if state.rate:
        left = f", {duration(state.left)} to go at that rate" if state.left else ""
        lines.append(f"{per_time(state.rate)}{left}")
    written = f"; last written {time.ctime(state.last_write)}" if state.last_write else ""
    lines.append(f"{duration(state.seconds)} of computing{written}")
    names = ", ".join(function.name for function in store.header.functions)
    lines.append(f"test functions: {names}; seed {store.header.seed}")
    if store.looks:
        looked = ", ".join(f"{one['test']} at n = {one['n']}" for one in store.looks)
        lines.append(f"judged {counted(len(store.looks), 'time')}: {looked}")
    causes = Counter((failure.stage, failure.error) for failure in store.failures())
    lines.extend(f"  {many} failed in the {stage}: {error}" for (stage, error), many in causes.most_common())
    return "\n".join(map(one_line, lines))


@contextlib.contextmanager
def _beside(file: Path) -> Iterator[None]:
    """Let a study import its neighbours, also while it runs."""
    folder = str(file.resolve().parent)
    # As `python study.py` has it. It stays for the whole run, as imports inside functions come late.
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def load_study(file: Path, *, n: int | None = None, seed: int | None = None) -> tuple[Study, int]:
    """Read a study and its number of replicates from a Python file, with a seed and a number of the caller's."""
    from .question.study import Study, at_least

    if file.suffix != ".py":  # what is in a file of another kind is not meant to be run
        raise InvalidStudy(
            f"a study is a Python file, whose name ends in .py, but {file} arrived; truths and draws in an npz file "
            f"are checked by `ringtrue check-draws {file}`, those in other files by ringtrue.check_draws(theta, draws)."
        )
    try:
        # Not as __main__, so that what a file does when it is a script is not done here.
        names = runpy.run_path(str(file))
    # A file that calls sys.exit(0) would otherwise end as "within tolerance".
    except (Exception, SystemExit) as error:
        raise InvalidStudy(
            f"{file} must be a Python file that runs, but it raised {type(error).__name__}: {error}."
        ) from error
    study, many = names.get("study"), names.get("n") if n is None else n
    # Read off the fields of Study, so that a new one needs nothing here.
    settings = {item.name: names[item.name] for item in fields(Study) if item.init and item.name in names}
    parts = () if isinstance(study, Study) else ("belief", "model", "procedure")
    missing = [*(name for name in parts if name not in settings), *(("n",) if many is None else ())]
    if missing:
        raise InvalidStudy(
            f"{file} must define `study = ringtrue.Study(...)` and `n`, or `belief`, `model`, `procedure` and `n`, but "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
        )
    found = study if isinstance(study, Study) else Study(**settings)
    return found if seed is None else replace(found, seed=seed), at_least(1, "n", many)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors are one sentence on stderr and exit code 3."""
    try:
        # Left to itself click exits with 1 and 2, which are verdicts here.
        cli.main(args=None if arguments is None else list(arguments), prog_name="ringtrue", standalone_mode=False)
    except click.exceptions.Abort as abort:
        # The KeyboardInterrupt behind it says what was saved and how to go on, if a run was interrupted.
        done = str(abort.__cause__ or "")
        ended = isinstance(abort.__cause__, Terminated)
        kind = "terminated" if ended else "interrupted"
        click.echo(printable(f"ringtrue: {kind}{f'; {done}' if done else ''}"), err=True)
        # 128 and the number of the signal, as shells report it.
        sys.exit(128 + (signal.SIGTERM if ended else signal.SIGINT))
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        click.echo(printable(said.getvalue()), err=True, nl=False)
        sys.exit(EXIT_ERROR)
    except (RingtrueError, ValueError) as error:
        click.echo(f"ringtrue: {printable(str(error))}", err=True)
        sys.exit(EXIT_ERROR)
    except Exception:  # Python's own exit code for it, 1, would read as "miscalibrated"
        click.echo(printable(traceback.format_exc()), err=True, nl=False)
        sys.exit(EXIT_ERROR)
