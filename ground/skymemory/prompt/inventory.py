"""The parts of a model that decide keys and values: settings and tensors.

Settings are the configuration, and the class, the forward function and the public attributes of each module. Attributes are
numbers, words, None, nested lists and dictionaries of them, and objects, each as its class and public attributes. So the
`scaling` of an adapter counts, which peft keeps in a dictionary, and so does the model's `peft_config`. Tensors are parameters,
buffers, and tensors found as attributes, such as the scales of quantised weights.

Hooks, and functions put in place of `forward`, may do anything with keys and values, and their effect cannot be digested. So a
model that has them is refused until they are gone. Hooks of transformers, accelerate, peft and torch are allowed: they do not
change keys and values in other ways than the settings say.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules import module as torch_module

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LEFT_OUT = frozenset(
    {
        # Origins, and facts that follow from the weights and the model's class.
        *("_name_or_path", "name_or_path", "base_model_name_or_path", "revision", "architectures", "dtype", "torch_dtype"),
        *("transformers_version", "peft_version", "loss_type", "device", "device_map", "hf_device_map"),
        # Settings of the choice of tokens, the form of results, and rows that training skips.
        *("generation_config", "use_cache", "pad_token_id", "padding_idx", "bos_token_id", "eos_token_id"),
        *("output_attentions", "output_hidden_states", "return_dict", "id2label", "label2id", "problem_type", "inference_mode"),
    }
)
_ADAPTER_SETTINGS = frozenset({"_active_adapter", "_disable_adapters"})
"""Private attributes of peft's layers that decide whether an adapter takes part."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")
_HARMLESS = ("transformers.", "accelerate.", "peft.", "torch.")
"""Packages whose hooks only look on, move tensors between devices, or do what the settings say."""
_DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class Inventory:
    """The parts of a model that decide keys and values."""

    settings: bytes
    """Settings as JSON text."""
    tensors: list[tuple[str, torch.Tensor]]
    """Names and tensors in the order of names; tied tensors are under each of their names."""


def take_inventory(model: PreTrainedModel) -> Inventory:
    """Return all that decides a model's keys and values, except its code.

    Raises:
        ValueError: A tensor has no data, or a module has a hook or a forward of its own; the message names it.
    """
    walk = _Walk(model.config)
    settings: list[Any] = [type(model).__name__, walk.describe("config", model.config, 0)]
    _check_hooks("all modules", vars(torch_module), _GLOBAL_HOOKS)
    for name, module in model.named_modules():
        _check_hooks(name or "the model", vars(module), _HOOKS)
        settings.append([name, type(module).__name__, _name_of(type(module).forward), walk.attributes(name, module)])
        for kind in (module._parameters, module._buffers):
            for own, tensor in kind.items():
                if tensor is not None:
                    walk.describe(f"{name}.{own}" if name else own, tensor, 0)
    tensors = sorted(walk.tensors.items())
    for name, tensor in tensors:
        if tensor.is_meta:
            raise ValueError(f"the model's tensor {name} is on device 'meta' and has no data: load the model before it is cached")
    return Inventory(json.dumps(settings, sort_keys=True, default=str).encode(), tensors)


@dataclass(slots=True)
class _Walk:
    config: Any
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def attributes(self, path: str, thing: Any) -> dict[str, Any]:
        return {
            name: self.describe(f"{path}.{name}", value, 1)
            for name, value in vars(thing).items()
            if (not name.startswith("_") or name in _ADAPTER_SETTINGS) and name not in _LEFT_OUT and value is not self.config
        }

    def describe(self, path: str, value: Any, depth: int) -> Any:  # noqa: PLR0911  one line for each kind
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, torch.Tensor):
            self.tensors[path] = value
            return ["tensor", self.attributes(path, value) if value.__dict__ else None]
        if depth > _DEPTH_MAX or isinstance(value, torch.nn.Module):
            return type(value).__qualname__  # `take_inventory` describes each module by itself
        if isinstance(value, Mapping):
            items = ((str(name), inner) for name, inner in value.items() if name not in _LEFT_OUT)
            return {name: self.describe(f"{path}.{name}", inner, depth + 1) for name, inner in items}
        if isinstance(value, list | tuple):
            return [self.describe(f"{path}.{index}", inner, depth + 1) for index, inner in enumerate(value)]
        if isinstance(value, set | frozenset):
            return sorted(str(inner) for inner in value)
        if isinstance(value, torch.dtype | Enum):
            return str(value)
        if isinstance(value, torch.device):
            return "device"
        if callable(value) and not hasattr(value, "to_dict"):
            return _name_of(value)
        if hasattr(value, "to_dict"):
            return self.describe(path, value.to_dict(), depth + 1)
        inner = vars(value) if hasattr(value, "__dict__") else {}
        public = {name: part for name, part in inner.items() if not name.startswith("_")}
        return [type(value).__qualname__, self.describe(path, public, depth + 1)]


def _check_hooks(where: str, attributes: Mapping[str, Any], kinds: tuple[str, ...]) -> None:
    found = [hook for kind in kinds for hook in attributes.get(kind, {}).values()]
    if "forward" in attributes and kinds is _HOOKS:
        found.append(attributes["forward"])
    for hook in found:
        name = _name_of(hook)
        if not name.startswith(_HARMLESS):
            raise ValueError(
                f"{where} has the hook or forward function {name}: what it does to keys and values cannot be known, so nothing "
                "is cached until it is removed"
            )


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    thing = function if hasattr(function, "__qualname__") else type(function)
    # The module that has the code: `functools.wraps` gives a function the names of another one
    module = getattr(thing, "__globals__", {}).get("__name__", thing.__module__)
    return f"{module}.{thing.__qualname__}"
