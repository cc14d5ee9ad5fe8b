"""The engines' socket: what a good engine gets, and what is said to a bad one. The agent is a process of its own."""

import os
import resource
import socket
import stat
import struct
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from fcntl import ioctl
from hashlib import sha256
from pathlib import Path
from termios import FIONREAD

import pytest

from skymemory.agent import arena, protocol
from skymemory.agent.agent_store import AgentStore
from skymemory.agent.client import AgentClient
from skymemory.sky.entry_satellites import server_routes
from skymemory.store.results import CancelledLookupError
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.icd import Status
from support.agents import AgentProcess, tell_up
from support.evictions import evict
from support.raw_engine import ARENA_BYTES, RawEngine, hello
from support.waiting import PATIENCE_S, wait_until

BLOCK = 100_000


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def chain(name: object, length: int) -> list[bytes]:
    return [key((name, number)) for number in range(length)]


@pytest.fixture(scope="module")
def agent(full_sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """One for all tests of this file; each uses keys of its own."""
    folder = tmp_path_factory.mktemp("agent")
    tell_up(folder, full_sky)
    with AgentProcess(folder) as started:
        started.wait_ready()
        yield started


@pytest.fixture
def client(agent: AgentProcess) -> Iterator[AgentClient]:
    with closing(agent.client(block_bytes=BLOCK)) as started:
        assert started.wait_connected(PATIENCE_S)
        yield started


@pytest.fixture
def engine(agent: AgentProcess) -> Iterator[RawEngine]:
    """It has said a good Hello."""
    with RawEngine(agent.socket) as started:
        assert isinstance(started.greet(), protocol.Welcome)
        yield started


def store(client: AgentClient, keys: list[bytes], block_bytes: int = BLOCK) -> dict[bytes, bytes]:
    data = {}
    for one in keys:
        lease = client.lease(block_bytes)
        assert lease is not None
        with lease:
            data[one] = os.urandom(block_bytes)
            lease.view[:] = data[one]
            assert client.put([(one, lease)]).result(PATIENCE_S)[0].ok
    return data


def test_blocks_go_and_come_back(client: AgentClient, full_sky: LocalConstellation) -> None:
    keys = chain("round trip", 4)
    data = store(client, keys)
    with SkyStore(full_sky.constellation) as other:  # what is in the sky is what a store finds there
        assert [bytes(result.data or b"") for result in other.get(keys)] == list(data.values())
    leases = [client.lease(BLOCK) for _ in keys]
    pairs = [(one, lease) for one, lease in zip(keys, leases, strict=True) if lease is not None]
    outcomes = client.get(pairs).result(PATIENCE_S)
    assert [(one.key, one.status) for one in outcomes] == [(one, "done") for one in keys]
    assert all(one.seconds > 0 for one in outcomes)
    assert {one: bytes(lease.view) for one, lease in pairs} == data


def test_the_longest_beginning_is_found(client: AgentClient) -> None:
    keys = chain("beginning", 6)
    store(client, keys[:3])
    store(client, keys[4:5])
    found = client.find(keys).result(PATIENCE_S)
    assert (found.blocks, found.fetch) == (3, 3)
    assert client.find(keys, cached=2).result(PATIENCE_S).fetch == 1
    assert client.find(keys, cached=5).result(PATIENCE_S).fetch == 0
    assert client.find(keys[:1]).result(PATIENCE_S).blocks == 1
    assert client.find([]).result(PATIENCE_S).blocks == 0
    assert client.find(chain("nothing", 3)).result(PATIENCE_S).blocks == 0


def test_a_block_of_another_length_ends_a_beginning_and_is_not_fetched(client: AgentClient) -> None:
    keys = chain("lengths", 3)
    store(client, keys[:1])
    store(client, keys[1:2], BLOCK - 1)
    store(client, keys[2:])
    assert client.find(keys).result(PATIENCE_S).blocks == 1
    with client.lease(BLOCK) as lease:  # type: ignore[union-attr]
        lease.view[:] = bytes(BLOCK)
        assert client.get([(keys[1], lease)]).result(PATIENCE_S)[0].status == "bad_length"
        assert lease.view == bytes(BLOCK)


def test_misses_and_purges(client: AgentClient) -> None:
    keys = chain("purge", 2)
    store(client, keys)
    assert client.purge(keys).result(PATIENCE_S).chunks > 0
    for one in keys:
        with client.lease(BLOCK) as lease:  # type: ignore[union-attr]
            assert client.get([(one, lease)]).result(PATIENCE_S)[0].status == "miss"


def test_what_is_left_of_a_block_makes_way_for_it(client: AgentClient, full_sky: LocalConstellation) -> None:
    """Whoever computes a block anew gets other bytes, in the last bits. Those that satellites still have are in its way."""
    keys = chain("again", 3)
    store(client, keys)
    with SkyStore(full_sky.constellation) as other:
        evict(other.control, [server_routes(other.whereabouts, 0)[0]], keys[:1])
        data = store(client, keys)
        assert [bytes(result.data or b"") for result in other.get(keys)] == list(data.values())


@pytest.fixture
def slow(start_sky: Callable[..., LocalConstellation], tmp_path: Path) -> Iterator[tuple[LocalConstellation, AgentClient]]:
    """A sky that waits long for its satellites, and a client of an agent over it."""
    local = start_sky(cache={"deadline_ms": 600_000, "parity": 0})
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path) as started:
        started.wait_ready()
        with closing(started.client(block_bytes=BLOCK)) as client:
            assert client.wait_connected(PATIENCE_S)
            yield local, client


