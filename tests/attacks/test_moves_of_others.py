"""A host of another tenant lets a satellite move a block of his own to one satellite after the other.

Before: with `deadline_ms = 1` each packet, 2,000 a second, was a job that ended at once and had taken one of the satellite's 64
sessions. A session was gone before the answer to its handshake was back, so nobody's blocks moved, for as long as that lasted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from secrets import token_bytes
from threading import Event, Thread
from typing import Final

from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import decode, migrate_payload
from support.guarded_sky import ALICE, MALLORY, GuardedSky
from support.raw_host import RawHost
from support.waiting import wait_until

HERE, THERE = Satellite(2, 3), Satellite(2, 5)
PLANES: Final = 8
SLOTS: Final = 9
"""More satellites than one has sessions for."""
DELAY_US: Final = 20_000
PAUSE_S: Final = 0.0004
MOVES: Final = 3


def order(host: RawHost, key: bytes, tenant: int, target: Satellite, **fields: object) -> bytes:
    """Return the order to move a block away from here."""
    return host.made(host.request(icd.OP_MIGRATE, HERE, key=key, tenant=tenant, payload=migrate_payload(target), **fields))


def put_block(host: RawHost, tenant: int) -> bytes:
    key = token_bytes(32)
    assert host.served(host.put(HERE, key, token_bytes(500), tenant=tenant)) is None
    return key


@contextmanager
def endless_moves(mallory: RawHost) -> Iterator[None]:
    """Order moves that end at once, to one satellite after the other, and keep the block."""
    key, is_over = put_block(mallory, MALLORY), Event()
    everywhere = [Satellite(1 + i // SLOTS, 1 + i % SLOTS) for i in range(PLANES * SLOTS)]
    mallory.socket.setblocking(False)

    def flood() -> None:
        for target in cycle(one for one in everywhere if one not in (HERE, THERE)):
            if is_over.wait(PAUSE_S):
                return
            with suppress(BlockingIOError):
                mallory.send(order(mallory, key, MALLORY, target, flags=icd.FLAG_KEEP, deadline_ms=1), HERE)
                while mallory.receive():
                    pass

    attacker = Thread(target=flood)
    attacker.start()
    try:
        yield
    finally:
        is_over.set()
        attacker.join()


def test_nobody_takes_the_sessions_of_others_moves(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True, constellation={"planes": PLANES, "slots": SLOTS}, links={"delay_us": DELAY_US})
    with sky.host("alice", 5) as alice, sky.host("mallory", 6) as mallory, endless_moves(mallory):
        for _ in range(MOVES):
            key = put_block(alice, ALICE)

            def began(key: bytes = key) -> bool:
                alice.send(order(alice, key, ALICE, THERE), HERE)
                return decode(alice.receive()).status == icd.STATUS_OK

            wait_until(began, "the satellite has a place for a move")
            wait_until(lambda: alice.holds(THERE, key, ALICE), "the block has moved")  # noqa: B023
