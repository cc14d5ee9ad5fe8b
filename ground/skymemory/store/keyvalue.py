"""The general key-value store of the paper (section 3.10): values of any bytes, even none, under names.

A value is stored as a block:

    bytes  field
    0-3    magic "SKYV"
    4-35   BLAKE3 digest of all that follows
    36-43  time at which the value expires, in milliseconds since 1970; 0 if it never expires
    44-47  length of the value
    48-    the value, and one zero byte if the block needs it for its parity

Integers are big-endian. A block of odd length expires, one of even length never does. So the length alone tells whether a value
must be fetched to know that it has not expired.

Each `get` checks the digest: a value comes back exactly as it was put, or not at all. Blocks of KV tensors have a digest of their
own (`skymemory.prompt.blocks`) and go to the `SkyStore` directly.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from blake3 import blake3

from skymemory.common.progress import Progress
from skymemory.common.whole_file import Buffer
from skymemory.store.results import PrefetchResult, PutResult, Status
from skymemory.store.sky_store import SkyStore

_MAGIC: Final = b"SKYV"
_DIGEST_END: Final = len(_MAGIC) + 32
_TERMS: Final = struct.Struct(">QI")
ENVELOPE_BYTES: Final = _DIGEST_END + _TERMS.size
"""Bytes in front of a value in its block."""
PAD_BYTES_MAX: Final = 1
"""Most bytes behind a value in its block."""
_DOMAIN: Final = b"skymemory.store.keyvalue"
VALUE_BYTES_MAX: Final = 1 << 30
"""Most bytes of a value. The limit bounds the memory that a satellite can make a host take."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that was fetched."""

    data: memoryview
    """The value's bytes, as a view of the block."""
    expires_unix_ms: int
    """Time at which the value expires, in milliseconds since 1970; 0 if it never expires."""

    def is_over(self, now_unix_ms: int) -> bool:
        """Return True if the value has expired."""
        return 0 < self.expires_unix_ms <= now_unix_ms


def now_unix_ms() -> int:
    """Return the time by this host's clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def key_of(name: str | bytes, namespace: str = "") -> bytes:
    """Return the key of a name: SHA-256 of the domain, the namespace and the name, each preceded by its length; 32 bytes.

    A name is bytes, or a string that may stand for bytes that are no UTF-8 (surrogates of PEP 383, as the command line passes
    them). The domain keeps these keys apart from others, such as those of prompt blocks.
    """
    digest = sha256()
    raw = name if isinstance(name, bytes) else name.encode(errors="surrogateescape")
    for part in (_DOMAIN, namespace.encode(), raw):
        digest.update(len(part).to_bytes(8) + part)
    return digest.digest()


def may_expire(block_len: int) -> bool:
    """Return True if a value whose block has this length expires."""
    return block_len % 2 == 1


def block_length(length: int, expires_unix_ms: int) -> int:
    """Return the bytes of the block of a value of `length` bytes."""
    return ENVELOPE_BYTES + length + (length % 2 if expires_unix_ms == 0 else 1 - length % 2)


def pack(value: Buffer, expires_unix_ms: int = 0) -> bytearray:
    """Return the block of a value."""
    view = memoryview(value).cast("B")
    block = bytearray(block_length(view.nbytes, expires_unix_ms))
    block[ENVELOPE_BYTES : ENVELOPE_BYTES + view.nbytes] = view
    seal(memoryview(block), view.nbytes, expires_unix_ms)
    return block


def seal(block: memoryview, length: int, expires_unix_ms: int = 0) -> None:
    """Write the envelope around a value that is already in place.

    Args:
        block: Memory of `block_length` bytes, with the value at `ENVELOPE_BYTES`.
        length: Bytes of the value.
        expires_unix_ms: Time at which the value expires, in milliseconds since 1970; 0 if it never expires.
    """
    block[:4] = _MAGIC
    _TERMS.pack_into(block, _DIGEST_END, expires_unix_ms, length)
    block[ENVELOPE_BYTES + length :] = bytes(block.nbytes - ENVELOPE_BYTES - length)
    block[4:_DIGEST_END] = blake3(block[_DIGEST_END:]).digest()


def unpack(block: Buffer) -> Value | None:
    """Return the value of a block, or None if the block is damaged or holds no value."""
    view = memoryview(block)
    head = bytes(view[:_DIGEST_END])
    if view.nbytes < ENVELOPE_BYTES or head != _MAGIC + blake3(view[_DIGEST_END:]).digest():
        return None
    expires_unix_ms, length = _TERMS.unpack_from(view, _DIGEST_END)
    if block_length(length, expires_unix_ms) != view.nbytes:
        return None
    return Value(view[ENVELOPE_BYTES : ENVELOPE_BYTES + length], expires_unix_ms)


class KeyValue:
    """Values under names in a `SkyStore`, which the caller closes."""

    def __init__(self, store: SkyStore, namespace: str = "") -> None:
        """Use a store; the same name stands for different values in different namespaces."""
        self._store = store
        self._namespace = namespace

    @property
    def value_bytes_max(self) -> int:
        """Bytes of the longest value that can be put (see `SkyStore.capacity_bytes`)."""
        return min(VALUE_BYTES_MAX, self._store.capacity_bytes - ENVELOPE_BYTES - PAD_BYTES_MAX)

    def put(self, name: str, value: Buffer, progress: Progress | None = None, *, expires_unix_ms: int = 0) -> PutResult:
        """Store a value of 0 to `value_bytes_max` bytes. It replaces the value that the name has.

        If a satellite does not confirm that it gave up the old value, the new one is not stored, as the two could be confused.
        The result is then UNANSWERED.

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
            sky = self._store.constellation
            stores = f"{sky.cache.servers} servers of {sky.satellite.store_mib} MiB"
            raise ValueError(f"value of {view.nbytes:,} bytes; allowed are 0 to {self.value_bytes_max:,} ({stores})")
        key = key_of(name, self._namespace)
        # A block under a key never changes. A new value under an old name is another block, so the old one is purged first
        if not self._store.purge([key]).confirmed:
            return PutResult(key, Status.UNANSWERED, None, 0.0)
        return self._store.put([(key, pack(view, expires_unix_ms))], progress)[0]

    def get(self, name: str, progress: Progress | None = None) -> bytearray | None:
        """Return a value as it was put, or None if there is none, it has expired, or it did not come back whole."""
        key = key_of(name, self._namespace)
        most = VALUE_BYTES_MAX + ENVELOPE_BYTES + PAD_BYTES_MAX
        data = self._store.get([key], progress, block_bytes_max=most)[0].data
        if data is None:
            return None
        value = unpack(data)
        if value is None or value.is_over(now_unix_ms()):
            self._store.purge([key])
            return None
        end = ENVELOPE_BYTES + value.data.nbytes
        value.data.release()
        del value, data[end:], data[:ENVELOPE_BYTES]
        return data

    def prefetch(self, names: Sequence[str], at_s: float) -> list[PrefetchResult]:
        """Lay values so that they are in the window at a future time (see `SkyStore.prefetch`, also for errors)."""
        return self._store.prefetch([key_of(name, self._namespace) for name in names], at_s)

    def delete(self, name: str) -> bool:
        """Forget a value. Return False if no satellite held any of it."""
        return self._store.purge([key_of(name, self._namespace)]).chunks > 0
