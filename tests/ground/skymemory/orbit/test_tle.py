"""TLE files: every mistake with its line, and how satellites become planes and slots."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.orbit.sky import OrbitError
from skymemory.orbit.tle import Fleet, arrange, read_tle
from skymemory.placement.torus import Satellite
from support.elements import EPOCH_MS, real_tle, shell, tle_pair

HOUR_MS = 3_600_000


def arranged(folder: Path, lines: list[str], start_ms: int = EPOCH_MS, hours: int = 6) -> Fleet:
    path = folder / "sky.tle"
    path.write_text("\n".join(lines))
    return arrange(read_tle(path), start_ms, start_ms + hours * HOUR_MS)


def numbers(fleet: Fleet) -> dict[Satellite, int]:
    return {place: element.satrec.satnum for place, element in fleet.elements.items()}


def full(planes: int, slots: int) -> dict[Satellite, int]:
    return {Satellite(p, s): 1000 * p + s for p in range(1, planes + 1) for s in range(1, slots + 1)}


@pytest.mark.parametrize(("name", "expected"), [(None, "1001"), ("ONEWEB-0012", "ONEWEB-0012"), ("0 ONEWEB-0012", "ONEWEB-0012")])
@pytest.mark.parametrize("end", ["\n", "\r\n", "   \n\n"])
def test_files_with_and_without_names(tmp_path: Path, name: str | None, expected: str, end: str) -> None:
    path = tmp_path / "sky.tle"
    pair = tle_pair(1001, 10, 20)
    path.write_text(end.join([*([name] if name else []), *pair]) + end, newline="")
    (element,) = read_tle(path)
    assert element.name.lstrip("0") == expected
    assert element.satrec.satnum == 1001
    assert element.epoch_ms == EPOCH_MS
    assert element.altitude_km == pytest.approx(1204, abs=2)


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "sky.tle"
    for lines in (tle_pair(1001, 10, 20), ["FIRST", *tle_pair(1001, 10, 20)]):
        path.write_text("\n".join(lines), encoding="utf-8-sig")
        (element,) = read_tle(path)
        assert element.name in {"01001", "FIRST"}


def test_a_wrong_checksum_is_told_with_the_right_one(tmp_path: Path) -> None:
    line = tle_pair(1, 10, 20)[1]
    right = int(line[-1])
    (tmp_path / "sky.tle").write_text("\n".join([tle_pair(1, 10, 20)[0], f"{line[:-1]}{(right + 3) % 10}"]))
    with pytest.raises(OrbitError, match=f"sky.tle:2: the checksum is {(right + 3) % 10}; expected is {right}, "):
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
        ([*GOOD[:4], GOOD[4][:60], GOOD[5]], r'sky.tle:5: not a line 1 of elements; expected are 69 characters .* "1 "'),
        ([*GOOD[:5], GOOD[5][:60]], 'sky.tle:6: not a line 2 of elements; expected are 69 characters that begin with "2 "'),
        ([*GOOD[:5]], "sky.tle:5: line 1 of a satellite without its line 2 after it"),
        ([*GOOD[:2], *GOOD[3:]], "sky.tle:2: line 1 of a satellite without its line 2 after it"),
        ([*GOOD[:4], GOOD[5][:60]], "sky.tle:5: line 2 of a satellite without its line 1 before it"),
        ([*GOOD, "", GOOD[5]], "sky.tle:8: line 2 of a satellite without its line 1 before it"),
        ([*GOOD[:4], GOOD[5]], "sky.tle:5: line 2 of a satellite without its line 1 before it"),
        ([GOOD[0], GOOD[1], GOOD[5]], "sky.tle:3: catalogue number '00002'; line 1 before it has '00001'"),
        (spoil(GOOD, 3, 10, "9x"), "sky.tle:3: the inclination, columns 9 to 16, is .*; allowed are numbers"),
        (spoil(GOOD, 2, 21, "abc"), "sky.tle:2: the epoch's day, columns 21 to 32, is .*; allowed are numbers"),
        (spoil(GOOD, 3, 53, " 0.00000000"), "sky.tle:3: no orbit about the earth: .*"),
        (spoil(GOOD, 3, 9, "190.0000"), "sky.tle:3: no orbit about the earth: .*"),
        (["<html>", "not found"], "sky.tle: no satellite in it; expected are lines of 69 characters .*"),
        ([], "sky.tle: no satellite in it; .*"),
        ([*GOOD, "naïve"], "sky.tle:7: letters that are not ASCII; TLE files have none"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "sky.tle"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(OrbitError, match=f"{message}$"):
        read_tle(path)


@given(st.lists(st.sampled_from([*GOOD, "", "1", "2 ", "x" * 69, "1 " + "9" * 67, GOOD[1][:40]]), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mixture_of_lines_is_read_or_refused(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "sky.tle"
    path.write_text("\n".join(lines))
    found, told = set(), f"{path}:"
    try:
        found = {element.satrec.satnum for element in read_tle(path)}
    except OrbitError as error:
        told = str(error)
    assert found <= {1, 2}
    assert told.startswith(f"{path}:")


@pytest.mark.parametrize("spread_deg", [180.0, 360.0])
def test_a_full_shell_is_the_pattern_it_is(tmp_path: Path, spread_deg: float) -> None:
    fleet = arranged(tmp_path, shell(6, 11, spread_deg=spread_deg))
    assert (fleet.planes, fleet.slots, fleet.star) == (6, 11, spread_deg == 180)
    assert fleet.notes == []
    assert fleet.inclination_deg == pytest.approx(87.9, abs=0.01)
    by_plane = [[number for place, number in sorted(numbers(fleet).items()) if place.plane == plane] for plane in range(1, 7)]
    for plane in by_plane:  # in the order of flight, whoever is first
        start = plane.index(min(plane))
        assert plane[start:] + plane[:start] == sorted(plane)
    firsts = [plane[0] // 1000 for plane in by_plane]
    assert firsts == [1, 2, 3, 4, 5, 6]
    assert len(fleet.sky.satellites) == 66


def test_the_seam_is_between_the_last_plane_and_the_first(tmp_path: Path) -> None:
    """Nodes from 250 on, over 0: the first plane by node is not the first behind the seam."""
    places = [(plane, slot) for plane in range(4) for slot in range(6)]
    pairs = [tle_pair(100 * plane + slot, 250 + 45 * plane, 60 * slot) for plane, slot in places]
    fleet = arranged(tmp_path, [line for pair in pairs for line in pair])
    assert fleet.star
    assert [number // 100 for place, number in sorted(numbers(fleet).items()) if place.slot == 1] == [0, 1, 2, 3]


def test_what_is_off_the_shell_is_left_out_and_told(tmp_path: Path) -> None:
    lines = shell(6, 11)
    lines += tle_pair(9001, 40, 100, revolutions_a_day=14.9)  # on its way up
    lines += tle_pair(9002, 40, 130, eccentricity=0.02)
    lines += tle_pair(9003, 70, 130, inclination_deg=53)
    lines += tle_pair(9004, 70, 150, revolutions_a_day=16.35, drag=0.2)  # comes down within days
    lines += tle_pair(9005, 175, 150)  # far behind the last plane
    lines += tle_pair(1001, 40, 200, days=-3)  # older than the one above
    fleet = arranged(tmp_path, lines, hours=24 * 14)
    assert numbers(fleet).keys() == full(6, 11).keys()
    assert set(numbers(fleet).values()) == set(full(6, 11).values())
    assert fleet.notes == [
        "left out: 1 with older elements of the same catalogue number",
        "left out: 1 that SGP4 brings down before the end",
        "left out: 2 off the shell at 1,204 to 1,204 km",
        "left out: 1 with another inclination",
        "left out: 1 between the planes, or in planes hardly begun",
    ]


def test_copies_under_other_numbers_are_left_out_and_told(tmp_path: Path) -> None:
    lines = shell(4, 6)
    pairs = [*zip(lines[::2], lines[1::2], strict=True)]
    copies = [line for number, pair in enumerate(pairs[:3], 7001) for line in renumbered(pair, number)]
    for mixed in ([*lines, *copies], [*copies, *lines]):  # the earlier one stays
        fleet = arranged(tmp_path, mixed)
        assert fleet.notes == ["left out: 3 with the same elements as an earlier one"]
        first = {7001, 7002, 7003} if mixed[0] == copies[0] else {1001, 1002, 1003}
        assert first <= set(numbers(fleet).values())
        assert len(fleet.elements) == 24


def renumbered(pair: tuple[str, str], number: int) -> list[str]:
    """The same elements under another catalogue number."""
    return [spoil([line], 1, 3, f"{number:05d}")[0] for line in pair]


def test_planes_of_unequal_size_have_empty_places_where_satellites_are_missing(tmp_path: Path) -> None:
    lines = shell(4, 12)
    lost = {2003, 2004, 3012, 4001, 4006}
    kept = [line for pair in zip(lines[::2], lines[1::2], strict=True) if int(pair[0][2:7]) not in lost for line in pair]
    fleet = arranged(tmp_path, kept)
    assert (fleet.planes, fleet.slots) == (4, 12)
    assert fleet.notes == ["planes are of unequal size (12, 10, 11, 10): 5 places are empty"]
    everyone = numbers(arranged(tmp_path, lines))
    assert numbers(fleet) == {place: number for place, number in everyone.items() if number not in lost}


def test_elements_that_are_old_are_told(tmp_path: Path) -> None:
    lines, year_ms = shell(4, 6), 365 * 24 * HOUR_MS
    for sign, than in ((1, "older"), (-1, "newer")):
        fleet = arranged(tmp_path, lines, EPOCH_MS + sign * year_ms)
        assert fleet.notes == [f"the elements are 365 days {than} than the start: positions are rough"]
        assert numbers(fleet) == numbers(arranged(tmp_path, lines))


def test_one_satellite_and_one_plane(tmp_path: Path) -> None:
    fleet = arranged(tmp_path, tle_pair(5, 359.99, 20))
    assert numbers(fleet) == {Satellite(1, 1): 5}
    assert not fleet.star
    plane = arranged(tmp_path, [line for slot in range(9) for line in tle_pair(slot, 359.99 + slot / 300, 40 * slot)])
    assert (plane.planes, plane.slots, plane.star, plane.notes) == (1, 9, False, [])


def test_nobody_left(tmp_path: Path) -> None:
    with pytest.raises(OrbitError, match="no satellite stays in orbit from the start to the end; "):
        arranged(tmp_path, tle_pair(1, 0, 0, revolutions_a_day=16.35, drag=0.2), hours=900)


def test_more_than_a_constellation_can_have(tmp_path: Path) -> None:
    lines = [line for one in range(256) for line in tle_pair(one, 10, one * 360 / 256)]
    with pytest.raises(OrbitError, match="1 planes of up to 256 satellites; allowed are 255 and 254"):
        arranged(tmp_path, lines)


def test_real_constellations() -> None:
    oneweb = read_tle(real_tle("oneweb.tle"))
    start_ms = max(element.epoch_ms for element in oneweb)
    fleet = arrange(oneweb, start_ms, start_ms + 6 * HOUR_MS)
    assert fleet.star
    assert fleet.planes == 11
    assert fleet.altitude_km == pytest.approx(1211, abs=2)
    assert len(fleet.elements) > 350
    iridium = arrange(read_tle(real_tle("iridium.tle")), start_ms, start_ms + 6 * HOUR_MS)
    assert any("no clear planes" in note for note in iridium.notes)
