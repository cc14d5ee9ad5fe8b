"""Canaries: requests whose segments were linked, and that are computed in full, too, so that a point that fails is closed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from transformers import DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer

from skymemory.prompt.manager import KVCManager
from skymemory.segments.canary_queue import Canary
from skymemory.segments.gate import Gate
from skymemory.segments.measure import compare, full_answer

_log = logging.getLogger(__name__)


def cache_beside(cache: DynamicCache, config: PretrainedConfig) -> DynamicCache:
    """Return a cache of the same keys and values, which stays as it is while `generate` makes the other one longer.

    The tensors are shared: transformers joins new ones for each token, and changes none.
    """
    beside = DynamicCache(config=config)
    for layer, (keys, values, *_) in zip(beside.layers, cache, strict=True):
        assert isinstance(layer, DynamicLayer)
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
    return beside


class CanaryCheck:
    """Computes canaries in full, and tells the gate."""

    def __init__(self, manager: KVCManager, gate: Gate, keep: Callable[[bytes], None]) -> None:
        """Use a model and its gate.

        Args:
            manager: Manager of the model's prompts, which stores the keys and values that are computed.
            gate: The gate.
            keep: Keeps and shares the gate's evidence of the model with this fingerprint.
        """
        self._manager = manager
        self._gate = gate
        self._keep = keep

    def __call__(self, canary: Canary) -> None:
        """Compare the model's answers, and store the prompt's keys and values under exact keys.

        A canary whose point is closed, or whose model has changed, counts for nothing.
        """
        manager, fingerprint = self._manager, bytes.fromhex(canary.point.fingerprint)
        if not self._gate.is_open(canary.point) or manager.fingerprint() != fingerprint:
            return
        model, engine = manager.engine.model, manager.engine
        full = engine.prefill(canary.tokens[:-1])
        answer = full_answer(model, canary.tokens, full)
        sample = compare(model, canary.tokens, answer, canary.cache)
        if manager.fingerprint() != fingerprint:
            return
        if why := self._gate.canary(canary.point, sample):
            _log.warning("segments are not linked with %s any more: %s", canary.point.strategy, why)
        self._keep(fingerprint)
        manager.add_blocks(canary.tokens, full, scope=canary.scope)
