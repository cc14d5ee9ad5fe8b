"""`skymem simulate`, from the outside."""

import csv
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.simulate.table import SWEEP, rows


def skymem(*words: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *words])


@pytest.mark.parametrize("published", [False, True])
def test_table(published: bool) -> None:
    options = ["--published"] if published else []
    result = skymem("--table", "--json", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == [row._asdict() for row in rows(published=published)]
    assert list(json.loads(result.output)[0]) == ["strategy", "parameter", "value", "max_s", "min_s", "mean_s", "std_s"]
    shown = skymem("--table", *options).output
    assert "132 rows in" in shown
    assert ("as published" if published else "corrected") in shown


def test_table_in_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = skymem("--table").output.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 2 + len(rows())
    assert "CHUNK_PROCESSING_TIME" in "".join(lines)
    assert "22,020,096" in "".join(lines)


def test_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rows()[:2]
    monkeypatch.setattr("skymemory.cli.simulate.rows", lambda **_: first)
    result = skymem("--table", "--packets", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert [{name: row[name] for name in first[0]._fields} for row in found] == [row._asdict() for row in first]
    assert all(row["max_s"] < row["measured_get_s"] == row["measured_put_s"] < 2 * row["max_s"] for row in found)
    assert "measured_put_s" in skymem("--table", "--packets").output


def test_figure_16_as_packets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    ends = [row for row in rows() if row.value in (SWEEP[row.parameter][0], SWEEP[row.parameter][-1])]
    monkeypatch.setattr("skymemory.cli.simulate.rows", lambda: ends)
    result = skymem("--figure", "16", "--packets", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    names = [Path(line).name for line in result.output.splitlines()]
    assert names == ["figure-16-packets.png", "figure-16-packets.svg", "figure-16-packets.csv"]
    with (tmp_path / "figure-16-packets.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["max_s"]) for line in lines] == [row.max_s for row in ends]
    assert all(float(line["measured_get_s"]) > float(line["max_s"]) for line in lines)
    text = (tmp_path / "figure-16-packets.svg").read_text(encoding="utf-8")
    for part in ("rotation-aware, as packets", "9 to 69 ms longer"):
        assert part in text


def test_figures_are_png_svg_and_csv(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    for words, name in ((("--figure", "16"), "figure-16"), (("--figure", "14", "--published"), "figure-14-published")):
        result = skymem(*words, "-o", str(tmp_path / "new" / "figures"), "--json")
        assert result.exit_code == 0, result.output
        files = [Path(file) for file in json.loads(result.output)["files"]]
        assert [file.name for file in files] == [f"{name}.png", f"{name}.svg", f"{name}.csv"]
        assert all(file.stat().st_size > 1000 for file in files)
    with (tmp_path / "new" / "figures" / "figure-16.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 132
    assert float(lines[0]["max_s"]) == rows()[0].max_s


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as Python has it for what cannot be imported
    result = skymem("--figure", "1", "-o", str(tmp_path))
    told = "Error: matplotlib is not installed; in the checkout of SkyMemory run: pip install '.[figures]'\n"
    assert (result.exit_code, result.output) == (1, told)
    assert list(tmp_path.iterdir()) == []
    assert skymem("--table").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "one of --figure 1|2|13|14|15|16 and --table is needed, and one only"),
        (("--figure", "1", "--table"), "one of --figure 1|2|13|14|15|16 and --table is needed, and one only"),
        (("--figure", "3"), "Invalid value for '--figure': '3' is not one of '1', '2', '13', '14', '15', '16'"),
        (("--figure", "14", "--packets"), "--packets is for figure 16 and the table behind it, not for figure 14"),
        (("--table", "--packets", "--published"), "--packets runs the corrected mappings"),
        (("--table", "-o", "figures"), "--output is the folder of a figure; --table prints"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    result = skymem(*words)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {said}")
    assert result.output.count("\n") == 1
