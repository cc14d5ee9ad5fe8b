"""What was asked for and what came of it: the counting itself, and a real agent with cold and warm keys through every door."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from skymemory.agent.activity import EVENTS_MAX, FETCHED_WITHIN_S, FOUND_MAX, TEXT_MAX, Activity, Counts, EventLog
from skymemory.agent.client import AgentClient
from skymemory.cli.main import main
from skymemory.engines.carrier import Block, Carrier, CarrierSettings
from skymemory.engines.framing import BlockFormat
from skymemory.store.results import GetResult, Status
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.waiting import wait_until

BLOCK = 60_000
PATIENCE_S = 60
StartSky = Callable[..., LocalConstellation]


def keys_of(count: int) -> list[bytes]:
    return [os.urandom(32) for _ in range(count)]


def result(key: bytes, status: Status = Status.DONE, *, known: bool = True) -> GetResult:
    return GetResult(key, None, status, 0.1, known)


def blocks(activity: Activity) -> tuple[int, int, int, int]:
    counts = activity.counts()
    return counts.hit, counts.not_found, counts.not_fetched, counts.not_delivered


def test_a_block_counts_once_from_lookup_to_get() -> None:
    activity = Activity(lambda: 0.0)
    keys = keys_of(5)
    activity.looked_up("engine", keys, found=3, fetch=3, compute_s=6.0)
    assert blocks(activity) == (0, 2, 0, 0)  # those that are found count when they have come, or have not
    activity.got("engine", [result(key) for key in keys[:3]], block_tokens=128, duration_s=0.5)
    assert blocks(activity) == (3, 2, 0, 0)
    counts = activity.counts()
    assert (counts.tokens, counts.compute_s, counts.fetch_s) == (384, 6.0, 0.5)
    assert counts.hit_rate == 0.6
    assert counts.delivery == 1.0


def test_what_is_believed_and_does_not_come_is_no_cold_key() -> None:
    activity = Activity(lambda: 0.0)
    keys = keys_of(3)
    activity.looked_up("engine", keys[:1], found=1, fetch=1)
    # Found by this lookup; known of old; never heard of
    known = [result(keys[0], Status.MISS, known=False), result(keys[1], Status.EXPIRED)]
    activity.got("engine", [*known, result(keys[2], Status.MISS, known=False)])
    assert blocks(activity) == (0, 1, 0, 2)
    assert activity.counts().delivery == 0.0
    assert Counts().hit_rate is None
    assert Counts(not_found=1).delivery is None


def test_what_is_found_and_not_fetched_counts_after_a_while_and_memory_is_bounded() -> None:
    now = [0.0]
    activity = Activity(lambda: now[0])
    keys = keys_of(2)
    activity.looked_up("engine", keys, found=2)
    activity.looked_up("engine", keys[:1], found=1)  # another prompt with the same beginning
    activity.got("engine", [result(keys[0])])
    assert blocks(activity) == (1, 0, 0, 0)
    now[0] = FETCHED_WITHIN_S + 1
    assert blocks(activity) == (1, 0, 2, 0)
    many = [number.to_bytes(32) for number in range(FOUND_MAX + 10)]
    activity.looked_up("engine", many, found=len(many))
    assert blocks(activity) == (1, 0, 12, 0)


def test_events_are_bounded_and_numbered() -> None:
    events = EventLog()
    for number in range(EVENTS_MAX + 5):
        events.add("lost", f"{number} " + "x" * 1000, [Satellite(1, 2)] * 1000, time_s=number)
    kept = events.newest()
    assert [one.number for one in kept] == list(range(6, EVENTS_MAX + 6))
    assert kept[-1].time_ms == 1000 * (EVENTS_MAX + 4)
    assert max(len(one.text) for one in kept) == TEXT_MAX
    assert max(len(one.satellites) for one in kept) < 100


# ---- a real agent -------------------------------------------------------------------------------------------------------


def counted(agent: AgentProcess) -> dict[tuple[str, str], int]:
    """By client and outcome, those that are not 0."""
    text = agent.get("/metrics")[1].decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    asked = [sample for sample in samples if sample.name == "skymem_asked_blocks_total"]
    assert asked, "the agent does not count what is asked of it"
    return {(one.labels["client"], one.labels["outcome"]): int(one.value) for one in asked if one.value}


def move(engine: AgentClient, call: Callable[..., Any], keys: list[bytes]) -> list[str]:
    leases = [engine.lease(BLOCK, PATIENCE_S) for _ in keys]
    outcomes = call(list(zip(keys, leases, strict=True))).result(PATIENCE_S)
    for lease in leases:
        assert lease is not None
        lease.release()
    return [outcome.status for outcome in outcomes]


def test_cold_keys_count_through_every_door(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky()
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path, "--resp-port", "0") as agent:
        agent.wait_ready()
        with agent.client(block_bytes=BLOCK, block_tokens=128) as engine:
            assert engine.wait_connected(PATIENCE_S)
            assert counted(agent) == {}
            warm, cold = keys_of(6), keys_of(4)
            assert move(engine, engine.put, warm) == ["done"] * 6
            assert counted(agent) == {}  # stores ask for nothing

            # An engine's lookup: the chain ends where it is cold, and only what was found is fetched
            assert engine.find([*warm[:3], *cold[:2]]).result(PATIENCE_S).blocks == 3
            assert move(engine, engine.get, warm[:3]) == ["done"] * 3
            assert counted(agent) == {("engine", "hit"): 3, ("engine", "not_found"): 2}
            # What the engine has itself was not asked for
            engine.find([*warm[:4], cold[2]], cached=3).result(PATIENCE_S)
            assert move(engine, engine.get, warm[3:4]) == ["done"]
            assert counted(agent) == {("engine", "hit"): 4, ("engine", "not_found"): 3}
            # Nor what it only wants to store
            engine.find(cold, wanted=False).result(PATIENCE_S)
            assert counted(agent) == {("engine", "hit"): 4, ("engine", "not_found"): 3}
            # A get without a lookup
            assert move(engine, engine.get, [warm[4], cold[3]]) == ["done", "miss"]
            expected = {("engine", "hit"): 5, ("engine", "not_found"): 4}
            assert counted(agent) == expected

        # Redis clients: GET, MGET, and EXISTS for what is not there
        host, _, port = agent.addresses["redis"].rpartition("/")[2].rpartition(":")
        with redis.Redis(host=host, port=int(port)) as client:
            client.set("warm", b"x" * 1000)
            assert client.get("warm") == b"x" * 1000
            assert client.get("cold") is None
            assert client.mget("warm", "cold") == [b"x" * 1000, None]
            assert client.exists("cold") == 0
            assert client.exists("warm") == 1
        expected |= {("redis", "hit"): 2, ("redis", "not_found"): 3}
        assert counted(agent) == expected

        # The page has the same, and the way of the last get
        def told_of_all() -> Any:
            frame = json.loads(agent.get("/api/now")[1])["frame"]
            return frame if frame is not None and frame["asked"]["blocks"] == 14 else None

        frame = wait_until(told_of_all)
        assert frame["asked"] == {"blocks": 14, "hit": 7, "not_found": 7, "not_fetched": 0, "not_delivered": 0}
        assert frame["saved"]["tokens"] == 5 * 128
        last = frame["last_get"]
        assert last["blocks"] == last["hits"] == 1
        steps = [step for step in last["steps"] if step["first_s"] is not None]  # what one did not say yet others made up for
        assert sum(step["chunks"] for step in steps) >= 1
        assert all(0 <= step["asked_s"] <= step["first_s"] <= step["last_s"] <= last["duration_s"] for step in steps)

        # And `skymem status`
        run = CliRunner().invoke(main, ["status"], env={"SKYMEM_STATE": str(tmp_path), "COLUMNS": "1000"})
        assert "asked of this host's agent: 14 blocks, hit rate 50 %; 7 not found, 0 found and not fetched" in run.output
        assert "believed to be in the sky and fetched: 7 blocks, delivery 100 %; 0 did not come" in run.output
        report = json.loads(CliRunner().invoke(main, ["status", "--json"], env={"SKYMEM_STATE": str(tmp_path)}).output)
        assert report["agent"]["hit_rate"] == 0.5
        assert report["agent"]["delivery"] == 1.0
    assert not (tmp_path / "agent.sock.http").exists()
    run = CliRunner().invoke(main, ["status"], env={"SKYMEM_STATE": str(tmp_path), "COLUMNS": "1000"})
    assert "no agent of this host tells" in run.output


def test_a_block_that_is_lost_is_asked_for_and_not_delivered(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(cache={"parity": 0, "deadline_ms": 1000})
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path) as agent:
        agent.wait_ready()
        with agent.client(block_bytes=BLOCK) as engine:
            assert engine.wait_connected(PATIENCE_S)
            keys = keys_of(2)
            assert move(engine, engine.put, keys) == ["done"] * 2
            local.kill(local.constellation.cache.centre)
            assert "done" not in move(engine, engine.get, keys)
            assert counted(agent) == {("engine", "not_delivered"): 2}


@pytest.mark.parametrize("what", ["nobody:1", "http://127.0.0.1:1", "\n", "http://[::1"])
def test_a_record_of_an_agent_that_has_gone_is_no_error(tmp_path: Path, start_sky: StartSky, what: str) -> None:
    tell_up(tmp_path, start_sky())
    (tmp_path / "agent.sock.http").write_text(what)
    run = CliRunner().invoke(main, ["status"], env={"SKYMEM_STATE": str(tmp_path), "COLUMNS": "1000"})
    assert run.exit_code == 0, run.output
    assert "no agent of this host tells" in run.output


def test_storing_through_a_carrier_counts_no_miss(start_sky: StartSky, tmp_path: Path) -> None:
    """SGLang and LMCache ask before they store which blocks are there already."""
    local = start_sky()
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path) as agent:
        agent.wait_ready()
        form = BlockFormat(16, 1, 4096, "float32", "k|v,token,kv_head,head_dim")
        carrier = Carrier("sglang", "model", form, os.urandom(32), CarrierSettings(socket=str(agent.socket), arena_mib=1))
        try:
            assert carrier.client.wait_connected(PATIENCE_S)
            stored = [Block(key, [memoryview(bytearray(4096))]) for key in keys_of(3)]
            assert carrier.put(stored) == [True] * 3
            assert counted(agent) == {}
            assert carrier.get(stored) == [True] * 3
            assert counted(agent) == {("engine", "hit"): 3}
        finally:
            carrier.close()
