"""Deletions of values: to delete a value is to put a sealed empty block over it, with a newer version.

So copies, stand-ins, handover, repair and eviction of a deletion are those of any value, and no satellite has to confirm that it
has purged something. A deletion has an empty header and an empty body. Its block is as long as an envelope, and every value's is
longer (`skymemory.store.keyvalue`, `skymemory.segments.manifest`): so the length alone, which a look-up tells, says that a value
was deleted. The seal proves it: other bytes of this length are damage.

A deletion is kept for a day, so that it reaches satellites that were away. Who reads an older one purges it by its version.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from skymemory.store.results import FindResult, Status
from skymemory.wire.envelope import ENVELOPE_BYTES, VALUE_VERSION_MAX, Kind, seal
from skymemory.wire.key_derivation import SealKeys

DELETION_BYTES: Final = ENVELOPE_BYTES
"""Bytes of the block of a deletion. No value's block is as short."""
KEPT_US: Final = 86_400_000_000
"""Microseconds for which a deletion is kept. A satellite that was away for longer may bring a value back."""


def is_deletion(block_len: int) -> bool:
    """Return True if the block of a value has the length of a deletion."""
    return block_len == DELETION_BYTES


def is_old(version: int, now_unix_us: int) -> bool:
    """Return True if a deletion need not be kept any more: its version is the time of the put, in microseconds since 1970."""
    return version + KEPT_US < now_unix_us


def without_deletions(found: Iterable[FindResult]) -> list[FindResult]:
    """Return results of a look-up of values, in which those that were deleted are misses."""
    return [
        replace(one, entry=None, status=Status.MISS) if one.entry is not None and is_deletion(one.entry.block_len) else one
        for one in found
    ]


def sealed_deletion(kind: Kind, key: bytes, *, keys: SealKeys, version: int) -> bytearray:
    """Return the block of a deletion.

    Args:
        kind: Kind of the value that it takes the place of.
        key: Key of the value, 32 bytes.
        keys: Keys of the value's seal.
        version: Version of the deletion. Above the largest one it is the largest one.
    """
    return seal(kind, key, b"", b"", keys=keys, version=min(version, VALUE_VERSION_MAX))
