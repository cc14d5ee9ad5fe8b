"""The general key-value store of the paper (section 3.10): values of any bytes, even none, under names.

A value is stored as a sealed block (`skymemory.wire.envelope`), whose header is the time at which the value expires: eight bytes,
big-endian, in milliseconds since 1970; 0 if it never expires. A block of odd length expires, one of even length never does. So
the length alone tells whether a value must be fetched to know that it has not expired, although the header is encrypted. A value
that was deleted is a block without a header (`skymemory.store.deletions`), which is shorter than all others.

Names are digests under a key from the tenant secret, and the seal binds them: a value comes back exactly as it was put under this
name, or not at all. `skymemory.store.versions` says how an older value is told from a newer one.
"""

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from skymemory.common.progress import Progress
from skymemory.common.whole_file import Buffer
from skymemory.store.deletions import is_deletion, is_old, sealed_deletion, without_deletions
from skymemory.store.results import REPLACED, FindResult, PrefetchResult, PutResult, Status
from skymemory.store.sizing import stores_words
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions, now_unix_us
from skymemory.wire.envelope import (
    ENVELOPE_BYTES,
    PADDING_BYTES_MAX,
    VALUE_VERSION_MAX,
    BlockError,
    Kind,
    seal,
    seal_in_place,
    unseal,
)
from skymemory.wire.key_derivation import block_key, name_key, root_key, seal_keys

_EXPIRES: Final = struct.Struct(">Q")
HEAD_BYTES: Final = ENVELOPE_BYTES + _EXPIRES.size
"""Bytes in front of a value in its block."""
FRAME_BYTES_MAX: Final = HEAD_BYTES + PADDING_BYTES_MAX
"""Most bytes around a value in its block."""
VALUE_BYTES_MAX: Final = 1 << 30
"""Most bytes of a value. The limit bounds the memory that a satellite can make a host take."""


class Value(NamedTuple):
    """A value that was fetched."""

    data: memoryview
    """The value's bytes, as a view of the block."""
    expires_unix_ms: int
    """Time at which the value expires, in milliseconds since 1970; 0 if it never expires."""
    version: int = 0
    """Version of the value (`skymemory.store.versions`)."""
    is_deleted: bool = False
    """True if it was deleted: it is empty, and counts as absent."""

    def is_over(self, now_unix_ms: int) -> bool:
        """Return True if the value has expired."""
        return 0 < self.expires_unix_ms <= now_unix_ms

    def is_old_deletion(self, now_unix_us: int) -> bool:
        """Return True if the value was deleted so long ago that its deletion is to be purged (`deletions.KEPT_US`)."""
        return self.is_deleted and is_old(self.version, now_unix_us)


