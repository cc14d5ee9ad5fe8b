"""The general key-value store of the paper (section 3.10): names to values of any bytes, the empty one included.

    bytes  field
    0-3    magic "SKYV"
    4-35   BLAKE3 digest of all that follows
    36-43  when the value expires: milliseconds since 1970, 0: never
    44-47  its length
    48-    the value; behind it a zero, if the block's length says otherwise what is not so

A block of an even length never expires, one of an odd length does: who asks whether a value is there need not fetch it to
know, unless it may have expired. Integers are big-endian.

The digest is checked at every `get`: whatever happened to a value between here and there, it comes back as it was or not
at all. Blocks of KV tensors have a digest of their own (`skymemory.blocks`) and go to the `SkyStore` directly.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from blake3 import blake3

from skymemory.link.native import Buffer
from skymemory.progress import Progress
from skymemory.results import PrefetchResult, PutResult, Status
from skymemory.store import SkyStore

_MAGIC: Final = b"SKYV"
_DIGEST_END: Final = len(_MAGIC) + 32
_TERMS: Final = struct.Struct(">QI")
ENVELOPE_BYTES: Final = _DIGEST_END + _TERMS.size
"""in front of a value"""
PAD_BYTES_MAX: Final = 1
"""behind it"""
_DOMAIN: Final = b"skymemory.keyvalue"
VALUE_BYTES_MAX: Final = 1 << 30
"""of one value; it bounds the memory that a satellite can make a host take that asks for a name"""


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it came from the sky."""

    data: memoryview
    """in the block's memory"""
    expires_unix_ms: int
    """0: never"""

    def is_over(self, now_unix_ms: int) -> bool:
        """Has it expired?"""
        return 0 < self.expires_unix_ms <= now_unix_ms


def now_unix_ms() -> int:
    """Milliseconds since 1970 by this host's clock."""
    return time.time_ns() // 1_000_000


def key_of(name: str | bytes, namespace: str = "") -> bytes:
    """The 32-byte key of a name: SHA-256 over domain, namespace and name, each with its length.

    A name may hold bytes that are no UTF-8, as the command line hands them on (surrogates of PEP 383); or it is bytes itself.
    Keys of other domains, such as those of prompt blocks, are never hit.
    """
    digest = sha256()
    raw = name if isinstance(name, bytes) else name.encode(errors="surrogateescape")
    for part in (_DOMAIN, namespace.encode(), raw):
        digest.update(len(part).to_bytes(8) + part)
    return digest.digest()


def may_expire(block_len: int) -> bool:
    """Does a value expire whose block is as long?"""
    return block_len % 2 == 1


def block_length(length: int, expires_unix_ms: int) -> int:
    """Bytes of a value's block."""
    return ENVELOPE_BYTES + length + (length % 2 if expires_unix_ms == 0 else 1 - length % 2)


def pack(value: Buffer, expires_unix_ms: int = 0) -> bytearray:
    """A value's block."""
    view = memoryview(value).cast("B")
    block = bytearray(block_length(view.nbytes, expires_unix_ms))
    block[ENVELOPE_BYTES : ENVELOPE_BYTES + view.nbytes] = view
    seal(memoryview(block), view.nbytes, expires_unix_ms)
    return block


def seal(block: memoryview, length: int, expires_unix_ms: int = 0) -> None:
    """Put the envelope around a value that is in place: `block_length` bytes of memory with the value at `ENVELOPE_BYTES`."""
    block[:4] = _MAGIC
    _TERMS.pack_into(block, _DIGEST_END, expires_unix_ms, length)
    block[ENVELOPE_BYTES + length :] = bytes(block.nbytes - ENVELOPE_BYTES - length)
    block[4:_DIGEST_END] = blake3(block[_DIGEST_END:]).digest()


def unpack(block: Buffer) -> Value | None:
    """The value of a block; None: it is none, or not as it was put."""
    view = memoryview(block)
    head = bytes(view[:_DIGEST_END])
    if view.nbytes < ENVELOPE_BYTES or head != _MAGIC + blake3(view[_DIGEST_END:]).digest():
        return None
    expires_unix_ms, length = _TERMS.unpack_from(view, _DIGEST_END)
    if block_length(length, expires_unix_ms) != view.nbytes:
        return None
    return Value(view[ENVELOPE_BYTES : ENVELOPE_BYTES + length], expires_unix_ms)


class KeyValue:
    """Values under names, on a `SkyStore` that stays the caller's."""

    def __init__(self, store: SkyStore, namespace: str = "") -> None:
        """`namespace`: names of different namespaces are different values."""
        self._store = store
        self._namespace = namespace

    @property
    def value_bytes_max(self) -> int:
        """The longest value that can be put: one that the sky holds (`SkyStore.capacity_bytes`)."""
        return min(VALUE_BYTES_MAX, self._store.capacity_bytes - ENVELOPE_BYTES - PAD_BYTES_MAX)

    def put(self, name: str, value: Buffer, progress: Progress | None = None, *, expires_unix_ms: int = 0) -> PutResult:
        """Store a value of 0 to `value_bytes_max` bytes, in place of any that the name has.

        The result is UNANSWERED if a satellite did not confirm that it gave up the old value: stored beside what is left
        of that, the new one could not be told from it.

        Args:
            expires_unix_ms: from when on the name has no value any more, by the clock of who asks; 0: never.

        Raises:
            ValueError: the value is too large.
        """
        view = memoryview(value).cast("B")
        if view.nbytes > self.value_bytes_max:
            sky = self._store.constellation
            stores = f"{sky.cache.servers} servers of {sky.satellite.store_mib} MiB"
            raise ValueError(f"value of {view.nbytes:,} bytes; allowed are 0 to {self.value_bytes_max:,} ({stores})")
        key = key_of(name, self._namespace)
        # A block under a key never changes; a new value under an old name is another block, so the old one goes first
        if not self._store.purge([key]).confirmed:
            return PutResult(key, Status.UNANSWERED, None, 0.0)
        return self._store.put([(key, pack(view, expires_unix_ms))], progress)[0]

    def get(self, name: str, progress: Progress | None = None) -> bytearray | None:
        """The value as it was put, or None: there is none, it has expired, or it did not come back whole."""
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
        """Lay values so that they are in the window at a time to come; see `SkyStore.prefetch`, whose errors it raises."""
        return self._store.prefetch([key_of(name, self._namespace) for name in names], at_s)

    def delete(self, name: str) -> bool:
        """Forget a value; False if no satellite held anything of it."""
        return self._store.purge([key_of(name, self._namespace)]).chunks > 0
