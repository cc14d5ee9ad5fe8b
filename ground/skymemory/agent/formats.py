"""In which formats a model's blocks lie in the sky, so that an engine that finds none of them is told why.

Keys of blocks depend on the format: an engine with another block size or dtype never gets a wrong block, it only misses. A record
for each model, in the sky beside the blocks, tells it apart from a cold cache. It is a hint: it may be lost or out of date.
"""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from blake3 import blake3
from msgspec import Meta, Struct

from skymemory.agent import protocol
from skymemory.agent.sky import Sky
from skymemory.link.control import Purged
from skymemory.results import Status

_log = logging.getLogger(__name__)

_DOMAIN: Final = "skymemory 1 formats of a model's blocks"
_FORMATS_MAX: Final = 8
"""of a model, the ones last stored"""
_RECORD_BYTES_MAX: Final = 4096
_PATIENCE_S: Final = 1.0
"""how long a Hello waits for it"""
_AGAIN_S: Final = 60.0
"""after a record that could not be stored; then with the engine's next block"""
_REFRESH_S: Final = 600.0
"""after one that was stored, for it may have been lost with a satellite; then with the engine's next block"""


class _Format(Struct, frozen=True, array_like=True):
    engine: protocol.Word
    block_tokens: protocol.Number
    dtype: protocol.Word
    root: protocol.Key
    stored_at: float
    """seconds since 1970"""

    @property
    def words(self) -> str:
        return f"blocks of {self.block_tokens} tokens in {_shown(self.dtype)}"


class _Record(Struct, frozen=True, array_like=True):
    digest: bytes
    formats: Annotated[list[_Format], Meta(max_length=_FORMATS_MAX)]


_DECODER: Final = msgspec.msgpack.Decoder(_Record)


class Formats:
    """Used from one event loop."""

    def __init__(self, sky: Sky) -> None:
        self._sky = sky
        self._next_s: dict[bytes, float] = {}
        """by root: when its format is to be recorded, on the monotonic clock"""
        self._saving = asyncio.Lock()
        """two formats of a model do not forget each other"""
        self._tasks: set[asyncio.Task[None]] = set()

    async def notes(self, hello: protocol.Hello) -> list[str]:
        """What an engine should be told: others have stored this model in another format, and nobody in this one."""
        try:
            formats = await asyncio.wait_for(self._load(hello.model), _PATIENCE_S)
        except TimeoutError:
            return []
        own = _of(hello)
        if not formats or any(one.root == own.root for one in formats):
            return []
        other = formats[0]
        if other.words != own.words:
            why = f"this engine has {own.words}"
        else:
            why = "this engine has other weights, adapters, shares of the tensors, layouts or secrets"
        return [f"{hello.model} is stored as {other.words} by {_shown(other.engine)}; {why}, and finds none of those"]

    def stored(self, hello: protocol.Hello) -> None:
        """An engine has stored a block: remember its format."""
        if time.monotonic() < self._next_s.get(hello.root, 0.0):
            return
        self._next_s[hello.root] = math.inf
        task = asyncio.create_task(self._save(hello))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self, model: str) -> list[_Format]:
        key = _key(model)
        result = (await self._sky.get([key], block_bytes_max=_RECORD_BYTES_MAX))[0]
        if result.data is None:
            return []
        try:
            record = _DECODER.decode(result.data)
        except (msgspec.ValidationError, msgspec.DecodeError):
            return []
        return record.formats if record.digest == _digest(key, record.formats) else []

    async def _save(self, hello: protocol.Hello) -> None:
        own, key = _of(hello), _key(hello.model)
        async with self._saving:
            others = [one for one in await self._load(hello.model) if one.root != own.root]
            formats = [own, *others][:_FORMATS_MAX]
            why = await self._replace(key, msgspec.msgpack.encode(_Record(_digest(key, formats), formats)))
        self._next_s[hello.root] = time.monotonic() + (_AGAIN_S if why else _REFRESH_S)
        if why:
            _log.info("the format of %s was not recorded: %s", hello.model, why)

    async def _replace(self, key: bytes, record: bytes) -> str:
        """Put a record in the place of another one. Returns why it could not be; empty: it is there."""
        for make_way in (self._sky.make_way, self._purge):  # what is left without its first share only a purge finds
            [purged] = await make_way([key])
            if not purged.confirmed:
                return Status.UNANSWERED
            [result] = await self._sky.put([(key, record)])
            if result.status is not Status.BAD_KEY:
                break
        return "" if result.ok else result.status

    async def _purge(self, keys: Sequence[bytes]) -> list[Purged]:
        return [await self._sky.purge(keys)]


def _of(hello: protocol.Hello) -> _Format:
    return _Format(hello.name, hello.block_tokens, hello.dtype, hello.root, time.time())


def _shown(word: str) -> str:
    """Whoever can write to the sky chose it, and logs and terminals show it."""
    return word if word.isprintable() else ascii(word)


def _key(model: str) -> bytes:
    return blake3(model.encode(), derive_key_context=_DOMAIN).digest()


def _digest(key: bytes, formats: Sequence[_Format]) -> bytes:
    return blake3(msgspec.msgpack.encode(list(formats)), key=key).digest()
