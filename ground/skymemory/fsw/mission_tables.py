"""Tables of the flight apps as C files, in the form from which cFS builds a mission's table files.

- tables/kvc_limits.c, tables/kvc_schedule1.c .. are the same for all processors;
- cpu1/tables/isl_neighbours.c, isl_links.c are those of the first satellite, and so on;
- cpu1/tables/isl_keys.c, isl_peers1.c .. are its keys, if there is a keyring;
- skymemory_cpus.cmake names the processors, for targets.cmake.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.common import defaults
from skymemory.fsw.link_names import LINKS, NEIGHBOURS
from skymemory.fsw.structures import (
    ISL_PEERS_OF_PAGE,
    ISL_PEERS_PAGES,
    KVC_PLATFORM_SCHEDULE_SEGMENTS,
    KVC_SEGMENT_ROWS,
    KvcScheduleRow,
)
from skymemory.security.derivation import KEY_BYTES
from skymemory.security.satellite_file import SatelliteKeys
from skymemory.sky.constellation import Constellation, LinkModel
from skymemory.sky.file_sections import OTHERS, Cache, TenantQuota
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.placement.core_library import crc32c
from skymemory.sky.placement.layouts import LAYOUT_IDS
from skymemory.sky.placement.torus import Direction
from skymemory.sky.placement.track import Track
from skymemory.wire.address import Satellite

ROWS_MAX: Final = KVC_PLATFORM_SCHEDULE_SEGMENTS * KVC_SEGMENT_ROWS
"""Rows for which a satellite has room."""
_ROWS_A_LINE: Final = 4
_SECONDS_MAX: Final = 2**32 - 1


class TablesError(ValueError):
    """The tables cannot be made; the text says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Moves:
    """A schedule for satellites: its rows, and its beginning on their clock."""

    track: Track
    epoch_ms: int
    """Milliseconds that the satellites' clock (CFE_TIME_GetTime) shows at the track's time 0."""
    source: str
    """Name of the schedule's file, for the comment."""

    @classmethod
    def of(cls, constellation: Constellation, schedule: Schedule, source: str, clock_epoch_ms: int) -> "Moves":
        """Take the rows out of a schedule file.

        Args:
            source: Name of the file.
            clock_epoch_ms: Unix time at which the satellites' clock shows 0.

        Raises:
            TablesError: The schedule is for another constellation, too long, or not on that clock.
        """
        header, ours = schedule.header, constellation
        if (header.planes, header.slots) != (ours.planes, ours.slots):
            there = f"{header.planes} planes x {header.slots} slots"
            raise TablesError(f"{source} is for {there}; the constellation has {ours.planes} planes x {ours.slots} slots")
        if header.pattern != ours.grid.geometry:
            raise TablesError(f"{source} is for a {header.pattern}; the constellation is a {ours.grid.geometry}")
        if ours.cache.layout == "hop":
            allowed = '"rotation", "rotation_hop" and "all_planes"'
            raise TablesError(f'cache.layout is "hop", which never moves; with a schedule allowed are {allowed}')
        rows = len(schedule.track.rows)
        if rows > ROWS_MAX:
            raise TablesError(f"{source} has {rows:,} moves of the window; tables have room for {ROWS_MAX:,}: choose fewer hours")
        epoch_ms = header.epoch_ms - clock_epoch_ms
        if not 0 <= epoch_ms // 1000 <= _SECONDS_MAX:
            raise TablesError(f"{source} begins at {header.epoch}, which the satellites' clock cannot show; see --clock-epoch")
        return cls(schedule.track, epoch_ms, source)


def tables(
    constellation: Constellation, satellites: Sequence[Satellite], moves: Moves | None = None
) -> Iterator[tuple[str, str]]:
    """Make all files.

    Args:
        satellites: Satellites of cpu1, cpu2, ...
        moves: Schedule; None leaves the schedule's tables empty, and nothing moves by itself.

    Yields:
        Path inside the mission's defs folder, and text.
    """
    yield "tables/kvc_limits.c", limits(constellation)
    for segment in range(1, KVC_PLATFORM_SCHEDULE_SEGMENTS + 1):
        yield f"tables/kvc_schedule{segment}.c", schedule(constellation, moves, segment)
    for number, satellite in enumerate(satellites, start=1):
        yield f"cpu{number}/tables/isl_neighbours.c", neighbours(constellation, satellite)
        yield f"cpu{number}/tables/isl_links.c", links(constellation, satellite)
    yield "skymemory_cpus.cmake", processors(satellites)


