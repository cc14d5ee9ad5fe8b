"""`Runner`: operations of one store on its ground (`skymemory.link.ground`), which decides what is asked, when, and of whom.

The runner tells the ground of the sky that it sees, counts what has moved, and logs what a person should know. It also drives
the steps of a store (`Steps`) in the thread of the caller; `skymemory.store.async_store` does so in an event loop.
"""

import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from threading import Lock
from typing import Final, NamedTuple, TypeVar

from skymemory.common.progress import Progress
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.link.ground import Box, Reach
from skymemory.link.operations import Operation, Outcome, Served, Sky, Words, served_of
from skymemory.link.structures import Kind
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.results import CancelledLookupError, Status
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NOWHERE

_log = logging.getLogger(__name__)
_CALM: Final = Words(0, 0, 0, False, False, 0, 0, 0)
_DRIFT_US: Final = 50_000
"""Difference between the system's clock and the ground's after which the ground is told of the schedule again."""
_PROGRESS_S: Final = 0.05
FULL_S: Final = 0.001
"""Time after which operations are submitted again for which there was no room."""
PAUSE_S: Final = 0.002
"""Time after which steps go on that yielded `PAUSE`."""

T = TypeVar("T")
PAUSE: Final[Sequence[Operation]] = ()
"""No operations: the steps look again a little later whether they can go on."""
Steps = Generator[Sequence[Operation], list[Outcome], T]
"""Steps of a call to a store, without I/O: it yields operations of one kind that are done together, is sent their outcomes in
order, and returns the call's result."""


class Call(NamedTuple):
    """Times of operations that were done together, and each satellite's part in them."""

    started_ns: int
    """Nanoseconds since 1970."""
    ended_ns: int
    served: tuple[Served, ...]


class Moved(NamedTuple):
    """Blocks that were moved together, one operation each."""

    up: bool
    """True for puts, False for gets."""
    call: Call
    transfers: Sequence[Outcome]
    servers: Sequence[Satellite]
    """Satellites of servers 0 to n - 1. While the window moves, shares may have come from other satellites."""


class _Told:
    """A context that says of an error that the store was closed, if that is why."""

    def __init__(self, control: ControlPlane) -> None:
        self._control = control

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
            self._control.check_open()


