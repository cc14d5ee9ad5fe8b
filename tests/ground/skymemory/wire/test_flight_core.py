"""What flies against what others have written: the flight core's codec, checksums and torus beside their twins on the ground."""

from collections.abc import Iterator
from dataclasses import replace

import crcmod
import pytest
from crcmod.predefined import mkPredefinedCrcFun
from hypothesis import given
from hypothesis import strategies as st
from spacepackets.ccsds.spacepacket import PacketType, SpacePacketHeader

from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NOWHERE, Packet, PacketError, decode
from support import flight_core as core
from support.packets import U8, addresses, packets

crc16 = mkPredefinedCrcFun("crc-ccitt-false")
# RFC 3720's polynomial; the library does not name it
crc32c = crcmod.mkCrcFun(0x11EDC6F41, initCrc=0, rev=True, xorOut=0xFFFFFFFF)


@pytest.fixture(params=["best", "tables"])
def crc_way(request: pytest.FixtureRequest) -> Iterator[str]:
    core.force_portable_crc(request.param == "tables")
    yield request.param
    core.force_portable_crc(False)


def status_of(datagram: bytes) -> int:
    """What the ground's own codec says."""
    try:
        decode(datagram)
    except PacketError as error:
        return error.status
    return icd.STATUS_OK


@given(packets())
def test_both_codecs_write_the_same_bytes(packet: Packet) -> None:
    assert core.encode(packet) == packet.encode()


@given(packets())
def test_each_codec_reads_what_the_other_wrote(packet: Packet) -> None:
    assert core.decode(packet.encode()) == (icd.STATUS_OK, packet)
    assert decode(core.encode(packet)) == packet


@given(packets())
def test_flight_packets_are_space_packets(packet: Packet) -> None:
    datagram = core.encode(packet)
    header = SpacePacketHeader.unpack(datagram[:6])
    assert header.packet_len == len(datagram)
    assert header.packet_type == (PacketType.TC if packet.is_request else PacketType.TM)
    assert (header.apid, header.seq_count, header.sec_header_flag) == (packet.apid, packet.seq_count, True)
    assert crc16(datagram) == 0  # over a packet and its own CRC


@given(packets(), st.data())
def test_both_codecs_refuse_the_same_damage_for_the_same_reason(packet: Packet, data: st.DataObject) -> None:
    datagram = bytearray(packet.encode())
    at = data.draw(st.integers(0, len(datagram) - 1))
    datagram[at] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):  # damage that the sender's own checksum covers
        datagram[-2:] = crc16(bytes(datagram[:-2])).to_bytes(2)
    if data.draw(st.booleans()):
        del datagram[data.draw(st.integers(0, len(datagram))) :]
    assert core.decode(bytes(datagram))[0] == status_of(bytes(datagram))


@given(packets(), U8, addresses)
def test_a_forwarded_packet_is_still_right(packet: Packet, hop_limit: int, gateway: Satellite) -> None:
    """A satellite changes the mutable fields, and checksum and PEC by the difference only."""
    packet = replace(packet, op=icd.OP_HAS, home=NOWHERE)  # no chunk: nothing to contradict
    assert decode(core.relabel(packet.encode(), hop_limit, gateway)) == replace(packet, hop_limit=hop_limit, gateway=gateway)


@given(st.binary(max_size=300))
def test_noise_is_refused_alike(noise: bytes) -> None:
    assert core.decode(noise)[0] == status_of(noise)


def test_a_packet_that_is_too_large_is_not_written() -> None:
    packet = Packet(
        is_request=True,
        apid=icd.APID_KVC,
        op=icd.OP_PING,
        src=Satellite(0, 1),
        dst=Satellite(1, 1),
        request_id=1,
        payload=bytes(icd.LIMIT_PACKET_BYTES),
    )
    assert core.encode(packet) == b""


# Lengths around the widths of the folding instructions, and a chunk.
@pytest.mark.parametrize("length", [0, 1, 7, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 6000, 61440])
def test_checksums_agree_with_crcmod(length: int, crc_way: str) -> None:
    data = bytes((index * 167 + 13 * (index >> 8)) & 0xFF for index in range(length))
    assert core.crc16(data) == crc16(data), crc_way
    assert core.crc32c(data) == crc32c(data), crc_way


@given(st.binary(max_size=2000), st.integers(0, 2000))
def test_checksums_can_be_continued(data: bytes, cut: int) -> None:
    assert core.crc16(data[cut:], core.crc16(data[:cut])) == crc16(data)
    assert core.crc32c(data[cut:], core.crc32c(data[:cut])) == crc32c(data)


def test_check_values_of_the_standards() -> None:
    assert core.crc16(b"123456789") == 0x29B1
    assert core.crc32c(b"123456789") == 0xE3069283
    assert core.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert core.crc_implementation() in ("pclmul+sse4.2", "pmull+crc32", "table")


def next_hop(torus: Torus, origin: Satellite, target: Satellite) -> Direction | None:
    """Plane first, then slot (paper, section 4); the paper stays put on a tie, here it goes south, respectively east."""
    if planes := torus.plane_offset(origin.plane, target.plane):
        return Direction.SOUTH if planes > 0 else Direction.NORTH
    if slots := torus.slot_offset(origin.slot, target.slot):
        return Direction.EAST if slots > 0 else Direction.WEST
    return None


@given(st.integers(1, 12) | st.integers(1, 60_000), st.integers(1, 24) | st.integers(1, 60_000), st.booleans(), st.data())
def test_both_toruses_route_alike(planes: int, slots: int, seam_cut: bool, data: st.DataObject) -> None:
    torus = Torus(planes, slots, seam_cut)
    places = st.builds(Satellite, st.integers(1, planes), st.integers(1, slots))
    origin, target = data.draw(places), data.draw(places)
    assert core.hops(torus, origin, target) == torus.hops(origin, target)
    assert core.next_hop(torus, origin, target) == next_hop(torus, origin, target)
    for direction in Direction:
        assert core.neighbour(torus, origin, direction) == torus.neighbour(origin, direction)


def test_a_torus_needs_a_size() -> None:
    with pytest.raises(ValueError, match="allowed"):
        core.hops(Torus(0, 5), Satellite(1, 1), Satellite(1, 1))
