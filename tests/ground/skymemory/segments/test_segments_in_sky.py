"""Segments on real satellites, between hosts, and beside exact blocks."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.agent.agent_store import AgentStore
from skymemory.link.control import ControlPlane
from skymemory.prompt.manager import KVCManager
from skymemory.prompt.statistics import ExpectReport
from skymemory.segments.errors import HiddenSegmentError, SegmentError, SilentSkyError, UnknownSegmentError
from skymemory.segments.manifest import ManifestKeys
from skymemory.segments.sky_segments import SegmentModel, SkySegments
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.store.block_store import BlockStore
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.segments import BLOCK, GEOMETRY, segments_on, tensor_of, tokens_of, whole
from support.settled import wait_until_settled
from support.spread import shares_of
from support.waiting import PATIENCE_S, wait_until

Start = Callable[..., LocalConstellation]


@pytest.fixture
def sky(start_sky: Start) -> LocalConstellation:
    return start_sky(cache={"chunk_bytes": 2000, "deadline_ms": 60_000})


@pytest.fixture
def hosts(sky: LocalConstellation, tmp_path: Path) -> Iterator[tuple[SkySegments, SkySegments]]:
    """Two hosts with stores of their own."""
    with SkyStore(sky.constellation) as one, SkyStore(sky.constellation) as other:
        wait_until_settled(one)  # else what one has purged the other takes for incomplete, for a while
        yield segments_on(one, tmp_path / "one"), segments_on(other, tmp_path / "other")


def came(segments: SkySegments, segment: str) -> torch.Tensor:
    """All layers of a segment that comes whole."""
    with segments.fetch([segments.get(segment)]) as fetch:
        [part] = fetch.parts[0]
        layers = [part.layer(index) for index in range(1, GEOMETRY.layers)]
    return torch.stack([layer for layer in layers if layer is not None])


def chunks_held(local: LocalConstellation) -> int:
    """Chunks on all satellites."""
    routes = [Route(place, place) for place in local.processes]
    with ControlPlane(local.constellation) as control:
        counters = control.store_stats(routes, PATIENCE_S)
    assert len(counters) == len(routes)
    return sum(one["chunks"] for one in counters.values())


def test_another_host_fetches_what_was_put(hosts: tuple[SkySegments, SkySegments], sky: LocalConstellation) -> None:
    one, other = hosts
    tokens = tokens_of(200)
    put = one.put(tokens, tensor_of(tokens), ttl_s=3600)
    assert torch.equal(came(other, put.id), tensor_of(tokens))
    assert other.put(tokens, lambda: pytest.fail("it is there")).size_bytes == put.size_bytes
    one.expire(put.id)
    assert chunks_held(sky) == 1 + sky.constellation.cache.parity  # copies of the manifest's deletion
    for host in hosts:
        with pytest.raises(UnknownSegmentError, match="the sky has no segment"):
            host.get(put.id)


def test_changes_reach_hosts_that_have_seen_older_ones(hosts: tuple[SkySegments, SkySegments]) -> None:
    one, other = hosts
    tokens = tokens_of(40)
    found = one.put(tokens, tensor_of(tokens), display_name="first").id
    for number, (writer, reader) in enumerate([(one, other), (other, one), (one, other), (one, other)]):
        assert reader.get(found)
        writer.update(found, display_name=str(number), ttl_s=100 + number)
        assert reader.get(found).display_name == str(number)
        assert reader.get(found) == writer.get(found)


def test_an_older_manifest_on_the_satellites_is_refused(hosts: tuple[SkySegments, SkySegments], sky: LocalConstellation) -> None:
    """Somebody who saw the sealed manifest deletes the newer one and puts back the older one."""
    one, other = hosts
    tokens = tokens_of(40)
    found = one.put(tokens, tensor_of(tokens), display_name="old").id
    with SkyStore(sky.constellation) as attacker:
        key = ManifestKeys(attacker.tenant_secret).key_of(found)
        [old] = attacker.get([key])
        assert old.data is not None
        one.update(found, display_name="new")
        assert other.get(found).display_name == "new"
        [refused] = attacker.put([(key, old.data)])
        assert not refused.ok  # satellites hold a newer one
        attacker.purge([key])
        assert attacker.put([(key, old.data)])[0].ok
    for host in hosts:
        with pytest.raises(UnknownSegmentError, match="an older manifest"):
            host.get(found)
    assert one.put(tokens, tensor_of(tokens)).id == found
    assert {host.get(found).display_name for host in hosts} == {""}


def test_hosts_that_put_the_same_segment_at_once(hosts: tuple[SkySegments, SkySegments]) -> None:
    """Also with other bits, as other processors compute them: what comes is of one of them, block by block."""
    tokens, ready = tokens_of(150), threading.Barrier(2)
    given = [tensor_of(tokens), tensor_of(tokens) + 2**-10]
    found: list[str] = []
    errors: list[SegmentError] = []

    def put(host: SkySegments, tensors: torch.Tensor) -> None:
        ready.wait(PATIENCE_S)
        try:
            found.append(host.put(tokens, tensors, ttl_s=3600).id)
        except SegmentError as error:  # the other one counts
            errors.append(error)

    threads = [threading.Thread(target=put, args=pair) for pair in zip(hosts, given, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found, errors
    again = hosts[0].put(tokens, given[0]).id
    layers = came(hosts[1], again)
    for layer in range(GEOMETRY.layers - 1):
        for start in range(0, 150, BLOCK):
            block = layers[layer, :, :, start : start + BLOCK]
            assert any(torch.equal(block, one[layer, :, :, start : start + BLOCK]) for one in given)


def test_one_host_expires_what_another_reads(hosts: tuple[SkySegments, SkySegments]) -> None:
    one, other = hosts
    tokens = tokens_of(150)
    found = one.put(tokens, tensor_of(tokens)).id
    manifest = other.get(found)
    assert torch.equal(came(other, found), tensor_of(tokens))
    one.expire(found)
    with other.fetch([manifest]) as fetch:  # its index still knows the blocks
        layers = [part.layer(index) for part in fetch.parts[0] for index in range(1, GEOMETRY.layers)]
    assert all(layer is None for layer in layers)
    assert other.find(manifest) == [False] * 10
    with pytest.raises(UnknownSegmentError):
        other.get(found)
    assert one.put(tokens, tensor_of(tokens)).id == found
    assert torch.equal(came(other, found), tensor_of(tokens))


def test_a_sky_that_falls_silent(
    hosts: tuple[SkySegments, SkySegments],
    start_sky: Start,
    stopped: Callable[..., AbstractContextManager[None]],
    tmp_path: Path,
) -> None:
    quick = start_sky(cache={"deadline_ms": 300})
    tokens = tokens_of(40)
    with SkyStore(quick.constellation) as store, SkyStore(quick.constellation) as second:
        segments, other = segments_on(store, tmp_path / "silent"), segments_on(second, tmp_path / "second")
        found = segments.put(tokens, tensor_of(tokens)).id
        manifest = segments.get(found)
        with stopped(quick):
            with segments.fetch([manifest]) as fetch:
                layers = [part.layer(index) for part in fetch.parts[0] for index in range(1, GEOMETRY.layers)]
            assert all(layer is None for layer in layers)
            assert segments.get(found) == manifest
            with pytest.raises(SilentSkyError, match="nobody answers"):
                other.get(found)
            with pytest.raises(SilentSkyError):
                other.put(tokens, tensor_of(tokens))
            with pytest.raises(SilentSkyError):
                segments.expire(found)


def test_a_lost_satellite_costs_the_blocks_that_it_held(start_sky: Start, tmp_path: Path) -> None:
    """Blocks of one chunk each are on one satellite: the others still come."""
    sky = start_sky(cache={"parity": 0, "chunk_bytes": 20_000, "deadline_ms": 1000})
    lone = sky.constellation
    tokens = tokens_of(16 * 12)
    with SkyStore(lone) as store:
        segments = segments_on(store, tmp_path / "lone")
        manifest = segments.get(segments.put(tokens, tensor_of(tokens)).id)
    sky.kill(next(iter(sky.processes)))
    with SkyStore(lone) as store, segments_on(store, tmp_path / "lone").fetch([manifest]) as fetch:
        for part in fetch.parts[0]:
            for index in range(1, GEOMETRY.layers):
                layer = part.layer(index)
                wanted = tensor_of(tokens)[index - 1, :, :, part.first : part.first + part.tokens]
                assert layer is None or torch.equal(layer, wanted)


def test_what_only_a_lost_satellite_has_stays_in_the_list(start_sky: Start, tmp_path: Path) -> None:
    sky = start_sky(cache={"parity": 0, "chunk_bytes": 20_000, "deadline_ms": 300})
    tokens = tokens_of(40)
    with SkyStore(sky.constellation) as store:
        found = segments_on(store, tmp_path / "host").put(tokens, tensor_of(tokens)).id
        (holder, *_) = shares_of(sky.constellation, ManifestKeys(store.tenant_secret).key_of(found))
    sky.kill(holder)
    with SkyStore(sky.constellation) as store:
        segments = segments_on(store, tmp_path / "host")

        def failure() -> type[Exception] | None:
            try:
                segments.get(found)
            except SegmentError as error:
                return type(error)
            return None

        # Once the satellite is known to be lost, its stand-in says that it has no such manifest
        wait_until(lambda: failure() is HiddenSegmentError)
        assert [one.id for one in segments.listed()] == [found]
        assert segments.put(tokens, tensor_of(tokens)).id == found
        assert failure() is None


def test_a_lost_satellite_keeps_no_segment_alive(start_sky: Start, tmp_path: Path) -> None:
    sky = start_sky(cache={"parity": 2, "chunk_bytes": 2000, "deadline_ms": 1000})
    tokens = tokens_of(60)
    with SkyStore(sky.constellation) as store, SkyStore(sky.constellation) as second:
        segments, other = segments_on(store, tmp_path / "one"), segments_on(second, tmp_path / "other")
        found = segments.put(tokens, tensor_of(tokens)).id
        sky.kill(shares_of(sky.constellation, ManifestKeys(store.tenant_secret).key_of(found))[0])
        assert torch.equal(came(segments, found), tensor_of(tokens))
        segments.expire(found)
        for host in (segments, other):
            with pytest.raises(UnknownSegmentError):
                host.get(found)
        assert segments.put(tokens, tensor_of(tokens)).id == found
        assert torch.equal(came(other, found), tensor_of(tokens))


def test_through_the_agent(sky: LocalConstellation, tmp_path: Path, hosts: tuple[SkySegments, SkySegments]) -> None:
    tell_up(tmp_path / "agent", sky)
    tokens = tokens_of(200)
    with AgentProcess(tmp_path / "agent") as agent, AgentStore(agent.socket, tenant_secret=secret_of(hosts[0])) as store:
        agent.wait_ready()
        assert store.wait_connected(PATIENCE_S)
        segments = segments_on(store, tmp_path / "engine")
        found = segments.put(tokens, tensor_of(tokens), ttl_s=3600).id
        assert torch.equal(came(segments, found), tensor_of(tokens))
        assert torch.equal(came(hosts[0], found), tensor_of(tokens))
        hosts[0].update(found, display_name="by another host")
        assert segments.get(found).display_name == "by another host"
        segments.update(found, display_name="by this one")
        assert hosts[0].get(found).display_name == "by this one"
        manifest = segments.get(found)
        hosts[0].expire(found)
        with pytest.raises(UnknownSegmentError):
            segments.get(found)
        with segments.fetch([manifest]) as fetch:
            assert all(part.layer(1) is None for part in fetch.parts[0])
    assert chunks_held(sky) == 1 + sky.constellation.cache.parity


def secret_of(segments: SkySegments) -> bytes:
    return segments.directory.tenant_secret


# ---- exact keys --------------------------------------------------------------------------------------------------------


@given(tokens=st.lists(st.integers(0, 255), min_size=1, max_size=100), sinks=st.sampled_from([0, 4]))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_of_a_segment_is_found_under_an_exact_key(
    make_llama: Callable[..., Any], tokenizer: Any, sky: LocalConstellation, tmp_path: Path, tokens: list[int], sinks: int
) -> None:
    """With the model's own fingerprint, and the same codec, block size and secret."""
    llama = make_llama(seed=1)
    with SkyStore(sky.constellation) as store:
        manager = KVCManager(llama, tokenizer, store, codec="raw", block_tokens=BLOCK)
        segments = segments_of(manager, llama, tokenizer, store, tmp_path)
        found = segments.put(tokens, lambda: random_of(segments, tokens), sinks=sinks).id
        keys = segments.directory.keys(segments.get(found))
        doubled = [*tokens, *tokens, *tokens]
        for prompt in (tokens, doubled):
            exact = set(manager.keys(prompt))
            assert not exact & {*keys.all, ManifestKeys(store.tenant_secret).key_of(found)}
            assert manager.get_cache(prompt).get_seq_length() == 0
            assert manager.get_cache(prompt, scope=b"user").get_seq_length() == 0
            assert not any(one.entry for one in store.find(list(exact), fresh=True))
        # And what is exact is no segment's
        manager.add_blocks(doubled)
        assert manager.get_cache(doubled).get_seq_length() == (len(doubled) - 1) // BLOCK * BLOCK or len(doubled) % BLOCK == 0
        segments.expire(found)
        assert segments.put(tokens, lambda: random_of(segments, tokens), sinks=sinks).id == found
        segments.expire(found)


