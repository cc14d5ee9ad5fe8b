"""While satellites say nothing, and clients that take an answer for what it is not."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import wait_until

from .conftest import port_of
from .raw import RawClient, encoded

StartSky = Callable[..., LocalConstellation]
StartAgent = Callable[..., AgentProcess]
Stopped = Callable[..., AbstractContextManager[None]]
NO_ANSWER = "ERR the constellation does not answer; nothing was stored, try again"
LMCACHE = "org/model@00000001@0@" + "0123456789abcdef" * 4


@pytest.fixture
def sky(start_sky: StartSky) -> LocalConstellation:
    return start_sky(cache={"deadline_ms": 2000, "parity": 0})


def test_reads_miss_and_writes_are_told(sky: LocalConstellation, start_agent: StartAgent, stopped: Stopped) -> None:
    agent = start_agent(sky, "--resp-port", "0")
    with RawClient(port_of(agent)) as client:
        value = os.urandom(30_000)
        assert client.ask("MSET", "a", value, "b", "2") == b"OK"
        with stopped(sky):
            assert client.ask("SET", "c", "3") == NO_ANSWER
            assert client.ask("GET", "a") is None
            assert client.ask("MGET", "a", "b") == [None, None]
            assert client.ask("SET", "a", "new") == NO_ANSWER
            assert client.ask("MSET", "a", "new", "b", "new") == NO_ANSWER
            assert client.ask("EXISTS", "a", "b") == 0
            assert client.ask("DEL", "a") == NO_ANSWER
            assert client.ask("EXPIRE", "a", "10") == NO_ANSWER
            assert client.ask("PING") == b"PONG"
        wait_until(lambda: client.ask("SET", "c", "3") == b"OK", "the satellites answer again")
        assert client.ask("GET", "b") == b"2"
        assert client.ask("GET", "a") == value


def test_before_there_is_a_constellation(start_agent: StartAgent) -> None:
    agent = start_agent(None, "--resp-port", "0")
    with RawClient(port_of(agent)) as client:
        wait_until(lambda: client.ask("PING") == b"PONG", "the constellation has been looked for")
        assert client.ask("SET", "a", "1") == NO_ANSWER
        assert client.ask("GET", "a") is None
        assert client.ask("DBSIZE") == 0
        assert b"reachable:0" in client.ask("INFO")
        assert client.ask("FLUSHALL") == b"OK"


def test_a_lost_satellite_is_a_miss_and_then_replaced(sky: LocalConstellation, start_agent: StartAgent) -> None:
    agent = start_agent(sky, "--resp-port", "0")
    with RawClient(port_of(agent)) as client:
        value = os.urandom(90_000)
        assert client.ask("SET", "a", value) == b"OK"
        sky.kill(Whereabouts(sky.constellation).servers(0)[4])
        assert client.ask("GET", "a") is None
        wait_until(lambda: client.ask("SET", "a", value) == b"OK", "another stands in for it")
        assert client.ask("GET", "a") == value


def test_clients_that_count_bytes_stay_in_step(sky: LocalConstellation, start_agent: StartAgent, stopped: Stopped) -> None:
    """The native client of LMCache 0.5.6 reads as many bytes as the header of its block has, or `+OK`, or `:1`; no more."""
    agent = start_agent(sky, "--resp-port", "0", "--lmcache-port", "0")
    value = os.urandom(90_000)
    with RawClient(port_of(agent, "lmcache")) as client, RawClient(port_of(agent)) as other:

        def reads(command: bytes, count: int) -> bytes:
            client.send(command)
            found = b""
            while len(found) < count:
                found += client.socket.recv(count - len(found))
            return found

        assert reads(encoded("SET", LMCACHE, value), 5) == b"+OK\r\n"
        assert reads(encoded("EXISTS", LMCACHE), 4) == b":1\r\n"
        assert reads(encoded("GET", LMCACHE), 8 + len(value) + 2) == b"$90000\r\n" + value + b"\r\n"
        assert reads(encoded("GET", LMCACHE[:-1] + "0"), 8)[:1] == b"-"  # one that never was, or that another client deleted
        with stopped(sky):
            missed = reads(encoded("GET", LMCACHE), 8)
            assert missed[:1] == b"-"
            assert missed[-2:] == b"\r\n"
            assert reads(encoded("SET", LMCACHE, value), 5) == b"-ER\r\n"
            assert reads(encoded("DEL", LMCACHE), 4) == b"-E\r\n"
            assert reads(encoded("EXISTS", LMCACHE), 4) == b":0\r\n"
            assert other.ask("GET", LMCACHE) is None  # at the port of Redis clients it is what Redis would say
            assert other.ask("SET", LMCACHE, value) == NO_ANSWER
        wait_until(lambda: reads(encoded("SET", LMCACHE, value), 5) == b"+OK\r\n", "the satellites answer again")
        assert reads(encoded("GET", LMCACHE), 8 + len(value) + 2)[8:-2] == value


def test_a_clean_stop_answers_what_was_asked_for(sky: LocalConstellation, start_agent: StartAgent) -> None:
    agent = start_agent(sky, "--resp-port", "0")
    with RawClient(port_of(agent)) as client:
        assert client.ask("PING") == b"PONG"
        client.send(b"".join(encoded("SET", f"stop{number}", bytes(10_000)) for number in range(20)))
        assert client.answer() == b"OK"
        assert agent.stop() == 0
        assert set(client.rest()) <= {b"OK"}
