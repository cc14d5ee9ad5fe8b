"""Matrix products in float32 for a 16-bit model on a processor that has none of its own for 16 bits.

PyTorch then multiplies 16-bit matrices element by element, ten times slower than it multiplies those of float32. Both add up in
float32 and round once, so that results differ by the order of adding up alone: in about one of 10,000 values, by the last bit.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

_ROWS_MIN: Final = 4
"""Fewest rows for which reading the weights twice costs less than it saves."""


class _Float32Linear(nn.Linear):
    def forward(self, rows: Tensor) -> Tensor:
        if rows.numel() < _ROWS_MIN * self.in_features:
            return super().forward(rows)
        bias = None if self.bias is None else self.bias.float()
        return linear(rows.float(), self.weight.float(), bias).to(rows.dtype)


def has_slow_products(model: PreTrainedModel) -> bool:
    """Return True if the model computes on a processor that has no matrix products for the model's type."""
    if model.device.type != "cpu" or model.dtype not in {torch.bfloat16, torch.float16}:
        return False
    of_dtype = "bf16" if model.dtype is torch.bfloat16 else "fp16"
    is_supported = getattr(torch.ops.mkldnn, f"_is_mkldnn_{of_dtype}_supported", None)
    return is_supported is not None and not is_supported()


def with_float32_products(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model of the same weights, which are not copied, whose linear layers multiply in float32.

    The model that is given stays as it is.
    """
    shared = [*model.parameters(), *model.buffers()]
    copy = deepcopy(model, {id(tensor): tensor for tensor in shared})
    for module in copy.modules():
        if type(module) is nn.Linear:  # no other kind is known well enough
            module.__class__ = _Float32Linear
    return copy
