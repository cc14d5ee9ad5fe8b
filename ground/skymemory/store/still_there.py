"""Check that blocks in the local index are still there: satellites evict blocks or restart, and tell nobody.

Before a chain of blocks is relied on, satellites are asked for a few of its blocks, in one exchange. The check waits no longer
than an answer takes. Without an answer the index is believed, and the silent satellite is not asked again for a while. The core
decides who is asked (`sky_presence.h`) and what the answers mean (`sky_held.h`, `sky_transfer_attempts.h`).
"""

import ctypes
from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from skymemory.link.block_entry import BlockEntry
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import core_torus, library, to_core
from skymemory.store.decisions import Denied, Verdict, verdict_of
from skymemory.store.parts import Operation, StoreParts

_WHOLE_MAX: Final = 16
"""Most blocks of an exchange for which all servers are asked."""


class Checked(NamedTuple):
    """Result of a check of chains."""

    there: list[list[BlockEntry]]
    """The beginning of each chain that is still there as far as known."""
    denied: dict[bytes, Denied]
    """The blocks that are not whole: key, and facts for the verdict."""


class Checks(Operation):
    """Checks of one store. Thread-safe: one at a time, so that each knows which satellites were silent before."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._lazy_purge = self._where.constellation.cache.lazy_purge
        torus = self._where.constellation.torus
        self._core, self._state = library(), structures.Presence()
        self._at = ctypes.byref(self._state)
        self._satellites = (structures.PresenceSatellite * (torus.planes * torus.slots))()  # the core uses this memory
        self._core.SKY_Presence_Init(self._at, ctypes.byref(core_torus(torus)), self._satellites)
        self._turn = Lock()

    def check(self, chains: Sequence[Sequence[BlockEntry]]) -> Checked:
        """Return how much of each chain is still there.

        Satellites evict first the block that was not moved for the longest time, so all servers are asked for that block of each
        chain. Other hosts may have moved other blocks of it. So the server of share 0 is asked for the chain's first and last
        block: no share has more chunks, and no server evicts sooner. If a block is gone, all servers are asked for all blocks
        before it.
        """
        gone: dict[bytes, Denied] = {}
        if self._routes.silent:
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
        """Return the routes to satellites that were not silent lately."""
        now_us = self._control.timing.now_us()
        return [one for one in routes if self._core.SKY_Presence_IsAwake(self._at, now_us, structures.Addr(*one.satellite))]

    def _first_gone(self, entries: Sequence[BlockEntry]) -> dict[bytes, Denied]:
        """Ask all servers for blocks, some at a time, until blocks are found that are not whole, and return these."""
        for first in range(0, len(entries), _WHOLE_MAX):
            some = entries[first : first + _WHOLE_MAX]
            if gone := self._ask(some, {entry.key for entry in some}):
                return gone
        return {}

    def _ask(self, entries: Collection[BlockEntry], everywhere: Collection[bytes]) -> dict[bytes, Denied]:
        """Ask for blocks, and return those that are not whole (`Checked.denied`).

        All servers are asked for the blocks whose keys are in `everywhere`, and only the one of share 0 for the others.
        """
        late = self._late_search.look(hurry=True)
        if not late.is_over:
            return {}  # a missing share may be on its way
        blocks: list[tuple[BlockEntry, list[Sequence[Route]]]] = []
        replaced: list[Collection[int]] = []
        ways = {epoch: self._routes.ways(epoch) for epoch in {entry.epoch for entry in entries}}
        now_us = self._control.timing.now_us()
        for entry in entries:
            if (way := ways[entry.epoch]) is None:
                return {}
            is_all, servers = entry.key in everywhere, len(way.places)
            offset = entry.offset(servers)
            shares = [(entry.chunk_total, (server - offset) % servers, is_all, place) for server, place in enumerate(way.places)]
            blocks.append((entry, [one[-1] if self._asks(now_us, *one) else () for one in shares]))
            replaced.append(way.homes)
        asked = {route for _, places in blocks for place in places for route in place}
        if not asked:
            return {}
        patience_s = self._control.hurry_s(asked)
        told = self._control.held(blocks, self._tenant, patience_s, replaced)
        silent = to_core({satellite for one in told for satellite in one.silent})
        first = to_core({place[0].satellite for _, places in blocks for place in places if place})
        waited_us = round(1e6 * patience_s)
        self._core.SKY_Presence_Told(self._at, self._control.timing.now_us(), waited_us, first, len(first), silent, len(silent))
        self._count(questions=len(blocks))
        gone = {}
        for (entry, _), one in zip(blocks, told, strict=True):
            way = ways[entry.epoch]
            if one.whole is False and way is not None:
                denied = Denied(
                    has_moved=self._routes.has_moved(way, entry.epoch),
                    at_stand_in=not one.gone,
                    is_unsettled=one.unsettled,
                    is_certain=late.is_certain,
                    is_other=one.other,
                    lazy_purge=self._lazy_purge,
                )
                if verdict_of(denied) is not Verdict.KEEP:
                    gone[entry.key] = denied
        return gone

    def _asks(self, now_us: int, chunk_total: int, share: int, is_all: bool, place: Sequence[Route]) -> bool:
        """Return True if a share of a block is to be asked for. With `is_all` all shares are."""
        satellites = to_core(route.satellite for route in place)
        return bool(self._core.SKY_Presence_Asks(self._at, now_us, chunk_total, share, is_all, satellites, len(place)))


def _beginning(chain: Sequence[BlockEntry], gone: Collection[bytes]) -> list[BlockEntry]:
    end = next((index for index, entry in enumerate(chain) if entry.key in gone), len(chain))
    return list(chain[:end])
