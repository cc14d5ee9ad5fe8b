"""A store of blocks in this process's memory, for tests that need no satellites."""

import time
from collections.abc import Callable, Sequence
from itertools import takewhile

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.store.block_store import BLOCK_BYTES_MAX, BlockStore, check_keys
from skymemory.store.deletions import DELETION_BYTES
from skymemory.store.results import CancelledLookupError, ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status


class MemoryStore(BlockStore):
    """Blocks by key."""

    def __init__(self) -> None:
        self.blocks: dict[bytes, bytes] = {}
        self.failing: set[str] = set()
        """Names of methods that raise OSError."""
        self.is_silent = False
        self.hides = False
        """True if what is missing may be there."""

    @property
    def tenant_secret(self) -> bytes:
        return b"secret of the memory"

    @property
    def left(self) -> set[bytes]:
        """Keys of what was not deleted."""
        return {key for key, data in self.blocks.items() if len(data) != DELETION_BYTES}

    @property
    def silent(self) -> bool:
        return self.is_silent

    @property
    def knows_absence(self) -> bool:
        return not self.is_silent and not self.hides

    def find(self, keys: Sequence[bytes], *, fresh: bool = False) -> list[FindResult]:
        self._begin("find", keys)
        return [self._found(key) for key in keys]

    def find_longest(
        self,
        keys: Sequence[bytes],
        *,
        fresh: bool = False,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ChainResult:
        self._begin("find_longest", keys)
        if cancelled():
            raise CancelledLookupError
        found = takewhile(lambda entry: entry is not None, (self._found(key).entry for key in keys))
        entries = list(takewhile(lambda entry: entry.block_len <= block_bytes_max, found))
        return ChainResult(entries, keys[len(entries) :][:1] if self.is_silent else ())

    def known(self, keys: Sequence[bytes]) -> int:
        return sum(1 for _ in takewhile(self.blocks.__contains__, keys))

    def get(self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> list[GetResult]:
        keys = [entry if isinstance(entry, bytes) else entry.key for entry in entries]
        self._begin("get", keys)
        results = []
        for found in self.find(keys):
            status = found.status
            if found.entry is not None and found.entry.block_len > block_bytes_max:
                status = Status.TOO_LARGE
            data = bytearray(self.blocks[found.key]) if status is Status.DONE else None
            results.append(GetResult(found.key, data, status, 0.0, known=found.entry is not None))
        return results

    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
        self._begin("put", [key for key, _ in items])
        if not self.is_silent:
            self.blocks |= {key: bytes(data) for key, data in items}
        return [PutResult(one.key, one.status, one.entry, 0.0) for one in self.find([key for key, _ in items])]

    def purge(self, keys: Sequence[bytes]) -> Purged:
        self._begin("purge", keys)
        return Purged(sum(self.blocks.pop(key, None) is not None for key in keys), True)

    def forget(self, results: Sequence[GetResult]) -> None:
        self.purge([one.key for one in results])

    def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        self._begin("prefetch", keys)
        if not at_s >= time.time():
            raise ValueError(f"{at_s:.0f} is past")
        return [PrefetchResult(one.key, one.status, 0, 0) for one in self.find(keys)]

    def close(self) -> None:
        pass

    def _begin(self, name: str, keys: Sequence[bytes]) -> None:
        check_keys(keys)
        if name in self.failing:
            raise OSError("the sky is falling")

    def _found(self, key: bytes) -> FindResult:
        if self.is_silent:
            return FindResult(key, None, Status.UNANSWERED)
        if key not in self.blocks:
            return FindResult(key, None, Status.MISS)
        length = len(self.blocks[key])
        return FindResult(key, BlockEntry(key, length, length, 1, 0, 0.0), Status.DONE)
