"""Operations on blocks, as a ground takes them, and their outcomes (`sky_ground.h`, `SKY_GroundOp_t`)."""

import time
from collections.abc import Iterator, Sequence
from ctypes import sizeof
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple, Self

from skymemory.common.whole_file import Buffer
from skymemory.link import structures
from skymemory.link.block_entry import BlockEntry
from skymemory.link.structures import Kind, Uplink
from skymemory.sky.placement.layouts import LAYOUT_IDS
from skymemory.sky.placement.structures import Verdict
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status

_STATUSES: Final = icd.STATUSES | icd.HOST_STATUSES
_VERDICTS: Final = tuple(Verdict)
_TIMES: Final = 2**64
"""Modulus of the core's clock: a schedule may have begun before it."""
_US_A_S: Final = 1_000_000
BYTES_MAX: Final = 0xFFFFFFFF
"""Bytes of the longest block."""
_TOLD: Final = Struct("=IIIIIIQII")
"""Fields of what a FIND tells of a block: status, block_len, chunk_len, chunk_total, epoch, content, version, code_k, code_m."""

# Ways of an operation, bits
MAKES_WAY: Final = 1
"""PURGE: another block is to be put under the key."""
LAZY: Final = 2
"""PURGE: of what is left of a block that was missed."""
HURRIED: Final = 4
"""CHECK, PURGE: it does not wait long, and leaves satellites alone that were silent lately."""
FRESH: Final = 8
"""FIND: all that may know a newer version say what they know, whatever one says first."""
CHAIN: Final = 16
"""FIND: how many first blocks are there? The others are asked for no more than that takes."""
CALM: Final = 32
"""It is of no hurry, and begins after others of its tenant."""
SAMPLE: Final = 64
"""CHECK: only the server of share 0 is asked."""
WANTS_HOLDERS: Final = 128
"""CHECK: `Outcome.holders` are wanted."""
DELETION: Final = 256
"""PUT: the block is a deletion, so older versions go from all servers."""


class Words(NamedTuple):
    """Knowledge of the sky as a whole when an operation ends."""

    number: int
    """Number that counts up: a larger one was said later. 0: nothing was."""
    losses: int
    """Times that a satellite was found lost."""
    lost: int
    """Satellites that are lost now."""
    is_silent: bool
    """True if nobody answers."""
    is_blind: bool
    """True if satellites follow a schedule, and this host follows none."""
    late: int
    """Satellites with something to hand over, by their last word."""
    late_chunks: int
    """Chunks that they have to hand over."""
    late_ms: int
    """Longest time for which one of them has handed over."""


class Found(NamedTuple):
    """Knowledge of satellites about a key."""

    status: Status
    """DONE, MISS, UNANSWERED, NO_SATELLITE; RUNNING: behind the end of a chain nobody was asked."""
    entry: BlockEntry | None
    """The block, if it is DONE."""


class Served(NamedTuple):
    """One satellite's part in operations; `SKY_HostServed_t`. Times count from their start; None: that did not happen."""

    satellite: Satellite
    entry: Satellite
    """Entry satellite through which it was reached."""
    rtt_s: float | None
    """Smoothed round trip, over all time."""
    chunks: int
    """Chunks received from it, or acknowledged by it, also of blocks that did not come whole."""
    bytes: int
    requests: int
    repeats: int
    asked_s: float | None
    """Time at which the first request left (for `put` the first chunk)."""
    first_s: float | None
    last_s: float | None
    """Time of its last answer; `first_s` is that of its first one."""


