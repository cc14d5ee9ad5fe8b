"""Two-line elements made for tests, and the folder of real ones, if there is one."""

import os
from pathlib import Path

import pytest
from sgp4.api import WGS72, Satrec
from sgp4.exporter import export_tle

EPOCH_DAYS = 26_572.5
"""2022-10-01 12:00 UTC, in days since 1949-12-31."""
EPOCH_MS = 1_664_625_600_000
"""The same instant as Unix time."""


def tle_pair(
    number: int,
    node_deg: float,
    latitude_deg: float,
    *,
    days: float = 0.0,
    inclination_deg: float = 87.9,
    eccentricity: float = 1e-4,
    revolutions_a_day: float = 13.16,
    drag: float = 0.0,
) -> list[str]:
    """Return both lines of a satellite `latitude_deg` of argument of latitude behind its node; `days` after the epoch."""
    turn = 3.141592653589793 / 180
    satrec = Satrec()
    motion = revolutions_a_day * 360 * turn / 1440
    angles = (20 * turn, inclination_deg * turn, (latitude_deg - 20) % 360 * turn, motion, node_deg % 360 * turn)
    satrec.sgp4init(WGS72, "i", number, EPOCH_DAYS + days, drag, 0.0, 0.0, eccentricity, *angles)
    satrec.classification, satrec.intldesg = "U", "22001A"
    return list(export_tle(satrec))


def shell(planes: int, slots: int, *, spread_deg: float = 180.0) -> list[str]:
    """Return the lines of a full pattern, with nodes and phases off by some hundredths.

    Satellite (p, s) has the number 1000 p + s.
    """
    lines = []
    for plane in range(1, planes + 1):
        for slot in range(1, slots + 1):
            off = ((plane * 7 + slot * 3) % 10 - 5) / 100
            node = 40 + (plane - 1) * spread_deg / planes + off
            lines += tle_pair(1000 * plane + slot, node, ((slot - 1) + plane / planes) * 360 / slots - off)
    return lines


def real_tle(name: str) -> Path:
    """Return a file of real elements in the folder $SKYMEM_TLE; without that folder the test is skipped."""
    path = Path(os.environ.get("SKYMEM_TLE", "/nonexistent")) / name
    if not path.is_file():
        pytest.skip(f"no {name} in the folder that $SKYMEM_TLE names")
    return path
