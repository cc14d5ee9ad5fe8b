"""The cache follows the constellation that is up, and an answer waits for blocks that it shares with the one before."""

import logging
import threading
from pathlib import Path

import pytest

from skymemory.agent.constellation_source import RunningSource, Serving
from skymemory.prompt.manager import KVCManager
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file, rotate
from skymemory.serve import prompt_cache
from skymemory.serve.prompt_cache import PromptCache
from skymemory.sky.constellation import KEYRING_VARIABLE
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from support.new_keys import put_in_place, take
from support.waiting import wait_until

pytestmark = pytest.mark.model


def never() -> bool:
    return False


@pytest.fixture
def tokens(request: pytest.FixtureRequest) -> list[int]:
    """Of each test's own."""
    seed = sum(map(ord, request.node.name))
    return [(seed + seed % 89 * index) % 90 for index in range(100)]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    return RunRecord()


def running(local: LocalConstellation) -> Running:
    return Running("local", local.constellation, dict(local.processes))


def computed(cache: PromptCache, tokens: list[int]):
    return cache.engine.prefill(tokens)


def test_a_constellation_comes_and_goes_and_comes(loaded, tokens, state, small_sky, caplog) -> None:
    caplog.set_level(logging.INFO, "skymemory.serve")
    cache = PromptCache(*loaded, RunningSource())
    for _ in range(3):
        assert cache.get(tokens, never).get_seq_length() == 0
        cache.keep(tokens, 100, computed(cache, tokens))
    assert cache.waiting == 0
    state.save(running(small_sky))
    assert cache.get(tokens, never).get_seq_length() == 0
    assert cache.block_tokens == 16
    cache.keep(tokens, 100, computed(cache, tokens))
    assert cache.get(tokens, never).get_seq_length() == 96
    state.clear()
    assert cache.get(tokens, never).get_seq_length() == 0
    state.path.write_text("{}")
    assert cache.get(tokens, never).get_seq_length() == 0
    state.save(running(small_sky))
    assert cache.get(tokens, never).get_seq_length() == 96
    cache.close()
    some = "prompts are kept on 3 x 5 satellites"
    none = "every prompt is computed in full: no constellation is up"
    damaged = f"every prompt is computed in full: the constellation cannot be used: {state.path} is damaged"
    for said, wanted in zip(caplog.messages, (none, some, none, damaged, some), strict=True):
        assert said.startswith(wanted)


class Recorded:
    """A source whose record is written again and again, for the same constellation."""

    def __init__(self, local: LocalConstellation) -> None:
        self.serving = Serving(local.constellation, None, b"one")

    def changed(self) -> bool:
        return True

    def load(self) -> Serving:
        return self.serving

    def missing(self) -> str:
        return ""


def test_another_secret_is_followed(loaded, tokens, small_sky) -> None:
    source = Recorded(small_sky)
    cache = PromptCache(*loaded, source)
    cache.keep(tokens, 100, computed(cache, tokens))
    assert cache.get(tokens, never).get_seq_length() == 96
    source.serving = source.serving._replace(tenant_secret=b"another")
    assert cache.get(tokens, never).get_seq_length() == 0
    source.serving = source.serving._replace(tenant_secret=b"one")
    assert cache.get(tokens, never).get_seq_length() == 96
    cache.close()


