"""Changes of values while satellites refuse the agent's keys."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file, rotate
from skymemory.sky.constellation import KEYRING_VARIABLE
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.new_keys import put_in_place, take
from support.waiting import wait_until

from .conftest import port_of
from .raw import RawClient
from .test_silence import NO_ANSWER

REFUSED = (
    "ERR satellites refuse the keys of this agent; nothing was stored. Put a keyring of a generation that they serve in place: "
    "the agent takes it while it runs"
)


def test_the_error_says_so_until_there_is_another_keyring(
    start_sky: Callable[..., LocalConstellation],
    start_agent: Callable[..., AgentProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin_mission(keys := tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    local = start_sky(security={"keyring": str(keys / "mission.json")}, cache={"deadline_ms": 2000})
    put_in_place(own := tmp_path / "own.json", host_file(keys, 1, "host"))
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    monkeypatch.setenv(KEYRING_VARIABLE, str(own))
    agent = start_agent(local, "--resp-port", "0")
    with RawClient(port_of(agent)) as client:
        assert client.ask("SET", "a", "1") == b"OK"
        monkeypatch.delenv(KEYRING_VARIABLE)  # the mission has its own
        rotate(keys)
        for step in ("load", "activate", "forget"):
            take(step, keys)
        wait_until(lambda: client.ask("SET", "a", "2") == REFUSED, "it says what is wrong")
        for change in (
            ("SET", "a", "3"),
            ("DEL", "a"),
            ("EXPIRE", "a", "10"),
            ("SET", "b", "1", "NX"),
            ("MSET", "a", "3", "b", "1"),
        ):
            assert client.ask(*change) == REFUSED
        assert client.ask("GET", "a") is None
        put_in_place(own, host_file(keys, 2, "host"))
        wait_until(lambda: client.ask("SET", "a", "4") == b"OK", "it takes the new keys")
        assert client.ask("GET", "a") == b"4"
        for place in list(local.processes):
            local.kill(place)
        wait_until(lambda: client.ask("SET", "a", "5") == NO_ANSWER, "nobody is left who could refuse")
