"""The agent's image: built from wheels, alive without a sky, for nobody's user, on a file system that it cannot write to."""

import json
from collections.abc import Iterator

import pytest

from support.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
FETCH = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen("http://127.0.0.1:8090" + sys.argv[1]) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture(scope="module")
def agent(docker, agent_image: str) -> Iterator[str]:
    """A container of it, without any network."""
    words = ["--network", "none", "--user", "65534:65534", "--read-only", "--tmpfs", "/run/skymemory", "--cap-drop", "ALL"]
    name = docker("run", "--detach", *words, agent_image, "--resp-port", "6390").strip()
    yield name
    docker("rm", "--force", name)


def fetch(docker, agent: str, path: str) -> tuple[int, str]:
    status, _, body = docker("exec", agent, "python3", "-c", FETCH, path).partition(" ")
    return int(status), body


def test_it_lives_without_a_sky_and_says_so(docker, agent: str) -> None:
    wait_until(
        lambda: docker("inspect", "--format", "{{.State.Health.Status}}", agent).strip() == "healthy",
        lambda: docker("logs", agent),
        pause_s=0.2,
    )
    assert fetch(docker, agent, "/healthz")[0] == 200
    status, body = fetch(docker, agent, "/readyz")
    assert (status, json.loads(body)["ready"]) == (503, False)
    assert "<html" in fetch(docker, agent, "/")[1]


def test_it_ends_when_it_is_told_to(docker, agent: str) -> None:
    docker("stop", "--time", "40", agent)
    assert docker("inspect", "--format", "{{.State.ExitCode}}", agent).strip() == "0"
