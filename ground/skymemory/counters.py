"""What a `KVCManager` did, in numbers."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock

from skymemory.results import Status

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class KVCStatistics:
    """Counts since the manager was made. Times are wall-clock seconds."""

    prompts: int = 0
    """asked for by `get_cache`"""
    hits: int = 0
    """of these: at least one block came back"""
    misses: int = 0
    """of these: none did; so hits + misses = prompts"""
    blocks_hit: int = 0
    blocks_missed: int = 0
    """full blocks of the prompts that did not come back, for whatever reason"""
    tokens_asked: int = 0
    tokens_cached: int = 0
    """of these: need not be computed"""
    blocks_stored: int = 0
    blocks_present: int = 0
    """not stored by `add_blocks` because they were there already"""
    bytes_up: int = 0
    """of blocks stored, with their headers"""
    bytes_down: int = 0
    """of blocks that came back, with their headers"""
    find_s: float = 0.0
    get_s: float = 0.0
    decode_s: float = 0.0
    prefill_s: float = 0.0
    encode_s: float = 0.0
    put_s: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    """by cause. Blocks: `damaged`; `encode`: could not be; the store's words for those that it could not bring, keep or lay in
    advance. Calls that raised: `get`, `put`, `purge`, `prefetch`. `find`: look-ups that raised or were not answered.
    `fingerprint`: prompts for which the model could not be digested. `changed`: the model was changed while it computed"""


class Ledger:
    """Keeps the counts, from any thread, and logs troubles: one line when they begin or change, one when they end."""

    def __init__(self) -> None:
        self._statistics = KVCStatistics()
        self._troubles: dict[str, frozenset[str]] = {}
        self._lock = Lock()

    def copy(self) -> KVCStatistics:
        """The counts as they are now."""
        with self._lock:
            return deepcopy(self._statistics)

    def add(self, **counts: float) -> None:
        """Add to counts of `KVCStatistics`, by name."""
        with self._lock:
            for name, count in counts.items():
                setattr(self._statistics, name, getattr(self._statistics, name) + count)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that the body takes, in seconds."""
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.add(**{name: time.perf_counter() - start_s})

    def outcome(self, task: str, causes: Mapping[str, int] | None = None, why: object = None) -> None:
        """Note how a task went.

        Args:
            task: what was done, the same word each time.
            causes: what went wrong, and how often; none: all went well.
            why: more about it, for the log.
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
        # A block that is gone is nothing to act upon
        level = logging.INFO if kinds == {Status.MISS} else logging.WARNING
        words = ", ".join(f"{cause} ({count})" for cause, count in sorted(causes.items()))
        _log.log(level, "%s: %s%s; counted as misses, logged again when this changes", task, words, f": {why}" if why else "")


@dataclass(frozen=True, slots=True)
class AddReport:
    """What `add_blocks` did for one prompt."""

    blocks: int
    """full blocks of the prompt"""
    present: int
    """that were in the sky already"""
    stored: int
    failed: int
    """that could not be encoded or stored; the rest of `blocks` was not covered by the given cache"""
    bytes_up: int


@dataclass(frozen=True, slots=True)
class ExpectReport:
    """What `expect` did for one prompt."""

    blocks: int
    """full blocks of the prompt"""
    placed: int
    """of its first blocks, that are where they will be needed"""
    failed: int
    """that are in the sky, and did not all get there in time; what is left is not in the sky"""
