"""The decoder layers of a transformers model, called one by one for any rows of a prompt.

The layers are the model's own and stay untouched. They get hidden states, positions, cos and sin of the chosen rows, and a cache
whose layers are `LinkedLayer`. Nothing here keeps a state of a prompt, so several threads may use one decoder.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from skymemory.prompt.huggingface import PREFILL_TOKENS, HuggingFaceEngine, UnsupportedModelError
from skymemory.segments.linked_layer import LinkedLayer, ProjectedError
from skymemory.segments.rotation import Rotation, find_rotation
from skymemory.segments.rows import Rows, take

_CHECKED_TOKENS: Final = 16
_FAR: Final = 1000
"""First position of the far tokens of the check, less where the model has fewer positions."""
_NOISE: Final = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference between two orders of adding up, as a part of the largest value."""
_ROUNDINGS: Final = 8
"""Largest error of a rotation, in units of the last place of the largest key."""


class Decoder:
    """The decoder layers of one causal language model.

    Attributes:
        geometry: Shape, dtype and place of the model's keys and values.
        layers: Number of layers.
        vocabulary: Number of token ids, which start at 0.
        rotations: Rotation of the keys of each layer.
    """

    def __init__(self, model: PreTrainedModel, prefill_tokens: int = PREFILL_TOKENS) -> None:
        """Check with a few tokens that the layers, called one by one, do what the model does.

        Args:
            prefill_tokens: Most rows of one call of a layer, which bounds the memory of activations and masks.

        Raises:
            UnsupportedModelError: They do not; the message says why.
        """
        engine = HuggingFaceEngine(model)
        self.geometry = engine.geometry
        self.layers = self.geometry.layers
        self.vocabulary = engine.vocabulary
        self._prefill_tokens = prefill_tokens
        self._causal_without_mask = False
        base: Any = model.base_model
        self._model: Any = base
        self._stack: Any = getattr(base, "layers", None)
        self._rotary: Any = getattr(base, "rotary_emb", None)
        self._check_parts()
        try:
            with torch.no_grad():
                self.rotations = self._check_layers()
        except UnsupportedModelError:
            raise
        except Exception as error:
            raise UnsupportedModelError(f"the model's layers cannot be called one by one: {error!r}") from error

    @property
    def device(self) -> torch.device:
        """The device of all layers."""
        return self.geometry.devices[0]

    def await_device(self) -> None:
        """Wait until a GPU has computed what it was told to compute."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return what the first layer gets for tokens [batch, tokens]: [batch, tokens, hidden]."""
        hidden: Tensor = self._model.get_input_embeddings()(tokens)
        return hidden

    def layer(self, tokens: int, batch: int) -> LinkedLayer:
        """Return a layer of a cache with room for as many tokens; what is in it at first means nothing."""
        geometry = self.geometry
        shape = (batch, geometry.kv_heads, tokens, geometry.head_dim)
        keys, values = (torch.empty(shape, dtype=geometry.dtype, device=self.device) for _ in range(2))
        return LinkedLayer(keys, values)

    def rows(self, positions: Tensor, hidden: Tensor) -> Rows:
        """Return the rows at positions [batch, rows], with the model's cos and sin; `hidden` tells their dtype."""
        return Rows(positions, self._rotary(hidden, position_ids=positions[:1] if positions.stride(0) == 0 else positions))

    def run(self, index: int, hidden: Tensor, rows: Rows, kept: LinkedLayer) -> Tensor:
        """Run a layer for chosen rows. Their keys and values go into `kept`.

        Args:
            index: Number of the layer, from 0.
            hidden: Hidden states of the rows, [batch, rows, hidden].
            rows: The rows.
            kept: Keys and values of the layer. All positions up to the last row that are not among the rows must be there.

        Returns:
            Hidden states of the rows behind the layer.
        """
        done, deviations = [], []
        for part in rows.parts(self._prefill_tokens):
            done.append(self._call(index, hidden, rows, kept, part))
            deviations.append(kept.deviation)
        kept.deviation = _joined(deviations)
        return torch.cat(done or [hidden], 1) if len(done) != 1 else done[0]

    def project(self, index: int, hidden: Tensor, rows: Rows, kept: LinkedLayer) -> None:
        """Write keys and values of rows into `kept`, and compute nothing else of the layer. The arguments are those of `run`."""
        deviations = []
        kept.project_only = True
        for part in rows.parts(self._prefill_tokens):
            try:
                self._call(index, hidden, rows, kept, part)
            except ProjectedError:
                deviations.append(kept.deviation)
            else:
                raise UnsupportedModelError(f"layer {index} does not give its keys and values to the cache")
        kept.deviation = _joined(deviations)
        kept.project_only = False

    def before_rotation(self, index: int, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys before rotation, and values, of hidden states: each [batch, kv_heads, tokens, head_dim].

        A turn by nothing (cos 1, sin 0) leaves each bit of a key as it is. So the model's own layer gives keys before rotation,
        behind its norms and whatever else it does to them, without hooks.
        """
        batch, tokens = hidden.shape[:2]
        rows = self.rows(torch.arange(tokens, device=hidden.device).expand(batch, -1), hidden)
        cos, sin = rows.turns
        kept = self.layer(tokens, batch)
        self.project(index, hidden, Rows(rows.positions, (torch.ones_like(cos), torch.zeros_like(sin))), kept)
        return kept.keys, kept.values

    def _call(self, index: int, hidden: Tensor, rows: Rows, kept: LinkedLayer, part: slice) -> Tensor:
        kept.rows, kept.deviation = rows.positions[:, part], None
        kept.visible = rows.visible(part)
        # A part that begins at position 0 and leaves none out may need no mask, and runs faster without one
        whole = part.start == 0 and kept.visible == part.stop
        mask = None if whole and self._causal_without_mask else rows.mask(part, kept.visible, hidden.dtype)
        cos, sin = rows.turns
        out = self._stack[index](
            hidden[:, part],
            attention_mask=mask,
            position_ids=kept.rows,
            past_key_values=Cache(layers=[kept] * self.layers),  # the layer asks for the one of its number
            use_cache=True,
            position_embeddings=(cos[:, part], sin[:, part]),
        )
        result: Tensor = out[0] if isinstance(out, tuple) else out
        return result

    def _check_parts(self) -> None:
        if self._stack is None or self._rotary is None or len(self._stack) != self.layers:
            raise UnsupportedModelError("the model has no list of decoder layers with one rotary embedding for all of them")
        if len(set(self.geometry.devices)) > 1:
            raise UnsupportedModelError("the model's layers are on several devices; segments are linked on one")
        if self.layers < 2:
            raise UnsupportedModelError("the model has one layer, and that of segments is never kept")

    def _check_layers(self) -> tuple[Rotation, ...]:
        """Compare layers, keys and rotations with the model's own, at near and at far positions."""
        self._check_masks()
        limit = getattr(self._model.config.get_text_config(decoder=True), "max_position_embeddings", None) or 2 * _FAR
        far = max(1, min(_FAR, limit - _CHECKED_TOKENS))
        self._check_at(1)
        return tuple(self._check_at(far))

    def _check_masks(self) -> None:
        """Check that attention takes a mask of floats for some rows, and learn whether all rows need none."""
        hidden = self.embed(self._checked_tokens())
        self.before_rotation(0, hidden)  # refuses layers that leave the cache out
        rows = self.rows(torch.arange(_CHECKED_TOKENS, device=self.device)[None], hidden)
        kept = self.layer(_CHECKED_TOKENS, 1)
        whole = self.run(0, hidden, rows, kept)
        some = torch.tensor([[5, _CHECKED_TOKENS - 1]], device=self.device)
        before = self.run(0, take(hidden, some), rows.at(some), kept)
        for changed in kept.keys, kept.values:
            changed[:, :, 6:-1] *= -1  # the second row sees that, and the first must not
        after = self.run(0, take(hidden, some), rows.at(some), kept)
        same = [torch.equal(before[:, row], after[:, row]) for row in range(2)]
        if same != [True, False] or not _near(before, take(whole, some)):
            raise UnsupportedModelError("the model's attention does not heed a mask of floats")
        self._causal_without_mask = True
        with suppress(Exception):  # an attention may insist on a mask
            bare = self.run(0, hidden, rows, kept)
            other = self.run(0, torch.cat((hidden[:, :-1], -hidden[:, :1]), 1), rows, kept)
            self._causal_without_mask = _near(bare, whole) and torch.equal(bare[:, :-1], other[:, :-1])
            return
        self._causal_without_mask = False

    def _checked_tokens(self) -> Tensor:
        return torch.tensor([[(7919 * index + 1) % self.vocabulary for index in range(_CHECKED_TOKENS)]], device=self.device)

    def _check_at(self, first: int) -> list[Rotation]:
        tokens = self._checked_tokens()
        places = torch.arange(_CHECKED_TOKENS, device=self.device)[None]
        own = self._model(input_ids=tokens, position_ids=places + first, use_cache=True).past_key_values
        hidden = self.embed(tokens)
        turns = self.rows(places + first, hidden).turns
        if not all(part.dim() == 3 and part.shape[1] == _CHECKED_TOKENS for part in turns):
            raise UnsupportedModelError("the model's rotary embedding does not give one cos and sin for each position")
        rows = Rows(places, turns)
        rotations = []
        for index in range(self.layers):
            before, values = self.before_rotation(index, hidden)
            kept = self.layer(_CHECKED_TOKENS, 1)
            hidden = self.run(index, hidden, rows, kept)
            why = f"layer {index}, called alone, does not give what the whole model gives"
            _compare(kept.keys, own.layers[index].keys, why)
            _compare(values, own.layers[index].values, why)
            rotation, error = find_rotation(before, kept.keys, *turns)
            if not error <= _ROUNDINGS * torch.finfo(kept.keys.dtype).eps * float(before.abs().max()):
                raise UnsupportedModelError(f"layer {index} turns keys in a way that is not known here (error {error:.2g})")
            rotations.append(rotation)
        return rotations


def _joined(deviations: list[Tensor | None]) -> Tensor | None:
    known = [deviation for deviation in deviations if deviation is not None]
    return torch.cat(known, 1) if known else None


def _near(one: Tensor, other: Tensor) -> bool:
    return _error(one, other) <= _NOISE.get(other.dtype, 0.0) * float(other.abs().max())


def _error(one: Tensor, other: Tensor) -> float:
    return float((one.float() - other.float()).abs().max())


def _compare(one: Tensor, other: Tensor, why: str) -> None:
    if not _near(one, other):
        raise UnsupportedModelError(f"{why} (error {_error(one, other):.2g})")
