"""Small requests and their answers: `SKYC_Ask` of `ground/native/skyc.h`, through ctypes.

The flight core's host decides when a request is sent, when it is repeated, and which packet answers it (`sky_host_ask.h`).
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from skymemory.common import defaults
from skymemory.link import structures
from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.association_keys import AssociationKeys, suite_names
from skymemory.link.native import library
from skymemory.link.packed import packed
from skymemory.link.timing import Timing
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import KEY_BYTES, NOWHERE, PacketError

ASKED: Final = packed(structures.Question, "place", "room")
"""Layout of the fields of a question that describe the request."""
_QUESTION_BYTES: Final = ctypes.sizeof(structures.Question)
ROOM_BYTES: Final = 1024
"""Room for the payload of an answer; except for a chunk, no payload of the ICD needs more."""
_OVERHEAD: Final = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES + icd.HEADER_BYTES + icd.TAG_BYTES + icd.PEC_BYTES
_RECEIVE_BUFFER_BYTES: Final = 1 << 20
_DEADLINE_MAX_MS: Final = 0xFFFFFFFF
_DONE: Final = next(code for code, status in icd.HOST_STATUSES.items() if status is icd.Status.DONE)


class Asker:
    """A UDP socket and the round trips that it measured. One call at a time: the user sees to that."""

    def __init__(self, timing: Timing, keys: AssociationKeys | None = None, local: int = 0) -> None:
        """Open the socket; nothing is sent.

        Args:
            timing: Times of the host.
            keys: Keyring with which to associate with satellites; None: they are asked for cookies alone.
            local: Address of this machine where it listens (`local_address`); 0: any.

        Raises:
            OSError: The system gives no socket.
            FileNotFoundError: The library was not built.
        """
        self._library = library()
        times_s = timing.first_s, timing.min_s, timing.max_s, timing.silence_s
        patience = structures.Patience(*(round(1e6 * one) for one in times_s))
        config = structures.Config(receive_bytes=_RECEIVE_BUFFER_BYTES, may_fragment=1, patience=patience, bind_ipv4=local)
        if keys is not None:
            keys.put_into(config)
        error = ctypes.c_int()
        self._handle = self._library.SKYC_Open(ctypes.byref(config), ctypes.byref(error))
        if not self._handle:
            raise OSError(error.value, f"cannot open a UDP socket: {os.strerror(error.value)}")
        counters = self._counters()
        self.port = int(counters.port)
        """The host's UDP port."""
        self.number = int(counters.host_number)
        """This host's number; its ground address is (0, number)."""
        self.repeats = 0
        """Questions that were sent again."""

    def close(self) -> None:
        """Close the socket."""
        self._library.SKYC_Close(self._handle)

    def _counters(self) -> structures.Counters:
        counters = structures.Counters()
        self._library.SKYC_Counters(self._handle, ctypes.byref(counters))
        return counters

    def suites(self) -> frozenset[str]:
        """Return the suites of the associations that this socket has."""
        return frozenset(suite_names(self._counters().suites_used))

    def set_number(self, number: int) -> None:
        """Take another host number; 0 draws one by chance."""
        self._library.SKYC_SetNumber(self._handle, number)
        self.number = int(self._counters().host_number)

    def patience_s(self, satellites: Iterable[Satellite]) -> float:
        """Return the seconds after which these satellites count as silent."""
        return float(self._library.SKYC_PatienceUs(self._handle, *_addresses(satellites)) / 1e6)

    def hurry_s(self, satellites: Iterable[Satellite]) -> float:
        """Return the seconds to wait for dispensable answers."""
        return float(self._library.SKYC_HurryUs(self._handle, *_addresses(satellites)) / 1e6)

    def expect(self, satellite: Satellite, rtt_s: float) -> None:
        """Take over a round trip that another socket measured, if none was measured here."""
        rtt_us = min(max(round(rtt_s * 1e6), 1), defaults.HOST_RTO_MAX_US)
        self._library.SKYC_Expect(self._handle, structures.Addr(*satellite), rtt_us)

    def ask(self, asks: Sequence[Ask], endpoints: Sequence[int], deadline_ms: int) -> list[SatelliteAnswer | None]:
        """Ask, and wait until all is answered or the deadline has passed.

        Args:
            endpoints: Endpoint of the entry satellite of each request: IPv4 address << 16 | port.
            deadline_ms: Milliseconds from now, at least 1.

        Returns:
            For each request its answer, or None if none came in time.

        Raises:
            PacketError: A request does not fit a packet.
            OSError: Somebody closed the socket's descriptor.
        """
        memory = _written(asks, endpoints, min(deadline_ms, _DEADLINE_MAX_MS))
        questions = structures.Question.from_buffer(memory)
        error = self._library.SKYC_Ask(self._handle, ctypes.byref(questions), len(asks))
        try:
            while error == errno.EAGAIN:  # Python can look at signals in between
                error = self._library.SKYC_AskOn(self._handle)
        except BaseException:
            self._library.SKYC_StopAsking(self._handle)  # the library uses this call's memory
            raise
        counters = self._counters()
        self.number, self.repeats = int(counters.host_number), int(counters.repeats)
        if error == errno.EINVAL:
            raise ValueError("a question names a satellite without plane, slot or port; all of them count from 1")
        if error != 0:
            raise OSError(error, os.strerror(error))
        return [_read(memory, len(asks), index) for index in range(len(asks))]

    def listen(self, duration_s: float) -> Iterator[tuple[Satellite, bytes]]:
        """Run for a while, and yield the messages of telemetry that have come since the last time, each with its satellite.

        Raises:
            OSError: Somebody closed the socket's descriptor.
        """
        error = self._library.SKYC_Listen(self._handle, max(1, round(1000 * duration_s)))
        if error != 0:
            raise OSError(error, os.strerror(error))
        one = structures.Telemetry()
        while self._library.SKYC_NextTelemetry(self._handle, ctypes.byref(one)):
            yield Satellite(one.plane, one.slot), bytes(one.message[: one.length])


