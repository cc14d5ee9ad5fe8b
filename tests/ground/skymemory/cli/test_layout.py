"""`skymem layout`, from the outside."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.sky.constellation import Constellation

PAPER = (
    "--layout", "rotation_hop", "--servers", "25", "--parity", "0",
    "--planes", "5", "--slots", "19", "--centre", "3,4", "--rotations", "2",
)  # fmt: skip


def skymem(*words: str, columns: int = 200) -> Result:
    return CliRunner().invoke(main, ["layout", *words], env={"COLUMNS": str(columns)})


def grid(output: str) -> list[list[str]]:
    """The words of the lines that begin with a number or the heading."""
    lines = [line.split() for line in output.splitlines()]
    return [words for words in lines if words and (words[0] == "plane" or words[0].isdigit())]


def test_the_grid() -> None:
    result = skymem(*PAPER)
    assert result.exit_code == 0, result.output
    head, *planes = grid(result.output)
    assert head == ["plane", "↓", *map(str, range(1, 20))]
    empty = ["·"] * 14
    assert planes == [
        ["1", "22", "23", "15", "6", *empty, "*14"],
        ["2", "16", "17", "8", "2", *empty, "*7"],
        ["3", "9", "(13)", "5", "1", *empty, "*3"],
        ["4", "18", "21", "12", "4", *empty, "*10"],
        ["5", "24", "25", "20", "11", *empty, "*19"],
    ]
    assert "(n) centre: plane 3, slot 2; *n moved in the last rotation" in result.output
    assert "The last rotation moved servers 3, 7, 10, 14, 19 from slot 5 to slot 19." in result.output


def test_a_narrow_terminal_shows_the_slots_in_turns() -> None:
    result = skymem(*PAPER, columns=50)
    assert max(len(line) for line in result.output.splitlines() if "·" in line) <= 50
    heads = [words[2:] for words in grid(result.output) if words[0] == "plane"]
    assert len(heads) > 1
    assert [slot for head in heads for slot in head] == [str(slot) for slot in range(1, 20)]


def test_json() -> None:
    report = json.loads(skymem(*PAPER, "--json").output)
    assert report["centre"] == [3, 2]
    assert len(report["servers"]) == 25
    assert report["servers"][0] == {"server": 1, "satellite": [3, 4], "moved_from": None, "parity": False}
    assert report["servers"][2] == {"server": 3, "satellite": [3, 19], "moved_from": [3, 5], "parity": False}


def test_csv(tmp_path: Path) -> None:
    lines = skymem(*PAPER, "-o", "-").output.splitlines()
    assert lines[0] == "server,plane,slot,hops_from_centre,from_plane,from_slot,parity"
    assert (lines[1], lines[3], len(lines)) == ("1,3,4,2,,,0", "3,3,19,2,3,5,0", 26)
    assert skymem(*PAPER, "-o", str(tmp_path / "grid.csv")).exit_code == 0
    assert (tmp_path / "grid.csv").read_text().splitlines() == lines


CODED = ("--layout", "all_planes", "--servers", "20", "--parity", "4")


def test_the_default_is_that_of_a_constellation() -> None:
    cache = Constellation().cache
    report = json.loads(skymem("--json").output)
    assert (len(report["servers"]), report["parity"], report["layout"]) == (cache.servers, cache.parity, cache.layout)
    assert "2 of parity" in skymem().output


def test_servers_with_parity_are_marked() -> None:
    output = skymem(*CODED).output
    _, *planes = grid(output)
    assert [[word for word in words[1:] if word != "·"] for words in planes] == [
        ["19p", "14", "6", "13"],
        ["15", "8", "2", "7"],
        ["12", "5", "(1)", "3"],
        ["18p", "11", "4", "9"],
        ["20p", "17p", "10", "16"],
    ]
    assert "(n) centre: plane 3, slot 10; np parity" in output
    assert "Any plane may be lost." in output
    report = json.loads(skymem(*CODED, "--json").output)
    assert report["parity"] == 4
    assert [one["server"] for one in report["servers"] if one["parity"]] == [17, 18, 19, 20]
    lines = skymem(*CODED, "-o", "-").output.splitlines()
    assert [line.rsplit(",", 1)[1] for line in lines[1:]] == ["0"] * 16 + ["1"] * 4


def test_comparison() -> None:
    result = skymem("--compare", "--servers", "20", "--parity", "4")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.output.splitlines()[2:]] == [
        ["rotation", "5", "4", "4", "0", "1", "2.20", "4", "4", "5"],
        ["hop", "6", "5", "4", "0", "0", "2.05", "3", "0", "0"],
        ["rotation_hop", "5", "4", "4", "0", "1", "2.20", "4", "4", "5"],
        ["all_planes", "4", "5", "4", "1", "0", "2.20", "4", "5", "0"],
    ]
    report = json.loads(skymem("--compare", "--servers", "20", "--parity", "4", "--json").output)["layouts"]
    assert [one["layout"] for one in report] == ["rotation", "hop", "rotation_hop", "all_planes"]
    assert report[3]["tolerated"] == {"satellites": 4, "planes": 1, "slots": 0}


def test_a_full_turn() -> None:
    first, turned = (skymem("--servers", "25", "--rotations", rotations).output for rotations in ("0", "95"))
    assert grid(turned) == grid(first)
    assert "A full turn: after 95 rotations every server is where it was." in turned
    assert "moved in the last rotation" not in turned


def test_published() -> None:
    result = skymem("--published", "--servers", "10")
    assert "Server 10 is on no satellite at all." in result.output
    assert json.loads(skymem("--published", "--json").output)["parity"] == 0
    outside = skymem("--published", "--layout", "hop", "--servers", "9", "--centre", "3,1")
    assert "Servers 5, 8 are outside the grid" in outside.output


@pytest.mark.parametrize("words", [PAPER, CODED, ("--published", "--layout", "hop", "--servers", "9", "--centre", "3,1")])
def test_pictures(words: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    for name, start in (("grid.png", b"\x89PNG"), ("grid.svg", b"<?xml"), ("grid.pdf", b"%PDF")):
        result = skymem(*words, "-o", str(tmp_path / name))
        assert (result.exit_code, result.output) == (0, f"{tmp_path / name}\n")
        assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--servers", "96"), "--servers 96: there are 95 satellites (5 planes x 19 slots)"),
        (
            ("--servers", "1025", "--parity", "0", "--planes", "60", "--slots", "60"),
            "--servers 1025: satellites have room for 1,024",
        ),
        (("--servers", "0"), "Invalid value for '--servers': 0 is not in the range x>=1"),
        (("--centre", "3,20"), "--centre 3,20 is PLANE,SLOT: planes are 1 to 5, slots 1 to 19"),
        (("--centre", "0,4"), "--centre 0,4 is PLANE,SLOT: planes are 1 to 5, slots 1 to 19"),
        (("--centre", "four"), "Invalid value for '--centre': 'four' is not PLANE,SLOT"),
        (("--layout", "rings"), "Invalid value for '--layout': 'rings' is not one of 'rotation', 'hop', "),
        (("--parity", "12"), "--parity 12: allowed are 0 to 11 (--servers - 1)"),
        (("--servers", "2"), "--parity 2: allowed are 0 to 1 (--servers - 1)"),
        (("--servers", "256", "--slots", "60"), "--servers 256 with --parity 2: allowed are 3 to 255, or --parity 0"),
        (
            ("--published", "--layout", "all_planes"),
            "--published has no --layout all_planes; allowed are rotation, hop, rotation_hop",
        ),
        (("--published", "--parity", "2"), "--published and --parity; allowed is one of them"),
        (("--compare", "--published"), "--compare prints a table of all layouts; --published and --output are for a grid"),
        (("--compare", "-o", "a.svg"), "--compare prints a table of all layouts; --published and --output are for a grid"),
        (("--rotations", "-1"), "Invalid value for '--rotations': -1 is not in the range x>=0"),
        (("--slots", "0"), "Invalid value for '--slots': 0 is not in the range 1<=x<=200"),
        (("-o", "nowhere/grid.png"), "--output is nowhere/grid.png; there is no folder nowhere\n"),
        (("-o", "grid.gif"), "--output is grid.gif; allowed are -, and names that end in .png, .svg, .pdf or .csv"),
        (("-o", "grid"), "--output is grid; allowed are -, and names that end in .png, .svg, .pdf or .csv"),
        (("--bare",), "--bare and --width are for pictures; --output names none"),
        (("--width", "3.5", "-o", "a.png"), "Invalid value for '--width': '3.5' is not a width with its unit; "),
        (("--width", "9mm", "-o", "a.png"), "Invalid value for '--width': '9mm' is 0.354331 in; allowed are 2 to 40 in"),
        (("-o", "-", "--json"), "-o - prints CSV and --json prints JSON; allowed is one of them"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    result = skymem(*words)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {said}")
    assert result.output.count("\n") == 1
