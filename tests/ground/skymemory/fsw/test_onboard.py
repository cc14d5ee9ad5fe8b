"""Code on board in Python: apps of one's own, the health monitor, and a plane of satellites with it."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from skymemory.fsw import App, Executive, Message, OnboardApp, Pipe, messages, structures
from skymemory.fsw.health import HEALTH_MID, HealthMonitor, HealthState, HealthTelemetry, decode, main
from skymemory.fsw.structures import IslSetLink
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite
from support.executive import next_event


class Echo(OnboardApp):
    """Answers each command with telemetry that carries its payload, and counts periods."""

    COMMAND, ANSWER = messages.ONBOARD_CMD_MIDS[1], messages.ONBOARD_MIDS[1]

    def __init__(self) -> None:
        super().__init__("ECHO", self.COMMAND, period_s=0.01)
        self.periods = threading.Semaphore(0)

    def on_message(self, message: Message) -> None:
        self.app.publish(self.ANSWER, message.payload[::-1])

    def on_period(self) -> None:
        self.periods.release()


class Faulty(OnboardApp):
    """Breaks at its first message."""

    def on_message(self, message: Message) -> None:
        raise ValueError(f"cannot read {message.payload!r}")


def test_an_app_answers_messages_and_works_in_periods(satellite: Executive) -> None:
    with App("ASKER") as asker, Echo() as echo:
        pipe = asker.pipe("ASKER", Echo.ANSWER)
        asker.command(Echo.COMMAND, payload=b"abc")
        answer = pipe.receive(5)
        assert answer is not None
        assert answer.payload == b"cba"
        assert all(echo.periods.acquire(timeout=5) for _ in range(3))
    with Echo():  # the name is free again
        pass


def test_an_error_ends_the_app_and_not_the_satellite(satellite: Executive) -> None:
    mid = messages.ONBOARD_CMD_MIDS[2]
    with Faulty("FAULTY", mid) as app:
        satellite.ground.command(mid, payload=b"?")
        while (event := next_event(satellite.events)) is not None and event.packet_id.app_name != b"FAULTY":
            pass
        assert event is not None
        assert b"cannot read" in event.message
        assert isinstance(app.failure, ValueError)
    assert satellite.kvc_housekeeping().serving == 1


def next_report(pipe: Pipe, wanted: Callable[[HealthTelemetry], bool]) -> HealthTelemetry:
    for _ in range(100):
        message = pipe.receive(5)
        assert message is not None
        if wanted(report := decode(message.payload)):
            return report
    pytest.fail("no such report")


def test_the_health_monitor_sees_a_cut_link(satellite: Executive) -> None:
    with App("DOCTOR") as doctor:
        pipe = doctor.pipe("DOCTOR", HEALTH_MID)
        with HealthMonitor(period_s=0.05):
            report = next_report(pipe, lambda r: r.state == HealthState.GOOD)
            assert (report.plane, report.slot, report.links_up, report.links_present) == (3, 10, 4, 4)
            satellite.ground.command(structures.ISL_CMD_MID, 2, bytes(IslSetLink(link=0, cut_s=60)))
            report = next_report(pipe, lambda r: r.state == HealthState.DEGRADED)
            assert (report.links_up, report.links_present) == (3, 4)
            while (event := next_event(satellite.events)) is not None:
                if event.packet_id.app_name == b"HEALTH" and event.message.startswith(b"health DEGRADED: links 3 of 4"):
                    break
            assert event is not None


def test_periods_that_pass_while_the_machine_stands_still_are_left_out(satellite: Executive) -> None:
    """Their end would find that what was asked for a moment ago has not come."""
    stood_still_s = 0.0
    states: list[HealthState] = []
    done = threading.Event()

    class Patient(HealthMonitor):
        def on_period(self) -> None:
            nonlocal stood_still_s
            super().on_period()
            states.append(self.state)
            stood_still_s += 1000.0
            if len(states) == 3:
                done.set()

    with Patient(period_s=0.2, clock=lambda: time.monotonic() + stood_still_s):
        assert done.wait(60)
    assert HealthState.BAD not in states


def test_apps_and_satellites_end_in_the_middle_of_their_work(words: list[str]) -> None:
    """Messages are on their way when the app closes, and apps are open when the satellite stops; a hundred times."""
    for _ in range(100):
        with Executive(words) as satellite:
            busy = HealthMonitor(period_s=0.001)
            with busy, HealthMonitor(period_s=0.001, name="SECOND"):
                assert satellite.kvc_housekeeping().serving == 1
            App("LEFT_OPEN").pipe("LEFT_OPEN", HEALTH_MID)
        assert busy.failure is None


def test_a_report_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="the report has 3 bytes; allowed are 48"):
        decode(b"abc")


def test_wrong_arguments_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--health-s", "0"]) == 2
    assert main(["--health-s"]) == 2
    assert "--health-s" in capsys.readouterr().err


def test_one_plane_with_the_monitor_on_board(start_health: Callable[[Constellation, Sequence[Satellite]], None]) -> None:
    """Five satellites in a ring, each a Python process; the ground hears the reports of all of them through one."""
    base = Constellation.model_validate({"constellation": {"planes": 1, "slots": 5}, "cache": {"servers": 5, "centre": [1, 3]}})
    plane = base.replace(network={"port": free_port(base)})
    places = list(plane.torus.satellites())
    start_health(plane, places)
    entry = Satellite(1, 3)
    heard: dict[Satellite, HealthTelemetry] = {}
    with ControlPlane(plane) as control:
        for _ in range(10):
            for place, packet in control.listen([Route(place, entry) for place in places], 1.0):
                message = Message.decode(packet)
                if message.mid == HEALTH_MID:
                    heard[place] = decode(message.payload)
            if len(heard) == len(places) and all(report.state == HealthState.GOOD for report in heard.values()):
                break
    assert {(place, report.plane, report.slot) for place, report in heard.items()} == {(p, p.plane, p.slot) for p in places}
    assert {(report.state, report.links_up) for report in heard.values()} == {(HealthState.GOOD, 2)}
