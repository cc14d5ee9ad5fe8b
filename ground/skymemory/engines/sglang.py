"""SGLang: a storage backend of its hierarchical cache, loaded by `--hicache-storage-backend dynamic` (docs/sglang.md).

SGLang keeps pages of tokens in tiers: GPU, host memory, storage. This is the storage: computed pages go to the sky, and come
back into host memory ahead of their request. SGLang asks from threads of its own, so this backend may wait for the agent.

    root = of the pages' format, model, weights, layout and shard, all that decides the bytes of a page but its tokens
    key  = of SGLang's hash of the page, a SHA-256 chain over the tokens, and the pool's name, under root

A page is one block, whatever pieces of the host pool it consists of (keys and values, or layer by layer). It is copied once
between the pool and the arena. With SGLang's `interface_v1` the pool tells where the pieces are; without it SGLang makes
another copy.

Nothing raises once SGLang serves: without an agent or a sky, and for damaged pages, everything is a miss.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sglang.srt.mem_cache.hicache_storage import (
    HiCacheStorage,
    HiCacheStorageConfig,
    HiCacheStorageExtraInfo,
    PoolHitPolicy,
    PoolName,
    PoolTransfer,
    PoolTransferResult,
)

from skymemory.engines.carrier import Block, Carrier, CarrierSettings, memory_at
from skymemory.engines.framing import BlockFormat
from skymemory.engines.tenant import engine_secret
from skymemory.wire.key_derivation import block_key

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)

_GEOMETRY: Final = (
    "layout", "dtype", "page_size", "start_layer", "end_layer", "layer_num", "head_num", "head_dim", "v_head_dim",
    "kv_cache_dim", "kv_lora_rank", "qk_rope_head_dim", "storage_format_tag",
)  # fmt: skip
"""Attributes of a host pool that say how the bytes of a page are to be read."""
_WEIGHT_CHANGES: Final = (
    "update_weights_from_disk", "begin_weight_update", "load_weights_from_distributed", "update_weights_from_tensor",
    "update_weights_from_ipc",
)  # fmt: skip
"""Methods of SGLang's `WeightUpdater` that change weights."""
weights_changed: Final = threading.Event()
"""Event: weights have changed in this process, so keys no longer say what computed a page."""


class _Pool:
    """The pages of one of SGLang's host pools: their keys, their memory, and the carrier of their blocks."""

    def __init__(
        self,
        name: str,
        host_pool: Any,
        model: str,
        secret: bytes,
        parts: Sequence[bytes | str],
        settings: CarrierSettings,
        *,
        flat: bool,
        ranks: int,
    ) -> None:
        """Connect a pool to the agent.

        Args:
            model: Name of the model for the agent.
            secret: Secret of the tenant.
            parts: Facts other than the pool that decide the bytes of a page.
            flat: True if SGLang hands over pages as tensors of its own.
            ranks: Number of ranks, each of which stores its part of a page.

        Raises:
            ValueError: The pool's pages cannot be served; the message says why.
        """
        self._pool = host_pool
        self.page_tokens: int = host_pool.page_size
        sizes = [host_pool.get_dummy_flat_data_page().nbytes] if flat else self._sizes()
        geometry = {name: str(getattr(host_pool, name, None)) for name in _GEOMETRY}
        self.format = BlockFormat(
            block_tokens=self.page_tokens,
            layers=1,
            layer_bytes=max(1, sum(sizes)),  # a pool that only tracks others has empty pages
            dtype=str(getattr(host_pool, "dtype", "bytes")).removeprefix("torch."),
            layout=f"{host_pool.layout},{'flat' if flat else 'pieces'}",
        )
        kind = json.dumps([type(host_pool).__name__, geometry, sizes], sort_keys=True)
        root = self.format.root(secret, *parts, kind)
        self._name = name
        known_as = model if name == PoolName.KV else f"{model}, {name}"
        self.carrier = Carrier("sglang", known_as, self.format, root, settings, body_bytes=sum(sizes), processes=ranks)

    def key(self, page_hash: str) -> bytes:
        return block_key(self.carrier.names, self._name.encode(), page_hash.encode())

    def pages(self, hashes: Sequence[str], host_indices: torch.Tensor) -> list[Block]:
        """Return pages and their places in the host pool.

        Args:
            host_indices: Index of each token, page after page.

        Raises:
            ValueError: There are not as many tokens as the pages have.
        """
        if host_indices.numel() != len(hashes) * self.page_tokens:
            raise ValueError(f"{host_indices.numel()} indices for {len(hashes)} pages of {self.page_tokens} tokens")
        pointers, sizes = self._pool.get_page_buffer_meta(host_indices) or ((), ())
        each = len(pointers) // max(1, len(hashes))
        pieces = [memory_at(pointer, size) for pointer, size in zip(pointers, sizes, strict=True)]
        return [Block(self.key(page), pieces[at * each : (at + 1) * each]) for at, page in enumerate(hashes)]

    def _sizes(self) -> list[int]:
        import torch

        _, sizes = self._pool.get_page_buffer_meta(torch.arange(self.page_tokens)) or ((), ())
        return list(sizes)


