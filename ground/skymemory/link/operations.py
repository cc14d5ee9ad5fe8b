"""Operations on blocks, as a ground takes them, and their outcomes (`sky_ground.h`, `SKY_GroundOp_t`)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.structures import Kind, Uplink
from skymemory.sky.placement.layouts import LAYOUT_IDS
from skymemory.sky.placement.structures import Verdict
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status

_STATUSES = icd.STATUSES | icd.HOST_STATUSES
_TIMES = 2**64
"""Modulus of the core's clock: a schedule may have begun before it."""
_US_A_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on one block."""

    kind: Kind
    entry: BlockEntry
    """The block; of FIND and PURGE its key and, for PURGE, its version, content and epoch."""
    tenant: int
    deadline_ms: int
    """Milliseconds of an attempt, or of a question; at least 1."""
    data: Buffer | None = None
    """GET and PUT: memory of the block. It must not change while the operation runs; writable for GET."""
    known: int = 0
    """GET: newest version of the value that this host knows; an older one is none."""
    makes_way: bool = False
    """PURGE: another block is to be put under the key."""
    is_lazy: bool = False
    """PURGE: of what is left of a block that was missed."""
    is_hurried: bool = False
    """CHECK and PURGE: it waits no longer than an answer takes, and leaves satellites alone that were silent lately."""

    def request(self) -> tuple[object, ...]:
        """Return the operation as the extension takes it."""
        one = self.entry
        lengths, code = (one.block_len, one.chunk_len, one.chunk_total), (one.code_k, one.code_m)
        flags = self.makes_way | self.is_lazy << 1 | self.is_hurried << 2
        block = one.key, self.tenant, *lengths, *code, one.epoch, one.content, one.version
        return int(self.kind), *block, self.known, self.deadline_ms, self.data, flags


class Outcome(NamedTuple):
    """The end of an operation. What is said of chunks is of the last attempt to move the block."""

    status: Status
    """DONE, or a reason. CHECK: DONE if the block can be had, MISS if it cannot, UNANSWERED if that is not known. GET: BAD_LENGTH
    if another block has the key, for which the memory was not made: `entry` is that one's."""
    verdict: Verdict
    """GET and CHECK: what is to become of the block."""
    entry: BlockEntry
    """The block as it came, or as satellites know it (FIND)."""
    is_passed: bool
    """True if a GET needed more than the first places of the block's shares."""
    last_status: int
    """Code of the last error response (`icd.STATUSES`); 0 if there was none."""
    chunks: int
    lost: int
    """Chunks that were not to be had, or that no satellite took."""
    decoded: int
    """GET: chunks that were made of others."""
    repeats: int
    corrupt: int
    bytes: int
    duration_s: float
    held_version: int
    """PUT that ended with OLD_VERSION or BAD_KEY: the largest version that a satellite holds."""
    failed: Satellite | None
    """Satellite at which the block failed."""

    @classmethod
    def of(cls, operation: Operation, told: tuple[int, int, tuple[int, ...], int, int, bool, tuple[int, ...]]) -> Self:
        """Return the outcome of an operation, of which the extension has told."""
        status, verdict, facts, _tries, _gone, is_passed, moved = told
        block_len, chunk_len, chunk_total, code_k, code_m, epoch, content, version = facts
        last, chunks, lost, decoded, repeats, corrupt, size, duration_us, held_version, plane, slot = moved
        before = operation.entry
        lengths, code = (block_len, chunk_len, chunk_total), (code_k, code_m)
        entry = BlockEntry(before.key, *lengths, epoch, before.set_at, version, content, *code)
        failed = Satellite(plane, slot) if plane else None
        return cls(
            _STATUSES[status],
            Verdict(verdict),
            entry,
            is_passed,
            last,
            chunks,
            lost,
            decoded,
            repeats,
            corrupt,
            size,
            duration_us / 1e6,
            held_version,
            failed,
        )


class Sky(NamedTuple):
    """The sky that a ground sees from now on, as the extension takes it: `SKY_GroundSky_t` and the rows of a schedule."""

    layout: int
    rows: Sequence[tuple[int, int, int]]
    """Time in milliseconds, and the unrolled centre: plane, slot."""
    epoch_us: int
    """Time of the first row on the monotonic clock."""
    handover_us: int
    changes: int
    uplink: int
    seen: Sequence[Satellite]
    """Satellites in sight, the nearest first."""
    parity: int
    lazy_purge: bool

    @classmethod
    def of(cls, where: Whereabouts, time_s: float) -> Self:
        """Return the sky at a Unix time. The schedule goes on by itself; who is in sight holds for then only."""
        cache, playing = where.constellation.cache, where.playing
        rows: Sequence[tuple[int, int, int]] = [(0, *cache.centre)]
        epoch_us = 0
        if playing is not None:
            rows = [(time_ms, *cell) for time_ms, cell in playing.track.rows]
            since_us = round((time_s - playing.started_unix_s) * _US_A_S)
            epoch_us = (time.monotonic_ns() // 1000 - since_us) % _TIMES
        uplink = _uplink(where)
        seen = where.in_sight(time_s) if uplink in (Uplink.SEEN, Uplink.FIRST) else ()
        layout, handover_us = LAYOUT_IDS[cache.layout], round(cache.handover_s * _US_A_S)
        return cls(layout, rows, epoch_us, handover_us, where.changes, uplink, seen, cache.parity, cache.lazy_purge)


def _uplink(where: Whereabouts) -> Uplink:
    """Return the way into the sky of a constellation's hosts (`skymemory.sky.entry_satellites`)."""
    cache = where.constellation.cache
    if cache.host == "satellite":
        return Uplink.ABOARD
    if cache.window == "physical":
        return Uplink.SEEN if cache.uplink == "window" else Uplink.FIRST
    if cache.uplink == "nearest":
        return Uplink.CENTRE
    return Uplink.DIRECT if where.playing is None else Uplink.SERVERS
