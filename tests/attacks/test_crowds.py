"""Somebody invents hosts, or asks so much that others get nothing.

Before: 4.4 Mbit/s of requests with invented hosts crowded the gateway's table out, with `uplink = "nearest"`.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from secrets import token_bytes

import pytest

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, decode
from support.guarded_sky import GuardedSky
from support.raw_host import RawHost, handshake
from support.waiting import PATIENT, wait_until

ENTRY, FAR = Satellite(2, 3), Satellite(1, 5)
NEAREST = {"uplink": "nearest"}
BURST = 64
"""Datagrams that a satellite's socket takes at once."""
FLOODS = 100
"""Bursts of forged handshakes: several times as many packets as a satellite may take at once from one source."""
ROUNDS = 1000
"""Bursts from everywhere: several times as many packets as a satellite answers at once."""
ANSWERS = 16384
"""Packets of strangers that a satellite answers at once, and again in each second (`sky_security_limits.c`)."""
PORTS = 80
"""More than the places of the table of hosts."""


def entry_counts(sky: GuardedSky) -> dict[str, int]:
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        return control.link_stats([Route(ENTRY, ENTRY)], 20)[ENTRY].counters


def pings_through(sky: GuardedSky, count: int) -> int:
    """Return how many questions of an honest host through the entry satellite are answered."""
    with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:
        return sum(len(control.ping([Route(FAR, ENTRY)], 20)) for _ in range(count))


def invented(host: RawHost, count: int) -> list[bytes]:
    """Requests to a far satellite under this many numbers of hosts."""
    ask = host.request(icd.OP_PING, FAR, gateway=ENTRY, cookie=host.cookies.get(ENTRY, 1))
    return [replace(ask, src=Satellite(0, 1 + number), request_id=number).encode() for number in range(count)]


@pytest.mark.parametrize("is_keyed", [False, True])
def test_invented_hosts_are_passed_on_nowhere(is_keyed: bool, start_guarded: Callable[..., GuardedSky]) -> None:
    """Without a cookie, which goes to an address that can be reached alone, and with keys to associated hosts alone."""
    sky = start_guarded(is_keyed=is_keyed, cache=NEAREST)
    assert pings_through(sky, 1) == 1
    with sky.host("stranger", 66) as attacker:
        before = entry_counts(sky)
        for _ in range(20):
            attacker.answers(invented(attacker, 300), ENTRY)
            assert pings_through(sky, 1) == 1
        after = entry_counts(sky)
    assert after["drop_cookie"] - before["drop_cookie"] >= 6000
    assert after["forwarded"] - before["forwarded"] < 6000


def test_one_address_with_many_ports_takes_nobodys_place(start_guarded: Callable[..., GuardedSky]) -> None:
    """Somebody with more ports than the table has places, and a cookie for each: they take places from each other."""
    sky = start_guarded(is_keyed=False, cache=NEAREST)
    with sky.host("alice", 5000) as alice, ExitStack() as stack:
        thieves = [
            stack.enter_context(RawHost(sky.local.constellation, 6000 + number, source=("127.0.2.1", 0)))
            for number in range(PORTS)
        ]
        for host in (alice, *thieves):
            host.open(ENTRY)
        ask = alice.request(icd.OP_PING, FAR, gateway=ENTRY, cookie=alice.cookies[ENTRY])
        for _ in range(20):
            for thief in thieves:
                thief.send(thief.request(icd.OP_PING, FAR, gateway=ENTRY, cookie=thief.cookies[ENTRY]).encode(), ENTRY)
            alice.send(replace(ask, request_id=ask.request_id).encode(), ENTRY)
            assert alice.receive()


def test_a_flood_of_strangers_is_answered_so_often(start_guarded: Callable[..., GuardedSky]) -> None:
    """Answers go to an address that may be somebody else's. Honest hosts, from the same address too, are served meanwhile."""
    sky = start_guarded(is_keyed=True)
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        alice.open(ENTRY)
        ping = attacker.request(icd.OP_PING, ENTRY).encode()
        left_out = 0

        def are_left_out() -> bool:
            nonlocal left_out
            left_out += BURST - flood(alice, attacker, [ping] * BURST)
            return left_out > 1000

        wait_until(are_left_out, "strangers are not all answered", pause_s=0)


def flood(honest: RawHost, attacker: RawHost, datagrams: list[bytes]) -> int:
    """Send datagrams to the entry satellite, then an honest question; return how many of the datagrams were answered."""
    for one in datagrams:
        attacker.send(one, ENTRY)
    honest.send(honest.made(honest.request(icd.OP_PING, ENTRY)), ENTRY)  # which comes after all others
    assert decode(honest.receive()).status == icd.STATUS_OK
    came = 0
    attacker.socket.settimeout(0)
    with suppress(BlockingIOError):
        while attacker.receive():
            came += 1
    return came


