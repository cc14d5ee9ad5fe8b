"""Blocks on their way between this host and the places of their shares: around satellites that are lost, and after a window that
moves on meanwhile."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import Final, NamedTuple

from skymemory.block_entry import BlockEntry
from skymemory.config import Constellation
from skymemory.handovers import Handovers
from skymemory.link.native import Call, NativeClient, Server, Transfer
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route
from skymemory.progress import Progress
from skymemory.reach import Reach, Ways
from skymemory.results import NO_WAY, Status

_ATTEMPTS: Final = 3
"""of a fetch: the second around satellites that were found lost, and as long as the window moves on meanwhile"""
_SEARCHES: Final = 4
"""of a fetch among satellites that are late to hand over: one more where a row begins meanwhile, or another satellite is late"""
_STEP_BYTES: Final = 1 << 22


def memory_for(length: int) -> bytearray:
    """Memory for a block, zeroed. Taken in steps: at once it would keep all other threads waiting for a millisecond per MB."""
    step = bytes(min(length, _STEP_BYTES))
    memory = bytearray(step)
    while (left := length - len(memory)) > 0:
        memory += step if left >= _STEP_BYTES else bytes(left)
    return memory


class Moved(NamedTuple):
    """One call that moved blocks. A get or a put may take several, around satellites that are lost."""

    up: bool
    call: Call
    transfers: Sequence[Transfer]
    servers: Sequence[Satellite]
    """satellites of servers 0 to n - 1; while the sky turns shares may have come from others"""
    aside: bool = False
    """a get beside the others"""


class Transfers:
    """Of one store. Thread-safe: a call up, a call down and one down beside that at a time."""

    def __init__(
        self,
        constellation: Constellation,
        reach: Reach,
        handovers: Handovers,
        as_laid: Callable[[BlockEntry], BlockEntry],
        count: Callable[..., None],
        watch: Callable[[Moved], None] | None,
    ) -> None:
        """
        Args:
            as_laid: an entry with what this host has come to know of its place since.
            count: takes counts by the names of `StoreStatistics`.
            watch: is told of each call, in the thread that made it; others wait meanwhile.

        Raises:
            OSError: no socket to be had.
        """
        self._constellation = constellation
        self._deadline_ms = constellation.cache.deadline_ms
        self._reach = reach
        self._handovers = handovers
        self._as_laid = as_laid
        self._add = count
        self._watch = watch
        # One transfer a way at a time, as its socket has it anyway: who waits for it then knows what was learned. Each way has
        # a socket of its own, so that a put never holds up a get, and gets of much that is not urgent have one beside the others
        self._up_turn = Lock()
        self._down_turn = Lock()
        self._aside_turn = Lock()
        with ExitStack() as opened:
            packet_bytes, burst = constellation.network.mtu, constellation.satellite.credit
            self._up = opened.enter_context(NativeClient(packet_bytes, burst))
            self._down = opened.enter_context(NativeClient(packet_bytes, burst))
            self._aside = opened.enter_context(NativeClient(packet_bytes, burst))
            opened.pop_all()

    def close(self) -> None:
        """End what runs and close the sockets; safe to call twice."""
        self._up.close()
        self._down.close()
        self._aside.close()

    def put(self, transfers: Sequence[Transfer], progress: Progress | None) -> None:
        """Put blocks; once more those for which there is a way that was not known before. RUNNING: not even begun."""
        left = list(transfers)
        with self._up_turn:
            tried: list[Route] = []
            for _ in range(2):
                routes = self._reach.routes()
                if not left or not routes or routes == tried:
                    return
                call = self._up.put(left, self._servers(routes), self._deadline_ms, progress)
                self._count(left, up=True)
                self._tell(True, call, left, routes)
                left = [transfer for transfer in left if transfer.status in NO_WAY]
                if left:
                    self._reach.look()
                tried = routes

    def get(self, transfers: Sequence[Transfer], progress: Progress | None, *, aside: bool = False) -> list[Ways | None]:
        """Get blocks from where they may be; once more as `put`, and those that the window has moved on with meanwhile.

        What all places deny is looked for at satellites that have yet to hand something over, unless none has.

        Args:
            aside: over the socket beside that of the others, so that these do not wait.

        Returns:
            For each block the ways on which it was asked for last.
        """
        asked: list[Ways | None] = [None] * len(transfers)
        left = list(range(len(transfers)))
        turn, client = (self._aside_turn, self._aside) if aside else (self._down_turn, self._down)
        with turn:
            over = self._handovers.over()
            tried: dict[int, Ways] = {}
            for attempt in range(_ATTEMPTS):
                for index in left:
                    transfers[index].entry = self._as_laid(transfers[index].entry)
                epochs = {transfers[index].entry.epoch for index in left}
                ways = {epoch: way for epoch in epochs if (way := self._reach.ways(epoch)) is not None}
                if not left or len(ways) < len(epochs) or ways == tried:
                    break
                places = {epoch: [self._servers(place) for place in way.places] for epoch, way in ways.items()}
                for index in left:
                    transfers[index].places = places[transfers[index].entry.epoch]
                    asked[index] = ways[transfers[index].entry.epoch]
                batch = [transfers[index] for index in left]
                call = client.get(batch, [place[0] for place in batch[0].places], self._deadline_ms, progress)
                self._count(batch, up=False)
                self._tell(False, call, batch, [place[0] for place in ways[batch[0].entry.epoch].places], aside)
                lost = [index for index in left if transfers[index].status in NO_WAY]
                doubtful = [index for index in left if self.stand_in_failed(transfers[index], asked[index])]
                moved = [index for index in left if self.has_moved(transfers[index], asked[index])]
                if lost:
                    self._reach.look({one for index in lost if (one := transfers[index].failed) is not None})
                if doubtful:
                    self._reach.doubt()
                left = sorted({*moved, *(lost + doubtful if attempt == 0 else [])})
                tried = ways
            is_certain = over is not None and over.is_certain
            asked = [way if way is None else way._replace(is_complete=is_certain) for way in asked]
            if over is None:
                self._search(client, transfers, asked, progress, aside)
        return asked

    def _search(
        self,
        client: NativeClient,
        transfers: Sequence[Transfer],
        asked: list[Ways | None],
        progress: Progress | None,
        aside: bool,
    ) -> None:
        """Get what was denied from satellites that have yet to hand it over, or from where it has come meanwhile."""
        for _ in range(_SEARCHES):
            left = [index for index, transfer in enumerate(transfers) if transfer.status is Status.MISS]
            if not left:
                return
            late = self._handovers.look()
            for epoch in {transfers[index].entry.epoch for index in left}:
                some = [index for index in left if transfers[index].entry.epoch == epoch]
                if (ways := self._reach.ways(epoch)) is None:
                    return
                ways = self._handovers.extended(ways, late)._replace(is_complete=late.is_over and late.is_certain)
                places = [self._servers(place) for place in ways.places]
                for index in some:
                    transfers[index].places, asked[index] = places, ways
                batch = [transfers[index] for index in some]
                call = client.get(batch, [place[0] for place in places], self._deadline_ms, progress)
                self._count(batch, up=False)
                self._tell(False, call, batch, [place[0] for place in ways.places], aside)
            if self._handovers.look().row == late.row:
                return

    def stand_in_failed(self, transfer: Transfer, ways: Ways | None) -> bool:
        """Was a share missed for which another satellite stands in?"""
        return (
            ways is not None
            and transfer.status is Status.MISS
            and any(transfer.failed in {route.satellite for route in ways.places[server]} for server in ways.replaced)
        )

    def has_moved(self, transfer: Transfer, ways: Ways | None) -> bool:
        """Was a share missed that may have moved on to where it was not asked for?"""
        if ways is None or transfer.status is not Status.MISS:
            return False
        return self._as_laid(transfer.entry) != transfer.entry or self._reach.has_moved(ways, transfer.entry.epoch)

    def _servers(self, routes: Sequence[Route]) -> list[Server]:
        sky = self._constellation
        return [(satellite, entry, sky.address(*entry), sky.network.port) for satellite, entry in routes]

    def _count(self, transfers: Iterable[Transfer], *, up: bool) -> None:
        done = list(transfers)
        way = "up" if up else "down"
        self._add(
            **{
                f"chunks_{way}": sum(transfer.chunks for transfer in done),
                f"bytes_{way}": sum(transfer.bytes for transfer in done),
                "retries": sum(transfer.repeats for transfer in done),
                "corrupt": sum(transfer.corrupt for transfer in done),
            }
        )

    def _tell(self, up: bool, call: Call, transfers: Sequence[Transfer], routes: Sequence[Route], aside: bool = False) -> None:
        if self._watch is not None:
            self._watch(Moved(up, call, transfers, [route.satellite for route in routes], aside))
