"""Agents as real processes, each with a state folder of its own."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skymemory.agent.client import AgentClient, EngineInfo
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from support.waiting import PATIENCE_S, wait_until


def tell_up(folder: Path, local: LocalConstellation) -> None:
    """Write the record of these satellites that `skymem up` would leave."""
    RunRecord(folder).save(Running("local", local.constellation, dict(local.processes)))


class AgentProcess:
    """`skymem agent` with its state in `folder`. A context manager."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """Start the agent and wait until it serves. The flag `--http-port 0` is added."""
        self.folder = folder
        self.socket = folder / "agent.sock"
        self.log = folder / "agent.log"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", "agent", "--http-port", "0", *flags]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SKYMEM_AGENT")}
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                command,
                env={**environment, "SKYMEM_STATE": str(folder)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.addresses: dict[str, str] = {}
        """Addresses by name: `engines`, `http`, and the other ports that it serves."""
        assert self.child.stdout is not None
        while (line := self.child.stdout.readline().strip()) and line != "serving":
            name, _, address = line.partition(": ")
            self.addresses[name] = address
        if line != "serving":
            self.child.wait()
            raise RuntimeError(f"the agent ended with {self.child.returncode}: {self.log.read_text()}")

    @property
    def pid(self) -> int:
        return self.child.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body of an HTTP answer."""
        try:
            with urllib.request.urlopen(self.addresses["http"] + path, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def ready(self) -> dict[str, Any]:
        """Return the answer of /readyz."""
        return dict(json.loads(self.get("/readyz")[1]))

    def wait_ready(self) -> None:
        wait_until(lambda: self.ready()["ready"], lambda: f"the agent becomes ready: {self.log.read_text()}")

    def metric(self, line: str) -> float:
        """Return the value of a sample, by its name and labels as they are written; 0 if it is missing."""
        found = [one for one in self.get("/metrics")[1].decode().splitlines() if one.startswith(line + " ")]
        return float(found[0].split()[-1]) if found else 0.0

    def client(self, **changes: object) -> AgentClient:
        """Connect an engine to this agent; `changes` are fields of its `EngineInfo` and `arena_bytes`."""
        arena_bytes = changes.pop("arena_bytes", 1 << 24)
        assert isinstance(arena_bytes, int)
        info: dict[str, Any] = {
            "name": "vllm",
            "model": "model",
            "root": bytes(32),
            "block_tokens": 16,
            "block_bytes": 100_000,
            "dtype": "float32",
            **changes,
        }
        return AgentClient(self.socket, engine=EngineInfo(**info), arena_bytes=arena_bytes)

    def open_files(self) -> int:
        """Return the number of its file descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def shared_bytes(self) -> int:
        """Return the bytes of address space in which it has mapped memory shared with engines."""
        total = 0
        for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            if "memfd:" in line:
                first, last = line.split()[0].split("-")
                total += int(last, 16) - int(first, 16)
        return total

    def kill(self) -> None:
        """Kill it without warning."""
        self.child.kill()
        self._wait()

    def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        status = self.child.wait(PATIENCE_S)
        assert self.child.stdout is not None
        self.child.stdout.close()
        return status
