"""A constellation of local processes: satellite (p, s) is a `skysat` that listens at 127.18.p.s."""

import errno
import os
import random
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from skymemory.common.port_holder import holder, holder_output
from skymemory.common.progress import Progress
from skymemory.common.state_folder import make_folders
from skymemory.security.constellation_keys import find_satellite_files
from skymemory.security.satellite_file import file_name
from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.leash import Leash, leashed_folder
from skymemory.testbed.processes import ProcessId, identify, stop
from skymemory.testbed.room_for_satellites import refusal, rooms
from skymemory.wire.address import Satellite

START_DEADLINE_S = 60.0
"""Seconds until all satellites must be ready: 95 take about a second; the rest is for a busy machine."""
POLL_S = 0.005
LOG_FOLDER = "logs"
"""Name of the folder of satellites' logs in a state folder."""
LOG_BYTES = 4096
"""Bytes in the log of a satellite that starts, with room to spare."""
_FREE_PORTS = range(10_000, 32_768)
"""Ports below those that Linux gives to programs that ask for any: no client takes one before the satellites have started."""


class StartError(RuntimeError):
    """The constellation could not be started; nothing of it is left running."""


class LocalConstellation:
    """All satellites of a constellation as processes of this machine.

    They start on entering the context and stop on leaving it; `start` and `detach` leave them running. Only processes that were
    started here are ever ended. They end with this process, however it ends, until `detach`.
    """

    def __init__(self, constellation: Constellation, log_folder: Path | None = None) -> None:
        """Send each satellite's output to `PLANE-SLOT.log` in `log_folder`, a temporary folder by default."""
        self.constellation = constellation
        self.processes: dict[Satellite, ProcessId] = {}
        self._children: dict[Satellite, subprocess.Popen[bytes]] = {}
        self._cleanup = ExitStack()
        self._log_folder = log_folder
        self._leash: Leash | None = None

    def __enter__(self) -> "LocalConstellation":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, progress: Progress | None = None) -> None:
        """Start all satellites side by side and wait until each has said that it listens.

        Raises:
            ConfigError: Other machines reach the satellites, and nothing protects them.
            KeyringError: The keyring starts no satellites.
            StartError: An address is in use, there is no room for so many or for their logs, or a satellite ended; its own words
                are in the message.
            FileNotFoundError: The satellite program is not installed.
        """
        program = skysat.program()
        self.constellation.check_exposure()
        if self._log_folder is None:
            self._log_folder = self._cleanup.enter_context(leashed_folder())
        count = self.constellation.planes * self.constellation.slots
        _check_room(count)
        check_addresses(self.constellation)
        _check_disk(self._log_folder, count)
        try:
            for place in self.constellation.torus.satellites():
                self._spawn(program, place)
            self._await_ready(progress)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all satellites and wait for their end; without effect on a constellation that does not run."""
        stop(self.processes.values())
        if self._leash is not None:
            self._leash.close()  # this also ends a satellite that a signal kept out of the list
            self._leash = None
        for child in self._children.values():
            child.wait()
        self.processes.clear()
        self._children.clear()
        self._cleanup.close()

    def kill(self, place: Satellite) -> None:
        """End one satellite at once, without warning, as a fault test does."""
        child = self._children.pop(place)
        child.kill()
        child.wait()
        del self.processes[place]

    def restart(self, place: Satellite) -> None:
        """Start a satellite again after `kill`, with an empty store, and wait until it listens."""
        self._spawn(skysat.program(), place)
        self._await_ready(None)

    def detach(self) -> dict[Satellite, ProcessId]:
        """Leave the satellites running when this object goes; the caller keeps the processes."""
        processes = dict(self.processes)
        if self._leash is not None:
            self._leash.let_go(len(processes))
            self._leash = None
        for child in self._children.values():
            child.returncode = 0  # nobody waits for it any more, and the destructor would warn
        self.processes.clear()
        self._children.clear()
        return processes

    @cached_property
    def _keys(self) -> Path | None:
        """Folder of the satellites' key files; None without a keyring."""
        keyring = self.constellation.security.keyring
        return find_satellite_files(Path(keyring)) if keyring else None

    def _log(self, place: Satellite) -> Path:
        assert self._log_folder is not None
        return self._log_folder / f"{place.plane}-{place.slot}.log"

    def _spawn(self, program: Path, place: Satellite) -> None:
        if self._leash is None:
            self._leash = Leash()
        keys = None if self._keys is None else self._keys / file_name(place)
        with self._log(place).open("wb") as log:
            child = subprocess.Popen(
                [program, *skysat.arguments(self.constellation, place, keys), skysat.UNTIL_STDIN_ENDS],
                stdin=self._leash.end,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal is for the command, not for the sky
            )
        self._children[place] = child
        process = identify(child.pid)
        if process is not None:  # if it has ended already, _await_ready says why
            self.processes[place] = process

    def _await_ready(self, progress: Progress | None) -> None:
        total = len(self._children)
        waiting = dict(self._children)
        deadline = time.monotonic() + START_DEADLINE_S
        while waiting:
            for place, child in list(waiting.items()):
                if self._is_ready(place):
                    del waiting[place]
                elif child.poll() is not None:
                    words = self._last_words(place)
                    raise StartError(f"satellite {place} ended with status {child.returncode}: {words}")
            if progress is not None:
                progress(total - len(waiting), total)
            if waiting and time.monotonic() > deadline:
                place = next(iter(waiting))
                raise StartError(
                    f"{len(waiting)} of {total} satellites were not ready after {START_DEADLINE_S:.0f} s; "
                    f"satellite {place} said: {self._last_words(place)}"
                )
            if waiting:
                time.sleep(POLL_S)

    def _is_ready(self, place: Satellite) -> bool:
        return any(skysat.READY_WORD in line for line in self._lines(place))

    def _last_words(self, place: Satellite) -> str:
        lines = list(self._lines(place))
        return lines[-1] if lines else "(nothing)"

    def _lines(self, place: Satellite) -> Iterator[str]:
        text = self._log(place).read_text(encoding="utf-8", errors="replace")
        return (line.strip() for line in text.splitlines() if line.strip())


