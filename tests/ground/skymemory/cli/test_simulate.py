"""`skymem simulate`, from the outside."""

import csv
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.simulate.latencies import PAPER, rows


def skymem(*words: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *words])


@pytest.mark.parametrize("published", [False, True])
def test_table(published: bool) -> None:
    options = ["--published"] if published else []
    result = skymem("--table", "--json", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == [row._asdict() for row in rows(published=published)]
    assert list(json.loads(result.output)[0]) == ["layout", "parameter", "value", "max_s", "min_s", "mean_s", "std_s", "se_s"]
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
    monkeypatch.setattr("skymemory.cli.simulate.rows", lambda *_, **__: first)  # all of them take minutes
    monkeypatch.setenv("COLUMNS", "160")
    result = skymem("--table", "--packets", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert [{name: row[name] for name in first[0]._fields} for row in found] == [row._asdict() for row in first]
    assert all(row["max_s"] < row["measured_get_s"] == row["measured_put_s"] < 2 * row["max_s"] for row in found)
    assert "measured_put_s" in skymem("--table", "--packets").output


def test_figure_16_as_packets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    ends = [row for row in rows() if row.value in (PAPER.values(row.parameter)[0], PAPER.values(row.parameter)[-1])]
    monkeypatch.setattr("skymemory.cli.simulate.rows", lambda *_: ends)  # all of them take minutes
    result = skymem("--figure", "16", "--packets", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    names = [Path(line).name for line in result.output.splitlines()]
    assert names == [f"figure-16-packets.{suffix}" for suffix in ("png", "svg", "pdf", "csv")]
    with (tmp_path / "figure-16-packets.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["max_s"]) for line in lines] == [row.max_s for row in ends]
    assert all(float(line["measured_get_s"]) > float(line["max_s"]) for line in lines)
    text = (tmp_path / "figure-16-packets.svg").read_text(encoding="utf-8")
    for part in ("rotation-aware, as packets", "under a virtual clock"):
        assert part in text


def test_figures_are_png_svg_pdf_and_csv(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    for words, name in ((("--figure", "16"), "figure-16"), (("--figure", "14", "--published"), "figure-14-published")):
        result = skymem(*words, "-o", str(tmp_path / "new" / "figures"), "--json")
        assert result.exit_code == 0, result.output
        files = [Path(file) for file in json.loads(result.output)["files"]]
        assert [file.name for file in files] == [f"{name}.png", f"{name}.svg", f"{name}.pdf", f"{name}.csv"]
        assert all(file.stat().st_size > 1000 for file in files)
        assert "@media (prefers-color-scheme: dark)" in files[1].read_text(encoding="utf-8")
    with (tmp_path / "new" / "figures" / "figure-16.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 132
    assert float(lines[0]["max_s"]) == rows()[0].max_s


TESTBED = ("--planes", "5", "--slots", "19", "--centre", "3,4", "--servers", "10", "--altitude-km", "550")


def test_any_constellation_published_and_corrected() -> None:
    """Of 10 servers the published mapping puts one on no satellite: what the correction is worth shows."""
    corrected, published = (json.loads(skymem("--table", *TESTBED, *words, "--json").output) for words in ((), ("--published",)))
    assert [row["value"] for row in corrected if row["parameter"] == "SERVERS"][:5] == [9, 10, 25, 49, 81]
    assert 550_000 in {row["value"] for row in corrected if row["parameter"] == "ALTITUDE"}
    pairs = [(one, other) for one, other in zip(corrected, published, strict=True) if one != other]
    assert {one["layout"] for one, _ in pairs} == {"rotation", "rotation_hop"}
    nowhere = {(one["parameter"], one["value"]) for one, other in pairs if other["max_s"] is None}
    assert {value for parameter, value in nowhere if parameter == "SERVERS"} == {10, 49}
    assert ("ALTITUDE", 550_000) in nowhere
    assert " - " in skymem("--table", *TESTBED, "--published").output


def test_the_table_as_csv(tmp_path: Path) -> None:
    printed = skymem("--table", *TESTBED, "--published", "-o", "-").output
    lines = list(csv.DictReader(printed.splitlines()))
    assert len(lines) == len(rows()) + 6  # 10 servers and 550 km in three layouts
    assert {line["max_s"] for line in lines if line["layout"] == "rotation_hop" and line["parameter"] == "ALTITUDE"} == {""}
    assert skymem("--table", *TESTBED, "--published", "-o", str(tmp_path / "rows.csv")).exit_code == 0
    assert (tmp_path / "rows.csv").read_text() == printed
    assert skymem("--figure", "16", *TESTBED, "--published", "-o", "-").output == printed


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
        (("--figure", "14", "--packets"), "--packets has no meaning for figure 14; see `skymem simulate --help`"),
        (("--figure", "1", "--servers", "9"), "--servers has no meaning for figure 1; see `skymem simulate --help`"),
        (("--figure", "13", "--altitude-km", "550"), "--altitude-km has no meaning for figure 13; see"),
        (("--table", "--bare"), "--bare has no meaning for --table; see `skymem simulate --help`"),
        (("--table", "--planes", "5", "--centre", "6,1"), "--centre 6,1 is PLANE,SLOT: planes are 1 to 5, slots 1 to 15"),
        (("--table", "--planes", "5", "--servers", "76"), "--servers 76: there are 75 satellites (5 planes x 15 slots)"),
        (("--table", "-o", "-", "--json"), "-o - prints CSV and --json prints JSON; allowed is one of them"),
        (("--table", "--packets", "--published"), "--packets runs the corrected mappings"),
        (("--table", "-o", "rows"), "--output is rows; allowed with --table are a .csv file in a folder that is there, and -"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    result = skymem(*words)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {said}")
    assert result.output.count("\n") == 1
