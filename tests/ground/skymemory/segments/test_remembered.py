"""Manifests that a program remembers, and how many."""

from pathlib import Path

import pytest

from skymemory.segments.errors import SilentSkyError
from skymemory.segments.manifest import Manifest
from skymemory.segments.remembered import MANIFESTS_MAX, RememberedManifests
from skymemory.segments.sky_segments import SkySegments
from support.memory_store import MemoryStore
from support.segments import segments_on, stored, tokens_of


@pytest.fixture
def manifests(segments: SkySegments) -> list[Manifest]:
    """Five manifests of 10, 20, 30, 40 and 50 tokens."""
    return [segments.get(stored(segments, tokens_of(10 * number, seed=number))) for number in range(1, 6)]


def kept(remembered: RememberedManifests, manifests: list[Manifest]) -> list[int]:
    """Return the numbers of the manifests that are remembered, counted from 1."""
    return [number for number, one in enumerate(manifests, 1) if remembered.get(one.id) is one]


def test_what_was_seen_longest_ago_is_forgotten(manifests: list[Manifest]) -> None:
    remembered = RememberedManifests(manifests_max=3)
    for one in (*manifests[:3], manifests[0], manifests[3]):
        remembered.add(one)
    assert kept(remembered, manifests) == [1, 3, 4]


def test_token_ids_are_bounded_too(manifests: list[Manifest]) -> None:
    remembered = RememberedManifests(tokens_max=100)
    for one in manifests[:4]:
        remembered.add(one)
    assert kept(remembered, manifests) == [1, 2, 3, 4]  # 100 tokens
    remembered.add(manifests[0])  # the same again takes no more room
    assert kept(remembered, manifests) == [1, 2, 3, 4]
    remembered.add(manifests[4])
    assert kept(remembered, manifests) == [1, 4, 5]
    remembered.forget(manifests[3].id)
    remembered.forget(manifests[3].id)
    remembered.add(manifests[2])
    assert kept(remembered, manifests) == [1, 3, 5]


def test_the_last_one_stays_however_long_it_is(manifests: list[Manifest]) -> None:
    remembered = RememberedManifests(tokens_max=15)
    for number, one in enumerate(manifests, 1):
        remembered.add(one)
        assert kept(remembered, manifests) == [number]


def test_a_program_knows_its_last_segments_under_a_silent_sky(store: MemoryStore, tmp_path: Path) -> None:
    segments = segments_on(store, tmp_path)
    found = [stored(segments, tokens_of(5, seed=number)) for number in range(MANIFESTS_MAX + 1)]
    store.is_silent = True
    with pytest.raises(SilentSkyError):
        segments.get(found[0])
    assert [segments.get(one).id for one in found[1:]] == found[1:]
