"""What tests of several commands share."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from skymemory.cli import main
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from support.commands import Run


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two small layers with its tokenizer, as `save_pretrained` writes it. Do not change it."""
    from transformers import LlamaConfig

    from skymemory.demo.model import VOCABULARY, demo_tokenizer, random_llama

    folder = tmp_path_factory.mktemp("model")
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
    )
    random_llama(config, seed=3).save_pretrained(folder)
    demo_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def run(full_sky: LocalConstellation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("segment", "list")` on a host under the shared sky, with the state folder `tmp_path`."""
    RunRecord(tmp_path).save(Running("local", full_sky.constellation, dict(full_sky.processes)))
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    return lambda *words, **more: CliRunner().invoke(main, [str(word) for word in words], **more)
