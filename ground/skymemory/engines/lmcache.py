"""LMCache: a storage adapter of its server, loaded by `{"type":"plugin", ...}` (docs/lmcache.md).

LMCache's own client of Redis servers does the same through the agent's port for it. This adapter copies chunks once, checks them
from end to end, and comes back when the agent does. So use it on the agent's host.

    root = of the chunks' format and the tenant secret
    key  = of LMCache's name of the chunk (model, rank, group, hash of its tokens, salt), under root

LMCache submits and polls. The adapter runs in three threads, one for each kind of task, so that stores never hold up loads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, Final

from lmcache.lmcache_native import Bitmap
from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey
from lmcache.v1.distributed.internal_api import L2StoreResult
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface
from lmcache.v1.memory_management import MemoryObj
from lmcache.v1.platform import create_event_notifier

from skymemory.agent.gateway.lmcache import ADAPTERS_WARNING
from skymemory.engines.carrier import Block, Carrier, CarrierSettings
from skymemory.engines.framing import BlockFormat
from skymemory.engines.tenant import engine_secret
from skymemory.wire.key_derivation import block_key

_log = logging.getLogger(__name__)

_CONNECT_S: Final = 2.0
"""Seconds that a first task waits for the agent."""
_REST_MAX: Final = 64
"""Most chunks after the first missing one that are asked for one by one: windows of attention need no beginning."""


class SkyMemoryL2Adapter(L2AdapterInterface):  # type: ignore[misc]  # LMCache has no types
    """Storage adapter, of which LMCache's server makes one for each `--l2-adapter`."""

    def __init__(self, params: dict[str, Any], l1_memory_desc: Any = None) -> None:
        """Check the settings, and start the threads.

        Args:
            params: `adapter_params` of the option.

        Raises:
            ValueError: A setting is wrong.
        """
        super().__init__()
        if unknown := sorted(set(params) - set(CarrierSettings.__slots__)):
            raise ValueError(
                f"adapter_params: there is no setting {unknown[0]!r}; there are {', '.join(CarrierSettings.__slots__)}"
            )
        self._settings = CarrierSettings.of(params)
        _log.warning("SkyMemory: %s", ADAPTERS_WARNING)
        self._secret = engine_secret(self._settings.tenant_secret_file, self._settings.socket)
        self._lock = threading.Lock()
        self._carriers: dict[int, Carrier] = {}
        """Connections by bytes of a chunk: the agent takes blocks of one size from each."""
        self._sizes: dict[tuple[str, int], int] = {}
        """Bytes of a chunk of each model and group, as far as LMCache has told."""
        self._stores, self._lookups, self._loads = (_Tasks(name) for name in ("store", "lookup", "load"))

    # ---- what LMCache polls ---------------------------------------------------------------------------------------------

    def get_store_event_fd(self) -> int:
        return self._stores.fileno()

    def get_lookup_and_lock_event_fd(self) -> int:
        return self._lookups.fileno()

    def get_load_event_fd(self) -> int:
        return self._loads.fileno()

    def pop_completed_store_tasks(self) -> dict[int, L2StoreResult]:
        return self._stores.pop_all()

    def query_lookup_and_lock_result(self, task_id: int) -> Bitmap | None:
        return self._lookups.pop(task_id)

    def query_load_result(self, task_id: int) -> Bitmap | None:
        return self._loads.pop(task_id)

    # ---- what LMCache submits ---------------------------------------------------------------------------------------------

    def submit_store_task(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> int:
        """Store chunks. The task succeeds when all of them are in the sky."""
        return self._stores.submit(lambda: self._store(keys, objects), L2StoreResult(False, 0))

    def submit_lookup_and_lock_task(self, keys: list[ObjectKey], group_layout_descs: dict[int, MemoryLayoutDesc]) -> int:
        """Look for chunks. Nothing is locked: a chunk that is gone by the time of the load is a miss then."""
        return self._lookups.submit(lambda: self._look_up(keys, group_layout_descs), Bitmap(len(keys)))

    def submit_unlock(self, keys: list[ObjectKey]) -> None:
        """Do nothing: nothing was locked."""

    def submit_load_task(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> int:
        """Fetch chunks into LMCache's memory."""
        return self._loads.submit(lambda: self._load(keys, objects), Bitmap(len(keys)))

    def delete(self, keys: list[ObjectKey]) -> None:
        """Delete chunks in the sky."""
        gone = [(key, size) for key in keys if (size := self._size(key, {})) is not None]
        for key, size in gone:
            self._carrier(size).client.purge([self.name_of(size, key)])
        if gone:
            self._notify_keys_deleted([key for key, _ in gone], [size for _, size in gone])

    def report_status(self) -> dict[str, Any]:
        with self._lock:
            connected = all(carrier.client.connected for carrier in self._carriers.values())
        return {"is_healthy": connected, "type": "skymemory", "agent_connected": connected}

    def close(self) -> None:
        """End the connections and threads; tasks that have not ended are misses."""
        with self._lock:
            carriers = list(self._carriers.values())
        for carrier in carriers:
            carrier.close()
        for tasks in (self._stores, self._lookups, self._loads):
            tasks.close()

    # ---- in the threads -----------------------------------------------------------------------------------------------------

    def _store(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> L2StoreResult:
        done = self._moved(keys, objects, Carrier.put)
        if not all(done):
            return L2StoreResult(False, 0)
        sizes = [view.nbytes for view in map(_bytes, objects)]
        self._notify_keys_stored(keys, sizes)
        return L2StoreResult(True, sum(sizes))

    def _load(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> Bitmap:
        done = self._moved(keys, objects, Carrier.get)
        if loaded := [key for key, ok in zip(keys, done, strict=True) if ok]:
            self._notify_keys_accessed(loaded)
        return _bitmap(done)

    def _look_up(self, keys: list[ObjectKey], layouts: dict[int, MemoryLayoutDesc]) -> Bitmap:
        there = [False] * len(keys)
        for chain in _chains(keys).values():
            size = self._size(keys[chain[0]], layouts)
            if size is None:
                continue  # chunks of unknown length were never stored here
            names = [self.name_of(size, keys[at]) for at in chain]
            carrier = self._carrier(size)
            # Count each block once as asked for: those behind the first gap count here only if they are not asked for one by
            # one.
            count = carrier.beginning(names, wanted=False)
            rest = names[count:]
            found = [True] * count
            if len(rest) <= _REST_MAX:
                found += carrier.each(rest)
            else:
                carrier.beginning(rest)
            for at, ok in zip(chain, found, strict=False):
                there[at] = ok
        return _bitmap(there)

    def _moved(
        self, keys: list[ObjectKey], objects: list[MemoryObj], move: Callable[[Carrier, list[Block]], list[bool]]
    ) -> list[bool]:
        done = [False] * len(keys)
        views = [_bytes(one) for one in objects]
        for size in {view.nbytes for view in views}:
            places = [at for at, view in enumerate(views) if view.nbytes == size]
            for at in places:
                self._sizes[keys[at].model_name, keys[at].object_group_id] = size
            blocks = [Block(self.name_of(size, keys[at]), [views[at]]) for at in places]
            for at, ok in zip(places, move(self._carrier(size), blocks), strict=True):
                done[at] = ok
        return done

    def _carrier(self, size: int) -> Carrier:
        with self._lock:
            carrier = self._carriers.get(size)
            if carrier is None:
                chunk = BlockFormat(block_tokens=1, layers=1, layer_bytes=size, dtype="bytes", layout="LMCache's chunk")
                root = chunk.root(self._secret, "lmcache")
                carrier = self._carriers[size] = Carrier("lmcache", f"chunks of {size} bytes", chunk, root, self._settings)
                carrier.client.wait_connected(_CONNECT_S)
            return carrier

    def name_of(self, size: int, key: ObjectKey) -> bytes:
        """Return the key under which a chunk of `size` bytes is stored."""
        words = (key.model_name, f"{key.kv_rank:x}", f"{key.object_group_id:x}", key.chunk_hash.hex(), key.cache_salt)
        return block_key(self._carrier(size).names, *map(str.encode, words))

    def _size(self, key: ObjectKey, layouts: dict[int, MemoryLayoutDesc]) -> int | None:
        """Return the bytes of a chunk; None if they are not known."""
        layout = layouts.get(key.object_group_id)
        if layout is not None:
            return sum(int(prod(shape)) * int(dtype.itemsize) for shape, dtype in zip(layout.shapes, layout.dtypes, strict=True))
        return self._sizes.get((key.model_name, key.object_group_id))


class _Tasks:
    """Tasks of one kind: a thread that does them in turn, and their results until LMCache fetches them."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"skymem-{name}")
        self._notifier = create_event_notifier()
        self._lock = threading.Lock()
        self._next_id = 0
        self._results: dict[int, Any] = {}

    def fileno(self) -> int:
        return int(self._notifier.fileno())

    def submit(self, run: Callable[[], Any], failed: Any) -> int:
        """Queue a task, and return its id.

        Args:
            failed: Result if `run` raises.
        """
        with self._lock:
            task_id = self._next_id
            self._next_id += 1
        self._thread.submit(self._run, task_id, run, failed)
        return task_id

    def pop(self, task_id: int) -> Any:
        """Return the result of a task, once; None if there is none yet."""
        with self._lock:
            return self._results.pop(task_id, None)

    def pop_all(self) -> dict[int, Any]:
        """Return all results that nobody has fetched."""
        with self._lock:
            results, self._results = self._results, {}
            return results

    def close(self) -> None:
        """Wait for the running task, and drop those that wait."""
        self._thread.shutdown(cancel_futures=True)
        self._notifier.close()

    def _run(self, task_id: int, run: Callable[[], Any], failed: Any) -> None:
        try:
            result = run()
        except Exception:  # LMCache must not wait after a fault of ours
            _log.exception("SkyMemory: a task of LMCache's failed and counts as missed")
            result = failed
        with self._lock:
            self._results[task_id] = result
        self._notifier.notify()


def _chains(keys: Sequence[ObjectKey]) -> dict[tuple[Any, ...], list[int]]:
    """Return the keys of each sequence of chunks, by their places."""
    chains: dict[tuple[Any, ...], list[int]] = {}
    for at, key in enumerate(keys):
        chains.setdefault((key.model_name, key.kv_rank, key.object_group_id, key.cache_salt), []).append(at)
    return chains


def _bytes(one: MemoryObj) -> memoryview:
    return memoryview(one.byte_array).cast("B")


def _bitmap(there: Sequence[bool]) -> Bitmap:
    bitmap = Bitmap(len(there))
    for at, ok in enumerate(there):
        if ok:
            bitmap.set(at)
    return bitmap
