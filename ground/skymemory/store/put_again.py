"""Puts of blocks with parity of which chunks are missing: in a thread of their own, so no get waits for them or fails.

Who has fetched such a block and opened its seal may put it again, as it holds its keys. The thread first asks all servers what
they hold. If nothing is missing by then, because another reader was here or satellites have repaired the block, nothing is put.
Else the block is fetched once more, its seal is checked, and the missing shares go to the places of today: stand-ins take
what the lost had.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Condition, Thread
from typing import Final, NamedTuple

from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import CALM, WANTS_HOLDERS, Operation
from skymemory.link.structures import Kind
from skymemory.store.get import memory_for
from skymemory.store.parts import Part, StoreParts
from skymemory.store.results import Status
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)

IsSound = Callable[[bytearray], bool]
"""Function that returns True if the bytes of a block are right. It may change them, and is called in another thread."""

_WORK_SHARE: Final = 0.25
"""Largest part of the time in which blocks are put again, so that most of the links stays for others."""
_WAITING_MAX: Final = 1024
"""Most blocks that wait. Others wait for the next get."""
_REMEMBERED_MAX: Final = 4096
"""Most blocks of which it is remembered when they were put again."""


class _Wanted(NamedTuple):
    """A block to be put again."""

    entry: BlockEntry
    tenant: int
    is_sound: IsSound
    wrong: Sequence[Satellite]
    """Satellites whose chunks of the block are wrong, and are purged first."""


class PutsAgain(Part):
    """Puts of blocks of which chunks are missing. Thread-safe."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._change = Condition()  # guards all below
        self._waiting: OrderedDict[bytes, _Wanted] = OrderedDict()
        self._done_s: OrderedDict[bytes, float] = OrderedDict()
        self._gone: set[bytes] = set()
        self._running: bytes | None = None
        self._closed = False
        self._thread: Thread | None = None

    def stop(self) -> None:
        """Begin nothing more: what runs may fail from now on, as the ground is closed. Safe to call twice."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def close(self) -> None:
        """End what runs, once the ground is closed; safe to call twice."""
        self.stop()
        thread = self._thread
        if thread is not None:
            thread.join()

    def add(self, entry: BlockEntry, tenant: int, is_sound: IsSound, wrong: Sequence[Satellite] = ()) -> None:
        """Put a block again, unless that was done lately or many wait.

        Args:
            entry: The block, of which chunks were missing.
            tenant: The block's tenant.
            is_sound: Function that checks the block's seal.
            wrong: Satellites whose chunks of the block are wrong; they are purged first.
        """
        now_s = time.monotonic()
        with self._change:
            done_s = self._done_s.get(entry.key)
            is_late = done_s is not None and now_s < done_s + self._control.timing.lost_s
            if (is_late and not wrong) or entry.key in (self._running, *self._waiting) or len(self._waiting) >= _WAITING_MAX:
                return
            self._waiting[entry.key] = _Wanted(entry, tenant, is_sound, wrong)
            self._begin()

    def forget(self, keys: Iterable[bytes]) -> None:
        """Put none of these blocks again, because they are purged now. One that is put right now is purged afterwards."""
        with self._change:
            for key in keys:
                self._waiting.pop(key, None)
                if key == self._running:
                    self._gone.add(key)

    @property
    def is_idle(self) -> bool:
        """True if nothing waits and nothing runs."""
        with self._change:
            return not self._waiting and self._running is None

    # ---- in the thread ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = Thread(target=self._run, name="skymem-put-again", daemon=True)
            self._thread.start()
        self._change.notify_all()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            moving_s = 0.0
            try:
                moving_s = work()
            except ValueError:  # the store was closed
                if not self._closed:
                    _log.exception("a block could not be put again")
            except Exception:  # what is in the sky stays as it is
                _log.exception("a block could not be put again")
            pause_s = moving_s * (1 / _WORK_SHARE - 1)
            with self._change:
                self._running = None
                self._gone.clear()
                self._change.wait_for(lambda: self._closed, pause_s)

    def _next(self) -> Callable[[], float] | None:
        """Wait for work, and return it; None if the store was closed. The work returns for how many seconds it used the links."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._waiting)
            if self._closed:
                return None
            key, wanted = self._waiting.popitem(last=False)
            self._running = key
            self._done_s[key] = time.monotonic()
            self._done_s.move_to_end(key)
            if len(self._done_s) > _REMEMBERED_MAX:
                self._done_s.popitem(last=False)
            return lambda: self._put_again(wanted)

    def _put_again(self, wanted: _Wanted) -> float:
        self._runner.refresh()
        entry = self._index.current(wanted.entry)
        if wanted.wrong:
            self._control.purge_at(wanted.wrong, entry, wanted.tenant)
        if (holders := self._holders(entry, wanted.tenant)) is None:
            return 0.0
        start_s = time.perf_counter()
        get = Operation(Kind.GET, entry, wanted.tenant, self._deadline_ms, data=memory_for(entry.block_len), ways=CALM)
        [got] = self._runner.run([get])
        is_got = got.status is Status.DONE and got.entry == entry  # satellites that were asked may hold an older one
        data = get.data
        if not is_got or data is None or not wanted.is_sound(bytearray(data)) or self._is_gone(entry.key):
            return time.perf_counter() - start_s
        put = Operation(Kind.PUT, entry, wanted.tenant, self._deadline_ms, data=data, ways=CALM, extra=tuple(holders))
        [stored] = self._runner.run([put])
        self._count(puts_again=stored.status is Status.DONE)
        if self._is_gone(entry.key):
            self._runner.run([Operation(Kind.PURGE, entry, wanted.tenant, self._deadline_ms)])
        return time.perf_counter() - start_s

    def _is_gone(self, key: bytes) -> bool:
        """Return True if a block was purged since it began to be put again."""
        with self._change:
            return key in self._gone

    def _holders(self, entry: BlockEntry, tenant: int) -> Sequence[Satellite] | None:
        """Ask the servers of a block, and return by share who holds the whole share.

        None if no chunk is missing, or if the others do not suffice.
        """
        [told] = self._runner.run([Operation(Kind.CHECK, entry, tenant, self._deadline_ms, ways=WANTS_HOLDERS | CALM)])
        if told.status is not Status.DONE or told.silent:
            return None
        is_whole = all(holder.plane for holder in told.holders[: entry.chunk_total])
        return None if is_whole else told.holders
