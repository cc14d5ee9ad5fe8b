"""The control plane: PING, HAS, STATS, PURGE, MIGRATE, RELAY to one satellite or to all at once, over one UDP socket.

The flight core's host decides when a request is sent and which packet answers it (`skymemory.link.ground`). The core also says
what answers to HAS and PURGE mean (`sky_word.h`, `sky_held.h`, `sky_purge.h`).
"""

import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, Self

from skymemory.link import telemetry
from skymemory.link.ask import Ask, SatelliteAnswer, answers_of, is_newer, word_of
from skymemory.link.association_keys import AssociationKeys, keys_of, refusal_words
from skymemory.link.block_entry import BlockEntry
from skymemory.link.ground import Ground
from skymemory.link.local_address import local_address
from skymemory.link.shares import held_of, shares_of
from skymemory.link.structures import HeldVerdict, PurgeAnswers, Word
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import by_share, offset_of_key
from skymemory.sky.placement.structures import SCHEDULE_STAYS
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, ChunkSet, PacketError, migrate_payload

_DEADLINE_MAX_S: Final = 0xFFFFFFFF / 1000
_ANY_CHUNK: Final = ChunkSet(0, 1, (True,)).encode()
_WHOLE: Final = {HeldVerdict.WHOLE: True, HeldVerdict.UNKNOWN: None, HeldVerdict.BROKEN: False}
LINK_NAMES: Final = ("north", "east", "south", "west", "ground")
"""Names of the link records in STATS of the application `isl`, in their order."""

OTHERS_NUMBER: Final = 2**32
"""Number in the record of all tenants without a quota of their own."""


class PurgeOrder(NamedTuple):
    """An order to satellites to forget their chunks of a block. Older versions than `version` go whatever else they are."""

    key: bytes
    routes: Sequence[Route]
    version: int = 0
    """Newest version that goes; 0: any does."""
    content: int = 0
    """Content instance of that version that goes; 0: any does."""
    epoch: int = SCHEDULE_STAYS
    """Latest row for which the block may be kept; `SCHEDULE_STAYS`: it goes whatever it is kept for."""


class Move(NamedTuple):
    """An order to a satellite to send its chunks of a block to another one."""

    source: Route
    target: Satellite
    key: bytes


@dataclass(frozen=True, slots=True)
class LinkStats:
    """Counters of the application `isl`, and of each link by its name; names as in the ICD."""

    counters: dict[str, int]
    links: dict[str, dict[str, int]]

    @property
    def generations(self) -> list[int]:
        """Generations of the satellite's valid master keys in ascending order; none if it has no keys."""
        return sorted((self.counters["generation_first"], self.counters["generation_second"])[: self.counters["master_keys"]])

    @property
    def generation_peers(self) -> int:
        """Generation of the keys with which it asks other satellites; 0: it has no keys."""
        return self.counters["generation_peers"]


class TenantStats(NamedTuple):
    """A tenant's quota on a satellite, and counts of what it holds there: a record `tenant` of the ICD."""

    number: int
    """The tenant; OTHERS_NUMBER: all tenants without a quota of their own."""
    reserved_bytes: int
    most_bytes: int
    used_bytes: int
    """Bytes of the store's slots that have its chunks and entries: small chunks share a slot."""
    blocks: int
    evictions: int
    """Complete chunks of its own that made room."""
    refused: int
    """Puts that found no room."""


class Purged(NamedTuple):
    """Result of a purge."""

    chunks: int
    """Chunks given up by the satellites that answered."""
    confirmed: bool
    """True if every satellite that was asked answered."""


class HeldBlock(NamedTuple):
    """Servers' answers about a block."""

    whole: bool | None
    """True if every share is held; None if that depends on a place that was silent, or on a server without a place."""
    silent: list[Satellite]
    """Satellites that did not answer."""
    other: bool
    """True if a block of other lengths has the key."""
    gone: bool
    """True if it is not whole whatever lost satellites have for which others stand in."""
    unsettled: bool
    """True if a satellite that is not settled denied chunks, which may be on their way to it."""
    denied: int
    """Chunks that all satellites deny that were asked."""
    holders: dict[int, Satellite]
    """For each server whose share lies whole at its first place, that satellite."""


