"""Segments in a store in memory that fails: what is silent, lost, late, damaged or put back."""

import math
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.common.whole_file import Buffer
from skymemory.link.control import Purged
from skymemory.prompt.statistics import ExpectReport
from skymemory.segments.errors import (
    ExpiredSegmentError,
    HiddenSegmentError,
    SegmentError,
    SilentSkyError,
    UnknownSegmentError,
)
from skymemory.segments.manifest import MANIFEST_BYTES_MAX, Manifest, ManifestKeys
from skymemory.segments.sky_segments import SkySegments
from skymemory.store.deletions import DELETION_BYTES
from skymemory.store.results import GetResult, PutResult, Status
from support.memory_store import MemoryStore
from support.segments import (
    HOUR_MS,
    Clock,
    manifest_key,
    segments_on,
    stored,
    tensor_of,
    tokens_of,
    whole,
)
from support.waiting import PATIENCE_S


def never() -> torch.Tensor:
    raise AssertionError("nothing was to be computed")


@pytest.mark.parametrize("word", ["", "seg-", "seg-" + "0" * 31, "seg-" + "0" * 33, "x" * 500, "seg-\x00"])
def test_what_is_no_id(segments: SkySegments, word: str) -> None:
    for call in (segments.get, segments.expire, lambda one: segments.update(one, ttl_s=5)):
        with pytest.raises(UnknownSegmentError, match="is no id of a segment"):
            call(word)


def test_an_id_that_nobody_put(segments: SkySegments) -> None:
    with pytest.raises(UnknownSegmentError, match="the sky has no segment seg-0"):
        segments.get("seg-" + "0" * 32)


def test_a_silent_sky(segments: SkySegments, store: MemoryStore, tmp_path: Path, clock: Clock) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600)
    manifest = segments.get(found)
    other = segments_on(store, tmp_path / "other")
    store.is_silent = True
    with pytest.raises(SilentSkyError, match=rf"segment {found} cannot be looked up: nobody answers \(unanswered\)"):
        other.get(found)
    with pytest.raises(SilentSkyError, match="nobody answers"):
        segments.put(tokens_of(20, seed=1), never)
    with pytest.raises(SilentSkyError):
        segments.expire(found)
    with pytest.raises(SilentSkyError):
        segments.update(found, ttl_s=5)
    assert segments.get(found) == manifest  # seen before: its tokens can be computed
    assert segments.find(manifest) == [False] * 3
    with segments.fetch([manifest]) as fetch:
        assert fetch.parts == [[]]
    assert [one.id for one in segments.listed()] == [found]
    clock.now_unix_ms += HOUR_MS
    with pytest.raises(SilentSkyError):
        segments.get(found)
    store.is_silent = False
    with pytest.raises(ExpiredSegmentError):
        segments.get(found)


def test_what_lost_satellites_may_hold_is_not_forgotten(
    segments: SkySegments, store: MemoryStore, tmp_path: Path, clock: Clock
) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600)
    other = segments_on(store, tmp_path / "other")
    away, store.hides = dict(store.blocks), True
    store.blocks.clear()
    with pytest.raises(
        HiddenSegmentError, match=f"segment {found} cannot be looked up: satellites that may hold it do not answer"
    ):
        other.get(found)
    assert segments.get(found).id == found  # seen before
    clock.now_unix_ms += 2 * HOUR_MS
    assert segments.directory.sweep() == 0
    clock.now_unix_ms -= 2 * HOUR_MS
    assert [one.id for one in segments.listed()] == [found]
    store.blocks.update(away)
    assert other.get(found).id == found

    store.blocks.clear()
    store.hides = False
    with pytest.raises(UnknownSegmentError):
        segments.get(found)
    assert segments.listed() == []


def test_an_expiry_that_not_all_confirm_is_told(tmp_path: Path) -> None:
    class Unconfirmed(MemoryStore):
        def purge(self, keys: Sequence[bytes]) -> Any:
            return super().purge(keys)._replace(confirmed=not set(keys) & silent_about)

    silent_about: set[bytes] = set()
    store = Unconfirmed()
    segments = segments_on(store, tmp_path)
    found = stored(segments, tokens_of(40))
    silent_about.add(segments.directory.keys(segments.get(found)).all[0])
    assert segments.expire(found) is False
    assert store.left == set()
    assert segments.listed() == []
    silent_about.clear()
    assert segments.expire(stored(segments, tokens_of(40))) is True


@pytest.mark.parametrize(("status", "kind"), [(Status.EXPIRED, SilentSkyError), (Status.STORE_FULL, SegmentError)])
def test_a_manifest_that_cannot_be_deleted_is_told(tmp_path: Path, status: Status, kind: type[SegmentError]) -> None:
    class TakesNoDeletion(MemoryStore):
        def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
            if is_full and len(items[0][1]) == DELETION_BYTES:
                return [PutResult(items[0][0], status, None, 0.0)]
            return super().put(items)

    is_full = True
    segments = segments_on(TakesNoDeletion(), tmp_path)
    found = stored(segments, tokens_of(40))
    with pytest.raises(kind, match=f"segment {found} is not deleted: .*{status}"):
        segments.expire(found)
    assert [one.id for one in segments.listed()] == [found]
    is_full = False
    assert segments.expire(found)
    assert segments.listed() == []


