"""`skymem bench parity`: measures what lost satellites and lost packets cost gets of blocks with parity.

**Lost satellites.** Several hosts get and put at once. Then satellites die, or stop without a word, and the traffic goes on. The
first second after the loss is told apart: in it hosts find out.

**Repair.** A satellite comes back empty, first while nothing else goes on, then under the same traffic. The others rebuild its
chunks. The figures say what they read for that, and how long they take.

**Lost packets.** Each link loses so many packets, and each get has a deadline of four round trips. What does not come by then
counts as not complete. The same blocks without parity stand beside it.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any, Final, NamedTuple

from rich.table import Table

from skymemory.bench.traffic import Traffic
from skymemory.common.progress import Progress, no_progress
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.results import Status
from skymemory.store.runner import Moved
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.wire.address import Satellite
from skymemory.wire.packets import KEY_BYTES

SERVERS: Final = 12
PARITY: Final = 2
PHASE_S: Final = 5.0
"""Seconds of traffic before satellites are lost, and after hosts have found out."""
FINDING_S: Final = 1.0
"""Seconds in which hosts find out."""
LOSSES_PPM: Final = (0, 10_000, 30_000, 50_000, 100_000)
DELAY_US: Final = 25_000
"""Delay of a link, one way."""
ROUND_TRIPS: Final = 4
"""Round trips that a get may take over links that lose packets."""
HOSTS: Final = 8
"""Hosts that get at once over links that lose packets."""
SIZES: Final = (60_000, 1_000_000)
"""Bytes of the blocks over links that lose packets: one row of full chunks, and many rows."""
REPAIR_BLOCKS: Final = 100
"""Blocks of 1 MB of which a satellite loses its shares."""
SCRUB_S: Final = 20
"""Period of the scrub in which lost shares are found."""
_REPAIR_S: Final = 300.0
"""Longest time for which a repair is waited for."""
_SETTLE_PERIODS: Final = 2.0
"""Periods of the scrub in which every loss is found."""
_LOOK_S: Final = 0.1
_PUT_PAUSE_S: Final = 1.0
"""Seconds between two puts of a host during a repair, which goes into free slots alone."""
_BLOCKS: Final = 10
_REPAIRED_BYTES: Final = 1_000_000
_WARM_UP: Final = 5
"""Gets of a host that are not counted, because it has not measured the links yet."""
_PUT_MS: Final = 20_000
_STORE_MIB: Final = 64
"""Store of a satellite, so that nothing is evicted."""
_PUTS: Final = 8
"""Most times that blocks are put, over links that lose packets."""


def _coded(constellation: Constellation, servers: int = SERVERS, parity: int = PARITY) -> Constellation:
    """Return the constellation at a port of its own, with parity, and with deadlines that no get comes near."""
    cache = {"servers": servers, "parity": parity, "deadline_ms": _PUT_MS, "window": "logical", "uplink": "window"}
    sky = constellation.replace(cache=cache, satellite={"store_mib": _STORE_MIB})
    return sky.replace(network={"port": free_port(sky)})


def run_lost_satellites(
    constellation: Constellation, phase_s: float = PHASE_S, progress: Progress = no_progress
) -> list[dict[str, Any]]:
    """Measure gets before and after satellites are lost.

    Args:
        constellation: Keeps everything but `servers`, `parity`, `window` and the deadline.
        phase_s: Seconds of traffic before and after.
        progress: Called with the number of finished rows, and of all rows.

    Returns:
        A row for each way to lose satellites. Durations are those of calls that get four blocks of 1 MB, in milliseconds.

    Raises:
        StartError: A constellation does not start.
    """
    ways: dict[str, tuple[tuple[int, ...], Callable[[LocalConstellation, Satellite], None]]] = {
        "none": ((), LocalConstellation.kill),
        "one killed": ((3,), LocalConstellation.kill),
        "two killed": ((3, 7), LocalConstellation.kill),
        "two stopped": ((3, 7), lambda local, place: os.kill(local.processes[place].pid, signal.SIGSTOP)),
    }
    rows = []
    for name, (servers, lose) in ways.items():
        with LocalConstellation(_coded(constellation)) as local:
            sky = local.constellation
            places = Whereabouts(sky).servers(0)
            with Traffic(sky) as traffic:
                started_s = time.perf_counter()
                time.sleep(phase_s)
                for server in servers:
                    lose(local, places[server])
                lost_s = time.perf_counter()
                time.sleep(FINDING_S + phase_s)
                traffic.stop()
                before, finding, after = (
                    traffic.phase(started_s, lost_s - FINDING_S / 4),
                    traffic.phase(lost_s - FINDING_S / 4, lost_s + FINDING_S),
                    traffic.phase(lost_s + FINDING_S),
                )
                stats = traffic.stats()
        rows.append(
            {
                "lost": name,
                "calls": len(before.gets) + len(finding.gets) + len(after.gets),
                "puts": traffic.puts,
                "before_ms": round(before.median_ms, 1),
                "longest_ms": round(finding.longest_ms, 1),
                "after_ms": round(after.median_ms, 1),
                "ratio": round(after.median_ms / before.median_ms, 2),
                "misses": sum(one.misses for one in stats),
                "purges": sum(one.purges for one in stats),
                "errors": len(traffic.errors),
            }
        )
        progress(len(rows), len(ways))
    return rows


def run_repair(
    constellation: Constellation,
    blocks: int = REPAIR_BLOCKS,
    scrub_s: int = SCRUB_S,
    phase_s: float = PHASE_S,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Measure what satellites do to rebuild the shares of one that came back empty.

    Args:
        constellation: Keeps everything but `servers`, `parity`, `window`, `scrub_s` and the deadline.
        blocks: Number of blocks of 1 MB that are stored.
        scrub_s: Seconds in which each satellite looks at all blocks once.
        phase_s: Seconds of traffic before the second satellite comes back empty; more than `FINDING_S`.
        progress: Called with the number of finished rows, and of all rows.

    Returns:
        A row without traffic and one with it. `found_s` lasts from the restart to the first rebuilt chunk, `repair_s` from
        there to the last. With traffic hosts put again what they read without some chunks, so that satellites rebuild the rest
        alone. `read_chunks` is of the quiet row alone, as gets read chunks too. `ratio` compares gets during the repair with
        those before.

    Raises:
        StartError: The constellation does not start.
        TimeoutError: The chunks are not rebuilt.
    """
    rows: list[dict[str, Any]] = []
    with LocalConstellation(_coded(constellation).replace(satellite={"scrub_s": scrub_s})) as local:
        sky = local.constellation
        places = Whereabouts(sky).servers(0)
        with SkyStore(sky, tenant_secret=b"") as store, ControlPlane(sky) as control:
            for _ in range(blocks):
                store.put([(os.urandom(KEY_BYTES), os.urandom(_REPAIRED_BYTES))])
            stored = control.store_stats([Route(places[3], places[3])], _PUT_MS / 1000)[places[3]]["chunks"]
            quiet = _repair(local, control, places[3], stored, 0.0)
            rows.append({"beside": "nothing", **quiet.row(), "read_chunks": quiet.read_chunks})
            progress(1, 2)
            with Traffic(sky, put_pause_s=_PUT_PAUSE_S) as traffic:
                started_s = time.perf_counter()
                time.sleep(phase_s)
                killed_s = time.perf_counter()
                busy = _repair(local, control, places[7], stored, _SETTLE_PERIODS * scrub_s)
                traffic.stop()
                before = traffic.phase(started_s, killed_s - FINDING_S / 4).median_ms
                meanwhile = traffic.phase(busy.first_s, max(busy.last_s, busy.first_s + FINDING_S)).median_ms
            times = {"before_ms": round(before, 1), "meanwhile_ms": round(meanwhile, 1), "ratio": round(meanwhile / before, 2)}
            rows.append({"beside": "gets and puts", **busy.row(), **times})
            progress(2, 2)
    return rows


