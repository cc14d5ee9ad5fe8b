"""Purges of blocks, here and on the satellites, wherever a share of them may be.

The core decides who is asked next and when a block counts as gone (`sky_purge.h`). A full purge tells all servers. To put
another block under a key one request may be enough (`make_way`).
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from skymemory.link.ask import is_confirmed
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged, PurgeOrder
from skymemory.link.structures import PurgeAnswers
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import by_share, offset_of_key
from skymemory.store.decisions import PurgeStep, PurgeSteps
from skymemory.store.deletions import is_deletion
from skymemory.store.parts import Operation


class Purges(Operation):
    """Purges of one store. Thread-safe."""

    def routes(self, keys: Sequence[bytes]) -> list[Route]:
        """Return routes to every place that shares of these blocks may have by the schedule."""
        return self._routes.all_routes(entry.epoch for key in keys if (entry := self._index.get(key)) is not None)

    def forget(self, entries: Sequence[BlockEntry], routes: Sequence[Route], patience_s: float | None = None) -> Purged:
        """Forget blocks here, and purge them on the satellites of these routes.

        Spared are newer versions, other contents of the same version, and what is kept for a row to come that this host does not
        know of: another host may have put or prefetched it since this host asked.
        """
        epochs, row = {entry.epoch for entry in entries}, self._routes.row()
        orders = [PurgeOrder(one.key, routes, one.version, one.content, max(one.epoch, row)) for one in entries]
        cleared = self._clear(orders, routes, epochs, patience_s)
        if routes:
            self._count(purges=len(entries))
        return Purged(sum(one.chunks for one in cleared), all(map(is_confirmed, cleared)))

    def forget_older(self, entries: Sequence[BlockEntry]) -> None:
        """Purge older versions of blocks that were put now where a get would meet them first.

        A put replaces what is at its own satellites. A lookup also asks the satellite that is nearest, and while satellites hand
        over those of earlier rows. Nothing depends on the answers: a satellite that is silent now gives an older version up when
        it hands it over. After a deletion all servers are asked, so that the value's memory is free at once.
        """
        replacing = [one for one in entries if one.version > 1]
        now = self._routes.ways(0) if replacing else None
        if now is None:
            return
        servers = self._routes.to_servers()
        orders = []
        for one, asked in zip(replacing, self._routes.lookup_routes([one.key for one in replacing]), strict=True):
            first = now.places[offset_of_key(one.key, len(now.places))]
            new = one.by_share(servers)[: one.chunk_total]
            others = servers if is_deletion(one.block_len) else ()
            orders.append(PurgeOrder(one.key, [*{*asked, *first, *others}.difference(new)], one.version - 1))
        if routes := {route for one in orders for route in one.routes}:
            self._control.purge(orders, self._tenant, self._control.hurry_s(routes))

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks wherever they may be. The purge is repeated for blocks of which a satellite said nothing."""
        blocks = self._run(keys, is_way_made=False)
        return Purged(sum(one.chunks for one in blocks), all(one.confirmed for one in blocks))

    def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        return self._run(keys, is_way_made=True)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _run(self, keys: Sequence[bytes], *, is_way_made: bool) -> list[Purged]:
        entries = {key: self._index.get(key) for key in keys}  # the index forgets them below
        epochs = {entry.epoch for entry in entries.values() if entry is not None}
        blocks = [PurgeSteps(key, is_way_made=is_way_made) for key in keys]
        routes: list[Route] = []
        while left := [(one, step) for one in blocks if (step := one.next()) is not PurgeStep.END]:
            _, step = left[0]  # all blocks are at the same step
            some = [one for one, _ in left]
            if step is PurgeStep.LOOK:
                self._routes.look({route.satellite for route in routes})
                continue
            row, is_over = self._routes.row(), self._late_search.look().is_over
            if step is PurgeStep.FIRST:
                each = self._clear_first_shares([(one.key, entries[one.key]) for one in some])
            else:
                routes = list(dict.fromkeys([*self._routes.all_routes(epochs), *self._late_search.routes()]))
                each = self._clear([PurgeOrder(one.key, routes) for one in some], routes, epochs)
            is_same_row = self._routes.row() == row
            for one, cleared in zip(some, each, strict=True):
                one.told(cleared, is_over=is_over, is_same_row=is_same_row)
        if is_way_made or routes:
            self._count(purges=len(keys))
        return [one.purged for one in blocks]

    def _clear(
        self, orders: Sequence[PurgeOrder], routes: Sequence[Route], epochs: Iterable[int], patience_s: float | None = None
    ) -> list[PurgeAnswers]:
        """Forget blocks here, and purge them on the satellites of these routes. Without routes nothing is confirmed.

        Args:
            orders: The order for each block, for the satellites of these routes.
            routes: Routes to the satellites that are asked.
            epochs: The epochs of the blocks.
            patience_s: Seconds to wait for their answers; None for the usual time.
        """
        for one in orders:
            self._index.remove(one.key)
        if not orders or not routes:
            return [PurgeAnswers() for _ in orders]  # no satellite was asked, so the blocks may still be there
        patience_s = self._control.patience_s(routes) if patience_s is None else patience_s
        cleared = self._control.purge(orders, self._tenant, patience_s, self._routes.homes(epochs))
        for one in orders:  # a concurrent lookup may have found a block before it was purged
            self._index.remove(one.key)
        return cleared

    def _clear_first_shares(self, blocks: Sequence[tuple[bytes, BlockEntry | None]]) -> list[PurgeAnswers]:
        """Purge the shares of blocks of the servers that a lookup asks, wherever they may be, and forget the blocks here.

        The server of the key's offset has a share of every block. With parity it may be lost, but one of the m + 1 from it on
        has a chunk of each block that can be had. The satellites that a lookup asks first give up their shares as well, so that
        nobody is told of the old block.

        Returns:
            The result for each block. If no satellite can be asked now, nothing is purged and nothing is confirmed.
        """
        ways = {epoch: self._routes.ways(epoch) for epoch in {0, *(entry.epoch for _, entry in blocks if entry is not None)}}
        cache = self._where.constellation.cache
        found = {epoch: one.places for epoch, one in ways.items() if one is not None}
        if len(found) < len(ways):
            return [PurgeAnswers() for _ in blocks]
        orders = []
        for (key, entry), asked in zip(blocks, self._routes.lookup_routes([key for key, _ in blocks]), strict=True):
            self._index.remove(key)
            offset = offset_of_key(key, cache.servers)
            epochs = (0,) if entry is None else (0, entry.epoch)
            first = [chain(*by_share(found[epoch], offset)[: cache.parity + 1]) for epoch in epochs]
            orders.append(PurgeOrder(key, list(dict.fromkeys(chain(*first, asked)))))
        routes = list(dict.fromkeys(route for one in orders for route in one.routes))
        return self._control.purge(orders, self._tenant, self._control.patience_s(routes), self._routes.homes(ways))
