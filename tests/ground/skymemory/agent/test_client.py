"""An engine's client of the agent, against agents that come, go, hang, and answer nonsense."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from skymemory.agent import protocol
from skymemory.agent.client import AgentClient, ClientLimits, EngineInfo
from skymemory.agent.socket_peers import Users
from support.agents import AgentProcess
from support.waiting import PATIENCE_S, wait_until

StartAgent = Callable[..., AgentProcess]
ENGINE = EngineInfo("vllm", "model", bytes(32), 16, 1000, "float32")
KEY = bytes(32)


class FakeAgent:
    """Listens, takes one engine after another, and does with each what a test wants."""

    def __init__(self, path: Path, behave: Callable[[socket.socket], None]) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self.hellos: list[protocol.Hello] = []
        self._behave = behave
        self._links: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for link in self._links:
            link.close()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self._links.append(link)
            data, descriptors, _, _ = socket.recv_fds(link, 1 << 16, 1)
            for descriptor in descriptors:
                os.close(descriptor)
            if not data:  # the client has hung up
                continue
            self.hellos.append(protocol.read(protocol.HELLO, data[protocol.LENGTH.size :]))
            with suppress(OSError):  # the client has hung up
                self._behave(link)


def welcome(link: socket.socket) -> None:
    link.sendall(protocol.frame(protocol.Welcome(protocol.VERSION, os.getpid(), [])))


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., FakeAgent]]:
    started = []

    def start(behave: Callable[[socket.socket], None]) -> FakeAgent:
        started.append(FakeAgent(tmp_path / "agent.sock", behave))
        return started[-1]

    yield start
    for one in started:
        one.close()


def connect(folder: Path, arena_bytes: int = 1 << 16, **more: Any) -> AgentClient:
    return AgentClient(folder / "agent.sock", engine=ENGINE, arena_bytes=arena_bytes, **more)


def test_without_an_agent_all_ends_at_once(tmp_path: Path) -> None:
    with connect(tmp_path) as client:
        assert not client.connected
        assert client.lease(1000) is None
        assert client.lease(1000, timeout_s=None) is None
        found = client.find([KEY]).result(0)
        assert (found.blocks, found.fetch, found.fetch_s, found.recompute_s) == (0, 0, None, None)
        assert client.get([]).result(0) == []
        assert client.purge([KEY]).result(0).chunks == 0
        client.prefilled(100, 0.1)
    assert client.find([KEY]).result(0).blocks == 0  # closed, and closed again
    client.close()


def test_leases(start_agent: StartAgent) -> None:
    agent = start_agent()
    with closing(connect(agent.folder, arena_bytes=4 * 4096)) as client:
        assert client.wait_connected(PATIENCE_S)
        leases = [client.lease(4096) for _ in range(4)]
        assert None not in leases
        assert client.lease(1) is None  # full, and nobody waits
        assert client.lease(1, timeout_s=0.01) is None
        for index, lease in enumerate(leases):
            assert lease is not None
            lease.view[:] = bytes([index]) * 4096
        assert [lease and lease.view[5] for lease in leases] == [0, 1, 2, 3]
        timer = threading.Timer(0.05, leases[2].release)  # type: ignore[union-attr]
        timer.start()
        again = client.lease(100, timeout_s=PATIENCE_S)
        assert again is not None
        assert len(again.view) == 100
        with pytest.raises(ValueError, match="released"):
            leases[2].view[0]  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="released before its use"):
            client.put([(KEY, leases[2])])  # type: ignore[list-item]
        leases[2].release()  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="lease of 16385 bytes; allowed are 1 to 16384"):
            client.lease(4 * 4096 + 1)


def test_a_lease_in_use_is_not_leased_again(tmp_path: Path, fake: Callable[..., FakeAgent]) -> None:
    """Its holder has lost interest, but the agent may still write to it."""
    answer = threading.Event()

    def behave(link: socket.socket) -> None:
        welcome(link)
        link.recv(1 << 16)
        assert answer.wait(PATIENCE_S)
        link.sendall(protocol.frame(protocol.Done(1, [("miss", 0.5)])))

    fake(behave)
    with connect(tmp_path, arena_bytes=4096) as client:
        assert client.wait_connected(PATIENCE_S)
        lease = client.lease(4096)
        assert lease is not None
        asked = client.get([(KEY, lease)])
        lease.release()
        assert client.lease(4096) is None
        answer.set()
        assert [(one.key, one.status, one.seconds, one.ok) for one in asked.result(PATIENCE_S)] == [(KEY, "miss", 0.5, False)]
        assert client.lease(4096, timeout_s=PATIENCE_S) is not None


def test_who_waits_for_a_lease_hears_that_the_agent_is_gone(start_agent: StartAgent) -> None:
    agent = start_agent()
    with closing(connect(agent.folder, arena_bytes=4096)) as client:
        assert client.wait_connected(PATIENCE_S)
        held = client.lease(4096)
        assert held is not None
        timer = threading.Timer(0.05, agent.kill)
        timer.start()
        assert client.lease(4096, timeout_s=None) is None
        timer.join()


@pytest.mark.parametrize(
    "said",
    [
        protocol.LENGTH.pack(0),
        b"\xff\xff\xff\xff",
        protocol.LENGTH.pack(3) + b"abc",
        protocol.frame(protocol.Refusal("not you")),
        protocol.frame(protocol.Found(1, 0, 0, None, None))[:-1],
        b"",
    ],
)
def test_nonsense_from_an_agent_is_no_agent(tmp_path: Path, fake: Callable[..., FakeAgent], said: bytes) -> None:
    def behave(link: socket.socket) -> None:
        welcome(link)
        link.recv(1 << 16)
        link.sendall(said)
        link.shutdown(socket.SHUT_RDWR)

    agent = fake(behave)
    with connect(tmp_path) as client:
        assert client.wait_connected(PATIENCE_S)
        assert client.find([KEY]).result(PATIENCE_S).blocks == 0
        wait_until(lambda: len(agent.hellos) > 1, "it tries again")


def test_an_answer_to_another_question_is_none(tmp_path: Path, fake: Callable[..., FakeAgent]) -> None:
    def behave(link: socket.socket) -> None:
        welcome(link)
        link.recv(1 << 16)
        for answer in (protocol.Found(77, 5, 5, None, None), protocol.Done(1, [])):
            link.sendall(protocol.frame(answer))

    fake(behave)
    with connect(tmp_path) as client:
        assert client.wait_connected(PATIENCE_S)
        assert client.find([KEY]).result(PATIENCE_S).blocks == 0


@pytest.mark.parametrize("cut", [1, 5, None])
def test_what_comes_in_one_packet_with_the_welcome_is_heard(
    tmp_path: Path, fake: Callable[..., FakeAgent], cut: int | None
) -> None:
    """The rest of it too: a frame that has begun goes on behind it."""
    alive = protocol.frame(protocol.Alive())

    def behave(link: socket.socket) -> None:
        link.sendall(protocol.frame(protocol.Welcome(protocol.VERSION, os.getpid(), [])) + alive + alive[:cut])
        link.recv(1 << 16)
        link.sendall((b"" if cut is None else alive[cut:]) + protocol.frame(protocol.Found(1, 3, 2, 0.25, None)))

    fake(behave)
    with connect(tmp_path) as client:
        assert client.wait_connected(PATIENCE_S)
        assert client.find([KEY] * 4).result(PATIENCE_S).blocks == 3


def test_a_refusal_right_behind_the_welcome_ends_the_connection(
    tmp_path: Path, fake: Callable[..., FakeAgent], caplog: pytest.LogCaptureFixture
) -> None:
    said = [protocol.Welcome(protocol.VERSION, os.getpid(), []), protocol.Refusal("not you")]
    agent = fake(lambda link: link.sendall(b"".join(map(protocol.frame, said))))
    with connect(tmp_path):
        wait_until(lambda: len(agent.hellos) > 1, "it tries again")
    assert "refuses: not you" in caplog.text


def test_a_refusal_at_hello_is_told_and_tried_again(
    tmp_path: Path, fake: Callable[..., FakeAgent], caplog: pytest.LogCaptureFixture
) -> None:
    agent = fake(lambda link: link.sendall(protocol.frame(protocol.Refusal("version 1 of the protocol, the agent 2"))))
    with connect(tmp_path) as client:
        wait_until(lambda: len(agent.hellos) >= 3, "it tries again")
        assert not client.connected
    told = [record.message for record in caplog.records if "version 1 of the protocol, the agent 2" in record.message]
    assert len(told) == 1  # once, not each time


def test_what_an_agent_says_cannot_act_on_a_terminal(
    tmp_path: Path, fake: Callable[..., FakeAgent], caplog: pytest.LogCaptureFixture
) -> None:
    note = "a model \x1b[2Jis stored\nroot: all is well\x9b1m"

    said = iter([protocol.Refusal("no\r\x07"), protocol.Welcome(protocol.VERSION, os.getpid(), [note])])
    fake(lambda link: link.sendall(protocol.frame(next(said))))
    with connect(tmp_path) as client:
        assert client.wait_connected(PATIENCE_S)
        assert client.notes == ["a model ?[2Jis stored?root: all is well?1m"]
    assert "it refuses this engine: no??" in caplog.text
    assert all(record.message.isprintable() for record in caplog.records)


@pytest.mark.parametrize("own", [4711, 0])
def test_who_listens_in_anothers_name_is_no_agent(
    own: int, tmp_path: Path, fake: Callable[..., FakeAgent], caplog: pytest.LogCaptureFixture
) -> None:
    agent = fake(welcome)
    with connect(tmp_path, users=lambda _: Users(4712, own)) as client:
        wait_until(lambda: f"who listens is user 4712; allowed are this user, {own}, and root" in caplog.text, "it is refused")
        assert not client.connected
    assert agent.hellos == []  # neither memory nor the root of the keys went there


@pytest.mark.parametrize(("own", "agent"), [(4711, 4711), (4711, 0), (0, os.geteuid())])
def test_agents_of_this_user_and_of_root_and_to_root_of_the_folders_owner(
    own: int, agent: int, tmp_path: Path, fake: Callable[..., FakeAgent]
) -> None:
    fake(welcome)
    with connect(tmp_path, users=lambda _: Users(agent, own)) as client:
        assert client.wait_connected(PATIENCE_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_the_system_says_who_listens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.bind(str(tmp_path / "agent.sock"))
        os.seteuid(65534)
        try:
            stranger.listen()
        finally:
            os.seteuid(0)
        with connect(tmp_path):
            wait_until(lambda: "who listens is user 65534" in caplog.text, "it is refused")


def test_an_agent_that_hangs_is_given_up(start_agent: StartAgent) -> None:
    agent = start_agent()
    with closing(connect(agent.folder, limits=ClientLimits(silence_s=0.2, hello_s=0.2))) as client:
        assert client.wait_connected(PATIENCE_S)
        os.kill(agent.pid, signal.SIGSTOP)
        try:
            assert client.find([KEY]).result(PATIENCE_S).blocks == 0
            wait_until(lambda: not client.connected, "it is given up")
        finally:
            os.kill(agent.pid, signal.SIGCONT)
        assert client.wait_connected(PATIENCE_S)


def test_an_agent_that_is_at_work_is_waited_for(tmp_path: Path, fake: Callable[..., FakeAgent]) -> None:
    def behave(link: socket.socket) -> None:
        welcome(link)
        link.recv(1 << 16)
        for _ in range(8):  # longer than the silence that is borne
            time.sleep(0.5)
            link.sendall(protocol.frame(protocol.Alive()))
        link.sendall(protocol.frame(protocol.Found(1, 3, 2, 0.25, None)))

    fake(behave)
    with connect(tmp_path, limits=ClientLimits(silence_s=3.5)) as client:
        assert client.wait_connected(PATIENCE_S)
        found = client.find([KEY] * 4, cached=1).result(PATIENCE_S)
        assert (found.blocks, found.fetch, found.fetch_s, found.recompute_s) == (3, 2, 0.25, None)


def test_too_many_questions_at_once_are_busy(tmp_path: Path, fake: Callable[..., FakeAgent]) -> None:
    fake(welcome)  # and never a word again
    with connect(tmp_path, limits=ClientLimits(waiting_max=3)) as client:
        assert client.wait_connected(PATIENCE_S)
        waiting = [client.find([KEY]) for _ in range(3)]
        lease = client.lease(1000)
        assert lease is not None
        assert client.get([(KEY, lease)]).result(0)[0].status == "busy"
        assert client.find([KEY]).result(0).blocks == 0
        assert not any(one.done() for one in waiting)
    assert [one.result(0).blocks for one in waiting] == [0, 0, 0]


def test_a_process_that_was_forked_off_has_no_agent(start_agent: StartAgent) -> None:
    agent = start_agent()
    with closing(connect(agent.folder)) as client:
        assert client.wait_connected(PATIENCE_S)
        child = os.fork()
        if child == 0:
            alone = client.lease(100) is None and client.find([KEY]).result(0).blocks == 0
            client.close()
            os._exit(0 if alone else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.lease(100) is not None


@pytest.mark.parametrize(
    "changes",
    [{"root": b"short"}, {"name": ""}, {"dtype": "x" * 65}, {"block_bytes": 0}, {"block_tokens": 0}, {"model": "m" * 1025}],
)
def test_what_the_protocol_does_not_allow_is_told_at_once(tmp_path: Path, changes: dict[str, object]) -> None:
    fields = {name: getattr(ENGINE, name) for name in EngineInfo.__slots__}
    with pytest.raises(ValueError, match=r"length|>=|32 bytes, not 5"):
        AgentClient(tmp_path / "agent.sock", engine=EngineInfo(**{**fields, **changes}))
    with pytest.raises(ValueError, match="arena_bytes is 0; allowed are 1 to"):
        AgentClient(tmp_path / "agent.sock", engine=ENGINE, arena_bytes=0)


def test_where_the_agent_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    with AgentClient(engine=ENGINE) as client:
        assert client.path == tmp_path / "agent.sock"
    monkeypatch.setenv("SKYMEM_AGENT_SOCKET", str(tmp_path / "elsewhere"))
    with AgentClient(engine=ENGINE) as client:
        assert client.path == tmp_path / "elsewhere"


def test_it_sleeps_between_questions(start_agent: StartAgent) -> None:
    agent = start_agent()
    with closing(connect(agent.folder)) as client:
        assert client.wait_connected(PATIENCE_S)
        client.find([KEY]).result(PATIENCE_S)
        thread = next(one for one in threading.enumerate() if one.name == "skymem-agent-client")
        status = Path(f"/proc/self/task/{thread.native_id}/status")

        def switches() -> int:
            return int(next(line for line in status.read_text().splitlines() if line.startswith("voluntary")).split()[1])

        def sleeps() -> bool:
            before = switches()
            time.sleep(0.3)
            return switches() - before <= 3

        wait_until(sleeps, "it is not woken")
