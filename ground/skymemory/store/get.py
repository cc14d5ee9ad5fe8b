"""Gets of a store: repeat attempts to fetch blocks, and forget or purge the blocks that are gone."""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from skymemory.common.progress import Progress
from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import Transfer
from skymemory.sky.entry_satellites import Route
from skymemory.store.decisions import AttemptStep, TransferAttempts, Verdict
from skymemory.store.find import Lookups
from skymemory.store.parts import Operation, StoreParts
from skymemory.store.purge import Purges
from skymemory.store.results import GetResult, Status
from skymemory.store.routes import Ways
from skymemory.store.streamed_get import StreamedGet
from skymemory.store.transfers import Transfers, memory_for

_Tried = Mapping[int, tuple[TransferAttempts, Transfer]]
"""By the index of a block, its attempts and the transfer of the last or the next one."""


class Gets(Operation):
    """Gets of one store. Thread-safe."""

    def __init__(self, parts: StoreParts, lookups: Lookups, purges: Purges, transfers: Transfers) -> None:
        super().__init__(parts)
        self._lookups = lookups
        self._purges = purges
        self._transfers = transfers

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
        progress: Progress | None,
        *,
        aside: bool,
    ) -> list[GetResult]:
        """Fetch blocks, all at once. Blocks that are gone are forgotten.

        Args:
            entries: Entries of blocks, or keys, which are looked up first.
            room: The memory for each block, or None to take new memory.
            block_bytes_max: Longer blocks are misses.
            progress: Called now and then with chunks done and chunks in all.
            aside: Use a socket of its own, so that other gets do not wait for this one.

        Returns:
            A result for each entry, in order.
        """
        start_s = time.perf_counter()
        results, wanted = self._begin(entries)
        new = self._new_transfers(results, wanted, room, block_bytes_max)
        tried = {index: (self._transfers.to_get(), transfer) for index, transfer in new.items()}
        self._finish(results, tried, room, block_bytes_max, progress, aside=aside)
        return self._counted(list(results.values()), start_s)

    def get_each(
        self, entries: Sequence[BlockEntry | bytes], room: Sequence[memoryview | None], block_bytes_max: int
    ) -> Generator[GetResult, None, None]:
        """Fetch blocks as `get` does, and yield the result of each as soon as it and all before it are there."""
        start_s = time.perf_counter()
        results, wanted = self._begin(entries)
        with closing(self._stream(results, wanted, room, block_bytes_max)) as stream:
            ready = 0
            for index in range(len(entries)):
                while ready <= index:
                    ready = next(stream)
                [result] = self._counted([results.pop(index)], start_s)
                yield result
                del result  # else the memory of this block would stay until the next one is there
                start_s = time.perf_counter()
            next(stream, None)  # all is counted then

    def carry_out(
        self,
        verdicts: Mapping[BlockEntry, Verdict],
        elsewhere: Mapping[bytes, BlockEntry],
        routes: Sequence[Route],
        patience_s: float | None = None,
    ) -> None:
        """Forget and purge blocks by their verdicts.

        Args:
            verdicts: The verdict on each block.
            elsewhere: Blocks that are there, but with another length or for another row. The index takes these entries.
            routes: Routes to the satellites that are told of a purge.
            patience_s: Seconds to wait for their answers; None for the usual time.
        """
        self._index.add(elsewhere.values())
        for entry, verdict in verdicts.items():
            if verdict is Verdict.FORGET and entry.key not in elsewhere:
                self._index.remove(entry.key)
                self._lookups.set_incomplete(entry.key)
        useless = [entry for entry, verdict in verdicts.items() if verdict is Verdict.PURGE]
        if useless:
            self._purges.forget(useless, routes, patience_s)

    def reason(self) -> Status | None:
        """Return why no block can be moved now, or None if blocks can be moved."""
        if self._routes.silent:
            return Status.UNANSWERED
        return None if self._routes.to_servers() else Status.NO_SATELLITE

    def end_of(self, status: Status) -> Status:
        """Return the final status of a block. If nobody was asked for it, say why."""
        if status is Status.RUNNING:
            return Status.UNANSWERED if self._routes.silent else Status.NO_SATELLITE
        return status

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _begin(self, entries: Sequence[BlockEntry | bytes]) -> tuple[dict[int, GetResult], dict[int, BlockEntry]]:
        """Look blocks up. Return results that are misses so far, and the entries of the known blocks, both by index."""
        known, unanswered = self._lookups.resolve(entries)
        results = {}
        for index, one in enumerate(entries):
            key = one if isinstance(one, bytes) else one.key
            results[index] = GetResult(key, None, Status.UNANSWERED if key in unanswered else Status.MISS, 0.0, known=False)
        return results, {index: entry for index, entry in enumerate(known) if entry is not None}

    def _counted(self, results: list[GetResult], start_s: float) -> list[GetResult]:
        """Count results. Return them; those of unknown blocks say why nobody could be asked."""
        if not all(result.known for result in results) and (reason := self.reason()):
            results = [one if one.known else replace(one, status=reason) for one in results]
        self._index.moved(result.key for result in results if result.ok)
        hits = sum(result.ok for result in results)
        self._count(
            hits=hits,
            misses=len(results) - hits,
            expired=sum(result.status is Status.EXPIRED for result in results),
            degraded=sum(result.is_degraded for result in results),
            get_s=time.perf_counter() - start_s,
        )
        return results

    def _new_transfers(
        self,
        results: dict[int, GetResult],
        wanted: Mapping[int, BlockEntry],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
        *,
        has_memory: bool = True,
    ) -> dict[int, Transfer]:
        """Return transfers of those wanted blocks that may be fetched, and write the results of the others.

        Args:
            results: The results of all blocks.
            wanted: Entries of blocks, by index.
            room: The memory for each block, or None.
            block_bytes_max: Longer blocks are misses.
            has_memory: False if transfers without `room` get their memory later.
        """
        transfers: dict[int, Transfer] = {}
        for index, entry in wanted.items():
            data = room[index]
            if entry.block_len > block_bytes_max:
                results[index] = replace(results[index], status=Status.TOO_LARGE, known=True)
            elif data is not None and data.nbytes != entry.block_len:
                results[index] = replace(results[index], status=Status.BAD_LENGTH, known=True)
            else:
                own = memory_for(entry.block_len if data is None and has_memory else 0)
                transfers[index] = Transfer(entry, self._tenant, own if data is None else data)
        return transfers

    def _finish(
        self,
        results: dict[int, GetResult],
        tried: _Tried,
        room: Sequence[memoryview | None],
        block_bytes_max: int,
        progress: Progress | None = None,
        *,
        aside: bool = False,
        ways: list[Ways] | None = None,
    ) -> None:
        """Go on with attempts to the end, and write their results.

        Args:
            results: The results of all blocks.
            tried: The attempts, at whatever step they are.
            room: The memory for each block, or None.
            block_bytes_max: Longer blocks are misses.
            progress: Called now and then with chunks done and chunks in all.
            aside: Use the socket of gets aside.
            ways: Ways that these attempts have gone.
        """
        while tried:
            attempts, transfers = [one for one, _ in tried.values()], [one for _, one in tried.values()]
            self._transfers.get(attempts, transfers, progress, aside=aside, tried=ways)
            for index, (one, transfer) in tried.items():
                results[index] = self._get_result(transfer, one.status)
            wanted = self._settle({index: (one, transfer.entry) for index, (one, transfer) in tried.items()})
            new = self._new_transfers(results, wanted, room, block_bytes_max)
            tried, ways = {index: (tried[index][0], transfer) for index, transfer in new.items()}, None

    def _stream(
        self,
        results: dict[int, GetResult],
        wanted: Mapping[int, BlockEntry],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
    ) -> Generator[int, None, None]:
        """Fetch blocks in order, and write their results. Yield how many results, from the first, will not change any more."""
        new = self._new_transfers(results, wanted, room, block_bytes_max, has_memory=False)
        order = list(new)
        with closing(StreamedGet(self._transfers, list(new.values()))) as stream:
            at = 0
            while at < len(order):
                yield order[at]
                transfer = stream.take(at)
                if transfer is not None and transfer.status is Status.DONE:
                    results[order[at]] = self._get_result(transfer, Status.DONE)
                    transfer.data = b""  # the caller has it
                    at += 1
                    continue
                failed = {order[place]: one for place, one in stream.drain(at).items()}
                if self._transfers.is_closed or not self._mend(results, failed, stream.tried, room, block_bytes_max):
                    for index in order[at:]:
                        results[index] = replace(results[index], status=Status.CANCELLED, known=True)
                    break
                at += len(failed)
            yield len(room)
            stream.finish()

    def _mend(
        self,
        results: dict[int, GetResult],
        streamed: _Tried,
        ways: list[Ways],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
    ) -> bool:
        """Write the results of first attempts; where these have failed, after more attempts. False: the store was closed."""
        failed: dict[int, tuple[TransferAttempts, Transfer]] = {}
        for index, (one, transfer) in streamed.items():
            if transfer.status is Status.DONE:
                results[index] = self._get_result(transfer, Status.DONE)
            else:
                failed[index] = one, transfer
        self._transfers.ended([one for one in failed.values() if one[1].status is not Status.RUNNING])
        try:
            self._finish(results, failed, room, block_bytes_max, ways=ways)
        except ValueError:
            if not self._transfers.is_closed:
                raise
            return False
        return True

    def _get_result(self, transfer: Transfer, status: Status) -> GetResult:
        taken = transfer.data if transfer.status is Status.DONE else None
        data = taken if isinstance(taken, bytearray) else None
        is_done = transfer.status is Status.DONE
        is_degraded = is_done and transfer.decoded > 0
        return GetResult(
            transfer.entry.key,
            data,
            self.end_of(status),
            transfer.duration_s,
            entry=transfer.entry if is_done else None,
            is_degraded=is_degraded,
        )

    def _settle(self, fetched: Mapping[int, tuple[TransferAttempts, BlockEntry]]) -> dict[int, BlockEntry]:
        """Find out why blocks did not come, and forget or purge those that are gone.

        Returns:
            New entries of blocks that are to be fetched again. Another host has replaced or prefetched these.
        """
        doubtful = {index: (one, entry) for index, (one, entry) in fetched.items() if one.next() is AttemptStep.CONFIRM}
        renamed = [entry.key for one, entry in doubtful.values() if one.is_renamed]
        for key in renamed:
            self._index.remove(key)
        gone = [entry for one, entry in doubtful.values() if not one.is_renamed]
        routes = self._purges.routes([entry.key for entry in gone]) if gone else []
        elsewhere = self._lookups.newest(renamed)
        if gone:
            elsewhere |= self._lookups.prefetched_ahead([entry.key for entry in gone]) | self._lookups.replaced(gone)
        is_blind = any(entry.key not in elsewhere for entry in gone) and self._late_search.is_schedule_unknown(routes)
        aside = self._lookups.aside([entry.key for entry in gone if entry.key not in elsewhere and not is_blind])
        for one, entry in doubtful.values():
            one.confirmed(is_other=entry.key in elsewhere, is_blind=is_blind, is_aside=entry.key in aside)
        verdicts = {entry: one.verdict for one, entry in fetched.values() if one.next() is AttemptStep.END}
        self.carry_out(verdicts, elsewhere, routes)
        return {index: elsewhere[entry.key] for index, (one, entry) in doubtful.items() if one.next() is AttemptStep.ASK}
