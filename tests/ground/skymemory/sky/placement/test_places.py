"""Servers along a track."""

import gc
import threading
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName, substitute
from skymemory.sky.placement.places import Places
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
def cases(draw: st.DrawFn) -> tuple[Track, Places]:
    track = draw(tracks())
    servers = draw(st.integers(1, track.torus.planes * track.torus.slots))
    return track, track.places(draw(names), servers)


@given(cases(), st.integers(-(10**10), 10**10))
def test_the_row_at_any_time(case: tuple[Track, Places], time_ms: int) -> None:
    track, places = case
    row = places.row_at(time_ms)
    assert row == track.row_at(time_ms) == max(1, sum(began_ms <= time_ms for began_ms, _ in track.rows))


@given(cases(), st.integers(-3, 30))
def test_servers_of_a_row_are_those_around_its_centre(case: tuple[Track, Places], row: int) -> None:
    track, places = case
    within = min(max(row, 1), len(track.rows))
    assert places.servers(row) == places.layout.servers_at(track.cell(within))
    assert places.centre(row) == track.centre(within)
    places.servers(row).clear()  # what a caller does with its list is its own matter
    assert places.servers(row) == places.layout.servers_at(track.cell(within))


@given(cases(), st.integers(1, 20), st.data())
def test_others_stand_in_for_lost_satellites(case: tuple[Track, Places], row: int, data: st.DataObject) -> None:
    track, places = case
    lost = data.draw(st.sets(st.sampled_from(sorted(track.torus.satellites()))))
    assert places.servers(row, lost) == substitute(places.servers(row), lost, places.centre(row), track.torus)


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
    assert len(junk) == 64


def test_threads_ask_at_a_time() -> None:
    track = Track.of(TORUS, [(1000 * index, CENTRES[index % 5]) for index in range(500)])
    places = track.places("rotation_hop", 10)
    expected = [(places.row_at(1000 * row), places.layout.servers_at(track.cell(row + 1))) for row in range(1, 400)]
    failures = []

    def ask() -> None:
        for row, told in enumerate(expected, start=1):
            if (places.row_at(1000 * row), places.servers(row + 1)) != told:
                failures.append(row)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
