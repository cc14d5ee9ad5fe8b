"""Sealed blocks: bytes that the sky stores under a key, encrypted and authenticated where they are made.

    bytes   field (integers big-endian)
    0-11    nonce
    12-15   format of the envelope, headers and bodies: 3, sealed by AES-256-GCM (NIST SP 800-38D)
    16-23   version of the value; 0 for blocks that never change under their key
    24-39   tag of AES-256-GCM
    40-     encrypted: length of the header (2 bytes), length of the padding (1), zeros (5); from byte 48 the header, whose fields
            the kind defines, the body, and at most one zero byte, if the kind has a use for the block's parity

Tag and nonce bind the block's key, its kind, format, version and length: a block under another's key is a miss, and so is one of
which any bit was changed. Nothing is read before the tag matches.

The nonce is the start of a BLAKE3 digest, under a key of its own, over all that is bound and the plaintext. So the same block is
the same bytes whenever and wherever it is sealed, and a put can be repeated. Unequal blocks have unequal nonces, also those that
two GPUs compute for the same tokens under one key. Among 2^32 unequal blocks of one root, two have the same nonce with a
probability of 2^-33. Equal content under one key and version is visible as equal; under two keys it is not. Visible are also the
length, the version, and how often, when and from where a block is asked for.

A satellite or host that does not know the tenant secret cannot read a block, and cannot make one that passes. It can delete
blocks, and put back an older one of the same key; the version tells that to whoever knows a newer one.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from skymemory.common.whole_file import Buffer
from skymemory.wire.key_derivation import SealKeys

VERSION: Final = 3
"""Version of the format of envelopes, headers and bodies."""
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
ENVELOPE_BYTES: Final = 48
"""Bytes in front of the header."""
HEADER_BYTES_MAX: Final = 0xFFFF
PADDING_BYTES_MAX: Final = 1
VALUE_VERSION_MAX: Final = (1 << 64) - 1
CONTENT_BYTES: Final = 4

_CLEAR: Final = struct.Struct(f">{NONCE_BYTES}sIQ{TAG_BYTES}s")
_LENGTHS: Final = struct.Struct(">HB5x")
_BOUND: Final = struct.Struct(">IBQQQ")
"""Format, kind, version, length of the block, length of its key; the key follows."""


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
    SEGMENT = 5
    """Key-value tensors of a segment's tokens, of a group of layers (`skymemory.segments.segment_blocks`)."""
    MANIFEST = 6
    """Manifest of a segment (`skymemory.segments.manifest`)."""
    GATE = 7
    """Evidence about a model's linked segments (`skymemory.segments.gate_in_sky`)."""


class BlockError(ValueError):
    """Error: the bytes are not the block that was asked for. The message says what is wrong and what is allowed."""


class Unsealed(NamedTuple):
    """A block that was opened, as views of its memory."""

    header: memoryview
    body: memoryview
    version: int
    """Version of the value; 0 for blocks that never change under their key."""


class Instance(NamedTuple):
    """Version and content of a block under its key. Chunks of two instances never mix."""

    version: int
    """Version of the value; 0 for blocks that never change under their key."""
    content: int
    """Content instance, a number of 32 bits that unequal contents hardly share."""


def seal(kind: Kind, key: bytes, header: bytes, body: Buffer, *, keys: SealKeys, version: int = 0, padding: int = 0) -> bytearray:
    """Return a sealed block of a body, which is contiguous bytes and stays as it is; see `seal_in_place`."""
    front = _front(len(header), padding) + header
    block = bytearray(_CLEAR.size + len(front) + len(body) + padding)
    _encrypt(kind, key, memoryview(block), (front, body, bytes(padding)), keys, version)
    return block


def seal_in_place(
    kind: Kind, key: bytes, block: memoryview, header: bytes, *, keys: SealKeys, version: int = 0, padding: int = 0
) -> None:
    """Seal a block whose body is in place already, at `ENVELOPE_BYTES + len(header)`. The body is encrypted where it is.

    Args:
        kind: Kind of the content.
        key: Key under which the block is stored, 32 bytes.
        block: Contiguous bytes: room for envelope and header, the body, and room for the padding.
        header: Fields of the kind, at most `HEADER_BYTES_MAX` bytes.
        keys: Keys of the seal, from `key_derivation.seal_keys`.
        version: Version of the value, 0 to `VALUE_VERSION_MAX`.
        padding: Zero bytes behind the body, 0 or 1.

    Raises:
        ValueError: The memory is too short, the header is too long, there is too much padding, or there is no such version.
    """
    front = _front(len(header), padding) + header
    end = _CLEAR.size + len(front)
    if len(block) < end + padding:
        raise ValueError(f"{len(block)} bytes for envelope, header and padding; these have {end + padding}")
    if padding:
        block[-1] = 0
    block[_CLEAR.size : end] = front
    _encrypt(kind, key, block, (block[_CLEAR.size :],), keys, version)


