"""Satellites of a block's shares, by the product's rule."""

from skymemory.link.stripe import cut
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.spread import by_share, offset_of
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire.address import Satellite


def shares_of(sky: Constellation, key: bytes, block_len: int = 1, servers: list[Satellite] | None = None) -> list[Satellite]:
    """Return the satellites of shares 0 to n - 1 of a block; by default those of the servers of a sky that stands still.

    A block has as many shares as it has chunks, and n at most.
    """
    cache = sky.cache
    stripe = cut(block_len, min(cache.chunk_bytes, block_len), cache.servers, cache.parity)
    return [*by_share(servers or Whereabouts(sky).servers(0), offset_of(key, stripe.chunk_total, cache.servers))]
