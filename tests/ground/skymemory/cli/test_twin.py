"""`skymem twin`, from the outside."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.twin import seeds, single_run
from skymemory.twin.structures import Break
from support.elements import shell


@pytest.fixture(scope="session")
def berlin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("twin") / "berlin.csv"
    seeds.schedule().save(path)
    return path


def skymem(folder: Path, *words: str, status: int = 0) -> Result:
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(main, ["twin", *words], prog_name="skymem")
    finally:
        os.chdir(before)
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


def test_an_hour_with_faults(tmp_path: Path, berlin: Path) -> None:
    (tmp_path / "faults.toml").write_text("[[loss]]\nrate = 0.01\n[[crash]]\nper_hour = 5\n")
    words = (str(berlin), "--seed", "7", "--faults", "faults.toml", "--hours", "1")
    told = skymem(tmp_path, *words).stdout
    for row in ("virtual time", "events", "gets", "misses", "handovers", "migrated", "faults", "violations", "digest"):
        assert any(line.strip().startswith(row) for line in told.splitlines())
    report = json.loads(skymem(tmp_path, *words, "--json").stdout)
    assert report["digest"] in told
    assert report["seed"] == 7
    assert report["faults"]["loss"] > 100
    assert sum(report["violations"].values()) == 0
    assert report["hits"] + sum(report["misses"].values()) == report["gets"]
    assert report["replay"] == f"skymem twin {berlin} --seed 7 --faults faults.toml --hours 1.0"


def test_an_attacker(tmp_path: Path, berlin: Path) -> None:
    """Faults with an attack give satellites and hosts keys, so that there is something to attack."""
    (tmp_path / "faults.toml").write_text("[[attack]]\nrate = 0.01\n[[crash]]\nper_hour = 20\n")
    words = (str(berlin), "--seed", "7", "--faults", "faults.toml", "--hours", "0.5")
    told = {
        name.strip(): value.strip()
        for name, _, value in (line.strip().partition("  ") for line in skymem(tmp_path, *words).stdout.splitlines())
    }
    assert re.fullmatch(r"[\d,]+ have sealed [\d,]+ packets", told["keys"])
    assert re.match(r"drop [\d,]+, hold [\d,]+, replay [\d,]+", told["attacks"])
    assert re.match(r"unauthenticated [\d,]+, ", told["in vain because"])
    assert told["violations"] == "0"
    report = json.loads(skymem(tmp_path, *words, "--json").stdout)
    assert report["attacks"].keys() == {"drop", "hold", "replay", "spoof", "alter", "strip", "forge", "answer", "reboot"}
    assert report["refusals"]["replayed"] > 0
    assert report["commands"] > 0
    assert (report["violations"]["authentic"], report["violations"]["nonce"]) == (0, 0)


def test_two_runs_of_one_seed_print_the_same_byte_for_byte(tmp_path: Path, berlin: Path) -> None:
    for words in ((str(berlin), "--seed", "3", "--hours", "0.1"), ("--seeds", "2", "--seed", "40", "--json")):
        first, again = (skymem(tmp_path, *words) for _ in range(2))
        assert first.stdout == again.stdout
        assert re.fullmatch(r"[\d,]+ events in [\d,.]+ s, [\d,]+ a second\n", first.stderr)


def test_a_sky_of_two_line_elements(tmp_path: Path) -> None:
    lines = shell(6, 11, spread_deg=360)
    (tmp_path / "sky.tle").write_text("\n".join(lines[:26] + lines[28:]))
    files = ["--tle", str(tmp_path / "sky.tle"), "-o", str(tmp_path / "sky.csv")]
    assert CliRunner().invoke(main, ["schedule", *files, "--site", "52.5,13.4", "--hours", "1"]).exit_code == 0
    result = skymem(tmp_path, "sky.csv", "--json")
    report = json.loads(result.stdout)
    assert report["gets"] > 200
    assert report["handovers"] > 3
    assert sum(report["violations"].values()) == 0
    assert "1 of 66 places have no satellite; in the twin one flies there" in result.stderr


def test_the_constellation_file_of_the_folder_counts(tmp_path: Path, berlin: Path) -> None:
    plain = json.loads(skymem(tmp_path, str(berlin), "--hours", "0.2", "--json").stdout)
    (tmp_path / "constellation.toml").write_text("[cache]\nservers = 5\n")
    assert json.loads(skymem(tmp_path, str(berlin), "--hours", "0.2", "--json").stdout)["digest"] != plain["digest"]


def test_some_seeds(tmp_path: Path) -> None:
    told = skymem(tmp_path, "--seeds", "2", "--seed", "10").stdout
    assert "seeds" in told
    report = json.loads(skymem(tmp_path, "--seeds", "2", "--seed", "10", "--json").stdout)
    assert (report["seeds"], report["seed"], report["failed"], report["replay"]) == (2, 10, [], [])
    assert report["digest"] in told


def test_seeds_that_lose_what_parity_bears(tmp_path: Path) -> None:
    report = json.loads(skymem(tmp_path, "--seeds", "2", "--seed", "10", "--lost", "--json").stdout)
    assert report["faults"]["crash"] >= 2
    assert (set(report["misses"]) - {"cancelled"}, report["failed"]) == (set(), [])  # what a host calls back is not lost


def test_a_violation_ends_with_the_command_that_replays_it(tmp_path: Path, berlin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_the_core(monkeypatch, Break.FLIP)
    result = skymem(tmp_path, str(berlin), "--seed", "3", "--hours", "0.1", status=1)
    assert "exact: a chunk is not what was put" in result.stderr
    assert result.stderr.splitlines()[-1].endswith(f"violations; this replays them: skymem twin {berlin} --seed 3 --hours 0.1")
    result = skymem(tmp_path, "--seeds", "1", "--seed", "5", status=1)
    assert "seed 5: at " in result.stderr
    assert "; this replays it: skymem twin --seeds 1 --seed 5" in result.stderr
    assert result.stderr.splitlines()[-1] == "Error: 1 of 1 seeds violate what must always hold"
    result = skymem(tmp_path, "--seeds", "1", "--seed", "5", "--lost", status=1)
    assert "; this replays it: skymem twin --seeds 1 --seed 5 --lost" in result.stderr


def break_the_core(monkeypatch: pytest.MonkeyPatch, how: Break) -> None:
    """Let all twins run a broken core, which no option of the command does."""
    plain = single_run.Twin.__init__

    def broken(self: single_run.Twin, setup: single_run.Setup, seed: int, faults: object = None, _: object = None) -> None:
        plain(self, setup, seed, None, how)

    monkeypatch.setattr(single_run.Twin, "__init__", broken)


def test_a_run_stops_at_the_first_violations(tmp_path: Path, berlin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_the_core(monkeypatch, Break.FLIP)
    words = (str(berlin), "--seed", "3", "--hours", "0.1")
    for most, option in ((10, ()), (3, ("--violations-max", "3"))):
        result = skymem(tmp_path, *words, *option, status=1)
        lines = result.stderr.splitlines()
        assert sum("exact: a chunk is not what was put" in line for line in lines) == most
        assert re.fullmatch(rf"stopped at [\d.,]+ s of virtual time: the first {most} violations", lines[-2])
        assert lines[-1].startswith(f"Error: {most} violations; this replays them: skymem twin ")
        assert lines[-1].endswith(" ".join(["--hours", "0.1", *option]))
        assert re.search(r"stopped +violations", result.stdout)
    report = json.loads(skymem(tmp_path, *words, "--violations-max", "0", "--json", status=1).stdout)
    assert sum(report["violations"].values()) > 10
    assert report["stopped"] == ""
    report = json.loads(skymem(tmp_path, *words, "--json", status=1).stdout)
    assert (sum(report["violations"].values()), report["stopped"]) == (10, "violations")


@pytest.mark.parametrize("how", [Break.SPIN, Break.BABBLE])
def test_a_livelock_stops_the_run_and_is_named(tmp_path: Path, berlin: Path, monkeypatch: pytest.MonkeyPatch, how: Break) -> None:
    break_the_core(monkeypatch, how)
    result = skymem(tmp_path, str(berlin), "--seed", "3", "--hours", "0.1", "--violations-max", "0", status=1)
    assert "livelock: " in result.stderr
    assert "steps since an operation last began or ended; most packets now are " in result.stderr
    assert result.stderr.splitlines()[-2].endswith(" s of virtual time: a livelock")
    assert "this replays them: skymem twin " in result.stderr.splitlines()[-1]
    words = ("--seeds", "1", "--seed", "5", "--violations-max", "0")
    result = skymem(tmp_path, *words, "--json", status=1)
    report = json.loads(result.stdout)
    assert report["stopped"] == {"livelock": 1}
    assert report["violations"]["livelock"] == 1
    (failed,) = report["failed"]
    assert (failed["seed"], failed["stopped"]) == (5, "livelock")
    assert ": livelock: " in failed["first"]
    assert report["replay"] == ["skymem twin --seeds 1 --seed 5 --violations-max 0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "what to run: allowed is one of SCHEDULE and --seeds"),
        (("berlin.csv", "--seeds", "5"), "what to run: allowed is one of SCHEDULE and --seeds"),
        (("--seeds", "0"), "--seeds is 0; allowed are 1 to 1000000"),
        (("--seeds", "5", "--seed", "-1"), "--seed is -1; allowed are 0 to 9223372036854775807"),
        (
            ("--seeds", "5", "--hours", "1"),
            "--faults, --hours and --constellation go with a schedule; --seeds has its own",
        ),
        (("berlin.csv", "--lost"), "--lost goes with --seeds; with a schedule --faults has what is lost"),
        (("--seeds", "5", "--violations-max", "-1"), "--violations-max is -1; allowed are 0 to 1000000"),
        (("--seeds", "5", "--from", "1"), "No such option '--from'; see `skymem twin --help`"),
        (("berlin.csv", "--seed", "-1"), "--seed is -1; allowed are 0 to 9223372036854775807"),
        (("berlin.csv", "--hours", "0"), "--hours is 0; allowed are more than 0, up to 24, the schedule's"),
        (("berlin.csv", "--hours", "25"), "--hours is 25; allowed are more than 0, up to 24, the schedule's"),
        (("berlin.csv", "--hours", "nan"), "--hours is nan; allowed are more than 0, up to 24, the schedule's"),
        (("berlin.csv", "--constellation", "other.toml"), "berlin.csv: the schedule is for 5 planes x 19 slots, the "),
        (
            ("berlin.csv", "--constellation", "many.toml"),
            "many.toml:2: cache.servers is 96; allowed are 1 to 95 (planes x slots)",
        ),
        (("berlin.csv", "--faults", "bad.toml"), "bad.toml:2: loss.rate is 2; allowed are numbers from 0 to 1"),
        (("berlin.csv", "--faults", "none.toml"), "none.toml: No such file or directory"),
        (("other.toml",), "other.toml: "),
        (("none.csv",), "Invalid value for '[SCHEDULE]': File 'none.csv' does not exist; see `skymem twin --help`"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, berlin: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "berlin.csv").write_bytes(berlin.read_bytes())
    (tmp_path / "other.toml").write_text("[constellation]\nplanes = 6\nslots = 4\n[cache]\ncentre = [1, 1]\n")
    (tmp_path / "many.toml").write_text("[cache]\nservers = 96\n")
    (tmp_path / "bad.toml").write_text("[[loss]]\nrate = 2\n")
    result = skymem(tmp_path, *words, status=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_stragglers() -> None:
    words = ["bench", "stragglers", "--gets", "10", "--share", "0.1"]
    report = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert (report["gets"], report["share"], report["delay_ms"]) == (10, 0.1, 80.0)
    told = CliRunner().invoke(main, words).stdout
    assert "10 gets; 10 % of answers 80 ms late" in told
    assert all(way["name"].split()[0] in told for way in report["ways"])
    failed = CliRunner().invoke(main, ["bench", "stragglers", "--gets", "1", "--share", "1", "--delay-ms", "1001"])
    assert failed.exit_code == 2
