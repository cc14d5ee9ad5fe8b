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
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate, takewhile
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

from skymemory.block_entry import BlockEntry
from skymemory.blocks import LAYOUT, BlockError, block_bytes_max, dtype_name, pack_block, unpack_block
from skymemory.codecs import Codec, get_codec
from skymemory.config import Constellation
from skymemory.counters import AddReport, ExpectReport, KVCStatistics, Ledger
from skymemory.engines.huggingface import HuggingFaceEngine
from skymemory.fingerprint import Fingerprint
from skymemory.keys import block_keys, digest_key, root_key
from skymemory.progress import Progress
from skymemory.prompts import Encoding, Prompt, Prompts, token_lists
from skymemory.results import PrefetchResult, PutResult, Status
from skymemory.store import SkyStore

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_RUN_BYTES = 1 << 24
"""blocks go to the store and come back in runs of about so many bytes: the store's deadline holds for a run, not for all of a
long prompt, and a prompt that goes up does not take twice its memory"""

Caches: TypeAlias = "Sequence[DynamicCache | None]"


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
            sky: a store, which stays open; or a constellation, to which a store is opened: by default the one that is up,
                else the one of `constellation.toml`.
            codec: name of a codec, or one; by default that of the constellation. "raw" brings every bit back; the others
                trade accuracy for bytes.
            block_tokens: tokens of a block; by default that of the constellation.
            tenant_secret: part of all keys and of the blocks' digests: who does not know it can compute no key, and make no
                block that is taken for one of these. It hides nothing from who sees the links, and keeps nobody there from
                deleting blocks; without it whoever has the model can make blocks.

        Raises:
            UnsupportedModelError: the model's cache cannot be cut into blocks; the message says why.
            ValueError: `block_tokens` is less than 1, or the codec cannot take the model's tensors.
        """
        self._engine = HuggingFaceEngine(model)
        self._tokenizer = tokenizer
        self._fingerprint = Fingerprint(model, tokenizer)
        self._fingerprint_lock = Lock()
        self._prefill_lock = Lock()  # two at a time would only share the machine
        self._tenant_secret = tenant_secret
        self._ledger = Ledger()
        running = Constellation.running() if sky is None else None
        if sky is None:
            sky = running or Constellation.default()
        constellation = sky.constellation if isinstance(sky, SkyStore) else sky
        chosen = constellation.cache.codec if codec is None else codec
        self._codec = get_codec(chosen) if isinstance(chosen, str) else chosen
        self._block_tokens = constellation.cache.block_tokens if block_tokens is None else block_tokens
        if self._block_tokens < 1:
            raise ValueError(f"block_tokens is {self._block_tokens}; allowed are 1 and more")
        geometry = self._engine.geometry
        self._block_bytes_max = block_bytes_max(geometry.block_shape(self._block_tokens), geometry.dtype, self._codec)
        self._root_or_none()
        # Last: nothing is left open when something above raises
        self._owns_store = not isinstance(sky, SkyStore)
        if isinstance(sky, SkyStore):
            self._store = sky
        else:
            self._store = (SkyStore.running() if running is not None else None) or SkyStore(sky)

    @property
    def statistics(self) -> KVCStatistics:
        """A copy of the counts as they are now."""
        return self._ledger.copy()

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return self._block_tokens

    @property
    def codec(self) -> Codec:
        """What makes bytes of the tensors."""
        return self._codec

    def refresh(self) -> None:
        """Have all weights and the tokenizer read again by the next call: sees at once what `Fingerprint` sees later or not."""
        with self._fingerprint_lock:
            self._fingerprint.forget()

    def keys(self, prompt: Prompt) -> list[bytes]:
        """Keys of the full blocks of a prompt, as the model and the tokenizer are now; 32 bytes each.

        Raises:
            ValueError: the model cannot be digested now (`Fingerprint.digest`).
        """
        prompts, _ = self._tokens(prompt)
        return self._chain(self._root(), prompts[0])

    @overload
    def get_cache(self, prompt: Prompt) -> DynamicCache: ...
    @overload
    def get_cache(self, prompt: Prompts) -> list[DynamicCache]: ...
    @overload
    def get_cache(self, prompt: Encoding) -> DynamicCache | list[DynamicCache]: ...
    def get_cache(self, prompt: Prompt | Prompts | Encoding) -> DynamicCache | list[DynamicCache]:
        """Keys and values of the longest beginning of a prompt that is in the sky: `past_key_values` for `generate`.

        At least one token of the prompt is left out, because a model needs one to run. The cache is empty if nothing
        was found. Its memory is its own: `generate` may change it. Errors of the store are misses and do not raise.

        `generate` with `num_beams` or `num_return_sequences` of n runs n rows: `cache.batch_repeat_interleave(n)` first.

        Args:
            prompt: a prompt; or a list of prompts, whose common blocks are fetched once; or what a tokenizer returned.

        Returns:
            For a prompt its cache, of batch size 1; for a batch the list of their caches, each for a `generate` of its own:
            they differ in length, and transformers has no cache of rows of different lengths.

        Raises:
            TypeError: not a prompt.
            ValueError: a token id that the model does not have, a tensor of another shape.
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
    @overload
    def add_blocks(
        self,
        prompt: Encoding,
        past_key_values: DynamicCache | Caches | None = None,
        progress: Progress | None = None,
    ) -> AddReport | list[AddReport]: ...
    def add_blocks(
        self,
        prompt: Prompt | Prompts | Encoding,
        past_key_values: DynamicCache | Caches | None = None,
        progress: Progress | None = None,
    ) -> AddReport | list[AddReport]:
        """Store the full blocks of a prompt that are not in the sky yet. Errors of the store are counted, not raised.

        Args:
            prompt: a prompt, or a list of prompts, or what a tokenizer returned.
            past_key_values: the cache that a run of the model left, for example that of `generate` with
                `return_dict_in_generate`; it may cover less or more than the prompt and is not changed. Without it the
                missing blocks are computed. For a list of prompts a list.
            progress: called with blocks stored and blocks to store, for each prompt.

        Raises:
            TypeError: not a prompt.
            ValueError: `past_key_values` is not a cache of this model and of one prompt; a token id that the model does not
                have.
        """
        reports: AddReport | list[AddReport] = self._add_blocks(prompt, past_key_values, progress)
        return reports

    @overload
    async def aget_cache(self, prompt: Prompt) -> DynamicCache: ...
    @overload
    async def aget_cache(self, prompt: Prompts) -> list[DynamicCache]: ...
    @overload
    async def aget_cache(self, prompt: Encoding) -> DynamicCache | list[DynamicCache]: ...
    async def aget_cache(self, prompt: Prompt | Prompts | Encoding) -> DynamicCache | list[DynamicCache]:
        """`get_cache` in a thread, for use in an event loop."""
        return await asyncio.to_thread(lambda: self._get_cache(prompt))

    @overload
    async def aadd_blocks(self, prompt: Prompt, past_key_values: DynamicCache | None = None) -> AddReport: ...
    @overload
    async def aadd_blocks(self, prompt: Prompts, past_key_values: Caches | None = None) -> list[AddReport]: ...
    @overload
    async def aadd_blocks(
        self, prompt: Encoding, past_key_values: DynamicCache | Caches | None = None
    ) -> AddReport | list[AddReport]: ...
    async def aadd_blocks(
        self,
        prompt: Prompt | Prompts | Encoding,
        past_key_values: DynamicCache | Caches | None = None,
    ) -> AddReport | list[AddReport]:
        """`add_blocks` in a thread, for use in an event loop."""
        return await asyncio.to_thread(lambda: self._add_blocks(prompt, past_key_values, None))

    @overload
    def expect(self, prompt: Prompt, at: float | datetime) -> ExpectReport: ...
    @overload
    def expect(self, prompt: Prompts, at: float | datetime) -> list[ExpectReport]: ...
    @overload
    def expect(self, prompt: Encoding, at: float | datetime) -> ExpectReport | list[ExpectReport]: ...
    def expect(self, prompt: Prompt | Prompts | Encoding, at: float | datetime) -> ExpectReport | list[ExpectReport]:
        """Lay the cached blocks of a prompt so that they are in the window when it comes (`SkyStore.prefetch`).

        Errors of the store are counted, not raised.

        Args:
            prompt: a prompt, or a list of prompts, or what a tokenizer returned.
            at: when the prompt is expected: Unix time, or a datetime (local time if it names no zone).

        Raises:
            TypeError: not a prompt.
            ValueError: a time that is past; a token id that the model does not have.
        """
        prompts, batch = self._tokens(prompt)
        at_s = at.timestamp() if isinstance(at, datetime) else float(at)
        if not at_s >= time.time():
            raise ValueError(f"{at} is past; allowed are times from now on")
        root = self._root_or_none() if prompts else None
        reports = [self._expect(self._chain(root, tokens), at_s, len(tokens) // self._block_tokens) for tokens in prompts]
        return reports if batch else reports[0]

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _get_cache(self, prompt: Prompt | Prompts | Encoding) -> Any:
        prompts, batch = self._tokens(prompt)
        caches = self._get(prompts)
        return caches if batch else caches[0]

    def _add_blocks(self, prompt: Prompt | Prompts | Encoding, given: Any, progress: Progress | None) -> Any:
        prompts, batch = self._tokens(prompt)
        if not batch:
            return self._add(prompts[0], given, progress)
        caches = [None] * len(prompts) if given is None else given
        return [self._add(tokens, cache, progress) for tokens, cache in zip(prompts, caches, strict=True)]

    def _tokens(self, prompt: Prompt | Prompts | Encoding) -> tuple[list[list[int]], bool]:
        return token_lists(prompt, self._tokenizer, self._engine.vocabulary)

    def _get(self, prompts: list[list[int]]) -> list[DynamicCache]:
        root = self._root_or_none() if prompts else None
        chains = [self._chain(root, tokens) for tokens in prompts]
        found = [self._find(keys) for keys in chains]
        blocks: dict[bytes, torch.Tensor] = {}
        for entries in found:
            self._fetch(root, entries, blocks)
        caches = []
        for tokens, keys in zip(prompts, chains, strict=True):
            prefix = _prefix(blocks, keys)
            covered = max(0, min(len(prefix) * self._block_tokens, len(tokens) - 1))
            with self._ledger.timed("decode_s"):
                caches.append(self._engine.cache(prefix, covered))
            self._ledger.add(
                prompts=1,
                hits=bool(prefix),
                misses=not prefix,
                blocks_hit=len(prefix),
                blocks_missed=len(tokens) // self._block_tokens - len(prefix),
                tokens_asked=len(tokens),
                tokens_cached=covered,
            )
        return caches

    def _add(self, tokens: list[int], given: DynamicCache | None, progress: Progress | None) -> AddReport:
        blocks = len(tokens) // self._block_tokens
        wanted = blocks if given is None else min(blocks, self._engine.check(given) // self._block_tokens)
        root = self._root_or_none() if wanted else None
        if root is None:
            return AddReport(blocks, 0, 0, wanted, 0)
        keys = self._chain(root, tokens)[:wanted]
        found = self._find_whole(keys)
        if self._store.silent:  # nothing could be stored: do not compute it
            return AddReport(blocks, 0, 0, wanted, 0)
        present = len(found)
        cache = given
        if cache is None and present < wanted:
            fetched: dict[bytes, torch.Tensor] = {}
            self._fetch(root, found, fetched)
            prefix = _prefix(fetched, keys)
            present = len(prefix)
            cache = self._computed(tokens[: wanted * self._block_tokens], prefix)
            if self._root_or_none() != root:  # what was just computed may belong to neither the old nor the new model
                self._ledger.outcome("add", {"changed": 1}, "the model was changed while it computed")
                return AddReport(blocks, present, 0, wanted - present, 0)
            self._ledger.outcome("add")
        self._ledger.add(blocks_present=present)
        sizes: list[int] = []
        for items in self._packed(root, keys, range(present, wanted), cache):
            done = self._put(items)
            sizes += done
            if progress is not None:
                progress(len(sizes), wanted - present)
            if len(done) < len(items):
                break  # what follows a hole cannot be found
        self._ledger.add(blocks_stored=len(sizes), bytes_up=sum(sizes))
        return AddReport(blocks, present, len(sizes), wanted - present - len(sizes), sum(sizes))

    def _expect(self, keys: list[bytes], at_s: float, blocks: int) -> ExpectReport:
        found = [entry.key for entry in self._find(keys)]
        results: list[PrefetchResult] = []
        if found:
            try:
                results = self._store.prefetch(found, max(at_s, time.time()))
            except Exception as error:  # a cache never breaks a generation
                self._ledger.outcome("prefetch", {"prefetch": 1}, error)
            else:
                self._ledger.outcome("prefetch", Counter(result.status for result in results if not result.ok))
        placed = sum(1 for _ in takewhile(lambda result: result.ok, results))
        return ExpectReport(blocks, placed, len(found) - placed)

    def _computed(self, tokens: list[int], prefix: list[torch.Tensor]) -> DynamicCache:
        cache = self._engine.cache(prefix, len(prefix) * self._block_tokens)
        with self._prefill_lock, self._ledger.timed("prefill_s"):
            return self._engine.prefill(tokens, cache)

    def _packed(
        self, root: bytes, keys: list[bytes], blocks: range, cache: DynamicCache | None
    ) -> Iterator[list[tuple[bytes, bytearray]]]:
        """Encoded blocks in runs; ends at the first that cannot be encoded, as no later one could be found."""
        items: list[tuple[bytes, bytearray]] = []
        size = 0
        for index in blocks:
            assert cache is not None
            start = index * self._block_tokens
            try:
                with self._ledger.timed("encode_s"):
                    tensors = self._engine.block(cache, start, start + self._block_tokens)
                    data = pack_block(
                        tensors,
                        key=keys[index],
                        digest_key=digest_key(root),
                        codec=self._codec,
                        block_index=index,
                        first_position=start,
                        rope=self._engine.rope,
                    )
            except Exception as error:  # a cache never breaks a generation
                self._ledger.outcome("encode", {"encode": 1}, error)
                break
            self._ledger.outcome("encode")
            items.append((keys[index], data))
            size += len(data)
            if size >= _RUN_BYTES:
                yield items
                items, size = [], 0
        if items:
            yield items

    def _put(self, items: list[tuple[bytes, bytearray]]) -> list[int]:
        """Store blocks; returns the bytes of each that was stored."""
        results = self._put_once(items)
        bad = [index for index, result in enumerate(results) if result.status is Status.BAD_KEY]
        if bad:
            # Left over from an older block of this key, whose bytes were not the same to the last bit. Those that follow are
            # put again too, because the index has forgotten them with the one before them
            self._purge([items[index][0] for index in bad])
            results = results[: bad[0]] + self._put_once(items[bad[0] :])
        if results:
            self._ledger.outcome("put", Counter(result.status for result in results if not result.ok))
        return [len(data) for (_, data), result in zip(items, results, strict=False) if result.ok]

    def _put_once(self, items: list[tuple[bytes, bytearray]]) -> list[PutResult]:
        try:
            with self._ledger.timed("put_s"):
                return self._store.put(items)
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("put", {"put": 1}, error)
            return []

    def _find(self, keys: list[bytes]) -> list[BlockEntry]:
        if not keys:
            return []
        try:
            with self._ledger.timed("find_s"):
                found = self._store.look_up_longest(keys, block_bytes_max=self._block_bytes_max)
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("find", {"find": 1}, error)
            return []
        self._ledger.outcome("find", {"find": 1} if found.unanswered else None, "no answer from the satellite that was asked")
        return found.entries

    def _find_whole(self, keys: list[bytes]) -> list[BlockEntry]:
        """As `_find`, but the local index is not believed without a question: satellites may have started anew."""
        found = self._find(keys)
        if not found:
            return found
        try:
            with self._ledger.timed("find_s"):
                if self._store.confirm(found[-1:]) or self._store.silent:
                    return found
                confirmed = set(self._store.confirm(found))
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("find", {"find": 1}, error)
            return []
        return list(takewhile(confirmed.__contains__, found))

    def _fetch(self, root: bytes | None, entries: list[BlockEntry], blocks: dict[bytes, torch.Tensor]) -> None:
        """Add the tensors of a chain of blocks by key, up to the first that does not come back whole."""
        left = [(index, entry) for index, entry in enumerate(entries) if entry.key not in blocks]
        while left and root is not None:
            count = _run_length([entry.block_len for _, entry in left])
            run, left = left[:count], left[count:]
            for position, data in enumerate(self._get_run([entry for _, entry in run])):
                index, entry = run[position]
                if data is None:
                    return
                tensors = self._decoded(root, index, entry.key, data)
                if tensors is None:
                    # What follows is likely of the same origin, and of no use until this one is put again
                    self._purge([entry.key for _, entry in run[position:]])
                    return
                blocks[entry.key] = tensors

    def _get_run(self, run: list[BlockEntry]) -> list[bytearray | None]:
        try:
            with self._ledger.timed("get_s"):
                results = self._store.get(run, block_bytes_max=self._block_bytes_max)
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("get", {"get": 1}, error)
            return [None] * len(run)
        self._ledger.add(bytes_down=sum(len(result.data) for result in results if result.data is not None))
        self._ledger.outcome("get", Counter(result.status for result in results if result.data is None))
        return [result.data for result in results]

    def _decoded(self, root: bytes, index: int, key: bytes, data: bytearray) -> torch.Tensor | None:
        """The tensors of a block; None if they are not what was stored."""
        geometry = self._engine.geometry
        wanted = (
            geometry.block_shape(self._block_tokens),
            dtype_name(geometry.dtype),
            index,
            index * self._block_tokens,
        )
        try:
            with self._ledger.timed("decode_s"):
                header, tensors = unpack_block(data, key=key, digest_key=digest_key(root), codec=self._codec)
            found = (header.shape, header.dtype, header.block_index, header.first_position)
            if found != wanted:
                raise BlockError(f"shape, dtype, index and position of the block are {found}; wanted are {wanted}")
        except Exception as error:  # whatever the bytes from the sky do to a codec, it is a miss
            self._ledger.outcome("decode", {"damaged": 1}, error)
            return None
        self._ledger.outcome("decode")
        return tensors

    def _purge(self, keys: list[bytes]) -> None:
        try:
            self._store.purge(keys)
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("purge", {"purge": 1}, error)
        else:
            self._ledger.outcome("purge")

    def _root(self) -> bytes:
        with self._fingerprint_lock:
            fingerprint = self._fingerprint.digest()
        return root_key(
            fingerprint=fingerprint,
            layout=LAYOUT,
            codec=self._codec.name,
            block_tokens=self._block_tokens,
            tenant_secret=self._tenant_secret,
        )

    def _root_or_none(self) -> bytes | None:
        try:
            root = self._root()
        except Exception as error:  # a cache never breaks a generation
            self._ledger.outcome("fingerprint", {"fingerprint": 1}, error)
            return None
        self._ledger.outcome("fingerprint")
        return root

    def _chain(self, root: bytes | None, tokens: list[int]) -> list[bytes]:
        return [] if root is None else block_keys(root, tokens, self._block_tokens)


def _run_length(sizes: Sequence[int]) -> int:
    """How many of the first blocks go in one run: those that together have at most `_RUN_BYTES`, and at least one."""
    within = sum(1 for _ in takewhile(lambda size: size <= _RUN_BYTES, accumulate(sizes)))
    return max(1, within)


def _prefix(blocks: dict[bytes, torch.Tensor], keys: Sequence[bytes]) -> list[torch.Tensor]:
    """Tensors of the first keys of a chain, up to the first that is missing."""
    return [blocks[key] for key in takewhile(blocks.__contains__, keys)]
