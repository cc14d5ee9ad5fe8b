"""Our storage backend behind the interface of SGLang's wheel, with real agents and satellites. SGLang's engine needs a GPU."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.store.sky_store import SkyStore
from support.agents import AgentProcess, tell_up
from support.waiting import wait_until

pytestmark = pytest.mark.engines

PAGE = 4
_prompts = itertools.count()


def hashes(pages: int) -> list[str]:
    """SGLang's hashes of the pages of a prompt that no other test has."""
    from sglang.srt.mem_cache.utils import get_hash_str

    first = next(_prompts)
    found: list[str] = []
    for page in range(pages):
        found.append(get_hash_str([1000 + first, page, 2, 3], found[-1] if found else None))
    return found


def indices(pages: int, first: int = 0) -> Any:
    import torch

    return torch.arange(first * PAGE, (first + pages) * PAGE)


def page_bytes(pool: Any, first: int, pages: int) -> list[bytes]:
    import torch

    flat = [pool.get_data_page(page * PAGE).contiguous() for page in range(first, first + pages)]
    return [page.view(torch.uint8).numpy().tobytes() for page in flat]


LAYOUTS = ["layer_first", "page_first", "page_first_direct", "page_head"]


def test_the_factory_of_the_wheel_makes_it(make_pool: Callable, make_storage: Callable) -> None:
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

    storage = make_storage(make_pool("page_first"))
    assert isinstance(storage, HiCacheStorage)
    assert not type(storage).__abstractmethods__
    assert storage.get_stats() is None
    storage.clear()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pages_come_back_into_another_pool_at_other_places(layout: str, make_pool: Callable, make_storage: Callable) -> None:
    pool, other = make_pool(layout, seed=1), make_pool(layout, seed=2)
    keys = hashes(5)
    storage = make_storage(pool)
    assert storage.batch_exists(keys) == 0
    assert storage.batch_set_v1(keys, indices(5)) == [True] * 5
    reader = make_storage(other)
    assert reader.batch_exists(keys) == 5
    assert reader.exists(keys[3])
    before = page_bytes(other, 0, 8)
    assert reader.batch_get_v1(keys, indices(5, first=8)) == [True] * 5
    assert page_bytes(other, 8, 5) == page_bytes(pool, 0, 5)
    assert page_bytes(other, 0, 8) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_interface_v1_pages_are_tensors(layout: str, make_pool: Callable, make_storage: Callable) -> None:
    import torch

    pool = make_pool(layout)
    storage = make_storage(pool, extra={"interface_v1": 0})
    keys = hashes(3)
    values = [pool.get_data_page(page * PAGE).contiguous() for page in range(3)]
    assert storage.batch_set(keys, values)
    targets = [pool.get_dummy_flat_data_page() for _ in range(4)]
    got = storage.batch_get([*keys, hashes(1)[0]], targets)
    assert [None if one is None else torch.equal(one, value) for one, value in zip(got, [*values, None], strict=True)] == [
        True,
        True,
        True,
        None,
    ]
    assert torch.equal(storage.get(keys[1]), values[1])
    (lone,) = hashes(1)
    assert storage.set(lone, values[0])
    assert storage.exists(lone)
    assert not storage.set(lone)
    assert make_storage(make_pool(layout)).batch_exists(keys) == 0, "the other interface orders bytes in another way"


def test_only_pages_from_the_first_one_on_count(make_pool: Callable, make_storage: Callable) -> None:
    pool = make_pool("page_first")
    storage = make_storage(pool)
    keys = hashes(6)
    there = [0, 1, 2, 4]
    for page in there:
        assert storage.batch_set_v1([keys[page]], indices(1, first=page)) == [True]
    assert storage.batch_exists(keys) == 3
    got = storage.batch_get_v1(keys, indices(6, first=10))
    assert got == [page in there for page in range(6)]


def test_pages_after_a_prefix(make_pool: Callable, make_storage: Callable) -> None:
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorageExtraInfo

    storage = make_storage(make_pool("page_first"))
    keys = hashes(6)
    assert all(storage.batch_set_v1(keys, indices(6)))
    assert storage.batch_exists(keys[2:5], HiCacheStorageExtraInfo(prefix_keys=keys[:2])) == 3
    assert storage.batch_exists(keys[2:5], HiCacheStorageExtraInfo(prefix_keys=hashes(2))) == 0


