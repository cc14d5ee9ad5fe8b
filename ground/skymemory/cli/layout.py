"""`skymem layout`: shows which satellite has which chunks, as a grid."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from skymemory.cli.common import BadInput, json_option, output_console, print_json
from skymemory.cli.grid_tables import grid_tables
from skymemory.cli.parameters import Place, page, page_options, require_place, require_servers
from skymemory.simulate.drawing import SUFFIXES, look, save, save_csv, write_csv
from skymemory.simulate.layout_figures import grid_figure
from skymemory.simulate.layout_grid import Grid
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

COLUMNS = ("server", "plane", "slot", "hops_from_centre", "from_plane", "from_slot")
STDOUT = Path("-")
LARGEST = 200
"""Largest number of planes or slots: no terminal and no picture has room for more."""


@click.command()
@click.option("--layout", "name", type=click.Choice(tuple(LAYOUT_IDS)), default="rotation_hop", show_default=True, help="Which.")
@click.option("--servers", default=10, show_default=True, type=click.IntRange(min=1), help="Satellites that share a block.")
@click.option("--planes", default=5, show_default=True, type=click.IntRange(1, LARGEST), help="Planes.")
@click.option("--slots", default=19, show_default=True, type=click.IntRange(1, LARGEST), help="Slots (satellites) in a plane.")
@click.option("--centre", type=Place(), help="Satellite in the middle. Default: the grid's middle.")
@click.option("--rotations", default=0, show_default=True, type=click.IntRange(min=0), help="Slots that the sky has turned.")
@click.option("--published", is_flag=True, help="Show the mapping of the authors' simulator, faults included.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture, .png, .svg or .pdf, or .csv; - prints CSV.",
)
@page_options
@json_option
def layout(
    name: LayoutName, servers: int, planes: int, slots: int, centre: Satellite | None, rotations: int, published: bool,
    output: Path | None, bare: bool, width: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the servers of a block on the grid of planes and slots, and what the last rotation moved.

    Servers count from 1: server k of n has the chunks k, k + n, k + 2n, ...
    """
    torus = Torus(planes, slots)
    centre = torus.middle if centre is None else centre
    require_servers(servers, torus)
    require_place(centre, torus, f"--centre {centre.plane},{centre.slot} is PLANE,SLOT")
    suffix = "" if output is None or output == STDOUT else output.suffix.lower()
    if suffix not in ("", *SUFFIXES, ".csv") or (output is not None and output != STDOUT and not suffix):
        raise BadInput(f"--output is {output}; allowed are -, and names that end in {', '.join(SUFFIXES)} or .csv")
    if output is not None and not output.parent.is_dir():
        raise BadInput(f"--output is {output}; there is no folder {output.parent}")
    if (bare or width is not None) and suffix not in SUFFIXES:
        raise BadInput("--bare and --width are for pictures; --output names none")
    if output == STDOUT and as_json:
        raise BadInput("-o - prints CSV and --json prints JSON; allowed is one of them")
    grid = Grid.of(name, centre, servers, torus, rotations=rotations, published=published)
    if output == STDOUT:
        write_csv(sys.stdout, COLUMNS, rows(grid))
        return
    if suffix == ".csv" and output is not None:
        save_csv(output, COLUMNS, rows(grid))
    elif output is not None:
        with look():
            save(grid_figure(grid, page(bare, width)), output)
    if as_json:
        print_json(report(grid))
    elif output is not None:
        click.echo(output)
    else:
        print_grid(grid)


def rows(grid: Grid) -> Iterator[tuple[int | None, ...]]:
    """Yield the values that `COLUMNS` names; the last two say from where the last rotation moved a server."""
    before = {move.server: move.origin for move in grid.moves}
    for server, satellite in enumerate(grid.satellites, start=1):
        yield server, *satellite, grid.hops(satellite), *before.get(server, (None, None))


def report(grid: Grid) -> dict[str, Any]:
    """Return the grid as one JSON object; satellites are [plane, slot]."""
    before = {move.server: move.origin for move in grid.moves}
    return {
        "layout": grid.layout,
        "published": grid.published,
        "planes": grid.torus.planes,
        "slots": grid.torus.slots,
        "centre": grid.centre,
        "rotations": grid.rotations,
        "servers": [
            {"server": server, "satellite": satellite, "moved_from": before.get(server)}
            for server, satellite in enumerate(grid.satellites, start=1)
        ],
    }


def print_grid(grid: Grid) -> None:
    """Print slots to the right and planes downward; slots that have no room follow below."""
    console = output_console()
    click.echo(grid.title())
    for table in grid_tables(grid.torus.planes, grid.torus.slots, grid_cells(grid), console.width, gap=1):
        click.echo()
        console.print(table)
    moved = "; *n moved in the last rotation" if grid.moves else ""
    click.echo(f"\n(n) centre: plane {grid.centre.plane}, slot {grid.centre.slot}{moved}")
    for sentence in grid.told():
        click.echo(sentence)


def grid_cells(grid: Grid) -> dict[tuple[int, int], Text]:
    """Return the numbers of the servers of each satellite. Marks repeat what colours say."""
    moved = {move.target for move in grid.moves}
    cells: dict[tuple[int, int], Text] = {place: Text("·", style="dim") for place in grid.torus.satellites()}
    for satellite, servers in grid.servers_at().items():
        text = "*" * (satellite in moved) + "+".join(map(str, servers))
        cells[satellite] = Text(text, style="yellow" if satellite in moved else "cyan")
    centre = cells[grid.centre]
    cells[grid.centre] = Text(f"({centre.plain})", style="bold green")
    return cells
