"""Places of servers along a track, by the core's schedule.

The core's headers are `sky_schedule.h` and `sky_places.h`. Times are the track's, in whole milliseconds; they may be before its
first row. The core counts microseconds.
"""

import ctypes
from collections.abc import Collection
from functools import lru_cache
from typing import Final

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


class Places:
    """Places of a layout that follows a track. Thread-safe: they never change."""

    def __init__(self, torus: Torus, rows: tuple[tuple[int, Cell], ...], name: LayoutName, servers: int) -> None:
        """Lay servers out around the first row's centre.

        Args:
            rows: `Track.rows`.

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
        self.layout = RollingLayout(self._schedule.placement)
        self._kept = lru_cache(maxsize=_CACHED)(self._servers)

    def row_at(self, time_ms: int) -> int:
        """Return the number of the row that holds, from 1."""
        return int(self._core.SKY_Schedule_RowAt(self._at, _us(time_ms)))

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
        room = (structures.Cell * (self._torus.planes * self._torus.slots))()
        self._core.SKY_Places_InRow(self._at, row, ctypes.byref(listed), servers, room)
        return from_core(servers)

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
