"""Digest of a model and its tokenizer. If either of them changes, no old key matches.

The digest covers all weights and buffers (name, dtype, shape, every byte), the configuration, the settings of modules and
adapters (`skymemory.prompt.inventory` lists them), and the whole tokenizer. It leaves out facts that do not influence keys and
values but differ between hosts that should share a cache: the model's origin and device, the settings of generation, and the
version of transformers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import blake3
import torch

from skymemory.prompt.inventory import Inventory, take_inventory

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_TOKENIZER_STATE = {"padding", "truncation"}
"""State that the last call that padded or truncated left in a fast tokenizer; no part of the digest."""
_PIECE_BYTES = 1 << 24
"""Bytes, about, of the pieces in which tensors are read. Other pieces give another digest."""
_SMALL_VALUES = 1 << 14
"""Most values of a tensor that every `digest()` reads in full, such as norms, biases and buffers."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a tensor, with its digest when all weights were read last."""

    values: torch.Tensor
    """View of the part, which shows the tensor's present values."""
    digest: bytes


class Fingerprint:
    """Digest of one model and tokenizer. All weights are read once, and again after a change.

    Every `digest()` looks for a change without reading all weights. It compares:

    - all settings, the tokenizer's vocabulary size, special tokens, normaliser, pre-tokeniser and post-processor;
    - each tensor's place in memory, and torch's count of in-place changes, which grows with each operation on the tensor itself;
    - all values of small tensors, and at least one value of each row of the others, not all from the same columns;
    - one piece of 16 MiB in full, another one each time.

    So `digest()` notices a change at once, with one exception. `tensor.data`, numpy, or a kernel that does not count can write
    single values of a large tensor and leave the compared values of each row as they were. `digest()` notices this when it
    compares that piece, after at most (bytes of the weights) / 16 MiB calls, or at once after `forget()`.

    It never notices changes of code: another `forward` of a class under the old name, or tensors in the closure of a function.
    Before `forget()` it does not notice a `backend_tokenizer.model` that was replaced by another one of as many tokens.
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
        """Return the digest, 32 bytes. The first call reads all weights (about 5 GB/s), later ones take some milliseconds.

        Raises:
            ValueError: The model cannot be digested now. A tensor has no data (device "meta"), or a module has a hook or a
                forward of its own, whose effect nobody can know.
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
        self._samples = samples  # views keep the memory, so that no other tensor gets the same place
        hasher.update(repr(identities).encode())
        for parts in by_kind.values():  # joined, so that a GPU is read once per dtype and not once per tensor
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
    """Return a digest of all that decides the keys and values of a prompt, 32 bytes.

    It reads all weights, and copies none that are on a CPU.

    Raises:
        ValueError: The model cannot be digested (`Fingerprint.digest`).
    """
    return _join(model_digest(model), tokenizer_digest(tokenizer))


def model_digest(model: PreTrainedModel) -> bytes:
    """Return the BLAKE3 digest of a model's configuration, settings, and tensors in the order of their names, 32 bytes.

    Raises:
        ValueError: The model cannot be digested (`Fingerprint.digest`).
    """
    inventory = take_inventory(model)
    return _model_digest(inventory, _read(inventory))


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> bytes:
    """Return the BLAKE3 digest of a tokenizer, 32 bytes.

    It covers vocabulary, merges, normalisation, pre-tokenisation, and special and added tokens.
    """
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
    """Return all of a tokenizer but vocabulary and merges, which change in place only by growing."""
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
    """Yield all tensors in pieces, and those of one place in memory (tied weights) once."""
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
    """Return a view of all values of a small tensor, or of values from every row, along diagonals, of a large one."""
    tensor = tensor.detach()
    if tensor.numel() <= _SMALL_VALUES:
        return tensor
    if tensor.is_contiguous():
        return tensor.view(-1)[:: max(1, tensor.shape[-1] - 1)]
    while tensor.dim() > 1:  # to flatten the tensor would copy it, and a copy shows no change
        tensor = tensor[:, 0]
    return tensor


def _as_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the memory of a contiguous CPU tensor as bytes, because numpy does not know bfloat16."""
    array: Any = tensor.contiguous().view(torch.uint8).numpy()
    return memoryview(array)


def _update(hasher: blake3.blake3, data: bytes) -> None:
    hasher.update(len(data).to_bytes(8))
    hasher.update(data)
