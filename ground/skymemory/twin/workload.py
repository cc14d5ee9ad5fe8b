"""The workload of ground hosts while the sky turns, from a seed: blocks that are put, fetched, put again and forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from skymemory.twin.structures import OpKind

_FIRST_PUTS: Final = 0.1
"""Share of the time after which all blocks have been put once."""
_FIRST_PUTS_MS_MAX: Final = 60_000
_LATER_AGAIN: Final = 0.7
"""Share of later rows among the rows of repeated puts."""
_SMALL_BYTES: Final = (48, 600)
"""Least and most bytes of a small block; most are short, and none is longer than a chunk."""
_AGAIN_US: Final = 20_000_000
"""Microseconds after a purge until its block is put anew."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Amounts and rates of a workload."""

    tenants: int = 2
    names: int = 24
    """Blocks of each tenant; those of the same name have the same key."""
    chunks_max: int = 40
    """Chunks of a block at most; blocks have 1 to so many, most of them more than half."""
    small: float = 0.0
    """Share of the blocks that have one small chunk, as small values have."""
    prefetched: float = 0.1
    """Share of the blocks that are prefetched for a later window."""
    prefetched_anew: float = 0.0
    """Share of the puts after a block's first that have another row than the first: a later one, or one that has passed."""
    deleted: float = 0.0
    """Share of the puts after a value's first that put a deletion; of blocks that are no values they are puts as ever."""
    absent: float = 0.05
    """Share of the blocks that are never put."""
    hosts: int = 3
    gets_per_minute: float = 6.0
    puts_per_minute: float = 0.5
    """Puts of blocks that were put before."""
    purges_per_minute: float = 0.05
    touches_per_minute: float = 0.0
    """Touches of chains, each of some blocks from one on."""
    prefetches_per_minute: float = 0.0
    """Prefetches of blocks for a row to come."""
    deadline_ms: int = 5000


class PlannedBlock(NamedTuple):
    """A block of the plan."""

    block_len: int
    epoch: int
    """Row that the block is prefetched for; 0: the row of the moment."""


class OpPlan(NamedTuple):
    """An operation of the plan."""

    time_us: int
    """Microseconds since the start."""
    kind: OpKind
    block: int
    host: int
    epoch: int = 0
    """Row for which a put stores the block, 0: the block's own; row to which a prefetch moves it."""


def plan(
    workload: Workload, seed: int, rows_ms: Sequence[int], duration_ms: int, chunk_bytes: int
) -> tuple[list[PlannedBlock], list[OpPlan]]:
    """Return the blocks, and the operations in order of time.

    Args:
        rows_ms: Begin of each row of the schedule.
        duration_ms: Time before which all operations begin.
    """
    rng, sizes = Random(f"workload {seed}"), Random(f"small blocks of workload {seed}")
    blocks: list[PlannedBlock] = []
    ops: list[OpPlan] = []
    first_us = int(1000 * min(_FIRST_PUTS * duration_ms, _FIRST_PUTS_MS_MAX))
    for number in range(workload.names * workload.tenants):
        chunks = 1 + int(workload.chunks_max * (1 - rng.random() ** 2))
        block_len = min(chunks, workload.chunks_max) * chunk_bytes - int(rng.random() * chunk_bytes)
        if sizes.random() < workload.small:
            least, most = _SMALL_BYTES[0], min(_SMALL_BYTES[1], chunk_bytes)
            block_len = least + int((most - least) * sizes.random() ** 2)
        time_us, epoch = int(rng.random() * first_us), 0
        if rng.random() < workload.prefetched:
            epoch = _later_row(rows_ms, time_us, rng)
        blocks.append(PlannedBlock(block_len, epoch))
        if rng.random() >= workload.absent:
            ops.append(OpPlan(time_us, OpKind.PUT, number, _host(workload, rng)))
    for kind, per_minute in (
        (OpKind.GET, workload.gets_per_minute),
        (OpKind.PUT, workload.puts_per_minute),
        (OpKind.PURGE, workload.purges_per_minute),
    ):
        time_us = first_us
        while per_minute > 0 and (time_us := time_us + int(rng.expovariate(per_minute / 60e6))) < 1000 * duration_ms:
            block = int(rng.random() * len(blocks))
            ops.append(OpPlan(time_us, kind, block, _host(workload, rng)))
            if kind is OpKind.PURGE and (again_us := time_us + _AGAIN_US) < 1000 * duration_ms:
                ops.append(OpPlan(again_us, OpKind.PUT, block, _host(workload, rng)))
    more, deletions = Random(f"more of workload {seed}"), Random(f"deletions of workload {seed}")
    again = [op if op.time_us < first_us else _prefetched_anew(workload, rows_ms, op, more) for op in sorted(ops)]
    done = [op if op.time_us < first_us else _deleted(workload, op, deletions) for op in again]
    return blocks, sorted([*done, *_ahead(workload, seed, rows_ms, range(first_us, 1000 * duration_ms), len(blocks))])


def _ahead(workload: Workload, seed: int, rows_ms: Sequence[int], times_us: range, blocks: int) -> list[OpPlan]:
    """Return the touches and prefetches, which have numbers of their own: other operations are as without them."""
    rng = Random(f"ahead of workload {seed}")
    ops: list[OpPlan] = []
    for kind, per_minute in (
        (OpKind.TOUCH, workload.touches_per_minute),
        (OpKind.PREFETCH, workload.prefetches_per_minute),
    ):
        time_us = times_us.start
        while per_minute > 0 and (time_us := time_us + int(rng.expovariate(per_minute / 60e6))) < times_us.stop:
            row = _later_row(rows_ms, time_us, rng) if kind is OpKind.PREFETCH else 0
            if row or kind is OpKind.TOUCH:
                ops.append(OpPlan(time_us, kind, int(rng.random() * blocks), _host(workload, rng), row))
    return ops


def _later_row(rows_ms: Sequence[int], time_us: int, rng: Random) -> int:
    """Return a row that begins after this time, more likely an early one; 0 if there is none."""
    later = [row for row, time_ms in enumerate(rows_ms, 1) if 1000 * time_ms > time_us]
    return later[int(rng.random() ** 2 * len(later))] if later else 0


def _prefetched_anew(workload: Workload, rows_ms: Sequence[int], op: OpPlan, rng: Random) -> OpPlan:
    """Return the operation, with a row of its own if it is one of the puts with another row than their block's."""
    if op.kind is not OpKind.PUT or rng.random() >= workload.prefetched_anew:
        return op
    return op._replace(epoch=_later_row(rows_ms, op.time_us, rng) if rng.random() < _LATER_AGAIN else 1)


def _deleted(workload: Workload, op: OpPlan, rng: Random) -> OpPlan:
    """Return the operation, as one that deletes a value if it is one of these puts."""
    return op._replace(kind=OpKind.DELETE) if op.kind is OpKind.PUT and rng.random() < workload.deleted else op


def _host(workload: Workload, rng: Random) -> int:
    return 1 + int(rng.random() * workload.hosts)
