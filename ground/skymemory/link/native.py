"""The native transfer engine, `ground/native/skyc.h`, through ctypes.

A call moves many blocks, each striped over many satellites, straight between their memory and the socket; the GIL is released
meanwhile. Failures in the sky end up in each transfer's `status` and never raise.
"""

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from errno import EINVAL
from functools import cache, lru_cache
from socket import inet_aton
from threading import Lock, Thread
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np

from skymemory.common import compiled, defaults
from skymemory.common.progress import Progress
from skymemory.common.whole_file import Buffer
from skymemory.link import structures
from skymemory.link.association_keys import AssociationKeys, suite_names
from skymemory.link.block_entry import BlockEntry
from skymemory.sky.placement.spread import by_share
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from skymemory.wire.packets import NOWHERE

_PACKET_BYTES_MIN: Final = icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES + icd.HEADER_BYTES + icd.TAG_BYTES + icd.PEC_BYTES + 1
"""Least packet size of a client: a response with a byte of a chunk."""

Server = tuple[Satellite, Satellite, str, int]
"""A satellite; its entry satellite; the entry satellite's IPv4 address and UDP port."""
Places = Sequence[Sequence[Server]]
"""For each server the places of its share, in the order in which they are asked; at least one."""

_LIBRARY: Final = "libskymem_client.so"
_PROGRESS_S: Final = 0.05
_STATUSES: Final = icd.STATUSES | icd.HOST_STATUSES


@dataclass(slots=True)
class Transfer:
    """A block to be moved, and the outcome. `get` writes into `data`, `put` reads it; both in place."""

    entry: BlockEntry
    tenant: int
    data: Buffer
    """`entry.block_len` bytes; writable for `get`. They must not change while the call runs."""
    places: Places = ()
    """Places for `get` while the sky turns: chunks that a server's first place lacks are asked for at its next one. Empty: the
    servers of the call, one place each."""
    homes: Mapping[int, Satellite] = field(default_factory=dict)
    """Lost satellites with a stand-in at a place of a server, by server. They may have what that denies, and `put` names them."""
    holders: Mapping[int, Satellite] = field(default_factory=dict)
    """Satellites that hold the whole share of a server, for `put`: nothing is sent to them as this server."""
    status: Status = field(default=Status.RUNNING, init=False)
    """RUNNING until the transfer ends."""
    last_status: int = field(default=0, init=False)
    """Code of the last error response (`icd.STATUSES`); 0 if there was none."""
    failed: Satellite | None = field(default=None, init=False)
    """Satellite at which the transfer failed; of several places the last one, or the first silent one."""
    at_stand_in: bool = field(default=False, init=False)
    """After a MISS: True if it would be none if lost satellites had what their stand-ins deny."""
    is_unsettled: bool = field(default=False, init=False)
    """After a MISS: True if a satellite that is not settled denied chunks, which may be on their way to it."""
    held_version: int = field(default=0, init=False)
    """After a put that ended with OLD_VERSION or BAD_KEY: the largest version of the block that a satellite said it holds."""
    chunks: int = field(default=0, init=False)
    """Chunks received, or acknowledged."""
    bytes: int = field(default=0, init=False)
    """Bytes of these chunks."""
    lost: int = field(default=0, init=False)
    """Chunks that no satellite gave, or took. With parity the transfer may be DONE all the same."""
    decoded: int = field(default=0, init=False)
    """Data chunks of a get that were made of others."""
    requests: int = field(default=0, init=False)
    """GET or HAS requests."""
    repeats: int = field(default=0, init=False)
    """Chunks that were asked for, or sent, once more."""
    duplicates: int = field(default=0, init=False)
    corrupt: int = field(default=0, init=False)
    """Chunks that came with a wrong CRC-32C and were asked for again."""
    duration_s: float = field(default=0.0, init=False)
    """Seconds from the start of the call."""


@dataclass(frozen=True, slots=True)
class Served:
    """One satellite's part in a call; `SKY_HostServed_t`. Times count from the call's start; None if the event did not happen."""

    satellite: Satellite
    entry: Satellite
    """Entry satellite through which it was reached."""
    rtt_s: float | None
    """Smoothed round trip over all calls of the client so far."""
    chunks: int
    """Chunks received from it, or acknowledged by it, also of blocks that did not come whole."""
    bytes: int
    requests: int
    repeats: int
    asked_s: float | None
    """Time at which the first request left (for `put` the first chunk)."""
    first_s: float | None
    last_s: float | None
    """Time of its last answer; `first_s` is that of its first one."""


class Call(NamedTuple):
    """Times of a call, and each satellite's part in it."""

    started_ns: int
    """Nanoseconds since 1970 at the call's start, after any wait for other calls."""
    ended_ns: int
    served: tuple[Served, ...]


