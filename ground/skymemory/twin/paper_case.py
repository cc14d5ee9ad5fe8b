"""One case of the paper's simulation (section 4) as packets: a block is put and got once, in a sky that stands still.

Distances are those of equations (1) to (4), as in the simulation, not SGP4's. With the hop-aware layout the host is at the
satellite in the middle, and its packets go over inter-satellite links. With the others it has a direct link to each server, as
long as the straight line. The rate of links is unlimited, and window and credit let a whole share through at once. What is left
is what the simulation counts too: the way, and the processing of chunks on board.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from skymemory.common import defaults
from skymemory.sky.orbit.paper_distances import cross_plane_km, grid_km, ground_km, in_plane_km
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.twin import structures
from skymemory.twin.native_twin import PACKET_ROOM, START_US, NativeTwin, TwinError
from skymemory.twin.structures import OpKind, Uplink
from skymemory.wire.address import Satellite

_DEADLINE_MS: Final = 600_000
_BETWEEN_US: Final = 1000 * _DEADLINE_MS


@dataclass(frozen=True)
class PaperCase:
    """Parameters of a point of figure 16."""

    torus: Torus
    centre: Satellite
    layout: LayoutName
    servers: int
    block_bytes: int
    chunk_bytes: int
    processing_us: int
    """Processing time of a chunk."""
    altitude_km: float
    light_km_per_s: float

    @property
    def on_board(self) -> bool:
        """True if the model is on the satellite in the middle."""
        return self.layout == "hop"

    @property
    def chunks(self) -> int:
        """Chunks of the block."""
        return -(-self.block_bytes // self.chunk_bytes)

    @property
    def share(self) -> int:
        """Chunks of the first server; no other server has more."""
        return -(-self.chunks // self.servers)

    def delays_us(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the delays of the links.

        Returns:
            Microseconds to neighbours, shape (satellites, 4), north, east, south, west; and to the host, shape (satellites,).
        """
        planes, slots = self.torus.planes, self.torus.slots
        cross_km, in_km = cross_plane_km(planes, self.altitude_km), in_plane_km(slots, self.altitude_km)
        isl_us = [round(1e6 * km / self.light_km_per_s) for km in (cross_km, in_km, cross_km, in_km)]
        ground_us = np.zeros((planes, slots))
        for plane in range(planes if not self.on_board else 0):
            for slot in range(slots):
                steps = (abs(plane + 1 - self.centre.plane), abs(slot + 1 - self.centre.slot))
                across, along = (min(step, size - step) for step, size in zip(steps, (planes, slots), strict=True))
                km = ground_km(grid_km(across, along, cross_km, in_km), self.altitude_km)
                ground_us[plane, slot] = round(1e6 * km / self.light_km_per_s)
        return (
            np.tile(np.array(isl_us, dtype=np.uint32), (planes * slots, 1)),
            np.ascontiguousarray(ground_us.ravel(), dtype=np.uint32),
        )


@dataclass(frozen=True)
class Measured:
    """Times and packets of a measured case."""

    put_s: float
    """Seconds until the last server has acknowledged its last chunk."""
    get_s: float
    """Seconds until the last chunk has come."""
    packets: int
    """Packets over links; a packet that goes over three links counts three times."""
    digest: str
    """Digest of every event."""


def measure(case: PaperCase) -> Measured:
    """Put the block, get it, and return the times of the virtual clock.

    Raises:
        TwinError: The case is out of range, or the block did not come back as it was put.
    """
    with NativeTwin(_config(case)) as twin:
        twin.set_delays(0, *case.delays_us())
        # Another host gets the block: what the first has learned of round trips and windows does not help it.
        ops = (
            structures.Op(START_US, OpKind.PUT, 0, 1, _DEADLINE_MS, 0),
            structures.Op(START_US + _BETWEEN_US, OpKind.GET, 0, 2, _DEADLINE_MS, 0),
        )
        twin.fill([(0, Cell(*case.centre))], [structures.Block(case.block_bytes, 0)], [], ops)
        twin.library.SKYT_Run(twin.handle, START_US + 2 * _BETWEEN_US)
        counters, (put, get) = twin.counters(), twin.results()
        if counters.hits != 1 or counters.puts_failed != 0 or any(counters.violations):
            raise TwinError(f"{case}: the block was put or got wrongly")
        return Measured(put.duration_us / 1e6, get.duration_us / 1e6, counters.packets, f"{counters.digest:016x}")


def _config(case: PaperCase) -> structures.Config:
    return structures.Config(
        seed=1,
        start_us=START_US,
        planes=case.torus.planes,
        slots=case.torus.slots,
        seam_cut=int(case.torus.seam_cut),
        layout=LAYOUT_IDS[case.layout],
        servers=case.servers,
        uplink=int(Uplink.CENTRE if case.on_board else Uplink.DIRECT),
        hosts=2,
        tenants=1,
        slot_bytes=case.chunk_bytes,
        slot_count=case.share + 1,  # and the block's entry
        packet_bytes=case.chunk_bytes + PACKET_ROOM,
        credit=case.share,
        part_lifetime_ms=_DEADLINE_MS,
        chunk_bytes=case.chunk_bytes,
        block_bytes=case.block_bytes,
        active_max=1,
        packets_max=2 * case.chunks + 16 * case.servers,
        hello_ms=1000 * defaults.DEFAULT_HELLO_S,
        chunk_us=case.processing_us,
        way_chunks=case.chunks,
    )