def test_who_computes_otherwise_finds_nothing(make_pool: Callable, make_storage: Callable, tmp_path: Any) -> None:
    pool = make_pool("page_first")
    keys = hashes(2)
    assert all(make_storage(pool).batch_set_v1(keys, indices(2)))
    secret = tmp_path / "secret"
    secret.write_bytes(b"ours")
    assert make_storage(pool).batch_exists(keys) == 2
    assert make_storage(pool, tp_rank=1, tp_size=2).batch_exists(keys) == 0
    assert make_storage(pool, tp_rank=0, tp_size=2).batch_exists(keys) == 0
    assert make_storage(pool, pp_rank=1, pp_size=2).batch_exists(keys) == 0
    assert make_storage(make_pool("page_first", layers=2)).batch_exists(keys) == 0
    assert make_storage(make_pool("page_first_direct")).batch_exists(keys) == 0
    assert make_storage(pool, extra={"tenant_secret_file": str(secret)}).batch_exists(keys) == 0


@pytest.fixture
def told(sglang: Any, model_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """`told(adapters, name=value)`: servers from here on have these adapters, and this in their model's config.json."""
    from sglang.srt import runtime_context
    from sglang.srt.server_args import ServerArgs

    numbers = itertools.count()

    def tell(adapters: list[Any], **changed: Any) -> None:
        folder = tmp_path / f"same-weights-{next(numbers)}"  # SGLang reads a folder's configuration once
        shutil.copytree(model_folder, folder)
        config = folder / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), **changed}))
        served = ServerArgs(model_path=str(folder), device="cpu")
        monkeypatch.setattr(runtime_context, "get_server_args", lambda: served)
        monkeypatch.setattr(runtime_context, "get_lora", lambda: SimpleNamespace(lora_paths=adapters), raising=False)

    return tell


def test_where_a_model_lies_is_not_asked_and_how_it_is_configured_is(
    make_pool: Callable, make_storage: Callable, told: Callable
) -> None:
    pool, keys = make_pool("page_first"), hashes(2)
    assert all(make_storage(pool).batch_set_v1(keys, indices(2)))
    told([])
    assert make_storage(pool).batch_exists(keys) == 2
    told([], rope_theta=70000.0, rope_parameters={"rope_type": "default", "rope_theta": 70000.0})
    assert make_storage(pool).batch_exists(keys) == 0


def test_other_adapters_under_the_same_names_find_nothing(
    make_pool: Callable, make_storage: Callable, told: Callable, tmp_path: Path
) -> None:
    from sglang.srt.lora.lora_registry import LoRARef

    folder = tmp_path / "style"
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    (folder / "adapter_config.json").write_text('{"lora_alpha": 16}')
    adapters = [LoRARef(LoRARef.deterministic_id("style", str(folder)), "style", str(folder))]
    pool, keys = make_pool("page_first"), hashes(2)
    told(adapters)
    assert all(make_storage(pool).batch_set_v1(keys, indices(2)))
    assert make_storage(pool).batch_exists(keys) == 2
    (folder / "adapter_config.json").write_text('{"lora_alpha": 64}')
    assert make_storage(pool).batch_exists(keys) == 0
    (folder / "adapter_config.json").write_text('{"lora_alpha": 16}')
    (folder / "adapter_model.safetensors").write_bytes(b"others")
    assert make_storage(pool).batch_exists(keys) == 0


