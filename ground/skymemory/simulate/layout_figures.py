"""Figures 13 to 15 of the paper, and the picture of any layout.

Call what returns a picture in `drawing.look()`.
"""

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from skymemory.placement.torus import Satellite
from skymemory.simulate.drawing import GRID, INK, SOFT, new_figure
from skymemory.simulate.grid import Grid
from skymemory.simulate.mapping import STRATEGY_TEXTS, Strategy
from skymemory.simulate.table import CENTRE, SWEEP, TORUS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

LAYOUT_FIGURES: dict[int, Strategy] = {13: "rotation", 14: "hop", 15: "hop_rotation"}
GRID_COLUMNS = ("servers", "server", "plane", "slot", "hops_from_centre")

_MOVED = "#d55e00"
_CELL_IN = 0.37
_SENTENCES: dict[Strategy, str] = {
    "rotation": "Servers lie row by row in the window, whose corners are far: servers 1 and n are the farthest of all.",
    "hop": "Servers lie in rings of equal hops around the satellite in the middle: no server is farther than it must be.",
    "hop_rotation": "Rings as in figure 14, cut to the window of figure 13: the first servers are near, the last in the corners.",
}


def layout_grids(strategy: Strategy, *, published: bool) -> list[Grid]:
    """The four layouts of a figure: 9, 25, 49 and 81 servers."""
    return [Grid.of(strategy, CENTRE, int(servers), TORUS, published=published) for servers in SWEEP["SERVERS"]]


def grid_rows(grids: list[Grid]) -> Iterator[tuple[int, int, int, int, int]]:
    """What `GRID_COLUMNS` names."""
    for grid in grids:
        for server, satellite in enumerate(grid.satellites, start=1):
            yield grid.servers, server, satellite.plane, satellite.slot, grid.hops(satellite)


def layouts_figure(number: int, grids: list[Grid], *, published: bool) -> "Figure":
    """Figure 13, 14 or 15."""
    strategy = LAYOUT_FIGURES[number]
    title = f"Figure {number}: {STRATEGY_TEXTS[strategy]}, mapping {'as published' if published else 'corrected'}"
    figure = new_figure(9.4, 9.0, title, _SENTENCES[strategy])
    most = max(grid.hops(satellite) for grid in grids for satellite in grid.satellites)
    for axes, grid in zip(figure.subplots(2, 2).flat, grids, strict=True):
        _draw(axes, grid, most, fontsize=7)
        side = round(sqrt(grid.servers))
        axes.set_title(f"{grid.servers} servers" + (f" ({side} x {side})" if strategy != "hop" else ""), loc="left")
    _hops_bar(figure, most)
    return figure


def grid_figure(grid: Grid) -> "Figure":
    """A layout with what its last rotation moved."""
    cell_in = min(_CELL_IN, 40 / max(grid.torus.slots, grid.torus.planes))
    width_in, height_in = max(7.2, cell_in * grid.torus.slots + 1.6), cell_in * grid.torus.planes + 0.95
    title = grid.title()
    figure = new_figure(width_in, height_in, title[0].upper() + title[1:], " ".join(grid.told()))
    most = max((grid.hops(satellite) for satellite in grid.satellites if satellite in grid.torus), default=0)
    axes = figure.add_subplot()
    _draw(axes, grid, most, fontsize=9 * cell_in / _CELL_IN)
    _hops_bar(figure, most)
    figure.legend(handles=_legend(bool(grid.moves)), loc="outside lower left", ncols=3)
    return figure


def _draw(axes: "Axes", grid: Grid, most: int, fontsize: float) -> None:
    """Slots to the right, planes downward, as in the paper; colours are hops from the centre."""
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
    """One path for all cells of a kind: a path for each makes the file five times as large."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    cells = [Path.unit_rectangle().transformed(_at(satellite)) for satellite in sorted(satellites)]
    if cells:
        axes.add_patch(PathPatch(Path.make_compound_path(*cells), **look))


def _at(satellite: Satellite) -> "Affine2D":
    from matplotlib.transforms import Affine2D

    return Affine2D().translate(satellite.slot - 0.5, satellite.plane - 0.5)


def _shade(hops: int, most: int) -> float:
    """Place on the colour map; its palest and darkest ends are left out."""
    return 0.12 + 0.7 * hops / max(1, most)


def _hops_bar(figure: "Figure", most: int) -> None:
    """The legend of the colours."""
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


def _legend(moved: bool) -> list["Artist"]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    circle: dict[str, Any] = {"marker": "o", "markersize": 11, "markeredgewidth": 1.8, "markerfacecolor": "none"}
    handles: list[Artist] = [Line2D([], [], label="centre", color=INK, linestyle="none", **circle)]
    if moved:
        handles += [
            Patch(fill=False, edgecolor=_MOVED, linewidth=2, label="moved by the last rotation"),
            Patch(fill=False, edgecolor=_MOVED, linewidth=1.2, linestyle=(0, (2, 2)), label="where it was"),
        ]
    return handles
