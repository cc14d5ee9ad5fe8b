import pytest
from transformers import LlamaConfig

from skymemory.bench.prefix import BLOCKS, NEW_TOKENS, run_prefix_bench, tiny_llama
from skymemory.demo.model import random_llama
from skymemory.prompt.codecs import get_codec
from skymemory.sky.constellation import Constellation

pytestmark = pytest.mark.model


def test_each_codec_has_its_row() -> None:
    sky = Constellation().replace(constellation={"planes": 3, "slots": 5}, cache={"centre": [2, 3]})
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=300,
    )
    seen: list[tuple[int, int]] = []
    report = run_prefix_bench(
        sky, ["raw", "int8"], rounds=2, config=config, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert list(report["codecs"]) == ["raw", "int8"]
    assert (report["servers"], report["chunk_bytes"]) == (10, 6000)
    raw, int8 = report["codecs"]["raw"], report["codecs"]["int8"]
    assert raw["cached_tokens"] == int8["cached_tokens"] == BLOCKS * 128
    assert raw["same_tokens"] == NEW_TOKENS
    assert raw["block_bytes"] > 2 * 2 * 2 * 128 * 16 * 2 > int8["block_bytes"]
    assert all(row[name] > 0 for row in (raw, int8) for name in ("without_s", "with_s", "ttft_with_s", "get_s"))


def test_the_model_has_the_shape_of_tinyllama() -> None:
    config = tiny_llama()
    block = (config.num_hidden_layers, 2, config.num_key_value_heads, 128, config.head_dim)
    weights = random_llama(LlamaConfig(**{**config.to_dict(), "num_hidden_layers": 1, "vocab_size": 8}), seed=1)
    layer = sum(weight.numel() for weight in weights.model.layers.parameters())
    assert 1.0e9 < layer * config.num_hidden_layers + 2 * config.vocab_size * config.hidden_size < 1.2e9
    assert get_codec("raw").layer_bytes(block, weights.dtype) * block[0] == 2 * 2_883_584  # float32 here, bf16 there
