"""Carries blocks between an engine's memory and the sky, through the agent; for engines that ask from threads of their own.

A block is copied once each way, between the pieces of the engine's host memory and the agent's shared memory. Faults behind the
agent's socket do not raise: a block that does not come, or is damaged, is a miss.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeVar

from skymemory.agent.client import AgentClient, EngineInfo, Outcome
from skymemory.agent.lease import Lease
from skymemory.engines.framing import BlockFormat, Framing
from skymemory.wire.envelope import BlockError
from skymemory.wire.key_derivation import name_key

_log = logging.getLogger(__name__)
T = TypeVar("T")

ANSWER_S: Final = 60.0
"""Seconds after which an answer of the agent is a miss. The agent itself reports misses sooner."""
_WINDOWS: Final = 2
"""Parts of a batch that are on their way at once: while one comes, the one before is checked and copied."""
_ASKED_AT_ONCE: Final = 256
"""Questions about single blocks that are asked at once."""
_ARENA_MIB_MAX: Final = 1 << 18
"""Largest arena that the agent allows."""


@dataclass(frozen=True, slots=True)
class CarrierSettings:
    """Settings of a person; names and units are those of the engines' own JSON options."""

    socket: str | None = None
    """Path of the agent's socket; by default where the agent puts it."""
    tenant_secret_file: str | None = None
    """File whose bytes go into all keys: without them blocks are neither found nor read. Default: the agent's secret."""
    arena_mib: int = 256
    """Memory of each process for blocks on their way."""

    @classmethod
    def of(cls, extra: dict[str, Any]) -> CarrierSettings:
        """Take the settings from among the engine's own.

        Raises:
            ValueError: A setting is wrong; the message names it and what is allowed.
        """
        told = cls(**{field.name: extra[field.name] for field in fields(cls) if field.name in extra})
        for name in ("socket", "tenant_secret_file"):
            if not isinstance(getattr(told, name), str | None):
                raise ValueError(f"SkyMemory: {name} is {getattr(told, name)!r}; allowed is a path")
        mib = told.arena_mib
        if isinstance(mib, bool) or not isinstance(mib, int) or not 1 <= mib <= _ARENA_MIB_MAX:
            raise ValueError(f"SkyMemory: arena_mib is {mib!r}; allowed are whole numbers from 1 to {_ARENA_MIB_MAX}")
        return told


@dataclass(frozen=True, slots=True)
class Block:
    """A block under its key in the sky, and the host memory that it is read from or goes to."""

    key: bytes
    pieces: Sequence[memoryview]


@dataclass(frozen=True, slots=True)
class _Window:
    """Blocks on their way, in as many leases as there was room for."""

    blocks: Sequence[Block]
    leases: list[Lease]
    outcomes: Future[list[Outcome]] | None
    up: bool