def neighbours(constellation: Constellation, satellite: Satellite) -> str:
    """Return the text of isl_neighbours.c: the satellite's own numbers, and the addresses of its neighbours."""
    network = constellation.network
    around = constellation.torus.neighbours(satellite)
    lines = [
        f".SelfPlane      = {satellite.plane},",
        f".SelfSlot       = {satellite.slot},",
        f".Planes         = {constellation.planes},",
        f".Slots          = {constellation.slots},",
        f".LocalIpv4      = {_ipv4(constellation, satellite)}, /* {constellation.address(*satellite)} */",
        f".LocalPort      = {network.port},",
        f".HelloS         = {constellation.satellite.hello_s},",
        f".PacketBytes    = {network.mtu},",
        f".SeamCut        = {int(constellation.torus.seam_cut)},",
        ".UplinkFirstMid = 0, /* no commands from the ground */",
        ".UplinkLastMid  = 0,",
        ".Neighbour =",
        "    {",
    ]
    for name in NEIGHBOURS:
        peer = around.get(Direction(name))
        if peer is None:
            lines.append(f"        {{.Present = 0}}, /* {name}: none */")
        else:
            place = f".Ipv4 = {_ipv4(constellation, peer)}, .Port = {network.port}, .Plane = {peer.plane}, .Slot = {peer.slot}"
            lines.append(f"        {{{place}, .Present = 1}}, /* {name}, {constellation.address(*peer)} */")
    lines += ["    },", ".DownlinkMid = {ISL_HK_TLM_MID, KVC_HK_TLM_MID, CFE_EVS_LONG_EVENT_MSG_MID},"]
    where = f"satellite ({satellite.plane}, {satellite.slot}) of {constellation.planes} planes with {constellation.slots} slots"
    includes = ("cfe_evs_msgids.h", "isl_msgids.h", "isl_tbl.h", "kvc_msgids.h")
    return _file("ISL", "Neighbours", f"ISL.Neighbours: {where}", "Self and neighbours", includes, lines)


def links(constellation: Constellation, satellite: Satellite) -> str:
    """Return the text of isl_links.c: the emulation of the satellite's links, empty where the constellation file has none."""
    own = constellation.named_link_models(satellite)
    lines = [".Link =", "    {"]
    for name in LINKS:
        model = own.get(name, LinkModel())
        delay = f".DelayUs = {model.delay_us}u, .JitterUs = {model.jitter_us}u, .RateKbps = {model.rate_kbps}u"
        lines.append(f"        {{{delay}, .LossPpm = {model.loss_ppm}u, .Cut = {int(model.cut)}}}, /* {name} */")
    lines.append("    },")
    what = f"ISL.Links: emulation of the links of satellite ({satellite.plane}, {satellite.slot})"
    return _file("ISL", "Links", what, "Models of the links", ("isl_tbl.h",), lines)


def limits(constellation: Constellation) -> str:
    """Return the text of kvc_limits.c: the chunk store."""
    own = constellation.satellite
    store_bytes = own.store_mib * 1024 * 1024
    lines = [
        f".StoreBytes           = {store_bytes}u,",
        f".SlotBytes            = {constellation.slot_bytes}u,",
        f".Credit               = {own.credit},",
        f".PartLifetimeMs       = {defaults.DEFAULT_PART_LIFETIME_MS},",
        ".MigrateAllFromGround = 0,",
        f".Gossip               = {int(own.gossip)},",
        f".ScrubPeriodMs        = {1000 * own.scrub_s},",
        f".HandoverMs           = {round(1000 * constellation.cache.handover_s)},",
        *_window(constellation.cache),
        *_quotas(constellation.tenants),
    ]
    check = (
        f"#if KVC_PLATFORM_STORE_BYTES < {store_bytes}",
        f"#error satellite.store_mib is {own.store_mib}: this needs KVC_PLATFORM_STORE_BYTES of {store_bytes} or more",
        "#endif",
    )
    includes = ("kvc_platform_cfg.h", "kvc_tbl.h")
    return _file("KVC", "Limits", "KVC.Limits, of all satellites", "Limits of the chunk store", includes, lines, check)


