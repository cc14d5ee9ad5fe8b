"""The log of commands that run for long: times, levels, JSON."""

import json
import re
import subprocess
import sys

import pytest

SAY = """
import logging
from skymemory.common.logs import start_log
start_log({level!r}, as_json={as_json})
log = logging.getLogger("skymemory.some")
log.debug("fine")
log.info("%d satellites", 3)
log.warning("two\\nlines")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
"""
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def said(level: str, *, as_json: bool) -> list[str]:
    """Return the lines on standard error of a process that logs at each level."""
    program = SAY.format(level=level, as_json=as_json)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_each_line_has_a_time_and_a_level() -> None:
    lines = said("info", as_json=False)
    assert re.fullmatch(f"{TIME} INFO skymemory.some: 3 satellites", lines[0])
    assert re.fullmatch(f"{TIME} WARNING skymemory.some: two", lines[1])
    assert lines[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("level", "first"), [("debug", "fine"), ("info", "3 satellites"), ("warning", "two\nlines"), ("error", "failed")]
)
def test_the_least_level_is_a_choice(level: str, first: str) -> None:
    records = [json.loads(line) for line in said(level, as_json=True)]
    assert records[0]["message"] == first
    assert records[-1] == records[-1] | {"level": "error", "logger": "skymemory.some", "message": "failed"}
    assert "ZeroDivisionError" in records[-1]["trace"]
    assert all(re.fullmatch(TIME, record["time"]) for record in records)
