"""Questions and orders to single satellites, past all that a store decides: what they hold, and are to move or forget."""

from collections.abc import Sequence
from typing import NamedTuple

from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane, Purged
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.structures import SCHEDULE_STAYS
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import ChunkSet, migrate_payload
from support.raw_host import RawHost

_ANY_CHUNK = ChunkSet(0, 1, (True,)).encode()
_ANSWER_S = 10.0
_SET_BYTES = len(_ANY_CHUNK) - 1


class Held(NamedTuple):
    """What a satellite says of a block."""

    block_len: int
    chunk_total: int
    epoch: int
    version: int


def held(
    control: ControlPlane, routes: Sequence[Route], key: bytes, tenant: int = 0, answer_s: float = _ANSWER_S
) -> list[Held | None]:
    """Return what each of these satellites holds of a block; None: no chunk of it.

    Raises:
        TimeoutError: A satellite has not answered.
    """
    asks = [Ask(route, icd.OP_HAS, flags=icd.FLAG_ANY, tenant=tenant, key=key, payload=_ANY_CHUNK) for route in routes]
    return [_held(answer) for answer in control.exchange(asks, answer_s)]


def _held(answer: SatelliteAnswer | None) -> Held | None:
    if answer is None:
        raise TimeoutError("a satellite has not answered")
    raw = answer.raw
    return Held(raw.block_len, raw.chunk_total, raw.epoch, raw.block_version) if answer.ok and raw.block_len else None


def forget(
    control: ControlPlane,
    routes: Sequence[Route],
    keys: Sequence[bytes],
    tenant: int = 0,
    *,
    version: int = 0,
    content: int = 0,
    epoch: int = SCHEDULE_STAYS,
) -> Purged:
    """Let each of these satellites forget its chunks of these blocks, as PURGE says, and nobody else is told."""
    fields = {"tenant": tenant, "version": version, "content": content, "epoch": epoch}
    asks = [Ask(route, icd.OP_PURGE, key=key, **fields) for key in keys for route in routes]  # type: ignore[arg-type]
    answers = control.exchange(asks, _ANSWER_S)
    chunks = sum(answer.raw.chunk_total for answer in answers if answer is not None and answer.ok)
    return Purged(chunks, all(answer is not None and answer.ok for answer in answers))


def migrate(
    control: ControlPlane, source: Route, target: Satellite, key: bytes, tenant: int = 0, *, epoch: int = 0
) -> SatelliteAnswer:
    """Let a satellite send its chunks of a block to another one; zeros as a key mean all blocks.

    The answer says that it has begun.
    """
    ask = Ask(source, icd.OP_MIGRATE, tenant=tenant, epoch=epoch, key=key, payload=migrate_payload(target))
    [answer] = control.exchange([ask], 3 * _ANSWER_S)
    assert answer is not None, f"{source.satellite} does not answer"
    return answer


def holds_share(control: ControlPlane, route: Route, entry: BlockEntry, share: int, servers: int, tenant: int = 0) -> bool:
    """Return True if a satellite holds all of a share of a block."""
    count = len(range(share, entry.chunk_total, servers))
    if not count:
        return True
    payload = ChunkSet(share, servers, (True,) * count).encode()
    ask = Ask(route, icd.OP_HAS, tenant=tenant, key=entry.key, chunk_id=share, payload=payload)
    [answer] = control.exchange([ask], _ANSWER_S)
    assert answer is not None, f"{route.satellite} does not answer"
    held = sum(byte.bit_count() for byte in answer.payload[_SET_BYTES:])  # a satellite tells the chunks that it has
    return answer.ok and held == count


def is_whole_at(control: ControlPlane, entry: BlockEntry, servers: Sequence[Satellite], tenant: int = 0) -> bool:
    """Return True if these satellites, as servers 0 to n - 1, hold all shares of a block."""
    places = enumerate(entry.by_share(servers))
    return all(holds_share(control, Route(one, one), entry, share, len(servers), tenant) for share, one in places)


def requests(control: ControlPlane, routes: Sequence[Route]) -> int:
    """Return how many requests these satellites had, in all, but for this question."""
    stats = control.store_stats(routes, _ANSWER_S)
    assert len(stats) == len(routes)
    return sum(one["requests"] - 1 for one in stats.values())


def put_share(host: RawHost, satellite: Satellite, entry: BlockEntry, share: int, data: bytes, tenant: int = 0) -> None:
    """Put the data chunks of a share of a block at a satellite, whatever it holds, with these bytes as the block."""
    servers = entry.code_k + entry.code_m if entry.code_m else max(share + 1, 1)
    fields = {
        "tenant": tenant,
        "chunk_total": entry.chunk_total,
        "block_len": entry.block_len,
        "chunk_len": entry.chunk_len,
        "code_k": entry.code_k,
        "code_m": entry.code_m,
        "code_scheme": int(entry.code_m > 0),
        "epoch": entry.epoch,
        "content": entry.content,
        "block_version": entry.version,
    }
    for chunk_id in range(share, entry.chunk_total, servers):
        index = chunk_id // servers * entry.code_k + share if entry.code_m else chunk_id
        offset = entry.chunk_len * index
        chunk = data[offset : offset + entry.chunk_len]
        answer = host.served(host.put(satellite, entry.key, chunk, chunk_id=chunk_id, offset=0, **fields))
        assert answer is None, answer  # only what goes wrong is answered