class Runner:
    """Operations of one store. Thread-safe."""

    def __init__(
        self, where: Whereabouts, control: ControlPlane, count: Callable[..., None], watch: Callable[[Moved], None] | None
    ) -> None:
        """Send nothing.

        Args:
            where: The places of the servers, and the schedule that they follow.
            control: The control plane, on whose ground operations run.
            count: Function that takes counts by the names of `StoreStatistics`.
            watch: Called after operations that moved blocks, in the thread that had them done.
        """
        self._where = where
        self._control = control
        self._ground = control.ground
        self._told = _Told(control)
        self._count = count
        self._watch = watch
        self._sky: tuple[int, Sequence[Satellite], int] | None = None
        self._words = _CALM
        self._told_row = 0
        self._told_lost: frozenset[Satellite] = frozenset()
        self._lock = Lock()  # guards what was told
        self._sky_lock = Lock()

    def refresh(self) -> None:
        """Tell the ground what has changed in the sky: the schedule, and who is in sight."""
        self._where.refresh()
        now_s = time.time()
        seen = self._where.in_sight(now_s) if self._where.constellation.cache.window == "physical" else ()
        known = self._sky
        if known is not None and known[0] == self._where.changes and known[1] == seen and abs(known[2] - _lead_us()) < _DRIFT_US:
            return
        with self._sky_lock, self._told:
            changes, lead_us = self._where.changes, _lead_us()
            self._ground.set_sky(Sky.of(self._where, time.time()))
            self._sky = changes, seen, lead_us

    def reach(self) -> Reach:
        """Return what is known of satellites that do not answer."""
        reach = self._ground.reach()
        return reach if reach.losses else reach._replace(losses=self._words.losses)  # of one that was closed nothing is known

    def run(
        self,
        operations: Sequence[Operation],
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        until_s: float | None = None,
    ) -> list[Outcome]:
        """Have operations of one kind done, all at once, and wait for all of them.

        Args:
            progress: Called now and then with chunks done and chunks in all, of blocks that are moved.
            cancelled: Tells now and then whether nobody waits for the outcomes any more.
            until_s: Time (`time.monotonic`) at which those that run are called back, and are EXPIRED; None: none.

        Returns:
            The outcome of each, in order.

        Raises:
            CancelledLookupError: Nobody waits any more. What ran was called back.
            ValueError: The store was closed.
        """
        with self._told:
            try:
                if progress is None and cancelled is None and until_s is None:
                    outcomes = self._ground.run(operations)
                else:
                    outcomes = self._run_watched(operations, progress, cancelled, until_s)
            except BlockingIOError:  # there is no room for all of them at once
                outcomes = self._run_watched(operations, progress, cancelled, until_s)
        self.note(operations[0].kind, outcomes)
        return outcomes

    def do(
        self,
        steps: Steps[T],
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        deadline_s: float | None = None,
    ) -> T:
        """Do the steps of a call, and return its result. Arguments and errors are those of `run`, and what the steps raise.

        Args:
            deadline_s: Seconds after which what runs is called back, and is EXPIRED; None: none.
        """
        until_s = None if deadline_s is None else time.monotonic() + deadline_s
        self.refresh()
        try:
            operations = next(steps)
            while True:
                if operations:
                    moves = operations[0].kind in (Kind.GET, Kind.PUT)
                    outcomes = self.run(operations, progress if moves else None, cancelled, until_s)
                else:
                    time.sleep(PAUSE_S)
                    outcomes = []
                operations = steps.send(outcomes)
        except StopIteration as end:
            result: T = end.value
            return result

    def box(self, *, has_descriptor: bool = False) -> Box:
        """Return a box of the ground, for operations whose outcomes are taken as they come.

        Args:
            has_descriptor: Make `Box.fileno` work, for an event loop.

        Raises:
            ValueError: The store was closed.
        """
        with self._told:
            return self._ground.box(has_descriptor=has_descriptor)

    def submit(self, box: Box, operation: Operation) -> int:
        """Begin an operation in a box, and return its ticket.

        Raises:
            BlockingIOError: There is no room for it now.
            ValueError: The store was closed.
        """
        with self._told:
            return box.submit(operation)

    def is_news(self, outcomes: Sequence[Outcome]) -> bool:
        """Return True if `note` has something to log, for which it may have to ask satellites."""
        words = max([one.words for one in outcomes])  # the last one, by its number
        return words[1:] != self._words[1:]

    def note(self, kind: Kind, outcomes: Sequence[Outcome]) -> Moved | None:
        """Log what operations of one kind, at least one, have found out about the sky, and count blocks that were moved.

        Returns:
            What has moved, if somebody watches the store.
        """
        self._note_words(outcomes)
        return self._note_moved(kind, outcomes) if kind in (Kind.GET, Kind.PUT) else None

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _note_words(self, outcomes: Sequence[Outcome]) -> None:
        if not self.is_news(outcomes):
            return
        words = max([one.words for one in outcomes])
        if words.is_silent and not self._words.is_silent:
            self._ask_why()
        with self._lock:
            before = self._words
            if words.number > before.number:
                self._words = words
                self._tell(before, words)

    def _note_moved(self, kind: Kind, moved: Sequence[Outcome]) -> Moved | None:
        up = kind is Kind.PUT
        chunks, moved_bytes, retries, corrupt, lost, decoded = 0, 0, 0, 0, 0, 0
        for one in moved:
            chunks += one.chunks
            moved_bytes += one.bytes
            retries += one.repeats
            corrupt += one.corrupt
            lost += one.lost if one.status is Status.DONE else 0
            decoded += one.decoded
        ways = {"chunks_up": chunks, "bytes_up": moved_bytes} if up else {"chunks_down": chunks, "bytes_down": moved_bytes}
        self._count(**ways, retries=retries, corrupt=corrupt, lost=lost, decoded=decoded)
        if self._watch is None:
            return None
        now_ns, now_us = time.time_ns(), time.monotonic_ns() // 1000
        start_us = min((one.began_us for one in moved if one.began_us), default=now_us)  # 0: the store was closed before
        end_us = max(one.ended_us for one in moved)
        call = Call(now_ns - 1000 * (now_us - start_us), now_ns - 1000 * max(0, now_us - end_us), served_of(moved, start_us))
        told = Moved(up, call, moved, self._where.servers(self._where.row(now_ns / 1e9)))
        self._watch(told)
        return told

    def _run_watched(
        self,
        operations: Sequence[Operation],
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
        until_s: float | None,
    ) -> list[Outcome]:
        """Have operations done, as many at once as there is room for, and look around now and then."""
        outcomes: dict[int, Outcome] = {}
        box = self._ground.box()
        is_late = False
        total = sum(one.chunks for one in operations) if progress is not None else 0
        begun = done = 0
        ids = {id(one): index for index, one in enumerate(operations)}
        tickets: dict[int, int] = {}  # of those that run, by their indices
        with closing(box):  # whoever raises, nothing writes into the memory of blocks afterwards
            while len(outcomes) < len(operations):
                if cancelled is not None and cancelled():
                    raise CancelledLookupError
                try:
                    while begun < len(operations):
                        tickets[begun] = box.submit(operations[begun])
                        begun += 1
                except BlockingIOError:
                    time.sleep(FULL_S)
                left_s = _PROGRESS_S if until_s is None else until_s - time.monotonic()
                if left_s <= 0:
                    is_late, left_s = True, _PROGRESS_S
                    box.cancel(tickets.values())
                box.wait(min(_PROGRESS_S, left_s))
                while (ended := box.take()) is not None:
                    operation, outcome = ended
                    if is_late and outcome.status is Status.CANCELLED:
                        outcome.status = Status.EXPIRED
                    index = ids[id(operation)]
                    outcomes[index] = outcome
                    del tickets[index]
                    done += operation.chunks if progress is not None else 0
                if progress is not None:
                    moved, _ = box.progress()
                    progress(min(done + moved, total), total)
        return [outcomes[index] for index in range(len(operations))]

    def _ask_why(self) -> None:
        """Ask servers whether they refuse this host's keys, which looks like silence."""
        asks = [Ask(Route(one, NOWHERE), icd.OP_PING) for one in self._where.servers(self._where.row(time.time()))]
        with suppress(OSError, ValueError):  # this host asks too much at once, or the store was closed
            self._control.exchange(asks, self._control.hurry_s([ask.route for ask in asks]))

    def _tell(self, before: Words, words: Words) -> None:
        if words.is_silent and not before.is_silent:
            self._control.new_host()  # another host may have this number, and get the answers
            why = self._control.refusal() or "no satellite answers"
            _log.warning("%s: every block is a miss until one does; the host asks again after a while", why)
        elif before.is_silent and not words.is_silent:
            _log.warning("satellites answer again")
        if (words.losses, words.lost) != (before.losses, before.lost):
            self._ground.share_hints()
        if words.losses != before.losses:
            lost = self._ground.reach().lost
            new, self._told_lost = lost - self._told_lost, lost
            if new:
                names = ", ".join(map(str, sorted(new)))
                lost_s = self._control.timing.lost_s
                _log.warning("%s: no answer, so other satellites stand in; the host asks again in %g s", names, lost_s)
        if words.is_blind and not before.is_blind:
            _log.warning(
                "satellites follow a schedule that this host does not know, so values that have moved are missed; "
                "a host finds the schedule that `skymem replay` plays on its machine, and SkyStore takes one as `playing`"
            )
        expected_s, row = self._where.constellation.cache.handover_s, self._where.row(time.time())
        if words.late and words.late_ms / 1000 > expected_s and row != self._told_row:
            self._told_row = row
            _log.warning(
                "%d satellites have handed over for %.0f s and have %d chunks left; cache.handover_s is %g s",
                *(words.late, words.late_ms / 1000, words.late_chunks, expected_s),
            )


def _lead_us() -> int:
    """Return by how much the ground's clock leads the system's, in microseconds."""
    return time.monotonic_ns() // 1000 - time.time_ns() // 1000
