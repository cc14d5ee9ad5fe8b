"""Packets of the control plane: built and parsed with `spacepackets`, `struct` and the generated ICD (docs/icd.md).

What hosts send is made by the core (`skymemory.link.ground`). This codec is independent of it, and tests hold one against the
other. Malformed input raises `PacketError` and nothing else.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import xor
from typing import Final, NamedTuple

from fastcrc.crc16 import ibm_3740 as _crc16  # CRC-16/CCITT-FALSE by the name of its catalogue
from spacepackets.ccsds.spacepacket import PacketType, SequenceFlags, SpacePacketHeader

from skymemory.wire import icd
from skymemory.wire.address import Satellite

_HEADER: Final = struct.Struct(icd.HEADER_STRUCT)
_RESPONSE_TIME: Final = struct.Struct(">IH4x")
_CHUNK_SET: Final = struct.Struct(">IHH")
_MIGRATE: Final = struct.Struct(">HH")
_ADDRESS: Final = struct.Struct(">HH")
_REQUEST_ID: Final = struct.Struct(">Q")
_FUNCTION_MASK: Final = 0x7F
"""Bits of the operation that the first byte of the command secondary header carries."""
_SEQUENCE: Final = struct.Struct(">H")
_SEQUENCE_AT: Final = 2
_SEQUENCE_MASK: Final = 0x3FFF

KEY_BYTES: Final = icd.LIMIT_KEY_BYTES
NO_KEY: Final = bytes(KEY_BYTES)
NOWHERE: Final = Satellite(0, 0)
"""Gateway of a new packet: the first satellite fills in itself. Home of a packet that is no PUT at a stand-in."""
_WORDS: Final = icd.WORD_SETTLED | icd.WORD_CAUGHT_UP
_SPARE: Final = bytes(icd.HEADER_BYTES - icd.OFF_SPARE)
GROUND_PLANE: Final = 0
"""Plane of a ground host's address; its slot is the host's number."""


class PacketError(ValueError):
    """A datagram is no SkyMemory packet, or a packet cannot be built; `status` is the ICD's code of the reason."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"{icd.STATUSES[status]}: {what}")
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """All fields of a packet, named as in docs/icd.md; addresses are (plane, slot), ground hosts have (0, number)."""

    is_request: bool
    apid: int
    op: int
    src: Satellite
    dst: Satellite
    request_id: int
    status: int = icd.STATUS_OK
    flags: int = 0
    hop_limit: int = icd.LIMIT_HOP_LIMIT
    security: int = 0
    credit: int = 0
    gateway: Satellite = NOWHERE
    tenant: int = 0
    epoch: int = 0
    deadline_ms: int = 0
    key: bytes = NO_KEY
    chunk_id: int = 0
    chunk_total: int = 0
    block_len: int = 0
    chunk_len: int = 0
    offset: int = 0
    chunk_crc: int = 0
    spi: int = 0
    sequence: int = 0
    code_k: int = 0
    code_m: int = 0
    code_scheme: int = 0
    track: int = 0
    content: int = 0
    block_version: int = 0
    cookie: int = 0
    home: Satellite = NOWHERE
    """Satellite whose share a PUT at a stand-in brings; `NOWHERE`: the share of the receiver."""
    word: int = 0
    """Bits `WORD_*` that the satellite that answers says of itself."""
    payload: bytes = b""
    tag: bytes = b""
    """Tag of 16 bytes with a security suite, else empty."""
    seq_flags: int = int(SequenceFlags.UNSEGMENTED)
    seq_count: int = 0
    time_s: int = 0
    """Seconds, in responses only."""
    time_subs: int = 0
    """Units of 1/65536 s, in responses only."""

    def encode(self, deadline_ms: int | None = None) -> bytes:
        """Return the datagram.

        Args:
            deadline_ms: Deadline instead of the packet's own, for a packet that is sent later than it was made.

        Raises:
            PacketError: A field is out of its range, or the packet is too large.
        """
        try:
            header = _HEADER.pack(
                icd.VERSION,
                self.op,
                self.status,
                self.flags,
                self.hop_limit,
                self.security,
                self.credit,
                *self.src,
                *self.dst,
                *self.gateway,
                self.tenant,
                self.epoch,
                self.deadline_ms if deadline_ms is None else deadline_ms,
                self.request_id,
                self.key,
                self.chunk_id,
                self.chunk_total,
                self.block_len,
                self.chunk_len,
                self.offset,
                len(self.payload),
                self.chunk_crc,
                self.spi,
                self.sequence,
                self.code_k,
                self.code_m,
                self.code_scheme,
                self.track,
                self.content,
                self.block_version,
                self.cookie,
                *self.home,
                self.word,
                _SPARE,
            )
            secondary = bytes(2) if self.is_request else _RESPONSE_TIME.pack(self.time_s, self.time_subs)
        except struct.error as error:
            raise PacketError(icd.STATUS_BAD_HEADER, str(error)) from error
        if len(self.key) != KEY_BYTES:  # struct would pad or cut the key silently
            raise PacketError(icd.STATUS_BAD_HEADER, f"key of {len(self.key)} bytes; {KEY_BYTES} are allowed")
        if len(self.tag) != (icd.TAG_BYTES if self.security else 0):
            raise PacketError(icd.STATUS_BAD_HEADER, f"tag of {len(self.tag)} bytes with security suite {self.security}")
        size = icd.PRIMARY_BYTES + len(secondary) + len(header) + len(self.payload) + len(self.tag) + icd.PEC_BYTES
        if size > icd.LIMIT_PACKET_BYTES:
            raise PacketError(icd.STATUS_TOO_LARGE, f"{size} bytes; {icd.LIMIT_PACKET_BYTES} are allowed")
        try:
            primary = _primary(self.is_request, self.apid, size - icd.PRIMARY_BYTES - 1, self.seq_flags)
            if not 0 <= self.seq_count <= _SEQUENCE_MASK:
                raise ValueError(f"sequence count {self.seq_count}; allowed are 0 to {_SEQUENCE_MASK}")
        except ValueError as error:
            raise PacketError(icd.STATUS_BAD_HEADER, str(error)) from error
        packet = bytearray().join((primary, secondary, header, self.payload, self.tag))
        _SEQUENCE.pack_into(packet, _SEQUENCE_AT, self.seq_flags << 14 | self.seq_count)
        if self.is_request:
            packet[icd.PRIMARY_BYTES] = self.op & _FUNCTION_MASK
            packet[icd.PRIMARY_BYTES + 1] = reduce(xor, packet, 0xFF)
        return bytes(packet) + _crc16(bytes(packet)).to_bytes(icd.PEC_BYTES)


