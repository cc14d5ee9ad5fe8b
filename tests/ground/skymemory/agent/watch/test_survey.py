"""Frames of real satellites: what they hold, what went over which link, who is lost, what a handover moves."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from skymemory.agent.activity import Activity
from skymemory.agent.watch.frame import ANSWERS, LINK_DOWN, LINK_UP, NO_LINK, SILENT, UNASKED, Frame
from skymemory.agent.watch.survey import Survey
from skymemory.link.control import ControlPlane
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.orbit.fleet import arrange
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.tle import read_tle
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.store.results import GetResult, Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.replay import upload
from skymemory.wire.address import Satellite
from support.elements import EPOCH_MS, shell
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
HOUR_MS = 3_600_000


@contextmanager
def surveyed(constellation: Constellation, playing: Playing | None = None) -> Iterator[tuple[SkyStore, Survey]]:
    with SkyStore(constellation, playing=playing) as store:
        yield store, Survey(store)


def until(survey: Survey, true: Callable[[Frame], object]) -> Frame:
    """The first frame of which it is true."""
    return wait_until(lambda: frame if true(frame := survey.take()) else None)


def index(sky: Constellation, satellite: Satellite) -> int:
    return (satellite.plane - 1) * sky.slots + satellite.slot - 1


def test_satellites_that_refuse_this_hosts_keys(start_sky: StartSky, tmp_path: Path) -> None:
    for name in ("keys", "others"):
        begin_mission(tmp_path / name, 3, 5, HostRecord(name="host", tenants=(0,)))
    sky = start_sky(security={"keyring": str(tmp_path / "keys" / "mission.json")}).constellation
    with surveyed(sky) as (_, survey):
        survey.take()
        assert (survey.sky()["security"].partition(":")[0], survey.sky()["secured"]) == ("secured", True)
    wrong = host_file(tmp_path / "others", 1, "host")
    with surveyed(sky.replace(security={"keyring": str(wrong)})) as (_, survey):
        before = survey.version
        assert survey.take()["alive"][0] == 0
        assert survey.version > before
        assert survey.sky()["security"].startswith(
            f"15 satellites answer, but refuse this host's keys: keyring {wrong}, host host"
        )
        assert not survey.sky()["secured"]


def test_what_satellites_hold_and_do(start_sky: StartSky) -> None:
    sky = start_sky().constellation
    with surveyed(sky) as (store, survey):
        frame = survey.take()
        assert frame["alive"][0] == 15
        assert (frame["state"] == ANSWERS).all()
        assert not frame["chunks"].any()
        assert frame.told()["hit_ratio"] is None  # nobody asked
        keys = [bytes(4) + os.urandom(28) for _ in range(4)]  # share 0 of each is at the first server
        store.put([(key, os.urandom(200_000)) for key in keys])
        assert all(result.data for result in store.get(keys))
        frame = survey.take()
        told = frame.told()
        servers = [index(sky, one) for one in store.whereabouts.servers(0)]
        assert told["servers"] == servers
        assert told["centre"] == index(sky, sky.cache.centre)
        assert {place for place, chunks in enumerate(told["chunks"]) if chunks} == set(servers)
        assert sum(told["chunks"]) == 4 * (34 + 5 * 2)  # five rows of a block have parity
        assert sum(told["bytes"]) == 800_000 + 4 * 5 * 2 * 6000
        assert all(told["hits_per_s"][place] > 0 for place in servers[:7])  # those with data
        assert told["bytes_down_per_s"] > 0
        assert told["moves"] == []
        now = survey.now()
        assert now["agent"]["bytes_down"] == 800_000
        assert sum(now["totals"]["hits"]) >= 4 * 34  # one that was asked for again counts again
        assert survey.sky()["store_bytes"] > 0
        assert all(used > held for used, held in zip(told["used_bytes"], told["bytes"], strict=True) if held)  # entries, too


def test_what_was_asked_for_and_what_came(start_sky: StartSky) -> None:
    activity = Activity()
    with SkyStore(start_sky().constellation) as store:
        survey = Survey(store, activity=activity)
        survey.take()
        found = [GetResult(os.urandom(32), None, Status.DONE, 0.1) for _ in range(3)]
        lost = GetResult(os.urandom(32), None, Status.EXPIRED, 0.1)
        activity.got("engine", [*found, lost], block_tokens=128)
        activity.looked_up("engine", [os.urandom(32)] * 2, found=0)
        told = survey.take().told()
        assert told["hit_ratio"] == 0.5
        assert told["delivery_ratio"] == 0.75
        assert told["asked_per_s"] == pytest.approx(2 * told["hit_per_s"], rel=0.01)
        assert survey.take().told()["hit_ratio"] is None
        now = survey.now()
        assert now["asked"] == {"blocks": 6, "hit": 3, "not_found": 2, "not_fetched": 0, "not_delivered": 1}
        assert now["saved"]["tokens"] == 384
        assert now["last_get"] is None


def test_a_loss_and_a_return_are_events(start_sky: StartSky) -> None:
    local = start_sky()
    lost = Satellite(2, 4)
    with surveyed(local.constellation) as (_, survey):
        survey.take()
        place = [index(local.constellation, lost)]

        def told() -> list[tuple[object, ...]]:
            return [(one["kind"], one["text"], one["satellites"]) for one in survey.now()["events"]]

        local.kill(lost)
        until(survey, lambda _: ("lost", "[2, 4] does not answer", place) in told())
        local.restart(lost)
        until(survey, lambda _: ("restarted", "[2, 4] started anew, with an empty store", place) in told())


def test_who_restarts_between_two_looks_is_noticed_however_late_the_second(start_sky: StartSky) -> None:
    """Its uptime may have passed the one that it told before."""
    local = start_sky()
    lost = Satellite(2, 4)
    place = index(local.constellation, lost)
    with surveyed(local.constellation) as (_, survey), closing(ControlPlane(local.constellation)) as control:

        def uptime_ms() -> int:
            return control.store_stats([Route(lost, lost)], 5)[lost]["uptime_ms"]

        until(survey, lambda _: survey.now()["totals"]["uptime_ms"][place] >= 1000)
        before_ms = survey.now()["totals"]["uptime_ms"][place]
        local.kill(lost)
        local.restart(lost)
        wait_until(lambda: uptime_ms() > before_ms)
        survey.take()
        assert [one["kind"] for one in survey.now()["events"]] == ["restarted"]
        survey.take()
        assert [one["kind"] for one in survey.now()["events"]] == ["restarted"]  # told once


def test_links_in_use_cut_and_none(start_sky: StartSky) -> None:
    """All goes in over the satellite above the host, so what leaves over its links is the work of the others."""
    cut = [{"from": [1, 1], "to": [1, 2], "cut": True}]
    sky = start_sky(constellation={"seam": "cut"}, cache={"uplink": "nearest"}, links={"override": cut}).constellation
    with surveyed(sky) as (store, survey):
        frame = survey.take()
        east, south = frame["link_state"][0::2], frame["link_state"][1::2]
        assert east[index(sky, Satellite(1, 1))] == LINK_DOWN
        assert (np.delete(east, index(sky, Satellite(1, 1))) == LINK_UP).all()
        assert (south[:10] == LINK_UP).all()
        assert (south[10:] == NO_LINK).all()
        assert not survey.take()["packets_per_s"].any()  # hellos are not use
        keys = [os.urandom(32) for _ in range(4)]
        store.put([(key, os.urandom(400_000)) for key in keys])
        store.get(keys)
        frame = survey.take()
        used = frame["packets_per_s"] > 0
        centre = index(sky, sky.cache.centre)
        assert used[2 * centre]
        assert used[2 * centre + 1]
        assert not used[2 * index(sky, Satellite(1, 5))]  # beyond the window
        assert frame["loss_ratio"][0] == 0


def test_losses_are_seen(start_sky: StartSky) -> None:
    sky = start_sky(links={"loss_ppm": 100_000}, cache={"uplink": "nearest"}).constellation
    with surveyed(sky) as (store, survey):
        survey.take()
        # So many that each link loses more than the hellos that are not counted
        store.put([(os.urandom(32), os.urandom(400_000)) for _ in range(10)])
        frame = until(survey, lambda one: one["loss_ratio"][0] > 0)
        assert 0.01 < frame["loss_ratio"][0] < 0.6
        assert frame["drops_per_s"].any()
        assert frame["retry_ratio"][0] > 0


def test_a_lost_satellite_and_its_stand_in(start_sky: StartSky) -> None:
    local = start_sky()
    sky, lost = local.constellation, Satellite(2, 4)
    with surveyed(sky) as (store, survey):
        survey.take()
        store.put([(os.urandom(32), os.urandom(200_000))])
        local.kill(lost)
        frame = until(survey, lambda one: one["alive"][0] == 14)
        place = index(sky, lost)
        assert frame["state"][place] == SILENT
        assert frame["chunks"][place] == 0
        assert place not in frame.told()["servers"]
        assert len(frame.told()["servers"]) == 9
        local.restart(lost)
        frame = until(survey, lambda one: one["alive"][0] == 15)
        assert place in frame.told()["servers"]
        # It counts from 0 again: nothing of it is negative, or as large as the difference of two counts
        assert (frame["hits_per_s"] >= 0).all()


def test_nobody_answers(start_sky: StartSky, stopped: Callable[..., object]) -> None:
    local = start_sky()
    with surveyed(local.constellation) as (_, survey):
        survey.take()
        with stopped(local):  # type: ignore[attr-defined]
            frame = survey.take()
            assert frame["alive"][0] == 0
            assert len(frame.told()["servers"]) == 9  # where they would be
        until(survey, lambda one: one["alive"][0] == 15)


def test_gets_do_not_wait_for_what_the_page_asks(start_sky: StartSky, stopped: Callable[..., object]) -> None:
    """A survey waits for silent satellites; the store's control plane is free meanwhile."""
    local = start_sky()
    with surveyed(local.constellation) as (store, survey):
        survey.take()

        def is_answered_meanwhile() -> bool:
            with stopped(local, Satellite(1, 1), Satellite(3, 5)):  # type: ignore[attr-defined]
                taking = threading.Thread(target=survey.take)
                taking.start()
                assert store.control.ping([Route(Satellite(2, 3), Satellite(2, 3))], 10)
                is_taking = taking.is_alive()
                taking.join()
                return is_taking

        wait_until(is_answered_meanwhile)


