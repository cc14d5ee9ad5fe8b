"""The record of the schedule that a running constellation follows."""

import json
from pathlib import Path
from typing import Any

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.playing_record import DamagedRecordError, PlayingRecord
from skymemory.testbed.run_record import Running, RunRecord

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    return Schedule.compute(Walker(5, 19, 550.0, 86.4, True, 1), "walker", Site(52.5, 13.4), 10.0, 1_795_000_000_000, HOUR_MS)


@pytest.fixture
def source(schedule: Schedule, tmp_path: Path) -> Path:
    schedule.save(path := tmp_path / "sky.jsonl")
    return path


def playing(schedule: Schedule, speed: float = 60.0) -> Playing:
    return Playing(schedule.track.played(1000, speed), 1_795_000_000.25, schedule, 1000, speed)


def test_what_is_saved_is_loaded(schedule: Schedule, source: Path, tmp_path: Path) -> None:
    record = PlayingRecord(tmp_path / "state")
    (tmp_path / "state").mkdir()
    assert record.load() is None
    assert not record.changed()
    record.save(playing(schedule), source)
    assert record.changed()
    loaded = record.load()
    assert not record.changed()
    assert loaded is not None
    assert loaded.track == playing(schedule).track
    assert (loaded.started_unix_s, loaded.from_ms, loaded.speed) == (1_795_000_000.25, 1000, 60.0)
    assert loaded.schedule is not None
    assert loaded.schedule.changes == schedule.changes

    copy = next((tmp_path / "state").glob("*.jsonl"))
    record.save(playing(schedule, 30.0), copy)  # what is on record, held
    assert record.changed()
    assert (again := record.load()) is not None
    assert (again.track, again.speed) == (playing(schedule, 30.0).track, 30.0)
    record.clear()
    assert record.changed()
    assert record.load() is None
    assert list((tmp_path / "state").iterdir()) == []


def test_a_record_is_kept_until_another_is_saved(schedule: Schedule, source: Path, tmp_path: Path) -> None:
    mine, other = PlayingRecord(tmp_path), PlayingRecord(tmp_path)
    mine.save(playing(schedule), source)
    assert mine.is_kept()
    assert not other.is_kept()
    other.save(playing(schedule), source)
    assert other.is_kept()
    assert not mine.is_kept()
    mine.clear()
    assert not other.is_kept()


def test_another_constellation_follows_nothing(schedule: Schedule, source: Path, tmp_path: Path) -> None:
    state = RunRecord(tmp_path / "state")
    state.save(Running("local", Constellation(), {}))
    record = state.sky(Constellation()).playing
    record.save(playing(schedule), source)
    state.save(Running("local", Constellation(), {}))
    assert record.load() is None
    record.save(playing(schedule), source)
    state.clear()
    assert record.load() is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"planes": 0},
        {"rows": []},
        {"rows": [[0, 1, 1], [0, 1, 2]]},
        {"rows": [[0, 1, 1], [5, 4, 1]]},
        {"rows": [[0, 1]]},
        {"schedule": "../../etc/passwd"},
        {"schedule": ".csv"},
        {"speed": "fast"},
        {"player": 5},
        {"player": ["one"]},
        None,
    ],
)
def test_damage_is_told(schedule: Schedule, source: Path, tmp_path: Path, change: dict[str, Any] | None) -> None:
    record = PlayingRecord(tmp_path)
    record.save(playing(schedule), source)
    text = json.dumps(json.loads(record.path.read_text()) | change) if change is not None else "{"
    record.path.write_text(text)
    with pytest.raises(DamagedRecordError, match=r"playing.json is damaged \(.+\); remove the folder "):
        record.load()


def test_a_store_notices_what_is_played_and_survives_damage(schedule: Schedule, source: Path, tmp_path: Path) -> None:
    sky, record = Constellation(), PlayingRecord(tmp_path)
    where = Whereabouts(sky, record)
    assert where.playing is None
    record.save(playing(schedule), source)
    where.refresh()
    assert (first := where.playing) is not None
    record.path.write_text("{")
    where.refresh()
    assert where.playing is first
    record.clear()
    where.refresh()
    assert where.playing is None
    with SkyStore(sky, playing=record) as store:
        assert not store.follows
