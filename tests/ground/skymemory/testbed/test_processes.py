"""Only processes that are certainly ours are ended."""

import os
import subprocess
import sys
import time

import pytest

from skymemory.testbed.processes import ProcessId, cpu_clock, cpu_seconds, identify, is_alive, stop

SLEEPER = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


def spawn(command: list[str]) -> tuple[subprocess.Popen[bytes], ProcessId]:
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    process = identify(child.pid)
    assert process is not None
    return child, process


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def test_a_process_is_alive_until_it_is_stopped() -> None:
    child, process = spawn(SLEEPER)
    assert is_alive(process)
    assert stop([process]) == 0
    assert not is_alive(process)
    assert child.wait() != 0
    end(child)


def test_one_that_ignores_the_signal_is_killed() -> None:
    child, process = spawn(STUBBORN)
    assert stop([process], grace_s=0.1) == 1
    assert not is_alive(process)
    end(child)


def test_a_pid_with_another_start_time_is_somebody_else() -> None:
    child, process = spawn(SLEEPER)
    stranger = ProcessId(process.pid, process.start_ticks - 1)
    assert not is_alive(stranger)
    assert stop([stranger]) == 0
    assert child.poll() is None
    end(child)


def test_a_process_that_is_gone_is_no_error() -> None:
    child, process = spawn(SLEEPER)
    end(child)
    assert identify(process.pid) is None
    assert stop([process]) == 0
    assert cpu_seconds(process) == 0.0


def test_a_zombie_counts_as_gone() -> None:
    child, process = spawn(SLEEPER)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(process)
    end(child)


def test_processor_time_of_this_process() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert 0.0 < cpu_seconds(own) == pytest.approx(sum(os.times()[:2]), abs=0.5)


def test_the_clock_of_a_process_counts_its_own_work() -> None:
    child, process = spawn(SLEEPER)
    clock = cpu_clock(process.pid)
    before_s, own_s = time.clock_gettime(clock), time.process_time()
    while time.process_time() < own_s + 0.05:
        pass
    assert time.clock_gettime(clock) < before_s + 0.05  # it slept
    assert time.clock_gettime(cpu_clock(os.getpid())) >= time.process_time() - 0.05
    end(child)
    with pytest.raises(OSError, match="No such process"):
        cpu_clock(child.pid)
