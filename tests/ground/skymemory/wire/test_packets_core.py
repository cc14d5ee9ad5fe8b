"""The control plane's codec and the flight core's: each reads what the other writes, and refuses for the same reason."""

import ctypes
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.link.native import library
from skymemory.placement.torus import Satellite
from skymemory.wire import icd
from skymemory.wire.packets import Packet, PacketError, decode

STRUCT_BYTES = 1024
"""more than a `SKY_Packet_t`; what is in it is the core's business"""
U8, U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
addresses = st.builds(Satellite, U16, U16)


class Address(ctypes.Structure):
    _fields_ = (("plane", ctypes.c_uint16), ("slot", ctypes.c_uint16))


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    is_request = draw(st.booleans())
    payload = draw(st.binary(max_size=200))
    return Packet(
        is_request=is_request,
        apid=draw(st.integers(0, 0x7FF)),
        op=draw(U8),
        src=draw(addresses),
        dst=draw(addresses),
        request_id=draw(U64),
        status=draw(st.integers(0, 1)),
        flags=draw(U8),
        hop_limit=draw(U8),
        credit=draw(U16),
        gateway=draw(addresses),
        tenant=draw(U32),
        epoch=draw(U32),
        deadline_ms=draw(U32),
        key=draw(st.binary(min_size=32, max_size=32)),
        chunk_id=draw(U32),
        chunk_total=draw(U32),
        block_len=draw(U32),
        chunk_len=draw(st.integers(0, 62_000)),
        offset=draw(st.integers(0, 62_000)),
        chunk_crc=draw(U32),
        payload=payload,
        seq_flags=draw(st.integers(0, 3)),
        seq_count=draw(st.integers(0, 16383)),
        time_s=0 if is_request else draw(U32),
        time_subs=0 if is_request else draw(U16),
    )


def core_decode(datagram: bytes) -> tuple[int, ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char]]:
    """Status, the decoded structure, and the datagram that it points into."""
    loaded = library()
    loaded.SKY_Packet_Decode.restype = ctypes.c_uint8
    loaded.SKY_Packet_Decode.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    held, packet = ctypes.create_string_buffer(datagram, len(datagram)), ctypes.create_string_buffer(STRUCT_BYTES)
    return loaded.SKY_Packet_Decode(held, len(datagram), packet), packet, held


def core_encode(packet: ctypes.Array[ctypes.c_char]) -> bytes:
    loaded = library()
    loaded.SKY_Packet_Encode.restype = ctypes.c_size_t
    loaded.SKY_Packet_Encode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(icd.LIMIT_PACKET_BYTES)
    size = loaded.SKY_Packet_Encode(packet, out, len(out))
    return out.raw[:size]


def status_of(datagram: bytes) -> int:
    try:
        decode(datagram)
    except PacketError as error:
        return error.status
    return icd.STATUS_OK


@given(packets())
def test_the_core_reads_and_writes_the_same_bytes(packet: Packet) -> None:
    datagram = packet.encode()
    status, decoded, held = core_decode(datagram)
    assert status == status_of(datagram)
    if status == icd.STATUS_OK:
        assert core_encode(decoded) == datagram == held.raw


@given(packets(), st.data())
def test_the_core_refuses_for_the_same_reason(packet: Packet, data: st.DataObject) -> None:
    datagram = bytearray(packet.encode())
    for at in data.draw(st.lists(st.integers(0, len(datagram) - 1), max_size=3)):
        datagram[at] ^= data.draw(st.integers(1, 255))
    cut = bytes(datagram[: data.draw(st.integers(0, len(datagram)))])
    for damaged in (bytes(datagram), cut, cut + b"\0"):
        assert core_decode(damaged)[0] == status_of(damaged)


@given(packets(), U8, addresses)
def test_a_forwarded_packet_is_still_right(packet: Packet, hop_limit: int, gateway: Satellite) -> None:
    """A satellite changes the mutable fields, and checksum and PEC by the difference only."""
    loaded = library()
    loaded.SKY_Packet_Relabel.restype = None
    loaded.SKY_Packet_Relabel.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint8, Address]
    packet = replace(packet, op=icd.OP_HAS)  # no chunk: nothing to contradict
    datagram = packet.encode()
    held = ctypes.create_string_buffer(datagram, len(datagram))
    loaded.SKY_Packet_Relabel(held, len(datagram), hop_limit, Address(*gateway))
    assert decode(held.raw) == replace(packet, hop_limit=hop_limit, gateway=gateway)


def test_there_is_a_core() -> None:
    """Without it these tests would prove nothing: a damaged packet is not fine with it."""
    assert core_decode(bytes(200))[0] != icd.STATUS_OK
    with pytest.raises(PacketError):
        decode(bytes(200))
