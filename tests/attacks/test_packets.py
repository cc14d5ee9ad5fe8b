"""Somebody on the path records, repeats, reorders and changes packets, before and after a satellite begins anew."""

import random
from collections.abc import Callable
from dataclasses import replace
from secrets import token_bytes

import pytest

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.guarded_sky import ALICE, MALLORY, GuardedSky
from support.raw_host import CHECKSUM_AT, HEAD_BYTES, association_of, handshake, mended, status_of
from support.waiting import PATIENT

HERE = Satellite(2, 3)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
START = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES
MASKED = {START + icd.OFF_HOP_LIMIT, *range(START + icd.OFF_GATEWAY_PLANE, START + icd.OFF_TENANT)}
"""Bytes that change on the way, and are not covered by the tag."""


def counts(sky: GuardedSky) -> dict[str, int]:
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        return control.link_stats([Route(HERE, HERE)], 20)[HERE].counters


def begin_anew(sky: GuardedSky) -> None:
    sky.local.kill(HERE)
    sky.local.restart(HERE)


@pytest.fixture
def sky(start_guarded: Callable[..., GuardedSky]) -> GuardedSky:
    return start_guarded(is_keyed=True)


def test_without_keys_a_recorded_packet_is_acted_upon_again(start_guarded: Callable[..., GuardedSky]) -> None:
    """Whoever has an address of his own needs a cookie of his own, which he gets."""
    sky = start_guarded(is_keyed=False)
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        put = alice.put(HERE, KEY, b"old", tenant=ALICE)
        assert alice.served(put) is None
        assert alice.served(alice.request(icd.OP_PURGE, HERE, key=KEY, tenant=ALICE)) is not None
        assert attacker.served(put) is None
        assert alice.holds(HERE, KEY, ALICE)


def test_recorded_packets_are_acted_upon_once(sky: GuardedSky) -> None:
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        alice.open(HERE)
        put = alice.made(alice.put(HERE, KEY, b"old", tenant=ALICE))
        purge = alice.made(alice.request(icd.OP_PURGE, HERE, key=KEY, tenant=ALICE))
        assert alice.ask(put, HERE) is None
        assert alice.holds(HERE, KEY, ALICE)
        assert alice.ask(purge, HERE) is not None
        for host in (alice, attacker):  # from her own address, and from another one
            assert host.answers([put, purge, put], HERE) == []
        assert not alice.holds(HERE, KEY, ALICE)

        # After the purge she puts it again: the recorded purge does nothing
        assert alice.served(alice.put(HERE, KEY, b"new", tenant=ALICE)) is None
        for host in (alice, attacker):
            assert host.answers([purge], HERE) == []
        assert alice.holds(HERE, KEY, ALICE)

        begin_anew(sky)
        for host in (alice, attacker):
            for recorded in (put, purge):
                answer = host.ask(recorded, HERE)
                assert answer is not None
                assert answer.status == icd.STATUS_UNAUTHENTICATED
        alice.open(HERE)
        assert not alice.holds(HERE, KEY, ALICE)
        assert attacker.answers([put], HERE)  # also when she has another association
        assert not alice.holds(HERE, KEY, ALICE)


def test_reordered_packets_are_each_acted_upon_once(sky: GuardedSky) -> None:
    """Packets may overtake each other: all of them count, in any order."""
    with sky.host("alice", 5) as alice:
        alice.open(HERE)
        keys = [token_bytes(32) for _ in range(300)]
        puts = [alice.made(alice.put(HERE, key, b"x", tenant=ALICE)) for key in keys]
        random.Random(7).shuffle(puts)
        assert alice.answers(puts, HERE) == []
        before = counts(sky)["drop_replayed"]
        assert all(alice.holds(HERE, key, ALICE) for key in keys)
        assert alice.answers(puts, HERE) == []
        assert counts(sky)["drop_replayed"] >= before + len(puts)


def test_a_recorded_association_opens_nothing(sky: GuardedSky) -> None:
    """The same handshake gives the same index, and whoever repeats it has no keys. After a boot it gives other keys."""
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        keyring = sky.keyring_of("alice")
        assert keyring is not None
        word, pair = token_bytes(16), keyring.pair_key(*HERE)
        recorded = handshake(alice.request(icd.OP_ASSOCIATE, HERE), keyring.credential, pair, word)
        first = alice.ask(recorded, HERE)
        assert first is not None
        alice.associations[HERE], alice.cookies[HERE] = association_of(first, pair, word), first.cookie
        assert alice.served(alice.put(HERE, KEY, b"hers", tenant=ALICE)) is None
        for _ in range(50):
            again = attacker.ask(recorded, HERE)
            assert again is not None
            assert (again.spi, again.payload) == (first.spi, first.payload)
        assert alice.holds(HERE, KEY, ALICE)  # nothing was reset

        # Under that index he can send what he has seen, and what he makes up
        for packet in (alice.request(icd.OP_PURGE, HERE, key=KEY, tenant=ALICE), alice.put(HERE, OTHER_KEY, b"x", tenant=ALICE)):
            for sequence in (0, 1, 2, 3, 1000, 2**64 - 1):
                made_up = replace(packet, security=3, spi=first.spi, sequence=sequence, tag=token_bytes(16), cookie=again.cookie)
                answer = attacker.ask(made_up.encode(), HERE)
                assert answer is not None
                assert answer.status == icd.STATUS_UNAUTHENTICATED
        assert alice.holds(HERE, KEY, ALICE)
        assert not alice.holds(HERE, OTHER_KEY, ALICE)

        begin_anew(sky)
        later = attacker.ask(recorded, HERE)
        assert later is not None
        assert later.payload[:16] != first.payload[:16]  # the salt of another boot: other keys


