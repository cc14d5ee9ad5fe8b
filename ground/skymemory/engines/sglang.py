"""SGLang: a storage backend of its hierarchical cache, loaded by `--hicache-storage-backend dynamic` (docs/sglang.md).

SGLang keeps pages of tokens in tiers: GPU, host memory, storage. This is the storage: pages that were computed go to the sky,
and come back from there into host memory ahead of their request. It asks from threads of its own, so what is here may wait
for the agent.

    root = of the pages' format, model, weights, layout and shard, all that decides the bytes of a page but its tokens
    key  = of SGLang's hash of the page, a SHA-256 chain over the tokens, and the pool's name, under root

A page is one block, whatever pieces of the host pool it consists of (keys and values, or layer by layer): it is copied between
the pool and the arena once. With SGLang's `interface_v1` the pool tells where the pieces are; without it SGLang makes a copy
more.

Nothing raises once SGLang serves: without an agent or a sky, and for damaged pages, all is a miss.
"""

from __future__ import annotations

import ctypes
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sglang.srt.mem_cache.hicache_storage import (
    HiCacheStorage,
    HiCacheStorageConfig,
    HiCacheStorageExtraInfo,
    PoolHitPolicy,
    PoolName,
    PoolTransfer,
    PoolTransferResult,
)

from skymemory.agent.client import AgentClient, EngineInfo, Lease, Outcome
from skymemory.engines.framing import BlockFormat, FrameError, Framing, block_key, root

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)
T = TypeVar("T")

