"""Words and tables of `skymem status`, made of its report."""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from skymemory.agent.activity import Counts
from skymemory.cli.agent_counts import in_words
from skymemory.cli.grid_tables import Cells, columns_needed, grid_tables
from skymemory.cli.status_report import QUOTA, SILENT, SUMMED, drops
from skymemory.link.control import LINK_NAMES
from skymemory.sky.constellation import Constellation
from skymemory.sky.window_state import State, WindowState, named
from skymemory.wire import icd
from skymemory.wire.address import Satellite

Part: TypeAlias = Text | Table
"""Text that is folded at the width of the terminal, or a table that fits it."""
NAMED_MOST = 8
"""Most satellites of a group with other keys that are named."""
_NAME = re.compile(r"(\[\d+), (\d+\])")
_KEPT = "\N{NO-BREAK SPACE}"
"""Blank at which a line is not folded; it is shown as any other."""
GAP = 2
"""Blanks between the columns of the grid: its cells contain single ones."""
STYLES = {State.WHOLE: "green", State.DEGRADED: "yellow", State.GONE: "red", SILENT: "red"}
"""Colours of a window's state."""


def parts(
    report: dict[str, Any], constellation: Constellation, counts: Counts | None, width: int, *, show_links: bool = False
) -> list[Part]:
    """Return all that is shown of a report, from top to bottom: the state of the window comes first.

    Args:
        counts: Counts of this host's agent; None if none tells them.
        width: Columns of the terminal.
        show_links: True to list every link.
    """
    shown = [*verdict(report, width), *grid(report, width)]
    cache, total = constellation.cache, report["total"]
    lines = [
        window_text(report["window"]),
        constellation.security_words(report["security"]["suites"]),
        generations_text(report),
        handover_text(report["handover"]),
        f"{report['alive']} of {len(report['satellites'])} satellites answer; they hold {total['chunks']} chunks, "
        f"{total['bytes'] / 1e6:.1f} MB",
        f"requests to satellites: {total['hits']} hits, {total['misses']} misses, {total['evictions']} evictions; "
        f"ISLs: {total['tx_packets']} packets sent, {total['drops']} dropped",
        parity_text(total, cache.parity),
    ]
    shown += [folded(line, width) for line in lines if line]
    if report["tenants"]:
        title = "\ntenants: MB reserved, at most and in use in the stores of all satellites; blocks as satellites count them"
        shown.append(folded(title, width))
        shown.append(tenant_table(report))
    shown.append(folded(in_words(counts), width))
    stores = f"{cache.servers} servers with store_mib {constellation.satellite.store_mib}"
    for one in report["models"]:
        shown.append(folded(f"{stores} hold {one['tokens']:,} tokens of {one['model']} ({one['dtype']})", width))
    if show_links:
        title = "\nlinks: one-way delays in ms, requested, and of the last hellos; packets sent, received and dropped"
        shown.append(folded(title, width))
        shown.append(link_table(report))
    return shown


def folded(text: str, width: int, style: str = "") -> Text:
    """Return text whose lines fit the width. The name of a satellite, [3, 10], stays on one line."""
    kept = _NAME.sub(rf"\1,{_KEPT}\2", text)
    lines = (wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""] for line in kept.split("\n"))
    return Text("\n".join(piece for pieces in lines for piece in pieces).replace(_KEPT, " "), style=style)


def verdict(report: dict[str, Any], width: int) -> list[Text]:
    """Return whether blocks can be fetched, and who does not serve this host, and why."""
    window = report["window"]
    why = [folded(line, width, "red") for line in (report["refusal"], report["versions"]) if line]
    if window["state"] == SILENT:
        return [folded(f"SILENT: no satellite {'serves this host' if why else 'answers'}", width, STYLES[SILENT]), *why]
    lost, empty = (tuple(Satellite(*one) for one in window[name]) for name in ("lost", "empty"))
    words = WindowState(len(window["servers"]), window["parity"], lost, empty).words()
    places = ((Satellite(one["plane"], one["slot"]), one) for one in report["satellites"])
    outside = [place for place, one in places if not one["alive"] and place not in lost]
    shown = [folded(words, width, STYLES[window["state"]])]
    if outside:
        verb = "is" if len(outside) == 1 else "are"
        shown.append(folded(f"outside the window {len(outside)} {verb} lost: {named(outside)}", width))
    return shown + why