def test_nothing_is_stored_or_found_once_weights_are_changed(
    make_pool: Callable, make_storage: Callable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater

    pool, keys = make_pool("page_first"), hashes(2)
    storage = make_storage(pool)
    assert all(storage.batch_set_v1(keys, indices(2)))
    monkeypatch.setattr("skymemory.engines.sglang.weights_changed", threading.Event(), raising=False)
    others: Any = dict.fromkeys(["model_config", "update_model_fields", "recapture_cuda_graph", "get_model_runner"])
    updater = WeightUpdater(
        tp_rank=0,
        device="cpu",
        gpu_id=0,
        custom_weight_loaders={},
        get_model=lambda: SimpleNamespace(load_weights=lambda weights: None, modules=lambda: ()),
        **others,
    )
    monkeypatch.setattr(WeightUpdater, "_assert_weight_cache_inactive", lambda *_: None)
    for _ in range(2):
        assert updater.load_weights_from_distributed([])[0]
    assert storage.batch_exists(keys) == 0
    assert storage.batch_get_v1(keys, indices(2)) == [False] * 2
    assert storage.batch_set_v1(hashes(2), indices(2)) == [False] * 2
    assert make_storage(pool).batch_exists(keys) == 0, "attached anew"
    assert caplog.text.count("the weights are changed") == 1


def test_ranks_share_pages_of_latent_attention(make_pool: Callable, make_storage: Callable) -> None:
    pool, other = make_pool("page_first"), make_pool("page_first", seed=2)
    keys = hashes(2)
    assert all(make_storage(pool, is_mla_model=True, tp_rank=0, tp_size=2).batch_set_v1(keys, indices(2)))
    reader = make_storage(other, is_mla_model=True, tp_rank=1, tp_size=2)
    assert reader.batch_exists(keys) == 2
    assert reader.batch_get_v1(keys, indices(2)) == [True, True]


def test_a_batch_of_more_than_the_arena_holds(make_pool: Callable, make_storage: Callable) -> None:
    pool, other = (make_pool("page_first", seed=seed, head_dim=1024) for seed in (1, 2))
    storage = make_storage(pool, extra={"arena_mib": 1})
    assert 20 * storage.kv.carrier.framing.block_bytes > 1 << 20
    keys = hashes(20)
    assert all(storage.batch_set_v1(keys, indices(20)))
    assert all(make_storage(other, extra={"arena_mib": 1}).batch_get_v1(keys, indices(20)))
    assert page_bytes(other, 0, 20) == page_bytes(pool, 0, 20)
    with pytest.raises(ValueError, match="arena_mib is to be 2 or more"):
        make_storage(make_pool("page_first", head_dim=8192), extra={"arena_mib": 1})


def test_a_damaged_page_is_missing_and_stored_again(full_sky: Any, make_pool: Callable, make_storage: Callable) -> None:
    pool, other = make_pool("page_first"), make_pool("page_first", seed=2)
    storage = make_storage(pool)
    keys = hashes(4)
    assert all(storage.batch_set_v1(keys, indices(4)))
    name = storage.kv.key(keys[2])
    with SkyStore(full_sky.constellation) as store:
        data = bytearray(store.get([name])[0].data)
        data[-1] ^= 1
        store.purge([name])
        assert store.put([(name, bytes(data))])[0].ok
    reader = make_storage(other)
    before = page_bytes(other, 2, 1)
    assert reader.batch_get_v1(keys, indices(4)) == [True, True, False, True]
    assert page_bytes(other, 2, 1) == before
    assert page_bytes(other, 3, 1) == page_bytes(pool, 3, 1)
    wait_until(lambda: reader.batch_exists(keys) == 2)  # nobody waits for the purge of the damaged page
    assert all(storage.batch_set_v1(keys, indices(4)))
    assert reader.batch_get_v1(keys, indices(4)) == [True] * 4


def test_without_an_agent_all_is_missing_and_with_it_again_all_is_there(
    full_sky: Any, tmp_path_factory: pytest.TempPathFactory, make_pool: Callable, make_storage: Callable
) -> None:
    folder = tmp_path_factory.mktemp("a")
    tell_up(folder, full_sky)
    pool = make_pool("page_first")
    keys = hashes(3)
    with AgentProcess(folder) as agent:
        agent.wait_ready()
        storage = make_storage(pool, extra={"socket": str(agent.socket)})
        assert all(storage.batch_set_v1(keys, indices(3)))
        before = page_bytes(pool, 0, 9)
        agent.kill()
        assert storage.batch_exists(keys) == 0
        assert storage.batch_get_v1(keys, indices(3, first=6)) == [False] * 3
        assert storage.batch_set_v1(hashes(3), indices(3)) == [False] * 3
        assert storage.batch_get(keys, None) == [None] * 3
        assert not storage.batch_set(keys, [pool.get_data_page(0)] * 3)
        assert page_bytes(pool, 0, 9) == before
    with AgentProcess(folder) as agent:
        agent.wait_ready()
        assert storage.kv.carrier.client.wait_connected(20)
        assert storage.batch_exists(keys) == 3
        assert storage.batch_get_v1(keys, indices(3, first=6)) == [True] * 3
        storage.close()
        assert storage.batch_exists(keys) == 0


def test_nonsense_is_a_miss(make_pool: Callable, make_storage: Callable) -> None:
    storage = make_storage(make_pool("page_first"))
    keys = hashes(2)
    assert storage.batch_set_v1(keys, indices(1)) == [False, False]
    assert storage.batch_get_v1(keys, indices(5)) == [False, False]
    assert storage.batch_exists([]) == 0
    assert storage.batch_get_v1([], indices(0)) == []
    assert storage.batch_get_v1(hashes(2), indices(2)) == [False, False]


# ---- pools beside keys and values ---------------------------------------------------------------------------------------


@pytest.fixture
def beside(make_pool: Callable, make_storage: Callable) -> tuple[Any, Any, Any]:
    """A backend with a pool of recurrent state beside its own, as hybrid models have."""
    from sglang.srt.mem_cache.hicache_storage import PoolName

    pool, state = make_pool("page_first"), make_pool("page_first", seed=3, layers=1)
    storage = make_storage(pool)
    storage.register_mem_host_pool_v2(pool, PoolName.KV)
    storage.register_mem_host_pool_v2(state, PoolName.MAMBA)
    assert storage.pools["mamba"].carrier.client.wait_connected(10)
    return storage, pool, state


def test_state_beside_pages_goes_and_comes_with_them(beside: tuple[Any, Any, Any]) -> None:
    from sglang.srt.mem_cache.hicache_storage import PoolHitPolicy, PoolName, PoolTransfer

    storage, _, state = beside
    keys = hashes(4)
    assert all(storage.batch_set_v1(keys, indices(4)))

    def moved(pages: list[int], first: int) -> list[PoolTransfer]:
        where = indices(len(pages), first=first)
        return [PoolTransfer(name=PoolName.MAMBA, host_indices=where, keys=[keys[page] for page in pages])]

    asked = [PoolTransfer(name=PoolName.MAMBA, keys=[keys[3]], hit_policy=PoolHitPolicy.TRAILING_PAGES)]
    assert storage.batch_exists_v2(keys, asked).kv_hit_pages == 0
    assert storage.batch_set_v2(moved([1], 1)) == {PoolName.MAMBA: [True]}
    hit = storage.batch_exists_v2(keys, asked)
    assert (hit.kv_hit_pages, hit.restorable_prefix_pages) == (2, [2])
    assert hit.extra_pool_hit_pages == {PoolName.KV: 4, PoolName.MAMBA: 2}
    assert storage.batch_set_v2(moved([0, 2, 3], 10)) == {PoolName.MAMBA: [True] * 3}
    every = [PoolTransfer(name=PoolName.MAMBA)]
    assert storage.batch_exists_v2(keys, every).kv_hit_pages == 4
    assert storage.batch_exists_v2(keys).kv_hit_pages == 4
    assert storage.batch_get_v2(moved([1], 30)) == {PoolName.MAMBA: [True]}
    assert page_bytes(state, 30, 1) == page_bytes(state, 1, 1)


def test_transfers_that_name_no_pool_of_ours(beside: tuple[Any, Any, Any]) -> None:
    from sglang.srt.mem_cache.hicache_storage import PoolName, PoolTransfer

    storage, _, _ = beside
    keys = hashes(1)
    assert storage.batch_get_v2([PoolTransfer(name=PoolName.SWA, host_indices=indices(1), keys=keys)]) == {PoolName.SWA: [False]}
    assert storage.batch_set_v2([PoolTransfer(name=PoolName.MAMBA, keys=keys)]) == {PoolName.MAMBA: [False]}
    assert storage.batch_set_v2([PoolTransfer(name=PoolName.MAMBA)]) == {PoolName.MAMBA: []}


# ---- settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"arena_mib": 0}, "arena_mib is 0; allowed are whole numbers from 1"),
        ({"arena_mib": True}, "arena_mib is True"),
        ({"socket": 7}, "socket is 7; allowed is a path"),
        ({"tenant_secret_file": "/nowhere/secret"}, "tenant secret /nowhere/secret cannot be read: No such file"),
    ],
)
def test_a_wrong_setting_is_told_before_the_server_starts(
    extra: dict[str, Any], told: str, make_pool: Callable, make_storage: Callable
) -> None:
    with pytest.raises(ValueError, match=told):
        make_storage(make_pool("page_first"), extra=extra)
