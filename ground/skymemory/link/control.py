"""The control plane: PING, HAS, STATS, PURGE, MIGRATE, RELAY to one satellite or to all at once, over one UDP socket.

The flight core's host decides when a request is sent and which packet answers it (`skymemory.link.ground`). The core also says
what answers to HAS and PURGE mean (`sky_word.h`, `sky_held.h`, `sky_purge.h`).
"""

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, Self

from skymemory.link import telemetry
from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.association_keys import AssociationKeys, keys_of, refusal_words
from skymemory.link.block_entry import BlockEntry
from skymemory.link.ground import Ground
from skymemory.link.local_address import local_address
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.structures import SCHEDULE_STAYS
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, NOWHERE, PacketError

_DEADLINE_MAX_S: Final = 0xFFFFFFFF / 1000
LINK_NAMES: Final = ("north", "east", "south", "west", "ground")
"""Names of the link records in STATS of the application `isl`, in their order."""

OTHERS_NUMBER: Final = 2**32
"""Number in the record of all tenants without a quota of their own."""


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
    def ground(self) -> Ground:
        """The ground of the flight core that asks."""
        return self._ground

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
        self.check_open()
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

    def check_open(self) -> None:
        """Raise ValueError if the control plane was closed."""
        if self._closed:
            raise ValueError("the control plane was closed")

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Raise ValueError if it was closed, also by another thread meanwhile."""
        self.check_open()
        try:
            yield
        except OSError:
            self.check_open()
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

    def purge_at(self, satellites: Sequence[Satellite], entry: BlockEntry, tenant: int) -> None:
        """Let these satellites forget their chunks of one block, and of what is older under its key."""
        asks = [
            Ask(
                Route(satellite, NOWHERE),
                icd.OP_PURGE,
                tenant=tenant,
                epoch=SCHEDULE_STAYS,
                key=entry.key,
                version=entry.version,
                content=entry.content,
            )
            for satellite in satellites
        ]
        self.exchange(asks, self._ground.patience_s(satellites))

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
        self.check_open()
        yield from telemetry.listen(self.constellation, self._keys, routes, duration_s, lambda: stopped() or self._closed)
