"""Conversion between caches of a Hugging Face transformers model and blocks of its key-value tensors.

transformers caches keys after the rotary embedding, per layer as [batch, kv_heads, tokens, head_dim]. Every forward pass changes
its `DynamicCache`, so that each cache made here has memory of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from skymemory.prompt.blocks import dtype_name
from skymemory.prompt.codecs import CodecError

PREFILL_TOKENS = 2048
"""Tokens of one forward pass: few enough to bound the memory of activations, and enough to keep the machine busy."""
_ROPE_BY_LENGTH = {"dynamic", "longrope"}
"""Types of rotary embedding that turn a key differently when more tokens follow."""


class UnsupportedModelError(ValueError):
    """The model's cache cannot be cut into blocks of tokens; the message says why."""


class LinkedCache(DynamicCache):
    """A cache in which some keys and values are not those that the model computes from all tokens before.

    They are of segments that were computed apart, and of all tokens behind such a segment, also of those that are generated. Only
    the tokens before the first one may be stored as blocks of a prompt.

    Attributes:
        exact_tokens: Number of tokens from the beginning whose keys and values are what the model computes.
    """

    def __init__(self, config: PretrainedConfig, exact_tokens: int) -> None:
        super().__init__(config=config)
        self.exact_tokens = exact_tokens


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shape, dtype and place of a model's key-value tensors."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    devices: tuple[torch.device, ...]
    """Device of each layer."""

    def block_shape(self, tokens: int) -> tuple[int, int, int, int, int]:
        """Return the shape of a block of `tokens` tokens: [layers, 2, kv_heads, tokens, head_dim]."""
        return self.layers, 2, self.kv_heads, tokens, self.head_dim


