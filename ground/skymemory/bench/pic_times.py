"""Results of the times of `skymem bench pic`: curves over the rate of the link, break-even points, and aims.

No I/O. A point is one link and one codec. A way is what is done to get the cache of the prompt there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

FULL: Final = "full prefill"
PREFIX: Final = "exact prefix"
SERIAL: Final = "serial "
"""Beginning of the names of ways that load all before they compute anything."""
AUTO: Final = "auto"
AUTO_MOST: Final = 1.05
"""Time of `auto`, relative to the best open choice, that is allowed."""
BREAK_EVEN_LEAST: Final = 1.5
"""Wanted ratio of full prefill and serial load to `auto` where these two take as long."""
UNLIMITED_LEAST: Final = {"blend:15": 2.2, "lego:16": 4.0}
"""Wanted ratio of a full prefill to a strategy where links have no limit."""
DISTURBED: Final = 0.05
"""Part of a run for which it waited for a processor, beyond which it counts as disturbed."""


class Link(NamedTuple):
    """A link to the sky."""

    rate_mbit_s: float
    """Rate in Mbit/s, each way; 0: no limit."""
    round_trip_ms: float
    """Delay of both ways together."""

    @property
    def is_unlimited(self) -> bool:
        """True for a link that is as fast as the machine."""
        return self.rate_mbit_s == 0

    def __str__(self) -> str:
        return "no limit" if self.is_unlimited else f"{self.rate_mbit_s:g} Mbit/s, {self.round_trip_ms:g} ms"


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    seconds: float
    """Duration."""
    cpu_s: float
    """Processor time of this process, all threads."""
    delayed_s: float = 0.0
    """Part of the duration for which other processes had the processors while this one could have run."""
    choice: str = ""
    """Name of the way that `auto` took."""

    @property
    def is_disturbed(self) -> bool:
        """True if other processes made the run longer."""
        return self.delayed_s > DISTURBED * self.seconds


@dataclass(slots=True)
class Point:
    """All runs with one link and one codec."""

    link: Link
    codec: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    """Runs by way."""

    def seconds(self, way: str) -> float:
        """Return the median duration of a way."""
        return statistics.median(run.seconds for run in self.runs[way])

    def choices(self) -> dict[str, int]:
        """Return how often `auto` took what."""
        taken = [run.choice for run in self.runs.get(AUTO, ())]
        return {choice: taken.count(choice) for choice in sorted(set(taken))}

    def best_open(self) -> str:
        """Return the fastest way that `auto` may take: a full prefill, or a strategy that is open."""
        return min((way for way in self.runs if way not in {AUTO, PREFIX} and not way.startswith(SERIAL)), key=self.seconds)

    @property
    def auto_ratio(self) -> float:
        """Time of `auto`, relative to the best open choice."""
        return self.seconds(AUTO) / self.seconds(self.best_open())

    def row(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        ways = {
            way: {
                "median_s": round(self.seconds(way), 4),
                "cpu_s": round(statistics.median(run.cpu_s for run in runs), 4),
                "delayed_s": round(statistics.median(run.delayed_s for run in runs), 4),
                "runs_s": [round(run.seconds, 4) for run in runs],
            }
            for way, runs in self.runs.items()
        }
        return {
            **self.link._asdict(),
            "codec": self.codec,
            "ways": ways,
            "auto_choices": self.choices(),
            "best_open": self.best_open(),
            "auto_ratio": round(self.auto_ratio, 3),
        }


class Curve(NamedTuple):
    """The points of one codec and one round trip, by rate."""

    codec: str
    round_trip_ms: float
    points: list[Point]

    def crossing(self, way: str, other: str = FULL) -> float | None:
        """Return the rate from which on a way is as fast as another one."""
        return crossing(self._rates(), [one.seconds(way) for one in self.points], [one.seconds(other) for one in self.points])

    def at(self, rate_mbit_s: float, way: str) -> float:
        """Return the seconds of a way at a rate between those that were measured."""
        return at_rate(rate_mbit_s, self._rates(), [one.seconds(way) for one in self.points])

    def ways(self) -> list[str]:
        """Return the ways of all points."""
        return list(self.points[0].runs)

    def _rates(self) -> list[float]:
        return [one.link.rate_mbit_s for one in self.points]


def curves(points: Sequence[Point]) -> Iterator[Curve]:
    """Yield a curve for each codec and round trip with two rates or more."""
    groups: dict[tuple[str, float], list[Point]] = {}
    for point in points:
        if not point.link.is_unlimited:
            groups.setdefault((point.codec, point.link.round_trip_ms), []).append(point)
    for (codec, round_trip_ms), of_group in groups.items():
        if len(of_group) > 1:
            yield Curve(codec, round_trip_ms, sorted(of_group, key=lambda one: one.link.rate_mbit_s))


def crossing(rates: Sequence[float], seconds: Sequence[float], others: Sequence[float]) -> float | None:
    """Return the rate from which on the first times are not above the others.

    Between two rates logarithms of times are taken for straight lines over the logarithm of the rate.

    Args:
        rates: Rates, ascending, all above 0.
        seconds: Times at these rates.
        others: The times to compare with.

    Returns:
        None if the first times are above the others at the highest rate. The lowest rate if they never are.
    """
    gaps = [math.log(one / other) for one, other in zip(seconds, others, strict=True)]
    if gaps[-1] > 0:
        return None
    above = max((index for index, gap in enumerate(gaps) if gap > 0), default=None)
    if above is None:
        return rates[0]
    share = gaps[above] / (gaps[above] - gaps[above + 1])
    between: float = rates[above] * (rates[above + 1] / rates[above]) ** share
    return min(max(rates[above], between), rates[above + 1])


def at_rate(rate: float, rates: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the time at a rate, by straight lines as in `crossing`. Outside of the rates it is that of the nearest one."""
    if rate <= rates[0]:
        return seconds[0]
    for (low, low_s), (high, high_s) in zip(
        zip(rates, seconds, strict=True), zip(rates[1:], seconds[1:], strict=True), strict=False
    ):
        if rate <= high:
            between_s: float = low_s * (high_s / low_s) ** (math.log(rate / low) / math.log(high / low))
            return between_s
    return seconds[-1]