ANSWER_S: Final = 60.0
"""what the agent has not answered by then is a miss; it says itself sooner what it does not get"""
_WINDOWS: Final = 2
"""as many parts of a batch are on their way at once: while one comes, the one before is checked and copied"""
_ARENA_MIB_MAX: Final = 1 << 18
"""as the agent allows"""
_GEOMETRY: Final = (
    "layout", "dtype", "page_size", "start_layer", "end_layer", "layer_num", "head_num", "head_dim", "v_head_dim",
    "kv_cache_dim", "kv_lora_rank", "qk_rope_head_dim", "storage_format_tag",
)  # fmt: skip
"""of a host pool: how the bytes of a page are to be read"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person sets in `--hicache-storage-backend-extra-config`, beside what names this class."""

    socket: str | None = None
    """path of the agent's socket; by default where the agent puts it"""
    tenant_secret_file: str | None = None
    """its bytes go into all keys and digests: without them pages are neither found nor accepted"""
    arena_mib: int = 256
    """memory of each rank for pages on their way"""

    @classmethod
    def of(cls, extra: dict[str, Any]) -> Settings:
        """Take the settings from among SGLang's own.

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
class _Page:
    """A page under its key in the sky, and the host memory it is read from or goes to."""

    key: bytes
    pieces: Sequence[memoryview]


class _Pool:
    """The pages of one of SGLang's host pools: their keys, their memory, and a connection to the agent, which takes blocks of one
    size from each."""

    def __init__(
        self, name: str, host_pool: Any, model: str, parts: Sequence[bytes | str], settings: Settings, *, flat: bool
    ) -> None:
        """
        Args:
            model: what the agent calls it by.
            parts: what decides the bytes of a page beside the pool.
            flat: SGLang hands over pages as tensors of its own.

        Raises:
            ValueError: its pages cannot be served; the message says why.
        """
        self._pool = host_pool
        self.page_tokens: int = host_pool.page_size
        sizes = [host_pool.get_dummy_flat_data_page().nbytes] if flat else self._sizes()
        geometry = {name: str(getattr(host_pool, name, None)) for name in _GEOMETRY}
        self._body_bytes = sum(sizes)
        self.format = BlockFormat(
            block_tokens=self.page_tokens,
            layers=1,
            layer_bytes=max(1, self._body_bytes),  # a pool that only keeps track of others has pages without bytes
            dtype=str(getattr(host_pool, "dtype", "bytes")).removeprefix("torch."),
            layout=f"{host_pool.layout},{'flat' if flat else 'pieces'}",
        )
        self.root = root(self.format, (*parts, type(host_pool).__name__, json.dumps([geometry, sizes], sort_keys=True)))
        self.framing = Framing(self.format, self.root)
        self._name = name
        arena_bytes = settings.arena_mib << 20
        self.pages_at_once = arena_bytes // _WINDOWS // self.framing.block_bytes
        """half of what the arena holds"""
        if not self.pages_at_once:
            needed = -(-_WINDOWS * self.framing.block_bytes >> 20)
            raise ValueError(f"SkyMemory: a page has {self.framing.block_bytes} bytes; arena_mib is to be {needed} or more")
        engine = EngineInfo(
            name="sglang",
            model=model if name == PoolName.KV else f"{model}, {name}",
            root=self.root,
            block_tokens=self.page_tokens,
            block_bytes=self.framing.block_bytes,
            dtype=self.format.dtype,
        )
        self.client = AgentClient(Path(settings.socket) if settings.socket else None, engine=engine, arena_bytes=arena_bytes)

    def key(self, page_hash: str) -> bytes:
        return block_key(self.root, f"{self._name}:{page_hash}".encode())

    def pages(self, hashes: Sequence[str], host_indices: torch.Tensor) -> list[_Page]:
        """Pages and where they are in the host pool.

        Args:
            host_indices: of each token, page after page.

        Raises:
            ValueError: not as many tokens as pages have.
        """
        if host_indices.numel() != len(hashes) * self.page_tokens:
            raise ValueError(f"{host_indices.numel()} indices for {len(hashes)} pages of {self.page_tokens} tokens")
        pointers, sizes = self._pool.get_page_buffer_meta(host_indices) or ((), ())
        each = len(pointers) // max(1, len(hashes))
        pieces = [_memory(pointer, size) for pointer, size in zip(pointers, sizes, strict=True)]
        return [_Page(self.key(page), pieces[at * each : (at + 1) * each]) for at, page in enumerate(hashes)]

    def fill(self, block: memoryview, page: _Page) -> None:
        """Copy a page to where it is sent from, and seal it."""
        (body,) = self.framing.layers(block)
        for piece, place in self._placed(page, body):
            place[:] = piece
        self.framing.seal(block, page.key)

    def take(self, block: memoryview, page: _Page) -> None:
        """Check a page that has come, and copy it to where it goes.

        Raises:
            FrameError: it is damaged, or another one.
        """
        self.framing.check(block, page.key)
        (body,) = self.framing.layers(block)
        for piece, place in self._placed(page, body):
            piece[:] = place

    def _placed(self, page: _Page, body: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
        if sum(piece.nbytes for piece in page.pieces) != self._body_bytes:
            raise FrameError(f"the host pool's page does not have {self._body_bytes} bytes")
        ends = accumulate(piece.nbytes for piece in page.pieces)
        for piece, end in zip(page.pieces, ends, strict=True):
            yield piece, body[end - piece.nbytes : end]

    def _sizes(self) -> list[int]:
        import torch

        _, sizes = self._pool.get_page_buffer_meta(torch.arange(self.page_tokens)) or ((), ())
        return list(sizes)


class SkyMemoryStorage(HiCacheStorage):  # type: ignore[misc]  # SGLang has no types
    """What SGLang makes one of for each rank."""

    def __init__(self, storage_config: HiCacheStorageConfig, _: dict[str, Any] | None = None) -> None:
        """
        Raises:
            ValueError: a setting is wrong.
        """
        extra = storage_config.extra_config or {}
        self._config = storage_config
        self._settings = Settings.of(extra)
        self._secret = self._settings.tenant_secret()
        self._flat = not extra.get("interface_v1")
        self._model: tuple[str, ...] | None = None
        self._weights = b""
        self._kv: _Pool | None = None
        self._pools: dict[str, _Pool] = {}
        """as the transfers call them"""

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Take the pool of keys and values, and connect: with it is known what a page is.

        Raises:
            ValueError: its pages cannot be served, or the model's files are not on this machine; the message says which.
        """
        super().register_mem_pool_host(mem_pool_host)
        self.close()
        self._kv = self._pool(str(PoolName.KV), mem_pool_host, flat=self._flat)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: str) -> None:
        """Take a pool beside: state of recurrent layers, of sliding windows, of an indexer."""
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        name = str(host_pool_name)
        if name in self._pools:
            return
        same = self._kv is not None and name == PoolName.KV and not self._flat
        self._pools[name] = self._kv if same and self._kv is not None else self._pool(name, host_pool, flat=False)

    # ---- pages of keys and values -----------------------------------------------------------------------------------

    def exists(self, key: str) -> bool:
        """Is there this page?"""
        return self.batch_exists([key]) == 1

    def batch_exists(self, keys: list[str], extra_info: HiCacheStorageExtraInfo | None = None) -> int:
        """How many pages, from the first one on, are there and come faster than the engine computes them."""
        if self._kv is None:
            return 0
        before = len(extra_info.prefix_keys or ()) if extra_info is not None else 0
        hashes = [*(extra_info.prefix_keys or ()), *keys] if before and extra_info is not None else keys
        found = _answer(self._kv.client.find([self._kv.key(page) for page in hashes], cached=before), "find")
        return 0 if found is None else min(len(keys), found.fetch)

    def batch_get_v1(
        self, keys: list[str], host_indices: torch.Tensor, extra_info: HiCacheStorageExtraInfo | None = None
    ) -> list[bool]:
        """Fetch pages into the host pool; which of them are there now."""
        return self._guarded(lambda pool: _get(pool, pool.pages(keys, host_indices)), self._kv, keys)

    def batch_set_v1(
        self, keys: list[str], host_indices: torch.Tensor, extra_info: HiCacheStorageExtraInfo | None = None
    ) -> list[bool]:
        """Store pages of the host pool; which of them are in the sky now."""
        return self._guarded(lambda pool: _put(pool, pool.pages(keys, host_indices)), self._kv, keys)

    # ---- the same with tensors of SGLang's own: its way without `interface_v1` -----------------------------------------

    def get(self, key: str, target_location: torch.Tensor | None = None, target_sizes: Any = None) -> torch.Tensor | None:
        """Fetch a page into a tensor as flat as the pool's `get_dummy_flat_data_page`."""
        return self.batch_get([key], None if target_location is None else [target_location])[0]

    def batch_get(
        self, keys: list[str], target_locations: list[torch.Tensor] | None = None, target_sizes: Any = None
    ) -> list[torch.Tensor | None]:
        """Fetch pages into tensors; None for those that are not there."""
        targets = target_locations
        if targets is None:
            if self._kv is None:
                return [None] * len(keys)
            targets = [self.mem_pool_host.get_dummy_flat_data_page() for _ in keys]
        there = self._guarded(lambda pool: _get(pool, _tensor_pages(pool, keys, targets)), self._kv, keys)
        return [target if done else None for target, done in zip(targets, there, strict=True)]

    def set(
        self, key: str, value: torch.Tensor | None = None, target_location: Any = None, target_sizes: Any = None
    ) -> bool:
        """Store a page."""
        return value is not None and self.batch_set([key], [value])

    def batch_set(
        self, keys: list[str], values: list[torch.Tensor] | None = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """Store pages; are all of them in the sky now?"""
        if values is None:
            return False
        return all(self._guarded(lambda pool: _put(pool, _tensor_pages(pool, keys, values)), self._kv, keys))

    # ---- pools beside keys and values ----------------------------------------------------------------------------------

    def batch_exists_v2(
        self,
        keys: list[str],
        pool_transfers: list[PoolTransfer] | None = None,
        extra_info: HiCacheStorageExtraInfo | None = None,
    ) -> PoolTransferResult:
        """How long a beginning can be restored with all that its pools need, as SGLang's own file backend counts it."""
        pages = self.batch_exists(keys, extra_info)
        hits: dict[str, int] = {PoolName.KV: pages} if pages else {}
        restorable = list(range(1, pages + 1))
        for transfer in pool_transfers or ():
            if transfer.hit_policy not in (PoolHitPolicy.ALL_PAGES, PoolHitPolicy.TRAILING_PAGES):
                continue  # a second form of the same pages, of which nothing is said here
            there = self._each_exists(str(transfer.name), keys[:pages])
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
        return self._each_pool(transfers, _get)

    def batch_set_v2(
        self, transfers: list[PoolTransfer], extra_info: HiCacheStorageExtraInfo | None = None
    ) -> dict[str, list[bool]]:
        """Store pages of the pools that the transfers name."""
        return self._each_pool(transfers, _put)

    # ---- the rest --------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Nothing: the sky is shared, and a page is told from others' by nothing but its key."""
        _log.warning("SkyMemory: pages in the sky are shared by all hosts and are not cleared; they expire")

    def close(self) -> None:
        """End the connections. Safe to call twice."""
        for pool in (self._kv, *self._pools.values()):
            if pool is not None:
                pool.client.close()

    def _pool(self, name: str, host_pool: Any, *, flat: bool) -> _Pool:
        config = self._config
        if self._model is None:
            self._model, self._weights = _model()
        # Latent attention is the same on all ranks and written by one; state of recurrent layers never is
        shared = config.is_mla_model and name != PoolName.MAMBA
        shard = {
            "tp": None if shared else (config.tp_rank, config.tp_size),
            "pp": (config.pp_rank, config.pp_size),
            "cp": (config.attn_cp_rank, config.attn_cp_size),
        }
        parts: list[bytes | str] = [*self._model, self._weights, json.dumps(shard), self._secret]
        return _Pool(name, host_pool, config.model_name or "", parts, self._settings, flat=flat)

    def _guarded(self, run: Callable[[_Pool], list[bool]], pool: _Pool | None, keys: Sequence[str]) -> list[bool]:
        """A fault of ours, or of a pool that is another than it said, ends as a miss."""
        nothing = [False] * len(keys)
        if pool is None:
            return nothing
        try:
            return run(pool)
        except Exception:
            _log.exception("SkyMemory: %d pages are treated as missing", len(keys))
            return nothing

    def _each_pool(
        self, transfers: Sequence[PoolTransfer], move: Callable[[_Pool, list[_Page]], list[bool]]
    ) -> dict[str, list[bool]]:
        done: dict[str, list[bool]] = {}
        for transfer in transfers:
            keys, indices = transfer.keys or [], transfer.host_indices

            def moved(pool: _Pool, keys: list[str] = keys, indices: Any = indices) -> list[bool]:
                return [] if indices is None and not keys else move(pool, pool.pages(keys, indices))

            done[transfer.name] = self._guarded(moved, self._pools.get(str(transfer.name)), keys)
        return done

    def _each_exists(self, name: str, keys: Sequence[str]) -> list[bool]:
        """Which pages of a pool there are; asked for at once, the agent puts the questions together."""
        pool = self._pools.get(name)
        if pool is None:
            return [False] * len(keys)
        asked = [pool.client.find([pool.key(page)]) for page in keys]
        answers = [_answer(future, "find") for future in asked]
        return [answer is not None and answer.blocks == 1 for answer in answers]


@dataclass(frozen=True, slots=True)
class _Window:
    """Pages on their way, in as many leases as there was room for."""

    pages: list[_Page]
    leases: list[Lease]
    outcomes: Future[list[Outcome]] | None
    up: bool


def _get(pool: _Pool, pages: list[_Page]) -> list[bool]:
    return _moved(pool, pages, up=False)


def _put(pool: _Pool, pages: list[_Page]) -> list[bool]:
    """Store what is not there yet: SGLang stores again what it has forgotten that it stored."""
    known = _answer(pool.client.find([page.key for page in pages]), "find")
    there = 0 if known is None else known.blocks
    return [True] * there + _moved(pool, pages[there:], up=True)


def _moved(pool: _Pool, pages: list[_Page], *, up: bool) -> list[bool]:
    """Carry pages through the arena, part by part."""
    done: list[bool] = []
    waiting: deque[_Window] = deque()
    for first in range(0, len(pages), pool.pages_at_once):
        if len(waiting) == _WINDOWS:
            done += _landed(pool, waiting.popleft())
        waiting.append(_depart(pool, pages[first : first + pool.pages_at_once], up=up))
    for window in waiting:
        done += _landed(pool, window)
    return done


def _depart(pool: _Pool, pages: list[_Page], *, up: bool) -> _Window:
    leases: list[Lease] = []
    for page in pages:
        lease = pool.client.lease(pool.framing.block_bytes, timeout_s=ANSWER_S)
        if lease is None:
            break
        leases.append(lease)
        if up:
            pool.fill(lease.view, page)
    blocks = [(page.key, lease) for page, lease in zip(pages, leases, strict=False)]
    if not blocks:
        return _Window(pages, [], None, up)
    return _Window(pages, leases, pool.client.put(blocks) if up else pool.client.get(blocks), up)


def _landed(pool: _Pool, window: _Window) -> list[bool]:
    """Wait for a part of a batch, and take what has come."""
    try:
        outcomes = None if window.outcomes is None else _answer(window.outcomes, "put" if window.up else "get")
        done = [outcome.ok for outcome in outcomes or ()]
        if not window.up:
            moved = zip(window.pages, window.leases, done, strict=False)
            done = [ok and _taken(pool, page, lease) for page, lease, ok in moved]
        return done + [False] * (len(window.pages) - len(done))
    finally:
        for lease in window.leases:
            lease.release()


def _taken(pool: _Pool, page: _Page, lease: Lease) -> bool:
    try:
        pool.take(lease.view, page)
    except FrameError as error:
        _log.warning("SkyMemory: page %s is treated as missing: %s", page.key.hex(), error)
        pool.client.purge([page.key])  # so that the computed one takes its place
        return False
    return True


def _answer(future: Future[T], what: str) -> T | None:
    try:
        return future.result(ANSWER_S)
    except FutureTimeoutError:
        _log.warning("SkyMemory: the agent has not answered a %s within %g s; it counts as a miss", what, ANSWER_S)
        return None


def _tensor_pages(pool: _Pool, hashes: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[_Page]:
    pages = []
    for page, tensor in zip(hashes, tensors, strict=True):
        if not tensor.is_contiguous() or tensor.is_cuda:
            raise ValueError("a page has to be contiguous, in host memory")
        pages.append(_Page(pool.key(page), [_memory(tensor.data_ptr(), tensor.nbytes)]))
    return pages


def _memory(pointer: int, size: int) -> memoryview:
    """Host memory of SGLang's; whoever uses the view sees to it that the memory stays."""
    return memoryview((ctypes.c_char * size).from_address(pointer)).cast("B")


def _model() -> tuple[tuple[str, ...], bytes]:
    """What decides the bytes of all pages: words, and a digest of the weights.

    Raises:
        ValueError: the weights are not in files of this machine.
    """
    import sglang
    from sglang.srt.runtime_context import get_server_args

    from skymemory.engines.vllm.identity import files_digest, weight_files

    told = get_server_args()
    names = ("dtype", "quantization", "kv_cache_dtype", "load_format", "json_model_override_args", "context_length")
    words = {name: str(getattr(told, name, None)) for name in names}
    files = weight_files(told.model_path, told.revision, told.download_dir)
    return ("sglang", sglang.__version__, json.dumps(words, sort_keys=True)), files_digest(files)
