"""Puts of a store: blocks are cut, and stored at the places of their servers (`sky_ground_move.c`)."""

import time
from collections.abc import Sequence

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import DELETION, Operation, Outcome
from skymemory.link.stripe import cut
from skymemory.link.structures import Kind
from skymemory.sky.placement.structures import SCHEDULE_STAYS
from skymemory.store.deletions import is_deletion
from skymemory.store.parts import Part
from skymemory.store.results import PutResult, Status
from skymemory.store.runner import PAUSE, Steps
from skymemory.wire.envelope import instance_of


class Puts(Part):
    """Puts of one store. Thread-safe."""

    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> Steps[list[PutResult]]:
        """Store blocks, all at once (`SkyStore.put`)."""
        if not items:
            return []
        start_s = time.perf_counter()
        while self._tidying.runs([key for key, _ in items]):
            yield PAUSE
        told = yield [self._start(key, data) for key, data in items]
        results = [_result(one) for one in told]
        stored = [result.entry for result in results if result.entry is not None]
        self._index.add(stored)
        self._index.moved(entry.key for entry in stored)
        for entry in stored:
            self._incomplete.remove(entry.key)
        self._count(
            puts=len(stored),
            put_failures=len(results) - len(stored),
            expired=sum(result.status is Status.EXPIRED for result in results),
            put_s=time.perf_counter() - start_s,
        )
        return results

    def _start(self, key: bytes, data: Buffer) -> Operation:
        block_len, (version, content) = memoryview(data).nbytes, instance_of(data)
        cache = self._where.constellation.cache
        stripe = cut(block_len, min(cache.chunk_bytes, block_len), cache.servers, cache.parity)
        stays = cache.host == "satellite"  # such blocks do not move, even if the satellites follow a schedule
        epoch = SCHEDULE_STAYS if stays else 0
        lengths, code = (stripe.block_len, stripe.chunk_len, stripe.chunk_total), (stripe.code_k, stripe.code_m)
        entry = BlockEntry(key, *lengths, epoch, time.time(), version, content, *code)
        operation = self._operation(Kind.PUT, entry, DELETION if version and is_deletion(block_len) else 0)
        operation.data = data
        return operation


def _result(one: Outcome) -> PutResult:
    is_done = one.status is Status.DONE
    duration_s = one.queue_s + one.network_s + one.rest_s
    return PutResult(
        one.entry.key, one.status, one.entry if is_done else None, duration_s, one.held_version, one.lost if is_done else 0
    )
