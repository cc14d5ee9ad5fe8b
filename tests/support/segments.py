"""Small segments: what stores need of a model, and tensors of random keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from skymemory.prompt.huggingface import Geometry
from skymemory.segments.manifest import ManifestKeys
from skymemory.segments.segment_fetch import SegmentFetch
from skymemory.segments.sky_segments import SegmentModel, SkySegments
from skymemory.store.block_store import BlockStore

BLOCK = 16
GEOMETRY = Geometry(4, 2, 32, torch.float32, (torch.device("cpu"),) * 4)
VOCABULARY = 1000
HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


class Clock:
    """A clock that a test sets, in milliseconds since 1970."""

    def __init__(self, now_unix_ms: int = NOW_MS) -> None:
        self.now_unix_ms = now_unix_ms

    def __call__(self) -> int:
        return self.now_unix_ms


def model(fingerprint: bytes = b"m" * 32, geometry: Geometry = GEOMETRY) -> SegmentModel:
    return SegmentModel(lambda: fingerprint, geometry, VOCABULARY)


def tokens_of(count: int, seed: int = 0) -> list[int]:
    return [(7919 * index + 31 * seed + 5) % VOCABULARY for index in range(count)]


def tensor_of(tokens: Sequence[int], geometry: Geometry = GEOMETRY) -> Tensor:
    """Keys and values that depend on the tokens, as those of a model do."""
    shape = (geometry.layers - 1, 2, geometry.kv_heads, len(tokens), geometry.head_dim)
    generator = torch.Generator().manual_seed(sum(tokens) + len(tokens))
    return torch.randn(shape, generator=generator).to(geometry.dtype)


def segments_on(store: BlockStore, folder: Path, **words: Any) -> SkySegments:
    """A host's segments: its list is in `folder`."""
    chosen = {"codec": "raw", "block_tokens": BLOCK, "clock": Clock(), **words}
    return SkySegments(store, chosen.pop("model", model()), folder=folder, **chosen)


def stored(segments: SkySegments, tokens: Sequence[int], **words: Any) -> str:
    return segments.put(tokens, tensor_of(tokens), **words).id


def whole(fetch: SegmentFetch, number: int = 0) -> torch.Tensor:
    """All layers of a segment that came in one part."""
    [part] = fetch.parts[number]
    layers = [part.layer(index) for index in range(1, GEOMETRY.layers)]
    return torch.stack([layer for layer in layers if layer is not None])


def manifest_key(store: BlockStore, segment: str) -> bytes:
    return ManifestKeys(store.tenant_secret).key_of(segment)
