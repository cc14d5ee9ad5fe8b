"""Ways around satellites that are gone, and the delays that links show: real satellites under geometry delays."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import pytest

from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
DEADLINE_S = 60.0
ENTRY = Satellite(3, 4)


@pytest.fixture
def local(start_sky: StartSky) -> LocalConstellation:
    """5 planes x 7 slots, as far apart as they are in the sky."""
    return start_sky(constellation={"planes": 5, "slots": 7}, links={"model": "geometry"}, satellite={"hello_s": 2})


def ping(control: ControlPlane, targets: Iterable[Satellite]) -> list[SatelliteAnswer | None]:
    return control.exchange([Ask(Route(target, ENTRY), icd.OP_PING, icd.APID_ISL) for target in targets], 10)


def await_known(local: LocalConstellation, control: ControlPlane, links: int) -> None:
    """Wait until each satellite that runs knows of so many links that they are down."""
    routes = [Route(place, place) for place in local.processes]

    def known() -> dict[Satellite, int]:
        return {place: told.counters["links_down_known"] for place, told in control.link_stats(routes, 5.0).items()}

    wait_until(lambda: known() == dict.fromkeys(local.processes, links), lambda: f"{links} links at {known()}", pause_s=0.2)


def drops(local: LocalConstellation, control: ControlPlane) -> int:
    """Packets that ran out of hops, anywhere."""
    routes = [Route(place, place) for place in local.processes]
    return sum(told.counters["drop_hop_limit"] for told in control.link_stats(routes, 5.0).values())


@pytest.mark.parametrize(
    ("dead", "links"),
    [
        ([Satellite(3, 6)], 4),
        ([Satellite(3, 6), Satellite(3, 5)], 6),  # between the two nobody says anything
        ([Satellite(2, slot) for slot in range(1, 8)], 14),
    ],
    ids=["one", "two neighbours", "a plane"],
)
def test_what_is_dead_is_said_at_once_and_passed_by(local: LocalConstellation, dead: list[Satellite], links: int) -> None:
    everybody = list(local.constellation.torus.satellites())
    alive = [place for place in everybody if place not in dead]
    with ControlPlane(local.constellation) as control:
        assert all(answer is not None and answer.ok for answer in ping(control, everybody))
        for place in dead:
            local.kill(place)
        await_known(local, control, links)
        before = drops(local, control)
        for answer in ping(control, dead):
            assert answer is not None
            assert (answer.status, (answer.raw.src.plane, answer.raw.src.slot)) == (
                icd.STATUS_UNREACHABLE,
                ENTRY,
            )  # the first who knows
        assert all(answer is not None and answer.ok for answer in ping(control, alive))
        assert drops(local, control) == before
        for place in dead:
            local.restart(place)
        await_known(local, control, 0)
        assert all(answer is not None and answer.ok for answer in ping(control, everybody))
        assert drops(local, control) == before


def test_a_satellite_that_begins_anew_learns_what_is_down(local: LocalConstellation) -> None:
    """Its own old word, and what others say, come with the first hello: before a neighbour could have missed it."""
    with ControlPlane(local.constellation) as control:
        local.kill(Satellite(3, 6))
        await_known(local, control, 4)
        local.kill(Satellite(3, 5))  # said of itself that a link is down
        local.restart(Satellite(3, 5))
        await_known(local, control, 4)
        (answer,) = control.exchange([Ask(Route(Satellite(3, 6), Satellite(3, 5)), icd.OP_PING, icd.APID_ISL)], 10)
        assert answer is not None
        assert answer.status == icd.STATUS_UNREACHABLE


@pytest.mark.parametrize("busy", [0, 2])
def test_the_least_delay_is_the_links_own(start_sky: StartSky, busy: int) -> None:
    """The mean follows the load of the machine; the least of the last hellos is within 2 % for nearly all links."""
    local = start_sky(constellation={"planes": 5, "slots": 7}, links={"model": "geometry"}, satellite={"hello_s": 1})
    routes = [Route(place, place) for place in local.processes]
    with ExitStack() as stack, ControlPlane(local.constellation) as control:
        for _ in range(busy):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(loop.kill)
        deadline = time.monotonic() + DEADLINE_S
        good = 0
        while good < 0.95 * 4 * len(routes):
            assert time.monotonic() < deadline, f"{good} of {4 * len(routes)}"
            time.sleep(1)
            good = 0
            for told in control.link_stats(routes, 5.0).values():
                for name, link in told.links.items():
                    least, asked = link["delay_min_us"], link["delay_requested_us"]
                    if name == "ground" or not least:
                        continue
                    assert asked - 1 <= least <= link["delay_mean_us"]
                    good += least - asked <= asked // 50
