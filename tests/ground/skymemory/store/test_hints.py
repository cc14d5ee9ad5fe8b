"""Hints of one process to the next: who is silent. Without them each process of these tests would wait a minute, its patience."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from skymemory.link.hints import HintFile
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
SECRET = b"secret"
NAMES = [f"value {number}" for number in range(12)]
DATA = sha256(b"data").digest() * 100_000
MINUTE = 60

# A process of its own, which is so patient that only a hint ends its first look-up soon
PROCESS = """
import json, sys, time
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore

sky = Constellation.model_validate(json.loads(sys.argv[1]), strict=False)
names, key, length = json.loads(sys.argv[2]), bytes.fromhex(sys.argv[3]), int(sys.argv[4])
with SkyStore(sky, tenant_secret=b"secret", timing=Timing(silence_s=60.0)) as store:
    start_s = time.monotonic()
    [got] = store.get([key])
    found = [KeyValue(store).fetch(name)[0] for name in names]
    stored = [str(KeyValue(store).put(f"new {name}", bytes(length)).status) for name in names[:3]]
    took_s, lost = time.monotonic() - start_s, sorted(store.lost)
    start_s = time.monotonic()
close_s = time.monotonic() - start_s
print(json.dumps({
    "took_s": took_s, "close_s": close_s, "lost": lost, "block": None if got.data is None else len(got.data),
    "values": [None if one is None else bytes(one).decode() for one in found], "stored": stored,
}))
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder of each test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYMEM_STATE", str(tmp_path))
        yield tmp_path


@pytest.fixture
def local(start_sky: StartSky) -> LocalConstellation:
    """A sky with values under `NAMES`, and a large block."""
    one = start_sky(cache={"servers": 12, "parity": 2}, satellite={"store_mib": 64})
    with SkyStore(one.constellation, tenant_secret=SECRET) as store:
        values = KeyValue(store)
        assert all(values.put(name, name.encode()).ok for name in NAMES)
        assert store.put([(sha256(b"block").digest(), DATA)])[0].ok
    return one


def in_a_process(local: LocalConstellation) -> dict[str, object]:
    """Get all in a process of its own, and put some more. Return what it told."""
    words = local.constellation.model_dump_json(), json.dumps(NAMES), sha256(b"block").hexdigest(), str(1_000_000)
    done = subprocess.run([sys.executable, "-c", PROCESS, *words], capture_output=True, text=True, timeout=300, check=True)
    told: dict[str, object] = json.loads(done.stdout)
    assert told["values"] == NAMES
    assert told["block"] == len(DATA)
    assert told["stored"] == ["done"] * 3
    return told


def servers_of_values(local: LocalConstellation) -> list[Satellite]:
    """Satellites that look-ups of values ask, most of them first."""
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        asked = [one for name in NAMES for one in shares_of(local.constellation, KeyValue(store).key_of(name))]
    return sorted({*asked}, key=asked.count, reverse=True)


@pytest.mark.parametrize("dead", [1, 2])
def test_the_next_process_knows_who_is_dead(local: LocalConstellation, dead: int) -> None:
    gone = servers_of_values(local)[:dead]
    for satellite in gone:
        local.kill(satellite)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        assert [bytes(KeyValue(store).get(name) or b"") for name in NAMES] == [name.encode() for name in NAMES]
        wait_until(lambda: store.lost == {*gone})
        assert {one[:2] for one in HintFile(local.constellation).read() if one.is_lost} == {*gone}  # the agent goes on
        for _ in range(2):
            told = in_a_process(local)
            assert told["lost"] == [[*one] for one in sorted(gone)]
            assert float(str(told["took_s"])) < MINUTE / 2
            assert float(str(told["close_s"])) < MINUTE / 2


def test_one_that_is_there_is_lost_for_nobody(local: LocalConstellation, state: Path) -> None:
    """A file says that satellites are lost which are not: all are asked, what they say counts, and the file says so no more."""
    told = [list(one) for one in HintFile(local.constellation).read()]
    assert told, "the process that filled the sky left round trips"
    wrong = [[*one[:3], time.monotonic_ns() // 1000, True] for one in told]
    [path] = state.glob("hints-*")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"hints": wrong}))
    assert in_a_process(local)["lost"] == []
    assert not [one for one in HintFile(local.constellation).read() if one.silent_us]


def test_one_that_came_back_is_asked_again(local: LocalConstellation) -> None:
    gone = servers_of_values(local)[0]
    local.kill(gone)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        assert all(KeyValue(store).get(name) is not None for name in NAMES)
        wait_until(lambda: store.lost == {gone})
    local.restart(gone)
    assert in_a_process(local)["lost"] == []
    assert not [one for one in HintFile(local.constellation).read() if one.silent_us]
