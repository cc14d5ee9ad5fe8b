"""Schedules: what they answer, what stands in their files, and what is said of a wrong file."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.sky.orbit.fleet import arrange
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Change, NearestChange, Schedule, ScheduleError, WindowChange
from skymemory.sky.orbit.schedule_format import unix_ms, utc
from skymemory.sky.orbit.tle import read_tle
from skymemory.sky.orbit.views import Link
from skymemory.sky.orbit.walker import Walker
from skymemory.wire.address import Satellite
from support.elements import EPOCH_MS, shell

HOUR_MS = 3_600_000
BERLIN = Site(52.5, 13.4)
STAR = Walker(5, 19, 550, 86.4, star=True)


@pytest.fixture(scope="module")
def day() -> Schedule:
    return Schedule.compute(STAR, "walker star:5x19", BERLIN, 10, EPOCH_MS, 24 * HOUR_MS)


@pytest.fixture(scope="module")
def delta() -> Schedule:
    """With links that the earth blocks at times, and gaps."""
    return Schedule.compute(Walker(8, 5, 550, 53, star=False), "walker delta:8x5", BERLIN, 20, EPOCH_MS, 2 * HOUR_MS)


@pytest.fixture(scope="module")
def brief() -> Schedule:
    return Schedule.compute(STAR, "walker star:5x19", BERLIN, 10, EPOCH_MS, HOUR_MS // 3)


def test_a_day_over_berlin(day: Schedule) -> None:
    summary = day.summary()
    assert summary.satellites == 95
    assert 280 < summary.handovers < 360  # every 5,730 s / 19 = 300 s, and jumps
    assert 0.14 < summary.plane_jumps / summary.handovers < 0.54
    assert summary.gaps > 0
    assert 0 < summary.longest_gap_ms <= summary.gap_ms < 0.02 * 24 * HOUR_MS
    assert (summary.links_down, summary.links_blocked) == (19, 0)  # the seam
    assert all(origin.plane == 5 and target.plane == 1 for origin, target in day.links_down(0))


def test_gaps_are_in_the_schedule_and_the_window_stays(day: Schedule) -> None:
    ends = {after.time_ms: before for before, after in pairwise(c for c in day.changes if isinstance(c, NearestChange))}
    gaps = [(before.time_ms, end) for end, before in ends.items() if before.satellite is None]
    assert len(gaps) == day.summary().gaps
    for start_ms, end_ms in gaps:
        assert day.nearest(start_ms) is None
        assert day.nearest(start_ms - 1) == day.in_sight(start_ms - 1)[0]
        assert day.in_sight(start_ms) == day.in_sight(end_ms - 1) == ()
        assert day.centre(start_ms) in STAR.sky.satellites
        assert day.nearest(end_ms) == day.centre(end_ms)


@settings(max_examples=50)
@given(time_ms=st.integers(0, 24 * HOUR_MS))
def test_answers_are_those_of_the_sky_at_any_instant(day: Schedule, time_ms: int) -> None:
    seen = STAR.sky.in_sight(BERLIN, (EPOCH_MS + time_ms) / 1000, 10)
    assert day.nearest(time_ms) == (seen[0] if seen else None)
    assert day.in_sight(time_ms) == tuple(sorted(seen))
    if seen:
        assert day.centre(time_ms) == seen[0]


@pytest.mark.parametrize("time_ms", [-1, 24 * HOUR_MS + 1])
def test_other_times_are_refused(day: Schedule, time_ms: int) -> None:
    with pytest.raises(ValueError, match=f"the time is {time_ms} ms since the epoch; allowed are 0 to 86400000, the schedule's"):
        day.nearest(time_ms)


def test_links_that_the_earth_blocks(delta: Schedule) -> None:
    header_only = frozenset(delta.links_down(0))
    assert {link.origin.plane == link.target.plane for link in delta.links_down(0)} == {True, False}
    assert delta.summary().links_blocked > 10
    changes = [window.time_ms for window in delta.changes if isinstance(window, WindowChange)]
    assert any(delta.links_down(time_ms) != header_only for time_ms in changes)
    # five satellites in a plane at 550 km are farther apart than the earth lets through
    always = {Link(Satellite(p, s), Satellite(p, s % 5 + 1)) for p in range(1, 9) for s in range(1, 6)}
    assert all(always <= delta.links_down(time_ms) for time_ms in changes)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_files_bring_everything_back(day: Schedule, delta: Schedule, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"schedule{suffix}"
    for schedule in (day, delta):
        schedule.save(path)
        loaded = Schedule.load(path)
        assert loaded.header == schedule.header
        assert loaded.changes == schedule.changes
        again = tmp_path / f"again{suffix}"
        loaded.save(again)
        assert again.read_bytes() == path.read_bytes()


def test_both_forms_hold_the_same(delta: Schedule, tmp_path: Path) -> None:
    delta.save(tmp_path / "a.csv")
    delta.save(tmp_path / "a.jsonl")
    first, second = Schedule.load(tmp_path / "a.csv"), Schedule.load(tmp_path / "a.jsonl")
    assert (first.header, first.changes) == (second.header, second.changes)
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines() if not line.startswith("#")]
    assert rows[0] == ["time_ms", "time_utc", "event", "plane", "slot", "in_sight", "isl_down"]
    for row in rows[1:]:
        assert unix_ms(row[1]) == EPOCH_MS + int(row[0])
        assert row[2] in {"nearest", "window"}


def test_a_schedule_of_elements_names_its_satellites(tmp_path: Path) -> None:
    lines = shell(4, 12)
    del lines[2 * 17 : 2 * 19]  # 2006 and 2007 are not there
    (tmp_path / "sky.tle").write_text("\n".join(lines))
    fleet = arrange(read_tle(tmp_path / "sky.tle").elements, EPOCH_MS, EPOCH_MS + HOUR_MS)
    Schedule.compute(fleet, "tle sky.tle", BERLIN, 10, EPOCH_MS, HOUR_MS).save(tmp_path / "sky.csv")
    schedule = Schedule.load(tmp_path / "sky.csv")
    assert schedule.header.elements is not None
    assert {line for pair in schedule.header.elements.values() for line in pair} == set(lines)
    numbers = {Satellite(*map(int, name.split("."))): int(pair[0][2:7]) for name, pair in schedule.header.elements.items()}
    assert set(numbers.values()) == {int(line[2:7]) for line in lines[::2]}
    assert schedule.summary().satellites == 46
    sky = fleet.sky
    for time_ms in np.linspace(0, HOUR_MS, 50).astype(int).tolist():
        assert schedule.in_sight(time_ms) == tuple(sorted(sky.in_sight(BERLIN, (EPOCH_MS + time_ms) / 1000, 10)))
        assert all(link.origin in numbers and link.target in numbers for link in schedule.links_down(time_ms))


@given(st.integers(0, 4_102_444_799_999))
def test_times_are_exact(time_ms: int) -> None:
    assert unix_ms(utc(time_ms)) == time_ms


def replace(pattern: str, text: str) -> Callable[[str], str]:
    def change(content: str) -> str:
        changed, count = re.subn(pattern, text, content, count=1, flags=re.MULTILINE)
        assert count, pattern
        return changed

    return change


LATER = "2022-10-01T12:01:30.000Z"
FORMAT = '# format: "skymemory-schedule"\n'
CSV_MISTAKES = {
    r":1: not a schedule; allowed are files whose header has the format": lambda _: "",
    r":1: not a schedule;": lambda _: "time,satellite\n1,2\n",
    r":2: version is 1; allowed are 2$": replace("version: 2", "version: 1"),
    r":4: not a line of the header; allowed are": replace('epoch: ".*"', "epoch: today"),
    r':4: epoch is "2022-10-01"; allowed are UTC as in': replace('epoch: ".*"', 'epoch: "2022-10-01"'),
    r":6: planes is 0; allowed are whole numbers from 1 to 255": replace("planes: 8", "planes: 0"),
    r":7: slots is \"5\"; allowed are": replace("slots: 5", 'slots: "5"'),
    r":12: latitude_deg is 91.0; allowed are numbers from -90 to 90": replace("_deg: 52.5", "_deg: 91.0"),
    r":\d+: min_elevation_deg is missing; allowed are numbers from 0 to 90": replace("# min_elev.*\n", ""),
    r":3: \"colour\" is unknown; allowed are format, version": replace("^# source", '# colour: "red"\n# source'),
    r":\d+: isl_down: there is no link 1.1-3.1; allowed from 1.1 are 1.1-1.2, 1.1-2.1": replace('\\["1.1-1.2"', '["1.1-3.1"'),
    r":19: the columns are .*; allowed are time_ms,time_utc,event": replace("time_ms,time_utc", "time,time_utc"),
    r":20: time_ms is \"0.5\"; allowed are whole numbers from 0 to duration_ms, 7200000": replace("^0,", "0.5,"),
    r":20: time_ms is 7200001; allowed are": replace("^0,", "7200001,"),
    r":23: time_ms is 86297; allowed after the rows before it are times from 90001 on": replace("^82629,.*?Z", f"90000,{LATER}"),
    r":20: time_utc is .*; time_ms makes it 2022-10-01T12:00:00.000Z": replace("^0,2022-10-01T12", "0,2022-10-01T13"),
    r":20: event is \"closest\"; allowed are nearest and window": replace("nearest", "closest"),
    r":21: plane and slot are 9 and 1; allowed are 1 and 1 to 8 and 5": replace("window,.,.,", "window,9,1,"),
    r":21: plane and slot are empty and empty; allowed are": replace("window,.,.,", "window,,,"),
    r":21: \"4\" is no satellite; allowed are plane.slot such as 3.10": replace("(window,.,.,).*", r"\g<1>4,"),
    r":21: there is no link 1.1-1.1; allowed from 1.1 are": replace("(window,.,.,).*", r"\g<1>,1.1-1.1"),
    r":21: 3 columns; allowed are 7: time_ms": replace("^0,.*window.*", "0,1,2"),
    r":20: a nearest row has .*; allowed are time_ms, time_utc, event, plane, slot$": replace("nearest,.*", "nearest,1,1,1.1,"),
    r":20: the first rows are missing; allowed are files with rows nearest and window at time_ms 0": replace(
        "^0,.*nearest.*\n", ""
    ),
    r":3: format appears twice, in line 1 before; allowed is once": replace("^# source", f"{FORMAT}# source"),
    r":16: \"1.1\" appears twice; allowed is once": replace("elements: null", 'elements: {"1.1": [], "1.1": []}'),
    r":16: elements: 1.1, line 1: this is not line 1 of a satellite;": replace("elements: null", 'elements: {"1.1": ["a", "b"]}'),
    r":16: elements: plane 1 has no satellite; allowed are planes with one or more": replace("elements: null", "elements: {}"),
    r":16: elements is {\"1.1\": 5}; allowed are null, two-line": replace("elements: null", 'elements: {"1.1": 5}'),
    r":16: elements: plane and slot are 9 and 1; allowed": replace("elements: null", 'elements: {"9.1": ["a", "b"]}'),
    r":\d+: phasing is missing; allowed are null, whole numbers from 0 to 254": replace("^# phasing.*\n", ""),
    r":4: epoch is \"9999-12-31T23:59:59.000-05:00\"; allowed": replace('epoch: ".*"', 'epoch: "9999-12-31T23:59:59.000-05:00"'),
    r":18: rows is 1; allowed are whole numbers from 2 to 1000000": replace("rows: .*", "rows: 1"),
    r":18: rows is 1000001; allowed are": replace("rows: .*", "rows: 1000001"),
    r":24: more rows than the header says; allowed are 4": replace("rows: .*", "rows: 4"),
    r":\d+: the file ends after \d+ rows; the header says 999999": replace("rows: .*", "rows: 999999"),
    r":21: time_ms is 0; allowed after the rows before it are times from 1 on$": replace("^(0,.*nearest.*\n)", r"\1\1"),
    r":22: time_ms is 0; allowed after the rows before it are times from 1 on$": replace("^(0,.*window.*\n)", r"\1\1"),
    r":21: nearest is 3.2 from 0 ms on; allowed is nobody, as nobody is in sight$": replace("nearest,,,,", "nearest,3,2,,"),
    r":21: nearest is empty from 0 ms on; allowed is the window's centre, 3.1$": replace("window,3,1,,", "window,3,1,3.1,"),
    r":29: nearest is 2.2 from 222284 ms on; allowed is the window's centre, 2.1$": replace("nearest,2,1", "nearest,2,2"),
    r":29: nearest is 2.1 from 222284 ms on; allowed is nobody, as nobody is": replace("window,2,1,2.1,", "window,2,1,,"),
    r":29: the centre, 2.1, is not in sight, others are; allowed are those in": replace("window,2,1,2.1,", "window,2,1,2.2,"),
    r":29: \"02.1\" is no satellite; allowed are": replace("window,2,1,2.1,", "window,2,1,02.1,"),
}  # fmt: skip


@pytest.mark.parametrize("message", CSV_MISTAKES)
def test_mistakes_in_csv_are_told_with_their_line(delta: Schedule, tmp_path: Path, message: str) -> None:
    path = tmp_path / "wrong.csv"
    delta.save(path)
    path.write_text(CSV_MISTAKES[message](path.read_text()))
    with pytest.raises(ScheduleError) as caught:
        Schedule.load(path)
    assert re.match(re.escape(str(path)) + message, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "[]", r":1: \[\] is no object; allowed is one object a line"),
        (1, '{"format": "other"}', ":1: not a schedule;"),
        (2, "{", ":2: not JSON; allowed is one object a line"),
        (1, '{"format": "skymemory-schedule", "format": "skymemory-schedule"}', ':1: "format" appears twice; allowed is once'),
        (2, '{"time_ms": 0, "time_ms": 1}', ':2: "time_ms" appears twice; allowed is once'),
        (2, '{"event": "nearest"}', ":2: a nearest row has event; allowed are time_ms, time_utc, event, plane, slot"),
        (2, '{"event": []}', r":2: event is \[\]; allowed are nearest and window"),
        (3, None, ':3: in_sight is "1.1"; allowed are lists of texts'),
    ],
)
def test_mistakes_in_json_lines(delta: Schedule, tmp_path: Path, line: int, text: str | None, message: str) -> None:
    path = tmp_path / "wrong.jsonl"
    delta.save(path)
    lines = path.read_text().splitlines()
    lines[line - 1] = json.dumps({**json.loads(lines[line - 1]), "in_sight": "1.1"}) if text is None else text
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(ScheduleError, match=re.escape(str(path)) + message):
        Schedule.load(path)


def test_other_files(tmp_path: Path, delta: Schedule) -> None:
    with pytest.raises(ScheduleError, match=r"names no form of a schedule; allowed are \.csv and \.jsonl"):
        delta.save(tmp_path / "a.txt")
    (tmp_path / "a.csv").write_bytes(b"\xff")
    with pytest.raises(ScheduleError, match=r"a\.csv:1: byte 1 of the line is not UTF-8"):
        Schedule.load(tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError):
        Schedule.load(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        delta.save(tmp_path / "folder.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "folder.csv"}  # nothing half written


HOSTILE = {
    "a line of megabytes": (rb"delta:8x5", b"x" * (17 << 20)),
    "a field of a megabyte": (rb"(222284,.*window.*2\.1)", rb"\1" + b" 9.9" * 262_144),
    "lists in lists": (rb'(planes"?: )8', rb"\1" + b"[" * 100_000),
    "lists in lists that end": (rb'(planes"?: )8', rb"\1" + b"[" * 900 + b"]" * 900),
    "a long number": (rb'(planes"?: )8', rb"\g<1>" + b"8" * 10_000),
    "not a number": (rb'(altitude_km"?: )550.0', rb"\1NaN"),
    "no end": (rb'(altitude_km"?: )550.0', rb"\g<1>1e999"),
    "half a letter": (rb"walker", b"w\xc3lker"),
    "half of a pair": (rb'(elements"?: )null', rb'\1{"\\ud800": ["", ""]}'),
    "a name nobody can print": (rb"planes", "pl\0\x1b\u2028nes".encode()),
    "a nul": (rb"nearest", b"near\0st"),
    "a year behind the last": (rb"2022-10-01T12:00:00.000Z", b"9999-12-31T23:59:59.000-05:00"),
    "a year before the first": (rb"2022-10-01T12:00:00.000Z", b"0001-01-01T00:00:00.000+05:00"),
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_in_one_line(delta: Schedule, tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    delta.save(path)
    content, count = re.subn(*HOSTILE[name], path.read_bytes(), count=1)
    assert count
    path.write_bytes(content)
    with pytest.raises(ScheduleError) as caught:
        Schedule.load(path)
    told = str(caught.value).removeprefix(f"{path}:")
    assert re.match("[0-9]+: ", told)
    assert re.search("; (allowed|time_ms makes it) ", told)
    assert len(told) < 400
    assert told.isprintable()


@st.composite
def damaged(draw: st.DrawFn, content: str) -> str:
    """What may happen to a file."""
    lines = content.splitlines(keepends=True)
    first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    before, behind = "".join(lines[:first]), "".join(lines[first:])
    match draw(st.sampled_from(["more", "less", "moved", "twice", "end lost", "start lost"])):
        case "more":
            return before + draw(st.text(max_size=80)) + draw(st.sampled_from(["\n", "\r\n", ""])) + behind
        case "less":  # or a part of it twice, or all that follows lost
            return before + draw(st.sampled_from(["".join(lines[second:]), ""]))
        case "moved":
            lines[first], lines[second] = lines[second], lines[first]
            return "".join(lines)
        case "twice":
            return before + lines[second] + behind
        case "end lost":
            return content[: -draw(st.integers(1, 3) | st.integers(1, len(content)))]
        case _:
            return content[draw(st.integers(1, len(content))) :]


def by_event(schedule: Schedule) -> list[list[Change]]:
    """Rows of one instant may change places, and say the same."""
    return [[change for change in schedule.changes if type(change) is event] for event in (NearestChange, WindowChange)]


@given(st.data(), st.sampled_from([".csv", ".jsonl"]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_is_told_or_changes_nothing(brief: Schedule, tmp_path: Path, data: st.DataObject, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    brief.save(path)
    content = data.draw(damaged(path.read_text()))
    path.write_text(content, encoding="utf-8", errors="replace", newline="")
    schedule, told = brief, f"{path}:1: "
    try:
        schedule = Schedule.load(path)
    except ScheduleError as error:
        told = str(error)
    assert re.match(re.escape(str(path)) + r":\d+: ", told)
    assert schedule.header == brief.header
    assert by_event(schedule) == by_event(brief)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_without_its_end_is_refused(delta: Schedule, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    delta.save(path)
    content = path.read_bytes()
    for end in range(len(content) - 300, len(content), 13):
        path.write_bytes(content[:end])
        with pytest.raises(ScheduleError, match=r"the file ends (within the line|after [0-9]+ rows); allowed are"):
            Schedule.load(path)


def test_more_rows_than_a_file_may_have_are_refused_before_they_are_written(delta: Schedule, tmp_path: Path) -> None:
    many = Schedule(delta.header, delta.changes * (1_000_000 // len(delta.changes) + 1))
    with pytest.raises(ScheduleError, match=r"many\.csv: there are 1,000,\d+ changes; allowed are 1,000,000, "):
        many.save(tmp_path / "many.csv")
    assert not list(tmp_path.iterdir())
