"""Blocks laid in advance: each share goes once, from where it is now to where it will be needed (paper, end of section 3.7).

MIGRATE's answer says that a job began, so the targets are asked until they hold their shares. Everything is repeated until then:
a satellite takes a few jobs at a time, and what a handover carries off meanwhile is found at its next place. What a late handover
has left at places of earlier rows is moved from there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.block_entry import BlockEntry
from skymemory.handovers import Handovers, Late
from skymemory.link.ask import Answer
from skymemory.link.control import ControlPlane, Move
from skymemory.placement.window import Route
from skymemory.reach import Reach
from skymemory.results import Status
from skymemory.wire import icd

_ROUND_S: Final = 10.0
"""of a round of requests; also how long a satellite works at a job before it is told again"""
_PAUSE_FIRST_S: Final = 0.01
_PAUSE_MAX_S: Final = 0.5
_STRIKES: Final = 2
"""rounds in which nobody has anything to move or to hand over, and a share is still missing, after which it counts as lost"""


@dataclass(slots=True)
class Laid:
    """What became of a block."""

    entry: BlockEntry
    status: Status = Status.EXPIRED
    """DONE, MISS (a share is nowhere) or EXPIRED"""
    moved: int = 0
    """shares that have another place then"""
    strikes: int = 0


def lay(
    entries: Sequence[BlockEntry],
    row: int,
    reach: Reach,
    handovers: Handovers,
    control: ControlPlane,
    tenant: int,
    deadline_s: float,
) -> list[Laid]:
    """Move blocks to where their servers are in a row to come, all at once.

    Args:
        entries: with the epochs that they have now.
    """
    end_s = time.monotonic() + deadline_s
    away = [now.satellite != then.satellite for now, then in zip(reach.routes(), reach.routes_in(row), strict=False)]
    laid = [Laid(entry, moved=sum(away[: entry.chunk_total])) for entry in entries]
    left = laid
    pause_s = _PAUSE_FIRST_S
    while left:
        targets = reach.routes_in(row)
        if targets:
            late = handovers.look()
            moves = [_moves(one, targets, _places(one, handovers, late)) for one in left]
            round_s = max(0.0, min(_ROUND_S, end_s - time.monotonic()))
            answers = iter(control.migrate_blocks([move for one in moves for move in one], tenant, round_s, epoch=row))
            nothing = [_has_nothing(one, [next(answers) for _ in one]) for one in moves]
            round_s = max(0.0, min(_ROUND_S, end_s - time.monotonic()))
            held = control.hold_all([(one.entry, [[route] for route in targets]) for one in left], tenant, round_s)
            if None in held or None in nothing:
                reach.look({route.satellite for route in targets} | {move.source.satellite for one in moves for move in one})
            for one, whole, no_more in zip(left, held, nothing, strict=True):
                one.strikes = one.strikes + 1 if whole is False and no_more and late.is_over else 0
                if whole or one.strikes == _STRIKES:
                    one.status = Status.DONE if whole else Status.MISS
            left = [one for one in left if one.status is Status.EXPIRED]
        if not left or time.monotonic() + pause_s >= end_s:
            break
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    return laid


def _places(one: Laid, handovers: Handovers, late: Late) -> Sequence[Sequence[Route]]:
    """Every place that each share may have now; none while no satellite answers."""
    ways = handovers.ways(one.entry.epoch, late)
    return () if ways is None else ways.places


def _moves(one: Laid, targets: Sequence[Route], shares: Sequence[Sequence[Route]]) -> list[Move]:
    """From every place that a share may have now to the one that it is to have; what is there already is told to stay."""
    pairs = list(zip(shares, targets, strict=False))[: one.entry.chunk_total]
    return [Move(route, target.satellite, one.entry.key) for places, target in pairs for route in dict.fromkeys(places)]


def _has_nothing(moves: Sequence[Move], answers: Sequence[Answer | None]) -> bool | None:
    """Do all that were asked say that they have nothing to move? None: one did not answer."""
    if None in answers:
        return None
    return all(
        move.source.satellite == move.target or (answer is not None and answer.packet.status == icd.STATUS_NOT_FOUND)
        for move, answer in zip(moves, answers, strict=True)
    )
