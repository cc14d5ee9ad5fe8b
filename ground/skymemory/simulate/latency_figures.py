"""Figures 1, 2 and 16 of the paper: latency in a plane, and the latency of the three layouts.

Each function returns a picture; each `..._data` returns its data, which are also the rows of the CSV file. Call the former in
`drawing.look()`.
"""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from skymemory.simulate.drawing import INK, SOFT, STYLES, Page, new_figure
from skymemory.simulate.latencies import CHUNK_BYTES, LIGHT_M_PER_S, PARAMETERS, Parameter, Row, Sweep
from skymemory.simulate.mapping import LAYOUT_TEXTS, PAPER_LAYOUTS
from skymemory.simulate.packet_latencies import MeasuredRow
from skymemory.sky.orbit.paper_distances import in_plane_km

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIBBONS = (10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Numbers of satellites in a plane, the lines of figure 1."""
ALTITUDES_KM = tuple(range(160, 2001, 40))
COUNTS = tuple(range(10, 101))
GOAL_MS = 2.0
"""Time for which section 2 of the paper reads a number of satellites off these figures."""

_WIDTH_IN = 9.6
_TWO_COLUMNS_IN = 5.5
"""Width in inches below which pictures have their panels one below the other."""
_PLANE_SENTENCE = "Equation (1) over the speed of light: neighbours among M satellites of a plane at altitude h."

PLANE_COLUMNS = ("satellites_in_plane", "altitude_km", "latency_ms")

_PANELS: dict[Parameter, tuple[str, float]] = {
    "KVC_BYTES": ("KV cache, MiB", 2**20),
    "SERVERS": ("servers", 1),
    "CHUNK_PROCESSING_TIME": ("processing time of a chunk, ms", 1e-3),
    "ALTITUDE": ("altitude, km", 1e3),
}


def plane_latency_ms(satellites: int, altitude_km: float) -> float:
    """Return equation (1) over the speed of light: one hop in a plane."""
    return in_plane_km(satellites, altitude_km) * 1000 / LIGHT_M_PER_S * 1000


def plane_data(figure: int) -> list[tuple[int, int, float]]:
    """Return satellites in a plane, altitude in km and latency in ms of figure 1 or 2."""
    counts = RIBBONS if figure == 1 else COUNTS
    return [(count, altitude, plane_latency_ms(count, altitude)) for count in counts for altitude in ALTITUDES_KM]


def plane_ribbons(page: Page) -> "Figure":
    """Draw figure 1: latency of a hop over altitude, a ribbon for each number of satellites."""
    from matplotlib import colormaps
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    sentence = f"{_PLANE_SENTENCE} Numbers in the picture are milliseconds at {ALTITUDES_KM[-1]:,} km."
    title = "Figure 1: latency of one hop within a plane, over M and h"
    wide = page.width(7.2) >= _TWO_COLUMNS_IN
    figure = new_figure(page, 7.2, (0.6 if wide else 0.8) * page.width(7.2), title, sentence)
    axes: Any = figure.add_subplot(projection="3d")
    colours = colormaps["viridis"](np.linspace(0.9, 0.05, len(RIBBONS)))
    for colour, count in zip(colours, RIBBONS, strict=True):
        latencies = [plane_latency_ms(count, altitude) for altitude in ALTITUDES_KM]
        top = [(count, altitude, latency) for altitude, latency in zip(ALTITUDES_KM, latencies, strict=True)]
        foot = [(count, ALTITUDES_KM[-1], 0.0), (count, ALTITUDES_KM[0], 0.0)]
        axes.add_collection3d(Poly3DCollection([top + foot], facecolors=[(*colour[:3], 0.35)]))
        axes.plot([count] * len(latencies), ALTITUDES_KM, latencies, color=colour, linewidth=1.8)
        axes.text(count, ALTITUDES_KM[-1] + 60, latencies[-1] + 0.5, f"{latencies[-1]:.1f}", fontsize="small", color=INK)
    axes.set(xlabel="satellites in a plane, M", ylabel="altitude h, km", zlabel="latency of one hop, ms")
    axes.set(xlim=(0, 105), ylim=(0, 2100), zlim=(0, 18), xticks=range(10, 101, 10) if wide else (20, 60, 100))
    axes.set_yticks(range(0, 2001, 500 if wide else 1000))
    axes.view_init(elev=24, azim=-58)
    axes.set_box_aspect((1.25, 1, 0.7), zoom=1.14 if wide else 0.82)
    return figure


def plane_contours(page: Page) -> "Figure":
    """Draw figure 2: the data of figure 1 as lines of equal latency."""
    from matplotlib.colors import LogNorm

    title = "Figure 2: latency of one hop within a plane, as lines of equal latency"
    sentence = f"{_PLANE_SENTENCE} The heavy line is {GOAL_MS:g} ms."
    figure = new_figure(page, 7.2, 0.62 * page.width(7.2), title, sentence)
    axes = figure.add_subplot()
    latencies = np.array([[plane_latency_ms(count, altitude) for count in COUNTS] for altitude in ALTITUDES_KM])
    levels = (1.5, GOAL_MS, 2.5, 3, 4, 5, 7, 10, 15)
    bounds = (1, *levels, 20)
    shades = axes.contourf(COUNTS, ALTITUDES_KM, latencies, levels=bounds, norm=LogNorm(1, 30), cmap="YlGnBu")
    widths = [2.4 if level == GOAL_MS else 0.8 for level in levels]
    inks = ["white" if level >= 7 else INK for level in levels]  # dark shades have white labels
    lines = axes.contour(COUNTS, ALTITUDES_KM, latencies, levels=levels, colors=inks, linewidths=widths)
    axes.clabel(lines, levels[:-1], fmt="%g ms", fontsize="small")  # the last line has no room for its label
    figure.colorbar(shades, ax=axes, label="latency of one hop, ms", ticks=bounds, format="%g")
    axes.set(xlabel="satellites in a plane, M", ylabel="altitude h, km", xticks=range(10, 101, 10))
    axes.grid(visible=False)
    return figure


def layouts_times_figure(rows: Sequence[Row], sweep: Sweep, page: Page, *, published: bool) -> "Figure":
    """Draw figure 16: the largest time over each of the four parameters."""
    title = f"Figure 16: time to the last chunk of a block, mappings {'as published' if published else 'corrected'}"
    nowhere = " Gaps: a server is on no satellite." if any(isnan(row.max_s) for row in rows) else ""
    sentence = (
        f"{_sky(sweep)} Equations (1) to (4): the way to a server at the speed of light plus the processing time of its chunks "
        f"of {CHUNK_BYTES:,} bytes; the largest of all servers.{nowhere}"
    )
    figure, panels = _four_panels(page, title, sentence)
    for axes, letter, parameter in zip(panels, "abcd", PARAMETERS, strict=True):
        _panel(axes, letter, parameter, sweep, [row for row in rows if row.parameter == parameter])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if page.width(_WIDTH_IN) >= _TWO_COLUMNS_IN else 1)
    return figure


def packets_figure(rows: Sequence[MeasuredRow], sweep: Sweep, page: Page) -> "Figure":
    """Draw figure 16 as lines, and what the twin measures as marks."""
    sentence = (
        f"{_sky(sweep)} Lines: equations, the way to the last chunk and its processing. Marks: a get of the same block as "
        "packets of the flight code under a virtual clock."
    )
    figure, panels = _four_panels(page, "Figure 16 as packets: time to the last chunk of a block", sentence)
    for axes, letter, parameter in zip(panels, "abcd", PARAMETERS, strict=True):
        chosen = [row for row in rows if row.parameter == parameter]
        _panel(axes, letter, parameter, sweep, chosen, marked=False)
        _, unit = _PANELS[parameter]
        for layout in PAPER_LAYOUTS:
            points = [(row.value / unit, row.measured_get_s) for row in chosen if row.layout == layout]
            style = {**STYLES[layout], "linestyle": "none", "label": f"{LAYOUT_TEXTS[layout]}, as packets"}
            axes.plot(*zip(*points, strict=True), markersize=4.5, markerfacecolor="none", **style)
        bottom, highest = axes.get_ylim()[0], max(row.measured_get_s for row in chosen)
        axes.set_ylim(bottom, highest + 0.05 * (highest - bottom))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    order = [0, 3, 1, 4, 2, 5]  # each layout has a column
    columns = 3 if page.width(_WIDTH_IN) >= _TWO_COLUMNS_IN else 1
    figure.legend([handles[at] for at in order], [labels[at] for at in order], loc="outside lower center", ncols=columns)
    return figure


def _sky(sweep: Sweep) -> str:
    plane, slot = sweep.centre
    return f"{sweep.torus.planes} planes x {sweep.torus.slots} slots, the centre in plane {plane}, slot {slot}."


def _four_panels(page: Page, title: str, sentence: str) -> tuple["Figure", Iterable["Axes"]]:
    """Begin a picture of four panels: two by two, or on a narrow page one below the other."""
    width_in = page.width(_WIDTH_IN)
    if width_in >= _TWO_COLUMNS_IN:
        figure = new_figure(page, _WIDTH_IN, 0.69 * width_in, title, sentence)
        return figure, figure.subplots(2, 2).flat
    figure = new_figure(page, _WIDTH_IN, 2.1 * width_in + 0.5, title, sentence)
    return figure, figure.subplots(4, 1).flat


def _panel(
    axes: "Axes", letter: str, parameter: Parameter, sweep: Sweep, rows: Sequence[Row | MeasuredRow], *, marked: bool = True
) -> None:
    label, unit = _PANELS[parameter]
    for layout in PAPER_LAYOUTS:
        points = [row for row in rows if row.layout == layout]
        values, seconds = [row.value / unit for row in points], [row.max_s for row in points]
        style = STYLES[layout] if marked else {**STYLES[layout], "marker": "none"}
        axes.plot(values, seconds, label=LAYOUT_TEXTS[layout], linewidth=1.6, markersize=4.5, **style)
    axes.set(xlabel=label, ylabel="largest time of a server, s")
    axes.set_title(f"({letter})  {_held(parameter, sweep)}", fontsize="medium", color=SOFT, loc="left")
    if parameter == "SERVERS":
        axes.set_xticks(_apart(sweep.values("SERVERS"), sweep.servers))
    if parameter == "KVC_BYTES":
        axes.set_xticks((1, 5, 9, 13, 17, 21))
    if parameter == "ALTITUDE":
        axes.annotate("not from zero", (0.98, 0.03), xycoords="axes fraction", ha="right", fontsize="small", color=SOFT)
    else:
        axes.set_ylim(bottom=0)


def _apart(values: Sequence[float], kept: float) -> list[float]:
    """Leave out what is too close to `kept` to be read beside it on an axis."""
    near = 0.05 * (values[-1] - values[0])
    return [value for value in values if value == kept or abs(value - kept) > near]


def _held(swept: Parameter, sweep: Sweep) -> str:
    values = sweep.held(swept)
    texts: dict[Parameter, str] = {
        "KVC_BYTES": f"{values.get('KVC_BYTES', 0) / 2**20:g} MiB",
        "SERVERS": f"{values.get('SERVERS', 0):g} servers",
        "CHUNK_PROCESSING_TIME": f"{values.get('CHUNK_PROCESSING_TIME', 0) * 1e3:g} ms a chunk",
        "ALTITUDE": f"{values.get('ALTITUDE', 0) / 1e3:,.6g} km",
    }
    return ", ".join(texts[name] for name in values)
