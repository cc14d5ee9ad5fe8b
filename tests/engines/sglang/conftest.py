"""SGLang's own classes on a host without a GPU: its factory, its pools in host memory, its controller of the cache."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agents import AgentProcess, tell_up

PAGE = 4
"""tokens"""
LAYERS, HEADS, HEAD_DIM = 3, 2, 8
TOKENS = 256
"""of the pools"""

_VISION = ("", ".io", ".transforms", ".transforms.functional", ".transforms.v2", ".transforms.v2.functional")


class _Absent(types.ModuleType):
    """Stands in for torchvision, which models of pictures need and whose wheel on PyPI needs CUDA."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=HEADS * HEAD_DIM,
        intermediate_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
    )
    folder = tmp_path_factory.mktemp("model")
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sglang(model_folder: Path) -> types.ModuleType:
    """SGLang, configured as its scheduler process is."""
    import transformers.utils  # noqa: F401  # looks whether there is torchvision, before there is the stand-in

    for name in _VISION:
        module = _Absent("torchvision" + name)
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, is_package=True)
        module.__path__ = []
        sys.modules.setdefault(module.__name__, module)
    import sglang
    from sglang.srt.runtime_context import SpawnRanks, publish
    from sglang.srt.server_args import ServerArgs

    publish(ServerArgs(model_path=str(model_folder), device="cpu"), role="scheduler", ranks=SpawnRanks(world_rank=0))
    return sglang


@pytest.fixture
def make_pool(sglang: types.ModuleType) -> Callable[..., Any]:
    """Makes SGLang's host pools: `make_pool("page_first", seed=1)`."""

    def make(layout: str, *, seed: int = 1, layers: int = LAYERS, head_dim: int = HEAD_DIM) -> Any:
        import torch
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
        from sglang.srt.mem_cache.pool_host.mha import MHATokenToKVPoolHost

        device = MHATokenToKVPool(
            size=TOKENS,
            page_size=PAGE,
            dtype=torch.bfloat16,
            head_num=HEADS,
            head_dim=head_dim,
            layer_num=layers,
            device="cpu",
            enable_memory_saver=False,
        )
        host = MHATokenToKVPoolHost(
            device.get_device_pool_infos()[0].buffer_info,
            host_to_device_ratio=1.0,
            host_size=0,
            page_size=PAGE,
            layout=layout,
            pin_memory=False,
            device_capacity_tokens=TOKENS,
            start_layer=0,
            end_layer=layers,
        )
        host.kv_buffer.copy_(torch.randn(host.kv_buffer.shape, generator=torch.Generator().manual_seed(seed)))
        return host

    return make


@pytest.fixture(scope="session")
def agent(full_sky: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An agent of the paper's constellation. Do not kill it."""
    folder = tmp_path_factory.mktemp("a")
    tell_up(folder, full_sky)
    with AgentProcess(folder) as agent:
        agent.wait_ready()
        yield agent


@pytest.fixture
def make_storage(
    sglang: types.ModuleType, agent: AgentProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Makes our backend as SGLang does: `make_storage(pool, tp_rank=1, extra={"arena_mib": 1})`. Waits for the agent."""
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
    from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory

    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    made = []

    def make(pool: Any, *, extra: dict[str, Any] | None = None, **config: Any) -> Any:
        told = {
            "backend_name": "skymemory",
            "module_path": "skymemory.engines.sglang",
            "class_name": "SkyMemoryStorage",
            "interface_v1": 1,
            "socket": str(agent.socket),
            **(extra or {}),
        }
        ranks = {"tp_rank": 0, "tp_size": 1, "pp_rank": 0, "pp_size": 1, "attn_cp_rank": 0, "attn_cp_size": 1}
        rest = {"is_mla_model": False, "enable_storage_metrics": False, "is_page_first_layout": pool.layout == "page_first"}
        all_of_it = {**ranks, **rest, "model_name": "tiny", "extra_config": told, **config}
        storage = StorageBackendFactory.create_backend("dynamic", HiCacheStorageConfig(**all_of_it), pool)
        made.append(storage)
        storage.register_mem_pool_host(pool)
        storage.on_host_pools_registered()
        assert storage.kv.carrier.client.wait_connected(10)
        return storage

    yield make
    for storage in made:
        storage.close()
