"""docker/stack.yaml on a swarm of one machine that carries all five planes: 95 satellites answer a ground host, blocks go up and
come back, and a plane that dies is found at its new address."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest
import redis

from skymemory.sky.constellation import Constellation
from skymemory.testbed.docker import build_image, find_checkout
from skymemory.testbed.several_machines import AGENT_SECRET, HTTP_PORT, LMCACHE_PORT, PLANE, RESP_PORT
from support.ground_container import ALL_IS_WELL, ground, routes
from support.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
STACK = "skymemory-test"
ROOT = Path(__file__).resolve().parents[2]
CONSTELLATION = ROOT / "docker" / "five-hosts.toml"
START_S = 180.0
OVERLAY = "198.51.100.0/24"
"""set aside for documentation (RFC 5737): no machine of the network that the test runs in has such an address"""


@pytest.fixture(scope="module")
def ports() -> dict[int, int]:
    """Free ports of this machine, by those that the stack would publish."""
    with ExitStack() as stack:
        found = {}
        for port in (RESP_PORT, LMCACHE_PORT):
            probe = stack.enter_context(socket.socket())
            probe.bind(("", 0))
            found[port] = probe.getsockname()[1]
    return found


@pytest.fixture(scope="module")
def stack(docker: Callable[..., str], tmp_path_factory: pytest.TempPathFactory, ports: dict[int, int]) -> Iterator[Path]:
    """The stack of the repository, but for what it takes of the machine: ports, and the folder of the agent's socket."""
    made, folder = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("socket")
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", "compose", "--swarm"]
    subprocess.run([*command, "--constellation", CONSTELLATION, "--output", made / "stack.yaml"], check=True)
    text = (ROOT / "docker" / "stack.yaml").read_text()
    changes = {f"published: {port}": f"published: {free}" for port, free in ports.items()}
    changes["'/run/skymemory:"] = f"'{folder}:"
    changes['file: "five-hosts.toml"'] = f'file: "{CONSTELLATION}"'
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (path := made / "stack.yaml").write_text(text)  # beside the tenant secret
    give = ["run", "--rm", "--volume", f"{folder}:/socket", "debian:bookworm-slim", "chown", "--recursive"]
    docker(*give, "65534:65534", "/socket")
    yield path
    docker(*give, f"{os.getuid()}:{os.getgid()}", "/socket")


@pytest.fixture(scope="module")
def password() -> str:
    """What Redis clients have to say."""
    return secrets.token_hex()


@pytest.fixture(scope="module")
def swarm(
    docker: Callable[..., str], stack: Path, agent_image: str, password: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Constellation]:
    """The stack with everything on this machine."""
    if docker("info", "--format", "{{.Swarm.LocalNodeState}}").strip() != "inactive":
        why = "this engine is in a swarm already: the test makes one of its own, and leaves yours alone"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    assert agent_image in stack.read_text()
    build_image(find_checkout(ROOT), PLANE)
    constellation = Constellation.load(CONSTELLATION)
    (settings := tmp_path_factory.mktemp("secret") / "agent.toml").write_text(f'resp_password = "{password}"\n')
    pool = ["--default-addr-pool", OVERLAY, "--default-addr-pool-mask-length", "26"]
    docker("swarm", "init", "--advertise-addr", "127.0.0.1", *pool)
    try:
        node = docker("node", "ls", "--quiet").strip()
        for label in ("agent", *(f"plane-{plane}" for plane in range(1, constellation.planes + 1))):
            docker("node", "update", "--label-add", f"{label}=true", node)
        docker("secret", "create", AGENT_SECRET, str(settings))
        docker("stack", "deploy", "--resolve-image", "never", "--compose-file", str(stack), STACK)
        await_planes(docker, constellation.planes)
        yield constellation
    finally:
        docker("stack", "rm", STACK)
        try:
            wait_until(lambda: not planes(docker), "the planes have gone", patience_s=START_S, pause_s=0.5)
        finally:
            docker("swarm", "leave", "--force")


