"""`skymem agent` from the outside: refusals."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("option", "whose"), [("resp", "Redis clients"), ("lmcache", "LMCache"), ("http", "page, health and metrics")]
)
def test_who_has_a_port_is_told_once(option: str, whose: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", "agent", f"--{option}-port", str(port)]
        environment = {**os.environ, "SKYMEM_STATE": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith(f"Error: {whose} at 127.0.0.1:{port}: Address already in use (")
    assert told.count(f"(pid {os.getpid()}") == told.count("has it") == 1
