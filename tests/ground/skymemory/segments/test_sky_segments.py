"""Segments in a store in memory: what is stored, changed and refused."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.common.whole_file import Buffer
from skymemory.prompt.huggingface import Geometry
from skymemory.segments.directory import TTL_S_MAX, Held, SegmentDirectory
from skymemory.segments.errors import (
    ExpiredSegmentError,
    OtherModelError,
    SegmentError,
    SilentSkyError,
    UnknownSegmentError,
)
from skymemory.segments.manifest import BEHIND_MAX, TOKENS_MAX, VARIANTS_MAX
from skymemory.segments.sky_segments import Context, SkySegments
from skymemory.store.results import PutResult, Status
from skymemory.store.versions import Versions
from support.memory_store import MemoryStore
from support.segments import (
    BLOCK,
    GEOMETRY,
    HOUR_MS,
    NOW_MS,
    VOCABULARY,
    Clock,
    manifest_key,
    model,
    segments_on,
    stored,
    tensor_of,
    tokens_of,
    whole,
)

GROUPS = 3


def never() -> torch.Tensor:
    raise AssertionError("nothing was to be computed")


class EndsInTheMiddle(MemoryStore):
    """A store that takes some blocks, and no more."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes
        self.status = Status.EXPIRED

    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
        results = super().put(items[: self.takes])
        self.takes -= len(results)
        return results + [PutResult(key, self.status, None, 0.0) for key, _ in items[len(results) :]]


# ---- put and get -------------------------------------------------------------------------------------------------------


