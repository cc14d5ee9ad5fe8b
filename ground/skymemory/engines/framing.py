"""Format of serving engines' blocks: a fixed header, then the key-value tensors as bytes, layer by layer. Needs no torch.

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

A block is copied once each way. To store one, an engine copies its layers into the block (`Framing.layers`) and seals it. To
load one, it checks the block in place and reads the layers from there.

The header is compared before the digest, so an engine with another block size or dtype learns what differs. The header is not
trusted: the digest is checked with the lengths that this engine expects.
"""

import hmac
import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Final

from blake3 import blake3

HEADER_BYTES: Final = 128
"""Bytes of the header: a multiple of 64, so layers are aligned as in engines' own memory."""
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


class BlockFrameError(ValueError):
    """Error: the bytes are not the expected block. The message says what differs."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Sizes and names that decide how a block's bytes are read."""

    block_tokens: int
    layers: int
    layer_bytes: int
    """Bytes of a block's keys and values in one layer, for this engine's heads."""
    dtype: str
    """The engine's name of the dtype, such as `bfloat16`."""
    layout: str
    """Order of the tensors in a layer, such as `k|v,token,kv_head,head_dim`."""

    def __post_init__(self) -> None:
        """Check that each field fits into the header.

        Raises:
            ValueError: A number or a word does not fit.
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
        """Bytes of a block, header included."""
        return HEADER_BYTES + self.layers * self.layer_bytes

    def share(self, processes: int) -> tuple[int, str]:
        """Return the tokens and the dtype to announce to the agent if each of several processes stores its part of a block.

        The agent counts each part as a block. So each process announces only its share of the tokens; otherwise the agent would
        count tokens several times.
        """
        if processes == 1:
            return self.block_tokens, self.dtype
        told = f"{self.dtype} (a share of {self.block_tokens} in each of {processes} workers)"
        return max(1, self.block_tokens // processes), told


def root(block_format: BlockFormat, parts: Iterable[bytes | str]) -> bytes:
    """Digest everything that decides the bytes of a block.

    Args:
        block_format: The format of the engine's blocks.
        parts: Everything else that the tensors depend on, always in the same order: the model and its revision or weights,
            adapters, this process's share of the tensors (rank and number of ranks), and a secret of the tenant.

    Returns:
        32 bytes for `EngineInfo.root` and `Framing`.
    """
    digest = blake3(derive_key_context=_ROOT_DOMAIN)
    for part in (*map(str, astuple(block_format)), *parts):
        # The length goes in first, so that a byte moved from one part to the next changes the digest.
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big")).update(data)
    return digest.digest()


def block_key(root: bytes, name: bytes) -> bytes:
    """Return the key under which the sky stores a block, 32 bytes.

    Args:
        root: The root of the engine's blocks, 32 bytes.
        name: The engine's name of the block, such as a hash of its tokens and of all tokens before them.
    """
    return blake3(_BLOCK_DOMAIN + name, key=root).digest()


class Framing:
    """Header and digest of one engine's blocks. Thread-safe, as it never changes."""

    def __init__(self, block_format: BlockFormat, root: bytes) -> None:
        """Derive the key of the digests.

        Args:
            block_format: The format of the engine's blocks.
            root: 32 bytes from `root`. If a tenant's secret went into it, nobody else can make blocks that pass the check.

        Raises:
            ValueError: The root has another length.
        """
        if len(root) != _KEY_BYTES:
            raise ValueError(f"root of {len(root)} bytes; {_KEY_BYTES} are allowed")
        self.format = block_format
        self.block_bytes = block_format.block_bytes
        self._digest_key = blake3(root, derive_key_context=_DIGEST_DOMAIN).digest()
        dtype, layout = block_format.dtype.encode(), block_format.layout.encode()
        self._described = _FORMAT.pack(block_format.block_tokens, block_format.layers, block_format.layer_bytes, dtype, layout)

    def layers(self, block: memoryview) -> list[memoryview]:
        """Return a view of each layer of a block, the first layer first, to write or read it in place.

        Args:
            block: `block_bytes` bytes of contiguous memory, such as `Lease.view`.

        Raises:
            ValueError: The memory has another length or is not contiguous.
        """
        self._check_length(block)
        step = self.format.layer_bytes
        return [block[at : at + step] for at in range(HEADER_BYTES, self.block_bytes, step)]

    def seal(self, block: memoryview, key: bytes) -> None:
        """Write the header and the digest of a block whose layers are complete.

        Args:
            block: Memory as for `layers`.
            key: The key under which the block is stored, 32 bytes.

        Raises:
            ValueError: The memory has another length or is not contiguous.
        """
        self._check_length(block)
        _PREFIX.pack_into(block, 0, _MAGIC, _VERSION, bytes(32))
        block[_PREFIX.size : HEADER_BYTES] = self._described
        block[_DIGESTED_PREFIX_BYTES : _PREFIX.size] = self._digest(block, key)

    def check(self, block: memoryview, key: bytes) -> None:
        """Check that memory holds the whole block that was stored under a key. Nothing is copied.

        Raises:
            BlockFrameError: It is another block, or it is damaged.
            ValueError: The memory has another length or is not contiguous.
        """
        self._check_length(block)
        magic, version, digest = _PREFIX.unpack_from(block)
        if magic != _MAGIC:
            raise BlockFrameError("these bytes are not an engine's block")
        if version != _VERSION:
            raise BlockFrameError(f"the block has format {version}; known is {_VERSION}")
        if block[_PREFIX.size : HEADER_BYTES] != self._described:
            raise BlockFrameError(self._difference(block))
        if not hmac.compare_digest(digest, self._digest(block, key)):
            raise BlockFrameError("the digest does not match: the block is damaged, of another key or of another model")

    def _difference(self, block: memoryview) -> str:
        """Describe how a block's header differs from this engine's format."""
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
