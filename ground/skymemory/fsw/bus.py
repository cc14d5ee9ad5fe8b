"""The Software Bus from Python: apps (names on the bus), their pipes and their messages."""

import ctypes
import time
from collections.abc import Callable
from typing import Final, Self

from skymemory.fsw import structures as c
from skymemory.fsw.messages import Message
from skymemory.fsw.native_satellite import library
from skymemory.fsw.structures import MESSAGE_BYTES_MAX, MESSAGE_LIMIT, PIPE_DEPTH_MAX, EventType

_SLICE_S: Final = 0.5
"""Longest time in C without a look at signals."""
_STATUS_TEXT: Final = {
    c.CFE_EVS_APP_SQUELCHED: "too many events: squelched",
    c.CFE_ES_ERR_RESOURCEID_NOT_VALID: "the app or handle is not known, or no longer",
    c.CFE_ES_ERR_APP_CREATE: "the app's name is taken, or there is no room for another app",
    c.CFE_ES_BAD_ARGUMENT: "bad argument",
    c.CFE_SB_BAD_ARGUMENT: "bad argument",
    c.CFE_SB_MAX_PIPES_MET: "no room for another pipe",
    c.CFE_SB_PIPE_CR_ERR: "the pipe's name is taken, empty or longer than 19 characters",
    c.CFE_SB_PIPE_RD_ERR: "the pipe is gone",
    c.CFE_SB_MSG_TOO_BIG: "message too large",
    c.CFE_SB_BUF_ALOC_ERR: "the bus has no memory left",
    c.CFE_SB_MAX_MSGS_MET: "no room for another message id",
    c.CFE_SB_MAX_DESTS_MET: "no room for another subscriber of this message id",
    c.CFE_TBL_ERR_INVALID_NAME: "no table has this name",
    c.CFE_TBL_ERR_FILE_TOO_LARGE: "the image is larger than the table",
    c.CFE_TBL_ERR_PARTIAL_LOAD: "the image is smaller than the table",
    c.CFE_STATUS_INCORRECT_STATE: "another table load is pending",
}


class FswError(RuntimeError):
    """A function of the flight software failed; `status` is cFE's, or 0 if the executive could not start."""

    def __init__(self, what: str, status: int = 0) -> None:
        code = status & 0xFFFFFFFF
        text = _STATUS_TEXT.get(status, "cFE status")
        super().__init__(f"{what}: {text} (0x{code:08X})" if status else what)
        self.status = code


def check(status: int, what: str) -> None:
    """Raise FswError for a negative status."""
    if status < 0:
        raise FswError(what, status)


class Pipe:
    """A queue of the messages that its app has subscribed to. Only one thread at a time may read it."""

    def __init__(self, app: "App", name: str, depth: int) -> None:
        self._app = app.handle
        self.name = name
        handle = ctypes.c_uint32()
        check(library().skyx_pipe_open(self._app, name.encode(), depth, ctypes.byref(handle)), f"pipe {name}")
        self._handle = handle.value
        self._buffer = (ctypes.c_uint8 * MESSAGE_BYTES_MAX)()

    def subscribe(self, *mids: int, limit: int = MESSAGE_LIMIT) -> Self:
        """Have messages of these ids put on this pipe. At most `limit` of each id wait; the next ones are dropped."""
        for mid in mids:
            check(library().skyx_subscribe(self._app, self._handle, mid, limit), f"subscribe to 0x{mid:04X}")
        return self

    def unsubscribe(self, *mids: int) -> None:
        """End subscriptions; those that do not exist are no error."""
        for mid in mids:
            check(library().skyx_unsubscribe(self._app, self._handle, mid), f"unsubscribe from 0x{mid:04X}")

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message; None if none came in time.

        Args:
            timeout_s: Seconds to wait; None waits as long as it takes, 0 does not wait.

        Raises:
            FswError: The pipe is gone, because its app or the executive was closed.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            wait_s = _SLICE_S if end_s is None else min(max(end_s - time.monotonic(), 0.0), _SLICE_S)
            size = ctypes.c_size_t()
            status = library().skyx_receive(self._app, self._handle, int(wait_s * 1000), self._buffer, ctypes.byref(size))
            if status in (c.CFE_SB_NO_MESSAGE, c.CFE_SB_TIME_OUT):
                if end_s is not None and time.monotonic() >= end_s:
                    return None
                continue
            check(status, f"pipe {self.name}")
            return Message.decode(ctypes.string_at(self._buffer, size.value))

    def receive_where(self, wanted: Callable[[Message], bool], timeout_s: float) -> Message | None:
        """Return the next message that `wanted` accepts, and discard those before it; None if none came in time."""
        end_s = time.monotonic() + timeout_s
        while (message := self.receive(max(end_s - time.monotonic(), 0.0))) is not None:
            if wanted(message):
                return message
        return None

    def close(self) -> None:
        """Return the pipe to the system; harmless if the app is closed already."""
        library().skyx_pipe_close(self._app, self._handle)


class App:
    """A name on the Software Bus under which Python code sends, subscribes and reports events. A context manager.

    Apps of the flight software see no difference. Thread-safe.
    """

    def __init__(self, name: str) -> None:
        """Open an app with a name of at most 19 characters that no other app has."""
        self.name = name
        handle = ctypes.c_uint32()
        check(library().skyx_app_open(name.encode(), ctypes.byref(handle)), f"app {name}")
        self.handle = handle.value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the bus; threads that wait on a pipe of this app get an FswError. Harmless if already closed."""
        library().skyx_app_close(self.handle)

    def pipe(self, name: str, *mids: int, depth: int = PIPE_DEPTH_MAX, limit: int = MESSAGE_LIMIT) -> Pipe:
        """Open a pipe that is subscribed to `mids`, with a name of at most 19 characters, unique on the satellite."""
        return Pipe(self, name, depth).subscribe(*mids, limit=limit)

    def send(self, message: Message) -> None:
        """Put a message on the bus. As in cFS, no error does not mean that a receiver had room for it."""
        packet = message.encode()
        status = library().skyx_transmit(self.handle, packet, len(packet))
        check(status, f"send 0x{message.mid:04X}")

    def command(self, mid: int, function_code: int = 0, payload: bytes = b"") -> None:
        """Send a command."""
        self.send(Message(mid, payload, function_code))

    def publish(self, mid: int, payload: bytes) -> None:
        """Send telemetry."""
        self.send(Message(mid, payload))

    def event(self, event_id: int, text: str, event_type: EventType = EventType.INFORMATION) -> None:
        """Report an event; its text is cut at 121 characters. 32 at once and 15 a second are allowed, as in cFS."""
        check(library().skyx_event(self.handle, event_id, event_type, text.encode()), f"event {event_id}")
