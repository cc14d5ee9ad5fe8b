"""Spread of blocks over servers, by the core's rule (`sky_spread.h`): share s of a block is at server (s + offset) mod n.

What belongs to servers lies in sequences, server 0 first. What the core takes for a block begins with share 0.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from skymemory.sky.placement.core_library import library

_T = TypeVar("_T")


@lru_cache(maxsize=4096)  # an operation asks several times
@lru_cache(maxsize=4096)
def offset_of(key: bytes, chunk_total: int, servers: int) -> int:
    """Return the server of share 0 of a block.

    Args:
        key: Key of the block, 32 bytes.
        chunk_total: Chunks of the block, parity included.
        servers: Number of servers.
    """
    return int(library().SKY_Spread_Offset(key, chunk_total, servers))


def by_share(of_servers: Sequence[_T], offset: int) -> Sequence[_T]:
    """Return what belongs to servers in the order of a block's shares."""
    return [*of_servers[offset:], *of_servers[:offset]] if offset else of_servers
