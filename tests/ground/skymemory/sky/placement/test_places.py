"""Servers along a track, and which of their places are asked."""

import gc
import threading
from collections.abc import Iterable
from itertools import accumulate, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.common import defaults
from skymemory.sky.placement import structures
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName, nearest, substitute
from skymemory.sky.placement.places import LateSatellites, Places
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.wire.address import Satellite

TORUS = Torus(5, 19)
CENTRES = [Satellite(3, 10), Satellite(3, 9), Satellite(4, 9), Satellite(4, 8), Satellite(4, 7)]
names = st.sampled_from(sorted(LAYOUT_IDS))


@st.composite
def tracks(draw: st.DrawFn) -> Track:
    torus = Torus(draw(st.integers(1, 9)), draw(st.integers(1, 20)))
    satellites = st.builds(Satellite, st.integers(1, torus.planes), st.integers(1, torus.slots))
    gaps_ms = draw(st.lists(st.integers(1, 5_000), max_size=20))
    return Track.of(torus, [(time_ms, draw(satellites)) for time_ms in accumulate(gaps_ms, initial=0)])


@st.composite
def cases(draw: st.DrawFn, names: st.SearchStrategy[LayoutName] = names) -> tuple[Track, Places]:
    track = draw(tracks())
    servers = draw(st.integers(1, track.torus.planes * track.torus.slots))
    return track, track.places(draw(names), servers, draw(st.sampled_from([0.0, 0.5, 3.0, 30.0])))


@given(cases(), st.integers(-(10**10), 10**10))
def test_the_row_at_any_time(case: tuple[Track, Places], time_ms: int) -> None:
    track, places = case
    row = places.row_at(time_ms)
    assert row == track.row_at(time_ms) == max(1, sum(began_ms <= time_ms for began_ms, _ in track.rows))
    assert row in places.rows(time_ms)


@given(cases(), st.integers(-3, 30))
def test_servers_of_a_row_are_those_around_its_centre(case: tuple[Track, Places], row: int) -> None:
    track, places = case
    within = min(max(row, 1), len(track.rows))
    assert places.servers(row) == places.layout.servers_at(track.cell(within))
    assert places.centre(row) == track.centre(within)
    places.servers(row).clear()  # what a caller does with its list is its own matter
    assert places.servers(row) == places.layout.servers_at(track.cell(within))


@given(cases(), st.data())
def test_who_left_had_a_place_and_has_it_no_more(case: tuple[Track, Places], data: st.DataObject) -> None:
    track, places = case
    first, row = sorted(data.draw(st.lists(st.integers(1, len(track.rows)), min_size=2, max_size=2)))
    now = places.servers(row)
    last: dict[Satellite, int] = {}
    for earlier in range(first, row):
        last |= {one: earlier for one, current in zip(places.servers(earlier), now, strict=True) if one != current}
    left = places.left(first, row)
    assert len(left) == len(set(left))
    assert set(left) == set(last)
    assert [last[one] for one in left] == sorted(last.values())


def one_after_another(satellites: Iterable[Satellite]) -> list[Satellite]:
    """Without those that are the same as the one before."""
    return [one for one, _ in groupby(satellites)]


@given(cases(), st.data())
def test_late_satellites_of_each_server_are_asked_first_in_the_order_of_time(
    case: tuple[Track, Places], data: st.DataObject
) -> None:
    track, places = case
    first, row = sorted(data.draw(st.lists(st.integers(1, len(track.rows)), min_size=2, max_size=2)))
    late = data.draw(st.sets(st.sampled_from(sorted(track.torus.satellites()))))
    time_ms = track.rows[row - 1][0]
    usual = places.shares(time_ms)
    found = places.shares(time_ms, 0, (), LateSatellites(late, first))
    assert found.rows == usual.rows
    for server, place in enumerate(found.places):
        had = {places.servers(earlier)[server]: earlier for earlier in range(first, row)}
        before = sorted((one for one in had if one in late and one != places.servers(row)[server]), key=had.__getitem__)
        assert place == one_after_another([*before[-defaults.HOST_LATE :], *usual.places[server]])


