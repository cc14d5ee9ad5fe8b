"""LMCache's server as a process of its own, which stores through the agent or a Redis server."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from support.ports import free_ports
from support.progress import Progress
from support.vllm_engine import BLOCK_TOKENS, Engine, words

MISSED = "LMCache server is unhealthy"
"""Line of each part of vLLM when the server has not answered in time."""


def resp_adapter(port: int) -> dict[str, object]:
    """Return the settings of LMCache's own client of Redis servers."""
    return {"type": "resp", "host": "127.0.0.1", "port": port}


class LMCacheServer:
    """`lmcache server` without a GPU, at the same ports whenever it starts."""

    def __init__(self, folder: Path, adapter: dict[str, object], chunk_tokens: int) -> None:
        self._folder = folder
        self._adapter = adapter
        self._chunk_tokens = chunk_tokens
        self.port, self._http_port, self._metrics_port = free_ports(3)
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it with empty memory; wait until it serves."""
        self._starts += 1
        options = {
            "port": self.port,
            "http-port": self._http_port,
            "prometheus-port": self._metrics_port,
            "chunk-size": self._chunk_tokens,
            "l1-size-gb": 1,
            "l1-init-size-gb": 1,
            "eviction-policy": "LRU",
            "supported-transfer-mode": "auto",
            "l2-adapter": json.dumps(self._adapter),
        }
        program = Path(sys.executable).with_name("lmcache")
        command = [program, "server", *(f"--{name}={value}" for name, value in options.items())]
        environment = {**os.environ, "LMCACHE_TRACK_USAGE": "false", "LMCACHE_DISABLE_BANNER": "1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        self.progress = Progress(self._process, self._log)
        self.progress.wait(self._serves, "LMCache serves")

    def stop(self) -> None:
        """End it: its memory is lost."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def log(self) -> str:
        """Return its output since it was started."""
        return self._log.read_text(errors="replace")

    @property
    def _log(self) -> Path:
        return self._folder / f"lmcache-{self._starts}.log"

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}/healthcheck", timeout=5) as reply:
                return bool(json.loads(reply.read())["status"] == "healthy")
        except OSError:
            return False


def restart_under(engine: Engine, lmcache: LMCacheServer) -> None:
    """Restart LMCache with empty memory, and wait until all parts of vLLM have found it: vLLM takes a known block from it."""
    probe = words(BLOCK_TOKENS + 1, 99)
    engine.fresh(probe)
    missed = engine.log().count(MISSED) + 2  # vLLM's scheduler and its worker ask for themselves
    lmcache.stop()
    # LMCache's worker registers anew only if it has seen the server gone. A server that is back before a question to it has
    # expired would never be known, and all that it stored would be lost
    engine.progress.wait(lambda: engine.log().count(MISSED) >= missed, "vLLM misses LMCache")
    lmcache.start()
    # Questions before this are lost
    lmcache.progress.wait(lambda: "Registered" in lmcache.log(), "vLLM's workers find the new LMCache")
    lmcache.progress.wait(lambda: engine.fresh(probe)["cached"] == [BLOCK_TOKENS], "vLLM takes blocks from it")
