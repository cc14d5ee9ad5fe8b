"""Runs that differ in everything. CI runs a thousand of them: `make twin`."""

import multiprocessing
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest

from skymemory.twin import seeds
from skymemory.twin.faults import Crash, Faults
from skymemory.twin.single_run import Twin
from skymemory.twin.structures import Break, Scheduled
from skymemory.wire.address import Satellite


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_handful(seed: int) -> None:
    report = seeds.run_seed(seed)
    assert report.seed == seed
    assert report.violated == 0, [str(one) for one in report.first]


@pytest.mark.parametrize("seed", [3, 9, 24])
def test_quotas_hold(seed: int) -> None:
    """Stores have too little room. Hosts ask for counters while satellites have records of tenants to tell."""
    setup = seeds.setup_of(seed)
    tenants = setup.workload.tenants
    setup = replace(setup, quota=(60 // tenants, 70), slots=4 * -(-setup.workload.chunks_max // setup.servers) * tenants)
    with Twin(setup, seed, Faults.random(seed, setup.duration_ms)) as twin:
        report = twin.run()
    assert report.evicted_chunks > 0
    assert report.violated == 0, [str(one) for one in report.first]


def test_quotas_that_a_satellite_ignores_are_noticed() -> None:
    setup = seeds.setup_of(3)
    setup = replace(setup, quota=(5, 10), slots=4 * -(-setup.workload.chunks_max // setup.servers))
    with Twin(setup, 3, broken=Break.COMMON) as twin:
        assert twin.run().violations["quota"] > 0


def test_seeds_differ_in_everything() -> None:
    setups = [seeds.setup_of(seed) for seed in range(100)]
    assert seeds.setup_of(5) == setups[5]
    for name in (
        "layout",
        "servers",
        "parity",
        "ask_all",
        "uplink",
        "credit",
        "gossip",
        "lazy_purge",
        "speed",
        "chunk_bytes",
        "from_ms",
        "slots",
        "late_put_ms",
        "turn_share",
    ):
        assert len({getattr(setup, name) for setup in setups}) > 1
    coded = [one for one in setups if one.parity]
    assert 60 <= len(coded) <= 80
    assert any((one.servers, one.parity) == (12, 2) for one in coded)
    assert any(one.servers == one.parity + 1 for one in coded)  # copies
    assert all(one.parity < one.servers for one in setups)
    assert all(one.from_ms >= 0 and one.from_ms + one.speed * one.duration_ms <= 86_400_000 for one in setups)


def test_in_one_seed_of_six_satellites_have_the_window_alone() -> None:
    alone = [one for one in map(seeds.setup_of, range(300)) if one.scheduled is not Scheduled.ALL]
    assert 30 <= len(alone) <= 70
    assert {one.scheduled for one in alone} == {Scheduled.NOBODY, Scheduled.UNTIL_CRASH}
    assert all(one.scrub_ms > 0 and len(one.track.rows) == 1 for one in alone)


def test_some_seeds_fill_stores_with_small_blocks() -> None:
    small = [one for one in map(seeds.setup_of, range(300)) if one.workload.small]
    assert 30 <= len(small) <= 70
    assert {one.quota[1] for one in small} == {0, 70}
    assert len({one.chunk_bytes for one in small}) > 20
    report = seeds.run_seed(83)
    assert report.evicted_chunks > 1000
    assert report.violated == 0, [str(one) for one in report.first]


def test_workers_run_what_one_process_runs() -> None:
    """In the order of the seeds, whichever ends first."""
    alone = [report.as_json() for report in seeds.run_seeds(20, 3, workers=1)]
    together = [report.as_json() for report in seeds.run_seeds(20, 3, workers=2)]
    assert alone == together
    assert [report["seed"] for report in together] == [20, 21, 22]


def test_a_broken_core_fails_its_seed() -> None:
    assert seeds.run_seed(30, Break.FLIP).violations["exact"] > 0


def test_a_worker_that_ends_ends_the_run() -> None:
    """As it does when an assertion of the core fails. The seeds that it had would be waited for without end."""
    reports = seeds.run_seeds(20, 1000, workers=2)
    assert next(reports).seed == 20
    multiprocessing.active_children()[0].kill()
    with pytest.raises(BrokenProcessPool):
        list(reports)


def test_some_windows_are_over_all_planes() -> None:
    """Some of them have no more servers in a plane than hold parity, and lose a plane."""
    setups = {seed: seeds.setup_of(seed) for seed in range(1, 200)}
    wide = {seed: one for seed, one in setups.items() if one.layout == "all_planes"}
    assert 10 <= len(wide) <= 30
    borne = {seed: one for seed, one in wide.items() if one.parity and 5 * one.parity >= one.servers}
    assert 0 < len(borne) < len(wide)
    planes = [{one.satellite.plane for one in seeds.struck(Faults(), setup, seed).crash} for seed, setup in borne.items()]
    assert {len(some) for some in planes} == {0, 1}


@pytest.mark.parametrize("seed", [3, 4, 8, 16, 331])
def test_nothing_is_missed_if_no_more_are_lost_than_hold_parity(seed: int) -> None:
    setup, faults = seeds.lost_of(seed)
    assert len(faults.crash) == setup.parity > 0
    report = seeds.run_seed(seed, lost=True)
    assert report.faults["crash"] == setup.parity
    assert report.gets > 200
    assert (report.misses, report.violated) == ({}, 0), [str(one) for one in report.first]


def test_what_is_lost_is_lost_before_the_day_ends() -> None:
    day_ms = seeds.schedule().header.duration_ms
    setups = [seeds.lost_of(seed)[0] for seed in range(1, 1001)]
    assert all(one.from_ms >= 0 and one.from_ms + one.speed * one.duration_ms < day_ms for one in setups)


def test_a_share_that_cannot_be_handed_over_is_found_where_it_is() -> None:
    """Five of seven servers are lost. They were also the neighbours of a sixth, which leaves the window with its share."""
    setup = replace(seeds.lost_of(331)[0], scheduled=Scheduled.ALL)
    lost = ((2, 14, 396.7), (3, 14, 390.7), (1, 13, 343.0), (1, 15, 334.2), (2, 13, 347.2))
    crashes = tuple(Crash(at_s=at_s, for_s=900.0, satellite=Satellite(plane, slot)) for plane, slot, at_s in lost)
    assert (setup.servers, setup.parity) == (7, 5)
    with Twin(setup, 331, Faults(crash=crashes)) as twin:
        report = twin.run()
    assert report.hits == report.gets > 0
    assert report.violated == 0, [str(one) for one in report.first]


def test_satellites_in_the_window_crash() -> None:
    setups = {seed: one for seed in range(1, 40) if (one := seeds.setup_of(seed)).layout != "all_planes"}
    crashes = {seed: seeds.struck(Faults(), setup, seed).crash for seed, setup in setups.items()}
    assert any(crashes.values())
    for seed, some in crashes.items():
        setup = setups[seed]
        assert len(some) <= (setup.parity + 1 if setup.parity else 0)
        assert len({one.satellite for one in some}) == len(some)
        assert all(one.satellite in setup.torus and 0 < one.at_s < setup.duration_ms / 1000 for one in some)
