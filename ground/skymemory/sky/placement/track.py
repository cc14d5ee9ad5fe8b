"""The track of the window's centre over the torus: rows and their times. Satellites get the rows as they are (`sky_schedule.h`).

Rows count from 1. A row holds from its time to that of the next, the first also before its time, the last for ever. The number of
a row is the `epoch` of packets about blocks that were prefetched for its window.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isfinite
from typing import Final

from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.places import Places
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

_LAST_MS: Final = 2**32 - 1
"""Latest time of a row: times have 32 bits on board."""


@dataclass(frozen=True)
class Track:
    """Centres in order of time, unrolled."""

    torus: Torus
    rows: tuple[tuple[int, Cell], ...]
    """Times in whole milliseconds, rising from 0 on, and centres."""

    @classmethod
    def of(cls, torus: Torus, centres: Iterable[tuple[int, Satellite]]) -> "Track":
        """Unroll centres: from each to the next the shorter way on both axes; a tie goes south, respectively east.

        The seam does not matter: a window lies over it. An entry that does not change the centre makes no row.

        Args:
            torus: Torus of the centres.
            centres: Time in milliseconds, the first 0, and the satellite that is the centre from then on.

        Raises:
            ValueError: There is no centre, one is outside the torus, the first time is not 0, or times do not rise.
        """
        plain = Torus(torus.planes, torus.slots)
        rows: list[tuple[int, Cell]] = []
        last_ms = -1
        for time_ms, satellite in centres:
            if satellite not in torus:
                raise ValueError(f"centre {satellite} is outside the torus of {torus.planes} planes x {torus.slots} slots")
            if time_ms <= last_ms or (last_ms < 0 and time_ms != 0):
                raise ValueError(f"a centre has the time {time_ms} ms; allowed are 0 for the first, and rising times")
            last_ms = time_ms
            if not rows:
                rows.append((time_ms, Cell(*satellite)))
                continue
            cell = rows[-1][1]
            before = torus.wrap(*cell)
            if before != satellite:
                planes = plain.plane_offset(before.plane, satellite.plane)
                slots = plain.slot_offset(before.slot, satellite.slot)
                rows.append((time_ms, Cell(cell.plane + planes, cell.slot + slots)))
        if not rows:
            raise ValueError("the track has no centre; allowed are one or more")
        return cls(torus, tuple(rows))

    def row_at(self, time_ms: int) -> int:
        """Return the number of the row that holds, from 1.

        Raises:
            ValueError: The core cannot follow the rows; `of` makes none of that kind.
        """
        return self._places.row_at(time_ms)

    def cell(self, row: int) -> Cell:
        """Return the unrolled centre of a row.

        Raises:
            IndexError: There is no row of this number.
        """
        if not 1 <= row <= len(self.rows):
            raise IndexError(f"there is no row {row}; allowed are 1 to {len(self.rows)}")
        return self.rows[row - 1][1]

    def centre(self, row: int) -> Satellite:
        """Return the satellite in the middle of a row's window. Errors are those of `cell`."""
        return self.torus.wrap(*self.cell(row))

    def end_ms(self, row: int) -> int | None:
        """Return the time at which the next row begins to hold; None if there is none. Errors are those of `cell`."""
        self.cell(row)
        return self.rows[row][0] if row < len(self.rows) else None

    def stays(self, row: int) -> bool:
        """Return True if the window stays in a row: it is the last, or later ones are put off. Errors are those of `cell`."""
        end_ms = self.end_ms(row)
        return end_ms is None or end_ms > _LAST_MS - len(self.rows)

    def places(self, name: LayoutName, servers: int) -> Places:
        """Return the places of servers along this track. They are laid out around its first centre, as on board.

        Raises:
            ValueError: The servers do not fit the torus, or the core cannot follow the rows.
        """
        return Places(self.torus, self.rows, name, servers)

    def layout(self, name: LayoutName, servers: int) -> RollingLayout:
        """Return a layout that follows this track. Errors are those of `places`."""
        return self.places(name, servers).layout

    def played(self, from_ms: int, speed: float, until_ms: int | None = None) -> "Track":
        """Return a part of the track, faster or slower.

        Each row begins at the first whole millisecond at which it holds; of several at the same one the last is left.

        Args:
            from_ms: Time that becomes 0.
            speed: Milliseconds of this track in one of the new one.
            until_ms: Time after which rows that begin are left out.

        Raises:
            ValueError: The speed is not above 0.
        """
        if not (isfinite(speed) and speed > 0):
            raise ValueError(f"the speed is {speed}; allowed are numbers above 0")
        start = self.row_at(from_ms)
        last = len(self.rows) if until_ms is None else self.row_at(until_ms)
        centres = {0: self.centre(start)}
        for row in range(start + 1, last + 1):
            centres[ceil((self.rows[row - 1][0] - from_ms) / speed)] = self.centre(row)
        return Track.of(self.torus, centres.items())

    def continued(self, row: int, later: "Track", pause_ms: int = 0) -> "Track":
        """Return another track behind the rows of this one, up to `row`, which pass by in a millisecond each.

        The places of servers follow from the first centre and from how the window came to the present one. So blocks that were
        stored under this track are found under the continued one.

        Args:
            pause_ms: Time for which `row` holds longer: the other track begins after `row + pause_ms` milliseconds.

        Raises:
            ValueError: The other track has another torus.
            IndexError: There is no such row.
        """
        if (later.torus.planes, later.torus.slots) != (self.torus.planes, self.torus.slots):
            raise ValueError(f"a track over {later.torus} cannot follow one over {self.torus}")
        past = [(before, self.centre(before + 1)) for before in range(row)]
        behind = ((row + pause_ms + time_ms, later.torus.wrap(*cell)) for time_ms, cell in later.rows)
        return Track.of(self.torus, [*past, *behind])

    def held(self, row: int) -> "Track":
        """Return the track up to `row`, which then holds for weeks: later rows follow at the end of 32 bits of milliseconds.

        They are not left out, because how far the window moves in one step decides how a layout rolls (`layout`).

        Raises:
            IndexError: There is no such row.
        """
        self.cell(row)
        left = len(self.rows) - row
        put_off = ((_LAST_MS - left + after, cell) for after, (_, cell) in enumerate(self.rows[row:], start=1))
        return Track(self.torus, (*self.rows[:row], *put_off))

    @cached_property
    def _places(self) -> Places:
        """Places for questions that do not depend on servers."""
        return self.places("rotation", 1)
