"""Blocks of serving engines as bytes in shared memory: a fixed header, then the key-value tensors, layer by layer. No torch.

    bytes   field (integers big-endian)
    0-3     magic "SKYE"
    4       version of this format, 1
    5-7     0, reserved
    8-39    keyed BLAKE3 digest of bytes 0-7, of everything from byte 40 on, and of the block's key
    40-43   tokens of a block
    44-47   layers
    48-55   bytes of a layer
    56-71   dtype, ASCII, padded with zeros
    72-127  layout: the order of the tensors in a layer, ASCII, padded with zeros
    128-    `layers` runs of `layer_bytes` bytes

An engine copies its layers straight to where they belong (`Framing.layers`) and then has them sealed; on the way back the block
is checked where it lies, and its layers are read from there: one copy each way.

What the block says of itself is looked at before its digest, so that an engine with another block size or dtype learns just
that. None of it is believed: the digest is checked with the lengths that this engine expects.
"""

import hmac
import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Final

from blake3 import blake3

HEADER_BYTES: Final = 128
"""a multiple of 64, so that layers lie as they do in engines' own memory"""
DTYPE_BYTES_MAX: Final = 16
LAYOUT_BYTES_MAX: Final = 56

_MAGIC: Final = b"SKYE"
_VERSION: Final = 1
_PREFIX: Final = struct.Struct(">4sB3x32s")
_FORMAT: Final = struct.Struct(f">IIQ{DTYPE_BYTES_MAX}s{LAYOUT_BYTES_MAX}s")
_DIGESTED_PREFIX_BYTES: Final = 8
_KEY_BYTES: Final = 32
_ROOT_DOMAIN: Final = "skymemory 1 root of an engine's blocks"
_BLOCK_DOMAIN: Final = b"block"
_DIGEST_DOMAIN: Final = "skymemory 1 digest of an engine's blocks"


