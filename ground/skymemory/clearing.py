"""Making way for another block under a key, with one request where all servers would be told otherwise."""

from collections.abc import Sequence

from skymemory.index.radix import RadixIndex
from skymemory.link.control import Cleared, ControlPlane
from skymemory.reach import Reach


def clear_first_shares(
    keys: Sequence[bytes], index: RadixIndex, reach: Reach, control: ControlPlane, tenant: int
) -> list[Cleared]:
    """Purge the first server's shares of blocks, wherever they may be, and forget the blocks here.

    Chunk 0 of every block is there, so what is put next shares no first chunk with what was there before. Whoever is asked
    first in a lookup gives up its share as well, so that nobody is told of the old block.

    Returns:
        For each key what was purged; nothing, and not confirmed, if no satellite can be asked now.
    """
    entries = [index.get(key) for key in keys]
    ways = {epoch: reach.ways(epoch) for epoch in {0, *(entry.epoch for entry in entries if entry is not None)}}
    first = {epoch: one.places[0] for epoch, one in ways.items() if one is not None}
    if len(first) < len(ways):
        return [Cleared(0, False, False) for _ in keys]
    asked = reach.lookup_routes()
    blocks = []
    for key, entry in zip(keys, entries, strict=True):
        index.remove(key)
        blocks.append((key, list(dict.fromkeys((*first[0], *asked, *(first[entry.epoch] if entry is not None else ()))))))
    routes = list(dict.fromkeys((*asked, *(route for places in first.values() for route in places))))
    return control.purge_each(blocks, tenant, control.patience_s(routes))
