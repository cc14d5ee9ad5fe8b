"""The compiled twin, `libskymem_twin.so`: its structures and functions as ctypes sees them (`testbed/twin/twin.h`)."""

import ctypes
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from functools import cache
from typing import Final

from skymemory import compiled

TEXT_BYTES: Final = 160
NONE: Final = 2**32 - 1
"""no node, operation, block, chunk"""
ALL: Final = 2**32 - 1
"""every link"""
LINK_DOWN: Final = 4
LINK_UP: Final = 5
_LIBRARY: Final = "libskymem_twin.so"


class Uplink(IntEnum):
    """How the ground reaches a satellite; `SKYT_Uplink_t`."""

    DIRECT = 0
    """each satellite of the window by itself"""
    CENTRE = 1
    """over the satellite at the centre of the window"""
    ENTRIES = 2
    """over the nearest of those that stand in sight"""


class OpKind(IntEnum):
    """`SKYT_OpKind_t`."""

    PUT = 1
    GET = 2
    PURGE = 3


class Cause(IntEnum):
    """Why a get did not bring its block; `SKYT_Cause_t`, where each is explained."""

    NONE = 0
    ABSENT = 1
    PURGED = 2
    CRASHED = 3
    EVICTED = 4
    SCRUBBED = 5
    EXPIRED = 6
    UNREACHABLE = 7
    NOBODY = 8
    STRANDED = 9
    UNEXPLAINED = 10


class FaultKind(IntEnum):
    """`SKYT_FaultKind_t`."""

    MODEL = 1
    CUT = 2
    CRASH = 3
    RESTART = 4
    PRESSURE = 5
    RELIEF = 6
    CLOCK = 7


class Invariant(IntEnum):
    """`SKYT_Invariant_t`."""

    EXACT = 0
    FOREIGN = 1
    KEPT = 2
    LIMIT = 3
    DEADLINE = 4
    PACKETS = 5
    ROUTE = 6


class Break(IntEnum):
    """Ways to break the core on purpose; `SKYT_Break_t`."""

    NOTHING = 0
    FLIP = 1
    SWAP = 2
    FORGET = 3
    OVERFULL = 4
    DEAF = 5
    LEAK = 6
    ROUTE = 7


class Config(ctypes.Structure):
    """`SKYT_Config_t`."""

    _fields_ = (
        ("seed", c_uint64),
        ("start_us", c_uint64),
        ("planes", c_uint32),
        ("slots", c_uint32),
        ("seam_cut", c_uint32),
        ("layout", c_uint32),
        ("servers", c_uint32),
        ("uplink", c_uint32),
        ("hosts", c_uint32),
        ("tenants", c_uint32),
        ("slot_bytes", c_uint32),
        ("slot_count", c_uint32),
        ("packet_bytes", c_uint32),
        ("credit", c_uint32),
        ("part_lifetime_ms", c_uint32),
        ("chunk_bytes", c_uint32),
        ("block_bytes", c_uint32),
        ("handover_ms", c_uint32),
        ("active_max", c_uint32),
        ("packets_max", c_uint32),
        ("isl_kbps", c_uint32),
        ("ground_kbps", c_uint32),
        ("queue_ms", c_uint32),
        ("gossip", c_uint32),
        ("scrub_ms", c_uint32),
        ("lazy_purge", c_uint32),
        ("hello_ms", c_uint32),
        ("chunk_us", c_uint32),
    )


class Block(ctypes.Structure):
    """`SKYT_Block_t`."""

    _fields_ = (
        ("block_len", c_uint32),
        ("epoch", c_uint32),
    )


class Op(ctypes.Structure):
    """`SKYT_Op_t`."""

    _fields_ = (
        ("time_us", c_uint64),
        ("kind", c_uint32),
        ("block", c_uint32),
        ("host", c_uint32),
        ("deadline_ms", c_uint32),
    )


class Result(ctypes.Structure):
    """`SKYT_Result_t`."""

    _fields_ = (
        ("ended", c_uint32),
        ("cause", c_uint32),
        ("duration_us", c_uint32),
        ("tries", c_uint32),
    )


class Model(ctypes.Structure):
    """`SKYT_Model_t`."""

    _fields_ = (
        ("loss_ppm", c_uint32),
        ("burst_enter_ppm", c_uint32),
        ("burst_leave_ppm", c_uint32),
        ("burst_loss_ppm", c_uint32),
        ("jitter_us", c_uint32),
        ("reorder_ppm", c_uint32),
        ("reorder_us", c_uint32),
        ("duplicate_ppm", c_uint32),
        ("flip_ppm", c_uint32),
    )