@given(cases(), st.integers(-10, 10**5), st.integers(0, 22), st.data())
def test_others_stand_in_for_lost_satellites_in_every_row(
    case: tuple[Track, Places], time_ms: int, epoch: int, data: st.DataObject
) -> None:
    track, places = case
    lost = data.draw(st.sets(st.sampled_from(sorted(track.torus.satellites()))))
    rows = places.rows(time_ms, epoch)
    around = [substitute(places.servers(row), lost, places.centre(row), track.torus) for row in rows]
    found = places.shares(time_ms, epoch, lost)
    assert found.rows == rows
    assert found.places == [one_after_another(place) for place in zip(*around, strict=True)]
    homes = {
        server: home
        for row, one in zip(rows, around, strict=True)
        for server, home in enumerate(places.servers(row))
        if one[server] != home
    }
    assert found.homes == homes
    assert [places.servers(row, lost) for row in rows] == around


@given(cases(st.sampled_from(("rotation", "rotation_hop", "hop"))), st.data())
def test_who_stood_in_in_the_last_rows(case: tuple[Track, Places], data: st.DataObject) -> None:
    """They are asked before the late ones that had a share."""
    track, places = case
    first, row = sorted(data.draw(st.lists(st.integers(1, len(track.rows)), min_size=2, max_size=2)))
    expected = set()
    for at in range(max(first, row - defaults.HOST_BACK), row + 1):
        servers = places.servers(at)
        near = nearest(places.centre(at), track.torus.planes * track.torus.slots, track.torus)
        expected |= set([one for one in near if one not in servers][: structures.STANDINS_SPARES])
    spares = places.spares(first, row)
    assert spares == sorted(expected)
    late = LateSatellites(places.servers(first), first, spares)
    usual, found = (places.shares(track.rows[row - 1][0], 0, (), one) for one in (late._replace(spares=()), late))
    for before, after in zip(usual.places, found.places, strict=True):
        assert after == one_after_another([*spares[: structures.STANDINS_SPARES], *before])


def test_of_many_late_satellites_the_last_are_asked() -> None:
    torus = Torus(5, 200)
    track = Track.of(torus, [(1000 * row, Satellite(3, 100 - row)) for row in range(60)])
    places = track.places("rotation", 1)
    (found,) = places.shares(59_500, 0, (), LateSatellites(list(torus.satellites()))).places
    assert found[: defaults.HOST_LATE] == [Satellite(3, 100 - row) for row in range(59 - defaults.HOST_LATE, 59)]
    assert found[defaults.HOST_LATE :] == places.shares(59_500).places[0]


@pytest.mark.parametrize("name", sorted(LAYOUT_IDS))
def test_a_layout_outlives_what_it_was_made_from(name: LayoutName) -> None:
    """The core's schedule only points to its rows."""
    track = Track.of(TORUS, [(1000 * index, centre) for index, centre in enumerate(CENTRES)])
    expected = track.places(name, 10).servers(5)
    places, layout = track.places(name, 10), track.layout(name, 10)
    del track
    gc.collect()
    junk = [bytearray(1 << 16) for _ in range(64)]
    assert places.servers(5) == layout.servers_at(Cell(4, 7)) == expected
    assert places.rows(3_500, 5) == (5, 4, 3, 4, 5)
    assert len(junk) == 64


def test_threads_ask_at_a_time() -> None:
    track = Track.of(TORUS, [(1000 * index, CENTRES[index % 5]) for index in range(500)])
    places = track.places("rotation_hop", 10, 5.0)
    expected = [(places.rows(1000 * row), places.layout.servers_at(track.cell(row))) for row in range(1, 400)]
    failures = []

    def ask() -> None:
        for row, told in enumerate(expected, start=1):
            if (places.rows(1000 * row), places.servers(row)) != told:
                failures.append(row)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
