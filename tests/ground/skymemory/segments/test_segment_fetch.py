"""A fetch decodes a group of layers while the next one is on its way."""

from collections.abc import Generator, Sequence
from pathlib import Path
from threading import Event

import torch

from skymemory.link.block_entry import BlockEntry
from skymemory.store.block_store import BLOCK_BYTES_MAX
from skymemory.store.results import GetResult
from support.memory_store import MemoryStore
from support.segments import BLOCK, segments_on, stored, tensor_of, tokens_of
from support.waiting import PATIENCE_S


class HeldStore(MemoryStore):
    """Gives the second half of what is asked for only when it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = Event()

    def get_each(
        self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX
    ) -> Generator[GetResult, None, None]:
        results = self.get(entries, block_bytes_max=block_bytes_max)
        half = len(results) // 2
        yield from results[:half]
        if self.released.wait(PATIENCE_S):
            yield from results[half:]


def test_the_first_group_is_decoded_before_the_second_one_comes(tmp_path: Path) -> None:
    store = HeldStore()
    segments = segments_on(store, tmp_path)
    tokens = tokens_of(3 * BLOCK)
    segment = stored(segments, tokens)
    tensor = tensor_of(tokens)
    with segments.fetch([segments.get(segment)], first_layer=2) as fetch:  # two groups of one layer each
        [[part]] = fetch.parts
        first = part.layer(2)
        assert first is not None  # a fetch that gathers all before it decodes gets nothing, and gives None in the end
        assert torch.equal(first, tensor[1])
        assert len(fetch.decodes) == 3
        assert not store.released.is_set()
        store.released.set()
        second = part.layer(3)
        assert second is not None
        assert torch.equal(second, tensor[2])
