"""`skymem simulate`: draws the paper's figures and prints the table behind figure 16."""

import json
import sys
import time
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.table import Table

from skymemory.cli.common import BadInput, print_json, print_table, progress_bar
from skymemory.cli.parameters import Place, page, page_options, require_place, require_servers
from skymemory.simulate.drawing import SUFFIXES, Page, look, save, save_csv, write_csv
from skymemory.simulate.latencies import PAPER, Row, Sweep, most_servers, rows
from skymemory.simulate.latency_figures import (
    PLANE_COLUMNS,
    layouts_times_figure,
    packets_figure,
    plane_contours,
    plane_data,
    plane_ribbons,
)
from skymemory.simulate.layout_figures import GRID_COLUMNS, LAYOUT_FIGURES, grid_rows, layout_grids, layouts_figure
from skymemory.simulate.packet_latencies import MeasuredRow, measured
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

FIGURES = ("1", "2", "13", "14", "15", "16")
LARGEST = 200
"""Largest number of planes or slots, as in `skymem layout`."""
STDOUT = Path("-")


class Numbers(NamedTuple):
    """The numbers that a figure shows."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


@click.command()
@click.option("--figure", type=click.Choice(FIGURES), help="Figure of the paper to write as PNG, SVG, PDF and CSV.")
@click.option("--table", "as_table", is_flag=True, help="Print the latencies behind figure 16.")
@click.option("--published", is_flag=True, help="Use the mappings of the authors' simulator, faults included.")
@click.option("--packets", is_flag=True, help="Run each case of figure 16 in the twin as well; takes seconds.")
@click.option("--planes", default=PAPER.torus.planes, show_default=True, type=click.IntRange(1, LARGEST), help="Planes.")
@click.option("--slots", default=PAPER.torus.slots, show_default=True, type=click.IntRange(1, LARGEST), help="Slots in a plane.")
@click.option("--centre", type=Place(), help="Satellite in the middle. Default: the grid's middle.")
@click.option("--servers", type=click.IntRange(min=1), help="Where not swept; a point where swept. Default: 81 or what fits.")
@click.option(
    "--altitude-km",
    default=PAPER.altitude_km,
    show_default=True,
    type=click.FloatRange(160, 2000),
    help="Where not swept; a point where swept.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the figure (default: figures), or .csv file for the table; - prints CSV.",
)
@page_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the rows of the table, or the names of the files.")
@click.pass_context
def simulate(
    context: click.Context,
    figure: str | None,
    as_table: bool,
    published: bool,
    packets: bool,
    planes: int,
    slots: int,
    centre: Satellite | None,
    servers: int | None,
    altitude_km: float,
    output: Path | None,
    bare: bool,
    width: float | None,
    as_json: bool,
) -> None:
    """Compute the paper's figures from its equations: one of --figure and --table."""
    if (figure is not None) == as_table:
        raise BadInput(f"one of --figure {'|'.join(FIGURES)} and --table is needed, and one only")
    _check_options(context, figure)
    if packets and published:
        raise BadInput("--packets runs the corrected mappings, which are those on board; --published is not among them")
    if output == STDOUT and as_json:
        raise BadInput("-o - prints CSV and --json prints JSON; allowed is one of them")
    sweep = _sweep(planes, slots, centre, servers, altitude_km)
    if figure is None:
        _table(sweep, published, packets, output, as_json)
        return
    if output == STDOUT:
        write_csv(sys.stdout, *_numbers(int(figure), sweep, published=published, packets=packets))
        return
    folder = output or Path("figures")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--output is {folder}, a file; allowed are folders, and - for the numbers as CSV")
    files = [str(file) for file in draw(int(figure), folder, sweep, page(bare, width), published=published, packets=packets)]
    if as_json:
        print_json({"figure": int(figure), "published": published, "files": files})
    else:
        click.echo("\n".join(files))


