"""Models whose blocks engines of this host have, and how many tokens of each the sky can hold.

The agent leaves a record beside its socket, so that `skymem status` can say it without asking an agent.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from skymemory.agent import protocol
from skymemory.common.state_folder import agent_socket
from skymemory.sky.constellation import Constellation
from skymemory.store.sizing import blocks_held

_log = logging.getLogger(__name__)

RECORD_NAME: Final = "models.json"
_MODELS_MAX: Final = 16
"""Number of models that are kept: those that connected last."""
_RECORD_BYTES_MAX: Final = 1 << 16
_WITHOUT_MODEL: Final = "lmcache"
"""Kind of engine that knows the bytes of its chunks, but neither their tokens nor their model."""


class Model(Struct, frozen=True):
    """Blocks of a model, as an engine told them at its Hello."""

    model: protocol.Text
    dtype: protocol.Word
    block_tokens: Annotated[int, Meta(ge=1)]
    block_bytes: Annotated[int, Meta(ge=1)]

    def tokens(self, sky: Constellation) -> int:
        """Tokens of it that a constellation holds beside the record of formats."""
        return blocks_held(sky, self.block_bytes, other_chunks=1) * self.block_tokens


class Models:
    """Models that engines told of since the agent started; used from one event loop."""

    def __init__(self, socket: Path) -> None:
        """`socket`: of the agent; the record lies beside it."""
        self._file = socket.parent / RECORD_NAME
        self._known: dict[Model, None] = {}

    def __iter__(self) -> Iterator[Model]:
        return iter(self._known)

    def add(self, hello: protocol.Hello) -> None:
        """Note that an engine has connected."""
        if hello.name == _WITHOUT_MODEL or not hello.model:
            return
        one = Model(hello.model, hello.dtype, hello.block_tokens, hello.block_bytes)
        if one in self._known:
            return
        self._known[one] = None
        while len(self._known) > _MODELS_MAX:
            self._known.pop(next(iter(self._known)))
        temporary = self._file.with_name(f".{RECORD_NAME}.{os.getpid()}")
        try:
            temporary.write_bytes(msgspec.json.encode([*self._known]))
            temporary.replace(self._file)
        except OSError as error:  # `skymem status` then shows no models
            _log.warning("the models are not recorded in %s: %s", self._file, error.strerror)


def recorded(socket: Path | None = None) -> list[Model]:
    """Return the models that the agent of a socket has recorded last; none if they cannot be read."""
    file = (socket or agent_socket()).parent / RECORD_NAME
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(_RECORD_BYTES_MAX), type=list[Model])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def told(sky: Constellation, models: Iterable[Model]) -> list[dict[str, Any]]:
    """Return how many tokens of each model a constellation can hold, for JSON."""
    return [
        {"model": one.model, "dtype": one.dtype, "block_tokens": one.block_tokens, "tokens": one.tokens(sky)} for one in models
    ]