def _version(datagram: bytes, start: int) -> tuple[bool, int]:
    """Return whether the header, which begins at `start`, is of our version, and the bytes of the packet's tag."""
    if datagram[start + icd.OFF_VERSION] != icd.VERSION:
        return False, 0
    tag_bytes = icd.TAG_BYTES if datagram[start + icd.OFF_SECURITY] else 0
    if len(datagram) < start + icd.HEADER_BYTES + tag_bytes + icd.PEC_BYTES:
        raise PacketError(icd.STATUS_SHORT, f"{len(datagram)} bytes")
    return True, tag_bytes


class Base(NamedTuple):
    """Fields that packets of every version have at the same place."""

    version: int
    """Version of the SkyMemory header."""
    is_request: bool
    status: int
    """Status of a response (ICD)."""
    src: Satellite
    request_id: int


def decode_base(datagram: bytes) -> Base:
    """Parse what packets of every version have.

    Raises:
        PacketError: The datagram is too short, is no Space Packet with a secondary header, or came damaged.
    """
    if len(datagram) < icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.BASE_HEADER_BYTES + icd.PEC_BYTES:
        raise PacketError(icd.STATUS_SHORT, f"{len(datagram)} bytes")
    primary = SpacePacketHeader.unpack(datagram[: icd.PRIMARY_BYTES])
    is_request = primary.packet_type == PacketType.TC
    start = icd.PRIMARY_BYTES + (icd.REQUEST_SECONDARY_BYTES if is_request else icd.RESPONSE_SECONDARY_BYTES)
    if len(datagram) < start + icd.BASE_HEADER_BYTES + icd.PEC_BYTES or not primary.sec_header_flag:
        raise PacketError(icd.STATUS_SHORT, f"{len(datagram)} bytes")
    if _crc16(datagram) != 0:  # the CRC over a packet with its own CRC is 0
        raise PacketError(icd.STATUS_BAD_CRC, "packet error control")
    plane, slot = _ADDRESS.unpack_from(datagram, start + icd.OFF_SRC_PLANE)
    (request_id,) = _REQUEST_ID.unpack_from(datagram, start + icd.OFF_REQUEST_ID)
    version, status = datagram[start + icd.OFF_VERSION], datagram[start + icd.OFF_STATUS]
    return Base(version, is_request, status, Satellite(plane, slot), request_id)


