"""Digest of a model and its tokenizer. If either of them changes, no old key matches.

The digest covers the whole tokenizer and all that decides the model's keys and values, except its code:

- Tensors (name, dtype, shape, every byte): parameters, buffers, and attributes such as the scales of quantised weights.
- Settings: the configuration, and the class, forward function and public attributes of each module. Attributes are numbers,
  words, None, lists and dictionaries of them, and objects, each as its class and public attributes. So the `scaling` of an
  adapter counts, which peft keeps in a dictionary, and so does the model's `peft_config`.

It leaves out what differs between hosts that should share a cache: the model's origin and device, the settings of generation,
and the version of transformers.

Hooks, and functions put in place of `forward`, may do anything with keys and values. So a model that has them is refused until
they are gone. Those of transformers, accelerate, peft and torch are allowed: the settings say all that they change.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any, TypeAlias

import blake3
import torch
from torch.nn.modules import module as torch_module

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 24
"""Bytes, about, of the pieces in which tensors are read. Other pieces give another digest."""
_SMALL_VALUES = 1 << 14
"""Most values of a tensor that every `digest()` reads in full, such as norms, biases and buffers."""
_LEFT_OUT = {
    # Origins, and facts that follow from the weights and the model's class.
    *("_name_or_path", "name_or_path", "base_model_name_or_path", "revision", "architectures", "dtype", "torch_dtype"),
    *("transformers_version", "peft_version", "loss_type", "device", "device_map", "hf_device_map"),
    # Settings of the choice of tokens, the form of results, and rows that training skips
    *("generation_config", "use_cache", "pad_token_id", "padding_idx", "bos_token_id", "eos_token_id"),
    *("output_attentions", "output_hidden_states", "return_dict", "id2label", "label2id", "problem_type", "inference_mode"),
}
_ADAPTER_SETTINGS = {"_active_adapter", "_disable_adapters"}
"""Private attributes of peft's layers that decide whether an adapter takes part."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_global_forward_hooks", "_global_forward_pre_hooks")
_HARMLESS = ("transformers.", "accelerate.", "peft.", "torch.")
"""Packages whose hooks only look on, move tensors between devices, or do what the settings say."""
_DEPTH_MAX = 8

_Reading: TypeAlias = tuple[list[torch.Tensor], bytes]
"""Views, and the digest that they had. They keep the memory, so that no other tensor gets the same place."""


