"""The general key-value store of the paper (section 3.10): names to values of any bytes, the empty one included.

    bytes  field
    0-3    magic "SKYV"
    4-35   BLAKE3 digest of the value
    36-    the value

The digest is checked at every `get`: whatever happened to a value between here and there, it comes back as it was or not
at all. Blocks of KV tensors have a digest of their own (`skymemory.blocks`) and go to the `SkyStore` directly.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from blake3 import blake3

from skymemory.link.native import Buffer
from skymemory.progress import Progress
from skymemory.results import PrefetchResult, PutResult
from skymemory.store import SkyStore

_MAGIC: Final = b"SKYV"
_DIGEST_BYTES: Final = 32
_ENVELOPE_BYTES: Final = len(_MAGIC) + _DIGEST_BYTES
_DOMAIN: Final = b"skymemory.keyvalue"
VALUE_BYTES_MAX: Final = 1 << 30
"""of one value; it bounds the memory that a satellite can make a host take that asks for a name"""


def key_of(name: str, namespace: str = "") -> bytes:
    """The 32-byte key of a name: SHA-256 over domain, namespace and name, each with its length.

    A name may hold bytes that are no UTF-8, as the command line hands them on (surrogates of PEP 383).
    Keys of other domains, such as those of prompt blocks, are never hit.
    """
    digest = sha256()
    for part in (_DOMAIN, namespace.encode(), name.encode(errors="surrogateescape")):
        digest.update(len(part).to_bytes(8) + part)
    return digest.digest()


class KeyValue:
    """Values under names, on a `SkyStore` that stays the caller's."""

    def __init__(self, store: SkyStore, namespace: str = "") -> None:
        """`namespace`: names of different namespaces are different values."""
        self._store = store
        self._namespace = namespace

    @property
    def value_bytes_max(self) -> int:
        """The longest value that can be put: one that the sky holds (`SkyStore.capacity_bytes`)."""
        return min(VALUE_BYTES_MAX, self._store.capacity_bytes - _ENVELOPE_BYTES)

    def put(self, name: str, value: Buffer, progress: Progress | None = None) -> PutResult:
        """Store a value of 0 to `value_bytes_max` bytes, in place of any that the name has.

        The result is `unanswered` if a satellite did not confirm that it gave up the old value: stored beside what is left
        of that, the new one could not be told from it.

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
            return PutResult(key, False, "unanswered", None, 0.0)
        return self._store.put([(key, b"".join((_MAGIC, blake3(view).digest(), view)))], progress)[0]

    def get(self, name: str, progress: Progress | None = None) -> bytearray | None:
        """The value as it was put, or None: there is none, or it did not come back whole."""
        key = key_of(name, self._namespace)
        data = self._store.get([key], progress, block_bytes_max=VALUE_BYTES_MAX + _ENVELOPE_BYTES)[0].data
        if data is None:
            return None
        value = memoryview(data)[_ENVELOPE_BYTES:]
        intact = data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : _ENVELOPE_BYTES] == blake3(value).digest()
        value.release()
        if not intact:
            self._store.purge([key])
            return None
        del data[:_ENVELOPE_BYTES]
        return data

    def prefetch(self, names: Sequence[str], at_s: float) -> list[PrefetchResult]:
        """Lay values so that they are in the window at a time to come; see `SkyStore.prefetch`, whose errors it raises."""
        return self._store.prefetch([key_of(name, self._namespace) for name in names], at_s)

    def delete(self, name: str) -> bool:
        """Forget a value; False if no satellite held anything of it."""
        return self._store.purge([key_of(name, self._namespace)]).chunks > 0