def _window(cache: Cache) -> list[str]:
    plane, slot = cache.centre
    return [
        f".WindowServers        = {cache.servers},",
        f".WindowLayout         = {LAYOUT_IDS[cache.layout]}, /* {cache.layout} */",
        f".WindowPlane          = {plane},",
        f".WindowSlot           = {slot},",
    ]


def _quotas(tenants: Sequence[TenantQuota]) -> list[str]:
    own = [one for one in tenants if one.number != OTHERS]
    if not own:
        return [".TenantCount          = 0, /* no quotas: all tenants share the store */"]
    others = next((one for one in tenants if one.number == OTHERS), TenantQuota(number=OTHERS))
    return [
        f".TenantCount          = {len(own)},",
        f".OthersReservedPercent = {others.reserved_percent},",
        f".OthersMostPercent     = {others.most_percent},",
        ".Tenant =",
        "    {",
        *(
            f"        {{.Tenant = {one.number}u, .ReservedPercent = {one.reserved_percent}, .MostPercent = {one.most_percent}}},"
            for one in own
        ),
        "    },",
    ]


def schedule(constellation: Constellation, moves: Moves | None, segment: int) -> str:
    """Return the text of kvc_schedule1.c .. kvc_schedule4.c; `segment` counts from 1."""
    name, title = f"Schedule{segment}", f"Rotation schedule segment {segment}"
    rows = [] if moves is None else [KvcScheduleRow(time_ms, *cell) for time_ms, cell in moves.track.rows]
    first = (segment - 1) * KVC_SEGMENT_ROWS
    own = rows[first : first + KVC_SEGMENT_ROWS]
    if moves is None or not own:
        what = f"KVC.{name}: no rows" if moves is None else f"KVC.{name}: not needed, {moves.source} has {len(rows)} rows"
        return _file("KVC", name, what, title, ("kvc_tbl.h",), [".TotalRows = 0,"])
    cache = constellation.cache
    lines = [
        f".EpochS    = {moves.epoch_ms // 1000}u,",
        f".EpochMs   = {moves.epoch_ms % 1000},",
        ".Clock     = KVC_CLOCK_SATELLITE,",
        f".Planes    = {constellation.planes},",
        f".Slots     = {constellation.slots},",
        f".Layout    = {LAYOUT_IDS[cache.layout]}, /* {cache.layout} */",
        f".Servers   = {cache.servers},",
        f".FirstRow  = {first + 1},",
        f".RowCount  = {len(own)},",
        f".TotalRows = {len(rows)},",
        ".RowsCrc   = ROWS_CRC,",
        ".Row =",
        "    {",
    ]
    for at in range(0, len(own), _ROWS_A_LINE):
        some = ", ".join(f"{{{row.time_ms}u, {row.plane}, {row.slot}}}" for row in own[at : at + _ROWS_A_LINE])
        lines.append(f"        {some},")
    lines.append("    },")
    in_memory = b"".join(map(bytes, rows))
    check = (
        "/* CRC-32C of all rows as they lie in memory */",
        "#ifdef SOFTWARE_BIG_BIT_ORDER",
        f"#define ROWS_CRC 0x{crc32c(_swapped(in_memory)):08X}u",
        "#else",
        f"#define ROWS_CRC 0x{crc32c(in_memory):08X}u",
        "#endif",
    )
    what = f"KVC.{name}: rows {first + 1} to {first + len(own)} of {len(rows)}, from {moves.source}"
    return _file("KVC", name, what, title, ("kvc_tbl.h",), lines, check)