class SkyMemoryStorage(HiCacheStorage):  # type: ignore[misc]  # SGLang has no types
    """Storage backend, of which SGLang makes one for each rank."""

    def __init__(self, storage_config: HiCacheStorageConfig, _: dict[str, Any] | None = None) -> None:
        """Check the settings.

        Raises:
            ValueError: A setting is wrong.
        """
        extra = storage_config.extra_config or {}
        self._config = storage_config
        self._settings = CarrierSettings.of(extra)
        self._secret = engine_secret(self._settings.tenant_secret_file, self._settings.socket)
        self._flat = not extra.get("interface_v1")
        self._model: tuple[str, ...] | None = None
        self._weights = b""
        self.kv: _Pool | None = None
        """Pool of keys and values; None until it is registered."""
        self.pools: dict[str, _Pool] = {}
        """Pools by the names that transfers use."""

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Take the pool of keys and values, which says what a page is, and connect.

        Raises:
            ValueError: Its pages cannot be served, or the model's files are not on this machine; the message says which.
        """
        super().register_mem_pool_host(mem_pool_host)
        self.close()
        self.kv = self._pool(str(PoolName.KV), mem_pool_host, flat=self._flat)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: str) -> None:
        """Take another pool: state of recurrent layers, of sliding windows, of an indexer."""
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        name = str(host_pool_name)
        if name in self.pools:
            return
        same = self.kv is not None and name == PoolName.KV and not self._flat
        self.pools[name] = self.kv if same and self.kv is not None else self._pool(name, host_pool, flat=False)

    # ---- pages of keys and values -----------------------------------------------------------------------------------

    def exists(self, key: str) -> bool:
        """Return True if the page is there."""
        return self.batch_exists([key]) == 1

    def batch_exists(self, keys: list[str], extra_info: HiCacheStorageExtraInfo | None = None) -> int:
        """Return how many pages, from the first one on, are there and come faster than the engine computes them."""
        if self.kv is None or weights_changed.is_set():
            return 0
        before = len(extra_info.prefix_keys or ()) if extra_info is not None else 0
        hashes = [*(extra_info.prefix_keys or ()), *keys] if before and extra_info is not None else keys
        return min(len(keys), self.kv.carrier.worth([self.kv.key(page) for page in hashes], cached=before))

    def batch_get_v1(
        self, keys: list[str], host_indices: torch.Tensor, extra_info: HiCacheStorageExtraInfo | None = None
    ) -> list[bool]:
        """Fetch pages into the host pool, and return which of them are there now."""
        return self._guarded(lambda pool: pool.carrier.get(pool.pages(keys, host_indices)), self.kv, keys)

    def batch_set_v1(
        self, keys: list[str], host_indices: torch.Tensor, extra_info: HiCacheStorageExtraInfo | None = None
    ) -> list[bool]:
        """Store pages of the host pool, and return which of them are in the sky now."""
        return self._guarded(lambda pool: pool.carrier.put(pool.pages(keys, host_indices)), self.kv, keys)

    # ---- the same with tensors of SGLang's own: its way without `interface_v1` -----------------------------------------

    def get(self, key: str, target_location: torch.Tensor | None = None, target_sizes: Any = None) -> torch.Tensor | None:
        """Fetch a page into a tensor as flat as the pool's `get_dummy_flat_data_page`."""
        return self.batch_get([key], None if target_location is None else [target_location])[0]

    def batch_get(
        self, keys: list[str], target_locations: list[torch.Tensor] | None = None, target_sizes: Any = None
    ) -> list[torch.Tensor | None]:
        """Fetch pages into tensors; None for missing ones."""
        targets = target_locations
        if targets is None:
            if self.kv is None:
                return [None] * len(keys)
            targets = [self.mem_pool_host.get_dummy_flat_data_page() for _ in keys]
        there = self._guarded(lambda pool: pool.carrier.get(_tensor_pages(pool, keys, targets)), self.kv, keys)
        return [target if done else None for target, done in zip(targets, there, strict=True)]

    def set(self, key: str, value: torch.Tensor | None = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """Store a page."""
        return value is not None and self.batch_set([key], [value])

    def batch_set(
        self, keys: list[str], values: list[torch.Tensor] | None = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """Store pages. Return True if all of them are in the sky now."""
        if values is None:
            return False
        return all(self._guarded(lambda pool: pool.carrier.put(_tensor_pages(pool, keys, values)), self.kv, keys))

    # ---- pools beside keys and values ----------------------------------------------------------------------------------

    def batch_exists_v2(
        self,
        keys: list[str],
        pool_transfers: list[PoolTransfer] | None = None,
        extra_info: HiCacheStorageExtraInfo | None = None,
    ) -> PoolTransferResult:
        """Return how long a beginning can be restored with all that its pools need, as SGLang's own file backend counts it."""
        pages = self.batch_exists(keys, extra_info)
        hits: dict[str, int] = {PoolName.KV: pages} if pages else {}
        restorable = list(range(1, pages + 1))
        for transfer in pool_transfers or ():
            if transfer.hit_policy not in (PoolHitPolicy.ALL_PAGES, PoolHitPolicy.TRAILING_PAGES):
                continue  # this is a second form of the same pages, which is not stored
            pool = self.pools.get(str(transfer.name))
            there = [False] * pages if pool is None else pool.carrier.each([pool.key(page) for page in keys[:pages]])
            if transfer.hit_policy == PoolHitPolicy.ALL_PAGES:
                whole = [end for end in restorable if all(there[:end])]
            else:
                trailing = max(1, len(transfer.keys or ()))
                whole = [end for end in range(1, pages + 1) if all(there[max(0, end - trailing) : end])]
            if whole:
                hits[transfer.name] = whole[-1]
            restorable = [end for end in restorable if end in set(whole)]
        return PoolTransferResult(restorable[-1] if restorable else 0, hits, restorable)

    def batch_get_v2(
        self, transfers: list[PoolTransfer], extra_info: HiCacheStorageExtraInfo | None = None
    ) -> dict[str, list[bool]]:
        """Fetch pages into the pools that the transfers name."""
        return self._each_pool(transfers, Carrier.get)

    def batch_set_v2(
        self, transfers: list[PoolTransfer], extra_info: HiCacheStorageExtraInfo | None = None
    ) -> dict[str, list[bool]]:
        """Store pages of the pools that the transfers name."""
        return self._each_pool(transfers, Carrier.put)

    # ---- the rest --------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Do nothing but warn: the sky is shared, and only a page's key says whose it is."""
        _log.warning("SkyMemory: pages in the sky are shared by all hosts and are not cleared; they expire")

    def close(self) -> None:
        """End the connections. A second call does nothing."""
        for pool in (self.kv, *self.pools.values()):
            if pool is not None:
                pool.carrier.close()

    def _pool(self, name: str, host_pool: Any, *, flat: bool) -> _Pool:
        config = self._config
        if self._model is None:
            _watch_weights()
            self._model, self._weights = _model()
        # One rank writes latent attention, which is the same on all ranks. State of recurrent layers is never the same.
        shared = config.is_mla_model and name != PoolName.MAMBA
        shard = {
            "tp": None if shared else (config.tp_rank, config.tp_size),
            "pp": (config.pp_rank, config.pp_size),
            "cp": (config.attn_cp_rank, config.attn_cp_size),
        }
        parts: list[bytes | str] = [*self._model, self._weights, json.dumps(shard)]
        ranks = (1 if shared else config.tp_size) * config.pp_size * config.attn_cp_size
        return _Pool(name, host_pool, config.model_name or "", self._secret, parts, self._settings, flat=flat, ranks=ranks)

    def _guarded(self, run: Callable[[_Pool], list[bool]], pool: _Pool | None, keys: Sequence[str]) -> list[bool]:
        """Run a transfer; turn any fault, ours or the pool's, into misses."""
        nothing = [False] * len(keys)
        if pool is None or weights_changed.is_set():
            return nothing
        try:
            return run(pool)
        except Exception:
            _log.exception("SkyMemory: %d pages are treated as missing", len(keys))
            return nothing

    def _each_pool(
        self, transfers: Sequence[PoolTransfer], move: Callable[[Carrier, list[Block]], list[bool]]
    ) -> dict[str, list[bool]]:
        done: dict[str, list[bool]] = {}
        for transfer in transfers:
            keys, indices = transfer.keys or [], transfer.host_indices

            def moved(pool: _Pool, keys: list[str] = keys, indices: Any = indices) -> list[bool]:
                return [] if indices is None and not keys else move(pool.carrier, pool.pages(keys, indices))

            done[transfer.name] = self._guarded(moved, self.pools.get(str(transfer.name)), keys)
        return done


def _tensor_pages(pool: _Pool, hashes: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[Block]:
    pages = []
    for page, tensor in zip(hashes, tensors, strict=True):
        if not tensor.is_contiguous() or tensor.is_cuda:
            raise ValueError("a page has to be contiguous, in host memory")
        pages.append(Block(pool.key(page), [memory_at(tensor.data_ptr(), tensor.nbytes)]))
    return pages


def _model() -> tuple[tuple[str, ...], bytes]:
    """Return all that decides the bytes of all pages: words, and a digest of the weights of the model and its adapters.

    Raises:
        WeightsError: The weights are not in files of this machine.
    """
    import sglang
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.runtime_context import get_lora, get_server_args

    from skymemory.engines.weights import adapter_files, config_text, files_digest, weight_files

    told = get_server_args()
    names = ("dtype", "quantization", "kv_cache_dtype", "load_format", "json_model_override_args", "context_length")
    words = {name: str(getattr(told, name, None)) for name in names}
    config = config_text(ModelConfig.from_server_args(told).hf_config)
    files = weight_files(told.model_path, told.revision, told.download_dir)
    # SGLang's hashes have an adapter's name and path. Adapters loaded at run time have numbers of their own, which nobody
    # shares.
    adapters = {one.lora_id: files_digest(adapter_files(one.lora_path)).hex() for one in get_lora().lora_paths or ()}
    known = (sglang.__version__, json.dumps(words, sort_keys=True), config, json.dumps(adapters, sort_keys=True))
    return ("sglang", *known), files_digest(files)


def _watch_weights() -> None:
    """Stop storing and finding at the first change of the weights in this process.

    Pages in the sky were computed by other weights, and those that SGLang keeps may be of both. SGLang tells its backends
    nothing of a change.
    """
    from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater

    for name in _WEIGHT_CHANGES:
        change = getattr(WeightUpdater, name)
        if not hasattr(change, "_skymemory"):
            setattr(WeightUpdater, name, _told(change))


def _told(change: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(change)
    def changed(*given: Any, **named: Any) -> Any:
        if not weights_changed.is_set():
            weights_changed.set()
            _log.warning("SkyMemory: the weights are changed; nothing is stored or found until this server is started again")
        return change(*given, **named)

    changed._skymemory = True  # type: ignore[attr-defined]  # functions take attributes
    return changed
