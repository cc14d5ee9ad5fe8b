"""Servers as users start them, with models small enough for tests and satellites of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import openai
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skymemory.agent.constellation_source import ConstellationSource, FixedSource
from skymemory.demo.model import random_llama
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import Running, RunRecord
from support.waiting import wait_until

BLOCK = 16
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'user' and message.content == '' %}{{ raise_exception('an empty message') }}{% endif %}"
    "[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
POEM = "Größe 你好, 世界! 😀👩‍👩‍👧 naïve – ¿qué? Привет; नमस्ते. The end."


@pytest.fixture(scope="session")
def letters() -> PreTrainedTokenizerFast:
    """A token for every printable ASCII character and the newline: whatever a model says is read back as the same tokens."""
    text = "".join(map(chr, range(32, 127))) + "\n"
    ((mapped, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(mapped)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE)


def _config(vocabulary: int, **sizes: int) -> LlamaConfig:
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


@pytest.fixture(scope="session")
def babbler(tmp_path_factory: pytest.TempPathFactory, letters: PreTrainedTokenizerFast) -> Path:
    """A Llama of random weights that never ends by itself; the same in every run, as rounding chooses among tokens that are
    nearly equally likely."""
    folder = tmp_path_factory.mktemp("babbler")
    random_llama(_config(len(letters)), seed=1).save_pretrained(folder)
    letters.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def reciter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says POEM after any text, in tokens that cut through its characters, and then ends."""
    ((mapped, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(POEM)
    pieces: list[str] = []
    while rest := mapped[sum(map(len, pieces)) :]:
        pieces.append(next(rest[:size] for size in range(2, 5) if rest[:size] not in pieces))
    vocabulary = {"<unk>": 0, **{piece: 1 + index for index, piece in enumerate(pieces)}, "</s>": 1 + len(pieces)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.decoder = decoders.ByteLevel()
    folder = tmp_path_factory.mktemp("reciter")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>").save_pretrained(folder)
    model = LlamaForCausalLM(_config(len(vocabulary), eos_token_id=len(vocabulary) - 1))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                weight.zero_()  # what remains is the token itself
        embeddings = torch.nn.functional.normalize(model.model.embed_tokens.weight, dim=-1)
        model.model.embed_tokens.weight.copy_(embeddings)
        model.lm_head.weight.copy_(embeddings.roll(1, dims=0))  # token n is followed by n + 1
    model.generation_config = GenerationConfig(eos_token_id=len(vocabulary) - 1)
    model.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@pytest.fixture(scope="session")
def poem() -> str:
    """What the reciter says."""
    return POEM


class Server:
    """A process of `skymem serve`."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self.log = log
        self.client = self.client_of("no key")

    def client_of(self, api_key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.address}/v1", api_key=api_key, max_retries=0)

    def request(self, path: str, body: bytes | None = None, content_type: str = "application/json", **headers: str) -> Response:
        """Plain HTTP: GET, or POST of a body."""
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address + path, body, headers), timeout=60) as answer:
                return Response(answer.status, answer.headers, answer.read().decode())
        except urllib.error.HTTPError as answer:
            return Response(answer.status, answer.headers, answer.read().decode())

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        answer = self.request("/metrics")
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


ServeModel = Callable[..., Server]


@pytest.fixture(scope="session")
def start_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeModel]:
    with ExitStack() as stack:

        def start(model: Path, *words: str, up: LocalConstellation | None = None, state: Path | None = None) -> Server:
            folder = tmp_path_factory.mktemp("server")
            state = state or folder / "state"
            if up is not None:
                RunRecord(state).save(Running("local", up.constellation, dict(up.processes)))
            command = [Path(sys.executable).with_name("skymem"), "serve", model, "--port", "0", *words]
            environment = {**os.environ, "SKYMEM_STATE": str(state), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
            log = folder / "log"
            process = stack.enter_context(
                subprocess.Popen(
                    list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=log.open("w"), text=True, cwd=folder
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " at http" in line, log.read_text()
            return Server(process, line.split()[-1].removesuffix("/v1"), log)

        yield start


@pytest.fixture
def serve_model(start_servers: ServeModel) -> Iterator[ServeModel]:
    """Start a server for one test: `serve_model(folder, *options, up=constellation, state=folder)`."""
    started: list[Server] = []

    def start(*words: object, **more: object) -> Server:
        started.append(start_servers(*words, **more))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="session")
def small_sky() -> Iterator[LocalConstellation]:
    """3 x 5 satellites for blocks of 16 tokens. Do not kill any."""
    sections = {
        "constellation": {"planes": 3, "slots": 5},
        "cache": {"servers": 9, "centre": [2, 3], "block_tokens": BLOCK, "chunk_bytes": 1000},
    }
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local


@pytest.fixture
def small_source(small_sky: LocalConstellation) -> Callable[[], ConstellationSource]:
    """Makes sources that tell of the small sky."""
    return lambda: FixedSource(small_sky.constellation)


@pytest.fixture(scope="session")
def server(start_servers: ServeModel, babbler: Path, small_sky: LocalConstellation) -> Server:
    """The babbler on the small sky. Use prompts of your own."""
    return start_servers(babbler, "--served-model-name", "babbler", up=small_sky)


@pytest.fixture(scope="session")
def reciting(start_servers: ServeModel, reciter: Path) -> Server:
    """The reciter, without a constellation; its key is `secret`."""
    server = start_servers(reciter, "--api-key", "secret", "--served-model-name", "reciter")
    server.client = server.client_of("secret")
    return server
