"""Sources of the constellation that a program uses: the one that `skymem up` started, as it comes and goes, or a file's."""

from collections.abc import Callable
from hmac import compare_digest
from typing import NamedTuple, Protocol

from skymemory.common.file_state import FileState, file_state
from skymemory.sky import whereabouts
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_of
from skymemory.sky.whereabouts import Playing
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.run_record import RunRecord


class Serving(NamedTuple):
    """A constellation, what its window follows, and the secret of what this user stores there.

    The keyring may be wrong, as it is only looked at where it is needed (`Constellation.find_keyring_mistake`).
    """

    constellation: Constellation
    playing: Playing | whereabouts.Source | None
    tenant_secret: bytes

    def is_on(self, store: SkyStore) -> bool:
        """Return True if a store is on this constellation already, with this secret."""
        return self.constellation == store.constellation and compare_digest(self.tenant_secret, store.tenant_secret)


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
        self._seen: FileState | None = None
        self._loaded = False

    def changed(self) -> bool:
        """Return True if there is another record."""
        return not self._loaded or file_state(self._state.path) != self._seen

    def load(self) -> Serving | None:
        """Return the recorded constellation; its satellites may be up or not.

        Raises:
            StateError: The record cannot be read.
            SecretFileError: There is no tenant secret.
        """
        seen = file_state(self._state.path)
        serving = self._serving()
        self._seen, self._loaded = seen, True  # else it is looked at again: what is wrong may be put right
        return serving

    def _serving(self) -> Serving | None:
        up = self._state.load()
        if up is None:
            return None
        sky = self._state.sky(up.constellation.of_host())
        return Serving(sky.constellation, sky.playing, self._secret(sky.constellation))

    def missing(self) -> str:
        """Return what to do."""
        return f"no constellation is up ({self._state.path} is not there); `skymem up` starts one, --constellation names another"
