"""`KVCManager`: the cache of a model's prompts in the sky (paper, section 3.3).

    with running_store() as store:
        manager = KVCManager(model, tokenizer, store)
        manager.add_blocks(prompt)
        ids = tokenizer(prompt, return_tensors="pt").to(model.device)
        output = model.generate(**ids, past_key_values=manager.get_cache(prompt), max_new_tokens=30)

A prompt is cut into blocks of tokens. The key of a full block depends on its tokens, all tokens before them, the model and the
tokenizer. A block that is not found, is late or is damaged is a miss: it is counted and logged, and the model computes it. No
error between here and the satellites raises into a generation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from itertools import accumulate, takewhile
from threading import Lock
from typing import TYPE_CHECKING

from skymemory.common.progress import Progress, no_progress
from skymemory.link.block_entry import BlockEntry
from skymemory.prompt.block_keys import block_keys, prompt_root
from skymemory.prompt.blocks import LAYOUT, block_bytes_max, dtype_name, pack_block, unpack_block
from skymemory.prompt.codecs import Codec, get_codec
from skymemory.prompt.fingerprint import Fingerprint
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.prompt.prompts import Prompt, Prompts, token_list, token_lists
from skymemory.prompt.statistics import AddReport, ExpectReport, KVCStatistics, Ledger
from skymemory.store.block_store import BlockStore
from skymemory.store.results import CancelledLookupError, GetResult, PrefetchResult, PutResult, Status
from skymemory.wire.envelope import BlockError
from skymemory.wire.key_derivation import block_key, seal_keys

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_RUN_BYTES = 1 << 24
"""Bytes of blocks that go to the store in one run.

The store's deadline holds for a run, and not for all of a long prompt. Storing a prompt needs extra memory for one run only.
"""
_SCOPE = b"scope"
"""First part of the name under which a scope's root is derived. Blocks of tokens have one part, so none of them has that key."""


