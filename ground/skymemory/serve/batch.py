"""One run of the model for several prompts, each with a cache of its own.

A batch as transformers makes it has one tensor for all rows: shorter rows are padded, and the tensor is copied with every token
and whenever a row comes or goes. Here rows keep their own memory. Everything but attention runs once for all rows, which is
where the time of a small batch goes. Attention runs once for each row, without padding and so without a mask.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from skymemory.prompt.huggingface import LinkedCache

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_NAME = "skymemory_rows"
_ROOM_TOKENS = 256
"""Tokens for which room is made at a time."""
_TOLERANCE = {torch.float32: 1e-3}
_TOLERANCE_OF_OTHERS = 0.05
"""Share of the largest logit by which rows together may differ from rows by themselves in the trial."""


class Batch:
    """Steps of one model, which change the rows."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._together = False
        if model.config._attn_implementation in ("sdpa", _NAME):
            self._together = self._works()
            if not self._together:
                with suppress(Exception):  # a model that refuses our attention keeps its own
                    model.set_attn_implementation("sdpa")

    @property
    def together(self) -> bool:
        """True if the model can run several rows at once; else each row runs by itself."""
        return self._together

    def step(self, tokens: Sequence[int], rows: Sequence[DynamicCache]) -> torch.Tensor:
        """Run the model for one more token of each row.

        Returns:
            Logits, shape [rows, vocabulary].
        """
        if len(rows) == 1 or not self._together:
            return torch.stack([self.read([token], row) for token, row in zip(tokens, rows, strict=True)])
        device = self._model.device
        ids = torch.tensor([[token] for token in tokens], dtype=torch.long, device=device)
        positions = torch.tensor([[row.get_seq_length()] for row in rows], dtype=torch.long, device=device)
        logits: torch.Tensor = self._model(
            input_ids=ids, position_ids=positions, past_key_values=_Joined(rows), use_cache=True, logits_to_keep=1
        ).logits
        return logits[:, -1]

    def read(self, tokens: Sequence[int], row: DynamicCache) -> torch.Tensor:
        """Run the model for more tokens of one row.

        Returns:
            Logits after the last of them, shape [vocabulary].
        """
        ids = torch.tensor([list(tokens)], dtype=torch.long, device=self._model.device)
        logits: torch.Tensor = self._model(input_ids=ids, past_key_values=row, use_cache=True, logits_to_keep=1).logits
        return logits[0, -1]

    @torch.no_grad()
    def _works(self) -> bool:
        """Return True if rows of different lengths give the same together as by themselves: some models have their own ways."""
        prompts, last = ([1, 2, 3, 4, 5], [3, 1]), (0, 2)

        def rows() -> list[DynamicCache]:
            made = [DynamicCache(config=self._model.config) for _ in prompts]
            for prompt, row in zip(prompts, made, strict=True):
                self.read(prompt, row)
            return [with_room(row) for row in made]

        try:
            self._model.set_attn_implementation(_NAME)
            alone = torch.stack([self.read([token], row) for token, row in zip(last, rows(), strict=True)])
            self._together = True
            together = self.step(last, rows())
        except Exception:  # a model may raise anything for what it does not know
            return False
        allowed = _TOLERANCE.get(alone.dtype, _TOLERANCE_OF_OTHERS) * alone.abs().max()
        return bool((together - alone).abs().max() <= allowed)


def with_room(cache: DynamicCache) -> DynamicCache:
    """Return a copy of a cache that grows without a copy of itself for each token.

    The copy of a `LinkedCache` is one, too: what is written behind linked segments is no more exact than they are.
    """
    made = copy.copy(cache)
    made.layers = [_RoomyLayer(keys, values) for keys, values in _tensors(cache)]
    return made


def exact_tokens(cache: DynamicCache) -> int:
    """Return for how many tokens from the beginning a cache has what the model computes."""
    return min(cache.get_seq_length(), cache.exact_tokens) if isinstance(cache, LinkedCache) else cache.get_seq_length()


def beginning(cache: DynamicCache, tokens: int) -> DynamicCache:
    """Return a cache of the first tokens of another one, all of which are exact.

    Both share the memory, and neither writes into it.
    """
    assert tokens <= exact_tokens(cache)
    made = DynamicCache()
    made.layers = [_layer(keys[:, :, :tokens], values[:, :, :tokens]) for keys, values in _tensors(cache)]
    return made


def _layer(keys: torch.Tensor, values: torch.Tensor) -> DynamicLayer:
    layer = DynamicLayer()  # type: ignore[no-untyped-call]  # transformers is typed in part
    layer.lazy_initialization(keys, values)
    layer.keys, layer.values = keys, values
    return layer


def _tensors(cache: DynamicCache) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for layer in cache.layers:
        assert isinstance(layer, DynamicLayer)
        assert layer.keys is not None
        assert layer.values is not None
        yield layer.keys, layer.values


class _RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers is typed in part
    """Keys and values with room behind them, into which new ones are written."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(keys, values)
        self._tokens = keys.shape[2]
        self._roomy = (keys, values)
        self._make_room(self._tokens + 1)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values, and return all."""
        start, end = self._tokens, self._tokens + key_states.shape[2]
        if end > self._roomy[0].shape[2]:
            self._make_room(end)
        for roomy, new in zip(self._roomy, (key_states, value_states), strict=True):
            roomy[:, :, start:end] = new
        self._tokens = end
        return self._show()

    def _make_room(self, tokens: int) -> None:
        room = -(-tokens // _ROOM_TOKENS) * _ROOM_TOKENS
        keys, values = (old.new_empty((*old.shape[:2], room, old.shape[3])) for old in self._roomy)
        for new, old in zip((keys, values), self._roomy, strict=True):
            new[:, :, : self._tokens] = old[:, :, : self._tokens]
        self._roomy = (keys, values)
        self._show()

    def _show(self) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (roomy[:, :, : self._tokens] for roomy in self._roomy)
        self.keys, self.values = keys, values
        return keys, values


class _JoinedLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """A layer of several caches. Its keys and values are lists, for `_attention`."""

    is_sliding = False

    def __init__(self, layers: list[DynamicLayer]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rows = layers

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Do nothing: the rows have their memory already."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Append its part to each row, and return all keys and values of each."""
        parts = zip(self._rows, torch.split(key_states, 1), torch.split(value_states, 1), strict=True)
        keys, values = zip(*(row.update(key, value) for row, key, value in parts), strict=True)
        return list(keys), list(values)

    def get_seq_length(self) -> int:
        """Return the tokens of the longest row."""
        return max(row.get_seq_length() for row in self._rows)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the sizes of a mask, which nobody uses."""
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        """Return -1: there is no limit."""
        return -1


class _Joined(Cache):
    """The caches of several rows, for one run of the model."""

    def __init__(self, rows: Sequence[DynamicCache]) -> None:
        super().__init__(layers=[_JoinedLayer(list(layers)) for layers in zip(*(row.layers for row in rows), strict=True)])


def _attention(module: torch.nn.Module, query: torch.Tensor, key: Any, value: Any, attention_mask: Any, **more: Any) -> Any:
    """Run transformers' attention. Joined rows run one by one, and each sees all of its own keys."""
    if isinstance(key, torch.Tensor):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **more)
    rows = zip(torch.split(query, 1), key, value, strict=True)
    return torch.cat([sdpa_attention_forward(module, *row, None, **more)[0] for row in rows]), None


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)
