"""Sources of the constellation that the agent serves: the one that `skymem up` started, as it comes and goes, or a file's."""

from typing import NamedTuple, Protocol

from skymemory.sky import whereabouts
from skymemory.sky.constellation import Constellation
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.run_record import RunRecord


class Serving(NamedTuple):
    """A constellation, and what its window follows."""

    constellation: Constellation
    playing: Playing | whereabouts.Source | None


class ConstellationSource(Protocol):
    """Tells of the constellation, and when that is another one."""

    def changed(self) -> bool:
        """Since the last `load`, or never loaded."""

    def load(self) -> Serving | None:
        """Return the constellation of now; None: none yet. Raises OSError, RuntimeError or ValueError."""

    def missing(self) -> str:
        """Return why there is no constellation yet, and what to do about it."""


class FixedSource:
    """One constellation, for good."""

    def __init__(self, constellation: Constellation, playing: whereabouts.Source | None = None) -> None:
        """`playing`: tells what its window follows; None: it stays where it is."""
        self._serving = Serving(constellation, playing)
        self._loaded = False

    def changed(self) -> bool:
        """Return True until it was loaded."""
        return not self._loaded

    def load(self) -> Serving:
        """Return the constellation."""
        self._loaded = True
        return self._serving

    def missing(self) -> str:
        """Never so."""
        return ""


class RunningSource:
    """The constellation that `skymem up` and `skymem down` record on this machine."""

    def __init__(self, state: RunRecord | None = None) -> None:
        self._state = state or RunRecord()
        self._seen: tuple[int, int] | None = None
        self._loaded = False

    def changed(self) -> bool:
        """Return True if there is another record."""
        return not self._loaded or self._mark() != self._seen

    def load(self) -> Serving | None:
        """Return the recorded constellation; its satellites may be up or not.

        Raises:
            StateError: The record cannot be read.
        """
        self._seen, self._loaded = self._mark(), True
        up = self._state.load()
        return None if up is None else Serving(up.constellation, self._state.sky(up.constellation).playing)

    def missing(self) -> str:
        """Return what to do."""
        return f"no constellation is up ({self._state.path} is not there); `skymem up` starts one, --constellation names another"

    def _mark(self) -> tuple[int, int] | None:
        """Of the record; each is a file of its own."""
        try:
            status = self._state.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
