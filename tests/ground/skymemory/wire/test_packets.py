"""The control plane's codec: round trips, and input that is not what it claims to be."""

import struct
from dataclasses import replace

import pytest
from crcmod.predefined import mkPredefinedCrcFun
from hypothesis import given, settings
from hypothesis import strategies as st
from spacepackets.ccsds.spacepacket import SpacePacketHeader

from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import ChunkSet, Packet, PacketError, decode, migrate_payload
from support.packets import carries_chunk, packets

CHECKED_OFFSETS = (icd.OFF_VERSION, icd.OFF_SECURITY, icd.OFF_CHUNK_LEN, icd.OFF_OFFSET, icd.OFF_LENGTH, icd.OFF_LENGTH + 3,
                   icd.OFF_HOME_SLOT + 1, icd.OFF_WORD, icd.OFF_SPARE)  # fmt: skip
"""Offsets of the header's bytes that the decoder checks."""


def request(**fields: object) -> Packet:
    base = Packet(is_request=True, apid=icd.APID_KVC, op=icd.OP_PING, src=Satellite(0, 7), dst=Satellite(3, 10), request_id=1)
    return replace(base, **fields)  # type: ignore[arg-type]  # fields are named by the test


def damaged(datagram: bytes, at: int, value: bytes) -> bytes:
    """Bytes replaced, checksum and PEC made right again: the packet lies, the link did not."""
    changed = bytearray(datagram[:-2])
    changed[at : at + len(value)] = value
    if changed[0] & 0x10:
        changed[7] = 0
        parity = 0xFF
        for byte in changed:
            parity ^= byte
        changed[7] = parity
    return bytes(changed) + mkPredefinedCrcFun("crc-ccitt-false")(bytes(changed)).to_bytes(2)


def version_1() -> bytes:
    """Return a request with the header of version 1, which is shorter."""
    whole = request().encode()
    cut = whole[: icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.BASE_HEADER_BYTES] + bytes(icd.PEC_BYTES)
    length = len(cut) - icd.PRIMARY_BYTES - 1
    cut = damaged(cut, 4, length.to_bytes(2))
    return damaged(cut, icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.OFF_VERSION, b"\x01")


def why(datagram: bytes) -> str:
    with pytest.raises(PacketError) as caught:
        decode(datagram)
    assert str(caught.value).startswith(icd.STATUSES[caught.value.status])
    return icd.STATUSES[caught.value.status]


@given(packets())
def test_round_trip(packet: Packet) -> None:
    assert decode(packet.encode()) == packet


@given(packets())
def test_spacepackets_and_crcmod_agree(packet: Packet) -> None:
    datagram = packet.encode()
    header = SpacePacketHeader.unpack(datagram)
    assert header.packet_len == len(datagram)
    assert (header.apid, header.seq_count, int(header.seq_flags)) == (packet.apid, packet.seq_count, packet.seq_flags)
    assert mkPredefinedCrcFun("crc-ccitt-false")(datagram) == 0
    if packet.is_request:
        parity = 0xFF
        for byte in datagram[:-2]:
            parity ^= byte
        assert parity == 0


@given(st.binary(max_size=400))
def test_noise_raises_packet_errors_only(datagram: bytes) -> None:
    with pytest.raises(PacketError):
        decode(datagram)


@given(packets(), st.data())
def test_every_flipped_bit_is_noticed(packet: Packet, data: st.DataObject) -> None:
    datagram = bytearray(packet.encode())
    bit = data.draw(st.integers(0, 8 * len(datagram) - 1))
    datagram[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PacketError):
        decode(bytes(datagram))


@given(packets(), st.data())
def test_every_cut_is_noticed(packet: Packet, data: st.DataObject) -> None:
    datagram = packet.encode()
    with pytest.raises(PacketError):
        decode(datagram[: data.draw(st.integers(0, len(datagram) - 1))])


def told(datagram: bytes) -> bytes:
    """Return a datagram without what nobody reads: the spare bytes of a response's secondary header are 0."""
    if datagram[0] & 0x10:
        return datagram
    return damaged(datagram, icd.PRIMARY_BYTES + 6, bytes(4))


@settings(max_examples=500)
@given(packets(), st.data())
def test_lies_raise_packet_errors_only(packet: Packet, data: st.DataObject) -> None:
    """A lie that no check can find out decodes to what the datagram says, byte by byte, and never to the packet that was sent."""
    datagram = packet.encode()
    secondary = icd.REQUEST_SECONDARY_BYTES if packet.is_request else icd.RESPONSE_SECONDARY_BYTES
    checked = [0, 4, 5, icd.PRIMARY_BYTES]  # version and flags, length, function code
    checked += [icd.PRIMARY_BYTES + secondary + offset for offset in CHECKED_OFFSETS]
    at = data.draw(st.sampled_from(checked) | st.integers(0, len(datagram) - 3))
    lie = damaged(datagram, at, data.draw(st.binary(min_size=1, max_size=1) | st.binary(min_size=1, max_size=8)))
    try:
        decoded = decode(lie)
    except PacketError:
        return
    assert decoded.encode() == told(lie)
    assert (decoded == packet) == (told(lie) == datagram)
    assert len(decoded.tag) == (icd.TAG_BYTES if decoded.security else 0)
    if carries_chunk(decoded):
        assert decoded.offset + len(decoded.payload) <= decoded.chunk_len <= icd.LIMIT_CHUNK_BYTES


