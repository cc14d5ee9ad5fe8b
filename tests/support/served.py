"""Servers of models as users start them, with a model small enough for tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import openai
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from skymemory.demo.model import random_llama
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import Running, RunRecord
from support.waiting import wait_until

BLOCK = 16
"""Tokens of a block in the small sky."""
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'user' and message.content == '' %}{{ raise_exception('an empty message') }}{% endif %}"
    "[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def letters() -> PreTrainedTokenizerFast:
    """A token for every printable ASCII character and the newline: whatever a model says is read back as the same tokens."""
    text = "".join(map(chr, range(32, 127))) + "\n"
    ((mapped, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(mapped)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE)


def small_config(vocabulary: int, **sizes: int) -> LlamaConfig:
    """Return the shape of a small Llama."""
    return LlamaConfig(
        **{
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": vocabulary,
            "max_position_embeddings": 16384,
            "bos_token_id": None,
            "eos_token_id": None,
            **sizes,
        }
    )


def save_babbler(folder: Path, **sizes: int) -> Path:
    """Save a Llama of random weights that never ends by itself, and return its folder.

    It is the same in every run, as rounding chooses among tokens that are nearly equally likely.
    """
    tokenizer = letters()
    random_llama(small_config(len(tokenizer), **sizes), seed=1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def small_sky() -> LocalConstellation:
    """Return 3 x 5 satellites for blocks of 16 tokens, as a context manager."""
    sections = {
        "constellation": {"planes": 3, "slots": 5},
        "cache": {"servers": 9, "centre": [2, 3], "block_tokens": BLOCK, "chunk_bytes": 1000},
    }
    base = Constellation.model_validate(sections, strict=False)
    return LocalConstellation(base.replace(network={"port": free_port(base)}))


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Server:
    """A process of `skymem serve`."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self.log = log
        self.client = self.client_of("no key")
        self.key = "no key"
        """API key with which metrics are read."""

    def client_of(self, api_key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.address}/v1", api_key=api_key, max_retries=0)

    def request(
        self,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        method: str | None = None,
        **headers: str,
    ) -> Response:
        """Plain HTTP: GET, or POST of a body, unless a method is named."""
        if body is not None:
            headers["Content-Type"] = content_type
        request = urllib.request.Request(self.address + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Response(answer.status, answer.headers, answer.read().decode())
        except urllib.error.HTTPError as answer:
            return Response(answer.status, answer.headers, answer.read().decode())

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        answer = self.request("/metrics", Authorization=f"Bearer {self.key}")
        assert answer.status == 200
        return sum(float(line.split()[-1]) for line in answer.text.splitlines() if re.match(rf"{name}[ {{]", line))

    def wait(self, name: str, value: float) -> None:
        """Until a metric has a value."""
        wait_until(
            lambda: self.metric(name) == value, lambda: f"{name} is {self.metric(name)}, not {value}\n{self.log.read_text()}"
        )

    def wait_stored(self) -> None:
        """Until what was answered is in the sky."""
        self.wait("skymem_serve_running", 0)
        self.wait("skymem_serve_storing", 0)


def start_server(
    folder: Path, model: Path, *words: str, up: LocalConstellation | None = None, state: Path | None = None
) -> Server:
    """Start `skymem serve` and wait until it serves.

    Args:
        folder: Folder for its log.
        words: Options.
        up: Constellation that is up for it; None: that of `state`, or none.
    """
    state = state or folder / "state"
    if up is not None:
        RunRecord(state).save(Running("local", up.constellation, dict(up.processes)))
    command = [Path(sys.executable).with_name("skymem"), "serve", model, "--port", "0", *words]
    environment = {
        **os.environ,
        "SKYMEM_STATE": str(state),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    log = folder / "log"
    process = subprocess.Popen(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=log.open("w"), text=True, cwd=folder
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if " at http" not in line:
        process.kill()
        raise RuntimeError(log.read_text())
    return Server(process, line.split()[-1].removesuffix("/v1"), log)


def cpu_ticks(server: Server) -> int:
    """Time of processors that a server has taken, in hundredths of a second."""
    return sum(map(int, Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
