"""Figures 1, 2 and 16 of the paper: latency in a plane, and the latency of the three strategies.

Each function returns a picture; each `..._data` what it draws, which is also what the CSV file holds. Call the former in
`drawing.look()`.
"""

from collections.abc import Sequence
from math import asin, ceil, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from skymemory.orbit.geometry import EARTH_RADIUS_KM, in_plane_km
from skymemory.simulate.drawing import INK, SOFT, STYLES, new_figure
from skymemory.simulate.mapping import STRATEGIES, STRATEGY_TEXTS
from skymemory.simulate.packets import MeasuredRow
from skymemory.simulate.table import LIGHT_M_PER_S, SWEEP, TORUS, Parameter, Row, held

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIBBONS = (10, 15, 20, 30, 40, 50, 60, 80, 100)
"""satellites in a plane: the lines of figure 1"""
ALTITUDES_KM = tuple(range(160, 2001, 40))
COUNTS = tuple(range(10, 101))
GOAL_MS = 2.0
"""what section 2 of the paper reads off these figures for 50 satellites and more"""

PLANE_COLUMNS = ("satellites_in_plane", "altitude_km", "latency_ms")

_PANELS: dict[Parameter, tuple[str, float]] = {
    "KVC_BYTES": ("KV cache, MiB", 2**20),
    "SERVERS": ("servers", 1),
    "CHUNK_PROCESSING_TIME": ("processing time of a chunk, ms", 1e-3),
    "ALTITUDE": ("altitude, km", 1e3),
}


def plane_latency_ms(satellites: int, altitude_km: float) -> float:
    """Equation (1) over the speed of light: one hop in a plane."""
    return in_plane_km(satellites, altitude_km) * 1000 / LIGHT_M_PER_S * 1000


def plane_data(figure: int) -> list[tuple[int, int, float]]:
    """Satellites in a plane, altitude in km and latency in ms of figure 1 or 2."""
    counts = RIBBONS if figure == 1 else COUNTS
    return [(count, altitude, plane_latency_ms(count, altitude)) for count in counts for altitude in ALTITUDES_KM]


def satellites_for(latency_ms: float, altitude_km: float) -> int:
    """The fewest satellites in a plane whose hops take no longer."""
    chord_km = latency_ms / 1000 * LIGHT_M_PER_S / 1000
    return ceil(pi / asin(chord_km / 2 / (EARTH_RADIUS_KM + altitude_km)))


def plane_ribbons() -> "Figure":
    """Figure 1: latency of a hop over altitude, a ribbon for each number of satellites."""
    from matplotlib import colormaps
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    sentence = f"{_plane_sentence()} Numbers in the picture are milliseconds at {ALTITUDES_KM[-1]:,} km."
    figure = new_figure(7.2, 4.3, "Figure 1: one hop within a plane, over M and h", sentence)
    axes: Any = figure.add_subplot(projection="3d")
    colours = colormaps["viridis"](np.linspace(0.9, 0.05, len(RIBBONS)))
    for colour, count in zip(colours, RIBBONS, strict=True):
        latencies = [plane_latency_ms(count, altitude) for altitude in ALTITUDES_KM]
        top = [(count, altitude, latency) for altitude, latency in zip(ALTITUDES_KM, latencies, strict=True)]
        foot = [(count, ALTITUDES_KM[-1], 0.0), (count, ALTITUDES_KM[0], 0.0)]
        axes.add_collection3d(Poly3DCollection([top + foot], facecolors=[(*colour[:3], 0.35)]))
        axes.plot([count] * len(latencies), ALTITUDES_KM, latencies, color=colour, linewidth=1.8)
        axes.text(count, ALTITUDES_KM[-1] + 60, latencies[-1] + 0.5, f"{latencies[-1]:.1f}", fontsize=7.5, color=INK)
    axes.set(xlabel="satellites in a plane, M", ylabel="altitude h, km", zlabel="latency of one hop, ms")
    axes.set(xlim=(0, 105), ylim=(0, 2100), zlim=(0, 18), xticks=range(10, 101, 10), yticks=range(0, 2001, 500))
    axes.view_init(elev=24, azim=-58)
    axes.set_box_aspect((1.25, 1, 0.7), zoom=1.14)
    return figure


def plane_contours() -> "Figure":
    """Figure 2: the same as lines of equal latency."""
    from matplotlib.colors import LogNorm

    figure = new_figure(7.2, 4.5, "Figure 2: one hop within a plane, lines of equal latency", _plane_sentence())
    axes = figure.add_subplot()
    latencies = np.array([[plane_latency_ms(count, altitude) for count in COUNTS] for altitude in ALTITUDES_KM])
    levels = (1.5, GOAL_MS, 2.5, 3, 4, 5, 7, 10, 15)
    bounds = (1, *levels, 20)
    shades = axes.contourf(COUNTS, ALTITUDES_KM, latencies, levels=bounds, norm=LogNorm(1, 30), cmap="YlGnBu")
    widths = [2.4 if level == GOAL_MS else 0.8 for level in levels]
    inks = ["white" if level >= 7 else INK for level in levels]  # on the dark shades
    lines = axes.contour(COUNTS, ALTITUDES_KM, latencies, levels=levels, colors=inks, linewidths=widths)
    axes.clabel(lines, levels[:-1], fmt="%g ms", fontsize=8)  # the last line has no room for its label
    figure.colorbar(shades, ax=axes, label="latency of one hop, ms", ticks=bounds, format="%g")
    axes.set(xlabel="satellites in a plane, M", ylabel="altitude h, km", xticks=range(10, 101, 10))
    axes.grid(visible=False)
    return figure