def _check_last(spare: bytes, word: int, home: Satellite, *, is_request: bool, op: int) -> None:
    """Raise PacketError if the last fields are not as they must be: only a PUT names a home, and only a response has a word."""
    if spare != _SPARE or word & ~(0 if is_request else _WORDS):
        raise PacketError(icd.STATUS_BAD_HEADER, f"word {word:#x}, or spare bytes that are not 0")
    if home != NOWHERE and (0 in home or not is_request or op != icd.OP_PUT):
        raise PacketError(icd.STATUS_BAD_HEADER, f"home {home}")


def decode(datagram: bytes) -> Packet:
    """Parse a datagram, trusting none of its lengths; the order of checks is that of `SKY_Packet_Decode` in the flight core.

    Raises:
        PacketError: The datagram is malformed; the message says how.
    """
    if len(datagram) < icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.BASE_HEADER_BYTES + icd.PEC_BYTES:
        raise PacketError(icd.STATUS_SHORT, f"{len(datagram)} bytes")
    (sequence,) = _SEQUENCE.unpack_from(datagram, _SEQUENCE_AT)
    primary = _unpacked(datagram[:_SEQUENCE_AT] + _SEQUENCE.pack(sequence & ~_SEQUENCE_MASK) + datagram[4 : icd.PRIMARY_BYTES])
    if primary.ccsds_version != 0:
        raise PacketError(icd.STATUS_BAD_HEADER, f"packet version is {primary.ccsds_version}; 0 is allowed")
    is_request = primary.packet_type == PacketType.TC
    start = icd.PRIMARY_BYTES + (icd.REQUEST_SECONDARY_BYTES if is_request else icd.RESPONSE_SECONDARY_BYTES)
    if len(datagram) < start + icd.BASE_HEADER_BYTES + icd.PEC_BYTES:
        raise PacketError(icd.STATUS_SHORT, f"{len(datagram)} bytes")
    if primary.packet_len != len(datagram):
        raise PacketError(icd.STATUS_BAD_LENGTH, f"the packet says {primary.packet_len} bytes, the datagram has {len(datagram)}")
    if not primary.sec_header_flag:
        raise PacketError(icd.STATUS_BAD_HEADER, "no secondary header")
    is_ours, tag_bytes = _version(datagram, start)
    if _crc16(bytes(datagram)) != 0:  # the CRC over a packet with its own CRC is 0
        raise PacketError(icd.STATUS_BAD_CRC, "packet error control")
    if is_request and reduce(xor, datagram[: -icd.PEC_BYTES], 0xFF) != 0:
        raise PacketError(icd.STATUS_BAD_CHECKSUM, "command checksum")
    if is_request and datagram[icd.PRIMARY_BYTES] != datagram[start + icd.OFF_OP] & _FUNCTION_MASK:
        raise PacketError(icd.STATUS_BAD_HEADER, "function code and operation differ")
    if not is_ours or datagram[start + icd.OFF_SECURITY] > icd.SUITE_HANDSHAKE:
        raise PacketError(icd.STATUS_BAD_VERSION, "header version or security suite is not ours")
    fields = dict(zip(icd.HEADER_FIELDS, _HEADER.unpack_from(datagram, start), strict=True))
    del fields["version"]
    end_of_payload = len(datagram) - icd.PEC_BYTES - tag_bytes
    payload = datagram[start + icd.HEADER_BYTES : end_of_payload]
    if fields.pop("length") != len(payload):
        raise PacketError(icd.STATUS_BAD_LENGTH, f"the payload has {len(payload)} bytes, the header says otherwise")
    for end in ("src", "dst", "gateway", "home"):
        fields[end] = Satellite(fields.pop(f"{end}_plane"), fields.pop(f"{end}_slot"))
    _check_last(fields.pop("spare"), fields["word"], fields["home"], is_request=is_request, op=fields["op"])
    carries_chunk = fields["op"] == icd.OP_PUT if is_request else fields["op"] == icd.OP_GET and fields["status"] == 0
    if carries_chunk and not fields["offset"] + len(payload) <= fields["chunk_len"] <= icd.LIMIT_CHUNK_BYTES:
        raise PacketError(icd.STATUS_BAD_CHUNK, f"part at {fields['offset']} of a chunk of {fields['chunk_len']} bytes")
    time_s, time_subs = (0, 0) if is_request else _RESPONSE_TIME.unpack_from(datagram, icd.PRIMARY_BYTES)
    return Packet(
        is_request=is_request,
        apid=primary.apid,
        seq_flags=int(primary.seq_flags),
        seq_count=sequence & _SEQUENCE_MASK,
        time_s=time_s,
        time_subs=time_subs,
        payload=payload,
        tag=datagram[end_of_payload : end_of_payload + tag_bytes],
        **fields,
    )


