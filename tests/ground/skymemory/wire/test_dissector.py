"""Wireshark's `ccsds` dissector reads our packets: real traffic between the ground and satellites, captured on loopback."""

import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from spacepackets.ccsds.spacepacket import SequenceFlags, SpacePacketHeader

from skymemory.fsw.messages import Message
from skymemory.fsw.structures import KVC_CMD_MID
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.raw_host import RawHost
from support.satellites import forget
from support.waiting import wait_until

FIELDS = ("udp.length", "udp.payload", "ccsds.version", "ccsds.type", "ccsds.secheader", "ccsds.apid", "ccsds.seqflag",
          "ccsds.seqnum", "ccsds.length", "ccsds.length.error", "ccsds.checkword", "_ws.malformed")  # fmt: skip
CHECKWORD = "ccsds.global_pref_checkword:Override header flag to be false"
"""The dissector takes the secondary header for that of the ISS, and a bit of it for the announcement of a checksum."""
UDP_BYTES = 8


@contextmanager
def capture(port: int) -> Iterator["queue.SimpleQueue[dict[str, str]]"]:
    """What tshark reads, a packet at a time. Skips where nobody may capture; in CI that is a failure."""
    program = shutil.which("tshark")
    may = program and subprocess.run([program, "-D"], capture_output=True, text=True, check=False)
    if not may or "(Loopback)" not in may.stdout:
        why = "tshark is not installed" if not program else "no right to capture on loopback: be root, or in dumpcap's group"
        if os.environ.get("CI"):
            pytest.fail(f"CI leaves nothing out: {why}")
        pytest.skip(why)
    command = [program, "-i", "lo", "-l", "-f", f"udp port {port}", "-d", f"udp.port=={port},ccsds", "-o", CHECKWORD]
    command += ["-T", "fields"] + [word for field in FIELDS for word in ("-e", field)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        seen: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
        reader = threading.Thread(target=read, args=(child.stdout, seen))
        reader.start()
        try:
            yield seen
        finally:
            child.terminate()
            reader.join()


def read(lines: Iterable[str], seen: "queue.SimpleQueue[dict[str, str]]") -> None:
    for line in lines:
        seen.put(dict(zip(FIELDS, line.rstrip("\n").split("\t"), strict=True)))


def until(seen: "queue.SimpleQueue[dict[str, str]]", payload: bytes, send: Callable[[bytes], object]) -> list[dict[str, str]]:
    """Packets up to the one with this payload, which is sent until it is seen."""
    packets: list[dict[str, str]] = []
    for _ in range(300):
        send(payload)
        with suppress(queue.Empty):
            while True:
                packets.append(seen.get(timeout=0.1))
                if payload in bytes.fromhex(packets[-1]["udp.payload"]):
                    return packets
    raise AssertionError("tshark sees nothing")


def put_in_single_packets(sky: Constellation) -> None:
    """Put a chunk of several packets, each in a frame of its own, so that the dissector reads those behind the first one, too."""
    key, chunk, server = os.urandom(32), os.urandom(6000), Satellite(*sky.cache.centre)
    with RawHost(sky) as host:
        host.open(server)
        whole = host.put(server, key, chunk)
        room = sky.network.mtu - len(replace(whole, payload=b"").encode())
        parts = range(0, len(chunk), room)
        flags = [
            SequenceFlags.FIRST_SEGMENT,
            *[SequenceFlags.CONTINUATION_SEGMENT] * (len(parts) - 2),
            SequenceFlags.LAST_SEGMENT,
        ]
        for at, flag in zip(parts, flags, strict=True):
            part = replace(whole, offset=at, payload=chunk[at : at + room], seq_flags=int(flag))
            host.send(host.made(part), server)
        wait_until(lambda: host.holds(server, key, 0))


def test_tshark_reads_every_packet(start_sky: Callable[..., LocalConstellation]) -> None:
    sky = start_sky(network={"mtu": 1472}).constellation
    route = Route(Satellite(2, 4), Satellite(2, 3))
    with SkyStore(sky) as store, ControlPlane(sky) as control, capture(sky.network.port) as seen:

        def ping(payload: bytes) -> object:
            return control.exchange([Ask(route, icd.OP_PING, icd.APID_ISL, payload=payload)], 5.0)

        until(seen, b"the first", ping)
        key, value = os.urandom(32), os.urandom(100_000)
        assert store.put([(key, value)])[0].ok
        assert store.get([key])[0].data == value
        control.relay([route], Message(KVC_CMD_MID).encode(), 5.0)
        control.store_stats([route], 5.0)
        forget(control, [route], [key])
        put_in_single_packets(sky)
        packets = until(seen, b"the last", ping)

    for packet in packets:
        data = bytes.fromhex(packet["udp.payload"])
        header = SpacePacketHeader.unpack(data[: icd.PRIMARY_BYTES])
        expected = {
            "version": 0,
            "type": int(header.packet_type),
            "secheader": 1,
            "apid": header.apid,
            "seqflag": int(header.seq_flags),
            "seqnum": header.seq_count,
            "length": header.data_len,
        }
        assert {name: int(packet[f"ccsds.{name}"]) for name in expected} == expected
        assert (packet["ccsds.length.error"], packet["ccsds.checkword"], packet["_ws.malformed"]) == ("", "", "")
        # Segmentation offload: on loopback a burst is one frame, of which the dissector reads the first packet only.
        assert header.packet_len <= int(packet["udp.length"]) - UDP_BYTES
        if header.apid == icd.APID_ISL:
            assert header.packet_len == int(packet["udp.length"]) - UDP_BYTES
    assert {packet["ccsds.type"] for packet in packets} == {"0", "1"}
    assert {packet["ccsds.apid"] for packet in packets} == {str(icd.APID_ISL), str(icd.APID_KVC)}
    assert {packet["ccsds.seqflag"] for packet in packets} == {"0", "1", "2", "3"}
