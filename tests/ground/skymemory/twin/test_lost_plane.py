"""A whole plane fails while the window rolls: who has a window over all planes, and enough parity, misses nothing."""

from dataclasses import replace

import pytest

from skymemory.twin.faults import Crash, Faults
from skymemory.twin.single_run import Report, Setup, Twin
from skymemory.twin.structures import Uplink
from skymemory.wire.address import Satellite


def run(setup: Setup, plane: int) -> Report:
    """Ten minutes with all satellites, and twenty without those of a plane. The host reaches each satellite directly."""
    plan = Faults(crash=tuple(Crash(satellite=Satellite(plane, slot), at_s=600.0, for_s=1200.0) for slot in range(1, 20)))
    workload = replace(setup.workload, chunks_max=40)
    with Twin(replace(setup, servers=20, parity=4, uplink=Uplink.DIRECT, workload=workload), 7, plan) as twin:
        return twin.run()


def missed(report: Report) -> int:
    return sum(count for cause, count in report.misses.items() if cause != "absent")


@pytest.mark.parametrize("plane", range(1, 6))
def test_nothing_is_missed_in_a_window_over_all_planes(quarter: Setup, plane: int) -> None:
    report = run(replace(quarter, layout="all_planes"), plane)
    assert (report.stopped, report.faults["crash"], report.puts_failed) == ("", 19, 0)
    assert sum(report.violations.values()) == 0
    assert report.gets > 500
    assert missed(report) == 0


def test_other_layouts_have_too_many_servers_in_a_plane(quarter: Setup) -> None:
    assert missed(run(quarter, 3)) > 0
