"""What tests of several engines share: a small random Llama, and a sky for each test module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.vllm_engine import VOCABULARY

TEST_S = 3600
"""of a test and what it starts; each wait in it has a bound of its own (`support.progress`)"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of engines more time than others have."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_S))


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
def deadline_ms() -> int:
    """Of the sky; for a folder of tests to change."""
    return Constellation().cache.deadline_ms


@pytest.fixture(scope="module")
def sky(deadline_ms: int) -> Iterator[LocalConstellation]:
    """Three planes of five satellites, nine of them servers."""
    sections = {"constellation": {"planes": 3, "slots": 5}, "cache": {"servers": 9, "centre": [2, 3], "deadline_ms": deadline_ms}}
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local
