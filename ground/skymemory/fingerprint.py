"""Digest of a model and its tokenizer: if anything about them changes, no old key can match.

Covered are all weights and buffers (name, dtype, shape, every byte), the configuration, the settings of the modules and
of adapters (`skymemory.inventory` says which), and the tokenizer in full. Left out is what has no influence on keys and
values, and differs between hosts that should share a cache: where the model was loaded from, on which device it is, how
it generates, and by which version of transformers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import blake3
import torch

from skymemory.inventory import Inventory, take_inventory

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_TOKENIZER_STATE = {"padding", "truncation"}
"""left in a fast tokenizer by the last call that padded or truncated"""
_PIECE_BYTES = 1 << 24
"""tensors are read in pieces of about so many bytes; part of the digest"""
_SMALL_VALUES = 1 << 14
"""tensors of at most so many values are read in full by every `digest()`: norms, biases, buffers"""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a tensor as it was when all was read."""

    values: torch.Tensor
    """a view: shows what the tensor is now"""
    digest: bytes


class Fingerprint:
    """Digest of one model and tokenizer: computed in full once, and again when something was changed.

    Every `digest()` looks for a change without reading all weights:

    - all settings, the tokenizer's vocabulary size, special tokens, normaliser, pre-tokeniser and post-processor;
    - each tensor's place in memory, and torch's count of in-place changes: sees whatever is done with the tensor itself;
    - all values of small tensors, and at least one value of each row of the others, not all from the same columns;
    - one piece of 16 MiB in full, another one each time.

    So a change is seen at once, but for one: single values of a large tensor written behind torch's back (through
    `tensor.data`, numpy, or a kernel that does not count), that leave some value of each row as it was. That is seen when its
    piece has its turn: after at most (bytes of the weights) / 16 MiB calls; at once after `forget()`.
    Not seen is what code does: another `forward` of a class under the old name, or tensors in the closure of a function; and a
    tokenizer's `backend_tokenizer.model` replaced by another one of as many tokens, until `forget()`.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._seen: bytes | None = None
        self._digest = b""
        self._pieces: list[_Piece] = []
        self._next = 0
        self._samples: dict[tuple[Any, ...], torch.Tensor] = {}

    def digest(self) -> bytes:
        """32 bytes. The first call reads all weights (about 5 GB/s), later ones take some milliseconds.

        Raises:
            ValueError: the model cannot be digested now: a tensor has no data (device "meta"), or a module has a hook or a
            forward of its own, whose effect cannot be known.
        """
        inventory = take_inventory(self._model)
        seen = self._glance(inventory)
        if seen != self._seen or not self._next_piece_is_as_it_was():
            if self._seen is not None:
                _log.warning("model or tokenizer was changed: blocks cached for the old one will not be used")
            self._seen = None
            self._pieces = list(_read(inventory))
            self._next = 0
            self._digest = _join(_model_digest(inventory, self._pieces), tokenizer_digest(self._tokenizer))
            self._seen = seen
        return self._digest

    def forget(self) -> None:
        """Have the next `digest()` read everything again."""
        self._seen = None

    def _glance(self, inventory: Inventory) -> bytes:
        hasher = blake3.blake3(inventory.settings)
        by_kind: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        samples: dict[tuple[Any, ...], torch.Tensor] = {}
        identities = []
        for name, tensor in inventory.tensors:
            place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
            identities.append((name, None if tensor.is_inference() else tensor._version, *place))
            if tensor.numel():
                samples[place] = self._samples[place] if place in self._samples else _sample(tensor)
                by_kind.setdefault((tensor.dtype, tensor.device), []).append(samples[place].reshape(-1))
        self._samples = samples  # views: they hold the memory too, so that no other tensor can come to lie in the same place
        hasher.update(repr(identities).encode())
        for parts in by_kind.values():  # together, so that a GPU is asked once per dtype and not once per tensor
            hasher.update(_as_bytes(torch.cat(parts).cpu()))
        hasher.update(_tokenizer_glance(self._tokenizer))
        return hasher.digest()

    def _next_piece_is_as_it_was(self) -> bool:
        if not self._pieces:
            return True
        piece = self._pieces[self._next]
        self._next = (self._next + 1) % len(self._pieces)
        return _piece_digest(piece.values) == piece.digest


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bytes:
    """Digest over everything that decides the keys and values of a prompt, 32 bytes. Reads all weights; makes no copy
    of those on a CPU.

    Raises:
        ValueError: as `Fingerprint.digest`.
    """
    return _join(model_digest(model), tokenizer_digest(tokenizer))


def model_digest(model: PreTrainedModel) -> bytes:
    """BLAKE3 over configuration, settings, and every tensor of a model in the order of their names; 32 bytes.

    Raises:
        ValueError: as `Fingerprint.digest`.
    """
    inventory = take_inventory(model)
    return _model_digest(inventory, _read(inventory))


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> bytes:
    """BLAKE3 over a tokenizer: its vocabulary, merges, normalisation and pre-tokenisation, special and added tokens; 32
    bytes."""
    hasher = blake3.blake3(type(tokenizer).__name__.encode())
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        state = {name: value for name, value in json.loads(backend.to_str()).items() if name not in _TOKENIZER_STATE}
    else:
        state = {"vocab": tokenizer.get_vocab()}
        pieces = getattr(tokenizer, "sp_model", None)
        if pieces is not None:
            _update(hasher, pieces.serialized_model_proto())
    added = {str(index): str(token) for index, token in tokenizer.added_tokens_decoder.items()}
    state = {"state": state, "added": added, "special": tokenizer.special_tokens_map}
    _update(hasher, json.dumps(state, sort_keys=True, default=str).encode())
    return hasher.digest()


def _tokenizer_glance(tokenizer: PreTrainedTokenizerBase) -> bytes:
    """All of a tokenizer but its vocabulary and merges, which cannot be changed in place other than by adding to them."""
    state: list[Any] = [len(tokenizer), tokenizer.special_tokens_map]
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        state.append(id(backend))
        for part in ("normalizer", "pre_tokenizer", "post_processor"):
            stage = getattr(backend, part)
            state.append(None if stage is None else stage.__getstate__())
    return repr(state).encode()


def _join(model: bytes, tokenizer: bytes) -> bytes:
    return blake3.blake3(b"skymemory fingerprint 2" + model + tokenizer).digest()


def _model_digest(inventory: Inventory, pieces: Iterator[_Piece] | list[_Piece]) -> bytes:
    hasher = blake3.blake3()
    _update(hasher, inventory.settings)
    first_name: dict[tuple[Any, ...], str] = {}
    for name, tensor in inventory.tensors:
        place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        same_as = first_name.setdefault(place, name) if tensor.numel() else name
        _update(hasher, f"{name} {tensor.dtype} {list(tensor.shape)} {same_as}".encode())
    for piece in pieces:
        hasher.update(piece.digest)
    return hasher.digest()


def _read(inventory: Inventory) -> Iterator[_Piece]:
    """All tensors in pieces, those that lie in the same place (tied weights) once."""
    places = set()
    for _, tensor in inventory.tensors:
        place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and place not in places:
            places.add(place)
            rows = tensor.detach() if tensor.dim() else tensor.detach().reshape(1)
            row_bytes = rows[0].numel() * rows.element_size()
            for piece in torch.split(rows, max(1, _PIECE_BYTES // row_bytes)):
                yield _Piece(piece, _piece_digest(piece))


def _piece_digest(piece: torch.Tensor) -> bytes:
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    return hasher.update(_as_bytes(piece.contiguous().cpu())).digest()


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """A view of all values of a small tensor, and of values from every row, along diagonals, of a large one."""
    tensor = tensor.detach()
    if tensor.numel() <= _SMALL_VALUES:
        return tensor
    if tensor.is_contiguous():
        return tensor.view(-1)[:: max(1, tensor.shape[-1] - 1)]
    while tensor.dim() > 1:  # flattened it would be a copy, which shows no change
        tensor = tensor[:, 0]
    return tensor


def _as_bytes(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous CPU tensor. As bytes, because numpy does not know bfloat16."""
    array: Any = tensor.contiguous().view(torch.uint8).numpy()
    return memoryview(array)


def _update(hasher: blake3.blake3, data: bytes) -> None:
    hasher.update(len(data).to_bytes(8))
    hasher.update(data)
