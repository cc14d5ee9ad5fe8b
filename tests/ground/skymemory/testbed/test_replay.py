"""Satellites that run follow a schedule faster than the sky turns; what they hold can be got all the time."""

import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skymemory.fsw.mission_tables import ROWS_MAX
from skymemory.link.ask import Ask, SatelliteAnswer
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.replay import (
    LEAD_S,
    By,
    Handover,
    OvertakenError,
    ReplayError,
    Watch,
    follow,
    held_now,
    playing_now,
    row_now,
    settle,
    upload,
)
from skymemory.wire.address import Satellite
from support.satellites import held
from support.waiting import PATIENT, wait_until

StartSky = Callable[..., LocalConstellation]
HOUR_MS = 3_600_000
SPEED = 300.0
"""handovers a second apart"""
VALUE_BYTES = 120_000
BLOCKS_MAX = 100
"""what has to move within a row's time does not depend on how fast this machine puts"""
GRID = {"planes": 5, "slots": 9}


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    """Two hours over Berlin; satellites are ten minutes apart, and some handovers jump to another plane."""
    orbits = Walker(5, 9, 550.0, 86.4, True, 1)
    return Schedule.compute(orbits, "walker star:5x9", Site(52.5, 13.4), 10.0, 1_795_000_000_000, 2 * HOUR_MS)


def blocks(count: int = 6) -> dict[bytes, bytes]:
    return {os.urandom(32): os.urandom(VALUE_BYTES) for _ in range(count)}


def is_held_at(sky: Constellation, key: bytes, homes: set[Satellite]) -> bool:
    """Do these satellites hold something of a block, and no others?"""
    with ControlPlane(sky) as control:
        routes = [Route(place, place) for place in sky.torus.satellites()]
        return homes == {route.satellite for route, one in zip(routes, held(control, routes, key), strict=True) if one}


def played(
    sky: Constellation, schedule: Schedule, playing: Playing, by: By, store: SkyStore, items: dict[bytes, bytes]
) -> tuple[list[Handover], int]:
    """Follow a schedule to its end while blocks are got and put all the time.

    Returns:
        The handovers, and how many blocks were got meanwhile.
    """
    over, got = threading.Event(), [0]
    failures: list[str] = []

    def use() -> None:
        while not over.is_set():
            for result in store.get(list(items)):
                got[0] += 1
                if result.data != items[result.key]:
                    failures.append(f"get in row {row_now(playing)}: {result.status}")
            one = {os.urandom(32): os.urandom(VALUE_BYTES)} if len(items) < BLOCKS_MAX else dict([next(iter(items.items()))])
            if not all(result.ok for result in store.put(list(one.items()))):
                failures.append(f"put in row {row_now(playing)}")
            items.update(one)

    user = threading.Thread(target=use)
    with ControlPlane(sky, PATIENT) as control:
        upload(control, playing if by == "schedule" else None)
        user.start()
        try:
            done = list(follow(control, playing, by))
        finally:
            over.set()
            user.join()
    assert failures == []
    return done, got[0]


@pytest.mark.parametrize("by", ["schedule", "command"])
def test_gets_and_puts_go_on_while_the_sky_turns(start_sky: StartSky, schedule: Schedule, by: By, tmp_path: Path) -> None:
    sky = start_sky(constellation=GRID, cache={"servers": 10, "centre": [3, 5], "deadline_ms": 20_000}).constellation
    items = blocks()
    record = PlayingRecord(tmp_path)
    schedule.save(source := tmp_path / "two-hours.csv")
    with SkyStore(sky, playing=record, timing=PATIENT) as store:
        assert all(result.ok for result in store.put(list(items.items())))  # before anything moves
        lead_s = 6.0  # a busy machine looks on before row 2 comes
        playing = playing_now(sky, schedule, 0, int(1.25 * HOUR_MS), SPEED, None, lead_s=lead_s)
        record.save(playing, source)
        done, got = played(sky, schedule, playing, by, store, items)
        assert store.follows
        assert got >= len(items)
        assert [handover.row for handover in done] == list(range(2, len(playing.track.rows) + 1))
        assert sum(handover.chunks for handover in done) > 0
        assert any(before.centre.plane != after.centre.plane for before, after in pairwise(done))

        homes = set(Whereabouts(sky, playing).servers(len(playing.track.rows)))
        for key in items if by == "schedule" else ():  # by command satellites send all they hold, and know nothing of servers
            wait_until(partial(is_held_at, sky, key, homes))
        assert all(result.data == items[result.key] for result in store.get(list(items)))
        assert store.stats().misses == 0