def segments_of(manager: KVCManager, llama: Any, tokenizer: Any, store: BlockStore, folder: Path) -> SkySegments:
    from skymemory.prompt.fingerprint import Fingerprint
    from skymemory.prompt.huggingface import HuggingFaceEngine

    engine = HuggingFaceEngine(llama)
    model = SegmentModel(Fingerprint(llama, tokenizer).digest, engine.geometry, engine.vocabulary)
    return SkySegments(store, model, codec=manager.codec, block_tokens=manager.block_tokens, folder=folder)


def random_of(segments: SkySegments, tokens: list[int]) -> torch.Tensor:
    return torch.randn(2, 2, 2, len(tokens), 16)


def test_segments_that_are_expected_wait_where_they_will_be_needed(start_sky: Start, tmp_path: Path) -> None:
    sky = start_sky(constellation={"planes": 5, "slots": 9}).constellation
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (3_600_000, Satellite(2, 5))])
    playing = Playing(track, time.time() - 60)
    tokens = [tokens_of(40), tokens_of(20, 1)]
    with SkyStore(sky, playing=playing) as store:
        segments = segments_on(store, tmp_path)
        manifests = [segments.get(segments.put(own, tensor_of(own)).id) for own in tokens]
        at_s = playing.started_unix_s + 3_700
        assert segments.expect(manifests, at_s) == [ExpectReport(3, 3, 0), ExpectReport(2, 2, 0)]
        assert all(segments.find(manifests[0]))
    with SkyStore(sky, playing=Playing(track, time.time() - 3_601)) as store:
        segments = segments_on(store, tmp_path)
        for own, manifest in zip(tokens, manifests, strict=True):
            assert segments.get(manifest.id) == manifest
            with segments.fetch([manifest]) as fetch:
                assert torch.equal(whole(fetch), tensor_of(own))
        assert store.stats().purges == 0