def test_large_constellations_are_asked_in_slices(start_sky: StartSky) -> None:
    with SkyStore(start_sky().constellation) as store:
        survey = Survey(store, slice_satellites=4)
        seen = []
        for _ in range(5):
            state = survey.take()["state"]
            seen.append(int((state == ANSWERS).sum()))
            assert ((state == ANSWERS) | (state == UNASKED)).all()
        assert seen == [4, 8, 12, 15, 15]


def test_a_handover_is_shown_from_place_to_place(start_sky: StartSky) -> None:
    sky = start_sky(cache={"servers": 4}).constellation
    with SkyStore(sky) as before_it_begins:
        before_it_begins.put([(os.urandom(32), os.urandom(200_000)) for _ in range(4)])
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (3000, Satellite(2, 2)), (HOUR_MS, Satellite(2, 1))])
    playing = Playing(track, time.time())
    with ControlPlane(sky) as control:
        upload(control, playing)
    with surveyed(sky, playing) as (store, survey):
        moving: set[int] = set()  # those of all frames: a busy machine shows the whole handover in one

        def row_of(frame: Frame) -> int:
            moving.update(np.flatnonzero(frame["moved_per_s"]).tolist())
            return int(frame["row"][0])

        frame = until(survey, lambda one: row_of(one) == 2)
        before, after = store.whereabouts.servers(1), store.whereabouts.servers(2)
        pairs = enumerate(zip(before, after, strict=True))
        moved = [(number, index(sky, old), index(sky, new)) for number, (old, new) in pairs if old != new]
        assert moved
        assert sorted(frame.moves()) == moved
        assert frame["centre"][0] == index(sky, Satellite(2, 2))
        told = survey.now()["schedule"]
        assert (told["rows"], told["speed"]) == (3, 1)
        assert [(move["row"], move["centre"]) for move in told["moves"]] == [(2, 6), (3, 5)]
        assert all(move["servers_moved"] for move in told["moves"])
        until(survey, lambda one: row_of(one) and moving)
        assert moving <= {index(sky, one) for one in [*before, *after]}


