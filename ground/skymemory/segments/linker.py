"""`Linker`: the cache of a prompt from pieces that were computed apart.

    linker = Linker(model)
    source = TensorSource(linker.compute(document))
    linked = linker.link(tokens, [Piece(40, len(document), source)], Strategy.parse("blend:15"))
    model.generate(ids, past_key_values=linked.cache)

All rows are computed up to the switch layer m. At m keys and values of all rows are computed, because their hidden states are
there. From m on only chosen rows go on: all that belong to no linked segment, and those that the strategy chooses. Above m the
keys and values of other rows are loaded, and keys are turned to their positions. Keys and values of layer 0 depend on the tokens
alone, so they are never loaded.

Sources: EPIC (LegoLink), and CacheBlend, section 4. Rows are ranked by how much their keys deviate at m, and filtered from layer
to layer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from skymemory.prompt.huggingface import PREFILL_TOKENS, LinkedCache
from skymemory.segments.capture import capture, take_out
from skymemory.segments.decoder import Decoder
from skymemory.segments.errors import CancelledLinkError
from skymemory.segments.linking import Linking, LinkReport
from skymemory.segments.pieces import Piece, check_pieces
from skymemory.segments.strategy import Strategy

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Linked:
    """A cache over all tokens of a prompt but the last one, which `generate` needs to run, and how it was made.

    It is a `LinkedCache` if not all of it is exact.
    """

    cache: DynamicCache
    report: LinkReport


class Linker:
    """Computes segments of a model, and links them. Thread-safe."""

    def __init__(self, model: PreTrainedModel, prefill_tokens: int = PREFILL_TOKENS) -> None:
        """Check with a few tokens that segments of the model can be linked.

        Args:
            prefill_tokens: Most tokens that a layer computes at once.

        Raises:
            UnsupportedModelError: They cannot; the message says why.
        """
        self._config = model.config
        self._decoder = Decoder(model, prefill_tokens)

    @property
    def layers(self) -> int:
        """Number of the model's layers."""
        return self._decoder.layers

    def compute(
        self,
        tokens: Sequence[int] | Tensor,
        *,
        sinks: int = 0,
        bos: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Tensor:
        """Compute a segment alone.

        Args:
            tokens: Token ids; a tensor [batch, tokens] computes several segments at once.
            sinks: Number of BOS tokens to compute it behind; they are dropped.
            bos: The model's BOS.
            cancelled: Tells, before each layer, whether nobody waits for the segment any more.

        Returns:
            A tensor [layers - 1, 2, kv_heads, tokens, head_dim] on the model's device, of all layers but the first: keys before
            rotation, and values. Of a batch it has one more dimension before `kv_heads`.

        Raises:
            CancelledSegmentError: Nobody waits for the segment any more.
            ValueError: The segment is empty, the model does not have a token id, or sinks are wanted and the model has no BOS.
        """
        ids = self._ids(tokens)
        if ids.shape[1] == 0:
            raise ValueError("a segment has one token or more")
        if sinks < 0 or (sinks > 0 and bos is None):
            raise ValueError(f"a segment behind {sinks} sinks needs a model with a BOS token")
        before = torch.full((len(ids), sinks), bos or 0, device=ids.device)
        captured = capture(self._decoder, torch.cat((before, ids), 1), sinks, cancelled)
        return captured if isinstance(tokens, Tensor) and tokens.dim() == 2 else captured[:, :, 0]

    def take_out(self, cache: DynamicCache, tokens: Sequence[int], start: int) -> Tensor:
        """Return what the cache of one prompt has of some tokens, as `compute` returns a segment. Nothing is computed.

        Args:
            cache: Keys and values of the prompt, which are not changed.
            tokens: Token ids.
            start: Position of the first of them.

        Raises:
            ValueError: The model does not have a token id, or the cache does not cover all of the tokens.
        """
        covered = cache.get_seq_length()
        if not tokens or start + len(tokens) > covered:
            raise ValueError(f"tokens {start} to {start + len(tokens) - 1} are wanted of a cache that covers {covered}")
        return take_out(self._decoder, cache, self._ids(tokens), start)[:, :, 0]

    def switch_layer(self, strategy: Strategy, wanted: int | None, ahead_layers: int = 0) -> int:
        """Return the switch layer, which is the lowest one by default.

        Args:
            strategy: The strategy.
            wanted: The switch layer that is wanted.
            ahead_layers: Layers of which all rows are computed already.

        Raises:
            ValueError: It does not go with the strategy, or is below layers that are computed already.
        """
        lowest = max(strategy.switch_layer_min, ahead_layers)
        switch = lowest if wanted is None else wanted
        if not lowest <= switch <= self.layers:
            raise ValueError(f"the switch layer is {switch}; allowed for {strategy} are {lowest} to {self.layers}")
        return switch

    def begin(self, tokens: Sequence[int] | Tensor, cancelled: Callable[[], bool] = lambda: False) -> Linking:
        """Return the linking of a prompt whose first layers may be computed before it is known what can be loaded.

        Args:
            tokens: Token ids of the prompt; a tensor [batch, tokens] begins several.
            cancelled: Tells, before each layer, whether nobody waits for the cache any more.

        Raises:
            ValueError: There is no token, or the model does not have one.
        """
        return Linking(self._decoder, self._checked(tokens), cancelled)

    def link(
        self,
        tokens: Sequence[int] | Tensor | Linking,
        pieces: Sequence[Piece],
        strategy: Strategy,
        *,
        prefix: DynamicCache | None = None,
        switch_layer: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Linked:
        """Make the cache of a prompt.

        What a source does not give is computed, and an error on the way has all computed: the cache is always complete.

        Args:
            tokens: Token ids of the prompt; a tensor [batch, tokens] links several prompts whose pieces stand at the same places.
                Or what `begin` returned; layers that were computed ahead are neither loaded nor computed again.
            pieces: Segments in the prompt, in order. A part of one that the prefix covers is not used.
            strategy: Strategy that says which rows of segments are computed again.
            prefix: Exact keys and values of a beginning of the prompt. They are copied.
            switch_layer: The switch layer; 1 for a blend and else 0 by default. It is no lower than the layers computed ahead.
            cancelled: Tells, before each layer, whether nobody waits for the cache any more. `begin` has got its own.

        Raises:
            CancelledLinkError: Nobody waits for the cache any more.
            ValueError: Pieces overlap or do not lie in the prompt, the model does not have a token id, the strategy is `auto`, or
                it does not go with the sinks or the switch layer.
        """
        begin = time.monotonic()
        work = tokens if isinstance(tokens, Linking) else Linking(self._decoder, self._checked(tokens), cancelled)
        ids, ahead_s = work.tokens, work.ahead_s
        check_pieces(pieces, ids.shape[1], strategy)
        switch = self.switch_layer(strategy, switch_layer, work.ahead_layers)
        try:
            work.run(pieces, strategy, prefix, switch)
        except CancelledLinkError:
            raise
        except Exception as error:  # whatever it is, the prompt can be computed
            _log.warning("segments could not be linked, so the whole prompt is computed", exc_info=True)
            work = Linking(self._decoder, ids, work.cancelled)
            work.run([], strategy, prefix, self.layers)
            work.why = f"an error: {error!r}"
        report = work.report(ahead_s + time.monotonic() - begin)
        return Linked(self._cache(work, report.exact_tokens, ids.shape[1] - 1), report)

    def _checked(self, tokens: Sequence[int] | Tensor) -> Tensor:
        ids = self._ids(tokens)
        if ids.shape[1] == 0:
            raise ValueError("a prompt has one token or more")
        return ids

    def _ids(self, tokens: Sequence[int] | Tensor) -> Tensor:
        ids = torch.as_tensor(tokens, dtype=torch.long)
        ids = ids if ids.dim() == 2 else ids[None]
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self._decoder.vocabulary:
            raise ValueError(f"token ids are {ids.min()} to {ids.max()}; the model has 0 to {self._decoder.vocabulary - 1}")
        return ids.to(self._decoder.device)

    def _cache(self, work: Linking, exact_tokens: int, tokens: int) -> DynamicCache:
        is_exact = exact_tokens == tokens
        cache = DynamicCache(config=self._config) if is_exact else LinkedCache(self._config, exact_tokens)
        for layer, made in zip(cache.layers, work.kept, strict=True):
            if made.keys.shape[2] > 0:
                assert isinstance(layer, DynamicLayer)
                layer.lazy_initialization(made.keys, made.values)
                layer.keys, layer.values = made.keys, made.values
        return cache
