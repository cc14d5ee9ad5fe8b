"""One plane of satellites with Python on board: the health monitor's reports reach the ground over inter-satellite links."""

import pytest

from skymemory.fsw.health import HEALTH_MID, HealthState, HealthTelemetry, decode
from skymemory.fsw.messages import Message
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.compose import SATELLITE_PYTHON
from skymemory.wire.address import Satellite

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
ENTRY = Satellite(1, 4)


def test_health_of_a_plane_through_one_satellite(start_containers) -> None:
    plane = Constellation().replace(constellation={"planes": 1, "slots": 7}, cache={"centre": ENTRY, "servers": 5})
    heard: dict[Satellite, HealthTelemetry] = {}
    with start_containers(plane, SATELLITE_PYTHON) as sky, ControlPlane(sky) as control:
        places = list(sky.torus.satellites())
        for _ in range(10):
            for place, packet in control.listen([Route(place, ENTRY) for place in places], 5.0):
                message = Message.decode(packet)
                if message.mid == HEALTH_MID:
                    heard[place] = decode(message.payload)
            if len(heard) == len(places):
                break
    assert {place: (report.plane, report.slot) for place, report in heard.items()} == {place: place for place in places}
    assert {report.links_present for report in heard.values()} == {2}
    assert {report.state for report in heard.values()} <= {HealthState.GOOD, HealthState.DEGRADED}
