"""The flight core's own functions, which the client library carries: what ground code is held against.

The ground has its own codec (`skymemory.wire.packets`, for the control plane), its own torus (`skymemory.placement.torus`), and
its own rolling window (`skymemory.placement.rolling` and `track`).
"""

import ctypes
from collections.abc import Iterable
from functools import cache
from typing import Any

from skymemory.link.native import library
from skymemory.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.placement.rolling import Cell
from skymemory.placement.torus import Direction, Satellite, Torus
from skymemory.wire import icd
from skymemory.wire.packets import Packet

_CRC16_INIT = 0xFFFF
_LINKS = tuple(Direction)
_ALL_LINKS = (1 << len(_LINKS)) - 1
PLACEMENT_SERVERS_MAX = 1024


class CoreAddress(ctypes.Structure):
    """`SKY_Addr_t`."""

    _fields_ = (("plane", ctypes.c_uint16), ("slot", ctypes.c_uint16))


class CorePacket(ctypes.Structure):
    """`SKY_Packet_t`."""

    _fields_ = (
        ("is_request", ctypes.c_bool),
        ("apid", ctypes.c_uint16),
        ("seq_flags", ctypes.c_uint8),
        ("seq_count", ctypes.c_uint16),
        ("time_s", ctypes.c_uint32),
        ("time_subs", ctypes.c_uint16),
        ("op", ctypes.c_uint8),
        ("status", ctypes.c_uint8),
        ("flags", ctypes.c_uint8),
        ("hop_limit", ctypes.c_uint8),
        ("security", ctypes.c_uint8),
        ("credit", ctypes.c_uint16),
        ("src", CoreAddress),
        ("dst", CoreAddress),
        ("gateway", CoreAddress),
        ("tenant", ctypes.c_uint32),
        ("epoch", ctypes.c_uint32),
        ("deadline_ms", ctypes.c_uint32),
        ("request_id", ctypes.c_uint64),
        ("key", ctypes.c_uint8 * 32),
        ("chunk_id", ctypes.c_uint32),
        ("chunk_total", ctypes.c_uint32),
        ("block_len", ctypes.c_uint32),
        ("chunk_len", ctypes.c_uint32),
        ("offset", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
        ("chunk_crc", ctypes.c_uint32),
        ("payload", ctypes.POINTER(ctypes.c_uint8)),
        ("payload_crc16", ctypes.c_uint16),
    )


class CoreTorus(ctypes.Structure):
    """`SKY_Torus_t`."""

    _fields_ = (("planes", ctypes.c_uint16), ("slots", ctypes.c_uint16), ("seam_cut", ctypes.c_bool))


class CoreCell(ctypes.Structure):
    """`SKY_Cell_t`."""

    _fields_ = (("plane", ctypes.c_int32), ("slot", ctypes.c_int32))


class CorePlacement(ctypes.Structure):
    """`SKY_Placement_t`."""

    _fields_ = (
        ("torus", CoreTorus),
        ("layout", ctypes.c_int),
        ("servers", ctypes.c_uint16),
        ("height", ctypes.c_uint16),
        ("width", ctypes.c_uint16),
        ("origin", CoreCell),
        ("at", CoreCell * PLACEMENT_SERVERS_MAX),
    )


class CoreScheduleRow(ctypes.Structure):
    """`SKY_ScheduleRow_t`."""

    _fields_ = (("time_ms", ctypes.c_uint32), ("centre", CoreCell))


class CoreSchedule(ctypes.Structure):
    """`SKY_Schedule_t`."""

    _fields_ = (
        ("placement", CorePlacement),
        ("rows", ctypes.POINTER(CoreScheduleRow)),
        ("count", ctypes.c_uint32),
        ("epoch_us", ctypes.c_uint64),
    )


_ADDRESSES = frozenset(("src", "dst", "gateway"))
_SPECIAL = _ADDRESSES | {"key", "length", "payload", "payload_crc16"}
_PLAIN = tuple(str(name) for name, *_ in CorePacket._fields_ if name not in _SPECIAL)


@cache
def _core() -> ctypes.CDLL:
    core = library()
    packet, data = ctypes.POINTER(CorePacket), ctypes.c_char_p
    torus, link = ctypes.POINTER(CoreTorus), ctypes.c_int
    core.SKY_Crc16.argtypes, core.SKY_Crc16.restype = [ctypes.c_uint16, data, ctypes.c_size_t], ctypes.c_uint16
    core.SKY_Crc_Implementation.argtypes, core.SKY_Crc_Implementation.restype = [], data
    core.SKY_Crc_ForcePortable.argtypes, core.SKY_Crc_ForcePortable.restype = [ctypes.c_int], None
    core.SKY_Packet_Decode.argtypes, core.SKY_Packet_Decode.restype = [data, ctypes.c_size_t, packet], ctypes.c_uint8
    core.SKY_Packet_Encode.argtypes = [packet, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t]
    core.SKY_Packet_Encode.restype = ctypes.c_size_t
    core.SKY_Packet_Relabel.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint8, CoreAddress]
    core.SKY_Packet_Relabel.restype = None
    core.SKY_Torus_Init.argtypes = [torus, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_bool]
    core.SKY_Torus_Init.restype = ctypes.c_bool
    core.SKY_Torus_Neighbour.argtypes, core.SKY_Torus_Neighbour.restype = [torus, CoreAddress, link], CoreAddress
    core.SKY_Torus_Hops.argtypes, core.SKY_Torus_Hops.restype = [torus, CoreAddress, CoreAddress], ctypes.c_uint32
    core.SKY_Torus_NextHop.argtypes = [torus, CoreAddress, CoreAddress, CoreAddress, ctypes.c_uint32]
    core.SKY_Torus_NextHop.restype = link
    placement, schedule = ctypes.POINTER(CorePlacement), ctypes.POINTER(CoreSchedule)
    number, now = ctypes.c_uint32, ctypes.c_uint64
    core.SKY_Placement_Init.argtypes = [placement, torus, ctypes.c_int, number, CoreCell]
    core.SKY_Placement_Init.restype = ctypes.c_bool
    core.SKY_Placement_AllowSteps.argtypes, core.SKY_Placement_AllowSteps.restype = [placement, number, number], None
    core.SKY_Placement_Server.argtypes, core.SKY_Placement_Server.restype = [placement, CoreCell, number], CoreAddress
    core.SKY_Schedule_Init.argtypes = [schedule, torus, ctypes.c_int, number, ctypes.POINTER(CoreScheduleRow), number, now]
    core.SKY_Schedule_Init.restype = ctypes.c_bool
    core.SKY_Schedule_RowAt.argtypes, core.SKY_Schedule_RowAt.restype = [schedule, now], number
    core.SKY_Schedule_EndUs.argtypes, core.SKY_Schedule_EndUs.restype = [schedule, number], now
    core.SKY_Schedule_Server.argtypes, core.SKY_Schedule_Server.restype = [schedule, number, number], CoreAddress
    return core


