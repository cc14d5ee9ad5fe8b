"""The agent's keys: what it says when satellites refuse them, and how it takes new ones while it runs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from skymemory.agent.agent_store import AgentStore
from skymemory.agent.constellation_source import FixedSource, RunningSource, Serving
from skymemory.agent.keyring_watch import KeyringWatch
from skymemory.agent.shared_sky import SharedSky
from skymemory.common.tenant_secrets import made_secret, read_tenant_secret
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import add_host, begin_mission, host_file, rotate
from skymemory.sky.constellation import KEYRING_VARIABLE
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from support.agents import AgentProcess, tell_up
from support.new_keys import put_in_place, take
from support.waiting import wait_until, wait_until_async

StartSky = Callable[..., LocalConstellation]
StartAgent = Callable[..., AgentProcess]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    return tmp_path / "keys"


@pytest.fixture
def local(keys: Path, start_sky: StartSky) -> LocalConstellation:
    return start_sky(security={"keyring": str(keys / "mission.json")})


def test_it_says_that_its_keys_are_refused(
    local: LocalConstellation, start_agent: StartAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_mission(tmp_path / "others", 3, 5, HostRecord(name="gpu-1", tenants=(0,)))
    monkeypatch.setenv(KEYRING_VARIABLE, str(wrong := host_file(tmp_path / "others", 1, "gpu-1")))
    tell_up(tmp_path, local)
    agent = start_agent()
    told = f"satellites answer, but refuse this host's keys: keyring {wrong}, host gpu-1 of generation 1"
    wait_until(lambda: told in agent.ready().get("reason", ""), "it says that they refuse its keys")
    assert agent.get("/readyz")[0] == 503
    assert not agent.ready()["ready"]
    wait_until(lambda: told in agent.log.read_text(), "it logs that, too")


def test_a_file_with_the_keys_of_before_changes_nothing(local: LocalConstellation, keys: Path) -> None:
    """The mission's file, which names all hosts."""
    watch = KeyringWatch(local.constellation)
    assert not watch.is_due(0.0, is_reachable=True)
    add_host(keys, HostRecord(name="second", tenants=(0,)))
    assert watch.is_due(0.0, is_reachable=True)
    with SkyStore(local.constellation) as store:
        assert not watch.is_taken(store, [], 0.0)
        assert not watch.is_due(1e6, is_reachable=False)
        rotate(keys)
        assert watch.is_due(1e6, is_reachable=False)
        assert not watch.is_taken(store, [], 1e6)  # satellites do not have them
        assert not watch.is_due(1e6, is_reachable=False)
        assert watch.is_due(2e6, is_reachable=True)


