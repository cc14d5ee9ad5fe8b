"""Forgetting blocks, here and on the satellites, wherever a share of them may be.

Who is asked next, and when a block counts as gone, the core decides (`sky_clearing.h`). So that another block can be put under a
key, one request is enough where all servers would be told otherwise (`make_way`).
"""

import ctypes
from collections.abc import Callable, Collection, Sequence

from skymemory.block_entry import BlockEntry
from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.ask import is_confirmed
from skymemory.link.control import ControlPlane, Purged
from skymemory.link.native import library
from skymemory.link.structures import Cleared, ClearStep
from skymemory.link.structures import Clearing as CoreClearing
from skymemory.placement.window import Route
from skymemory.reach import Reach


class _Block:
    """A block that is being purged."""

    def __init__(self, key: bytes, *, is_way_made: bool) -> None:
        self.key = key
        self.chunks = 0
        """given up so far"""
        self._core, self._raw = library(), CoreClearing()
        self._at = ctypes.byref(self._raw)
        self._core.SKY_Clearing_Init(self._at, is_way_made)

    def next(self) -> ClearStep:
        """What comes next. `LOOK` counts as done when this is called again."""
        return ClearStep(self._core.SKY_Clearing_Next(self._at))

    def told(self, cleared: Cleared, *, is_over: bool) -> None:
        """Those of the step were asked. `is_over`: no handover goes on."""
        self.chunks += cleared.chunks
        self._core.SKY_Clearing_Told(self._at, ctypes.byref(cleared), is_over)

    @property
    def purged(self) -> Purged:
        """What became of it."""
        return Purged(self.chunks, self._raw.is_confirmed)


class Clearing:
    """Thread-safe."""

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

    def routes(self, keys: Sequence[bytes]) -> list[Route]:
        """Return routes to every place that a share of these blocks may have, as far as the schedule says."""
        return self._reach.all_routes(entry.epoch for key in keys if (entry := self._index.get(key)) is not None)

    def forget(self, keys: Sequence[bytes], routes: Sequence[Route], patience_s: float | None = None) -> Purged:
        """Forget blocks here, and purge them at the ends of these routes."""
        cleared = self._clear(keys, routes, patience_s)
        if routes:
            self._count(purges=len(keys))
        return Purged(sum(one.chunks for one in cleared), all(map(is_confirmed, cleared)))

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks wherever they may be; once more those of which a satellite said nothing."""
        blocks = self._run(keys, is_way_made=False)
        return Purged(sum(one.chunks for one in blocks), all(one.confirmed for one in blocks))

    def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        return self._run(keys, is_way_made=True)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _run(self, keys: Sequence[bytes], *, is_way_made: bool) -> list[Purged]:
        entries = {key: self._index.get(key) for key in keys}  # in a moment the index has forgotten them
        epochs = {entry.epoch for entry in entries.values() if entry is not None}
        blocks = [_Block(key, is_way_made=is_way_made) for key in keys]
        routes: list[Route] = []
        while left := [(one, step) for one in blocks if (step := one.next()) is not ClearStep.END]:
            _, step = left[0]  # they are all as far
            some = [one for one, _ in left]
            if step is ClearStep.LOOK:
                self._reach.look({route.satellite for route in routes})
                continue
            if step is ClearStep.FIRST:
                each = self._clear_first_shares([(one.key, entries[one.key]) for one in some])
                is_over = self._handovers.look().is_over
            else:
                routes = list(dict.fromkeys([*self._reach.all_routes(epochs), *self._handovers.routes()]))
                each, is_over = self._clear([one.key for one in some], routes), True
            for one, cleared in zip(some, each, strict=True):
                one.told(cleared, is_over=is_over)
        if is_way_made or routes:
            self._count(purges=len(keys))
        return [one.purged for one in blocks]

    def _clear(self, keys: Collection[bytes], routes: Sequence[Route], patience_s: float | None = None) -> list[Cleared]:
        """Forget blocks here, and purge them at the ends of these routes; nothing is confirmed if there are none."""
        for key in keys:
            self._index.remove(key)
        if not keys or not routes:
            return [Cleared() for _ in keys]  # what nobody is asked for may still be there
        patience_s = self._control.patience_s(routes) if patience_s is None else patience_s
        cleared = self._control.purge_each([(key, routes) for key in keys], self._tenant, patience_s)
        for key in keys:  # a lookup beside this call may have found what was not purged yet
            self._index.remove(key)
        return cleared

    def _clear_first_shares(self, blocks: Sequence[tuple[bytes, BlockEntry | None]]) -> list[Cleared]:
        """Purge the first server's shares of blocks, wherever they may be, and forget the blocks here.

        Chunk 0 of every block is there, so what is put next shares no first chunk with what was there before. Whoever is asked
        first in a lookup gives up its share as well, so that nobody is told of the old block.

        Returns:
            For each block what was purged; nothing, and not confirmed, if no satellite can be asked now.
        """
        ways = {epoch: self._reach.ways(epoch) for epoch in {0, *(entry.epoch for _, entry in blocks if entry is not None)}}
        first = {epoch: one.places[0] for epoch, one in ways.items() if one is not None}
        if len(first) < len(ways):
            return [Cleared() for _ in blocks]
        asked = self._reach.lookup_routes()
        places = []
        for key, entry in blocks:
            self._index.remove(key)
            places.append((key, list(dict.fromkeys((*first[0], *asked, *(first[entry.epoch] if entry is not None else ()))))))
        routes = list(dict.fromkeys((*asked, *(route for one in first.values() for route in one))))
        return self._control.purge_each(places, self._tenant, self._control.patience_s(routes))
