"""A user of the gateway looks for the names and values of another tenant."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess


def skymem(*words: object) -> str:
    """What the command says."""
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_nothing_of_another_tenant_is_seen(
    start_agent: Callable[..., AgentProcess], full_sky: LocalConstellation, tmp_path: Path
) -> None:
    users = tmp_path / "users.toml"
    words = {
        name: skymem("resp-users", "add", users, name, "--tenant", number) for name, number in (("alice", 7), ("mallory", 8))
    }
    agent = start_agent(full_sky, "--resp-port", "0", "--resp-password", "own", "--resp-users", str(users))
    port = urlsplit(agent.addresses["redis"]).port
    with (
        redis.Redis(port=port, username="alice", password=words["alice"], client_name="hers") as alice,
        redis.Redis(port=port, username="mallory", password=words["mallory"], protocol=3) as mallory,
        redis.Redis(port=port, password="own") as own,
    ):
        assert alice.mset({"secret": "1", "shared name": "of alice"})
        for other in (mallory, own):
            assert other.get("secret") is None
            assert other.exists("secret") == other.ttl("secret") + 2 == other.strlen("secret") == 0
            assert other.keys("*") == []
            assert list(other.scan_iter()) == []
            assert other.dbsize() == 0
            assert "hers" not in [one["name"] for one in other.client_list()]
            assert "db0" not in other.info("keyspace")
            assert other.delete("secret") == 0
            assert other.set("shared name", "of another")
            assert other.flushall()
        assert alice.get("secret") == b"1"
        assert alice.get("shared name") == b"of alice"
        wrong = {"username": "alice", "password": words["mallory"], "retry": Retry(NoBackoff(), 0)}
        with redis.Redis(port=port, **wrong) as one, pytest.raises(redis.AuthenticationError):
            one.ping()
