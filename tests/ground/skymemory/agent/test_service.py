"""The agent as a process: it starts with nothing there, becomes ready, survives what dies, and ends cleanly."""

import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from hashlib import sha256
from pathlib import Path

import pytest
import redis

from skymemory.agent.http import CONNECTIONS_MAX
from skymemory.agent.service import DESCRIPTORS
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.waiting import PATIENCE_S, wait_until

StartSky = Callable[..., LocalConstellation]
StartAgent = Callable[..., AgentProcess]
BLOCK = 100_000


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def test_it_starts_with_nothing_there_and_follows_what_comes_up(start_agent: StartAgent, start_sky: StartSky) -> None:
    agent = start_agent()
    assert json.loads(agent.get("/healthz")[1])["healthy"] is True
    status, body = agent.get("/readyz")
    assert status == 503
    assert "`skymem up` starts one" in json.loads(body)["reason"]
    with closing(agent.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)  # engines are served all the same: all is a miss
        assert client.find([key(1)]).result(PATIENCE_S).blocks == 0
        local = start_sky()
        tell_up(agent.folder, local)
        agent.wait_ready()
        assert agent.get("/readyz")[0] == 200
        lease = client.lease(BLOCK)
        assert lease is not None
        with lease:
            assert [one.status for one in client.put([(key(1), lease)]).result(PATIENCE_S)] == ["done"]
        assert client.find([key(1)]).result(PATIENCE_S).blocks == 1
        RunRecord(agent.folder).clear()
        wait_until(lambda: "`skymem up` starts one" in agent.ready().get("reason", ""), "it sees that the sky went down")
        assert client.find([key(1)]).result(PATIENCE_S).blocks == 0


