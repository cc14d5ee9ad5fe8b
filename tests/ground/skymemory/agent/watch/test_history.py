"""What is kept of the last hours: bounded, in order, and what stands for what."""

import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.watch import history
from skymemory.agent.watch.frame import COLUMNS, RATIOS, SERIES, Frame, Shape, numbers, rate
from skymemory.agent.watch.history import BYTES_MAX, History, Ring, mean
from skymemory.common import defaults

SMALL = Shape(2, 3)


def frame(time_ms: int, shape: Shape = SMALL, **columns: object) -> Frame:
    made = Frame(shape)
    made["time_ms"][0] = time_ms
    for name, value in columns.items():
        made[name][:] = value
    return made


@given(st.integers(2, 9), st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_a_ring_has_the_newest_frames_in_order(capacity: int, gaps: list[int]) -> None:
    ring, times = Ring(SMALL, capacity), np.cumsum(gaps).tolist()
    for number, time_ms in enumerate(times):
        ring.append(frame(time_ms, chunks=number))
    kept = times[-capacity:]
    assert [ring.time_ms(index) for index in range(len(ring))] == kept
    assert ring.column("time_ms")[:, 0].tolist() == kept
    assert ring.column("chunks")[:, 0].tolist() == list(range(len(times)))[-capacity:]
    assert [ring.frame(index)["chunks"].tolist() for index in range(len(ring))] == [
        [number] * SMALL.satellites for number in list(range(len(times)))[-capacity:]
    ]
    assert ring.bytes == len(kept) * SMALL.frame_bytes


def test_a_clock_that_is_set_back_begins_anew() -> None:
    ring = Ring(SMALL, 4)
    for time_ms in (10_000, 12_000, 5_000, 7_000):
        ring.append(frame(time_ms))
    assert ring.column("time_ms")[:, 0].tolist() == [5_000, 7_000]
    kept = History(SMALL)
    for time_ms in (100_000, 110_000, 120_000, 20_000, 30_000):
        kept.append(frame(time_ms))
    assert kept.span_ms == (20_000, 30_000)


@given(st.integers(1, defaults.MOST_PLANES), st.integers(1, defaults.MOST_SLOTS))
def test_memory_is_bounded_whatever_the_constellation(planes: int, slots: int) -> None:
    kept = History(Shape(planes, slots))
    frames = kept.fine.capacity + kept.coarse.capacity
    assert frames * kept.fine.shape.frame_bytes <= BYTES_MAX + 4 * kept.fine.shape.frame_bytes
    assert kept.step_s * kept.coarse.capacity >= 0.999 * history.HOURS * 3600  # the hours are there all the same
    assert kept.bytes == 0


def test_the_papers_constellation_in_numbers() -> None:
    """As the page of the documentation says."""
    kept = History(Shape(5, 19))
    assert (kept.fine.capacity, kept.coarse.capacity, kept.step_s) == (450, 2160, 10)
    assert (kept.fine.capacity + kept.coarse.capacity) * kept.fine.shape.frame_bytes < 10e6


@given(st.lists(st.integers(500, 12_000), min_size=1, max_size=120), st.integers(0, 30_000), st.data())
def test_frames_are_in_order_a_step_apart_and_the_last_is_there(gaps: list[int], step_ms: int, data: st.DataObject) -> None:
    kept, times = History(SMALL), np.cumsum(gaps).tolist()
    kept.fine = Ring(SMALL, data.draw(st.integers(2, 60)))
    for number, time_ms in enumerate(times):
        kept.append(frame(time_ms, chunks=number))
    from_ms = data.draw(st.integers(0, times[-1]))
    to_ms = data.draw(st.integers(from_ms, times[-1] + 1000))
    found = [one.time_ms for one in kept.frames(from_ms, to_ms, step_ms)]
    assert all(after - before >= max(step_ms, 1) for before, after in pairwise(found))
    assert all(from_ms <= time_ms <= to_ms for time_ms in found)
    assert set(found) <= set(times)
    fine = [time_ms for time_ms in times[-len(kept.fine) :] if from_ms <= time_ms <= to_ms]
    assert not fine or found[-1] == fine[-1]
    if len(found) < history.FRAMES_MAX:
        assert kept.series(from_ms, to_ms, step_ms)["time_ms"] == found
    held = kept.at(to_ms)
    assert held is not None
    assert held.time_ms <= to_ms or to_ms < times[0] or held.time_ms == kept.span_ms[0]  # type: ignore[index]


def test_an_answer_is_bounded() -> None:
    kept = History(SMALL, frames_max=10)
    for number in range(100):
        kept.append(frame(1000 * (number + 1)))
    found = [one.time_ms for one in kept.frames(0, 200_000, 0)]
    assert 1 <= len(found) <= 10
    assert found[-1] == 100_000
    assert found[0] < 20_000


def test_series_say_when_a_handover_ran() -> None:
    kept = History(SMALL)
    kept.append(frame(1000, chunks=2, asked_per_s=4, hit_per_s=2))
    moving = frame(3000, chunks=3)
    moving["server"][:2], moving["server_before"][1:3] = (0, 1), (0, 1)
    assert moving.moves() == [(0, 1, 0), (1, 2, 1)]
    kept.append(moving)
    series = kept.series(0, 9000, 0)
    assert series["moving"] == [0, 1]
    assert series["chunks"] == [2 * SMALL.satellites, 3 * SMALL.satellites]
    assert series["hit_ratio"] == [0.5, None]
    assert set(series) == {"time_ms", "moving", *SERIES}
    json.loads(msgspec.json.encode(series))


def test_a_coarse_frame_stands_for_those_before_it() -> None:
    first, last = frame(1000, chunks=1, hits_per_s=4, retry_ratio=np.nan), frame(3000, chunks=2, hits_per_s=8, retry_ratio=0.25)
    first["server_before"][0] = 3
    one = mean([first, last])
    assert one.time_ms == 3000
    assert one["chunks"].tolist() == [2] * SMALL.satellites
    assert one["hits_per_s"].tolist() == [6] * SMALL.satellites
    assert one["retry_ratio"][0] == 0.25  # what was not measured counts for nothing
    assert one["server_before"][0] == 3  # a handover that ran in between is not lost
    assert np.isnan(mean([first, first])["retry_ratio"][0])


@given(st.floats(0, 1e12), st.floats(0, 100))
def test_rates_fit(counts: float, seconds: float) -> None:
    assert 0 <= float(rate(counts, seconds)) <= float(np.finfo(np.float16).max)


@given(st.lists(st.floats(-1e30, 1e30) | st.just(float("nan")), min_size=1, max_size=9))
def test_numbers_have_four_digits(values: list[float]) -> None:
    for value, told in zip(values, numbers(np.array(values)), strict=True):
        assert (told is None) == np.isnan(value)
        assert told is None or told == pytest.approx(value, rel=6e-4, abs=1e-9)
    assert numbers(np.array([0.857142, 1234.567, 0.0, 1e-7], np.float32)) == [0.8571, 1235.0, 0.0, 1e-7]


def test_a_frame_for_json() -> None:
    told = json.loads(msgspec.json.encode(frame(5000, chunks=7, packets_per_s=1234.5).told()))
    assert told["chunks"] == [7] * 6
    assert told["packets_per_s"] == [1234.0] * 12  # half a float has three digits
    assert told["hit_ratio"] is None
    assert told["servers"] == told["moves"] == []
    assert set(told) == {*COLUMNS, *RATIOS, "servers", "moves"} - {"server", "server_before"}
