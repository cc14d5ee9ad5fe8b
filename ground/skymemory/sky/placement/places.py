"""Places of servers along a track, and the order in which they are asked, by the core's schedule.

The core's headers are `sky_schedule.h` and `sky_places.h`. Times are the track's, in whole milliseconds; they may be before its
first row. The core counts microseconds.
"""

import ctypes
from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import core_torus, from_core, library, sorted_list
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName, require_servers
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

_CACHED: Final = 64
"""Rows whose servers are kept: those that are asked at a time, and some around them."""
_TIME_MAX: Final = 2**32 - 1
"""Latest time: times have 32 bits on board."""
_CELL_MAX: Final = structures.PLACEMENT_CELL_MAX
_TIMES: Final = 2**64
"""Modulus of the core's clock; times before the first row wrap."""


class LateSatellites(NamedTuple):
    """Satellites that have something to hand over."""

    satellites: Collection[Satellite] = ()
    """Satellites that are asked for the shares that they had in a row from `first` on and do not have now, in the order of time;
    no more than the last `HOST_LATE` for a share."""
    first: int = 1
    spares: Collection[Satellite] = ()
    """Late satellites that may have stood in for others; the first few are asked for every share."""


NOBODY: Final = LateSatellites()


class Shares(NamedTuple):
    """Places that are asked for the shares of a block."""

    rows: tuple[int, ...]
    """Rows to which the places belong."""
    places: list[list[Satellite]]
    """Places of each server, in the order in which they are asked."""
    homes: dict[int, Satellite]
    """Lost satellites that have a stand-in in one of the rows, by server; of several the last one."""


