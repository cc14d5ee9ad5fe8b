"""Requests of engines and clients that wait together, and which of them one call to the store answers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from skymemory.agent.tracing import Origin
from skymemory.common.whole_file import Buffer

T = TypeVar("T")

_BATCH_BLOCKS: Final = 512
"""Most keys of several requests that go into one call."""
_BATCH_BYTES: Final = 256 << 20
"""Most bytes of several puts that go into one call."""


@dataclass(frozen=True, slots=True)
class GetCall:
    """Gets of one request."""

    keys: Sequence[bytes]
    into: Sequence[memoryview | None]
    block_bytes_max: int
    origin: Origin
    tenant: int | None = None
    asked_ns: int = field(default_factory=time.time_ns)
    asked_s: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True, slots=True)
class ChainCall:
    """Look-up of the beginning of a chain."""

    keys: Sequence[bytes]
    block_bytes: int
    cached: int


@dataclass(frozen=True, slots=True)
class PutCall:
    """Puts of one request."""

    items: Sequence[tuple[bytes, Buffer]]
    tenant: int | None = None


@dataclass(frozen=True, slots=True)
class FindCall:
    """Look-up of blocks."""

    keys: Sequence[bytes]
    tenant: int | None = None


def split(results: Sequence[T], counts: Sequence[int]) -> list[list[T]]:
    """Return the results of a call, for each request its own."""
    left = iter(results)
    return [[next(left) for _ in range(count)] for count in counts]


def joins_get(batch: list[GetCall], request: GetCall) -> bool:
    """Return True if a call for gets takes another request."""
    count = sum(len(one.keys) for one in batch)
    is_alike = (request.block_bytes_max, request.tenant) == (batch[0].block_bytes_max, batch[0].tenant)
    return is_alike and count + len(request.keys) <= _BATCH_BLOCKS


def joins_put(batch: list[PutCall], request: PutCall) -> bool:
    """Return True if a call for puts takes another request.

    It gets no key twice: a block that two engines store at once is there already for the second.
    """
    items = [item for one in [*batch, request] for item in one.items]
    return (
        request.tenant == batch[0].tenant
        and len(items) <= _BATCH_BLOCKS
        and len({key for key, _ in items}) == len(items)
        and sum(memoryview(data).nbytes for _, data in items) <= _BATCH_BYTES
    )


def joins_chain(batch: list[ChainCall], request: ChainCall) -> bool:
    """Return True if a call for chains takes another request."""
    return sum(len(one.keys) for one in batch) + len(request.keys) <= _BATCH_BLOCKS


def joins_find(batch: list[FindCall], request: FindCall) -> bool:
    """Return True if a call for look-ups takes another request."""
    return request.tenant == batch[0].tenant and sum(len(one.keys) for one in batch) + len(request.keys) <= _BATCH_BLOCKS