def test_new_keys_are_taken_while_it_runs(
    local: LocalConstellation, keys: Path, start_agent: StartAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put in place before satellites have them, when both are served, and too late."""
    own = tmp_path / "own.json"
    put_in_place(own, host_file(keys, 1, "host"))
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    monkeypatch.setenv(KEYRING_VARIABLE, str(own))
    agent = start_agent(local)
    rotate(keys)
    put_in_place(own, host_file(keys, 2, "host"))
    wait_until(lambda: "the keys of before stay in use: " in agent.log.read_text(), "it tries the new keys")
    assert f"refuse this host's keys: keyring {own}, host host of generation 2" in agent.log.read_text()
    assert agent.ready()["ready"]
    monkeypatch.delenv(KEYRING_VARIABLE)  # the mission has its own
    take("load", keys)
    take("activate", keys)
    wait_until(lambda: "satellites take its keys" in agent.log.read_text(), "it takes the new keys")
    take("forget", keys)
    agent.wait_ready()
    rotate(keys)
    for step in ("load", "activate", "forget"):
        take(step, keys)
    wait_until(lambda: "host host of generation 2" in agent.ready().get("reason", ""), "it says that its keys are refused")
    own.write_text("no keyring")
    wait_until(lambda: f"{own} is damaged: it is no keyring" in agent.log.read_text(), "it looks at the file")
    assert "host host of generation 2" in agent.ready()["reason"]
    put_in_place(own, host_file(keys, 3, "host"))
    agent.wait_ready()
    assert agent.log.read_text().count("satellites take its keys") == 2


def test_a_keyring_that_is_early_survives_another_record(
    local: LocalConstellation, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skymem kill` and `restart` write a record, which is read again; satellites do not have the new keys yet."""
    put_in_place(own := tmp_path / "own.json", host_file(keys, 1, "host"))
    tell_up(tmp_path, local)
    monkeypatch.setenv(KEYRING_VARIABLE, str(own))
    loads: list[Serving | None] = []

    class Noted(RunningSource):
        def load(self) -> Serving | None:
            loads.append(serving := super().load())
            return serving

    async def run() -> None:
        sky = SharedSky(Noted(RunRecord(tmp_path)), CollectorRegistry())
        await sky.start()
        try:
            await wait_until_async(lambda: sky.reachable)
            store = sky.store
            rotate(keys)
            put_in_place(own, host_file(keys, 2, "host"))
            tell_up(tmp_path, local)
            await wait_until_async(lambda: len(loads) == 2)
            assert (await sky.put([(bytes(32), b"block")]))[0].ok
            assert sky.store is store
            assert sky.reachable
        finally:
            await sky.close()

    asyncio.run(run())


def test_a_damaged_keyring_is_told_and_takes_nothing_down(
    local: LocalConstellation, keys: Path, start_agent: StartAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one that is missing; `skymem kill` and `restart` write the record in between, and so does another sky."""
    put_in_place(own := tmp_path / "own.json", host_file(keys, 1, "host"))
    monkeypatch.setenv(KEYRING_VARIABLE, str(own))
    agent = start_agent(local)
    assert "keyring" not in agent.ready()
    with AgentStore(agent.socket, arena_bytes=1 << 24) as client:
        wait_until(lambda: client.wait_connected(1.0), "the agent is there")

        def works() -> None:
            report = agent.ready()
            assert report["ready"], report
            assert client.put([(os.urandom(32), bytes(100))])[0].ok

        own.write_text("no keyring")
        damaged = f"{own} has changed, but the keys of before stay in use: SKYMEM_KEYRING: {own} is damaged: it is no keyring"
        wait_until(lambda: agent.ready().get("keyring", "").startswith(damaged), "it tells of the file")
        RunRecord(tmp_path).update(Running("local", local.constellation, {}))
        works()
        own.unlink()
        wait_until(lambda: f"{own} does not exist" in agent.ready().get("keyring", ""), "it tells that the file is gone")
        other = local.constellation.replace(cache={"servers": 8})
        RunRecord(tmp_path).update(Running("local", other, {}))
        wait_until(lambda: "; the constellation and the keys of before stay in use" in agent.log.read_text(), "it stays")
        works()
        put_in_place(own, host_file(keys, 1, "host"))
        wait_until(lambda: "keyring" not in agent.ready(), "the file is right")
        agent.wait_ready()
        works()
        text = agent.log.read_text()
    assert text.count("constellation of 3 planes x 5 slots") == 2
    assert "every block is a miss" not in text


def test_it_comes_back_when_a_secret_that_was_missing_is_there(
    local: LocalConstellation, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was missing when new keys were taken, on a constellation that is never another."""
    put_in_place(own := tmp_path / "own.json", host_file(keys, 1, "host"))
    made_secret(secret := tmp_path / "tenant.secret")
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    tell_up(tmp_path, local)
    source = FixedSource(local.constellation.replace(security={"keyring": str(own)}), secret=lambda _: read_tenant_secret(secret))

    async def run() -> None:
        sky = SharedSky(source, CollectorRegistry())
        await sky.start()
        try:
            await wait_until_async(lambda: sky.reachable)
            secret.rename(kept := tmp_path / "kept")
            rotate(keys)
            for step in ("load", "activate"):
                await asyncio.to_thread(take, step, keys)
            put_in_place(own, host_file(keys, 2, "host"))
            await wait_until_async(lambda: f"tenant secret {secret} cannot be read" in (sky.unready or ""))
            kept.rename(secret)
            await wait_until_async(lambda: sky.reachable)
        finally:
            await sky.close()

    asyncio.run(run())
