"""Records of the formats in which a model's blocks are stored. They explain to an engine why it finds none.

The keys of blocks depend on the format: an engine with another block size or dtype gets no wrong block, only misses. To the
engine this looks like a cold cache. So the sky also stores a record of formats for each model. The record is only a hint: it may
be lost or out of date. Only agents with the same tenant secret find it.
"""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from skymemory.agent import protocol
from skymemory.agent.shared_sky import SharedSky
from skymemory.link.control import Purged
from skymemory.store.results import Status
from skymemory.wire.envelope import BlockError, Kind, seal, unseal
from skymemory.wire.key_derivation import SealKeys, block_key, name_key, root_key, seal_keys

_log = logging.getLogger(__name__)

_FORMATS_MAX: Final = 8
"""Formats in a model's record: those stored last."""
_RECORD_BYTES_MAX: Final = 4096
SAVING: Final = "skymem-formats"
"""Name of the tasks that store records."""
_PATIENCE_S: Final = 1.0
"""Seconds that an engine's Hello waits for the record."""
AGAIN_S: Final = 60.0
"""Least seconds until the next try after a record could not be stored. The engine's next block triggers the try."""
REFRESH_S: Final = 600.0
"""Least seconds until a record is stored again, as it may be lost with a satellite. The engine's next block triggers it."""


class Format(Struct, frozen=True, array_like=True):
    """A format in which blocks of a model are stored."""

    engine: protocol.Word
    block_tokens: protocol.Number
    dtype: protocol.Word
    root: protocol.Key
    stored_at: float
    """Unix time in seconds."""

    @property
    def words(self) -> str:
        """Description of the blocks for a person."""
        return f"blocks of {self.block_tokens} tokens in {_shown(self.dtype)}"


_DECODER: Final[msgspec.msgpack.Decoder[list[Format]]] = msgspec.msgpack.Decoder(
    Annotated[list[Format], Meta(max_length=_FORMATS_MAX)]
)


class Formats:
    """Reads and writes the records of formats. To be used from one event loop."""

    def __init__(self, sky: SharedSky, *, again_s: float = AGAIN_S, refresh_s: float = REFRESH_S) -> None:
        """Use a sky.

        Args:
            again_s: Least seconds until the next try after a record could not be stored.
            refresh_s: Least seconds until a record is stored again.
        """
        self._sky = sky
        self._again_s, self._refresh_s = again_s, refresh_s
        self._next_s: dict[bytes, float] = {}
        """The earliest time, on the monotonic clock, to record the format of each root."""
        self._saving = asyncio.Lock()
        """Held while a record is read, changed and written, so that no format in it gets lost."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def notes(self, hello: protocol.Hello) -> list[str]:
        """Return a note for the engine if its model is stored in other formats but not in its own; else an empty list."""
        try:
            formats = await asyncio.wait_for(self.load(hello.model), _PATIENCE_S)
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
        """Record the format of an engine that has stored a block, unless that was done lately."""
        if time.monotonic() < self._next_s.get(hello.root, 0.0):
            return
        self._next_s[hello.root] = math.inf
        task = asyncio.create_task(self._save(hello), name=SAVING)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def load(self, model: str) -> list[Format]:
        """Return the formats in a model's record, the one stored last first; an empty list if there is no record."""
        secret = self._sky.tenant_secret
        if secret is None:
            return []
        key, keys = record_keys(model, secret)
        result = (await self._sky.get([key], block_bytes_max=_RECORD_BYTES_MAX))[0]
        if result.data is None:
            return []
        try:
            return _DECODER.decode(unseal(Kind.FORMATS, key, result.data, keys=keys).body)
        except (BlockError, msgspec.DecodeError):
            return []

    async def _save(self, hello: protocol.Hello) -> None:
        own, secret = _of(hello), self._sky.tenant_secret
        why: str = Status.UNANSWERED
        if secret is not None:
            key, keys = record_keys(hello.model, secret)
            async with self._saving:
                others = [one for one in await self.load(hello.model) if one.root != own.root]
                formats = [own, *others][:_FORMATS_MAX]
                record = seal(Kind.FORMATS, key, b"", msgspec.msgpack.encode(formats), keys=keys)
                why = await self._replace(key, record)
        self._next_s[hello.root] = time.monotonic() + (self._again_s if why else self._refresh_s)
        if why:
            _log.info("the format of %s was not recorded: %s", hello.model, why)

    async def _replace(self, key: bytes, record: bytearray) -> str:
        """Replace a record. Return why that failed, or '' if the new record is stored."""
        for make_way in (self._sky.make_way, self._purge):  # only a purge finds the rest of a record that lost its first share
            [purged] = await make_way([key])
            if not purged.confirmed:
                return Status.UNANSWERED
            [result] = await self._sky.put([(key, record)])
            if result.status is not Status.BAD_KEY:
                break
        return "" if result.ok else result.status

    async def _purge(self, keys: Sequence[bytes]) -> list[Purged]:
        return [await self._sky.purge(keys)]


def _of(hello: protocol.Hello) -> Format:
    return Format(hello.name, hello.block_tokens, hello.dtype, hello.root, time.time())


def _shown(word: str) -> str:
    """Return a word that is safe to print: anyone who can write to the sky may have chosen it."""
    return word if word.isprintable() else ascii(word)


def record_keys(model: str, tenant_secret: bytes) -> tuple[bytes, SealKeys]:
    """Return the key of a model's record, and the keys that seal it."""
    root = root_key("formats", tenant_secret)
    return block_key(name_key(root), model.encode()), seal_keys(root)
