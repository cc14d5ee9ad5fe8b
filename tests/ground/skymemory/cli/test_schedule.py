"""`skymem schedule`, from the outside."""

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.sky.orbit.schedule import Schedule
from support.elements import EPOCH_MS, real_tle, shell, tle_pair

STAR = ("--walker", "star:5x19", "--altitude-km", "550", "--inclination-deg", "86.4")
BERLIN = ("--site", "52.5,13.4")
START = ("--start", "2026-11-20T15:00:00Z")


def skymem(folder: Path, *words: str, status: int = 0) -> Result:
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(main, ["schedule", *words], prog_name="skymem")
    finally:
        os.chdir(before)
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


def test_a_day_over_berlin(tmp_path: Path) -> None:
    output = skymem(tmp_path, *STAR, *BERLIN, "--hours", "24", *START, "-o", "berlin.csv").stdout
    schedule = Schedule.load(tmp_path / "berlin.csv")
    assert schedule.header.epoch == "2026-11-20T15:00:00.000Z"
    assert schedule.header.duration_ms == 86_400_000
    assert f"berlin.csv: {len(schedule.changes)} changes of 95 satellites in 5 planes x 19 slots" in output
    assert f"{schedule.summary().plane_jumps} jump to another plane; nobody in sight" in output
    assert "links: 19 always down, 0 blocked by the earth at times" in output
    again = json.loads(skymem(tmp_path, *STAR, *BERLIN, "--hours", "24", *START, "-o", "again.csv", "--json").stdout)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "berlin.csv").read_bytes()
    assert again["rows"] == len(schedule.changes)
    assert again["notes"] == []


def test_it_starts_now(tmp_path: Path) -> None:
    before = int(time.time()) * 1000
    skymem(tmp_path, "--walker", "delta:3x4", *BERLIN, "--hours", "0.5", "-o", "now.jsonl")
    header = Schedule.load(tmp_path / "now.jsonl").header
    assert before <= header.epoch_ms <= time.time() * 1000
    assert (header.duration_ms, header.pattern, header.phasing, header.altitude_km) == (1_800_000, "delta", 1, 550)


def test_elements_start_at_their_own_time_when_they_are_old(tmp_path: Path) -> None:
    (tmp_path / "sky.tle").write_text("\n".join(shell(6, 11)))
    result = skymem(tmp_path, "--tle", "sky.tle", "--site", "-33.9,18.4", "--hours", "2", "-o", "cape.csv")
    assert "days old: the schedule starts at their time, 2022-10-01T12:00:00.000Z; see --start" in result.stderr
    header = Schedule.load(tmp_path / "cape.csv").header
    assert (header.epoch_ms, header.source, header.planes, header.slots) == (EPOCH_MS, "tle sky.tle", 6, 11)
    late = skymem(tmp_path, "--tle", "sky.tle", *BERLIN, "--hours", "2", *START, "-o", "late.csv")
    assert "days older than the start: positions are rough" in late.stderr


def test_a_real_constellation(tmp_path: Path) -> None:
    result = skymem(tmp_path, "--tle", str(real_tle("oneweb.tle")), "--site", "37.4,-122.1", "--hours", "6", "-o", "oneweb.csv")
    assert "left out: 56 off the shell" in result.stderr
    assert "planes are of unequal size" in result.stderr
    assert Schedule.load(tmp_path / "oneweb.csv").summary().satellites > 350


def test_a_pole_where_all_planes_are_equally_near(tmp_path: Path) -> None:
    words = ("--walker", "star:5x19", "--phasing", "0", "--site", "90,0", "--hours", "24", *START, "-o", "pole.csv", "--json")
    summary = json.loads(skymem(tmp_path, *words).stdout)
    assert 250 < summary["handovers"] < 320
    assert summary["plane_jumps"] == 0


def test_copies_of_a_satellite_are_told(tmp_path: Path) -> None:
    (tmp_path / "sky.tle").write_text("\n".join([*tle_pair(1001, 10, 20), *tle_pair(1002, 10, 20), *tle_pair(1003, 10, 200)]))
    result = skymem(tmp_path, "--tle", "sky.tle", *BERLIN, "--hours", "24", "-o", "sky.csv")
    assert "left out: 1 with the same elements as an earlier one\n" in result.stderr
    elements = Schedule.load(tmp_path / "sky.csv").header.elements
    assert elements is not None
    assert sorted(first[2:7] for first, _ in elements.values()) == ["01001", "01003"]


def test_a_bad_line_is_skipped_and_told(tmp_path: Path) -> None:
    lines = shell(6, 11)
    (tmp_path / "sky.tle").write_text("\n".join([*lines[:2], lines[2].replace("22001A", "22002A"), *lines[3:]]))
    result = skymem(tmp_path, "--tle", "sky.tle", *BERLIN, "--hours", "1", "-o", "sky.csv")
    assert "skipped: sky.tle:3: the checksum is" in result.stderr
    assert Schedule.load(tmp_path / "sky.csv").summary().satellites == 65


def test_a_schedule_on_standard_output(tmp_path: Path) -> None:
    words = (*STAR, *BERLIN, "--hours", "1", *START)
    for form, suffix in (((), ".csv"), (("--json",), ".jsonl")):
        skymem(tmp_path, *words, "-o", f"file{suffix}")
        result = skymem(tmp_path, *words, "-o", "-", *form)
        assert result.stdout == (tmp_path / f"file{suffix}").read_text()
        assert "changes of 95 satellites in 5 planes x 19 slots" in result.stderr


