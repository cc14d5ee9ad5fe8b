"""Figures 13 to 15 of the paper, and the picture of any layout.

Call functions that return a picture in `drawing.look()`.
"""

from collections.abc import Iterable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from skymemory.simulate.drawing import GRID, INK, SOFT, Page, new_figure
from skymemory.simulate.latencies import PAPER, Sweep
from skymemory.simulate.layout_grid import Grid
from skymemory.simulate.mapping import LAYOUT_TEXTS
from skymemory.sky.placement.layouts import LayoutName
from skymemory.wire.address import Satellite

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

LAYOUT_FIGURES: dict[int, LayoutName] = {13: "rotation", 14: "hop", 15: "rotation_hop"}
GRID_COLUMNS = ("servers", "server", "plane", "slot", "hops_from_centre")

_MOVED = "#d55e00"
_PARITY = "#cc79a7"
_CORNER = ((0.5, -0.5), (0.0, -0.5), (0.5, 0.0), (0.5, -0.5))
"""Triangle in the corner of a cell, seen from its middle: it marks servers with parity and leaves room for their numbers."""
_CELL_IN = 0.37
_TEXT_OF_CELL_PT = 9 / _CELL_IN
"""Size of a number in a cell of one inch."""
_SENTENCE = "Servers count from 1; those on one satellite are joined by +. Colours are hops from the centre, which is circled."


def layout_grids(name: LayoutName, sweep: Sweep = PAPER, *, published: bool) -> list[Grid]:
    """Lay out each number of servers of a sweep.

    Raises:
        ValueError: Servers or centre do not fit the torus.
    """
    counts = map(int, sweep.values("SERVERS"))
    return [Grid.of(name, sweep.centre, servers, sweep.torus, published=published) for servers in counts]


def grid_rows(grids: list[Grid]) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield rows with the columns `GRID_COLUMNS`."""
    for grid in grids:
        for server, satellite in enumerate(grid.satellites, start=1):
            yield grid.servers, server, satellite.plane, satellite.slot, grid.hops(satellite)


def layouts_figure(number: int, grids: list[Grid], page: Page, *, published: bool) -> "Figure":
    """Draw figure 13, 14 or 15."""
    name, torus = LAYOUT_FIGURES[number], grids[0].torus
    title = f"Figure {number}: {LAYOUT_TEXTS[name]}, mapping {'as published' if published else 'corrected'}"
    columns = 2 if torus.slots < 2 * torus.planes else 1  # long grids stand one below the other
    lines = ceil(len(grids) / columns)
    usual_in = 9.4
    panel_in = page.width(usual_in) / columns - 0.5
    cell_in = (panel_in - 0.25) / torus.slots
    height_in = lines * (cell_in * torus.planes + 0.7)
    figure = new_figure(page, usual_in, height_in, title, _SENTENCE)
    most = max((grid.hops(satellite) for grid in grids for satellite in grid.satellites), default=0)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes in panels[len(grids) :]:
        axes.remove()
    for axes, grid in zip(panels, grids, strict=False):
        _draw(axes, grid, most, fontsize=min(9.0, _TEXT_OF_CELL_PT * cell_in))
        axes.set_title(grid.heading(), loc="left", fontsize="medium")
    _hops_bar(figure, most)
    return figure


def grid_figure(grid: Grid, page: Page) -> "Figure":
    """Draw a layout with the moves of its last rotation."""
    torus = grid.torus
    cell_in = min(_CELL_IN, 40 / max(torus.slots, torus.planes))
    usual_in = max(7.2, cell_in * torus.slots + 1.6)
    cell_in *= page.width(usual_in) / usual_in
    title = grid.title()
    figure = new_figure(page, usual_in, cell_in * torus.planes + 1.0, title[0].upper() + title[1:], " ".join(grid.told()))
    most = max((grid.hops(satellite) for satellite in grid.satellites if satellite in torus), default=0)
    axes = figure.add_subplot()
    _draw(axes, grid, most, fontsize=min(9.0, _TEXT_OF_CELL_PT * cell_in))
    _hops_bar(figure, most)
    handles = _legend(bool(grid.moves), bool(grid.parity))
    figure.legend(handles=handles, loc="outside lower left", ncols=4 if page.width(usual_in) >= 5 else 2)
    return figure


def _draw(axes: "Axes", grid: Grid, most: int, fontsize: float) -> None:
    """Draw slots to the right and planes downward, as in the paper; colours are hops from the centre."""
    from matplotlib import colormaps
    from matplotlib.patches import Circle

    planes, slots = grid.torus.planes, grid.torus.slots
    taken = {satellite: servers for satellite, servers in grid.servers_at().items() if satellite in grid.torus}
    axes.hlines(np.arange(planes + 1) + 0.5, 0.5, slots + 0.5, color=GRID, linewidth=0.6)
    axes.vlines(np.arange(slots + 1) + 0.5, 0.5, planes + 0.5, color=GRID, linewidth=0.6)
    for hops in range(most + 1):
        ring = [satellite for satellite in taken if grid.hops(satellite) == hops]
        _squares(axes, ring, facecolor=colormaps["YlGnBu"](_shade(hops, most)), edgecolor="white", linewidth=0.6)
    for satellite, servers in taken.items():
        text = "+".join(map(str, servers)) if len(servers) < 4 else f"{len(servers)} here"
        size = fontsize * min(1.0, 3.3 / len(text))
        colour = "white" if _shade(grid.hops(satellite), most) > 0.6 else INK
        axes.text(satellite.slot, satellite.plane, text, ha="center", va="center_baseline", fontsize=size, color=colour)
    parity = {satellite for satellite, servers in taken.items() if any(map(grid.is_parity, servers))}
    _corners(axes, parity)
    moved = {move.target for move in grid.moves} & set(taken)
    left = {move.origin for move in grid.moves if move.origin in grid.torus} - set(taken)
    _squares(axes, moved, fill=False, edgecolor=_MOVED, linewidth=2, zorder=3)
    _squares(axes, left, fill=False, edgecolor=_MOVED, linewidth=1.2, linestyle=(0, (2, 2)), zorder=3)
    axes.add_patch(Circle((grid.centre.slot, grid.centre.plane), 0.44, fill=False, edgecolor=INK, linewidth=1.8, zorder=4))
    axes.set(xlim=(0.4, slots + 0.6), ylim=(planes + 0.6, 0.4), aspect="equal")
    axes.set(xlabel="slot (satellite in its plane)", ylabel="plane")
    axes.set_xticks(range(1, slots + 1, 1 + slots // 40))
    axes.set_yticks(range(1, planes + 1, 1 + planes // 40))
    axes.tick_params(length=0, labelsize=min(8.0, fontsize))
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _squares(axes: "Axes", satellites: Iterable[Satellite], **look: Any) -> None:
    """Draw all cells of a kind as one path: a path for each makes the file five times as large."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    cells = [Path.unit_rectangle().transformed(_at(satellite)) for satellite in sorted(satellites)]
    if cells:
        axes.add_patch(PathPatch(Path.make_compound_path(*cells), **look))


