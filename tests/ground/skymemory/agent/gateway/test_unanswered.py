"""A value of which nobody says whether it is there: it is missed, and never taken for gone."""

from collections.abc import Callable

import pytest

from skymemory.store.keyvalue import ValueKeys
from skymemory.store.results import Status
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess

from .conftest import port_of
from .inside import InsideGateway
from .raw import RawClient, encoded
from .test_silence import NO_ANSWER

StartAgent = Callable[..., AgentProcess]


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (("DEL", "k"), NO_ANSWER),
        (("UNLINK", "k"), NO_ANSWER),
        (("EXPIRE", "k", "10"), NO_ANSWER),
        (("SET", "k", "new", "NX"), NO_ANSWER),
        (("SET", "k", "new", "KEEPTTL"), NO_ANSWER),
        (("SET", "k", "new"), b"OK"),
    ],
)
def test_a_fetch_that_expires_says_nothing_of_the_value(change: tuple[str, ...], answer: object) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v1") == b"OK"
        inside.run(lambda: setattr(inside.sky, "get_status", Status.EXPIRED))
        client.send(encoded("GET", "k") * 2 + encoded(*change))
        assert [client.answer() for _ in range(3)] == [None, None, answer]
        inside.run(lambda: setattr(inside.sky, "get_status", None))
        assert client.ask("GET", "k") == (b"v1" if answer == NO_ANSWER else b"new")


def test_a_lookup_that_nobody_answers_says_nothing_of_the_value() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v1") == b"OK"
        inside.run(lambda: setattr(inside.sky, "is_unanswered", True))
        assert client.ask("GET", "k") is None
        assert client.ask("EXISTS", "k") == 0
        for change in (("DEL", "k"), ("SET", "k", "new", "NX"), ("SETNX", "k", "new"), ("SET", "k", "new", "XX"), ("FLUSHDB",)):
            assert client.ask(*change) == NO_ANSWER
        inside.run(lambda: setattr(inside.sky, "is_unanswered", False))
        assert client.ask("GET", "k") == b"v1"
        assert client.ask("DEL", "k") == 1
        assert client.ask("FLUSHDB") == b"OK"


def test_one_name_that_nobody_answers_for_does_not_change_what_is_said_of_others() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("MSET", "k1", "v", "k2", "v", "k3", "v") == b"OK"
        inside.run(lambda: inside.sky.unanswered.add(ValueKeys(inside.sky.tenant_secret).key_of("k2")))
        client.send(b"".join(encoded("SET", f"k{number}", "new", "NX") for number in range(1, 5)))
        assert [client.answer() for _ in range(4)] == [None, NO_ANSWER, None, b"OK"]
        client.send(b"".join(encoded("DEL", f"k{number}") for number in range(1, 6)))
        assert [client.answer() for _ in range(5)] == [1, NO_ANSWER, 1, 1, 0]
        inside.run(inside.sky.unanswered.clear)
        assert client.ask("GET", "k2") == b"v"


@pytest.mark.parametrize("value", ["v", "v" * 30_000])
def test_conditions_hold_for_what_other_hosts_did(
    full_sky: LocalConstellation, agent: AgentProcess, start_agent: StartAgent, value: str
) -> None:
    with RawClient(port_of(agent)) as here, RawClient(port_of(start_agent(full_sky, "--resp-port", "0"))) as there:
        name = f"condition {len(value)}"
        assert here.ask("SET", name, value, "NX") == b"OK"
        assert there.ask("SET", name, "other", "NX") is None
        assert there.ask("DEL", name) == 1
        assert here.ask("SET", name, value, "XX") is None
        assert here.ask("SET", name, value, "NX") == b"OK"
        assert there.ask("GET", name) == value.encode()
        assert there.ask("DEL", name) == 1
        assert here.ask("SETNX", name, "again") == 1
