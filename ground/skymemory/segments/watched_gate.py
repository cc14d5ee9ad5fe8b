"""`WatchedGate`: the gate of one manager's model, which checks open and canaries watch."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skymemory.common.progress import Progress
from skymemory.prompt.huggingface import LinkedCache
from skymemory.prompt.manager import KVCManager
from skymemory.segments.canaries import CanaryCheck, cache_beside
from skymemory.segments.canary_queue import Canaries, Canary
from skymemory.segments.check import CheckPrompt, check_strategies
from skymemory.segments.errors import SegmentError
from skymemory.segments.float32_products import has_slow_products, with_float32_products
from skymemory.segments.gate import Gate
from skymemory.segments.grid import Option
from skymemory.segments.kept_gate import KeptGate
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.planner import Way


class WatchedGate:
    """Evidence of what `auto` may link. Thread-safe.

    Attributes:
        gate: The gate.
        canaries: Canaries that wait.
    """

    def __init__(self, manager: KVCManager, gate: Gate | None, folder: Path | None, is_canary: Callable[[bytes], bool]) -> None:
        """Use the gate of the host, or one of the caller's, which is neither kept nor shared.

        Args:
            manager: The manager of the model's prompts.
            gate: The caller's gate.
            folder: Folder of the host's records; the state folder by default.
            is_canary: Chooses canaries from a request's tokens and a number of its own.
        """
        self._manager = manager
        self._kept = KeptGate(lambda: manager.store, manager.tenant_secret, folder) if gate is None else None
        self.gate = self._kept.gate if self._kept is not None else gate or Gate("")
        self.canaries = Canaries(CanaryCheck(manager, self.gate, self._keep))
        self._is_canary = is_canary
        self._requests, self._first_request = itertools.count(), os.urandom(8)

    def look(self, fingerprint: bytes) -> str:
        """Have the gate see what other programs have kept; return the reason why the host's record cannot be used, or ''."""
        return "" if self._kept is None else self._kept.look(fingerprint)

    def check(
        self,
        linker: Linker,
        prompts: Sequence[CheckPrompt],
        grid: Sequence[Option],
        *,
        bos: int | None,
        stop_early: bool,
        progress: Progress,
    ) -> list[dict[str, Any]]:
        """Check options as `SegmentManager.check` does, and keep the evidence when that has ended."""
        manager, fingerprint = self._manager, self._manager.fingerprint()
        if self._kept is not None:
            self._kept.look(fingerprint)
            self._kept.take(fingerprint)
        model = manager.engine.model
        if has_slow_products(model):
            model = with_float32_products(model)
            linker = Linker(model)
        trial = Gate(self.gate.host)
        trial.join(self.gate.record(fingerprint.hex(), shared=False))
        figures = check_strategies(
            linker,
            model,
            prompts,
            grid,
            trial,
            fingerprint=fingerprint.hex(),
            codec=manager.codec,
            block_tokens=manager.block_tokens,
            bos=bos,
            stop_early=stop_early,
            progress=progress,
        )
        if manager.fingerprint() != fingerprint:
            raise SegmentError("the model was changed while it was checked; check it again")
        self.gate.join(trial.record(fingerprint.hex(), shared=False))
        self._keep(fingerprint)
        return figures

    def consider(self, tokens: list[int], way: Way, linked: Linked, scope: bytes = b"") -> None:
        """Have 2 % of the prompts that the gate has allowed to be linked computed in full, too, later.

        Only those count of which all segments were linked and no layer was late: others tell less of the point.

        Args:
            tokens: Token ids of the prompt.
            way: The way by which its cache was made.
            linked: The cache.
            scope: Scope of the prompt's blocks.
        """
        if not way.fingerprint or linked.report.why or not isinstance(linked.cache, LinkedCache):
            return
        request = b"".join([token.to_bytes(4) for token in tokens]) + self._first_request + next(self._requests).to_bytes(8)
        if self._is_canary(request):
            manager, option = self._manager, Option(way.strategy, way.switch_layer)
            point = option.point(way.fingerprint.hex(), manager.codec.name, manager.block_tokens)
            beside = cache_beside(linked.cache, self._manager.engine.model.config)
            self.canaries.add(Canary(tokens, point, beside, scope))

    def _keep(self, fingerprint: bytes) -> None:
        if self._kept is not None:
            self._kept.keep(fingerprint)
