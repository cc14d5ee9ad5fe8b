"""Sealed blocks: an envelope around the bytes that the sky stores under a key.

    bytes   field (integers big-endian)
    0-31    BLAKE3 digest of everything from byte 32 on, then of the block's key; keyed with `key_derivation.digest_key`
    32-35   magic "SKYM"
    36      version of this format, 2
    37      kind of the block
    38-39   length of the header
    40-47   length of the body
    48-     header, whose fields the kind defines; body; and at most one zero byte, if the kind has a use for the block's parity

The digest binds the key: a block that comes under another's key does not pass. Satellites and links are not trusted: no length is
used before the digest matches, and then each must fit the bytes at hand. A block that fails is a miss, never data.

A satellite or host that sees blocks and keys, but does not know the tenant secret, cannot make a block that passes. The digest
does not keep others from reading or deleting blocks, or from replacing a block by an older one of the same key. Without a secret
it protects from accidents only.
"""

import hmac
import struct
from enum import IntEnum
from typing import Final

from blake3 import blake3

from skymemory.common.whole_file import Buffer

VERSION: Final = 2
"""Version of the format of envelopes, headers and bodies."""
DIGEST_BYTES: Final = 32
ENVELOPE_BYTES: Final = 48
"""Bytes in front of the header."""
HEADER_BYTES_MAX: Final = 0xFFFF
PADDING_BYTES_MAX: Final = 1

_MAGIC: Final = b"SKYM"
_FIELDS: Final = struct.Struct(">4sBBHQ")


class Kind(IntEnum):
    """Kind of the content of a block."""

    PROMPT = 1
    """Key-value tensors of a prompt's tokens (`skymemory.prompt.blocks`)."""
    VALUE = 2
    """A value under a name (`skymemory.store.keyvalue`)."""
    PAGES = 3
    """Pages of a serving engine's cache (`skymemory.engines.framing`)."""
    FORMATS = 4
    """Record of the formats of a model's blocks (`skymemory.agent.formats`)."""


class BlockError(ValueError):
    """Error: the bytes are not the block that was asked for. The message says what is wrong and what is allowed."""


def seal(kind: Kind, key: bytes, header: bytes, body: Buffer, *, digest_key: bytes, padding: int = 0) -> bytearray:
    """Return a sealed block with a copy of a body, which is contiguous bytes; for arguments and errors see `seal_in_place`."""
    start = ENVELOPE_BYTES + len(header)
    block = bytearray(start + len(body) + padding)
    block[start : start + len(body)] = body
    seal_in_place(kind, key, memoryview(block), header, digest_key=digest_key, padding=padding)
    return block


def seal_in_place(kind: Kind, key: bytes, block: memoryview, header: bytes, *, digest_key: bytes, padding: int = 0) -> None:
    """Seal a block whose body is in place already, at `ENVELOPE_BYTES + len(header)`. Nothing is copied.

    Args:
        kind: Kind of the content.
        key: Key under which the block is stored, 32 bytes.
        block: Contiguous bytes: room for envelope and header, the body, and room for the padding.
        header: Fields of the kind, at most `HEADER_BYTES_MAX` bytes.
        digest_key: Key of the digest, from `key_derivation.digest_key`.
        padding: Zero bytes behind the body, 0 or 1.

    Raises:
        ValueError: The memory is too short, the header is too long, or there is too much padding.
    """
    start = ENVELOPE_BYTES + len(header)
    body_bytes = len(block) - start - padding
    if body_bytes < 0 or len(header) > HEADER_BYTES_MAX or not 0 <= padding <= PADDING_BYTES_MAX:
        raise ValueError(
            f"{len(block)} bytes for a header of {len(header)} and {padding} of padding; allowed are {ENVELOPE_BYTES} more, "
            f"headers to {HEADER_BYTES_MAX} and padding to {PADDING_BYTES_MAX}"
        )
    if padding:
        block[-1] = 0
    block[DIGEST_BYTES:start] = _FIELDS.pack(_MAGIC, VERSION, kind, len(header), body_bytes) + header
    block[:DIGEST_BYTES] = blake3(block[DIGEST_BYTES:], key=digest_key).update(key).digest()


def unseal(kind: Kind, key: bytes, block: Buffer, *, digest_key: bytes) -> tuple[memoryview, memoryview]:
    """Check a block, and return its header and its body as views of it. Nothing is copied.

    Args:
        kind: Expected kind of the content.
        key: Key under which the block was fetched, 32 bytes.
        block: Contiguous bytes from anywhere.
        digest_key: Key of the digest, from `key_derivation.digest_key`.

    Raises:
        BlockError: The bytes are not a sealed block of this kind and key.
    """
    view = memoryview(block)
    length = len(view)
    if length < ENVELOPE_BYTES:
        raise BlockError(f"a sealed block has at least {ENVELOPE_BYTES} bytes, this one {length}")
    magic, version, found, header_bytes, body_bytes = _FIELDS.unpack_from(view, DIGEST_BYTES)
    if magic != _MAGIC:
        raise BlockError(f"these bytes are not a sealed block: its magic is {_MAGIC!r}, not {magic!r}")
    if version != VERSION:
        raise BlockError(f"the block has format {version}; known is {VERSION}")
    if found != kind:
        raise BlockError(f"the block is of kind {found}; wanted is {int(kind)} ({kind.name.lower()})")
    if not hmac.compare_digest(view[:DIGEST_BYTES], blake3(view[DIGEST_BYTES:], key=digest_key).update(key).digest()):
        raise BlockError("the digest does not match: the block is damaged, of another key, of another model or of another tenant")
    start = ENVELOPE_BYTES + header_bytes
    end = start + body_bytes
    if end != length and (end + PADDING_BYTES_MAX != length or view[end]):
        raise BlockError(f"the block has {length} bytes; its lengths allow {end}, and one zero byte behind them")
    return view[ENVELOPE_BYTES:start], view[start:end]
