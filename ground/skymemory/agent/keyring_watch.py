"""The keyring of a program that runs: a new file in its place is taken once satellites take its keys."""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final

from skymemory.common.file_state import FileState, file_state
from skymemory.link.association_keys import keys_of
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)

AGAIN_S: Final = 10.0
"""Period in which new keys are tried again that satellites did not take, while they take those of before."""
_SOON_S: Final = 2.0
"""The same while they do not."""


class KeyringWatch:
    """Watch of the keyring with which a constellation is used.

    A file is taken only if as many satellites answer under its keys as under those of before. So a keyring may be put in place
    before the satellites have its generation, and a wrong file harms nobody.
    """

    def __init__(self, constellation: Constellation) -> None:
        """Note the file as it is now. Make the watch before keys are read for the constellation.

        Raises:
            SecretFileError: The keyring cannot be read.
        """
        self.why = ""
        """Reason why the file that is in place is not used, in words for people; '' if it is, or if it was not tried yet."""
        self._constellation = constellation
        named = constellation.security.keyring
        self._path = Path(named) if named else None
        self._used = self._tried = self._now()
        self._keys = keys_of(constellation)
        self._tried_s = 0.0

    def _now(self) -> FileState | None:
        return None if self._path is None else file_state(self._path)

    def is_due(self, now_s: float, *, is_reachable: bool) -> bool:
        """Return True if there is another file whose keys are to be tried now, or none any more.

        Args:
            now_s: Time of a clock that never goes back.
            is_reachable: Satellites answer under the keys that are used.
        """
        state = self._now()
        if state == self._used:
            self.why, self._tried = "", state
            return False
        return state != self._tried or now_s - self._tried_s >= (AGAIN_S if is_reachable else _SOON_S)

    def is_taken(self, store: SkyStore, answering: Collection[Satellite], now_s: float) -> bool:
        """Ask satellites under the keys of the file as it is now, and return True if they take them.

        Args:
            store: The store on this constellation.
            answering: Satellites that answer under the keys that are used.
            now_s: Time of the same clock as for `is_due`.
        """
        state = self._now()
        self._tried, self._tried_s = state, now_s
        why = self._constellation.find_keyring_mistake("host")
        if not why and keys_of(self._constellation) == self._keys:  # the mission's, which has got another host
            self._used, self.why = state, ""
            return False
        if not why:
            with ControlPlane(self._constellation) as control:
                answered = store.probe(control)
                if answered and len(answered) >= len(answering):
                    _log.info("%s has changed, and satellites take its keys: they are used from now on", self._path)
                    return True
                few = f"{len(answered)} satellites answer under its keys, and {len(answering)} under those of before"
                why = control.refusal() or few
        told = f"{self._path} has changed, but the keys of before stay in use: {why}"
        if told != self.why:
            _log.warning("%s", told)
            self.why = told
        return False
