"""The guard on speed: what it measures, what counts as slower, and what it says when there is nothing to compare with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import bench_compare
from bench_compare import PARTS, BuildError, Row, Side, base_name, install, judged, medians, present, slower, table

ROOT: Final = Path(__file__).parents[2]
TOOL: Final = ROOT / "tools" / "bench_compare.py"


def row(operation: str, base_ms: float, present_ms: float) -> Row:
    """Return a row of which half the processor time is the satellites'."""
    parts = [{"cpu": ms, "host": ms / 2, "satellites": ms / 2, "wall": 2 * ms} for ms in (base_ms, present_ms)]
    return Row(operation, *parts)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, timeout=300, check=False)


def test_a_median_is_that_of_all_rounds() -> None:
    samples = [{"host": host, "satellites": 1.0, "wall": 9.0} for host in (1.0, 100.0, 2.0, 3.0, 1.5)]
    assert medians(samples) == {"cpu": 3.0, "host": 2.0, "satellites": 1.0, "wall": 9.0}


def test_host_and_satellites_count_together() -> None:
    """What one saves and the other spends has not grown."""
    moved = Row("PUT", {"cpu": 4.0, "host": 3.0, "satellites": 1.0}, {"cpu": 4.0, "host": 1.0, "satellites": 3.0})
    assert slower([moved], 10) == set()


@pytest.mark.parametrize(("now_ms", "is_slower"), [(1.0, False), (4.4, False), (4.41, True), (9.0, True)])
def test_only_more_than_the_bound_is_slower(now_ms: float, is_slower: bool) -> None:
    assert slower([row("PUT", 4.0, now_ms), row("GET", 4.0, 4.0)], 10.000001) == ({"PUT"} if is_slower else set())


def test_what_is_not_slower_is_measured_once() -> None:
    measured: list[int] = []
    told: list[str] = []

    def measure() -> list[Row]:
        measured.append(1)
        return [row("PUT", 4.0, 4.2)]

    assert judged(measure, 10, told.append) == ([row("PUT", 4.0, 4.2)], set())
    assert (len(measured), told) == (1, [])


def test_slower_is_what_was_slower_twice() -> None:
    runs = [
        [row("PUT", 4.0, 5.0), row("GET", 4.0, 5.0), row("SET", 4.0, 4.0)],
        [row("PUT", 4.0, 4.0), row("GET", 4.0, 6.0), row("SET", 4.0, 6.0)],
    ]
    second, told = runs[1], list[str]()
    assert judged(lambda: runs.pop(0), 10, told.append) == (second, {"GET"})
    assert told == ["slower: GET, PUT; a second measurement"]


def test_the_table_has_both_builds_and_how_much_more() -> None:
    lines = table([row("PUT 2.9 MB", 4.0, 5.0), row("GET", 4.0, 3.0)], "0123456789abcdef").splitlines()
    assert lines[2].split() == [
        "PUT",
        "2.9",
        "MB",
        "4.000",
        "5.000",
        "+25.0",
        "%",
        "2.000",
        "2.500",
        "2.000",
        "2.500",
        "8.000",
        "10.000",
    ]
    assert "-25.0 %" in lines[3]
    assert "0123456789ab" in lines[1]
    assert "0123456789abc" not in lines[1]


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--bound", "-1"], ["--bound", "nan"], ["--rounds", "x"], ["--what"]])
def test_a_wrong_argument_is_refused_in_one_line(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert "error:" in done.stderr.splitlines()[-1]


def test_the_file_names_the_base_behind_its_comments(tmp_path: Path) -> None:
    file = tmp_path / "base"
    file.write_text("# why\n\nv0.2.0\n# more\n")
    assert base_name(file) == "v0.2.0"


@pytest.mark.parametrize("text", [None, "", "# nothing\n"])
def test_a_file_that_names_no_base_is_told(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "base"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BuildError, match="names no commit"):
        base_name(file)


def test_a_named_base_that_is_not_there_is_a_failure() -> None:
    done = run("--base", "0123456789012345678901234567890123456789")
    assert done.returncode == 125  # git bisect skips it
    [line] = done.stderr.splitlines()
    assert "is no commit of this repository" in line


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 125)])
def test_a_default_base_that_is_not_there_fails_in_ci_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ci: str, status: int
) -> None:
    monkeypatch.setenv("CI", ci)
    file = tmp_path / "base"
    file.write_text("0123456789012345678901234567890123456789\n")
    assert bench_compare.main(["--rounds", "1"], file) == status
    [line] = capsys.readouterr().err.splitlines()
    assert "nothing to compare with" in line


def test_a_tree_that_cannot_be_built_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = []\nbuild-backend = 'absent'\n")
    with pytest.raises(BuildError, match=r"it cannot be built: .*absent") as error:
        install(tmp_path, tmp_path / "packages")
    assert "\n" not in str(error.value)


def test_a_side_that_ends_says_why(tmp_path: Path) -> None:
    build = bench_compare.Build("other", tmp_path, tmp_path / "skymem")
    side = Side(build, tmp_path / "log")
    try:
        with pytest.raises(bench_compare.BenchError, match=r"other ended: .*not from"):
            side.answer()
    finally:
        side.end()


def test_the_present_build_runs_each_operation() -> None:
    """Measure it beside itself, in one round: all parts of all operations are there, and the table has them."""
    told: list[tuple[int, int]] = []
    rows = bench_compare.measure(present(), present(), 1, lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    assert [one.operation for one in rows] == [
        "PUT 2.9 MB", "GET 2.9 MB", "PUT 2.9 MB, parity", "GET 2.9 MB, parity",
        "SET 3 B, gateway", "GET 3 B, gateway", "look-up of 100 blocks",
    ]  # fmt: skip
    for one in rows:
        for build in (one.base, one.present):
            assert all(build[part] > 0 for part in PARTS), one
            assert build["cpu"] == pytest.approx(build["host"] + build["satellites"])
    assert len(table(rows, "base").splitlines()) == len(rows) + 2
    assert json.loads(json.dumps([one.told() for one in rows]))[0]["operation"] == "PUT 2.9 MB"