def test_starlink_and_one_of_its_other_shells(tmp_path: Path) -> None:
    path = str(real_tle("starlink.tle"))
    result = skymem(tmp_path, "--tle", path, *BERLIN, "--hours", "0.2", "-o", "first.csv")
    assert "1286 satellites in 72 planes x 18 slots" in result.stdout
    assert "--shell takes another: 53.22," in result.stderr
    result = skymem(tmp_path, "--tle", path, "--shell", "53.2,540", *BERLIN, "--hours", "0.2", "-o", "second.csv")
    assert Schedule.load(tmp_path / "second.csv").header.inclination_deg == pytest.approx(53.22, abs=0.01)


def test_nobody_is_ever_in_sight(tmp_path: Path) -> None:
    result = skymem(tmp_path, "--walker", "delta:3x4", "--inclination-deg", "10", "--site", "90,0", "-o", "pole.csv", *START)
    assert "nobody is ever in sight at 10 degrees or higher" in result.stderr
    schedule = Schedule.load(tmp_path / "pole.csv")
    assert schedule.summary().gap_ms == 86_400_000
    assert {schedule.nearest(time_ms) for time_ms in range(0, 86_400_000, 600_000)} == {None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*STAR, "--site", "91,0"), "the latitude of --site is 91; allowed are -90 to 90"),
        ((*STAR, "--site", "0,181"), "the longitude of --site is 181; allowed are -180 to 180"),
        ((*STAR, "--site", "nan,0"), "the latitude of --site is nan; allowed are -90 to 90"),
        ((*STAR, "--site", "Berlin"), "--site is Berlin; allowed are latitude,longitude in degrees such as 52.5,13.4"),
        ((*STAR, "--site", "1,2,3"), "--site is 1,2,3; allowed are latitude,longitude in degrees such as 52.5,13.4"),
        ((*STAR,), "Missing option '--site'; see `skymem schedule --help`"),
        (BERLIN, "which sky: allowed is one of --walker and --tle"),
        ((*STAR, *BERLIN, "--tle", "sky.tle"), "which sky: allowed is one of --walker and --tle"),
        ((*STAR, *BERLIN, "--hours", "0"), "--hours is 0; allowed are more than 0, up to 1000"),
        ((*STAR, *BERLIN, "--hours", "-3"), "--hours is -3; allowed are more than 0, up to 1000"),
        ((*STAR, *BERLIN, "--hours", "1001"), "--hours is 1001; allowed are more than 0, up to 1000"),
        ((*STAR, *BERLIN, "--hours", "nan"), "--hours is nan; allowed are more than 0, up to 1000"),
        ((*STAR, *BERLIN, "--min-elevation-deg", "-1"), "--min-elevation-deg is -1; allowed are 0 to 90"),
        ((*STAR, *BERLIN, "--start", "noon"), "--start is noon; allowed are times such as 2026-11-20T15:00:00Z, from "),
        ((*STAR, *BERLIN, "--start", "9999-12-31T23:59:59-05:00"), "--start is 9999-12-31T23:59:59-05:00; allowed are times "),
        ((*STAR, *BERLIN, "--start", "2100-01-01"), "--start is 2100-01-01; allowed are times "),
        (("--walker", "rosette:5x19", *BERLIN), "--walker is rosette:5x19; allowed are star:PxS and delta:PxS, "),
        (("--walker", "star:5", *BERLIN), "--walker is star:5; allowed are star:PxS and delta:PxS, "),
        (("--walker", "star:0x19", *BERLIN), "planes of --walker is 0; allowed are 1 to 255"),
        (("--walker", "star:5x300", *BERLIN), "slots of --walker is 300; allowed are 1 to 254"),
        ((*STAR, "--phasing", "5", *BERLIN), "--phasing is 5; allowed are 0 to 4"),
        (("--walker", "star:5x19", "--altitude-km", "100", *BERLIN), "--altitude-km is 100; allowed are 160 to 2000"),
        (("--walker", "star:5x19", "--inclination-deg", "181", *BERLIN), "--inclination-deg is 181; allowed are 0 to 180"),
        (("--tle", "sky.tle", "--phasing", "1", *BERLIN), "--altitude-km, --inclination-deg and --phasing go with --walker; "),
        (("--tle", "sky.tle", "--strict", *BERLIN), "sky.tle:3: the checksum is "),
        (("--tle", "sky.tle", "--shell", "high", *BERLIN), "--shell is high; allowed are inclination, or inclination,altitude, "),
        (("--tle", "sky.tle", "--shell", "53", *BERLIN), "there is no such shell; allowed are 87.90,1204 (11 satellites)"),
        ((*STAR, "--shell", "53", *BERLIN), "--shell and --strict go with --tle"),
        (("--tle", "none.tle", *BERLIN), "Invalid value for '--tle': File 'none.tle' does not exist; see"),
        ((*STAR, *BERLIN, "-o", "out.txt"), "--output is out.txt; allowed are files that end in .csv or .jsonl, and -"),
        ((*STAR, *BERLIN, "-o", "none/out.csv"), "--output is none/out.csv; there is no folder none"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    lines = shell(3, 4)
    (tmp_path / "sky.tle").write_text("\n".join([*lines[:2], lines[2].replace("22001A", "22002A"), *lines[3:]]))
    output = () if "-o" in words else ("-o", "out.csv")
    result = skymem(tmp_path, *words, *output, status=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sky.tle"]
