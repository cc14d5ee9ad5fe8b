"""What all pictures share: matplotlib where it is installed, one look, files that are the same for the same data."""

import csv
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skymemory.extras import how_to_install
from skymemory.simulate.mapping import Strategy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, GRID = "#1f2d3d", "#52606d", "#d5dce4"
STYLES: dict[Strategy, dict[str, Any]] = {
    "rotation": {"color": "#d55e00", "marker": "s", "linestyle": (0, (5, 2))},
    "hop": {"color": "#0072b2", "marker": "o", "linestyle": (0, (1, 1.2))},
    "hop_rotation": {"color": "#007a5a", "marker": "^", "linestyle": "solid"},
}
"""colours of Okabe and Ito (the green a little darker), which colour-blind people tell apart; marker and line differ as well"""

_SETTINGS: Any = {
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",  # letters stay letters: small files, and text that can be searched
    "svg.hashsalt": "skymemory",  # the same picture is the same file
}

_TAG = re.compile(r"<[^>]*>")
_DECIMALS = re.compile(r"(\d+\.\d\d)\d+")
_UPRIGHT = re.compile(r' transform="rotate\(-0 [^"]*\)"')


class MissingLibraryError(RuntimeError):
    """matplotlib is not installed; the text says how to get it."""


@contextmanager
def look() -> Iterator[None]:
    """Draw and write pictures in here.

    Raises:
        MissingLibraryError: pictures need the extra `figures`.
    """
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise MissingLibraryError(how_to_install(error.name or "matplotlib", "figures")) from error
    with rc_context(_SETTINGS):
        yield


def new_figure(width_in: float, height_in: float, title: str, sentence: str) -> "Figure":
    """A picture with its title in bold and below it what is to be seen, at the top left; the rest is for axes."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(sentence, int(width_in * 14.5), break_on_hyphens=False)
    below_in = 0.45 + 0.17 * len(lines)
    figure = Figure(figsize=(width_in, height_in + below_in))
    at, top = 0.15 / width_in, height_in + below_in
    figure.text(at, 1 - 0.12 / top, title, va="top", fontsize=12, fontweight="bold")
    figure.text(at, 1 - 0.38 / top, "\n".join(lines), va="top", color=SOFT, linespacing=1.3)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, height_in / top))
    return figure


def save(figure: "Figure", path: Path) -> Path:
    """Write a picture in the form that the name's ending says. No date goes in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() != ".svg":
        figure.savefig(path, dpi=160)
        return path
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(_TAG.sub(lambda tag: _short(tag[0]), text.getvalue()), encoding="utf-8")
    return path


def _short(tag: str) -> str:
    """Without what makes an SVG file a third larger and shows nothing: more than 2 decimals of a point, turns by nothing."""
    return _UPRIGHT.sub("", _DECIMALS.sub(r"\1", tag))


def save_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write the numbers behind a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path