class Carrier:
    """A connection to the agent for blocks of one format. Thread-safe.

    The agent takes blocks of one size from each connection.
    """

    def __init__(
        self,
        engine: str,
        model: str,
        block_format: BlockFormat,
        root: bytes,
        settings: CarrierSettings,
        *,
        body_bytes: int | None = None,
        processes: int = 1,
    ) -> None:
        """Connect to the agent.

        Args:
            engine: Name of the engine for the agent.
            model: Name of the model for the agent.
            block_format: Format of one layer.
            root: Root of all keys, from `BlockFormat.root`.
            body_bytes: Bytes of all pieces of a block. Default: those of the format.
            processes: Processes of the engine, each of which stores its part of every block.

        Raises:
            ValueError: The arena is too small for such blocks.
        """
        self.names = name_key(root)
        """Key of the blocks' names, for `block_key`."""
        self.framing = Framing(block_format, root)
        self._body_bytes = block_format.layer_bytes if body_bytes is None else body_bytes
        arena_bytes = settings.arena_mib << 20
        self._at_once = arena_bytes // _WINDOWS // self.framing.block_bytes
        if not self._at_once:
            needed = -(-_WINDOWS * self.framing.block_bytes >> 20)
            raise ValueError(f"SkyMemory: a block has {self.framing.block_bytes} bytes; arena_mib is to be {needed} or more")
        block_tokens, dtype = block_format.share(processes)
        info = EngineInfo(
            name=engine,
            model=model,
            root=root,
            block_tokens=block_tokens,
            block_bytes=self.framing.block_bytes,
            dtype=dtype,
        )
        self.client = AgentClient(Path(settings.socket) if settings.socket else None, engine=info, arena_bytes=arena_bytes)

    def worth(self, keys: Sequence[bytes], *, cached: int = 0) -> int:
        """Return how many blocks after the first `cached` ones are there and come faster than the engine computes them."""
        found = _answer(self.client.find(keys, cached=cached), "find")
        return 0 if found is None else found.fetch

    def beginning(self, keys: Sequence[bytes], *, wanted: bool = True) -> int:
        """Return how many blocks, from the first one on, are there.

        Args:
            wanted: True if the blocks are to be fetched, so that missing ones count as misses.
        """
        found = _answer(self.client.find(keys, wanted=wanted), "find")
        return 0 if found is None else found.blocks

    def each(self, keys: Sequence[bytes]) -> list[bool]:
        """Return which blocks are there. The questions go out at once, and the agent puts them together."""
        there: list[bool] = []
        for first in range(0, len(keys), _ASKED_AT_ONCE):
            asked = [self.client.find([key]) for key in keys[first : first + _ASKED_AT_ONCE]]
            answers = [_answer(future, "find") for future in asked]
            there += [answer is not None and answer.blocks == 1 for answer in answers]
        return there

    def get(self, blocks: Sequence[Block]) -> list[bool]:
        """Fetch blocks into their pieces, and return which of them are there now.

        The pieces of other blocks keep their contents.
        """
        return self._moved(blocks, up=False)

    def put(self, blocks: Sequence[Block]) -> list[bool]:
        """Store blocks that are not there yet, and return which are there now.

        Engines store again what they have forgotten.
        """
        there = self.beginning([block.key for block in blocks], wanted=False)
        return [True] * there + self._moved(blocks[there:], up=True)

    def close(self) -> None:
        """End the connection. A second call does nothing."""
        self.client.close()

    def _moved(self, blocks: Sequence[Block], *, up: bool) -> list[bool]:
        """Carry blocks through the arena, part by part."""
        done: list[bool] = []
        waiting: deque[_Window] = deque()
        for first in range(0, len(blocks), self._at_once):
            if len(waiting) == _WINDOWS:
                done += self._landed(waiting.popleft())
            waiting.append(self._depart(blocks[first : first + self._at_once], up=up))
        for window in waiting:
            done += self._landed(window)
        return done

    def _depart(self, blocks: Sequence[Block], *, up: bool) -> _Window:
        leases: list[Lease] = []
        try:
            for block in blocks:
                lease = self.client.lease(self.framing.block_bytes, timeout_s=ANSWER_S)
                if lease is None:
                    break
                leases.append(lease)
                if up:
                    self._fill(lease.view, block)
            asked = [(block.key, lease) for block, lease in zip(blocks, leases, strict=False)]
            outcomes = (self.client.put(asked) if up else self.client.get(asked)) if asked else None
            return _Window(blocks, leases, outcomes, up)
        except BaseException:
            for lease in leases:
                lease.release()
            raise

    def _landed(self, window: _Window) -> list[bool]:
        """Wait for a part of a batch, and take what has come."""
        try:
            outcomes = None if window.outcomes is None else _answer(window.outcomes, "put" if window.up else "get")
            done = [outcome.ok for outcome in outcomes or ()]
            if not window.up:
                moved = zip(window.blocks, window.leases, done, strict=False)
                done = [ok and self._taken(lease.view, block) for block, lease, ok in moved]
            return done + [False] * (len(window.blocks) - len(done))
        finally:
            for lease in window.leases:
                lease.release()

    def _fill(self, place: memoryview, block: Block) -> None:
        """Copy a block to where it is sent from, and seal it."""
        for piece, part in self._parts(place, block):
            part[:] = piece
        self.framing.seal(place, block.key)

    def _taken(self, place: memoryview, block: Block) -> bool:
        """Open a block that has come, and copy it to where it goes."""
        try:
            self.framing.open(place, block.key)
        except BlockError as error:
            _log.warning("SkyMemory: block %s is treated as missing: %s", block.key.hex(), error)
            self.client.purge([block.key])  # the computed block takes its place
            return False
        for piece, part in self._parts(place, block):
            piece[:] = part
        return True

    def _parts(self, place: memoryview, block: Block) -> Iterator[tuple[memoryview, memoryview]]:
        """Yield each piece with its part of a block in the arena.

        Raises:
            ValueError: The pieces do not make up a block.
        """
        total = sum(piece.nbytes for piece in block.pieces)
        if total != self._body_bytes:
            raise ValueError(f"pieces of {total} bytes for a block of {self._body_bytes}")
        (body,) = self.framing.layers(place)
        ends = accumulate(piece.nbytes for piece in block.pieces)
        for piece, end in zip(block.pieces, ends, strict=True):
            yield piece, body[end - piece.nbytes : end]


def memory_at(pointer: int, size: int) -> memoryview:
    """Return host memory of the engine as bytes; the user of the view must keep the memory alive."""
    return memoryview(_array_type(size).from_address(pointer)).cast("B")


@cache
def _array_type(size: int) -> Any:
    """Return the type of a char array. It is cached: ctypes makes a new one each time, and engines have few sizes."""
    return ctypes.c_char * size


def _answer(future: Future[T], what: str) -> T | None:
    try:
        return future.result(ANSWER_S)
    except FutureTimeoutError:
        _log.warning("SkyMemory: the agent has not answered a %s within %g s; it counts as a miss", what, ANSWER_S)
        return None