def unseal(kind: Kind, key: bytes, block: bytearray | memoryview, *, keys: SealKeys) -> Unsealed:
    """Check a block, decrypt it where it is, and return its header and its body as views of it. Nothing is copied.

    A block can be opened only once, because its memory holds the plaintext afterwards. After an error the memory holds nothing
    that may be used.

    Args:
        kind: Expected kind of the content.
        key: Key under which the block was fetched, 32 bytes.
        block: Contiguous bytes from anywhere, in memory that may be changed.
        keys: Keys of the seal, from `key_derivation.seal_keys`.

    Raises:
        BlockError: The bytes are not a sealed block of this kind and key.
    """
    view = memoryview(block)
    length = len(view)
    if length < ENVELOPE_BYTES:
        raise BlockError(f"a sealed block has at least {ENVELOPE_BYTES} bytes, this one {length}")
    nonce, found, version, tag = _CLEAR.unpack_from(view)
    if found != VERSION:
        raise BlockError(f"the block has format {found}; known is {VERSION}")
    text = view[_CLEAR.size :]
    decryptor = Cipher(AES(keys.encryption), GCM(nonce, tag)).decryptor()
    decryptor.authenticate_additional_data(_bound(kind, key, version, length))
    decryptor.update_into(text, text)
    try:
        decryptor.finalize()
    except InvalidTag:
        raise BlockError(
            "the seal does not match: the block is damaged, of another key or kind, of another model or of another tenant"
        ) from None
    header_bytes, padding = _LENGTHS.unpack_from(text)
    start, end = ENVELOPE_BYTES + header_bytes, length - padding
    if padding > PADDING_BYTES_MAX or start > end:
        raise BlockError(f"the block has {length} bytes; its header of {header_bytes} and its padding of {padding} do not fit")
    return Unsealed(view[ENVELOPE_BYTES:start], view[start:end], version)


def instance_of(block: Buffer) -> Instance:
    """Return version and content instance of a block, as packets name them; zeros if the block is not sealed."""
    head = memoryview(block).cast("B")[: _CLEAR.size]
    if len(head) < _CLEAR.size:
        return Instance(0, 0)
    nonce, found, version, _ = _CLEAR.unpack(head)
    return Instance(version, int.from_bytes(nonce[:CONTENT_BYTES])) if found == VERSION else Instance(0, 0)


def _front(header_bytes: int, padding: int) -> bytes:
    if header_bytes > HEADER_BYTES_MAX or not 0 <= padding <= PADDING_BYTES_MAX:
        raise ValueError(
            f"a header of {header_bytes} bytes and {padding} of padding; allowed are headers to {HEADER_BYTES_MAX} bytes, and "
            f"padding to {PADDING_BYTES_MAX}"
        )
    return _LENGTHS.pack(header_bytes, padding)


def _bound(kind: Kind, key: bytes, version: int, length: int) -> bytes:
    return _BOUND.pack(VERSION, kind, version, length, len(key)) + key


def _encrypt(kind: Kind, key: bytes, block: memoryview, parts: tuple[Buffer, ...], keys: SealKeys, version: int) -> None:
    """Write nonce, tag and the encrypted parts into a block. A part may lie where it goes."""
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise ValueError(f"version {version}; allowed are 0 to 2^64 - 1")
    bound = _bound(kind, key, version, len(block))
    digest = blake3(bound, key=keys.nonces)
    for part in parts:
        digest.update(part)
    nonce = digest.digest(NONCE_BYTES)
    encryptor = Cipher(AES(keys.encryption), GCM(nonce)).encryptor()
    encryptor.authenticate_additional_data(bound)
    at = _CLEAR.size
    for part in parts:
        encryptor.update_into(part, block[at:])
        at += len(part)
    encryptor.finalize()
    block[: _CLEAR.size] = _CLEAR.pack(nonce, VERSION, version, encryptor.tag)
