"""Gets of a store: blocks are fetched, and those that are gone forgotten or purged, as the core says (`sky_ground_move.c`)."""

import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.ground import Box
from skymemory.link.operations import HURRIED, LAZY, Operation, Outcome
from skymemory.link.structures import Kind
from skymemory.sky.placement.structures import Verdict
from skymemory.store.find import Lookups
from skymemory.store.parts import Part, StoreParts
from skymemory.store.results import GetResult, Status
from skymemory.store.runner import Steps

AHEAD_BYTES: Final = 1 << 24
"""Bytes of blocks that `get_each` has asked for and that nobody has taken yet. A block begins as soon as there is room for it."""
_STEP_BYTES: Final = 1 << 22
_LENGTHS_MAX: Final = 3
"""Lengths under which a block is asked for, if it is replaced meanwhile by one of another length."""
_WAIT_S: Final = 1.0
_FULL_S: Final = 0.001
_AHEAD_MOST: Final = 4096
"""Blocks that `get_each` has asked for and that nobody has taken yet, at most: others have room for theirs."""


def memory_for(length: int) -> bytearray:
    """Return zeroed memory for a block.

    It is taken in steps: to take it at once would stop all other threads for a millisecond per MB.
    """
    step = bytes(min(length, _STEP_BYTES))
    memory = bytearray(step)
    while (left := length - len(memory)) > 0:
        memory += step if left >= _STEP_BYTES else bytes(left)
    return memory


@dataclass(slots=True)
class _Wanted:
    """A block that is to be fetched."""

    index: int
    """Its index among those that were asked for."""
    entry: BlockEntry
    room: memoryview | None
    """Memory of the caller; None: it is to be taken."""
    operation: Operation | None = None
    tries: int = 0

    @property
    def own_bytes(self) -> int:
        """Bytes of memory that is to be taken."""
        return self.entry.block_len if self.room is None else 0


class Gets(Part):
    """Gets of one store. Thread-safe."""

    def __init__(self, parts: StoreParts, lookups: Lookups) -> None:
        super().__init__(parts)
        self._lookups = lookups

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
    ) -> Steps[list[GetResult]]:
        """Fetch blocks, all at once. Blocks that are gone are forgotten.

        Args:
            entries: Entries of blocks, or keys, which are looked up first.
            room: The memory for each block, or None to take new memory.
            block_bytes_max: Longer blocks are misses.

        Returns:
            A result for each entry, in order.
        """
        start_s = time.perf_counter()
        results, wanted = yield from self._begin(entries, room, block_bytes_max)
        while wanted:
            outcomes = yield [self._start(one) for one in wanted]
            wanted = self._settled(results, list(zip(wanted, outcomes, strict=True)), block_bytes_max)
        return self._counted([results[index] for index in range(len(entries))], start_s)

    def get_each(
        self, entries: Sequence[BlockEntry | bytes], room: Sequence[memoryview | None], block_bytes_max: int
    ) -> Generator[GetResult, None, None]:
        """Fetch blocks as `get` does, and yield the result of each as soon as it and all before it are there."""
        start_s = time.perf_counter()
        results, wanted = self._runner.do(self._begin(entries, room, block_bytes_max))
        with closing(_Stream(self, results, wanted, block_bytes_max)) as stream:
            del wanted  # with it the memory of blocks would stay
            for index in range(len(entries)):
                stream.wait_for(index)
                [result] = self._counted([results.pop(index)], start_s)
                stream.taken(index)
                yield result
                del result  # else the memory of this block would stay until the next one is there
                start_s = time.perf_counter()

    def give_up(self, gone: Iterable[tuple[BlockEntry, Verdict]]) -> None:
        """Forget blocks by the verdicts on them, and begin to purge the rest of those that are of no use.

        Nobody waits for that, nor for satellites that are late: purges of many blocks would hold up what others ask for.
        """
        useless = [entry for entry, verdict in gone if self._settle(entry, verdict)]
        if useless:
            self._tidying.begin([self._operation(Kind.PURGE, entry, LAZY | HURRIED) for entry in useless])
            self._count(purges=len(useless))

    # ---- for the stream ---------------------------------------------------------------------------------------------

    def open_box(self) -> Box:
        """Return a box for operations whose outcomes are taken one after the other."""
        return self._runner.box()

    def submit(self, box: Box, one: _Wanted) -> Operation:
        """Begin to fetch a block, and return the operation.

        Raises:
            BlockingIOError: There is no room for it now.
            ValueError: The store was closed.
        """
        operation = self._start(one)
        try:
            self._runner.refresh()
            self._runner.submit(box, operation)
        except BlockingIOError:
            one.tries -= 1
            raise
        return operation

    def ended(
        self, results: dict[int, GetResult], ended: Sequence[tuple[_Wanted, Outcome]], block_bytes_max: int
    ) -> list[_Wanted]:
        """Write the results of blocks whose operations have ended. Return those that are to be fetched with another length."""
        self._runner.note(Kind.GET, [outcome for _, outcome in ended])
        return self._settled(results, ended, block_bytes_max)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _begin(
        self, entries: Sequence[BlockEntry | bytes], room: Sequence[memoryview | None], block_bytes_max: int
    ) -> Steps[tuple[dict[int, GetResult], list[_Wanted]]]:
        """Look blocks up. Return results that are misses so far, by index, and the blocks that may be fetched."""
        known, why = yield from self._lookups.resolve(entries)
        results: dict[int, GetResult] = {}
        wanted = []
        for index, (one, entry) in enumerate(zip(entries, known, strict=True)):
            key = one if isinstance(one, bytes) else one.key
            results[index] = GetResult(key, None, why.get(key, Status.MISS), 0.0, known=False)
            if entry is not None:
                wanted += self._allowed(results, _Wanted(index, entry, room[index]), block_bytes_max)
        return results, wanted

    def _allowed(self, results: dict[int, GetResult], one: _Wanted, block_bytes_max: int) -> list[_Wanted]:
        """Return a block if it may be fetched, else write its result."""
        if one.entry.block_len > block_bytes_max:
            status = Status.TOO_LARGE
        elif one.tries == _LENGTHS_MAX or (one.room is not None and one.room.nbytes != one.entry.block_len):
            status = Status.BAD_LENGTH
        else:
            return [one]
        results[one.index] = replace(results[one.index], status=status, known=True)
        return []

    def _start(self, one: _Wanted) -> Operation:
        """Return the operation that fetches a block, with memory for it."""
        one.tries += 1
        one.entry = self._index.current(one.entry)
        one.operation = self._operation(Kind.GET, one.entry)
        one.operation.data = memory_for(one.entry.block_len) if one.room is None else one.room
        return one.operation

    def _settled(
        self, results: dict[int, GetResult], ended: Sequence[tuple[_Wanted, Outcome]], block_bytes_max: int
    ) -> list[_Wanted]:
        """Write results, and forget or purge what is gone. Return the blocks that are to be fetched with another length."""
        again: list[_Wanted] = []
        gone = []
        for one, outcome in ended:
            if outcome.status is Status.MISS and outcome.entry is one.entry:
                gone.append((one.entry, outcome.verdict))
            elif outcome.status in (Status.MISS, Status.BAD_KEY):  # another block has the key: what is known of it is no more
                self._index.remove(one.entry.key)
        for one, outcome in ended:
            data = None if one.operation is None else one.operation.data
            one.operation = None  # the result has the memory now
            results[one.index] = self._result(outcome, data)
            if outcome.status is Status.BAD_LENGTH:
                one.entry = outcome.entry
                self._index.add([outcome.entry])
                again += self._allowed(results, one, block_bytes_max)
            elif outcome.status is Status.DONE and outcome.entry is not one.entry:
                self._index.add([outcome.entry])
        self.give_up(gone)
        return again

    def _result(self, outcome: Outcome, data: Buffer | None) -> GetResult:
        is_done = outcome.status is Status.DONE
        return GetResult(
            outcome.entry.key,
            data if is_done and isinstance(data, bytearray) else None,
            outcome.status,
            outcome.queue_s + outcome.network_s + outcome.rest_s,
            entry=outcome.entry if is_done else None,
            is_degraded=is_done and outcome.decoded > 0,
        )

    def _counted(self, results: list[GetResult], start_s: float) -> list[GetResult]:
        """Count results, and return them."""
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