def _corners(axes: "Axes", satellites: Iterable[Satellite]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [Path([(one.slot + x, one.plane + y) for x, y in _CORNER], closed=True) for one in sorted(satellites)]
    if corners:
        axes.add_patch(PathPatch(Path.make_compound_path(*corners), facecolor=_PARITY, edgecolor="white", linewidth=0.6))


def _at(satellite: Satellite) -> "Affine2D":
    from matplotlib.transforms import Affine2D

    return Affine2D().translate(satellite.slot - 0.5, satellite.plane - 0.5)


def _shade(hops: int, most: int) -> float:
    """Return a place on the colour map, without its palest and darkest ends."""
    return 0.12 + 0.7 * hops / max(1, most)


def _hops_bar(figure: "Figure", most: int) -> None:
    """Draw the legend of the colours."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = ListedColormap([colormaps["YlGnBu"](_shade(hops, most)) for hops in range(most + 1)])
    norm = BoundaryNorm([hops - 0.5 for hops in range(most + 2)], most + 1)
    ticks, height_in = range(0, most + 1, 1 + most // 10), figure.get_size_inches()[1]
    shrink = min(0.7, 6 / height_in)
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=figure.axes, ticks=ticks, shrink=shrink, aspect=30)
    bar.set_label("hops from the centre" if height_in > 2.5 else "hops", color=SOFT)
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def _legend(moved: bool, parity: bool) -> list["Artist"]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.path import Path

    circle: dict[str, Any] = {"marker": "o", "markersize": 11, "markeredgewidth": 1.8, "markerfacecolor": "none"}
    handles: list[Artist] = [Line2D([], [], label="centre", color=INK, linestyle="none", **circle)]
    if parity:
        corner = Path([(x, -y) for x, y in _CORNER], closed=True)  # markers have y upward
        handles.append(Line2D([], [], label="parity", color=_PARITY, linestyle="none", marker=corner, markersize=14))
    if moved:
        handles += [
            Patch(fill=False, edgecolor=_MOVED, linewidth=2, label="moved by the last rotation"),
            Patch(fill=False, edgecolor=_MOVED, linewidth=1.2, linestyle=(0, (2, 2)), label="where it was"),
        ]
    return handles
