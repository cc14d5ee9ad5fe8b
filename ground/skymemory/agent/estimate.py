"""Fetch or recompute? How long a get will take, how long the engine would compute instead, and so what is worth fetching.

What comes back from the sky is worth fetching only where that is faster than computing it (paper, section 2: the latencies of
its table 1 are the motive). Both are learned from what is measured, and from nothing else:

    satellite   round trips + its bytes          of each satellite; the slowest share decides
    get         of that, shares, bytes, and 1    what the host adds: packets, calls, threads
    prefill     tokens + tokens x position + 1   of each engine; attention looks at all that was before

What waits in the agent comes on top. All costs are positive, so more blocks are never estimated to be faster. Of a
get it is the median that is estimated: if a lost packet doubles some of them, that is not expected, and if most, it is.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal

import numpy as np

from skymemory import defaults
from skymemory.agent.fit import Fit, MedianFit, Numbers
from skymemory.block_entry import BlockEntry
from skymemory.link.native import Served
from skymemory.placement.torus import Satellite

EXPLORE_SHARE: Final = 0.02
"""of the time that computing takes may be spent on finding out whether fetching has become faster"""
FADE_S: Final = 60.0
"""after so long without a get half of what is known against it has faded: links change"""
_EXPLORE_BLOCKS: Final = 1
_TOKENS: Final = 1e3
_TOKENS_SQUARED: Final = 1e9
"""features are small numbers"""
_ENGINES_MAX: Final = 256
_LEARN_ALWAYS: Final = 32
"""gets; of later ones that are small (`_SMALL_BYTES`) one is learned from every `_LEARN_S`: there is other work to do"""
_LEARN_S: Final = 0.02
_SMALL_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with the blocks that were found."""

    fetch: int
    """how many, from the first one"""
    fetch_s: float | None
    """estimate for fetching these, or all if none is to be fetched; None: unknown"""
    recompute_s: float | None
    """estimate for computing the same blocks instead; None: unknown"""
    kind: Literal["fetch", "recompute", "explore"]
    """`explore`: to find out how long it takes"""