@cache
def library() -> ctypes.CDLL:
    """Return the library, which is loaded once.

    Raises:
        FileNotFoundError: The library is missing.
        OSError: The library is not for this machine.
    """
    return compiled.load(compiled.library_path(_LIBRARY), structures.SIGNATURES)


def crc32c(data: bytes) -> int:
    """Return the flight core's CRC-32C of some bytes."""
    return int(library().SKY_Crc32c(0, data, len(data)))


class NativeClient:
    """A UDP socket and all it has learned about the satellites. Thread-safe: calls follow one another. A context manager."""

    def __init__(
        self,
        packet_bytes: int = 0,
        burst: int = 0,
        window_max: int = 0,
        receive_bytes: int = 0,
        offload: bool = True,
        asks_all: bool = False,
        keys: AssociationKeys | None = None,
        local: int = 0,
    ) -> None:
        """Open the socket; nothing is sent. 0 stands for the library's default.

        Args:
            packet_bytes: Largest packet on the path (the network's MTU less IP and UDP headers).
            burst: Chunks of one GET request; chunks of PUT between two questions about what has arrived.
            window_max: Chunks that may be on their way to or from one satellite.
            receive_bytes: Receive buffer to ask of the system; the one it gives is in `counters`.
            offload: False sends one datagram a packet even where the system could bundle them (for comparisons).
            asks_all: True lets a get ask for parity at once; False only once a satellite is slow, or has lost a chunk.
            keys: Keyring with which to associate with satellites; None: they are asked for cookies alone.
            local: Address of this machine where it listens (`local_address`); 0: any.

        Raises:
            ValueError: A number is out of range.
            OSError: The system gives no socket.
            FileNotFoundError: The library was not built.
        """
        self._library = library()
        self._closing = False
        self._lock = Lock()
        """Lock that is held while a call runs."""
        self._handle_lock = Lock()
        """Lock that is held while the handle goes, so that nobody cancels a call of a closed client."""
        flags = {"no_offload": 0 if offload else 1, "asks_all": 1 if asks_all else 0}
        config = structures.Config(packet_bytes, window_max, burst, receive_bytes, bind_ipv4=local, **flags)
        if keys is not None:
            keys.put_into(config)
        error = ctypes.c_int()
        handle = self._library.SKYC_Open(ctypes.byref(config), ctypes.byref(error))
        if not handle:
            reason = os.strerror(error.value)
            if error.value == EINVAL:
                raise ValueError(
                    f"packet_bytes {packet_bytes}, burst {burst}, window_max {window_max}, receive_bytes {receive_bytes}:"
                    f" packets have {_PACKET_BYTES_MIN} to {icd.LIMIT_PACKET_BYTES} bytes, bursts and windows at most"
                    f" {icd.LIMIT_CHUNK_SET} chunks"
                )
            raise OSError(error.value, f"cannot open a UDP socket: {reason}")
        self._handle: int | None = handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the running call and close the socket; safe to call twice."""
        self._closing = True
        self.cancel()
        with self._lock, self._handle_lock:
            if self._handle is not None:
                self._library.SKYC_Close(self._handle)
                self._handle = None

    def put(
        self, transfers: Sequence[Transfer], servers: Sequence[Server], deadline_ms: int, progress: Progress | None = None
    ) -> Call:
        """Send blocks, the chunks of each to the servers that `sky_spread.h` says.

        Args:
            transfers: Blocks to move; their results are filled in.
            servers: At least one server; for `get` they serve the transfers that name no places of their own.
            deadline_ms: Milliseconds from now for all of them, at least 1.
            progress: Function that is called now and then; what it raises ends the call and is raised again.

        Returns:
            Times of the call, and each satellite's part in it.

        Raises:
            ValueError: Lengths contradict each other, or the client was closed.
        """
        return self._run(self._library.SKYC_Put, transfers, servers, deadline_ms, progress, writable=False)

    def get(
        self, transfers: Sequence[Transfer], servers: Sequence[Server], deadline_ms: int, progress: Progress | None = None
    ) -> Call:
        """Fetch blocks into their `data`, otherwise as `put`. The data of a block that is not DONE means nothing."""
        return self._run(self._library.SKYC_Get, transfers, servers, deadline_ms, progress, writable=True)

    def cancel(self) -> None:
        """End the call that runs in another thread; without one nothing happens."""
        with self._handle_lock:
            if self._lock.locked() and self._handle is not None:
                self._library.SKYC_Cancel(self._handle, self._calls_ended())

    def counters(self) -> structures.Counters:
        """Return the counts since the client was opened; waits for a running call."""
        counters = structures.Counters()
        with self._lock:
            self._library.SKYC_Counters(self._open_handle(), ctypes.byref(counters))
        return counters

    def suites(self) -> frozenset[str]:
        """Return the suites of the associations that this client has; waits for a running call."""
        return frozenset(suite_names(self.counters().suites_used))

    def _open_handle(self) -> int:
        if self._handle is None:
            raise ValueError("the client was closed")
        return self._handle

    def _calls_ended(self) -> int:
        counts = structures.Progress()
        self._library.SKYC_Progress(self._open_handle(), ctypes.byref(counts))
        return int(counts.calls)

    def call(
        self,
        function: Callable[[int], int],
        transfers: Sequence[Transfer],
        blocks: "ctypes.Array[structures.Block]",
        progress: Progress | None = None,
    ) -> Call:
        """Run a call of the library, after the one that runs.

        Args:
            function: Function that makes the call with the library's handle of this client, and returns an errno.
            transfers: The blocks that are moved.
            blocks: The same as structures.
            progress: Function that is called now and then; what it raises ends the call and is raised again.

        Raises:
            ValueError: Lengths contradict each other, or the client was closed.
            MemoryError: There is no memory.
        """
        with self._lock:
            if self._closing:  # after this nobody would cancel the call
                raise ValueError("the client was closed")
            handle = self._open_handle()
            started_ns = time.time_ns()
            error = function(handle) if progress is None else self._run_with_progress(function, handle, progress)
            done = Call(started_ns, time.time_ns(), self._served(handle) if error == 0 else ())
        if error == EINVAL:  # the core stops at the first wrong block
            wrong = next((t for t, block in zip(transfers, blocks, strict=True) if block.last_status), transfers[0]).entry
            raise ValueError(
                f"block of {wrong.block_len} bytes as {wrong.chunk_total} chunks of {wrong.chunk_len}: allowed are chunks of"
                f" 1 to {icd.LIMIT_CHUNK_BYTES} bytes, at most {icd.LIMIT_FRAGMENTS} packets each, that make up"
                " the block; satellites count from 1, and a server has"
                f" at most {defaults.HOST_ROUNDS} fallback places"
            )
        if error != 0:
            raise MemoryError(os.strerror(error))
        return done

    def _run(
        self,
        call: Callable[..., int],
        transfers: Sequence[Transfer],
        servers: Sequence[Server],
        deadline_ms: int,
        progress: Progress | None,
        *,
        writable: bool,
    ) -> Call:
        if not transfers:
            return Call(time.time_ns(), time.time_ns(), ())
        blocks = blocks_of(transfers, servers, deadline_ms, is_get=writable)
        views = [view_of(transfer, writable=writable) for transfer in transfers]
        for block, view in zip(blocks, views, strict=True):
            block.data = view.ctypes.data
        done = self.call(lambda handle: call(handle, blocks, len(blocks)), transfers, blocks, progress)
        for block, transfer in zip(blocks, transfers, strict=True):
            fill_in(transfer, block)
        return done

    def _served(self, handle: int) -> tuple[Served, ...]:
        """Return each satellite's part in the call that has just ended; no other may run meanwhile."""
        entries = (structures.Served * self._library.SKYC_Served(handle, None, 0))()
        self._library.SKYC_Served(handle, entries, len(entries))
        return tuple(_served_of(entry) for entry in entries)

    def _run_with_progress(self, function: Callable[[int], int], handle: int, progress: Progress) -> int:
        """Run the call in a thread of its own, so that this one can report progress and can be interrupted."""
        errors: list[int] = []
        worker = Thread(target=lambda: errors.append(function(handle)), name="skymem-transfer")
        counts = structures.Progress()
        number = self._calls_ended()
        worker.start()
        try:
            while worker.is_alive():
                worker.join(_PROGRESS_S)
                self._library.SKYC_Progress(handle, ctypes.byref(counts))
                if counts.calls == number and counts.chunks_total:
                    progress(counts.chunks_done, counts.chunks_total)
        except BaseException:
            self._library.SKYC_Cancel(handle, number)
            raise
        finally:
            worker.join()  # the worker uses this call's memory
        if errors[0] == 0:
            self._library.SKYC_Progress(handle, ctypes.byref(counts))  # a short call is over before the first look
            progress(counts.chunks_done, counts.chunks_total)
        return errors[0]


