"""The host executive with the flight apps `isl` and `kvc`, inside this process."""

import ctypes
import threading
from collections.abc import Sequence
from typing import ClassVar, Self

from skymemory.fsw import structures
from skymemory.fsw.bus import App, FswError, Pipe
from skymemory.fsw.native_satellite import library
from skymemory.fsw.structures import WHY_BYTES, IslHousekeeping, KvcHousekeeping

_HK_TIMEOUT_S = 5.0
_EVENT_LIMIT = 50


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
            raise FswError("an executive runs in this process already; allowed is one satellite per process")
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
            self.events = self.ground.pipe("GROUND_EVENTS", structures.EVENT_MID, limit=_EVENT_LIMIT)
            self._housekeeping = self.ground.pipe("GROUND_HK", structures.KVC_HK_TLM_MID, structures.ISL_HK_TLM_MID)
            if library().skyx_start(why, WHY_BYTES) != 0:
                raise FswError(why.value.decode())
        except BaseException:
            library().skyx_stop()
            raise

    def __exit__(self, *_: object) -> None:
        """Stop the apps and all threads of the executive.

        Raises:
            FswError: An app did not end by itself.
        """
        clean = library().skyx_stop() == 0
        Executive._one.release()
        if not clean:
            raise FswError("an app did not end when it was asked to")

    def kvc_housekeeping(self) -> KvcHousekeeping:
        """Ask kvc for its housekeeping and wait for it.

        Raises:
            FswError: The app kvc does not answer.
        """
        return KvcHousekeeping.from_buffer_copy(self._ask(structures.KVC_SEND_HK_MID, structures.KVC_HK_TLM_MID))

    def isl_housekeeping(self) -> IslHousekeeping:
        """Ask isl for its housekeeping and wait for it.

        Raises:
            FswError: The app isl does not answer.
        """
        return IslHousekeeping.from_buffer_copy(self._ask(structures.ISL_SEND_HK_MID, structures.ISL_HK_TLM_MID))

    def _ask(self, send_hk_mid: int, hk_mid: int) -> bytes:
        with self._reading:
            while self._housekeeping.receive(0) is not None:  # drops answers that others asked for
                pass
            self.ground.command(send_hk_mid)
            answer = self._housekeeping.receive_where(lambda message: message.mid == hk_mid, _HK_TIMEOUT_S)
        if answer is None:
            raise FswError(f"no housekeeping 0x{hk_mid:04X} came within {_HK_TIMEOUT_S} s")
        return answer.payload
