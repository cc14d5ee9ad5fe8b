"""Counts and reports of a `KVCManager`."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType

from skymemory.store.results import Status

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class KVCStatistics:
    """Counts since the manager was made. Times are wall-clock seconds."""

    prompts: int = 0
    """Prompts whose caches were asked for."""
    hits: int = 0
    """Prompts of which at least one block came back."""
    misses: int = 0
    """Prompts of which no block came back: hits + misses = prompts."""
    blocks_hit: int = 0
    """Blocks that came back."""
    blocks_missed: int = 0
    """Full blocks of the prompts that did not come back, for any reason."""
    tokens_asked: int = 0
    """Tokens of the prompts."""
    tokens_cached: int = 0
    """Tokens of the prompts that need not be computed."""
    blocks_stored: int = 0
    """Blocks that were stored."""
    blocks_present: int = 0
    """Blocks that were not stored because they were there already."""
    bytes_up: int = 0
    """Bytes of blocks stored, with their headers."""
    bytes_down: int = 0
    """Bytes of blocks that came back, with their headers."""
    find_s: float = 0.0
    """Time of lookups."""
    get_s: float = 0.0
    """Time of gets."""
    decode_s: float = 0.0
    """Time in which blocks became tensors of a cache."""
    prefill_s: float = 0.0
    """Time in which the model computed blocks that were to be stored."""
    encode_s: float = 0.0
    """Time in which tensors became blocks."""
    put_s: float = 0.0
    """Time of puts."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by cause.

    Blocks are counted under `damaged`, under `encode` if the codec could not encode them, and under the store's status if the
    store could not fetch, keep or prefetch them. Calls of the store that raised are counted under `get`, `put`, `purge` and
    `prefetch`. `find` counts lookups that raised or got no answer, `fingerprint` counts prompts for which the model could not be
    digested, and `changed` counts prompts during which the model was changed.
    """


class Ledger:
    """Counts, and a log of failures: one line when they begin or change, and one when they end. Thread-safe."""

    def __init__(self) -> None:
        self._statistics = KVCStatistics()
        self._troubles: dict[str, frozenset[str]] = {}
        self._lock = Lock()

    def copy(self) -> KVCStatistics:
        """Return the counts as they are now."""
        with self._lock:
            return deepcopy(self._statistics)

    def add(self, **counts: float) -> None:
        """Add to counts of `KVCStatistics`, by name."""
        with self._lock:
            for name, count in counts.items():
                setattr(self._statistics, name, getattr(self._statistics, name) + count)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that the body takes to the count of this name."""
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.add(**{name: time.perf_counter() - start_s})

    def attempt(self, task: str, cause: str = "") -> Attempt:
        """Return a context in which a task is tried.

        Args:
            task: Name of the task, the same each time.
            cause: Cause under which an exception is counted; the task's name by default.
        """
        return Attempt(self, task, cause or task)

    def outcome(self, task: str, causes: Mapping[str, int] | None = None, why: object = None) -> None:
        """Note how a task went.

        Args:
            task: Name of the task, the same each time.
            causes: Number of failures by cause; None if all went well.
            why: Details of the failure, for the log.
        """
        causes = causes or {}
        kinds = frozenset(causes)
        with self._lock:
            self._statistics.errors.update(causes)
            before, self._troubles[task] = self._troubles.get(task, frozenset()), kinds
        if kinds == before:
            return
        if not kinds:
            _log.info("%s: works again", task)
            return
        # Nobody needs to act if blocks are merely gone.
        level = logging.INFO if kinds == {Status.MISS} else logging.WARNING
        words = ", ".join(f"{cause} ({count})" for cause, count in sorted(causes.items()))
        _log.log(level, "%s: %s%s; counted as misses, logged again when this changes", task, words, f": {why}" if why else "")


@dataclass(slots=True)
class Attempt:
    """Context that notes how a task went: its exception, which is not raised, because a cache never breaks a generation."""

    ledger: Ledger
    task: str
    cause: str
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by cause, to which the body may add."""

    def __enter__(self) -> Counter[str]:
        return self.failures

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.ledger.outcome(self.task, {self.cause: 1}, error)
        elif error is None:
            self.ledger.outcome(self.task, self.failures)
        return isinstance(error, Exception)


@dataclass(frozen=True, slots=True)
class AddReport:
    """Result of `add_blocks` for one prompt."""

    blocks: int
    """Full blocks of the prompt."""
    present: int
    """Blocks that were in the sky already."""
    stored: int
    """Blocks that were stored."""
    failed: int
    """Blocks that could not be encoded or stored. The rest of `blocks` was not covered by the cache that was given."""
    bytes_up: int
    """Bytes of the blocks that were stored."""


@dataclass(frozen=True, slots=True)
class ExpectReport:
    """Result of `expect` for one prompt."""

    blocks: int
    """Full blocks of the prompt."""
    placed: int
    """Number of blocks, from the first one on, that are in place for the expected time."""
    failed: int
    """Blocks that are in the sky but are not in place. The rest of `blocks` is not in the sky."""