def blocks_of(
    transfers: Sequence[Transfer], servers: Sequence[Server], deadline_ms: int, *, is_get: bool
) -> "ctypes.Array[structures.Block]":
    """Return transfers as the library's structures, without the memory of their data.

    Args:
        transfers: Blocks to move.
        servers: At least one server, for those that name no places of their own.
        deadline_ms: Milliseconds for each, at least 1.
        is_get: False if all go to the servers, whatever places they name.

    Raises:
        ValueError: There is no server, or the deadline is out of range.
    """
    if not servers or not 1 <= deadline_ms < 1 << 32:
        raise ValueError(f"{len(servers)} servers and a deadline of {deadline_ms} ms; a call needs at least 1 server and 1 ms")
    own = [(server,) for server in servers]
    named = [transfer.places if is_get and transfer.places else own for transfer in transfers]
    offsets = [transfer.entry.offset(len(places)) for transfer, places in zip(transfers, named, strict=True)]
    homes = [tuple(transfer.homes.items()) for transfer in transfers]
    whats = [(id(places), stood_in, offset) for places, stood_in, offset in zip(named, homes, offsets, strict=True)]
    distinct = dict(zip(whats, named, strict=True))
    rounds_of = {what: _rounds(tuple(map(tuple, places)), *what[1:]) for what, places in distinct.items()}
    blocks = (structures.Block * len(transfers))()
    for block, transfer, what in zip(blocks, transfers, whats, strict=True):
        entry, rounds = transfer.entry, rounds_of[what]
        block.key[:] = entry.key
        block.tenant, block.epoch, block.deadline_ms = transfer.tenant, entry.epoch, deadline_ms
        block.stripe = entry.stripe
        block.block_version, block.content = entry.version, entry.content
        block.servers, block.server_count = rounds[0], len(rounds[0])
        if len(rounds) > 1:
            block.fallbacks, block.rounds = rounds[1], len(rounds[1]) // len(rounds[0])
        if transfer.holders and not is_get:
            held = (transfer.holders.get(server) == servers[server][0] for server in entry.by_share(range(len(servers))))
            block.holders = (ctypes.c_bool * len(servers))(*held)
    return blocks