# Packets of a kind differ in their count only, and making a header takes as long as all the rest: headers are cached.


@lru_cache(maxsize=1024)
def _primary(is_request: bool, apid: int, data_len: int, seq_flags: int) -> bytes:
    """Return the primary header with a count of 0. Raise ValueError if a field is out of its range."""
    return bytes(
        SpacePacketHeader(
            packet_type=PacketType.TC if is_request else PacketType.TM,
            apid=apid,
            seq_count=0,
            data_len=data_len,
            sec_header_flag=True,
            seq_flags=SequenceFlags(seq_flags),
        ).pack()
    )


@lru_cache(maxsize=1024)
def _unpacked(primary: bytes) -> SpacePacketHeader:
    """Parse a primary header with a count of 0."""
    return SpacePacketHeader.unpack(primary)


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """The chunks first, first + stride, ... whose bits are set."""

    first: int
    stride: int
    bits: tuple[bool, ...]

    def encode(self) -> bytes:
        """Return the payload; `first` travels in the packet's `chunk_id`.

        Raises:
            PacketError: There are no bits or too many, the stride is 0, or a number exceeds 32 bits.
        """
        if not 1 <= len(self.bits) <= icd.LIMIT_CHUNK_SET or not 1 <= self.stride <= 0xFFFFFFFF:
            raise PacketError(icd.STATUS_BAD_CHUNK, f"chunk set of {len(self.bits)} bits, 1 to {icd.LIMIT_CHUNK_SET} are allowed")
        bitmap = bytearray((len(self.bits) + 7) // 8)
        for index, held in enumerate(self.bits):
            if held:
                bitmap[index // 8] |= 0x80 >> index % 8
        return _CHUNK_SET.pack(self.stride, len(self.bits), 0) + bytes(bitmap)

    @classmethod
    def of(cls, packet: Packet) -> "ChunkSet":
        """Return the chunk set of a packet.

        Raises:
            PacketError: The payload is no chunk set.
        """
        if len(packet.payload) < _CHUNK_SET.size:
            raise PacketError(icd.STATUS_BAD_LENGTH, f"chunk set of {len(packet.payload)} bytes")
        stride, count, _ = _CHUNK_SET.unpack_from(packet.payload)
        bitmap = packet.payload[_CHUNK_SET.size :]
        if len(bitmap) != (count + 7) // 8:
            raise PacketError(icd.STATUS_BAD_LENGTH, f"bitmap of {len(bitmap)} bytes for {count} chunks")
        if stride == 0 or not 1 <= count <= icd.LIMIT_CHUNK_SET:
            raise PacketError(icd.STATUS_BAD_CHUNK, f"chunk set with stride {stride} and {count} chunks")
        if packet.chunk_id + (count - 1) * stride > 0xFFFFFFFF:
            raise PacketError(icd.STATUS_BAD_CHUNK, "chunk set beyond the last chunk id")
        bits = tuple(bool(bitmap[index // 8] & 0x80 >> index % 8) for index in range(count))
        return cls(packet.chunk_id, stride, bits)

    def chunks(self) -> list[int]:
        """Return the ids of the chunks that are set."""
        return [self.first + index * self.stride for index, held in enumerate(self.bits) if held]


def migrate_payload(target: Satellite) -> bytes:
    """Return the payload of MIGRATE, which names the satellite that is to hold the chunks."""
    return _MIGRATE.pack(*target)
