"""Transfers of blocks between this host and the places of their shares.

They lead around lost satellites, and follow a window that moves meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread
from typing import Final, NamedTuple, TypeVar

from skymemory.common.progress import Progress
from skymemory.link.association_keys import keys_of
from skymemory.link.native import Call, NativeClient, Server, Transfer
from skymemory.link.stream import Stream
from skymemory.sky.entry_satellites import Route
from skymemory.store.decisions import AttemptStep, Rows, TransferAttempts
from skymemory.store.late_search import Late
from skymemory.store.parts import Operation, StoreParts
from skymemory.store.results import Status
from skymemory.store.routes import Ways
from skymemory.store.turn import Turn
from skymemory.wire.address import Satellite

_NO_ROWS: Final = Rows(())
_T = TypeVar("_T")
_STEP_BYTES: Final = 1 << 22


def memory_for(length: int) -> bytearray:
    """Return zeroed memory for a block.

    It is taken in steps: to take it at once would stop all other threads for a millisecond per MB.
    """
    step = bytes(min(length, _STEP_BYTES))
    memory = bytearray(step)
    while (left := length - len(memory)) > 0:
        memory += step if left >= _STEP_BYTES else bytes(left)
    return memory


class Moved(NamedTuple):
    """One call that moved blocks. If satellites are lost, a get or a put may make several."""

    up: bool
    """True for a put, False for a get."""
    call: Call
    transfers: Sequence[Transfer]
    servers: Sequence[Satellite]
    """Satellites of servers 0 to n - 1. While the window moves, shares may have come from other satellites."""
    aside: bool = False
    """True for a get over the socket that does not hold up the others."""


class StreamCall:
    """One call of a stream, in a thread of its own. Whoever begins it has the turn of gets, and the call gives it back."""

    def __init__(self, stream: Stream, run: Callable[[], None]) -> None:
        """Start nothing yet."""
        self.stream = stream
        self.error: BaseException | None = None
        """Exception of the call, once it has ended."""
        self._run = run
        self._thread = Thread(target=self._carry, name="skymem-stream")

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: The system has no thread left.
        """
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the call, and close the stream."""
        self._thread.join()  # it uses the memory of the blocks
        self.stream.close()

    def _carry(self) -> None:
        try:
            self._run()
        except BaseException as error:  # it is raised in the thread that waits
            self.error = error


@dataclass
class _Search:
    """Late satellites as one get has found them."""

    late: Late | None = None


class Transfers(Operation):
    """Transfers of one store. Thread-safe: one put, one get and one get aside run at a time."""

    def __init__(self, parts: StoreParts, watch: Callable[[Moved], None] | None) -> None:
        """Open sockets.

        Args:
            parts: The parts of the store.
            watch: Called after each call that moved blocks, in the thread that made it. Other calls wait meanwhile.

        Raises:
            OSError: The system has no socket left.
        """
        super().__init__(parts)
        constellation = parts.where.constellation
        self._constellation = constellation
        self._deadline_ms = constellation.cache.deadline_ms
        self._watch = watch
        # Each socket carries one call at a time, and a call that waits for the lock profits from what the one before has learned.
        # Puts and gets have separate sockets, so that a put never delays a get. Large gets without hurry have the third one.
        self._up_turn = Turn()
        self.down_turn = Turn()
        self._aside_turn = Turn()
        self.is_closed = False
        with ExitStack() as opened:
            packet_bytes, burst = constellation.network.mtu, constellation.satellite.credit
            keys, local = keys_of(constellation), parts.control.local
            self._up = opened.enter_context(NativeClient(packet_bytes, burst, keys=keys, local=local))
            asks_all = constellation.cache.ask_all
            self._down = opened.enter_context(NativeClient(packet_bytes, burst, asks_all=asks_all, keys=keys, local=local))
            self._aside = opened.enter_context(NativeClient(packet_bytes, burst, asks_all=asks_all, keys=keys, local=local))
            opened.pop_all()

    def close(self) -> None:
        """End all calls and close the sockets; safe to call twice."""
        self.is_closed = True
        self._up.close()
        self._down.close()
        self._aside.close()

    def suites(self) -> frozenset[str]:
        """Return the suites of the associations of the sockets for puts and gets; waits for what they carry."""
        return self._up.suites() | self._down.suites() | self._aside.suites()

    def put(self, transfers: Sequence[Transfer], progress: Progress | None) -> bool:
        """Put blocks. A block that fails is put again if a new way was found. Transfers that never began stay RUNNING.

        Returns:
            True if satellites were silent though blocks are stored. Somebody should find out whether they are lost.
        """
        is_silent = False
        attempts = [TransferAttempts.to_put() for _ in transfers]
        with self._up_turn:
            tried: list[list[Route]] = []
            while asking := self._step(attempts, transfers, None):
                routes, homes = self._routes.to_put()
                number = _number(routes, tried)
                begun = [index for index in asking if routes and attempts[index].begin(_NO_ROWS, number)]
                if begun:
                    batch = [transfers[index] for index in begun]
                    for transfer in batch:
                        transfer.homes = homes
                    call = self._up.put(batch, self._servers(routes), self._deadline_ms, progress)
                    self._count_moved(batch, up=True)
                    self._tell(True, call, batch, routes)
                    is_silent |= any(transfer.lost and not transfer.last_status for transfer in batch)
                for index in begun:
                    attempts[index].ended(transfers[index], _NO_ROWS, 0, is_prefetched=False)
                for index in asking if not routes else ():
                    attempts[index].give_up()
        return is_silent

    def to_get(self) -> TransferAttempts:
        """Return new attempts for `get` that take the known handovers into account."""
        over = self._late_search.over()
        row = self._routes.row() if over is None else over.row
        return TransferAttempts.to_get(over, row, lazy_purge=self._constellation.cache.lazy_purge)

    def get(
        self,
        attempts: Sequence[TransferAttempts],
        transfers: Sequence[Transfer],
        progress: Progress | None,
        *,
        aside: bool = False,
        tried: list[Ways] | None = None,
    ) -> None:
        """Get blocks from all places where they may be, until the next step of each is `CONFIRM` or `END`.

        Args:
            attempts: The attempts of each block.
            transfers: The transfer of each block.
            progress: Called now and then with chunks done and chunks in all.
            aside: Use a socket of its own, so that other gets do not wait for this one.
            tried: Ways that attempts have gone before (`begin_stream`).
        """
        turn, client = (self._aside_turn, self._aside) if aside else (self.down_turn, self._down)
        with turn:
            search = _Search()
            tried = [] if tried is None else tried
            while asking := self._step(attempts, transfers, search):
                self._attempt(client, [(attempts[index], transfers[index]) for index in asking], search, tried, progress, aside)

    def get_without(self, transfer: Transfer, places: Sequence[Sequence[Route]], left_out: Route | None) -> None:
        """Get a block once, from these places of its servers without one satellite. Its chunks must be made of others."""
        others = [[route for route in place if left_out is None or route.satellite != left_out.satellite] for place in places]
        another = next((place for place in others if place), None)
        if another is None:
            return
        asked = [place or another for place in others]  # another server holds no such chunks, and denies them
        transfer.places = [self._servers(place) for place in asked]
        with self._aside_turn:
            self._aside.get([transfer], [place[0] for place in transfer.places], self._deadline_ms, None)
        self._count_moved([transfer], up=False)

    def _step(self, attempts: Sequence[TransferAttempts], transfers: Sequence[Transfer], search: "_Search | None") -> list[int]:
        """Find out what the attempts need to know before they ask. Return the indices of those that ask next."""
        while True:
            steps = [one.next() for one in attempts]
            found_out = False
            if AttemptStep.LOOK in steps:
                silent = {transfers[index].failed for index, step in enumerate(steps) if step is AttemptStep.LOOK}
                self._routes.look({one for one in silent if one is not None} if search is not None else ())
                found_out = True
            if AttemptStep.DOUBT in steps:
                self._routes.doubt()
                found_out = True
            searching = [one for one, step in zip(attempts, steps, strict=True) if step is AttemptStep.SEARCH]
            if searching and search is not None:
                search.late = self._late_search.look()
                for one in searching:
                    one.searched(search.late)
                found_out = True
            if not found_out:
                return [index for index, step in enumerate(steps) if step is AttemptStep.ASK]

    def _attempt(
        self,
        client: NativeClient,
        asking: Sequence[tuple[TransferAttempts, Transfer]],
        search: "_Search",
        tried: list[Ways],
        progress: Progress | None,
        aside: bool,
    ) -> None:
        """Ask the current places for blocks, all at once, and tell each of the attempts its result."""
        begun, first = self._begin(asking, search, tried)
        if not begun:
            return
        batch = [transfer for _, transfer in begun]
        call = client.get(batch, [place[0] for place in batch[0].places], self._deadline_ms, progress)
        self._count_moved(batch, up=False)
        self._tell(False, call, batch, first, aside)
        self.ended(begun)

    def _begin(
        self, asking: Sequence[tuple[TransferAttempts, Transfer]], search: "_Search", tried: list[Ways]
    ) -> tuple[list[tuple[TransferAttempts, Transfer]], list[Route]]:
        """Begin attempts at the current places.

        Returns:
            Those that have begun, and the first place of each server of the first one.
        """
        for _, transfer in asking:
            transfer.entry = self._index.current(transfer.entry)
        ways_of: dict[tuple[int, bool], Ways | None] = {}
        for attempts, transfer in asking:
            what = transfer.entry.epoch, attempts.follows_search
            if what not in ways_of:
                ways_of[what] = self._late_search.ways(transfer.entry.epoch, search.late if attempts.follows_search else None)
        places = {what: [self._servers(place) for place in ways.places] for what, ways in ways_of.items() if ways is not None}
        rows = {what: Rows(sorted(ways.rows)) for what, ways in ways_of.items() if ways is not None}
        begun: list[tuple[TransferAttempts, Transfer]] = []
        first: list[Route] = []
        for attempts, transfer in asking:
            what = transfer.entry.epoch, attempts.follows_search
            ways = ways_of[what]
            if ways is None:
                attempts.give_up()
            elif attempts.begin(rows[what], _number(ways, tried)):
                transfer.places, transfer.homes = places[what], ways.homes
                begun.append((attempts, transfer))
                first = first or [place[0] for place in ways.places]
        return begun, first

    def ended(self, begun: Sequence[tuple[TransferAttempts, Transfer]]) -> None:
        """Tell attempts the results of their transfers."""
        now: dict[int, Rows] = {}
        row = self._routes.row()
        for attempts, transfer in begun:
            epoch = transfer.entry.epoch
            if epoch not in now:
                now[epoch] = Rows(self._routes.rows(epoch))
            is_prefetched = self._index.current(transfer.entry) != transfer.entry
            attempts.ended(transfer, now[epoch], row, is_prefetched=is_prefetched)

    def begin_stream(self, asking: Sequence[tuple[TransferAttempts, Transfer]], tried: list[Ways]) -> "StreamCall | None":
        """Begin first attempts at the current places, in a call of a stream. The caller has the turn of gets.

        Args:
            asking: Blocks of which nothing was tried, at least one.
            tried: Ways that attempts of the same get have gone before; those that are gone now are added.

        Returns:
            The call, with as many of the first blocks as can be asked for. None if the first one cannot.
        """
        begun, first = self._begin(asking, _Search(), tried)
        batch = [transfer for (_, transfer), (_, wanted) in zip(begun, asking, strict=False) if transfer is wanted]
        if not batch:
            return None
        stream = Stream(self._down, batch, [place[0] for place in batch[0].places], self._deadline_ms)
        return StreamCall(stream, lambda: self._run_stream(stream, batch, first))

    def _run_stream(self, stream: Stream, batch: Sequence[Transfer], first: Sequence[Route]) -> None:
        try:
            call = stream.run()
            moved = [transfer for transfer in batch if transfer.status is not Status.RUNNING]
            self._count_moved(moved, up=False)
            self._tell(False, call, moved, first)
        finally:
            self.down_turn.give_back()

    def _servers(self, routes: Sequence[Route]) -> list[Server]:
        sky = self._constellation
        return [(satellite, entry, sky.address(*entry), sky.network.port) for satellite, entry in routes]

    def _count_moved(self, transfers: Iterable[Transfer], *, up: bool) -> None:
        done = list(transfers)
        way = "up" if up else "down"
        self._count(
            **{
                f"chunks_{way}": sum(transfer.chunks for transfer in done),
                f"bytes_{way}": sum(transfer.bytes for transfer in done),
                "retries": sum(transfer.repeats for transfer in done),
                "corrupt": sum(transfer.corrupt for transfer in done),
                "lost": sum(transfer.lost for transfer in done if transfer.status is Status.DONE),
                "decoded": sum(transfer.decoded for transfer in done),
            }
        )

    def _tell(self, up: bool, call: Call, transfers: Sequence[Transfer], routes: Sequence[Route], aside: bool = False) -> None:
        if self._watch is not None:
            self._watch(Moved(up, call, transfers, [route.satellite for route in routes], aside))


def _number(ways: _T, tried: list[_T]) -> int:
    """Return the number of these ways among those that were tried, from 1. New ways are added."""
    if ways not in tried:
        tried.append(ways)
    return 1 + tried.index(ways)