def test_new_keys_are_taken_and_wrong_ones_are_not(loaded, tokens, state, start_sky, tmp_path, caplog, monkeypatch) -> None:
    """A file is in place before satellites have its keys, when both are served, and when it is damaged."""
    caplog.set_level(logging.INFO, "skymemory")
    begin_mission(keys := tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    local = start_sky(security={"keyring": str(keys / "mission.json")}, cache={"block_tokens": 16})
    state.save(running(local))
    put_in_place(own := tmp_path / "own.json", host_file(keys, 1, "host"))

    def step(*words: str) -> None:
        monkeypatch.delenv(KEYRING_VARIABLE, raising=False)  # the mission has its own
        for word in words:
            take(word, keys)
        monkeypatch.setenv(KEYRING_VARIABLE, str(own))

    step()
    cache = PromptCache(*loaded, RunningSource())
    cache.keep(tokens, 100, computed(cache, tokens))
    assert cache.get(tokens, never).get_seq_length() == 96
    rotate(keys)
    put_in_place(own, host_file(keys, 2, "host"))
    assert cache.get(tokens, never).get_seq_length() == 96
    assert "satellites answer, but refuse this host's keys" in caplog.text
    step("load", "activate")
    own.write_text("no keyring")
    state.update(running(local))
    assert cache.get(tokens, never).get_seq_length() == 96
    assert f"{own} is damaged" in caplog.messages[-1]
    put_in_place(own, host_file(keys, 2, "host"))
    step("forget")
    assert cache.get(tokens, never).get_seq_length() == 96
    assert caplog.text.count("they are used from now on") == 1
    assert cache.statistics.hits == 4  # counts go on
    state.save(Running("local", local.constellation.replace(cache={"servers": 8}), {}))
    own.write_text("no keyring")
    assert cache.get(tokens, never).get_seq_length() == 96
    assert caplog.messages[-1].endswith("; the constellation and the keys of before stay in use")
    cache.close()


def test_a_constellation_that_cannot_be_used_is_told_and_left(loaded, tokens, state, small_sky, caplog, monkeypatch) -> None:
    state.save(running(small_sky))

    def refuse(*words: object, **more: object) -> None:
        raise ValueError("not with this model")

    monkeypatch.setattr(prompt_cache, "KVCManager", refuse)  # whatever a manager may one day not like
    cache = PromptCache(*loaded, RunningSource())
    assert cache.get(tokens, never).get_seq_length() == 0
    cache.close()
    assert caplog.messages[0] == "every prompt is computed in full: the constellation cannot be used: not with this model"


@pytest.mark.parametrize(("shared", "found_tokens"), [(100, 96), (70, 64)])
def test_who_begins_like_an_answer_waits_for_its_blocks_and_others_do_not(
    loaded, tokens, small_source, monkeypatch, shared, found_tokens
) -> None:
    let = threading.Event()
    add = KVCManager.add_blocks

    def held(self, *words, **more):
        let.wait(60)
        return add(self, *words, **more)

    monkeypatch.setattr(KVCManager, "add_blocks", held)  # as a slow sky does, for as long as the test wants
    cache = PromptCache(*loaded, small_source())
    cache.keep(tokens, 90, computed(cache, tokens))
    assert cache.get([*tokens[:50], *range(50)], never).get_seq_length() == 0  # at once
    assert cache.get([*tokens, 1], lambda: True).get_seq_length() == 0  # nobody wants it any more
    assert cache.waiting == 1
    prompt = [*tokens[:shared], 1, 2, 3]
    asked = threading.Thread(target=lambda: found.append(cache.get(prompt, never).get_seq_length()))
    found: list[int] = []
    asked.start()
    let.set()
    asked.join()
    assert found == [found_tokens]
    cache.close()


def test_not_more_than_some_answers_wait_and_closing_stores_them(loaded, tokens, small_source, monkeypatch) -> None:
    let = threading.Event()
    add = KVCManager.add_blocks

    def held(self, *words, **more):
        let.wait(60)
        return add(self, *words, **more)

    monkeypatch.setattr(KVCManager, "add_blocks", held)  # as a slow sky does, for as long as the test wants
    cache = PromptCache(*loaded, small_source())
    given = computed(cache, tokens)
    for _ in range(2 + 3):
        cache.keep(tokens, 100, given)
    assert (cache.waiting, cache.dropped) == (2, 3)
    let.set()
    cache.close()
    again = PromptCache(*loaded, small_source())
    assert again.get(tokens, never).get_seq_length() == 96
    again.close()


def test_a_scope_neither_finds_nor_waits_for_the_blocks_of_another(loaded, tokens, small_source, monkeypatch) -> None:
    let = threading.Event()
    add = KVCManager.add_blocks

    def held(self, *words, **more):
        let.wait(60)
        return add(self, *words, **more)

    monkeypatch.setattr(KVCManager, "add_blocks", held)  # as a slow sky does, for as long as the test wants
    cache = PromptCache(*loaded, small_source())
    cache.keep(tokens, 90, computed(cache, tokens), b"one")
    for scope in (b"", b"other"):
        assert cache.get(tokens, never, scope).get_seq_length() == 0  # at once: the other one's blocks still wait
    assert cache.waiting == 1
    let.set()
    wait_until(lambda: not cache.waiting, "the blocks are stored")
    assert [cache.get(tokens, never, scope).get_seq_length() for scope in (b"", b"other", b"one")] == [0, 0, 96]
    cache.close()


def test_what_cannot_be_stored_is_logged_and_no_more(loaded, tokens, small_source, caplog) -> None:
    cache = PromptCache(*loaded, small_source())
    cache.keep(tokens, 100, "no cache")  # type: ignore[arg-type]
    cache.keep(tokens, 100, computed(cache, tokens))
    assert cache.get(tokens, never).get_seq_length() == 96
    assert [record.message for record in caplog.records] == ["an answer of 100 tokens could not be stored"]
    cache.close()


def test_a_store_that_a_thread_uses_is_not_closed(loaded, tokens, state, small_sky) -> None:
    state.save(running(small_sky))
    cache = PromptCache(*loaded, RunningSource())
    cache.keep(tokens, 100, computed(cache, tokens))
    wait_until(lambda: not cache.waiting, "it is stored")
    other = threading.Thread(target=cache.get, args=(tokens, never))
    with cache.in_use() as manager:
        assert manager is not None
        state.clear()  # the other thread finds out, and would close the store
        other.start()
        other.join(0.5)
        assert other.is_alive()
        assert manager.get_cache(tokens).get_seq_length() == 96
    other.join()
    with cache.in_use() as manager:
        assert manager is None
    cache.close()
