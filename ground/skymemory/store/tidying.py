"""`Tidying`: purges of what is of no use, which nobody waits for. Results are handed over before."""

from collections import Counter
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

from skymemory.link.ground import Box
from skymemory.link.operations import Operation
from skymemory.store.runner import Runner

_RUNS_MAX: Final = 4096
"""Purges that run at a time; what is beyond is left to eviction, and to the next get."""


class Tidying:
    """Purges of one store. Thread-safe; nothing here waits."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = Lock()  # guards all below
        self._box: Box | None = None
        self._keys: Counter[bytes] = Counter()
        """Keys of the purges that run."""

    def begin(self, purges: Sequence[Operation]) -> None:
        """Begin purges. If the store was closed, nothing is purged."""
        with self._lock:
            self._take()
            try:
                self._box = self._box or self._runner.box()
                for one in purges[: _RUNS_MAX - self._keys.total()]:
                    self._runner.submit(self._box, one)
                    self._keys[one.entry.key] += 1
            except (BlockingIOError, ValueError):
                pass

    def runs(self, keys: Iterable[bytes]) -> bool:
        """Return True if a block of these keys is being purged: what is put now might be purged as well."""
        if not self._keys:
            return False
        with self._lock:
            self._take()
            return any(key in self._keys for key in keys)

    def _take(self) -> None:
        """Forget what has ended."""
        while self._box is not None and (told := self._box.take()) is not None:
            key = told[0].entry.key
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
