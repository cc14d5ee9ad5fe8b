"""Protocol that fills in cFS's command checksum: COSMOS computes CRCs, but no XOR over a packet."""

from openc3.interfaces.protocols.protocol import Protocol

CHECKSUM_OFFSET = 7
"""Offset of the checksum in CFE_MSG_CommandHeader_t."""


class CommandChecksumProtocol(Protocol):
    """Checksum of written commands; packets that are read pass unchanged."""

    def write_data(self, data, extra=None):
        """Return the packet with the byte that makes the XOR from 0xFF over all bytes 0."""
        packet = bytearray(data)
        packet[CHECKSUM_OFFSET] = 0
        checksum = 0xFF
        for byte in packet:
            checksum ^= byte
        packet[CHECKSUM_OFFSET] = checksum
        return bytes(packet), extra
