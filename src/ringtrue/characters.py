"""Text that may be printed: names and errors of others must not move the cursor, colour the screen or turn the reading.

What a terminal takes for a command (ASCII and Latin-1 control characters), what turns the direction in which text is
read, and lone halves of characters are spelled out, as Python writes them. This module knows nothing of the package.
"""

import re

#: Control characters but tab and line feed, marks and overrides of direction, separators of lines, halves of pairs.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text that a terminal shows and does not obey; its lines and tabs stay.

    Examples
    --------
    >>> print(printable("\x1b[2J\u202egnp.exe"))
    \x1b[2J\u202egnp.exe
    >>> printable("θ, 参数 and 😀")
    'θ, 参数 and 😀'
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    r"""Return a printable text that makes no new line and no new column: a name in a list, a cell of a table.

    Examples
    --------
    >>> print(one_line("theta\nwithin tolerance"))
    theta\nwithin tolerance
    """
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")
