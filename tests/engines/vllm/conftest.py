"""A small random Llama, an agent over real satellites, and vLLM engines. All of a test module share the sky and the agent."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skymemory.config import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.vllm_engine import BLOCK_TOKENS, CONNECTOR, VOCABULARY, Agent, Engine, as_toml


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of three layers with random weights, and a tokenizer of numbered words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model") / "small-llama"
    names = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(VOCABULARY - 3))]
    tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        dtype="float32",
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sky() -> Iterator[LocalConstellation]:
    """Three planes of five satellites, nine of them servers."""
    sections = {"constellation": {"planes": 3, "slots": 5}, "cache": {"servers": 9, "centre": [2, 3]}}
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local


@pytest.fixture(scope="module")
def agent(sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent over `sky`."""
    folder = tmp_path_factory.mktemp("agent")
    file = folder / "constellation.toml"
    file.write_text(as_toml(sky.constellation.model_dump(mode="json", by_alias=True, exclude_none=True)))
    agent = Agent(file, folder)
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture(scope="module")
def start_engine(model: Path, agent: Agent) -> Iterator[Callable[..., Engine]]:
    """Start a vLLM: `start_engine(block_size=64, extra={...})`, arguments of `LLM` and of kv_connector_extra_config."""
    with ExitStack() as stack:

        def start(*, extra: dict[str, Any] | None = None, recording: bool = False, **settings: Any) -> Engine:
            # What is shown here does not depend on how busy the machine is, and so small a model computes fast
            patient = {"always_fetch": True, "lookup_timeout_s": 60, "load_timeout_s": 120}
            connector = {**CONNECTOR, "kv_connector_extra_config": patient | (extra or {})}
            if recording:
                connector["kv_connector_module_path"] = "support.vllm_recording"
            given = {
                "model": str(model),
                "dtype": "float32",
                "max_model_len": 1024,
                "block_size": BLOCK_TOKENS,
                "enforce_eager": True,
                "disable_log_stats": False,
                "num_gpu_blocks_override": 16,
                "kv_transfer_config": connector,
                **settings,
            }
            engine = Engine(agent.folder, given)
            stack.callback(engine.close)
            engine.wait()
            return engine

        yield start
