"""Gates that are open for linking, with made-up evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skymemory.prompt.manager import KVCManager
from skymemory.segments.evidence import Point, PromptSize, Sample
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.grid import Option, options
from skymemory.segments.groups import layer_groups
from skymemory.segments.kept_gate import KeptGate
from skymemory.segments.strategy import Strategy
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ANY_SIZE = PromptSize(segments=1000, segment_tokens=100_000, tokens=1_000_000)


def open_gate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sky: Constellation, strategy: str, switch_layer: int, folder: Path
) -> None:
    """Open one point of a model's gate, for the programs that use a state folder."""
    with SkyStore(sky) as store:
        manager = KVCManager(model, tokenizer, store)
        kept, fingerprint = KeptGate(lambda: store, manager.tenant_secret, folder), manager.fingerprint()
        option = Option(Strategy.parse(strategy), switch_layer)
        point = option.point(fingerprint.hex(), manager.codec.name, manager.block_tokens)
        _prove(kept.gate, point)
        kept.keep(fingerprint)


def opened(manager: KVCManager, strategy: str, size: PromptSize = ANY_SIZE) -> Gate:
    """Return a gate that has seen a strategy prove itself at all switch layers, with prompts of some size."""
    gate = Gate("here")
    for option in options([Strategy.parse(strategy)], layer_groups(manager.engine.geometry.layers)):
        _prove(gate, option.point(manager.fingerprint().hex(), manager.codec.name, manager.block_tokens), size)
    return gate


def _prove(gate: Gate, point: Point, size: PromptSize = ANY_SIZE) -> None:
    for _ in range(PROMPTS_MIN):
        gate.checked(point, Sample(0.0, 1.0), size)
    for _ in range(POWER_PROMPTS_MIN):
        gate.checked_shuffled(point, Sample(5.0, 0.0))
    assert gate.is_open(point)