class _Repair(NamedTuple):
    """Chunks that satellites rebuilt for one that came back empty, and times by the clock `time.perf_counter`."""

    rebuilt_chunks: int
    read_chunks: int
    restarted_s: float
    first_s: float
    last_s: float

    def row(self) -> dict[str, Any]:
        """Return the figures of a row."""
        found_s, repair_s = self.first_s - self.restarted_s, self.last_s - self.first_s
        return {"rebuilt_chunks": self.rebuilt_chunks, "found_s": round(found_s, 1), "repair_s": round(repair_s, 1)}


def _repair(local: LocalConstellation, control: ControlPlane, place: Satellite, least: int, settle_s: float) -> _Repair:
    """Let a satellite lose everything, and wait until its chunks are rebuilt: `least` of them, and none more for `settle_s`."""
    routes = [Route(server, server) for server in Whereabouts(local.constellation).servers(0)]

    def counted() -> Counter[str]:
        return sum((Counter(stats) for stats in control.store_stats(routes, _PUT_MS / 1000).values()), Counter())

    local.kill(place)
    before = counted()
    local.restart(place)
    restarted_s = now_s = time.perf_counter()
    done = read = 0
    first_s = last_s = restarted_s
    while done < least or now_s < last_s + settle_s:
        if now_s > restarted_s + _REPAIR_S:
            raise TimeoutError(f"satellites rebuilt {done} of {least} chunks in {_REPAIR_S:g} s")
        time.sleep(_LOOK_S)
        now, now_s = counted(), time.perf_counter()
        if (repaired := now["repaired"] - before["repaired"]) > done:
            first_s = now_s if done == 0 else first_s
            done, read, last_s = repaired, now["hits"] - before["hits"], now_s
    return _Repair(done, read, restarted_s, first_s, last_s)