def key_tables(generations: Sequence[SatelliteKeys]) -> Iterator[tuple[str, str]]:
    """Make the tables of a satellite's keys: ISL.Keys, ISL.Peers1 ..

    Args:
        generations: Its keys in one generation, or in two that are valid together, the older first.

    Yields:
        Name of a file, and text, which is secret.

    Raises:
        TablesError: The satellites are too many for the tables.
    """
    newest = generations[-1]
    of = f"of satellite ({newest.place.plane}, {newest.place.slot})"
    masters = [f"    {{.IsSet = 1, .Generation = {own.generation}, .Key = {_bytes(own.master_key)}}}," for own in generations]
    lines = [".Master =", "    {", *masters, "    },"]
    yield "isl_keys.c", _file("ISL", "Keys", f"ISL.Keys: master keys {of}. SECRET", "Master keys", ("isl_tbl.h",), lines)
    satellites = newest.planes * newest.slots
    pages = [(own, first) for own in reversed(generations) for first in range(0, satellites, ISL_PEERS_OF_PAGE)]
    if len(pages) > ISL_PEERS_PAGES:
        both = " in two generations" if len(generations) > 1 else ""
        needed = f"the keys of {satellites:,} satellites{both} need {len(pages)} tables ISL.Peers"
        raise TablesError(f"{needed}; there are {ISL_PEERS_PAGES}, each for {ISL_PEERS_OF_PAGE} keys of one generation")
    for number in range(1, ISL_PEERS_PAGES + 1):
        lines = [".Count = 0,"]
        if number <= len(pages):
            own, first = pages[number - 1]
            count = min(ISL_PEERS_OF_PAGE, satellites - first)
            keys = [own.peer_keys[at * KEY_BYTES : (at + 1) * KEY_BYTES] for at in range(first, first + count)]
            lines = [f".Generation = {own.generation},", f".First      = {first},", f".Count      = {count},", ".Peer =", "    {"]
            lines += [*(f"        {{{_bytes(key)}}}," for key in keys), "    },"]
        what, title = f"ISL.Peers{number}: keys between satellites, {of}. SECRET", f"Keys between satellites {number}"
        yield f"isl_peers{number}.c", _file("ISL", f"Peers{number}", what, title, ("isl_tbl.h",), lines)


def processors(satellites: Sequence[Satellite]) -> str:
    """Return the text of skymemory_cpus.cmake: names and numbers of the processors, all with the same configuration."""
    lines = ["# Processors of the constellation, one a satellite. Made by `skymem tables`.", "set(MISSION_CPUNAMES)"]
    for number, satellite in enumerate(satellites, start=1):
        lines += [
            f"list(APPEND MISSION_CPUNAMES cpu{number}) # satellite ({satellite.plane}, {satellite.slot})",
            f"set(cpu{number}_PROCESSORID {number})",
            f"set(cpu{number}_PLATFORM default)",
        ]
    return "\n".join(lines) + "\n"


def _file(
    app: str, table: str, what: str, title: str, includes: Sequence[str], lines: Sequence[str], before: Sequence[str] = ()
) -> str:
    """Return the text of a table image.

    Args:
        lines: Initialiser of the table's structure.
        before: Lines before the definition.
    """
    structure = table.rstrip("1234")
    text = ["/**", " * @file", f" * {what}. Made by `skymem tables`.", " */", '#include "cfe_tbl_filedef.h"']
    text += [f'#include "{name}"' for name in includes]
    text += ["", *before, ""] if before else [""]
    text += [f"{app}_{structure}Table_t {app}_{table} = {{", *(f"    {line}" for line in lines), "};", ""]
    text.append(f"CFE_TBL_FILEDEF({app}_{table}, {app}.{table}, {title}, {app.lower()}_{table.lower()}.tbl)")
    return "\n".join(text) + "\n"


def _bytes(key: bytes) -> str:
    return "{" + ", ".join(f"0x{byte:02X}" for byte in key) + "}"


def _ipv4(constellation: Constellation, satellite: Satellite) -> str:
    parts = [int(part) for part in constellation.address(*satellite).split(".")]
    return "0x" + "".join(f"{part:02X}" for part in parts) + "u"


def _swapped(words: bytes) -> bytes:
    """Return 32-bit words with their bytes in the other order."""
    return b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