class HuggingFaceEngine:
    """One causal language model: its prefill, and the conversion of its caches to blocks and back."""

    def __init__(self, model: PreTrainedModel, prefill_tokens: int = PREFILL_TOKENS) -> None:
        """Run the model on one token to learn the geometry of its cache.

        Args:
            prefill_tokens: Most tokens of one forward pass.

        Raises:
            UnsupportedModelError: The model's cache does not hold plain keys and values of all tokens, or those of a token depend
                on the tokens after it.
        """
        self._model = model
        self._prefill_tokens = prefill_tokens
        self.rope = _rope(model)
        self.geometry = self._probe()

    @property
    def model(self) -> PreTrainedModel:
        """The model."""
        return self._model

    @property
    def vocabulary(self) -> int:
        """Number of the model's token ids, which start at 0."""
        embeddings: Any = self._model.get_input_embeddings()
        return int(embeddings.weight.shape[0])

    def prefill(self, tokens: Sequence[int], cache: DynamicCache | None = None) -> DynamicCache:
        """Compute keys and values of a prompt.

        Args:
            tokens: Token ids of the whole prompt.
            cache: Keys and values of a beginning of the prompt. The call continues and changes it.

        Returns:
            A cache over all tokens. A GPU has finished on return, so that a caller can measure the time.
        """
        cache = self.empty_cache() if cache is None else cache
        done = cache.get_seq_length()
        ids = torch.tensor([list(tokens[done:])], dtype=torch.long, device=self._model.device)
        with torch.no_grad():
            for piece in torch.split(ids, self._prefill_tokens, dim=1) if ids.numel() else ():
                # One token's logits are the least that can be asked for; only keys and values are needed
                self._model(input_ids=piece, past_key_values=cache, use_cache=True, logits_to_keep=1)
        for device in {keys.device for keys, _ in _tensors(cache)} if done < len(tokens) else ():
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        return cache

    def empty_cache(self) -> DynamicCache:
        """Return a cache of no tokens."""
        return DynamicCache(config=self._model.config)

    def check(self, cache: Any) -> int:
        """Return the number of tokens of a caller's cache that may be stored: all, but of a linked cache the exact ones only.

        Raises:
            ValueError: The cache is not of this model, or not of one prompt.
        """
        if not isinstance(cache, DynamicCache):
            raise ValueError(f"past_key_values is a {type(cache).__name__}; supported is transformers' DynamicCache")
        if cache.get_seq_length() == 0:
            return 0
        geometry = self.geometry
        wanted = (1, geometry.kv_heads, cache.get_seq_length(), geometry.head_dim)
        shapes = {tuple(tensor.shape) for pair in _tensors(cache) for tensor in pair}
        if len(cache.layers) != geometry.layers or shapes != {wanted}:
            raise ValueError(
                f"past_key_values has {len(cache.layers)} layers of shape {sorted(shapes)}; wanted are "
                f"{geometry.layers} of {wanted} (one prompt: take one row of a batch, without its padding)"
            )
        dtypes = {keys.dtype for keys, _ in _tensors(cache)}
        if dtypes != {geometry.dtype}:
            raise ValueError(f"past_key_values is {dtypes}; the model's is {geometry.dtype}")
        return min(wanted[2], cache.exact_tokens) if isinstance(cache, LinkedCache) else wanted[2]

    def block(self, cache: DynamicCache, start: int, end: int) -> torch.Tensor:
        """Return keys and values of tokens `start` to `end` - 1.

        Returns:
            A contiguous CPU tensor [layers, 2, kv_heads, tokens, head_dim].
        """
        device = self.geometry.devices[0]
        parts = [tensor[0, :, start:end].to(device) for pair in _tensors(cache) for tensor in pair]
        return torch.stack(parts).view(self.geometry.block_shape(end - start)).cpu()

    def cache(self, blocks: Sequence[torch.Tensor], tokens: int) -> DynamicCache:
        """Return a cache over the first tokens of a prompt.

        Args:
            blocks: CPU tensors [layers, 2, kv_heads, tokens, head_dim] of the prompt's first blocks, in order.
            tokens: Number of tokens to cover, at most those of the blocks. Further tokens of the blocks are left out.
        """
        cache = self.empty_cache()
        if tokens == 0:
            return cache
        geometry = self.geometry
        # Joined where the first layer is: a GPU takes a few large copies, and joins far faster than the host
        joined = torch.empty(
            (geometry.layers, 2, 1, geometry.kv_heads, tokens, geometry.head_dim),
            dtype=geometry.dtype,
            device=geometry.devices[0],
        )
        start = 0
        for block in blocks:
            end = min(start + block.shape[3], tokens)
            joined[:, :, 0, :, start:end] = block.to(joined.device)[:, :, :, : end - start]
            start = end
        for layer, device, pair in zip(cache.layers, geometry.devices, joined, strict=True):
            assert isinstance(layer, DynamicLayer)
            keys, values = pair.to(device)
            # Set here, because update() would copy both once more
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
        return cache

    def _probe(self) -> Geometry:
        config = self._model.config
        if getattr(config, "is_encoder_decoder", False):
            raise UnsupportedModelError("the model is an encoder-decoder; supported are decoder-only causal language models")
        unsupported = {type(layer).__name__ for layer in DynamicCache(config=config).layers if type(layer) is not DynamicLayer}
        if unsupported:
            raise UnsupportedModelError(
                f"the model's cache has layers of kind {', '.join(sorted(unsupported))}; supported is full attention in "
                "all layers (a sliding window forgets tokens, and a recurrent state cannot be cut into blocks)"
            )
        if self.rope is not None and self.rope.get("rope_type") in _ROPE_BY_LENGTH:
            raise UnsupportedModelError(
                f"the model's rotary embedding is of type {self.rope['rope_type']!r}: keys depend on the length of the "
                "whole prompt, so those of a beginning cannot be used again"
            )
        pairs = _tensors(self.prefill([0]))
        shapes = {tuple(tensor.shape) for pair in pairs for tensor in pair}
        if len(shapes) != 1:
            raise UnsupportedModelError(
                f"keys and values of a token have shapes {sorted(shapes)}; supported is one shape for all layers"
            )
        keys, _ = pairs[0]
        try:
            dtype_name(keys.dtype)
        except CodecError as error:
            raise UnsupportedModelError(str(error)) from error
        return Geometry(len(pairs), keys.shape[1], keys.shape[3], keys.dtype, tuple(one.device for one, _ in pairs))


def _tensors(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return keys and values of each layer of a cache that is not empty, each [batch, kv_heads, tokens, head_dim]."""
    return [(keys, values) for keys, values, *_ in cache]


def _rope(model: PreTrainedModel) -> dict[str, Any] | None:
    """Return the configuration's parameters of the rotary embedding; None if the model has none."""
    parameters = getattr(model.config.get_text_config(decoder=True), "rope_parameters", None)
    return json.loads(json.dumps(dict(parameters), default=str)) if parameters else None  # JSON only, for headers
