"""`SegmentFetch`: blocks of segments on their way from the sky, group by group of layers, in a thread of its own.

A part of a segment is a run of blocks that the sky has. What it does not have is left to the model. If a block that was found
does not come, or is damaged, the layers of its group are missing for its part.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from threading import Condition, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

import torch

from skymemory.link.block_entry import BlockEntry
from skymemory.prompt.codecs import CodecError
from skymemory.segments.keys import SegmentKeys
from skymemory.segments.segment_blocks import SegmentCoder
from skymemory.store.block_store import BlockStore
from skymemory.store.results import GetResult
from skymemory.wire.envelope import BlockError

if TYPE_CHECKING:
    from torch import Tensor

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedSegment:
    """A segment that is to be fetched."""

    keys: SegmentKeys
    coder: SegmentCoder


@dataclass(frozen=True, slots=True)
class _Waits:
    """Waits for what comes: one condition for all parts, and how long to wait for each group."""

    condition: Condition
    begun_s: float
    deadlines_s: Mapping[int, float]

    def left_s(self, group: int) -> float | None:
        """Return for how many seconds to wait from now; None if there is no deadline."""
        deadline_s = self.deadlines_s.get(group, math.inf)
        return None if deadline_s == math.inf else max(0.0, self.begun_s + deadline_s - time.monotonic())


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of a block: the part that it belongs to, and its index in the segment."""

    part: SegmentPart
    block: int


class SegmentPart:
    """A run of blocks of a segment, as a source of its layers (`skymemory.segments.pieces.LayerSource`).

    Attributes:
        first: First token, counted from the segment's first one.
        tokens: Number of tokens.
    """

    def __init__(self, wanted: WantedSegment, blocks: range, groups: Sequence[range], waits: _Waits) -> None:
        self.first = wanted.keys.span(blocks[0]).start
        self.tokens = wanted.keys.span(blocks[-1]).stop - self.first
        self.wanted = wanted
        self.blocks = blocks
        self._groups = groups
        self._waits = waits
        self._condition = waits.condition
        self._came: dict[int, Tensor | None] = {}
        """Tensors by group, None if one did not come. Groups on their way are not in it."""
        self._lowest = 0
        self._filling: dict[int, dict[int, Tensor]] = {}

    def layer(self, index: int) -> Tensor | None:
        """Wait for a layer from 1 on, and return it: [2, kv_heads, tokens, head_dim].

        None: it did not come, it is late, or it is not fetched. Layers are to be asked for in ascending order: groups of lower
        layers are given up.
        """
        group = next((number for number, layers in enumerate(self._groups) if index in layers), None)
        if group is None:
            return None
        with self._condition:
            self._lowest = max(self._lowest, group)
            for lower in [number for number in self._came if number < self._lowest]:
                self._came[lower] = None
            self._condition.wait_for(lambda: group in self._came, self._waits.left_s(group))
            tensors = self._came.get(group)
        return None if tensors is None else tensors[index - self._groups[group].start]

    def take(self, group: int, block: int, tensors: Tensor | None) -> None:
        """Take a group of a block, or None for one that did not come. Only the thread of the fetch calls this."""
        if tensors is None:
            self.end(group)
        elif group not in self._came:
            filling = self._filling.setdefault(group, {})
            filling[block] = tensors
            if len(filling) == len(self.blocks):
                joined = torch.cat([filling[one] for one in self.blocks], 3)
                del self._filling[group]
                with self._condition:
                    self._came.setdefault(group, joined if group >= self._lowest else None)
                    self._condition.notify_all()

    def end(self, group: int) -> None:
        """Give a group up, unless it is there."""
        with self._condition:
            self._came.setdefault(group, None)
            self._condition.notify_all()


