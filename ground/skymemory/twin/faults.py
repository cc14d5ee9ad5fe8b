"""Faults from a file (docs/twin.md) or from a seed, as the actions that the twin takes at their times."""

import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from skymemory.common.toml_lines import KeyPath, find_line
from skymemory.sky.placement.torus import Torus
from skymemory.twin import structures
from skymemory.twin.actions import Action, TwinLinkModel, any_link, border, cut, link_of, node_of, together
from skymemory.twin.structures import FaultKind
from skymemory.wire.address import Satellite

_REFILL_US: Final = 2_000_000
"""Period at which a store under pressure is filled again."""
_HOURS_MAX: Final = 1000.0


class FaultError(ValueError):
    """Faults that are impossible. The message has one line for each mistake: `file:line: what is; allowed are ...`."""


def _number(default: float | None, low: float, high: float) -> Any:
    """Return a field; `default` None means that the value must be given."""
    given = ... if default is None else default
    return Field(default=given, ge=low, le=high, description=f"numbers from {low:g} to {high:g}", allow_inf_nan=False)


def _optional(low: float, high: float) -> Any:
    return Field(default=None, ge=low, le=high, description=f"numbers from {low:g} to {high:g}", allow_inf_nan=False)


def _satellite(value: object) -> Satellite:
    if (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) and number >= 1 for number in value)
    ):
        return Satellite(*value)
    raise ValueError("not a satellite")  # the text is replaced by the field's


def _link(value: object) -> tuple[Satellite, Satellite]:
    if isinstance(value, list | tuple) and len(value) == 2:
        return _satellite(value[0]), _satellite(value[1])
    raise ValueError("not a link")


def _planes(value: object) -> frozenset[int]:
    if isinstance(value, list | tuple | frozenset) and value and all(isinstance(plane, int) and plane >= 1 for plane in value):
        return frozenset(value)
    raise ValueError("not planes")


_SatelliteField = Annotated[Satellite, PlainValidator(_satellite)]
_LinkField = Annotated[tuple[Satellite, Satellite], PlainValidator(_link)]
_SATELLITE: Final = "satellites [plane, slot], both from 1"
_LINK: Final = "links [[plane, slot], [plane, slot]]"