def test_reasons() -> None:
    whole = request(payload=b"abc").encode()
    header = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES
    assert why(b"") == "short"
    assert why(whole[:109]) == "short"
    assert why(whole[:-1]) == "bad_length"
    assert why(whole + b"\0") == "bad_length"
    assert why(damaged(whole, 0, bytes([whole[0] | 0x20]))) == "bad_header"  # packet version 1
    assert why(damaged(whole, 0, bytes([whole[0] & ~0x08]))) == "bad_header"  # no secondary header
    assert why(damaged(whole, 0, bytes([whole[0] & ~0x10]))) == "bad_version"  # a response's header begins later
    assert why(damaged(whole[:112], 0, bytes([whole[0] & ~0x10]))) == "short"  # a response is longer
    assert why(version_1() + b"\0") == "bad_length"
    assert why(version_1()) == "bad_version"  # shorter than ours, but it can be answered
    assert why(damaged(whole, icd.PRIMARY_BYTES, b"\x05")) == "bad_header"  # function code of another operation
    assert why(whole[:-1] + bytes([whole[-1] ^ 1])) == "bad_crc"
    assert why(damaged(whole, header + icd.OFF_VERSION, b"\x01")) == "bad_version"
    assert why(damaged(request(payload=bytes(16)).encode(), header + icd.OFF_SECURITY, b"\x06")) == "bad_version"
    assert why(damaged(whole, header + icd.OFF_SECURITY, b"\x01")) == "short"  # no room for a tag
    assert why(damaged(request(payload=bytes(16)).encode(), header + icd.OFF_SECURITY, b"\x01")) == "bad_length"
    assert why(damaged(whole, header + icd.OFF_LENGTH, struct.pack(">I", 4))) == "bad_length"
    put = request(op=icd.OP_PUT, payload=b"abc", chunk_len=3)
    assert why(damaged(whole, header + icd.OFF_HOME_PLANE, b"\0\1\0\1")) == "bad_header"  # no PUT
    assert why(damaged(put.encode(), header + icd.OFF_HOME_PLANE, b"\0\1\0\0")) == "bad_header"
    assert why(damaged(put.encode(), header + icd.OFF_HOME_PLANE, b"\0\0\0\1")) == "bad_header"
    assert why(damaged(put.encode(), header + icd.OFF_WORD, b"\1")) == "bad_header"  # no response
    response = request(is_request=False).encode()
    header_of_response = icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES
    assert why(damaged(response, header_of_response + icd.OFF_WORD, b"\4")) == "bad_header"
    for at in range(icd.OFF_SPARE, icd.HEADER_BYTES):
        assert why(damaged(put.encode(), header + at, b"\1")) == "bad_header"
    assert why(damaged(put.encode(), header + icd.OFF_OFFSET, struct.pack(">I", 1))) == "bad_chunk"
    assert why(damaged(put.encode(), header + icd.OFF_CHUNK_LEN, struct.pack(">I", 61441))) == "bad_chunk"
    wrong = bytearray(whole[:-2])
    wrong[7] ^= 1
    assert why(bytes(wrong) + mkPredefinedCrcFun("crc-ccitt-false")(bytes(wrong)).to_bytes(2)) == "bad_checksum"


@pytest.mark.parametrize(
    "fields",
    [
        {"apid": 2048},
        {"seq_count": 16384},
        {"seq_flags": 4},
        {"op": 256},
        {"key": b"short"},
        {"request_id": -1},
        {"src": Satellite(65536, 1)},
        {"payload": bytes(65354)},
        {"security": 1},
        {"tag": bytes(16)},
        {"security": 1, "tag": bytes(15)},
        {"is_request": False, "time_s": 2**32},
    ],
)
def test_what_does_not_fit_is_not_sent(fields: dict[str, object]) -> None:
    with pytest.raises(PacketError):
        request(**fields).encode()


def test_largest_packet() -> None:
    largest = request(payload=bytes(65353))
    assert len(largest.encode()) == icd.LIMIT_PACKET_BYTES
    assert decode(largest.encode()) == largest


@given(st.integers(0, 1000), st.integers(1, 100), st.lists(st.booleans(), min_size=1, max_size=icd.LIMIT_CHUNK_SET))
def test_chunk_sets_come_back(first: int, stride: int, bits: list[bool]) -> None:
    chunks = ChunkSet(first, stride, tuple(bits))
    packet = request(op=icd.OP_HAS, chunk_id=first, payload=chunks.encode())
    assert ChunkSet.of(decode(packet.encode())) == chunks
    assert chunks.chunks() == [first + index * stride for index, bit in enumerate(bits) if bit]


@pytest.mark.parametrize(
    ("payload", "chunk_id", "status"),
    [
        (b"", 0, "bad_length"),
        (struct.pack(">IHH", 1, 8, 0), 0, "bad_length"),
        (struct.pack(">IHHB", 1, 9, 0, 255), 0, "bad_length"),
        (struct.pack(">IHHB", 0, 8, 0, 255), 0, "bad_chunk"),
        (struct.pack(">IHH", 1, 0, 0), 0, "bad_chunk"),
        (struct.pack(">IHH", 1, 2049, 0) + bytes(257), 0, "bad_chunk"),
        (struct.pack(">IHHB", 1, 2, 0, 255), 2**32 - 1, "bad_chunk"),
    ],
)
def test_chunk_sets_that_are_none(payload: bytes, chunk_id: int, status: str) -> None:
    with pytest.raises(PacketError) as caught:
        ChunkSet.of(request(payload=payload, chunk_id=chunk_id))
    assert icd.STATUSES[caught.value.status] == status


@pytest.mark.parametrize("chunks", [ChunkSet(0, 1, ()), ChunkSet(0, 0, (True,)), ChunkSet(0, 1, (True,) * 2049)])
def test_chunk_sets_that_cannot_be_sent(chunks: ChunkSet) -> None:
    with pytest.raises(PacketError):
        chunks.encode()


def test_migrate_payload() -> None:
    assert migrate_payload(Satellite(3, 258)) == b"\x00\x03\x01\x02"
