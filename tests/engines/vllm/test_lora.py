"""LoRA adapters in vLLM: their blocks are theirs, by the weights that computed them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

BLOCKS = 3
LONG = BLOCKS * BLOCK_TOKENS + 40
RANK = 8


def write_adapter(folder: Path, seed: int) -> Path:
    """An adapter of the small Llama, as PEFT saves it: queries and values with random weights."""
    import torch
    from safetensors.torch import save_file

    random = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(3):
        for name, outputs in (("q_proj", 128), ("v_proj", 64)):
            place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{place}.lora_A.weight"] = torch.randn(RANK, 128, generator=random) / 3
            tensors[f"{place}.lora_B.weight"] = torch.randn(outputs, RANK, generator=random) / 3
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "target_modules": ["q_proj", "v_proj"], "bias": "none"}
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    folder.joinpath("adapter_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return {name: write_adapter(folder / name, seed) for seed, name in enumerate(("style", "tone", "late"))}


@pytest.fixture(scope="module")
def engine(start_engine: Callable[..., Engine]) -> Engine:
    return start_engine(enable_lora=True, max_lora_rank=RANK)


def stored(engine: Engine, prompt: list[int], adapter: Path | None) -> list[int]:
    """Have a prompt computed, and its blocks in the sky. Its tokens."""
    return engine.stored(prompt, BLOCKS, adapter=adapter)


def test_model_and_adapters_have_blocks_of_their_own(engine: Engine, adapters: dict[str, Path]) -> None:
    prompt = words(LONG, 1)
    of_whom = [None, adapters["style"], adapters["tone"]]
    tokens = [stored(engine, prompt, adapter) for adapter in of_whom]  # each finds nothing of those before
    assert len(set(map(tuple, tokens))) == 3
    assert [engine.loaded(prompt, BLOCKS, adapter=adapter) for adapter in of_whom] == tokens


def test_an_adapter_that_is_replaced_before_its_first_request_is_not_cached(engine: Engine, adapters: dict[str, Path]) -> None:
    prompt, adapter = words(LONG, 2), adapters["late"]
    assert engine.ask("load", adapter=str(adapter))["done"]
    write_adapter(adapter, 10)
    before = engine.metrics()["skymemory_saved_blocks"]
    first = engine.fresh(prompt, adapter=adapter)
    assert first["cached"] == [0]
    again = engine.fresh(prompt, adapter=adapter)
    assert (again["tokens"], again["cached"]) == (first["tokens"], [0])
    stored(engine, words(LONG, 3), None)
    assert engine.metrics()["skymemory_saved_blocks"] == before + BLOCKS  # of the last one only
    assert "blocks of adapter late are not cached" in engine.log()


def test_another_process_finds_blocks_of_the_same_weights(
    engine: Engine, start_engine: Callable[..., Engine], adapters: dict[str, Path]
) -> None:
    prompt = words(LONG, 4)
    style = stored(engine, prompt, adapters["style"])
    tone = stored(engine, prompt, adapters["tone"])
    engine.close()
    write_adapter(adapters["tone"], 11)

    second = start_engine(enable_lora=True, max_lora_rank=RANK, is_one_process=True)
    assert second.loaded(prompt, BLOCKS, adapter=adapters["style"]) == style  # of the first one
    assert second.until(skymemory_found_blocks=1)["skymemory_found_blocks"] % BLOCKS == 0
    other = second.fresh(prompt, adapter=adapters["tone"])
    assert other["cached"] == [0]
    assert other["tokens"] != [tone]