def test_the_sky_of_a_replay(start_sky: StartSky) -> None:
    """Positions are those of the schedule's orbits at its time, not at ours."""
    sky = start_sky().constellation
    orbits = Walker(3, 5, 1200.0, 80.0, True, 1)
    schedule = Schedule.compute(orbits, "walker star:3x5", Site(52.5, 13.4), 10.0, 1_795_000_000_000, HOUR_MS)
    playing = Playing(schedule.track.played(0, 60.0), time.time(), schedule, 0, 60.0)
    with surveyed(sky, playing) as (_, survey):
        frame, now = survey.take(), survey.now()
        assert 1_795_000_000_000 <= frame.sky_ms < 1_795_000_000_000 + HOUR_MS
        assert now["schedule"]["sky_time"].startswith("2026-11-18T")
        places = now["positions"]
        assert places["rate"] == 60
        assert np.allclose(np.reshape(places["now"], (-1, 3))[:, 2], 1200, atol=40)
        expected = orbits.sky.positions_km(np.array([places["sky_ms"]]))[:, 0]
        longitudes = np.degrees(np.arctan2(expected[:, 1], expected[:, 0]))
        assert np.allclose(np.reshape(places["now"], (-1, 3))[:, 0], longitudes, atol=0.01)
        seen = schedule.in_sight(places["sky_ms"] - 1_795_000_000_000)
        assert sorted(places["in_sight"]) == sorted(index(sky, one) for one in seen)
        assert survey.sky()["site"] == {"latitude_deg": 52.5, "longitude_deg": 13.4, "min_elevation_deg": 10}


