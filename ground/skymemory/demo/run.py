"""`skymem demo`: one prompt, first without and then with the cache in the sky.

The demo times two runs, in this order:

1. *Without cache*: from the prompt's token ids to the tokens that `generate` brings. There is no manager and no store yet, and
   this process has sent no packet: neither PUTs nor links can slow it down. The satellites are up, and idle unless somebody
   else uses them.
2. Blocks go up, not timed. A manager purges the prompt's blocks if they are there, so that the figures are those of a prompt
   that the sky has not seen, and stores those that the first run left. PUT is over before the next run begins.
3. *With cache*: from the same token ids to the tokens again, with all that a user waits for in between. The model is compared
   with its digest, keys are computed, satellites are asked which blocks they have, the blocks are fetched, checked and
   decoded, and the model computes the rest of the prompt. The manager and its store are new, like those of another host: they
   know nothing of the blocks that went up. Opening them, which reads all weights once, is not timed.

The model is warmed up in the same way before both. Loading it and making token ids of the text is in neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from transformers import DynamicCache, PreTrainedModel
from transformers.generation.streamers import BaseStreamer

from skymemory.common.progress import Progress, no_progress
from skymemory.demo.model import demo_model, demo_prompt, demo_tokenizer, load
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.prompt.manager import KVCManager
from skymemory.sky.constellation import Constellation
from skymemory.sky.whereabouts import Source
from skymemory.store.sky_store import SkyStore

StageProgress = Callable[[str, int, int], None]
"""A function that is called with the stage, how much of it is done, and how much there is."""

WARM_UP_TOKENS = 16


class ModelLoadError(RuntimeError):
    """A model that cannot be loaded."""


class EmptyPromptError(ValueError):
    """A prompt without a token."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the command."""

    model: str | None = None
    """Directory, or name on the hub, of a causal language model of the Llama family; None: the demo's own model."""
    prompt_file: Path | None = None
    """Prompt as UTF-8 text; None: the shipped document."""
    codec: str = "raw"
    """Codec; raw brings every bit back, so the tokens are the same, and the others trade that for bytes."""
    new_tokens: int = 30
    tenant_secret: bytes | None = None
    """Secret of the blocks; None: this user's default for the constellation."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The object that `--json` prints. The module's docstring says what the times are of."""

    satellites: int
    planes: int
    slots: int
    blocks: int
    """Blocks of the prompt that are in the sky."""
    chunks: int
    bytes_up: int
    bytes_down: int
    prompt_tokens: int
    cached_tokens: int
    """Tokens that came from the sky and were not computed in the second run."""
    ttft_s_cold: float
    ttft_s_warm: float
    total_s_cold: float
    total_s_warm: float
    tokens_identical: bool
    misses: int
    """Blocks of the prompt that did not come back in the second run."""
    retries: int
    """Requests and chunks that were sent again, up and down."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one generation."""

    tokens: list[int]
    """New tokens."""
    ttft_s: float
    total_s: float
    cache: DynamicCache


class _Clock(BaseStreamer):
    """Notes when each token comes out of `generate`, which first hands over the prompt."""

    def __init__(self, new_tokens: int, progress: Progress) -> None:
        self.times: list[float] = []
        self._new_tokens = new_tokens
        self._progress = progress

    def put(self, value: torch.Tensor) -> None:
        self.times.append(time.perf_counter())
        self._progress(len(self.times) - 1, self._new_tokens)

    def end(self) -> None:
        """Do nothing."""


