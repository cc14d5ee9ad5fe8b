"""Stragglers in virtual time: what a get takes when some answers come late, without a code and with one.

A host gets one block again and again, and now and then a satellite is silent for a while before it sends its share. Without a
code the slowest satellite counts. With parity a get ends with the first chunks that suffice: it asks for parity once a satellite
is silent for longer than most (hedging, as flown), or at once.

Chunks and the rate of links are a tenth of those that fly. So a get takes as long, and its bytes are made and checked faster.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from skymemory.common import defaults
from skymemory.common.progress import Progress
from skymemory.sky.placement.layouts import LAYOUT_IDS
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.twin import structures
from skymemory.twin.native_twin import PACKET_ROOM, START_US, NativeTwin, TwinError
from skymemory.twin.paper_case import PaperCase
from skymemory.twin.structures import OpKind, Uplink
from skymemory.wire.address import Satellite

_ALTITUDE_KM: Final = 550.0
_LIGHT_KM_PER_S: Final = 299_792.458
_DEADLINE_MS: Final = 5000
_APART_US: Final = 1_000_000
"""Time between two gets: no get waits for the one before."""
_WARM_UP: Final = 100
"""Gets that are not counted: the host learns windows and round trips."""
_BLOCK_BYTES: Final = 288_000
_CHUNK_BYTES: Final = 600
_LINK_KBPS: Final = 100_000
_QUEUE_MS: Final = 500


@dataclass(frozen=True)
class Way:
    """A way to get a block."""

    name: str
    servers: int
    parity: int
    asks_all: bool = False


WAYS: Final = (
    Way("no code", 10, 0),
    Way("hedged", 12, 2),
    Way("first of all", 12, 2, asks_all=True),
)
"""The ways that are compared: each has ten data chunks in a row."""


@dataclass(frozen=True)
class Stragglers:
    """Parameters of a comparison."""

    gets: int = 10_000
    share: float = 0.02
    """Share of the answers that come late."""
    delay_ms: float = 80.0
    """Time for which it is silent then."""


def compare(what: Stragglers, progress: Progress | None = None) -> dict[str, Any]:
    """Measure all ways, each without stragglers and with them.

    Returns:
        The parameters, and `ways` with milliseconds and with bytes of packets by bytes of the block.

    Raises:
        TwinError: A parameter is out of range, or a get did not bring its block.
    """
    ways = []
    for number, way in enumerate(WAYS):
        ways.append(
            {"name": way.name, "servers": way.servers, "parity": way.parity, "calm": _measure(replace(what, share=0), way)}
        )
        ways[-1]["stragglers"] = _measure(what, way)
        if progress is not None:
            progress(number + 1, len(WAYS))
    return {
        "gets": what.gets,
        "share": what.share,
        "delay_ms": what.delay_ms,
        "chunks": _BLOCK_BYTES // _CHUNK_BYTES,
        "ways": ways,
    }


def _measure(what: Stragglers, way: Way) -> dict[str, float]:
    torus = Torus(5, 19, seam_cut=False)
    centre = Satellite(3, 10)
    sky = PaperCase(torus, centre, "rotation_hop", way.servers, _BLOCK_BYTES, _CHUNK_BYTES, 0, _ALTITUDE_KM, _LIGHT_KM_PER_S)
    count = what.gets + _WARM_UP
    first_us = START_US + _APART_US
    with NativeTwin(_config(what, way, torus)) as twin:
        twin.set_delays(0, *sky.delays_us())
        ops = [structures.Op(START_US, OpKind.PUT, 0, 1, _DEADLINE_MS, 0)]
        ops += [structures.Op(first_us + _APART_US * number, OpKind.GET, 0, 1, _DEADLINE_MS, 0) for number in range(count)]
        twin.fill([(0, Cell(*centre))], [structures.Block(_BLOCK_BYTES, 0)], [], ops)
        twin.library.SKYT_Run(twin.handle, first_us + _APART_US * _WARM_UP - 1)
        before = twin.counters().packet_bytes
        twin.library.SKYT_Run(twin.handle, first_us + _APART_US * count + 1000 * _DEADLINE_MS)
        counters = twin.counters()
        if counters.hits != count or any(counters.violations):
            raise TwinError(f"{way.name}: {count - counters.hits} of {count} gets did not bring the block")
        times_ms = sorted(result.duration_us / 1000 for result in twin.results()[1 + _WARM_UP :])
        return {
            **{f"p{name}_ms": _quantile(times_ms, share) for name, share in (("50", 0.5), ("99", 0.99), ("99_9", 0.999))},
            "most_ms": times_ms[-1],
            "share_of_bytes": (counters.packet_bytes - before) / what.gets / _BLOCK_BYTES,
        }


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _config(what: Stragglers, way: Way, torus: Torus) -> structures.Config:
    chunks = -(-_BLOCK_BYTES // _CHUNK_BYTES)
    share = -(-chunks // (way.servers - way.parity))
    return structures.Config(
        seed=1,
        start_us=START_US,
        planes=torus.planes,
        slots=torus.slots,
        layout=LAYOUT_IDS["rotation_hop"],
        servers=way.servers,
        parity=way.parity,
        asks_all=int(way.asks_all),
        uplink=int(Uplink.DIRECT),
        hosts=1,
        tenants=1,
        slot_bytes=_CHUNK_BYTES,
        slot_count=share + 1,  # and the block's entry
        packet_bytes=_CHUNK_BYTES + PACKET_ROOM,
        credit=defaults.DEFAULT_CREDIT,
        part_lifetime_ms=defaults.DEFAULT_PART_LIFETIME_MS,
        chunk_bytes=_CHUNK_BYTES,
        block_bytes=_BLOCK_BYTES,
        active_max=1,
        packets_max=4 * chunks + 64 * way.servers,
        isl_kbps=_LINK_KBPS,
        ground_kbps=_LINK_KBPS,
        queue_ms=_QUEUE_MS,
        hello_ms=1000 * defaults.DEFAULT_HELLO_S,
        hang_ppm=round(1e6 * what.share),
        hang_us=round(1000 * what.delay_ms),
    )