class FrameError(ValueError):
    """The bytes are not the block that was asked for; the message says what differs."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """What decides how a block's bytes are read."""

    block_tokens: int
    layers: int
    layer_bytes: int
    """all that a layer holds of a block: keys and values, of the heads of this engine"""
    dtype: str
    """as the engine calls it, such as `bfloat16`"""
    layout: str
    """order of the tensors in a layer, such as `k|v,token,kv_head,head_dim`"""

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: a number or a word that has no place in the header.
        """
        for name, most in (("block_tokens", 1 << 32), ("layers", 1 << 32), ("layer_bytes", 1 << 40)):
            value = getattr(self, name)
            if not 0 < value < most:
                raise ValueError(f"{name} is {value}; allowed are 1 to {most - 1}")
        for name, most in (("dtype", DTYPE_BYTES_MAX), ("layout", LAYOUT_BYTES_MAX)):
            text = getattr(self, name)
            if not (1 <= len(text) <= most and text.isascii() and text.isprintable()):
                raise ValueError(f"{name} is {text!r}; allowed are 1 to {most} ASCII characters")

    @property
    def block_bytes(self) -> int:
        """Of a block, header included."""
        return HEADER_BYTES + self.layers * self.layer_bytes

    def share(self, processes: int) -> tuple[int, str]:
        """Return the tokens and the type that the agent is told where each of several processes stores its part of a block.

        The agent counts each part as a block. So a part counts for its share of the tokens, and the sky is not said to hold more
        of a model than it does.
        """
        if processes == 1:
            return self.block_tokens, self.dtype
        told = f"{self.dtype} (a share of {self.block_tokens} in each of {processes} workers)"
        return max(1, self.block_tokens // processes), told


def root(block_format: BlockFormat, parts: Iterable[bytes | str]) -> bytes:
    """Digest of all that decides the bytes of a block, 32 bytes: for `EngineInfo.root` and `Framing`.

    Args:
        block_format: of the engine's blocks.
        parts: what else the tensors depend on, always in the same order: the model and its revision or weights, adapters, the
            share of the tensors that this process has of all (rank and ranks), a secret of the tenant.
    """
    digest = blake3(derive_key_context=_ROOT_DOMAIN)
    for part in (*map(str, astuple(block_format)), *parts):
        # With its length, so that a byte moved from one part to the next changes the digest
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big")).update(data)
    return digest.digest()


def block_key(root: bytes, name: bytes) -> bytes:
    """The key in the sky of a block, 32 bytes.

    Args:
        root: of the engine's blocks, 32 bytes.
        name: what the engine calls the block by, such as a hash of its tokens and of all tokens before them.
    """
    return blake3(_BLOCK_DOMAIN + name, key=root).digest()


class Framing:
    """Packs and checks the blocks of one engine. Thread-safe: it holds nothing but what it was made with."""

    def __init__(self, block_format: BlockFormat, root: bytes) -> None:
        """
        Args:
            root: 32 bytes from `root`; with a tenant's secret in it nobody else makes blocks that pass.

        Raises:
            ValueError: a root of another length.
        """
        if len(root) != _KEY_BYTES:
            raise ValueError(f"root of {len(root)} bytes; {_KEY_BYTES} are allowed")
        self.format = block_format
        self.block_bytes = block_format.block_bytes
        self._digest_key = blake3(root, derive_key_context=_DIGEST_DOMAIN).digest()
        dtype, layout = block_format.dtype.encode(), block_format.layout.encode()
        self._described = _FORMAT.pack(block_format.block_tokens, block_format.layers, block_format.layer_bytes, dtype, layout)

    def layers(self, block: memoryview) -> list[memoryview]:
        """Where each layer lies in a block, first layer first; to be written or read in place.

        Args:
            block: `block_bytes` of contiguous memory, such as `Lease.view`.

        Raises:
            ValueError: memory of another length.
        """
        self._check_length(block)
        step = self.format.layer_bytes
        return [block[at : at + step] for at in range(HEADER_BYTES, self.block_bytes, step)]

    def seal(self, block: memoryview, key: bytes) -> None:
        """Write the header and the digest, when all layers are in their places.

        Args:
            key: under which the block is stored, 32 bytes.

        Raises:
            ValueError: memory of another length, or that cannot be written.
        """
        self._check_length(block)
        _PREFIX.pack_into(block, 0, _MAGIC, _VERSION, bytes(32))
        block[_PREFIX.size : HEADER_BYTES] = self._described
        block[_DIGESTED_PREFIX_BYTES : _PREFIX.size] = self._digest(block, key)

    def check(self, block: memoryview, key: bytes) -> None:
        """Is this the block that was stored under the key, whole? Nothing is copied.

        Raises:
            FrameError: the message says what differs.
            ValueError: memory of another length.
        """
        self._check_length(block)
        magic, version, digest = _PREFIX.unpack_from(block)
        if magic != _MAGIC:
            raise FrameError("these bytes are not an engine's block")
        if version != _VERSION:
            raise FrameError(f"the block has format {version}; known is {_VERSION}")
        if block[_PREFIX.size : HEADER_BYTES] != self._described:
            raise FrameError(self._difference(block))
        if not hmac.compare_digest(digest, self._digest(block, key)):
            raise FrameError("the digest does not match: the block is damaged, of another key or of another model")

    def _difference(self, block: memoryview) -> str:
        """What the header says otherwise than this engine, in words."""
        told = _FORMAT.unpack_from(block, _PREFIX.size)
        shown = [one.rstrip(b"\0").decode("ascii", "backslashreplace") if isinstance(one, bytes) else one for one in told]
        names = [field.name for field in fields(BlockFormat)]
        expected = astuple(self.format)
        differ = [f"{name} {a}, not {b}" for name, a, b in zip(names, shown, expected, strict=True) if a != b]
        return f"the block is of another engine or damaged: it has {'; '.join(differ) or 'bytes behind its words'}"

    def _digest(self, block: memoryview, key: bytes) -> bytes:
        digest = blake3(block[:_DIGESTED_PREFIX_BYTES], key=self._digest_key)
        return digest.update(block[_PREFIX.size :]).update(key).digest()

    def _check_length(self, block: memoryview) -> None:
        if block.nbytes != self.block_bytes or block.itemsize != 1 or not block.c_contiguous:
            raise ValueError(f"{block.nbytes} bytes of memory for a block of {self.block_bytes}; it must be contiguous bytes")
