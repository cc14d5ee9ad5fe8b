"""Satellites of another version of the program are told from those that do not answer."""

import resource
import socket
from collections.abc import Callable

import pytest

from skymemory.link.other_versions import VersionWatch, other_versions, version_words
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.wire.address import Satellite
from support.other_satellites import OtherSatellites

PLACES = [Satellite(2, 1), Satellite(2, 2)]
SHORT_S = 0.3
"""Wait for a satellite that is not there."""


@pytest.fixture
def constellation() -> Constellation:
    """A sky of 3 x 3 of which nothing runs."""
    grid = {"planes": 3, "slots": 3}
    planned = Constellation().replace(constellation=grid, cache={"centre": [2, 2], "servers": 4})
    return planned.replace(network={"port": free_port(planned)})


@pytest.mark.parametrize("version", [1, 2, 4, 255])
def test_another_version_is_named_and_silence_is_not(constellation: Constellation, version: int) -> None:
    with OtherSatellites(constellation, PLACES, version):
        found = other_versions(constellation, [*PLACES, Satellite(3, 3)], SHORT_S)
    assert found == dict.fromkeys(PLACES, version)
    assert version_words(found) == (
        f"2 satellites speak version {version} of the packets, and this program version 3: see docs/upgrading.md"
    )


def test_satellites_of_this_version_are_left_out(start_sky: Callable[..., LocalConstellation]) -> None:
    sky = start_sky().constellation
    assert other_versions(sky, sky.torus.satellites()) == {}
    assert version_words({}) == ""


def test_each_version_is_told() -> None:
    words = version_words({Satellite(1, 1): 4, Satellite(1, 2): 1, Satellite(1, 3): 1})
    assert words.startswith("2 satellites speak version 1 and 1 satellite speaks version 4 of the packets, and this program")


@pytest.mark.parametrize("damage", ["short", "crc", "request", "other id", "not a packet"])
def test_what_is_no_answer_counts_as_silence(constellation: Constellation, damage: str) -> None:
    place = PLACES[0]
    with OtherSatellites(constellation, [place], 1) as other:
        other.spoil = {  # each is sent instead of the answer
            "short": lambda answer: answer[:60],
            "crc": lambda answer: answer[:-1] + bytes([answer[-1] ^ 1]),
            "request": lambda answer: bytes([answer[0] | 0x10]) + answer[1:],
            "other id": lambda answer: answer[:20] + bytes(60) + answer[80:],
            "not a packet": lambda _: b"hello",
        }[damage]
        assert other_versions(constellation, [place], SHORT_S) == {}
        assert other.asked > 1  # it was asked again


def test_a_stranger_that_answers_for_a_satellite_is_not_believed(constellation: Constellation) -> None:
    with OtherSatellites(constellation, [PLACES[0]], 1) as other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        other.answers_from = stranger
        assert other_versions(constellation, [PLACES[0]], SHORT_S) == {}


def test_a_watch_asks_again_only_after_a_while(constellation: Constellation) -> None:
    now_s = 100.0
    watch = VersionWatch(constellation, lambda: now_s)
    with OtherSatellites(constellation, PLACES, 1) as other:
        watch.look(set(PLACES))
        assert watch.found == dict.fromkeys(PLACES, 1)
        asked = other.asked
        watch.look(set(PLACES))
        assert (watch.found, other.asked) == (dict.fromkeys(PLACES, 1), asked)
        watch.look({PLACES[0]})  # the other one answers again
        assert watch.found == {PLACES[0]: 1}
        now_s += 31
        watch.look({PLACES[0]})
        assert (watch.found, other.asked) == ({PLACES[0]: 1}, asked + 1)
        watch.look(set())
        assert watch.found == {}


def test_a_watch_does_without_where_the_system_gives_no_socket(constellation: Constellation) -> None:
    now_s = 100.0
    watch = VersionWatch(constellation, lambda: now_s)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with OtherSatellites(constellation, PLACES, 1) as other:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            watch.look(set(PLACES))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        watch.look(set(PLACES))
        assert (watch.found, other.asked) == ({}, 0)
        now_s += 31
        watch.look(set(PLACES))
        assert watch.found == dict.fromkeys(PLACES, 1)
