"""vLLM engines and an agent as processes of their own, controlled by a test."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from support.engine_models import VOCABULARY
from support.progress import Progress

BLOCK_TOKENS = 128
_TRIES = 20
"""Tries at least, for at least a minute: the time of one depends on how busy the machine is."""
CONNECTOR = {
    "kv_connector": "SkyMemoryConnector",
    "kv_connector_module_path": "skymemory.engines.vllm",
    "kv_role": "kv_both",
    "kv_load_failure_policy": "recompute",
}


def words(count: int, seed: int) -> list[int]:
    """Return token ids of a prompt; another seed gives another first token."""
    return [3 + (seed * 101 + position * (7 + seed % 5)) % (VOCABULARY - 3) for position in range(count)]


def _not_saved(metrics: dict[str, float]) -> float:
    """Return the number of blocks that were computed and are not in the sky."""
    return sum(metrics.get(f"skymemory_save_{why}_blocks", 0) for why in ("skipped", "failed"))


class Agent:
    """`skymem agent` as a process, with its socket and state in a folder."""

    def __init__(self, constellation: Path, folder: Path) -> None:
        self._constellation = constellation
        self.folder = folder
        self.socket = folder / "agent.sock"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it serves."""
        skymem = Path(sys.executable).with_name("skymem")
        with (self.folder / "agent.log").open("a") as log:
            self.process = subprocess.Popen(
                [skymem, "agent", "--constellation", self._constellation, "--socket", self.socket],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) and line.strip() != "serving":
            pass
        assert line, self.log()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self) -> None:
        """End it as systemd does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
            self.process.stdout.close()

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()


def as_toml(sections: dict[str, Any]) -> str:
    """Return the text of a constellation file, whose sections are tables or lists of tables."""
    lines = []
    for name, section in sections.items():
        for table in section if isinstance(section, list) else [section]:
            heading = f"[[{name}]]" if isinstance(section, list) else f"[{name}]"
            lines += [heading, *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a small vLLM that stays on this machine."""
    return {
        **os.environ,
        "SKYMEM_STATE": str(folder),
        "SKYMEM_AGENT_SOCKET": str(folder / "agent.sock"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "VLLM_RECORD": str(folder / "keys"),
    }


class Engine:
    """A vLLM beside the test: three processes, as vLLM starts them by itself, or one, which is there sooner."""

    def __init__(self, folder: Path, settings: dict[str, Any], is_one_process: bool = False) -> None:
        self._keys = folder / "keys"
        self._log = folder / f"engine-{time.monotonic_ns()}.log"
        read, write = os.pipe()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("vllm_process.py"), str(write), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[write],
                start_new_session=True,  # so that all of its processes can be ended
                env=environment(folder) | ({"VLLM_ENABLE_V1_MULTIPROCESSING": "0"} if is_one_process else {}),
            )
        os.close(write)
        self.progress = Progress(self._process, self._log)
        self._answers = os.fdopen(read, encoding="utf-8")

    def wait(self) -> None:
        """Wait until it is up."""
        self._answer()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return the answer."""
        self.begin(command, **arguments)
        return self._answer()

    def begin(self, command: str, **arguments: Any) -> None:
        """Send a command as `ask` does; `finish` fetches the answer."""
        assert self._process.stdin is not None
        print(json.dumps({"command": command, **arguments}), file=self._process.stdin, flush=True)

    def finish(self) -> dict[str, Any]:
        """Return the answer to the command that was begun."""
        return self._answer()

    def generate(
        self, *prompts: list[int], tokens: int = 8, salt: str | None = None, adapter: Path | None = None
    ) -> dict[str, Any]:
        """Return greedy tokens of prompts that come at once."""
        of_adapter = str(adapter) if adapter else None
        return self.ask("generate", prompts=prompts, tokens=tokens, salts=[salt] * len(prompts), adapter=of_adapter)

    def fresh(self, *prompts: list[int], **arguments: Any) -> dict[str, Any]:
        """Generate as `generate` does, with nothing in vLLM's own cache."""
        tries = self._tries()
        while not self.ask("forget")["done"]:  # a request that was given up holds its blocks until its load has ended
            tries("vLLM forgets what it has itself")
        return self.generate(*prompts, **arguments)

    def stored(self, prompt: list[int], blocks: int, **arguments: Any) -> list[int]:
        """Return the tokens of an unknown prompt, once so many blocks more are in the sky.

        On a busy machine a worker may find the agent when a short prompt is computed already, or a put may take too long. The
        missing blocks are then computed once more.
        """
        before = self.metrics()
        cold = self.fresh(prompt, **arguments)
        assert cold["cached"] == [0]
        least = before.get("skymemory_saved_blocks", 0) + blocks
        tries, seed, lost = self._tries(), 1000, _not_saved(before)
        while (found := self.metrics()).get("skymemory_saved_blocks", 0) < least:
            tries(f"{found} instead of {least} blocks")
            if _not_saved(found) > lost:
                lost = _not_saved(found)
                assert self.fresh(prompt, **arguments)["tokens"] == cold["tokens"]
            self.generate(words(4, seed))  # what the workers did late is reported in a later step
            seed += 1
        return cold["tokens"][0]

    def loaded(self, prompt: list[int], blocks: int, **arguments: Any) -> list[int]:
        """Return the tokens of a prompt of which so many blocks come from the sky, all of its tokens but one at most.

        On a busy machine a satellite may pass for lost. Blocks are then computed, stored anew, and come the next time.
        """
        tries = self._tries()
        tokens = None
        while True:
            found = self.fresh(prompt, **arguments)
            assert tokens in (None, found["tokens"][0])
            tokens = found["tokens"][0]
            if found["cached"] == [min(blocks * BLOCK_TOKENS, len(prompt) - 1)]:
                return tokens
            tries(f"{found} instead of {blocks} blocks")

    def again(self, attempt: Callable[[], bool]) -> None:
        """Repeat an attempt until it succeeds; for the same reason as `loaded`, where more than tokens is observed."""
        tries = self._tries()
        while not attempt():
            tries("in vain")

    def metrics(self) -> dict[str, float]:
        return self.ask("metrics")

    def until(self, **least: float) -> dict[str, float]:
        """Return the metrics once these have come so far: what the workers did late is reported in a later step."""
        tries = self._tries()
        seed = 1000
        while True:
            found = self.metrics()
            if all(found.get(name, 0) >= value for name, value in least.items()):
                return found
            tries(f"{found} instead of {least}")
            self.generate(words(4, seed))
            seed += 1

    def keys(self) -> list[bytes]:
        """Return the keys under which blocks were stored so far, by engines with the connector of `support.vllm_recording`."""
        return list(dict.fromkeys(self.saves()))

    def saves(self) -> list[bytes]:
        """Return these keys, each once for every time that its block was to be stored."""
        return [bytes.fromhex(line) for line in self._keys.read_text().split()] if self._keys.exists() else []

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End it; safe to call twice."""
        if self._answers.closed:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # one that never came up, with the processes that it has started
            self._process.wait()
        self._answers.close()

    def _tries(self) -> Callable[[str], None]:
        """Return a function to call after each try in vain; it fails when there were enough."""
        end, left = time.monotonic() + 60, count(_TRIES, -1)

        def tried(what: str) -> None:
            assert next(left) > 0 or time.monotonic() < end, f"{what}\n{self.log()[-4000:]}"

        return tried

    def _answer(self) -> dict[str, Any]:
        self.progress.wait(lambda: select.select([self._answers], [], [], 1.0)[0], "vLLM answers", pause_s=0)
        line = self._answers.readline()
        assert line, f"no answer\n{self.log()[-4000:]}"
        return json.loads(line)