def test_a_second_replay_goes_on_where_the_first_one_ended(start_sky: StartSky, schedule: Schedule) -> None:
    cache = {"servers": 6, "centre": [3, 5], "layout": "rotation", "deadline_ms": 20_000}
    sky = start_sky(constellation=GRID, cache=cache).constellation
    items = blocks(3)
    with SkyStore(sky) as store:
        assert all(result.ok for result in store.put(list(items.items())))
    before = None
    for from_ms in (0, HOUR_MS):
        playing = playing_now(sky, schedule, from_ms, from_ms + HOUR_MS // 2, SPEED / 2, before)
        with SkyStore(sky, playing=playing, timing=PATIENT) as store:
            played(sky, schedule, playing, "schedule", store, items)
        before = playing
    with SkyStore(sky, playing=before, timing=PATIENT) as store:
        assert all(result.data == items[result.key] for result in store.get(list(items)))


def test_a_held_window_stays(start_sky: StartSky, schedule: Schedule) -> None:
    sky = start_sky(constellation=GRID, cache={"servers": 6, "centre": [3, 5]}).constellation
    items = blocks(3)
    playing = playing_now(sky, schedule, 0, schedule.header.duration_ms, SPEED / 3, None)
    with ControlPlane(sky) as control:
        with SkyStore(sky) as store:
            assert all(result.ok for result in store.put(list(items.items())))
        upload(control, playing)
        wait_until(lambda: row_now(playing) >= 3)
        held = held_now(playing)
        upload(control, held)
        row = row_now(held)
        next_ms = playing.track.end_ms(row)
        assert next_ms is not None
        wait_until(lambda: playing.track_ms(time.time()) > next_ms + 500)
        routes = [Route(place, place) for place in sky.torus.satellites()]
        assert {one["row"] for one in control.store_stats(routes, 5).values()} == {row} == {row_now(held)}
    with SkyStore(sky, playing=held) as store:
        assert all(result.data == items[result.key] for result in store.get(list(items)))


def test_a_schedule_with_as_many_rows_as_the_one_before_is_told_until_it_is_heard(
    start_sky: StartSky, schedule: Schedule
) -> None:
    sky = start_sky(constellation=GRID, cache={"servers": 6, "centre": [3, 5]}).constellation
    playing = playing_now(sky, schedule, 0, HOUR_MS, 1, None)
    routes = [Route(place, place) for place in sky.torus.satellites()]

    class Lossy(ControlPlane):
        lost_command = 0

        def relay(self, asked: Sequence[Route], message: bytes, deadline_s: float) -> list[SatelliteAnswer | None]:
            self.lost_command -= 1
            if self.lost_command != 0:
                return super().relay(asked, message, deadline_s)
            come = [one for one in asked if one.satellite != Satellite(1, 2)]
            answers = dict(zip(come, super().relay(come, message, deadline_s), strict=True))
            return [answers.get(one) for one in asked]

    with Lossy(sky) as control:
        upload(control, playing)
        last = replace(playing, started_unix_s=time.time() - playing.track.rows[-1][0] / 1000 - 1)
        control.lost_command = 3  # of three commands the last does not come to one satellite
        upload(control, last)
        wait_until(lambda: {one["row"] for one in control.store_stats(routes, 5).values()} == {len(last.track.rows)})


def test_a_satellite_that_began_anew_follows_again(start_sky: StartSky, schedule: Schedule) -> None:
    local = start_sky(constellation=GRID, cache={"servers": 6, "centre": [3, 5]})
    playing = playing_now(local.constellation, schedule, 0, HOUR_MS, SPEED, None)
    victim = Satellite(1, 1)
    with ControlPlane(local.constellation) as control:
        upload(control, playing)
        local.kill(victim)
        local.restart(victim)
        assert control.store_stats([Route(victim, victim)], 5)[victim]["rows"] == 0
        list(follow(control, playing, "schedule"))
        assert control.store_stats([Route(victim, victim)], 5)[victim]["rows"] == len(playing.track.rows)


class Commanded:
    """In place of a control plane: satellites that keep all they hold, and what each was told last."""

    def __init__(self, sky: Constellation, **counters: int) -> None:
        self.constellation = sky
        self.counters = {"chunks": 1, "bytes": 1, "migrated_out": 0, "row": 0, "rows": 0, "handover_left": 0} | counters
        self.told: dict[Satellite, Satellite] = {}
        self.deaf: set[Satellite] = set()

    def store_stats(self, routes: Sequence[Route], deadline_s: float) -> dict[Satellite, dict[str, int]]:
        return {route.satellite: dict(self.counters) for route in routes}

    def exchange(self, asks: Sequence[Ask], deadline_s: float) -> list[Any]:
        heard = {ask.route.satellite: Satellite(*struct.unpack("<HH", ask.payload[-4:])) for ask in asks}
        self.told |= {satellite: target for satellite, target in heard.items() if satellite not in self.deaf}
        return [None if satellite in self.deaf else SimpleNamespace(ok=True) for satellite in heard]


def test_who_is_inside_the_window_again_is_told_to_keep_what_it_has() -> None:
    sky = Constellation().replace(constellation=GRID, cache={"servers": 6, "centre": [3, 5]})
    track = Track.of(sky.torus, [(0, Satellite(3, 5)), (1000, Satellite(3, 7)), (2000, Satellite(3, 5))])
    layout = track.layout(sky.cache.layout, sky.cache.servers)
    first, second = ({one for one in sky.torus.satellites() if layout.in_window(track.cell(row), one)} for row in (1, 2))
    now_ms = 0
    control = Commanded(sky)
    watch = Watch(cast(ControlPlane, control), Playing(track, 0.0), "command", 1, clock=lambda: now_ms / 1000)
    assert watch.look() == 1
    assert control.told == {one: one for one in sky.torus.satellites()}  # whatever an earlier replay told it
    control.told.clear()
    now_ms = 1500
    assert watch.look() == 2
    assert set(control.told) == first - second
    assert set(control.told.values()) == second - first
    now_ms = 2500
    control.deaf = set(list(first - second)[:1])
    for _ in range(2):  # who does not answer is told again
        assert watch.look() == 3
        control.deaf = set()
    assert {one for one, target in control.told.items() if target == one} == first - second
    assert {target for one, target in control.told.items() if target != one} == first - second
    assert set(control.told) == first ^ second


def test_another_replay_of_the_same_file_ends_the_first() -> None:
    """It began a minute ago, and this one has another beginning."""
    sky = Constellation().replace(constellation=GRID, cache={"servers": 6, "centre": [3, 5]})
    track = Track.of(sky.torus, [(10_000 * at, Satellite(3, 1 + at)) for at in range(9)])
    control = Commanded(sky, rows=9, row=1)
    now_ms = 12_000  # row 2, which satellites may be late with
    watch = Watch(cast(ControlPlane, control), Playing(track, 0.0), "schedule", 1, clock=lambda: now_ms / 1000)
    for _ in range(20):
        assert watch.look() == 2
    now_ms, control.counters["row"] = 19_000, 3  # or early
    for _ in range(20):
        assert watch.look() == 2
    now_ms, control.counters["row"] = 29_000, 6
    for _ in range(3):
        assert watch.look() == 3
    with pytest.raises(OvertakenError, match=r"^another replay, of another user or state folder, has ended this one$"):
        watch.look()


def test_the_time_is_told_before_what_satellites_are_told_at_it() -> None:
    sky = Constellation().replace(constellation=GRID, cache={"servers": 6, "centre": [3, 5]})
    track = Track.of(sky.torus, [(0, Satellite(3, 5)), (1000, Satellite(3, 7))])
    control = Commanded(sky)
    watch = Watch(cast(ControlPlane, control), Playing(track, 0.0), "command", 1, clock=lambda: 1.5)

    def killed(now_ms: int) -> None:
        assert now_ms == 1500
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch.look(killed)
    assert control.told == {}


def test_a_handover_by_command_is_ended_once_the_window_stays(start_sky: StartSky) -> None:
    """Nobody had told satellites of row 2, as if the ground had ended just then."""
    sky = start_sky(constellation=GRID, cache={"servers": 6, "centre": [3, 5]}).constellation
    items = blocks()
    with SkyStore(sky, timing=PATIENT) as store:
        assert all(result.ok for result in store.put(list(items.items())))
    track = Track.of(sky.torus, [(0, Satellite(3, 5)), (1000, Satellite(3, 7)), (10_000_000, Satellite(3, 9))])
    held = held_now(Playing(track, time.time() - 3600))
    inside = set(Whereabouts(sky, held).servers(2))
    with ControlPlane(sky, PATIENT) as control:
        assert not any(is_held_at(sky, key, inside) for key in items)
        assert settle(control, held) == 0
    assert all(is_held_at(sky, key, inside) for key in items)
    with SkyStore(sky, playing=held, timing=PATIENT) as store:
        assert all(result.data == items[result.key] for result in store.get(list(items)))


def test_satellites_that_do_not_answer_are_named(start_sky: StartSky, schedule: Schedule) -> None:
    local = start_sky(constellation=GRID, cache={"servers": 6, "centre": [3, 5]})
    playing = playing_now(local.constellation, schedule, 0, HOUR_MS, SPEED, None)
    local.kill(Satellite(2, 7))
    with (
        ControlPlane(local.constellation) as control,
        pytest.raises(ReplayError, match=r"^1 satellites do not answer: \[2, 7\]$"),
    ):
        upload(control, playing, deadline_s=2.0)


def test_what_satellites_have_no_room_for(schedule: Schedule) -> None:
    sky = Constellation().replace(constellation=GRID, cache={"centre": [3, 5]})
    playing = playing_now(sky, schedule, 0, schedule.header.duration_ms, 1.0, None)
    assert playing.track.end_ms(1) == 1 + 1000 * LEAD_S
    with pytest.raises(ValueError, match=r"after \d+ days; 24 are allowed"):
        playing_now(sky, schedule, 0, schedule.header.duration_ms, 0.001, None)
    long = centres(playing, ROWS_MAX)
    with pytest.raises(ValueError, match=r"5,4\d\d rows; satellites have room for 5,448: choose fewer hours, or start the const"):
        playing_now(sky, schedule, 0, schedule.header.duration_ms, 1.0, long)


def centres(playing: Playing, count: int) -> Playing:
    """A long past: a window that went to and fro."""
    torus = playing.track.torus
    places: Sequence[Satellite] = (Satellite(3, 5), Satellite(3, 6))
    track = type(playing.track).of(torus, [(at, places[at % 2]) for at in range(count)])
    return Playing(track, time.time() - count)
