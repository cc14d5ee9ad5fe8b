"""What is on a leash ends when whoever holds it is gone, and not when it was let go."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.leash import Leash, guarded
from skymemory.testbed.local import free_port
from skymemory.testbed.processes import cpu_seconds, identify
from skymemory.wire.address import Satellite
from support.waiting import PATIENCE_S, wait_until


@pytest.fixture
def leash() -> Iterator[Leash]:
    leash = Leash()
    yield leash
    leash.close()


def satellite_words() -> list[str]:
    sky = Constellation()
    sky = sky.replace(network={"port": free_port(sky)})
    return [
        str(skysat.program()),
        *skysat.arguments(sky, Satellite(1, 1)),
        skysat.UNTIL_STDIN_ENDS,
    ]


@pytest.mark.parametrize("words", [satellite_words(), guarded(["sleep", "600"])], ids=["satellite", "guard"])
def test_it_ends_with_the_leash(leash: Leash, words: list[str]) -> None:
    with subprocess.Popen(words, stdin=leash.end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        time.sleep(0.5)
        assert child.poll() is None
        leash.close()
        child.wait(PATIENCE_S)


@pytest.mark.parametrize("words", [satellite_words(), guarded(["sleep", "600"])], ids=["satellite", "guard"])
def test_what_was_let_go_stays(leash: Leash, words: list[str]) -> None:
    with subprocess.Popen(words, stdin=leash.end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        time.sleep(0.2)
        leash.let_go(1)
        time.sleep(0.5)
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE_S)


def test_a_satellite_that_was_stopped_sees_the_end_later(leash: Leash) -> None:
    with subprocess.Popen(satellite_words(), stdin=leash.end, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGSTOP)
        child.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        assert child.poll() is None
        child.send_signal(signal.SIGSTOP)
        leash.close()
        child.send_signal(signal.SIGCONT)
        assert child.wait(PATIENCE_S) == 0


def test_a_satellite_on_a_leash_takes_no_time(leash: Leash) -> None:
    with subprocess.Popen(satellite_words(), stdin=leash.end, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = identify(child.pid)
        assert process is not None

        def sleeps() -> bool:
            before_s = cpu_seconds(process)
            time.sleep(2)
            return cpu_seconds(process) - before_s <= 1 / os.sysconf("SC_CLK_TCK")

        wait_until(sleeps, "it takes no time")
        leash.close()


def test_a_program_that_ignores_the_signal_is_killed(leash: Leash) -> None:
    words = guarded(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
    with subprocess.Popen(words, stdin=leash.end, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        leash.close()
        assert child.wait(PATIENCE_S) == -signal.SIGKILL


def test_what_comes_after(leash: Leash, tmp_path: Path) -> None:
    """Also if the program has ended long before, and not if it was let go."""
    kept, other = tmp_path / "kept", Leash()
    let_go = subprocess.run(guarded(["true"], f"touch {tmp_path}/never"), stdin=other.end, check=True)
    assert let_go.returncode == 0
    other.let_go(1)
    subprocess.run(guarded(["true"], f"touch {kept}"), stdin=leash.end, check=True)
    time.sleep(0.3)
    assert not kept.exists()
    leash.close()
    wait_until(kept.exists)
    assert not (tmp_path / "never").exists()


def test_the_pid_and_the_status_are_the_programs(leash: Leash) -> None:
    with subprocess.Popen(guarded(["sh", "-c", "echo $$; exit 7"]), stdin=leash.end, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert int(child.stdout.read()) == child.pid
    assert child.returncode == 7
