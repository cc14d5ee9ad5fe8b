"""Fetch or recompute? Estimates of how long a get and a prefill will take, and so of what is worth fetching.

A block is worth fetching only where that is faster than computing it (paper, section 2: the latencies of its table 1 are the
motive). Three formulas are learned from what is measured:

    duration                          features
    satellite: its last answer        round trips, megabytes
    get                               slowest satellite, shares, megabytes, 1: what the host adds for packets, calls and threads
    prefill of an engine              tokens, tokens x position (attention looks at all that was before), 1

Each is learned apart for small and for large work: what holds up a get of three bytes says nothing of a prompt's blocks. What
runs in the agent comes on top. All costs are at least 0, so more blocks are never estimated to be faster.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skymemory.common import defaults
from skymemory.common.fit import SizedFit
from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import Served
from skymemory.wire.address import Satellite

EXPLORE_SHARE: Final = 0.02
"""Share of the computing time that may be spent on finding out whether fetching has become faster."""
EXPLORE_S: Final = 120.0
"""Time without a large get, or a decision to fetch, after which one block is fetched whatever that is thought to cost."""
LARGE_BYTES: Final = 1 << 20
"""Bytes from which a get is large. Values of Redis clients are mostly smaller, blocks of prompts larger."""
LARGE_TOKENS: Final = 256
"""Tokens from which a prefill is large; fewer are what is left of a prompt that was cached."""
_ENGINES_MAX: Final = 256
_LEARN_ALWAYS: Final = 32
"""Gets that are all learned from; of later small ones one every `_LEARN_S` is: there is other work to do."""
_LEARN_S: Final = 0.02
_TOKENS: Final = 1e3
_TOKENS_SQUARED: Final = 1e9
"""Units that make small numbers of the features of a prefill."""

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Number = TypeVar("Number", int, Integers)


@dataclass(frozen=True, slots=True)
class Decision:
    """Choice for the blocks that were found."""

    fetch: int
    """Number of blocks to fetch, from the first one on."""
    fetch_s: float | None
    """Estimate for fetching these, or all if none is to be fetched; None: unknown."""
    recompute_s: float | None
    """Estimate for computing the same blocks instead; None: unknown."""
    kind: Literal["fetch", "recompute", "explore"]
    """`explore`: fetch to find out how long it takes."""


class Estimator:
    """All that one agent has measured of its sky and its engines. Thread-safe; no I/O."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._engines: dict[str, SizedFit] = {}
        self._credit_s = 0.0
        self.forget_sky()

    def forget_sky(self) -> None:
        """Begin anew with another constellation."""
        with self._lock:
            self._servers: tuple[Satellite, ...] = ()
            self._deadline_s = math.inf
            self._rtt_s: dict[Satellite, float] = {}
            self._satellites: dict[Satellite, SizedFit] = {}
            self._any_satellite = SizedFit(2, LARGE_BYTES)
            self._gets = SizedFit(4, LARGE_BYTES)
            self._learned_s = -math.inf
            self._tried_s = self._clock()
            self._running: dict[object, tuple[Sequence[BlockEntry], float]] = {}
            """Blocks of the gets that run, and when each began, the oldest first."""

    # ---- what was measured ------------------------------------------------------------------------------------------

    def placed(self, servers: Sequence[Satellite], deadline_s: float = math.inf) -> None:
        """Note where servers 0 to n - 1 are now, and after how long a get ends without what has not come."""
        with self._lock:
            self._servers = tuple(servers)
            self._deadline_s = deadline_s

    def links(self, rtt_s: Mapping[Satellite, float]) -> None:
        """Note round trips of satellites that answered a question."""
        with self._lock:
            self._rtt_s.update(rtt_s)

    def begun(self, get: object, entries: Sequence[BlockEntry]) -> None:
        """Note that a get of these blocks begins; it counts as running until `ended` is called with it."""
        with self._lock:
            self._running[get] = entries, self._clock()

    def ended(self, get: object) -> None:
        """Note that a get has ended."""
        with self._lock:
            self._running.pop(get, None)

    def learn(self, entries: Sequence[BlockEntry], served: Sequence[Served], duration_s: float) -> float | None:
        """Learn from a get whose blocks came whole in one call, and from what each satellite did in it; takes about 0.4 ms.

        Returns:
            The duration that was to be expected; None: unknown, or nothing was learned because small gets follow each other.
        """
        now_s = self._clock()
        with self._lock:
            if not entries or not self._servers:
                return None
            size = sum(entry.block_len for entry in entries)
            if size >= LARGE_BYTES:
                self._tried_s = now_s
            if size < LARGE_BYTES and self._gets.samples >= _LEARN_ALWAYS and now_s - self._learned_s < _LEARN_S:
                return None
            self._learned_s = now_s
            expected_s = _at(self._gets_s(entries), -1)
            shares = self._shares(entries)[-1:]
            of_server = dict(zip(self._servers, shares[0].tolist(), strict=True))
            for one in served:
                self._rtt_s[one.satellite] = one.rtt_s or self._rtt_s.get(one.satellite, 0.0)
                pieces, length = of_server.get(one.satellite, (0, 0))
                if one.bytes == length > 0 and one.last_s is not None:  # no byte came from elsewhere
                    for fit in (self._satellites.setdefault(one.satellite, SizedFit(2, LARGE_BYTES)), self._any_satellite):
                        fit.learn(size, (_rounds(pieces), length / 1e6), one.last_s, now_s)
            self._gets.learn(size, self._work(shares, size)[0].tolist(), duration_s, now_s)
            return expected_s

    def prefilled(self, engine: str, tokens: int, duration_s: float, before: int = 0) -> None:
        """Learn how long an engine (one model on one machine) computed `tokens` of a prompt, behind the `before` that it had."""
        with self._lock:
            if engine not in self._engines and len(self._engines) >= _ENGINES_MAX:
                self._engines.pop(next(iter(self._engines)))
            fit = self._engines.setdefault(engine, SizedFit(3, LARGE_TOKENS))
            fit.learn(tokens, _prefill(before, tokens, 1).tolist(), duration_s, self._clock())

    # ---- what is to be expected -------------------------------------------------------------------------------------

    def prefill_s(self, engine: str, tokens: int, before: int = 0) -> float | None:
        """Return how long a prefill takes as a whole, with what it costs to begin one; None: unknown."""
        with self._lock:
            return _at(self._compute_s(engine, before, [tokens], 1), 0)

    def worth(self, engine: str, entries: Sequence[BlockEntry], tokens_before: int, block_tokens: int) -> Decision:
        """Return how many of a prompt's next blocks to fetch, behind the tokens that the engine has, for the shortest wait.

        Blocks that would come after the deadline are not fetched. If the time for a get is unknown, all are fetched to learn it.
        Where computing is faster, a block is fetched now and then all the same, because links change: once `EXPLORE_SHARE` of the
        computing time pays for it, and after `EXPLORE_S` in any case.
        """
        count = len(entries)
        if count == 0:
            return Decision(0, None, None, "fetch")
        with self._lock:
            ahead_s = self._ahead_s()
            fetch_s = self._fetch_each_s(entries, ahead_s)
            compute_s = self._compute_s(engine, tokens_before, np.arange(count + 1) * block_tokens, 0)
            if fetch_s is None or compute_s is None:
                return self._fetch(count, _at(fetch_s, -1), _at(compute_s, -1), "explore" if fetch_s is None else "fetch")
            total_s = fetch_s + compute_s[-1] - compute_s  # blocks behind the fetched ones are computed
            total_s[fetch_s - ahead_s > self._deadline_s] = math.inf
            best = count - int(np.argmin(total_s[::-1]))
            if best > 0:
                return self._fetch(best, float(fetch_s[best]), float(compute_s[best]), "fetch")
            few = _blocks_to_learn_from(entries)
            if self._explores(float(fetch_s[few] - compute_s[few]), float(compute_s[-1])):
                return self._fetch(few, float(fetch_s[few]), float(compute_s[few]), "explore")
            return Decision(0, float(fetch_s[-1]), float(compute_s[-1]), "recompute")

    # ---- inside, with the lock held ---------------------------------------------------------------------------------

    def _fetch(
        self, blocks: int, fetch_s: float | None, recompute_s: float | None, kind: Literal["fetch", "explore"]
    ) -> Decision:
        self._tried_s = self._clock()
        return Decision(blocks, fetch_s, recompute_s, kind)

    def _explores(self, cost_s: float, compute_s: float) -> bool:
        """Return True if what was computed so far pays for a get that takes longer by `cost_s`, or if none was made for long."""
        cost_s = max(0.0, cost_s)
        self._credit_s = min(self._credit_s + EXPLORE_SHARE * compute_s, max(cost_s, EXPLORE_SHARE))
        if self._credit_s < cost_s and self._clock() - self._tried_s < EXPLORE_S:
            return False
        self._credit_s = max(0.0, self._credit_s - cost_s)
        return True

    def _compute_s(self, engine: str, before: int, tokens: Sequence[int] | Integers, begins: int) -> Numbers | None:
        fit = self._engines.get(engine)
        return None if fit is None or not fit.knows(0) else np.dot(fit.costs(max(tokens)), _prefill(before, tokens, begins))

    def _ahead_s(self) -> float:
        """Return the time that the gets that run still take: as long as one get of all their blocks since the oldest began."""
        if not self._running:
            return 0.0
        entries = [entry for some, _ in self._running.values() for entry in some]
        _, began_s = next(iter(self._running.values()))
        return max(0.0, began_s + (_at(self._gets_s(entries), -1) or 0.0) - self._clock())

    def _fetch_each_s(self, entries: Sequence[BlockEntry], ahead_s: float) -> Numbers | None:
        """Return the time for the first k blocks, for k from 0, after what runs; for none it is 0."""
        gets_s = self._gets_s(entries)
        return None if gets_s is None else np.concatenate(([0.0], ahead_s + gets_s))

    def _gets_s(self, entries: Sequence[BlockEntry]) -> Numbers | None:
        """Return the time for a get of the first k blocks, for k from 1; None: no get of that size was measured."""
        if not entries or not self._servers:
            return None
        shares = self._shares(entries)
        sizes = shares[:, :, 1].sum(axis=1)
        if not self._gets.knows(sizes[-1]):
            return None
        small_s, large_s = (self._work(shares, size) @ self._gets.costs(size) for size in (0, LARGE_BYTES))
        return np.maximum.accumulate(np.where(sizes < LARGE_BYTES, small_s, large_s))

    def _shares(self, entries: Sequence[BlockEntry]) -> Integers:
        """Return of how many of the first k blocks each server has a share, and its bytes: [blocks, servers, 2].

        Chunk i is of share i mod n (paper, section 3.1). With parity data chunk i is of share i mod k, and parity is hardly ever
        fetched. Of small blocks the shares begin at different servers.
        """
        servers = np.arange(len(self._servers))
        own = (servers - np.array([entry.offset(len(servers)) for entry in entries])[:, None]) % len(servers)
        sizes = np.array([(entry.chunk_len, entry.block_len, entry.code_k or len(servers)) for entry in entries])[:, :, None]
        chunk_len, block_len, count = sizes.swapaxes(0, 1)
        total = -(-block_len // chunk_len)
        chunks = np.where(own < count, (total - own + count - 1) // count, 0)
        has_last = (total - 1) % count == own  # the last chunk may be shorter
        lengths = chunks * chunk_len - has_last * (total * chunk_len - block_len)
        return np.stack((chunks > 0, lengths), axis=2).cumsum(axis=0)

    def _work(self, shares: Integers, size: int) -> Numbers:
        """Return the features of gets of these shares, with what satellites cost in gets of a size: [gets, 4].

        A satellite without a get of that size counts by its round trip, and its megabytes by those of all satellites: what has
        held up a few small gets would make a large one look endless.
        """
        any_round_s, any_megabyte_s = self._any_satellite.learned_costs(size) or (0.0, 0.0)
        costs_s = [
            ((fit := self._satellites.get(server)) and fit.own_costs(size))
            or (self._rtt_s.get(server) or any_round_s, any_megabyte_s)
            for server in self._servers
        ]
        round_s, megabyte_s = np.transpose(costs_s)
        pieces, megabytes = shares[:, :, 0], shares[:, :, 1] / 1e6
        slowest_s = (_rounds(pieces) * round_s + megabytes * megabyte_s).max(axis=1)
        return np.stack((10 * slowest_s, pieces.sum(axis=1) / 10, megabytes.sum(axis=1), np.ones(len(shares))), axis=1)


def _blocks_to_learn_from(entries: Sequence[BlockEntry]) -> int:
    """Return the number of first blocks from which as much is learned as from all: they are large if all are."""
    sizes = np.cumsum([entry.block_len for entry in entries])
    return 1 + int(np.argmax(sizes >= LARGE_BYTES)) if sizes[-1] >= LARGE_BYTES else 1


def _rounds(pieces: Number) -> Number:
    """Return how many round trips a satellite's shares of so many blocks take: lanes work side by side."""
    return -(-pieces // defaults.HOST_LANES)


def _prefill(before: int, tokens: ArrayLike, begins: int) -> Numbers:
    """Return the features of computing tokens: their number, what they attend to, and whether a prefill begins."""
    tokens = np.asarray(tokens, dtype=np.float64)
    return np.array([tokens / _TOKENS, tokens * (before + tokens / 2) / _TOKENS_SQUARED, np.full_like(tokens, begins)])


def _at(numbers: Numbers | None, index: int) -> float | None:
    return None if numbers is None else float(numbers[index])
