"""The cut of a block into chunks over servers; the core decides (`sky_stripe.h`)."""

import ctypes
from functools import lru_cache

from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import library


@lru_cache(256)  # the blocks of a host have few lengths
def cut(block_len: int, chunk_len: int, servers: int, parity: int) -> structures.Stripe:
    """Return the stripe of a block over servers of which some hold parity. Others get the same object, so nobody changes it.

    Raises:
        ValueError: There is no such stripe.
    """
    stripe, code = structures.Stripe(), (servers - parity, parity) if parity else (0, 0)
    if not library().SKY_Stripe_Cut(ctypes.byref(stripe), block_len, chunk_len, *code):
        raise ValueError(
            f"block of {block_len} bytes in chunks of {chunk_len} over {servers} servers, {parity} of them with parity"
        )
    return stripe