class Fault(ctypes.Structure):
    """`SKYT_Fault_t`."""

    _fields_ = (
        ("time_us", c_uint64),
        ("kind", c_uint32),
        ("node", c_uint32),
        ("link", c_uint32),
        ("value", c_uint32),
        ("model", Model),
    )


class Violation(ctypes.Structure):
    """`SKYT_Violation_t`."""

    _fields_ = (
        ("time_us", c_uint64),
        ("invariant", c_uint32),
        ("node", c_uint32),
        ("op", c_uint32),
        ("block", c_uint32),
        ("chunk", c_uint32),
        ("text", c_char * TEXT_BYTES),
    )


class Counters(ctypes.Structure):
    """`SKYT_Counters_t`."""

    _fields_ = (
        ("now_us", c_uint64),
        ("digest", c_uint64),
        ("events", c_uint64),
        ("packets", c_uint64),
        ("packet_bytes", c_uint64),
        ("packets_on_way", c_uint64),
        ("packets_on_way_most", c_uint64),
        ("lost", c_uint64),
        ("lost_burst", c_uint64),
        ("lost_cut", c_uint64),
        ("lost_queue", c_uint64),
        ("lost_dead", c_uint64),
        ("jittered", c_uint64),
        ("reordered", c_uint64),
        ("duplicated", c_uint64),
        ("flipped", c_uint64),
        ("damaged", c_uint64),
        ("cuts", c_uint64),
        ("crashes", c_uint64),
        ("pressures", c_uint64),
        ("late_clocks", c_uint64),
        ("puts", c_uint64),
        ("puts_failed", c_uint64),
        ("gets", c_uint64),
        ("hits", c_uint64),
        ("purges", c_uint64),
        ("misses", c_uint64 * len(Cause)),
        ("fallback_hits", c_uint64),
        ("handovers", c_uint64),
        ("migrated_chunks", c_uint64),
        ("migrated_bytes", c_uint64),
        ("handover_us", c_uint64),
        ("handover_most_us", c_uint64),
        ("evicted_chunks", c_uint64),
        ("expired_parts", c_uint64),
        ("stored_chunks", c_uint64),
        ("violations", c_uint64 * len(Invariant)),
        ("blocks_checked", c_uint64),
        ("blocks_misplaced", c_uint64),
    )


class _Layout(ctypes.Structure):
    _fields_ = (("structure", c_char_p), ("field", c_char_p), ("offset", c_uint64), ("size", c_uint64))


_SIGNATURES: compiled.Signatures = {
    "SKYT_Create": (c_void_p, [POINTER(Config), c_char_p]),
    "SKYT_Destroy": (None, [c_void_p]),
    "SKYT_SetRows": (c_bool, [c_void_p, POINTER(c_uint32), POINTER(c_int32), POINTER(c_int32), c_uint32]),
    "SKYT_AddBlocks": (c_bool, [c_void_p, POINTER(Block), c_uint32]),
    "SKYT_AddOps": (c_bool, [c_void_p, POINTER(Op), c_uint32]),
    "SKYT_AddFaults": (c_bool, [c_void_p, POINTER(Fault), c_uint32]),
    "SKYT_SetDelays": (None, [c_void_p, POINTER(c_uint32), POINTER(c_uint32)]),
    "SKYT_SetLinksDown": (None, [c_void_p, POINTER(c_uint8)]),
    "SKYT_SetEntries": (c_bool, [c_void_p, POINTER(c_uint32), c_uint32]),
    "SKYT_Break": (None, [c_void_p, c_int]),
    "SKYT_Run": (None, [c_void_p, c_uint64]),
    "SKYT_Finish": (None, [c_void_p]),
    "SKYT_Counters": (None, [c_void_p, POINTER(Counters)]),
    "SKYT_Results": (POINTER(Result), [c_void_p, POINTER(c_uint32)]),
    "SKYT_Holders": (c_uint32, [c_void_p, c_uint32, c_uint32, POINTER(c_uint32), c_uint32]),
    "SKYT_Violation": (c_bool, [c_void_p, c_uint32, POINTER(Violation)]),
    "SKYT_Layout": (c_bool, [c_uint32, POINTER(_Layout)]),
}


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once.

    Raises:
        FileNotFoundError: the package was not built.
    """
    return compiled.load(compiled.library_path(_LIBRARY), _SIGNATURES)


def layouts() -> dict[tuple[str, str], tuple[int, int]]:
    """(structure, field) -> (offset, size) in bytes of every C structure mirrored here; field "": the structure itself."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    entry = _Layout()
    while library().SKYT_Layout(len(found), ctypes.byref(entry)):
        found[entry.structure.decode(), (entry.field or b"").decode()] = (entry.offset, entry.size)
    return found
