"""The last hours in memory: frames in rings of columns, as many as fit, older ones further apart.

A fine ring has every frame of the last minutes. A coarse ring has frames of the last hours, some seconds apart; each is a mean of
the frames since the one before. Memory is bounded by `BYTES_MAX`: coarse frames of a large constellation are further apart.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from skymemory.agent.watch.frame import COLUMNS, MOMENT_COLUMNS, RATIOS, SERIES, Column, Frame, Shape, numbers, ratio

HOURS: Final = 6.0
FINE_S: Final = 15 * 60.0
FINE_STEP_S: Final = 2.0
COARSE_STEP_S: Final = 10.0
BYTES_MAX: Final = 32 << 20
"""Bytes for both rings together."""
POINTS_MAX: Final = 2000
"""Instants of an answer."""
FRAMES_MAX: Final = 100
"""Frames of an answer."""
PLACES_MAX: Final = 100_000
"""Satellites times frames of an answer."""


class Ring:
    """Frames in order of time. A full ring replaces the oldest frame. Memory is taken as the ring fills."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.shape = shape
        self.capacity = max(2, capacity)
        self._columns = {name: np.zeros((self.capacity, shape.width(name)), kind) for name, kind in COLUMNS.items()}
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def bytes(self) -> int:
        """Bytes that the ring's frames take now."""
        return self._count * self.shape.frame_bytes

    def append(self, frame: Frame) -> None:
        """Add the next frame. If it is not later than the last, a clock was set back, and the ring forgets all older frames."""
        if self._count and frame.time_ms <= self.time_ms(self._count - 1):
            self.clear()
        for name, column in self._columns.items():
            column[self._next] = frame[name]
        self._next = (self._next + 1) % self.capacity
        self._count = min(self._count + 1, self.capacity)

    def clear(self) -> None:
        """Forget all frames."""
        self._next = self._count = 0

    def time_ms(self, index: int) -> int:
        """Return the Unix time of a frame in ms; index 0 is the oldest frame."""
        return int(self._columns["time_ms"][self._at(index), 0])

    def column(self, name: str) -> Column:
        """Return all values of a column, the oldest first; shape (frames, width)."""
        return self._columns[name][self._order()]

    def frame(self, index: int) -> Frame:
        """Return a copy of a frame; index 0 is the oldest frame."""
        found = Frame(self.shape)
        for name, column in self._columns.items():
            found[name][:] = column[self._at(index)]
        return found

    def _at(self, index: int) -> int:
        return (self._next - self._count + index) % self.capacity

    def _order(self) -> Column:
        return (np.arange(self._count) + self._next - self._count) % self.capacity


