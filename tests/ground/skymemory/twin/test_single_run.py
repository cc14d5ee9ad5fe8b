"""Runs of the twin: they repeat exactly, miss nothing without faults, and notice a broken core."""

import ctypes
from dataclasses import replace

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.twin.faults import (
    Burst,
    Corrupt,
    Crash,
    Cut,
    Duplicate,
    Faults,
    Flip,
    Jitter,
    LateClock,
    Loss,
    Partition,
    Pressure,
    Reorder,
)
from skymemory.twin.native_twin import TwinError
from skymemory.twin.single_run import Report, Setup, Twin, with_links
from skymemory.twin.structures import Break, Cause, OpKind, Scheduled, Uplink
from skymemory.twin.workload import Workload
from skymemory.wire.address import Satellite

DAY_MS = 86_400_000


def run(setup: Setup, seed: int = 7, faults: Faults | None = None, broken: Break = Break.NOTHING) -> Report:
    with Twin(setup, seed, faults, broken) as twin:
        return twin.run()


@pytest.mark.parametrize("uplink", [Uplink.DIRECT, Uplink.CENTRE])
def test_a_day_without_faults_misses_nothing(day: Schedule, uplink: Uplink) -> None:
    """330 handovers, 93 of them to another plane, and one 289 ms before the next."""
    constellation = Constellation().replace(cache={"uplink": "window" if uplink is Uplink.DIRECT else "nearest"})
    setup = Setup.of(constellation, day, DAY_MS, Workload(absent=0.0, purges_per_minute=0.0))
    assert setup.uplink is uplink
    report = run(setup)
    assert report.gets > 8000
    assert (report.hits, report.misses) == (report.gets, {})
    assert report.handovers == 330
    assert report.migrated_chunks > 100_000
    assert (report.puts_failed, report.evicted_chunks, report.violated) == (0, 0, 0)
    assert (report.blocks_checked, report.blocks_misplaced) == (48, 0)
    assert 0 < report.handover_mean_s < report.handover_most_s < constellation.cache.handover_s


def test_same_seed_same_digest(quarter: Setup) -> None:
    faults = Faults.random(4, quarter.duration_ms)
    first, again, other = run(quarter, 7, faults), run(quarter, 7, faults), run(quarter, 8, faults)
    assert first.as_json() == again.as_json()
    assert first.digest != other.digest
    assert run(quarter, 7).digest != first.digest


def test_physical_windows_miss_only_while_nobody_is_in_sight(day: Schedule) -> None:
    gap_ms = next(change.time_ms for change in day.changes if getattr(change, "satellite", "") is None)
    workload = Workload(absent=0, purges_per_minute=0, gets_per_minute=120)
    setup = Setup.of(Constellation().replace(cache={"window": "physical"}), day, 1_200_000, workload)
    report = run(replace(setup, from_ms=gap_ms - 600_000))
    assert set(report.misses) == {"nobody"}
    assert report.hits > 2 * report.misses["nobody"] > 0
    assert report.violated == 0


