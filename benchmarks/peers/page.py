"""The page and its figures, from the rows that peers answered; it computes ratios and no statistics."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import work
from .environments import ENVIRONMENTS, ROOT

Row = dict[str, Any]
OURS = ("of_ringtrue", "of_adapters")
MODULES = tuple(module for environment in ENVIRONMENTS for module in environment.modules)
#: A peer is called better where it needs less than this share of what ringtrue does.
CLEARLY = 0.9
_HEAD = """# Beside other libraries

The same data through other libraries and through ringtrue, by `make peers`, on {cores} cores. Every library is called
as documented and at its defaults; the [calls](#the-calls) are at the end. Seconds are processor time, the least of up
to five calls; memory is how far the peak lay above what the process had before the call. The page is written by that
command, from answers that are kept: those shown come from several calls on one machine within two hours.
"""


def read(file: Path) -> list[Row]:
    """Return the rows of a file of JSON lines, none if there is no file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def name_of(module: str) -> str:
    """Return a library's name as its users know it."""
    known = {"of_arviz": "arviz-plots", "of_numpy": "NumPy", "of_scipy": "SciPy", "of_adapters": "ringtrue"}
    return known.get(module, module.removeprefix("of_"))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(head), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def of(rows: list[Row], question: str) -> list[Row]:
    """Return the answers to a question, those that came."""
    return [row for row in rows if row["question"].partition(":")[0] == question and "missing" not in row]


def missing(rows: list[Row]) -> str:
    """Name the peers, or single questions, that have no answer, with the reason."""
    lost = [row for row in rows if "missing" in row]
    gone = {row["peer"]: row["missing"] for row in lost if row["question"] == "versions"}
    lines = [f"* {name_of(peer)} is left out: {reason}" for peer, reason in gone.items()]
    lines += [
        f"* {name_of(row['peer'])} gave no answer to `{row['question']}`: {row['missing']}"
        for row in lost
        if row["peer"] not in gone
    ]
    return "\n".join(lines) + "\n" if lines else "None: all of them ran.\n"


def versions(rows: list[Row]) -> str:
    """State what ran."""
    body = [
        (name_of(row["peer"]), ", ".join(f"{k} {v}" for k, v in row["versions"].items()), row["python"])
        for row in of(rows, "versions")
    ]
    return table(("library", "versions", "Python"), body)


def tests(rows: list[Row]) -> list[str]:
    """Return the labels of tests, ringtrue's first."""
    labels = dict.fromkeys(row["test"] for row in rows)
    return sorted(labels, key=lambda label: not label.startswith("ringtrue"))


def alarms(rows: list[Row]) -> str:
    """Return the table of false alarms, with standard errors."""
    found = of(rows, "alarms")
    cells = {(row["test"], row["n"], row["draws"]): row for row in found}

    def cell(label: str, shape: tuple[int, int]) -> str:
        row = cells.get((label, *shape))
        return "" if row is None else f"{row['share']:.3f} ± {row['error']:.3f}"

    head = ("test", *(f"n = {n}, M = {m}" for n, m in work.SHAPES))
    return table(head, ((label, *(cell(label, shape) for shape in work.SHAPES)) for label in tests(found)))


def needed(rows: list[Row], label: str, error: str, key: str = "corrected") -> tuple[float, float] | None:
    """Return the replicates for 80 % power, linear in log n between two sizes, and its standard error; None if never.

    The share's error is divided by the slope between the two sizes.
    """
    line = sorted(
        (row["n"], row[key], row["runs"]) for row in rows if (row["test"], row["error_name"]) == (label, error)
    )
    for (n0, low, _), (n1, high, runs) in pairwise(line):
        if low < 0.8 <= high:
            slope = (high - low) / math.log(n1 / n0)
            n = n0 * math.exp((0.8 - low) / slope)
            return n, n * math.sqrt(0.16 / runs) / slope
    return (float(line[0][0]), 0.0) if line and line[0][1] >= 0.8 else None


def power(rows: list[Row]) -> str:
    """Return the table of replicates for 80 % power."""
    found = of(rows, "power")
    names = [procedure.name for procedure in work.ERRORS]

    def cell(label: str, error: str) -> str:
        sizes = [row["n"] for row in found if (row["test"], row["error_name"]) == (label, error)]
        if not sizes:
            return ""
        if (answer := needed(found, label, error)) is None:
            return f"over&nbsp;{max(sizes)}"
        return f"{answer[0]:.0f}&nbsp;±&nbsp;{answer[1]:.0f}" if answer[1] else f"at most {answer[0]:.0f}"

    def level(label: str) -> str:
        levels = {row["n"]: row["level"] for row in found if row["test"] == label}
        shown = [value for value in levels.values() if value is not None]
        return f"{min(shown):.2f}-{max(shown):.2f}" if shown else "no p-value"

    head = ("test", "its own false alarms", *names)
    return table(head, ((label, level(label), *(cell(label, one) for one in names)) for label in tests(found)))


def seconds(value: float) -> str:
    """Return seconds with two digits, in a unit that needs no zeros."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.2g} ns"


def times(value: float) -> str:
    """Return a ratio with two digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def costs(rows: list[Row]) -> str:
    """Return the table of seconds and memory, ringtrue's first in every work."""
    body = []
    for name, one in work.WORKS.items():
        here = sorted((row for row in of(rows, "cost") if row["work"] == name), key=lambda row: row["peer"] not in OURS)
        own = next((row["seconds"] for row in here if row["peer"] in OURS), None)
        for k, row in enumerate(here):
            ratio = times(row["seconds"] / own) if own else ""
            words = one.words if k == 0 else ""
            spent, memory = seconds(row["seconds"]).replace(" ", "&nbsp;"), f"{row['megabytes']:.0f}&nbsp;MB"
            body.append((words, name_of(row["peer"]), spent, ratio, memory))
    return table(("work", "library", "CPU", "times ringtrue's", "memory"), body)


def better(rows: list[Row]) -> str:
    """Say where a peer needs clearly less than ringtrue, from the same rows as the tables."""
    lines, found, spent = [], of(rows, "power"), of(rows, "cost")
    for error in (procedure.name for procedure in work.ERRORS):
        own = needed(found, "ringtrue check_draws", error)
        for label in tests(found)[1:]:
            theirs = needed(found, label, error)
            if theirs and (own is None or theirs[0] + 2 * theirs[1] < own[0] - 2 * own[1]):
                ours = "more than were tried" if own is None else f"{own[0]:.0f}"
                lines.append(f"* {label} finds *{error}* with {theirs[0]:.0f} replicates, ringtrue with {ours}.")
    for row in sorted(spent, key=lambda row: list(work.WORKS).index(row["work"])):
        same = [one for one in spent if one["work"] == row["work"] and one["peer"] in OURS and one is not row]
        words = work.WORKS[row["work"]].words
        for mine in same if row["peer"] not in OURS else []:
            said = []
            if row["seconds"] < CLEARLY * mine["seconds"]:
                said.append(f"takes {seconds(row['seconds'])}, ringtrue {seconds(mine['seconds'])}")
            if row["megabytes"] < CLEARLY * mine["megabytes"] - 1:
                said.append(f"needs {row['megabytes']:.0f} MB, ringtrue {mine['megabytes']:.0f} MB")
            if said:
                lines.append(f"* {words}: {name_of(row['peer'])} {'; it '.join(said)}.")
    return "\n".join(lines) + "\n" if lines else "Nowhere in this run.\n"


def words(rows: list[Row]) -> str:
    """Quote what each library says of five procedures, shortened to 300 characters."""
    parts = []
    for procedure in work.FIVE:
        said = [row for row in of(rows, "words") if row["procedure"] == procedure.name]
        said.sort(key=lambda row: row["peer"] not in OURS)
        lines = [f"{name_of(row['peer']) + ':':<13}{shorten(row['says'])}" for row in said]
        parts.append(f"**{procedure.name}**\n\n```\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def shorten(text: str, most: int = 300) -> str:
    """Return text on one line, cut at a word."""
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= most else text[:most].rpartition(" ")[0] + " ..."


def calls(rows: list[Row]) -> str:
    """Show the source of the modules that ran."""
    ran = dict.fromkeys(row["peer"] for row in rows if "missing" not in row)
    parts = []
    for module in ran:
        source = (ROOT / "benchmarks" / "peers" / f"{module}.py").read_text("utf-8")
        name = "ringtrue's adapters" if module == "of_adapters" else name_of(module)
        # Not "python": snippets of that language are run by the tests, and these need their libraries.
        parts.append(f"### {name}\n\n`benchmarks/peers/{module}.py`\n\n```py\n{source.strip()}\n```\n")
    return "\n".join(parts)


def text(rows: list[Row], pictures: bool) -> str:
    """Return the page."""
    rows = sorted(rows, key=lambda row: MODULES.index(row["peer"]))
    spread = sorted(row["runs"] for row in of(rows, "alarms")) or [0]
    runs = sorted(row["runs"] for row in of(rows, "power")) or [0]
    scale = min((row.get("scale", 1.0) for row in rows), default=1.0)
    cores = max((row.get("cores", 0) for row in of(rows, "versions")), default=0)
    null = sorted(row.get("null_runs", 0) for row in of(rows, "power")) or [0]
    cut = f"\nFalse alarms and power have {scale:g} of the runs of a whole run: their errors are large.\n"
    parts = [
        _HEAD.format(cores=cores) + (cut if scale < 1 else ""),
        "## Where another library is better\n\n" + better(rows) + (BETTER if pictures else ""),
        "## What ran\n\n" + versions(rows) + "\nLeft out:\n\n" + missing(rows),
        "## False alarms at 5 %\n\nThe share of rejections of a procedure that returns the right posterior of one "
        f"parameter, n replicates of M draws, with its standard error ({spread[0]} to {spread[-1]} runs per cell: slow "
        "tests have fewer). 0.05 is right, less is cautious. tarp and simuk have no p-value and are not in the table; "
        "bayesflow has a threshold. Tests of one draw take truths and draws for independent samples; both are of the "
        "same data, which makes them cautious. The tests of SciPy, sbi and arviz-plots are ones of continuous numbers: "
        "ranks are rejected the more often the larger n is beside M. In the row *spread* ranks are spread over their "
        "cells by random numbers first, which a reader can do for SciPy too. The limit of runs was raised from 400 to "
        "1000, for all tests, after a first look in which ringtrue had 0.085 ± 0.014 at n = 1000.\n\n" + alarms(rows),
        "## Replicates for 80 % power\n\nTwo parameters, 99 draws. Every test is held to the threshold that 5 % of "
        "right outputs pass at the same n, so that none gains by false alarms; what it does at its own 5 % is in the "
        "second column, least and most over n (p-values of several parameters are Bonferroni-corrected where the "
        "library leaves that to the reader, except bayesflow's threshold). "
        f"{runs[0]} to {runs[-1]} runs per size, fewer for slow tests; the error is that of the share of these runs. "
        f"Thresholds are of {null[0]} to {null[-1]} right outputs, which brings an error of their own.\n\n"
        + power(rows)
        + ("\n![Power](images/peers-power.png)\n" if pictures else ""),
        "## Seconds and memory\n\n" + costs(rows) + NOTES,
        "## What each says\n\nFive procedures, n = 1000, 99 draws of two parameters, from one seed; quoted, cut at 300 "
        "characters. Right posteriors are rejected once in twenty such samples by a test that keeps its level.\n"
        + (WORDS if pictures else "")
        + "\n"
        + words(rows),
    ]
    if pictures:
        parts.append("## Pictures of the same data\n\n" + PICTURES)
    return "\n".join([*parts, "## The calls\n\n" + calls(rows)])


#: What no row says; it holds for the versions that are stated, and is to be looked at again with others.
BETTER = """* Pictures: bayesflow's has a panel for every parameter and large letters; arviz-plots' prints a p-value and
  marks the values that weigh most ([below](#pictures-of-the-same-data)). ringtrue's has none of these.

Tests that take less time here look at less: at one parameter after the other, at one curve, or at a part of a sample.
"""
NOTES = """
Works are the same in name and not in every detail.

* Ranks: ringtrue counts ties as well. sbi is handed what its own sampling leaves, single precision with draws first;
  the functions that are timed are internal ones in both.
* Band: ringtrue's is exact, for ranks among 100 draws. bayesflow and arviz-stats simulate 1000 samples of continuous
  numbers; arviz-plots calls this method (`envelope`) legacy, and its default picture draws no band.
* Check: SciPy, arviz-plots and bayesflow test one parameter after the other; sbi trains classifiers as well; ringtrue's
  is the whole verdict, with joint tests, sizes and intervals.
* Joint test: tarp and sbi compute one curve, without a p-value; hyppo uses one draw of each output and an approximate
  p-value; ringtrue's is again the whole verdict.
* MMD: goodpoints' test is a compressed, coarser one. hyppo's time is that of a few permutations, extrapolated.
* SBC: the same model, sampler, chains, warm-up and draws. simuk compiles for every fit; ringtrue compiles once, and
  that first run is not counted.
* EK0 and EK1: the same law of problems and tolerances of 0.01, filter and smoother; by default the order is 2 in
  probnum and 3 in ringtrue. probnum solves one problem at a time, ringtrue 10^4 side by side; memory is that of all.
  Nobody gains by a coarser answer: of ten problems, the root mean square error at the end was 0.023 (EK0) and 0.0014
  (EK1) with probnum 0.1.25, and 0.0062 and 0.0004 with ringtrue.
"""
WORDS = """
This seed is such a sample, and was kept: the second parameter is right in all five, and yet arviz-plots has p = 0.007
for it in three of them, bayesflow rejects it under *correlation dropped*, and ringtrue has p = 0.014 for the right
procedure and names `theta[1]` under *over-confident*. SciPy, sbi and goodpoints let it pass.
"""
PICTURES = """bayesflow:

![bayesflow's picture of over-confident draws](images/peers-bayesflow.png)

arviz-plots:

![arviz-plots' picture of the same draws](images/peers-arviz.png)

ringtrue:

![ringtrue's picture of the same draws](images/peers-ringtrue.png)

Each as its library draws it, at its defaults, of the over-confident procedure above: the sd of the first parameter is
too small, the second parameter is right. bayesflow has a panel for each parameter and letters that can be read from
afar. arviz-plots prints a p-value in every panel, has one scale for all, and marks the values that weigh most.
ringtrue's picture has none of these: with many parameters its curves lie over each other.

ringtrue draws ranks at their own points, without the teeth that both others show, in one exact band for all curves,
and its title says n, M and how many curves leave the band. bayesflow's legend covers the curve where it is furthest
out, and its panels have different scales. arviz-plots cuts the curve off above and below, prints the p-value over it,
and draws no band.
"""


def write(rows: list[Row], docs: Path) -> None:
    """Write the page and its figures."""
    pictures = draw(rows, docs / "images")
    (docs / "benchmarks.md").write_text(text(rows, pictures), "utf-8")


def draw(rows: list[Row], images: Path) -> bool:
    """Draw power against n, and copy the pictures of three libraries; False if not all are there."""
    found, drawn = of(rows, "power"), of(rows, "picture")
    if not found or len(drawn) < 3:
        return False
    import matplotlib.pyplot as plt

    errors = [work.ERRORS[0].name, work.ERRORS[2].name, work.ERRORS[4].name]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for axis, error in zip(axes, errors, strict=True):
        for k, label in enumerate(tests(found)):
            line = sorted(
                (row["n"], row["corrected"]) for row in found if (row["test"], row["error_name"]) == (label, error)
            )
            style = {"color": "black", "linewidth": 2.2} if k == 0 else {"color": f"C{k - 1}", "linewidth": 1.2}
            axis.plot(*zip(*line, strict=True), label=label, marker="o", markersize=3, **style)
        axis.axhline(0.8, color="grey", linewidth=0.6)
        axis.set(xscale="log", title=error, xlabel="replicates n", ylim=(0, 1.02))
    axes[0].set_ylabel("power at a corrected level of 5 %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(images / "peers-power.png", dpi=90)
    plt.close(figure)
    for row in drawn:
        shutil.copy(row["path"], images / f"peers-{row['peer'].removeprefix('of_')}.png")
    return True
