"""Software Bus messages: CCSDS Space Packets with cFS's secondary headers (133.0-B-2; cFS: command 8 bytes, telemetry 16)."""

import ctypes
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from skymemory.fsw.structures import (
    MESSAGE_BYTES_MAX,
    CommandHeader,
    CommandSecondaryHeader,
    TelemetryHeader,
)

EPOCH: Final = datetime(1980, 1, 6, tzinfo=UTC)
"""Epoch of cFE's time, here without leap seconds."""

_COMMAND_BIT: Final = 0x1000
_SECONDARY_BIT: Final = 0x0800
_UNSEGMENTED: Final = 0xC000
_MID_MAX: Final = 0x1FFF
_PRIMARY: Final = struct.Struct(">HHH")
_LENGTH_LESS: Final = 7

ONBOARD_MIDS: Final = range(0x08E0, 0x08F0)
"""Telemetry of the user's on-board code; the first id is relayed to ground hosts that listen."""
ONBOARD_CMD_MIDS: Final = range(0x18E0, 0x18F0)
"""Commands to the user's on-board code; accepted from the ground."""


class MessageError(ValueError):
    """Bytes that are no message, or a message that cannot be built."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message without its headers.

    Commands have a `function_code`; telemetry that came over the bus has a `time`; the bus writes `sequence`.
    """

    mid: int
    payload: bytes = b""
    function_code: int = 0
    time: datetime | None = None
    sequence: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.mid <= _MID_MAX or not self.mid & _SECONDARY_BIT:
            raise MessageError(f"the message id is 0x{self.mid:04X}; allowed are 0x0800 to 0x0FFF and 0x1800 to 0x1FFF")
        if not 0 <= self.function_code <= 0x7F:
            raise MessageError(f"the function code is {self.function_code}; allowed are 0 to 127")
        if self.size > MESSAGE_BYTES_MAX:
            raise MessageError(f"the message has {self.size} bytes; allowed are up to {MESSAGE_BYTES_MAX}")

    @property
    def is_command(self) -> bool:
        """True for a command, False for telemetry."""
        return bool(self.mid & _COMMAND_BIT)

    @property
    def size(self) -> int:
        """Bytes with headers."""
        return ctypes.sizeof(CommandHeader if self.is_command else TelemetryHeader) + len(self.payload)

    def encode(self) -> bytes:
        """Return the packet; the bus writes sequence count, time and checksum anew."""
        head = _PRIMARY.pack(self.mid, _UNSEGMENTED | self.sequence, self.size - _LENGTH_LESS)
        if not self.is_command:
            return head + bytes(ctypes.sizeof(TelemetryHeader) - len(head)) + self.payload
        packet = bytearray(head + bytes((self.function_code, 0)) + self.payload)
        checksum = 0xFF
        for byte in packet:
            checksum ^= byte
        CommandSecondaryHeader.from_buffer(packet, _PRIMARY.size).checksum = checksum
        return bytes(packet)

    @classmethod
    def decode(cls, packet: bytes) -> Self:
        """Read a packet.

        Raises:
            MessageError: The packet is too short, has a length that contradicts the header, or has no secondary header.
        """
        if len(packet) < _PRIMARY.size:
            raise MessageError(
                f"the packet has {len(packet)} bytes; allowed are {_PRIMARY.size} and more, for the primary header"
            )
        mid, sequence, length = _PRIMARY.unpack_from(packet)
        header = ctypes.sizeof(CommandHeader if mid & _COMMAND_BIT else TelemetryHeader)
        if length + _LENGTH_LESS != len(packet) or len(packet) < header:
            raise MessageError(f"message 0x{mid:04X} has {len(packet)} bytes, but its header says {length + _LENGTH_LESS}")
        if mid & _COMMAND_BIT:
            secondary = CommandSecondaryHeader.from_buffer_copy(packet, _PRIMARY.size)
            return cls(mid, packet[header:], secondary.function_code & 0x7F, sequence=sequence & 0x3FFF)
        seconds, fraction = struct.unpack_from(">IH", packet, _PRIMARY.size)
        time = EPOCH + timedelta(seconds=seconds + fraction / 65536)
        return cls(mid, packet[header:], time=time, sequence=sequence & 0x3FFF)