class Fingerprint:
    """Digest of one model and tokenizer. All weights are read once, and again after a change.

    Every `digest()` compares, without reading all weights:

    - all settings, and the tokenizer's size, special and added tokens, normaliser, pre-tokeniser and post-processor;
    - each tensor's place in memory, and torch's count of in-place changes;
    - all values of small tensors, and at least one value of each row of the others, not all from the same columns;
    - one piece of 16 MiB in full, another one each time.

    So it notices a change at once, with one exception. `tensor.data`, numpy, or a kernel that does not count can write single
    values of a large tensor that are not compared. `digest()` notices this when it comes to that piece, or after `forget()`. It
    notices a `backend_tokenizer.model` replaced by one of as many tokens only after `forget()`, and changes of code, such as
    another `forward` of a class under the old name, never.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._seen: object = None
        self._digest = b""
        self._samples: _Reading = ([], b"")
        self._pieces: Iterator[_Reading] = iter(())

    def digest(self) -> bytes:
        """Return the digest, 32 bytes. The first call reads all weights (about 5 GB/s), later ones take some milliseconds.

        Raises:
            ValueError: The model cannot be digested now. A tensor has no data (device "meta"), or a module has a hook or a
                forward of its own, whose effect nobody can know.
        """
        settings, tensors = _inventory(self._model)
        shapes = [(name, str(tensor.dtype), tensor.shape) for name, tensor in tensors]
        places = [(one.data_ptr(), one.stride(), None if one.is_inference() else one._version) for _, one in tensors]
        seen = (settings, shapes, places, _tokenizer_glance(self._tokenizer))
        if seen != self._seen or any(_read(views)[1] != old for views, old in (self._samples, next(self._pieces))):
            if self._seen is not None:
                _log.warning("the model or its tokenizer was changed: blocks that were cached before are not used")
            self._seen = None
            values = [tensor.detach() for _, tensor in tensors]
            self._samples = _read([_sample(tensor) for tensor in values])
            pieces = [_read([piece]) for tensor in values for piece in _split(tensor)]
            digests = [digest.hex() for _, digest in pieces]
            state = json.dumps([settings, shapes, digests, _tokenizer_state(self._tokenizer)], sort_keys=True)
            self._digest = blake3.blake3(state.encode()).digest()
            self._pieces = cycle(pieces or [self._samples])
            self._seen = seen
        return self._digest

    def forget(self) -> None:
        """Have the next `digest()` read everything again."""
        self._seen = None


def _inventory(model: PreTrainedModel) -> tuple[str, list[tuple[str, torch.Tensor]]]:
    """Return a model's settings as JSON text, and its tensors by name, sorted. Of tied tensors there is the first."""
    config, tensors = model.config, dict[torch.Tensor, str]()

    def public(thing: Any) -> dict[str, Any]:
        shown = ((name, value) for name, value in getattr(thing, "__dict__", {}).items() if value is not config)
        return {name: value for name, value in shown if name[:1] != "_" or name in _ADAPTER_SETTINGS}

    def describe(path: str, value: Any, depth: int = 0) -> Any:  # noqa: PLR0911  one line for each kind
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                raise ValueError(
                    f"the model's tensor {path} is on device 'meta' and has no data: load the model before it is cached"
                )
            tensors.setdefault(value, path)
            value = public(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth > _DEPTH_MAX or isinstance(value, torch.nn.Module):  # each module is described by itself
            return type(value).__qualname__
        if isinstance(value, Mapping):
            items = ((str(name), inner) for name, inner in value.items() if name not in _LEFT_OUT)
            return {name: describe(f"{path}.{name}", inner, depth + 1) for name, inner in items}
        if isinstance(value, list | tuple):
            return [describe(f"{path}.{index}", inner, depth + 1) for index, inner in enumerate(value)]
        if isinstance(value, set | frozenset):
            return sorted(map(str, value))
        if isinstance(value, torch.dtype | Enum):
            return str(value)
        if hasattr(value, "to_dict"):
            return describe(path, value.to_dict(), depth + 1)
        return _name_of(value) if callable(value) else [type(value).__qualname__, describe(path, public(value), depth + 1)]

    settings = [type(model).__name__, describe("config", config)]
    _check_hooks("all modules", torch_module)
    for name, module in model.named_modules():
        _check_hooks(name or "the model", module)
        settings += type(module).__name__, name, _name_of(type(module).forward), describe(name, public(module))
        for own, value in chain(module._parameters.items(), module._buffers.items()):
            describe(f"{name}.{own}", value)
    return json.dumps(settings, sort_keys=True), sorted((name, tensor) for tensor, name in tensors.items())


def _check_hooks(where: str, module: Any) -> None:
    own = vars(module)
    found = [hook for kind in _HOOKS for hook in own.get(kind, {}).values()]
    for name in map(_name_of, [*found, own["forward"]] if "forward" in own else found):
        if not name.startswith(_HARMLESS):
            raise ValueError(
                f"{where} has the hook or forward function {name}: what it does to keys and values cannot be known, so nothing "
                "is cached until it is removed"
            )


def _name_of(function: Any) -> str:
    function = function.func if isinstance(function, functools.partial) else function
    thing = function if hasattr(function, "__qualname__") else type(function)
    # The module that has the code: `functools.wraps` gives a function the names of another one
    return f"{getattr(thing, '__globals__', {}).get('__name__', thing.__module__)}.{thing.__qualname__}"


def _tokenizer_glance(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return all of a tokenizer but vocabulary and merges, which change in place only by growing."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    stages = [getattr(backend, name, None) for name in ("normalizer", "pre_tokenizer", "post_processor")]
    states = [stage and stage.__getstate__() for stage in stages]
    return repr((len(tokenizer), tokenizer.special_tokens_map, id(backend), states))


def _tokenizer_state(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    """Return vocabulary, merges, normalisation, pre-tokenisation, and special and added tokens, as JSON values."""
    added = {index: str(token) for index, token in tokenizer.added_tokens_decoder.items()}
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        vocabulary = json.loads(backend.to_str()) | {"padding": None, "truncation": None}  # the last call's settings
    else:
        sentence_pieces = getattr(tokenizer, "sp_model", None)
        vocabulary = tokenizer.get_vocab(), sentence_pieces and sentence_pieces.serialized_model_proto().hex()
    return [type(tokenizer).__name__, added, special, vocabulary]


def _split(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows = tensor if tensor.dim() else tensor.reshape(1)
    return torch.split(rows, max(1, len(rows) * _PIECE_BYTES // max(1, tensor.nbytes)))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of all values of a small tensor, or of values from every row, along diagonals, of a large one."""
    if tensor.numel() <= _SMALL_VALUES:
        return tensor
    if tensor.is_contiguous():
        return tensor.view(-1)[:: max(1, tensor.shape[-1] - 1)]
    while tensor.dim() > 1:  # to flatten the tensor would copy it, and a copy shows no change
        tensor = tensor[:, 0]
    return tensor


def _read(views: list[torch.Tensor]) -> _Reading:
    # Joined, so that a GPU is read once per dtype and not once per tensor
    kinds: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for view in views:
        kinds.setdefault((view.dtype, view.device), []).append(view.reshape(-1))
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    for parts in kinds.values():
        joined = torch.cat(parts) if len(parts) > 1 else parts[0].contiguous()
        array: Any = joined.cpu().view(torch.uint8).numpy()  # as bytes, because numpy does not know bfloat16
        hasher.update(memoryview(array))
    return views, hasher.digest()
