"""Forgetting blocks, here and on the satellites, wherever a share of them may be.

So that another block can be put under a key, one request is enough where all servers would be told otherwise (`make_way`).
"""

from collections.abc import Callable, Sequence

from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.control import Cleared, ControlPlane, Purged
from skymemory.placement.window import Route
from skymemory.reach import Reach


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
        for key in keys:
            self._index.remove(key)
        if not keys or not routes:
            return Purged(0, not keys)  # what nobody is asked for may still be there
        patience_s = self._control.patience_s(routes) if patience_s is None else patience_s
        removed = self._control.purge(routes, keys, self._tenant, patience_s)
        for key in keys:  # a lookup beside this call may have found what was not purged yet
            self._index.remove(key)
        self._count(purges=len(keys))
        return removed

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks wherever they may be; once more if a satellite was silent and is taken for lost."""
        routes = list(dict.fromkeys([*self.routes(keys), *self._handovers.routes()]))
        purged = self.forget(keys, routes)
        if purged.confirmed:
            return purged
        self._reach.look({route.satellite for route in routes})
        again = self.forget(keys, self.routes(keys))
        return Purged(purged.chunks + again.chunks, again.confirmed)

    def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        cleared = self._clear_first_shares(keys)
        self._count(purges=len(keys))
        is_over = self._handovers.look().is_over
        rest = [key for key, one in zip(keys, cleared, strict=True) if one.more or not one.confirmed or not is_over]
        confirmed = not rest or self.purge(rest).confirmed
        left = set() if confirmed else set(rest)
        return [Purged(one.chunks, key not in left) for key, one in zip(keys, cleared, strict=True)]

    def _clear_first_shares(self, keys: Sequence[bytes]) -> list[Cleared]:
        """Purge the first server's shares of blocks, wherever they may be, and forget the blocks here.

        Chunk 0 of every block is there, so what is put next shares no first chunk with what was there before. Whoever is asked
        first in a lookup gives up its share as well, so that nobody is told of the old block.

        Returns:
            For each key what was purged; nothing, and not confirmed, if no satellite can be asked now.
        """
        entries = [self._index.get(key) for key in keys]
        ways = {epoch: self._reach.ways(epoch) for epoch in {0, *(entry.epoch for entry in entries if entry is not None)}}
        first = {epoch: one.places[0] for epoch, one in ways.items() if one is not None}
        if len(first) < len(ways):
            return [Cleared(0, False, False) for _ in keys]
        asked = self._reach.lookup_routes()
        blocks = []
        for key, entry in zip(keys, entries, strict=True):
            self._index.remove(key)
            blocks.append((key, list(dict.fromkeys((*first[0], *asked, *(first[entry.epoch] if entry is not None else ()))))))
        routes = list(dict.fromkeys((*asked, *(route for places in first.values() for route in places))))
        return self._control.purge_each(blocks, self._tenant, self._control.patience_s(routes))
