"""Somebody sends from the address of a satellite's neighbour, or has a satellite's keys.

Before: one packet with a neighbour's source address moved a whole store away.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from secrets import token_bytes

import pytest

from skymemory.link.control import ControlPlane
from skymemory.security.credential import Credential, Role
from skymemory.security.derivation import pair_key
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NO_KEY, Packet, decode, migrate_payload
from support.guarded_sky import ALICE, GuardedSky
from support.raw_host import RawHost, association_of, handshake, mended, sealed
from support.waiting import PATIENT, wait_until

HERE, NEXT, OTHER = Satellite(2, 3), Satellite(2, 4), Satellite(3, 3)
KEY = b"k" * 32


class Pretender(RawHost):
    """Somebody at the address of a satellite, which does not run any more."""

    def __init__(self, sky: GuardedSky, satellite: Satellite = NEXT) -> None:
        sky.local.kill(satellite)
        constellation = sky.local.constellation
        super().__init__(constellation, source=(constellation.address(*satellite), constellation.network.port))
        self.address = satellite


def kvc_counts(sky: GuardedSky, satellite: Satellite) -> dict[str, int]:
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        return control.store_stats([Route(satellite, satellite)], 20)[satellite]


def isl_counts(sky: GuardedSky, satellite: Satellite) -> dict[str, int]:
    with ControlPlane(sky.constellation_of("mission"), PATIENT) as control:
        return control.link_stats([Route(satellite, satellite)], 20)[satellite].counters


def put_blocks(sky: GuardedSky) -> int:
    with sky.host("alice", 5) as alice:
        for _ in range(30):
            assert alice.served(alice.put(HERE, token_bytes(32), token_bytes(500), tenant=ALICE)) is None
    return kvc_counts(sky, HERE)["blocks"]


def move_away(pretender: Pretender, key: bytes = NO_KEY) -> None:
    order = pretender.request(icd.OP_MIGRATE, HERE, key=key, tenant=ALICE, payload=migrate_payload(OTHER))
    pretender.send(order.encode(), HERE)


def test_without_keys_a_neighbours_address_moves_a_store_away(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=False)
    assert put_blocks(sky) == 30
    with Pretender(sky) as pretender:
        move_away(pretender)
        wait_until(lambda: kvc_counts(sky, HERE)["blocks"] == 0, "the store is elsewhere")


def news_of(pretender: Pretender, dst: Satellite, satellites: list[Satellite]) -> Packet:
    """Return a greeting with the news that all links of these satellites are down."""
    states = b"".join(struct.pack(">HHIH", *one, 1000, 0b1111) for one in satellites)
    payload = bytes(8) + struct.pack(">HH", len(satellites), 0) + states
    return pretender.request(icd.OP_HELLO, dst, hop_limit=1, flags=icd.FLAG_GOSSIP, payload=payload)


def test_a_neighbours_address_is_no_proof(start_guarded: Callable[..., GuardedSky]) -> None:
    """Nothing moves, no way is closed, and no neighbour counts as there that is not."""
    sky = start_guarded(is_keyed=True)
    assert put_blocks(sky) == 30
    with Pretender(sky) as pretender:
        down = isl_counts(sky, HERE)["links_down_known"]
        for packet in (
            news_of(pretender, HERE, [Satellite(1, 1), Satellite(3, 5)]),
            pretender.request(icd.OP_HELLO, HERE, hop_limit=1, payload=bytes(icd.HELLO_BYTES)),
            pretender.request(icd.OP_PURGE, HERE, key=KEY, tenant=ALICE, flags=icd.FLAG_GOSSIP, payload=b""),
            pretender.request(icd.OP_PURGE, HERE, key=KEY, tenant=ALICE),
            pretender.put(HERE, KEY, b"forged", tenant=ALICE),
        ):
            pretender.send(packet.encode(), HERE)
        move_away(pretender)
        before = isl_counts(sky, HERE)["drop_unauthenticated"]
        move_away(pretender, KEY)
        wait_until(lambda: isl_counts(sky, HERE)["drop_unauthenticated"] > before)
        assert kvc_counts(sky, HERE)["blocks"] == 30
        assert kvc_counts(sky, HERE)["purges"] == 0
        assert isl_counts(sky, HERE)["links_down_known"] <= max(down, 4)  # those to the satellite that is gone


@pytest.mark.parametrize("is_keyed", [False, True])
def test_answers_to_a_neighbours_address_are_short(is_keyed: bool, start_guarded: Callable[..., GuardedSky]) -> None:
    """Also to packets of another version, whose header is shorter than ours."""
    sky = start_guarded(is_keyed=is_keyed)
    with Pretender(sky) as pretender:
        start = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES
        for op in (icd.OP_PING, icd.OP_STATS, icd.OP_HELLO, 77):
            for version in (0, 1, 3, 255):
                packet = bytearray(pretender.request(op, HERE, apid=icd.APID_ISL).encode()[: start + icd.BASE_HEADER_BYTES + 2])
                packet[start + icd.OFF_VERSION] = version
                struct.pack_into(">H", packet, 4, len(packet) - icd.PRIMARY_BYTES - 1)
                pretender.send(mended(bytes(packet)), HERE)
        last = pretender.request(icd.OP_PING, HERE, apid=icd.APID_ISL, payload=b"last")
        pretender.send(last.encode(), HERE)
        came = []
        while not came or decode(came[-1]).request_id != last.request_id:
            came.append(pretender.receive())
        answers = [one for one in came[:-1] if not decode(one).is_request]
        assert all(len(one) <= start + icd.BASE_HEADER_BYTES + 2 + 8 for one in answers)


# ---- a captured satellite ----


def asked(host: RawHost, dst: Satellite, credential: bytes, pair: bytes) -> Packet:
    answer = host.ask(handshake(host.request(icd.OP_ASSOCIATE, dst), credential, pair, token_bytes(16)), dst)
    assert answer is not None
    return answer


def satellite_credential(satellite: Satellite, generation: int = 1) -> bytes:
    return bytes([Role.SATELLITE, generation, 255, 0]) + struct.pack(">HH", *satellite) + bytes(40)


def test_keys_of_a_captured_satellite_pose_as_nobody_else(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True)
    captured = sky.captured(NEXT)
    hosts = [
        Credential(Role.HOST, "alice", (ALICE,), 1),
        Credential(Role.HOST, "anybody", None, 1),
        Credential(Role.MISSION, "mission", None, 1),
    ]
    with sky.host("stranger", 66) as thief:
        at = 32 * ((HERE.plane - 1) * 5 + HERE.slot - 1)
        shared = captured.peer_keys[at : at + 32]
        for key in (captured.master_key, shared, bytes(32)):
            for one in hosts:
                for pair in (pair_key(key, one.pack()), key):
                    assert asked(thief, HERE, one.pack(), pair).status == icd.STATUS_UNAUTHENTICATED
        for other in (HERE, OTHER, Satellite(1, 1), Satellite(9, 9)):  # the one that is asked, others, and one that is not there
            for key in (captured.master_key, shared, bytes(32)):
                assert asked(thief, HERE, satellite_credential(other), key).status == icd.STATUS_UNAUTHENTICATED
        for generation in (0, 2, 255):
            assert asked(thief, HERE, satellite_credential(NEXT, generation), shared).status == icd.STATUS_UNAUTHENTICATED


def test_a_captured_satellite_commands_no_other_one(start_guarded: Callable[..., GuardedSky]) -> None:
    """It can be itself, and do what satellites do: no commands, and nothing in the name of a host or another satellite."""
    sky = start_guarded(is_keyed=True)
    assert put_blocks(sky) == 30
    captured = sky.captured(NEXT)
    at = 32 * ((HERE.plane - 1) * 5 + HERE.slot - 1)
    shared, word = captured.peer_keys[at : at + 32], token_bytes(16)
    with Pretender(sky) as thief:
        request = thief.request(icd.OP_ASSOCIATE, HERE)
        thief.send(handshake(request, satellite_credential(NEXT), shared, word), HERE)
        association = association_of(answer_to(thief, request), shared, word)
        for packet in (
            thief.request(icd.OP_RELAY, HERE, payload=b"\x18\xd0\xc0\0\0\1\2\0"),
            thief.request(icd.OP_MIGRATE, HERE, tenant=ALICE, payload=migrate_payload(OTHER)),
            replace(thief.request(icd.OP_PING, HERE), src=OTHER),
            replace(thief.request(icd.OP_PING, HERE), src=Satellite(0, 5), gateway=NEXT),
        ):
            before = isl_counts(sky, HERE)["drop_refused"]
            thief.send(sealed(packet, association), HERE)
            wait_until(lambda: isl_counts(sky, HERE)["drop_refused"] > before)  # noqa: B023
        assert kvc_counts(sky, HERE)["blocks"] == 30


def answer_to(host: RawHost, request: Packet) -> Packet:
    """Return the answer to a request, among what its neighbours send to a satellite."""
    while True:
        packet = decode(host.receive())
        if packet.request_id == request.request_id and not packet.is_request:
            return packet