class _Stream:
    """Blocks that are fetched in order, with a bound on the memory of those that nobody has taken yet. Used from one thread."""

    def __init__(self, gets: Gets, results: dict[int, GetResult], wanted: Sequence[_Wanted], block_bytes_max: int) -> None:
        """Ask for the first blocks."""
        self._gets = gets
        self._results = results
        self._block_bytes_max = block_bytes_max
        self._left = deque(wanted)
        self._runs: dict[int, _Wanted] = {}
        """By `id` of the operation."""
        self._waiting = {one.index for one in wanted}
        self._bytes: dict[int, int] = {}
        """Bytes of blocks that were asked for and not taken, by index."""
        self._ahead_bytes = 0
        """Sum of these."""
        self._box = gets.open_box()
        self._ask()

    def wait_for(self, index: int) -> None:
        """Wait until the result of a block will not change any more."""
        while index in self._waiting:
            self._ask()
            if self._runs:
                self._box.wait(_WAIT_S)
            else:
                time.sleep(_FULL_S)  # others have all the room
            self._take()

    def taken(self, index: int) -> None:
        """Note that somebody has a block's memory."""
        self._ahead_bytes -= self._bytes.pop(index, 0)
        self._ask()

    def _ask(self) -> None:
        while self._left and self._may_begin(self._left[0]):
            one = self._left[0]
            try:
                operation = self._gets.submit(self._box, one)
            except BlockingIOError:
                return
            except ValueError:  # the store was closed
                self._cancel()
                return
            self._left.popleft()
            self._ahead_bytes += one.own_bytes - self._bytes.get(one.index, 0)
            self._bytes[one.index] = one.own_bytes
            self._runs[id(operation)] = one

    def _may_begin(self, one: _Wanted) -> bool:
        """Return True if there is room for a block, or if nothing else runs and it is the one that is waited for."""
        ahead_bytes = self._ahead_bytes - self._bytes.get(one.index, 0)
        if len(self._bytes) < _AHEAD_MOST and ahead_bytes + one.own_bytes <= AHEAD_BYTES:
            return True
        return not self._runs and one.index == min(self._waiting)

    def _take(self) -> None:
        ended = []
        while (told := self._box.take()) is not None:
            ended.append((self._runs.pop(id(told[0])), told[1]))
        if not ended:
            return
        try:
            again = self._gets.ended(self._results, ended, self._block_bytes_max)
        except ValueError:  # the store was closed: what has come stays
            again = []
        self._waiting -= {one.index for one, _ in ended} - {one.index for one in again}
        self._left.extendleft(sorted(again, key=lambda one: one.index, reverse=True))

    def close(self) -> None:
        """Call back what runs, and wait for its end: nothing writes into the memory of blocks any more."""
        self._box.close()

    def _cancel(self) -> None:
        """Cancel what was not asked for: the store was closed."""
        for one in self._left:
            self._results[one.index] = replace(self._results[one.index], status=Status.CANCELLED, known=True)
        self._waiting -= {one.index for one in self._left}
        self._left.clear()
