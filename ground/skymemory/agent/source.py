"""Which constellation the agent serves: the one that `skymem up` started, followed as it comes and goes, or one of a file."""

from typing import NamedTuple, Protocol

from skymemory.config import Constellation
from skymemory.placement import whereabouts
from skymemory.placement.whereabouts import Playing
from skymemory.testbed.state import State


class Serving(NamedTuple):
    """A constellation, and what its window follows."""

    constellation: Constellation
    playing: Playing | whereabouts.Source | None


class Source(Protocol):
    """Tells of the constellation, and when that is another one."""

    def changed(self) -> bool:
        """Since the last `load`, or never loaded."""

    def load(self) -> Serving | None:
        """The constellation now; None: none yet. Raises OSError, RuntimeError, ValueError."""

    def missing(self) -> str:
        """Why there is none yet, and what to do about it."""


class FixedSource:
    """One constellation, for good."""

    def __init__(self, constellation: Constellation, playing: whereabouts.Source | None = None) -> None:
        """`playing`: tells what its window follows; None: it stays where it is."""
        self._serving = Serving(constellation, playing)
        self._loaded = False

    def changed(self) -> bool:
        """True until it was loaded."""
        return not self._loaded

    def load(self) -> Serving:
        """The constellation."""
        self._loaded = True
        return self._serving

    def missing(self) -> str:
        """Never so."""
        return ""


class RunningSource:
    """What `skymem up` and `skymem down` record on this machine."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state or State()
        self._seen: tuple[int, int] | None = None
        self._loaded = False

    def changed(self) -> bool:
        """Is there another record?"""
        return not self._loaded or self._mark() != self._seen

    def load(self) -> Serving | None:
        """What is recorded; its satellites may be up or not.

        Raises:
            StateError: the record cannot be read.
        """
        self._seen, self._loaded = self._mark(), True
        up = self._state.load()
        return None if up is None else Serving(up.constellation, self._state.sky(up.constellation).playing)

    def missing(self) -> str:
        """What to do."""
        return f"no constellation is up ({self._state.path} is not there); `skymem up` starts one, --constellation names another"

    def _mark(self) -> tuple[int, int] | None:
        """Of the record; each is a file of its own."""
        try:
            status = self._state.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