def run_lost_packets(constellation: Constellation, gets: int = 1000, progress: Progress = no_progress) -> list[dict[str, Any]]:
    """Measure how many gets are complete within four round trips over links that lose packets.

    Args:
        constellation: Keeps everything but links, `servers`, `parity`, `window` and the deadline.
        gets: Measured gets for each row.
        progress: Called with the number of finished rows, and of all rows.

    Returns:
        A row for each size of a block and each loss, with percentages of complete gets.

    Raises:
        StartError: A constellation does not start.
    """
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        for loss_ppm in LOSSES_PPM:
            row: dict[str, Any] = {"block_bytes": size, "loss_percent": loss_ppm / 10_000}
            for name, servers, parity in (("without_percent", SERVERS - PARITY, 0), ("with_percent", SERVERS, PARITY)):
                links = {
                    "model": "off",
                    "delay_us": DELAY_US,
                    "jitter_us": 0,
                    "rate_kbps": 0,
                    "loss_ppm": loss_ppm,
                    "override": [],
                }
                sky = _coded(constellation.replace(links=links), servers, parity)
                with LocalConstellation(sky):
                    row[name] = complete_percent(sky, size, gets)
            rows.append(row)
            progress(len(rows), len(SIZES) * len(LOSSES_PPM))
    return rows


def complete_percent(sky: Constellation, block_bytes: int, gets: int) -> float:
    """Return the percentage of gets of one block that are complete within four round trips.

    Several hosts get at once. Only the first attempt of a get counts.

    Args:
        sky: The constellation, which runs. All its links have one delay.
        block_bytes: Bytes of a block.
        gets: Measured gets of all hosts together.
    """
    items = [(os.urandom(KEY_BYTES), os.urandom(block_bytes)) for _ in range(_BLOCKS)]
    with SkyStore(sky, tenant_secret=b"") as store:
        left = items
        for _ in range(_PUTS):
            left = [item for item, result in zip(left, store.put(left), strict=True) if not result.ok]
        entries = [store.index.get(key) or key for key, _ in items]
    quick = sky.replace(cache={"deadline_ms": max(1, ROUND_TRIPS * 2 * sky.links.delay_us // 1000)})
    counts: Counter[bool] = Counter()

    def host() -> None:
        first: list[Moved] = []
        with SkyStore(quick, watch=first.append, tenant_secret=b"") as store:
            for number in range(_WARM_UP + -(-gets // HOSTS)):
                first.clear()
                store.get([entries[number % len(entries)]])
                if number >= _WARM_UP:
                    counts[bool(first) and first[0].transfers[0].status is Status.DONE] += 1

    threads = [Thread(target=host) for _ in range(HOSTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 100 * counts[True] / counts.total()


def satellites_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of the rows of `run_lost_satellites`."""
    table = Table(title=f"{SERVERS} servers, {PARITY} of parity; get of 4 blocks of 1 MB under load, ms")
    columns = ("lost", "before", "after", "ratio", f"longest in the {FINDING_S:g} s after", "calls", "misses", "purges")
    for column in columns:
        table.add_column(column, justify="left" if column == "lost" else "right")
    for row in rows:
        times = (f"{row[name]:.1f}" for name in ("before_ms", "after_ms"))
        counts = (f"{row[name]:,}" for name in ("calls", "misses", "purges"))
        table.add_row(row["lost"], *times, f"{row['ratio']:.2f} x", f"{row['longest_ms']:.1f}", *counts)
    return table


def repair_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of the rows of `run_repair`."""
    table = Table(title="A satellite comes back empty: its chunks are rebuilt")
    columns = {
        "beside": "beside",
        "rebuilt_chunks": "chunks rebuilt",
        "read_chunks": "chunks read",
        "found_s": "found after, s",
        "repair_s": "repair, s",
        "before_ms": "get before, ms",
        "meanwhile_ms": "get meanwhile, ms",
    }
    for title in columns.values():
        table.add_column(title, justify="left" if title == "beside" else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value := row.get(name, ""), int) else str(value) for name in columns))
    return table


def packets_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of the rows of `run_lost_packets`."""
    table = Table(title=f"gets complete within {ROUND_TRIPS} round trips of {2 * DELAY_US // 1000} ms, %")
    for column in ("block, bytes", "lost packets, %", f"{SERVERS - PARITY} servers", f"{SERVERS} with {PARITY} of parity"):
        table.add_column(column, justify="right")
    for row in rows:
        shares = (f"{row[name]:.1f}" for name in ("without_percent", "with_percent"))
        table.add_row(f"{row['block_bytes']:,}", f"{row['loss_percent']:g}", *shares)
    return table
