"""The grid of satellites in a terminal: planes downward, slots to the right, as on the page and in the figures."""

from collections.abc import Iterator, Mapping
from math import ceil

from rich.table import Table
from rich.text import Text

HEAD = "slot →\nplane ↓"
"""Names of both directions, as on the page."""
HEAD_COLUMNS = len("plane ↓")

Cells = Mapping[tuple[int, int], Text]
"""Text that the grid shows for each satellite (plane, slot)."""


def grid_tables(planes: int, slots: int, cells: Cells, width: int, *, gap: int) -> Iterator[Table]:
    """Yield the grid: one table if it fits the width, else several of about as many slots each.

    Args:
        gap: Blanks between columns.
    """
    cell = _widest(planes, slots, cells)
    most = max(1, (width - HEAD_COLUMNS) // (gap + cell))
    together = ceil(slots / ceil(slots / most))
    for first in range(1, slots + 1, together):
        shown = range(first, min(first + together, slots + 1))
        table = Table(box=None, padding=(0, 0, 0, gap), pad_edge=False)
        table.add_column(HEAD, justify="right", no_wrap=True)
        for slot in shown:
            table.add_column(str(slot), justify="right", no_wrap=True, min_width=cell)
        for plane in range(1, planes + 1):
            table.add_row(str(plane), *(cells[plane, slot] for slot in shown))
        yield table


def columns_needed(planes: int, slots: int, cells: Cells, *, gap: int) -> int:
    """Return the width that the whole grid needs."""
    return HEAD_COLUMNS + slots * (gap + _widest(planes, slots, cells))


def _widest(planes: int, slots: int, cells: Cells) -> int:
    places = ((plane, slot) for plane in range(1, planes + 1) for slot in range(1, slots + 1))
    return max(len(str(slots)), *(cells[place].cell_len for place in places))