class Places:
    """Places of a layout that follows a track. Thread-safe: they never change."""

    def __init__(
        self, torus: Torus, rows: tuple[tuple[int, Cell], ...], name: LayoutName, servers: int, handover_s: float = 0.0
    ) -> None:
        """Lay servers out around the first row's centre.

        Args:
            rows: `Track.rows`.
            handover_s: Time that a handover may take.

        Raises:
            ValueError: The servers do not fit the torus, or the core cannot follow the rows.
        """
        require_servers(servers, torus)
        self._torus, self._cells = torus, [cell for _, cell in rows]
        self._core, raw_torus = library(), core_torus(torus)
        self._rows = _core_rows(rows)  # kept here, as the schedule only points to the rows
        self._schedule = structures.Schedule()
        self._at = ctypes.byref(self._schedule)
        layout = LAYOUT_IDS[name]
        if not self._core.SKY_Schedule_Init(self._at, ctypes.byref(raw_torus), layout, servers, self._rows, len(self._rows), 0):
            raise ValueError(
                f"the core cannot follow {len(rows)} rows for {name} of {servers} servers; "
                "allowed are times that rise from 0, and steps not too far"
            )
        places = structures.Places(ctypes.pointer(self._schedule), round(1e6 * handover_s))
        self._places = ctypes.byref(places)
        self.layout = RollingLayout(self._schedule.placement)
        self._kept = lru_cache(maxsize=_CACHED)(self._servers)

    def row_at(self, time_ms: int) -> int:
        """Return the number of the row that holds, from 1."""
        return int(self._core.SKY_Schedule_RowAt(self._at, _us(time_ms)))

    def rows(self, time_ms: int, epoch: int = 0) -> tuple[int, ...]:
        """Return the rows whose places are asked for a share of a block, in this order."""
        found = (ctypes.c_uint32 * structures.PLACES_ROWS_MAX)()
        count = self._core.SKY_Places_Rows(self._places, _us(time_ms), epoch, found)
        return tuple(found[:count])

    def is_moving(self, time_ms: int) -> bool:
        """Return True if satellites may hand blocks over."""
        return bool(self._core.SKY_Places_IsMoving(self._places, _us(time_ms)))

    def centre(self, row: int) -> Satellite:
        """Return the satellite in the middle of a row's window; of the first or the last row if there is no such row."""
        return self._torus.wrap(*self._cell(row))

    def servers(self, row: int, lost: Collection[Satellite] = ()) -> list[Satellite]:
        """Return the satellites of servers 0 to n - 1 in a row, with stand-ins for lost ones.

        If there is no such row, the first or the last row is taken.
        """
        if not lost:
            return list(self._kept(row))
        servers, listed = (structures.Addr * self.layout.servers)(), sorted_list(lost)
        self._core.SKY_Places_InRow(self._at, row, ctypes.byref(listed), servers, self._room())
        return from_core(servers)

    def left(self, first: int, row: int) -> list[Satellite]:
        """Return the satellites that had a server's place in a row from `first` on and do not have it in `row`.

        They are in the order of the last row in which they had it.
        """
        last_rows = np.empty(self._torus.planes * self._torus.slots, np.uint32)
        self._core.SKY_Places_Left(self._at, first, row, last_rows.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)))
        order = np.argsort(last_rows, kind="stable")[np.count_nonzero(last_rows == 0) :]
        return [Satellite(1 + index // self._torus.slots, 1 + index % self._torus.slots) for index in order.tolist()]

    def spares(self, first: int, row: int) -> list[Satellite]:
        """Return the stand-ins of the last few rows, from `first` to `row`, for hosts that called few satellites lost."""
        satellites = self._torus.planes * self._torus.slots
        marks, servers = (ctypes.c_bool * satellites)(), (structures.Addr * self.layout.servers)()
        self._core.SKY_Places_Spares(self._at, first, row, marks, servers, self._room())
        slots = self._torus.slots
        return [Satellite(1 + index // slots, 1 + index % slots) for index, is_spare in enumerate(marks) if is_spare]

    def shares(self, time_ms: int, epoch: int = 0, lost: Collection[Satellite] = (), late: LateSatellites = NOBODY) -> Shares:
        """Return the places that are asked for the shares of a block: around lost satellites, late ones first."""
        servers, most = self.layout.servers, structures.PLACES_MAX
        found, counts = (structures.Addr * (servers * most))(), (ctypes.c_uint32 * servers)()
        homes, in_row = (structures.Addr * servers)(), (structures.Addr * servers)()
        known = structures.PlacesKnown(*map(sorted_list, (lost, late.satellites, late.spares)), late.first)
        cells = self._room() if lost else None
        shares = structures.Shares(found=found, counts=counts, homes=homes, servers=in_row, cells=cells)
        self._core.SKY_Places_Find(self._places, _us(time_ms), epoch, ctypes.byref(known), ctypes.byref(shares))
        size = ctypes.sizeof(structures.Addr)
        places = [
            from_core((structures.Addr * count).from_buffer(found, server * most * size)) for server, count in enumerate(counts)
        ]
        stood_in = {server: home for server, home in enumerate(from_core(homes)) if home.plane}
        return Shares(tuple(shares.rows[: shares.row_count]), places, stood_in)

    def _room(self) -> "ctypes.Array[structures.Cell]":
        return (structures.Cell * (self._torus.planes * self._torus.slots))()

    def _servers(self, row: int) -> list[Satellite]:
        return self.layout.servers_at(self._cell(row))

    def _cell(self, row: int) -> Cell:
        """Return a row's cell. The row's number may come from a schedule that was followed a moment ago."""
        return self._cells[min(max(row, 1), len(self._cells)) - 1]


def _us(time_ms: int) -> int:
    return 1000 * time_ms % _TIMES


def _core_rows(rows: tuple[tuple[int, Cell], ...]) -> "ctypes.Array[structures.ScheduleRow]":
    numbers = np.array([(time_ms, *cell) for time_ms, cell in rows], np.int64).reshape(-1, 3)
    if not (numbers[:, 0].min(initial=0) >= 0 and numbers[:, 0].max(initial=0) <= _TIME_MAX):
        raise ValueError(f"a row's time is outside 0 to {_TIME_MAX:,} ms")
    if np.abs(numbers[:, 1:]).max(initial=0) > _CELL_MAX:
        raise ValueError(f"a centre is outside -{_CELL_MAX:,} to {_CELL_MAX:,}")
    return (structures.ScheduleRow * len(numbers)).from_buffer(numbers.astype(np.uint32).data)
