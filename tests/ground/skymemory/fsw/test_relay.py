"""Mission control's link to a satellite: commands reach its bus, telemetry comes back, and what is refused is told."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skymemory.fsw.messages import Message
from skymemory.fsw.relay import Relay
from skymemory.fsw.structures import (
    EVENT_MID,
    ISL_HK_TLM_MID,
    ISL_SEND_HK_MID,
    KVC_CMD_MID,
    KVC_HK_TLM_MID,
    KVC_SEND_HK_MID,
    EventPayload,
    IslHousekeeping,
)
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire.address import Satellite
from support.mission import ANSWER_S, link

PLACE = Satellite(5, 9)


def test_events_come_as_they_are(full_sky: LocalConstellation) -> None:
    with link(full_sky, PLACE) as satellite:
        satellite.housekeeping(Message(KVC_SEND_HK_MID).encode(), KVC_HK_TLM_MID)  # telemetry comes from here on
        satellite.send(Message(KVC_CMD_MID).encode())
        while (message := Message.decode(satellite.receive())).mid != EVENT_MID:
            pass
    event = EventPayload.from_buffer_copy(message.payload)
    assert event.packet_id.app_name == b"KVC"
    assert event.packet_id.spacecraft_id == 1000 * PLACE.plane + PLACE.slot


def test_who_takes_commands_at_the_address_already_is_named(full_sky: LocalConstellation) -> None:
    route = Route(PLACE, PLACE)
    with Relay(full_sky.constellation, route, ("127.0.0.1", 0)) as first:
        said = rf"commands at 127\.0\.0\.1:{first.port}: Address already in use \(.* \(pid {os.getpid()}.*\) has it\)"
        with pytest.raises(OSError, match=said):
            Relay(full_sky.constellation, route, ("127.0.0.1", first.port))


def test_a_satellite_is_reached_through_another(full_sky: LocalConstellation) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as telemetry,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as commands,
    ):
        telemetry.bind(("127.0.0.1", 0))
        telemetry.settimeout(0.5)
        route = Route(PLACE, Satellite(3, 10))
        with Relay(full_sky.constellation, route, ("127.0.0.1", 0), telemetry.getsockname()) as relay:
            packet = b""
            for _ in range(20):
                commands.sendto(Message(ISL_SEND_HK_MID).encode(), ("127.0.0.1", relay.port))
                try:
                    packet = telemetry.recv(65536)
                    if Message.decode(packet).mid == ISL_HK_TLM_MID:  # an event may come before
                        break
                except TimeoutError:
                    continue
    message = Message.decode(packet)
    housekeeping = IslHousekeeping.from_buffer_copy(message.payload)
    assert (message.mid, housekeeping.plane, housekeeping.slot) == (ISL_HK_TLM_MID, *PLACE)


@pytest.mark.parametrize(
    ("packet", "told"),
    [
        (b"short", "a datagram is no cFS packet: the packet has 5 bytes; allowed are 6 and more, for the primary header"),
        (Message(ISL_HK_TLM_MID).encode(), "message 0x08D8 is telemetry; allowed are commands"),
        (Message(KVC_CMD_MID, bytes(1100)).encode(), "command 0x18D0, function 0 has 1108 bytes; RELAY carries up to 1024"),
        (Message(0x1806).encode(), "command 0x1806, function 0: refused"),
        (Message(KVC_CMD_MID).encode()[:7] + b"\1", "command 0x18D0, function 0: bad_checksum"),
    ],
)
def test_what_is_refused_is_told(packet: bytes, told: str, full_sky: LocalConstellation) -> None:
    said: list[str] = []
    heard = threading.Event()

    def report(text: str) -> None:
        said.append(text)
        heard.set()

    ends = ("127.0.0.1", 0), ("127.0.0.1", 9)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as commands,
        Relay(full_sky.constellation, Route(PLACE, PLACE), *ends, report) as relay,
    ):
        commands.sendto(packet, ("127.0.0.1", relay.port))
        assert heard.wait(ANSWER_S)
    assert said == [told]


def test_its_address_may_be_in_use(full_sky: LocalConstellation) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="in use"):
            Relay(full_sky.constellation, Route(PLACE, PLACE), other.getsockname())


def skymem(*words: str, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", "relay", *words]
    environment = {**os.environ, "SKYMEM_STATE": str(folder)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_command_runs_until_it_is_stopped(
    full_sky: LocalConstellation, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    RunRecord(tmp_path).save(Running("local", full_sky.constellation, dict(full_sky.processes)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with skymem("5", "9", "--commands", f"localhost:{port}", folder=tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == f"satellite [5, 9]: commands at 127.0.0.1:{port}, telemetry to 127.0.0.1:1235\n"
        child.send_signal(number)
        assert child.wait(ANSWER_S) == status


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("6", "1"), "Error: 6 1: planes are 1 to 5, slots 1 to 19\n"),
        (("1", "1", "--telemetry", "host"), "'host' is not HOST:PORT with a port from 1 to 65535"),
        (("1", "1", "--commands", "127.0.0.1:0"), "'127.0.0.1:0' is not HOST:PORT with a port from 1 to 65535"),
        (("1", "1", "--commands", "no.such.host.invalid:5"), "no.such.host.invalid: "),
    ],
)
def test_mistakes_on_the_command_line(words: tuple[str, ...], told: str, full_sky: LocalConstellation, tmp_path: Path) -> None:
    RunRecord(tmp_path).save(Running("local", full_sky.constellation, dict(full_sky.processes)))
    with skymem(*words, folder=tmp_path) as child:
        _, said = child.communicate(timeout=ANSWER_S * 3)
    assert child.returncode == 2
    assert told in said
    assert said.count("\n") == 1