def crc16(data: bytes, crc: int = _CRC16_INIT) -> int:
    """CRC-16/CCITT-FALSE, continued from `crc` (CCSDS 132.0-B, 4.1.6.2)."""
    return int(_core().SKY_Crc16(crc, data, len(data)))


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC-32C, continued from `crc` (RFC 3720, B.4)."""
    return int(_core().SKY_Crc32c(crc, data, len(data)))


def crc_implementation() -> str:
    """What computes CRCs on this machine: `pclmul+sse4.2`, `pmull+crc32` or `table`."""
    return str(_core().SKY_Crc_Implementation().decode())


def force_portable_crc(portable: bool) -> None:
    """From now on use tables (True), or the best that this machine has (False)."""
    _core().SKY_Crc_ForcePortable(int(portable))


def encode(packet: Packet) -> bytes:
    """The datagram as the flight core writes it; empty if it refuses."""
    raw = CorePacket()
    for name in _PLAIN:
        setattr(raw, name, getattr(packet, name))
    for name in _ADDRESSES:
        setattr(raw, name, CoreAddress(*getattr(packet, name)))
    raw.key[:] = packet.key
    raw.length = len(packet.payload)
    raw.payload = (ctypes.c_uint8 * len(packet.payload)).from_buffer_copy(packet.payload)
    out = (ctypes.c_uint8 * icd.LIMIT_PACKET_BYTES)()
    size = _core().SKY_Packet_Encode(ctypes.byref(raw), out, len(out))
    return bytes(out[:size])


def decode(datagram: bytes) -> tuple[int, Packet | None]:
    """The status with which the flight core takes a datagram in, and the packet if that is OK."""
    raw = CorePacket()
    status = int(_core().SKY_Packet_Decode(datagram, len(datagram), ctypes.byref(raw)))
    if status != icd.STATUS_OK:
        return status, None
    fields: dict[str, Any] = {name: getattr(raw, name) for name in _PLAIN}
    fields |= {name: Satellite(getattr(raw, name).plane, getattr(raw, name).slot) for name in _ADDRESSES}
    payload = ctypes.string_at(raw.payload, raw.length)
    return status, Packet(**fields, key=bytes(raw.key), payload=payload)


def relabel(datagram: bytes, hop_limit: int, gateway: Satellite) -> bytes:
    """A datagram as a satellite passes it on."""
    held = ctypes.create_string_buffer(datagram, len(datagram))
    _core().SKY_Packet_Relabel(held, len(datagram), hop_limit, CoreAddress(*gateway))
    return held.raw


def _core_torus(torus: Torus) -> CoreTorus:
    raw = CoreTorus()
    if not _core().SKY_Torus_Init(ctypes.byref(raw), torus.planes, torus.slots, torus.seam_cut):
        raise ValueError(f"{torus}: 1 to 65535 planes and slots are allowed")
    return raw


def neighbour(torus: Torus, satellite: Satellite, direction: Direction) -> Satellite | None:
    """`SKY_Torus_Neighbour`; None where no link leads."""
    raw = _core_torus(torus)
    end = _core().SKY_Torus_Neighbour(ctypes.byref(raw), CoreAddress(*satellite), _LINKS.index(direction))
    return Satellite(end.plane, end.slot) if end.plane else None


def hops(torus: Torus, origin: Satellite, target: Satellite) -> int:
    """`SKY_Torus_Hops`."""
    raw = _core_torus(torus)
    return int(_core().SKY_Torus_Hops(ctypes.byref(raw), CoreAddress(*origin), CoreAddress(*target)))


def next_hop(torus: Torus, origin: Satellite, target: Satellite) -> Direction | None:
    """`SKY_Torus_NextHop` with all links up, for a packet that starts here; None: there already."""
    raw = _core_torus(torus)
    link = _core().SKY_Torus_NextHop(ctypes.byref(raw), CoreAddress(*origin), CoreAddress(*target), CoreAddress(0, 0), _ALL_LINKS)
    return _LINKS[link] if link < len(_LINKS) else None


def _satellite(address: CoreAddress) -> Satellite | None:
    return Satellite(address.plane, address.slot) if address.plane else None


class Placement:
    """`SKY_Placement_t` and its functions."""

    def __init__(self, layout: LayoutName, servers: int, torus: Torus, origin: Cell, steps: tuple[int, int] = (1, 1)) -> None:
        self._raw, raw_torus = CorePlacement(), _core_torus(torus)
        self._at = ctypes.byref(self._raw)
        if not _core().SKY_Placement_Init(self._at, ctypes.byref(raw_torus), LAYOUT_IDS[layout], servers, CoreCell(*origin)):
            raise ValueError(f"{layout} of {servers} servers around {origin}")
        _core().SKY_Placement_AllowSteps(self._at, *steps)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the window."""
        return self._raw.height, self._raw.width

    def servers_at(self, centre: Cell) -> list[Satellite | None]:
        """`SKY_Placement_Server`, for all."""
        raw = CoreCell(*centre)
        return [_satellite(_core().SKY_Placement_Server(self._at, raw, server)) for server in range(self._raw.servers)]


