"""A frame: everything that the page shows of one moment, as columns of numbers.

Satellites stand plane by plane; each has two links of its own, east and south, so that every link is there once: link 2i is the
one east of satellite i, 2i + 1 the one south of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

SATELLITE_COLUMNS: Final[dict[str, type[np.generic]]] = {
    "state": np.uint8,
    "chunks": np.uint32,
    "bytes": np.uint32,
    "used_bytes": np.uint32,
    "hits_per_s": np.float16,
    "misses_per_s": np.float16,
    "evictions_per_s": np.float16,
    "moved_per_s": np.float16,
    "server": np.int32,
    "server_before": np.int32,
}
"""Columns of each satellite. `bytes`: those of chunks. `used_bytes`: those of the store that are in use. `moved`: chunks handed
on to others. `server`: the number of the server that it is, -1: none. `server_before`: the number before the handover that
runs now; -1 everywhere while none runs."""
LINK_COLUMNS: Final[dict[str, type[np.generic]]] = {
    "link_state": np.uint8,
    "packets_per_s": np.float16,
    "drops_per_s": np.float16,
}
"""Columns of each link, both directions together, without the hellos by which satellites see that a link is there."""
MOMENT_COLUMNS: Final[dict[str, type[np.generic]]] = {
    "time_ms": np.int64,
    "sky_ms": np.int64,
    "centre": np.uint16,
    "row": np.uint32,
    "alive": np.uint16,
    "asked_per_s": np.float32,
    "hit_per_s": np.float32,
    "lost_per_s": np.float32,
    "get_p50_s": np.float32,
    "get_p99_s": np.float32,
    "loss_ratio": np.float32,
    "retry_ratio": np.float32,
    "bytes_up_per_s": np.float32,
    "bytes_down_per_s": np.float32,
}
"""Columns of the moment itself. Of the blocks that engines and clients asked for, `hit` came, and `lost` were believed to be in
the sky and did not come. Times are Unix times; `sky_ms` is the time in the sky, which differs in a replay. Values that were not
measured are NaN."""
COLUMNS: Final = MOMENT_COLUMNS | SATELLITE_COLUMNS | LINK_COLUMNS
RATIOS: Final = {"hit_ratio": ("hit_per_s", ("asked_per_s",)), "delivery_ratio": ("hit_per_s", ("hit_per_s", "lost_per_s"))}
"""Ratios of rates: the share of the first in the sum of the others. `hit_ratio`: the share of the blocks asked for;
`delivery_ratio`: the share of the blocks believed to be in the sky."""
SERIES: Final = (*RATIOS, "alive", "chunks", *(name for name, kind in MOMENT_COLUMNS.items() if kind is np.float32))
"""Columns that are drawn over time."""

SILENT: Final = 0
"""`state` of a satellite that did not answer."""
ANSWERS: Final = 1
UNASKED: Final = 2
"""`state` of a satellite that was not asked yet."""

NO_LINK: Final = 0
"""`link_state` where no link is: the seam of a star, or an axis of one."""
LINK_UP: Final = 1
LINK_DOWN: Final = 2
LINK_UNKNOWN: Final = 3
"""`link_state` if neither end answers."""

_NOTHING: Final = 1e-9
"""Value below which anything here counts as 0."""
_RATE_MAX: Final = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Shape:
    """Lengths of the columns."""

    planes: int
    slots: int

    @property
    def satellites(self) -> int:
        """Number of satellites of the constellation."""
        return self.planes * self.slots

    def width(self, column: str) -> int:
        """Return the number of values of a column in a frame."""
        if column in MOMENT_COLUMNS:
            return 1
        return self.satellites if column in SATELLITE_COLUMNS else 2 * self.satellites

    @property
    def frame_bytes(self) -> int:
        """Bytes of memory of a frame."""
        return sum(self.width(name) * np.dtype(kind).itemsize for name, kind in COLUMNS.items())


class Frame:
    """One moment; `columns` has an array for each name of `COLUMNS`."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.columns: dict[str, Column] = {name: np.zeros(shape.width(name), kind) for name, kind in COLUMNS.items()}
        for name in ("server", "server_before"):
            self[name][:] = -1
        for name, kind in MOMENT_COLUMNS.items():
            if kind is np.float32:
                self[name][:] = np.nan

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @property
    def time_ms(self) -> int:
        """Unix time at which the frame was taken, in ms."""
        return int(self["time_ms"][0])

    @property
    def sky_ms(self) -> int:
        """Unix time in the sky, in ms; it differs from `time_ms` in a replay."""
        return int(self["sky_ms"][0])

    def moves(self) -> list[tuple[int, int, int]]:
        """Return the moves of the running handover: (server, satellite before, satellite now)."""
        now = {int(number): place for place, number in enumerate(self["server"]) if number >= 0}
        before = ((int(number), place) for place, number in enumerate(self["server_before"]) if number >= 0)
        return [(number, place, now[number]) for number, place in before if now.get(number, place) != place]

    def told(self) -> dict[str, Any]:
        """Return the frame for JSON: lists in the order of satellites and links, with None for values that were not measured."""
        told: dict[str, Any] = {}
        for name in MOMENT_COLUMNS:
            told[name] = number(self[name][0])
        for name in RATIOS:
            told[name] = number(ratio(self.columns, name)[0])
        for name in (*SATELLITE_COLUMNS, *LINK_COLUMNS):
            if name not in ("server", "server_before"):
                told[name] = numbers(self[name])
        told["servers"] = [place for _, place in sorted((int(n), place) for place, n in enumerate(self["server"]) if n >= 0)]
        told["moves"] = self.moves()
        return told


def ratio(columns: Mapping[str, Column], name: str) -> Column:
    """Return a ratio of `RATIOS`; NaN where nothing was asked for."""
    part, whole = RATIOS[name]
    total = sum(columns[one] for one in whole)
    found: Column = np.divide(columns[part], total, out=np.full_like(columns[part], np.nan), where=np.asarray(total > 0))
    return found


def rate(counts: Column | float, seconds: float) -> Column:
    """Return counts of a time as rates per second, at most the largest 16-bit float."""
    return np.minimum(np.asarray(counts, np.float64) / max(seconds, 1e-3), _RATE_MAX).astype(np.float16)


def number(value: Any) -> int | float | None:
    """Return a value for JSON: four digits of a rate or ratio, None if it was not measured."""
    if isinstance(value, np.floating):
        return float(f"{float(value):.4g}") if np.isfinite(value) else None
    return int(value)


def numbers(column: Column) -> list[int | float | None]:
    """Return the values of a column for JSON, each as `number` does."""
    if column.dtype.kind == "f":
        values = column.astype(np.float64)
        values[np.abs(values) < _NOTHING] = 0
        known = np.isfinite(values)
        places = 3 - np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=known & (values != 0)))
        scale = 10.0 ** np.abs(places)
        rounded = np.where(places >= 0, np.round(values * scale) / scale, np.round(values / scale) * scale)
        return [value if one else None for value, one in zip(rounded.tolist(), known.tolist(), strict=True)]
    whole: list[int | float | None] = column.astype(np.int64).tolist()
    return whole
