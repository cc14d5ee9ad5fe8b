"""`skymem layout`: shows which satellite has which chunks, as a grid."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from skymemory.cli.common import BadInput, json_option, output_console, print_json
from skymemory.cli.grid_tables import grid_tables
from skymemory.cli.parameters import Place, page, page_options, require_place, require_servers
from skymemory.simulate.drawing import SUFFIXES, look, save, save_csv, write_csv
from skymemory.simulate.layout_figures import grid_figure
from skymemory.simulate.layout_grid import Grid
from skymemory.simulate.mapping import PAPER_LAYOUTS
from skymemory.simulate.survival import Comparison
from skymemory.simulate.survival import compare as compare_layouts
from skymemory.sky.file_sections import Cache
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.structures import STRIPE_ROW_MAX
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

COLUMNS = ("server", "plane", "slot", "hops_from_centre", "from_plane", "from_slot", "parity")
STDOUT = Path("-")
LARGEST = 200
"""Largest number of planes or slots: no terminal and no picture has room for more."""


@click.command()
@click.option("--layout", "name", type=click.Choice(tuple(LAYOUT_IDS)), default="rotation_hop", show_default=True, help="Which.")
@click.option(
    "--servers", default=Cache().servers, show_default=True, type=click.IntRange(min=1), help="Satellites that share a block."
)
@click.option("--parity", type=click.IntRange(min=0), help="Servers of these that hold parity. Default: 2; 0 with --published.")
@click.option("--planes", default=5, show_default=True, type=click.IntRange(1, LARGEST), help="Planes.")
@click.option("--slots", default=19, show_default=True, type=click.IntRange(1, LARGEST), help="Slots (satellites) in a plane.")
@click.option("--centre", type=Place(), help="Satellite in the middle. Default: the grid's middle.")
@click.option("--rotations", default=0, show_default=True, type=click.IntRange(min=0), help="Slots that the sky has turned.")
@click.option("--published", is_flag=True, help="Show the mapping of the authors' simulator, faults included.")
@click.option("--compare", is_flag=True, help="Show what each layout survives and costs, instead of the grid.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture, .png, .svg or .pdf, or .csv; - prints CSV.",
)
@page_options
@json_option
def layout(
    name: LayoutName, servers: int, parity: int | None, planes: int, slots: int, centre: Satellite | None, rotations: int,
    published: bool, compare: bool, output: Path | None, bare: bool, width: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the servers of a block on the grid of planes and slots, and what the last rotation moved.

    Servers count from 1: server k of n has the chunks k, k + n, k + 2n, ... With --parity m the last m servers have parity, so
    that any m satellites may be lost. --compare says how many planes may be lost with each layout, and how many slots of all
    planes.
    """
    torus = Torus(planes, slots)
    centre = torus.middle if centre is None else centre
    require_servers(servers, torus)
    if parity is None:
        parity = 0 if published else Cache().parity
    _require_parity(parity, servers)
    require_place(centre, torus, f"--centre {centre.plane},{centre.slot} is PLANE,SLOT")
    suffix = _suffix(output)
    if (bare or width is not None) and suffix not in SUFFIXES:
        raise BadInput("--bare and --width are for pictures; --output names none")
    if output == STDOUT and as_json:
        raise BadInput("-o - prints CSV and --json prints JSON; allowed is one of them")
    if compare and (published or output is not None):
        raise BadInput("--compare prints a table of all layouts; --published and --output are for a grid")
    if published:
        _require_published(name, parity)
    if compare:
        print_comparison(compare_layouts(servers, parity, torus, centre), as_json)
        return
    grid = Grid.of(name, centre, servers, torus, parity=parity, rotations=rotations, published=published)
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


def _require_parity(parity: int, servers: int) -> None:
    if parity >= servers:
        raise BadInput(f"--parity {parity}: allowed are 0 to {servers - 1} (--servers - 1)")
    if parity and servers > STRIPE_ROW_MAX:
        raise BadInput(f"--servers {servers} with --parity {parity}: allowed are {parity + 1} to {STRIPE_ROW_MAX}, or --parity 0")


def _require_published(name: LayoutName, parity: int) -> None:
    if name not in PAPER_LAYOUTS:
        raise BadInput(f"--published has no --layout {name}; allowed are {', '.join(PAPER_LAYOUTS)}")
    if parity:
        raise BadInput("--published and --parity; allowed is one of them")


def _suffix(output: Path | None) -> str:
    """Return the ending of the output's name; '' if nothing is to be written to a file."""
    if output is None or output == STDOUT:
        return ""
    suffix = output.suffix.lower()
    if suffix not in (*SUFFIXES, ".csv"):
        raise BadInput(f"--output is {output}; allowed are -, and names that end in {', '.join(SUFFIXES)} or .csv")
    if not output.parent.is_dir():
        raise BadInput(f"--output is {output}; there is no folder {output.parent}")
    return suffix


def rows(grid: Grid) -> Iterator[tuple[int | None, ...]]:
    """Yield the values that `COLUMNS` names; the last two say from where the last rotation moved a server."""
    before = {move.server: move.origin for move in grid.moves}
    for server, satellite in enumerate(grid.satellites, start=1):
        yield server, *satellite, grid.hops(satellite), *before.get(server, (None, None)), int(grid.is_parity(server))


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
        "parity": grid.parity,
        "servers": [
            {"server": server, "satellite": satellite, "moved_from": before.get(server), "parity": grid.is_parity(server)}
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
    parity = "; np parity" if grid.parity else ""
    click.echo(f"\n(n) centre: plane {grid.centre.plane}, slot {grid.centre.slot}{moved}{parity}")
    for sentence in grid.told():
        click.echo(sentence)


def grid_cells(grid: Grid) -> dict[tuple[int, int], Text]:
    """Return the numbers of the servers of each satellite. Marks repeat what colours say."""
    moved = {move.target for move in grid.moves}
    cells: dict[tuple[int, int], Text] = {place: Text("·", style="dim") for place in grid.torus.satellites()}
    for satellite, servers in grid.servers_at().items():
        text = "*" * (satellite in moved) + "+".join(f"{server}{'p' * grid.is_parity(server)}" for server in servers)
        plain = "magenta" if any(map(grid.is_parity, servers)) else "cyan"
        cells[satellite] = Text(text, style="yellow" if satellite in moved else plain)
    centre = cells[grid.centre]
    cells[grid.centre] = Text(f"({centre.plain})", style="bold green")
    return cells


def print_comparison(compared: list[Comparison], as_json: bool) -> None:
    """Print a row for each layout, as a table or in JSON."""
    if as_json:
        print_json({"layouts": [{**one._asdict(), "tolerated": one.tolerated._asdict()} for one in compared]})
        return
    table = Table(box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style="none")
    for head in ("layout", "in a\nplane", "in a\nslot", "lost\nsatellites", "lost\nplanes", "lost\nslots"):
        table.add_column(head, justify="left" if head == "layout" else "right", no_wrap=True)
    for head in ("hops,\nmean", "\nfarthest", "move with\na slot", "move with\na plane"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in compared:
        counts = map(str, (one.in_plane, one.in_slot, *one.tolerated))
        moved = (f"{number:.3g}" for number in (one.moved_by_slot, one.moved_by_plane))
        table.add_row(one.layout, *counts, f"{one.hops_mean:.2f}", str(one.hops_most), *moved)
    output_console().print(table)
