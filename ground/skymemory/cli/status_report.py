"""Report of `skymem status`: what every satellite says of itself, and what that means, as `--json` prints it."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median
from types import TracebackType
from typing import Any, Self

from skymemory.agent.models import recorded
from skymemory.agent.models import told as models_told
from skymemory.link.control import OTHERS_NUMBER, ControlPlane, LinkStats, TenantStats
from skymemory.link.other_versions import VersionWatch, version_words
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.file_sections import OTHERS
from skymemory.sky.orbit.schedule_format import utc
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.sky.window_state import WindowState
from skymemory.wire import icd
from skymemory.wire.address import Satellite

DEADLINE_S = 3.0
NEVER = 2**64 - 1
"""Value of `last_heard_ms` for a link that was never heard."""
SHOWN = ("chunks", "bytes", "hits", "misses", "evictions")
PARITY = ("degraded", "repaired")
"""Counters of satellites about blocks with parity, which are shown as sums."""
SUMMED = TenantStats._fields[1:]
"""Numbers of a tenant that are summed over satellites."""
QUOTA = ("reserved_bytes", "most_bytes", "used_bytes")
"""Those of its quota, in bytes."""
_TOGETHER_MS = 5_000
"""Time within which satellites began together."""
SILENT = "silent"
"""State of a window while no satellite of the constellation answers."""


class Reporter:
    """Asks all satellites of a constellation, as often as somebody wants a report. A context manager.

    Associations with satellites are kept from one report to the next.
    """

    def __init__(self, constellation: Constellation) -> None:
        """Open a socket.

        Raises:
            OSError: The system gives no socket.
        """
        self._constellation = constellation
        self._control = ControlPlane(constellation)
        self._versions = VersionWatch(constellation)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._control.close()

    def report(self, playing: Playing | None = None) -> dict[str, Any]:
        """Ask all satellites at once, each at its own address. A satellite that does not answer in time is not alive.

        Args:
            playing: The schedule that the constellation follows.
        """
        constellation, control = self._constellation, self._control
        places = list(constellation.torus.satellites())
        routes = [Route(place, place) for place in places]
        stores = control.store_stats(routes, DEADLINE_S)
        links = control.link_stats([route for route in routes if route.satellite in stores], DEADLINE_S)
        with_quotas = [route for route in routes if stores.get(route.satellite, {}).get("tenants")]
        tenants = control.tenant_stats(with_quotas, DEADLINE_S)
        suites = control.suites()
        refused, refusal = control.refused, control.refusal()
        self._versions.look({place for place in places if place not in stores and place not in refused})
        versions = self._versions.found
        satellites = [_satellite(constellation, place, stores.get(place), links.get(place)) for place in places]
        for entry, place in zip(satellites, places, strict=True):
            entry["refuses"] = place in refused
            entry["version"] = versions.get(place, icd.VERSION if entry["alive"] or place in refused else None)
            if place in tenants:
                entry["tenants"] = [_tenant(one) for one in tenants[place]]
        alive = [entry for entry in satellites if entry["alive"]]
        total = {name: sum(entry[name] for entry in alive) for name in SHOWN}
        total |= {name: sum(entry["store"][name] for entry in alive) for name in PARITY}
        isls = [link for entry in alive for name, link in entry.get("links", {}).items() if name != "ground"]
        for name in ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes"):
            total[name] = sum(link[name] for link in isls)
        total["drops"] = sum(drops(link) for link in isls)
        time_s = time.time()
        return {
            "planes": constellation.planes,
            "slots": constellation.slots,
            "alive": len(alive),
            "window": window(constellation, playing, time_s, stores),
            "security": security(constellation, suites, alive),
            "refusal": refusal,
            "versions": version_words(versions),
            "handover": handover(constellation, stores.values(), expected_s(constellation, playing, time_s)),
            "total": total,
            "tenants": _tenants(tenants.values()),
            "models": models_told(constellation, recorded()),
            "satellites": satellites,
        }


def collect(constellation: Constellation, playing: Playing | None = None) -> dict[str, Any]:
    """Return one report (`Reporter.report`)."""
    with Reporter(constellation) as reporter:
        return reporter.report(playing)


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


def window(
    constellation: Constellation, playing: Playing | None, time_s: float, stores: Mapping[Satellite, Mapping[str, int]]
) -> dict[str, Any]:
    """Return the window: its centre, its servers, whose shares are missing, and row and time of the schedule if there is one.

    Args:
        time_s: Unix time.
        stores: Counters of the satellites that answered.
    """
    whereabouts = Whereabouts(constellation, playing)
    row = whereabouts.row(time_s)
    servers, parity = whereabouts.servers(row), constellation.cache.parity
    lost = tuple(sorted(one for one in servers if one not in stores))
    empty = empty_servers({one: stores[one] for one in servers if one in stores}, 2 * constellation.satellite.scrub_s)
    state = WindowState(len(servers), parity, lost, empty)
    told: dict[str, Any] = {"centre": whereabouts.centre(row), "servers": servers, "row": None, "rows": None}
    told |= {
        "state": state.state.value if stores else SILENT,
        "lost": lost,
        "empty": empty,
        "parity": parity,
        "spare": state.spare,
    }
    if (playing := whereabouts.playing) is not None:
        told |= {"row": row, "rows": len(playing.track.rows), "speed": playing.speed}
        told["stays"] = playing.track.stays(row)
        if playing.schedule is not None:
            told["sky_time"] = utc(playing.schedule.header.epoch_ms + playing.schedule_ms(time_s))
    return told


def empty_servers(stores: Mapping[Satellite, Mapping[str, int]], repair_s: float) -> tuple[Satellite, ...]:
    """Return the servers that began anew beside the others and hold less than half of what others hold.

    Args:
        stores: Counters of the servers that answered.
        repair_s: Seconds within which the others find a loss. A server that has been up for longer may have had nothing.
    """
    if not stores:
        return ()
    longest_ms = max(one["uptime_ms"] for one in stores.values())
    usual = median(one["chunks"] for one in stores.values())

    def is_empty(one: Mapping[str, int]) -> bool:
        began_later = one["uptime_ms"] < min(longest_ms - _TOGETHER_MS, 1000 * repair_s)
        return began_later and 2 * one["chunks"] < usual

    return tuple(sorted(place for place, one in stores.items() if is_empty(one)))


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
        entry |= {"chunks": store["chunks"], "store": store}
        entry |= {name: store[name] for name in SHOWN if name != "chunks"}
    if links is not None:
        entry |= {"isl": links.counters, "links": {name: _told(link) for name, link in links.links.items()}}
        entry |= {"generations": links.generations, "peers_generation": links.generation_peers}
    return entry


def _tenant(one: TenantStats) -> dict[str, Any]:
    return {"tenant": OTHERS if one.number == OTHERS_NUMBER else one.number, **{name: getattr(one, name) for name in SUMMED}}


def _tenants(satellites: Iterable[Iterable[TenantStats]]) -> list[dict[str, Any]]:
    """Return the sums of all satellites for each tenant, the others last."""
    sums: dict[int, Counter[str]] = {}
    for one in (one for records in satellites for one in records):
        sums.setdefault(one.number, Counter()).update({name: getattr(one, name) for name in SUMMED})
    return [_tenant(TenantStats(number, *(sums[number][name] for name in SUMMED))) for number in sorted(sums)]


def _told(link: dict[str, int]) -> dict[str, int | None]:
    """Return a link's record for JSON, with None for a link never heard and for a delay not measured (0 in the ICD)."""
    nothing = {"last_heard_ms": NEVER, "delay_mean_us": 0, "delay_min_us": 0}
    return {name: None if nothing.get(name) == value else value for name, value in link.items()}


def drops(link: dict[str, Any]) -> int:
    """Return the packets that a link has dropped, for whatever reason."""
    return sum(int(value) for name, value in link.items() if name.startswith("drop_"))
