"""Servers as users start them, with models small enough for tests and satellites of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skymemory.agent.constellation_source import ConstellationSource, FixedSource
from skymemory.demo.model import load
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.segments import ServedSegments
from skymemory.testbed.local import LocalConstellation
from support import served
from support.served import Server

POEM = "Größe 你好, 世界! 😀👩‍👩‍👧 naïve – ¿qué? Привет; नमस्ते. The end."


@pytest.fixture(scope="session")
def letters() -> PreTrainedTokenizerFast:
    """A token for every printable ASCII character and the newline."""
    return served.letters()


@pytest.fixture(scope="session")
def babbler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights that never ends by itself."""
    return served.save_babbler(tmp_path_factory.mktemp("babbler"))


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
    model = LlamaForCausalLM(served.small_config(len(vocabulary), eos_token_id=len(vocabulary) - 1))
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


@pytest.fixture(scope="session")
def poem() -> str:
    """What the reciter says."""
    return POEM


ServeModel = Callable[..., Server]


@pytest.fixture(scope="session")
def start_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeModel]:
    with ExitStack() as stack:

        def start(model: Path, *words: str, up: LocalConstellation | None = None, state: Path | None = None) -> Server:
            server = served.start_server(tmp_path_factory.mktemp("server"), model, *words, up=up, state=state)
            stack.callback(server.process.wait)
            stack.callback(server.process.kill)
            return server

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
    with served.small_sky() as local:
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


@pytest.fixture(scope="module")
def loaded(babbler: Path) -> Any:
    """The babbler and its tokenizer."""
    return load(str(babbler), device="cpu")


@pytest.fixture
def cache(loaded: Any, small_source: Callable[[], ConstellationSource]) -> Iterator[PromptCache]:
    cache = PromptCache(*loaded, small_source())
    yield cache
    cache.close()


@pytest.fixture
def make_segments(cache: PromptCache) -> Iterator[Callable[..., ServedSegments]]:
    with ExitStack() as stack:

        def make(strategy: str = "naive", cache: PromptCache = cache, **more: Any) -> ServedSegments:
            made = ServedSegments(cache, strategy, **more)
            stack.callback(made.close)
            return made

        yield make
