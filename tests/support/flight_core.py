"""The flight core's own functions, from the client library: tests hold ground code against them.

The ground has its own codec (`skymemory.wire.packets`, for the control plane) and its own torus
(`skymemory.sky.placement.torus`).
"""

import ctypes
from functools import cache
from typing import Any

from skymemory.common import compiled
from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet
from support import core_structures as c

_LINKS = tuple(Direction)
_ALL_LINKS = (1 << len(_LINKS)) - 1
_ADDRESSES = frozenset(("src", "dst", "gateway", "home"))
_SPECIAL = _ADDRESSES | {"key", "length", "payload", "payload_crc16", "head", "tag"}
_PLAIN = tuple(str(name) for name, *_ in c.Packet._fields_ if name not in _SPECIAL)


@cache
def _core() -> ctypes.CDLL:
    return compiled.load(compiled.library_path("libskymem_client.so"), c.SIGNATURES)


def crc16(data: bytes, crc: int = c.CRC16_INIT) -> int:
    """Return CRC-16/CCITT-FALSE, continued from `crc` (CCSDS 132.0-B, 4.1.6.2)."""
    return int(_core().SKY_Crc16(crc, data, len(data)))


def crc32c(data: bytes, crc: int = 0) -> int:
    """Return CRC-32C, continued from `crc` (RFC 3720, B.4)."""
    return int(_core().SKY_Crc32c(crc, data, len(data)))


def crc_implementation() -> str:
    """Return the way in which this machine computes CRCs: `pclmul+sse4.2`, `pmull+crc32` or `table`."""
    return str(_core().SKY_Crc_Implementation().decode())


def force_portable_crc(portable: bool) -> None:
    """Use tables from now on (True), or the best way that this machine has (False)."""
    _core().SKY_Crc_ForcePortable(int(portable))


def encode(packet: Packet) -> bytes:
    """Return the datagram as the flight core writes it; empty if it refuses."""
    raw = c.Packet()
    for name in _PLAIN:
        setattr(raw, name, getattr(packet, name))
    for name in _ADDRESSES:
        setattr(raw, name, c.Addr(*getattr(packet, name)))
    raw.key[:] = packet.key
    raw.length = len(packet.payload)
    payload = ctypes.create_string_buffer(packet.payload, len(packet.payload))
    raw.payload = ctypes.addressof(payload)
    head = (ctypes.c_uint8 * c.HEAD_MAX)()
    size = _core().SKY_Packet_EncodeHead(ctypes.byref(raw), head)
    if not size:
        return b""
    tail = (ctypes.c_uint8 * _core().SKY_Packet_TailBytes(ctypes.byref(raw)))()
    _core().SKY_Packet_Finish(ctypes.byref(raw), None, packet.tag or None, head, tail)
    return bytes(head[:size]) + packet.payload + bytes(tail)


def decode(datagram: bytes) -> tuple[int, Packet | None]:
    """Return the status with which the flight core decodes a datagram, and the packet if that is OK."""
    raw = c.Packet()
    status = int(_core().SKY_Packet_Decode(datagram, len(datagram), ctypes.byref(raw)))
    if status != icd.STATUS_OK:
        return status, None
    fields: dict[str, Any] = {name: getattr(raw, name) for name in _PLAIN}
    fields |= {name: Satellite(getattr(raw, name).plane, getattr(raw, name).slot) for name in _ADDRESSES}
    payload = ctypes.string_at(raw.payload, raw.length)
    tag = ctypes.string_at(raw.tag, icd.TAG_BYTES) if raw.tag else b""
    return status, Packet(**fields, key=bytes(raw.key), payload=payload, tag=tag)


def relabel(datagram: bytes, hop_limit: int, gateway: Satellite) -> bytes:
    """Return a datagram as a satellite passes it on."""
    held = ctypes.create_string_buffer(datagram, len(datagram))
    _core().SKY_Packet_Relabel(held, len(datagram), hop_limit, c.Addr(*gateway))
    return held.raw


def _core_torus(torus: Torus) -> c.Torus:
    raw = c.Torus()
    if not _core().SKY_Torus_Init(ctypes.byref(raw), torus.planes, torus.slots, torus.seam_cut):
        raise ValueError(f"{torus}: 1 to 65535 planes and slots are allowed")
    return raw


def neighbour(torus: Torus, satellite: Satellite, direction: Direction) -> Satellite | None:
    """Return `SKY_Torus_Neighbour`; None where no link leads."""
    raw = _core_torus(torus)
    end = _core().SKY_Torus_Neighbour(ctypes.byref(raw), c.Addr(*satellite), _LINKS.index(direction))
    return Satellite(end.plane, end.slot) if end.plane else None


def hops(torus: Torus, origin: Satellite, target: Satellite) -> int:
    """Return `SKY_Torus_Hops`."""
    raw = _core_torus(torus)
    return int(_core().SKY_Torus_Hops(ctypes.byref(raw), c.Addr(*origin), c.Addr(*target)))


def next_hop(torus: Torus, origin: Satellite, target: Satellite) -> Direction | None:
    """Return `SKY_Torus_NextHop` with all links up, for a packet that starts here; None at the target."""
    raw = _core_torus(torus)
    link = _core().SKY_Torus_NextHop(ctypes.byref(raw), c.Addr(*origin), c.Addr(*target), c.Addr(0, 0), _ALL_LINKS)
    return _LINKS[link] if link < len(_LINKS) else None
