"""The program `skysat`: what it says, how it ends, what it takes. Real processes, real sockets."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite

MEMORY_KB_MAX = 6 * 1024
"""What a satellite may take beside its store. OpenSSL is most of it: 4.5 MB, against 1.8 MB with Monocypher."""
TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PT_LOAD, PT_INTERP = 1, 3
KEY_BYTES = 32
SATELLITES = 5 * 19
OWN_INDEX = 2 * 19 + 9
"""Place of satellite (3, 10) among the satellites, from 0."""
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@pytest.fixture
def words() -> list[str]:
    base = Constellation()
    place = base.replace(network={"port": free_port(base)})
    return [str(satellite_program.program()), *satellite_program.arguments(place, Satellite(3, 10))]


@pytest.fixture
def process(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A running satellite; `stdout` has been read up to the line that says so."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert re.fullmatch(r"skysat 3,10 ready on 127\.18\.3\.10:\d+\n", child.stdout.readline())
        yield child
        child.kill()


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_when_it_is_asked_to(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == ""
    assert "KVC Initialized." in err
    assert "ISL Initialized." in err
    assert all(re.match(rf"{TIME} (INFO|ERROR|CRITICAL) (OS|ES|EVS 3010/1/\w+ \d+): \S", line) for line in err.splitlines()), err


def test_each_line_is_an_object_on_request(words: list[str]) -> None:
    with subprocess.Popen([*words, "--log-json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        lines = []
        while not lines or satellite_program.READY_WORD not in lines[-1]:
            lines.append(child.stdout.readline())
            assert lines[-1]
        second = run([*words, "--log-json"])
        child.terminate()
        lines += child.stdout.readlines()
    told = [json.loads(line) for line in lines]
    assert all(list(one) == ["time", "level", "logger", "message"] and re.fullmatch(TIME, one["time"]) for one in told)
    assert {one["level"] for one in told} == {"info"}
    assert {"OS", "skysat 3,10"} < {one["logger"] for one in told}
    refused = json.loads(second.stderr)
    assert refused["level"] == "critical"
    assert "is in use by another process" in refused["message"]


def test_memory_beside_the_store(process: subprocess.Popen[str]) -> None:
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        sizes = dict(line.split(":", 1) for line in status)
    assert int(sizes["VmRSS"].split()[0]) <= MEMORY_KB_MAX


def test_a_second_one_at_the_same_address_is_refused(process: subprocess.Popen[str], words: list[str]) -> None:
    second = run(words)
    assert second.returncode == 1
    assert "is in use by another process" in second.stderr
    assert second.stdout == ""
    assert process.poll() is None


def test_an_address_that_somebody_else_has_bound(words: list[str]) -> None:
    port = int(words[words.index("--port") + 1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("0.0.0.0", port))
        refused = run(words)
    assert refused.returncode == 1
    assert f"127.18.3.10:{port} is in use" in refused.stderr


def test_an_address_that_is_not_of_this_machine(words: list[str]) -> None:
    refused = run([*words, "--network", "203.0.0.0"])
    assert refused.returncode == 1
    assert "cannot be bound" in refused.stderr


@pytest.fixture
def keys() -> list[bytes]:
    """A master key, and a key with each satellite of 5 x 19; zeros at the own place, (3, 10)."""
    made = [os.urandom(KEY_BYTES) for _ in range(1 + SATELLITES)]
    made[1 + OWN_INDEX] = bytes(KEY_BYTES)
    return made


@pytest.fixture
def key_file(keys: list[bytes], tmp_path: Path) -> Path:
    path = tmp_path / "3-10.key"
    path.write_bytes(b"SKYK" + struct.pack(">BBHHHHxx", 1, 4, 5, 19, 3, 10) + b"".join(keys))
    path.chmod(0o600)
    return path


def memory(process: int) -> list[bytes]:
    """Return what a process can write and has touched, region by region."""
    found = []
    with (
        open(f"/proc/{process}/maps", encoding="ascii") as regions,
        open(f"/proc/{process}/mem", "rb", buffering=0) as content,
        open(f"/proc/{process}/pagemap", "rb", buffering=0) as pages,
    ):
        for line in regions:
            first, last = (int(word, 16) // PAGE_BYTES for word in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                pages.seek(first * 8)
                present = [entry >> 62 != 0 for (entry,) in struct.iter_unpack("=Q", pages.read((last - first) * 8))]
                runs = (list(run) for there, run in groupby(range(len(present)), present.__getitem__) if there)
                for run in runs:
                    content.seek((first + run[0]) * PAGE_BYTES)
                    found.append(content.read(len(run) * PAGE_BYTES))
    return found


def test_each_key_is_in_its_memory_once(words: list[str], key_file: Path, keys: list[bytes]) -> None:
    with subprocess.Popen([*words, "--keys", str(key_file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"skysat 3,10 ready")
        regions = memory(child.pid)
        child.kill()
    counts = [sum(region.count(key) for region in regions) for key in keys]
    assert counts[:1] == [1]
    assert all(count == 1 for place, count in enumerate(counts[1:]) if place != OWN_INDEX)


def test_a_key_file_that_others_may_read_is_refused(words: list[str], key_file: Path) -> None:
    key_file.chmod(0o644)
    refused = run([*words, "--keys", str(key_file)])
    assert refused.returncode == 1
    assert "mode 0644, so that others may read or change it; allowed are modes such as 0600" in refused.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--plane", "6"], "skysat: --plane 6: allowed are 1 .. 5 (--planes)"),
        (["--link", "north:delay_us=-1"], "skysat: --link north:delay_us=-1: delay_us=-1: allowed are 0 .. 10000000"),
        (["--verbose"], "skysat: --verbose: a value is missing, or there is no such option; see --help"),
    ],
)
def test_wrong_options(words: list[str], more: list[str], said: str) -> None:
    refused = run(words + more)
    assert refused.returncode == 2
    assert refused.stderr.strip() == said


def test_help() -> None:
    shown = run([str(satellite_program.program()), "--help"])
    assert shown.returncode == 0
    assert shown.stdout.startswith("usage: skysat ")
    assert "--hello-s" in shown.stdout


def test_it_is_the_only_file_it_needs() -> None:
    """Statically linked: no interpreter, no libraries."""
    elf = satellite_program.program().read_bytes()
    entries, size, count = (int.from_bytes(elf[at : at + n], "little") for at, n in ((0x20, 8), (0x36, 2), (0x38, 2)))
    kinds = {int.from_bytes(elf[at : at + 4], "little") for at in range(entries, entries + size * count, size)}
    assert elf[:5] == b"\x7fELF\x02"
    assert PT_LOAD in kinds
    assert PT_INTERP not in kinds
