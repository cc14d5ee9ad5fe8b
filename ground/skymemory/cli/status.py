"""`skymem status`: shows what every satellite reports of itself."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from skymemory.agent.models import recorded
from skymemory.agent.models import told as models_told
from skymemory.cli.agent_counts import agent_counts, in_words, told
from skymemory.cli.common import find_sky, json_option, output_console, print_json, print_table, sky_option
from skymemory.cli.grid_tables import Cells, columns_needed, grid_tables
from skymemory.link.control import LINK_NAMES, OTHERS_NUMBER, ControlPlane, LinkStats, TenantStats
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.file_sections import OTHERS
from skymemory.sky.orbit.schedule_format import utc
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire.address import Satellite

DEADLINE_S = 3.0
NEVER = 2**64 - 1
"""Value of `last_heard_ms` for a link that was never heard."""
NAMED_MOST = 8
"""Most satellites of a group with other keys that are named."""
GAP = 2
"""Blanks between the columns of the grid: its cells contain single ones."""
SHOWN = ("chunks", "bytes", "hits", "misses", "evictions")
PARITY = ("degraded", "repaired")
"""Counters of satellites about blocks with parity, which are shown as sums."""
_SUMMED = TenantStats._fields[1:]
"""Numbers of a tenant that are summed over satellites."""


@click.command()
@click.option("--links", "show_links", is_flag=True, help="List every link: delays requested and measured, packets, drops.")
@sky_option
@json_option
def status(show_links: bool, constellation_path: Path | None, as_json: bool) -> None:
    """Show what the satellites hold and have done, as a grid of planes and slots."""
    sky = find_sky(constellation_path)
    report = collect(sky.constellation, sky.playing.load())
    counts = agent_counts()
    report["agent"] = None if counts is None else told(counts)
    if as_json:
        print_json(report)
        return
    print_grid(report)
    click.echo(window_text(report["window"]))
    click.echo(sky.constellation.security_words(report["security"]["suites"]))
    if report["refusal"]:
        click.echo(report["refusal"])
    if text := generations_text(report):
        click.echo(text)
    if text := handover_text(report["handover"]):
        click.echo(text)
    total = report["total"]
    click.echo(
        f"{report['alive']} of {len(report['satellites'])} satellites answer; they hold {total['chunks']} chunks, "
        f"{total['bytes'] / 1e6:.1f} MB\nrequests to satellites: {total['hits']} hits, {total['misses']} misses, "
        f"{total['evictions']} evictions; ISLs: {total['tx_packets']} packets sent, {total['drops']} dropped"
    )
    if text := parity_text(total, sky.constellation.cache.parity):
        click.echo(text)
    if report["tenants"]:
        click.echo("\ntenants: chunks reserved, at most and held on all satellites; blocks as satellites count them")
        print_table(tenant_table(report))
    click.echo(in_words(counts))
    for one in report["models"]:
        stores = f"{sky.constellation.cache.servers} servers with store_mib {sky.constellation.satellite.store_mib}"
        click.echo(f"{stores} hold {one['tokens']:,} tokens of {one['model']} ({one['dtype']})")
    if show_links:
        click.echo("\nlinks: one-way delays in ms, requested, and of the last hellos; packets sent, received and dropped")
        print_table(link_table(report))


def collect(constellation: Constellation, playing: Playing | None = None) -> dict[str, Any]:
    """Ask all satellites at once, each at its own address. A satellite that does not answer in time is not alive.

    Args:
        playing: The schedule that the constellation follows.
    """
    places = list(constellation.torus.satellites())
    routes = [Route(place, place) for place in places]
    with ControlPlane(constellation) as control:
        stores = control.store_stats(routes, DEADLINE_S)
        links = control.link_stats([route for route in routes if route.satellite in stores], DEADLINE_S)
        with_quotas = [route for route in routes if stores.get(route.satellite, {}).get("tenants")]
        tenants = control.tenant_stats(with_quotas, DEADLINE_S)
        suites = control.suites()
        refused, refusal = control.refused, control.refusal()
    satellites = [_satellite(constellation, place, stores.get(place), links.get(place)) for place in places]
    for entry, place in zip(satellites, places, strict=True):
        entry["refuses"] = place in refused
        if place in tenants:
            entry["tenants"] = [_tenant(one) for one in tenants[place]]
    alive = [entry for entry in satellites if entry["alive"]]
    total = {name: sum(entry[name] for entry in alive) for name in SHOWN}
    total |= {name: sum(entry["store"][name] for entry in alive) for name in PARITY}
    isls = [link for entry in alive for name, link in entry.get("links", {}).items() if name != "ground"]
    for name in ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes"):
        total[name] = sum(link[name] for link in isls)
    total["drops"] = sum(_drops(link) for link in isls)
    return {
        "planes": constellation.planes,
        "slots": constellation.slots,
        "alive": len(alive),
        "window": window(constellation, playing, time.time()),
        "security": security(constellation, suites, alive),
        "refusal": refusal,
        "handover": handover(constellation, stores.values(), expected_s(constellation, playing, time.time())),
        "total": total,
        "tenants": _tenants(tenants.values()),
        "models": models_told(constellation, recorded()),
        "satellites": satellites,
    }


def security(constellation: Constellation, used: Iterable[str], alive: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return how links are protected, for JSON.

    Args:
        used: Names of the suites of the associations that were made to ask the satellites.
        alive: Records of the satellites that answered.
    """
    said = constellation.security
    counts = Counter(tuple(entry["generations"]) for entry in alive if entry.get("generations"))
    return {
        "secured": bool(said.keyring),
        "asked": said.suite if said.keyring else None,
        "suites": sorted(used),
        "generations": [{"valid": list(valid), "satellites": count} for valid, count in sorted(counts.items())],
        "keys_refused": sum(entry["isl"]["rekey_refused"] for entry in alive if "isl" in entry),
    }