def _check_options(context: click.Context, figure: str | None) -> None:
    """Refuse options that have no effect on the figure or table that is asked for."""
    given = {name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    what = "--table" if figure is None else f"figure {figure}"
    useless: set[str] = set()
    if figure is None:
        useless = {"bare", "width"}
    elif figure != "16":
        useless = {"packets", "altitude_km"}
        if int(figure) not in LAYOUT_FIGURES:
            useless |= {"published", "planes", "slots", "centre", "servers"}
    if wrong := sorted(given & useless):
        raise BadInput(f"--{wrong[0].replace('_', '-')} has no meaning for {what}; see `skymem simulate --help`")


def _sweep(planes: int, slots: int, centre: Satellite | None, servers: int | None, altitude_km: float) -> Sweep:
    torus = Torus(planes, slots)
    centre = torus.middle if centre is None else centre
    require_place(centre, torus, f"--centre {centre.plane},{centre.slot} is PLANE,SLOT")
    servers = most_servers(torus) if servers is None else servers
    require_servers(servers, torus)
    return Sweep(torus, centre, servers, altitude_km)


def draw(number: int, folder: Path, sweep: Sweep, on: Page, *, published: bool = False, packets: bool = False) -> list[Path]:
    """Write a figure as PNG, SVG, PDF and CSV. Figures 1 and 2 show the geometry of equation (1).

    Raises:
        MissingLibraryError: Matplotlib is not installed.
        OSError: The folder cannot be written.
    """
    path = folder / f"figure-{number}{'-published' if published else ''}{'-packets' if packets else ''}"
    with look():
        numbers: Numbers
        if number in LAYOUT_FIGURES:
            grids = layout_grids(LAYOUT_FIGURES[number], sweep, published=published)
            picture = layouts_figure(number, grids, on, published=published)
            numbers = Numbers(GRID_COLUMNS, list(grid_rows(grids)))
        elif packets:
            marks = _measured(sweep)
            picture, numbers = packets_figure(marks, sweep, on), Numbers(MeasuredRow._fields, marks)
        elif number == 16:
            points = rows(sweep, published=published)
            picture, numbers = layouts_times_figure(points, sweep, on, published=published), Numbers(Row._fields, points)
        else:
            picture = plane_ribbons(on) if number == 1 else plane_contours(on)
            numbers = Numbers(PLANE_COLUMNS, plane_data(number))
        pictures = [save(picture, path.with_suffix(suffix)) for suffix in SUFFIXES]
    return [*pictures, save_csv(path.with_suffix(".csv"), *numbers)]


def _numbers(number: int, sweep: Sweep, *, published: bool, packets: bool) -> Numbers:
    """Return the numbers that a figure shows, without drawing it."""
    if number in LAYOUT_FIGURES:
        return Numbers(GRID_COLUMNS, list(grid_rows(layout_grids(LAYOUT_FIGURES[number], sweep, published=published))))
    if packets:
        return Numbers(MeasuredRow._fields, _measured(sweep))
    if number == 16:
        return Numbers(Row._fields, rows(sweep, published=published))
    return Numbers(PLANE_COLUMNS, plane_data(number))


def _measured(sweep: Sweep) -> list[MeasuredRow]:
    with progress_bar("rows") as progress:
        return list(measured(rows(sweep), sweep, progress))


def _table(sweep: Sweep, published: bool, packets: bool, output: Path | None, as_json: bool) -> None:
    if output is not None and output != STDOUT and (output.suffix != ".csv" or not output.parent.is_dir()):
        raise BadInput(f"--output is {output}; allowed with --table are a .csv file in a folder that is there, and -")
    begin = time.perf_counter()
    points: Sequence[Row | MeasuredRow] = _measured(sweep) if packets else rows(sweep, published=published)
    elapsed_ms = 1000 * (time.perf_counter() - begin)
    if output == STDOUT:
        write_csv(sys.stdout, points[0]._fields, points)
        return
    if output is not None:
        save_csv(output, points[0]._fields, points)
    if as_json:
        click.echo(json.dumps([_told(row) for row in points], indent=2))
    elif output is not None:
        click.echo(output)
    else:
        _print_rows(points, f"times of the servers, mappings {'as published' if published else 'corrected'}", elapsed_ms)


def _told(row: Row | MeasuredRow) -> dict[str, Any]:
    """Return a row for JSON, which knows no NaN."""
    return {name: None if isinstance(value, float) and isnan(value) else value for name, value in row._asdict().items()}


def _print_rows(points: Sequence[Row | MeasuredRow], what: str, elapsed_ms: float) -> None:
    table = Table(title=f"{what}: {len(points)} rows in {elapsed_ms:.1f} ms", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in points[0]._fields:
        table.add_column(name, justify="left" if name in {"layout", "parameter"} else "right", overflow="fold")
    for row in points:
        seconds = ("-" if isnan(value) else f"{value:.4f}" for value in row[3:])  # so the table fits 80 columns
        table.add_row(row.layout, row.parameter, f"{row.value:g}" if row.value < 1 else f"{row.value:,.9g}", *seconds)
    print_table(table)
