"""The manager with a real model on real satellites."""

import logging
import time
from datetime import UTC, datetime

import pytest
import torch

from skymemory.demo.model import demo_tokenizer
from skymemory.demo.run import generate
from skymemory.prompt.codecs import codec_names
from skymemory.prompt.manager import KVCManager
from skymemory.prompt.statistics import ExpectReport
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.store.block_store import BlockStore
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite
from support.memory_store import MemoryStore

BLOCK = 16
NEW_TOKENS = 12

pytestmark = pytest.mark.model


@pytest.fixture
def store(full_sky):
    with SkyStore(full_sky.constellation) as store:
        yield store


@pytest.fixture
def model(make_llama, seed):
    """Of other weights for every test, so that no test finds the blocks of another."""
    return make_llama(seed=seed)


@pytest.fixture
def manager(model, tokenizer, store):
    return KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)


def prompt(tokens: int, start: int = 3) -> list[int]:
    return [(start + 7 * index) % 1000 + 2 for index in range(tokens)]


def same(one, other) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(k1, k2) and torch.equal(v1, v2) for (k1, v1, *_), (k2, v2, *_) in pairs)


def test_an_unknown_prompt_gives_an_empty_cache(manager, model) -> None:
    cache = manager.get_cache(prompt(100))
    assert cache.get_seq_length() == 0
    assert len(generate(model, prompt(100), 2, manager=manager).tokens) == 2
    counts = manager.statistics
    assert (counts.prompts, counts.hits, counts.misses, counts.blocks_missed) == (2, 0, 2, 12)
    assert not counts.errors


