"""Beyond the paper: how the calibration of EK0 and EK1 depends on tolerance and step size.

The paper asks for it. At each tolerance (adaptive steps) and each fixed step, how far is the solver off, and how many
times too large or too small is the sd it reports? On Lotka and Volterra's equations, both components at t = 10.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import ringtrue as rt
from ringtrue.judgement.measures import without_losses
from ringtrue.procedures import ode

from .odes import COMPONENTS, study
from .rows import Data, Progress, Row, chosen, column
from .style import COLOURS, MARKERS, NULL, STYLES, Axes, Figure, footnote, legend_above, sheet
from .workers import outcomes

TITLE = "Beyond the paper: calibration of EK0 and EK1 over tolerance and step size"
QUICK = 0.2
#: Draws per point at scale 1, and at least.
DRAWS, _FEWEST = 1000, 100
SOLVERS = {"EK0": ode.EK0, "EK1": ode.EK1}
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
STEPS = (0.4, 0.2, 0.1, 0.05, 0.025)


class Job(NamedTuple):
    """One study of the vignette."""

    solver: str
    kind: str
    value: float
    n: int
    seed: int


def make(*, scale: float = QUICK, seed: int = 0, progress: Progress = iter) -> Data:
    """Run both solvers at every tolerance and every step, on the same equations."""
    n = max(round(DRAWS * scale), _FEWEST)
    jobs = [
        Job(name, kind, value, n, seed)
        for name in SOLVERS
        for kind, values in (("tolerance", TOLERANCES), ("step", STEPS))
        for value in values
    ]
    rows = [row for some in outcomes(_rows, jobs, progress, worth=n > _FEWEST) for row in some]
    return {"settings": {"n": n, "seed": seed, "scale": scale}, "rows": rows}


def _rows(job: Job) -> list[Row]:
    name, kind, value, n, seed = job
    options: dict[str, Any] = {"rtol": value, "atol": value} if kind == "tolerance" else {"step": value}
    ran = rt.run(study(SOLVERS[name](**options), n, seed), n=n, on_failure="record", progress="off")
    result = rt.judge(ran)
    rows = []
    # Of the equations that were solved: a lost one could be anywhere, and would leave no bounds.
    sizes = without_losses(ran, result.alpha, result.tolerance)
    for j, part in enumerate(COMPONENTS):
        measures = {m.name: m for m in sizes if m.f == part}
        rows.append({
            "solver": name,
            "kind": kind,
            "value": value,
            "component": part,
            "n": n,
            "lost": len(ran.failures),
            # Equations that a solver lost are nan. Medians, because a few hard ones would rule a mean.
            "error": float(np.nanmedian(np.abs(ran.mean[:, j] - ran.truth[:, j]))),
            "reported_sd": float(np.nanmedian(ran.sd[:, j])),
            **{f"{m}{end}": getattr(measures[m], field) for m in ("spread", "bias") for end, field in _ENDS},
            "covers_90": float((np.abs(ran.u[ran.kept, j] - 0.5) < 0.45).mean()),
            "p_default": next(t.pvalue for t in result.tests if t.level == "strong" and t.f == part),
        })  # fmt: skip
    return rows


_ENDS = (("", "estimate"), ("_low", "low"), ("_high", "high"))


def lines(data: Data) -> list[str]:
    """Say error, reported sd and spread factor at every setting, and what it comes to."""
    text = [
        f"{data['settings']['n']} equations per setting; median error at t = 10, median reported sd, spread factor "
        f"(the reported sd should be so many times larger), coverage of 90 % intervals",
        "solver  setting           component   error     reported  spread factor             covers  lost",
    ]
    for row in data["rows"]:
        setting = f"{row['kind']} {row['value']:g}"
        spread = f"{row['spread']:.3g} ({row['spread_low']:.3g}-{row['spread_high']:.3g})"
        text.append(
            f"{row['solver']:<7} {setting:<17} {row['component']:<11} {row['error']:<9.2g} {row['reported_sd']:<9.2g} "
            f"{spread:<25} {row['covers_90']:.2f}    {row['lost']}"
        )
    return text


def draw(data: Data) -> Figure:
    """Draw spread factors, and error against reported sd, over tolerance and step."""
    with sheet(7.2, 4.8, margin=0.04) as figure:
        axes = figure.subplots(2, 2, sharex="col")
        for (upper, lower), kind in zip(axes.T, ("tolerance", "step"), strict=True):
            _draw_spread(upper, data, kind)
            _draw_sizes(lower, data, kind)
            lower.set_xlabel("rtol = atol" if kind == "tolerance" else "step")
        axes[1, 1].set_xticks(STEPS, [f"{step:g}" for step in STEPS])
        axes[1, 1].set_xticks([], minor=True)
        legend_above(figure, axes[0, 0], axes[1, 0], ncols=4)
        n, seed = data["settings"]["n"], data["settings"]["seed"]
        footnote(figure, f"{n} equations per point, seed {seed}; bars: simultaneous 95 % intervals")
    return figure


def _draw_spread(axis: Axes, data: Data, kind: str) -> None:
    axis.axhline(1.0, color=NULL, lw=0.8)
    for i, name in enumerate(SOLVERS):
        for j, part in enumerate(COMPONENTS):
            rows = chosen(data["rows"], kind=kind, solver=name, component=part)
            x, look = column(rows, "value"), STYLES[j] + MARKERS[i]
            axis.vlines(x, column(rows, "spread_low"), column(rows, "spread_high"), color=COLOURS[i], lw=0.8)
            axis.plot(x, column(rows, "spread"), look, color=COLOURS[i], label=f"{name}, {part}, spread factor")
    axis.set(xscale="log", yscale="log")
    axis.set_title(f"({'ab'[kind == 'step']}) {'adaptive' if kind == 'tolerance' else 'fixed steps'}", loc="left")
    if kind == "tolerance":
        axis.set_ylabel("spread factor\n(above 1: over-confident)")
    axis.set_ylim(0.1, 12)
    axis.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.minorticks_off()


def _draw_sizes(axis: Axes, data: Data, kind: str) -> None:
    for i, name in enumerate(SOLVERS):
        rows = chosen(data["rows"], kind=kind, solver=name, component=COMPONENTS[0])
        x, sd, look = column(rows, "value"), column(rows, "reported_sd"), ":" + MARKERS[i]
        axis.plot(x, column(rows, "error"), "-" + MARKERS[i], color=COLOURS[i], label=f"{name}, error, {COMPONENTS[0]}")
        axis.plot(x, sd, look, mfc="white", color=COLOURS[i], label=f"{name}, sd, {COMPONENTS[0]}")
    axis.set(xscale="log", yscale="log")
    if kind == "tolerance":
        axis.set_ylabel("median error\nand reported sd, prey")