class Rows:
    """`SKY_Schedule_t` and its functions."""

    def __init__(
        self, layout: LayoutName, servers: int, torus: Torus, rows: Iterable[tuple[int, Cell]], epoch_us: int = 0
    ) -> None:
        held = [CoreScheduleRow(time_ms, CoreCell(*cell)) for time_ms, cell in rows]
        self._rows = (CoreScheduleRow * len(held))(*held)  # the schedule only points to them
        self._servers = servers
        self._raw, raw_torus = CoreSchedule(), _core_torus(torus)
        self._at = ctypes.byref(self._raw)
        raw = self._at, ctypes.byref(raw_torus), LAYOUT_IDS[layout], servers, self._rows, len(held), epoch_us
        if not _core().SKY_Schedule_Init(*raw):
            raise ValueError(f"{layout} of {servers} servers along {len(held)} rows")

    def row_at(self, now_us: int) -> int:
        """`SKY_Schedule_RowAt`."""
        return int(_core().SKY_Schedule_RowAt(self._at, now_us))

    def end_us(self, row: int) -> int:
        """`SKY_Schedule_EndUs`."""
        return int(_core().SKY_Schedule_EndUs(self._at, row))

    def servers_at(self, row: int) -> list[Satellite | None]:
        """`SKY_Schedule_Server`, for all."""
        return [_satellite(_core().SKY_Schedule_Server(self._at, row, server)) for server in range(self._servers)]
