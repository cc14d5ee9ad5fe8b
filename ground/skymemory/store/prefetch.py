"""Prefetch of blocks: each share moves once, from its place now to its place in a future row (paper, end of section 3.7).

The answer to MIGRATE only says that a job began, so the targets are asked until they hold their shares. Until then all requests
are repeated: a satellite takes only a few jobs at a time, and a handover may move a share meanwhile, which is then found at its
next place. Shares that a late handover has left at places of earlier rows are moved from there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from skymemory.link.ask import SatelliteAnswer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Move
from skymemory.sky.entry_satellites import Route
from skymemory.store.late_search import Late
from skymemory.store.parts import Operation
from skymemory.store.results import Status
from skymemory.wire import icd

_ROUND_S: Final = 10.0
"""Most seconds of a round of requests, and so the time that a satellite has for a job before it gets the next request."""
_PAUSE_FIRST_S: Final = 0.01
_PAUSE_MAX_S: Final = 0.5
_STRIKES: Final = 2
"""Rounds after which a missing share counts as lost. In these rounds no satellite has anything to move or to hand over."""


@dataclass(slots=True)
class Prefetched:
    """State of a block's prefetch."""

    entry: BlockEntry
    status: Status = Status.EXPIRED
    """DONE, MISS if a share is nowhere, or EXPIRED."""
    moved: int = 0
    """Shares whose place in the future row is another one than now."""
    strikes: int = 0
    """Successive rounds in which a share was missing and nobody had anything to move (see `_STRIKES`)."""


class Prefetches(Operation):
    """Prefetches of one store. Thread-safe."""

    def to_row(self, entries: Sequence[BlockEntry], row: int, deadline_s: float) -> list[Prefetched]:
        """Move blocks to the places of their servers in a future row, all at once.

        Args:
            entries: The blocks, with their current epochs.
            row: The future row of the schedule.
            deadline_s: Seconds after which blocks that have not arrived are EXPIRED.

        Returns:
            A result for each block, in order.
        """
        end_s = time.monotonic() + deadline_s
        pairs = zip(self._routes.to_servers(), self._routes.to_servers(row), strict=False)
        away = [now.satellite != then.satellite for now, then in pairs]
        blocks = [Prefetched(entry, moved=sum(entry.by_share(away)[: entry.chunk_total])) for entry in entries]
        left = blocks
        pause_s = _PAUSE_FIRST_S
        while left:
            targets = self._routes.to_servers(row)
            if targets:
                late = self._late_search.look()
                moves = [_moves(one, targets, self._places(one, late)) for one in left]
                round_s = max(0.0, min(_ROUND_S, end_s - time.monotonic()))
                answers = iter(self._control.migrate([*chain.from_iterable(moves)], self._tenant, round_s, epoch=row))
                nothing = [_has_nothing(one, [next(answers) for _ in one]) for one in moves]
                round_s = max(0.0, min(_ROUND_S, end_s - time.monotonic()))
                placed = [(one.entry, [[route] for route in targets]) for one in left]
                held = self._control.hold_all(placed, self._tenant, round_s)
                if None in held or None in nothing:
                    asked = [*targets, *(move.source for move in chain.from_iterable(moves))]
                    self._routes.look({route.satellite for route in asked})
                for one, whole, no_more in zip(left, held, nothing, strict=True):
                    one.strikes = one.strikes + 1 if whole is False and no_more and late.is_over else 0
                    if whole or one.strikes == _STRIKES:
                        one.status = Status.DONE if whole else Status.MISS
                left = [one for one in left if one.status is Status.EXPIRED]
            if not left or time.monotonic() + pause_s >= end_s:
                break
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        return blocks

    def _places(self, one: Prefetched, late: Late) -> Sequence[Sequence[Route]]:
        """Return all places that each server's share may have now; none while no satellite answers."""
        ways = self._late_search.ways(one.entry.epoch, late)
        return () if ways is None else ways.places


def _moves(one: Prefetched, targets: Sequence[Route], of_servers: Sequence[Sequence[Route]]) -> list[Move]:
    """Return moves of each share from all its possible places to its target. A move to its own place tells a share to stay."""
    pairs = one.entry.by_share(list(zip(of_servers, targets, strict=False)))[: one.entry.chunk_total]
    return [Move(route, target.satellite, one.entry.key) for places, target in pairs for route in dict.fromkeys(places)]


def _has_nothing(moves: Sequence[Move], answers: Sequence[SatelliteAnswer | None]) -> bool | None:
    """Return True if all satellites that were asked have nothing to move, or None if one did not answer."""
    if None in answers:
        return None
    return all(
        move.source.satellite == move.target or (answer is not None and answer.status == icd.STATUS_NOT_FOUND)
        for move, answer in zip(moves, answers, strict=True)
    )