def test_many_recorded_associations_push_out_nobody(sky: GuardedSky) -> None:
    keyring = sky.keyring_of("mallory")
    assert keyring is not None
    pair = keyring.pair_key(*HERE)
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        assert alice.served(alice.put(HERE, KEY, b"hers", tenant=ALICE)) is None
        request = attacker.request(icd.OP_ASSOCIATE, HERE)
        recorded = [handshake(request, keyring.credential, pair, token_bytes(16)) for _ in range(3000)]
        assert attacker.answers(recorded, HERE)
        assert alice.holds(HERE, KEY, ALICE)  # under the association of before


def flipped(datagram: bytes, bit: int) -> bytes:
    changed = bytearray(datagram)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return mended(bytes(changed))


@pytest.mark.parametrize("op", [icd.OP_PURGE, icd.OP_PUT])
def test_no_bit_of_a_header_can_be_changed(sky: GuardedSky, op: int) -> None:
    """With a checksum and a PEC that fit. What changes on the way is not covered; such a packet counts, once, as what it was."""
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        assert alice.served(alice.put(HERE, KEY, b"hers", tenant=ALICE)) is None
        packet = (
            alice.put(HERE, OTHER_KEY, b"x", tenant=ALICE) if op == icd.OP_PUT else alice.request(op, HERE, key=KEY, tenant=ALICE)
        )
        original = alice.made(packet)
        tag = range(len(original) - icd.PEC_BYTES - icd.TAG_BYTES, len(original) - icd.PEC_BYTES)
        bits = [8 * at + bit for at in (*range(HEAD_BYTES), *tag) if at != CHECKSUM_AT and at not in MASKED for bit in range(8)]
        said = {status_of(one) for one in attacker.answers((flipped(original, bit) for bit in bits), HERE)}
        assert icd.STATUS_OK not in said
        assert icd.STATUS_NOT_FOUND not in said
        assert alice.holds(HERE, KEY, ALICE)
        assert not alice.holds(HERE, OTHER_KEY, ALICE)

        attacker.answers((flipped(original, 8 * at + bit) for at in sorted(MASKED) for bit in range(8)), HERE)
        assert alice.holds(HERE, OTHER_KEY if op == icd.OP_PUT else KEY, ALICE) == (op == icd.OP_PUT)


def test_no_bit_of_a_payload_can_be_changed_but_a_chunks(sky: GuardedSky) -> None:
    """Under a suite of headers a chunk's bytes are held by their CRC in the header; one bit, or any few, do not pass it."""
    with sky.host("alice", 5) as alice, sky.host("stranger", 66) as attacker:
        original = alice.put(HERE, KEY, bytes(64), tenant=ALICE)
        alice.open(HERE)
        put = alice.made(original)
        attacker.answers((flipped(put, 8 * HEAD_BYTES + bit) for bit in range(8)), HERE)
        assert not alice.holds(HERE, KEY, ALICE)


def test_a_host_is_served_its_own_tenants_alone(sky: GuardedSky) -> None:
    with sky.host("alice", 5) as alice, sky.host("mallory", 66) as mallory:
        assert alice.served(alice.put(HERE, KEY, b"hers", tenant=ALICE)) is None
        for tenant in (ALICE, 0, 2**32 - 1):
            for op in (icd.OP_GET, icd.OP_HAS, icd.OP_PURGE, icd.OP_PUT, icd.OP_MIGRATE):
                packet = (
                    mallory.put(HERE, KEY, b"his") if op == icd.OP_PUT else mallory.request(op, HERE, key=KEY, payload=bytes(9))
                )
                answer = mallory.served(replace(packet, tenant=tenant))
                assert answer is not None
                assert answer.status == icd.STATUS_REFUSED
        assert [one.payload for one in alice.chunks(HERE, KEY, ALICE) if one.status == icd.STATUS_OK] == [b"hers"]
        assert mallory.served(mallory.put(HERE, KEY, b"his", tenant=MALLORY)) is None  # his own, under the same key
        assert [one.payload for one in alice.chunks(HERE, KEY, ALICE) if one.status == icd.STATUS_OK] == [b"hers"]

        # Nor does another credential help: the key was made for his own
        mine, hers = sky.keyring_of("mallory"), sky.keyring_of("alice")
        assert mine is not None
        assert hers is not None
        answer = mallory.ask(
            handshake(mallory.request(icd.OP_ASSOCIATE, HERE), hers.credential, mine.pair_key(*HERE), token_bytes(16)), HERE
        )
        assert answer is not None
        assert answer.status == icd.STATUS_UNAUTHENTICATED
