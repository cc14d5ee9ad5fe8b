"""Code on board in Python: an app with a pipe, a period and a thread of its own."""

import threading
import time
from collections.abc import Callable
from typing import Self

from skymemory.fsw.bus import App, FswError
from skymemory.fsw.messages import Message
from skymemory.fsw.structures import EventType

_STOP_S = 5.0
_WAITING_MAX = 64
"""Messages that are taken before a period ends: they came within it, and a flood must not hold it up."""
ERROR_EVENT_ID = 1
"""Event with which an app reports that its Python code raised."""


class OnboardApp:
    """An app to subclass: override `on_message` and `on_period`, which run in the app's own thread, one at a time.

    A context manager: the thread runs inside the context. An exception in the code is reported as an event and ends the app, not
    the satellite.
    """

    def __init__(self, name: str, *mids: int, period_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Open the app and its pipe.

        Args:
            name: At most 14 characters.
            mids: Ids of the messages that `on_message` gets.
            period_s: Seconds between two calls of `on_period`.
            clock: Clock of the periods, in seconds.
        """
        self.app = App(name)
        self.pipe = self.app.pipe(f"{name}_PIPE", *mids)
        self.period_s = period_s
        self._clock = clock
        self.failure: Exception | None = None
        """Exception that ended the app, if one did."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def on_message(self, message: Message) -> None:
        """Handle a message of a subscribed id."""

    def on_period(self) -> None:
        """Handle the end of a period of `period_s` seconds.

        A period that is missed by a whole one, on a machine that stood still, is left out: answers to what the one before asked
        for had no time to come.
        """

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.app.close()  # this wakes the thread
        self._thread.join(_STOP_S)

    def _take_waiting(self) -> None:
        for _ in range(_WAITING_MAX):
            if (message := self.pipe.receive(0.0)) is None:
                return
            self.on_message(message)

    def _run(self) -> None:
        try:
            due_s = self._clock() + self.period_s
            while not self._stop.is_set():
                message = self.pipe.receive(max(due_s - self._clock(), 0.0))
                if message is not None:
                    self.on_message(message)
                late_s = self._clock() - due_s
                if late_s < 0:
                    continue
                if late_s >= self.period_s:
                    due_s = self._clock() + self.period_s
                    continue
                due_s += self.period_s
                self._take_waiting()
                self.on_period()
        except Exception as error:
            if self._stop.is_set():
                return
            self.failure = error
            try:
                self.app.event(ERROR_EVENT_ID, f"{self.app.name} ended: {error!r}", EventType.ERROR)
            except FswError:
                return  # the executive is gone, and with it the reader of the event
