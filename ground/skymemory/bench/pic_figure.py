"""The picture of `skymem bench pic`: time over the rate of the link, a panel for each codec and round trip.

It is drawn from the object that `--json` prints. Call `pic_figure` in `drawing.look()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from skymemory.bench.pic_times import AUTO, FULL, PREFIX, SERIAL, delayed_sentence
from skymemory.simulate.drawing import INK, Page, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIC_COLUMNS: Final = ("codec", "rate_mbit_s", "round_trip_ms", "way", "median_s", "cpu_s", "delayed_s", "runs_s")
_WIDTH_IN: Final = 9.6
_PANELS_A_ROW: Final = 3
_DASHES: Final = (0, (4, 2))
_LEGO, _BLEND, _SOFT = "#0072b2", "#d55e00", "#8a94a0"


def pic_rows(report: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each point and way, of `PIC_COLUMNS`; runs are separated by spaces."""
    for point in report["points"]:
        for way, times in point["ways"].items():
            runs = " ".join(map(str, times["runs_s"]))
            yield (
                point["codec"],
                point["rate_mbit_s"],
                point["round_trip_ms"],
                way,
                times["median_s"],
                times["cpu_s"],
                times["delayed_s"],
                runs,
            )


def pic_figure(report: dict[str, Any], page: Page) -> Figure:
    """Draw the curves. The rates without a limit have no place on them."""
    panels: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for point in sorted(report["points"], key=lambda one: one["rate_mbit_s"]):
        if point["rate_mbit_s"]:
            panels.setdefault((point["codec"], point["round_trip_ms"]), []).append(point)
    wide = page.width(_WIDTH_IN) >= _WIDTH_IN / 2
    columns = min(_PANELS_A_ROW if wide else 1, len(panels))
    rows = -(-len(panels) // columns)
    sentence = (
        f"{report['tokens']:,} tokens, {report['linked_tokens']:,} of them in {report['segments']} segments; "
        f"{report['parameters'] / 1e6:.0f} M parameters, {report['layers']} layers, one thread; medians of "
        f"{report['rounds']} runs. m: layer below which all is computed. {delayed_sentence(report)}"
    )
    title = "Seconds until the cache of a prompt is there, over the rate of the link"
    figure = new_figure(page, _WIDTH_IN, rows * (2.9 if wide else 2.4) + 0.6, title, sentence)
    axes: Any = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axis, ((codec, round_trip_ms), points) in zip(axes.flat, panels.items(), strict=False):
        _panel(axis, f"{codec}, {round_trip_ms:g} ms", points)
    for axis in axes[:, 0]:
        axis.set_ylabel("s")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5 if wide else 2)
    return figure


def _panel(axis: Axes, title: str, points: list[dict[str, Any]]) -> None:
    rates = [point["rate_mbit_s"] for point in points]
    for way in points[0]["ways"]:
        axis.plot(rates, [point["ways"][way]["median_s"] for point in points], label=way, **_style(way))
    axis.set(xscale="log", yscale="log", xlabel="Mbit/s")
    axis.set_title(title, loc="left")
    axis.set_xticks(rates, [f"{rate:g}" for rate in rates], rotation=45 if len(rates) > 5 else 0)
    axis.set_yticks(ticks := (0.2, 0.5, 1, 2, 5, 10, 20), [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_ylim(0.18, 4 * points[0]["ways"][FULL]["median_s"])


def _style(way: str) -> dict[str, Any]:
    if way == FULL:
        return {"color": INK, "linewidth": 1.6, "linestyle": _DASHES}
    if way == PREFIX:
        return {"color": _SOFT, "linewidth": 1.6}
    if way == AUTO:
        return {"color": "#007a5a", "linewidth": 3.2, "alpha": 0.6, "marker": "o", "markersize": 4}
    colour = _LEGO if "lego" in way else _BLEND
    if way.startswith(SERIAL):
        return {"color": colour, "linewidth": 1.0, "linestyle": (0, (1, 1.2))}
    shallow = way.endswith(("m = 0", "m = 1"))
    return {"color": colour, "linewidth": 1.3, "linestyle": "solid" if shallow else _DASHES}
