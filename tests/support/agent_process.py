"""A real agent in a process of its own, for a constellation that a test has started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType

from skymemory.config import Constellation
from skymemory.testbed.state import Running, State

START_S = 60


class AgentProcess:
    """`skymem agent` with a state folder of its own; a context manager."""

    def __init__(self, folder: Path, constellation: Constellation, *flags: str) -> None:
        """
        Args:
            folder: for its record, socket and log; a short path, as Unix sockets ask for.
            flags: such as `--resp-port=0`; where it serves then is in `addresses`.
        """
        State(folder).save(Running("local", constellation, {}))
        self.socket = folder / "agent.sock"
        self.log = folder / "agent.log"
        self.addresses: dict[str, str] = {}
        self._folder = folder
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> AgentProcess:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", "agent", "--socket", str(self.socket)]
        environment = {**os.environ, "SKYMEM_STATE": str(self._folder)}
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, *self._flags], stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "serving\n":
                return
            name, _, address = line.rstrip("\n").partition(": ")
            self.addresses[name] = address
        raise AssertionError(f"the agent ended: {self.log.read_text()}")

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_S)

    def stop(self) -> None:
        """End it as systemd does."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(START_S)

    def port(self, name: str) -> int:
        """Of an address."""
        found = re.search(r":(\d+)$", self.addresses[name])
        assert found, self.addresses
        return int(found[1])

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        with urllib.request.urlopen(self.addresses["http"] + "/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        samples = [line for line in lines if re.match(re.escape(name) + r"[ {]", line) and all(one in line for one in wanted)]
        return sum(float(line.rpartition(" ")[2]) for line in samples)
