"""95 containers follow a schedule at sixty times real time; blocks are got and put all the while."""

import os
import threading
from pathlib import Path

import pytest

from skymemory.cli.status_report import collect
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.replay import Handover, follow, playing_now, upload
from support.waiting import PATIENT

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
SPEED = 60.0
MINUTES = 45
VALUE_BYTES = 300_000


def test_the_sky_turns_at_sixty_times_real_time(start_containers, tmp_path: Path) -> None:
    orbits = Walker(5, 19, 550.0, 86.4, True, 1)
    schedule = Schedule.compute(orbits, "walker star:5x19", Site(52.5, 13.4), 10.0, 1_795_000_000_000, MINUTES * 60_000)
    schedule.save(source := tmp_path / "berlin.csv")
    record = PlayingRecord(tmp_path)
    items = {os.urandom(32): os.urandom(VALUE_BYTES) for _ in range(4)}
    failures: list[str] = []
    windows: list[list[int]] = []
    over, gets = threading.Event(), [0]

    patient_sky = Constellation().replace(cache={"deadline_ms": 20_000})
    with (
        start_containers(patient_sky) as sky,
        SkyStore(sky, playing=record, timing=PATIENT) as store,
        ControlPlane(sky, PATIENT) as control,
    ):
        assert all(result.ok for result in store.put(list(items.items())))

        def use() -> None:
            while not over.is_set():
                for result in store.get(list(items)):
                    gets[0] += 1
                    if result.data != items[result.key]:
                        failures.append(result.status)
                key, value = os.urandom(32), os.urandom(VALUE_BYTES)
                if len(items) < 40:
                    failures.extend(result.status for result in store.put([(key, value)]) if not result.ok)
                    items[key] = value

        playing = playing_now(sky, schedule, 0, schedule.header.duration_ms, SPEED, None)
        record.save(playing, source)
        upload(control, playing)
        user = threading.Thread(target=use)
        user.start()
        done: list[Handover] = []
        try:
            for handover in follow(control, playing, "schedule"):
                done.append(handover)
                windows.append(list(collect(sky, playing)["window"]["centre"]))
        finally:
            over.set()
            user.join()
        assert failures == []
        assert gets[0] > 4 * len(done)
        assert len(done) == len(playing.track.rows) - 1 >= 8
        assert sum(handover.chunks for handover in done) > 0
        assert len({tuple(centre) for centre in windows}) > 4  # status shows the window moving
        assert all(result.data == items[result.key] for result in store.get(list(items)))
        assert store.stats().misses == 0
        for handover in done:
            print(handover)