class SegmentFetch:
    """Segments on their way. Close it when nothing more is needed; a context manager.

    Attributes:
        parts: Parts of each segment that the sky has, in order.
        loads: Bytes that had come, and how many seconds after the look-up, for each block that came.
        decodes: Bytes of each block that was opened, and the seconds that this took.
    """

    def __init__(
        self,
        store: BlockStore,
        wanted: Sequence[WantedSegment],
        groups: Sequence[range],
        first_layer: int,
        deadlines_s: Mapping[int, float],
    ) -> None:
        """Look up the blocks, and begin to fetch them. Failures of the sky do not raise: what does not come is None.

        Args:
            store: The store.
            wanted: The segments, in the order in which they stand in the prompt.
            groups: The layers of each group.
            first_layer: Lowest layer that is needed. Groups below it are not fetched.
            deadlines_s: Seconds from now to wait for a group, by its number; without one until the store gives it up.
        """
        self._store = store
        self._is_closed = False
        self._waits = _Waits(Condition(), time.monotonic(), deadlines_s)
        self.loads: list[tuple[int, float]] = []
        self.decodes: list[tuple[int, float]] = []
        self._fetched = [number for number, layers in enumerate(groups) if layers.stop > first_layer]
        self._groups = groups
        found = self._find(wanted)
        self.parts = [list(self._parts_of(one, found)) for one in wanted]
        self._queue = self._ordered(found)
        self._thread = Thread(target=self._run, name="skymem-segments", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give up what has not come; safe to call twice. A block that is on its way may still be fetched."""
        self._is_closed = True
        self._end_all()

    # ---- what the sky has -------------------------------------------------------------------------------------------

    def _find(self, wanted: Sequence[WantedSegment]) -> dict[bytes, BlockEntry]:
        keys = [key for one in wanted for group in self._fetched for key in one.keys.of_group(group)]
        try:
            found = self._store.find(list(dict.fromkeys(keys))) if keys else []
        except (OSError, ValueError) as error:
            _log.warning("segments could not be looked up: %s", error)
            return {}
        return {one.key: one.entry for one in found if one.entry is not None}

    def _parts_of(self, wanted: WantedSegment, found: dict[bytes, BlockEntry]) -> Iterator[SegmentPart]:
        """Yield the runs of blocks of which the sky has all groups that are fetched."""
        run: list[int] = []
        for block in range(wanted.keys.blocks + 1):
            keys = [wanted.keys.of_group(group)[block] for group in self._fetched] if block < wanted.keys.blocks else []
            if keys and all(key in found for key in keys):
                run.append(block)
            elif run:
                yield SegmentPart(wanted, range(run[0], run[-1] + 1), self._groups, self._waits)
                run = []

    def _ordered(self, found: dict[bytes, BlockEntry]) -> list[tuple[int, BlockEntry, list[_Place]]]:
        """Return groups, entries and places of all blocks in the order in which they are fetched. Each block is fetched once."""
        queue = []
        for group in self._fetched:
            places: dict[bytes, list[_Place]] = {}
            for part in (part for parts in self.parts for part in parts):
                for block in part.blocks:
                    places.setdefault(part.wanted.keys.of_group(group)[block], []).append(_Place(part, block))
            queue += [(group, found[key], where) for key, where in places.items()]
        return queue

    # ---- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._fetch()
        except Exception as error:  # whatever it is, the model computes what did not come
            _log.warning("segments could not be fetched: %r", error)
        finally:
            self._end_all()

    def _fetch(self) -> None:
        most = max((place.part.wanted.coder.bytes_max(group) for group, _, places in self._queue for place in places), default=1)
        asked_s, size = time.monotonic(), 0
        with closing(self._store.get_each([entry for _, entry, _ in self._queue], block_bytes_max=most)) as results:
            for (group, _, places), result in zip(self._queue, results, strict=True):
                if self._is_closed:
                    return
                if result.data is not None:
                    size += len(result.data)
                    self.loads.append((size, time.monotonic() - asked_s))
                tensors = self._opened(result, places[0], group)
                for place in places:
                    place.part.take(group, place.block, tensors)

    def _opened(self, result: GetResult, place: _Place, group: int) -> Tensor | None:
        """Return the tensors of a block; None if it did not come, or is not right. What is not right is purged."""
        coder = place.part.wanted.coder

        def opens(data: bytearray) -> Tensor | None:
            try:
                return coder.unpack(data, place.block, group)
            except (BlockError, CodecError) as error:
                _log.info("a block of a segment cannot be used: %s", error)
                return None

        if result.data is None:
            return None
        length, begun_s = len(result.data), time.monotonic()
        tensors = self._store.opened(result, opens)
        if tensors is None:
            self._store.purge([result.key])
        else:
            self.decodes.append((length, time.monotonic() - begun_s))
        return tensors

    def _end_all(self) -> None:
        for part in (part for parts in self.parts for part in parts):
            for group in range(len(self._groups)):
                part.end(group)