def run_demo(
    options: DemoOptions, constellation: Constellation, progress: StageProgress | None = None, playing: Source | None = None
) -> DemoResult:
    """Generate from a prompt without the cache, store the prompt's blocks, generate again with them.

    Args:
        options: Model, prompt, codec, number of tokens.
        constellation: The constellation, which must be running.
        playing: Source that tells which schedule the constellation follows.
        progress: Called as work goes on.

    Raises:
        ModelLoadError: The model cannot be loaded.
        OSError: The prompt file cannot be read, or the system refuses something else, such as a socket.
        EmptyPromptError: The prompt has no token.
        UnsupportedModelError: The model's cache cannot be cut into blocks.
    """
    tell = progress or (lambda stage, done, total: None)
    prompt = demo_prompt() if options.prompt_file is None else options.prompt_file.read_text(encoding="utf-8")
    if not prompt:
        raise EmptyPromptError("the prompt is empty; at least one character is needed")
    tell("model", 0, 1)
    try:
        model, tokenizer = (demo_model(), demo_tokenizer()) if options.model is None else load(options.model)
    except OSError as error:
        raise ModelLoadError(str(error)) from error
    ids: list[int] = tokenizer(prompt)["input_ids"]
    if not ids:
        raise EmptyPromptError("the prompt has no token; at least one is needed")
    tell("model", 1, 1)
    HuggingFaceEngine(model)  # this refuses a model that cannot be cached, before the long run
    _warm_up(model, ids)
    cold = generate(model, ids, options.new_tokens, progress=lambda done, total: tell("without cache", done, total))
    with SkyStore(constellation, playing=playing, tenant_secret=options.tenant_secret) as store:
        manager = KVCManager(model, tokenizer, store, codec=options.codec)
        keys = manager.keys(ids)
        store.purge(keys)
        added = manager.add_blocks(ids, cold.cache, progress=lambda done, total: tell("blocks up", done, total))
        entries = store.find_longest(keys).entries
        retries_up = store.stats().retries
    with SkyStore(constellation, playing=playing, tenant_secret=options.tenant_secret) as store:
        manager = KVCManager(model, tokenizer, store, codec=options.codec)
        _warm_up(model, ids)
        warm = generate(
            model,
            ids,
            options.new_tokens,
            manager=manager,
            progress=lambda done, total: tell("with cache", done, total),
        )
        counts = manager.statistics
        return DemoResult(
            satellites=constellation.grid.planes * constellation.grid.slots,
            planes=constellation.grid.planes,
            slots=constellation.grid.slots,
            blocks=len(entries),
            chunks=sum(entry.chunk_total for entry in entries),
            bytes_up=added.bytes_up,
            bytes_down=counts.bytes_down,
            prompt_tokens=len(ids),
            cached_tokens=counts.tokens_cached,
            ttft_s_cold=round(cold.ttft_s, 4),
            ttft_s_warm=round(warm.ttft_s, 4),
            total_s_cold=round(cold.total_s, 4),
            total_s_warm=round(warm.total_s, 4),
            tokens_identical=cold.tokens == warm.tokens,
            misses=counts.blocks_missed,
            retries=retries_up + store.stats().retries,
        )


def generate(
    model: PreTrainedModel,
    ids: list[int],
    new_tokens: int,
    *,
    manager: KVCManager | None = None,
    cache: DynamicCache | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Generate exactly `new_tokens` tokens greedily; with a manager, start from the cache that it has of the prompt.

    Args:
        model: A causal language model.
        ids: The prompt's token ids.
        new_tokens: At least 1.
        manager: Asked for the prompt's cache, within the measured time.
        cache: Cache of a beginning of the prompt, for a run without a manager. The run changes it.
        progress: Called with tokens done and wanted.
    """
    clock = _Clock(new_tokens, progress)
    start = time.perf_counter()
    prompt = torch.tensor([ids], device=model.device)
    if manager is not None:
        cache = manager.get_cache(ids)
    output: Any = model.generate(  # type: ignore[operator]  # a mixin that the type checker does not see
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        past_key_values=DynamicCache(config=model.config) if cache is None else cache,
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
        num_beams=1,
        streamer=clock,
        return_dict_in_generate=True,
    )
    return Run(
        tokens=output.sequences[0, len(ids) :].tolist(),
        ttft_s=clock.times[1] - start,
        total_s=clock.times[-1] - start,
        cache=output.past_key_values,
    )


def _warm_up(model: PreTrainedModel, ids: list[int]) -> None:
    """Pay for what any first run costs: threads, memory, kernels."""
    generate(model, ids[:WARM_UP_TOKENS], 2)


def demo_table(result: DemoResult, options: DemoOptions, constellation: Constellation) -> Table:
    """Return a table of the figures."""
    table = Table(title=f"{result.prompt_tokens:,} tokens of prompt, {options.new_tokens} new ones, codec {options.codec}")
    for column in ("", "without cache", "with cache"):
        table.add_column(column, justify="right" if column else "left")
    rows: list[tuple[str, Any, Any]] = [
        ("time to first token, s", f"{result.ttft_s_cold:.2f}", f"{result.ttft_s_warm:.2f}"),
        (f"time to {options.new_tokens} tokens, s", f"{result.total_s_cold:.2f}", f"{result.total_s_warm:.2f}"),
        ("prompt tokens computed", f"{result.prompt_tokens:,}", f"{result.prompt_tokens - result.cached_tokens:,}"),
        ("blocks in the sky", "", f"{result.blocks:,}"),
        ("chunks", "", f"{result.chunks:,}"),
        ("satellites", "", f"{result.satellites} ({result.planes} planes x {result.slots} slots)"),
        ("satellites used", "", min(constellation.cache.servers, result.chunks)),
        ("bytes up", "", f"{result.bytes_up:,}"),
        ("bytes down", "", f"{result.bytes_down:,}"),
        ("blocks missed", "", result.misses),
        ("retries", "", result.retries),
        ("tokens", "", "identical" if result.tokens_identical else "DIFFERENT"),
    ]
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    return table
