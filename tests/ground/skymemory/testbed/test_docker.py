"""What is made of what Compose says. Containers themselves: tests/docker."""

from skymemory.testbed.docker import cause

SAID = """
Creating network "skymemory" with driver "bridge"
Creating skymemory_sat-1-1_1 ...
Creating skymemory_sat-1-2_1 ...
Creating skymemory_sat-1-1_1 ... error
Creating skymemory_sat-1-2_1 ... error

ERROR: for skymemory_sat-1-1_1  Cannot start service sat-1-1: Address already in use

ERROR: for sat-1-1  Cannot start service sat-1-1: Address already in use

ERROR: for sat-1-2  Cannot start service sat-1-2: no space left on device
Encountered errors while bringing up the project.
"""


def test_the_cause_stands_in_front() -> None:
    assert cause(SAID.splitlines()) == (
        "Cannot start service sat-1-1: Address already in use; Cannot start service sat-1-2: no space left on device"
    )


def test_many_causes_are_counted_and_long_ones_cut() -> None:
    told = cause([f"ERROR: for sat-1-{slot}  {slot} {'x' * 1000}" for slot in range(1, 10)])
    assert told.startswith("1 xxx")
    assert told.endswith("; and 6 more")
    assert len(told) < 1000


def test_compose_2() -> None:
    assert cause([" Container skymemory-sat-1-1-1  Starting", "Error response from daemon: Address already in use"]) == (
        "Error response from daemon: Address already in use"
    )


def test_without_an_error_the_last_line_counts() -> None:
    assert cause(["a", "no such file", "  "]) == "no such file"
    assert cause([]) == "no message"


def test_the_cause_of_a_build_that_failed_is_told() -> None:
    said = [
        "-- Detecting C compiler ABI info\n",
        "\x1b[91ma.c:3:1: error: unknown type name\n",
        "\n",
        "The command returned a non-zero code: 1\n",
    ]
    assert cause(said) == "a.c:3:1: error: unknown type name"
