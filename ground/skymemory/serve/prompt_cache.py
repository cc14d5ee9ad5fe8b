"""Cache of prompts: blocks are fetched from the sky before an answer, and stored after it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, RLock, Thread
from typing import TYPE_CHECKING

from skymemory.agent.constellation_source import ConstellationSource
from skymemory.agent.keyring_watch import KeyringWatch
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

    A keyring that is replaced is taken once satellites take its keys. One that is wrong changes nothing until it is right.

    For several threads. Nothing that happens in the sky raises.
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
        self._keyring: KeyringWatch | None = None
        self._no_keyring = ""
        """Mistake in the keyring of another constellation, which is not used before the file is right."""
        self._waiting_max = waiting_max
        self._waiting: deque[_KeptPrompt] = deque()
        self._changed = Condition()
        self._users = 0
        """Threads that use the manager, so that its store may not be closed."""
        self._following = RLock()
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
        with self.in_use() as manager:
            if manager is None:
                return self.engine.empty_cache()
            self.await_stored(tokens, cancelled, scope)
            return manager.get_cache(list(tokens), scope=scope, cancelled=cancelled)

    def await_stored(self, tokens: Sequence[int], cancelled: Callable[[], bool], scope: bytes = b"") -> None:
        """Wait for blocks that a prompt continues, or shares for the most part, and that are still on their way up."""
        with self._changed:
            self._wait(lambda: cancelled() or not any(_continues(tokens, kept) for kept in self._waiting if kept.scope == scope))

    @contextmanager
    def in_use(self) -> Iterator[KVCManager | None]:
        """Yield the manager of the constellation that is up, whose store stays open meanwhile; None: none is up.

        A thread may not enter it twice.
        """
        with self._following:
            self._follow()
            with self._changed:
                manager = self._manager
                self._users += 1
        try:
            yield manager
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

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
        """Use the constellation that is there now, under keys that its satellites take."""
        has_new_keys = self._has_new_keys()
        if not (has_new_keys or self._no_keyring or self._source.changed()):
            return
        why = self._source.missing()
        store = None
        try:
            serving = self._source.load()
            is_same = serving is not None and self._store is not None and serving.is_on(self._store)
            if is_same and not has_new_keys:
                self._no_keyring = ""
                return
            if serving is not None and (mistake := serving.constellation.find_keyring_mistake("host")):
                self._stay(mistake)
                return
            self._no_keyring = ""
            keyring = None if serving is None else KeyringWatch(serving.constellation)
            store = (
                None
                if serving is None
                else SkyStore(serving.constellation, playing=serving.playing, tenant_secret=serving.tenant_secret)
            )
            self._open(store, self._manager if is_same else None)
            self._keyring = keyring
        except Exception as error:  # a cache never breaks a server
            why = f"the constellation cannot be used: {error}"
            if store is not None:
                store.close()
        if self._manager is None:
            _log.warning("every prompt is computed in full: %s", why)

    def _has_new_keys(self) -> bool:
        """Return True if the keyring was replaced, and satellites take the new one."""
        store, keyring, now_s = self._store, self._keyring, time.monotonic()
        if store is None or keyring is None or not keyring.is_due(now_s, is_reachable=not store.silent):
            return False
        return keyring.is_taken(store, store.probe(store.control), now_s)

    def _stay(self, mistake: str) -> None:
        """Go on as before, until the keyring is right."""
        if mistake != self._no_keyring:
            full = "every prompt is computed in full: the constellation cannot be used: {}"
            told = full if self._store is None else "{}; the constellation and the keys of before stay in use"
            _log.warning("%s", told.format(mistake))
        self._no_keyring = mistake

    def _open(self, store: SkyStore | None, manager: KVCManager | None = None) -> None:
        """Use this store instead of the one before.

        Args:
            manager: Manager that goes on, on the same constellation; None: a new one is made.
        """
        with self._changed:
            self._changed.wait_for(lambda: (not self._waiting or self._closed) and not self._users)
            before, self._store, self._manager, self._keyring = self._store, None, None, None
        if before is not None:
            before.close()
        if store is None:
            return
        if manager is None:
            manager = KVCManager(self._model, self._tokenizer, store)
        else:
            manager.use(store)
        self._manager, self._store = manager, store
        grid = store.constellation.grid
        _log.info("prompts are kept on %d x %d satellites", grid.planes, grid.slots)


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
