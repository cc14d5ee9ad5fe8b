"""What is made of the answers of satellites, key by key."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, cast

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.find import Lookups
from skymemory.store.late_search import LateSearch
from skymemory.store.parts import StoreParts
from skymemory.store.radix import RadixIndex
from skymemory.store.results import CancelledLookupError
from skymemory.wire.address import Satellite
from support.waiting import PATIENCE_S

FIRST, SECOND = (Route(Satellite(3, slot), Satellite(3, slot)) for slot in (10, 11))
HERE, GONE, SILENT = (bytes([number]) * 32 for number in range(3))


class Satellites:
    """Each says what it holds; of a key it does not know of at all it says nothing."""

    def __init__(self, *each: dict[bytes, bool]) -> None:
        self.holds = dict(zip((FIRST, SECOND), each, strict=False))
        self.asked: list[tuple[Route, set[bytes]]] = []
        self.looks = 0
        self.timing = Timing()
        self.routes = list(self.holds)

    def lookup_routes(self, keys: Sequence[bytes]) -> list[list[Route]]:
        return [list(self.routes) for _ in keys]

    def look(self, asked: set[Satellite]) -> None:
        self.looks += 1

    def patience_s(self, routes: Sequence[Route]) -> float:
        return 1.0

    def find_each(
        self, blocks: Sequence[tuple[bytes, Sequence[Route]]], tenant: int, deadline_s: float
    ) -> tuple[list[BlockEntry | None], set[bytes]]:
        keys = [key for key, _ in blocks]
        (route,) = {route for _, routes in blocks for route in routes}
        self.asked.append((route, set(keys)))
        held = self.holds[route]
        return [BlockEntry(key, 10, 10, 1, 0, 0.0) if held.get(key) else None for key in keys], set(keys) - held.keys()


def lookups(satellites: Satellites, count: Callable[..., None]) -> Lookups:
    sky = Constellation().replace(cache={"servers": 10, "parity": 0})
    where, asked = Whereabouts(sky), cast(Any, satellites)
    return Lookups(StoreParts(where, RadixIndex(), asked, asked, LateSearch(where, asked, asked), 0, count))


def statuses(satellites: Satellites, *keys: bytes) -> tuple[list[str], dict[str, int]]:
    counts: dict[str, int] = {}

    def count(**more: int) -> None:
        for name, number in more.items():
            counts[name] = counts.get(name, 0) + number

    return [one.status for one in lookups(satellites, count).ask(keys)], counts


def test_a_key_of_which_nobody_says_anything_is_not_gone() -> None:
    satellites = Satellites({HERE: True, GONE: False})
    found, counts = statuses(satellites, HERE, SILENT, GONE)
    assert found == ["done", "unanswered", "miss"]
    assert satellites.looks == 1
    assert counts == {"questions": 3, "unanswered": 1}


@pytest.mark.parametrize(("has_it", "status"), [(True, "done"), (False, "unanswered")])
def test_who_is_asked_next_may_have_it_but_cannot_deny_it(has_it: bool, status: str) -> None:
    found, _ = statuses(Satellites({HERE: True, GONE: False}, {SILENT: has_it, GONE: False}), HERE, SILENT, GONE)
    assert found == ["done", status, "miss"]


def test_what_was_found_before_somebody_fell_silent_was_found() -> None:
    found, counts = statuses(Satellites({HERE: True, GONE: False, SILENT: False}, {}), HERE, SILENT, GONE)
    assert found == ["done", "unanswered", "unanswered"]
    assert counts["unanswered"] == 2


def test_only_what_is_left_is_asked_on_another_way() -> None:
    satellites = Satellites({HERE: True, GONE: False}, {SILENT: True})
    satellites.routes = [FIRST]
    satellites.look = lambda asked: setattr(satellites, "routes", [SECOND])  # type: ignore[method-assign]
    found, _ = statuses(satellites, HERE, SILENT, GONE)
    assert found == ["done", "done", "miss"]
    assert satellites.asked == [(FIRST, {HERE, SILENT, GONE}), (SECOND, {SILENT})]


def chain(satellites: Satellites, *keys: bytes) -> tuple[list[bytes], list[bytes]]:
    """The beginning that is found, and the keys of which nobody said anything."""
    found = lookups(satellites, lambda **more: None).longest(keys)
    return [entry.key for entry in found.entries], list(found.unanswered)


def test_a_chain_says_of_which_of_its_keys_nobody_answered() -> None:
    also = bytes([9]) * 32
    assert chain(Satellites({HERE: True, GONE: False}), HERE, GONE) == ([HERE], [])
    assert chain(Satellites({GONE: False}), GONE, SILENT) == ([], [])  # the latter was not asked for
    assert chain(Satellites({GONE: False}), SILENT, GONE) == ([], [SILENT])
    assert chain(Satellites({HERE: True, also: True}), HERE, also) == ([HERE, also], [])


def test_nothing_is_asked_for_nothing() -> None:
    satellites = Satellites({})
    assert statuses(satellites) == ([], {})
    assert satellites.asked == []


# ---- who waits no more ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("questions", "asked"), [(0, []), (1, [{HERE}]), (2, [{HERE}, {GONE}])])
def test_a_chain_that_nobody_waits_for_is_asked_for_no_further(questions: int, asked: list[set[bytes]]) -> None:
    satellites = Satellites({HERE: True, GONE: False, SILENT: True})
    waits = iter([False] * questions)
    with pytest.raises(CancelledLookupError):
        lookups(satellites, lambda **more: None).longest([HERE, SILENT, GONE, SILENT], lambda: next(waits, True))
    assert [keys for _, keys in satellites.asked] == asked


class SlowSatellites(Satellites):
    """They answer when a test lets them."""

    def __init__(self, *each: dict[bytes, bool]) -> None:
        super().__init__(*each)
        self.is_asked, self.answer = Event(), Event()

    def find_each(
        self, blocks: Sequence[tuple[bytes, Sequence[Route]]], tenant: int, deadline_s: float
    ) -> tuple[list[BlockEntry | None], set[bytes]]:
        self.is_asked.set()
        assert self.answer.wait(PATIENCE_S)
        return super().find_each(blocks, tenant, deadline_s)


def test_a_look_up_that_nobody_waits_for_any_more_when_its_turn_comes_is_not_sent() -> None:
    satellites = SlowSatellites({HERE: True, GONE: False})
    asker = lookups(satellites, lambda **more: None)
    waits_no_more = Event()
    with ThreadPoolExecutor() as threads:
        first = threads.submit(asker.ask, [HERE])
        assert satellites.is_asked.wait(PATIENCE_S)
        second = threads.submit(asker.ask, [GONE], waits_no_more.is_set)
        assert asker.ask([]) == [], "it waits for nobody"
        assert asker.resolve([BlockEntry(HERE, 10, 10, 1, 0, 0.0)])[1] == set(), "what is known waits for nobody"
        waits_no_more.set()
        satellites.answer.set()
        assert [one.status for one in first.result()] == ["done"]
        with pytest.raises(CancelledLookupError):
            second.result()
    assert [keys for _, keys in satellites.asked] == [{HERE}]
    assert [one.status for one in asker.ask([GONE])] == ["miss"]
