"""`skymem put` and `skymem get`, each a process that knows nothing of the other, under a sky that loses links and satellites."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire.address import Satellite
from support.spread import shares_of
from support.waiting import PATIENCE_S, wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
OLD, NEW = os.urandom(200_000), os.urandom(200_000)


@pytest.fixture
def start_sky(start_sky: StartSky) -> StartSky:
    """Start skies without parity: one lost chunk breaks a block, which is what the tests of this file are about."""

    def start(logs: Path | None = None, **sections: dict[str, object]) -> LocalConstellation:
        return start_sky(logs, **{**sections, "cache": {"parity": 0, **sections.get("cache", {})}})

    return start


@pytest.fixture
def full_parity_sky() -> Iterator[LocalConstellation]:
    """Nine servers, two of them with parity."""
    sky = Constellation().replace(
        constellation={"planes": 3, "slots": 5}, cache={"servers": 9, "centre": [2, 3], "deadline_ms": 1000}
    )
    with LocalConstellation(sky.replace(network={"port": free_port(sky)})) as local:
        yield local


class User:
    """Somebody at the shell of a host under this sky."""

    def __init__(self, local: LocalConstellation, folder: Path) -> None:
        self._environment = {**os.environ, "SKYMEM_STATE": str(folder)}
        RunRecord(folder).save(Running("local", local.constellation, dict(local.processes)))

    def run(self, *words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """`skymem WORDS...`, to its end."""
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        return subprocess.run(command, input=stdin, capture_output=True, env=self._environment, check=False)

    def put(self, value: bytes) -> bytes:
        """Returns what was said about satellites."""
        done = self.run("put", "name", "-", stdin=value)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def get(self, silent: Satellite | None = None) -> bytes | None:
        """None: it was told in one line that the value is not there or, if a satellite is silent, that it may be."""
        done = self.run("get", "name", "-")
        if done.returncode == 0:
            return done.stdout
        told = f"was not found, and may be there: {silent} does not answer" if silent else "is not there, or not whole any more"
        assert (done.returncode, done.stdout) == (4 if silent else 1, b"")
        assert f"Error: 'name' {told}\n" in done.stderr.decode()
        return None


def test_a_link_that_the_file_cuts_is_passed_by_from_the_first_packet(start_sky: StartSky, tmp_path: Path) -> None:
    cut = [{"from": [2, 3], "to": [2, 4], "cut": True}]
    user = User(start_sky(links={"override": cut}, cache={"uplink": "nearest"}), tmp_path)
    assert user.put(OLD) == b""  # nobody stands in: satellites need not notice first
    assert user.get() == OLD


def test_a_satellite_that_is_lost_before_the_put(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    user = User(local, tmp_path)
    local.kill(Satellite(2, 4))
    user.put(OLD)  # another satellite takes its part, before it is known to be lost
    assert user.get() == OLD


@pytest.mark.parametrize("lost", [Satellite(3, 5), Satellite(3, 4)])
def test_a_satellite_that_is_lost_and_with_it_the_ways_over_it(start_sky: StartSky, tmp_path: Path, lost: Satellite) -> None:
    """Its neighbours have not noticed: with one way in, those behind it are silent too. Others stand in for all, or for it."""
    cache = {"uplink": "nearest", "centre": [3, 4], "deadline_ms": 2000}
    local = start_sky(constellation={"planes": 5, "slots": 7}, cache=cache)
    user = User(local, tmp_path)
    local.kill(lost)
    assert str(lost).encode() in user.put(OLD)
    assert user.get() == OLD


def test_a_satellite_that_is_lost_after_the_put(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    user = User(local, tmp_path)
    user.put(OLD)
    local.kill(victim := Whereabouts(local.constellation).servers(0)[4])
    assert user.get(victim) is None
    user.put(NEW)
    assert user.get() == NEW


@pytest.mark.parametrize("server", [0, 4])
def test_a_satellite_that_comes_back_empty_after_the_put(start_sky: StartSky, tmp_path: Path, server: int) -> None:
    """What a stand-in holds goes home, and is found there. Of what was put afterwards it has nothing; nothing old comes back."""
    local = start_sky(cache={"deadline_ms": 2000})
    user = User(local, tmp_path)
    victim = Whereabouts(local.constellation).servers(0)[server]
    local.kill(victim)
    user.put(OLD)
    local.restart(victim)
    wait_until(lambda: user.get() == OLD, "the stand-in has handed over its share")
    user.put(NEW)
    assert user.get() == NEW

    local.kill(victim)  # the stand-in may still have its share of the old value, as long as that of the new one
    assert user.get(victim) is None
    user.put(NEW)
    assert user.get() == NEW


def test_silence_is_not_absence(start_sky: StartSky, stopped: Stopped, tmp_path: Path) -> None:
    """It has words and an exit status of its own, whatever is asked."""
    local = start_sky(cache={"deadline_ms": 1000})
    user = User(local, tmp_path)
    user.put(OLD)
    with stopped(local):
        for words in (("get", "name", "-"), ("del", "name"), ("get", "never put", "-"), ("put", "other", "-")):
            done = user.run(*words, stdin=NEW)
            assert (done.returncode, done.stdout) == (4, b""), words
            said = done.stderr.decode().splitlines()[-1]
            assert said.startswith("Error: ")
            assert "no satellite answers" in said
            assert "not there" not in said
        done = user.run("segment", "rm", f"seg-{'0' * 32}")
        assert (done.returncode, b"nobody answers" in done.stderr) == (4, True)
    assert user.get() == OLD
    for words in (("get", "never put", "-"), ("del", "never put")):
        done = user.run(*words)
        assert (done.returncode, b"there" in done.stderr) == (1, True)


def test_a_value_that_may_be_on_silent_satellites_is_not_called_absent(
    full_parity_sky: LocalConstellation, stopped: Stopped, tmp_path: Path
) -> None:
    local = full_parity_sky
    user = User(local, tmp_path)
    user.put(OLD)
    with SkyStore(local.constellation) as store:
        asked = {name: shares_of(local.constellation, KeyValue(store).key_of(name))[:3] for name in ("name", "never put")}
    with stopped(local, asked["name"][0]):  # no more than hold parity
        assert user.get() == OLD
        assert user.run("get", "never put", "-").returncode == 1
    for name, words in (("name", ("get", "name", "-")), ("never put", ("del", "never put"))):
        with stopped(local, *asked[name]):
            done = user.run(*words)
        assert done.returncode == 4, done.stderr
        assert b"may be there: [" in done.stderr
        assert b" do not answer\n" in done.stderr


def test_a_put_is_whole_though_a_satellite_is_silent(
    full_parity_sky: LocalConstellation, stopped: Stopped, tmp_path: Path
) -> None:
    local = full_parity_sky
    user = User(local, tmp_path)
    assert user.run("put", "small", "-", stdin=b"here").returncode == 0
    with ControlPlane(local.constellation) as control:
        routes = [Route(one, one) for one in Whereabouts(local.constellation).servers(0)]
        holders = [one for one, counters in control.store_stats(routes, PATIENCE_S).items() if counters["used_bytes"]]
    assert len(holders) == 3
    with stopped(local, holders[0]):  # another one stands in
        done = user.run("put", "small", "-", stdin=b"four")
        assert done.returncode == 0
        assert done.stdout.startswith(b"4 bytes in 3 chunks stored in ")
    done = user.run("put", "small", "-", stdin=b"more")
    assert done.stdout.startswith(b"4 bytes in 3 chunks stored in ")
    assert done.stderr == b""


def test_what_is_deleted_is_not_there(full_parity_sky: LocalConstellation, stopped: Stopped, tmp_path: Path) -> None:
    user = User(full_parity_sky, tmp_path)
    user.put(OLD)
    assert user.run("put", "short", "-", stdin=b"text").returncode == 0
    with SkyStore(full_parity_sky.constellation) as store:
        lost = shares_of(full_parity_sky.constellation, KeyValue(store).key_of("name"))[0]
    with stopped(full_parity_sky, lost):
        done = user.run("del", "name")
        assert (done.returncode, done.stdout) == (0, b"")
        assert user.get() is None
    for name in ("name", "short"):
        words = [user.run("del", name) for _ in range(2)]
        assert [one.returncode for one in words] == ([1, 1] if name == "name" else [0, 1])
        assert words[1].stderr == f"Error: '{name}' was not there\n".encode()
        assert user.run("get", name, "-").returncode == 1
    user.put(NEW)
    assert user.get() == NEW


def test_a_value_larger_than_the_sky_is_refused_with_the_limit(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(satellite={"store_mib": 1})
    user = User(local, tmp_path)
    user.put(OLD)
    refused = user.run("put", "name", "-", stdin=bytes(10_000_000))
    assert refused.returncode == 2
    assert refused.stderr == b"Error: <stdin>: value of 10,000,000 bytes; allowed are 0 to 8,801,943 (9 servers of 1 MiB)\n"
    assert user.get() == OLD


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("tomorrow", "--at is 'tomorrow'; allowed are +SECONDS and ISO 8601, as in 2026-11-20T15:00:00Z"),
        ("+x", "--at is '+x'; allowed are +SECONDS and ISO 8601, as in 2026-11-20T15:00:00Z"),
        ("+-5", "--at is '+-5', which is past; allowed are times from now on"),
        ("+nan", "--at is '+nan', which is past; allowed are times from now on"),
        ("2020-01-01T00:00:00Z", "--at is '2020-01-01T00:00:00Z', which is past; allowed are times from now on"),
    ],
)
def test_a_time_that_is_none_is_told_in_one_line(full_sky: LocalConstellation, tmp_path: Path, at: str, said: str) -> None:
    done = User(full_sky, tmp_path).run("prefetch", "name", "--at", at)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"Error: {said}\n")


def test_without_a_schedule_there_is_nothing_to_prefetch(full_sky: LocalConstellation, tmp_path: Path) -> None:
    done = User(full_sky, tmp_path).run("prefetch", "name", "--at", "+60")
    assert done.returncode == 1
    assert done.stderr == b"Error: the constellation follows no schedule: what it holds stays where it is\n"


def test_who_has_another_secret_finds_nothing(full_sky: LocalConstellation, tmp_path: Path) -> None:
    user = User(full_sky, tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode())
    words = ("of a tenant", "-", "--tenant-secret-file")
    assert user.run("put", *words, str(tmp_path / "one"), stdin=b"mine").returncode == 0
    assert user.run("get", *words, str(tmp_path / "two")).returncode == 1
    assert user.run("del", words[0], words[2], str(tmp_path / "two")).returncode == 1
    assert user.run("get", *words, str(tmp_path / "one")).stdout == b"mine"
    done = user.run("get", *words, str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr.decode() == f"Error: tenant secret {tmp_path}/none cannot be read: No such file or directory\n"


def test_a_users_programs_share_a_secret_by_default(
    full_sky: LocalConstellation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    user, other = User(full_sky, tmp_path / "user"), User(full_sky, tmp_path / "other")
    assert user.run("put", "by default", "-", stdin=b"mine").returncode == 0
    assert user.run("get", "by default", "-").stdout == b"mine"
    assert other.run("get", "by default", "-").returncode == 1
    [file] = (tmp_path / "user").glob("*.secret")
    assert file.stat().st_mode & 0o777 == 0o600
    assert other.run("get", "by default", "-", "--tenant-secret-file", str(file)).stdout == b"mine"
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "user"))
    with SkyStore(full_sky.constellation) as store:
        assert KeyValue(store).get("by default") == b"mine"
    file.chmod(0o644)
    assert b"has mode 0644" in user.run("get", "by default", "-").stderr
