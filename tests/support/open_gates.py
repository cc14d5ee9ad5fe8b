"""Gates that are open for linking, with made-up evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skymemory.prompt.manager import KVCManager
from skymemory.segments.evidence import Sample
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN
from skymemory.segments.grid import Option
from skymemory.segments.kept_gate import KeptGate
from skymemory.segments.strategy import Strategy
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def open_gate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sky: Constellation, strategy: str, switch_layer: int, folder: Path
) -> None:
    """Open one point of a model's gate, for the programs that use a state folder."""
    with SkyStore(sky) as store:
        manager = KVCManager(model, tokenizer, store)
        kept, fingerprint = KeptGate(lambda: store, manager.tenant_secret, folder), manager.fingerprint()
        point = Option(Strategy.parse(strategy), switch_layer).point(fingerprint.hex(), manager.codec.name)
        for _ in range(PROMPTS_MIN):
            kept.gate.checked(point, Sample(0.0, 1.0))
        for _ in range(POWER_PROMPTS_MIN):
            kept.gate.checked_shuffled(point, Sample(5.0, 0.0))
        assert kept.gate.is_open(point)
        kept.keep(fingerprint)
