"""Segments of one host on a store in memory."""

from pathlib import Path

import pytest

from skymemory.segments.sky_segments import SkySegments
from support.memory_store import MemoryStore
from support.segments import Clock, segments_on


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def segments(store: MemoryStore, tmp_path: Path, clock: Clock) -> SkySegments:
    return segments_on(store, tmp_path, clock=clock)
