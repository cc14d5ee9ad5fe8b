"""Sources of the constellation that the agent serves: the one that `skymem up` started, as it comes and goes, or a file's."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from skymemory.sky import whereabouts
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_of
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.run_record import RunRecord


class Serving(NamedTuple):
    """A constellation, what its window follows, and the secret of what this user stores there."""

    constellation: Constellation
    playing: Playing | whereabouts.Source | None
    tenant_secret: bytes


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

    def __init__(
        self,
        constellation: Constellation,
        playing: whereabouts.Source | None = None,
        secret: Callable[[Constellation], bytes] = secret_of,
    ) -> None:
        """Use a constellation.

        Args:
            constellation: The constellation.
            playing: Tells what its window follows; None: it stays where it is.
            secret: Returns the tenant secret for a constellation. May raise `SecretFileError`, which is a RuntimeError.
        """
        self._constellation, self._playing, self._secret = constellation, playing, secret
        self._loaded = False

    def changed(self) -> bool:
        """Return True until it was loaded."""
        return not self._loaded

    def load(self) -> Serving:
        """Return the constellation."""
        serving = Serving(self._constellation, self._playing, self._secret(self._constellation))
        self._loaded = True
        return serving

    def missing(self) -> str:
        """Never so."""
        return ""


class RunningSource:
    """The constellation that `skymem up` and `skymem down` record on this machine."""

    def __init__(self, state: RunRecord | None = None, secret: Callable[[Constellation], bytes] = secret_of) -> None:
        """Use this user's record by default; `secret` is as for `FixedSource`."""
        self._secret = secret
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
        if up is None:
            return None
        sky = self._state.sky(up.constellation)
        return Serving(up.constellation, sky.playing, self._secret(up.constellation))

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
