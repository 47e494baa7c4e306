"""What can go wrong, and the names it goes by.

::

    RingtrueError
    ├── InvalidStudy       the question is ill-posed; raised before any replicate runs
    │   └── NoRoute        output and test function share no way to a u
    ├── ReplicateFailed    a user's function failed; the message contains the replay call
    ├── StoreError         a file of replicates cannot be opened, read or written
    │   ├── StoreMismatch  the file belongs to another study; says which field differs
    │   ├── StoreBusy      another process is writing to the file
    │   └── StoreDamaged   the file is not what was written; says which replicates, and how to repair it
    └── NotWithinTolerance an assertion about calibration did not hold (also an AssertionError)
        ├── Miscalibrated  there is evidence of an error
        └── Inconclusive   there is none, and none that errors are small: the run could not tell

Every message says what was expected, what arrived and what to do, and can be printed whatever the names in it are.
This module knows nothing else of the package.
"""

from .characters import printable


class RingtrueError(Exception):
    """Base of every error that is ringtrue's own."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidStudy(RingtrueError, ValueError):
    """The question is ill-posed; raised before any replicate runs."""


class NoRoute(InvalidStudy):
    """The output and the test function share no way to a u."""


class ReplicateFailed(RingtrueError, RuntimeError):
    """A user's function failed in one replicate; the message contains the replay call."""


class StoreError(RingtrueError):
    """A file of replicates cannot be opened, read or written; what was written before is safe."""


class StoreMismatch(StoreError):
    """The file belongs to another study; the message says which field differs."""


class StoreBusy(StoreError):
    """Another process is writing to the file."""


class StoreDamaged(StoreError):
    """The file is not what was written; the message says which replicates, and how to repair it."""


class NotWithinTolerance(RingtrueError, AssertionError):
    """An assertion about calibration did not hold; which of the two below it is says why."""


class Miscalibrated(NotWithinTolerance):
    """There is evidence of an error."""


class Inconclusive(NotWithinTolerance):
    """The run could not tell: it shows neither an error nor that errors are small. More replicates would."""