def _addresses(satellites: Iterable[Satellite]) -> tuple["ctypes.Array[structures.Addr]", int]:
    chosen = [structures.Addr(*one) for one in satellites]
    return (structures.Addr * len(chosen))(*chosen), len(chosen)


def _written(asks: Sequence[Ask], endpoints: Sequence[int], deadline_ms: int) -> bytearray:
    """Return memory that holds the questions, then room for each one's answer, then the payloads."""
    rooms_at = len(asks) * _QUESTION_BYTES
    payload_at = rooms_at + len(asks) * ROOM_BYTES
    memory = bytearray(payload_at)
    payloads = [ask.payload for ask in asks]
    memory += b"".join(payloads)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for index, (ask, endpoint) in enumerate(zip(asks, endpoints, strict=True)):
        size = len(ask.payload)
        if len(ask.key) != KEY_BYTES:  # struct would pad or cut the key silently
            raise PacketError(icd.STATUS_BAD_HEADER, f"key of {len(ask.key)} bytes; {KEY_BYTES} are allowed")
        if _OVERHEAD + size > icd.LIMIT_PACKET_BYTES:
            raise PacketError(icd.STATUS_TOO_LARGE, f"{_OVERHEAD + size} bytes; {icd.LIMIT_PACKET_BYTES} are allowed")
        try:
            ASKED.pack_into(
                memory,
                index * _QUESTION_BYTES,
                *ask.route.satellite,
                *ask.route.entry,
                endpoint,
                *NOWHERE,  # for whom a satellite stands in matters to transfers alone
                ask.key,
                ask.apid,
                ask.op,
                ask.flags,
                ask.tenant,
                ask.epoch,
                ask.content,
                ask.version,
                ask.chunk_id,
                ask.credit,
                deadline_ms,
                size,
                ROOM_BYTES,
                base + payload_at,
                base + rooms_at + index * ROOM_BYTES,
            )
        except struct.error as error:
            raise PacketError(icd.STATUS_BAD_HEADER, str(error)) from error
        payload_at += size
    return memory


def _read(memory: bytearray, count: int, index: int) -> SatelliteAnswer | None:
    """Return the answer to a question; None if it has none."""
    question = structures.Question.from_buffer(memory, index * _QUESTION_BYTES)
    if question.status != _DONE:
        return None
    room_at = count * _QUESTION_BYTES + index * ROOM_BYTES
    raw = question.answer
    payload = bytes(memory[room_at : room_at + raw.length]) if raw.payload else b""
    return SatelliteAnswer(raw, payload, question.rtt_us / 1e6, question.sent > 1)