class _Fault(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Lasting(_Fault, ABC):
    """A fault of packets, from a time on, on all links or on one."""

    link: _LinkField | None = Field(default=None, description=_LINK)
    """Link that is affected, in both directions; without it and without `ground` all links are."""
    ground: _SatelliteField | None = Field(default=None, description=_SATELLITE)
    """Satellite whose way to the ground is affected, in both directions."""
    at_s: float = _number(0.0, 0, 3600 * _HOURS_MAX)
    for_s: float | None = _optional(0.001, 3600 * _HOURS_MAX)
    """Duration in seconds; None: to the end."""

    @abstractmethod
    def model(self) -> TwinLinkModel:
        """Return the effects that the fault adds to a link."""


def _ppm(share: float) -> int:
    return round(1e6 * share)


class Loss(_Lasting):
    """[[loss]]: packets are lost one by one."""

    rate: float = _number(None, 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(loss_ppm=_ppm(self.rate))


class Burst(_Lasting):
    """[[burst]]: packets are lost in bursts (Gilbert and Elliott)."""

    rate: float = _number(None, 0, 1)
    """Share of packets with which a burst begins."""
    packets: float = _number(20.0, 1, 1e6)
    """Mean number of packets of a burst."""
    loss: float = _number(0.9, 0, 1)
    """Share of packets lost in a burst."""

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(
            burst_enter_ppm=_ppm(self.rate), burst_leave_ppm=_ppm(1 / self.packets), burst_loss_ppm=_ppm(self.loss)
        )


class Jitter(_Lasting):
    """[[jitter]]: packets get a random extra delay of at most `ms`, and overtake each other."""

    ms: float = _number(None, 0, 1000)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(jitter_us=round(1000 * self.ms))


class Reorder(_Lasting):
    """[[reorder]]: some packets are held back."""

    rate: float = _number(None, 0, 1)
    ms: float = _number(30.0, 0, 1000)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(reorder_ppm=_ppm(self.rate), reorder_us=round(1000 * self.ms))


class Duplicate(_Lasting):
    """[[duplicate]]: some packets come twice."""

    rate: float = _number(None, 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(duplicate_ppm=_ppm(self.rate))


class Flip(_Lasting):
    """[[flip]]: one to three bits of some packets are inverted, anywhere in the datagram."""

    rate: float = _number(None, 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(flip_ppm=_ppm(self.rate))


class Corrupt(_Lasting):
    """[[corrupt]]: one to three bits of some chunks are inverted, and the packet's own checksums made right again."""

    rate: float = _number(None, 0, 1)

    def model(self) -> TwinLinkModel:
        return TwinLinkModel(corrupt_ppm=_ppm(self.rate))


class _Timed(_Fault, ABC):
    """A fault at a time, or at times from the seed, so many an hour on average."""

    at_s: float | None = _optional(0, 3600 * _HOURS_MAX)
    per_hour: float | None = _optional(0, 3600)
    for_s: float = _number(60.0, 0.001, 3600 * _HOURS_MAX)

    @model_validator(mode="after")
    def _check(self) -> "_Timed":
        if (self.at_s is None) == (self.per_hour is None):
            raise PydanticCustomError("when", "needs one of at_s and per_hour")
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


class _OnSatellite(_Timed):
    satellite: _SatelliteField | None = Field(default=None, description=_SATELLITE)
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

    slots_free: int = Field(default=4, ge=0, le=65535, description="whole numbers from 0 to 65535")

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        node = self._node(torus, rng)
        for again_us in range(begin_us, end_us, _REFILL_US):
            begins = "pressure" if again_us == begin_us else ""
            yield Action(again_us, 1, FaultKind.PRESSURE, node, 0, self.slots_free, begins=begins)
        yield Action(end_us, 3, FaultKind.RELIEF, node)


class LateClock(_OnSatellite):
    """[[late_clock]]: a satellite follows the schedule `late_s` late."""

    late_s: float = _number(5.0, 0.001, 3600)

    def _once(self, torus: Torus, begin_us: int, end_us: int, rng: Random) -> Iterator[Action]:
        node = self._node(torus, rng)
        yield Action(begin_us, 1, FaultKind.CLOCK, node, 0, round(1e6 * self.late_s), begins="late_clock")
        yield Action(end_us, 3, FaultKind.CLOCK, node)


def _tables(kind: str) -> Any:
    return Field(default=(), strict=False, description=f"tables [[{kind}]]")


class Faults(_Fault):
    """All faults of a run. Immutable."""

    loss: tuple[Loss, ...] = _tables("loss")
    burst: tuple[Burst, ...] = _tables("burst")
    jitter: tuple[Jitter, ...] = _tables("jitter")
    reorder: tuple[Reorder, ...] = _tables("reorder")
    duplicate: tuple[Duplicate, ...] = _tables("duplicate")
    flip: tuple[Flip, ...] = _tables("flip")
    corrupt: tuple[Corrupt, ...] = _tables("corrupt")
    cut: tuple[Cut, ...] = _tables("cut")
    partition: tuple[Partition, ...] = _tables("partition")
    crash: tuple[Crash, ...] = _tables("crash")
    pressure: tuple[Pressure, ...] = _tables("pressure")
    late_clock: tuple[LateClock, ...] = _tables("late_clock")

    @classmethod
    def load(cls, path: Path, torus: Torus) -> "Faults":
        """Read a faults file.

        Raises:
            FaultError: The file cannot be read, or has mistakes: one line for each.
        """
        try:
            text = path.read_text(encoding="utf-8")
            raw = tomllib.loads(text)
        except OSError as error:
            raise FaultError(f"{path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise FaultError(f"{path}: byte {error.start} is not UTF-8; TOML files are UTF-8") from error
        except tomllib.TOMLDecodeError as error:
            what, _, place = str(error).partition(" (at line ")
            line = place.split(",")[0] if place else str(text.count("\n") + 1)
            raise FaultError(f"{path}:{line}: not valid TOML: {what[:1].lower()}{what[1:]}") from error
        try:
            faults = cls.model_validate(raw)
            found = list(faults._misplaced(torus))
        except ValidationError as error:
            found = [_mistake(detail["loc"], detail["type"], detail["input"]) for detail in error.errors(include_url=False)]
        if found:
            lines = sorted(((find_line(text, at) or 1, what) for at, what in found), key=lambda one: one[0])
            raise FaultError("\n".join(f"{path}:{line}: {what}" for line, what in lines))
        return faults

    @classmethod
    def random(cls, seed: int, duration_ms: int) -> "Faults":
        """Return a mix of all kinds: each with probability one third, so that every seed has some and few have all."""
        rng = Random(f"faults {seed}")

        def some(make: Callable[[], Any]) -> tuple[Any, ...]:
            return (make(),) if rng.random() < 1 / 3 else ()

        per_hour = 3.6e6 / duration_ms  # one in the run, on average
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

    def _misplaced(self, torus: Torus) -> Iterator[tuple[KeyPath, str]]:
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
        timed: list[_Timed] = [*self.cut, *self.partition, *self.crash, *self.pressure, *self.late_clock]
        found = list(self._model_actions(torus, duration_ms))
        for fault in timed:
            found.extend(fault.actions(torus, duration_ms, rng))
        return [action._replace(order=0) for action in sorted(found, key=lambda action: action[:2])]

    def _model_actions(self, torus: Torus, duration_ms: int) -> Iterator[Action]:
        """Yield the changes of the model of each link, and of all of them together."""
        lasting: list[_Lasting] = [
            *self.loss,
            *self.burst,
            *self.jitter,
            *self.reorder,
            *self.duplicate,
            *self.flip,
            *self.corrupt,
        ]
        by_place: dict[tuple[int, int], list[tuple[int, int, TwinLinkModel]]] = {}
        for fault in lasting:
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


def _mistake(at: tuple[int | str, ...], what: str, value: object) -> tuple[KeyPath, str]:
    """Return key path and text of a mistake that pydantic found."""
    name = ".".join(part for part in at if isinstance(part, str))
    kind = Faults.model_fields.get(str(at[0])) if at else None
    if kind is None:
        return at, f"{name} is unknown; allowed are tables {', '.join(Faults.model_fields)}"
    if len(at) < 3:
        if what == "when":
            has = "has both at_s and per_hour" if _has_both(value) else "has no time"
            return at, f"{name} {has}; allowed is one of at_s and per_hour"
        return at, f"{name} is {_shown(value)}; allowed are {kind.description}"
    fields = _KINDS[str(at[0])].model_fields
    field = fields.get(str(at[2]))
    if field is None:
        return at, f"{name} is unknown; allowed in [[{at[0]}]] are {', '.join(fields)}"
    if what == "missing":
        return at, f"{name} is missing; allowed are {field.description}"
    return at, f"{name} is {_shown(value)}; allowed are {field.description}"


def _has_both(value: object) -> bool:
    return isinstance(value, dict) and "at_s" in value and "per_hour" in value


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


_KINDS: Final[dict[str, type[_Fault]]] = {
    "loss": Loss,
    "burst": Burst,
    "jitter": Jitter,
    "reorder": Reorder,
    "duplicate": Duplicate,
    "flip": Flip,
    "corrupt": Corrupt,
    "cut": Cut,
    "partition": Partition,
    "crash": Crash,
    "pressure": Pressure,
    "late_clock": LateClock,
}