def test_the_sky_of_a_schedule_of_elements(start_sky: StartSky, tmp_path: Path) -> None:
    """In a place without elements flies what its plane has: a constellation has a satellite in every place."""
    sky = start_sky().constellation
    lines = shell(3, 5)
    del lines[2 * 7 : 2 * 8]  # (2, 3) is not there
    (tmp_path / "sky.tle").write_text("\n".join(lines))
    fleet = arrange(read_tle(tmp_path / "sky.tle").elements, EPOCH_MS, EPOCH_MS + HOUR_MS)
    of_elements = Schedule.compute(fleet, "tle sky.tle", Site(52.5, 13.4), 10.0, EPOCH_MS, HOUR_MS)
    assert (of_elements.header.planes, of_elements.header.slots, len(of_elements.header.elements or {})) == (3, 5, 14)
    with surveyed(sky, Playing(of_elements.track, time.time(), of_elements)) as (_, survey):
        survey.take()
        places = survey.now()["positions"]
        expected = of_elements.full_sky.positions_km(np.array([places["sky_ms"]]))[:, 0]
        longitudes = np.degrees(np.arctan2(expected[:, 1], expected[:, 0]))
        assert np.allclose(np.reshape(places["now"], (-1, 3))[:, 0], longitudes, atol=0.01)
        assert len(longitudes) == 15
