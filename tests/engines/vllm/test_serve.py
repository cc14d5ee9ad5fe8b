"""`vllm serve` as the page says it, through its OpenAI endpoint."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from support.ports import free_ports
from support.progress import QUIET_S, Progress
from support.vllm_engine import BLOCK_TOKENS, CONNECTOR, Agent, environment

pytestmark = pytest.mark.engines


_MORE = ("--enforce-eager", "--enable-prompt-tokens-details")


class Server:
    """A server at a port of its own."""

    def __init__(self, model: Path, folder: Path) -> None:
        (self._port,) = free_ports(1)
        self.model = str(model)
        self._log = folder / "server.log"
        around = environment(folder)
        around["VLLM_SERVER_DEV_MODE"] = "1"  # it is asked to forget what it has itself
        command = ["serve", model, "--block-size", str(BLOCK_TOKENS), "--kv-transfer-config", json.dumps(CONNECTOR)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vllm.entrypoints.cli.main", *command, "--port", str(self._port), *_MORE],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=around,
                start_new_session=True,
            )

    def wait(self) -> None:
        Progress(self._process, self._log).wait(self._serves, "vLLM serves", pause_s=0.5)

    def _serves(self) -> bool:
        try:
            self.ask("/health")
        except URLError:
            return False
        return True

    def ask(self, path: str, body: dict[str, Any] | None = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=QUIET_S) as answer:
            return answer.read().decode()

    def complete(self, prompt: str) -> tuple[str, int]:
        """Text, and tokens of the prompt that came from a cache."""
        body = {"model": self.model, "prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
        answer = json.loads(self.ask("/v1/completions", body))
        return answer["choices"][0]["text"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def metric(self, name: str) -> float:
        lines = [line for line in self.ask("/metrics").splitlines() if line.startswith(f"vllm:skymemory_{name}{{")]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def server(model: Path, agent: Agent) -> Iterator[Server]:
    made = Server(model, agent.folder)
    try:
        made.wait()
        yield made
    finally:
        made.close()


def test_the_command_line_of_the_page(server: Server) -> None:
    prompt = " ".join(f"w{7 * number % 500}" for number in range(3 * BLOCK_TOKENS + 20))
    cold, cached = server.complete(prompt)
    assert cached == 0
    end = time.monotonic() + 60
    lookups, lost = 1, 0.0
    while server.metric("saved_blocks_total") < 3:  # told with a later step
        assert time.monotonic() < end
        server.complete("w1 w2")
        if (now := server.metric("save_skipped_blocks_total") + server.metric("save_failed_blocks_total")) > lost:
            lost = now  # on a busy machine the worker may find the agent when the prompt is computed
            server.ask("/reset_prefix_cache", {})
            assert server.complete(prompt)[0] == cold
            lookups += 1
    server.ask("/reset_prefix_cache", {})
    while (warm := server.complete(prompt)) != (cold, 3 * BLOCK_TOKENS):  # as `Engine.loaded`
        assert warm[0] == cold
        assert time.monotonic() < end
        server.ask("/reset_prefix_cache", {})
        lookups += 1
    while server.metric("loaded_blocks_total") < 3:
        assert time.monotonic() < end
        server.complete("w1 w2")
    assert server.metric("lookup_seconds_count") == lookups + 1
    assert server.metric("saved_blocks_total") == 3 or lookups > 1