@dataclass(slots=True)
class Operation:
    """An operation on one block; FIND: on many keys. It must not change while it runs."""

    kind: Kind
    entry: BlockEntry
    """The block; of PURGE its key and its version, content and epoch."""
    tenant: int
    deadline_ms: int
    """Milliseconds of an attempt, or of a question; at least 1."""
    data: Buffer | None = None
    """GET and PUT: memory of the block. It must not change while the operation runs; writable for GET."""
    known: int = 0
    """GET: newest version of the value that this host knows; an older one is none."""
    ways: int = 0
    """Bits: `MAKES_WAY` and others."""
    extra: Any = None
    """GET: satellite that is not asked, or None. PUT: by share who holds it already, (0, 0): nobody; or None. PREFETCH: row to
    come of the schedule. FIND and TOUCH: see `to_find` and `to_touch`."""

    @property
    def chunks(self) -> int:
        """Chunks that are to move: a GET needs those of the data, a PUT all."""
        one = self.entry
        return -(-one.block_len // one.chunk_len) if self.kind is Kind.GET else one.chunk_total

    def request(self) -> tuple[object, ...]:
        """Return the operation as the extension takes it."""
        one = self.entry
        return (
            int(self.kind),
            one.key,
            self.tenant,
            one.block_len,
            one.chunk_len,
            one.chunk_total,
            one.code_k,
            one.code_m,
            one.epoch,
            one.content,
            one.version,
            self.known,
            self.deadline_ms,
            self.data,
            self.ways,
            self.extra,
        )


def to_find(
    keys: Sequence[bytes],
    tenant: int,
    deadline_ms: int,
    *,
    ways: int = 0,
    incomplete: Sequence[bool] = (),
    block_bytes_max: int = BYTES_MAX,
) -> Operation:
    """Return a FIND.

    Args:
        keys: 32 bytes each, one at least.
        incomplete: For each key, True if this host has learned that a share of its block is missing; none if it is empty.
        block_bytes_max: A longer block ends a chain.
    """
    extra = b"".join(keys), bytes(incomplete), min(block_bytes_max, BYTES_MAX)
    return Operation(Kind.FIND, BlockEntry(keys[0], 0, 0, 0, 0, 0.0), tenant, deadline_ms, ways=ways, extra=extra)


def to_touch(chain: Sequence[BlockEntry], tenant: int, deadline_ms: int) -> Operation:
    """Return a TOUCH of a chain's blocks, one at least, the first one first."""
    blocks = tuple(
        (one.key, one.block_len, one.chunk_len, one.chunk_total, one.code_k, one.code_m, one.epoch, one.content, one.version)
        for one in chain
    )
    return Operation(Kind.TOUCH, chain[0], tenant, deadline_ms, extra=blocks)


@dataclass(slots=True)
class Outcome:
    """The end of an operation. What is said of chunks is of the last attempt to move the block."""

    status: Status
    """DONE, or a reason. CHECK: DONE if the block can be had, MISS if it cannot, UNANSWERED if that is not known. GET: BAD_LENGTH
    if another block has the key, for which the memory was not made: `entry` is that one's."""
    verdict: Verdict
    """GET and CHECK: what is to become of the block."""
    entry: BlockEntry
    """The block as it came."""
    began_us: int
    """Time at which it was submitted, on the monotonic clock."""
    queue_s: float
    """Time until its first request, while it waited for its turn."""
    network_s: float
    """Time from the first request to the last answer."""
    rest_s: float
    """Time from the last answer to its end."""
    tries: int
    """Questions, pieces of a block and their moves to another place; 0: nobody was asked."""
    words: Words
    last_status: int = 0
    """Code of the last error response (`icd.STATUSES`); 0 if there was none."""
    chunks: int = 0
    lost: int = 0
    """Chunks that were not to be had, or that no satellite took."""
    decoded: int = 0
    """GET: chunks that were made of others."""
    repeats: int = 0
    corrupt: int = 0
    duration_s: float = 0.0
    """Seconds of the last attempt."""
    held_version: int = 0
    """PUT that ended with OLD_VERSION or BAD_KEY: the largest version that a satellite holds."""
    failed: Satellite | None = None
    """Satellite at which the block failed."""
    served_raw: bytes = b""
    """GET, PUT: what each satellite did, as the core writes it (`served_of`)."""
    found: Sequence[Found] = ()
    """FIND: what is known of each key."""
    chain_count: int = 0
    """FIND of a chain: first blocks that are there, without a gap."""
    is_other: bool = False
    """CHECK: another block has the key."""
    silent: int = 0
    """CHECK: satellites that did not answer."""
    holders: Sequence[Satellite] = ()
    """CHECK: by share who holds all of it, where it is to be; plane 0: nobody, or that is not known."""
    purged: int = 0
    """PURGE: chunks that satellites gave up."""
    touched: int = 0
    """TOUCH: blocks that count as used, from the last one on."""
    bytes: int = 0
    """GET, PUT: bytes of the chunks."""

    @property
    def ended_us(self) -> int:
        """Time at which it ended, on the monotonic clock; 0 if it never began."""
        spent_us = round(1e6 * (self.queue_s + self.network_s + self.rest_s))
        return self.began_us + spent_us if self.began_us else 0

    @classmethod
    def of(cls, operation: Operation, told: tuple[int, int, tuple[Any, ...], tuple[int, ...], tuple[Any, ...], Any]) -> Self:
        """Return the outcome of an operation, of which the extension has told."""
        status, verdict, facts, (began_us, queue_us, network_us, rest_us, tries), words, rest = told
        entry, kind = operation.entry, operation.kind
        if facts != _facts(entry):
            block_len, chunk_len, chunk_total, code_k, code_m, epoch, content, version = facts
            lengths, code = (block_len, chunk_len, chunk_total), (code_k, code_m)
            entry = BlockEntry(entry.key, *lengths, epoch, entry.set_at, version, content, *code)
        times_s = queue_us / 1e6, network_us / 1e6, rest_us / 1e6
        one = cls(_STATUSES[status], _VERDICTS[verdict], entry, began_us, *times_s, tries, Words(*words))
        if kind in (Kind.GET, Kind.PUT):
            (
                one.last_status,
                one.chunks,
                one.lost,
                one.decoded,
                one.repeats,
                one.corrupt,
                one.bytes,
                duration_us,
                one.held_version,
                plane,
                slot,
                one.served_raw,
            ) = rest
            one.duration_s = duration_us / 1e6
            one.failed = Satellite(plane, slot) if plane else None
        elif kind is Kind.FIND:
            one.chain_count, raw = rest
            one.found = list(_found(operation.extra[0], raw))
        elif kind is Kind.CHECK:
            one.is_other, one.silent, holders = rest
            one.holders = [Satellite(*holder) for holder in holders]
        elif kind is Kind.PURGE:
            one.purged = rest
        else:
            one.touched = rest
        return one


def _facts(one: BlockEntry) -> tuple[int, ...]:
    """Return what an outcome tells of a block, in the same order."""
    return one.block_len, one.chunk_len, one.chunk_total, one.code_k, one.code_m, one.epoch, one.content, one.version


def _found(keys: bytes, raw: bytes) -> Iterator[Found]:
    """Yield what a FIND tells of each key."""
    for index, told in enumerate(_TOLD.iter_unpack(raw)):
        code, block_len, chunk_len, chunk_total, epoch, content, version, code_k, code_m = told
        status = _STATUSES[code]
        key = keys[32 * index : 32 * index + 32]
        lengths = block_len, chunk_len, chunk_total
        is_there = status is Status.DONE
        yield Found(status, BlockEntry(key, *lengths, epoch, 0.0, version, content, code_k, code_m) if is_there else None)


def served_of(outcomes: Sequence[Outcome], start_us: int) -> tuple[Served, ...]:
    """Return each satellite's part in operations.

    Args:
        start_us: Time from which their times count, on the monotonic clock.
    """
    size = sizeof(structures.Served)
    parts: dict[Satellite, Served] = {}
    for outcome in outcomes:
        raw = outcome.served_raw
        for at in range(0, len(raw), size):
            one = structures.Served.from_buffer_copy(raw, at)
            satellite = Satellite(one.plane, one.slot)
            part = Served(
                satellite,
                Satellite(one.entry_plane, one.entry_slot),
                one.srtt_us / 1e6 if one.srtt_us else None,
                one.chunks,
                one.bytes,
                one.requests,
                one.repeats,
                _since(one.asked_us, start_us),
                _since(one.first_us, start_us),
                _since(one.last_us, start_us),
            )
            known = parts.get(satellite)
            parts[satellite] = part if known is None else _sum(known, part)
    return tuple(parts.values())


def _since(time_us: int, start_us: int) -> float | None:
    return max(0, time_us - start_us) / 1e6 if time_us else None


def _sum(one: Served, other: Served) -> Served:
    asked = [time_s for time_s in (one.asked_s, other.asked_s) if time_s is not None]
    first = [time_s for time_s in (one.first_s, other.first_s) if time_s is not None]
    last = [time_s for time_s in (one.last_s, other.last_s) if time_s is not None]
    return Served(
        one.satellite,
        one.entry,
        one.rtt_s if other.rtt_s is None else other.rtt_s,
        one.chunks + other.chunks,
        one.bytes + other.bytes,
        one.requests + other.requests,
        one.repeats + other.repeats,
        min(asked, default=None),
        min(first, default=None),
        max(last, default=None),
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
    is_unscheduled: bool
    """True if the host follows no schedule, though it does not know that satellites follow none: blocks may have moved."""

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
        is_unscheduled = playing is None and cache.host != "satellite"  # blocks of a host on board stay where they are
        settings = cache.parity, cache.lazy_purge, is_unscheduled
        return cls(layout, rows, epoch_us, handover_us, where.changes, uplink, seen, *settings)


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
