"""Is what this host knows still there? Satellites evict blocks, or start anew, and tell nobody.

Before somebody counts on a chain of blocks a few of them are asked for, in one exchange. Nobody waits for that longer than an
answer takes: without one what is known counts, and who has not answered is left alone for a while. If nobody has, it may be this
host that stood still, so that happens only the second time. What silence means is for `Reach` to judge.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from skymemory.attempts import Denied
from skymemory.block_entry import BlockEntry
from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.control import ControlPlane
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route
from skymemory.reach import Reach

QUIET_TIMES: Final = 100
"""who does not answer is not asked for so many times as long as was waited for it: that costs a hundredth of the time at most"""
_WHOLE_MAX: Final = 16
"""blocks of an exchange for which all servers are asked"""


class Checked(NamedTuple):
    """What is there of some chains."""

    there: list[list[BlockEntry]]
    """of each its beginning, as far as is known"""
    denied: dict[bytes, Denied]
    """what is known of blocks that are not whole, by their keys"""


class Presence:
    """Asks the satellites. Thread-safe: one check at a time, so who waits knows then who is silent."""

    def __init__(
        self,
        index: RadixIndex,
        reach: Reach,
        handovers: Handovers,
        control: ControlPlane,
        tenant: int,
        count: Callable[..., None],
    ) -> None:
        """`count`: takes counts by the names of `StoreStatistics`."""
        self._index = index
        self._reach = reach
        self._handovers = handovers
        self._control = control
        self._tenant = tenant
        self._count = count
        self._lazy_purge = control.constellation.cache.lazy_purge
        self._quiet: dict[Satellite, float] = {}  # until when they are not asked
        self._heard = True  # somebody, when satellites were asked last
        self._turn = Lock()

    def check(self, chains: Sequence[Sequence[BlockEntry]]) -> Checked:
        """How much of the chains is there?

        Satellites evict what was not moved for the longest time. So all servers are asked for that block of each chain. Of its
        first and its last block, which other hosts may have used otherwise, the first server is asked for its share: no server
        has more chunks than that, nor evicts sooner. Where one is gone, all before it are asked for, and at all servers.
        """
        gone: dict[bytes, Denied] = {}
        if self._reach.silent:
            return Checked([list(chain) for chain in chains], gone)
        with self._turn:
            samples: dict[bytes, BlockEntry] = {}
            whole: set[bytes] = set()
            for chain in chains:
                if (stalest := self._index.stalest(chain)) is not None:
                    samples |= {entry.key: entry for entry in (stalest, chain[0], chain[-1])}
                    whole |= {stalest.key} if len(whole) < _WHOLE_MAX else set()
            gone |= self._ask(samples.values(), whole)
            there = []
            for chain in chains:
                left = _beginning(chain, gone)
                if len(left) < len(chain):
                    gone |= self._first_gone([entry for entry in left if entry.key not in whole])
                there.append(_beginning(left, gone))
        return Checked(there, gone)

    def awake(self, routes: Iterable[Route]) -> list[Route]:
        """Those to satellites that were not silent lately."""
        now_s = time.monotonic()
        return [route for route in routes if self._quiet.get(route.satellite, 0.0) <= now_s]

    def _first_gone(self, entries: Sequence[BlockEntry]) -> dict[bytes, Denied]:
        """Ask all servers for blocks, some at a time, until one is not whole."""
        for first in range(0, len(entries), _WHOLE_MAX):
            some = entries[first : first + _WHOLE_MAX]
            if gone := self._ask(some, {entry.key for entry in some}):
                return gone
        return {}

    def _ask(self, entries: Collection[BlockEntry], everywhere: Collection[bytes]) -> dict[bytes, Denied]:
        """Ask for blocks. Returns those that are not whole (`Checked.denied`).

        `everywhere`: blocks for which all servers are asked; for the others the first one is.
        """
        late = self._handovers.look(hurry=True)
        if not late.is_over:
            return {}  # what is missed may be on its way
        blocks = []
        asked: set[Route] = set()
        ways = {epoch: self._reach.ways(epoch) for epoch in {entry.epoch for entry in entries}}
        for entry in entries:
            if (way := ways[entry.epoch]) is None:
                return {}
            places: list[Sequence[Route]] = []
            for server, place in enumerate(way.places):
                is_asked = server < (entry.chunk_total if entry.key in everywhere else 1)
                # Of a share that may be at several places nobody can say that it is gone while one of them is silent
                places.append(place if is_asked and len(self.awake(place)) == len(place) else ())
            asked.update(route for place in places for route in place)
            blocks.append((entry, places))
        if not asked:
            return {}
        patience_s = self._control.hurry_s(asked)
        told = self._control.held(blocks, self._tenant, patience_s)
        silent = {satellite for one in told for satellite in one.silent}
        first = {place[0].satellite for _, places in blocks for place in places if place}
        before, self._heard = self._heard, not first <= silent
        if self._heard or not before:
            self._quiet |= dict.fromkeys(silent, time.monotonic() + QUIET_TIMES * patience_s)
        self._count(questions=len(blocks))
        gone = {}
        for (entry, _), one in zip(blocks, told, strict=True):
            way = ways[entry.epoch]
            if one.whole is False and way is not None and not self._reach.has_moved(way, entry.epoch):
                gone[entry.key] = Denied(
                    at_stand_in=bool(way.replaced), is_certain=late.is_certain, is_other=one.other, lazy_purge=self._lazy_purge
                )
        return gone


def _beginning(chain: Sequence[BlockEntry], gone: Collection[bytes]) -> list[BlockEntry]:
    end = next((index for index, entry in enumerate(chain) if entry.key in gone), len(chain))
    return list(chain[:end])
