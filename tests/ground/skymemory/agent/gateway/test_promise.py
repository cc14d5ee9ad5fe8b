"""What the gateway may say of a value that other agents change and whose satellites come and go."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from skymemory.sky.tenant_secret import secret_of
from skymemory.store.keyvalue import ValueKeys
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.spread import shares_of
from support.waiting import wait_until

from .conftest import port_of
from .raw import RawClient

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
CODED = {"servers": 12, "parity": 2, "deadline_ms": 2000}


class Agents:
    """Two agents of one constellation, and a client of each. A context manager."""

    def __init__(self, local: LocalConstellation, folder: Path) -> None:
        self._agents = []
        for name in ("here", "there"):
            (folder / name).mkdir(mode=0o700)
            tell_up(folder / name, local)
            self._agents.append(AgentProcess(folder / name, "--resp-port", "0"))
        for agent in self._agents:
            agent.wait_ready()
        self.here, self.there = (RawClient(port_of(agent)) for agent in self._agents)

    def __enter__(self) -> "Agents":
        return self

    def __exit__(self, *_: object) -> None:
        for client in (self.here, self.there):
            client.socket.close()
        for agent in self._agents:
            agent.stop()


def homes_of(local: LocalConstellation, name: str) -> list[Satellite]:
    """The three satellites that have a copy of a small value."""
    key = ValueKeys(secret_of(local.constellation)).key_of(name)
    return shares_of(local.constellation, key)[:3]


# ---- what another agent changed ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(full_sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    with Agents(full_sky, tmp_path_factory.mktemp("two")) as agents:
        yield agents


CHANGES = {
    "longer": [("SET", "k", "a longer value")],
    "terms": [("SET", "k", "12345", "EX", "1000")],
    "deleted": [("DEL", "k")],
    "deleted and put": [("DEL", "k"), ("SET", "k", "12")],
    "numbers": [("SET", "k", "9"), ("INCR", "k")],
}
ANSWERS: dict[str, dict[str, Any]] = {
    "longer": {"EXISTS": 1, "STRLEN": 14, "TTL": -1, "PTTL": -1, "TYPE": b"string", "TOUCH": 1, "GET": b"a longer value"},
    "terms": {"EXISTS": 1, "STRLEN": 5, "TTL": 1000, "PTTL": 1_000_000, "TYPE": b"string", "TOUCH": 1, "GET": b"12345"},
    "deleted": {"EXISTS": 0, "STRLEN": 0, "TTL": -2, "PTTL": -2, "TYPE": b"none", "TOUCH": 0, "GET": None},
    "deleted and put": {"EXISTS": 1, "STRLEN": 2, "TTL": -1, "PTTL": -1, "TYPE": b"string", "TOUCH": 1, "GET": b"12"},
    "numbers": {"EXISTS": 1, "STRLEN": 2, "TTL": -1, "PTTL": -1, "TYPE": b"string", "TOUCH": 1, "GET": b"10"},
}


@pytest.mark.parametrize("knows", ["put", "put with terms", "read"])
@pytest.mark.parametrize(
    ("change", "command"),
    [(change, command) for change, some in ANSWERS.items() for command in some],
)
def test_what_another_agent_changed_is_told(two: Agents, knows: str, change: str, command: str) -> None:
    """The agent that is asked has known the value from before, and is asked once."""
    name = f"{knows} {change} {command}"
    if knows == "read":
        assert two.there.ask("SET", name, "12345") == b"OK"
        assert two.here.ask("GET", name) == b"12345"
    else:
        assert two.here.ask("SET", name, "12345", *(("EX", "77") if knows == "put with terms" else ())) == b"OK"
    for word, _, *rest in CHANGES[change]:
        assert two.there.ask(word, name, *rest) in (b"OK", 1, 10)
    answer, wanted = two.here.ask(command, name), ANSWERS[change][command]
    if isinstance(wanted, int) and wanted >= 1000:  # time passes
        assert 0.9 * wanted <= answer <= wanted
    else:
        assert answer == wanted


# ---- satellites that come and go -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slept", "killed"), [(one, two) for one in range(3) for two in range(3) if one != two])
def test_after_a_partition_and_one_death_nothing_old_is_told(
    start_sky: StartSky, stopped: Stopped, tmp_path: Path, slept: int, killed: int
) -> None:
    """A home has slept through the last writes, and as soon as it is back another one dies."""
    local = start_sky(cache=CODED)
    names = ("value", "5", "deleted", "numbers")
    # All of these lie on the same homes, or the two satellites would be homes of some of them alone
    first = homes_of(local, "value")
    names = tuple(
        next(f"{one}{number}" for number in range(10_000) if homes_of(local, f"{one}{number}") == first) for one in names
    )
    value, five, deleted, number = names
    with Agents(local, tmp_path) as agents:
        for name in names:
            assert agents.here.ask("SET", name, "old" if name == value else "5") == b"OK"
        with stopped(local, first[slept]):
            assert agents.here.ask("SET", value, "new") == b"OK"
            assert agents.here.ask("DEL", deleted) == 1
            assert agents.here.ask("INCR", number) == 6
        local.kill(first[killed])
        for client in (agents.here, agents.there):  # who wrote it, and who knows nothing
            assert client.ask("GET", value) == b"new"
            assert client.ask("GET", deleted) is None
            assert client.ask("GET", number) == b"6"
            assert client.ask("SETNX", value, "other") == 0
            assert client.ask("DEL", deleted) == 0
        assert agents.there.ask("INCR", five) == 6
        assert agents.here.ask("INCR", five) == 7
        assert agents.there.ask("INCR", number) == 7
        assert agents.there.ask("SETNX", deleted, "again") == 1


@pytest.mark.parametrize("who", ["who wrote it", "who knows nothing"])
def test_with_all_copies_cut_off_nothing_is_made_of_it(start_sky: StartSky, stopped: Stopped, tmp_path: Path, who: str) -> None:
    local = start_sky(cache=CODED)
    with Agents(local, tmp_path) as agents:
        client = agents.here if who == "who wrote it" else agents.there
        assert agents.here.ask("SET", "k", "5") == b"OK"
        with stopped(local, *homes_of(local, "k")):
            for command in (("INCR", "k"), ("SETNX", "k", "1"), ("SET", "k", "1", "NX"), ("SET", "k", "1", "XX"), ("DEL", "k")):
                answer = client.ask(*command)
                assert isinstance(answer, str), command
                assert answer.startswith("ERR"), command
        for one in (agents.here, agents.there):  # for a while more they take satellites for lost, and miss what these hold
            assert wait_until(partial(one.ask, "GET", "k"), "the value is read again") == b"5"


@pytest.mark.parametrize("share", range(3))
def test_deleted_stays_deleted(start_sky: StartSky, tmp_path: Path, share: int) -> None:
    """One of the three satellites is gone as the value is deleted, and comes back."""
    local = start_sky(cache=CODED)
    victim = homes_of(local, "k")[share]
    with Agents(local, tmp_path) as agents:
        assert agents.here.ask("SET", "k", "v") == b"OK"
        assert agents.there.ask("GET", "k") == b"v"
        local.kill(victim)
        assert agents.here.ask("DEL", "k") == 1
        for client in (agents.here, agents.there):
            assert client.ask("GET", "k") is None
            assert client.ask("DEL", "k") == 0
        local.restart(victim)
        for client in (agents.here, agents.there):
            assert client.ask("GET", "k") is None
            assert client.ask("EXISTS", "k") == 0
        assert agents.there.ask("SETNX", "k", "again") == 1
        assert agents.here.ask("GET", "k") == b"again"