def planes(docker: Callable[..., str], *filters: str) -> list[str]:
    """Ids of the containers of planes."""
    words = ["--filter", f"label=com.docker.stack.namespace={STACK}", "--filter", f"name={STACK}_plane-"]
    for one in filters:
        words += ["--filter", one]
    return docker("ps", "--quiet", *words).split()


def await_planes(docker: Callable[..., str], count: int) -> None:
    """All satellites of so many planes listen."""
    wait_until(
        lambda: len(planes(docker, "health=healthy")) >= count,
        lambda: f"{count} planes are up:\n{docker('stack', 'ps', '--no-trunc', STACK)}",
        patience_s=START_S,
        pause_s=0.5,
    )


def test_all_satellites_answer_and_blocks_come_back(swarm: Constellation, docker: Callable[..., str]) -> None:
    with routes(docker, f"{STACK}_sky", swarm) as network:
        assert ground(network, CONSTELLATION) == ALL_IS_WELL


def is_ready(docker: Callable[..., str]) -> bool:
    """The agent is up and has found the sky; before that it says 503. Health is told within its container only."""
    ask = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{HTTP_PORT}/readyz', timeout=5)"
    containers = docker("ps", "--quiet", "--filter", f"name={STACK}_agent").split()
    words = ["docker", "exec", *containers, "python3", "-c", ask]
    return bool(containers) and subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_the_agent_serves_redis_clients_that_have_the_password(
    swarm: Constellation, docker: Callable[..., str], ports: dict[int, int], stack: Path, password: str
) -> None:
    wait_until(lambda: is_ready(docker), "the agent is ready", patience_s=START_S, pause_s=0.5)
    value = os.urandom(300_000)
    with redis.Redis("127.0.0.1", ports[RESP_PORT], socket_timeout=60) as client, pytest.raises(redis.AuthenticationError):
        client.get("over five machines")
    with redis.Redis("127.0.0.1", ports[RESP_PORT], password=password, socket_timeout=60) as client:
        assert client.set("over five machines", value)
        assert client.get("over five machines") == value
    agent = docker("ps", "--quiet", "--filter", f"name={STACK}_agent").strip()
    looks = "stat --format %u /run/skymemory/agent.sock /proc/1; sha256sum < /run/secrets/tenant.secret"
    socket_of, process_of, digest, _ = docker("exec", "--user", "65534", agent, "sh", "-c", looks).split()
    assert (socket_of, process_of) == ("65534", "65534")
    assert digest == sha256((stack.parent / "tenant.secret").read_bytes()).hexdigest()


def test_satellites_are_nobody(swarm: Constellation, docker: Callable[..., str]) -> None:
    for container in planes(docker):
        # Others, such as a health check, may end meanwhile: those that are to be there are counted below
        search = "grep -s -h -E '^(Name|Uid|CapEff|CapBnd|NoNewPrivs)' /proc/[0-9]*/status; true"
        status = docker("exec", container, "sh", "-c", search)
        satellites = status.split("Name:\tskysat\n")[1:]
        assert len(satellites) == swarm.slots
        for lines in satellites:
            told = dict(line.split(":\t", 1) for line in lines.splitlines()[:4])
            assert told["Uid"].split() == ["65534"] * 4
            assert int(told["CapEff"], 16) == int(told["CapBnd"], 16) == 0
            assert told["NoNewPrivs"] == "1"


def test_a_plane_that_dies_is_found_again(swarm: Constellation, docker: Callable[..., str]) -> None:
    victim = docker("ps", "--quiet", "--filter", f"name={STACK}_plane-2").strip()
    docker("rm", "--force", victim)
    await_planes(docker, swarm.planes)
    with routes(docker, f"{STACK}_sky", swarm) as network:
        assert ground(network, CONSTELLATION) == ALL_IS_WELL
