"""The ground host of the flight core, with a socket and a thread of its own (`ground/native/skyc_ground.h`).

The core decides when a request is sent, when it is repeated, and which packet answers it (`sky_ground.h`). Any number of threads
may use a ground at once: nobody waits for another.
"""

import atexit
import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np

from skymemory.common import defaults
from skymemory.common.compiled import extension
from skymemory.link import structures
from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.association_keys import AssociationKeys, suite_names
from skymemory.link.hints import Hint, HintFile
from skymemory.link.operations import Operation, Outcome, Sky
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import KEY_BYTES, NOWHERE, PacketError

ANSWER_BYTES: Final = 1024
"""Room for the payload of an answer; except for a chunk, no payload of the ICD needs more."""
_OVERHEAD: Final = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.HEADER_BYTES + icd.TAG_BYTES + icd.PEC_BYTES
_RECEIVE_BUFFER_BYTES: Final = 8 << 20
_OPERATIONS: Final = 64
"""Operations that run at a time; later ones wait for these."""
_QUEUED: Final = 1 << 16
"""Operations that may wait or run."""
_DEADLINE_MAX_MS: Final = 0xFFFFFFFF
_FORKED: Final = "this process was forked from the one that opened the socket: it has to open its own"
_CROWDED: Final = "this host asks so much at once that some of these requests were not sent before their deadline"


T = TypeVar("T")


class Reach(NamedTuple):
    """Knowledge of satellites that do not answer."""

    is_silent: bool
    """True after no satellite has answered, until one does."""
    losses: int
    """Times that a satellite was found lost."""
    lost: frozenset[Satellite]
    """Satellites that do not answer while others do."""


