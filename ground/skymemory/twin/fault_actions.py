"""Faults as actions: steps that the twin takes at their times, and the models of links."""

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from skymemory.sky.placement.torus import Direction, Torus
from skymemory.twin.structures import FaultKind
from skymemory.wire.address import Satellite

_DIRECTIONS: Final = tuple(Direction)


class TwinLinkModel(NamedTuple):
    """Effects of a link on packets; `SKYT_Model_t`."""

    loss_ppm: int = 0
    burst_enter_ppm: int = 0
    burst_leave_ppm: int = 0
    burst_loss_ppm: int = 0
    jitter_us: int = 0
    reorder_ppm: int = 0
    reorder_us: int = 0
    duplicate_ppm: int = 0
    flip_ppm: int = 0
    corrupt_ppm: int = 0
    attack_ppm: int = 0


class Action(NamedTuple):
    """A step of a fault, in order of time; `SKYT_Fault_t`."""

    time_us: int
    """Microseconds since the start."""
    order: int
    """Order of actions at the same time."""
    kind: FaultKind
    node: int
    link: int = 0
    value: int = 0
    model: TwinLinkModel = TwinLinkModel()
    begins: str = ""
    """Kind of the fault that begins with this action."""


def node_of(satellite: Satellite, torus: Torus) -> int:
    """Return the twin's number of a satellite."""
    return (satellite.plane - 1) * torus.slots + satellite.slot - 1


def link_of(torus: Torus, origin: Satellite, target: Satellite) -> int:
    """Return the number of the link from a satellite to its neighbour."""
    return next(_DIRECTIONS.index(direction) for direction, end in torus.neighbours(origin).items() if end == target)


def together(models: list[TwinLinkModel]) -> TwinLinkModel:
    """Combine models: losses are independent of each other, delays add up; of two bursts the worse one counts."""
    total = TwinLinkModel()
    for model in models:
        burst = max(total[1:4], model[1:4])
        total = TwinLinkModel(
            _either(total.loss_ppm, model.loss_ppm),
            *burst,
            total.jitter_us + model.jitter_us,
            _either(total.reorder_ppm, model.reorder_ppm),
            max(total.reorder_us, model.reorder_us),
            _either(total.duplicate_ppm, model.duplicate_ppm),
            _either(total.flip_ppm, model.flip_ppm),
            _either(total.corrupt_ppm, model.corrupt_ppm),
            _either(total.attack_ppm, model.attack_ppm),
        )
    return total


def _either(one: int, other: int) -> int:
    return one + other - one * other // 1_000_000


def any_link(torus: Torus, rng: Random) -> tuple[Satellite, Satellite] | None:
    """Return a link between satellites; None if there is none."""
    satellites = list(torus.satellites())
    origin = satellites[int(rng.random() * len(satellites))]
    ends = list(torus.neighbours(origin).values())
    return (origin, ends[int(rng.random() * len(ends))]) if ends else None


def border(torus: Torus, planes: frozenset[int]) -> Iterator[tuple[Satellite, Satellite]]:
    """Yield the links between these planes and the others."""
    for origin in torus.satellites():
        target = torus.neighbours(origin).get(Direction.SOUTH)
        if target is not None and (origin.plane in planes) != (target.plane in planes):
            yield origin, target


def cut(torus: Torus, link: tuple[Satellite, Satellite], begin_us: int, end_us: int, begins: str) -> Iterator[Action]:
    """Cut a link, in both directions."""
    node, number = node_of(link[0], torus), link_of(torus, *link)
    yield Action(begin_us, 1, FaultKind.CUT, node, number, 1, begins=begins)
    yield Action(end_us, 3, FaultKind.CUT, node, number, 0)
