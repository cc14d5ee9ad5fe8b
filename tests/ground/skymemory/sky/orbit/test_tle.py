"""TLE files: every mistake with its line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.sky.orbit.positions import OrbitError
from skymemory.sky.orbit.tle import read_tle
from support.elements import EPOCH_MS, tle_pair


@pytest.mark.parametrize(("name", "expected"), [(None, "1001"), ("ONEWEB-0012", "ONEWEB-0012"), ("0 ONEWEB-0012", "ONEWEB-0012")])
@pytest.mark.parametrize("end", ["\n", "\r\n", "   \n\n"])
def test_files_with_and_without_names(tmp_path: Path, name: str | None, expected: str, end: str) -> None:
    path = tmp_path / "sky.tle"
    pair = tle_pair(1001, 10, 20)
    path.write_text(end.join([*([name] if name else []), *pair]) + end, newline="")
    ((element,), _) = read_tle(path)
    assert element.name.lstrip("0") == expected
    assert element.satrec.satnum == 1001
    assert element.epoch_ms == EPOCH_MS
    assert element.altitude_km == pytest.approx(1204, abs=2)


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "sky.tle"
    for lines in (tle_pair(1001, 10, 20), ["FIRST", *tle_pair(1001, 10, 20)]):
        path.write_text("\n".join(lines), encoding="utf-8-sig")
        ((element,), _) = read_tle(path)
        assert element.name in {"01001", "FIRST"}


def test_a_wrong_checksum_is_told_with_the_right_one(tmp_path: Path) -> None:
    line = tle_pair(1, 10, 20)[1]
    right = int(line[-1])
    (tmp_path / "sky.tle").write_text("\n".join([tle_pair(1, 10, 20)[0], f"{line[:-1]}{(right + 3) % 10}"]))
    what = f"the checksum is {(right + 3) % 10}; expected is {right}, "
    with pytest.raises(OrbitError, match=f"sky.tle: there is no satellite in the file; .*sky.tle:2: {what}"):
        read_tle(tmp_path / "sky.tle")


def spoil(lines: list[str], line: int, column: int, text: str) -> list[str]:
    """Other characters from a column on, both from 1; with the checksum that fits."""
    body = lines[line - 1][: column - 1] + text + lines[line - 1][column - 1 + len(text) :]
    total = sum(int(one) if one.isdigit() else one == "-" for one in body[:68]) % 10
    return [*lines[: line - 1], body[:68] + str(total), *lines[line:]]


GOOD = ["FIRST", *tle_pair(1, 10, 20), "SECOND", *tle_pair(2, 10, 40)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*GOOD[:4], GOOD[4][:30] + "9" + GOOD[4][31:], GOOD[5]], r"sky.tle:5: the checksum is \d; expected is \d, .* add up to"),
        ([*GOOD[:5], GOOD[5][:30] + "9" + GOOD[5][31:]], r"sky.tle:6: the checksum is \d; expected is \d, .* add up to"),
        ([*GOOD[:4], GOOD[4][:60], GOOD[5]], r'sky.tle:5: this is not line 1 of a satellite; expected are 69 characters .* "1 "'),
        (
            [*GOOD[:5], GOOD[5][:60]],
            'sky.tle:6: this is not line 2 of a satellite; expected are 69 characters that begin with "2 "',
        ),
        ([*GOOD[:5]], "sky.tle:5: line 1 of a satellite has no line 2 after it"),
        ([*GOOD[:2], *GOOD[3:]], "sky.tle:2: line 1 of a satellite has no line 2 after it"),
        ([*GOOD[:4], GOOD[5][:60]], "sky.tle:5: line 2 of a satellite has no line 1 before it"),
        ([*GOOD, "", GOOD[5]], "sky.tle:8: line 2 of a satellite has no line 1 before it"),
        ([*GOOD[:4], GOOD[5]], "sky.tle:5: line 2 of a satellite has no line 1 before it"),
        (
            [GOOD[0], GOOD[1], GOOD[5]],
            "sky.tle:3: the catalogue number is '00002'; allowed is '00001', which line 1 before it has",
        ),
        (spoil(GOOD, 3, 10, "9x"), "sky.tle:3: the inclination, columns 9 to 16, is .*; allowed are numbers"),
        (spoil(GOOD, 2, 21, "abc"), "sky.tle:2: the epoch's day, columns 21 to 32, is .*; allowed are numbers"),
        (spoil(GOOD, 3, 53, " 0.00000000"), "sky.tle:3: these elements are no orbit about the earth: .*"),
        (spoil(GOOD, 3, 9, "190.0000"), "sky.tle:3: these elements are no orbit about the earth: .*"),
        (["<html>", "not found"], "sky.tle: there is no satellite in the file; expected are lines of 69 characters .*"),
        ([], "sky.tle: there is no satellite in the file; .*"),
        ([*GOOD, "naïve"], "sky.tle:7: the line has letters that are not ASCII; TLE files have none"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "sky.tle"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(OrbitError, match=f"{message}$"):
        read_tle(path, strict=True)


def test_a_mistake_is_skipped_and_told(tmp_path: Path) -> None:
    path = tmp_path / "sky.tle"
    spoilt = GOOD[4][:30] + "9" + GOOD[4][31:]
    for lines, numbers, line in (
        ([*GOOD[:4], spoilt, GOOD[5], "THIRD", *tle_pair(3, 10, 60)], [1, 3], 5),
        ([GOOD[0], GOOD[1], *GOOD[3:]], [2], 2),  # a line 2 is missing
        ([*GOOD[:3], GOOD[3], *GOOD[5:], "THIRD", *tle_pair(3, 10, 60)], [1, 3], 5),  # a line 1 is missing
        ([*GOOD, "na\u00efve", *tle_pair(3, 10, 60)], [1, 2, 3], 7),
    ):
        path.write_text("\n".join(lines), encoding="utf-8")
        elements, skipped = read_tle(path)
        assert [element.satrec.satnum for element in elements] == numbers
        assert len(skipped) == 1
        assert skipped[0].startswith(f"{path}:{line}: ")
        with pytest.raises(OrbitError, match=f"sky.tle:{line}: "):
            read_tle(path, strict=True)


@given(st.lists(st.sampled_from([*GOOD, "", "1", "2 ", "x" * 69, "1 " + "9" * 67, GOOD[1][:40]]), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mixture_of_lines_is_read_or_refused(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "sky.tle"
    path.write_text("\n".join(lines))
    found, told = set(), f"{path}:"
    try:
        found = {element.satrec.satnum for element in read_tle(path).elements}
    except OrbitError as error:
        told = str(error)
    assert found <= {1, 2}
    assert told.startswith(f"{path}:")
