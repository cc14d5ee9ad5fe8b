"""What a sky holds of a model, from the numbers of its configuration."""

from typing import Any

import pytest

from skymemory.common.defaults import MOST_STORE_MIB
from skymemory.sky.constellation import Constellation
from skymemory.store.sizing import ModelShape, ShapeError, blocks_held, model_shape, servers_for, store_mib_for

BLOCKS = 20
LLAMA_8B = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "torch_dtype": "bfloat16",
}


def sky(servers: int = 10, store_mib: int = 16, chunk_bytes: int = 6000, parity: int = 0) -> Constellation:
    given = {"cache": {"servers": servers, "parity": parity, "chunk_bytes": chunk_bytes}, "satellite": {"store_mib": store_mib}}
    return Constellation.model_validate(given, strict=False)


def test_an_8b_model() -> None:
    shape = model_shape(LLAMA_8B)
    assert shape == ModelShape(32, 8, 128, "bfloat16")
    assert shape.token_bytes(128) == 131_072
    assert shape.token_bytes(128, "int8") == 66_560  # as measured with the codec itself
    assert shape.token_bytes(128, "int4") == 34_816
    assert shape.token_bytes(128, "int4g16") == 49_152
    assert shape.token_bytes(1, "int4g32") == 40_960  # in a short block too


@pytest.mark.parametrize(
    ("changes", "token_bytes"),
    [
        ({"head_dim": 64}, 65_536),
        ({"num_key_value_heads": None}, 524_288),
        ({"dtype": "float32"}, 262_144),
        ({"num_hidden_layers": None, "n_layer": 2}, 8192),
        ({"sliding_window": 4096}, 131_072),
    ],
)
def test_what_decides(changes: dict[str, Any], token_bytes: int) -> None:
    assert model_shape(LLAMA_8B | changes).token_bytes(128) == token_bytes


def test_the_dtype_of_the_cache() -> None:
    assert model_shape(LLAMA_8B, "fp8").token_bytes(128) == 65_536


def test_the_text_part_of_a_model_with_images() -> None:
    assert model_shape({"text_config": LLAMA_8B, "vision_config": {}}).token_bytes(128) == 131_072


def test_a_window_is_told() -> None:
    assert model_shape(LLAMA_8B | {"sliding_window": 4096}).window == 4096
    assert model_shape(LLAMA_8B | {"sliding_window": 4096, "use_sliding_window": False}).window is None


def test_latent_attention() -> None:
    shape = model_shape(LLAMA_8B | {"kv_lora_rank": 512, "qk_rope_head_dim": 64})
    assert shape.token_bytes(128) == 32 * 576 * 2
    with pytest.raises(ShapeError, match=r"int8 needs keys and values of heads, .* latent attention .* allowed is raw"):
        shape.token_bytes(128, "int8")


def test_groups_that_do_not_fit_the_heads() -> None:
    shape = model_shape(LLAMA_8B | {"head_dim": 80})
    assert shape.token_bytes(128, "int4g16") == 32 * 2 * 8 * 80 * (1 / 2 + 4 / 16)
    with pytest.raises(ShapeError, match="int4g32 needs heads of a multiple of 32 channels, and this model's have 80"):
        shape.token_bytes(128, "int4g32")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "num_hidden_layers = None; needed is a whole number from 1"),
        (LLAMA_8B | {"num_hidden_layers": -1}, "num_hidden_layers = -1"),
        (LLAMA_8B | {"num_key_value_heads": [8, 4]}, r"key-value heads are \[8, 4\]"),
        (LLAMA_8B | {"torch_dtype": None}, "names no dtype; give one with --dtype"),
        (LLAMA_8B | {"torch_dtype": "int4"}, "dtype is 'int4'; allowed are float64"),
        (LLAMA_8B | {"is_encoder_decoder": True}, "has an encoder"),
        (LLAMA_8B | {"mamba_d_state": 16}, "recurrent layers"),
        (LLAMA_8B | {"layer_types": ["linear_attention", "full_attention"]}, r"recurrent layers \(linear_attention\)"),
        (LLAMA_8B | {"layers_block_type": ["mamba", "attention"]}, r"recurrent layers \(mamba\)"),
    ],
)
def test_what_cannot_be_told(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        model_shape(config)


def test_ten_stores_hold_nine_large_blocks() -> None:
    assert blocks_held(sky(), 16_777_344) == 9
    assert blocks_held(sky(), 1) == blocks_held(sky(), 6000)
    assert blocks_held(sky(), 1 << 30) == 0


@pytest.mark.parametrize("block_bytes", [1, 6000, 60_000, 1_000_003, 16_777_344])
@pytest.mark.parametrize("servers", [1, 7, 10])
def test_what_is_needed_is_enough_and_one_less_is_not(block_bytes: int, servers: int) -> None:
    needed = store_mib_for(sky(servers), block_bytes, BLOCKS)
    assert blocks_held(sky(servers, needed), block_bytes) >= BLOCKS
    assert needed == 1 or blocks_held(sky(servers, needed - 1), block_bytes) < BLOCKS


def test_more_servers_where_stores_cannot_be_larger() -> None:
    needed = servers_for(sky(), 16_777_344, 1000)
    assert needed is not None
    assert store_mib_for(sky(needed), 16_777_344, 1000) <= MOST_STORE_MIB < store_mib_for(sky(needed - 1), 16_777_344, 1000)
    assert servers_for(sky(), 16_777_344, 100_000) is None
    large = sky().replace(constellation={"planes": 40, "slots": 40})
    assert servers_for(large, 16_777_344, 100_000) is None  # a satellite has no room for more
    assert servers_for(large.replace(cache={"parity": 2}), 16_777_344, 10_000) is None  # nor has a row