def _check_room(count: int) -> None:
    """Check that this machine has room for so many satellites.

    Raises:
        StartError: There is not enough room; the message has the number that fits.
    """
    if why := refusal(count, rooms()):
        raise StartError(why)


def _check_disk(folder: Path, count: int) -> None:
    """Check that satellites can write their logs; they would not come up otherwise.

    Raises:
        StartError: The folder cannot be written to, or its disk is full.
    """
    try:
        make_folders(folder)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(count * LOG_BYTES))
            probe.flush()
    except OSError as error:
        raise StartError(f"{folder}, where satellites write their logs: {error.strerror or error}") from error


def check_addresses(constellation: Constellation) -> None:
    """Check that the addresses of the satellites are free.

    Raises:
        StartError: An address is in use; the message names it and says what can be done.
    """
    port = constellation.network.port
    for place in constellation.torus.satellites():
        address = constellation.address(*place)
        reason = _why_not_free(address, port)
        if reason == errno.EADDRINUSE:
            raise StartError(f"{address} port {port} is in use{_by_whom(address, port)}; or choose another network.port")
        if reason == errno.EADDRNOTAVAIL:
            raise StartError(
                f"{address} is no address of this machine: give it to one of its interfaces, or choose a network.network "
                'inside 127.0.0.0/8, such as "127.18.0.0/16"'
            )
        if reason:
            raise StartError(f"{address} port {port} cannot be bound: {os.strerror(reason)}")


def _by_whom(address: str, port: int) -> str:
    """Return who has an address, and how that ends, for words behind `is in use`."""
    if (output := holder_output("udp", address, port)) is not None and output.parent.name == LOG_FOLDER:
        folder = output.parent.parent
        end = f"`SKYMEM_STATE={shlex.quote(str(folder))} skymem down`"
        return f" by the constellation of the state folder {folder}: {end} ends it"
    if who := holder("udp", address, port):
        return f" by {who}"
    return ": another constellation may be running (`skymem down` ends it)"


def free_port(constellation: Constellation) -> int:
    """Return a UDP port that is free at the address of every satellite, so that constellations can stand side by side.

    Raises:
        StartError: No port is free.
    """
    addresses = [constellation.address(*place) for place in constellation.torus.satellites()]
    for port in random.sample(_FREE_PORTS, 64):
        if not any(_why_not_free(address, port) for address in addresses):
            return port
    raise StartError(f"no UDP port is free at all of {addresses[0]} to {addresses[-1]}")


def _why_not_free(address: str, port: int) -> int:
    """Return 0 if a socket can be bound there, else the errno. SO_REUSEADDR is not set, so that sockets with it are seen too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno or errno.EIO
    return 0