def test_monitoring_on_loopback_is_by_address_or_this_machines_name(start_agent: StartAgent) -> None:
    address = start_agent().addresses["http"]
    for path in ("/healthz", "/readyz", "/metrics"):
        for host, answered in (("127.0.0.1", True), ("localhost:1", True), ("10.0.0.7:8090", True), ("evil.example", False)):
            request = urllib.request.Request(address + path, headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    status = answer.status
            except urllib.error.HTTPError as error:
                with error:
                    status = error.code
            assert (status != 403) == answered, (path, host, status)


def test_a_health_check_without_a_name_is_answered(start_agent: StartAgent) -> None:
    port = int(start_agent().addresses["http"].rpartition(":")[2])
    for path in ("/healthz", "/readyz", "/metrics"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert client.recv(100).split()[1] == (b"503" if path == "/readyz" else b"200")


def test_ipv6_addresses_have_brackets(start_agent: StartAgent) -> None:
    agent = start_agent(None, "--http-host", "::1", "--resp-host", "::1", "--resp-port", "0")
    port = int(agent.addresses["redis"].rpartition(":")[2])
    assert agent.addresses["redis"] == f"redis://[::1]:{port}"
    assert agent.addresses["http"].startswith("http://[::1]:")
    assert agent.get("/healthz")[0] == 200
    with redis.Redis.from_url(agent.addresses["redis"]) as client:
        assert re.fullmatch(r"\[::1\]:\d+", client.client_info()["addr"])


def ended(connections: list[socket.socket]) -> list[socket.socket]:
    """Those of them to which the other side says nothing any more."""
    poll = select.poll()
    for one in connections:
        poll.register(one, select.POLLIN)
    readable = {descriptor for descriptor, _ in poll.poll(0)}
    return [one for one in connections if one.fileno() in readable]


def test_whoever_holds_connections_probes_get_in_and_engines_too(start_agent: StartAgent) -> None:
    agent = start_agent()
    port = int(agent.addresses["http"].rpartition(":")[2])
    with ExitStack() as stack:
        held = []
        for _ in range(2 * CONNECTIONS_MAX):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")  # half a request
            held.append(one)
        assert agent.get("/healthz")[0] == 200
        most = CONNECTIONS_MAX + 128  # those that are accepted at once are not counted yet
        wait_until(lambda: len(held) - len(ended(held)) <= most, "the oldest end")
        assert len(held) - len(ended(held)) > CONNECTIONS_MAX - 16  # and no others
        assert held[0].recv(1) == b""
        held[-1].sendall(b"host\r\n\r\n")
        assert held[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        with closing(agent.client()) as client:
            assert client.wait_connected(PATIENCE_S)


@pytest.mark.parametrize(
    "nonsense", [b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_what_is_no_request_is_told_and_does_not_fill_the_log(start_agent: StartAgent, nonsense: bytes) -> None:
    agent = start_agent()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", int(agent.addresses["http"].rpartition(":")[2])), PATIENCE_S) as client:
            client.sendall(nonsense)
            assert client.recv(100).startswith(b"HTTP/1.0 400 ")
    assert agent.get("/healthz")[0] == 200
    assert agent.log.read_text() == ""


def test_it_takes_the_descriptors_that_it_may_have(start_agent: StartAgent) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        agent = start_agent()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(agent.pid, resource.RLIMIT_NOFILE) == (min(DESCRIPTORS, hard % (1 << 64)), hard)


def test_it_becomes_unready_when_the_sky_falls_silent_and_ready_again(
    start_agent: StartAgent, start_sky: StartSky, stopped: Callable[..., object]
) -> None:
    local = start_sky()
    agent = start_agent(local)
    with stopped(local):  # type: ignore[attr-defined]
        wait_until(lambda: not agent.ready()["ready"], "it sees that nobody answers")
        assert agent.ready()["reason"] == "no satellite of the constellation answers"
    agent.wait_ready()
    assert agent.metric("skymem_sky_reachable") == 1


def test_a_constellation_from_a_file(start_agent: StartAgent, start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky()
    file = tmp_path / "sky.toml"
    port = local.constellation.network.port
    file.write_text(f"[constellation]\nplanes = 3\nslots = 5\n[network]\nport = {port}\n[cache]\nservers = 9\ncentre = [2, 3]\n")
    agent = start_agent(None, "--constellation", str(file))
    agent.wait_ready()
    assert (agent.ready()["planes"], agent.ready()["slots"]) == (3, 5)


def test_a_file_and_the_replay_of_a_folder(start_agent: StartAgent, start_sky: StartSky, tmp_path: Path) -> None:
    sky = start_sky().constellation
    (file := tmp_path / "sky.toml").write_text(
        f"[constellation]\nplanes = 3\nslots = 5\n[network]\nport = {sky.network.port}\n[cache]\nservers = 9\ncentre = [2, 3]\n"
    )
    walker, site = Walker(3, 5, 550.0, 86.4, True, 1), Site(52.5, 13.4)
    schedule = Schedule.compute(walker, "walker", site, 10.0, 1_795_000_000_000, 3_600_000)
    schedule.save(source := tmp_path / "schedule.jsonl")
    (folder := tmp_path / "replay").mkdir()
    agent = start_agent(None, "--constellation", str(file), "--replay", str(folder))
    agent.wait_ready()
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (1, Satellite(3, 5)), (2, Satellite(1, 1))])
    playing = Playing(track, time.time() - 10, schedule)
    RunRecord(folder).sky(sky).playing.save(playing, source)
    with SkyStore(sky, playing=playing) as store, closing(agent.client(block_bytes=BLOCK)) as client:
        assert store.put([(key("far"), data := os.urandom(BLOCK))])[0].ok
        assert not set(Whereabouts(sky).servers(0)) >= set(store.whereabouts.servers(time.time()))
        assert client.wait_connected(PATIENCE_S)
        lease = client.lease(BLOCK)
        assert lease is not None
        with lease:
            assert client.get([(key("far"), lease)]).result(PATIENCE_S)[0].ok
            assert lease.view == data


def test_engines_go_on_when_the_agent_is_killed(start_agent: StartAgent, start_sky: StartSky) -> None:
    """`kill -9` while it works: `no_agent` at once, then a new agent on the same socket, and the block comes from the sky."""
    local = start_sky()
    first = start_agent(local)
    data = os.urandom(BLOCK)
    with closing(first.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)
        lease = client.lease(BLOCK)
        assert lease is not None
        with lease:
            lease.view[:] = data
            assert client.put([(key("kept"), lease)]).result(PATIENCE_S)[0].ok
        os.kill(first.pid, signal.SIGSTOP)  # so that the questions are certainly open when it dies
        old = client.lease(BLOCK)
        assert old is not None
        waiting = client.get([(key("kept"), old)]), client.find([key("kept")]), client.purge([key("kept")])
        first.kill()
        assert waiting[0].result(PATIENCE_S)[0].status == "no_agent"
        assert waiting[1].result(PATIENCE_S).blocks == 0
        assert waiting[2].result(PATIENCE_S).chunks == 0
        wait_until(lambda: not client.connected, "the client sees it")
        assert client.lease(BLOCK) is None
        assert client.get([(key("kept"), old)]).result(0)[0].status == "no_agent"
        assert first.socket.is_socket()  # left behind by the dead

        second = start_agent(local)
        assert f"{first.socket} was left by an agent that was killed, and is taken over" in second.log.read_text()
        assert client.wait_connected(PATIENCE_S)
        # A lease of the old connection's arena is of no use with the new one
        assert client.get([(key("kept"), old)]).result(0)[0].status == "no_agent"
        old.release()
        with client.lease(BLOCK) as new:  # type: ignore[union-attr]
            assert client.get([(key("kept"), new)]).result(PATIENCE_S)[0].ok
            assert new.view == data


def test_engines_go_on_when_a_satellite_is_killed(start_agent: StartAgent, start_sky: StartSky) -> None:
    local = start_sky(cache={"parity": 0})
    agent = start_agent(local)
    data = {key(("satellite", number)): os.urandom(BLOCK) for number in range(6)}
    with closing(agent.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)
        for name, block in data.items():
            with client.lease(BLOCK) as lease:  # type: ignore[union-attr]
                lease.view[:] = block
                assert client.put([(name, lease)]).result(PATIENCE_S)[0].ok
        local.kill(Satellite(2, 3))
        for name, block in data.items():
            with client.lease(BLOCK) as lease:  # type: ignore[union-attr]
                outcome = client.get([(name, lease)]).result(PATIENCE_S)[0]
                assert outcome.status != "no_agent"
                assert not outcome.ok  # each has a share there
                lease.view[:] = block  # computed again
                assert client.put([(name, lease)]).result(PATIENCE_S)[0].ok
                lease.view[:] = bytes(BLOCK)
                assert client.get([(name, lease)]).result(PATIENCE_S)[0].ok
                assert lease.view == block
        assert agent.ready()["ready"]


def test_two_agents_on_one_socket(start_agent: StartAgent) -> None:
    first = start_agent()
    with pytest.raises(RuntimeError) as error:
        start_agent()
    line = str(error.value).strip().splitlines()[-1]
    assert line.startswith(f"the agent ended with 1: Error: another agent (pid {first.pid}) serves {first.socket}")
    with closing(first.client()) as client:
        assert client.wait_connected(PATIENCE_S)


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--socket", "/tmp/" + "x" * 103], 1, "108 bytes; the path of a socket has at most 107"),
        (["--socket", ""], 1, "'.' is no path of a socket (--socket names one)"),
        (["--socket", "/proc/version"], 1, "/proc/version: no socket can be there: "),
        (["--socket", "/proc/version/agent.sock"], 1, "/proc/version/agent.sock: no socket can be there: "),
        (["--http-port", "70000"], 2, "70000 is not in the range 0<=x<=65535"),
        (["--http-host", "192.0.2.1"], 1, "page, health and metrics at 192.0.2.1:0: Cannot assign requested address"),
        (["--resp-port", "0", "--resp-host", "0.0.0.0"], 2, "--resp-host is 0.0.0.0, where other machines may come: it needs a"),
        (["--resp-port", "0", "--resp-host", "::", "--resp-password", ""], 2, "--resp-host is ::, where other machines"),
        (["--lmcache-port", "0", "--resp-host", "0.0.0.0"], 2, "--resp-host is 0.0.0.0, where other machines may come: it needs"),
        (["--constellation", "{folder}/wrong.toml"], 2, "wrong.toml:2: constellation.planes is 0"),
        (["--replay", "{folder}"], 2, "--replay needs a --constellation"),
        (["--config", "{folder}/agent.toml"], 2, "agent.toml:1: resp_prot is unknown (did you mean resp_port?)"),
    ],
)
def test_bad_settings_are_told(tmp_path: Path, flags: list[str], status: int, words: str) -> None:
    (tmp_path / "wrong.toml").write_text("[constellation]\nplanes = 0\n")
    (tmp_path / "agent.toml").write_text("resp_prot = 1\n")
    flags = [flag.format(folder=tmp_path) for flag in flags]
    with pytest.raises(RuntimeError) as error:
        AgentProcess(tmp_path, *flags)
    assert f"ended with {status}: Error: " in str(error.value)
    assert words in str(error.value)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize("flags", [("--resp-host", "localhost"), ("--resp-host", "0.0.0.0", "--resp-password", "open sesame")])
def test_redis_clients_of_this_machine_or_with_a_password_are_served(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with AgentProcess(tmp_path, "--resp-port", "0", "--lmcache-port", "0", *flags) as agent:
        assert agent.addresses["redis"].startswith(f"redis://{flags[1]}:")
        assert agent.addresses["lmcache"].startswith(f"redis://{flags[1]}:")


def test_a_file_at_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.sock").write_text("mine")
    with pytest.raises(RuntimeError, match="is no socket"):
        AgentProcess(tmp_path)
    assert (tmp_path / "agent.sock").read_text() == "mine"


def test_flags_before_environment_before_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f'socket = "{tmp_path}/file.sock"\nhttp_port = 0\n')
    program = [sys.executable, "-c", "from skymemory.cli import main; main()", "agent", "--config", str(file)]

    def engines(*flags: str, **environment: str) -> str:
        with subprocess.Popen(
            [*program, *flags],
            env={**os.environ, "SKYMEM_STATE": str(tmp_path), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as child:
            assert child.stdout is not None
            line = child.stdout.readline()
            child.terminate()
        return line.strip()

    assert engines() == f"engines: {tmp_path}/file.sock"
    assert engines(SKYMEM_AGENT_SOCKET=f"{tmp_path}/env.sock") == f"engines: {tmp_path}/env.sock"
    flag = ["--socket", f"{tmp_path}/flag.sock"]
    assert engines(*flag, SKYMEM_AGENT_SOCKET=f"{tmp_path}/env.sock") == f"engines: {tmp_path}/flag.sock"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_cleanly(start_agent: StartAgent, start_sky: StartSky, number: signal.Signals, status: int) -> None:
    agent = start_agent(start_sky())
    with closing(agent.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)
        agent.child.send_signal(number)
        assert agent.child.wait(PATIENCE_S) == status
        wait_until(lambda: not client.connected, "the client sees it")
    assert not agent.socket.exists()
    assert "Traceback" not in agent.log.read_text()


def test_what_is_in_work_is_answered_before_it_ends(
    start_agent: StartAgent, start_sky: StartSky, stopped: Callable[..., object]
) -> None:
    """A get that waits for a silent sky ends by its deadline, and the engine hears of it before the agent goes."""
    local = start_sky(cache={"deadline_ms": 3000})
    agent = start_agent(local)
    with closing(agent.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)
        with client.lease(BLOCK) as lease, stopped(local):  # type: ignore[union-attr,attr-defined]
            asked = client.put([(key("late"), lease)])
            wait_until(lambda: agent.metric("skymem_engine_requests_in_work") == 1, "the agent works on it")
            agent.child.send_signal(signal.SIGTERM)
            outcome = asked.result(PATIENCE_S)[0]
        assert outcome.status in ("expired", "unanswered")  # by then the host knows whether anybody is there
        assert agent.child.wait(PATIENCE_S) == 0


def test_systemd_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(PATIENCE_S)
        os.environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        try:
            agent = AgentProcess(tmp_path)
        finally:
            del os.environ["NOTIFY_SOCKET"]
        assert listener.recv(100) == b"READY=1"
        start_s = time.monotonic()
        assert agent.stop() == 0
        assert listener.recv(100) == b"STOPPING=1"
        assert time.monotonic() - start_s < PATIENCE_S
