"""`skymem simulate`: the paper's figures and the table behind figure 16."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from skymemory.cli.common import BadInput, print_json, print_table, progress_bar
from skymemory.simulate.drawing import look, save, save_csv
from skymemory.simulate.figures import (
    PLANE_COLUMNS,
    packets_figure,
    plane_contours,
    plane_data,
    plane_ribbons,
    strategies_figure,
)
from skymemory.simulate.layout_figures import GRID_COLUMNS, LAYOUT_FIGURES, grid_rows, layout_grids, layouts_figure
from skymemory.simulate.packets import MeasuredRow, measured
from skymemory.simulate.table import Row, rows

FIGURES = ("1", "2", "13", "14", "15", "16")


@click.command()
@click.option("--figure", type=click.Choice(FIGURES), help="Draw this figure of the paper: PNG, SVG, and CSV of what it shows.")
@click.option("--table", "as_table", is_flag=True, help="Print the latencies behind figure 16.")
@click.option("--published", is_flag=True, help="With the mappings of the authors' simulator, faults included.")
@click.option("--packets", is_flag=True, help="Run each case of figure 16 in the twin as well: seconds of computing.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder for the figure, else figures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the rows of the table, or the names of the files.")
def simulate(figure: str | None, as_table: bool, published: bool, packets: bool, output: Path | None, as_json: bool) -> None:
    """Compute the paper's figures from its equations: one of --figure and --table."""
    if (figure is not None) == as_table:
        raise BadInput(f"one of --figure {'|'.join(FIGURES)} and --table is needed, and one only")
    if as_table and output is not None:
        raise BadInput("--output is the folder of a figure; --table prints")
    if packets and figure not in (None, "16"):
        raise BadInput(f"--packets is for figure 16 and the table behind it, not for figure {figure}")
    if packets and published:
        raise BadInput("--packets runs the corrected mappings, which are those on board; --published is not among them")
    if figure is None:
        _print_rows(published, packets, as_json)
        return
    folder = output or Path("figures")
    drawn = draw_packets(folder) if packets else draw(int(figure), folder, published=published)
    files = [str(file) for file in drawn]
    if as_json:
        print_json({"figure": int(figure), "published": published, "files": files})
    else:
        click.echo("\n".join(files))


def draw(number: int, folder: Path, *, published: bool) -> list[Path]:
    """Write a figure as PNG, SVG and CSV; figures 1 and 2 are equation (1), which nobody has otherwise.

    Raises:
        MissingLibraryError: matplotlib is not installed.
        OSError: the folder cannot be written.
    """
    path = folder / f"figure-{number}{'-published' if published and number > 2 else ''}"
    with look():
        columns: tuple[str, ...]
        data: list[tuple[object, ...]]
        if number in LAYOUT_FIGURES:
            grids = layout_grids(LAYOUT_FIGURES[number], published=published)
            picture, columns, data = layouts_figure(number, grids, published=published), GRID_COLUMNS, list(grid_rows(grids))
        elif number == 16:
            points = rows(published=published)
            picture, columns, data = strategies_figure(points, published=published), Row._fields, list(points)
        else:
            picture, columns, data = plane_ribbons() if number == 1 else plane_contours(), PLANE_COLUMNS, list(plane_data(number))
        pictures = [save(picture, path.with_suffix(suffix)) for suffix in (".png", ".svg")]
    return [*pictures, save_csv(path.with_suffix(".csv"), columns, data)]


def draw_packets(folder: Path) -> list[Path]:
    """Write figure 16 beside what the twin measures, as PNG, SVG and CSV; errors as in `draw`."""
    path = folder / "figure-16-packets"
    with look():
        points = _measured()
        picture = packets_figure(points)
        pictures = [save(picture, path.with_suffix(suffix)) for suffix in (".png", ".svg")]
    return [*pictures, save_csv(path.with_suffix(".csv"), MeasuredRow._fields, points)]


def _measured() -> list[MeasuredRow]:
    with progress_bar("rows") as progress:
        return list(measured(rows(), progress))


def _print_rows(published: bool, packets: bool, as_json: bool) -> None:
    begin = time.perf_counter()
    points: Sequence[Row | MeasuredRow] = _measured() if packets else rows(published=published)
    elapsed_ms = 1000 * (time.perf_counter() - begin)
    if as_json:
        click.echo(json.dumps([row._asdict() for row in points], indent=2))
        return
    which = "as published" if published else "corrected"
    title = f"times of the servers, mappings {which}: {len(points)} rows in {elapsed_ms:.1f} ms"
    table = Table(title=title, box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in points[0]._fields:
        table.add_column(name, justify="left" if name in {"strategy", "parameter"} else "right", overflow="fold")
    for row in points:
        seconds = (f"{value:.5f}" for value in row[3:])  # 80 columns have room for that
        table.add_row(row.strategy, row.parameter, f"{row.value:g}" if row.value < 1 else f"{row.value:,}", *seconds)
    print_table(table)
