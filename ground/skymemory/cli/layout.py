"""`skymem layout`: which satellite has which chunks, as a grid."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from skymemory.cli.common import BadInput, json_option, output_console, print_json
from skymemory.placement.torus import Satellite, Torus
from skymemory.simulate.drawing import look, save
from skymemory.simulate.grid import Grid
from skymemory.simulate.layout_figures import grid_figure
from skymemory.simulate.mapping import STRATEGIES, Strategy

PICTURES = (".png", ".svg")
LARGEST = 200
"""planes, slots: no terminal and no picture has room for more"""
PLANE = "plane"
GAP = 1
"""blanks between the columns of the grid"""

Cells = dict[Satellite, Text]


class Place(click.ParamType[Satellite]):
    """A satellite on the command line."""

    name = "slot,plane"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Satellite:
        """Two whole numbers and a comma; the slot first, as in the paper."""
        if isinstance(value, Satellite):
            return value
        try:
            slot, plane = (int(word) for word in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not SLOT,PLANE: two whole numbers with a comma between them", param, ctx)
        return Satellite(plane, slot)


@click.command()
@click.option("--strategy", type=click.Choice(tuple(STRATEGIES)), default="hop_rotation", show_default=True, help="The mapping.")
@click.option("--servers", default=10, show_default=True, type=click.IntRange(min=1), help="Satellites that share a block.")
@click.option("--sats", default=19, show_default=True, type=click.IntRange(1, LARGEST), help="Satellites (slots) in a plane.")
@click.option("--planes", default=5, show_default=True, type=click.IntRange(1, LARGEST), help="Planes.")
@click.option("--center", "centre", type=Place(), default="4,3", show_default=True, help="Satellite in the middle: SLOT,PLANE.")
@click.option("--rotations", default=0, show_default=True, type=click.IntRange(min=0), help="Slots that the sky has moved on.")
@click.option("--published", is_flag=True, help="As the authors' simulator has it, faults included.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Draw a .png or .svg instead.")
@json_option
def layout(
    strategy: Strategy, servers: int, sats: int, planes: int, centre: Satellite, rotations: int, published: bool,
    output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the servers of a block on the grid of slots and planes, and what the last rotation moved.

    Servers count from 1: server k of n has the chunks k, k + n, k + 2n, ...
    """
    torus = Torus(planes, sats)
    if servers > planes * sats:
        raise BadInput(f"--servers {servers}: there are {planes * sats} satellites ({planes} planes x {sats} slots)")
    if centre not in torus:
        raise BadInput(f"--center {centre.slot},{centre.plane} is SLOT,PLANE: slots are 1 to {sats}, planes 1 to {planes}")
    if output is not None and output.suffix.lower() not in PICTURES:
        raise BadInput(f"--output {output}: the name must end in {' or '.join(PICTURES)}")
    if output is not None and not output.parent.is_dir():
        raise BadInput(f"--output {output}: there is no folder {output.parent}")
    grid = Grid.of(strategy, centre, servers, torus, rotations=rotations, published=published)
    if output is not None:
        with look():
            save(grid_figure(grid), output)
    if as_json:
        print_json(report(grid))
    elif output is not None:
        click.echo(output)
    else:
        print_grid(grid)


def report(grid: Grid) -> dict[str, Any]:
    """The grid as one JSON object; satellites are [plane, slot]."""
    before = {move.server: move.origin for move in grid.moves}
    return {
        "strategy": grid.strategy,
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
    """Slots to the right, planes downward; slots that have no room follow below."""
    console = output_console()
    click.echo(grid.title())
    for table in grid_tables(grid, grid_cells(grid), console.width):
        click.echo()
        console.print(table)
    moved = "; *n moved in the last rotation" if grid.moves else ""
    click.echo(f"\n(n) centre: slot {grid.centre.slot} of plane {grid.centre.plane}{moved}")
    for sentence in grid.told():
        click.echo(sentence)


def grid_cells(grid: Grid) -> Cells:
    """Numbers of the servers of each satellite; marks say what colours say as well."""
    moved = {move.target for move in grid.moves}
    cells = {satellite: Text("·", style="dim") for satellite in grid.torus.satellites()}
    for satellite, servers in grid.servers_at().items():
        text = "*" * (satellite in moved) + "+".join(map(str, servers))
        cells[satellite] = Text(text, style="yellow" if satellite in moved else "cyan")
    centre = cells[grid.centre]
    cells[grid.centre] = Text(f"({centre.plain})", style="bold green")
    return cells


def grid_tables(grid: Grid, cells: Cells, width: int) -> Iterator[Table]:
    """As many slots in a table as the width holds."""
    planes, slots = grid.torus.planes, grid.torus.slots
    cell = max(len(str(slots)), *(text.cell_len for satellite, text in cells.items() if satellite in grid.torus))
    together = max(1, (width - len(PLANE) - GAP) // (cell + GAP))
    for first in range(1, slots + 1, together):
        shown = range(first, min(first + together, slots + 1))
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
        table.add_column(PLANE, justify="right")
        for slot in shown:
            table.add_column(str(slot), justify="right", no_wrap=True, min_width=cell)
        for plane in range(1, planes + 1):
            table.add_row(str(plane), *(cells[Satellite(plane, slot)] for slot in shown))
        yield table
