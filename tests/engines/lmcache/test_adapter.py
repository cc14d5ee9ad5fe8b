"""LMCache with our adapter instead of its client of Redis servers: what LMCache asks of one, and vLLM over it."""

import json
import re
import select
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.lmcache_server import LMCacheServer, restart_under
from support.progress import run
from support.vllm_engine import BLOCK_TOKENS, Engine, words
from support.waiting import wait_until

pytestmark = pytest.mark.engines

BLOCKS = 6


def plugin(agent: AgentProcess) -> dict[str, object]:
    """As LMCache is told of it."""
    return {
        "type": "plugin",
        "module_path": "skymemory.engines.lmcache",
        "class_name": "SkyMemoryL2Adapter",
        "adapter_params": {"socket": str(agent.socket)},
    }


@pytest.fixture(scope="module")
def lmcache(agent: AgentProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LMCacheServer]:
    """LMCache's server with our adapter."""
    server = LMCacheServer(tmp_path_factory.mktemp("l"), plugin(agent), BLOCK_TOKENS)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def make_adapter(agent: AgentProcess) -> Iterator[Callable[..., Any]]:
    """Makes adapters as LMCache's server does: `make_adapter(arena_mib=1)`."""
    from lmcache.v1.distributed.l2_adapters import create_l2_adapter
    from lmcache.v1.distributed.l2_adapters.plugin_l2_adapter import PluginL2AdapterConfig

    made = []

    def make(**params: Any) -> Any:
        told = plugin(agent)
        told["adapter_params"] = {"socket": str(agent.socket), **params}
        made.append(create_l2_adapter(PluginL2AdapterConfig.from_dict(told)))
        return made[-1]

    yield make
    for adapter in made:
        adapter.close()


def named(*names: str, model: str = "model") -> list[Any]:
    from lmcache.v1.distributed.api import ObjectKey

    return [ObjectKey(chunk_hash=name.encode(), model_name=model, kv_rank=0) for name in names]


def chunk(fill: float, values: int = 1000) -> Any:
    import torch
    from lmcache.v1.check.check_mode_test_l2_adapter import _create_memory_obj

    return _create_memory_obj(fill_value=fill, obj_size=values, dtype=torch.float32)


def wait(descriptor: int) -> None:
    from lmcache.v1.platform import consume_fd

    ready, _, _ = select.select([descriptor], [], [], 60)
    assert ready
    consume_fd(descriptor)


def stored(adapter: Any, keys: list[Any], chunks: list[Any]) -> bool:
    task = adapter.submit_store_task(keys, chunks)
    wait(adapter.get_store_event_fd())
    return adapter.pop_completed_store_tasks()[task].is_successful()


def there(adapter: Any, keys: list[Any]) -> list[bool]:
    task = adapter.submit_lookup_and_lock_task(keys, {})
    wait(adapter.get_lookup_and_lock_event_fd())
    bitmap = adapter.query_lookup_and_lock_result(task)
    adapter.submit_unlock(keys)
    return [bitmap.test(at) for at in range(len(keys))]


def loaded(adapter: Any, keys: list[Any], chunks: list[Any]) -> list[bool]:
    task = adapter.submit_load_task(keys, chunks)
    wait(adapter.get_load_event_fd())
    bitmap = adapter.query_load_result(task)
    assert adapter.query_load_result(task) is None
    return [bitmap.test(at) for at in range(len(keys))]


@pytest.mark.parametrize(("keys", "values"), [(5, 1024), (8, 1 << 18)])
def test_lmcaches_own_check_of_conformance(agent: AgentProcess, keys: int, values: int) -> None:
    adapter = json.dumps(plugin(agent))
    check = [sys.executable, "-m", "lmcache.v1.basic_check", "--mode", "test_l2_adapter", "--l2-adapter", adapter]
    sizes = ["--num-keys", str(keys), "--obj-size", str(values), "--model", f"plugin-{keys}"]
    printed = run([*check, *sizes])
    rates = dict(re.findall(r"^\| ([A-Z]+(?: \(\w+\))?) .*\| +([\d.]+)% \|", printed, re.MULTILINE))
    assert rates == {"LOOKUP (absent)": "100.0", "STORE": "100.0", "LOOKUP (exist)": "100.0", "LOAD": "100.0"}, printed
    assert f"(content): {keys}/{keys}" in printed


