"""Somebody who can write to satellites, or has captured them, changes what a name stands for.

Before: 21 forged PUTs changed a model's greedy text, 6 packets made a Redis GET return somebody else's bytes, values could be
swapped and rolled back, and two satellites that mixed up chunks gave 3 wrong values in 180 reads. Here the attacker has the
mission's keys, so all packets are taken, as if each satellite were captured. A value is then missing, and never wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from secrets import token_bytes
from urllib.parse import urlsplit

import pytest
import redis

from skymemory.sky.placement.core_library import crc32c
from skymemory.store.keyvalue import KeyValue, ValueKeys
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet
from support.agents import AgentProcess
from support.guarded_sky import ALICE, GuardedSky
from support.raw_host import RawHost
from support.waiting import PATIENT

Chunks = dict[tuple[Satellite, int], Packet]


@contextmanager
def values_of(sky: GuardedSky, who: str = "alice") -> Iterator[KeyValue]:
    with SkyStore(sky.constellation_of(who), timing=PATIENT) as store:
        yield KeyValue(store)


def key_of(sky: GuardedSky, name: str) -> bytes:
    with SkyStore(sky.constellation_of("alice")) as store:
        return ValueKeys(store.tenant_secret).key_of(name)


class Capturer(RawHost):
    """Somebody who does with all satellites what he likes."""

    def __init__(self, sky: GuardedSky) -> None:
        super().__init__(sky.local.constellation, 0x0BAD, keyring=sky.keyring_of("mission"))
        self._satellites = list(sky.local.constellation.torus.satellites())

    def seen(self, key: bytes) -> Chunks:
        """Return the chunks of a block, wherever they are."""
        found = [(one, packet) for one in self._satellites for packet in self.chunks(one, key, ALICE)]
        return {(one, packet.chunk_id): packet for one, packet in found if packet.status == icd.STATUS_OK}

    def forget(self, key: bytes) -> None:
        for one in self._satellites:
            answer = self.served(self.request(icd.OP_PURGE, one, key=key, tenant=ALICE))
            assert answer is not None
            assert answer.status == icd.STATUS_OK

    def place(self, key: bytes, chunks: Chunks) -> None:
        """Put chunks under a key, over what is there."""
        self.forget(key)
        for (satellite, chunk_id), packet in chunks.items():
            lengths = {"chunk_total": packet.chunk_total, "block_len": packet.block_len, "chunk_len": packet.chunk_len}
            code = {"code_k": packet.code_k, "code_m": packet.code_m, "code_scheme": packet.code_scheme}
            what = {"tenant": ALICE, "chunk_id": chunk_id, "epoch": packet.epoch, **lengths, **code}
            put = self.put(satellite, key, packet.payload, **what)
            assert self.served(put) is None  # nobody answers a PUT that was taken
        assert self.seen(key).keys() == chunks.keys()


@pytest.fixture
def sky(start_guarded: Callable[..., GuardedSky]) -> GuardedSky:
    return start_guarded(is_keyed=True)


def test_bytes_of_another_name_are_no_value(sky: GuardedSky) -> None:
    with values_of(sky) as values, Capturer(sky) as capturer:
        for name in ("one", "other"):
            assert values.put(name, name.encode() * 9000).ok
        one, other = key_of(sky, "one"), key_of(sky, "other")
        of_one, of_other = capturer.seen(one), capturer.seen(other)
        assert len(of_one) > 1
        capturer.place(one, of_other)
        capturer.place(other, of_one)
        with values_of(sky) as reader:
            for host in (values, reader):
                assert host.get("one") is None
                assert host.get("other") is None


def test_a_value_that_was_rolled_back_is_missing(sky: GuardedSky) -> None:
    """For everybody who knows the newer one, as the page on security says."""
    with values_of(sky) as values, values_of(sky) as reader, Capturer(sky) as capturer:
        assert values.put("balance", b"100" * 5000).ok
        old = capturer.seen(key_of(sky, "balance"))
        assert values.put("balance", b"999" * 5000).ok
        assert reader.get("balance") == b"999" * 5000
        capturer.place(key_of(sky, "balance"), old)
        assert values.get("balance") is None
        assert reader.get("balance") is None


def test_mixed_up_chunks_give_nothing_wrong(sky: GuardedSky) -> None:
    with values_of(sky) as values, Capturer(sky) as capturer:
        value, key = token_bytes(60_000), key_of(sky, "large")
        assert values.put("large", value).ok
        chunks = capturer.seen(key)
        at = sorted(chunks, key=lambda where: where[1])
        assert len(at) == 11 + 2 * 2  # two rows with parity
        for here, there in ((0, 1), (2, 9), (5, 6)):
            mixed = dict(chunks)
            mixed[at[here]] = replace(chunks[at[there]], chunk_id=at[here][1])
            mixed[at[there]] = replace(chunks[at[here]], chunk_id=at[there][1])
            capturer.place(key, mixed)
            for _ in range(2):  # with luck enough of the others answer first, and it is right
                assert values.get("large") in (None, value)
                with values_of(sky) as reader:
                    assert reader.get("large") in (None, value)
                capturer.place(key, mixed)
        capturer.place(key, chunks)
        with values_of(sky) as reader:
            assert reader.get("large") == value


def test_changed_bytes_with_a_right_checksum_are_a_miss(sky: GuardedSky) -> None:
    with values_of(sky) as values, Capturer(sky) as capturer:
        key = key_of(sky, "text")
        assert values.put("text", b"The answer is yes.").ok
        copies = capturer.seen(key)
        assert len(copies) == 3
        payload = next(iter(copies.values())).payload
        for at in (0, len(payload) // 2, len(payload) - 1):
            changed = bytearray(payload)
            changed[at] ^= 1
            wrong = {"payload": bytes(changed), "chunk_crc": crc32c(bytes(changed))}
            capturer.place(key, {where: replace(packet, **wrong) for where, packet in copies.items()})
            with values_of(sky) as reader:
                assert reader.get("text") is None


def forge(sky: GuardedSky, who: str, key: bytes) -> list[int]:
    """Put other bytes over a value on all satellites, and return what they say."""
    said = []
    with sky.host(who, 0x0BAD) as host:
        for satellite in sky.local.constellation.torus.satellites():
            if who == "stranger" and sky.is_keyed:
                host.cookies[satellite] = 1
            for op in (icd.OP_PURGE, icd.OP_PUT):
                packet = host.put(satellite, key, b"other bytes", tenant=ALICE)
                answer = host.served(packet if op == icd.OP_PUT else host.request(op, satellite, key=key, tenant=ALICE))
                said.append(icd.STATUS_OK if answer is None else answer.status)
    return said


def test_without_keys_a_forged_put_makes_a_value_a_miss(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=False)
    with values_of(sky) as values:
        assert values.put("weights", b"right").ok
        assert set(forge(sky, "stranger", key_of(sky, "weights"))) == {icd.STATUS_OK}
        with values_of(sky) as reader:
            assert reader.get("weights") is None


@pytest.mark.parametrize(("who", "status"), [("stranger", icd.STATUS_UNAUTHENTICATED), ("mallory", icd.STATUS_REFUSED)])
def test_forged_puts_are_refused(sky: GuardedSky, who: str, status: int) -> None:
    with values_of(sky) as values:
        assert values.put("weights", b"right").ok
        assert set(forge(sky, who, key_of(sky, "weights"))) == {status}
        with values_of(sky) as reader:
            assert reader.get("weights") == b"right"


def test_a_redis_name_leads_to_nobody_elses_bytes(
    sky: GuardedSky, start_agent: Callable[[LocalConstellation, str, str], AgentProcess]
) -> None:
    agent = start_agent(sky.local, "--resp-port", "0")
    with agent, redis.Redis(port=urlsplit(agent.addresses["redis"]).port) as client, Capturer(sky) as capturer:
        assert client.set("mine", "of alice")
        assert client.get("mine") == b"of alice"

        # Without the tenant secret nobody knows which key a name has
        assert not any(capturer.seen(ValueKeys(b"", number).key_of("mine")) for number in (None, ALICE))

        # Who sees the packets finds the key, and changes what lies there: another value's bytes, and his own
        with values_of(sky) as values:
            assert values.put("bait", b"of mallory").ok
        capturer.place(key_of(sky, "mine"), capturer.seen(key_of(sky, "bait")))
        assert client.get("mine") in (None, b"of alice")  # which the agent may know without asking
    with start_agent(sky.local, "--resp-port", "0") as fresh, redis.Redis(port=urlsplit(fresh.addresses["redis"]).port) as client:
        assert client.get("mine") is None
