"""Operations on a ground of its own, for blocks that are cut as a store would cut them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from skymemory.link.block_entry import BlockEntry
from skymemory.link.ground import Ground
from skymemory.link.operations import HURRIED, Operation, Outcome, Sky, to_find
from skymemory.link.stripe import cut
from skymemory.link.structures import Kind
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from skymemory.wire.packets import ChunkSet
from support.raw_host import RawHost
from support.spread import shares_of

DEADLINE_MS = 20_000
_ROW_MS = 1000
_MOVING_US = 3_600_000_000


@contextmanager
def opened(sky: Constellation, seen: Sky | None = None, timing: Timing | None = None) -> Iterator[Ground]:
    """A ground whose window stays, unless it is told of another sky."""
    ground = Ground(sky, timing or Timing())
    try:
        ground.set_sky(seen or Sky.of(Whereabouts(sky), time.time()))
        yield ground
    finally:
        ground.close()


def turned(sky: Constellation, *centres: Satellite) -> Sky:
    """Return the sky of a window that was at some centres in turn, and is at the last one, while chunks still move."""
    now_s = time.time()
    return Sky.of(Whereabouts(sky, playing(sky, centres, now_s)), now_s)._replace(handover_us=_MOVING_US)


def playing(sky: Constellation, centres: Sequence[Satellite], now_s: float) -> Playing:
    """Return the schedule of a window that was at some centres, a row each, and is at the last one at a Unix time."""
    track = Track.of(sky.torus, [(_ROW_MS * index, centre) for index, centre in enumerate(centres)])
    return Playing(track, now_s - _ROW_MS * len(centres) / 1000)


def homes_of(sky: Constellation, centres: Sequence[Satellite], key: bytes, block_len: int) -> list[list[Satellite]]:
    """Return for each centre at which the window was who had the shares of a block then."""
    where = Whereabouts(sky, playing(sky, centres, time.time()))
    return [shares_of(sky, key, block_len, [*where.servers(row)]) for row in range(1, len(centres) + 1)]


def entry_of(sky: Constellation, key: bytes, size: int, version: int = 0) -> BlockEntry:
    """Return the entry of a block."""
    one = cut(size, min(sky.cache.chunk_bytes, size), sky.cache.servers, sky.cache.parity)
    return BlockEntry(
        key, one.block_len, one.chunk_len, one.chunk_total, 0, 0.0, version, 7 * bool(version), one.code_k, one.code_m
    )


def put(ground: Ground, sky: Constellation, items: Mapping[bytes, bytes], version: int = 0) -> list[Outcome]:
    """Put blocks, all at once."""
    return ground.run(
        [
            Operation(Kind.PUT, entry_of(sky, key, len(data), version), sky.cache.tenant, DEADLINE_MS, data)
            for key, data in items.items()
        ]
    )


def fetched(
    ground: Ground, sky: Constellation, entry: BlockEntry, deadline_ms: int = DEADLINE_MS, known: int = 0
) -> tuple[Outcome, bytes]:
    """Get one block: its outcome, and what is in its memory then."""
    room = bytearray(entry.block_len)
    [outcome] = ground.run([Operation(Kind.GET, entry, sky.cache.tenant, deadline_ms, room, known)])
    return outcome, bytes(room)


def got(ground: Ground, sky: Constellation, entries: Sequence[BlockEntry]) -> list[bytes | Status]:
    """Get blocks, all at once: of each what came, or why nothing did."""
    memory = [bytearray(one.block_len) for one in entries]
    outcomes = ground.run(
        [Operation(Kind.GET, one, sky.cache.tenant, DEADLINE_MS, room) for one, room in zip(entries, memory, strict=True)]
    )
    return [bytes(room) if one.status is Status.DONE else one.status for room, one in zip(memory, outcomes, strict=True)]


def asked(ground: Ground, sky: Constellation, kind: Kind, entries: Sequence[BlockEntry], ways: int = 0) -> list[Outcome]:
    """Have blocks checked, in a hurry, or purged."""
    ways |= HURRIED if kind is Kind.CHECK else 0
    return ground.run([Operation(kind, one, sky.cache.tenant, DEADLINE_MS, ways=ways) for one in entries])


def found(ground: Ground, sky: Constellation, keys: Sequence[bytes]) -> list[BlockEntry | Status]:
    """Look blocks up: of each the entry, or why there is none."""
    [outcome] = ground.run([to_find(keys, sky.cache.tenant, DEADLINE_MS)])
    return [one.status if one.entry is None else one.entry for one in outcome.found]


def scatter(sky: Constellation, entry: BlockEntry, data: bytes, holder_of: Callable[[int], Satellite | None]) -> None:
    """Put each chunk of a block at a satellite by hand, and nowhere else. None: at no satellite."""
    chunks: dict[Satellite, set[int]] = {}
    for number in range(entry.chunk_total):
        if (holder := holder_of(number)) is not None:
            chunks.setdefault(holder, set()).add(number)
    with RawHost(sky) as host:
        for holder, numbers in chunks.items():
            host.open(holder)
            while left := numbers - _held(host, holder, entry, sky.cache.tenant):
                host.answers([_chunk(host, holder, entry, data, number, sky.cache.tenant) for number in sorted(left)], holder)


def _chunk(host: RawHost, holder: Satellite, entry: BlockEntry, data: bytes, number: int, tenant: int) -> bytes:
    chunk = data[entry.chunk_len * number : entry.chunk_len * (number + 1)]
    block = {"chunk_total": entry.chunk_total, "block_len": entry.block_len, "tenant": tenant}
    return host.made(host.put(holder, entry.key, chunk, chunk_id=number, chunk_len=len(chunk), **block))


def _held(host: RawHost, holder: Satellite, entry: BlockEntry, tenant: int) -> set[int]:
    """Return the chunks that a satellite holds, by its own word."""
    held: set[int] = set()
    for first in range(0, entry.chunk_total, icd.LIMIT_CHUNK_SET):
        asked = ChunkSet(first, 1, (True,) * min(icd.LIMIT_CHUNK_SET, entry.chunk_total - first))
        fields = {"key": entry.key, "tenant": tenant, "chunk_id": first, "payload": asked.encode()}
        answer = host.served(host.request(icd.OP_HAS, holder, **fields))
        if answer is not None and answer.payload:
            held.update(ChunkSet.of(answer).chunks())
    return held
