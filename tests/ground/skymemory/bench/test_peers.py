"""SkyMemory, Redis and memcached get the same values."""

import os
import shutil

import pytest

from skymemory.bench.peer_servers import ServerError, memcached_client, redis_client
from skymemory.bench.peers import run_peers_bench
from skymemory.cli.bench import peers_table
from skymemory.sky.constellation import Constellation

SKYMEM = tuple(
    f"{name}{sealed}" for name in ("skymem", "skymem_header", "skymem_packet", "skymem_parity") for sealed in ("", "_sealed")
)


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
    for name in (*SKYMEM, "redis", "memcached"):
        assert set(report[name]) == {"put_mb_s", "get_mb_s", "put_cpu_ms", "get_cpu_ms"}
        assert min(report[name].values()) > 0
    assert report["wrong"] == dict.fromkeys((*SKYMEM, "redis", "memcached"), 0)
    assert set(report["ratio"]) == {"redis", "memcached"}
    assert set(report["cpu_more_percent"]) == set(SKYMEM) - {"skymem"}
    # Each way has the security that its name says, and nobody but those with a keyring has any
    assert report["suites"]["skymem"] == report["suites"]["skymem_parity"] == []
    assert report["suites"]["skymem_header"] in (["gmac_header"], ["blake2b_header"])
    assert report["suites"]["skymem_packet"] in (["gmac_packet"], ["blake2b_packet"])
    assert calls[-1] == (6, 6)


@pytest.mark.usefixtures("servers")
def test_the_table_has_a_row_for_each_way() -> None:
    report = run_peers_bench(Constellation(), value_bytes=100_000, values=1, rounds=1)
    table = peers_table(report)
    rows = list(table.columns[0].cells)
    assert rows[:2] == ["skymem, no keyring", "skymem, no keyring, sealed"]
    (header,), (packet,) = report["suites"]["skymem_header"], report["suites"]["skymem_packet"]
    assert rows[2:6] == [f"skymem, {suite}{sealed}" for suite in (header, packet) for sealed in ("", ", sealed")]
    assert rows[6:] == ["skymem, no keyring, parity", "skymem, no keyring, parity, sealed", "redis", "memcached"]


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
