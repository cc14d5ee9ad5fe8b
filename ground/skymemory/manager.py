"""`KVCManager`: the cache of a model's prompts in the sky (paper, section 3.3).

    manager = KVCManager(model, tokenizer)
    manager.add_blocks(prompt)
    ids = tokenizer(prompt, return_tensors="pt").to(model.device)
    output = model.generate(**ids, past_key_values=manager.get_cache(prompt), max_new_tokens=30)

A prompt is cut into blocks of tokens; each full block has a key that depends on all tokens before it, on the model and
on the tokenizer. What is not found, does not come in time or is damaged is a miss: it is counted, logged and computed
by the model. Nothing that happens between here and the satellites raises into a generation.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast, overload

import torch

from skymemory.blocks import LAYOUT, BlockError, pack_block, unpack_block
from skymemory.codecs import Codec, get_codec
from skymemory.config import Constellation
from skymemory.counters import AddReport, KVCStatistics
from skymemory.engines.huggingface import HuggingFaceEngine
from skymemory.fingerprint import Fingerprint
from skymemory.index.radix import BlockEntry
from skymemory.keys import block_keys, root_key
from skymemory.store import SkyStore

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_CONFIG_FILE = Path("constellation.toml")
_RUN_BYTES = 1 << 24
"""blocks go to the store and come back in runs of about so many bytes: the store's deadline holds for a run, not for all of a
long prompt, and a prompt that goes up does not take twice its memory"""

Prompt: TypeAlias = str | Sequence[int] | torch.Tensor
"""text, or token ids: a sequence, or a tensor of shape [tokens] or [1, tokens]"""
Prompts: TypeAlias = list[str] | list[list[int]] | list[torch.Tensor]
"""a batch"""
Caches: TypeAlias = "Sequence[DynamicCache | None]"
Progress: TypeAlias = Callable[[int, int], None]


class KVCManager:
    """Stores and fetches the key-value tensors of prompts, for one model and tokenizer. Thread-safe."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        sky: SkyStore | Constellation | None = None,
        *,
        codec: str | Codec | None = None,
        block_tokens: int | None = None,
        tenant_secret: bytes = b"",
    ) -> None:
        """Reads all weights once, for the keys.

        Args:
            model: a causal language model with full attention in all layers.
            tokenizer: the one that makes the prompts' token ids.
            sky: a store, which stays open; or a constellation, by default the one of `constellation.toml`, to which a
                store is opened.
            codec: name of a codec, or one; by default that of the constellation. "raw" brings every bit back; the others
                trade accuracy for bytes.
            block_tokens: tokens of a block; by default that of the constellation.
            tenant_secret: part of all keys: who does not know it finds none of these blocks.

        Raises:
            UnsupportedModelError: the model's cache cannot be cut into blocks; the message says why.
        """
        self._engine = HuggingFaceEngine(model)
        self._tokenizer = tokenizer
        self._fingerprint = Fingerprint(model, tokenizer)
        self._owns_store = sky is None or isinstance(sky, Constellation)
        if sky is None:
            sky = Constellation.load(_CONFIG_FILE) if _CONFIG_FILE.is_file() else Constellation()
        self._store = SkyStore(sky) if isinstance(sky, Constellation) else sky
        settings = self._store.constellation.cache
        chosen = settings.codec if codec is None else codec
        self._codec = get_codec(chosen) if isinstance(chosen, str) else chosen
        self._block_tokens = settings.block_tokens if block_tokens is None else block_tokens
        self._tenant_secret = tenant_secret
        self._statistics = KVCStatistics()
        self._lock = threading.RLock()
        self._fingerprint.digest()

    @property
    def statistics(self) -> KVCStatistics:
        """A copy of the counts as they are now."""
        with self._lock:
            return deepcopy(self._statistics)

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return self._block_tokens

    @property
    def codec(self) -> Codec:
        """What makes bytes of the tensors."""
        return self._codec

    def refresh(self) -> None:
        """Read all weights again: needed after single elements were changed through `tensor.data` (`Fingerprint`)."""
        self._fingerprint.forget()

    def keys(self, prompt: Prompt) -> list[bytes]:
        """Keys of the full blocks of a prompt, as the model and the tokenizer are now; 32 bytes each."""
        return self._keys(self._tokens(prompt))

    @overload
    def get_cache(self, prompt: Prompt) -> DynamicCache: ...
    @overload
    def get_cache(self, prompt: Prompts) -> list[DynamicCache]: ...
    def get_cache(self, prompt: Prompt | Prompts) -> DynamicCache | list[DynamicCache]:
        """Keys and values of the longest beginning of a prompt that is in the sky: `past_key_values` for `generate`.

        At least one token of the prompt is left out, because a model needs one to run. The cache is empty if nothing
        was found. Its memory is its own: `generate` may change it. Errors of the store are misses and do not raise.

        Args:
            prompt: a prompt; or a list of prompts, whose common blocks are fetched once.

        Returns:
            For a prompt its cache, of batch size 1; for a list the list of their caches.
        """
        caches: DynamicCache | list[DynamicCache] = self._get_cache(prompt)
        return caches

    @overload
    def add_blocks(
        self,
        prompt: Prompt,
        past_key_values: DynamicCache | None = None,
        progress: Progress | None = None,
    ) -> AddReport: ...
    @overload
    def add_blocks(
        self,
        prompt: Prompts,
        past_key_values: Caches | None = None,
        progress: Progress | None = None,
    ) -> list[AddReport]: ...
    def add_blocks(
        self,
        prompt: Prompt | Prompts,
        past_key_values: DynamicCache | Caches | None = None,
        progress: Progress | None = None,
    ) -> AddReport | list[AddReport]:
        """Store the full blocks of a prompt that are not in the sky yet. Errors of the store are counted, not raised.

        Args:
            prompt: a prompt, or a list of prompts.
            past_key_values: the cache that a run of the model left, for example that of `generate` with
                `return_dict_in_generate`; it may cover less or more than the prompt and is not changed. Without it the
                missing blocks are computed. For a list of prompts a list.
            progress: called with blocks stored and blocks to store, for each prompt.

        Raises:
            ValueError: `past_key_values` is not a cache of this model and of one prompt.
        """
        reports: AddReport | list[AddReport] = self._add_blocks(prompt, past_key_values, progress)
        return reports

    @overload
    async def aget_cache(self, prompt: Prompt) -> DynamicCache: ...
    @overload
    async def aget_cache(self, prompt: Prompts) -> list[DynamicCache]: ...
    async def aget_cache(self, prompt: Prompt | Prompts) -> DynamicCache | list[DynamicCache]:
        """`get_cache` in a thread, for use in an event loop."""
        return await asyncio.to_thread(lambda: self._get_cache(prompt))

    @overload
    async def aadd_blocks(self, prompt: Prompt, past_key_values: DynamicCache | None = None) -> AddReport: ...
    @overload
    async def aadd_blocks(self, prompt: Prompts, past_key_values: Caches | None = None) -> list[AddReport]: ...
    async def aadd_blocks(
        self,
        prompt: Prompt | Prompts,
        past_key_values: DynamicCache | Caches | None = None,
    ) -> AddReport | list[AddReport]:
        """`add_blocks` in a thread, for use in an event loop."""
        return await asyncio.to_thread(lambda: self._add_blocks(prompt, past_key_values, None))

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _get_cache(self, prompt: Prompt | Prompts) -> Any:
        batch = _batch(prompt)
        caches = self._get([self._tokens(one) for one in batch or [cast(Prompt, prompt)]])
        return caches[0] if batch is None else caches

    def _add_blocks(self, prompt: Prompt | Prompts, given: Any, progress: Progress | None) -> Any:
        batch = _batch(prompt)
        if batch is None:
            return self._add(self._tokens(cast(Prompt, prompt)), given, progress)
        caches = [None] * len(batch) if given is None else given
        return [self._add(self._tokens(one), cache, progress) for one, cache in zip(batch, caches, strict=True)]

    def _get(self, prompts: list[list[int]]) -> list[DynamicCache]:
        with self._lock:
            chains = [self._keys(tokens) for tokens in prompts]
            found = [self._find(keys) for keys in chains]
            blocks: dict[bytes, torch.Tensor] = {}
            for entries in found:
                self._fetch(entries, blocks)
            caches = []
            for tokens, keys in zip(prompts, chains, strict=True):
                prefix = _prefix(blocks, keys)
                covered = max(0, min(len(prefix) * self._block_tokens, len(tokens) - 1))
                counts = self._statistics
                counts.prompts += 1
                counts.hits += bool(prefix)
                counts.misses += not prefix
                counts.blocks_hit += len(prefix)
                counts.blocks_missed += len(keys) - len(prefix)
                counts.tokens_asked += len(tokens)
                counts.tokens_cached += covered
                with self._timed("decode_s"):
                    caches.append(self._engine.cache(prefix, covered))
            return caches

    def _add(self, tokens: list[int], given: DynamicCache | None, progress: Progress | None) -> AddReport:
        with self._lock:
            covered = None if given is None else self._engine.check(given)
            keys = self._keys(tokens)
            wanted = len(keys) if covered is None else min(len(keys), covered // self._block_tokens)
            found = self._find(keys[:wanted])
            present = len(found)
            if present == wanted:
                self._statistics.blocks_present += present
                return AddReport(len(keys), present, 0, 0, 0)
            cache = given
            if cache is None:
                fetched: dict[bytes, torch.Tensor] = {}
                self._fetch(found, fetched)
                blocks = _prefix(fetched, keys)
                present = len(blocks)
                cache = self._engine.cache(blocks, present * self._block_tokens)
                with self._timed("prefill_s"):
                    cache = self._engine.prefill(tokens[: wanted * self._block_tokens], cache)
            self._statistics.blocks_present += present
            sizes: list[int] = []
            for items in self._packed(keys, range(present, wanted), cache):
                done = self._put(items)
                sizes += done
                if progress is not None:
                    progress(len(sizes), wanted - present)
                if len(done) < len(items):
                    break  # what follows a hole cannot be found
            self._statistics.blocks_stored += len(sizes)
            self._statistics.bytes_up += sum(sizes)
            return AddReport(len(keys), present, len(sizes), wanted - present - len(sizes), sum(sizes))

    def _packed(self, keys: list[bytes], blocks: range, cache: DynamicCache) -> Iterator[list[tuple[bytes, bytearray]]]:
        """Encoded blocks in runs; ends at the first that cannot be encoded, as no later one could be found."""
        items: list[tuple[bytes, bytearray]] = []
        for index in blocks:
            start = index * self._block_tokens
            try:
                with self._timed("encode_s"):
                    tensors = self._engine.block(cache, start, start + self._block_tokens)
                    data = pack_block(
                        tensors,
                        key=keys[index],
                        codec=self._codec,
                        block_index=index,
                        first_position=start,
                        rope=self._engine.rope,
                    )
            except Exception as error:  # a cache never breaks a generation
                self._failed("encode", error)
                break
            items.append((keys[index], data))
            if len(items) * len(data) >= _RUN_BYTES:
                yield items
                items = []
        if items:
            yield items

    def _put(self, items: list[tuple[bytes, bytearray]]) -> list[int]:
        """Store blocks; returns the bytes of each that was stored."""
        try:
            with self._timed("put_s"):
                results = self._store.put(items)
        except Exception as error:  # a cache never breaks a generation
            self._failed("put", error)
            return []
        stored = []
        for (_, data), result in zip(items, results, strict=True):
            if result.ok:
                stored.append(len(data))
            else:
                self._failed(result.status, None)
        return stored

    def _find(self, keys: list[bytes]) -> list[BlockEntry]:
        if not keys:
            return []
        try:
            with self._timed("find_s"):
                return self._store.find_longest(keys)
        except Exception as error:  # a cache never breaks a generation
            self._failed("find", error)
            return []

    def _fetch(self, entries: list[BlockEntry], blocks: dict[bytes, torch.Tensor]) -> None:
        """Add the tensors of a chain of blocks by key, up to the first that does not come back whole."""
        left = [entry for entry in entries if entry.key not in blocks]
        while left:
            count = max(1, _RUN_BYTES // max(1, left[0].block_len))
            run, left = left[:count], left[count:]
            for entry, data in zip(run, self._get_run(run), strict=True):
                tensors = None if data is None else self._decoded(entry.key, data)
                if tensors is None:
                    return
                blocks[entry.key] = tensors

    def _get_run(self, run: list[BlockEntry]) -> list[bytearray | None]:
        try:
            with self._timed("get_s"):
                results = self._store.get(run)
        except Exception as error:  # a cache never breaks a generation
            self._failed("get", error)
            return [None] * len(run)
        for result in results:
            if result.data is None:
                self._failed(result.status, None)
            else:
                self._statistics.bytes_down += len(result.data)
        return [result.data for result in results]

    def _decoded(self, key: bytes, data: bytearray) -> torch.Tensor | None:
        """The tensors of a block; None, and the block purged, if they are not what was stored."""
        shape = self._engine.geometry.block_shape(self._block_tokens)
        try:
            with self._timed("decode_s"):
                header, tensors = unpack_block(data, key=key)
            if header.shape != shape:
                raise BlockError(f"the block has shape {header.shape}, the model's is {shape}")
        except Exception as error:  # whatever the bytes from the sky do to a codec, it is a miss
            self._failed("damaged", error)
            self._purge([key])
            return None
        return tensors

    def _purge(self, keys: list[bytes]) -> None:
        try:
            self._store.purge(keys)
        except Exception as error:  # a cache never breaks a generation
            self._failed("purge", error)

    def _failed(self, cause: str, error: Exception | None) -> None:
        self._statistics.errors[cause] += 1
        if error is None:
            _log.info("block missed: %s", cause)
        else:
            _log.warning("block missed: %s: %s", cause, error, exc_info=_log.isEnabledFor(logging.DEBUG))

    def _keys(self, tokens: list[int]) -> list[bytes]:
        root = root_key(
            fingerprint=self._fingerprint.digest(),
            layout=LAYOUT,
            codec=self._codec.name,
            block_tokens=self._block_tokens,
            tenant_secret=self._tenant_secret,
        )
        return block_keys(root, tokens, self._block_tokens)

    def _tokens(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return [int(token) for token in self._tokenizer(prompt)["input_ids"]]
        if isinstance(prompt, torch.Tensor):
            if prompt.dim() == 2 and prompt.shape[0] == 1:
                prompt = prompt[0]
            if prompt.dim() != 1:
                raise ValueError(
                    f"a prompt's token ids have shape [tokens] or [1, tokens], not {list(prompt.shape)}; give a batch as a list"
                )
            return [int(token) for token in prompt.tolist()]
        return [int(token) for token in prompt]

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self._statistics, name, getattr(self._statistics, name) + time.perf_counter() - start)


def _batch(prompt: Prompt | Prompts) -> list[Prompt] | None:
    """The prompts of a batch; None if it is one prompt."""
    if isinstance(prompt, str | torch.Tensor) or all(isinstance(token, Integral) for token in prompt):
        return None
    return list(cast("Iterable[Prompt]", prompt))


def _prefix(blocks: dict[bytes, torch.Tensor], keys: Sequence[bytes]) -> list[torch.Tensor]:
    """Tensors of the first keys of a chain, up to the first that is missing."""
    prefix = []
    for key in keys:
        if key not in blocks:
            break
        prefix.append(blocks[key])
    return prefix
