"""SkyMemory, Redis and memcached get the same values."""

import os
import shutil

import pytest

from skymemory.bench.peer_servers import ServerError, memcached_client, redis_client
from skymemory.bench.peers import run_peers_bench
from skymemory.sky.constellation import Constellation


@pytest.fixture
def servers() -> None:
    """Both programs are installed; in CI they must be."""
    for program in ("redis-server", "memcached"):
        if shutil.which(program) is None:
            if os.environ.get("CI"):
                pytest.fail(f"CI leaves nothing out: {program} is not installed")
            pytest.skip(f"{program} is not installed")


@pytest.mark.usefixtures("servers")
def test_the_report_has_all_three_and_every_value_came_back() -> None:
    calls: list[tuple[int, int]] = []
    report = run_peers_bench(
        Constellation(), value_bytes=100_000, values=2, rounds=2, progress=lambda done, total: calls.append((done, total))
    )
    for name in ("skymem", "redis", "memcached"):
        assert set(report[name]) == {"put_mb_s", "get_mb_s"}
        assert min(report[name].values()) > 0
    assert report["wrong"] == {"skymem": 0, "redis": 0, "memcached": 0}
    assert set(report["ratio"]) == {"redis", "memcached"}
    assert calls[-1] == (6, 6)


@pytest.mark.usefixtures("servers")
def test_servers_are_gone_afterwards() -> None:
    with redis_client() as redis, memcached_client(64) as memcached:
        process = int(redis.info("server")["process_id"])
        assert memcached.set("k", b"v")
        assert os.path.exists(f"/proc/{process}")
    assert not os.path.exists(f"/proc/{process}")


def test_a_program_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerError, match="apt-get install memcached"), memcached_client(64):
        pass