def now_unix_ms() -> int:
    """Return the time by this host's clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def may_expire(block_len: int) -> bool:
    """Return True if a value whose block has this length expires."""
    return block_len % 2 == 1


def block_length(length: int, expires_unix_ms: int) -> int:
    """Return the bytes of the block of a value of `length` bytes."""
    return HEAD_BYTES + length + _padding(length, expires_unix_ms)


def _padding(length: int, expires_unix_ms: int) -> int:
    """Return the bytes behind a value that make the length of its block odd if it expires, and else even."""
    return (HEAD_BYTES + length + (expires_unix_ms > 0)) % 2


class ValueKeys:
    """Keys of one tenant's values: of their names, and of their seals. Thread-safe, as they never change."""

    def __init__(self, tenant_secret: bytes, tenant: int | None = None) -> None:
        """Derive the keys. Without the secret nobody finds, reads or makes the values.

        Args:
            tenant_secret: Secret of the tenant (`skymemory.wire.key_derivation.root_key`).
            tenant: Number of the tenant, if one host has several: no two of them ever have the same key, also with one secret.
        """
        root = root_key("values", tenant_secret, *(() if tenant is None else (str(tenant),)))
        self._names = name_key(root)
        self._seals = seal_keys(root)

    def key_of(self, name: str | bytes, namespace: str = "") -> bytes:
        """Return the key of a name, 32 bytes.

        A name is bytes, or a string that may stand for bytes that are no UTF-8 (surrogates of PEP 383, as the command line
        passes them).
        """
        raw = name if isinstance(name, bytes) else name.encode(errors="surrogateescape")
        return block_key(self._names, namespace.encode(), raw)

    def pack(self, key: bytes, value: Buffer, expires_unix_ms: int = 0, *, version: int) -> bytearray:
        """Return the block of a value, which is contiguous bytes, under a key."""
        header, padding = _EXPIRES.pack(expires_unix_ms), _padding(len(value), expires_unix_ms)
        return seal(Kind.VALUE, key, header, value, keys=self._seals, version=version, padding=padding)

    def pack_in_place(self, key: bytes, block: memoryview, length: int, expires_unix_ms: int = 0, *, version: int) -> None:
        """Seal the block of a value that is in place already. The value is encrypted where it is.

        Args:
            key: The key of the value's name.
            block: Memory of `block_length` bytes, with the value at `HEAD_BYTES`.
            length: Bytes of the value.
            expires_unix_ms: Time at which the value expires, in milliseconds since 1970; 0 if it never expires.
            version: Version of the value.
        """
        header, padding = _EXPIRES.pack(expires_unix_ms), _padding(length, expires_unix_ms)
        seal_in_place(Kind.VALUE, key, block, header, keys=self._seals, version=version, padding=padding)

    def pack_deletion(self, key: bytes, *, version: int) -> bytearray:
        """Return the block that deletes the value under a key, and all versions below its own."""
        return sealed_deletion(Kind.VALUE, key, keys=self._seals, version=version)

    def unpack(self, key: bytes, block: bytearray | memoryview) -> Value | None:
        """Return the value of a block that came under a key, or its deletion, decrypted in the block's memory.

        None: the block is damaged, or holds no value of this key.
        """
        try:
            header, data, version = unseal(Kind.VALUE, key, block, keys=self._seals)
        except BlockError:
            return None
        if is_deletion(len(block)):
            return Value(data, 0, version, is_deleted=True)
        if len(header) != _EXPIRES.size:
            return None
        (expires_unix_ms,) = _EXPIRES.unpack(header)
        if may_expire(len(block)) != (expires_unix_ms > 0):
            return None
        return Value(data, expires_unix_ms, version)