def _served_of(entry: structures.Served) -> Served:
    seconds = (us / 1e6 if us else None for us in (entry.asked_us, entry.first_us, entry.last_us))
    return Served(
        Satellite(entry.plane, entry.slot),
        Satellite(entry.entry_plane, entry.entry_slot),
        entry.srtt_us / 1e6 if entry.srtt_us else None,
        entry.chunks,
        entry.bytes,
        entry.requests,
        entry.repeats,
        *seconds,
    )


@lru_cache(maxsize=256)  # places change when the window moves or a satellite is lost
def _rounds(
    places: tuple[tuple[Server, ...], ...], homes: tuple[tuple[int, Satellite], ...], offset: int
) -> list[ctypes.Array[structures.Place]]:
    """Return the shares' first places and, if there are any, the other places round by round, all in the order of shares."""
    most = max(len(one) for one in places)
    if min(len(one) for one in places) == 0:
        raise ValueError("a server has no place; each needs at least one")
    nowhere, home_of = structures.Place(), dict(homes)
    entries = [
        [_server_entry(place, home_of.get(server, NOWHERE)) for place in one] + [nowhere] * (most - len(one))
        for server, one in by_share(list(enumerate(places)), offset)
    ]
    first = (structures.Place * len(places))(*(one[0] for one in entries))
    others = (structures.Place * (len(places) * (most - 1)))(*(one[round_] for round_ in range(1, most) for one in entries))
    return [first, others] if most > 1 else [first]


def _server_entry(server: Server, home: Satellite) -> structures.Place:
    satellite, entry, address, port = server
    return structures.Place(*satellite, *entry, int.from_bytes(inet_aton(address), "big") << 16 | port, *home)


def view_of(transfer: Transfer, *, writable: bool) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """Return the block's memory without a copy; it stays in place as long as the result lives."""
    view = memoryview(transfer.data)
    if not view.c_contiguous or view.nbytes != transfer.entry.block_len or (writable and view.readonly):
        raise ValueError(
            f"data of {view.nbytes} bytes for a block of {transfer.entry.block_len}: it must be contiguous, as long as the"
            " block, and writable if it is to be fetched"
        )
    return np.frombuffer(view, dtype=np.uint8)


def fill_in(transfer: Transfer, block: structures.Block) -> None:
    """Take the outcome of a block, once it has an end."""
    transfer.status = _STATUSES[block.status]
    transfer.last_status = block.last_status
    transfer.failed = Satellite(block.failed_plane, block.failed_slot) if block.failed_plane else None
    transfer.at_stand_in = block.at_stand_in
    transfer.is_unsettled = block.is_unsettled
    transfer.held_version = block.held_version
    transfer.chunks = block.chunks
    transfer.bytes = block.bytes
    transfer.lost = block.lost
    transfer.decoded = block.decoded
    transfer.requests = block.requests
    transfer.repeats = block.repeats
    transfer.duplicates = block.duplicates
    transfer.corrupt = block.corrupt
    transfer.duration_s = block.duration_us / 1e6
