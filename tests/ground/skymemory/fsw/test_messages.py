"""Messages: encode, decode, and what is refused."""

import contextlib

import pytest
import spacepackets
from hypothesis import given
from hypothesis import strategies as st

from skymemory.fsw.messages import Message, MessageError

COMMANDS = st.integers(0x1800, 0x1FFF)
TELEMETRY = st.integers(0x0800, 0x0FFF)


@given(COMMANDS, st.binary(max_size=300), st.integers(0, 127), st.integers(0, 0x3FFF))
def test_command_round_trip(mid: int, payload: bytes, code: int, sequence: int) -> None:
    message = Message(mid, payload, code, sequence=sequence)
    assert Message.decode(message.encode()) == message
    checksum = 0xFF
    for byte in message.encode():
        checksum ^= byte
    assert checksum == 0


@given(TELEMETRY, st.binary(max_size=300), st.integers(0, 0x3FFF))
def test_telemetry_round_trip(mid: int, payload: bytes, sequence: int) -> None:
    decoded = Message.decode(Message(mid, payload, sequence=sequence).encode())
    assert (decoded.mid, decoded.payload, decoded.sequence, decoded.is_command) == (mid, payload, sequence, False)


@given(st.one_of(COMMANDS, TELEMETRY), st.binary(max_size=50), st.integers(0, 0x3FFF))
def test_primary_header_is_what_spacepackets_says(mid: int, payload: bytes, sequence: int) -> None:
    message = Message(mid, payload, sequence=sequence)
    header = spacepackets.SpacePacketHeader.unpack(message.encode())
    assert header.apid == mid & 0x7FF
    assert header.seq_count == sequence
    assert header.packet_type == (spacepackets.PacketType.TC if message.is_command else spacepackets.PacketType.TM)
    assert header.sec_header_flag
    assert header.data_len + 7 == message.size


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_an_error(packet: bytes) -> None:
    with contextlib.suppress(MessageError):
        assert Message.decode(packet).size == len(packet)


@pytest.mark.parametrize("fields", [{"mid": 0}, {"mid": 0x2800}, {"mid": 0x1001}, {"mid": 0x1801, "function_code": 128}])
def test_refused(fields: dict[str, int]) -> None:
    with pytest.raises(MessageError, match="allowed are"):
        Message(**fields)


def test_too_large() -> None:
    assert Message(0x1800, bytes(32760)).size == 32768
    with pytest.raises(MessageError, match="allowed are up to 32768"):
        Message(0x1800, bytes(32761))
