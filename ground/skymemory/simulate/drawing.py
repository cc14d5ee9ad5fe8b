"""The common part of all pictures: matplotlib where it is installed, one look, and files that are equal for equal data."""

import csv
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from skymemory.common.extras import how_to_install
from skymemory.common.whole_file import write_whole
from skymemory.sky.placement.layouts import LayoutName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
"""Endings of the names of pictures."""
INK, SOFT, GRID = "#1f2d3d", "#52606d", "#d5dce4"
STYLES: dict[LayoutName, dict[str, Any]] = {
    "rotation": {"color": "#d55e00", "marker": "s", "linestyle": (0, (5, 2))},
    "hop": {"color": "#0072b2", "marker": "o", "linestyle": (0, (1, 1.2))},
    "rotation_hop": {"color": "#007a5a", "marker": "^", "linestyle": "solid"},
}
"""Line styles of the layouts. The colours are those of Okabe and Ito (the green a little darker), which colour-blind people tell
apart; marker and line differ as well."""

_TEXT_PT = 9
_TEXT_PT_MIN = 7

_SETTINGS: Any = {
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": _TEXT_PT,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": "large",
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
    "svg.fonttype": "none",  # text stays text: files are small, and can be searched
    "pdf.fonttype": 42,  # 42 is TrueType; journals refuse matplotlib's default, type 3
    "svg.hashsalt": "skymemory",  # the same picture makes the same file
}

_DARK = "@media (prefers-color-scheme: dark) {svg {filter: invert(0.9) hue-rotate(180deg)}}"
"""Rule for pages that are dark: light and dark change places, and hues stay."""
_TAG = re.compile(r"<[^>]*>")
_DECIMALS = re.compile(r"(\d+\.\d\d)\d+")
_UPRIGHT = re.compile(r' transform="rotate\(-0 [^"]*\)"')


class MissingLibraryError(RuntimeError):
    """The library matplotlib is not installed; the text says how to install it."""


@contextmanager
def look() -> Iterator[None]:
    """Draw and write pictures in this context.

    Raises:
        MissingLibraryError: Pictures need the extra `figures`.
    """
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise MissingLibraryError(how_to_install(error.name or "matplotlib", "figures")) from error
    with rc_context(_SETTINGS):
        yield


@dataclass(frozen=True)
class Page:
    """Demands of a page on its picture."""

    bare: bool = False
    """No title and no sentence below it: papers have captions."""
    width_in: float | None = None
    """Width in inches; None: the picture's own."""

    def width(self, usual_in: float) -> float:
        """Return the width of a picture in inches."""
        return usual_in if self.width_in is None else self.width_in


def new_figure(page: Page, usual_in: float, height_in: float, title: str, sentence: str) -> "Figure":
    """Begin a picture, with its title in bold and a sentence below it at the top left; the rest is for axes.

    Text gets smaller with the picture, but not illegible. Sizes of text are relative: give "small", not points.

    Args:
        usual_in: The picture's own width.
        height_in: Height of the part for axes, at the page's width.
    """
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    width_in = page.width(usual_in)
    rcParams["font.size"] = min(_TEXT_PT, max(_TEXT_PT * width_in / usual_in, _TEXT_PT_MIN))
    if page.bare:
        return Figure(figsize=(width_in, height_in), layout="constrained")
    shrink = rcParams["font.size"] / _TEXT_PT
    heading = textwrap.wrap(title, int(width_in * 10 / shrink))
    lines = textwrap.wrap(sentence, int(width_in * 14.5 / shrink), break_on_hyphens=False)
    heading_in, lines_in = 0.2 * shrink * len(heading), 0.17 * shrink * len(lines)
    top = height_in + 0.25 + heading_in + lines_in
    figure = Figure(figsize=(width_in, top))
    at = 0.15 / width_in
    figure.text(at, 1 - 0.12 / top, "\n".join(heading), va="top", fontsize=12 * shrink, fontweight="bold")
    below = 1 - (0.18 + heading_in) / top
    figure.text(at, below, "\n".join(lines), va="top", color=SOFT, linespacing=1.3)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, height_in / top))
    return figure


def save(figure: "Figure", path: Path) -> Path:
    """Write a picture in the form that the name's ending selects. The file holds no date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = path.suffix.lower()
    if suffix == ".svg":
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        short = _TAG.sub(lambda tag: _short(tag[0]), text.getvalue())
        write_whole(path, short.replace("</style>", f"\n{_DARK}</style>", 1).encode())
    else:
        metadata: dict[str, Any] = {"CreationDate": None} if suffix == ".pdf" else {}
        picture = BytesIO()
        figure.savefig(picture, format=suffix[1:], dpi=200, metadata=metadata)
        write_whole(path, picture.getvalue())
    return path


def _short(tag: str) -> str:
    """Shorten an SVG tag by what shows nothing and makes the file a third larger: decimals after the second, turns by nothing."""
    return _UPRIGHT.sub("", _DECIMALS.sub(r"\1", tag))


def save_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write the numbers behind a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = StringIO(newline="")
    write_csv(text, columns, rows)
    write_whole(path, text.getvalue().encode())
    return path


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table; a value that is not a number (NaN) becomes an empty field."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if isinstance(value, float) and isnan(value) else value for value in row] for row in rows)