@pytest.mark.parametrize("is_keyed", [False, True])
def test_openings_are_answered_in_a_flood_from_everywhere(is_keyed: bool, start_guarded: Callable[..., GuardedSky]) -> None:
    """More forged packets than a satellite answers in all: whoever opens it meanwhile is answered each time."""
    sky = start_guarded(is_keyed=is_keyed)
    with ExitStack() as stack:
        hosts = [RawHost(sky.local.constellation, source=(f"127.0.2.{1 + i}", 0)) for i in range(BURST)]
        forged = [(stack.enter_context(host), host.request(icd.OP_PING, ENTRY).encode()) for host in hosts]
        late = stack.enter_context(sky.host("stranger", 77))
        answered = left_out = 0
        begun_s = time.monotonic()
        for _ in range(ROUNDS):  # a busy machine may not send fast enough for anybody to be left out
            for host, ping in forged:
                host.send(ping, ENTRY)
            late.cookies.clear()
            late.open(ENTRY)  # which comes after all others
            came = sum(is_answered(host) for host in hosts)
            answered += came
            left_out += BURST - came
            if left_out > 1000:
                break
        assert answered <= ANSWERS * (1 + time.monotonic() - begun_s)


def is_answered(host: RawHost) -> bool:
    """Return True if an answer has come."""
    host.socket.setblocking(False)
    try:
        return bool(host.receive())
    except BlockingIOError:
        return False


def test_a_flood_of_handshakes_locks_no_host_out(start_guarded: Callable[..., GuardedSky]) -> None:
    """Strangers are asked for a cookie first, and with it a host associates."""
    sky = start_guarded(is_keyed=True)
    keyring, constellation = sky.keyring_of("mallory"), sky.local.constellation
    assert keyring is not None
    with (
        sky.host("alice", 5) as alice,
        sky.host("stranger", 66) as attacker,
        RawHost(constellation, source=("127.0.0.2", 0)) as elsewhere,
        RawHost(constellation, number=77, keyring=keyring, source=("127.0.0.3", 0)) as late,
    ):
        alice.open(ENTRY)
        forged = handshake(attacker.request(icd.OP_ASSOCIATE, ENTRY), keyring.credential, token_bytes(32), token_bytes(16))

        def asked_for_a_cookie() -> Packet | None:
            for _ in range(50):
                flood(alice, attacker, [forged] * BURST)
            elsewhere.send(forged, ENTRY)
            answer = decode(elsewhere.receive())
            return answer if answer.status == icd.STATUS_COOKIE else None

        wait_until(asked_for_a_cookie, "handshakes are limited", pause_s=0)
        word, pair = token_bytes(16), keyring.pair_key(*ENTRY)
        request = late.request(icd.OP_ASSOCIATE, ENTRY)
        late.send(handshake(request, keyring.credential, pair, word), ENTRY)
        answer = decode(late.receive())
        if answer.status == icd.STATUS_COOKIE:  # else there was room again
            again = replace(late.request(icd.OP_ASSOCIATE, ENTRY), cookie=answer.cookie)
            late.send(handshake(again, keyring.credential, pair, word), ENTRY)
            answer = decode(late.receive())
        assert answer.status == icd.STATUS_OK
        with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:  # and so does a real one
            assert control.ping([Route(ENTRY, ENTRY)], 20)


def test_forged_handshakes_on_the_way_lock_no_host_out(start_guarded: Callable[..., GuardedSky]) -> None:
    """Somebody with a cookie of an entry satellite sends them through it. The satellite at the end looks at their tags first."""
    sky = start_guarded(is_keyed=True)
    keyring = sky.keyring_of("alice")
    assert keyring is not None
    with sky.host("alice", 5) as alice, sky.host("mallory", 66) as attacker:
        alice.open_way(ENTRY)
        attacker.open_way(ENTRY)
        order = attacker.request(icd.OP_ASSOCIATE, FAR, cookie=attacker.cookies[ENTRY])
        forged = [handshake(order, keyring.credential, token_bytes(32), token_bytes(16))] * BURST
        for _ in range(FLOODS):
            for one in forged:
                attacker.send(one, ENTRY)
            asked = alice.request(icd.OP_ASSOCIATE, FAR, cookie=alice.cookies[ENTRY])
            alice.send(handshake(asked, keyring.credential, keyring.pair_key(*FAR), token_bytes(16)), ENTRY)  # after all others
            answer = decode(alice.receive())
            assert (answer.request_id, answer.status) == (asked.request_id, icd.STATUS_OK)
