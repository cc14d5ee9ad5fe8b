"""Keys and values of a segment that is computed alone, with keys before rotation."""

from __future__ import annotations

import torch
from torch import Tensor

from skymemory.segments.decoder import Decoder


@torch.no_grad()
def capture(decoder: Decoder, tokens: Tensor, sinks: int = 0) -> Tensor:
    """Compute a segment, or several of one length, as a prompt of its own.

    Args:
        decoder: The model's layers.
        tokens: Token ids, [batch, tokens], with the sinks.
        sinks: Number of tokens at the beginning that are computed and then left out.

    Returns:
        A tensor [layers - 1, 2, batch, kv_heads, tokens, head_dim] on the model's device: keys before rotation, and values, of
        all layers but the first.
    """
    batch, number = tokens.shape
    positions = torch.arange(number, device=decoder.device).expand(batch, -1)
    hidden = decoder.embed(tokens)
    rows = decoder.rows(positions, hidden)
    captured = []
    for index in range(decoder.layers):
        if index > 0:
            captured.append(torch.stack(decoder.before_rotation(index, hidden))[..., sinks:, :])
        if index < decoder.layers - 1:  # what the last layer makes of the hidden states is not kept
            hidden = decoder.run(index, hidden, rows, decoder.layer(number, batch))
    return torch.stack(captured)
