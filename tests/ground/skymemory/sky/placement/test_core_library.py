"""The core's functions for placement: when they are needed, and what they take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skymemory.common import compiled
from skymemory.sky.placement import core_library
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite


def test_names_and_constellation_files_need_no_library(tmp_path: Path) -> None:
    """A tool that only reads a constellation file works where nothing was compiled; what lays out says what is missing."""
    program = (
        "from skymemory.sky.constellation import Constellation\n"
        "from skymemory.sky import entry_satellites, whereabouts\n"
        "from skymemory.sky.placement import layouts, places, rolling_layout, track\n"
        "sky = Constellation()\n"
        "where = whereabouts.Whereabouts(sky)\n"
        "assert where.row(0.0) == 0\n"
        "where.servers(0)\n"
    )
    environment = os.environ | {compiled.NATIVE_DIR_VARIABLE: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"FileNotFoundError: {tmp_path}/libskymem_client.so is missing")


def test_satellites_there_and_back() -> None:
    satellites = [Satellite(7, 65_535), Satellite(1, 2), Satellite(1, 1)]
    assert core_library.from_core(core_library.to_core(satellites)) == satellites
    listed = core_library.sorted_list(satellites)
    assert [(one.plane, one.slot) for one in listed.satellites[: listed.count]] == sorted(satellites)
    assert core_library.sorted_list([]).count == 0


def test_a_torus_that_the_core_cannot_have() -> None:
    with pytest.raises(ValueError, match="the torus has 0 planes x 5 slots; allowed are 1 to 65,535 of each"):
        core_library.core_torus(Torus(0, 5))
