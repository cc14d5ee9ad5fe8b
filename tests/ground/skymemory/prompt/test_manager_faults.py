"""The manager when the sky, its peers or the model are not as they should be. Real satellites throughout."""

import logging
import threading

import pytest
import torch

from skymemory.demo.run import generate
from skymemory.prompt.block_keys import prompt_root
from skymemory.prompt.blocks import LAYOUT, pack_block
from skymemory.prompt.codecs import get_codec
from skymemory.prompt.fingerprint import Fingerprint
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.prompt.manager import KVCManager, run_length
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.wire.key_derivation import seal_keys
from support.memory_store import MemoryStore
from support.waiting import wait_until

BLOCK = 16
IDS = [(3 + 7 * index) % 1000 + 2 for index in range(100)]

pytestmark = pytest.mark.model


@pytest.fixture
def model(make_llama, seed):
    """Of other weights for every test, so that no test finds the blocks of another."""
    return make_llama(seed=seed)


@pytest.fixture
def store(full_sky):
    with SkyStore(full_sky.constellation) as store:
        yield store


@pytest.fixture
def make_manager(model, tokenizer):
    def make(store: SkyStore, **settings) -> KVCManager:
        return KVCManager(model, tokenizer, store, **{"codec": "raw", "block_tokens": BLOCK, **settings})

    return make


def covered(manager: KVCManager) -> int:
    return manager.get_cache(IDS).get_seq_length()


def spoil(store: SkyStore, key: bytes, data: bytes) -> None:
    store.purge([key])
    assert store.put([(key, data)])[0].ok


def flipped(store: SkyStore, key: bytes) -> bytes:
    data = store.get([key])[0].data
    data[-1] ^= 1
    return bytes(data)


def await_retry(store: SkyStore, before: int) -> None:
    wait_until(lambda: store.stats().retries != before)


# ---- satellites -----------------------------------------------------------------------------------------------------


def test_silence_towards_another_thread_is_no_failure_of_this_look_up(make_manager, start_sky, stopped) -> None:
    """Two threads use one store. One waits for a satellite that does not answer; the other asks one that does."""
    sky = start_sky(cache={"parity": 0, "chunk_bytes": 1000})
    with SkyStore(sky.constellation) as store:
        manager, other = make_manager(store), make_manager(store, tenant_secret=b"other")
        assert other.add_blocks(IDS).stored == 6
        with stopped(sky, Whereabouts(sky.constellation).servers(0)[1]):  # the first one is asked by look-ups
            before = store.stats().retries
            asking = threading.Thread(target=other.add_blocks, args=(IDS,))  # asks all servers whether they hold the chain
            asking.start()
            await_retry(store, before)  # it waits now
            assert covered(manager) == 0
            asking.join()
        assert not manager.statistics.errors


def test_blocks_that_other_satellites_lost_are_put_again_in_one_go(make_manager, model, start_sky) -> None:
    """More satellites start anew than may be lost, and the prompt is computed on a machine that rounds differently: what the
    other satellites still hold contradicts what is put."""
    sky = start_sky(cache={"chunk_bytes": 1000})
    with SkyStore(sky.constellation) as first, SkyStore(sky.constellation) as second:
        assert make_manager(first).add_blocks(IDS).stored == 6
        for satellite in Whereabouts(sky.constellation).servers(0)[: sky.constellation.cache.parity + 1]:
            sky.kill(satellite)
            sky.restart(satellite)
        rounded = generate(model, IDS, 1).cache
        for layer in rounded.layers:
            layer.keys.mul_(1 + 1e-6)
        manager = make_manager(second)
        report = manager.add_blocks(IDS, rounded)
        assert (report.stored, report.failed) == (6, 0)
        assert covered(manager) == 96
        assert covered(make_manager(first)) == 96
        assert not manager.statistics.errors


def test_the_index_is_not_believed_when_satellites_started_anew(make_manager, start_sky) -> None:
    sky = start_sky(cache={"chunk_bytes": 1000})
    with SkyStore(sky.constellation) as store:
        manager = make_manager(store)
        assert manager.add_blocks(IDS).stored == 6
        questions = store.stats().questions
        assert manager.add_blocks(IDS).present == 6
        assert store.stats().questions == questions + 1
        for satellite in list(sky.processes):
            sky.kill(satellite)
            sky.restart(satellite)
        report = manager.add_blocks(IDS)
        assert (report.present, report.stored) == (0, 6)
        assert covered(manager) == 96


def test_a_dead_sky_is_counted_and_told_once_and_nothing_is_computed_for_it(make_manager, start_sky, caplog) -> None:
    sky = start_sky(cache={"deadline_ms": 500})
    with SkyStore(sky.constellation) as store:
        manager = make_manager(store)
        for satellite in list(sky.processes):
            sky.kill(satellite)
        caplog.set_level(logging.INFO, "skymemory.prompt.statistics")
        for number in range(1, 4):
            assert covered(manager) == 0
            assert manager.statistics.errors["find"] == number
        assert [record.levelname for record in caplog.records if record.message.startswith("find")] == ["WARNING"]
        report = manager.add_blocks(IDS)
        assert (report.stored, report.failed) == (0, 6)
        assert manager.statistics.prefill_s == 0


# ---- blocks ---------------------------------------------------------------------------------------------------------