def test_a_replay_at_sixty_times_the_speed_misses_nothing(quarter: Setup) -> None:
    workload = Workload(absent=0.0, purges_per_minute=0.0, gets_per_minute=120)
    report = run(replace(quarter, speed=60.0, from_ms=0, duration_ms=DAY_MS // 60, workload=workload))
    assert report.handovers > 300
    assert (report.hits, report.misses, report.violated) == (report.gets, {}, 0)


@pytest.mark.parametrize("late", [False, True])
def test_handovers_that_cross_lose_nothing(quarter: Setup, late: bool) -> None:
    """The window goes back while chunks are on their way, so that two satellites hand the same chunks to each other."""
    workload = Workload(absent=0.0, purges_per_minute=0.0, gets_per_minute=120, deadline_ms=60_000)
    setup = replace(quarter, rate_kbps=2000 if late else 0, workload=workload)
    straight, crossed = run(setup), run(replace(setup, turn_share=1.0))
    assert crossed.handovers > 2 * straight.handovers
    assert (crossed.hits, crossed.misses, crossed.violated) == (crossed.gets, {}, 0)


KINDS = {
    "loss": Faults(loss=(Loss(rate=0.02),)),
    "burst": Faults(burst=(Burst(rate=0.001),)),
    "jitter": Faults(jitter=(Jitter(ms=20),)),
    "reorder": Faults(reorder=(Reorder(rate=0.03),)),
    "duplicate": Faults(duplicate=(Duplicate(rate=0.03),)),
    "flip": Faults(flip=(Flip(rate=0.01),)),
    "corrupt": Faults(corrupt=(Corrupt(rate=0.01),)),
    "cut": Faults(cut=(Cut(per_hour=60, for_s=30),)),
    "partition": Faults(partition=(Partition(at_s=600, planes=frozenset({1, 2})),)),
    "crash": Faults(crash=(Crash(per_hour=20),)),
    "pressure": Faults(pressure=(Pressure(per_hour=40, slots_free=2, for_s=200),)),
    "late_clock": Faults(late_clock=(LateClock(per_hour=10, late_s=10, for_s=600),)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_alone(quarter: Setup, kind: str) -> None:
    report = run(quarter, 7, KINDS[kind])
    assert {name for name, count in report.faults.items() if count} == {kind}
    assert report.violated == 0, [str(one) for one in report.first]
    # A crash is noticed by missing hellos only, so it costs more than the blocks that were there: about half of all gets
    assert report.hits > (0.4 if kind == "crash" else 0.5) * report.gets


@pytest.mark.parametrize("kind", ["jitter", "reorder", "duplicate", "late_clock"])
def test_disorder_and_clocks_make_nobody_miss(quarter: Setup, kind: str) -> None:
    report = run(replace(quarter, workload=replace(quarter.workload, absent=0, purges_per_minute=0)), 7, KINDS[kind])
    assert (report.hits, report.misses) == (report.gets, {})


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (Break.FLIP, "exact"),
        (Break.SWAP, "foreign"),
        (Break.FORGET, "kept"),
        (Break.OVERFULL, "limit"),
        (Break.DEAF, "deadline"),
        (Break.LEAK, "packets"),
        (Break.SPIN, "livelock"),
        (Break.DETOUR, "shortest"),
        (Break.SECONDS, "lifetime"),
    ],
)
def test_a_broken_core_is_noticed(quarter: Setup, broken: Break, invariant: str) -> None:
    report = run(replace(quarter, gossip=False, scrub_ms=0), 7, Faults(loss=(Loss(rate=0.002),)), broken)
    assert report.violations[invariant] > 0
    first = next(one for one in report.first if one.invariant == invariant)
    assert str(first).startswith(f"at {first.time_s:.6f} s")
    assert str(first).endswith(f": {invariant}: {first.text}")


def test_operations_and_holders_can_be_looked_at(quarter: Setup) -> None:
    with Twin(replace(quarter, workload=replace(quarter.workload, absent=0, purges_per_minute=0)), 7) as twin:
        report = twin.run()
        results = twin.native.results()
        nodes = (ctypes.c_uint32 * 95)()
        holders = twin.native.library.SKYT_Holders(twin.native.handle, 0, 0, nodes, 95)
        gets = [result for op, result in zip(twin.ops, results, strict=True) if op.kind is OpKind.GET]
        assert len(gets) == report.gets
        assert all(get.ended and get.cause == Cause.NONE and 3_000 < get.duration_us < 5_000_000 for get in gets)
    assert holders == 1
    assert nodes[0] < 95


def test_progress_is_told(quarter: Setup) -> None:
    told: list[tuple[int, int]] = []
    with Twin(quarter, 7) as twin:
        twin.run(lambda done, total: told.append((done, total)))
        twin.close()
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] >= quarter.duration_ms


def test_what_cannot_be_run(day: Schedule, quarter: Setup) -> None:
    with pytest.raises(TwinError, match="the schedule is for 5 planes x 19 slots, the constellation has 6 x 19"):
        Setup.of(Constellation().replace(constellation={"planes": 6}), day, DAY_MS)
    with pytest.raises(TwinError, match="parity is 9; allowed are 0 to 8"):
        Twin(replace(quarter, parity=9, workload=replace(quarter.workload, names=0)), 7)
    with pytest.raises(TwinError, match="96 servers; the constellation has 95 satellites"):
        Twin(replace(quarter, servers=96), 7)
    with pytest.raises(TwinError, match="the run has 86400001 ms; allowed are 1 to 86400000, what is left of the schedule"):
        Twin(replace(quarter, from_ms=0, duration_ms=DAY_MS + 1), 7)
    with pytest.raises(TwinError, match="packet_bytes is 100; allowed are "):
        Twin(replace(quarter, packet_bytes=100), 7)


def test_parity_bears_lost_satellites(day: Schedule, quarter: Setup) -> None:
    flown = Setup.of(Constellation().replace(cache={"servers": 12, "parity": 2, "ask_all": True}), day, DAY_MS)
    assert (flown.parity, flown.ask_all) == (2, True)
    workload = replace(quarter.workload, absent=0, prefetched=0, purges_per_minute=0)
    setup = replace(quarter, servers=12, uplink=Uplink.DIRECT, workload=workload)
    plane, slot = day.track.played(setup.from_ms, 1.0).rows[0][1]
    crash = Crash(at_s=60, for_s=800, satellite=Satellite((plane - 1) % 5 + 1, (slot - 1) % 19 + 1))
    without, coded = (run(replace(setup, parity=parity), 7, Faults(crash=(crash,))) for parity in (0, 2))
    assert (without.violated, coded.violated) == (0, 0)
    assert sum(without.misses.values()) > 0
    assert coded.misses == {}


@pytest.mark.parametrize("scheduled", [Scheduled.NOBODY, Scheduled.UNTIL_CRASH])
def test_a_satellite_with_the_window_alone_is_filled_again(quarter: Setup, scheduled: Scheduled) -> None:
    workload = replace(quarter.workload, absent=0, prefetched=0, puts_per_minute=0, purges_per_minute=0)
    setup = replace(quarter, servers=12, parity=2, uplink=Uplink.DIRECT, workload=workload, scheduled=scheduled)
    ((_, (plane, slot)),) = setup.track.rows
    plane, slot = (plane - 1) % 5, (slot - 1) % 19

    def held(scrub_ms: int, *crash: Crash) -> set[tuple[int, int]]:
        """Return the blocks and numbers of the chunks that the satellite holds in the end."""
        with Twin(replace(setup, scrub_ms=scrub_ms), 7, Faults(crash=crash)) as twin:
            report = twin.run()
            assert (report.violated, report.misses, report.handovers) == (0, {}, 0)
            nodes, found = (ctypes.c_uint32 * 95)(), set()
            for block in range(workload.names * workload.tenants):
                for chunk in range(2 * workload.chunks_max):
                    count = twin.native.library.SKYT_Holders(twin.native.handle, block, chunk, nodes, 95)
                    found |= {(block, chunk)} if plane * 19 + slot in nodes[:count] else set()
        return found

    crash = Crash(at_s=600, for_s=20, satellite=Satellite(plane + 1, slot + 1))
    before = held(20_000)
    assert len(before) > 0
    assert held(0, crash) < before  # hosts put again some of what they get without its shares
    assert held(20_000, crash) == before


def test_links_of_the_constellation_file_are_faults_too() -> None:
    constellation = Constellation().replace(links={"loss_ppm": 1000, "jitter_us": 5000})
    faults = with_links(Faults(loss=(Loss(rate=0.5),)), constellation)
    assert [one.rate for one in faults.loss] == [0.5, 0.001]
    assert [one.ms for one in faults.jitter] == [5.0]
    assert with_links(Faults(), Constellation()) == Faults()


def test_a_delta_whose_links_the_earth_blocks() -> None:
    walker = Walker(5, 19, 550.0, 53.0, False)
    schedule = Schedule.compute(walker, "walker delta:5x19", Site(40, 0), 10.0, 1_795_186_800_000, 3_600_000)
    assert schedule.summary().links_blocked > 20
    report = run(Setup.of(Constellation().replace(constellation={"geometry": "delta"}), schedule, 3_600_000))
    assert report.violated == 0
    assert report.hits > 0
