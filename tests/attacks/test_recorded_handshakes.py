"""Somebody sends recorded handshakes again, from addresses that he invents: each is granted, and takes a place until it is used.

Before: 16 of them pushed a new association out. At the rate at which strangers are heard, 1,024 a second, that took 16 ms, so a
host with a longer way to a satellite got none.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
from support.raw_host import RawHost, handshake
from support.waiting import PATIENT

HERE: Final = Satellite(2, 3)
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