def test_all_damaged_blocks_of_a_prompt_are_healed_by_one_run(make_manager, store) -> None:
    manager = make_manager(store)
    manager.add_blocks(IDS)
    keys = manager.keys(IDS)
    for index in (2, 4):
        spoil(store, keys[index], flipped(store, keys[index]))
    for key in keys:
        store.index.remove(key)
    assert covered(manager) == 2 * BLOCK
    assert manager.add_blocks(IDS).failed == 0
    assert covered(manager) == 96
    assert manager.statistics.errors == {"damaged": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"tensors": torch.zeros(3, 2, 2, BLOCK, 16, dtype=torch.float16)},
        {"tensors": torch.zeros(3, 2, 2, BLOCK, 8)},
        {"block_index": 1},
        {"first_position": 16},
        {"codec": get_codec("int8")},
        {"keys": seal_keys(bytes(32))},
        {},
    ],
)
def test_a_whole_block_that_is_another_one_is_a_miss(make_manager, model, tokenizer, store, change) -> None:
    manager = make_manager(store, tenant_secret=b"a secret")
    root = prompt_root(
        fingerprint=Fingerprint(model, tokenizer).digest(),
        layout=LAYOUT,
        codec="raw",
        block_tokens=BLOCK,
        tenant_secret=b"a secret",
    )
    key = manager.keys(IDS)[0]
    words = {"tensors": torch.zeros(3, 2, 2, BLOCK, 16), "keys": seal_keys(root), "codec": get_codec("raw")}
    words |= {"block_index": 0, "first_position": 0, **change}
    spoil(store, key, bytes(pack_block(words.pop("tensors"), key=key, **words)))
    assert covered(manager) == (0 if change else BLOCK)
    assert manager.statistics.errors == ({"damaged": 1} if change else {})


def test_a_block_longer_than_can_be_is_not_fetched_but_replaced(make_manager, store, full_sky) -> None:
    """A satellite may claim any length: memory is taken for what a block of this model can have."""
    manager = make_manager(store)
    key = manager.keys(IDS)[0]
    spoil(store, key, bytes(1 << 20))
    assert covered(manager) == 0
    assert manager.statistics.bytes_down == 0
    assert not manager.statistics.errors  # not even asked for
    with SkyStore(full_sky.constellation) as other:
        assert make_manager(other).get_cache(IDS).get_seq_length() == 0
        assert other.stats().bytes_down == 0
    assert manager.add_blocks(IDS).failed == 0
    assert covered(manager) == 96


def test_runs_are_cut_by_the_bytes_of_all_their_blocks() -> None:
    mib = 1 << 20
    assert run_length([mib] * 100) == 16
    assert run_length([1, 16 * mib, 1]) == 1
    assert run_length([100 * mib, 1]) == 1
    assert run_length([8 * mib, 8 * mib, 1]) == 2


class Own(type(get_codec("raw"))):
    name = "own"


def test_the_codec_may_be_the_callers_own(make_manager, store) -> None:
    manager = make_manager(store, codec=Own())
    assert manager.add_blocks(IDS).stored == 6
    assert covered(manager) == 96
    assert covered(make_manager(store)) == 0
    assert not manager.statistics.errors


# ---- model ----------------------------------------------------------------------------------------------------------


def test_nothing_is_cached_while_a_hook_of_unknown_effect_is_there(make_manager, model, store) -> None:
    manager = make_manager(store)
    manager.add_blocks(IDS)
    hook = model.model.layers[0].register_forward_hook(lambda module, inputs, output: output * 1.01)
    cold = generate(model, IDS, 8)
    assert generate(model, IDS, 8, manager=manager).tokens == cold.tokens
    assert covered(manager) == 0
    report = manager.add_blocks(IDS, cold.cache)
    assert (report.stored, report.failed) == (0, 6)
    assert manager.statistics.errors == {"fingerprint": 3}
    hook.remove()
    assert covered(manager) == 96


def test_blocks_of_a_model_that_changed_meanwhile_are_not_stored(make_manager, model, store, monkeypatch) -> None:
    manager = make_manager(store)
    prefill = HuggingFaceEngine.prefill

    def train(*args: object) -> object:
        cache = prefill(*args)
        with torch.no_grad():
            model.lm_head.weight += 1
        return cache

    monkeypatch.setattr(HuggingFaceEngine, "prefill", train)  # a hook would do that too, but no model with hooks has a key
    report = manager.add_blocks(IDS)
    assert (report.stored, report.failed) == (0, 6)
    assert manager.statistics.errors == {"changed": 1}


def test_a_prompt_is_fetched_while_another_one_is_computed(make_manager, store, monkeypatch) -> None:
    manager = make_manager(store)
    manager.add_blocks(IDS)
    begun, fetched = threading.Event(), threading.Event()
    prefill = HuggingFaceEngine.prefill

    def slow(*args: object) -> object:
        begun.set()
        assert fetched.wait(60)
        return prefill(*args)

    monkeypatch.setattr(HuggingFaceEngine, "prefill", slow)  # as a large model is, for as long as the test wants
    reports = []
    thread = threading.Thread(target=lambda: reports.append(manager.add_blocks(IDS[5:])))
    thread.start()
    assert begun.wait(60)
    assert covered(manager) == 96
    fetched.set()
    thread.join()
    assert reports[0].stored == 5


# ---- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"block_tokens": 0}, "block_tokens is 0; allowed are 1 and more"), ({"codec": "zip"}, "codec is 'zip'; allowed are")],
)
def test_wrong_settings_are_named(make_manager, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_manager(MemoryStore(), **settings)


def test_wrong_tokens_are_named(make_manager, store) -> None:
    manager = make_manager(store)
    with pytest.raises(ValueError, match="token id -1 at position 0; the model has 0 to 1023"):
        manager.get_cache([-1] * 40)
    with pytest.raises(TypeError, match="a prompt is text"):
        manager.get_cache(None)
    with pytest.raises(TypeError, match="a prompt is text"):
        manager.get_caches("a text is no list")
