"""Evidence that hosts of a tenant share through the sky, in memory and in real satellites."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from skymemory.common.whole_file import Buffer
from skymemory.segments.evidence import Point, PromptSize, Sample
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.gate_in_sky import RECORD_BYTES_MAX, GateInSky
from skymemory.segments.kept_gate import KeptGate
from skymemory.store.results import PutResult, Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import Kind, seal
from skymemory.wire.key_derivation import root_key, seal_keys
from support.memory_store import MemoryStore
from support.waiting import wait_until

MODEL = bytes(range(32))
POINT = Point(MODEL.hex(), "raw", "lego:8", 1)
GOOD, BAD = Sample(0.0, 1.0), Sample(5.0, 0.0)
SIZE = PromptSize(segments=6, segment_tokens=32, tokens=197)
SECRET = b"secret of the tenant"


def host(store: MemoryStore | SkyStore, folder: Path, secret: bytes = SECRET) -> KeptGate:
    return KeptGate(lambda: store, secret, folder)


def check(kept: KeptGate) -> None:
    for _ in range(PROMPTS_MIN):
        kept.gate.checked(POINT, GOOD, SIZE)
    for _ in range(POWER_PROMPTS_MIN):
        kept.gate.checked_shuffled(POINT, BAD)


@pytest.fixture(params=["memory", "satellites"])
def store(request: pytest.FixtureRequest) -> Iterator[MemoryStore | SkyStore]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        with SkyStore(request.getfixturevalue("start_sky")().constellation) as sky:
            yield sky


def test_what_one_host_has_checked_is_open_for_all_and_a_breach_closes_it(store: MemoryStore | SkyStore, tmp_path: Path) -> None:
    one, other = host(store, tmp_path / "one"), host(store, tmp_path / "other")
    check(one)
    one.keep(MODEL)
    assert other.look(MODEL) == ""
    wait_until(lambda: other.gate.is_open(POINT), "the other host has taken the record")
    wait_until(lambda: host(MemoryStore(), tmp_path / "other").look(MODEL) == "", "and its file is sound")
    for _ in range(3):
        closed = other.gate.canary(POINT, BAD)
    assert closed
    other.keep(MODEL)
    one.take(MODEL)
    assert not one.gate.is_open(POINT)
    one.keep(MODEL)  # an old record would not open it again
    other.take(MODEL)
    assert not other.gate.is_open(POINT)
    assert other.gate.verdict(POINT).generation == 1


def test_a_program_of_the_same_host_needs_no_sky(tmp_path: Path) -> None:
    silent = MemoryStore()
    silent.is_silent = True
    one = host(silent, tmp_path)
    check(one)
    one.keep(MODEL)
    assert not silent.blocks
    other = host(silent, tmp_path)
    assert other.look(MODEL) == ""
    assert other.gate.is_open(POINT)
    assert other.gate.host != one.gate.host


def test_a_sky_that_fails_leaves_the_record_of_the_host(tmp_path: Path) -> None:
    failing = MemoryStore()
    failing.failing = {"get", "put", "find"}
    one = host(failing, tmp_path)
    check(one)
    one.keep(MODEL)
    one.take(MODEL)
    other = host(failing, tmp_path)
    other.look(MODEL)
    assert other.gate.is_open(POINT)


def test_a_real_sky_that_falls_silent_leaves_the_record_of_the_host(
    start_sky: Callable[..., LocalConstellation], stopped: Callable[..., AbstractContextManager[None]], tmp_path: Path
) -> None:
    sky = start_sky(cache={"deadline_ms": 300})
    with SkyStore(sky.constellation) as store, stopped(sky):
        one = host(store, tmp_path)
        check(one)
        one.keep(MODEL)
        assert host(store, tmp_path).look(MODEL) == ""


def test_tenants_and_models_are_apart(tmp_path: Path) -> None:
    store = MemoryStore()
    one = host(store, tmp_path)
    check(one)
    one.keep(MODEL)
    stranger = host(store, tmp_path, b"secret of another tenant")
    stranger.look(MODEL)
    stranger.take(MODEL)
    assert not stranger.gate.is_open(POINT)
    one.keep(b"n" * 32)
    [block] = [block for key, block in store.blocks.items() if key == GateInSky(SECRET, b"n" * 32).key]
    assert b"lego" not in block


def test_hosts_that_share_at_the_same_time_lose_nothing_for_good(tmp_path: Path) -> None:
    store = MemoryStore()
    hosts = [host(store, tmp_path / str(number)) for number in range(3)]
    for number, one in enumerate(hosts):
        for _ in range(number + 1):
            one.gate.checked(POINT, GOOD, SIZE)
    for one in hosts:  # each replaces the record of one that it did not know
        store.blocks.clear()
        one.keep(MODEL)
    for one in hosts:
        one.keep(MODEL)
    late = host(store, tmp_path / "late")
    late.take(MODEL)
    assert late.gate.verdict(POINT).counts.checks.prompts == 6


def test_nothing_is_put_that_the_sky_has(tmp_path: Path) -> None:
    store = MemoryStore()
    one = host(store, tmp_path)
    check(one)
    one.keep(MODEL)
    before = dict(store.blocks)
    one.keep(MODEL)
    host(store, tmp_path / "other").keep(MODEL)
    assert store.blocks == before


def test_garbage_is_purged_and_does_not_stay(tmp_path: Path) -> None:
    store = MemoryStore()
    key = GateInSky(SECRET, MODEL).key
    one = host(store, tmp_path)
    for garbage in (b"garbage" * 100, b"x" * (RECORD_BYTES_MAX + 1)):
        store.blocks[key] = garbage
        one.take(MODEL)
        assert key not in store.blocks
    store.blocks[key] = b"garbage"
    check(one)
    one.keep(MODEL)
    other = host(store, tmp_path / "other")
    other.take(MODEL)
    assert other.gate.is_open(POINT)


def test_a_record_of_a_newer_program_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    key = GateInSky(SECRET, MODEL).key
    seals = seal_keys(root_key("gates", SECRET, MODEL))
    store.blocks[key] = newer = bytes(seal(Kind.GATE, key, b"", b'{"version":3}', keys=seals, version=1))
    one = host(store, tmp_path)
    check(one)
    one.take(MODEL)
    one.keep(MODEL)
    assert store.blocks == {key: newer}
    assert "evidence has version 3; this program knows 1 and 2" in caplog.text
    assert one.gate.is_open(POINT)


def test_a_put_in_the_way_is_joined_and_replaced(tmp_path: Path) -> None:
    class Racing(MemoryStore):
        """Store to which another host puts just before this one does, once."""

        other: KeptGate | None = None

        def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
            if self.other is None:
                return super().put(items)
            racer, self.other = self.other, None
            racer.keep(MODEL)
            return [PutResult(items[0][0], Status.OLD_VERSION, None, 0.0, held_version=1 << 52)]

    store = Racing()
    one, other = host(store, tmp_path / "one"), host(store, tmp_path / "other")
    other.gate.checked(POINT, GOOD, SIZE)
    one.gate.checked(POINT, GOOD, SIZE)
    store.other = other
    one.keep(MODEL)
    late = Gate("late")
    assert GateInSky(SECRET, MODEL).take(store, late)
    assert late.verdict(POINT).counts.checks.prompts == 2
    assert one.gate.verdict(POINT).counts.checks.prompts == 2
