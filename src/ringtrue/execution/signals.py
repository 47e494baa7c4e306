"""A request to terminate, which batch schedulers send before they kill, taken like Ctrl-C: what is done is safe."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise Terminated when SIGTERM arrives, where nobody else has a use for it."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: Any) -> NoReturn:
    raise Terminated
