"""Is what this host knows still there? Satellites evict blocks, or start anew, and tell nobody.

Before somebody counts on a chain of blocks a few of them are asked for, in one exchange. Nobody waits for that longer than an
answer takes: without one what is known counts, and who has not answered is left alone for a while. Who is asked and who is left
alone the core decides (`sky_presence.h`), and what the answers mean (`sky_held.h`, `sky_attempts.h`).
"""

import ctypes
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from skymemory.attempts import Denied, Verdict, verdict_of
from skymemory.block_entry import BlockEntry
from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.control import ControlPlane
from skymemory.placement import structures
from skymemory.placement.core import core_torus, library, to_core
from skymemory.placement.window import Route
from skymemory.reach import Reach

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
        torus = control.constellation.torus
        self._core, self._state = library(), structures.Presence()
        self._at = ctypes.byref(self._state)
        self._satellites = (structures.PresenceSatellite * (torus.planes * torus.slots))()  # the core's memory
        self._core.SKY_Presence_Init(self._at, ctypes.byref(core_torus(torus)), self._satellites)
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
        now_us = _now_us()
        return [one for one in routes if self._core.SKY_Presence_IsAwake(self._at, now_us, structures.Addr(*one.satellite))]

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
        blocks: list[tuple[BlockEntry, list[Sequence[Route]]]] = []
        ways = {epoch: self._reach.ways(epoch) for epoch in {entry.epoch for entry in entries}}
        now_us = _now_us()
        for entry in entries:
            if (way := ways[entry.epoch]) is None:
                return {}
            is_all = entry.key in everywhere
            shares = [(entry.chunk_total, server, is_all, place) for server, place in enumerate(way.places)]
            blocks.append((entry, [one[-1] if self._asks(now_us, *one) else () for one in shares]))
        asked = {route for _, places in blocks for place in places for route in place}
        if not asked:
            return {}
        patience_s = self._control.hurry_s(asked)
        told = self._control.held(blocks, self._tenant, patience_s)
        silent = to_core({satellite for one in told for satellite in one.silent})
        first = to_core({place[0].satellite for _, places in blocks for place in places if place})
        waited_us = round(1e6 * patience_s)
        self._core.SKY_Presence_Told(self._at, _now_us(), waited_us, first, len(first), silent, len(silent))
        self._count(questions=len(blocks))
        gone = {}
        for (entry, _), one in zip(blocks, told, strict=True):
            way = ways[entry.epoch]
            if one.whole is False and way is not None:
                denied = Denied(
                    has_moved=self._reach.has_moved(way, entry.epoch),
                    at_stand_in=bool(way.replaced),
                    is_certain=late.is_certain,
                    is_other=one.other,
                    lazy_purge=self._lazy_purge,
                )
                if verdict_of(denied) is not Verdict.KEEP:
                    gone[entry.key] = denied
        return gone

    def _asks(self, now_us: int, chunk_total: int, server: int, is_all: bool, place: Sequence[Route]) -> bool:
        """Is a server to be asked for its share of a block? `is_all`: all servers that have one are."""
        satellites = to_core(route.satellite for route in place)
        return bool(self._core.SKY_Presence_Asks(self._at, now_us, chunk_total, server, is_all, satellites, len(place)))


def _now_us() -> int:
    """Time of the core's clock."""
    return round(1e6 * time.monotonic())


def _beginning(chain: Sequence[BlockEntry], gone: Collection[bytes]) -> list[BlockEntry]:
    end = next((index for index, entry in enumerate(chain) if entry.key in gone), len(chain))
    return list(chain[:end])
