"""Blocks that came to the sky or went, as vLLM's KV events, for routers that send a prompt to where its blocks are.

They say what this engine knows. A block came when a worker has stored it or a lookup has found it. It went when a lookup or a
load has missed it. The next lookup shows what other hosts have stored or satellites evicted.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

_log = logging.getLogger(__name__)

MEDIUM = "STORAGE"
"""Name that vLLM has for storage behind GPU and CPU."""
LOCALITY = "REMOTE"
OWNERSHIP = "skymemory"
_KNOWN_BLOCKS = 1 << 16


class HashedRequest(Protocol):
    """The part of vLLM's `HashedRequest` that is used here."""

    block_hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Came:
    """Event: consecutive blocks of a request are in the sky."""

    request: Any
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Went:
    """Event: blocks are not in the sky any more, by vLLM's hashes."""

    hashes: tuple[bytes, ...]


class BlockEvents:
    """Blocks that came and went since the last `take`. Used by one thread."""

    def __init__(self, known_max: int = _KNOWN_BLOCKS) -> None:
        """Follow up to `known_max` blocks; beyond that the least recently used one counts as gone."""
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        """Hash that vLLM has of each block, by key."""
        self._known_max = known_max
        self._pending: list[Came | Went] = []
        self._failed = False

    def came(self, key: bytes, request: HashedRequest, index: int) -> None:
        """Note that a block of a request is in the sky."""
        if key in self._known:
            self._known.move_to_end(key)
            return
        self._known[key] = request.block_hashes[index]
        last = self._pending[-1] if self._pending else None
        if isinstance(last, Came) and last.request is request and last.first + last.count == index:
            self._pending[-1] = Came(request, last.first, last.count + 1)
        else:
            self._pending.append(Came(request, index, 1))
        if len(self._known) > self._known_max:
            self.went(next(iter(self._known)))

    def went(self, key: bytes) -> None:
        """Note that a block is not there."""
        found = self._known.pop(key, None)
        if found is not None:
            self._add_went((found,))

    def all_went(self) -> None:
        """Note that no stored block is found again."""
        self._add_went(tuple(self._known.values()))
        self._known.clear()

    def take(self) -> list[Came | Went]:
        """Return all events since the last call, in order."""
        taken, self._pending = self._pending, []
        return taken

    def for_vllm(self, events: Sequence[Came | Went], block_tokens: int) -> Sequence[Any]:
        """Return events as vLLM publishes them; none if this vLLM makes them otherwise.

        Its scheduler calls this in each step.
        """
        try:
            return list(as_vllm(events, block_tokens))
        except Exception:  # events use parts of vLLM that change from version to version
            if not self._failed:
                self._failed = True
                _log.exception("SkyMemory: KV events do not go with this vLLM, and routers do not get them; the cache goes on")
            return ()

    def _add_went(self, hashes: tuple[bytes, ...]) -> None:
        last = self._pending[-1] if self._pending else None
        if isinstance(last, Went):
            self._pending[-1] = Went(last.hashes + hashes)
        elif hashes:
            self._pending.append(Went(hashes))


def as_vllm(events: Sequence[Came | Went], block_tokens: int) -> Iterator[Any]:
    """Yield the events as vLLM publishes them."""
    from vllm.distributed.kv_events import BlockRemoved, BlockStored
    from vllm.v1.core.kv_cache_utils import generate_block_hash_extra_keys, maybe_convert_block_hash, to_event_extra_keys

    for event in events:
        if isinstance(event, Went):
            yield BlockRemoved(
                block_hashes=[maybe_convert_block_hash(one) for one in event.hashes],
                medium=MEDIUM,
                group_idx=0,
                locality=LOCALITY,
                ownership=OWNERSHIP,
            )
            continue
        request, first, end = event.request, event.first, event.first + event.count
        adapter = request.lora_request
        starts = range(first * block_tokens, end * block_tokens, block_tokens)
        extra = [generate_block_hash_extra_keys(request, start, start + block_tokens, 0)[0] for start in starts]
        yield BlockStored(
            block_hashes=[maybe_convert_block_hash(one) for one in request.block_hashes[first:end]],
            parent_block_hash=maybe_convert_block_hash(request.block_hashes[first - 1]) if first else None,
            token_ids=list(request.all_token_ids[first * block_tokens : end * block_tokens]),
            block_size=block_tokens,
            lora_id=adapter.adapter_id if adapter is not None else None,
            medium=MEDIUM,
            lora_name=adapter.name if adapter is not None else None,
            extra_keys=to_event_extra_keys(extra),
            group_idx=0,
            locality=LOCALITY,
            ownership=OWNERSHIP,
        )
