"""Numbers, tables and lists as a person would write them. It computes nothing and decides nothing."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from ..characters import one_line
from ..statistics.effects import Interval

#: Decimals of a number, at most.
_MOST = 6
#: What tables have of a measure.
MEASURED = ("f", "name", "estimate", "low", "high", "ideal", "within")


def free(name: str, taken: Collection[str]) -> str:
    """Return a name for what all entries have together that no test function of the user's has.

    Examples
    --------
    >>> free("energy", {"energy"})
    'energy (of all)'
    """
    return free(f"{name} (of all)", taken) if name in taken else name


def as_row(m: Interval) -> dict[str, Any]:
    """Return what tables have of a measure."""
    return {name: getattr(m, name) for name in MEASURED}


def format_p(p: float) -> str:
    """Return a p-value as one would write it in a sentence.

    Examples
    --------
    >>> format_p(0.31234), format_p(2.6e-9), format_p(1e-310)
    ('p = 0.31', 'p = 3e-9', 'p < 1e-300')
    """
    return "p < 1e-300" if p < 1e-300 else f"p = {power(cell(p))}"


def cell(p: float) -> str:
    """Return a p-value as a table shows it."""
    if p < 1e-300:
        return "< 1e-300"
    return f"{p:.0e}" if p < 0.001 else f"{p:.2g}"


def decimals(row: Interval) -> int:
    """Return how many decimals the width of an interval deserves: two figures of it, two decimals at least."""
    width = row.high - row.low
    return 2 if not 0 < width < math.inf else min(max(1 - math.floor(math.log10(width)), 2), _MOST)


def number(x: float, digits: int = 2) -> str:
    """Return a number as a person would write it: so many decimals where it is small, two or three figures otherwise.

    Examples
    --------
    >>> number(-0.001), number(1.4142), number(57.31), number(711174.24), number(0.99871, 4)
    ('0.00', '1.41', '57.3', '7.1e5', '0.9987')
    """
    if not math.isfinite(x):
        return f"{x:g}"
    # Beyond four digits nobody reads decimals; 9999.5 is where rounding would print a fifth.
    if abs(x) >= 9999.5:
        return power(f"{x:.1e}").replace(".0e", "e")
    if digits <= 2:
        digits = min(digits, 0 if abs(x) >= 99.95 else 1 if abs(x) >= 9.995 else 2)
    text = f"{x:.{digits}f}"
    if digits >= _MOST and not float(text):  # its own size is asked for, and too small for decimals
        return power(f"{x:.0e}") if x else "0"
    return text if float(text) else text.lstrip("-")


def percent(share: float) -> str:
    """Return a share in per cent, with decimals only where it is near nothing or all.

    Examples
    --------
    >>> percent(0.7634), percent(0.9962), percent(1.0), percent(0.00012)
    ('76 %', '99.6 %', '100 %', '0.012 %')
    """
    rest = 100 * min(share, 1 - share)
    if rest <= 0 or rest >= 1.95:
        return f"{100 * share:.0f} %"
    digits = min(1 - math.floor(math.log10(rest)) - (rest >= 0.1), 6)
    return f"{100 * share:.{digits}f} %"


def counted(n: int, noun: str) -> str:
    """Return how many there are of something, in the plural unless there is one.

    Examples
    --------
    >>> counted(1, "replicate"), counted(20, "replicate")
    ('1 replicate', '20 replicates')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def power(text: str) -> str:
    """Return a number in scientific notation without the zeros of its exponent.

    Examples
    --------
    >>> power("1e-06"), power("0.01")
    ('1e-6', '0.01')
    """
    head, mark, exponent = text.partition("e")
    return f"{head}{mark}{int(exponent)}" if mark else text


def near(x: float, ideal: float) -> str:
    """Return a number with two figures of its distance from the ideal."""
    return number(x, 2 if x == ideal else max(1 - math.floor(math.log10(abs(x - ideal))), 2))


class Text(str):
    """Text that shows itself as it prints, at a prompt and in a notebook too."""

    def __repr__(self) -> str:
        return str(self)


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    Examples
    --------
    >>> width("theta"), width("温度"), width("e\u0301")
    (5, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, most: int) -> str:
    """Return a text without its middle where it is too wide: names differ at their ends.

    Examples
    --------
    >>> cut("coefficient[Deerfield]", 16), cut("theta", 16)
    ('coeffi...rfield]', 'theta')
    """
    if width(text) <= most:
        return text
    head, tail = text, text
    while width(head) > (most - 3) // 2:
        head = head[:-1]
    while width(tail) > most - 3 - width(head):
        tail = tail[1:]
    return f"{head}...{tail}"


def table(cells: Sequence[tuple[str, ...]], *, right: Collection[int] = (), heads: int = 1) -> str:
    """Return rows of cells as text in columns, the first rows as its head; some columns flush right."""
    cells = [tuple(map(one_line, row)) for row in cells]
    widths = [max(width(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = []
    for row in cells:
        gaps = [" " * (w - width(cell)) for cell, w in zip(row, widths, strict=True)]
        padded = [gap + cell if j in right else cell + gap for j, (cell, gap) in enumerate(zip(row, gaps, strict=True))]
        lines.append("  ".join(padded).rstrip())
    lines.insert(heads, "-" * max(map(width, lines)))
    return "\n".join(lines)


def plain(value: Any) -> Any:
    """Return plain data in which numbers that are not finite are None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