class Estimator:
    """Of one agent. Thread-safe; no I/O."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.waiting: Callable[[], Sequence[BlockEntry]] = lambda: ()
        """tells of the blocks that wait for the get that runs; they go into one call with what is asked next"""
        self._clock = clock
        self._lock = Lock()
        self._engines: dict[str, Fit] = {}
        self._credit_s = 0.0
        self.forget_sky()

    def forget_sky(self) -> None:
        """There is another constellation now."""
        with self._lock:
            self._servers: tuple[Satellite, ...] = ()
            self._deadline_s = math.inf
            self._rtt_s: dict[Satellite, float] = {}
            self._satellites: dict[Satellite, Fit] = {}
            self._any = Fit(2)
            """of all satellites, for one that has not served yet"""
            self._calls = MedianFit(4)
            self._learned_s = -math.inf
            self._fetched_s = -math.inf
            self._running: tuple[Sequence[BlockEntry], float] | None = None
            """blocks of the call that runs, and since when"""

    # ---- what was measured ------------------------------------------------------------------------------------------

    def placed(self, servers: Sequence[Satellite], deadline_s: float = math.inf) -> None:
        """Where servers 0 to n - 1 are now, and when a get ends without what has not come until then."""
        with self._lock:
            self._servers = tuple(servers)
            self._deadline_s = deadline_s

    def links(self, rtt_s: Mapping[Satellite, float]) -> None:
        """Round trips of satellites that answered a question."""
        with self._lock:
            self._rtt_s.update(rtt_s)

    def begun(self, entries: Sequence[BlockEntry]) -> None:
        """A call that gets these blocks begins."""
        with self._lock:
            self._running = entries, self._clock()

    def ended(self) -> None:
        """The call that ran has ended."""
        with self._lock:
            self._running = None

    def learn(self, entries: Sequence[BlockEntry], served: Sequence[Served], duration_s: float) -> float | None:
        """What a get took whose blocks came whole in one call, and what each satellite did for that; takes a while itself.

        Returns:
            How long it should have taken by what was known before; None: that was nothing, or it is one of too many small gets.
        """
        now_s = self._clock()
        with self._lock:
            if not entries or not self._servers:
                return None
            self._fetched_s = now_s
            if self._is_sated(entries, now_s):
                return None
            self._learned_s = now_s
            expected_s = self._call_s(entries)
            shares = _shares(entries, len(self._servers))
            self._learn_satellites(dict(zip(self._servers, shares, strict=True)), served)
            self._calls.learn(self._work(shares), duration_s)
            return expected_s

    def prefilled(self, engine: str, tokens: int, duration_s: float, before: int = 0) -> None:
        """An engine has computed tokens.

        Args:
            engine: whatever computes as fast as itself: one model on one machine.
            tokens: of one prompt.
            before: tokens of that prompt that it had already.
        """
        with self._lock:
            if engine not in self._engines and len(self._engines) >= _ENGINES_MAX:
                self._engines.pop(next(iter(self._engines)))
            fit = self._engines.setdefault(engine, Fit(3))
            fit.learn(_prefill(before, tokens, 1), duration_s)

    # ---- what is to be expected -------------------------------------------------------------------------------------

    def fetch_s(self, entries: Sequence[BlockEntry]) -> float | None:
        """How long a get of these blocks would take from now on, what waits before it included; None: nobody knows yet."""
        waiting = self.waiting()
        with self._lock:
            if not entries:
                return 0.0
            expected_s = self._call_s([*waiting, *entries])
            return None if expected_s is None else self._ahead_s() + expected_s

    def recompute_s(self, engine: str, tokens_before: int, tokens: int) -> float | None:
        """How much longer an engine would compute if it had to compute these tokens as well; None: nobody knows yet."""
        with self._lock:
            fit = self._engines.get(engine)
            return None if fit is None or not fit.knows else fit.duration_s(_prefill(tokens_before, tokens, 0))

    def prefill_s(self, engine: str, tokens: int, before: int = 0) -> float | None:
        """How long a prefill takes as a whole, with what it costs to begin one; None: nobody knows yet."""
        with self._lock:
            fit = self._engines.get(engine)
            return None if fit is None or not fit.knows else fit.duration_s(_prefill(before, tokens, 1))

    def worth(self, engine: str, entries: Sequence[BlockEntry], tokens_before: int, block_tokens: int) -> Decision:
        """How many of the blocks that were found are worth fetching: as many as make the wait for all of them shortest.

        What would not come before the deadline is not. What is not known is tried: a few gets tell how long they take. Where
        computing is faster a block is fetched now and then all the same, for links change; that costs no more than a fiftieth of
        the time of computing.

        Args:
            engine: as told to `prefilled`.
            entries: of the blocks, in the order of the prompt.
            tokens_before: that the engine has itself.
            block_tokens: tokens of a block.
        """
        count = len(entries)
        if count == 0:
            return Decision(0, None, None, "fetch")
        waiting = self.waiting()
        with self._lock:
            ahead_s = self._ahead_s()
            fetch_s = self._fetch_each_s(waiting, entries, ahead_s)
            fit = self._engines.get(engine)
            tokens = np.arange(count + 1) * block_tokens
            compute_s = None
            if fit is not None and fit.knows:
                token_s, attend_s, _ = fit.costs
                compute_s = tokens / _TOKENS * token_s + tokens * (tokens_before + tokens / 2) / _TOKENS_SQUARED * attend_s
            if fetch_s is None:
                return Decision(count, None, _at(compute_s, count), "explore")
            if compute_s is None:
                return Decision(count, float(fetch_s[count]), None, "fetch")
            # Of the blocks behind those that are fetched each is computed
            total_s = fetch_s + (compute_s[count] - compute_s)
            total_s[fetch_s - ahead_s > self._deadline_s] = math.inf
            best = count - int(np.argmin(total_s[::-1]))
            if best > 0:
                return Decision(best, float(fetch_s[best]), float(compute_s[best]), "fetch")
            if self._explores(fetch_s, compute_s):
                few = min(_EXPLORE_BLOCKS, count)
                return Decision(few, float(fetch_s[few]), float(compute_s[few]), "explore")
            return Decision(0, float(fetch_s[count]), float(compute_s[count]), "recompute")

    # ---- inside, with the lock held ---------------------------------------------------------------------------------

    def _explores(self, fetch_s: Numbers, compute_s: Numbers) -> bool:
        """Is it time to see whether fetching has become faster? What is known against it fades with time."""
        few = min(_EXPLORE_BLOCKS, len(fetch_s) - 1)
        cost_s = max(0.0, float(fetch_s[few] - compute_s[few]))
        cost_s *= 0.5 ** min((self._clock() - self._fetched_s) / FADE_S, 1000.0)
        self._credit_s = min(self._credit_s + EXPLORE_SHARE * float(compute_s[-1]), max(cost_s, EXPLORE_SHARE))
        if self._credit_s < cost_s:
            return False
        self._credit_s -= cost_s
        return True

    def _is_sated(self, entries: Sequence[BlockEntry], now_s: float) -> bool:
        return (
            self._calls.samples >= _LEARN_ALWAYS
            and now_s - self._learned_s < _LEARN_S
            and sum(entry.block_len for entry in entries) < _SMALL_BYTES
        )

    def _learn_satellites(self, shares: Mapping[Satellite, tuple[int, int]], served: Sequence[Served]) -> None:
        for one in served:
            self._rtt_s[one.satellite] = one.rtt_s or self._rtt_s.get(one.satellite, 0.0)
            pieces, length = shares.get(one.satellite, (0, 0))
            if one.bytes == length > 0 and one.last_s is not None:  # nothing of it came from elsewhere
                work = _rounds(pieces), length / 1e6
                self._satellites.setdefault(one.satellite, Fit(2)).learn(work, one.last_s)
                self._any.learn(work, one.last_s)

    def _ahead_s(self) -> float:
        """Of the call that runs."""
        if self._running is None:
            return 0.0
        entries, began_s = self._running
        return max(0.0, began_s + (self._call_s(entries) or 0.0) - self._clock())

    def _costs(self, satellite: Satellite) -> tuple[float, float]:
        """Of a round trip and of a megabyte."""
        fit = self._satellites.get(satellite)
        if fit is not None:
            return fit.costs[0], fit.costs[1]
        return self._rtt_s.get(satellite) or self._any.costs[0], self._any.costs[1]

    def _call_s(self, entries: Sequence[BlockEntry]) -> float | None:
        if not self._calls.knows or not self._servers:
            return None
        return self._calls.duration_s(self._work(_shares(entries, len(self._servers))))

    def _work(self, shares: Sequence[tuple[int, int]]) -> tuple[float, float, float, float]:
        """Of a call: the features that its duration is made of."""
        slowest_s = 0.0
        for satellite, (pieces, length) in zip(self._servers, shares, strict=True):
            if pieces:
                round_s, megabyte_s = self._costs(satellite)
                slowest_s = max(slowest_s, round_s * _rounds(pieces) + megabyte_s * length / 1e6)
        pieces = sum(pieces for pieces, _ in shares)
        length = sum(length for _, length in shares)
        return 10 * slowest_s, pieces / 10, length / 1e6, 1.0

    def _fetch_each_s(self, waiting: Sequence[BlockEntry], entries: Sequence[BlockEntry], ahead_s: float) -> Numbers | None:
        """How long it takes to fetch the first k blocks, for each k from 0, after what runs and waits; of none it is nothing."""
        if not self._calls.knows or not self._servers:
            return None
        servers = len(self._servers)
        before = np.array(_shares(waiting, servers), dtype=np.float64)
        total = np.array([[entry.chunk_total] for entry in entries])
        chunk = np.array([[entry.chunk_len] for entry in entries])
        chunks = (total - np.arange(servers) + servers - 1) // servers
        length = chunks * chunk
        short = total * chunk - np.array([[entry.block_len] for entry in entries])  # by so much the last chunk is shorter
        length[np.arange(len(entries)), (total[:, 0] - 1) % servers] -= short[:, 0]
        pieces = before[:, 0] + np.cumsum(chunks > 0, axis=0)
        megabytes = (before[:, 1] + np.cumsum(length, axis=0)) / 1e6
        costs = np.array([self._costs(satellite) for satellite in self._servers])
        slowest_s = (np.ceil(pieces / defaults.HOST_LANES) * costs[:, 0] + megabytes * costs[:, 1]).max(axis=1)
        work = np.array([10 * slowest_s, pieces.sum(axis=1) / 10, megabytes.sum(axis=1), np.ones(len(entries))])
        return np.concatenate(([0.0], ahead_s + np.array(self._calls.costs) @ work))


def _shares(entries: Sequence[BlockEntry], servers: int) -> list[tuple[int, int]]:
    """Of each server the blocks of which it has a share, and their bytes: chunk i is at server i mod n (paper, section 3.1)."""
    pieces, lengths = [0] * servers, [0] * servers
    for entry in entries:
        whole, more = divmod(entry.chunk_total, servers)
        for server in range(min(entry.chunk_total, servers)):
            pieces[server] += 1
            lengths[server] += (whole + (server < more)) * entry.chunk_len
        lengths[(entry.chunk_total - 1) % servers] -= entry.chunk_total * entry.chunk_len - entry.block_len
    return list(zip(pieces, lengths, strict=True))


def _rounds(pieces: int) -> int:
    """Round trips that a satellite's shares wait for each other."""
    return -(-pieces // defaults.HOST_LANES)


def _prefill(before: int, tokens: int, begins: int) -> tuple[float, float, int]:
    """Features of computing tokens: their number, what they attend to, and that it begins."""
    return tokens / _TOKENS, tokens * (before + tokens / 2) / _TOKENS_SQUARED, begins


def _at(numbers: Numbers | None, index: int) -> float | None:
    return None if numbers is None else float(numbers[index])
