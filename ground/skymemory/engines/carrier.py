"""Carries blocks between an engine's memory and the sky, through the agent; for engines that ask from threads of their own.

One copy each way: between the pieces of host memory that a block consists of, and the agent's shared memory. Nothing raises for
what happens behind the agent's socket: what does not come, or is damaged, is a miss.
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
from skymemory.engines.framing import BlockFormat, FrameError, Framing

_log = logging.getLogger(__name__)
T = TypeVar("T")

ANSWER_S: Final = 60.0
"""what the agent has not answered by then is a miss; it says itself sooner what it does not get"""
_WINDOWS: Final = 2
"""so many parts of a batch are on their way at once: while one comes, the one before is checked and copied"""
_ASKED_AT_ONCE: Final = 256
"""questions about single blocks"""
_ARENA_MIB_MAX: Final = 1 << 18
"""as the agent allows"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person sets; names and units are those of the engines' own JSON options."""

    socket: str | None = None
    """path of the agent's socket; by default where the agent puts it"""
    tenant_secret_file: str | None = None
    """its bytes go into all keys and digests: without them blocks are neither found nor accepted"""
    arena_mib: int = 256
    """memory of each process for blocks on their way"""

    @classmethod
    def of(cls, extra: dict[str, Any]) -> Settings:
        """Take the settings from among the engine's own.

        Raises:
            ValueError: the message names the setting and what is allowed.
        """
        told = cls(**{field.name: extra[field.name] for field in fields(cls) if field.name in extra})
        for name in ("socket", "tenant_secret_file"):
            if not isinstance(getattr(told, name), str | None):
                raise ValueError(f"SkyMemory: {name} is {getattr(told, name)!r}; allowed is a path")
        mib = told.arena_mib
        if isinstance(mib, bool) or not isinstance(mib, int) or not 1 <= mib <= _ARENA_MIB_MAX:
            raise ValueError(f"SkyMemory: arena_mib is {mib!r}; allowed are whole numbers from 1 to {_ARENA_MIB_MAX}")
        return told

    def tenant_secret(self) -> bytes:
        """
        Raises:
            ValueError: the file cannot be read, or is empty.
        """
        if self.tenant_secret_file is None:
            return b""
        try:
            secret = Path(self.tenant_secret_file).read_bytes()
        except OSError as error:
            raise ValueError(f"SkyMemory: tenant_secret_file {self.tenant_secret_file}: {error.strerror or error}") from error
        if not secret:
            raise ValueError(f"SkyMemory: tenant_secret_file {self.tenant_secret_file} is empty")
        return secret


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
    """Of blocks of one format; a connection to the agent, which takes blocks of one size from each. Thread-safe."""

    def __init__(
        self,
        engine: str,
        model: str,
        block_format: BlockFormat,
        root: bytes,
        settings: Settings,
        *,
        body_bytes: int | None = None,
        processes: int = 1,
    ) -> None:
        """
        Args:
            engine: name for the agent.
            model: what the agent calls the model by.
            block_format: of one layer.
            root: of `framing.root`.
            body_bytes: what the pieces of a block have together. Default: as the format has.
            processes: of the engine, each of which stores its part of every block.

        Raises:
            ValueError: too little memory for such blocks.
        """
        self.root = root
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
        """How many blocks after the first `cached` ones are there and come faster than the engine computes them."""
        found = _answer(self.client.find(keys, cached=cached), "find")
        return 0 if found is None else found.fetch

    def beginning(self, keys: Sequence[bytes], *, wanted: bool = True) -> int:
        """How many blocks, from the first one on, are there.

        Args:
            wanted: whether the blocks are to be fetched, so that those that are not there count as misses.
        """
        found = _answer(self.client.find(keys, wanted=wanted), "find")
        return 0 if found is None else found.blocks

    def each(self, keys: Sequence[bytes]) -> list[bool]:
        """Which blocks are there. Asked for at once; the agent puts the questions together."""
        there: list[bool] = []
        for first in range(0, len(keys), _ASKED_AT_ONCE):
            asked = [self.client.find([key]) for key in keys[first : first + _ASKED_AT_ONCE]]
            answers = [_answer(future, "find") for future in asked]
            there += [answer is not None and answer.blocks == 1 for answer in answers]
        return there

    def get(self, blocks: Sequence[Block]) -> list[bool]:
        """Fetch blocks into their pieces; which of them are there now. The pieces of others are as they were."""
        return self._moved(blocks, up=False)

    def put(self, blocks: Sequence[Block]) -> list[bool]:
        """Store blocks that are not there yet; which of them are there now. Engines store again what they have forgotten."""
        there = self.beginning([block.key for block in blocks], wanted=False)
        return [True] * there + self._moved(blocks[there:], up=True)

    def close(self) -> None:
        """End the connection. Safe to call twice."""
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
        """Check a block that has come, and copy it to where it goes."""
        try:
            self.framing.check(place, block.key)
        except FrameError as error:
            _log.warning("SkyMemory: block %s is treated as missing: %s", block.key.hex(), error)
            self.client.purge([block.key])  # so that the computed one takes its place
            return False
        for piece, part in self._parts(place, block):
            piece[:] = part
        return True

    def _parts(self, place: memoryview, block: Block) -> Iterator[tuple[memoryview, memoryview]]:
        """Each piece with its part of a block in the arena.

        Raises:
            ValueError: the pieces do not make up a block.
        """
        total = sum(piece.nbytes for piece in block.pieces)
        if total != self._body_bytes:
            raise ValueError(f"pieces of {total} bytes for a block of {self._body_bytes}")
        (body,) = self.framing.layers(place)
        ends = accumulate(piece.nbytes for piece in block.pieces)
        for piece, end in zip(block.pieces, ends, strict=True):
            yield piece, body[end - piece.nbytes : end]


def memory_at(pointer: int, size: int) -> memoryview:
    """Host memory of the engine's; whoever uses the view sees to it that the memory stays."""
    return memoryview(_array_type(size).from_address(pointer)).cast("B")


@cache
def _array_type(size: int) -> Any:
    """Kept, for ctypes makes a new one each time; engines have few sizes."""
    return ctypes.c_char * size


def _answer(future: Future[T], what: str) -> T | None:
    try:
        return future.result(ANSWER_S)
    except FutureTimeoutError:
        _log.warning("SkyMemory: the agent has not answered a %s within %g s; it counts as a miss", what, ANSWER_S)
        return None
