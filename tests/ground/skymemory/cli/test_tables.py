"""`skymem tables`, from the outside."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.security.satellite_file import read_satellite_keys
from skymemory.sky.orbit.schedule import Schedule

SKY = "[constellation]\nplanes = 2\nslots = 3\n\n[cache]\nservers = 4\ncentre = [1, 2]\n"
SCHEDULE = ("--walker", "star:2x3", "--site", "52.5,13.4", "--start", "2026-11-20T15:00:00Z", "--hours", "6")
COMMON = {"tables/kvc_limits.c", *(f"tables/kvc_schedule{n}.c" for n in range(1, 5)), "skymemory_cpus.cmake"}


def skymem(*words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, words, prog_name="skymem")
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture
def sky(tmp_path: Path) -> str:
    path = tmp_path / "sky.toml"
    path.write_text(SKY)
    return str(path)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def own(*numbers: int) -> set[str]:
    return {f"cpu{number}/tables/{name}.c" for number in numbers for name in ("isl_neighbours", "isl_links")}


def test_every_satellite_is_a_processor(sky: str, tmp_path: Path) -> None:
    folder = tmp_path / "mission" / "sample_defs"
    result = skymem("tables", sky, "-o", str(folder))
    assert result.output == f"{folder}: tables of cpu1 to cpu6, satellites [1, 1] to [2, 3]; no schedule\n"
    assert files(folder) == COMMON | own(*range(1, 7))
    assert ".SelfPlane      = 2,\n    .SelfSlot       = 1," in (folder / "cpu4/tables/isl_neighbours.c").read_text()


def test_some_satellites_as_json(sky: str, tmp_path: Path) -> None:
    words = ("--satellite", "2,3", "--satellite", "1,2", "--json")
    told = json.loads(skymem("tables", sky, "-o", str(tmp_path / "defs"), *words).output)
    assert told["cpus"] == [
        {"cpu": "cpu1", "satellite": [2, 3], "address": "127.18.2.3"},
        {"cpu": "cpu2", "satellite": [1, 2], "address": "127.18.1.2"},
    ]
    assert told["rows"] == 0
    assert files(tmp_path / "defs") == COMMON | own(1, 2)


def test_a_schedule_begins_on_the_satellites_clock(sky: str, tmp_path: Path) -> None:
    csv, folder = str(tmp_path / "berlin.csv"), tmp_path / "defs"
    skymem("schedule", *SCHEDULE, "-o", csv)
    result = skymem("tables", sky, csv, "-o", str(folder), "--satellite", "1,2")
    rows = int(result.stdout.split("; ")[1].split()[0])
    assert rows > 1
    text = (folder / "tables/kvc_schedule1.c").read_text()
    assert f".TotalRows = {rows}," in text
    assert ".EpochS    = 1479222000u," in text  # 2026-11-20T15:00:00 since 1980-01-06
    skymem("tables", sky, csv, "-o", str(folder), "--satellite", "1,2", "--clock-epoch", "1980-01-05T23:59:42Z")
    assert ".EpochS    = 1479222018u," in (folder / "tables/kvc_schedule1.c").read_text()
    first = Schedule.load(csv).track.centre(1)
    assert first != (1, 2)
    told = f"{csv} begins at {first}, cache.centre is [1, 2]: until the schedule begins, only hosts with cache.centre = {first}"
    assert told in result.stderr
    skymem("tables", sky, "-o", str(folder), "--satellite", "1,2")  # without it the old rows are gone
    assert ".TotalRows = 0," in (folder / "tables/kvc_schedule1.c").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--satellite", "3,1"), "--satellite 3,1 is PLANE,SLOT: planes are 1 to 2, slots 1 to 3"),
        (("--satellite", "1,1", "--satellite", "1,1"), "--satellite 1,1 appears twice; allowed is once"),
        (("--satellite", "one"), "'one' is not PLANE,SLOT: two whole numbers with a comma between them"),
        (("--clock-epoch", "soon"), "--clock-epoch is soon; allowed are times such as 1980-01-06T00:00:00Z, from 1970 to 2099"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], told: str, sky: str, tmp_path: Path) -> None:
    result = skymem("tables", sky, "-o", str(tmp_path / "defs"), *words, status=2)
    assert told in result.output
    assert result.output.count("\n") == 1
    assert not (tmp_path / "defs").exists()


def test_a_schedule_for_another_sky_is_refused(tmp_path: Path) -> None:
    paper, csv = tmp_path / "paper.toml", str(tmp_path / "berlin.csv")
    paper.write_text("")
    skymem("schedule", *SCHEDULE, "-o", csv)
    result = skymem("tables", str(paper), csv, "-o", str(tmp_path / "defs"), status=2)
    assert "berlin.csv is for 2 planes x 3 slots; the constellation has 5 planes x 19 slots" in result.output


KEYS = ("isl_keys", "isl_peers1", "isl_peers2", "isl_peers3", "isl_peers4")


@pytest.fixture
def keys(sky: str, tmp_path: Path) -> Path:
    """Folder of the keys that the constellation file names."""
    folder = tmp_path / "keys"
    skymem("keys", "new", str(folder), "--planes", "2", "--slots", "3")
    Path(sky).write_text(f'{SKY}\n[security]\nkeyring = "keys/mission.json"\n')
    return folder


def told_masters(folder: Path) -> list[str]:
    """Generations of the master keys of cpu1."""
    return re.findall(r"\.Generation = (\d+), \.Key", (folder / "cpu1/tables/isl_keys.c").read_text())


def test_keys_come_in_files_for_their_owner(sky: str, keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "defs"
    result = skymem("tables", sky, "-o", str(folder), "--satellite", "2,3", "--satellite", "1,2")
    assert result.output.endswith("no schedule; with their keys\n")
    secret = {f"cpu{number}/tables/{name}.c" for number in (1, 2) for name in KEYS}
    assert files(folder) == COMMON | own(1, 2) | secret
    assert {(folder / name).stat().st_mode & 0o777 for name in secret} == {0o600}
    assert told_masters(folder) == ["1"]
    found = read_satellite_keys(keys / "generation-1/satellites/2-3.key")
    text = (folder / "cpu1/tables/isl_keys.c").read_text()
    assert ", ".join(f"0x{byte:02X}" for byte in found.master_key) in text
    # A folder of key files gives the same.
    Path(sky).write_text(f'{SKY}\n[security]\nkeyring = "keys/generation-1/satellites"\n')
    skymem("tables", sky, "-o", str(tmp_path / "again"), "--satellite", "2,3")
    assert (tmp_path / "again/cpu1/tables/isl_keys.c").read_text() == text


def test_the_generation_before_stays_valid_on_request(sky: str, keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "defs"
    refused = skymem("tables", sky, "-o", str(folder), "--previous-keys", status=2)
    assert "has no generation before the newest; allowed is a mission's keyring after a rotation" in refused.output
    assert not folder.exists()
    skymem("keys", "rotate", str(keys))
    skymem("tables", sky, "-o", str(folder), "--previous-keys")
    assert told_masters(folder) == ["1", "2"]
    skymem("tables", sky, "-o", str(folder))
    assert told_masters(folder) == ["2"]


def test_a_keyring_without_satellites_keys_is_refused(sky: str, keys: Path, tmp_path: Path) -> None:
    Path(sky).write_text(f'{SKY}\n[security]\nkeyring = "keys/generation-1/hosts/host.json"\n')
    refused = skymem("tables", sky, "-o", str(tmp_path / "defs"), status=2)
    assert "is the keyring of host host, which has no satellite's keys; allowed are the mission's keyring" in refused.output
    Path(sky).write_text(SKY)
    refused = skymem("tables", sky, "-o", str(tmp_path / "defs"), "--previous-keys", status=2)
    assert "--previous-keys needs a keyring, and security.keyring names none" in refused.output
