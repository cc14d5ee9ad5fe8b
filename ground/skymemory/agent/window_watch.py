"""State of the window as this agent sees it: which servers are lost, and which satellites speak another version."""

import logging
import time

from skymemory.link.other_versions import VersionWatch, version_words
from skymemory.sky.entry_satellites import Route
from skymemory.sky.window_state import State, WindowState
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)


class WindowWatch:
    """The window of one store. It blocks while it asks satellites, and so needs a thread that may wait."""

    def __init__(self, store: SkyStore) -> None:
        """Ask nothing yet.

        Args:
            store: The store whose window is watched.
        """
        self._store, self._control = store, store.control
        self._versions = VersionWatch(store.constellation)
        self.state: WindowState | None = None
        """State of the window at the last look; None: no satellite answered."""

    @property
    def other_versions(self) -> int:
        """Number of satellites that are known to speak another version."""
        return len(self._versions.found)

    @property
    def version_words(self) -> str:
        """Sentence about satellites that speak another version; '' if none is known."""
        return version_words(self._versions.found)

    def probe(self) -> dict[Satellite, float]:
        """Ping the servers and others (`SkyStore.probe`), and note the state of the window. Changes are logged.

        Returns:
            Round trip times, in seconds, of the satellites that answered.
        """
        before = self._servers()
        answered = self._store.probe(self._control)
        servers = self._servers()
        silent = [one for one in servers if one in before and one not in answered]  # others have just become servers
        if answered and silent:  # the store does not ping those for which others stand in
            routes = [Route(one, one) for one in silent]
            back = self._control.ping(routes, self._control.patience_s(routes))
            silent = [one for one in silent if one not in back]
        self._look_at_versions(set(silent) - self._control.refused)
        self._note(WindowState(len(servers), self._store.settings.parity, tuple(sorted(silent))) if answered else None)
        return answered

    def _servers(self) -> list[Satellite]:
        where = self._store.whereabouts
        return where.servers(where.row(time.time()))

    def _look_at_versions(self, silent: set[Satellite]) -> None:
        before = self.version_words
        self._versions.look(silent)
        if (words := self.version_words) and words != before:
            _log.warning("%s", words)

    def _note(self, state: WindowState | None) -> None:
        before, self.state = self.state, state
        if state is None or state == before or (before is None and state.state is State.WHOLE):
            return
        _log.log(logging.INFO if state.state is State.WHOLE else logging.WARNING, "%s", state.words())
