"""Many short runs, each with its own sky, workload and faults, all from one number: `skymem twin --seeds`."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from multiprocessing import get_context
from os import sched_getaffinity
from random import Random
from typing import Final

from skymemory.common import defaults
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.twin import VIOLATIONS_MAX
from skymemory.twin.faults import Attack, Crash, Faults
from skymemory.twin.native_twin import PACKET_BYTES_MIN
from skymemory.twin.single_run import Report, Setup, SuiteName, Twin
from skymemory.twin.structures import Break, Scheduled, Uplink
from skymemory.twin.workload import Workload
from skymemory.wire.address import Satellite

_PLANES: Final = 5
_SLOTS: Final = 19
_DAY_MS: Final = 86_400_000
_START_MS: Final = 1_795_186_800_000
"""Unix time of 2026-11-20T15:00:00Z."""
_LAYOUTS: Final[tuple[LayoutName, ...]] = ("rotation", "rotation_hop", "hop")
_UPLINKS: Final = (Uplink.DIRECT, Uplink.DIRECT, Uplink.CENTRE, Uplink.CENTRE, Uplink.ENTRIES)
_LATE_EVERY: Final = 8
"""One seed of so many has handovers that take longer than their rows: links are slow, and the schedule fast."""
_ASK_FIRST: Final = 4
"""One get of so many is preceded by a question of its host to all servers what they hold."""
_LOOK_UP: Final = 4
"""One get of so many, in every other seed, is preceded by a look-up of the block by its key."""
_VALUES: Final = 5
"""One name of so many, in two of three seeds with look-ups, is that of values: a host looks for their version first."""
_DELETED: Final = 0.2
"""Share of the puts of values that are deletions."""
_CANCELLED: Final = (0.25, 0.1)
"""Share of the seeds in which hosts call operations back, and of the operations in these."""
_SMALL: Final = 0.2
"""Share of the seeds in which most blocks are small, as values are, and stores cut slots for them."""
_SMALL_BLOCKS: Final = 0.85
"""Share of the blocks that are small in these seeds."""
_QUOTAS: Final = 1 / 3
"""Share of these seeds with quotas of tenants."""
_ODD: Final = 0.2
"""Share of the seeds with small stores, of those with late clocks of hosts, and of those with a window that goes to and fro. It
is also the share of the puts with another row than the first put of their block."""
_SUITES: Final[tuple[SuiteName, ...]] = ("gmac_header", "blake2b_header", "blake2b_packet")
"""Suites of the seeds with keys."""
_KEYED: Final = 0.25
"""Share of the seeds with keys; no more, because tags take time."""
_ATTACKED: Final = 0.8
"""Share of the seeds with keys and faults in which there is an attacker."""
_CODED: Final = 0.7
"""Share of the seeds in which blocks have parity."""
_USUAL: Final = (12, 2)
"""Servers, and how many of them hold parity, of every other seed with parity."""
_PARITY_MOST: Final = 5
_ASK_ALL: Final = 0.3
"""Share of the seeds with parity in which gets ask for it at once."""
_STRUCK: Final = 0.5
"""Share of the seeds with parity in which satellites in the window crash."""
_ALL_PLANES: Final = 0.1
"""Share of the seeds with a window over all planes; in half of those with parity it bears a lost plane."""
_WINDOW_ALONE: Final = 1 / 6
"""Share of the seeds in which the window stands still, and satellites have it alone: all, or those that have crashed."""
_SHARES_A_PLANE: Final = (2, 3, 4)
_LOST_AT_S: Final = 300.0
"""Second from which on satellites are lost in `lost_of`, within the next hundred."""
_LOST_DURATION_MS: Final = 900_000
_SPEED_MOST: Final = 16.0
"""Speed of the schedule at which handovers end well before their row."""
_DEADLINE_MS: Final = 5000
_SEEDS_AT_ONCE: Final = 4
"""Seeds that a worker gets at once."""


@cache
def schedule() -> Schedule:
    """Return a day over Berlin, from which every seed takes its part."""
    walker = Walker(_PLANES, _SLOTS, 550.0, 86.4, True)
    return Schedule.compute(walker, f"walker star:{_PLANES}x{_SLOTS}", Site(52.5, 13.4), 10.0, _START_MS, _DAY_MS)


def setup_of(seed: int) -> Setup:
    """Return the setup of a seed: a part of the day, and other values of all numbers of a constellation file."""
    rng, more = Random(f"setup {seed}"), Random(f"more of setup {seed}")
    late = seed % _LATE_EVERY == 0
    duration_ms = 1_200_000 + int(rng.random() * 3_600_000)
    speed = 1.0 if rng.random() < 0.6 else 1 + (_SPEED_MOST - 1) * rng.random() ** 2
    if late:
        duration_ms, speed = duration_ms // 8, 40 + 80 * rng.random()
    chunk_bytes = 100 + int(rng.random() * 1100)
    parts = rng.random() < 0.2
    setup = Setup(
        torus=Torus(_PLANES, _SLOTS, seam_cut=rng.random() < 0.5),
        layout=_LAYOUTS[int(rng.random() ** 2 * len(_LAYOUTS))],
        servers=1 + int(rng.random() * 24),
        uplink=_UPLINKS[int(rng.random() * len(_UPLINKS))],
        chunk_bytes=chunk_bytes,
        packet_bytes=PACKET_BYTES_MIN if parts else chunk_bytes + PACKET_BYTES_MIN,
        credit=2 + int(rng.random() * 30),
        gossip=rng.random() < 0.5,
        scrub_ms=0 if rng.random() < 0.5 else 10_000 + int(rng.random() * 100_000),
        lazy_purge=rng.random() < 0.5,
        rate_kbps=1500 + int(rng.random() * 3000) if late else 0 if rng.random() < 0.7 else 20_000 + int(rng.random() * 100_000),
        handover_ms=30_000 + int(rng.random() * 30_000),
        schedule=schedule(),
        duration_ms=duration_ms,
        from_ms=int(rng.random() * max(_DAY_MS - speed * duration_ms - 1, 0)),
        speed=speed,
        workload=Workload(
            tenants=1 + int(rng.random() * 3),
            names=(30 if late else 6) + int(rng.random() * 10),
            chunks_max=1 + int(rng.random() * 60),
            prefetched_anew=_ODD,
            deleted=_DELETED,
            gets_per_minute=20.0,
            puts_per_minute=2.0,
            purges_per_minute=0.3,
            touches_per_minute=1.0,
            prefetches_per_minute=1.0,
            deadline_ms=60_000 if late else _DEADLINE_MS,
        ),
        hello_ms=1000 + int(rng.random() * 9000),
        late_put_ms=int(more.random() * defaults.HOST_SKEW_US / 1000) if more.random() < _ODD else 0,
        ask_first=_ASK_FIRST,
        look_up=_LOOK_UP if seed % 2 == 1 else 0,
        values=_VALUES if seed % 6 in (1, 5) else 0,
    )
    keys = Random(f"keys {seed}")
    setup = replace(setup, suite=keys.choice(_SUITES)) if keys.random() < _KEYED else setup
    setup = _coded(setup, Random(f"parity {seed}"))
    setup = _over_all_planes(setup, Random(f"all planes {seed}"))
    setup = replace(setup, slots=_few_slots(setup, more)) if more.random() < _ODD and not late else setup
    setup = replace(setup, turn_share=more.random()) if more.random() < _ODD else setup
    setup = setup if late else _small(setup, Random(f"small {seed}"))
    setup = replace(setup, cancelled=_CANCELLED[1]) if Random(f"cancelled {seed}").random() < _CANCELLED[0] else setup
    return _without_schedule(setup, Random(f"window {seed}"))


def _coded(setup: Setup, rng: Random) -> Setup:
    """Return the setup, with parity in most seeds: two servers of twelve in half of these, else any share, copies included."""
    if rng.random() >= _CODED:
        return setup
    if rng.random() < 0.5:
        setup = replace(setup, servers=_USUAL[0], parity=_USUAL[1])
    else:
        servers = max(setup.servers, 2)
        setup = replace(setup, servers=servers, parity=1 + int(rng.random() * min(_PARITY_MOST, servers - 1)))
    return replace(setup, ask_all=rng.random() < _ASK_ALL)


def _over_all_planes(setup: Setup, rng: Random) -> Setup:
    """Return the setup, in some seeds with a window over all planes. The draw is one by itself: other seeds stay as they are."""
    if rng.random() >= _ALL_PLANES:
        return setup
    setup = replace(setup, layout="all_planes")
    if not setup.parity or rng.random() < 0.5:
        return setup
    share = rng.choice(_SHARES_A_PLANE)
    return replace(setup, servers=_PLANES * share, parity=share)


def _small(setup: Setup, rng: Random) -> Setup:
    """Return the setup, in some seeds with many small blocks beside large ones. Half of them fill stores, a third have quotas."""
    if rng.random() >= _SMALL:
        return setup
    chunk_bytes = 400 + int(rng.random() * 1600)
    workload = replace(
        setup.workload,
        names=60 + int(rng.random() * 60),
        chunks_max=1 + int(rng.random() * 30),
        small=_SMALL_BLOCKS,
        gets_per_minute=30.0,
        puts_per_minute=20.0,
        purges_per_minute=2.0,
    )
    setup = replace(
        setup,
        workload=workload,
        chunk_bytes=chunk_bytes,
        packet_bytes=setup.packet_bytes if setup.packet_bytes == PACKET_BYTES_MIN else chunk_bytes + PACKET_BYTES_MIN,
        quota=(60 // workload.tenants, 70) if rng.random() < _QUOTAS else (0, 0),
    )
    per_block = -(-workload.chunks_max // (setup.servers - setup.parity))
    blocks = workload.names * workload.tenants
    slots = 8 * workload.tenants + per_block * int(blocks * (0.02 + 0.15 * rng.random()))
    return replace(setup, slots=slots)


def _without_schedule(setup: Setup, rng: Random) -> Setup:
    """Return the setup, in some seeds with satellites that have the window alone. With parity they repair, so the scrub is on."""
    if rng.random() >= _WINDOW_ALONE:
        return setup
    scrub_ms = setup.scrub_ms or 10_000 + int(rng.random() * 100_000)
    scheduled = rng.choice((Scheduled.NOBODY, Scheduled.UNTIL_CRASH))
    return replace(setup, scheduled=scheduled, scrub_ms=scrub_ms, turn_share=0.0)


def _few_slots(setup: Setup, rng: Random) -> int:
    """Return slots for only a part of a satellite's share of all blocks, so that some have to make room for others."""
    per_block = -(-setup.workload.chunks_max // (setup.servers - setup.parity))
    blocks = setup.workload.names * setup.workload.tenants
    return per_block * max(4, int(blocks * (0.2 + 0.6 * rng.random())))


def attacked(faults: Faults, seed: int, duration_ms: int) -> Faults:
    """Return the faults with, for most seeds, an attacker on all links for a part of the run."""
    rng = Random(f"attack {seed}")
    if rng.random() >= _ATTACKED:
        return faults
    at_s = rng.random() * duration_ms / 2000
    return faults.model_copy(
        update={"attack": (Attack(rate=0.02 * rng.random(), at_s=at_s, for_s=10 + rng.random() * duration_ms / 2000),)}
    )


def struck(faults: Faults, setup: Setup, seed: int) -> Faults:
    """Return the faults; with parity often with as many crashes in the window as the code bears, or one more, within a minute.

    If the code bears a lost plane, all satellites of a plane crash instead.
    """
    rng = Random(f"struck {seed}")
    if not setup.parity or rng.random() >= _STRUCK:
        return faults
    at_s = setup.duration_ms / 1000 * (0.2 + 0.6 * rng.random())
    if setup.layout == "all_planes" and _PLANES * setup.parity >= setup.servers:
        plane, for_s = 1 + int(rng.random() * _PLANES), 1 + 100 * rng.random()
        crashes = tuple(Crash(at_s=at_s, for_s=for_s, satellite=Satellite(plane, slot)) for slot in range(1, _SLOTS + 1))
        return faults.model_copy(update={"crash": (*faults.crash, *crashes)})
    rows = setup.track.rows
    plane, slot = next(cell for time_ms, cell in reversed(rows) if time_ms <= max(1000 * at_s, rows[0][0]))
    near = [Satellite((plane + i - 1) % _PLANES + 1, (slot + j - 1) % _SLOTS + 1) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    crashes = tuple(
        Crash(at_s=at_s + 60 * rng.random(), for_s=1 + 100 * rng.random(), satellite=satellite)
        for satellite in rng.sample(near, min(len(near), 1 + int(rng.random() * (setup.parity + 1))))
    )
    return faults.model_copy(update={"crash": (*faults.crash, *crashes)})


def lost_of(seed: int) -> tuple[Setup, Faults]:
    """Return the setup and the faults of a seed in which a get may miss only what was never put.

    All blocks have parity. As many servers as hold it are lost after five minutes, for good, and nothing else happens: hosts
    reach each satellite directly, and neither purge nor prefetch.
    """
    setup, rng = setup_of(seed), Random(f"lost {seed}")
    servers, parity = (setup.servers, setup.parity) if setup.parity else _USUAL
    workload = replace(
        setup.workload,
        absent=0.0,
        prefetched=0.0,
        prefetched_anew=0.0,
        purges_per_minute=0.0,
        prefetches_per_minute=0.0,
        deadline_ms=_DEADLINE_MS,
    )
    speed = min(setup.speed, _SPEED_MOST)
    setup = replace(
        setup,
        servers=servers,
        parity=parity,
        uplink=Uplink.DIRECT,
        rate_kbps=0 if seed % _LATE_EVERY == 0 else setup.rate_kbps,
        duration_ms=_LOST_DURATION_MS,
        from_ms=min(setup.from_ms, int(_DAY_MS - speed * _LOST_DURATION_MS) - 1),  # some seeds begin late in the day
        speed=speed,
        workload=workload,
        late_put_ms=0,
        values=0,
        slots=None,
        quota=(0, 0),
        turn_share=0.0,
    )
    track = setup.track
    window = track.layout(setup.layout, servers).servers_at(track.cell(track.row_at(round(1000 * _LOST_AT_S))))
    crashes = tuple(
        Crash(at_s=_LOST_AT_S + 100 * rng.random(), for_s=_LOST_DURATION_MS / 1000, satellite=satellite)
        for satellite in rng.sample(window, parity)
    )
    return setup, Faults(crash=crashes)


def any_of(seed: int) -> tuple[Setup, Faults]:
    """Return the setup and the faults of a seed; one in ten has none."""
    setup = setup_of(seed)
    if seed % 10 == 0:
        return setup, Faults()
    faults = Faults.random(seed, setup.duration_ms)
    faults = faults if setup.suite == "off" else attacked(faults, seed, setup.duration_ms)
    return setup, struck(faults, setup, seed)


def run_seed(seed: int, broken: Break = Break.NOTHING, violations_max: int = VIOLATIONS_MAX, lost: bool = False) -> Report:
    """Run a seed.

    Args:
        violations_max: Number of violations at which the run stops; 0: it does not.
        lost: The run is that of `lost_of`, not that of `any_of`.
    """
    setup, faults = lost_of(seed) if lost else any_of(seed)
    with Twin(replace(setup, violations_max=violations_max), seed, faults, broken) as twin:
        return twin.run()


def run_seeds(
    first: int, count: int, workers: int | None = None, violations_max: int = VIOLATIONS_MAX, lost: bool = False
) -> Iterator[Report]:
    """Run seeds first, first + 1, ... over all cores, and yield their reports in this order.

    Args:
        workers: Processes; None: one for each core that this process may use.
        violations_max: Number of violations at which each run stops; 0: none does.
        lost: The runs are those of `lost_of`, not those of `any_of`.

    Raises:
        BrokenProcessPool: A worker ended. If an assertion of the flight core failed, standard error says in which seed.
    """
    run = partial(run_seed, violations_max=violations_max, lost=lost)
    workers = min(len(sched_getaffinity(0)) if workers is None else workers, count)
    seeds = range(first, first + count)
    if workers <= 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(run, seeds, chunksize=min(_SEEDS_AT_ONCE, -(-count // workers)))
