"""Cache of prompts: blocks are fetched from the sky before an answer, and stored after it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from threading import Condition, Thread
from typing import TYPE_CHECKING

from skymemory.agent.constellation_source import ConstellationSource, Serving
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.prompt.manager import KVCManager
from skymemory.prompt.statistics import KVCStatistics
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_GIVE_UP_S = 10.0
"""Seconds that an answer waits for the blocks of another one that begins alike."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class _KeptPrompt:
    manager: KVCManager
    tokens: list[int]
    """Tokens of prompt and answer."""
    prompt_tokens: int
    cache: DynamicCache
    scope: bytes


class PromptCache:
    """A `KVCManager` for the constellation that is up, if one is. It stores in a thread of its own.

    `get` is for one thread, `keep` for one that may be another. Nothing that happens in the sky raises.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: ConstellationSource, waiting_max: int = 2
    ) -> None:
        """Read all weights once, for the keys, if a constellation is there.

        Args:
            source: Tells of the constellation; asked again before each prompt.
            waiting_max: Most caches that wait to be stored; each holds the memory of a whole prompt.

        Raises:
            UnsupportedModelError: The model's cache cannot be cut into blocks.
        """
        self.engine = HuggingFaceEngine(model)
        self.dropped = 0
        """Answers that were not stored, because too many waited to be stored."""
        self._model = model
        self._tokenizer = tokenizer
        self._source = source
        self._store: SkyStore | None = None
        self._manager: KVCManager | None = None
        self._waiting_max = waiting_max
        self._waiting: deque[_KeptPrompt] = deque()
        self._changed = Condition()
        self._closed = False
        self._follow()
        self._thread = Thread(target=self._store_all, name="store", daemon=True)
        self._thread.start()

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        manager = self._manager
        return Constellation().cache.block_tokens if manager is None else manager.block_tokens

    @property
    def statistics(self) -> KVCStatistics:
        """Statistics of the manager in use."""
        manager = self._manager
        return KVCStatistics() if manager is None else manager.statistics

    @property
    def waiting(self) -> int:
        """Answers that are not stored yet."""
        return len(self._waiting)

    def get(self, tokens: Sequence[int], cancelled: Callable[[], bool], scope: bytes = b"") -> DynamicCache:
        """Return keys and values of the longest beginning of a prompt that is in the sky; at least one token is left out.

        Blocks that this prompt continues, or shares for the most part, may still be on their way up: they are waited for.

        Args:
            scope: Scope of the blocks (`KVCManager.get_cache`): those of another one are neither found nor waited for.
        """
        self._follow()
        if self._manager is None:
            return self.engine.empty_cache()
        with self._changed:
            self._wait(lambda: cancelled() or not any(_continues(tokens, kept) for kept in self._waiting if kept.scope == scope))
        return self._manager.get_cache(list(tokens), scope=scope)

    def keep(self, tokens: Sequence[int], prompt_tokens: int, cache: DynamicCache, scope: bytes = b"") -> None:
        """Store the cache that a run of the model left, soon.

        Args:
            tokens: Tokens of prompt and answer, as far as the cache covers them, or more.
            prompt_tokens: Number of them that are the prompt's.
            cache: Keys and values, which must not be changed any more.
            scope: Scope of the blocks.
        """
        with self._changed:
            if self._manager is None:
                return
            if len(self._waiting) >= self._waiting_max:
                self.dropped += 1
                return
            self._waiting.append(_KeptPrompt(self._manager, list(tokens), prompt_tokens, cache, scope))
            self._changed.notify_all()

    def close(self) -> None:
        """Store what waits, then close the sockets."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._open(None)

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait, holding the lock. A cancellation does not wake the wait, so it is looked for."""
        for _ in range(int(_GIVE_UP_S / _LOOK_S)):
            if self._changed.wait_for(done, _LOOK_S):
                return

    def _store_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
            _store(self._waiting[0])
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()

    def _follow(self) -> None:
        """Use the constellation that is there now."""
        if not self._source.changed():
            return
        why = self._source.missing()
        store = None
        try:
            serving = self._source.load()
            if serving is not None and self._store is not None and _is_served(serving, self._store):
                return
            store = (
                None
                if serving is None
                else SkyStore(serving.constellation, playing=serving.playing, tenant_secret=serving.tenant_secret)
            )
            self._open(store)
        except Exception as error:  # a cache never breaks a server
            why = f"the constellation cannot be used: {error}"
            if store is not None:
                store.close()
        if self._manager is None:
            _log.warning("every prompt is computed in full: %s", why)

    def _open(self, store: SkyStore | None) -> None:
        """Use this store instead of the one before."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._closed)
            before, self._store, self._manager = self._store, None, None
        if before is not None:
            before.close()
        if store is not None:
            self._manager = KVCManager(self._model, self._tokenizer, store)
            self._store = store
            grid = store.constellation.grid
            _log.info("prompts are kept on %d x %d satellites", grid.planes, grid.slots)


def _is_served(serving: Serving, store: SkyStore) -> bool:
    """Return True if a store is on this constellation already, with this secret."""
    return serving.constellation == store.constellation and compare_digest(serving.tenant_secret, store.tenant_secret)


def _store(kept: _KeptPrompt) -> None:
    try:
        kept.manager.add_blocks(kept.tokens, kept.cache, scope=kept.scope)
    except Exception:  # a cache never breaks a server
        _log.exception("an answer of %d tokens could not be stored", len(kept.tokens))


def _continues(tokens: Sequence[int], kept: _KeptPrompt) -> bool:
    """Return True if these tokens are the next turn of that chat, or share more than half of it.

    The latter happens with another question about the same document.
    """
    more_than_half = len(tokens) // 2 + 1
    return any(list(tokens[:count]) == kept.tokens[:count] for count in (kept.prompt_tokens, more_than_half))
