"""The layer of a cache whose keys and values are partly loaded and partly computed, in any rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer


class ProjectedError(Exception):
    """Signal that a layer has projected its keys and values, and nothing after that is wanted."""


class LinkedLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # of transformers
    """Keys and values of all rows of a layer, [batch, kv_heads, tokens, head_dim].

    `update` writes new keys and values into chosen rows, where `DynamicLayer` appends them.

    Attributes:
        rows: Positions of the rows that the next update brings, [batch, rows].
        visible: Number of positions, counted from 0, that the attention of these rows gets.
        project_only: Have `update` raise `ProjectedError` once it has written keys and values.
        compare: Have `update` note how much the new keys differ from those that were there.
        deviation: Difference that was noted last, squared and summed over heads and channels, [batch, rows].
    """

    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self.rows = torch.empty((keys.shape[0], 0), dtype=torch.long, device=keys.device)
        self.visible = keys.shape[2]
        self.project_only = False
        self.compare = False
        self.deviation: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if self.compare:
            self.deviation = (key_states.float() - self._read(self.keys).float()).square().sum((1, 3))
        self._write(self.keys, key_states)
        self._write(self.values, value_states)
        if self.project_only:
            raise ProjectedError
        return self.keys[:, :, : self.visible], self.values[:, :, : self.visible]

    def _read(self, of: Tensor) -> Tensor:
        if len(self.rows) == 1:  # several times faster than to gather
            return of.index_select(2, self.rows[0])
        return of.gather(2, self.rows[:, None, :, None].expand(-1, of.shape[1], -1, of.shape[3]))

    def _write(self, into: Tensor, states: Tensor) -> None:
        if len(self.rows) == 1:
            into.index_copy_(2, self.rows[0], states)
        else:
            into.scatter_(2, self.rows[:, None, :, None].expand_as(states), states)