class ControlPlane:
    """A ground host's socket for small requests. Thread-safe: exchanges of several threads run at once. A context manager."""

    def __init__(self, constellation: Constellation, timing: Timing | None = None, keys: AssociationKeys | None = None) -> None:
        """Open the socket.

        Args:
            timing: Times after which satellites are asked again.
            keys: Keys in place of those of the keyring that the constellation names.

        Raises:
            OSError: The system gives no socket.
            SecretFileError: The keyring cannot be read.
        """
        self.constellation = constellation
        self.timing = timing or Timing()
        """Times after which satellites are asked again, and for which the host waits for them."""
        self._closed = False
        self._lock = Lock()
        self._keys = keys or keys_of(constellation)
        self.local = local_address(constellation)
        """Address of this machine where it listens, as a number; 0: any."""
        self._ground = Ground(constellation, self.timing, self._keys, self.local)
        self._refused: frozenset[Satellite] = frozenset()

    @property
    def host(self) -> Satellite:
        """Address of this host: drawn by chance, and drawn again when a satellite says that another host has it."""
        return Satellite(GROUND_PLANE, self._ground.number)

    @host.setter
    def host(self, host: Satellite) -> None:
        with self._opened():
            self._ground.set_number(host.slot)

    @property
    def retries(self) -> int:
        """Requests that were sent again."""
        return self._ground.repeats

    @property
    def port(self) -> int:
        """The host's UDP port."""
        return self._ground.port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End what runs, and close the socket; safe to call twice."""
        self._closed = True
        self._ground.close()

    def new_host(self) -> None:
        """Draw another host number, in case another host has the same one and gets the answers meant for this one."""
        with self._opened():
            self._ground.set_number(0)

    def suites(self) -> frozenset[str]:
        """Return the suites of the associations that this control plane has; none without a keyring."""
        self._check_open()
        return self._ground.suites()

    @property
    def refused(self) -> frozenset[Satellite]:
        """Satellites whose last answer was that they do not take this host's keys, or that it shows none."""
        return self._refused

    def refusal(self) -> str:
        """Return a sentence about the satellites that refuse this host's keys, and what to do; '' if none does."""
        return refusal_words(len(self._refused), self._keys)

    def patience_s(self, routes: Sequence[Route]) -> float:
        """Return the seconds after which satellites count as silent: five sendings, by the round trips measured so far."""
        with self._opened():
            return self._ground.patience_s(route.satellite for route in routes)

    def hurry_s(self, routes: Iterable[Route]) -> float:
        """Return the seconds to wait for a dispensable answer: three sendings, by the round trips measured so far."""
        with self._opened():
            return self._ground.hurry_s(route.satellite for route in routes)

    def expect(self, rtt_s: Mapping[Satellite, float]) -> None:
        """Take over round trips of another control plane, for satellites without a measurement of this one."""
        with self._opened():
            for satellite, measured_s in rtt_s.items():
                self._ground.expect(satellite, measured_s)

    def exchange(self, asks: Sequence[Ask], deadline_s: float) -> list[SatelliteAnswer | None]:
        """Send requests, repeat what is lost, and collect answers until all are here or the deadline passes.

        A satellite that is `busy` is asked again. A satellite on the way that could not forward the request may answer as well;
        the answer's status says so.

        Args:
            deadline_s: Seconds from now.

        Returns:
            For each request its answer, or None if none came in time, or the control plane was closed meanwhile.

        Raises:
            PacketError: A request does not fit a packet.
            ValueError: A satellite is not of this constellation, or the control plane was closed.
            TimeoutError: A request had no turn, because other calls ask too much at once (`Ground.ask`).
            OSError: Somebody closed the socket's descriptor, or this process was forked.
        """
        with self._opened():
            if not asks or deadline_s <= 0.0:
                return [None] * len(asks)
            answers = self._ground.ask(asks, max(1, ceil(min(deadline_s, _DEADLINE_MAX_S) * 1000)))
        self._note_refusals(asks, answers)
        return answers

    def _note_refusals(self, asks: Sequence[Ask], answers: Sequence[SatelliteAnswer | None]) -> None:
        """Note who refuses this host's keys: the satellite that was asked, or the entry satellite on the way to it.

        Who does not answer has not changed its mind.
        """
        refused: set[Satellite] = set()
        taken: set[Satellite] = set()
        for ask, answer in zip(asks, answers, strict=True):
            if answer is not None:
                told = Satellite(answer.raw.src.plane, answer.raw.src.slot)
                if answer.status == icd.STATUS_UNAUTHENTICATED:
                    refused.add(told)
                else:
                    taken |= {told, ask.route.entry}
        if refused or self._refused:
            with self._lock:
                self._refused = (self._refused - taken) | refused

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the control plane was closed")

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Raise ValueError if it was closed, also by another thread meanwhile."""
        self._check_open()
        try:
            yield
        except OSError:
            self._check_open()
            raise

    # ---- operations -----------------------------------------------------------------------------------------------

    def ping(self, routes: Sequence[Route], deadline_s: float, apid: int = icd.APID_KVC) -> dict[Satellite, float]:
        """Return the round trip times, in seconds, of the satellites that answer."""
        asks = [Ask(route, icd.OP_PING, apid, payload=b"skymemory") for route in routes]
        return {
            ask.route.satellite: answer.rtt_s
            for ask, answer in zip(asks, self.exchange(asks, deadline_s), strict=True)
            if answer is not None and answer.ok and answer.payload == ask.payload
        }

    def store_stats(self, routes: Sequence[Route], deadline_s: float) -> dict[Satellite, dict[str, int]]:
        """Return the counters of the hashtable service, by the ICD's names, of the satellites that answer."""
        answers = self._store_answers([Ask(route, icd.OP_STATS) for route in routes], deadline_s)
        return {satellite: counters for satellite, (counters, _) in answers.items()}

    def tenant_stats(self, routes: Sequence[Route], deadline_s: float) -> dict[Satellite, list[TenantStats]]:
        """Return what each tenant may store and holds on the satellites that answer: nothing where there are no quotas.

        The others, all tenants without a quota of their own, come first. Satellites whose records do not fit one packet are asked
        again for the rest.
        """
        end_s = time.monotonic() + deadline_s
        found: dict[Satellite, list[TenantStats]] = {}
        left = list(routes)
        while left:
            asks = [Ask(route, icd.OP_STATS, chunk_id=len(found.get(route.satellite, ())) + 1) for route in left]
            answers = self._store_answers(asks, end_s - time.monotonic())
            unfinished = set()
            for satellite, (counters, records) in answers.items():
                have = found.setdefault(satellite, [])
                have += records
                if records and len(have) < min(counters["tenants"], icd.LIMIT_TENANTS + 1):
                    unfinished.add(satellite)
            left = [route for route in left if route.satellite in unfinished]
        return found

    def _store_answers(self, asks: Sequence[Ask], deadline_s: float) -> dict[Satellite, tuple[dict[str, int], list[TenantStats]]]:
        found = {}
        fixed, size = len(icd.STATS_KVC), len(icd.STATS_TENANT)
        for satellite, values in self._stats(asks, deadline_s):
            if len(values) >= fixed and (len(values) - fixed) % size == 0:
                records = [TenantStats(*values[at : at + size]) for at in range(fixed, len(values), size)]
                found[satellite] = dict(zip(icd.STATS_KVC, values[:fixed], strict=True)), records
        return found

    def link_stats(self, routes: Sequence[Route], deadline_s: float) -> dict[Satellite, LinkStats]:
        """Return the counters of links and routing of the satellites that answer."""
        found = {}
        fixed, size = len(icd.STATS_ISL), len(icd.STATS_LINK)
        for satellite, values in self._stats([Ask(route, icd.OP_STATS, icd.APID_ISL) for route in routes], deadline_s):
            if len(values) == fixed + size * len(LINK_NAMES) and values[icd.STATS_ISL_LINKS] == len(LINK_NAMES):
                records = [values[at : at + size] for at in range(fixed, len(values), size)]
                found[satellite] = LinkStats(
                    dict(zip(icd.STATS_ISL, values[:fixed], strict=True)),
                    {
                        name: dict(zip(icd.STATS_LINK, record, strict=True))
                        for name, record in zip(LINK_NAMES, records, strict=True)
                    },
                )
        return found

    def _stats(self, asks: Sequence[Ask], deadline_s: float) -> Iterator[tuple[Satellite, tuple[int, ...]]]:
        for ask, answer in zip(asks, self.exchange(asks, deadline_s), strict=True):
            if answer is not None and answer.ok and len(answer.payload) % 8 == 0:
                yield ask.route.satellite, struct.unpack(f">{len(answer.payload) // 8}Q", answer.payload)

    def find(
        self, routes: Sequence[Route], keys: Sequence[bytes], tenant: int, deadline_s: float
    ) -> tuple[list[BlockEntry | None], set[bytes]]:
        """Ask satellites, all at once, which blocks they hold any chunk of (`find_each`)."""
        return self.find_each([(key, routes) for key in keys], tenant, deadline_s)

    def find_each(
        self, blocks: Sequence[tuple[bytes, Sequence[Route]]], tenant: int, deadline_s: float
    ) -> tuple[list[BlockEntry | None], set[bytes]]:
        """Ask satellites, all at once, which blocks they hold any chunk of (HAS with the flag `any`).

        Args:
            blocks: The key of each block, and the satellites to ask.
            tenant: The tenant of the blocks.
            deadline_s: Seconds from now.

        Returns:
            For each key the newest entry, or None if no satellite holds a chunk; and the keys that nobody knows while somebody
            said nothing about them.
        """
        asks = [_has_any(route, key, tenant) for key, routes in blocks for route in routes]
        found: dict[bytes, BlockEntry] = {}
        silent = set()
        for ask, answer in zip(asks, self.exchange(asks, deadline_s), strict=True):
            word, entry = self._word_of(ask, answer)
            if entry is not None and (entry.key not in found or is_newer(entry, found[entry.key])):
                found[entry.key] = entry
            if word is Word.NOTHING:
                silent.add(ask.key)
        return [found.get(key) for key, _ in blocks], silent - found.keys()

    def _word_of(self, ask: Ask, answer: SatelliteAnswer | None) -> tuple[Word, BlockEntry | None]:
        """Return the meaning of an answer to HAS. This host cannot fetch a block that is cut for another number of servers."""
        word, entry = word_of(ask.key, answer)
        if entry is not None and entry.code_k + entry.code_m not in (0, self.constellation.cache.servers):
            return Word.UNSOUND, None
        return word, entry

    def find_latest(
        self, routes: Sequence[Route], keys: Sequence[bytes], tenant: int, deadline_s: float
    ) -> dict[bytes, BlockEntry]:
        """Ask several satellites about blocks, all at once; of several entries of a block the newest version and epoch counts."""
        entries, _ = self.find(routes, keys, tenant, deadline_s)
        return {entry.key: entry for entry in entries if entry is not None}

    def hold_all(
        self, blocks: Sequence[tuple[BlockEntry, Sequence[Sequence[Route]]]], tenant: int, deadline_s: float
    ) -> list[bool | None]:
        """Ask servers whether they hold their whole shares of blocks, all at once.

        A share that moves may lie in part at one place and in part at another: the next place is asked for the chunks that those
        before lack.

        Args:
            blocks: Each entry with the routes to the places of servers 0 to n - 1.

        Returns:
            For each block True, False, or None if it depends on a place that did not answer.
        """
        return [one.whole for one in self.held(blocks, tenant, deadline_s)]

    def held(
        self,
        blocks: Sequence[tuple[BlockEntry, Sequence[Sequence[Route]]]],
        tenant: int,
        deadline_s: float,
        replaced: Sequence[Collection[int]] = (),
    ) -> list[HeldBlock]:
        """Ask as `hold_all` does, and also return who was silent. A server without a place is not asked.

        Args:
            replaced: For each block the servers with a place at a stand-in; none if it is empty.
        """
        end_s = time.monotonic() + deadline_s
        stood_in = replaced or [()] * len(blocks)
        shares = [
            share
            for index, ((entry, places), some) in enumerate(zip(blocks, stood_in, strict=True))
            for share in shares_of(index, entry, places, some)
        ]
        silent: list[list[Satellite]] = [[] for _ in blocks]
        while left := [share for share in shares if share.is_open]:
            asks = [share.ask(tenant) for share in left]
            for share, ask, answer in zip(left, asks, self.exchange(asks, end_s - time.monotonic()), strict=True):
                share.take(answer)
                if answer is None:
                    silent[share.index].append(ask.route.satellite)
        found = [held_of(entry) for entry, _ in blocks]
        holders: list[dict[int, Satellite]] = [{} for _ in blocks]
        lacking: set[tuple[int, int]] = set()
        for share in shares:
            share.add_to(found[share.index])
            if (holder := share.holder) is None:
                lacking.add((share.index, share.server))
            else:
                holders[share.index][share.server] = holder
        for index, server in lacking:
            holders[index].pop(server, None)  # it lacks another piece of its share
        return [
            HeldBlock(_WHOLE[HeldVerdict(one.verdict)], who, one.is_other, one.is_gone, one.is_unsettled, one.denied, whole)
            for one, who, whole in zip(found, silent, holders, strict=True)
        ]

    def touch(self, blocks: Sequence[tuple[BlockEntry, Sequence[Route]]], tenant: int, deadline_s: float) -> bool:
        """Fetch the first chunk of each server's share of blocks and discard it: stores then count the blocks as used.

        Args:
            blocks: Each entry with the routes to servers 0 to n - 1, in the order in which they are to count as used.

        Returns:
            True if all servers that were asked answered.
        """
        asks = [
            Ask(
                route,
                icd.OP_GET,
                tenant=tenant,
                key=entry.key,
                chunk_id=share,
                credit=1,
                payload=ChunkSet(share, len(routes), (True,)).encode(),
            )
            for entry, routes in blocks
            for share, route in enumerate(entry.by_share(routes)[: entry.chunk_total])
        ]
        return None not in self.exchange(asks, deadline_s)

    def purge(
        self,
        orders: Sequence[PurgeOrder],
        tenant: int,
        deadline_s: float,
        homes: Sequence[Collection[Satellite] | None] = (),
    ) -> list[PurgeAnswers]:
        """Let satellites forget their chunks of blocks, all at once.

        Args:
            orders: The order for each block.
            tenant: The tenant of the blocks.
            deadline_s: Seconds from now.
            homes: For each server the satellites that may have its shares of these blocks; None if a lost one may. With
                parity nothing counts as gone without them.
        """
        asks = [
            Ask(route, icd.OP_PURGE, tenant=tenant, key=one.key, version=one.version, content=one.content, epoch=one.epoch)
            for one in orders
            for route in one.routes
        ]
        answers = iter(self.exchange(asks, deadline_s))
        parity = self.constellation.cache.parity
        return [
            answers_of({route.satellite: next(answers) for route in one.routes}, _from_share_0(one.key, homes), parity)
            for one in orders
        ]

    def migrate(self, moves: Sequence[Move], tenant: int, deadline_s: float, *, epoch: int = 0) -> list[SatelliteAnswer | None]:
        """Let satellites send chunks of blocks to others, all at once; a satellite without room for another job is asked again.

        Args:
            moves: The orders, one for each source and block; a key of zeros means all blocks.
            epoch: Row of the schedule for whose window the blocks are prefetched; they stay until it is over. 0: they lie in the
                present window.

        Returns:
            For each move the answer, which says that the job began or that there is nothing to move.
        """
        asks = [
            Ask(
                move.source,
                icd.OP_MIGRATE,
                tenant=tenant,
                epoch=epoch,
                key=move.key,
                payload=migrate_payload(move.target),
            )
            for move in moves
        ]
        return self.exchange(asks, deadline_s)

    def relay(self, routes: Sequence[Route], message: bytes, deadline_s: float) -> list[SatelliteAnswer | None]:
        """Put a cFS message (a command, with its headers) on the Software Bus of satellites.

        A satellite puts it there once, however often the request is repeated. Without an answer it may or may not be there.

        Raises:
            PacketError: The message is longer than the ICD allows.
        """
        if len(message) > icd.LIMIT_RELAY_BYTES:
            raise PacketError(icd.STATUS_TOO_LARGE, f"message of {len(message)} bytes; {icd.LIMIT_RELAY_BYTES} are allowed")
        asks = [Ask(route, icd.OP_RELAY, icd.APID_ISL, payload=message) for route in routes]
        return self.exchange(asks, deadline_s)

    def listen(
        self, routes: Sequence[Route], duration_s: float, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Satellite, bytes]]:
        """Yield telemetry of satellites' Software Buses as it comes, each message with its headers.

        Satellites send it for the time of a lease, which is renewed here; that also makes up for requests that were lost. A
        socket and a host number of its own are used.

        Args:
            stopped: Function that is called now and then; True ends the listening early.
        """
        self._check_open()
        yield from telemetry.listen(self.constellation, self._keys, routes, duration_s, lambda: stopped() or self._closed)


def _from_share_0(key: bytes, homes: Sequence[Collection[Satellite] | None]) -> Sequence[Collection[Satellite] | None]:
    """Return the homes of servers in the order of a small block's shares. Of a large block all servers have shares."""
    return by_share(homes, offset_of_key(key, len(homes))) if homes else homes


def _has_any(route: Route, key: bytes, tenant: int) -> Ask:
    """Return the question whether a satellite holds any chunk of a block."""
    return Ask(route, icd.OP_HAS, flags=icd.FLAG_ANY, tenant=tenant, key=key, payload=_ANY_CHUNK)
