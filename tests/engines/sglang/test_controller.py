"""SGLang's own controller of the cache over our backend: its threads back up and prefetch. What its scheduler does with a GPU is
done by hand: it takes the answer to a question, makes room, and lets the pages come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.agents import AgentProcess

pytestmark = pytest.mark.engines

PAGE = 4
PAGES = 12
WAIT_S = 60


@pytest.fixture(scope="module")
def alone() -> Iterator[Any]:
    """A group of one process."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture
def make_controller(
    alone: Any, agent: AgentProcess, make_pool: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> Iterator[Callable[..., Any]]:
    """Makes SGLang's controllers: `make_controller(seed=1, interface_v1=1)`; the seed is of the host pool's values."""
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    made = []

    def make(*, seed: int, interface_v1: int) -> Any:
        import torch
        from sglang.srt.managers.cache_controller import HiCacheController
        from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

        host = make_pool("page_first", seed=seed)
        device = MHATokenToKVPool(
            size=host.size,
            page_size=PAGE,
            dtype=host.dtype,
            head_num=host.head_num,
            head_dim=host.head_dim,
            layer_num=host.layer_num,
            device="cpu",
            enable_memory_saver=False,
        )
        told = {
            "backend_name": "skymemory",
            "module_path": "skymemory.engines.sglang",
            "class_name": "SkyMemoryStorage",
            "interface_v1": interface_v1,
            "socket": str(agent.socket),
        }
        controller = HiCacheController(
            PagedTokenToKVPoolAllocator(host.size, PAGE, torch.bfloat16, "cpu", device, need_sort=False),
            host,
            PAGE,
            alone,
            threading.Event(),
            storage_backend="dynamic",
            prefetch_threshold=PAGE,
            model_name="tiny",
            storage_backend_extra_config=told,
        )
        made.append(controller)
        assert controller.storage_backend.kv.carrier.client.wait_connected(10)
        return controller

    yield make
    for controller in made:
        controller.detach_storage_backend()


@pytest.mark.parametrize("interface_v1", [1, 0])
def test_what_one_controller_backs_up_another_prefetches(interface_v1: int, make_controller: Callable) -> None:
    import torch
    from sglang.srt.mem_cache.utils import get_storage_hash_str

    tokens = [7 + interface_v1, *range(1, PAGES * PAGE)]
    writer = make_controller(seed=1, interface_v1=interface_v1)
    place = writer.mem_pool_host.alloc(len(tokens))
    writer.write_storage(place, tokens, get_storage_hash_str(tokens, page_size=PAGE))
    assert writer.ack_backup_queue.get(timeout=WAIT_S).completed_tokens == len(tokens)

    reader = make_controller(seed=2, interface_v1=interface_v1)
    reader.prefetch("request", [*tokens, *range(2 * PAGE)])
    asked = reader.prefetch_hit_queue.get(timeout=WAIT_S)
    assert asked.storage_hit_count == len(tokens)
    reader.mem_pool_host.alloc(5 * PAGE)  # so that the pages come to other places than they had
    asked.host_indices = reader.mem_pool_host.alloc(asked.storage_hit_count)
    reader.prefetch_buffer.put(asked)
    acks = [reader.ack_prefetch_queue.get(timeout=WAIT_S)]
    while not acks[-1].completed_req:
        acks.append(reader.ack_prefetch_queue.get(timeout=WAIT_S))
    assert max(ack.completed_tokens or 0 for ack in acks) == len(tokens)
    for page in range(PAGES):
        there = reader.mem_pool_host.get_data_page(int(asked.host_indices[page * PAGE]))
        assert torch.equal(there, writer.mem_pool_host.get_data_page(int(place[page * PAGE])))