class KVCManager:
    """The cache of one model's prompts in a store. Thread-safe."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        store: BlockStore,
        *,
        codec: str | Codec | None = None,
        block_tokens: int | None = None,
        tenant_secret: bytes | None = None,
    ) -> None:
        """Read all weights once, for the keys.

        Args:
            model: A causal language model with full attention in all layers.
            tokenizer: The tokenizer that makes the prompts' token ids.
            store: The store that keeps the blocks. The manager never closes it; while it is closed, every block is a miss.
            codec: A codec or its name; the store's setting by default. "raw" gives every bit back; the others trade accuracy for
                bytes.
            block_tokens: Tokens of a block; the store's setting by default.
            tenant_secret: Secret in all keys; the store's by default. Somebody who does not know it can neither compute a key
                nor read or make a block. It does not keep somebody who sees the links from deleting blocks.

        Raises:
            UnsupportedModelError: The model's cache cannot be cut into blocks; the message says why.
            ValueError: `block_tokens` is less than 1, or the codec cannot take the model's tensors.
            SecretFileError: The store has no tenant secret, and none can be made.
        """
        self._engine = HuggingFaceEngine(model)
        self._tokenizer = tokenizer
        self._store = store
        self._fingerprint = Fingerprint(model, tokenizer)
        self._fingerprint_lock = Lock()
        self._prefill_lock = Lock()  # two prefills at a time would only share the machine
        self._tenant_secret = store.tenant_secret if tenant_secret is None else tenant_secret
        self._ledger = Ledger()
        chosen = store.settings.codec if codec is None else codec
        self._codec = get_codec(chosen) if isinstance(chosen, str) else chosen
        self._block_tokens = store.settings.block_tokens if block_tokens is None else block_tokens
        if self._block_tokens < 1:
            raise ValueError(f"block_tokens is {self._block_tokens}; allowed are 1 and more")
        geometry = self._engine.geometry
        self._block_bytes_max = block_bytes_max(geometry.block_shape(self._block_tokens), geometry.dtype, self._codec)
        self._root_or_none()

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
        """The codec that makes bytes of the tensors."""
        return self._codec

    @property
    def store(self) -> BlockStore:
        """The store that keeps the blocks."""
        return self._store

    @property
    def engine(self) -> HuggingFaceEngine:
        """The model, and the conversion of its caches."""
        return self._engine

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer that makes the prompts' token ids."""
        return self._tokenizer

    @property
    def tenant_secret(self) -> bytes:
        """Secret in all keys."""
        return self._tenant_secret

    def fingerprint(self) -> bytes:
        """Return the digest of model and tokenizer as they are now, 32 bytes.

        Raises:
            ValueError: The model cannot be digested now (`Fingerprint.digest`).
        """
        with self._fingerprint_lock:
            return self._fingerprint.digest()

    def use(self, store: BlockStore) -> None:
        """Use another store on the same constellation from now on, for example one that was opened with new keys.

        Weights are not read again, and statistics go on. The store of before may be closed then.
        """
        self._store = store

    def refresh(self) -> None:
        """Have the next call read all weights and the tokenizer again, even if `Fingerprint` notices no change."""
        with self._fingerprint_lock:
            self._fingerprint.forget()

    def keys(self, prompt: Prompt) -> list[bytes]:
        """Return the keys of a prompt's full blocks, 32 bytes each, as the model and the tokenizer are now.

        Raises:
            TypeError: The argument is no prompt.
            ValueError: The model cannot be digested now (`Fingerprint.digest`), or does not have a token id.
        """
        tokens = self._tokens(prompt)
        return self._chain(self._root(), tokens)

    def known_tokens(self, prompt: Prompt, *, scope: bytes = b"") -> int:
        """Return how many first tokens of a prompt this host believes to be in the sky, in full blocks. Nobody is asked.

        Raises:
            TypeError: The argument is no prompt.
            ValueError: The model does not have a token id.
        """
        return self._store.known(self._chain(self._root_or_none(scope), self._tokens(prompt))) * self._block_tokens

    def get_cache(self, prompt: Prompt, *, scope: bytes = b"", cancelled: Callable[[], bool] = lambda: False) -> DynamicCache:
        """Return the `past_key_values` of the longest beginning of a prompt that is in the sky, for `generate`.

        At least one token of the prompt is left out, because a model needs one to run. The cache is empty if no block was found.
        The cache shares no memory, so that `generate` may change it. Errors of the store are misses and do not raise.

        With `num_beams` or `num_return_sequences` of n, `generate` runs n rows: call `cache.batch_repeat_interleave(n)` first.

        Args:
            prompt: Text, token ids, or a tokenizer's result for one prompt.
            scope: Bytes that go into the names of the blocks: only blocks that were stored with the same ones are found.
            cancelled: Tells, before each question and each block, that no more are wanted.

        Returns:
            A cache of batch size 1.

        Raises:
            TypeError: The argument is no prompt.
            ValueError: The model does not have a token id, or a tensor has another shape.
        """
        return self._get([self._tokens(prompt)], scope, cancelled)[0]

    def get_caches(self, prompts: Prompts) -> list[DynamicCache]:
        """Return the caches of several prompts, as `get_cache` does. Blocks that the prompts have in common are fetched once.

        Args:
            prompts: A list of prompts, or a tokenizer's result for several.

        Returns:
            A cache for each prompt. Each needs a `generate` of its own, because the caches differ in length and transformers has
            no cache of rows of different lengths.

        Raises:
            TypeError: The argument is no list of prompts.
            ValueError: The model does not have a token id, or a tensor has another shape.
        """
        return self._get(self._token_lists(prompts))

    def add_blocks(
        self,
        prompt: Prompt,
        past_key_values: DynamicCache | None = None,
        progress: Progress = no_progress,
        *,
        scope: bytes = b"",
    ) -> AddReport:
        """Store the full blocks of a prompt that are not in the sky yet. Errors of the store are counted and do not raise.

        Args:
            prompt: Text, token ids, or a tokenizer's result for one prompt.
            past_key_values: A cache that a run of the model left, for example that of `generate` with `return_dict_in_generate`.
                It may cover less or more than the prompt, and is not changed. Without it the model computes the missing blocks.
                Of a cache with linked segments (`SegmentManager.link`) only the tokens before the first segment that is not exact
                are stored, because all behind it are approximate.
            progress: Function to call with the number of blocks stored and of blocks to store.
            scope: Scope of the blocks (`get_cache`).

        Raises:
            TypeError: The argument is no prompt.
            ValueError: `past_key_values` is not a cache of this model and of one prompt, or the model does not have a token id.
        """
        return self._add(self._tokens(prompt), past_key_values, progress, scope)

    def add_prompts(self, prompts: Prompts) -> list[AddReport]:
        """Store the blocks of several prompts, as `add_blocks` does without a cache.

        Raises:
            TypeError: The argument is no list of prompts.
            ValueError: The model does not have a token id, or a tensor has another shape.
        """
        return [self._add(tokens, None, no_progress) for tokens in self._token_lists(prompts)]

    def expect(self, prompt: Prompt, at: float | datetime) -> ExpectReport:
        """Place the cached blocks of a prompt so that they are in the window when it comes (`BlockStore.prefetch`).

        Errors of the store are counted and do not raise.

        Args:
            prompt: Text, token ids, or a tokenizer's result for one prompt.
            at: Time at which the prompt is expected: Unix time, or a datetime (local time if it names no zone).

        Raises:
            TypeError: The argument is no prompt.
            ValueError: The time is past, or the model does not have a token id.
        """
        tokens = self._tokens(prompt)
        at_s = time_to_come(at)
        found = [entry.key for entry in self._find(self._chain(self._root_or_none(), tokens))]
        results: list[PrefetchResult] = []
        if found:
            with self._ledger.attempt("prefetch") as failures:
                results = self._store.prefetch(found, max(at_s, time.time()))
                failures.update(result.status for result in results if not result.ok)
        placed = sum(1 for _ in takewhile(lambda result: result.ok, results))
        return ExpectReport(len(tokens) // self._block_tokens, placed, len(found) - placed)

    def _tokens(self, prompt: Prompt) -> list[int]:
        return token_list(prompt, self._tokenizer, self._engine.vocabulary)

    def _token_lists(self, prompts: Prompts) -> list[list[int]]:
        return token_lists(prompts, self._tokenizer, self._engine.vocabulary)

    def _get(
        self, prompts: list[list[int]], scope: bytes = b"", cancelled: Callable[[], bool] = lambda: False
    ) -> list[DynamicCache]:
        root = self._root_or_none(scope) if prompts else None
        chains = [self._chain(root, tokens) for tokens in prompts]
        found = [self._find(keys, cancelled=cancelled) for keys in chains]
        blocks: dict[bytes, torch.Tensor] = {}
        for entries in found:
            self._fetch(root, entries, blocks, cancelled)
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

    def _add(self, tokens: list[int], given: DynamicCache | None, progress: Progress, scope: bytes = b"") -> AddReport:
        blocks = len(tokens) // self._block_tokens
        wanted = blocks if given is None else min(blocks, self._engine.check(given) // self._block_tokens)
        root = self._root_or_none(scope) if wanted else None
        if root is None:
            return AddReport(blocks, 0, 0, wanted, 0)
        keys = self._chain(root, tokens)[:wanted]
        found = self._find(keys, fresh=True)  # asks satellites, which may have restarted
        if self._store.silent:  # no block could be stored, so none is computed
            return AddReport(blocks, 0, 0, wanted, 0)
        present = len(found)
        cache = given
        if cache is None and present < wanted:
            fetched: dict[bytes, torch.Tensor] = {}
            self._fetch(root, found, fetched)
            prefix = _prefix(fetched, keys)
            present = len(prefix)
            cache = self._computed(tokens[: wanted * self._block_tokens], prefix)
            if self._root_or_none(scope) != root:  # the blocks may belong to neither the old nor the new model
                self._ledger.outcome("add", {"changed": 1}, "the model was changed while it computed")
                return AddReport(blocks, present, 0, wanted - present, 0)
            self._ledger.outcome("add")
        self._ledger.add(blocks_present=present)
        sizes: list[int] = []
        for items in self._packed(root, keys, range(present, wanted), cache):
            done = self._put(items)
            sizes += done
            progress(len(sizes), wanted - present)
            if len(done) < len(items):
                break  # no lookup would find blocks after the missing one
        self._ledger.add(blocks_stored=len(sizes), bytes_up=sum(sizes))
        return AddReport(blocks, present, len(sizes), wanted - present - len(sizes), sum(sizes))

    def _computed(self, tokens: list[int], prefix: list[torch.Tensor]) -> DynamicCache:
        cache = self._engine.cache(prefix, len(prefix) * self._block_tokens)
        with self._prefill_lock, self._ledger.timed("prefill_s"):
            return self._engine.prefill(tokens, cache)

    def _packed(
        self, root: bytes, keys: list[bytes], blocks: range, cache: DynamicCache | None
    ) -> Iterator[list[tuple[bytes, bytearray]]]:
        """Yield encoded blocks in runs. End at the first that cannot be encoded, for no later one could be found."""
        items: list[tuple[bytes, bytearray]] = []
        size = 0
        for index in blocks:
            assert cache is not None
            start = index * self._block_tokens
            data = None
            with self._ledger.attempt("encode"), self._ledger.timed("encode_s"):
                data = pack_block(
                    self._engine.block(cache, start, start + self._block_tokens),
                    key=keys[index],
                    keys=seal_keys(root),
                    codec=self._codec,
                    block_index=index,
                    first_position=start,
                    rope=self._engine.rope,
                )
            if data is None:
                break
            items.append((keys[index], data))
            size += len(data)
            if size >= _RUN_BYTES:
                yield items
                items, size = [], 0
        if items:
            yield items

    def _put(self, items: list[tuple[bytes, bytearray]]) -> list[int]:
        """Store blocks, and return the bytes of each that was stored."""
        results: list[PutResult] = []
        with self._ledger.attempt("put") as failures, self._ledger.timed("put_s"):
            results = self._store.put(items)
            bad = [index for index, result in enumerate(results) if result.status is Status.BAD_KEY]
            if bad:
                # Satellites hold chunks of an older block of this key, whose bytes differ. The blocks that follow are put again
                # too, because the index has forgotten them with the one before them
                self._purge([items[index][0] for index in bad])
                results = results[: bad[0]]
                results += self._store.put(items[bad[0] :])
            failures.update(result.status for result in results if not result.ok)
        return [len(data) for (_, data), result in zip(items, results, strict=False) if result.ok]

    def _find(
        self, keys: list[bytes], *, fresh: bool = False, cancelled: Callable[[], bool] = lambda: False
    ) -> Sequence[BlockEntry]:
        entries: Sequence[BlockEntry] = []
        if keys:
            with self._ledger.attempt("find"), self._ledger.timed("find_s"):
                try:
                    found = self._store.find_longest(
                        keys, fresh=fresh, block_bytes_max=self._block_bytes_max, cancelled=cancelled
                    )
                except CancelledLookupError:
                    return []
                except Exception:
                    if cancelled():  # the store may have been closed meanwhile, which is no failure
                        return []
                    raise
                entries = found.entries
                if found.unanswered:
                    raise TimeoutError("no answer from the satellite that was asked")
        return entries

    def _fetch(
        self,
        root: bytes | None,
        entries: Sequence[BlockEntry],
        blocks: dict[bytes, torch.Tensor],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Add the tensors of a chain of blocks by key, up to the first block that does not come back whole.

        While a block is decoded, others come.
        """
        left = [(index, entry) for index, entry in enumerate(entries) if entry.key not in blocks]
        damaged: list[BlockEntry] = []
        if left and not cancelled() and root is not None:
            with self._ledger.attempt("get") as failures, closing(self._get_each([entry for _, entry in left])) as results:
                for position, ((index, entry), result) in enumerate(zip(left, results, strict=True)):
                    if cancelled():
                        break
                    if result.data is None:
                        failures[result.status] += 1
                        break
                    tensors = self._decoded(root, index, result)
                    if tensors is None:
                        damaged = [one for _, one in left[position:]]
                        break
                    blocks[entry.key] = tensors
        if damaged:
            # The blocks behind it are probably damaged too, and useless until this one is put again
            count = run_length([entry.block_len for entry in damaged])
            self._purge([entry.key for entry in damaged[:count]])

    def _get_each(self, entries: Sequence[BlockEntry]) -> Generator[GetResult, None, None]:
        with closing(self._store.get_each(entries, block_bytes_max=self._block_bytes_max)) as results:
            for _ in entries:
                with self._ledger.timed("get_s"):
                    result = next(results)
                self._ledger.add(bytes_down=0 if result.data is None else len(result.data))
                yield result
                del result  # the caller may be done with the memory

    def _decoded(self, root: bytes, index: int, result: GetResult) -> torch.Tensor | None:
        """Return the tensors of a block; None if the block is damaged or of another shape or position."""
        geometry = self._engine.geometry
        wanted = (
            geometry.block_shape(self._block_tokens),
            dtype_name(geometry.dtype),
            index,
            index * self._block_tokens,
        )
        codec, why = self._codec, [BlockError("the block was not opened")]

        def opens(data: bytearray) -> torch.Tensor | None:
            try:
                header, tensors = unpack_block(data, key=result.key, keys=seal_keys(root), codec=codec)
            except BlockError as error:
                why.append(error)
                return None
            found = (header.shape, header.dtype, header.block_index, header.first_position)
            if found == wanted:
                return tensors
            why.append(BlockError(f"shape, dtype, index and position of the block are {found}; wanted are {wanted}"))
            return None

        with self._ledger.attempt("decode", "damaged"), self._ledger.timed("decode_s"):
            tensors = self._store.opened(result, opens)
            if tensors is None:
                raise why[-1]
            return tensors
        return None

    def _purge(self, keys: list[bytes]) -> None:
        with self._ledger.attempt("purge"):
            self._store.purge(keys)

    def _root(self, scope: bytes = b"") -> bytes:
        root = prompt_root(
            fingerprint=self.fingerprint(),
            layout=LAYOUT,
            codec=self._codec.name,
            block_tokens=self._block_tokens,
            tenant_secret=self._tenant_secret,
        )
        return block_key(root, _SCOPE, scope) if scope else root

    def _root_or_none(self, scope: bytes = b"") -> bytes | None:
        with self._ledger.attempt("fingerprint"):
            return self._root(scope)
        return None

    def _chain(self, root: bytes | None, tokens: list[int]) -> list[bytes]:
        return [] if root is None else block_keys(root, tokens, self._block_tokens)


def time_to_come(at: float | datetime) -> float:
    """Return the Unix time of a time for which something is expected.

    Args:
        at: Unix time, or a datetime (local time if it names no zone).

    Raises:
        ValueError: The time is past.
    """
    at_s = at.timestamp() if isinstance(at, datetime) else float(at)
    if not at_s >= time.time():
        raise ValueError(f"{at} is past; allowed are times from now on")
    return at_s


def run_length(sizes: Sequence[int]) -> int:
    """Return the number of first blocks of one run: at least one, and no more than have `_RUN_BYTES` together."""
    within = sum(1 for _ in takewhile(lambda size: size <= _RUN_BYTES, accumulate(sizes)))
    return max(1, within)


def _prefix(blocks: dict[bytes, torch.Tensor], keys: Sequence[bytes]) -> list[torch.Tensor]:
    """Return the tensors of the first keys of a chain, up to the first missing block."""
    return [blocks[key] for key in takewhile(blocks.__contains__, keys)]
