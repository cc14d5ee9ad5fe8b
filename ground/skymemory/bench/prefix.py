"""`skymem bench prefix`: measures the paper's table 3: seconds to 30 tokens without and with the cache, for each codec.

The model has the shape of TinyLlama-1.1B and random weights in bf16: 22 layers, 4 heads with keys and values of 64 channels, so
a block of 128 tokens is 2.88 MB before the codec. The prompt is 4 blocks and a few tokens, chunks are 6 kB on 10 satellites.
"""

import random
import statistics
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch
from transformers import LlamaConfig

from skymemory.common.progress import Progress, no_progress
from skymemory.demo.model import demo_tokenizer, random_llama
from skymemory.demo.run import generate
from skymemory.prompt.codecs import codec_names
from skymemory.prompt.manager import KVCManager
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port

BLOCKS = 4
MORE_TOKENS = 8
"""Tokens of the prompt after its last full block."""
NEW_TOKENS = 30
ROUNDS = 3
SEED = 1


def tiny_llama() -> LlamaConfig:
    """Return the sizes of TinyLlama-1.1B."""
    return LlamaConfig(
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=22,
        num_attention_heads=32,
        num_key_value_heads=4,
        vocab_size=32000,
        max_position_embeddings=2048,
    )


def run_prefix_bench(
    constellation: Constellation,
    codecs: Sequence[str] = codec_names(),
    rounds: int = ROUNDS,
    config: LlamaConfig | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure without and with the cache in turn, and take medians over `rounds`.

    Args:
        constellation: Started as local processes for the bench.
        codecs: Names of codecs.
        rounds: At least 1.
        config: Sizes of the model; None: TinyLlama's.
        progress: Called with rounds done and wanted, over all codecs.

    Returns:
        The object that `--json` prints, for each codec: `without_s` and `with_s` (to 30 tokens), `ttft_without_s`,
        `ttft_with_s`, `get_s` (the part of it that finds, fetches and decodes the blocks), `speedup_percent`, `block_bytes`,
        `cached_tokens`, `same_tokens` (tokens until the first difference, of 30). They are compared with those of a run that
        begins from the first run's own cache, cut to as many tokens: a GPU rounds otherwise if it computes the prompt at once.
        Random weights leave no distance between the best tokens, so any rounding soon picks another one; a trained model keeps
        to its text far longer.

    Raises:
        StartError: The constellation does not start.
    """
    model = random_llama(config or tiny_llama(), seed=SEED, dtype=torch.bfloat16)
    torch.nn.Module.to(model, "cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = demo_tokenizer()
    random_ids = random.Random(SEED)
    ids = [random_ids.randrange(model.config.vocab_size) for _ in range(BLOCKS * 128 + MORE_TOKENS)]
    generate(model, ids, 2)  # a process's first run is slow
    paper = constellation.replace(cache={"servers": 10, "parity": 0, "chunk_bytes": 6000, "block_tokens": 128})
    sky = paper.replace(network={"port": free_port(paper)})
    report: dict[str, Any] = {
        "prompt_tokens": len(ids),
        "new_tokens": NEW_TOKENS,
        "rounds": rounds,
        "servers": sky.cache.servers,
        "chunk_bytes": sky.cache.chunk_bytes,
    }
    runs: dict[str, list[Any]] = {codec: [] for codec in codecs}
    with LocalConstellation(sky), SkyStore(sky) as store:
        managers = {codec: KVCManager(model, tokenizer, store, codec=codec) for codec in codecs}
        for step in range(rounds):
            for number, (codec, manager) in enumerate(managers.items()):  # taking turns, other load affects all alike
                without = generate(model, ids, NEW_TOKENS)
                manager.add_blocks(ids, without.cache)
                before = manager.statistics
                warm = generate(model, ids, NEW_TOKENS, manager=manager)
                after = manager.statistics
                without.cache.crop(after.tokens_cached - before.tokens_cached - without.cache.get_seq_length())
                wanted = generate(model, ids, NEW_TOKENS, cache=without.cache)
                runs[codec].append((without, warm, before, after, wanted))
                progress(step * len(managers) + number + 1, rounds * len(managers))
    report["codecs"] = {codec: _row(of_codec) for codec, of_codec in runs.items()}
    return report


def _row(runs: list[Any]) -> dict[str, Any]:
    def median(*values: float) -> float:
        return round(statistics.median(values), 4)

    _, _, before, after, _ = runs[0]
    without_s = median(*(cold.total_s for cold, *_ in runs))
    with_s = median(*(warm.total_s for _, warm, *_ in runs))
    return {
        "without_s": without_s,
        "with_s": with_s,
        "speedup_percent": round(100 * (1 - with_s / without_s), 1),
        "ttft_without_s": median(*(cold.ttft_s for cold, *_ in runs)),
        "ttft_with_s": median(*(warm.ttft_s for _, warm, *_ in runs)),
        "get_s": median(*(_get_s(end) - _get_s(start) for _, _, start, end, _ in runs)),
        "block_bytes": before.bytes_up // max(1, before.blocks_stored),
        "cached_tokens": after.tokens_cached - before.tokens_cached,
        "same_tokens": min(_same(wanted.tokens, warm.tokens) for _, warm, _, _, wanted in runs),
    }


def _get_s(counts: Any) -> float:
    return float(counts.find_s + counts.get_s + counts.decode_s)


def _same(first: list[int], second: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=True)))
