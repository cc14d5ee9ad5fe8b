"""Format of serving engines' blocks: a fixed header, then the key-value tensors as bytes, layer by layer. Needs no torch.

A block is sealed (`skymemory.wire.envelope`). Its header is ASCII: the fields of `BlockFormat` with a zero byte between them,
padded with zeros to 144 bytes, so that the layers start at a multiple of 64 bytes, as in engines' own memory. The body is
`layers` runs of `layer_bytes` bytes.

A block is copied once each way. To store one, an engine copies its layers into the block (`Framing.layers`), and seals it in
place. To load one, it opens the block in place, and reads the layers from there. The memory is the engine's. The agent shares it,
and does not touch it meanwhile.
"""

from dataclasses import astuple, dataclass, fields
from typing import Final

from skymemory.wire.envelope import ENVELOPE_BYTES, BlockError, Kind, seal_in_place, unseal
from skymemory.wire.key_derivation import root_key, seal_keys

DTYPE_BYTES_MAX: Final = 16
LAYOUT_BYTES_MAX: Final = 56
_TEXT_BYTES: Final = 144
HEADER_BYTES: Final = ENVELOPE_BYTES + _TEXT_BYTES
"""Bytes in front of the layers."""


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

    def root(self, tenant_secret: bytes, *parts: bytes | str) -> bytes:
        """Return the root of the keys of all blocks of this format, 32 bytes, for `EngineInfo.root` and `Framing`.

        It is as secret as the tenant secret. The agent is told only its public name.

        Args:
            tenant_secret: Secret of the tenant (`skymemory.wire.key_derivation.root_key`).
            parts: Everything else that the tensors depend on, always in the same order: the model and its revision or weights,
                adapters, this process's share of the tensors (rank and number of ranks).
        """
        return root_key("pages", tenant_secret, *map(str, astuple(self)), *parts)


class Framing:
    """Header and seal of one engine's blocks. Thread-safe, as it never changes."""

    def __init__(self, block_format: BlockFormat, root: bytes) -> None:
        """Derive the keys of the seal.

        Args:
            block_format: The format of the engine's blocks.
            root: 32 bytes from `BlockFormat.root`. Without the tenant secret in it nobody can read or make the blocks.

        Raises:
            ValueError: The root has another length.
        """
        self.format = block_format
        self.block_bytes = block_format.block_bytes
        self._keys = seal_keys(root)
        self._words = [str(value) for value in astuple(block_format)]
        self._header = "\0".join(self._words).encode().ljust(_TEXT_BYTES, b"\0")

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
        """Write the header of a block whose layers are complete, and encrypt both in place.

        Args:
            block: Memory as for `layers`.
            key: The key under which the block is stored, 32 bytes.

        Raises:
            ValueError: The memory has another length or is not contiguous.
        """
        self._check_length(block)
        seal_in_place(Kind.PAGES, key, block, self._header, keys=self._keys)

    def open(self, block: memoryview, key: bytes) -> None:
        """Check that memory holds the whole block that was stored under a key, and decrypt it in place, once.

        Raises:
            BlockError: It is another block, or it is damaged.
            ValueError: The memory has another length or is not contiguous.
        """
        self._check_length(block)
        header, body, _ = unseal(Kind.PAGES, key, block, keys=self._keys)
        if header != self._header or len(body) != self.block_bytes - HEADER_BYTES:
            words = bytes(header[:_TEXT_BYTES]).decode("ascii", "backslashreplace").split("\0")
            told = zip(fields(BlockFormat), words, self._words, strict=False)
            differ = [f"{field.name} {a}, not {b}" for field, a, b in told if a != b]
            raise BlockError(f"the block is of another format: it has {'; '.join(differ) or 'other padding'}")

    def _check_length(self, block: memoryview) -> None:
        if block.nbytes != self.block_bytes or block.itemsize != 1 or not block.c_contiguous:
            raise ValueError(f"{block.nbytes} bytes of memory for a block of {self.block_bytes}; it must be contiguous bytes")
