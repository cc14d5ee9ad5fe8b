#!/usr/bin/env python3
"""Make the virtual environment of the project with nothing but a Python interpreter.

usage: tools/setup_venv.py DIRECTORY [EXTRA]...

Installs the dependencies of pyproject.toml and those of the named extras in the versions of constraints.txt, and the tools that
build the wheel. The project itself is installed by `make`, again whenever a source file changes.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path

from pypi_file import FetchError, fetch

try:
    import tomllib
except ImportError:
    sys.exit(f"setup_venv: Python 3.11 or newer is needed, not {sys.version.split()[0]}; name another: make PYTHON=...")

ROOT = Path(__file__).resolve().parent.parent
PIP_WHEEL = "pip-25.0.1-py3-none-any.whl"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
BUILD_TOOLS = ("cmake", "ninja")


def add_pip(python: Path) -> None:
    """Install pip by running pip's own wheel: Debian's python3 has neither pip nor ensurepip."""
    try:
        data = fetch("pip", PIP_WHEEL)
    except FetchError as error:
        sys.exit(f"setup_venv: {error}")
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / PIP_WHEEL
        wheel.write_bytes(data)
        subprocess.run([python, wheel / "pip", "install", "--quiet", "--no-index", wheel], check=True)


def torch_index() -> list[str]:
    """Return the arguments of pip that prefer torch without CUDA (0.2 GB, not 3) where no NVIDIA device could use it."""
    if platform.machine() != "x86_64" or shutil.which("nvidia-smi") or "PIP_INDEX_URL" in os.environ:
        return []
    try:
        with urllib.request.urlopen(TORCH_CPU_INDEX + "/torch/", timeout=5):
            return ["--extra-index-url", TORCH_CPU_INDEX]
    except OSError:
        return []


def make_venv(folder: Path) -> Path:
    """Make a virtual environment with pip in `folder`, unless it exists; return its interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"{Path(sys.argv[0]).stem}: virtual environment in {folder}", flush=True)
        has_ensurepip = importlib.util.find_spec("ensurepip") is not None
        venv.create(folder, with_pip=has_ensurepip, symlinks=True)
        if not has_ensurepip:
            add_pip(python)
    return python


def project_needs(extras: Sequence[str]) -> list[str]:
    """Return the requirements of the project, of these extras and of the build of its wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    known = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"], *BUILD_TOOLS]
    for extra in extras:
        if extra not in known:
            sys.exit(f"{Path(sys.argv[0]).stem}: no extra {extra!r}; there are {', '.join(known)}")
        wanted += known[extra]
    return wanted


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    wanted = project_needs(sys.argv[2:])
    python = make_venv(Path(sys.argv[1]))
    print(f"setup_venv: installing {len(wanted)} packages and what they need; the first time takes minutes", flush=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += [*torch_index(), "--constraint", ROOT / "constraints.txt"]
    return subprocess.run([*pip, *wanted], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
