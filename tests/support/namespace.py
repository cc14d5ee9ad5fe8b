"""Scripts in a network namespace of their own, where they may change routes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run_in_namespace(script: str, folder: Path) -> str:
    """Run Python code with only a loopback interface, and return what it prints; skip the test where that is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode:
        pytest.skip("no network namespaces for ordinary users, or no unshare or ip")
    ran = subprocess.run(
        [unshare, "-rn", "sh", "-c", f'ip link set lo up && exec "{sys.executable}" -'],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