def generations_text(report: dict[str, Any]) -> str:
    """Return which keys the satellites use, in words; '' if none of them has keys. Satellites of small groups are named."""
    lines: list[str] = []
    for group in sorted(report["security"]["generations"], key=lambda one: -int(one["satellites"])):
        places = [
            str(Satellite(one["plane"], one["slot"])) for one in report["satellites"] if one.get("generations") == group["valid"]
        ]
        plural = "s" if len(group["valid"]) > 1 else ""
        names = f": {', '.join(places)}" if lines and len(places) <= NAMED_MOST else ""
        valid = " and ".join(str(one) for one in group["valid"])
        lines.append(f"keys of generation{plural} {valid} on {len(places)} satellite{'s' if len(places) != 1 else ''}{names}")
    behind = [one for one in report["satellites"] if one.get("generations") and one["peers_generation"] < one["generations"][-1]]
    if behind:
        lines.append(f"{len(behind)} of them use older keys among each other, as they have no newer ones")
    if refused := report["security"]["keys_refused"]:
        lines.append(f"commands about keys that satellites refused: {refused}")
    return "\n".join(lines)


def expected_s(constellation: Constellation, playing: Playing | None, time_s: float) -> float:
    """Return how many seconds a handover may take: `cache.handover_s`, but no longer than its row lasts."""
    allowed_s = constellation.cache.handover_s
    if playing is None:
        return allowed_s
    row = playing.track.row_at(playing.track_ms(time_s))
    end_ms = playing.track.end_ms(row)
    return allowed_s if end_ms is None else min(allowed_s, (end_ms - playing.track.rows[row - 1][0]) / 1000)


def handover(constellation: Constellation, stores: Iterable[dict[str, int]], allowed_s: float) -> dict[str, Any]:
    """Return what satellites still have to hand over, and since when.

    Args:
        allowed_s: Seconds after which a handover is late.
    """
    late = [one for one in stores if one["handover_left"]]
    duration_s = max((one["handover_ms"] for one in late), default=0) / 1000
    return {
        "satellites": len(late),
        "chunks": sum(one["handover_left"] for one in late),
        "duration_s": duration_s,
        "late": duration_s > allowed_s,
        "allowed_s": allowed_s,
    }


def handover_text(handover: dict[str, Any]) -> str:
    """Return the handover in words; '' if nothing is left."""
    if not handover["chunks"]:
        return ""
    left = f"{handover['chunks']:,} chunks left on {handover['satellites']} satellites"
    late = f", longer than {handover['allowed_s']:g} s: LATE" if handover["late"] else ""
    return f"handover: {left}, after {handover['duration_s']:.1f} s{late}"


def parity_text(total: dict[str, int], parity: int) -> str:
    """Return what satellites have found and mended of blocks with parity; '' without parity.

    Args:
        total: Sums of the satellites' counters.
        parity: Servers with parity.
    """
    if not parity and not total["degraded"]:
        return ""
    return (
        f"parity: any {parity} servers may be lost; satellites have found {total['degraded']:,} degraded blocks and "
        f"rebuilt {total['repaired']:,} chunks"
    )


def window(constellation: Constellation, playing: Playing | None, time_s: float) -> dict[str, Any]:
    """Return the window: centre and servers as [plane, slot], and row and time of the schedule if there is one.

    Args:
        time_s: Unix time.
    """
    whereabouts = Whereabouts(constellation, playing)
    row = whereabouts.row(time_s)
    told: dict[str, Any] = {"centre": whereabouts.centre(row), "servers": whereabouts.servers(row), "row": None, "rows": None}
    if (playing := whereabouts.playing) is not None:
        told |= {"row": row, "rows": len(playing.track.rows), "speed": playing.speed}
        told["stays"] = playing.track.stays(row)
        if playing.schedule is not None:
            told["sky_time"] = utc(playing.schedule.header.epoch_ms + playing.schedule_ms(time_s))
    return told


