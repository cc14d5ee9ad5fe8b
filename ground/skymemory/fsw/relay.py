"""Mission control's link to one satellite: cFS packets over UDP on one side, as with `ci_lab` and `to_lab`, RELAY on the other.

Commands from mission control go on the satellite's Software Bus. Telemetry of that bus goes to mission control, each message as a
datagram. The bytes are not touched: checksum and sequence count are mission control's.
"""

import math
import socket
import threading
from collections.abc import Callable
from typing import Final, Self

from skymemory.common.few_lines import FewLines
from skymemory.common.port_holder import why_not_bound
from skymemory.fsw.messages import Message, MessageError
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd

COMMAND_PORT: Final = 1234
"""Port at which cFS's ci_lab takes commands."""
TELEMETRY_PORT: Final = 1235
"""Port to which cFS's to_lab sends telemetry."""
_ANSWER_S: Final = 5.0
_SLICE_S: Final = 0.25
"""Longest time without a look at whether to stop."""


class Relay:
    """A carrier of commands and telemetry, in two threads, from entering to leaving the context."""

    def __init__(
        self,
        constellation: Constellation,
        route: Route,
        commands: tuple[str, int] = ("127.0.0.1", COMMAND_PORT),
        telemetry: tuple[str, int] = ("127.0.0.1", TELEMETRY_PORT),
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Open the sockets.

        Args:
            commands: Address at which commands are taken; port 0 means any.
            telemetry: Address to which telemetry goes.
            report: Function that gets lines about failures, few in a minute.

        Raises:
            OSError: The address for commands is in use or not of this host; the message names it, and who has it.
        """
        self._route = route
        self._telemetry = telemetry
        self._report = FewLines(report)  # a datagram of anybody's could write a line
        self._stop = threading.Event()
        self._control = ControlPlane(constellation)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(commands)
        except OSError as error:
            self._close()
            why = why_not_bound(error, "udp", *commands)
            raise OSError(error.errno, f"commands at {commands[0]}:{commands[1]}: {why}") from error
        self._socket.settimeout(_SLICE_S)
        self.port = int(self._socket.getsockname()[1])
        """Port at which commands are taken."""
        self._threads = [threading.Thread(target=self._carry_up, name="relay-up")]
        self._threads.append(threading.Thread(target=self._carry_down, name="relay-down"))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._report.close()
        self._close()

    def _close(self) -> None:
        self._socket.close()
        self._control.close()

    def _carry_up(self) -> None:
        while not self._stop.is_set():
            try:
                packet, _ = self._socket.recvfrom(icd.LIMIT_PACKET_BYTES)
            except TimeoutError:
                continue
            if (failure := self._command(packet)) is not None:
                self._report(failure)

    def _command(self, packet: bytes) -> str | None:
        """Put a command on the bus; return the reason if that failed."""
        try:
            message = Message.decode(packet)
        except MessageError as error:
            return f"a datagram is no cFS packet: {error}"
        what = f"command 0x{message.mid:04X}, function {message.function_code}"
        if not message.is_command:
            return f"message 0x{message.mid:04X} is telemetry; allowed are commands"
        if len(packet) > icd.LIMIT_RELAY_BYTES:
            return f"{what} has {len(packet)} bytes; RELAY carries up to {icd.LIMIT_RELAY_BYTES}"
        answer = self._control.relay([self._route], packet, _ANSWER_S)[0]
        if answer is None:
            return f"{what}: satellite {self._route.satellite} does not answer; it may have carried it out"
        if not answer.ok:
            return f"{what}: {icd.STATUSES.get(answer.status, answer.status)}"
        return None

    def _carry_down(self) -> None:
        for _, message in self._control.listen([self._route], math.inf, self._stop.is_set):
            try:
                self._socket.sendto(message, self._telemetry)
            except OSError as error:  # nobody listens there yet, or no way leads there now
                self._report(f"telemetry to {self._telemetry[0]} port {self._telemetry[1]}: {error.strerror or error}")