class History:
    """Frames of one constellation. Not thread-safe: only the agent's event loop uses it."""

    def __init__(self, shape: Shape, frames_max: int = FRAMES_MAX) -> None:
        self._frames_max = frames_max
        fits = BYTES_MAX // shape.frame_bytes
        fine = min(int(FINE_S / FINE_STEP_S), fits // 3)
        coarse = min(int(HOURS * 3600 / COARSE_STEP_S), fits - fine)
        self.fine, self.coarse = Ring(shape, fine), Ring(shape, coarse)
        self.step_s = max(COARSE_STEP_S, HOURS * 3600 / self.coarse.capacity)
        """Time between coarse frames."""
        self._since: list[Frame] = []  # frames whose mean will be the next coarse one
        self._gathered = 0

    @property
    def bytes(self) -> int:
        """Bytes that the frames of both rings take now."""
        return self.fine.bytes + self.coarse.bytes

    def append(self, frame: Frame) -> None:
        """Add the next frame."""
        self.fine.append(frame)
        if self._since and frame.time_ms <= self._since[-1].time_ms:
            self._since = []
        self._since.append(frame)
        began_ms = self.coarse.time_ms(len(self.coarse) - 1) if len(self.coarse) else self._since[0].time_ms - 1000 * self.step_s
        if frame.time_ms - began_ms >= 1000 * self.step_s - 500 or frame.time_ms < began_ms:
            self.coarse.append(mean(self._since))
            self._since = []
        elif len(self._since) > _GATHER_MAX:
            self._since = [mean(self._since)]

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """Unix times of the oldest and the newest frame in ms; None if there is no frame."""
        if not len(self.fine):
            return None
        first = self.fine.time_ms(0)
        return min(first, self.coarse.time_ms(0)) if len(self.coarse) else first, self.fine.time_ms(len(self.fine) - 1)

    def frames(self, from_ms: int, to_ms: int, step_ms: int) -> Iterator[Frame]:
        """Yield the frames of a time, at least a step apart and no more than one answer may have. The last one is among them."""
        most = max(1, min(self._frames_max, PLACES_MAX // self.fine.shape.satellites))
        for ring, index in self._picked(from_ms, to_ms, step_ms, most):
            yield ring.frame(index)

    def at(self, time_ms: int) -> Frame | None:
        """Return the last frame until a time, or the first frame if all are later; None if there is no frame."""
        found = [*self._picked(0, time_ms, 0, 1)] or [*self._picked(0, 2**62, 0, POINTS_MAX)][:1]
        return found[-1][0].frame(found[-1][1]) if found else None

    def series(self, from_ms: int, to_ms: int, step_ms: int) -> dict[str, list[Any]]:
        """Return `time_ms`, each of `SERIES`, and `moving` (1: a handover ran) over a time, as lists for JSON."""
        picked = self._picked(from_ms, to_ms, step_ms, POINTS_MAX)
        coarse, fine = ([index for ring, index in picked if ring is one] for one in (self.coarse, self.fine))
        told: dict[str, list[Any]] = {}
        for name in ("time_ms", *SERIES, "moving"):
            columns = [_series(ring, name)[indexes] for ring, indexes in ((self.coarse, coarse), (self.fine, fine)) if indexes]
            told[name] = numbers(np.concatenate(columns)) if columns else []
        return told

    def _picked(self, from_ms: int, to_ms: int, step_ms: int, most: int) -> list[tuple[Ring, int]]:
        """Return ring and index of the newest `most` frames that are a step apart, coarse ones only from before the fine ones."""
        fine_ms = self.fine.time_ms(0) if len(self.fine) else 0
        times: list[tuple[int, Ring, int]] = []
        for ring, low, high in ((self.coarse, from_ms, min(to_ms, fine_ms - 1)), (self.fine, max(from_ms, fine_ms), to_ms)):
            all_ms = ring.column("time_ms")[:, 0]
            first, end = np.searchsorted(all_ms, low, "left"), np.searchsorted(all_ms, high, "right")
            times += [(int(all_ms[index]), ring, int(index)) for index in range(first, end)]
        if not times:
            return []
        step_ms = max(step_ms, (times[-1][0] - times[0][0]) // most + 1 if len(times) > most else 0)
        picked: list[tuple[Ring, int]] = []
        next_ms = None
        for time_ms, ring, index in reversed(times):  # backwards, so that the newest frame is among them
            if next_ms is None or time_ms <= next_ms:
                picked.append((ring, index))
                next_ms = time_ms - max(step_ms, 1)
        return picked[most - 1 :: -1] if len(picked) > most else picked[::-1]


_GATHER_MAX: Final = 32
"""Most frames that are kept until they become a coarse one."""


def mean(frames: list[Frame]) -> Frame:
    """Return one frame for several: means of rates and measurements, and all else from the last frame.

    If a handover ran in some of them, the result shows the last such handover.
    """
    last = frames[-1]
    found = Frame(last.shape)
    for name, kind in COLUMNS.items():
        if np.issubdtype(kind, np.floating) and len(frames) > 1:
            values = np.stack([frame[name] for frame in frames]).astype(np.float64)
            known = np.isfinite(values)
            count = known.sum(axis=0)
            found[name][:] = np.where(count > 0, np.where(known, values, 0).sum(axis=0) / np.maximum(count, 1), np.nan)
        else:
            found[name][:] = last[name]
    moving = next((frame for frame in reversed(frames) if (frame["server_before"] >= 0).any()), last)
    for name in ("server_before", "server", "centre", "row"):
        found[name][:] = moving[name]
    return found


def _series(ring: Ring, name: str) -> Column:
    """Return a value for each frame: of a column the sum over satellites, of `moving` whether a handover ran."""
    if name == "moving":
        return np.asarray(np.any(ring.column("server_before") >= 0, axis=1))
    if name in RATIOS:
        part, whole = RATIOS[name]
        return ratio({one: ring.column(one)[:, 0] for one in {part, *whole}}, name)
    column = ring.column(name)
    return column[:, 0] if name in MOMENT_COLUMNS else column.sum(axis=1)