def window_text(window: dict[str, Any]) -> str:
    """Return the window in words."""
    text = f"* {len(window['servers'])} servers, window around {Satellite(*window['centre'])}"
    if window["row"] is not None:
        why = "the last" if window["row"] == window["rows"] else "stopped"
        moves = f"({why}: it stays)" if window["stays"] else f"at {window['speed']:g}x"
        text += f"\nrow {window['row']} of {window['rows']} {moves}"
        text += f"\nsky of {window['sky_time']}" if "sky_time" in window else ""
    return text


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
        entry |= {"generations": links.generations, "peers_generation": links.generation_peers}
    return entry


def _tenant(one: TenantStats) -> dict[str, Any]:
    return {"tenant": OTHERS if one.number == OTHERS_NUMBER else one.number, **{name: getattr(one, name) for name in _SUMMED}}


def _tenants(satellites: Iterable[Iterable[TenantStats]]) -> list[dict[str, Any]]:
    """Return the sums of all satellites for each tenant, the others last."""
    sums: dict[int, Counter[str]] = {}
    for one in (one for records in satellites for one in records):
        sums.setdefault(one.number, Counter()).update({name: getattr(one, name) for name in _SUMMED})
    return [_tenant(TenantStats(number, *(sums[number][name] for name in _SUMMED))) for number in sorted(sums)]


def tenant_table(report: dict[str, Any]) -> Table:
    """Return one row for each tenant: its quota and what it holds, in chunks, summed over all satellites that answer."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("tenant", no_wrap=True)
    for name in ("reserved", "most", "chunks", "blocks", "evictions", "refused"):
        table.add_column(name, no_wrap=True, justify="right")
    for one in report["tenants"]:
        table.add_row(str(one["tenant"]), *(f"{one[name]:,}" for name in _SUMMED))
    return table


def _told(link: dict[str, int]) -> dict[str, int | None]:
    """Return a link's record for JSON, with None for a link never heard and for a delay not measured (0 in the ICD)."""
    nothing = {"last_heard_ms": NEVER, "delay_mean_us": 0, "delay_min_us": 0}
    return {name: None if nothing.get(name) == value else value for name, value in link.items()}


def print_grid(report: dict[str, Any]) -> None:
    """Print chunks, megabytes and hits/misses/evictions of each satellite; the last three only if they fit."""
    width = output_console().width
    cells = grid_cells(report, with_requests=True)
    needed = columns_needed(report["planes"], report["slots"], cells, gap=GAP)
    told = "chunks MB hits/misses/evictions"
    if needed > width:
        cells = grid_cells(report, with_requests=False)
        told = f"chunks MB ({needed} columns have room for hits/misses/evictions)"
    click.echo(told)
    for table in grid_tables(report["planes"], report["slots"], cells, width, gap=GAP):
        print_table(table)


def grid_cells(report: dict[str, Any], with_requests: bool) -> Cells:
    """Return chunks, megabytes, and if wanted hits/misses/evictions of each satellite."""
    held = {
        (entry["plane"], entry["slot"]): (str(entry["chunks"]), f"{entry['bytes'] / 1e6:.1f}")
        for entry in report["satellites"]
        if entry["alive"]
    }
    chunks, megabytes = (max((len(texts[at]) for texts in held.values()), default=0) for at in (0, 1))
    servers = set(map(tuple, report["window"]["servers"]))
    cells = {}
    for entry in report["satellites"]:
        place = entry["plane"], entry["slot"]
        if place not in held:
            cells[place] = Text("refuses" if entry["refuses"] else "no answer", style="red")
            continue
        text = f"{'*' if place in servers else ' '}{held[place][0]:>{chunks}} {held[place][1]:>{megabytes}}"
        if with_requests:
            text += f" {entry['hits']}/{entry['misses']}/{entry['evictions']}"
        cells[place] = Text(text, style="green" if entry["chunks"] else "")
    return cells


def link_table(report: dict[str, Any]) -> Table:
    """Return one row for each link: both ends, delays in ms, packets. A - stands for what was not measured."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("from", "link", "to", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("requested", "least", "mean", "sent", "received", "dropped"):
        table.add_column(name, no_wrap=True, justify="right")
    for entry in report["satellites"]:
        for name in LINK_NAMES if "links" in entry else ():
            link = entry["links"][name]
            if link["plane"] or name == "ground":  # a cut seam has no such link
                table.add_row(str(Satellite(entry["plane"], entry["slot"])), name, *_link(link))
    return table


def _link(link: dict[str, Any]) -> Iterator[str | Text]:
    yield str(Satellite(link["plane"], link["slot"])) if link["plane"] else "hosts"
    yield "up" if link["up"] else Text("down", style="red")
    for name in ("delay_requested_us", "delay_min_us", "delay_mean_us"):
        yield "-" if link[name] is None else f"{link[name] / 1000:.2f}"
    yield from (str(link["tx_packets"]), str(link["rx_packets"]), str(_drops(link)))


def _drops(link: dict[str, Any]) -> int:
    return sum(int(value) for name, value in link.items() if name.startswith("drop_"))