def _plane_sentence() -> str:
    low, high = (plane_latency_ms(50, altitude) for altitude in (ALTITUDES_KM[0], ALTITUDES_KM[-1]))
    few, many = (satellites_for(GOAL_MS, altitude) for altitude in (ALTITUDES_KM[0], ALTITUDES_KM[-1]))
    return (
        "A hop gets shorter with more satellites in the plane, and a little longer with altitude. With 50 satellites it takes "
        f"{low:.1f} ms at {ALTITUDES_KM[0]:,} km and {high:.1f} ms at {ALTITUDES_KM[-1]:,} km; for {GOAL_MS:g} ms there must be "
        f"{few} and {many}."
    )


def strategies_figure(rows: list[Row], *, published: bool) -> "Figure":
    """Figure 16: the largest time over each of the four parameters."""
    size = f"{TORUS.planes} planes x {TORUS.slots} slots"
    title = f"Figure 16: time to the last chunk of a block, {size}, mappings {'as published' if published else 'corrected'}"
    figure = new_figure(9.6, 6.6, title, _strategies_sentence(rows))
    panels = figure.subplots(2, 2).flat
    for axes, letter, parameter in zip(panels, "abcd", _PANELS, strict=True):
        _panel(axes, letter, parameter, [row for row in rows if row.parameter == parameter])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def packets_figure(rows: list[MeasuredRow]) -> "Figure":
    """Figure 16 beside what the twin measures: as lines the former, as marks the latter."""
    more_ms = [1000 * (row.measured_get_s - row.max_s) for row in rows]
    sentence = (
        "Lines: equations, the way to the last chunk and its processing. Marks: a get of the same block as packets of the flight "
        f"code under a virtual clock. It takes {min(more_ms):.0f} to {max(more_ms):.0f} ms longer, the way of the request."
    )
    figure = new_figure(9.6, 6.6, "Figure 16 as packets: time to the last chunk of a block", sentence)
    for axes, letter, parameter in zip(figure.subplots(2, 2).flat, "abcd", _PANELS, strict=True):
        chosen = [row for row in rows if row.parameter == parameter]
        _panel(axes, letter, parameter, chosen, marked=False)
        _, unit = _PANELS[parameter]
        for strategy in STRATEGIES:
            points = [(row.value / unit, row.measured_get_s) for row in chosen if row.strategy == strategy]
            style = {**STYLES[strategy], "linestyle": "none", "label": f"{STRATEGY_TEXTS[strategy]}, as packets"}
            axes.plot(*zip(*points, strict=True), markersize=4.5, markerfacecolor="none", **style)
        bottom, highest = axes.get_ylim()[0], max(row.measured_get_s for row in chosen)
        axes.set_ylim(bottom, highest + 0.05 * (highest - bottom))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    order = [0, 3, 1, 4, 2, 5]  # a column for each strategy
    figure.legend([handles[at] for at in order], [labels[at] for at in order], loc="outside lower center", ncols=3)
    return figure


def _panel(axes: "Axes", letter: str, parameter: Parameter, rows: Sequence[Row | MeasuredRow], *, marked: bool = True) -> None:
    label, unit = _PANELS[parameter]
    for strategy in STRATEGIES:
        points = [row for row in rows if row.strategy == strategy]
        values, seconds = [row.value / unit for row in points], [row.max_s for row in points]
        style = STYLES[strategy] if marked else {**STYLES[strategy], "marker": "none"}
        axes.plot(values, seconds, label=STRATEGY_TEXTS[strategy], linewidth=1.6, markersize=4.5, **style)
    axes.set(xlabel=label, ylabel="largest time of a server, s")
    axes.set_title(f"({letter})  {_held(parameter)}", fontsize=8.5, color=SOFT, loc="left")
    if parameter == "SERVERS":
        axes.set_xticks(SWEEP["SERVERS"])
    if parameter == "KVC_BYTES":
        axes.set_xticks((1, 5, 9, 13, 17, 21))
    if parameter == "ALTITUDE":
        axes.annotate("not from zero", (0.98, 0.03), xycoords="axes fraction", ha="right", fontsize=7.5, color=SOFT)
    else:
        axes.set_ylim(bottom=0)


def _held(swept: Parameter) -> str:
    values = held(swept)
    texts: dict[Parameter, str] = {
        "KVC_BYTES": f"{values.get('KVC_BYTES', 0) / 2**20:g} MiB",
        "SERVERS": f"{values.get('SERVERS', 0):g} servers",
        "CHUNK_PROCESSING_TIME": f"{values.get('CHUNK_PROCESSING_TIME', 0) * 1e3:g} ms a chunk",
        "ALTITUDE": f"{values.get('ALTITUDE', 0) / 1e3:,.0f} km",
    }
    return ", ".join(texts[name] for name in values)


def _strategies_sentence(rows: list[Row]) -> str:
    points: dict[tuple[Parameter, float], list[float]] = {}
    for row in rows:
        points.setdefault((row.parameter, row.value), []).append(row.max_s)
    few, many = SWEEP["SERVERS"][0], SWEEP["SERVERS"][-1]
    saved = 1 - max(points["SERVERS", many]) / max(points["SERVERS", few])
    spread_ms = 1000 * max(max(times) - min(times) for times in points.values())
    return (
        f"Servers count most: {many:g} instead of {few:g} take {100 * saved:.0f} % off. The strategies differ by at most "
        f"{spread_ms:.0f} ms, the processing time of one chunk: rotation-aware, a chunk that is left over falls to a corner."
    )
