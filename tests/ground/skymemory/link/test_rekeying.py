"""New keys for real satellites, over real sockets: who is served before, between and after the steps."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from skymemory.link.ask import Ask
from skymemory.link.association_keys import keys_from
from skymemory.link.control import ControlPlane
from skymemory.link.rekeying import STEPS, StepTaken, ask_who_serves, take_step
from skymemory.security.keyring import HostRecord, MissionKeyring
from skymemory.security.mission_folder import begin_mission, host_file, load_mission, rotate, satellites_folder
from skymemory.security.satellite_file import file_name
from skymemory.security.wrapped_keys import KeyCommand, load_payload, peer_payloads, plain_payload, wrap
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.waiting import PATIENCE_S, wait_until

Stopped = Callable[..., AbstractContextManager[None]]
PLANES, SLOTS = 2, 3
PLACES = [Satellite(plane, slot) for plane in range(1, PLANES + 1) for slot in range(1, SLOTS + 1)]
ROUTES = [Route(place, place) for place in PLACES]
REFUSED_S = 2.0
"""Seconds in which satellites serve nobody who has no key of theirs."""
BLOCK = b"block"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", PLANES, SLOTS, HostRecord(name="host", tenants=(0,)))
    return tmp_path / "keys"


@pytest.fixture
def sky(keys: Path, start_sky: Callable[..., LocalConstellation]) -> LocalConstellation:
    """Satellites that start with the keys of the first generation, again and again."""
    return start_sky(
        constellation={"planes": PLANES, "slots": SLOTS},
        cache={"servers": 2, "parity": 0, "centre": [1, 1]},
        security={"keyring": str(satellites_folder(keys, 1))},
    )


@contextmanager
def host(sky: LocalConstellation, keys: Path, generation: int) -> Iterator[SkyStore]:
    named = str(host_file(keys, generation, "host"))
    with SkyStore(sky.constellation.replace(security={"keyring": named})) as store:
        yield store


@contextmanager
def spoken(sky: LocalConstellation, mission: MissionKeyring) -> Iterator[ControlPlane]:
    with ControlPlane(sky.constellation, keys=keys_from(mission, sky.constellation)) as control:
        yield control


def is_served(store: SkyStore) -> bool:
    """All satellites answer, and the block comes."""
    return set(store.control.ping(ROUTES, PATIENCE_S)) == set(PLACES) and store.get([BLOCK * 6 + b"ab"])[0].data == BLOCK


def refusers(store: SkyStore) -> set[Satellite]:
    return set(PLACES) - set(store.control.ping(ROUTES, REFUSED_S))


def all_links_are_up(control: ControlPlane) -> bool:
    """All satellites say so of all links to their neighbours."""
    stats = control.link_stats(ROUTES, REFUSED_S)
    isls = [link for one in stats.values() for name, link in one.links.items() if name != "ground" and link["plane"]]
    return set(stats) == set(PLACES) and all(link["up"] for link in isls)


def step(sky: LocalConstellation, keys: Path, command: KeyCommand, answer_s: float = PATIENCE_S) -> StepTaken:
    return take_step(sky.constellation, load_mission(keys), command, 1, PLACES, answer_s=answer_s)


def test_running_clients_go_through_a_change_of_keys(sky: LocalConstellation, keys: Path) -> None:
    with host(sky, keys, 1) as old:
        old.put([(BLOCK * 6 + b"ab", BLOCK)])
        assert is_served(old)
        rotate(keys)
        with host(sky, keys, 2) as new:
            assert refusers(new) == set(PLACES)
            assert step(sky, keys, KeyCommand.LOAD).done == PLACES
            assert refusers(new) == set(PLACES)  # loaded keys wait
            assert is_served(old)
            assert step(sky, keys, KeyCommand.ACTIVATE).done == PLACES
            assert is_served(new)
            assert is_served(old)
            with host(sky, keys, 1) as late:  # the old key still lets newcomers in
                assert is_served(late)
            assert step(sky, keys, KeyCommand.FORGET).done == PLACES
            assert refusers(old) == set(PLACES)
            assert is_served(new)
        with host(sky, keys, 1) as later:
            assert refusers(later) == set(PLACES)
        with spoken(sky, load_mission(keys)) as control:
            stats = control.link_stats(ROUTES, PATIENCE_S)
        assert [stats[place].counters["master_keys"] for place in PLACES] == [1] * len(PLACES)


def test_steps_may_be_repeated(sky: LocalConstellation, keys: Path) -> None:
    rotate(keys)
    for command in STEPS:
        assert step(sky, keys, command) == step(sky, keys, command) == StepTaken(done=PLACES)
    for command in STEPS:  # now under the new key, as the old one is gone
        assert step(sky, keys, command, REFUSED_S) == StepTaken(done=PLACES)


def test_who_did_not_get_all_keys_activates_none(sky: LocalConstellation, keys: Path) -> None:
    """Satellites with two generations that came over the air have no room for keys with others, but would have it for a third."""
    for generation in (2, 3):
        rotate(keys)
        for command in STEPS if generation == 2 else STEPS[:2]:
            assert take_step(sky.constellation, load_mission(keys), command, generation - 1, PLACES).done == PLACES
    rotate(keys)
    mission = load_mission(keys)
    for command, status in ((KeyCommand.LOAD, "store_full"), (KeyCommand.ACTIVATE, "not_found")):
        taken = take_step(sky.constellation, mission, command, 3, PLACES)
        assert taken == StepTaken(refused=dict.fromkeys(PLACES, status))


def test_who_was_silent_is_named_and_caught_up(sky: LocalConstellation, keys: Path, stopped: Stopped) -> None:
    rotate(keys)
    lost = Satellite(2, 2)
    with stopped(sky, lost):
        taken = step(sky, keys, KeyCommand.LOAD, REFUSED_S)
        assert (set(taken.done), taken.refused, taken.silent) == (set(PLACES) - {lost}, {}, [lost])
        assert set(step(sky, keys, KeyCommand.ACTIVATE, REFUSED_S).silent) == {lost}
    taken = step(sky, keys, KeyCommand.LOAD)
    assert (set(taken.done), taken.silent) == (set(PLACES), [])
    assert step(sky, keys, KeyCommand.ACTIVATE).done == PLACES


def test_a_satellite_that_starts_with_its_old_keys_is_caught_up(sky: LocalConstellation, keys: Path) -> None:
    rotate(keys)
    for command in STEPS:
        assert step(sky, keys, command).done == PLACES
    back = Satellite(1, 2)
    sky.kill(back)
    sky.restart(back)
    with host(sky, keys, 2) as new:
        wait_until(lambda: refusers(new) == {back}, "the others serve it")
        assert step(sky, keys, KeyCommand.FORGET, REFUSED_S).refused == {back: "unauthenticated"}
        for command in STEPS:
            assert set(step(sky, keys, command, REFUSED_S).done) == set(PLACES)
        assert refusers(new) == set()
        wait_until(lambda: all_links_are_up(new.control), "neighbours know each other again")


def test_a_satellite_that_starts_with_its_new_keys_finds_its_neighbours(sky: LocalConstellation, keys: Path) -> None:
    rotate(keys)
    for command in STEPS[:2]:
        assert step(sky, keys, command).done == PLACES
    back = Satellite(2, 1)
    with host(sky, keys, 2) as new:
        wait_until(lambda: all_links_are_up(new.control), "the change cut no link")
        sky.kill(back)
        wait_until(lambda: not all_links_are_up(new.control), "neighbours miss it")
        shutil.copy(satellites_folder(keys, 2) / file_name(back), satellites_folder(keys, 1) / file_name(back))
        sky.restart(back)
        wait_until(lambda: all_links_are_up(new.control), "neighbours have its new keys, too")
        assert step(sky, keys, KeyCommand.FORGET).done == PLACES
        sky.kill(back)
        sky.restart(back)
        wait_until(lambda: all_links_are_up(new.control), "nobody needs the old keys")


def test_who_serves_the_new_keys(sky: LocalConstellation, keys: Path, stopped: Stopped) -> None:
    rotate(keys)
    mission, lost, late = load_mission(keys), Satellite(2, 2), Satellite(1, 1)
    nobody = ask_who_serves(sky.constellation, mission, PLACES, answer_s=PATIENCE_S)
    assert (nobody.stats, set(nobody.refused), nobody.silent) == ({}, set(PLACES), [])
    before = ask_who_serves(sky.constellation, mission, PLACES, answer_s=REFUSED_S, oldest=1)
    assert {place: one.generations for place, one in before.stats.items()} == {place: [1] for place in PLACES}
    assert step(sky, keys, KeyCommand.LOAD).done == PLACES
    others = [place for place in PLACES if place != late]
    assert take_step(sky.constellation, mission, KeyCommand.ACTIVATE, 1, others).done == others
    with stopped(sky, lost):
        found = ask_who_serves(sky.constellation, mission, PLACES, answer_s=REFUSED_S)
    assert (set(found.stats), found.refused, found.silent) == (set(others) - {lost}, [late], [lost])
    assert step(sky, keys, KeyCommand.ACTIVATE).done == PLACES
    all_of_them = ask_who_serves(sky.constellation, mission, PLACES, answer_s=PATIENCE_S)
    assert (set(all_of_them.stats), all_of_them.refused, all_of_them.silent) == (set(PLACES), [], [])


def test_what_is_wrapped_wrongly_is_refused_and_counted(sky: LocalConstellation, keys: Path) -> None:
    first = load_mission(keys)
    second = first.changed(generation=2)
    here, there = PLACES[:2]
    route = ROUTES[0]
    right = load_payload(second, first, here)
    payloads = {
        "a satellite": load_payload(second, first, there),
        "a key": wrap(KeyCommand.LOAD, bytes(32), 1, here, 2, second.master_key(here)),
        "another purpose": bytes([KeyCommand.LOAD_PEERS]) + next(peer_payloads(second, first, there))[1:],
        "bits": right[:-1] + bytes([right[-1] ^ 1]),
    }
    with spoken(sky, first) as control:

        def statuses(*payloads: bytes) -> list[str]:
            asks = [Ask(route, icd.OP_REKEY, icd.APID_ISL, payload=payload) for payload in payloads]
            answers = [control.exchange([ask], PATIENCE_S)[0] for ask in asks]
            return [icd.STATUSES[answer.status] for answer in answers if answer is not None]

        assert statuses(*payloads.values()) == ["bad_key"] * 4
        assert statuses(right[:-1], plain_payload(KeyCommand.LOAD, 0)) == ["bad_op"] * 2
        assert (
            statuses(plain_payload(KeyCommand.ACTIVATE, 2), wrap(KeyCommand.LOAD, bytes(32), 3, here, 4, bytes(32)))
            == ["not_found"] * 2
        )
        assert statuses(plain_payload(KeyCommand.FORGET, 1)) == ["bad_key"]
        counters = control.link_stats([route], PATIENCE_S)[here].counters
    assert (counters["master_keys"], counters["rekey_refused"]) == (1, 9)


def test_no_host_may_send_them(sky: LocalConstellation, keys: Path) -> None:
    first = load_mission(keys)
    payload = load_payload(first.changed(generation=2), first, PLACES[0])
    with host(sky, keys, 1) as store:
        (answer,) = store.control.exchange([Ask(ROUTES[0], icd.OP_REKEY, icd.APID_ISL, payload=payload)], PATIENCE_S)
    assert answer is not None
    assert answer.status == icd.STATUS_REFUSED