def delayed_share(points: Sequence[Point]) -> float:
    """Return for what part of the time of all runs other processes had the processors."""
    runs = [run for point in points for of_way in point.runs.values() for run in of_way]
    return sum(run.delayed_s for run in runs) / sum(run.seconds for run in runs)


def delayed_sentence(report: dict[str, Any]) -> str:
    """Return a sentence about other processes, or '' if they did not disturb."""
    share = report["delayed_share"]
    return f"Other processes had the processors for {100 * share:.0f} % of the time." if share > DISTURBED else ""


def break_even(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return for each curve and way the rate from which on it is as fast as a full prefill; None: at no measured rate.

    A rate that is the lowest one means that the way is as fast at all measured rates.
    """
    return [
        {
            "codec": curve.codec,
            "round_trip_ms": curve.round_trip_ms,
            "lowest_mbit_s": curve.points[0].link.rate_mbit_s,
            "rates_mbit_s": {
                way: None if (rate := curve.crossing(way)) is None else round(rate, 1)
                for way in curve.ways()
                if way not in {FULL, AUTO}
            },
        }
        for curve in curves(points)
    ]


def aims(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return what was aimed at, what was measured, and whether that meets it."""
    worst = max(points, key=lambda point: point.auto_ratio)
    found = [
        _aim(
            f"auto takes at most {AUTO_MOST} x the best open choice at each point",
            worst.auto_ratio,
            worst.auto_ratio <= AUTO_MOST,
            f"{worst.codec}, {worst.link}: {_said(worst.choices())}; best is {worst.best_open()}; "
            f"{sum(point.auto_ratio <= AUTO_MOST for point in points)} of {len(points)} points meet it",
        )
    ]
    for curve in curves(points):
        for serial in (way for way in curve.ways() if way.startswith(SERIAL)):
            rate = curve.crossing(serial)
            if rate is None or rate <= curve.points[0].link.rate_mbit_s:
                continue
            ratio = min(curve.at(rate, serial), curve.at(rate, FULL)) / curve.at(rate, AUTO)
            found.append(
                _aim(
                    f"auto is {BREAK_EVEN_LEAST} x as fast as full prefill and {serial} where these break even",
                    ratio,
                    ratio >= BREAK_EVEN_LEAST,
                    f"{curve.codec}, {curve.round_trip_ms:g} ms, {rate:.0f} Mbit/s",
                )
            )
    for point in (point for point in points if point.link.is_unlimited):
        for way, least in UNLIMITED_LEAST.items():
            ratio = point.seconds(FULL) / min(point.seconds(one) for one in point.runs if one.split(",")[0] == way)
            found.append(_aim(f"{way} is {least} x as fast as full prefill without a limit", ratio, ratio >= least, point.codec))
    return found


def _aim(what: str, ratio: float, met: bool, where: str) -> dict[str, Any]:
    return {"aim": what, "ratio": round(ratio, 2), "met": met, "where": where}


def _said(choices: Mapping[str, int]) -> str:
    return "auto took " + ", ".join(f"{choice} ({count} x)" for choice, count in choices.items())
