"""Canaries wait for a pause, in a thread that ends with its work and with the program."""

import subprocess
import sys
import threading
from typing import Any, cast

import pytest

from skymemory.segments.canary_queue import WAITING_MAX, Canaries, Canary
from skymemory.segments.evidence import Point
from support.waiting import wait_until

POINT = Point("ab" * 32, "raw", "naive", 0)


def canary(token: int) -> Canary:
    return Canary([token], POINT, cast(Any, None))


def noting(**times: float) -> tuple[Canaries, list[int]]:
    done: list[int] = []
    return Canaries(lambda one: done.append(one.tokens[0]), **times), done


def threads() -> int:
    return sum(thread.name == "skymem-canaries" for thread in threading.enumerate())


def test_they_are_computed_in_a_pause_and_the_thread_ends() -> None:
    canaries, done = noting(quiet_s=0.0)
    for token in (1, 2):
        assert canaries.add(canary(token))
    wait_until(lambda: done == [1, 2] and threads() == 0, "both are computed, and nobody works any more")
    assert canaries.add(canary(3))
    wait_until(lambda: done == [1, 2, 3], "a new thread has begun")


def test_they_wait_while_prompts_come_and_not_for_ever() -> None:
    canaries, done = noting(quiet_s=3600.0)
    for token in range(WAITING_MAX + 1):
        assert canaries.add(canary(token)) == (token < WAITING_MAX)
    assert (canaries.waiting, done) == (WAITING_MAX, [])
    assert canaries.check_now() == WAITING_MAX
    assert done == list(range(WAITING_MAX))
    assert canaries.check_now() == 0

    canaries, done = noting(quiet_s=3600.0, postponed_s=0.2)
    canaries.add(canary(7))
    wait_until(lambda: (canaries.linked(), done == [7])[1], "it has waited long enough", pause_s=0.01)


def test_one_that_fails_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def check(one: Canary) -> None:
        if one.tokens == [1]:
            raise RuntimeError("out of memory")
        done.append(one.tokens[0])

    canaries = Canaries(check, quiet_s=3600.0)
    for token in (1, 2):
        canaries.add(canary(token))
    assert canaries.check_now() == 2
    assert done == [2]
    assert "a canary could not be computed" in caplog.text


def test_a_call_waits_for_what_the_thread_computes() -> None:
    started, go = threading.Event(), threading.Event()
    done: list[int] = []

    def check(one: Canary) -> None:
        started.set()
        go.wait()
        done.append(one.tokens[0])

    canaries = Canaries(check, quiet_s=0.0)
    canaries.add(canary(1))
    started.wait()
    calls: list[int] = []
    caller = threading.Thread(target=lambda: calls.append(canaries.check_now()))
    caller.start()
    assert not calls
    go.set()
    caller.join()
    assert (calls, done) == ([0], [1])


def test_a_program_that_ends_does_not_wait_for_them() -> None:
    code = """
from skymemory.segments.canary_queue import Canaries, Canary
from skymemory.segments.evidence import Point
canaries = Canaries(lambda _: print("computed"), quiet_s=3600.0)
assert canaries.add(Canary([1], Point("ab", "raw", "naive", 0), None))
print("end")"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
