"""Skies that the tests of the twin share."""

import pytest

from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.placement.torus import Torus
from skymemory.twin import seeds
from skymemory.twin.single_run import Setup
from skymemory.twin.structures import Uplink
from skymemory.twin.workload import Workload


@pytest.fixture(scope="session")
def day() -> Schedule:
    """24 hours of 5 x 19 satellites over Berlin: 330 handovers, of which 93 jump to another plane."""
    return seeds.schedule()


@pytest.fixture(scope="session")
def quarter(day: Schedule) -> Setup:
    """A quarter of an hour of it, with small chunks."""
    return Setup(
        torus=Torus(5, 19, seam_cut=True),
        layout="rotation_hop",
        servers=9,
        uplink=Uplink.CENTRE,
        chunk_bytes=600,
        packet_bytes=800,
        credit=20,
        gossip=True,
        scrub_ms=60_000,
        lazy_purge=True,
        rate_kbps=0,
        handover_ms=30_000,
        schedule=day,
        duration_ms=1_800_000,
        from_ms=3_600_000,
        hello_ms=2000,
        workload=Workload(names=12, gets_per_minute=30, puts_per_minute=2),
    )
