"""Digest of a model and its tokenizer: if anything about them changes, no old key can match.

Covered are all weights and buffers (name, dtype, shape, every byte), the configuration, the settings of the modules
(epsilon, scaling, which adapters are active, training mode), and the tokenizer in full. Left out is what has no
influence on keys and values, and differs between hosts that should share a cache: where the model was loaded from, and
by which version of transformers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import blake3
import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_CONFIG_LEFT_OUT = {"_name_or_path", "name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype"}
"""origins, and what the weights and the model's class say better"""
_ADAPTER_SETTINGS = {"_active_adapter", "_disable_adapters"}
"""private attributes of peft's layers that decide whether an adapter takes part"""
_TOKENIZER_STATE = {"padding", "truncation"}
"""left in a fast tokenizer by the last call that padded or truncated"""
_PIECE_BYTES = 1 << 28
_SAMPLES = 8


class Fingerprint:
    """Digest of one model and tokenizer: computed in full once, and again when something was changed.

    Every `digest()` looks for a change without reading all weights: each tensor's place in memory, torch's count of
    in-place changes, and eight elements spread over it; all settings; the tokenizer's size and special tokens. What
    this cannot see is a change of single elements through `tensor.data`, which torch does not count: after such a
    change call `forget()`, or make a new `Fingerprint`.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._seen: bytes | None = None
        self._digest = b""

    def digest(self) -> bytes:
        """32 bytes. The first call reads all weights (about 5 GB/s), later ones take about a millisecond for a hundred
        tensors."""
        seen = self._glance()
        if seen != self._seen:
            if self._seen is not None:
                _log.warning("model or tokenizer was changed: blocks cached for the old one will not be used")
            self._digest = fingerprint(self._model, self._tokenizer)
            self._seen = seen
        return self._digest

    def forget(self) -> None:
        """Have the next `digest()` read everything again."""
        self._seen = None

    def _glance(self) -> bytes:
        hasher = blake3.blake3(_settings_text(self._model))
        samples: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        for name, tensor in _tensors(self._model):
            version = None if tensor.is_inference() else tensor._version
            identity = (
                name,
                tensor.data_ptr(),
                version,
                str(tensor.dtype),
                tuple(tensor.shape),
                tuple(tensor.stride()),
            )
            hasher.update(repr(identity).encode())
            if tensor.numel():
                flat = (
                    tensor.detach().as_strided((tensor.numel(),), (1,)) if tensor.is_contiguous() else tensor.detach().flatten()
                )
                samples.setdefault((tensor.dtype, tensor.device), []).append(flat[:: max(1, flat.numel() // _SAMPLES)])
        for parts in samples.values():  # together, so that a GPU is asked once per dtype and not once per tensor
            hasher.update(_as_bytes(torch.cat(parts).cpu()))
        special = (
            len(self._tokenizer),
            id(getattr(self._tokenizer, "backend_tokenizer", None)),
            self._tokenizer.special_tokens_map,
        )
        hasher.update(repr(special).encode())
        return hasher.digest()


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bytes:
    """Digest over everything that decides the keys and values of a prompt, 32 bytes. Reads all weights; makes no copy
    of those on a CPU."""
    hasher = blake3.blake3(b"skymemory fingerprint 1")
    for digest in (model_digest(model), tokenizer_digest(tokenizer)):
        hasher.update(digest)
    return hasher.digest()


def model_digest(model: PreTrainedModel) -> bytes:
    """BLAKE3 over configuration, settings, and every parameter and buffer of a model in the order of their names; 32
    bytes.

    Raises:
        ValueError: a tensor has no data (device "meta").
    """
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    _update(hasher, _settings_text(model))
    first_name: dict[tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype], str] = {}
    for name, tensor in _tensors(model):
        if tensor.is_meta:
            raise ValueError(f"the model's tensor {name} is on device 'meta' and has no data: load the model before it is cached")
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
        same_as = first_name.setdefault(place, name) if tensor.numel() else name
        _update(hasher, f"{name} {tensor.dtype} {list(tensor.shape)} {same_as}".encode())
        if same_as == name:  # tied weights are read once
            for piece in _pieces(tensor.detach()):
                hasher.update(_as_bytes(piece))
    return hasher.digest()


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


def _settings_text(model: PreTrainedModel) -> bytes:
    config = {name: value for name, value in model.config.to_dict().items() if name not in _CONFIG_LEFT_OUT}
    settings = [_module_settings(name, module) for name, module in model.named_modules()]
    return json.dumps([type(model).__name__, config, settings], sort_keys=True, default=str).encode()


def _module_settings(name: str, module: torch.nn.Module) -> list[Any]:
    attributes = {
        key: value
        for key, value in vars(module).items()
        if (isinstance(value, bool | int | float) and not key.startswith("_")) or key in _ADAPTER_SETTINGS
    }
    return [name, type(module).__name__, attributes]


def _tensors(model: PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters and buffers in the order of their names, tied ones under each name, buffers that are not saved
    too."""
    tensors: dict[str, torch.Tensor] = dict(model.named_parameters(remove_duplicate=False))
    tensors.update(model.named_buffers(remove_duplicate=False))
    yield from sorted(tensors.items())


def _pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensor in contiguous pieces on the CPU; without a copy if it is there already."""
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    flat = tensor.reshape(-1)
    for piece in torch.split(flat, max(1, _PIECE_BYTES // tensor.element_size())):
        yield piece.cpu()


def _as_bytes(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous CPU tensor. As bytes, because numpy does not know bfloat16."""
    array: Any = tensor.contiguous().view(torch.uint8).numpy()
    return memoryview(array)


def _update(hasher: blake3.blake3, data: bytes) -> None:
    hasher.update(len(data).to_bytes(8))
    hasher.update(data)
