"""`skymem status`: what every satellite says of itself."""

from typing import Any

import click
from rich.table import Table

from skymemory.cli.common import json_option, print_json, print_table, require_running
from skymemory.config import Constellation
from skymemory.link.control import LINK_NAMES, ControlPlane, LinkStats
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route

DEADLINE_S = 3.0
NEVER = 2**64 - 1
"""`last_heard_ms` of a link that was silent so far"""
SHOWN = ("chunks", "bytes", "hits", "misses", "evictions")


@click.command()
@click.option("--links", "show_links", is_flag=True, help="Every link: delay requested and measured, packets, drops.")
@json_option
def status(show_links: bool, as_json: bool) -> None:
    """Show what the satellites hold and have done, as a grid of slots and planes."""
    constellation = require_running().constellation
    report = collect(constellation)
    if as_json:
        print_json(report)
        return
    print_table(grid_table(constellation, report))
    total = report["total"]
    click.echo(
        f"{report['alive']} of {len(report['satellites'])} satellites answer; they hold {total['chunks']} chunks, "
        f"{total['bytes'] / 1e6:.1f} MB; {total['hits']} hits, {total['misses']} misses, {total['evictions']} evictions; "
        f"ISLs: {total['tx_packets']} packets sent, {total['drops']} dropped"
    )
    if show_links:
        print_table(link_table(report))


def collect(constellation: Constellation) -> dict[str, Any]:
    """Ask all satellites at once, each at its own address. One that does not answer in time is not alive."""
    places = list(constellation.torus.satellites())
    routes = [Route(place, place) for place in places]
    with ControlPlane(constellation) as control:
        stores = control.store_stats(routes, DEADLINE_S)
        links = control.link_stats([route for route in routes if route.satellite in stores], DEADLINE_S)
    satellites = [_satellite(constellation, place, stores.get(place), links.get(place)) for place in places]
    alive = [entry for entry in satellites if entry["alive"]]
    total = {name: sum(entry[name] for entry in alive) for name in SHOWN}
    isls = [link for entry in alive for name, link in entry.get("links", {}).items() if name != "ground"]
    for name in ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes"):
        total[name] = sum(link[name] for link in isls)
    total["drops"] = sum(_drops(link) for link in isls)
    return {
        "planes": constellation.planes,
        "slots": constellation.slots,
        "alive": len(alive),
        "total": total,
        "satellites": satellites,
    }


def _satellite(
    constellation: Constellation, place: Satellite, store: dict[str, int] | None, links: LinkStats | None
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "plane": place.plane,
        "slot": place.slot,
        "address": constellation.address(*place),
        "alive": store is not None,
    }
    if store is not None:
        entry |= {"chunks": store["slots_used"], "store": store}
        entry |= {name: store[name] for name in SHOWN if name != "chunks"}
    if links is not None:
        entry |= {"isl": links.counters, "links": {name: _told(link) for name, link in links.links.items()}}
    return entry


def _told(link: dict[str, int]) -> dict[str, int | None]:
    """A link's record; what was never heard has no time since."""
    return {name: None if name == "last_heard_ms" and value == NEVER else value for name, value in link.items()}


def grid_table(constellation: Constellation, report: dict[str, Any]) -> Table:
    """Slots down, planes across: chunks, megabytes, and hits / misses / evictions of each satellite."""
    table = Table(title="chunks  MB  hits/misses/evictions", title_justify="left", pad_edge=False)
    table.add_column("slot", justify="right")
    for plane in range(1, constellation.planes + 1):
        table.add_column(f"plane {plane}", no_wrap=True)
    cells = {(entry["plane"], entry["slot"]): _cell(entry) for entry in report["satellites"]}
    for slot in range(1, constellation.slots + 1):
        table.add_row(str(slot), *(cells[plane, slot] for plane in range(1, constellation.planes + 1)))
    return table


def _cell(entry: dict[str, Any]) -> str:
    if not entry["alive"]:
        return "[red]no answer[/red]"
    text = f"{entry['chunks']:>4} {entry['bytes'] / 1e6:4.1f} {entry['hits']}/{entry['misses']}/{entry['evictions']}"
    return f"[green]{text}[/green]" if entry["chunks"] else text


def link_table(report: dict[str, Any]) -> Table:
    """One row a satellite; for each of its links the delay requested / measured in ms, packets out / in, drops."""
    table = Table(title="links: ms requested / measured, packets sent / received, -dropped", title_justify="left")
    table.add_column("satellite", no_wrap=True)
    for name in LINK_NAMES:
        table.add_column(name, no_wrap=True)
    for entry in report["satellites"]:
        cells = [_link(entry["links"][name]) if "links" in entry else "" for name in LINK_NAMES]
        table.add_row(str(Satellite(entry["plane"], entry["slot"])), *cells)
    return table


def _link(link: dict[str, Any]) -> str:
    if link["plane"] == 0 and not link["tx_packets"] and not link["rx_packets"]:
        return "-"
    state = "" if link["up"] else "[red]down[/red] "
    delays = f"{link['delay_requested_us'] / 1000:.2f}/{link['delay_measured_us'] / 1000:.2f}"
    return f"{state}{delays}  {link['tx_packets']}/{link['rx_packets']}" + (f" -{_drops(link)}" if _drops(link) else "")


def _drops(link: dict[str, Any]) -> int:
    return sum(int(value) for name, value in link.items() if name.startswith("drop_"))
