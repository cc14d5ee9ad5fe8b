"""The program `skysat`: what it says, how it ends, what it takes. Real processes, real sockets."""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite

MEMORY_KB_MAX = 6 * 1024
"""What a satellite may take beside its store. OpenSSL is most of it: 4.5 MB, against 1.8 MB with Monocypher."""
PT_LOAD, PT_INTERP = 1, 3


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