@given(count=st.integers(1, 70), first_layer=st.integers(1, 3), codec=st.sampled_from(["raw", "int8", "int4g16"]))
@settings(max_examples=25)
def test_what_was_put_is_fetched(tmp_path_factory: pytest.TempPathFactory, count: int, first_layer: int, codec: str) -> None:
    segments = segments_on(MemoryStore(), tmp_path_factory.mktemp("list"), codec=codec)
    tokens = tokens_of(count)
    put = segments.put(tokens, tensor_of(tokens), display_name="a document", ttl_s=60)
    assert (put.tokens, put.sinks, put.codec, put.display_name) == (count, 0, codec, "a document")
    assert put.expires_unix_ms == NOW_MS + 60_000
    manifest = segments.get(put.id)
    assert manifest.tokens == tokens
    assert segments.find(manifest) == [True] * -(-count // BLOCK)
    with segments.fetch([manifest], first_layer=first_layer) as fetch:
        [part] = fetch.parts[0]
        assert (part.first, part.tokens) == (0, count)
        layers = {index: part.layer(index) for index in range(GEOMETRY.layers)}
    for index, layer in layers.items():
        if index < first_layer:
            assert layer is None  # not asked for, and layer 0 is never kept
        else:
            assert layer is not None
            assert layer.shape == (2, GEOMETRY.kv_heads, count, GEOMETRY.head_dim)
            assert (layer - tensor_of(tokens)[index - 1]).abs().max() <= {"raw": 0, "int8": 0.03, "int4g16": 0.3}[codec]


def test_a_second_put_computes_and_stores_nothing(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(40)
    first = segments.put(tokens, tensor_of(tokens))
    blocks = len(store.blocks)
    assert blocks == 3 * GROUPS + 1
    again = segments.put(tokens, never)
    assert (again.id, again.size_bytes) == (first.id, first.size_bytes)
    assert len(store.blocks) == blocks
    assert first.size_bytes == sum(map(len, store.blocks.values())) - len(store.blocks[manifest_key(store, first.id)])


def test_what_a_put_left_that_ended_in_the_middle_is_used_by_the_next(tmp_path: Path) -> None:
    tokens = tokens_of(40)
    for takes in range(3 * GROUPS + 1):
        store = EndsInTheMiddle(takes)
        segments = segments_on(store, tmp_path / str(takes))
        with pytest.raises(SilentSkyError, match=r"segment seg-\w+ is not stored: nobody answers \(expired\)"):
            stored(segments, tokens)
        assert segments.listed() == []
        before = dict(store.blocks)
        assert len(before) == takes
        store.takes = 3 * GROUPS + 1 - takes  # no more than is missing
        found = segments.put(tokens, tensor_of(tokens) if takes < 3 * GROUPS else never)
        assert before.items() <= store.blocks.items()
        with segments.fetch([segments.get(found.id)]) as fetch:
            assert torch.equal(whole(fetch), tensor_of(tokens))


def test_a_put_that_the_sky_refuses_says_why(tmp_path: Path) -> None:
    store = EndsInTheMiddle(2)
    store.status = Status.STORE_FULL
    with pytest.raises(SegmentError, match="is not stored: store_full"):
        stored(segments_on(store, tmp_path), tokens_of(40))


def test_what_was_evicted_is_put_again_alone(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(40)
    found = stored(segments, tokens)
    keys = segments.directory.keys(segments.get(found))
    lost = [keys.of_group(1)[2], keys.of_group(0)[0]]
    kept = {key: data for key, data in store.blocks.items() if key not in lost}
    store.blocks = dict(kept)
    assert segments.find(segments.get(found)) == [False, True, True]
    stored(segments, tokens)
    assert set(store.blocks) == {*kept, *lost}


def test_segments_with_one_beginning_share_blocks(segments: SkySegments, store: MemoryStore) -> None:
    one, other = tokens_of(40), [*tokens_of(32), 1, 2]
    tensors = tensor_of(one)
    first = segments.put(one, tensors).id
    blocks = len(store.blocks)
    joined = torch.cat((tensors[:, :, :, :32], tensor_of([1, 2])), 3)
    second = segments.put(other, joined).id
    assert len(store.blocks) == blocks + GROUPS + 1
    with segments.fetch([segments.get(second), segments.get(first), segments.get(second)]) as fetch:
        assert torch.equal(whole(fetch, 0), joined)
        assert torch.equal(whole(fetch, 1), tensors)
        assert torch.equal(whole(fetch, 2), joined)
    segments.expire(first)
    assert len(store.left) == 3 * GROUPS + 1  # those of the other one, and its manifest
    with segments.fetch([segments.get(second)]) as fetch:
        assert torch.equal(whole(fetch), joined)
    segments.expire(second)
    assert store.left == set()


def test_sinks_are_segments_of_their_own(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(20)
    plain, behind = stored(segments, tokens), segments.put(tokens, tensor_of(tokens) + 1, sinks=4)
    assert plain != behind.id
    assert (segments.get(plain).sinks, segments.get(behind.id).sinks, behind.sinks) == (0, 4, 4)
    assert len(store.blocks) == 2 * (2 * GROUPS + 1)
    with segments.fetch([segments.get(plain), segments.get(behind.id)]) as fetch:
        assert torch.equal(whole(fetch, 0) + 1, whole(fetch, 1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"tokens": []}, r"the segment has 0 tokens; allowed are 1 to 262,144"),
        ({"tokens": [1] * (TOKENS_MAX + 1)}, r"the segment has 262,145 tokens; allowed are 1 to 262,144"),
        ({"tokens": [3, VOCABULARY]}, r"token 1 is 1000; the model has tokens 0 to 999"),
        ({"tokens": [-1]}, r"token 0 is -1; the model has tokens 0 to 999"),
        ({"sinks": -1}, r"the segment has -1 sinks; allowed are 0 to 64"),
        ({"sinks": 65}, r"the segment has 65 sinks; allowed are 0 to 64"),
        ({"ttl_s": 0}, r"the time to live is 0 s; allowed are more than 0 and up to 31,622,400 s, or infinity"),
        ({"ttl_s": -1}, r"the time to live is -1 s"),
        ({"ttl_s": TTL_S_MAX + 1}, r"the time to live is 31,622,401 s; allowed are more than 0 and up to 31,622,400 s"),
        ({"ttl_s": math.nan}, r"the time to live is nan s"),
        ({"ttl_s": -math.inf}, r"the time to live is -inf s"),
        ({"display_name": "x" * 129}, r"the display name has 129 characters; allowed are 128"),
    ],
)
def test_wrong_arguments_are_named(segments: SkySegments, store: MemoryStore, words: dict[str, Any], message: str) -> None:
    with pytest.raises(SegmentError, match=message):
        segments.put(words.pop("tokens", [1, 2]), never, **words)
    assert store.blocks == {}


@pytest.mark.parametrize(
    "tensors",
    [
        tensor_of(tokens_of(19)),
        tensor_of(tokens_of(20))[1:],
        tensor_of(tokens_of(20)).bfloat16(),
    ],
)
def test_a_tensor_that_is_not_the_segments(segments: SkySegments, store: MemoryStore, tensors: torch.Tensor) -> None:
    with pytest.raises(SegmentError, match=r"wanted is \[3, 2, 2, 20, 32\] of float32"):
        segments.put(tokens_of(20), tensors)
    assert store.blocks == {}


def test_values_that_a_codec_cannot_take(store: MemoryStore, tmp_path: Path) -> None:
    tensors = tensor_of(tokens_of(20))
    tensors[2, 0, 0, 19, 0] = math.inf
    with pytest.raises(SegmentError, match="cannot be encoded: a key or value is not finite"):
        segments_on(store, tmp_path, codec="int4g16").put(tokens_of(20), tensors)


def test_codecs_and_models_that_do_not_go_together(store: MemoryStore, tmp_path: Path) -> None:
    small = Geometry(4, 2, 8, torch.float32, ())
    with pytest.raises(ValueError, match="head_dim is 8; int4g16 needs a multiple of 16"):
        segments_on(store, tmp_path, model=model(geometry=small), codec="int4g16")
    with pytest.raises(ValueError, match="the model has 1 layers"):
        segments_on(store, tmp_path, model=model(geometry=Geometry(1, 2, 8, torch.float32, ())))


def test_a_model_that_changes_while_it_computes(store: MemoryStore, tmp_path: Path) -> None:
    now = [b"m" * 32]
    changing = model()
    changing = type(changing)(lambda: now[0], GEOMETRY, VOCABULARY)
    segments = segments_on(store, tmp_path, model=changing)

    def computes() -> torch.Tensor:
        now[0] = b"n" * 32
        return tensor_of(tokens_of(20))

    with pytest.raises(SegmentError, match="the model was changed while the segment was computed"):
        segments.put(tokens_of(20), computes)
    assert store.blocks == {}
    changed = stored(segments, tokens_of(20))
    now[0] = b"m" * 32
    with pytest.raises(OtherModelError):
        segments.get(changed)


# ---- other hosts, models and tenants -----------------------------------------------------------------------------------


class CountingStore(MemoryStore):
    """A store that counts how often blocks are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.gets: list[int] = []

    def get(self, entries: Any, **words: Any) -> Any:
        self.gets.append(len(entries))
        return super().get(entries, **words)


def test_manifests_are_asked_for_all_at_once(tmp_path: Path) -> None:
    store, clock = CountingStore(), Clock()
    segments = segments_on(store, tmp_path, clock=clock)
    documents = [tokens_of(BLOCK, seed=number) for number in range(3)]
    ids = [stored(segments, tokens) for tokens in documents[:2]] + [stored(segments, documents[2], ttl_s=10)]
    store.gets.clear()
    found = segments.get_all(ids)
    assert store.gets == [3]
    assert [found[one].tokens for one in ids] == documents
    assert segments.get_all([]) == {}
    unknown, no_id = ids[0][:-1] + ("0" if ids[0][-1] != "0" else "1"), "no id"
    clock.now_unix_ms += 20_000
    held, expired, missing, wrong = segments.directory.get_all([ids[0], ids[2], unknown, no_id])
    assert isinstance(held, Held)
    assert isinstance(expired, ExpiredSegmentError)
    assert [type(one) for one in (missing, wrong)] == [UnknownSegmentError] * 2
    with pytest.raises(ExpiredSegmentError):
        segments.get_all(ids)
    store.is_silent = True
    seen = segments.get_all(ids[:2])  # nobody answers now
    assert [seen[one].tokens for one in ids[:2]] == documents[:2]
    with pytest.raises(SilentSkyError):
        segments.get_all([ids[0], unknown])


def test_any_host_of_the_tenant_resolves_an_id(segments: SkySegments, store: MemoryStore, tmp_path: Path) -> None:
    tokens = tokens_of(40)
    found = stored(segments, tokens)
    other = segments_on(store, tmp_path / "other")
    with other.fetch([other.get(found)]) as fetch:
        assert torch.equal(whole(fetch), tensor_of(tokens))
    assert other.listed() == []
    assert [one.id for one in segments.listed()] == [found]
    other.expire(found)
    assert store.left == set()
    with pytest.raises(UnknownSegmentError, match=f"the sky has no segment {found}: it has expired or was evicted"):
        segments.get(found)
    assert segments.listed() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"model": model(b"n" * 32)}, "its model or tokenizer is 6d6d6d6d, and here it is 6e6e6e6e"),
        ({"codec": "int8"}, "its codec is raw, and here it is int8"),
        ({"block_tokens": 32}, "its number of tokens of a block is 16, and here it is 32"),
        ({"model": model(geometry=Geometry(5, 2, 32, torch.float32, ()))}, "its layout is segment;layers 1-1"),
    ],
)
def test_a_segment_of_another_model_is_told(
    segments: SkySegments, store: MemoryStore, tmp_path: Path, words: dict[str, Any], message: str
) -> None:
    found = stored(segments, tokens_of(40))
    other = segments_on(store, tmp_path / "other", **words)
    with pytest.raises(OtherModelError, match=f"segment {found} cannot be used here: {message}"):
        other.get(found)
    with pytest.raises(OtherModelError):
        other.fetch([segments.get(found)])
    with pytest.raises(OtherModelError):
        other.find(segments.get(found))
    assert other.update(found, display_name="by another").display_name == "by another"
    other.expire(found)  # neither needs the model
    assert store.left == set()


@pytest.mark.parametrize("words", [{"tenant_secret": b"another"}, {"scope": b"user"}])
def test_other_tenants_and_scopes_see_nothing(
    segments: SkySegments, store: MemoryStore, tmp_path: Path, words: dict[str, Any]
) -> None:
    tokens = tokens_of(40)
    found = stored(segments, tokens)
    other = segments_on(store, tmp_path, **words)
    assert other.listed() == []
    for call in (other.get, other.expire, lambda one: other.update(one, ttl_s=5)):
        with pytest.raises(UnknownSegmentError):
            call(found)
    assert other.find(segments.get(found)) == [False] * 3
    with other.fetch([segments.get(found)]) as fetch:
        assert fetch.parts == [[]]
    before = dict(store.blocks)
    own = stored(other, tokens)
    assert own != found
    assert before.items() <= store.blocks.items()
    assert len(store.blocks) == 2 * len(before)
    other.expire(own)
    assert store.left == set(before)


def test_hosts_that_put_the_same_segment(segments: SkySegments, store: MemoryStore, tmp_path: Path) -> None:
    """The later time of expiry counts, and the name stays unless there is a new one."""
    tokens, other = tokens_of(40), segments_on(store, tmp_path / "other")
    found = stored(segments, tokens, ttl_s=3600, display_name="one")
    assert other.put(tokens, never, ttl_s=60).expires_unix_ms == NOW_MS + HOUR_MS
    assert segments.get(found).display_name == "one"
    assert other.put(tokens, never, display_name="other").expires_unix_ms == 0
    assert segments.put(tokens, never, ttl_s=1).expires_unix_ms == 0
    assert segments.get(found).display_name == "other"


# ---- expiry ------------------------------------------------------------------------------------------------------------


def test_a_segment_expires(segments: SkySegments, store: MemoryStore, clock: Clock) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600)
    clock.now_unix_ms += HOUR_MS - 1
    assert segments.get(found)
    assert len(segments.listed()) == 1
    clock.now_unix_ms += 1
    words = "expired at 2027-01-15 09:00:00 UTC; this host's clock says 2027-01-15 09:00:00 UTC"
    with pytest.raises(ExpiredSegmentError, match=f"segment {found} {words}"):
        segments.get(found)
    with pytest.raises(ExpiredSegmentError):
        segments.update(found, ttl_s=60)
    assert segments.listed() == []
    assert store.left  # a reader purges nothing
    segments.expire(found)
    assert store.left == set()


def test_who_reads_an_old_deletion_of_a_manifest_purges_it(store: MemoryStore, clock: Clock, tmp_path: Path) -> None:
    segments = segments_on(store, tmp_path, clock=clock, versions=Versions(lambda: 1000 * clock.now_unix_ms))
    found = stored(segments, tokens_of(40))
    assert segments.expire(found)
    for later_ms, blocks in ((0, 1), (23 * HOUR_MS, 1), (2 * HOUR_MS, 0)):
        clock.now_unix_ms += later_ms
        with pytest.raises(UnknownSegmentError, match=f"the sky has no segment {found}"):
            segments.get(found)
        assert len(store.blocks) == blocks
    assert stored(segments, tokens_of(40)) == found
    assert segments.get(found)


def test_the_next_put_purges_what_has_expired(segments: SkySegments, store: MemoryStore, clock: Clock) -> None:
    stored(segments, tokens_of(40), ttl_s=3600)
    clock.now_unix_ms += HOUR_MS
    stored(segments, tokens_of(20, seed=1))
    assert len(store.left) == 2 * GROUPS + 1


def test_an_expired_segment_is_put_anew(segments: SkySegments, store: MemoryStore, clock: Clock) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600, display_name="old")
    clock.now_unix_ms += HOUR_MS
    again = segments.put(tokens_of(40), tensor_of(tokens_of(40)), ttl_s=10)
    assert (again.id, again.expires_unix_ms, again.display_name) == (found, clock.now_unix_ms + 10_000, "")
    assert segments.get(found)


def test_a_clock_that_is_wrong_harms_nobody_else(segments: SkySegments, store: MemoryStore, tmp_path: Path) -> None:
    """Ahead by years: what others put seems to have expired. Behind: what it puts seems to others to have."""
    found = stored(segments, tokens_of(40), ttl_s=3600)
    before = dict(store.blocks)
    ahead = segments_on(store, tmp_path / "ahead", clock=Clock(NOW_MS + 1000 * HOUR_MS))
    with pytest.raises(ExpiredSegmentError, match="this host's clock says 2027-02-26"):
        ahead.get(found)
    assert store.blocks == before
    behind = segments_on(store, tmp_path / "behind", clock=Clock(5))
    assert behind.get(found)
    late = stored(behind, tokens_of(20, seed=1), ttl_s=3600)
    assert behind.get(late)
    with pytest.raises(ExpiredSegmentError, match="expired at 1970-01-01 01:00:00 UTC"):
        segments.get(late)
    assert behind.put(tokens_of(40), never, ttl_s=3600).expires_unix_ms == NOW_MS + HOUR_MS


def test_a_sweep_leaves_what_another_host_has_prolonged(
    segments: SkySegments, store: MemoryStore, tmp_path: Path, clock: Clock
) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600)
    segments_on(store, tmp_path / "other").update(found, ttl_s=2 * 3600)
    clock.now_unix_ms += HOUR_MS
    assert segments.listed() == []
    assert segments.directory.sweep() == 0
    assert [one.expires_unix_ms for one in segments.listed()] == [NOW_MS + 2 * HOUR_MS]
    assert segments.get(found)


def test_a_put_waits_for_few_expired_segments(segments: SkySegments, clock: Clock) -> None:
    for index in range(10):
        stored(segments, tokens_of(40, seed=index), ttl_s=3600)
    clock.now_unix_ms += HOUR_MS
    assert [segments.directory.sweep() for _ in range(4)] == [4, 4, 2, 0]


def test_names_can_be_printed(segments: SkySegments) -> None:
    with pytest.raises(SegmentError, match="cannot be printed"):
        stored(segments, tokens_of(40), display_name="\x1b]0;title\x07")
    found = stored(segments, tokens_of(40), display_name="Handbuch \u00e4, [v2]")
    with pytest.raises(SegmentError, match="cannot be printed"):
        segments.update(found, display_name="two\nlines")
    assert segments.segment(found).display_name == "Handbuch \u00e4, [v2]"


def test_what_may_be_changed(segments: SkySegments, clock: Clock) -> None:
    found = stored(segments, tokens_of(40), ttl_s=3600, display_name="one")
    assert segments.update(found, ttl_s=60).expires_unix_ms == NOW_MS + 60_000  # a change may also shorten
    assert segments.update(found, display_name="two").expires_unix_ms == NOW_MS + 60_000
    assert segments.update(found, expires_unix_s=NOW_MS / 1000 + 5).expires_unix_ms == NOW_MS + 5000
    assert segments.update(found, ttl_s=math.inf).expires_unix_ms == 0
    assert segments.get(found).display_name == "two"
    [listed] = segments.listed()
    assert (listed.display_name, listed.expires_unix_ms, listed.tokens) == ("two", 0, 40)
    assert listed.created_unix_ms == NOW_MS
    for words, message in (
        ({"ttl_s": 0}, "the time to live is 0 s"),
        ({"expires_unix_s": NOW_MS / 1000}, r"the time of expiry 1.8e\+09 is past"),
        ({"expires_unix_s": math.nan}, "the time of expiry nan is past"),
        ({"expires_unix_s": 1e12}, "the time to live is"),
        ({"ttl_s": 1, "expires_unix_s": 2e9}, "both ttl_s and expires_unix_s are given"),
        ({"display_name": "x" * 129}, "the display name has 129 characters"),
    ):
        with pytest.raises(SegmentError, match=message):
            segments.update(found, **words)


def test_no_model_is_needed_to_list_change_and_expire(segments: SkySegments, store: MemoryStore, tmp_path: Path) -> None:
    found = stored(segments, tokens_of(40), display_name="document")
    directory = SegmentDirectory(store, folder=tmp_path, clock=Clock())
    [listed] = directory.listed()
    assert (listed.id, listed.display_name, listed.tokens) == (found, "document", 40)
    assert directory.get(found).manifest.tokens == tokens_of(40)
    directory.update(found, ttl_s=5)
    directory.expire(found)
    assert store.left == set()
    assert directory.listed() == segments.listed() == []


# ---- variants ----------------------------------------------------------------------------------------------------------


def test_variants_are_kept_beside_what_was_computed_alone(segments: SkySegments, store: MemoryStore) -> None:
    tokens = tokens_of(40)
    alone = tensor_of(tokens)
    behind = {number: Context(tokens_of(10, number), [f"seg-{number}"]) for number in range(1, VARIANTS_MAX + 1)}
    for number, context in behind.items():
        made = segments.put(tokens, alone + number, context=context)
    assert made.size_bytes == sum(map(len, store.blocks.values())) - len(store.blocks[manifest_key(store, made.id)])
    manifest = segments.get(made.id)
    assert not manifest.is_alone
    assert [variant.behind for variant in manifest.variants] == [["seg-1"], ["seg-2"], ["seg-3"]]
    assert segments.put(tokens, never, context=behind[2]).size_bytes == made.size_bytes  # it is there
    assert segments.put(tokens, never, context=Context([5], [])).size_bytes == made.size_bytes  # there is no room for more
    assert segments.put(tokens, alone).id == made.id
    manifest = segments.get(made.id)
    assert manifest.is_alone
    names = [b"", *(variant.name for variant in manifest.variants)]
    with segments.fetch([manifest] * len(names), variants=names) as fetch:
        for number in range(len(names)):
            assert torch.equal(whole(fetch, number), alone + number)
    changed = segments.update(made.id, display_name="named", ttl_s=60)
    assert segments.get(made.id).variants == manifest.variants
    assert changed.size_bytes == segments.listed()[0].size_bytes
    [report] = segments.expect([manifest], time.time() + 60)
    assert (report.blocks, report.placed, report.failed) == (3 * len(names), 3 * len(names), 0)
    del store.blocks[segments.directory.keys(manifest, names[1]).of_group(1)[2]]
    [report] = segments.expect([manifest], time.time() + 60)
    assert (report.blocks, report.placed, report.failed) == (3 * len(names), 3 * len(names) - 1, 0)
    assert segments.expire(made.id)
    assert not store.left


def test_an_expiry_spares_blocks_of_variants_that_begin_alike(segments: SkySegments, store: MemoryStore) -> None:
    context = Context([5, 6], [])
    one, other = tokens_of(2 * BLOCK), tokens_of(BLOCK + 5)
    long, short = (
        segments.put(one, tensor_of(one), context=context),
        segments.put(other, tensor_of(one)[:, :, :, : BLOCK + 5], context=context),
    )
    assert segments.expire(long.id)
    manifest = segments.get(short.id)
    with segments.fetch([manifest], variants=[manifest.variants[0].name]) as fetch:
        assert whole(fetch).shape[3] == BLOCK + 5
    assert segments.expire(short.id)
    assert not store.left


def test_only_the_nearest_segments_before_a_variant_are_named(segments: SkySegments) -> None:
    tokens = tokens_of(20)
    ids = [f"seg-{number}" for number in range(BEHIND_MAX + 3)]
    made = segments.put(tokens, tensor_of(tokens), context=Context([5], ids))
    assert segments.get(made.id).variants[0].behind == ids[3:]