def test_an_expiry_while_the_sky_falls_silent_can_be_repeated(tmp_path: Path) -> None:
    class FallsSilent(MemoryStore):
        def purge(self, keys: Sequence[bytes]) -> Any:
            self.is_silent = True
            return Purged(0, False)

    store = FallsSilent()
    found = stored(segments_on(store, tmp_path), tokens_of(40))
    with pytest.raises(SilentSkyError, match="may still be there: nobody answers; try again"):
        segments_on(store, tmp_path).expire(found)
    store.is_silent = False
    assert segments_on(store, tmp_path).get(found)
    assert len(segments_on(store, tmp_path).listed()) == 1


def test_missing_blocks_leave_the_parts_around_them(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(16 * 6 + 3)
    manifest = segments.get(stored(segments, tokens))
    keys = segments.directory.keys(manifest)
    del store.blocks[keys.of_group(0)[1]], store.blocks[keys.of_group(2)[4]]
    with segments.fetch([manifest]) as fetch:
        assert [(part.first, part.tokens) for part in fetch.parts[0]] == [(0, 16), (32, 32), (80, 19)]
        for part in fetch.parts[0]:
            for index in range(1, 4):
                wanted = tensor_of(tokens)[index - 1, :, :, part.first : part.first + part.tokens]
                layer = part.layer(index)
                assert layer is not None
                assert torch.equal(layer, wanted)
    with segments.fetch([manifest], first_layer=2) as fetch:  # the lost block of group 0 is not needed
        assert [(part.first, part.tokens) for part in fetch.parts[0]] == [(0, 64), (80, 19)]


def test_damaged_blocks_are_missing_and_purged(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(40)
    manifest = segments.get(stored(segments, tokens))
    key = segments.directory.keys(manifest).of_group(1)[1]
    store.blocks[key] = store.blocks[key][:-1] + b"x"
    with segments.fetch([manifest]) as fetch:
        [part] = fetch.parts[0]
        assert [part.layer(index) is None for index in range(1, 4)] == [False, True, False]
    assert key not in store.blocks
    with segments.fetch([manifest]) as fetch:
        assert [(part.first, part.tokens) for part in fetch.parts[0]] == [(0, 16), (32, 8)]
    stored(segments, tokens)
    with segments.fetch([manifest]) as fetch:
        assert torch.equal(whole(fetch), tensor_of(tokens))


def test_blocks_that_go_while_they_are_fetched(tmp_path: Path) -> None:
    class Losing(MemoryStore):
        """Another host purges a segment between the look-up and the get."""

        def get(self, entries: Any, **words: Any) -> Any:
            for entry in entries:
                if not isinstance(entry, bytes):
                    self.blocks.pop(entry.key, None)
            return super().get(entries, **words)

    segments = segments_on(Losing(), tmp_path)
    manifest = segments.get(stored(segments, tokens_of(40)))
    with segments.fetch([manifest]) as fetch:
        [part] = fetch.parts[0]
        assert [part.layer(index) for index in range(1, 4)] == [None] * 3


def test_a_store_that_raises_is_no_better_than_a_silent_one(segments: SkySegments, store: MemoryStore) -> None:
    manifest = segments.get(stored(segments, tokens_of(40)))
    store.failing = {"get"}
    with segments.fetch([manifest]) as fetch:
        [part] = fetch.parts[0]
        assert part.layer(1) is None
    store.failing = {"find"}
    with segments.fetch([manifest]) as fetch:
        assert fetch.parts == [[]]


def test_who_closes_a_fetch_waits_for_nothing(segments: SkySegments) -> None:
    manifest = segments.get(stored(segments, tokens_of(40)))
    fetch = segments.fetch([manifest])
    fetch.close()
    fetch.close()
    [part] = fetch.parts[0]
    layers = [part.layer(index) for index in range(1, 4)]
    assert all(layer is None or torch.equal(layer, tensor_of(tokens_of(40))[at]) for at, layer in enumerate(layers))


class Gated(MemoryStore):
    """A store whose blocks come one by one, as a test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = threading.Semaphore(0)
        self.is_closed = threading.Event()

    def get_each(self, entries: Any, **words: Any) -> Generator[GetResult, None, None]:
        try:
            for entry in entries:
                assert self.allowed.acquire(timeout=PATIENCE_S)
                yield from self.get([entry], **words)
        finally:
            self.is_closed.set()


def test_a_group_is_there_before_the_next_has_come(tmp_path: Path) -> None:
    store = Gated()
    segments = segments_on(store, tmp_path)
    manifests = [segments.get(stored(segments, tokens_of(20, seed))) for seed in (1, 2)]  # of two blocks each
    with segments.fetch(manifests) as fetch:
        [one], [other] = fetch.parts
        store.allowed.release(4)
        for part, seed in ((one, 1), (other, 2)):
            layer = part.layer(1)
            assert layer is not None
            assert torch.equal(layer, tensor_of(tokens_of(20, seed))[0])
        assert [size for size, _ in fetch.loads] == sorted(size for size, _ in fetch.loads)
        assert len(fetch.loads) == len(fetch.decodes) == 4
        assert fetch.loads[-1][0] == sum(size for size, _ in fetch.decodes)
        store.allowed.release(8)
        assert other.layer(3) is not None
    assert store.is_closed.wait(PATIENCE_S)


def test_a_group_that_is_late_is_not_waited_for(tmp_path: Path) -> None:
    store = Gated()
    segments = segments_on(store, tmp_path)
    manifest = segments.get(stored(segments, tokens_of(20)))
    with segments.fetch([manifest], deadlines_s={0: math.inf, 1: 0.0}) as fetch:
        [part] = fetch.parts[0]
        store.allowed.release(2)
        assert part.layer(1) is not None
        assert part.layer(2) is None
        store.allowed.release(4)
        assert part.layer(3) is not None  # this one has no deadline
        assert part.layer(2) is None  # given up
    assert store.is_closed.wait(PATIENCE_S)


def test_who_closes_a_fetch_ends_what_comes(tmp_path: Path) -> None:
    store = Gated()
    segments = segments_on(store, tmp_path)
    fetch = segments.fetch([segments.get(stored(segments, tokens_of(40)))])
    fetch.close()
    assert fetch.parts[0][0].layer(1) is None
    store.allowed.release(1)
    assert store.is_closed.wait(PATIENCE_S)


def test_a_segment_that_is_expected(segments: SkySegments, store: MemoryStore) -> None:
    manifest = segments.get(stored(segments, tokens_of(40)))
    soon_s = time.time() + 60
    assert segments.expect([manifest], soon_s) == [ExpectReport(3, 3, 0)]
    del store.blocks[segments.directory.keys(manifest).of_group(1)[2]]
    assert segments.expect([manifest], soon_s) == [ExpectReport(3, 2, 0)]
    assert segments.expect([manifest, manifest], soon_s) == [ExpectReport(3, 2, 0)] * 2
    store.is_silent = True
    assert segments.expect([manifest], soon_s) == [ExpectReport(3, 0, 3)]
    store.failing = {"prefetch"}
    assert segments.expect([manifest], soon_s) == [ExpectReport(3, 0, 3)]
    store.failing = set()
    with pytest.raises(ValueError, match="is past"):
        segments.expect([manifest], 5)


def test_no_segments_are_fetched_at_once(segments: SkySegments) -> None:
    with segments.fetch([]) as fetch:
        assert fetch.parts == []


def test_a_damaged_manifest_is_purged(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(40)
    found = stored(segments, tokens)
    key = manifest_key(store, found)
    store.blocks[key] = store.blocks[key][:-1] + b"x"
    with pytest.raises(UnknownSegmentError, match=f"the manifest of segment {found} was damaged and is purged"):
        segments.get(found)
    assert key not in store.blocks
    segments.put(tokens, never)
    assert segments.get(found)


def test_a_manifest_that_is_too_large_is_purged(segments: SkySegments, store: MemoryStore) -> None:
    found = stored(segments, tokens_of(40))
    store.blocks[manifest_key(store, found)] = bytes(MANIFEST_BYTES_MAX + 1)
    with pytest.raises(SegmentError, match=f"the manifest of segment {found} had more than 2,097,152 bytes, and is purged"):
        segments.get(found)
    assert manifest_key(store, found) not in store.blocks


def test_a_manifest_of_other_tokens_is_refused(segments: SkySegments, store: MemoryStore) -> None:
    """A program of the tenant put the manifest of one segment under the id of another."""
    found = stored(segments, tokens_of(40))
    held = segments.directory.get(found)
    fields = {name: getattr(held.manifest, name) for name in held.manifest.__struct_fields__}
    forged = ManifestKeys(store.tenant_secret).pack(Manifest(**{**fields, "tokens": [1, 2, 3]}), held.version + 1)
    store.blocks[manifest_key(store, found)] = bytes(forged)
    with pytest.raises(UnknownSegmentError, match="was damaged"):
        segments.get(found)


def test_an_older_manifest_that_is_put_back_is_refused(segments: SkySegments, store: MemoryStore, tmp_path: Path) -> None:
    found = stored(segments, tokens_of(40), display_name="old")
    key = manifest_key(store, found)
    old = store.blocks[key]
    segments.update(found, display_name="new", ttl_s=60)
    new = store.blocks[key]
    store.blocks[key] = old
    restarted = segments_on(store, tmp_path)  # it knows the version from the host's list
    for host in (segments, restarted):
        with pytest.raises(UnknownSegmentError, match=f"an older manifest of segment {found} came than this host knows"):
            host.get(found)
    store.blocks[key] = new
    assert restarted.get(found).display_name == "new"
    segments.expire(found)
    store.blocks[key] = new
    with pytest.raises(UnknownSegmentError, match="an older manifest"):
        segments.get(found)
    assert stored(segments, tokens_of(40)) == found
    assert segments.get(found)