def test_a_get_that_nobody_waits_for_is_called_back(
    slow: tuple[LocalConstellation, AgentClient], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    local, client = slow
    data = store(client, chain("called back", 2))
    leases = [client.lease(BLOCK) for _ in data]
    blocks = [(name, lease) for name, lease in zip(data, leases, strict=True) if lease is not None]
    with stopped(local):
        asked = client.get(blocks)
        other = client.get(blocks[:1])  # it waits for the block of the first one
        client.call_back(asked)
        start_s = time.monotonic()
        assert {one.status for one in asked.result(PATIENCE_S)} <= {Status.CANCELLED, Status.UNANSWERED}
        client.call_back(asked)
        assert not other.done()
        client.call_back(other)
        other.result(PATIENCE_S)
        assert time.monotonic() - start_s < PATIENCE_S
    wait_until(lambda: all(one.ok for one in client.get(blocks).result(PATIENCE_S)), "they come")
    assert [bytes(lease.view) for _, lease in blocks] == list(data.values())


def test_a_get_with_a_deadline_of_its_own(
    slow: tuple[LocalConstellation, AgentClient], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    local, client = slow
    [name] = store(client, [key("deadline")])
    lease = client.lease(BLOCK)
    assert lease is not None
    with stopped(local, local.constellation.cache.centre):
        assert client.get([(name, lease)], deadline_s=0.2).result(PATIENCE_S)[0].status == Status.EXPIRED
    assert client.get([(name, lease)], deadline_s=PATIENCE_S).result(PATIENCE_S)[0].ok
    with pytest.raises(ValueError, match="allowed is more than 0"):
        client.get([(name, lease)], deadline_s=0.0)


def test_a_look_up_that_nobody_waits_for_is_called_back(
    slow: tuple[LocalConstellation, AgentClient], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    local, client = slow
    looks = 0

    def cancelled() -> bool:
        nonlocal looks
        looks += 1
        return looks > 3

    with AgentStore(client.path) as over:
        assert over.wait_connected(PATIENCE_S)
        with stopped(local):
            start_s = time.monotonic()
            with pytest.raises(CancelledLookupError):
                over.find_longest(chain("nobody waits", 4), cancelled=cancelled)
            assert time.monotonic() - start_s < PATIENCE_S
        wait_until(lambda: over.find_longest(chain("nobody waits", 4)).unanswered == [], "satellites answer again")


def test_an_engine_that_goes_calls_its_gets_back(
    slow: tuple[LocalConstellation, AgentClient], stopped: Callable[..., AbstractContextManager[None]], tmp_path: Path
) -> None:
    """Its arena is the engine's: the agent gives it back at once, though satellites owe the blocks for minutes."""
    local, client = slow
    [name] = store(client, [key("gone")])

    def arenas() -> int:
        maps = Path(f"/proc/{agent_pid(client)}/maps").read_text()
        return maps.count("memfd:")

    with stopped(local):
        before = arenas()
        with RawEngine(client.path) as engine:
            assert isinstance(engine.greet(), protocol.Welcome)
            engine.send(protocol.Get(1, [(name, 0, 1000)]))
            wait_until(lambda: arenas() > before, "it is mapped")
        wait_until(lambda: arenas() == before, "it is given back")


def test_an_engine_that_calls_back_and_goes_without_reading_is_let_go(
    slow: tuple[LocalConstellation, AgentClient], stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    """It keeps its end of the socket open, where answers to what was called back find no room."""
    local, client = slow
    [name] = store(client, [key("unread")], 1000)

    def arenas() -> int:
        return Path(f"/proc/{agent_pid(client)}/maps").read_text().count("memfd:")

    before = arenas()
    with RawEngine(client.path) as engine:
        assert isinstance(engine.greet(), protocol.Welcome)
        for number in range(3):  # each answer is longer than what a socket and a writer take
            engine.send(protocol.Get(number, [(name, 0, 1000)] * protocol.BLOCKS_MAX))
        wait_until(lambda: waits_for_room(engine), "nothing more is sent")
        with stopped(local):
            for number in range(10, 50):
                engine.send(protocol.Get(number, [(key(("unread", number)), 0, 1000)]))
            time.sleep(0.1)  # they run
            engine.send(b"".join(protocol.frame(protocol.CallBack(number)) for number in range(10, 50)))
            engine.link.shutdown(socket.SHUT_WR)
            wait_until(lambda: arenas() == before, "the agent ends the connection")


def waits_for_room(engine: RawEngine) -> bool:
    """Return True if the engine's socket is so full that the agent has stopped to send."""
    waiting = array("i", [0])
    ioctl(engine.link, FIONREAD, waiting)
    time.sleep(0.05)
    full = waiting[0]
    ioctl(engine.link, FIONREAD, waiting)
    return waiting[0] == full > 1 << 16


def agent_pid(client: AgentClient) -> int:
    """Return the process that listens at the client's socket."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(client.path))
        pid, _, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


def test_many_engines_ask_at_once(agent: AgentProcess) -> None:
    """Each gets its own; what they ask together goes in few calls."""

    def work(number: int, failures: list[object]) -> None:
        try:
            with closing(agent.client(block_bytes=6000)) as one:
                assert one.wait_connected(PATIENCE_S)
                keys = chain(("many", number), 20)
                data = {name: os.urandom(6000) for name in keys}
                leases = {name: one.lease(6000) for name in keys}
                for name, lease in leases.items():
                    assert lease is not None
                    lease.view[:] = data[name]
                assert all(done.result(PATIENCE_S)[0].ok for done in [one.put([(n, w)]) for n, w in leases.items() if w])
                for lease in leases.values():
                    assert lease is not None
                    lease.view[:] = bytes(6000)
                gets = [one.get([(name, lease)]) for name, lease in leases.items() if lease]
                finds = [one.find(keys) for _ in range(5)]
                assert all(done.result(PATIENCE_S)[0].ok for done in gets)
                assert {name: bytes(lease.view) for name, lease in leases.items() if lease} == data
                assert [found.result(PATIENCE_S).blocks for found in finds] == [20] * 5
        except BaseException as error:
            failures.append(error)
            raise

    failures: list[object] = []
    threads = [threading.Thread(target=work, args=(number, failures)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_socket_is_for_its_user_alone(agent: AgentProcess) -> None:
    assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 99}, f"version 99 of the protocol, the agent {protocol.VERSION}"),
        ({"arena_bytes": 2 * ARENA_BYTES}, "1048576 bytes, and 2097152 were announced"),
        ({"arena_bytes": protocol.ARENA_BYTES_MAX + 1}, "arena_bytes|<= 274877906944"),
        ({"root": bytes(31)}, "32"),
        ({"name": ""}, "length >= 1"),
        ({"block_bytes": 0}, ">= 1"),
    ],
)
def test_a_hello_that_is_wrong(agent: AgentProcess, changes: dict[str, object], words: str) -> None:
    descriptor, _ = arena.make(ARENA_BYTES)
    with RawEngine(agent.socket) as engine:
        answer = engine.greet(hello(**changes), [descriptor])
        os.close(descriptor)
        assert isinstance(answer, protocol.Refusal)
        assert any(word in answer.why for word in words.split("|"))
        assert engine.gone()


def test_a_hello_without_an_arena_or_with_two(agent: AgentProcess) -> None:
    with RawEngine(agent.socket) as engine:
        engine.send(hello())
        assert engine.answer(protocol.WELCOMED).why == "0 descriptors came with Hello; one is needed, of the arena"
    with RawEngine(agent.socket) as engine, Path("/proc/self/exe").open("rb") as file:
        first, _ = arena.make(ARENA_BYTES)
        # The kernel hands over the first only; it is as if there were no other
        assert isinstance(engine.greet(descriptors=[first, file.fileno()]), protocol.Welcome)
        os.close(first)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            protocol.Get(1, [(bytes(32), ARENA_BYTES - 9, 10)]),
            "a block of 10 bytes at 1048567 is not in the arena, which has 1048576 bytes",
        ),
        (protocol.Get(1, [(bytes(32), (1 << 62) - 1, (1 << 62) - 1)]), "the arena, which has 1048576 bytes"),
        (protocol.Put(1, [(bytes(32), 0, 10), (bytes(32), 0, 0)]), "a block of 0 bytes at 0"),
        (protocol.Put(1, [(bytes(32), 0, ARENA_BYTES + 1)]), "a block of 1048577 bytes at 0"),
        (protocol.Purge(1, [bytes(31)]), "32"),
        (protocol.Welcome(1, 1, []), "welcome"),
        (hello(), "hello"),
        (protocol.LENGTH.pack(protocol.FRAME_BYTES_MAX + 1), "frame of 4194305 bytes; allowed are 1 to 4194304"),
        (protocol.LENGTH.pack(3) + b"\xff\xff\xff", "unsupported opcode|MessagePack|array|byte"),
        (protocol.LENGTH.pack(8) + b"\x92\xa5\x80\x80\x80\x80\x80\x01", "utf-8"),
        (b"GET / HTTP/1.1\r\n\r\n", "frame of 1195725856 bytes"),
    ],
)
def test_what_a_bad_engine_hears(
    engine: RawEngine, client: AgentClient, said: bytes | protocol.EngineMessage, words: str
) -> None:
    engine.send(said)
    answer = engine.answer()
    assert isinstance(answer, protocol.Refusal)
    assert any(word in answer.why for word in words.split("|")), answer.why
    assert engine.gone()
    assert client.connected  # others are not concerned
    assert client.find(chain("others", 2)).result(PATIENCE_S).blocks == 0


def test_descriptors_that_come_later_are_not_taken(agent: AgentProcess, engine: RawEngine) -> None:
    before = agent.open_files()
    with Path("/proc/self/exe").open("rb") as file:
        for number in range(50):
            socket.send_fds(engine.link, [protocol.frame(protocol.Find(number, [], 0))], [file.fileno()] * 3)
            assert engine.answer().id == number
    opened_later = 8  # by the agent for itself; of descriptors that it takes there would be 150
    wait_until(lambda: agent.open_files() <= before + opened_later, "as many descriptors as before")


def test_an_engine_that_does_not_read_takes_no_more_memory(agent: AgentProcess, engine: RawEngine) -> None:
    """It asks and asks and never reads an answer: after some it is not read any more, and others are served."""

    def resident() -> int:
        return int(Path(f"/proc/{agent.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    # Each answer is three times as long as its question is cheap to answer: blocks of a length that no lease has
    question = protocol.frame(protocol.Get(1, [(key("never"), 0, 1)] * 2000))
    engine.link.settimeout(2.0)
    before, sent = resident(), 0
    with suppress(TimeoutError):
        while sent < protocol.FRAME_BYTES_MAX * 8:
            sent += engine.link.send(question)
    assert sent < protocol.FRAME_BYTES_MAX * 8
    assert resident() - before < 200 << 20
    with closing(agent.client()) as other:
        assert other.wait_connected(PATIENCE_S)
        assert other.find([key("x")]).result(PATIENCE_S).blocks == 0


def test_half_a_frame_ends_after_a_while(agent: AgentProcess, engine: RawEngine) -> None:
    engine.send(protocol.LENGTH.pack(1000) + b"half")
    assert engine.answer().why == "an engine says Hello, and a frame comes whole, within seconds"
    with RawEngine(agent.socket) as silent:  # never says Hello
        assert silent.gone()


def test_an_engine_is_told_that_its_model_is_stored_in_another_format(agent: AgentProcess) -> None:
    model = "a model of two minds"
    with closing(agent.client(model=model, root=key("a"), block_bytes=BLOCK)) as first:
        assert first.wait_connected(PATIENCE_S)
        assert first.notes == []
        store(first, chain("format", 1))

    def notes(**changes: object) -> list[str]:
        with closing(agent.client(model=model, **changes)) as other:
            assert other.wait_connected(PATIENCE_S)
            return other.notes

    wait_until(lambda: notes(root=key("b")), "the format is recorded")
    assert notes(root=key("a")) == []
    assert notes(root=key("b"), block_tokens=128, dtype="bfloat16") == [
        "a model of two minds is stored as blocks of 16 tokens in float32 by vllm;"
        " this engine has blocks of 128 tokens in bfloat16, and finds none of those"
    ]
    assert "other weights" in notes(root=key("b"))[0]


def recorded_notes(agent: AgentProcess, model: str) -> list[str]:
    """What another engine is told of a model, once its format is recorded."""

    def notes() -> list[str]:
        with closing(agent.client(model=model, root=key("b"))) as other:
            assert other.wait_connected(PATIENCE_S)
            return other.notes

    wait_until(notes, "the format is recorded")
    return notes()


def test_what_the_sky_tells_of_others_is_printable(agent: AgentProcess) -> None:
    model = "a model of a joker"
    words = {"name": "\x1b[2Jvllm\n", "dtype": "\x07float32"}
    with closing(agent.client(model=model, root=key("joker"), block_bytes=BLOCK, **words)) as joker:
        assert joker.wait_connected(PATIENCE_S)
        store(joker, chain("joker", 1))

    assert recorded_notes(agent, model)[0].startswith(
        r"a model of a joker is stored as blocks of 16 tokens in '\x07float32' by '\x1b[2Jvllm\n'; this engine has blocks"
    )


def test_metrics(agent: AgentProcess, client: AgentClient) -> None:
    before = agent.metric('skymem_engine_blocks_total{operation="put",status="done"}')
    store(client, chain("metrics", 3))
    assert agent.metric('skymem_engine_blocks_total{operation="put",status="done"}') == before + 3
    with closing(agent.client(block_bytes=BLOCK)) as another:  # as a worker besides its scheduler
        assert another.wait_connected(PATIENCE_S)
        assert agent.metric('skymem_engine_connections{engine="vllm"}') >= 2
    assert agent.metric('skymem_engine_arena_bytes{engine="vllm"}') >= 1 << 24


def test_what_a_model_with_a_long_name_is_told_fits(agent: AgentProcess) -> None:
    model = "m" * protocol.TEXT_MAX
    with closing(agent.client(model=model, root=key("long"), block_bytes=BLOCK)) as first:
        assert first.wait_connected(PATIENCE_S)
        store(first, chain("long", 1))

    assert [len(note) for note in recorded_notes(agent, model)] == [protocol.TEXT_MAX]