def parity_text(total: dict[str, int], parity: int) -> str:
    """Return what satellites have found and mended of blocks with parity; '' without parity.

    Args:
        total: Sums of the satellites' counters.
        parity: Servers with parity.
    """
    if not parity and not total["degraded"]:
        return ""
    return f"parity: satellites have found {total['degraded']:,} degraded blocks and rebuilt {total['repaired']:,} chunks"


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


def handover_text(handover: dict[str, Any]) -> str:
    """Return the handover in words; '' if nothing is left."""
    if not handover["chunks"]:
        return ""
    left = f"{handover['chunks']:,} chunks left on {handover['satellites']} satellites"
    late = f", longer than {handover['allowed_s']:g} s: LATE" if handover["late"] else ""
    return f"handover: {left}, after {handover['duration_s']:.1f} s{late}"


def window_text(window: dict[str, Any]) -> str:
    """Return the window in words."""
    text = f"* {len(window['servers'])} servers, window around {Satellite(*window['centre'])}"
    if window["row"] is not None:
        why = "the last" if window["row"] == window["rows"] else "stopped"
        moves = f"({why}: it stays)" if window["stays"] else f"at {window['speed']:g}x"
        text += f"\nrow {window['row']} of {window['rows']} {moves}"
        text += f"\nsky of {window['sky_time']}" if "sky_time" in window else ""
    return text


def tenant_table(report: dict[str, Any]) -> Table:
    """Return one row for each tenant: its quota and what it has of stores, in MB, summed over all satellites that answer."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("tenant", no_wrap=True)
    for name in ("reserved", "most", "used", "blocks", "evictions", "refused"):
        table.add_column(name, no_wrap=True, justify="right")
    for one in report["tenants"]:
        megabytes = (f"{one[name] / 1e6:,.1f}" for name in QUOTA)
        counts = (f"{one[name]:,}" for name in SUMMED if name not in QUOTA)
        table.add_row(str(one["tenant"]), *megabytes, *counts)
    return table


def grid(report: dict[str, Any], width: int) -> Iterator[Part]:
    """Yield chunks, megabytes and hits/misses/evictions of each satellite; the last three only if they fit the width."""
    cells = grid_cells(report, with_requests=True)
    needed = columns_needed(report["planes"], report["slots"], cells, gap=GAP)
    told = "chunks MB hits/misses/evictions"
    if needed > width:
        cells = grid_cells(report, with_requests=False)
        told = f"chunks MB ({needed} columns have room for hits/misses/evictions)"
    yield folded(told, width)
    yield from grid_tables(report["planes"], report["slots"], cells, width, gap=GAP)


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
            cells[place] = Text(f"{'*' if place in servers else ' '}{_why_not(entry)}", style="red")
            continue
        text = f"{'*' if place in servers else ' '}{held[place][0]:>{chunks}} {held[place][1]:>{megabytes}}"
        if with_requests:
            text += f" {entry['hits']}/{entry['misses']}/{entry['evictions']}"
        cells[place] = Text(text, style="green" if entry["chunks"] else "")
    return cells


def _why_not(entry: dict[str, Any]) -> str:
    """Return in a word why a satellite does not serve this host."""
    if entry["refuses"]:
        return "refuses"
    return "lost" if entry["version"] in (None, icd.VERSION) else f"version {entry['version']}"


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
    yield from (str(link["tx_packets"]), str(link["rx_packets"]), str(drops(link)))
