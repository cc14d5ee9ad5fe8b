"""`skymem bench spread`: measures how evenly small values and blocks lie on the servers of a sky.

Where many of them would lie is computed by the functions that satellites and hosts call, for keys as the gateway makes them. Some
are stored in a constellation, to see that they lie there.
"""

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from skymemory.common.progress import Progress, no_progress
from skymemory.link.stripe import cut
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import offset_of
from skymemory.sky.placement.structures import Stripe
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import ValueKeys, block_length
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port

VALUES: Final = 100_000
VALUE_BYTES: Final = 100
BLOCKS: Final = 2_000
BLOCK_BYTES: Final = 1_000_000
STORED: Final = 1_000
_SECRET: Final = bytes(32)
_WAIT_S: Final = 10.0
_CALL: Final = 250
"""Values that are stored by one call."""


def run_spread_bench(
    constellation: Constellation,
    values: int = VALUES,
    blocks: int = BLOCKS,
    stored: int = STORED,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Compute how many bytes of many values and blocks lie on each server, and store some values to compare.

    Args:
        constellation: The constellation; it is started at a port of its own.
        values: Number of values of 100 bytes.
        blocks: Number of blocks of 1 MB.
        stored: Number of values that are stored.
        progress: Called now and then with values stored and values in all.

    Returns:
        `rows`: for values and blocks their number, the bytes on each server, and the coefficient of variation in percent.
        `stored`: chunks on each server of the values that were stored, as satellites say and as computed.

    Raises:
        StartError: The constellation does not start.
        RuntimeError: A value could not be stored.
    """
    keys = ValueKeys(_SECRET)
    rows = [
        {"what": what, "number": number, "block_bytes": size} | _spread(constellation, _names(keys, number), size)
        for what, number, size in (
            ("values", values, block_length(VALUE_BYTES, 0)),
            ("blocks", blocks, BLOCK_BYTES),
        )
    ]
    return {"servers": constellation.cache.servers, "rows": rows, "stored": _store(constellation, keys, stored, progress)}


def _names(keys: ValueKeys, number: int) -> Iterable[bytes]:
    return (keys.key_of(f"value {index}") for index in range(number))


def _stripe(constellation: Constellation, block_len: int) -> Stripe:
    cache = constellation.cache
    return cut(block_len, min(cache.chunk_bytes, block_len), cache.servers, cache.parity)


def _share_bytes(stripe: Stripe, servers: int) -> Sequence[int]:
    """Return the bytes of each share of a block. A parity chunk is as long as the first chunk of its row."""
    sizes = [0] * servers
    data, width = 0, stripe.code_k + stripe.code_m or stripe.chunk_total
    for first in range(0, stripe.chunk_total, width):
        count = min(width, stripe.chunk_total - first) - stripe.code_m
        lengths = [min(stripe.chunk_len, stripe.block_len - stripe.chunk_len * (data + at)) for at in range(count)]
        data += count
        for at, length in enumerate([*lengths, *[lengths[0]] * stripe.code_m]):
            sizes[(first + at) % servers] += length
    return sizes


def _spread(constellation: Constellation, keys: Iterable[bytes], block_len: int) -> dict[str, Any]:
    """Return the bytes that blocks of a length have on each server, and their coefficient of variation in percent."""
    servers, stripe = constellation.cache.servers, _stripe(constellation, block_len)
    own = _share_bytes(stripe, servers)
    begins = [0] * servers  # blocks whose share 0 is at this server
    for key in keys:
        begins[offset_of(key, stripe.chunk_total, servers)] += 1
    sizes = [sum(begins[(server - share) % servers] * own[share] for share in range(servers)) for server in range(servers)]
    return {"bytes": sizes, "variation_percent": round(100 * statistics.pstdev(sizes) / statistics.mean(sizes), 3)}


def _store(constellation: Constellation, keys: ValueKeys, number: int, progress: Progress) -> dict[str, list[int]]:
    """Store values, and return the chunks on each server as its satellite says, and as computed."""
    sky = constellation.replace(network={"port": free_port(constellation)})
    block = bytes(block_length(VALUE_BYTES, 0))
    total, servers = _stripe(sky, len(block)).chunk_total, sky.cache.servers
    names = list(_names(keys, number))
    computed = [0] * servers
    for key in names:
        for share in range(min(total, servers)):
            computed[(offset_of(key, total, servers) + share) % servers] += len(range(share, total, servers))
    with LocalConstellation(sky), SkyStore(sky, tenant_secret=_SECRET) as store:
        for first in range(0, number, _CALL):
            progress(first, number)
            values = [(key, block) for key in names[first : first + _CALL]]
            results = store.put(values)
            if any(one.lost for one in results):  # a satellite was silent: what it lacks goes to who stands in for it
                results = store.put(values)
            if not all(one.ok for one in results):
                raise RuntimeError(f"a value was not stored: {next(one.status for one in results if not one.ok)}")
        routes = [Route(one, one) for one in Whereabouts(sky).servers(0)]
        end_s = time.monotonic() + _WAIT_S
        said: list[int] = []
        while said != computed and time.monotonic() < end_s:  # stand-ins hand over within seconds
            stats = store.control.store_stats(routes, _WAIT_S)
            said = [stats[one.satellite]["chunks"] for one in routes]
    return {"said": said, "computed": computed}
