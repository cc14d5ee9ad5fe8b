"""A ground host that makes its packets by itself: a stranger, somebody with a keyring, or who recorded what others sent."""

import hashlib
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from cryptography.hazmat.primitives.hashes import BLAKE2b
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from skymemory.security.keyring import Keyring
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.core_library import crc32c
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, ChunkSet, Packet, PacketError, decode
from support.waiting import PATIENCE_S

HEAD_BYTES: Final = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.HEADER_BYTES
CHECKSUM_AT: Final = icd.PRIMARY_BYTES + 1
NUMBER: Final = 0x600D
"""Number of a host, if it does not matter."""
ONE_CHUNK: Final = ChunkSet(0, 1, (True,)).encode()
_START: Final = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES
AGAIN_S: Final = 0.2
_BURST: Final = 64
"""Datagrams that a satellite's socket takes at once."""
_UDP_SEGMENT: Final = 103
"""Option of Linux that the module `socket` does not name."""


@dataclass
class Association:
    """An association with a satellite, under BLAKE2b over headers."""

    spi: int
    there: bytes
    back: bytes
    sequence: int = 0


def _covered(datagram: bytes, sequence: int, *, with_payload: bool) -> bytes:
    """Return what a tag covers of a request."""
    head = bytearray(datagram[:HEAD_BYTES])
    head[CHECKSUM_AT] = head[_START + icd.OFF_HOP_LIMIT] = 0
    head[_START + icd.OFF_GATEWAY_PLANE : _START + icd.OFF_TENANT] = bytes(4)
    end = len(datagram) - icd.PEC_BYTES - icd.TAG_BYTES
    return sequence.to_bytes(8) + head + (datagram[HEAD_BYTES:end] if with_payload else b"")


def sealed(packet: Packet, association: Association) -> bytes:
    """Return the next request under an association, with its tag."""
    association.sequence += 1
    packet = replace(
        packet,
        security=icd.SUITE_BLAKE2B_HEADER,
        spi=association.spi,
        sequence=association.sequence,
        tag=bytes(icd.TAG_BYTES),
    )
    covered = _covered(packet.encode(), packet.sequence, with_payload=packet.op != icd.OP_PUT)
    return replace(packet, tag=hashlib.blake2b(covered, key=association.there, digest_size=icd.TAG_BYTES).digest()).encode()


def handshake(packet: Packet, credential: bytes, pair: bytes, word: bytes) -> bytes:
    """Return a request for an association."""
    payload = credential + word + bytes([icd.SUITE_BLAKE2B_HEADER]) + bytes(7)
    packet = replace(packet, security=icd.SUITE_HANDSHAKE, payload=payload, tag=bytes(icd.TAG_BYTES))
    covered = _covered(packet.encode(), 0, with_payload=True)[8:]
    return replace(packet, tag=hashlib.blake2b(covered, key=pair, digest_size=icd.TAG_BYTES).digest()).encode()


def association_of(answer: Packet, pair: bytes, word: bytes) -> Association:
    """Return what a satellite granted."""
    salt, suite = answer.payload[:16], answer.payload[16:17]
    info = b"skymemory 2 session" + word + salt + answer.spi.to_bytes(4) + suite
    keys = HKDF(BLAKE2b(64), 64, None, info).derive(pair)
    return Association(answer.spi, keys[:32], keys[32:])


def mended(datagram: bytes) -> bytes:
    """Return a request that was changed, with the checksum and the PEC of what it is now."""
    changed = bytearray(datagram[: -icd.PEC_BYTES])
    changed[CHECKSUM_AT] = 0
    parity = 0xFF
    for byte in changed:
        parity ^= byte
    changed[CHECKSUM_AT] = parity
    return bytes(changed) + crc16(bytes(changed)).to_bytes(icd.PEC_BYTES)


def status_of(answer: bytes) -> int:
    """Return the status of an answer, also of one in what every version has."""
    return answer[icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES + icd.OFF_STATUS]