class Ground:
    """A ground host: one UDP socket, one association with each satellite, one thread. Thread-safe.

    In a forked child all methods but `close` raise ChildProcessError, which is an OSError.
    """

    def __init__(self, constellation: Constellation, timing: Timing, keys: AssociationKeys | None = None, local: int = 0) -> None:
        """Open the socket; nothing is sent.

        Args:
            constellation: Constellation whose satellites can be asked.
            timing: Times of the host.
            keys: Keyring with which to associate with satellites; None: they are asked for cookies alone.
            local: Address of this machine where it listens (`local_address`); 0: any.

        Raises:
            OSError: The system gives no socket.
            FileNotFoundError: The extension was not built.
        """
        torus, cache = constellation.torus, constellation.cache
        self._torus = torus
        times_s = timing.first_s, timing.min_s, timing.max_s, timing.silence_s
        self._native: Any = extension("ground").Ground(
            torus.planes,
            torus.slots,
            torus.seam_cut,
            min(cache.servers, torus.planes * torus.slots),
            cache.chunk_bytes,
            _endpoints(constellation),
            tuple(round(1e6 * one) for one in times_s),
            (None, None, 0) if keys is None else (keys.credential, keys.pair_keys, keys.suite),
            local,
            _RECEIVE_BUFFER_BYTES,
            constellation.network.mtu,
            constellation.satellite.credit,
            cache.ask_all,
            _OPERATIONS,
            _QUEUED,
            tuple(round(1e6 * one) for one in (timing.lost_s, timing.doubt_s, timing.pause_first_s, timing.pause_max_s)),
        )
        self._last = structures.Counters()
        self._last = self._counters()
        self.port = int(self._last.port)
        """The host's UDP port."""
        self._hints = HintFile(constellation)
        self._has_sky = False
        _open.add(self)

    def close(self) -> None:
        """End what runs, and close the socket; safe to call twice, also at once: each call returns when that is done.

        Other processes of this user get a hint of what this one knows of the sky.
        """
        self.share_hints()
        with suppress(ChildProcessError):
            self._last = self._counters()
        self._native.close()
        _open.discard(self)

    @property
    def number(self) -> int:
        """This host's number; its ground address is (0, number)."""
        return int(self._counters().host_number)

    @property
    def repeats(self) -> int:
        """Questions that were sent again."""
        return int(self._counters().repeats)

    def suites(self) -> frozenset[str]:
        """Return the suites of the associations that this ground has."""
        return frozenset(suite_names(self._counters().suites_used))

    def set_number(self, number: int) -> None:
        """Take another host number; 0 draws one by chance. What runs goes on under it.

        Raises:
            OSError: Somebody closed the socket's descriptor, the ground was closed, or this process was forked.
        """
        with _TOLD:
            self._native.set_number(number)

    def patience_s(self, satellites: Iterable[Satellite]) -> float:
        """Return the seconds after which these satellites count as silent. Errors are those of `set_number`."""
        with _TOLD:
            return float(self._native.patience_us(satellites) / 1e6)

    def hurry_s(self, satellites: Iterable[Satellite]) -> float:
        """Return the seconds to wait for dispensable answers. Errors are those of `set_number`."""
        with _TOLD:
            return float(self._native.hurry_us(satellites) / 1e6)

    def expect(self, satellite: Satellite, rtt_s: float) -> None:
        """Take over a round trip that another ground measured, if none was measured here. Errors are those of `set_number`."""
        with _TOLD:
            self._native.expect(*satellite, min(max(round(rtt_s * 1e6), 1), defaults.HOST_RTO_MAX_US))

    def ask(self, asks: Sequence[Ask], deadline_ms: int) -> list[SatelliteAnswer | None]:
        """Ask, and wait until all is answered or the deadline has passed.

        Args:
            asks: The requests.
            deadline_ms: Milliseconds from now, at least 1.

        Returns:
            For each request its answer, or None if none came in time, or the ground was closed meanwhile. Of more than 2,048
            requests some may wait for the answers of others, and have None if their turn does not come.

        Raises:
            PacketError: A request does not fit a packet.
            ValueError: A satellite is none of the constellation.
            TimeoutError: A request has waited behind those of other calls all the time. Nobody was asked, so nobody is silent.
            OSError: Somebody closed the socket's descriptor, the ground was closed before, or this process was forked.
            RuntimeError: The system gives no thread, which starts with the first request.
        """
        requests = [self._request(ask) for ask in asks]
        with _TOLD:
            try:
                answers = self._native.exchange(requests, min(deadline_ms, _DEADLINE_MAX_MS))
            except OverflowError as error:
                raise PacketError(icd.STATUS_BAD_HEADER, str(error)) from error
        return [None if answer is None else _read(*answer) for answer in answers]

    def set_sky(self, sky: Sky) -> None:
        """Set what operations on blocks see from now on, those that run included.

        Raises:
            OSError: The core refuses the schedule (EINVAL), the ground was closed, or this process was forked.
        """
        with _TOLD:
            self._native.set_sky(*sky)
            if not self._has_sky:
                self._has_sky = True
                self._native.take_hints(self._hints.read())

    def share_hints(self) -> None:
        """Leave a hint for other processes of this user: which satellites are silent, and how long answers take (`HintFile`)."""
        if self._has_sky:
            with suppress(OSError):  # it was closed, or this process was forked
                self._native.take_hints(self._hints.read())  # what others know, too
                self._hints.write([Hint._make(one) for one in self._native.hints()])

    def run(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Have operations on blocks done, all at once, and wait for all of them. A sky was set before.

        Returns:
            The outcome of each, in order.

        Raises:
            ValueError: The memory of a block has another length, or a number is out of range.
            BlockingIOError: More than 65,536 operations would wait or run.
            RuntimeError: The system gives no thread, which starts with the first operation.
            OSError: Somebody closed the socket's descriptor, the ground was closed before, or this process was forked.
        """
        with _TOLD:
            told = self._native.run([one.request() for one in operations])
        return [Outcome.of(one, outcome) for one, outcome in zip(operations, told, strict=True)]

    def box(self, *, has_descriptor: bool = False) -> "Box":
        """Return a box for operations that are submitted now and whose outcomes are taken as they come.

        Args:
            has_descriptor: Make `Box.fileno` work, for a loop of events.

        Raises:
            OSError: The system gives no descriptor, the ground was closed, or this process was forked.
        """
        with _TOLD:
            return Box(extension("ground").Box(self._native, has_descriptor))

    def reach(self) -> Reach:
        """Return what is known of satellites that do not answer."""
        is_silent, losses, lost = self._reach()
        return Reach(is_silent, losses, frozenset(map(Satellite._make, lost)))

    def listen(self) -> None:
        """Keep telemetry that comes from now on, of satellites that were asked for it.

        Raises:
            OSError: The ground was closed, or this process was forked.
        """
        with _TOLD:
            self._native.listen()

    def next_telemetry(self, timeout_s: float) -> tuple[Satellite, bytes] | None:
        """Return the oldest message of telemetry that was kept, and its satellite; None if none comes in time."""
        with _TOLD:
            told = self._native.next_telemetry(max(0, round(1e6 * timeout_s)))
        return None if told is None else (Satellite(told[0], told[1]), told[2])

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _counters(self) -> structures.Counters:
        told: bytes = _known(self._native.counters, bytes(self._last))
        return structures.Counters.from_buffer_copy(told)

    def _reach(self) -> tuple[bool, int, tuple[tuple[int, int], ...]]:
        return _known(self._native.reach, (False, 0, ()))

    def _request(self, ask: Ask) -> tuple[object, ...]:
        if len(ask.key) != KEY_BYTES:
            raise PacketError(icd.STATUS_BAD_HEADER, f"key of {len(ask.key)} bytes; {KEY_BYTES} are allowed")
        if (size := _OVERHEAD + len(ask.payload)) > icd.LIMIT_PACKET_BYTES:
            raise PacketError(icd.STATUS_TOO_LARGE, f"{size} bytes; {icd.LIMIT_PACKET_BYTES} are allowed")
        for satellite in ask.route:
            if satellite not in self._torus and satellite != NOWHERE:  # the ground finds the way then
                where = f"{self._torus.planes} planes x {self._torus.slots} slots"
                raise ValueError(f"satellite {satellite} is outside {where}; both count from 1")
        return (
            *ask.route.satellite,
            *ask.route.entry,
            ask.apid,
            ask.op,
            ask.flags,
            ask.tenant,
            ask.epoch,
            ask.content,
            ask.version,
            ask.key,
            ask.chunk_id,
            ask.credit,
            ask.payload,
        )


class Box:
    """Operations of one caller. Not thread-safe. What runs when the box is dropped is called back."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def submit(self, operation: Operation) -> int:
        """Begin an operation, whose memory must not change until its outcome was taken. Errors are those of `Ground.run`.

        Returns:
            A ticket for `cancel`. Once the outcome was taken, another operation may get it.
        """
        with _TOLD:
            return int(self._native.submit(operation.request(), operation))

    def cancel(self, tickets: Iterable[int]) -> None:
        """Ask operations to end: their outcomes come soon in any case, mostly CANCELLED. A put leaves old, new or nothing."""
        with _TOLD:
            self._native.cancel(tuple(tickets))

    def wait(self, timeout_s: float) -> bool:
        """Wait until an outcome can be taken, and return True; return False if nothing runs, or none comes in time.

        Raises:
            ChildProcessError: This process was forked.
        """
        with _TOLD:
            return bool(self._native.wait(max(0, round(1e6 * timeout_s))))

    def take(self) -> tuple[Operation, Outcome] | None:
        """Return the operation that ended first of those that were not taken, and its outcome; None if there is none.

        Raises:
            ChildProcessError: This process was forked.
        """
        with _TOLD:
            told = self._native.take()
        return None if told is None else (told[0], Outcome.of(*told))

    def close(self) -> None:
        """Call back what runs, and wait for its end; what has ended and was not taken is dropped."""
        self._native.close()

    def progress(self) -> tuple[int, int]:
        """Return how many chunks have moved of the blocks that run, and how many they have."""
        moved, total = self._native.progress()
        return int(moved), int(total)

    def fileno(self) -> int:
        """Return the descriptor that is readable while an outcome can be taken; -1: the box was made without."""
        return int(self._native.fileno())


class _Told:
    """A context that says of an error what it means here."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ChildProcessError):
            raise ChildProcessError(errno.ECHILD, _FORKED) from error
        if isinstance(error, TimeoutError):
            raise TimeoutError(errno.ETIMEDOUT, _CROWDED) from error


_TOLD: Final = _Told()


def _known(read: Callable[[], T], otherwise: T) -> T:
    """Return what the host knows. It knows nothing any more once it was closed."""
    try:
        with _TOLD:
            return read()
    except OSError as error:
        if error.errno in (errno.ESHUTDOWN, errno.EBADF):
            return otherwise
        raise


def _read(packet: bytes, payload: bytes, rtt_s: float, sent: int) -> SatelliteAnswer:
    return SatelliteAnswer(structures.Packet.from_buffer_copy(packet), payload, rtt_s, sent > 1)


def _endpoints(constellation: Constellation) -> bytes:
    """Return the endpoints of all satellites, plane by plane: IPv4 address << 16 | port, 64 bits each."""
    torus = constellation.torus
    planes = np.arange(1, torus.planes + 1, dtype=np.uint64)[:, None]
    slots = np.arange(1, torus.slots + 1, dtype=np.uint64)[None, :]
    addresses = np.uint64(int(constellation.network_address)) + np.uint64(256) * planes + slots
    return (addresses << np.uint64(16) | np.uint64(constellation.network.port)).tobytes()


_open: "WeakSet[Ground]" = WeakSet()


@atexit.register
def _close_all() -> None:
    """Join all threads before the process gives back what they use."""
    for ground in list(_open):
        ground.close()
