"""Somebody who is not the mission commands satellites: their stores are cleared, or moved away by a schedule of his own.

Before: 95 RELAY packets of 118 bytes cleared 95 stores in 0.06 s; a schedule of one row in 285 packets made 20 of 20 values
unreadable.
"""

import time
from collections.abc import Callable
from secrets import token_bytes

import pytest

from skymemory.fsw.messages import Message
from skymemory.fsw.structures import KVC_CMD_MID, KvcFunctionCode
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.replay import ReplayError, upload
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import migrate_payload
from support.guarded_sky import ALICE, GuardedSky
from support.waiting import PATIENT, wait_until

CLEAR = Message(KVC_CMD_MID, b"", KvcFunctionCode.CLEAR_STORE).encode()
HERE, THERE = Satellite(2, 3), Satellite(1, 1)
ATTACKERS = ["stranger", "alice"]


def routes_of(sky: GuardedSky) -> list[Route]:
    return [Route(satellite, satellite) for satellite in sky.local.constellation.torus.satellites()]


def blocks_held(sky: GuardedSky) -> int:
    """Return the blocks that all satellites hold together, as the mission sees it."""
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        stats = control.store_stats(routes_of(sky), 20)
    assert len(stats) == 15
    return sum(one["blocks"] for one in stats.values())


def put_values(sky: GuardedSky, count: int = 20) -> dict[bytes, bytes]:
    items = {token_bytes(32): token_bytes(20_000) for _ in range(count)}
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        assert all(one.ok for one in store.put(list(items.items())))
    return items


def readable(sky: GuardedSky, items: dict[bytes, bytes]) -> int:
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        return sum(
            one.data is not None and bytes(one.data) == items[key] for key, one in zip(items, store.get(list(items)), strict=True)
        )


def clear(sky: GuardedSky, who: str) -> int:
    """Let somebody clear all stores; return how many satellites say that they do."""
    with ControlPlane(sky.constellation_of(who), PATIENT) as control:
        return sum(answer is not None and answer.ok for answer in control.relay(routes_of(sky), CLEAR, 20))


def test_without_keys_anybody_clears_all_stores(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=False)
    put_values(sky)
    assert clear(sky, "stranger") == 15
    wait_until(lambda: blocks_held(sky) == 0)


@pytest.mark.parametrize("who", ATTACKERS)
def test_nobody_but_the_mission_clears_a_store(who: str, start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True)
    items = put_values(sky)
    held = blocks_held(sky)
    assert clear(sky, who) == 0
    assert blocks_held(sky) == held > 0
    assert readable(sky, items) == 20
    assert clear(sky, "mission") == 15
    wait_until(lambda: blocks_held(sky) == 0)


def bogus(sky: GuardedSky, who: str) -> None:
    """Give satellites a schedule whose only row has the window elsewhere."""
    with ControlPlane(sky.constellation_of(who), PATIENT) as control:
        upload(control, Playing(Track.of(sky.local.constellation.torus, [(0, THERE)]), time.time() - 5), deadline_s=2)


def test_without_keys_anybody_gives_satellites_a_schedule(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=False, cache={"servers": 4})
    items = put_values(sky)
    bogus(sky, "stranger")
    wait_until(lambda: readable(sky, items) < 20, "values are elsewhere")


@pytest.mark.parametrize("who", ATTACKERS)
def test_nobody_but_the_mission_gives_satellites_a_schedule(who: str, start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True, cache={"servers": 4})
    items = put_values(sky)
    with pytest.raises(ReplayError):
        bogus(sky, who)
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        assert {one["rows"] for one in control.store_stats(routes_of(sky), 20).values()} == {0}
    assert readable(sky, items) == 20


@pytest.mark.parametrize("who", ATTACKERS)
def test_nobody_but_the_mission_moves_a_store_away(who: str, start_guarded: Callable[..., GuardedSky]) -> None:
    """Also without keys a whole tenant moves by the bus alone; with them that needs the mission's key."""
    sky = start_guarded(is_keyed=True)
    items = put_values(sky)
    with sky.host(who, 66) as host:
        order = host.request(icd.OP_MIGRATE, HERE, tenant=ALICE, payload=migrate_payload(THERE))
        answer = host.served(order) if who == "alice" else host.ask(order.encode(), HERE)
    assert answer is not None
    assert answer.status == (icd.STATUS_REFUSED if who == "alice" else icd.STATUS_UNAUTHENTICATED)
    assert readable(sky, items) == 20


def test_recorded_commands_are_not_acted_upon_again(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True)
    with sky.host("mission", 99) as mission, sky.host("stranger", 98) as attacker:
        mission.open(HERE)
        earlier, later = (mission.made(mission.request(icd.OP_RELAY, HERE, payload=CLEAR)) for _ in range(2))
        answer = mission.ask(later, HERE)
        assert answer is not None
        assert answer.status == icd.STATUS_OK
        wait_until(lambda: blocks_held(sky) == 0)
        put_values(sky)
        held = blocks_held(sky)
        for host in (mission, attacker):
            for recorded in (later, earlier):  # a command that another one has overtaken does not count any more, either
                assert host.ask(recorded, HERE) is None
        assert blocks_held(sky) == held
        sky.local.kill(HERE)
        sky.local.restart(HERE)
        held = blocks_held(sky)
        for host in (mission, attacker):
            for recorded in (later, earlier):
                answer = host.ask(recorded, HERE)
                assert answer is not None
                assert answer.status == icd.STATUS_UNAUTHENTICATED
        assert blocks_held(sky) == held
