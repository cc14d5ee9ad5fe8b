"""Somebody lets satellites send to an address that is not his own, and wants more to arrive there than he sent.

Before: a spoofed GET of 121 bytes was answered with 125,240, 1,035 times as much.
"""

import struct
from collections.abc import Callable, Iterator
from secrets import token_bytes

import pytest

from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NO_KEY, ChunkSet
from support.guarded_sky import ALICE, GuardedSky
from support.raw_host import HEAD_BYTES, RawHost, crc16, mended

MORE_BYTES = 8
"""Bytes by which the answer to a stranger may be longer."""
HERE, FAR, NEXT = Satellite(2, 3), Satellite(1, 1), Satellite(2, 4)
KEY = b"k" * 32
START = icd.PRIMARY_BYTES + icd.REQUEST_SECONDARY_BYTES
LENGTHS = (*range(320), 1000, 1472, 9000, 30_000, icd.LIMIT_PACKET_BYTES)


def with_byte(datagram: bytes, at: int, value: int) -> bytes:
    changed = bytearray(datagram)
    changed[at] = value
    return mended(bytes(changed))


def of_length(datagram: bytes, length: int) -> bytes:
    """Return a request of this length, whose fields about lengths say so, as far as they are within it."""
    changed = bytearray((datagram + bytes(length))[:length])
    if length >= icd.PRIMARY_BYTES + 1:
        struct.pack_into(">H", changed, 4, length - icd.PRIMARY_BYTES - 1)
    if length >= HEAD_BYTES:
        struct.pack_into(">I", changed, START + icd.OFF_LENGTH, max(0, length - HEAD_BYTES - icd.PEC_BYTES))
    return mended(bytes(changed)) if length > START + icd.PEC_BYTES else bytes(changed)


def packets(host: RawHost, where: Satellite) -> Iterator[bytes]:
    """Packets that could make a satellite say much: all operations, what does not decode, other versions, and all lengths."""
    whole = ChunkSet(0, 1, (True,) * 64).encode()
    for op in range(16):
        for apid in (icd.APID_KVC, icd.APID_ISL, 0x111):
            for payload in (b"", whole, token_bytes(72)):
                for key in (KEY, NO_KEY):
                    yield host.request(op, where, apid=apid, key=key, credit=64, tenant=ALICE, payload=payload).encode()
    get = host.request(icd.OP_GET, where, key=KEY, credit=64, tenant=ALICE, payload=whole).encode()
    for at in range(HEAD_BYTES):
        for value in (0, 0xFF, get[at] ^ 1):
            yield with_byte(get, at, value)
    for length in LENGTHS:
        yield of_length(get, length)
        if length > HEAD_BYTES:
            yield with_byte(of_length(get, length), START + icd.OFF_VERSION, 1)
            yield with_byte(of_length(get, length), START + icd.OFF_SECURITY, icd.SUITE_HANDSHAKE)
    for version in (0, 1, 2, 4, 255):
        body = with_byte(get, START + icd.OFF_VERSION, version)[: START + icd.BASE_HEADER_BYTES + icd.PEC_BYTES]
        yield of_length(body, len(body))
    yield get[:-1] + bytes([get[-1] ^ 1])
    yield get[:-2] + crc16(get[:-2]).to_bytes(2)


def put_a_large_block(sky: GuardedSky) -> None:
    with sky.host("alice", 5) as alice:
        for chunk in range(64):
            data = token_bytes(6000)
            packet = alice.put(HERE, KEY, data, tenant=ALICE, chunk_id=chunk, chunk_total=64, block_len=384_000)
            assert alice.served(packet) is None
        assert sum(len(one.payload) for one in alice.chunks(HERE, KEY, ALICE)) == 120_000  # her address was shown


@pytest.mark.parametrize("is_keyed", [False, True])
@pytest.mark.parametrize("where", [HERE, FAR])
def test_no_answer_to_a_stranger_is_much_longer_than_the_request(
    is_keyed: bool, where: Satellite, start_guarded: Callable[..., GuardedSky]
) -> None:
    sky = start_guarded(is_keyed=is_keyed)
    put_a_large_block(sky)
    answered = 0
    with sky.host("stranger", 66) as stranger:
        for packet in packets(stranger, where):
            answers = stranger.answers([packet], HERE)
            assert sum(map(len, answers)) <= len(packet) + MORE_BYTES, (packet, answers)
            answered += len(answers)
    assert answered > 500
