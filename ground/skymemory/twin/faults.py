"""Faults from a file (docs/twin.md) or from a seed, as the actions that the twin takes at their times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator, ValidationError, model_validator

from skymemory.common.checked_toml import CheckedModel, Mistake, mistakes, numbers, read_toml, rule, tell, whole_numbers
from skymemory.sky.file_sections import SatelliteField, satellite_of
from skymemory.sky.placement.torus import Torus
from skymemory.twin import structures
from skymemory.twin.fault_actions import Action, TwinLinkModel, any_link, border, cut, link_of, node_of, together
from skymemory.twin.structures import FaultKind
from skymemory.wire.address import Satellite

_REFILL_US: Final = 2_000_000
"""Period at which a store under pressure is filled again."""
_HOURS_MAX: Final = 1000.0


class FaultError(ValueError):
    """Faults that are impossible. The message has one line for each mistake: `file:line: what is; allowed are ...`."""


def _link(value: object) -> tuple[Satellite, Satellite]:
    if isinstance(value, list | tuple) and len(value) == 2:
        return satellite_of(value[0]), satellite_of(value[1])
    raise ValueError("not a link")


def _planes(value: object) -> frozenset[int]:
    if isinstance(value, list | tuple | frozenset) and value and all(isinstance(plane, int) and plane >= 1 for plane in value):
        return frozenset(value)
    raise ValueError("not planes")


_LinkField = Annotated[tuple[Satellite, Satellite], PlainValidator(_link)]
_SATELLITE: Final = "satellites [plane, slot], both from 1"
_LINK: Final = "links [[plane, slot], [plane, slot]]"


class _Lasting(CheckedModel, ABC):
    """A fault of packets, from a time on, on all links or on one."""

    link: _LinkField | None = Field(default=None, description=_LINK)
    """Link that is affected, in both directions; without it and without `ground` all links are."""
    ground: SatelliteField | None = Field(default=None, description=_SATELLITE)
    """Satellite whose way to the ground is affected, in both directions."""
    at_s: float = numbers(0.0, 0, 3600 * _HOURS_MAX)
    for_s: float | None = numbers(None, 0.001, 3600 * _HOURS_MAX)
    """Duration in seconds; None: to the end."""

    @abstractmethod
    def model(self) -> TwinLinkModel:
        """Return the effects that the fault adds to a link."""


def _ppm(share: float) -> int:
    return round(1e6 * share)


class Loss(_Lasting):
    """[[loss]]: packets are lost one by one."""

    rate: float = numbers(..., 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(loss_ppm=_ppm(self.rate))


class Burst(_Lasting):
    """[[burst]]: packets are lost in bursts (Gilbert and Elliott)."""

    rate: float = numbers(..., 0, 1)
    """Share of packets with which a burst begins."""
    packets: float = numbers(20.0, 1, 1e6)
    """Mean number of packets of a burst."""
    loss: float = numbers(0.9, 0, 1)
    """Share of packets lost in a burst."""

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(
            burst_enter_ppm=_ppm(self.rate), burst_leave_ppm=_ppm(1 / self.packets), burst_loss_ppm=_ppm(self.loss)
        )


class Jitter(_Lasting):
    """[[jitter]]: packets get a random extra delay of at most `ms`, and overtake each other."""

    ms: float = numbers(..., 0, 1000)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(jitter_us=round(1000 * self.ms))


class Reorder(_Lasting):
    """[[reorder]]: some packets are held back."""

    rate: float = numbers(..., 0, 1)
    ms: float = numbers(30.0, 0, 1000)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(reorder_ppm=_ppm(self.rate), reorder_us=round(1000 * self.ms))


class Duplicate(_Lasting):
    """[[duplicate]]: some packets come twice."""

    rate: float = numbers(..., 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(duplicate_ppm=_ppm(self.rate))


class Flip(_Lasting):
    """[[flip]]: one to three bits of some packets are inverted, anywhere in the datagram."""

    rate: float = numbers(..., 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(flip_ppm=_ppm(self.rate))


class Corrupt(_Lasting):
    """[[corrupt]]: one to three bits of some chunks are inverted, and the packet's own checksums made right again."""

    rate: float = numbers(..., 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(corrupt_ppm=_ppm(self.rate))


class Attack(_Lasting):
    """[[attack]]: an attacker on the links drops, holds back, changes, repeats and forges packets; only where there are keys."""

    rate: float = numbers(..., 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(attack_ppm=_ppm(self.rate))


class _Timed(CheckedModel, ABC):
    """A fault at a time, or at times from the seed, so many an hour on average."""

    at_s: float | None = numbers(None, 0, 3600 * _HOURS_MAX)
    per_hour: float | None = numbers(None, 0, 3600)
    for_s: float = numbers(60.0, 0.001, 3600 * _HOURS_MAX)

    @model_validator(mode="after")
    def _check(self) -> "_Timed":
        if (self.at_s is None) == (self.per_hour is None):
            has = "has no time" if self.at_s is None else "has both at_s and per_hour"
            raise rule(f"{has}; allowed is one of at_s and per_hour")
        return self

    def actions(self, torus: Torus, duration_ms: int, rng: Random) -> Iterator[Action]:
        """Yield all actions of the fault."""
        for begin_us in self._times_us(duration_ms, rng):
            yield from self._once(torus, begin_us, min(begin_us + round(1e6 * self.for_s), 1000 * duration_ms), rng)

    @abstractmethod
    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        """Yield the actions of one of its times."""

    def _times_us(self, duration_ms: int, rng: Random) -> list[int]:
        if self.at_s is not None:
            return [round(1e6 * self.at_s)] if 1000 * self.at_s < duration_ms else []
        times, time_us = [], 0.0
        while self.per_hour and (time_us := time_us + rng.expovariate(self.per_hour / 3600e6)) < 1000 * duration_ms:
            times.append(int(time_us))
        return times


class Cut(_Timed):
    """[[cut]]: a link between satellites is cut, in both directions; without `link` the seed draws one."""

    link: _LinkField | None = Field(default=None, description=_LINK)

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        link = any_link(torus, rng) if self.link is None else self.link
        if link is not None:
            yield from cut(torus, link, begin_us, end_us, "cut")


class Partition(_Timed):
    """[[partition]]: some planes are cut off from the others."""

    planes: Annotated[frozenset[int], PlainValidator(_planes)] = Field(description="lists of planes such as [1, 2]")

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        for number, link in enumerate(border(torus, self.planes)):
            yield from cut(torus, link, begin_us, end_us, "" if number else "partition")


class Drop(_Timed):
    """[[drop]]: one packet is lost. Packets from the fault's begin on are counted, over all links and from 1, but for hellos."""

    packet: int = whole_numbers(..., 1, 2**32 - 1)

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        yield Action(begin_us, 1, FaultKind.DROP, 0, 0, self.packet)
        yield Action(end_us, 3, FaultKind.DROP, 0)


class _OnSatellite(_Timed):
    satellite: SatelliteField | None = Field(default=None, description=_SATELLITE)
    """Satellite that is affected; None: the seed draws one."""

    def _node(self, torus: Torus, rng: Random) -> int:
        satellites = list(torus.satellites())
        return node_of(satellites[int(rng.random() * len(satellites))] if self.satellite is None else self.satellite, torus)


class Crash(_OnSatellite):
    """[[crash]]: a satellite forgets everything, and comes back after `for_s`."""

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        node = self._node(torus, rng)
        yield Action(begin_us, 1, FaultKind.CRASH, node, begins="crash")
        yield Action(end_us, 3, FaultKind.RESTART, node)


class Pressure(_OnSatellite):
    """[[pressure]]: others' blocks fill a store again and again until `slots_free` slots are left; they go after `for_s`."""

    slots_free: int = whole_numbers(4, 0, 65535)

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        node = self._node(torus, rng)
        for again_us in range(begin_us, end_us, _REFILL_US):
            begins = "pressure" if again_us == begin_us else ""
            yield Action(again_us, 1, FaultKind.PRESSURE, node, 0, self.slots_free, begins=begins)
        yield Action(end_us, 3, FaultKind.RELIEF, node)


class LateClock(_OnSatellite):
    """[[late_clock]]: a satellite follows the schedule `late_s` late."""

    late_s: float = numbers(5.0, 0.001, 3600)

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        node = self._node(torus, rng)
        yield Action(begin_us, 1, FaultKind.CLOCK, node, 0, round(1e6 * self.late_s), begins="late_clock")
        yield Action(end_us, 3, FaultKind.CLOCK, node)


def _tables(kind: str) -> Any:
    return Field(default=(), strict=False, description=f"tables [[{kind}]]")


class Faults(CheckedModel):
    """All faults of a run. Immutable."""

    loss: tuple[Loss, ...] = _tables("loss")
    burst: tuple[Burst, ...] = _tables("burst")
    jitter: tuple[Jitter, ...] = _tables("jitter")
    reorder: tuple[Reorder, ...] = _tables("reorder")
    duplicate: tuple[Duplicate, ...] = _tables("duplicate")
    flip: tuple[Flip, ...] = _tables("flip")
    corrupt: tuple[Corrupt, ...] = _tables("corrupt")
    attack: tuple[Attack, ...] = _tables("attack")
    cut: tuple[Cut, ...] = _tables("cut")
    partition: tuple[Partition, ...] = _tables("partition")
    crash: tuple[Crash, ...] = _tables("crash")
    pressure: tuple[Pressure, ...] = _tables("pressure")
    late_clock: tuple[LateClock, ...] = _tables("late_clock")
    drop: tuple[Drop, ...] = _tables("drop")

    @classmethod
    def load(cls, path: Path, torus: Torus) -> "Faults":
        """Read a faults file.

        Raises:
            FaultError: The file cannot be read, or has mistakes: one line for each.
        """
        text, raw = read_toml(path, FaultError)
        try:
            faults = cls.model_validate(raw)
        except ValidationError as error:
            raise FaultError(tell(path, text, mistakes(error, cls))) from error
        if found := list(faults.misplaced(torus)):
            raise FaultError(tell(path, text, found))
        return faults

    @classmethod
    def random(cls, seed: int, duration_ms: int) -> "Faults":
        """Return a mix of all kinds: each with probability one third, so that every seed has some and few have all."""
        rng = Random(f"faults {seed}")

        def some(make: Callable[[], Any]) -> tuple[Any, ...]:
            return (make(),) if rng.random() < 1 / 3 else ()

        per_hour = 3.6e6 / duration_ms  # one fault a run, on average
        return cls(
            loss=some(lambda: Loss(rate=0.03 * rng.random())),
            burst=some(lambda: Burst(rate=0.002 * rng.random(), packets=2 + 30 * rng.random())),
            jitter=some(lambda: Jitter(ms=30 * rng.random())),
            reorder=some(lambda: Reorder(rate=0.05 * rng.random(), ms=50 * rng.random())),
            duplicate=some(lambda: Duplicate(rate=0.05 * rng.random())),
            flip=some(lambda: Flip(rate=0.02 * rng.random())),
            cut=some(lambda: Cut(per_hour=5 * per_hour, for_s=1 + 100 * rng.random())),
            partition=some(
                lambda: Partition(at_s=rng.random() * duration_ms / 2000, for_s=1 + 60 * rng.random(), planes=frozenset({1, 2}))
            ),
            crash=some(lambda: Crash(per_hour=2 * per_hour, for_s=1 + 100 * rng.random())),
            pressure=some(
                lambda: Pressure(per_hour=4 * per_hour, slots_free=int(20 * rng.random()), for_s=1 + 200 * rng.random())
            ),
            late_clock=some(lambda: LateClock(per_hour=2 * per_hour, late_s=0.1 + 20 * rng.random(), for_s=600.0)),
            corrupt=some(lambda: Corrupt(rate=0.01 * rng.random())),
        )

    def misplaced(self, torus: Torus) -> Iterator[Mistake]:
        """Yield the faults that name a satellite or a link that the torus does not have."""
        places = f"[1, 1] to [{torus.planes}, {torus.slots}]"
        for kind in type(self).model_fields:
            for index, fault in enumerate(getattr(self, kind)):
                for key in ("satellite", "ground"):
                    satellite = getattr(fault, key, None)
                    if satellite is not None and satellite not in torus:
                        yield (kind, index, key), f"{kind}.{key} is {satellite}; allowed are {places}"
                link = getattr(fault, "link", None)
                if link is not None and (link[0] not in torus or link[1] not in torus.neighbours(link[0]).values()):
                    what = f"{kind}.link is from {link[0]} to {link[1]}"
                    yield (kind, index, "link"), f"{what}; allowed are neighbours within {places}"
                planes = getattr(fault, "planes", None)
                if planes is not None and (max(planes) > torus.planes or len(planes) == torus.planes):
                    told = ", ".join(map(str, sorted(planes)))
                    yield (kind, index, "planes"), f"{kind}.planes are {told}; allowed are some of 1 to {torus.planes}, not all"

    def actions(self, torus: Torus, duration_ms: int, seed: int) -> list[Action]:
        """Return all actions in order of time. A fault that begins before the end has ended by then."""
        rng = Random(f"times {seed}")
        found = list(self._model_actions(torus, duration_ms))
        for fault in self._all():
            if isinstance(fault, _Timed):
                found.extend(fault.actions(torus, duration_ms, rng))
        return [action._replace(order=0) for action in sorted(found, key=lambda action: action[:2])]

    def _all(self) -> Iterator[_Lasting | _Timed]:
        """Return all faults, in the order of their kinds."""
        return (fault for kind in type(self).model_fields for fault in getattr(self, kind))

    def _model_actions(self, torus: Torus, duration_ms: int) -> Iterator[Action]:
        """Yield the changes of the model of each link, and of all of them together."""
        by_place: dict[tuple[int, int], list[tuple[int, int, TwinLinkModel]]] = {}
        for fault in self._all():
            if not isinstance(fault, _Lasting):
                continue
            begin_us = min(round(1e6 * fault.at_s), 1000 * duration_ms)
            end_us = 1000 * duration_ms if fault.for_s is None else min(begin_us + round(1e6 * fault.for_s), 1000 * duration_ms)
            for place in _places(fault, torus):
                by_place.setdefault(place, []).append((begin_us, end_us, fault.model()))
        for (node, link), spans in by_place.items():
            for time_us in sorted({time_us for begin_us, end_us, _ in spans for time_us in (begin_us, end_us)}):
                model = together([model for begin_us, end_us, model in spans if begin_us <= time_us < end_us])
                yield Action(time_us, 0, FaultKind.MODEL, node, link, 0, model)


def _places(fault: _Lasting, torus: Torus) -> list[tuple[int, int]]:
    if fault.link is not None:
        origin, target = fault.link
        return [
            (node_of(origin, torus), link_of(torus, origin, target)),
            (node_of(target, torus), link_of(torus, target, origin)),
        ]
    if fault.ground is not None:
        node = node_of(fault.ground, torus)
        return [(node, structures.LINK_DOWN), (node, structures.LINK_UP)]
    return [(structures.ALL, 0)]
