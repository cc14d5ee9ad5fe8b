"""Keys and values of a segment that is computed alone, or is taken out of a prompt's cache, with keys before rotation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from transformers import DynamicCache

from skymemory.segments.decoder import Decoder
from skymemory.segments.errors import CancelledSegmentError


@torch.no_grad()
def capture(decoder: Decoder, tokens: Tensor, sinks: int = 0, cancelled: Callable[[], bool] = lambda: False) -> Tensor:
    """Compute a segment, or several of one length, as a prompt of its own.

    Args:
        decoder: The model's layers.
        tokens: Token ids, [batch, tokens], with the sinks.
        sinks: Number of tokens at the beginning that are computed and then left out.
        cancelled: Tells, before each layer, whether nobody waits for the segment any more.

    Returns:
        A tensor [layers - 1, 2, batch, kv_heads, tokens, head_dim] on the model's device: keys before rotation, and values, of
        all layers but the first.

    Raises:
        CancelledSegmentError: Nobody waits for the segment any more.
    """
    batch, number = tokens.shape
    positions = torch.arange(number, device=decoder.device).expand(batch, -1)
    hidden = decoder.embed(tokens)
    rows = decoder.rows(positions, hidden)
    captured = []
    for index in range(decoder.layers):
        if cancelled():
            raise CancelledSegmentError
        if index > 0:
            captured.append(torch.stack(decoder.before_rotation(index, hidden))[..., sinks:, :])
        if index < decoder.layers - 1:  # what the last layer makes of the hidden states is not kept
            hidden = decoder.run(index, hidden, rows, decoder.layer(number, batch))
    return torch.stack(captured)


@torch.no_grad()
def take_out(decoder: Decoder, cache: DynamicCache, tokens: Tensor, start: int) -> Tensor:
    """Return what a cache has of some tokens. Their keys are turned back from where they stand, in float32.

    Args:
        decoder: The model's layers.
        cache: The cache of one prompt, which is not changed.
        tokens: Token ids, [1, tokens].
        start: Position of the first of them.

    Returns:
        A tensor like that of `capture`. Rounding makes its keys differ a little from those that are caught before rotation.
    """
    span = slice(start, start + tokens.shape[1])
    positions = torch.arange(span.start, span.stop, device=decoder.device)[None]
    turns = decoder.rows(positions, decoder.embed(tokens)).turns
    taken = []
    for rotation, (keys, values, *_) in list(zip(decoder.rotations, cache, strict=True))[1:]:
        taken.append(torch.stack((rotation.unrotate(keys[:, :, span], *turns), values[:, :, span])))
    return torch.stack(taken)
