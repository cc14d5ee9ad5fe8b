"""The folder of a mission's keys: what is in it, and that no step leaves half of anything."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skymemory.common.secret_files import SecretFileError, write_secret
from skymemory.security.keyring import HostRecord, KeyringError, MissionKeyring, load_keyring
from skymemory.security.mission_folder import (
    MOST_TOGETHER,
    MissionError,
    add_host,
    begin_mission,
    export_satellites,
    generation_folder,
    host_file,
    load_mission,
    rotate,
    satellites_folder,
)
from skymemory.security.satellite_file import SatelliteKeys, read_satellite_keys
from skymemory.wire.address import Satellite
from support.waiting import wait_until

HOST = HostRecord(name="host", tenants=(0,))
OTHER = HostRecord(name="gpu", tenants="any")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def expected(generation: int, *hosts: str) -> set[str]:
    place = f"generation-{generation}"
    satellites = {f"{place}/satellites/{p}-{s}.key" for p in (1, 2) for s in (1, 2, 3)}
    return satellites | {f"{place}/hosts/{host}.json" for host in hosts}


def program(folder: Path, code: str, before: Callable[[], None] | None = None) -> "subprocess.Popen[bytes]":
    head = (
        "from pathlib import Path\n"
        "from skymemory.security.keyring import HostRecord\n"
        "from skymemory.security.mission_folder import *\n"
        f"folder = Path({str(folder)!r})\n"
        "host = HostRecord(name='host', tenants=(0,))\n"
    )
    return subprocess.Popen([sys.executable, "-c", head + code], stderr=subprocess.PIPE, preexec_fn=before)  # noqa: PLW1509


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", 2, 3, HOST)
    return tmp_path / "keys"


def check_whole(folder: Path) -> MissionKeyring:
    """All files of the generation are there and belong together."""
    mission = load_mission(folder)
    for place in mission.satellites():
        keys = read_satellite_keys(satellites_folder(folder, mission.generation) / f"{place.plane}-{place.slot}.key")
        peers = b"".join(mission.peer_key(place, other) for other in mission.satellites())
        assert keys == SatelliteKeys(mission.generation, 2, 3, place, mission.master_key(place), peers)
    for host in mission.hosts:
        keyring = load_keyring(host_file(folder, mission.generation, host.name))
        assert keyring.packed_pair_keys() == mission.host_pair_keys(keyring.credential)
        assert keyring.generation == mission.generation
    return mission


def test_a_new_mission(folder: Path) -> None:
    assert files(folder) == {"mission.json"} | expected(1, "host")
    mission = check_whole(folder)
    assert (mission.generation, mission.hosts, mission.revoked) == (1, (HOST,), ())


def test_roots_are_drawn(tmp_path: Path) -> None:
    one, other = (begin_mission(tmp_path / name, 1, 2, HOST) for name in "ab")
    assert not set(one.master_keys().values()) & set(other.master_keys().values())


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_only_the_owner_may_read(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        begin_mission(tmp_path / "keys", 2, 3, HOST)
        add_host(tmp_path / "keys", OTHER)
        rotate(tmp_path / "keys")
    finally:
        os.umask(before)
    check_whole(tmp_path / "keys")
    for path in (tmp_path / "keys", *(tmp_path / "keys").rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_nothing_is_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (folder, tmp_path / "file", tmp_path / "empty", tmp_path / "link"):
        with pytest.raises(SecretFileError, match=rf"{path} exists; allowed is a folder that does not"):
            begin_mission(path, 2, 3, HOST)
    with pytest.raises(SecretFileError, match=r"exists; allowed"):
        export_satellites(load_mission(folder), tmp_path / "empty", [Satellite(1, 1)])
    check_whole(folder)


def test_further_hosts(folder: Path) -> None:
    mission, path = add_host(folder, OTHER)
    assert path == host_file(folder, 1, "gpu")
    assert mission.hosts == (HOST, OTHER)
    assert files(folder) == {"mission.json"} | expected(1, "host", "gpu")
    check_whole(folder)
    with pytest.raises(MissionError, match=rf"gpu has its keyring: {path}"):
        add_host(folder, OTHER)
    with pytest.raises(MissionError, match=r"gpu has other tenants; revoke it, and choose another name"):
        add_host(folder, HostRecord(name="gpu", tenants=(1,)))
    content = path.read_bytes()
    path.unlink()
    add_host(folder, OTHER)
    assert path.read_bytes() == content


def test_rotation_keeps_the_old_files(folder: Path) -> None:
    old = {name: (folder / name).read_bytes() for name in expected(1, "host")}
    assert rotate(folder).generation == 2
    assert files(folder) == {"mission.json"} | expected(1, "host") | expected(2, "host")
    assert {name: (folder / name).read_bytes() for name in old} == old
    check_whole(folder)


def test_a_revoked_host_gets_nothing_more(folder: Path) -> None:
    add_host(folder, OTHER)
    mission = rotate(folder, "host")
    assert (mission.generation, mission.hosts, mission.revoked) == (2, (OTHER,), ("host",))
    assert files(folder) >= expected(2, "gpu")
    assert not host_file(folder, 2, "host").exists()
    with pytest.raises(MissionError, match=r"host is revoked; allowed are names that no host had"):
        add_host(folder, HOST)
    with pytest.raises(MissionError, match=r"host is revoked already; allowed are gpu"):
        rotate(folder, "host")
    with pytest.raises(MissionError, match=r"nobody is no host of this mission; allowed are gpu"):
        rotate(folder, "nobody")
    assert check_whole(folder).generation == 2
    assert not files(rotate(folder, "gpu") and generation_folder(folder, 3)) & {"hosts/gpu.json"}
    with pytest.raises(MissionError, match=r"allowed are none"):
        rotate(folder, "nobody")


def test_after_generation_255_is_no_other(folder: Path) -> None:
    mission = load_mission(folder).changed(generation=255)
    (folder / "mission.json").write_bytes(mission.dump())
    with pytest.raises(MissionError, match=r"is at generation 255, the last; begin a new mission with `skymem keys new`"):
        rotate(folder)
    assert load_mission(folder).generation == 255


def test_folders_of_others_stay(folder: Path) -> None:
    generation_folder(folder, 2).mkdir()
    with pytest.raises(SecretFileError, match=r"generation-2 exists, and is not of this mission; move it away"):
        rotate(folder)
    assert check_whole(folder).generation == 1


def test_a_hosts_keyring_is_no_mission(folder: Path) -> None:
    with pytest.raises(KeyringError, match=r"host\.json is the keyring of host host; allowed is the mission's, mission\.json"):
        load_mission(host_file(folder, 1, "host"))


@pytest.mark.parametrize("step", ["rotate(folder)", "add_host(folder, HostRecord(name='b', tenants='any'))"])
@pytest.mark.parametrize("most_bytes", [0, 100, 400])
def test_a_full_disk_changes_nothing(folder: Path, step: str, most_bytes: int) -> None:
    before = files(folder)
    content = (folder / "mission.json").read_bytes()
    child = program(folder, step, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)))
    _, said = child.communicate()
    assert child.returncode == 1
    assert b"File too large; nothing was written" in said.splitlines()[-1]
    assert files(folder) == before
    assert (folder / "mission.json").read_bytes() == content
    assert {path.name for path in folder.iterdir()} == {"mission.json", "generation-1"}


def test_a_full_disk_begins_no_mission(tmp_path: Path) -> None:
    step = "begin_mission(folder, 2, 3, host)"
    child = program(tmp_path / "keys", step, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)))
    assert b"nothing was written" in child.communicate()[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("killed_after", [0, 1, 3, 6])
def test_a_killed_step_is_finished_by_the_next(folder: Path, killed_after: int) -> None:
    """The process ends itself between two of its files, as SIGKILL does."""
    code = (
        "import os, signal\n"
        f"end = lambda done, total: done >= {killed_after} and os.kill(os.getpid(), signal.SIGKILL)\n"
        "rotate(folder, progress=end)\n"
    )
    child = program(folder, code)
    child.communicate()
    assert child.returncode in (-signal.SIGKILL, 0)
    assert check_whole(folder).generation == 1
    assert not generation_folder(folder, 2).exists()
    assert rotate(folder).generation == 2
    check_whole(folder)
    assert {path.name for path in folder.iterdir()} == {"mission.json", "generation-1", "generation-2"}


def test_what_is_missing_after_a_kill_is_made_again(folder: Path) -> None:
    """The moment after mission.json was replaced and before the draft got its name."""
    rotate(folder)
    generation_folder(folder, 2).rename(folder / ".draft-of-one-that-was-killed")
    add_host(folder, OTHER)
    assert files(folder) == {"mission.json"} | expected(1, "host") | expected(2, "host", "gpu")
    check_whole(folder)


def test_several_at_once(folder: Path, tmp_path: Path) -> None:
    """Of those that begin one mission one wins; hosts and generations are all counted."""
    begins = [program(tmp_path / "new", "begin_mission(folder, 2, 3, host)") for _ in range(4)]
    for child in begins:
        child.wait()
    assert sorted(child.returncode for child in begins) == [0, 1, 1, 1]
    check_whole(tmp_path / "new")
    steps = [program(folder, f"add_host(folder, HostRecord(name='h{n}', tenants='any'))") for n in range(3)]
    steps += [program(folder, "rotate(folder)") for _ in range(3)]
    for child in (*begins, *steps):
        _, said = child.communicate()
        assert child in begins or child.returncode == 0, said.decode()
    mission = check_whole(folder)
    assert mission.generation == 4
    assert {host.name for host in mission.hosts} == {"host", "h0", "h1", "h2"}
    assert {path.name for path in tmp_path.iterdir()} == {"keys", "new"}


def test_a_step_waits_for_another(folder: Path) -> None:
    """While one command works in the folder, another one neither reads nor writes it."""
    code = "import time\nrotate(folder, progress=lambda *_: time.sleep(0.2))"
    first = program(folder, code)
    wait_until(lambda: any(path.name.startswith(".draft-") for path in folder.iterdir()))
    second = program(folder, "rotate(folder)")
    assert (first.wait(), second.wait()) == (0, 0)
    assert check_whole(folder).generation == 3
    for child in (first, second):
        child.communicate()


def test_some_satellites_only(folder: Path, tmp_path: Path) -> None:
    mission = load_mission(folder)
    export_satellites(mission, tmp_path / "some", [Satellite(2, 1)])
    assert files(tmp_path / "some") == {"2-1.key"}
    assert (tmp_path / "some" / "2-1.key").read_bytes() == (satellites_folder(folder, 1) / "2-1.key").read_bytes()


def test_the_largest_sky_has_keyrings_and_files_for_those_that_are_named(tmp_path: Path) -> None:
    mission = begin_mission(tmp_path / "keys", 255, 254, HOST)
    assert len(mission.satellites()) > MOST_TOGETHER
    assert files(tmp_path / "keys") == {"mission.json", "generation-1/hosts/host.json"}
    assert len(load_keyring(host_file(tmp_path / "keys", 1, "host")).packed_pair_keys()) == 255 * 254 * 32
    export_satellites(mission, tmp_path / "one", [Satellite(255, 254)])
    assert read_satellite_keys(tmp_path / "one" / "255-254.key").place == Satellite(255, 254)


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError, match=r"/proc/"):
        begin_mission(Path("/proc/keys"), 1, 1, HOST)
    write_secret(tmp_path / "file", b"")
    with pytest.raises(SecretFileError, match=r"file"):
        begin_mission(tmp_path / "file" / "keys", 1, 1, HOST)
    shutil.rmtree(tmp_path)