@pytest.mark.parametrize("tokens", [100, 96, 97, 16, 17, 95])
def test_up_and_back(manager, model, tokens) -> None:
    ids = prompt(tokens)
    cold = generate(model, ids, NEW_TOKENS)
    report = manager.add_blocks(ids)
    assert (report.blocks, report.stored, report.present, report.failed) == (tokens // BLOCK, tokens // BLOCK, 0, 0)
    cache = manager.get_cache(ids)
    # Never the whole prompt: a model needs a token to run
    assert cache.get_seq_length() == min(tokens // BLOCK * BLOCK, tokens - 1)
    assert cache.layers[0].keys.dtype == model.dtype
    cold.cache.crop(cache.get_seq_length() - cold.cache.get_seq_length())
    for (keys, values, *_), (keys2, values2, *_) in zip(cache, cold.cache, strict=True):
        torch.testing.assert_close(keys, keys2, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(values, values2, rtol=1e-4, atol=1e-5)
    assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
    assert manager.statistics.hits == 2


def test_prompts_without_a_full_block(manager, model) -> None:
    for ids in ("", torch.zeros(1, 0, dtype=torch.long), [5], prompt(BLOCK - 1)):
        assert manager.add_blocks(ids).blocks == 0
        assert manager.get_cache(ids).get_seq_length() == 0


def test_the_run_that_was_done_anyway_is_stored(manager, model) -> None:
    """The cache that `generate` leaves covers the prompt and all but the last new token."""
    ids = prompt(40)
    run = generate(model, ids, NEW_TOKENS)
    length = run.cache.get_seq_length()
    report = manager.add_blocks(ids, run.cache)
    assert report.stored == 2
    assert manager.statistics.prefill_s == 0
    assert run.cache.get_seq_length() == length
    cache = manager.get_cache(ids)
    run.cache.crop(32 - length)
    assert same(cache, run.cache)
    longer = ids + run.tokens  # the conversation goes on
    assert manager.add_blocks(longer, generate(model, longer, 1).cache).present == 2


def test_a_cache_that_is_short_gives_what_it_has(manager, model) -> None:
    short = generate(model, prompt(40), 1).cache
    report = manager.add_blocks(prompt(100), short)
    assert (report.blocks, report.stored) == (6, 2)
    assert manager.get_cache(prompt(100)).get_seq_length() == 32


def test_a_cache_of_another_model_is_refused(manager, make_llama) -> None:
    other = generate(make_llama(num_hidden_layers=2), prompt(40), 1).cache
    with pytest.raises(ValueError, match="2 layers"):
        manager.add_blocks(prompt(40), other)


def test_only_new_blocks_go_up(manager, model) -> None:
    assert manager.add_blocks(prompt(64)).stored == 4
    again = manager.add_blocks(prompt(64))
    assert (again.present, again.stored, again.bytes_up) == (4, 0, 0)
    longer = manager.add_blocks(prompt(100))
    assert (longer.present, longer.stored) == (4, 2)
    branch = manager.add_blocks(prompt(64)[:40] + prompt(60, start=9))
    assert (branch.present, branch.stored) == (2, 4)
    cold = generate(model, prompt(100), NEW_TOKENS)
    assert generate(model, prompt(100), NEW_TOKENS, manager=manager).tokens == cold.tokens


def test_generate_does_not_change_what_the_manager_holds(manager, model) -> None:
    ids = prompt(50)
    manager.add_blocks(ids)
    before = manager.get_cache(ids)
    used = manager.get_cache(ids)
    assert same(before, used)
    model.generate(torch.tensor([ids]), past_key_values=used, max_new_tokens=5, do_sample=False)
    for layer in used.layers:
        layer.keys.zero_()
    assert used.get_seq_length() > before.get_seq_length()
    assert same(manager.get_cache(ids), before)


def test_text_ids_and_tensors_are_one_prompt(manager, tokenizer) -> None:
    text = "Chunks do not stay with a satellite; they stay over a place. " * 4
    ids = tokenizer(text)["input_ids"]
    tensor = tokenizer(text, return_tensors="pt")["input_ids"]
    keys = manager.keys(text)
    assert len(keys) == len(ids) // BLOCK > 1
    for form in (ids, tuple(ids), tensor, tensor[0]):
        assert manager.keys(form) == keys
    with pytest.raises(ValueError, match="give a batch as a list"):
        manager.keys(torch.zeros(2, 5, dtype=torch.long))


def test_what_a_tokenizer_returns_is_a_prompt_or_a_batch(manager, tokenizer) -> None:
    texts = ["Chunks do not stay with a satellite. " * 8, "They stay over a place. " * 6]
    manager.add_prompts(texts)
    lengths = [cache.get_seq_length() for cache in manager.get_caches(texts)]
    assert min(lengths) >= BLOCK
    assert manager.get_cache(tokenizer(texts[0], return_tensors="pt")).get_seq_length() == lengths[0]
    padded = tokenizer(texts, padding=True, return_tensors="pt")
    assert [cache.get_seq_length() for cache in manager.get_caches(padded)] == lengths
    assert [report.stored for report in manager.add_prompts(padded)] == [0, 0]
    assert manager.get_caches([]) == manager.add_prompts([]) == []


@pytest.mark.parametrize("rows", [{"num_beams": 2}, {"num_return_sequences": 2, "do_sample": True}])
def test_several_rows_of_one_prompt(manager, model, rows) -> None:
    """As the docstring of `get_cache` says."""
    ids = prompt(50)
    manager.add_blocks(ids)
    cache = manager.get_cache(ids)
    cache.batch_repeat_interleave(2)
    settings = {"max_new_tokens": 5, **rows}
    torch.manual_seed(1)
    cold = model.generate(torch.tensor([ids]), **settings)
    torch.manual_seed(1)
    assert torch.equal(model.generate(torch.tensor([ids]), past_key_values=cache, **settings), cold)


def test_a_batch_gives_a_list_and_fetches_common_blocks_once(manager, model) -> None:
    prompts = [prompt(50), prompt(40) + prompt(30, start=5), prompt(8)]
    reports = manager.add_prompts(prompts)
    assert [(report.stored, report.present) for report in reports] == [(3, 0), (2, 2), (0, 0)]
    before = manager.statistics
    caches = manager.get_caches(prompts)
    counts = manager.statistics
    assert [cache.get_seq_length() for cache in caches] == [48, 64, 0]
    assert counts.blocks_hit - before.blocks_hit == 7
    assert (counts.bytes_down - before.bytes_down) % 5 == 0
    assert counts.bytes_down - before.bytes_down == counts.bytes_up
    assert all(same(cache, manager.get_cache(ids)) for ids, cache in zip(prompts[:2], caches[:2], strict=True))
    texts = ["A server is not a satellite. " * 8, "The epoch is the serial number of the window. " * 8]
    assert [report.failed for report in manager.add_prompts(texts)] == [0, 0]
    assert all(cache.get_seq_length() for cache in manager.get_caches(texts))


def test_another_host_finds_the_blocks(manager, model, full_sky) -> None:
    """With a store of its own, whose index knows nothing."""
    ids = prompt(100)
    manager.add_blocks(ids)
    with SkyStore(full_sky.constellation) as other:
        second = KVCManager(model, demo_tokenizer(), other, codec="raw", block_tokens=BLOCK)
        assert second.get_cache(ids).get_seq_length() == 96


def test_what_a_host_knows_of_a_prompt_without_asking(manager, model, tokenizer, full_sky) -> None:
    ids = prompt(100)
    assert manager.known_tokens(ids) == 0
    manager.add_blocks(ids[:50])
    assert (manager.known_tokens(ids), manager.known_tokens(ids, scope=b"other")) == (48, 0)
    with SkyStore(full_sky.constellation) as other:
        second = KVCManager(model, demo_tokenizer(), other, codec="raw", block_tokens=BLOCK)
        assert second.known_tokens(ids) == 0
        second.get_cache(ids)
        assert second.known_tokens(ids) == 48
    assert KVCManager(model, tokenizer, AnyStore(), block_tokens=BLOCK).known_tokens(ids) == 0


class AnyStore(MemoryStore):
    """A store that knows nothing by itself."""

    known = BlockStore.known


def test_who_needs_no_more_blocks_gets_those_that_have_come(manager) -> None:
    ids = prompt(100)
    manager.add_blocks(ids)
    for asked in range(1, 4):
        answers = iter([False] * asked)
        cache = manager.get_cache(ids, cancelled=lambda answers=answers: next(answers, True))
        assert cache.get_seq_length() == (asked - 1) * BLOCK
    assert manager.get_cache(ids).get_seq_length() == 96
    assert not manager.statistics.errors


def test_a_look_up_that_nobody_waits_for_does_not_fail(model, tokenizer) -> None:
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, block_tokens=BLOCK)
    store.failing = {"find_longest"}
    for failing in ({"find_longest"}, set()):
        store.failing = failing
        assert manager.get_cache(prompt(40), cancelled=lambda: True).get_seq_length() == 0
        assert not manager.statistics.errors
    store.failing = {"find_longest"}
    assert manager.get_cache(prompt(40), cancelled=lambda: False).get_seq_length() == 0
    assert manager.statistics.errors == {"find": 1}


def test_with_a_closed_store_all_is_a_miss(model, tokenizer, full_sky) -> None:
    with SkyStore(full_sky.constellation) as store:
        manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
        assert manager.add_blocks(prompt(40)).stored == 2
    assert manager.get_cache(prompt(40)).get_seq_length() == 0
    assert manager.statistics.errors


def test_settings_come_from_the_constellation(model, tokenizer, full_sky) -> None:
    constellation = full_sky.constellation.replace(cache={"codec": "int4", "block_tokens": 32})
    with SkyStore(constellation) as store:
        manager = KVCManager(model, tokenizer, store)
        assert manager.codec.name == "int4"
        assert manager.block_tokens == 32
    assert Constellation().cache.block_tokens == 128  # as in the paper


@pytest.mark.parametrize("codec", codec_names())
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_codec(make_llama, seed, tokenizer, store, codec, dtype) -> None:
    model = make_llama(seed=seed, dtype=dtype, head_dim=32)  # groups of channels have up to 32
    manager = KVCManager(model, tokenizer, store, codec=codec, block_tokens=BLOCK)
    ids = prompt(100)
    run = generate(model, ids, 1)
    assert manager.add_blocks(ids, run.cache).stored == 6
    cache = manager.get_cache(ids)
    assert cache.get_seq_length() == 96
    run.cache.crop(-4)
    for (keys, values, *_), (keys2, values2, *_) in zip(cache, run.cache, strict=True):
        for tensor, right in ((keys, keys2), (values, values2)):
            assert tensor.dtype == dtype
            limit = {"raw": 0.0, "int4": 0.1, "int4g16": 0.1, "int4g32": 0.1}.get(codec, 0.02)
            assert (tensor.float() - right.float()).norm() <= limit * right.float().norm()


def test_keys_depend_on_scope_and_secret(model, tokenizer, store) -> None:
    ids = prompt(64)
    managers = [
        KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK, tenant_secret=secret) for secret in (b"1", b"2")
    ]
    managers[0].add_blocks(ids, scope=b"one")
    found = [[each.get_cache(ids, scope=scope).get_seq_length() for scope in (b"", b"one", b"other")] for each in managers]
    assert found == [[0, 63, 0], [0, 0, 0]]


def test_any_change_is_a_miss(manager, model, tokenizer, store) -> None:
    ids = prompt(64)
    manager.add_blocks(ids)

    def covered(**other: object) -> int:
        settings = {"codec": "raw", "block_tokens": BLOCK, **other}
        return KVCManager(model, settings.pop("tokenizer", tokenizer), store, **settings).get_cache(ids).get_seq_length()

    assert covered() == 63
    assert covered(codec="int8") == 0
    assert covered(block_tokens=8) == 0
    assert covered(tenant_secret=b"another") == 0
    larger = demo_tokenizer()
    larger.add_tokens(["<new>"])
    assert covered(tokenizer=larger) == 0
    with torch.no_grad():
        model.model.layers[2].self_attn.v_proj.weight[3, 3] += 0.01
    assert manager.get_cache(ids).get_seq_length() == 0
    assert covered() == 0
    with torch.no_grad():
        model.model.layers[2].self_attn.v_proj.weight.copy_(model.model.layers[2].self_attn.v_proj.weight)
    model.lm_head.weight.data[1, 1] += 0.01  # seen when told
    manager.refresh()
    assert manager.get_cache(ids).get_seq_length() == 0


def spoil(store: SkyStore, key: bytes, data: bytes) -> None:
    store.purge([key])
    assert store.put([(key, data)])[0].ok


def test_a_damaged_block_is_a_miss_and_is_put_again(manager, model, store, caplog) -> None:
    ids = prompt(100)
    cold = generate(model, ids, NEW_TOKENS)
    manager.add_blocks(ids, cold.cache)
    keys = manager.keys(ids)
    good = bytes(store.get(store.find_longest(keys).entries)[3].data)
    spoil(store, keys[3], good[:-1] + bytes([good[-1] ^ 1]))
    with caplog.at_level(logging.WARNING, "skymemory"):
        warm = generate(model, ids, NEW_TOKENS, manager=manager)
    assert warm.tokens == cold.tokens
    counts = manager.statistics
    assert (counts.blocks_hit, counts.blocks_missed) == (3, 3)
    assert dict(counts.errors) == {"damaged": 1}
    assert "seal does not match" in caplog.text
    assert len(store.find_longest(keys).entries) == 3  # purged
    report = manager.add_blocks(ids)
    assert report.present == 3
    assert report.failed == 0
    assert manager.get_cache(ids).get_seq_length() == 96


def test_a_block_under_the_key_of_another_is_a_miss(manager, store) -> None:
    ids = prompt(64)
    manager.add_blocks(ids)
    keys = manager.keys(ids)
    blocks = [bytes(result.data) for result in store.get(store.find_longest(keys).entries)]
    spoil(store, keys[1], blocks[2])
    assert manager.get_cache(ids).get_seq_length() == 16


@pytest.mark.parametrize("data", [b"x", bytes(5000), b"SKYB" + bytes(100)])
def test_garbage_under_a_key_is_a_miss(manager, store, data) -> None:
    ids = prompt(64)
    spoil(store, manager.keys(ids)[0], data)
    assert manager.get_cache(ids).get_seq_length() == 0
    report = manager.add_blocks(ids)
    assert manager.statistics.errors == {"damaged": 1}
    assert report.failed == 0
    assert manager.get_cache(ids).get_seq_length() == 63


def test_a_store_that_raises_never_breaks_a_generation(model, tokenizer) -> None:
    ids = prompt(64)
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
    cold = generate(model, ids, NEW_TOKENS)
    for name in ("put", "find_longest", "get", "purge"):
        store.failing = {name}
        manager.add_blocks(ids, cold.cache)
        assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
    assert {"put", "find", "get"} <= set(manager.statistics.errors)


def test_values_that_cannot_be_coded_are_not_stored(model, tokenizer, store) -> None:
    manager = KVCManager(model, tokenizer, store, codec="int8", block_tokens=BLOCK)
    cache = generate(model, prompt(64), 1).cache
    cache.layers[1].values[0, 0, 20, 0] = float("nan")
    report = manager.add_blocks(prompt(64), cache)
    assert (report.stored, report.failed) == (1, 3)
    assert manager.statistics.errors["encode"] == 1
    assert manager.get_cache(prompt(64)).get_seq_length() == 16


def test_two_lost_satellites_cost_nothing(model, tokenizer, start_sky) -> None:
    sky = start_sky(cache={"deadline_ms": 20_000, "chunk_bytes": 1000})
    ids = prompt(100)
    cold = generate(model, ids, NEW_TOKENS)
    with SkyStore(sky.constellation) as store:
        manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
        assert manager.add_blocks(ids, cold.cache).failed == 0
        for victim in store.whereabouts.servers(0)[1:3]:
            sky.kill(victim)
        assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
        assert (manager.statistics.tokens_cached, manager.statistics.blocks_missed) == (96, 0)


def test_a_lost_satellite_is_a_miss_without_parity_and_the_blocks_are_put_again(model, tokenizer, start_sky) -> None:
    sky = start_sky(cache={"parity": 0, "deadline_ms": 2000, "chunk_bytes": 1000})
    ids = prompt(100)
    cold = generate(model, ids, NEW_TOKENS)
    with SkyStore(sky.constellation) as store:
        manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
        assert manager.add_blocks(ids, cold.cache).failed == 0
        assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
        sky.kill(type(sky.constellation.cache.centre)(2, 4))
        assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
        counts = manager.statistics
        assert counts.blocks_missed == 6
        assert sum(counts.errors.values()) >= 1
        report = manager.add_blocks(ids, cold.cache)
        assert (report.stored, report.failed) == (6, 0)
        assert manager.get_cache(ids).get_seq_length() == 96
        assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens


def test_statistics_are_a_copy_and_add_up(manager) -> None:
    manager.add_blocks(prompt(64))
    manager.get_cache(prompt(64))
    counts = manager.statistics
    assert counts.prompts == counts.hits + counts.misses == 1
    assert (counts.tokens_asked, counts.tokens_cached) == (64, 63)
    assert counts.bytes_up == counts.bytes_down > 4 * 3 * 2 * 2 * 16 * 16 * 4
    assert min(counts.find_s, counts.get_s, counts.decode_s, counts.prefill_s, counts.encode_s, counts.put_s) > 0
    counts.errors["mine"] += 1
    assert "mine" not in manager.statistics.errors


def test_progress_is_told(manager) -> None:
    seen: list[tuple[int, int]] = []
    manager.add_blocks(prompt(64), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_any_store_will_do(model, tokenizer) -> None:
    ids = prompt(100)
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, block_tokens=BLOCK)
    assert manager.codec.name == "raw"  # as a constellation without a file says
    cold = generate(model, ids, NEW_TOKENS)
    assert manager.add_blocks(ids).stored == len(store.blocks) == 6
    assert generate(model, ids, NEW_TOKENS, manager=manager).tokens == cold.tokens
    assert manager.expect(ids, time.time() + 100).placed == 6
    store.is_silent = True
    assert manager.get_cache(ids).get_seq_length() == 0
    assert manager.add_blocks(prompt(100, start=5)).failed == 6
    assert manager.statistics.errors == {"find": 2}


def test_a_prompt_that_is_expected_waits_where_it_will_be_needed(model, tokenizer, start_sky) -> None:
    sky = start_sky(constellation={"planes": 5, "slots": 9}, cache={"servers": 9, "block_tokens": 16}).constellation
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (3_600_000, Satellite(2, 5))])
    playing = Playing(track, time.time() - 60)
    with SkyStore(sky, playing=playing) as store:
        manager = KVCManager(model, tokenizer, store)
        assert manager.add_blocks(prompt(100)).stored == 6
        at = datetime.fromtimestamp(playing.started_unix_s + 3_700, tz=UTC)
        assert manager.expect(prompt(120), at) == ExpectReport(blocks=7, placed=6, failed=0)
        assert manager.expect(prompt(100), at.timestamp()) == ExpectReport(blocks=6, placed=6, failed=0)
        assert manager.expect(prompt(50, start=7), at.timestamp()) == ExpectReport(blocks=3, placed=0, failed=0)
        assert manager.get_cache(prompt(100)).get_seq_length() == 96
        with pytest.raises(ValueError, match="is past"):
            manager.expect(prompt(100), at=datetime(2020, 1, 1))
        assert manager.statistics.errors == {}
    for since_s in (0.5, 1000.0):
        with SkyStore(sky, playing=Playing(track, time.time() - 3600 - since_s)) as store:
            assert KVCManager(model, tokenizer, store).get_cache(prompt(100)).get_seq_length() == 96
            assert store.stats().purges == 0


def test_a_store_that_raises_does_not_break_an_expectation(model, tokenizer) -> None:
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
    manager.add_blocks(prompt(100))
    store.failing = {"prefetch"}
    report = manager.expect(prompt(100), time.time() + 100)
    assert (report.placed, report.failed) == (0, report.blocks)
    assert manager.statistics.errors == {"prefetch": 1}
