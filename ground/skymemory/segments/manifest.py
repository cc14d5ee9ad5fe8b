"""Manifests of segments: what an id stands for, on every host of a tenant.

A manifest is a sealed, versioned block under a key of the id alone. So it is found without the model, and a segment of another
model is told from one that is unknown. It says of what its keys are derived; only who knows the tenant secret can derive them.

Its version is chosen as that of a value (`skymemory.store.versions`): a newer manifest takes the place of an older one, and an
older one that somebody puts back is refused by a host that knows the newer one. It is deleted as a value, too
(`skymemory.store.deletions`): no manifest has an empty body.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from skymemory.segments.groups import GROUPS_MAX
from skymemory.segments.keys import SegmentKeys, scoped, segment_root
from skymemory.store.deletions import is_deletion, sealed_deletion
from skymemory.wire.envelope import BlockError, Kind, seal, unseal
from skymemory.wire.key_derivation import block_key, name_key, public_name, root_key, seal_keys

TOKENS_MAX: Final = 1 << 18
"""Most tokens of a segment."""
SINKS_MAX: Final = 64
"""Most sinks of a segment."""
NAME_CHARACTERS_MAX: Final = 128
"""Most characters of a segment's display name."""
MANIFEST_BYTES_MAX: Final = 1 << 21
"""Most bytes of a manifest. The limit bounds the memory that a satellite can make a host take."""
VARIANTS_MAX: Final = 3
"""Most variants of a segment."""
BEHIND_MAX: Final = 64
"""Most segments that a manifest names before a variant: those that stood nearest."""
_WORD_MAX: Final = 1 << 10

_Word = Annotated[str, Meta(max_length=_WORD_MAX)]
_Milliseconds = Annotated[int, Meta(ge=0, lt=1 << 53)]


class Variant(Struct, frozen=True, kw_only=True):
    """Keys and values of a segment that were computed behind other tokens."""

    name: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """Name from `SegmentKeys.variant_name`, from which its keys are derived."""
    behind: Annotated[list[_Word], Meta(max_length=BEHIND_MAX)]
    """Ids of the segments before it, in the order of the prompt."""
    size_bytes: Annotated[int, Meta(ge=0)]
    """Bytes of its blocks."""


class Manifest(Struct, frozen=True, kw_only=True):
    """Content of a manifest."""

    id: _Word
    fingerprint: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """Digest of model and tokenizer."""
    layout: _Word
    """Order of the tensors, with the layers of each group."""
    codec: _Word
    block_tokens: Annotated[int, Meta(ge=1, le=1 << 16)]
    groups: Annotated[int, Meta(ge=1, le=GROUPS_MAX)]
    """Groups of layers of a block."""
    sinks: Annotated[int, Meta(ge=0, le=SINKS_MAX)]
    """Tokens BOS before the segment when it was computed."""
    tokens: Annotated[list[Annotated[int, Meta(ge=0, lt=1 << 32)]], Meta(min_length=1, max_length=TOKENS_MAX)]
    """Token ids."""
    size_bytes: Annotated[int, Meta(ge=0)]
    """Bytes of the blocks of the segment that was computed alone; 0 if the sky has only variants of it."""
    variants: Annotated[list[Variant], Meta(max_length=VARIANTS_MAX)] = []
    """Its variants, the one that was put first first."""
    created_unix_ms: _Milliseconds
    """Time of the put by the clock of the host that put it, in milliseconds since 1970."""
    expires_unix_ms: _Milliseconds
    """Time at which the segment expires, in milliseconds since 1970; 0 if it never does."""
    display_name: Annotated[str, Meta(max_length=NAME_CHARACTERS_MAX)]

    def keys(self, tenant_secret: bytes, scope: bytes, variant: bytes = b"") -> SegmentKeys:
        """Return the keys of the segment's blocks, or of those of the variant of a name."""
        root = segment_root(
            fingerprint=self.fingerprint,
            layout=self.layout,
            codec=self.codec,
            block_tokens=self.block_tokens,
            sinks=self.sinks,
            tenant_secret=tenant_secret,
            scope=scope,
        )
        return SegmentKeys(root, self.tokens, self.block_tokens, self.groups, variant)

    @property
    def is_alone(self) -> bool:
        """True if the segment was computed alone; False if the sky has only variants of it, as of an answer."""
        return self.size_bytes > 0

    def is_over(self, now_unix_ms: int) -> bool:
        """Return True if the segment has expired."""
        return 0 < self.expires_unix_ms <= now_unix_ms


_DECODER: Final = msgspec.msgpack.Decoder(Manifest)


class ManifestKeys:
    """Keys of a tenant's manifests, or of those of one scope."""

    def __init__(self, tenant_secret: bytes, scope: bytes = b"") -> None:
        """Derive them.

        Args:
            tenant_secret: Secret of the tenant.
            scope: Name of one of several users of a tenant, who never find each other's segments.
        """
        root = scoped(root_key("manifests", tenant_secret), scope)
        self._names = name_key(root)
        self._seals = seal_keys(root)
        self.public_name = public_name(root)

    def key_of(self, segment: str) -> bytes:
        """Return the key of the manifest of an id, 32 bytes."""
        return block_key(self._names, segment.encode())

    def pack(self, manifest: Manifest, version: int) -> bytearray:
        """Return the block of a manifest."""
        body = msgspec.msgpack.encode(manifest)
        return seal(Kind.MANIFEST, self.key_of(manifest.id), b"", body, keys=self._seals, version=version)

    def pack_deletion(self, segment: str, version: int) -> bytearray:
        """Return the block that deletes the manifest of an id."""
        return sealed_deletion(Kind.MANIFEST, self.key_of(segment), keys=self._seals, version=version)

    def unpack(self, segment: str, block: bytearray) -> tuple[Manifest | None, int]:
        """Return the manifest of an id and its version, from a block that is decrypted in place. None: it was deleted.

        Raises:
            BlockError: The block is not the manifest of this id.
        """
        _, body, version = unseal(Kind.MANIFEST, self.key_of(segment), block, keys=self._seals)
        if is_deletion(len(block)):
            return None, version
        try:
            manifest = _DECODER.decode(body)
        except msgspec.DecodeError as error:
            raise BlockError(f"the manifest cannot be read: {error}") from error
        if manifest.id != segment:
            raise BlockError(f"the manifest is of {manifest.id!r}, not of {segment!r}")
        return manifest, version


def shown_time(unix_ms: int) -> str:
    """Return a time for a person, in UTC."""
    try:
        return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms since 1970"