class KeyValue:
    """Values under names in a `SkyStore`, which the caller closes."""

    def __init__(
        self, store: SkyStore, namespace: str = "", *, value_bytes_max: int = VALUE_BYTES_MAX, versions: Versions | None = None
    ) -> None:
        """Use a store, and its tenant secret.

        Args:
            store: The store.
            namespace: The same name stands for different values in different namespaces.
            value_bytes_max: Most bytes of a value.
            versions: Versions of values that this host knows; by default those that this object put or saw.

        Raises:
            SecretFileError: There is no tenant secret, and none can be made.
        """
        self._store = store
        self._keys = ValueKeys(store.tenant_secret)
        self._versions = Versions() if versions is None else versions
        self._value_bytes_max = value_bytes_max
        self._namespace = namespace

    @property
    def value_bytes_max(self) -> int:
        """Bytes of the longest value that can be put (see `SkyStore.capacity_bytes`)."""
        return min(self._value_bytes_max, self._store.capacity_bytes - FRAME_BYTES_MAX)

    def key_of(self, name: str) -> bytes:
        """Return the key of a name, 32 bytes."""
        return self._keys.key_of(name, self._namespace)

    def put(self, name: str, value: Buffer, progress: Progress | None = None, *, expires_unix_ms: int = 0) -> PutResult:
        """Store a value of 0 to `value_bytes_max` bytes. It replaces the value that the name has, once it is stored.

        If satellites hold a newer version, the value is stored once more with a version above that one. If another host stores a
        value of this name at the same time, the result may be OLD_VERSION: the other one counts.

        Args:
            name: The name of the value.
            value: The bytes of the value.
            progress: Called now and then with chunks done and chunks in all.
            expires_unix_ms: Time at which the value expires, in milliseconds since 1970 by the reader's clock; 0 if it never
                expires.

        Raises:
            ValueError: The value is too large.
        """
        view = memoryview(value).cast("B")
        if view.nbytes > self.value_bytes_max:
            stores = stores_words(self._store.constellation)
            raise ValueError(f"value of {view.nbytes:,} bytes; allowed are 0 to {self.value_bytes_max:,} ({stores})")
        key = self.key_of(name)
        return self._put(key, partial(self._keys.pack, key, view, expires_unix_ms), progress)

    def _put(self, key: bytes, pack: Callable[..., bytearray], progress: Progress | None = None) -> PutResult:
        """Store the block that `pack(version=...)` returns, and once more if satellites hold a newer version."""
        version = self._versions.choose(key)
        [result] = self._store.put([(key, pack(version=version))], progress)
        if result.status in REPLACED and (above := self._versions.choose_above(key, result.held_version)) is not None:
            version = above
            [result] = self._store.put([(key, pack(version=version))], progress)
        if result.ok:
            self._versions.stored(key, version)
        return result

    def get(self, name: str, progress: Progress | None = None) -> bytearray | None:
        """Return a value as it was put.

        None: there is none, it has expired, it did not come back whole, or an older one came than is known.
        """
        return self.fetch(name, progress)[0]

    def fetch(self, name: str, progress: Progress | None = None) -> tuple[bytearray | None, Status]:
        """Return a value as `get` does, and DONE, MISS, or why nothing is known of it (`results.SILENCE`)."""
        key = self.key_of(name)
        most = self._value_bytes_max + FRAME_BYTES_MAX
        [result] = self._store.get([key], progress, block_bytes_max=most)
        if result.data is None:
            return None, result.status
        value = self._store.opened(result, partial(self._keys.unpack, key))
        if value is None or not self._is_there(key, value):
            if value is None or value.is_old_deletion(now_unix_us()):
                self._store.forget([result])
            return None, Status.MISS
        data = value.data.obj
        assert isinstance(data, bytearray)  # that of the block
        end = HEAD_BYTES + value.data.nbytes
        value.data.release()
        del value, data[end:], data[:HEAD_BYTES]
        return data, Status.DONE

    def _is_there(self, key: bytes, value: Value) -> bool:
        """Return False if a value that was fetched was deleted, is older than is known, or has expired, and is deleted then."""
        if not self._versions.seen(key, value.version):
            return False
        if is_over := value.is_over(now_unix_ms()):
            self._store.put([(key, self._keys.pack_deletion(key, version=value.version + 1))])  # a newer value stays
        return not is_over and not value.is_deleted

    def prefetch(self, names: Sequence[str], at_s: float) -> list[PrefetchResult]:
        """Prefetch values so that they are in the window at a future time (see `SkyStore.prefetch`, also for errors)."""
        results = self._store.prefetch([self.key_of(name) for name in names], at_s)
        found = without_deletions(self._store.find([one.key for one in results if one.ok]))
        deleted = {one.key for one in found if one.status is Status.MISS}
        return [replace(one, status=Status.MISS) if one.key in deleted else one for one in results]

    def find(self, names: Sequence[str]) -> list[FindResult]:
        """Ask the satellites whether values are there and whole (`SkyStore.find`). One that was deleted is a miss."""
        return without_deletions(self._store.find([self.key_of(name) for name in names], fresh=True))

    def delete(self, name: str) -> bool:
        """Delete a value. Return False if there is none, or if it could not be deleted (`erase` tells which)."""
        return self.erase(name).ok

    def erase(self, name: str) -> PutResult:
        """Delete a value as `delete` does: put a deletion in its place.

        Returns:
            The result of the put; MISS if there is no value, and then nothing was put. A reason of the look-up if nobody said
            whether there is one.
        """
        key = self.key_of(name)
        self._store.index.remove(key)  # what this host knew of it may be out of date
        [found] = without_deletions(self._store.find([key]))
        if found.entry is None:
            return PutResult(key, found.status, None, 0.0)
        result = self._put(key, partial(self._keys.pack_deletion, key))
        if result.status in REPLACED and result.held_version == VALUE_VERSION_MAX:  # nothing is newer
            purged = self._store.purge([key])
            return replace(result, status=Status.DONE if purged.confirmed else Status.UNANSWERED)
        return result
