"""Somebody sends recorded handshakes again, from addresses that he invents: each is granted, and takes a place until it is used.

Before: 16 of them pushed a new association out. At the rate at which strangers are heard, 1,024 a second, that took 16 ms, so a
host with a longer way to a satellite got none. And each, from an address that can be reached, brought a cookie with which the
satellite passed packets on.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import cycle
from secrets import token_bytes
from threading import Event, Thread
from typing import Final

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, decode
from support.guarded_sky import GuardedSky
from support.raw_host import RawHost, association_of, handshake, sealed
from support.waiting import PATIENT

HERE: Final = Satellite(2, 3)
FAR: Final = Satellite(3, 5)
PLACES: Final = 16
"""Associations that a satellite keeps until they are used."""
PAUSE_S: Final = 0.002
SLOW_US: Final = 150_000
"""Delay of each link, in which a flood takes all places several times."""


def recorded(host: RawHost, sky: GuardedSky) -> bytes:
    """Return a handshake of another host, as if it had been recorded, with the cookie that this one has."""
    keyring = sky.keyring_of("mallory")
    assert keyring is not None
    request = host.request(icd.OP_ASSOCIATE, HERE, cookie=host.cookies.get(HERE, 0))
    return handshake(request, keyring.credential, keyring.pair_key(*HERE), token_bytes(16))


@contextmanager
def invented_addresses(sky: GuardedSky, count: int) -> Iterator[list[RawHost]]:
    with ExitStack() as stack:
        hosts = [RawHost(sky.local.constellation, source=(f"127.0.1.{1 + i}", 0)) for i in range(count)]
        yield [stack.enter_context(host) for host in hosts]


def grant_all(hosts: list[RawHost], sky: GuardedSky) -> None:
    """Let each address send a handshake, which the satellite grants."""
    for host in hosts:
        host.send(recorded(host, sky), HERE)
        assert decode(host.receive()).status == icd.STATUS_OK


def take_cookies(hosts: list[RawHost], sky: GuardedSky) -> None:
    for host in hosts:
        host.send(recorded(host, sky), HERE)
        host.cookies[HERE] = decode(host.receive()).cookie


def pinged(host: RawHost) -> Packet:
    answer = host.ask(host.made(host.request(icd.OP_PING, HERE)), HERE)
    assert answer is not None
    return answer


def test_a_cookie_keeps_the_place_of_an_association(start_guarded: Callable[..., GuardedSky]) -> None:
    """A host that has shown nothing is pushed out. It learns that, comes again with the cookie that it got, and stays."""
    sky = start_guarded(is_keyed=True)
    with sky.host("alice", 5) as alice, invented_addresses(sky, 2 * PLACES) as invented:
        alice.open(HERE)
        grant_all(invented, sky)
        assert pinged(alice).status == icd.STATUS_UNAUTHENTICATED
        alice.open(HERE)
        for _ in range(4):
            grant_all(invented, sky)
        assert pinged(alice).status == icd.STATUS_OK


def test_addresses_with_cookies_push_out_their_own(start_guarded: Callable[..., GuardedSky]) -> None:
    """Somebody with fewer addresses of his own than there are places, who has a cookie for each."""
    sky = start_guarded(is_keyed=True)
    with sky.host("alice", 5) as alice, invented_addresses(sky, PLACES // 2) as owned:
        take_cookies([alice, *owned], sky)
        alice.open(HERE)
        for _ in range(2 * PLACES):
            grant_all(owned, sky)
        assert pinged(alice).status == icd.STATUS_OK


def test_a_host_on_a_slow_link_associates_in_a_flood(start_guarded: Callable[..., GuardedSky]) -> None:
    """Its first association is pushed out long before it can use it."""
    sky = start_guarded(is_keyed=True, links={"delay_us": SLOW_US})
    is_over = Event()

    with invented_addresses(sky, 4 * PLACES) as invented:

        def flood() -> None:
            for host in cycle(invented):
                if is_over.wait(PAUSE_S):
                    return
                host.send(recorded(host, sky), HERE)

        attacker = Thread(target=flood)
        attacker.start()
        try:
            with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:
                assert control.ping([Route(HERE, HERE)], 20)
        finally:
            is_over.set()
            attacker.join()


def passed_on(host: RawHost, cookie: int) -> bool:
    """Return True if a packet of a host to a far satellite gets there, with a cookie of the one that it is sent to."""
    ping = host.request(icd.OP_PING, FAR, apid=icd.APID_ISL, gateway=HERE, cookie=cookie)
    host.send(ping.encode(), HERE)
    while (answer := decode(host.receive())).request_id != ping.request_id:
        pass
    assert answer.status == icd.STATUS_UNAUTHENTICATED  # it has no tag, which its target alone looks for
    assert answer.src in (HERE, FAR)
    return answer.src == FAR


def test_a_recorded_handshake_opens_no_way(start_guarded: Callable[..., GuardedSky]) -> None:
    """Its cookie serves for handshakes. The one for what is passed on needs a tag of the association. So it is after a boot."""
    sky = start_guarded(is_keyed=True)
    keyring = sky.keyring_of("alice")
    assert keyring is not None
    word, pair = token_bytes(16), keyring.pair_key(*HERE)
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as thief:
        tape = handshake(alice.request(icd.OP_ASSOCIATE, HERE), keyring.credential, pair, word)
        granted = alice.ask(tape, HERE)
        assert granted is not None
        question = sealed(alice.request(icd.OP_ASSOCIATE, HERE), association_of(granted, pair, word))
        answer = alice.ask(question, HERE)
        assert answer is not None
        assert not passed_on(alice, granted.cookie)
        assert passed_on(alice, answer.cookie)
        assert not passed_on(thief, answer.cookie)
        for boot in range(2):
            again = thief.ask(tape, HERE)
            assert again is not None
            assert again.status == icd.STATUS_OK
            assert again.cookie != 0
            assert not passed_on(thief, again.cookie)
            other_number = replace(thief.request(icd.OP_PING, FAR, apid=icd.APID_ISL), src=Satellite(0, 999), cookie=again.cookie)
            refused = thief.ask(other_number.encode(), HERE)
            assert refused is not None
            assert refused.src == HERE
            renewal = thief.ask(question, HERE)
            assert renewal is None if boot == 0 else renewal is not None and renewal.cookie == 0
            sky.local.kill(HERE)
            sky.local.restart(HERE)
