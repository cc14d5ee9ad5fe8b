"""Redis clients while servers are lost of which some hold parity."""

import os
from collections.abc import Callable

from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import wait_until

from .conftest import port_of
from .raw import RawClient

StartSky = Callable[..., LocalConstellation]
StartAgent = Callable[..., AgentProcess]


def test_values_come_without_two_satellites_and_are_put_again(start_sky: StartSky, start_agent: StartAgent) -> None:
    local = start_sky(cache={"servers": 12, "parity": 2, "deadline_ms": 20_000})
    agent = start_agent(local, "--resp-port", "0")
    values = {f"key {index}": os.urandom(100_000 + index) for index in range(4)}
    places = Whereabouts(local.constellation).servers(0)
    with RawClient(port_of(agent)) as client:
        for name, value in values.items():
            assert client.ask("SET", name, value) == b"OK"
        for server in (3, 7):
            local.kill(places[server])
        assert [client.ask("GET", name) for name in values] == list(values.values())
        assert agent.metric("skymem_store_degraded_total") == len(values)
        wait_until(lambda: agent.metric("skymem_store_puts_again_total") == len(values))
        decoded = agent.metric("skymem_store_decoded_chunks_total")
        assert [client.ask("GET", name) for name in values] == list(values.values())
        assert agent.metric("skymem_store_decoded_chunks_total") == decoded
        assert agent.metric('skymem_store_blocks_total{operation="get",status="miss"}') == 0


def test_a_value_that_has_lost_too_many_shares_is_not_there(start_sky: StartSky, start_agent: StartAgent) -> None:
    local = start_sky(cache={"servers": 9, "parity": 2})
    agent = start_agent(local, "--resp-port", "0")
    places = Whereabouts(local.constellation).servers(0)
    with RawClient(port_of(agent)) as client:
        assert client.ask("SET", "k", bytes(100_000)) == b"OK"
        for server in (3, 7):
            local.kill(places[server])
        assert (client.ask("EXISTS", "k"), client.ask("STRLEN", "k")) == (1, 100_000)
        local.kill(places[5])
        assert (client.ask("EXISTS", "k"), client.ask("STRLEN", "k")) == (0, 0)
        assert client.ask("GET", "k") is None