def test_an_adapter_warns_of_lora_at_its_start(make_adapter: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    make_adapter()
    assert "with --enable-lora send a cache_salt of its own" in caplog.text


def test_what_is_missing_among_others_is_just_missing(make_adapter: Callable[..., Any]) -> None:
    adapter = make_adapter()
    keys = named("a0", "a1", "a2", "a3")
    assert there(adapter, keys) == [False] * 4
    assert stored(adapter, [keys[0], keys[1], keys[3]], [chunk(1), chunk(2), chunk(4)])
    assert there(adapter, keys) == [True, True, False, True]
    targets = [chunk(0) for _ in keys]
    assert loaded(adapter, keys, targets) == [True, True, False, True]
    assert [float(one.tensor[-1]) for one in targets] == [1, 2, 0, 4]
    assert adapter.get_usage().total_bytes_used == 3 * 4000
    adapter.delete(keys[:2])
    assert adapter.get_usage().total_bytes_used == 4000
    wait_until(lambda: there(adapter, keys) == [False, False, False, True])


def test_chunks_of_several_sizes_and_more_than_the_arena_holds(make_adapter: Callable[..., Any]) -> None:
    adapter = make_adapter(arena_mib=1)
    keys = named(*(f"b{number}" for number in range(12)))
    sizes = [50_000 if number % 3 else 1000 for number in range(12)]
    assert stored(adapter, keys, [chunk(number, size) for number, size in enumerate(sizes)])
    targets = [chunk(-1, size) for size in sizes]
    assert loaded(make_adapter(arena_mib=1), keys, targets) == [True] * 12
    assert [float(one.tensor[-1]) for one in targets] == list(range(12))
    assert not stored(adapter, named("too long"), [chunk(1, 1 << 19)])


def test_a_damaged_chunk_is_missing(make_adapter: Callable[..., Any], sky: LocalConstellation) -> None:
    adapter = make_adapter()
    keys = named("c0", "c1")
    assert stored(adapter, keys, [chunk(1), chunk(2)])
    name = adapter.name_of(4000, keys[1])
    with SkyStore(sky.constellation) as store:
        data = bytearray(store.get([name])[0].data)
        data[-1] ^= 1
        store.purge([name])
        assert store.put([(name, bytes(data))])[0].ok
    targets = [chunk(0), chunk(0)]
    assert loaded(make_adapter(), keys, targets) == [True, False]
    assert float(targets[1].tensor[-1]) == 0


def test_it_comes_back_when_the_agent_does(
    sky: LocalConstellation, make_adapter: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("a")
    tell_up(folder, sky)
    keys = named("d0", "d1")
    with AgentProcess(folder) as agent:
        agent.wait_ready()
        adapter = make_adapter(socket=str(agent.socket))
        assert stored(adapter, keys, [chunk(1), chunk(2)])
        assert adapter.report_status()["is_healthy"]
        agent.kill()
        assert there(adapter, keys) == [False, False]
        assert loaded(adapter, keys, [chunk(0), chunk(0)]) == [False, False]
        assert not stored(adapter, named("d2"), [chunk(3)])
        assert not adapter.report_status()["is_healthy"]
    with AgentProcess(folder) as agent:
        agent.wait_ready()
        wait_until(lambda: adapter.report_status()["is_healthy"], "the adapter comes back")
        assert there(adapter, keys) == [True, True]
        assert loaded(adapter, keys, [chunk(0), chunk(0)]) == [True, True]


def test_a_wrong_setting_is_told(make_adapter: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="there is no setting 'host'; there are socket, tenant_secret_file, arena_mib"):
        make_adapter(host="127.0.0.1")


def test_vllm_over_it(engine: Engine, lmcache: LMCacheServer, agent: AgentProcess) -> None:
    def puts() -> float:
        return agent.metric('skymem_engine_blocks_total{operation="put",status="done"}')

    prompt = words(BLOCKS * BLOCK_TOKENS + 40, 1)
    before = puts()
    cold = engine.fresh(prompt)
    assert cold["cached"] == [0]
    wait_until(lambda: puts() >= before + BLOCKS, "LMCache stores its chunks")

    def is_warm() -> bool:
        restart_under(engine, lmcache)
        warm = engine.fresh(prompt)
        assert warm["tokens"] == cold["tokens"]
        return warm["cached"] == [BLOCKS * BLOCK_TOKENS]

    engine.again(is_warm)  # on a busy machine a chunk may come too late
    assert f"{BLOCKS}/{BLOCKS} retained keys (0 L1, {BLOCKS} L2)" in lmcache.log()
