"""One procedure, or whatever else a study is made of, over a grid of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from ..callables import first_name
from ..errors import InvalidStudy
from ..execution.runs import RunSettings, run
from ..judgement.judging import JudgeSettings, judge, need_settings, split
from ..judgement.result import Result
from ..judgement.text import table
from ..judgement.verdict import Verdict
from ..question.study import Study, StudySettings, need_known
from ..statistics.effects import Interval
from .shared import ends, ideal, noted, own_store


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Results over a grid.

    Attributes
    ----------
    rows
        The measures of every result; ``of`` is its x.
    results
        x to result.
    varied
        What x is called by the function that builds the studies.
    """

    rows: tuple[Interval, ...]
    results: Mapping[Any, Result]
    varied: str = ""

    def __str__(self) -> str:
        cells = [("x", "verdict", "p", "test function", "measure", "estimate", "interval", "ideal")]
        for row in self.rows:
            result = self.results[row.of]
            shown = (str(row.of), result.verdict.words, f"{result.pvalue:.2g}")
            cells.append((*shown, row.f, row.name, f"{row.estimate:.3g}", ends(row), ideal(row.ideal)))
        return table(cells, right={2, 5, 7})

    def __repr__(self) -> str:
        bad = sum(result.verdict is Verdict.MISCALIBRATED for result in self.results.values())
        return f"Sweep({len(self.results)} studies, {bad} miscalibrated)"


class SweepSettings(RunSettings, JudgeSettings, total=False):
    """Everything that :func:`sweep` takes by name besides n."""


def sweep(build: Callable[[Any], Study], over: Iterable[Any], *, n: int, **settings: Unpack[SweepSettings]) -> Sweep:
    """Run and judge a study for every value of a grid.

    Parameters
    ----------
    build
        Makes the study of a value.
    over
        The values, each different, that a dict can have as keys: numbers, text, tuples.
    n
        The number of replicates of each.
    **settings
        As in :func:`~ringtrue.run` and :func:`~ringtrue.judge`; ``store`` is a folder here, with a file per value.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> from ringtrue.procedures import Inflated, NormalMean
    >>> bayes = NormalMean()
    >>> build = lambda s: Study(Normal(0, 1), bayes.simulate, Inflated(bayes, s), batch=400)
    >>> [str(result.verdict) for result in sweep(build, [0.5, 2.0], n=400).results.values()]
    ['MISCALIBRATED', 'MISCALIBRATED']
    """
    need_known("sweep", settings, {"n", *SweepSettings.__optional_keys__}, StudySettings.__optional_keys__)
    if not callable(build):
        raise TypeError(f"build must be a function that makes the Study of a value, but {build!r} arrived.")
    values = _listed(over)
    _need_different(values)
    judging, running = split(settings)
    # Before the first run: a bad setting must not cost hours of simulation.
    need_settings(**judging)
    results = {x: _result(build, x, n, judging, running) for x in values}
    rows = tuple(replace(m, of=x) for x, result in results.items() for m in result.measures)
    return Sweep(rows, results, first_name(build))


def _listed(over: Any) -> list[Any]:
    if not isinstance(over, Iterable):
        raise TypeError(f"over must be a list of the values to vary, but {over!r} arrived.")
    return list(over)


def _need_different(values: list[Any]) -> None:
    """Refuse values that are equal, or look so in tables and names of files."""
    try:
        # 1 and 1.0 are one key of a dict, 1 and "1" one name of a file.
        different = min(len(set(values)), len(set(map(str, values))))
    except TypeError as error:
        raise InvalidStudy(f"sweep needs numbers, text or tuples to vary, but {values} arrived: {error}.") from None
    if not values or different < len(values):
        raise InvalidStudy(f"sweep needs values that differ, at least one, but {values} arrived.")


def _result(build: Callable[[Any], Study], x: Any, n: int, judging: JudgeSettings, running: RunSettings) -> Result:
    with noted(f"the study of x = {x!r}"):
        return judge(run(build(x), n=n, **own_store(running, str(x))), **judging)