def crc16(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE (CCSDS 132.0-B, 4.1.6.2)."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return crc


class RawHost:
    """A socket on the ground that speaks to satellites in packets of its own making. A context manager."""

    def __init__(
        self,
        constellation: Constellation,
        number: int = NUMBER,
        *,
        keyring: Keyring | None = None,
        source: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        """Open the socket.

        Args:
            number: Number of the host.
            keyring: Its keyring, if it has one.
            source: Address and port that its packets come from.
        """
        self.address = Satellite(GROUND_PLANE, number)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(source)
        self.socket.settimeout(PATIENCE_S)
        self.cookies: dict[Satellite, int] = {}
        self.associations: dict[Satellite, Association] = {}
        self._constellation = constellation
        self._over: set[int] = set()
        self._keyring = keyring

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.socket.close()

    def request(self, op: int, dst: Satellite, **fields: object) -> Packet:
        """Return a request of this host, with a number of its own."""
        apid = icd.APID_ISL if op in (icd.OP_RELAY, icd.OP_HELLO, icd.OP_ASSOCIATE) else icd.APID_KVC
        made = Packet(is_request=True, apid=apid, op=op, src=self.address, dst=dst, request_id=secrets.randbits(64))
        return replace(made, **fields)  # type: ignore[arg-type]  # fields of a packet, as the test names them

    def put(self, dst: Satellite, key: bytes, chunk: bytes, **fields: object) -> Packet:
        """Return the PUT of a block of one chunk, or of one chunk of a block."""
        whole = {"chunk_total": 1, "block_len": len(chunk), "chunk_len": len(chunk), **fields}
        return self.request(icd.OP_PUT, dst, key=key, chunk_crc=crc32c(chunk), payload=chunk, **whole)

    def send(self, datagram: bytes, entry: Satellite) -> None:
        """Send bytes to a satellite."""
        self.socket.sendto(datagram, (self._constellation.address(*entry), self._constellation.network.port))

    def send_trains(self, datagrams: list[bytes], entry: Satellite) -> None:
        """Send datagrams of one length to a satellite, faster than one by one: the kernel cuts trains of them."""
        (size,) = set(map(len, datagrams))
        self.socket.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, size)
        for at in range(0, len(datagrams), _BURST):
            self.send(b"".join(datagrams[at : at + _BURST]), entry)
        self.socket.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, 0)

    def receive(self) -> bytes:
        """Return the next datagram that comes."""
        return self.socket.recv(65536)

    def answers(self, datagrams: Iterable[bytes], entry: Satellite) -> list[bytes]:
        """Send datagrams to a satellite, and return all that it answers. It keeps their order, and has looked at all of them."""
        found: list[bytes] = []
        waiting = list(datagrams)
        while waiting:
            burst, waiting = waiting[:_BURST], waiting[_BURST:]
            last = self.request(icd.OP_ASSOCIATE, entry)
            for one in burst:
                self.send(one, entry)
            found += self._until(last, entry)
        return found

    def _until(self, last: Packet, entry: Satellite) -> list[bytes]:
        """Return what comes until a satellite answers this request, which is sent again, as strangers are not answered always."""
        found: list[bytes] = []
        self.socket.settimeout(AGAIN_S)
        try:
            for _ in range(round(PATIENCE_S / AGAIN_S)):
                self.send(last.encode(), entry)
                with suppress(TimeoutError):
                    while (number := _number_of(answer := self.receive())) != last.request_id:
                        if number not in self._over:
                            found.append(answer)
                    self._over.add(last.request_id)
                    return found
        finally:
            self.socket.settimeout(PATIENCE_S)
        raise AssertionError(f"satellite {entry} does not answer")

    def ask(self, datagram: bytes, entry: Satellite) -> Packet | None:
        """Send a request, and return its answer; None if there is none."""
        found = self.answers([datagram], entry)
        assert len(found) <= 1
        return decode(found[0]) if found else None

    def open(self, satellite: Satellite) -> None:
        """Get a cookie of a satellite, or with a keyring an association. A cookie that it has goes with it."""
        request = self.request(icd.OP_ASSOCIATE, satellite, cookie=self.cookies.get(satellite, 0))
        if self._keyring is None:
            self.send(request.encode(), satellite)
            self.cookies[satellite] = decode(self.receive()).cookie
            return
        word, pair = secrets.token_bytes(16), self._keyring.pair_key(*satellite)
        self.send(handshake(request, self._keyring.credential, pair, word), satellite)
        answer = decode(self.receive())
        assert answer.status == icd.STATUS_OK, answer
        self.associations[satellite] = association_of(answer, pair, word)
        self.cookies[satellite] = answer.cookie

    def open_way(self, satellite: Satellite) -> None:
        """Get an association with a satellite, and the cookie with which it passes packets on to others."""
        self.open(satellite)
        answer = self.ask(self.made(self.request(icd.OP_ASSOCIATE, satellite)), satellite)
        assert answer is not None
        assert answer.status == icd.STATUS_OK, answer
        self.cookies[satellite] = answer.cookie

    def made(self, packet: Packet) -> bytes:
        """Return the bytes of a request to a satellite that is open, with cookie and tag."""
        packet = replace(packet, cookie=self.cookies[packet.dst])
        return packet.encode() if self._keyring is None else sealed(packet, self.associations[packet.dst])

    def served(self, packet: Packet) -> Packet | None:
        """Open a satellite if need be, send it a request, and return its answer."""
        if packet.dst not in self.cookies:
            self.open(packet.dst)
        return self.ask(self.made(packet), packet.dst)

    def holds(self, satellite: Satellite, key: bytes, tenant: int) -> bool:
        """Return True if a satellite has the first chunk of a block."""
        asked = self.request(icd.OP_HAS, satellite, key=key, tenant=tenant, flags=icd.FLAG_ANY, payload=ONE_CHUNK)
        answer = self.served(asked)
        assert answer is not None
        assert answer.status in (icd.STATUS_OK, icd.STATUS_NOT_FOUND), answer
        return answer.status == icd.STATUS_OK and answer.block_len > 0

    def chunks(self, satellite: Satellite, key: bytes, tenant: int) -> list[Packet]:
        """Return what a satellite sends of a block: packets with its chunks, or why there is none."""
        if satellite not in self.cookies:
            self.open(satellite)
        whole = ChunkSet(0, 1, (True,) * 64).encode()
        asked = self.request(icd.OP_GET, satellite, key=key, tenant=tenant, credit=64, payload=whole)
        return [decode(one) for one in self.answers([self.made(asked)], satellite)]


def _number_of(datagram: bytes) -> int | None:
    try:
        return decode(datagram).request_id
    except PacketError:
        return None
