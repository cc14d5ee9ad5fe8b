"""Misbehaviour of engines towards an agent: they die, and they send what the protocol does not allow."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable

from skymemory.agent import arena, protocol
from support.agents import AgentProcess
from support.raw_engine import ARENA_BYTES, RawEngine, hello

Event = Callable[[AgentProcess], None]

ENGINE_THAT_DIES = """
import os, sys
from skymemory.agent.client import AgentClient, EngineInfo
from pathlib import Path
client = AgentClient(Path(sys.argv[1]), engine=EngineInfo("vllm", "m", bytes(32), 16, 100_000, "float32"), arena_bytes=1 << 24)
assert client.wait_connected(60)
leases = [client.lease(100_000) for _ in range(8)]
work = [client.put([(os.urandom(32), lease)]) for lease in leases] + [client.get([(os.urandom(32), lease)]) for lease in leases]
print("working", flush=True)
sys.stdin.read()
"""


def dies_with_its_arena(agent: AgentProcess) -> None:
    """Kill a real engine process while the agent works in its memory."""
    with subprocess.Popen(
        [sys.executable, "-c", ENGINE_THAT_DIES, str(agent.socket)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"working\n"
        child.kill()


def hangs_up_at_work(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.greet()
        engine.send(protocol.Get(1, [(os.urandom(32), 0, 1000)]))
        engine.send(protocol.Put(2, [(os.urandom(32), 0, 1000)]))


def bad_frame(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.greet()
        engine.send(protocol.LENGTH.pack(10) + os.urandom(10))
        engine.gone()


def bad_length(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.greet()
        engine.send(b"\xff\xff\xff\xff")
        engine.gone()


def bad_offset(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.greet()
        engine.send(protocol.Put(1, [(bytes(32), ARENA_BYTES, 1)]))
        engine.gone()


def half_a_frame(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.greet()
        engine.send(protocol.LENGTH.pack(1000) + b"half")


def half_a_hello(agent: AgentProcess) -> None:
    """Hang up in the middle of a hello, whose descriptor has come already."""
    with RawEngine(agent.socket) as engine:
        descriptor, _ = arena.make(ARENA_BYTES)
        socket.send_fds(engine.link, [protocol.frame(hello())[:2]], [descriptor])
        os.close(descriptor)


def arena_cut_short(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, ARENA_BYTES // 2)
        assert isinstance(engine.greet(descriptors=[descriptor]), protocol.Refusal)
        os.close(descriptor)


def no_arena(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        reading, writing = os.pipe()
        assert isinstance(engine.greet(descriptors=[reading, writing]), protocol.Refusal)
        os.close(reading)
        os.close(writing)


def says_nothing(agent: AgentProcess) -> None:
    with RawEngine(agent.socket):
        pass


EVENTS: list[tuple[Event, int]] = [
    (dies_with_its_arena, 10),
    (hangs_up_at_work, 150),
    (bad_frame, 120),
    (bad_length, 120),
    (bad_offset, 120),
    (half_a_frame, 120),
    (half_a_hello, 120),
    (arena_cut_short, 120),
    (no_arena, 120),
    (says_nothing, 100),
]
"""Events, and how often each happens."""
