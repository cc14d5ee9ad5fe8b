"""Kinds of models: each is exact, or vLLM does not start and says what helps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skymemory.engines.vllm.settings import UnsupportedError
from support.engine_models import LATENT, save_model
from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

BEGINNING = words(2 * BLOCK_TOKENS, 1)
PROMPT = [*BEGINNING, *words(BLOCK_TOKENS + 40, 2)]
"""Much of it is computed behind what is loaded: too few tokens would hide that vLLM does not look at the loaded ones."""


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DeepSeek V2."""
    return save_model(tmp_path_factory.mktemp("latent"), "DeepseekV2", **LATENT)


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Mistral whose layers all look at the last tokens only."""
    sizes: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 32, "sliding_window": 4 * BLOCK_TOKENS}
    return save_model(tmp_path_factory.mktemp("windowed"), "Mistral", **sizes)


def assert_exact(engine: Engine, has_own_cache: bool = True) -> None:
    """Check that a prompt of which the beginning is loaded gives the tokens of one without the sky.

    Without it the prompt is cut at the same place, if vLLM has a cache of its own: sums in another order may differ.
    """
    if has_own_cache:
        engine.fresh([*BEGINNING, *words(10, 3)], salt="own")
    own = engine.generate(PROMPT, salt="own")
    assert own["cached"] == [len(BEGINNING) if has_own_cache else 0]
    assert len(set(own["tokens"][0])) > 3  # a model that says the same to everything shows nothing
    engine.stored([*BEGINNING, *words(10, 3)], 2)
    assert engine.loaded(PROMPT, 2) == own["tokens"][0]


def refusal(start: Callable[..., Engine], model: Path, folder: Path, **settings: Any) -> str:
    """Return the last line that vLLM says when it does not start with a model."""
    with pytest.raises(AssertionError, match="no answer"):
        start(model=str(model), is_one_process=True, **settings)
    log = max(folder.glob("engine-*.log"), key=lambda file: file.stat().st_mtime_ns).read_text(errors="replace")
    return next(line for line in reversed(log.splitlines()) if UnsupportedError.__name__ in line)


def test_a_model_with_latent_attention_is_refused_where_loaded_blocks_are_not_read(
    start_engine: Callable[..., Engine], latent: Path, agent: Any
) -> None:
    if "amx_tile" in Path("/proc/cpuinfo").read_text():
        pytest.skip("vLLM reads loaded blocks of latent attention on a CPU with AMX")
    said = refusal(start_engine, latent, agent.folder, num_gpu_blocks_override=128)
    assert "prefix caching is off" in said
    assert "VLLM_MLA_DISABLE=1" in said


def test_a_model_with_latent_attention_is_exact_without_its_kernels(
    start_engine: Callable[..., Engine], latent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_MLA_DISABLE", "1")
    assert_exact(start_engine(model=str(latent), is_one_process=True))


def test_a_model_with_full_attention_is_exact_without_prefix_caching(start_engine: Callable[..., Engine], tmp_path: Path) -> None:
    model = save_model(tmp_path, "Llama", num_key_value_heads=2, head_dim=32)
    assert_exact(start_engine(model=str(model), enable_prefix_caching=False, is_one_process=True), has_own_cache=False)


def test_a_model_whose_layers_all_have_windows_is_refused_and_exact_within_its_window(
    start_engine: Callable[..., Engine], windowed: Path, agent: Any
) -> None:
    said = refusal(start_engine, windowed, agent.folder)
    assert f"a sliding window (of {4 * BLOCK_TOKENS} tokens)" in said
    assert "supported is --disable-sliding-window" in said
    assert_exact(
        start_engine(model=str(windowed), disable_sliding_window=True, max_model_len=4 * BLOCK_TOKENS, is_one_process=True)
    )
