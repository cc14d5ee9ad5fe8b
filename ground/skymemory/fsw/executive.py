"""The host executive with the flight apps `isl` and `kvc`, inside this process."""

import ctypes
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Self

from skymemory.fsw import messages
from skymemory.fsw.bus import App, FswError, Pipe, check
from skymemory.fsw.native import library
from skymemory.fsw.structures import WHY_BYTES, EventType, IslHousekeeping, KvcHousekeeping

_HK_TIMEOUT_S = 5.0
_EVENT_LIMIT = 50
COUNTER_NAMES = ("no_subscribers", "message_limit", "pipe_overflow", "pool_empty")


class Executive:
    """A satellite in this process: it starts on entering the context and stops on leaving it.

    cFS's functions are not made for two satellites in one address space, so there can be only one at a time; use a process for
    each. `ground` is an app that stands for an operator; `events` is its pipe with all events from the start on.
    """

    _one: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, arguments: Sequence[str], quiet: bool = True) -> None:
        """Keep the arguments of the program `skysat`. `quiet` False prints events and the system log to stderr."""
        self._arguments = list(arguments)
        self._quiet = quiet
        self.ground: App
        self.events: Pipe
        self._housekeeping: Pipe
        self._reading = threading.Lock()

    def __enter__(self) -> Self:
        """Start.

        Raises:
            FswError: Arguments are wrong, the address is in use, or another executive runs in this process; the text says which.
        """
        if not Executive._one.acquire(blocking=False):
            raise FswError("an executive runs in this process already: one satellite per process")
        try:
            self._start()
        except BaseException:
            Executive._one.release()
            raise
        return self

    def _start(self) -> None:
        words = [word.encode() for word in ("skysat", *self._arguments)]
        why = ctypes.create_string_buffer(WHY_BYTES)
        argv = (ctypes.c_char_p * len(words))(*words)
        if library().skyx_init(len(words), argv, self._quiet, why, WHY_BYTES) != 0:
            raise FswError(why.value.decode())
        try:
            self.ground = App("GROUND")
            self.events = self.ground.pipe("GROUND_EVENTS", messages.EVENT_MID, limit=_EVENT_LIMIT)
            self._housekeeping = self.ground.pipe("GROUND_HK", messages.KVC_HK_MID, messages.ISL_HK_MID)
            if library().skyx_start(why, WHY_BYTES) != 0:
                raise FswError(why.value.decode())
        except BaseException:
            library().skyx_stop()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop the apps and all threads of the executive.

        Raises:
            FswError: An app did not end by itself.
        """
        clean = library().skyx_stop() == 0
        Executive._one.release()
        if not clean:
            raise FswError("an app did not end when it was asked to")

    def app(self, name: str) -> App:
        """Open an app for Python code."""
        return App(name)

    def inject_event(self, event_id: int, text: str, event_type: EventType = EventType.INFORMATION) -> None:
        """Report an event in the name of the app GROUND."""
        self.ground.event(event_id, text, event_type)

    def kvc_housekeeping(self) -> KvcHousekeeping:
        """Ask kvc for its housekeeping and wait for it.

        Raises:
            FswError: The app kvc does not answer.
        """
        return KvcHousekeeping.from_buffer_copy(self._ask(messages.KVC_SEND_HK_MID, messages.KVC_HK_MID))

    def isl_housekeeping(self) -> IslHousekeeping:
        """Ask isl for its housekeeping and wait for it.

        Raises:
            FswError: The app isl does not answer.
        """
        return IslHousekeeping.from_buffer_copy(self._ask(messages.ISL_SEND_HK_MID, messages.ISL_HK_MID))

    def _ask(self, send_hk_mid: int, hk_mid: int) -> bytes:
        with self._reading:
            while self._housekeeping.receive(0) is not None:  # answers that others asked for
                pass
            self.ground.command(send_hk_mid)
            answer = self._housekeeping.receive_where(lambda message: message.mid == hk_mid, _HK_TIMEOUT_S)
        if answer is None:
            raise FswError(f"no housekeeping 0x{hk_mid:04X} within {_HK_TIMEOUT_S} s")
        return answer.payload

    def load_table(self, name: str, image: ctypes.Structure | bytes) -> None:
        """Load a table as the ground would: its app validates it at the next wake-up and takes it over, or refuses it.

        Args:
            name: Name such as "ISL.Links" or "KVC.Limits".

        Raises:
            FswError: There is no such table, the size is wrong, or a load is pending.
        """
        data = bytes(image)
        check(library().skyx_table_load(name.encode(), data, len(data)), f"table {name}")

    def read_table(self, name: str, size: int) -> bytes:
        """Return the present content of a table, as the ground would dump it.

        Raises:
            FswError: There is no such table, or it has another size.
        """
        image = ctypes.create_string_buffer(size)
        check(library().skyx_table_read(name.encode(), image, size), f"table {name}")
        return image.raw

    def bus_counters(self) -> dict[str, int]:
        """Return the counts of messages that the Software Bus could not deliver, by cause; names in COUNTER_NAMES."""
        counters = (ctypes.c_uint32 * len(COUNTER_NAMES))()
        library().skyx_bus_counters(counters)
        return dict(zip(COUNTER_NAMES, counters, strict=True))
