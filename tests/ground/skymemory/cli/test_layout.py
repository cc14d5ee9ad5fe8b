"""`skymem layout`, from the outside."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main

PAPER = ("--strategy", "hop_rotation", "--servers", "25", "--sats", "19", "--planes", "5", "--center", "4,3", "--rotations", "2")


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
    assert head == ["plane", *map(str, range(1, 20))]
    empty = ["·"] * 14
    assert planes == [
        ["1", "22", "23", "15", "6", *empty, "*14"],
        ["2", "16", "17", "8", "2", *empty, "*7"],
        ["3", "9", "(13)", "5", "1", *empty, "*3"],
        ["4", "18", "21", "12", "4", *empty, "*10"],
        ["5", "24", "25", "20", "11", *empty, "*19"],
    ]
    assert "(n) centre: slot 2 of plane 3; *n moved in the last rotation" in result.output
    assert "The last rotation moved servers 3, 7, 10, 14, 19 from slot 5 to slot 19." in result.output


def test_a_narrow_terminal_shows_the_slots_in_turns() -> None:
    result = skymem(*PAPER, columns=50)
    assert max(len(line) for line in result.output.splitlines() if "·" in line) <= 50
    heads = [words[1:] for words in grid(result.output) if words[0] == "plane"]
    assert len(heads) > 1
    assert [slot for head in heads for slot in head] == [str(slot) for slot in range(1, 20)]


def test_json() -> None:
    report = json.loads(skymem(*PAPER, "--json").output)
    assert report["centre"] == [3, 2]
    assert len(report["servers"]) == 25
    assert report["servers"][0] == {"server": 1, "satellite": [3, 4], "moved_from": None}
    assert report["servers"][2] == {"server": 3, "satellite": [3, 19], "moved_from": [3, 5]}


def test_a_full_turn() -> None:
    first, turned = (skymem("--servers", "25", "--rotations", rotations).output for rotations in ("0", "95"))
    assert grid(turned) == grid(first)
    assert "A full turn: after 95 rotations every server is where it was." in turned
    assert "moved in the last rotation" not in turned


def test_published() -> None:
    result = skymem("--published")
    assert "Server 10 is on no satellite at all." in result.output
    outside = skymem("--published", "--strategy", "hop", "--servers", "9", "--center", "1,3")
    assert "Servers 5, 8 are outside the grid" in outside.output


@pytest.mark.parametrize("words", [PAPER, ("--published", "--strategy", "hop", "--servers", "9", "--center", "1,3")])
def test_pictures(words: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `figures`")
    for name, start in (("grid.png", b"\x89PNG"), ("grid.svg", b"<?xml")):
        result = skymem(*words, "-o", str(tmp_path / name))
        assert (result.exit_code, result.output) == (0, f"{tmp_path / name}\n")
        assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--servers", "96"), "--servers 96: there are 95 satellites (5 planes x 19 slots)"),
        (("--servers", "0"), "Invalid value for '--servers': 0 is not in the range x>=1"),
        (("--center", "20,3"), "--center 20,3 is SLOT,PLANE: slots are 1 to 19, planes 1 to 5"),
        (("--center", "4,0"), "--center 4,0 is SLOT,PLANE: slots are 1 to 19, planes 1 to 5"),
        (("--center", "four"), "Invalid value for '--center': 'four' is not SLOT,PLANE"),
        (("--strategy", "rings"), "Invalid value for '--strategy': 'rings' is not one of 'rotation', 'hop', 'hop_rotation'"),
        (("--rotations", "-1"), "Invalid value for '--rotations': -1 is not in the range x>=0"),
        (("--sats", "0"), "Invalid value for '--sats': 0 is not in the range 1<=x<=200"),
        (("-o", "nowhere/grid.png"), "--output nowhere/grid.png: there is no folder nowhere\n"),
        (("-o", "grid.pdf"), "--output grid.pdf: the name must end in .png or .svg"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    result = skymem(*words)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {said}")
    assert result.output.count("\n") == 1
