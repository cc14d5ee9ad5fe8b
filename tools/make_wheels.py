#!/usr/bin/env python3
"""Make wheels that other Linux systems install without a compiler: of this processor, and of others by a cross compiler.

usage: tools/make_wheels.py FOLDER [PROCESSOR ...]

PROCESSOR is x86_64 or aarch64; the default is both. The wheels are put into FOLDER. Their compiled parts need libc alone:
OpenSSL of the system that runs them is looked for at run time, and without it suites with GMAC are left out. auditwheel finds the
oldest libc that will do, and names it in the file name (manylinux). What needs any other library is an error.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CROSS_COMPILERS = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "x86_64-linux-gnu-gcc"}
"""Name of Debian's compiler for each processor that wheels are made for."""


class WheelError(RuntimeError):
    """A wheel cannot be made, or would not work elsewhere."""


def build(processor: str, folder: Path) -> Path:
    """Build a wheel for a processor in `folder`; its file name has the platform of this machine.

    Raises:
        WheelError: The build failed; its own words are on stderr.
    """
    settings = {"build-dir": f"build-wheel-{processor}", "cmake.define.SKYMEM_PORTABLE": "ON"}
    if processor != platform.machine():
        settings |= {
            "cmake.define.CMAKE_SYSTEM_NAME": "Linux",
            "cmake.define.CMAKE_SYSTEM_PROCESSOR": processor,
            "cmake.define.CMAKE_C_COMPILER": CROSS_COMPILERS[processor],
        }
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    if subprocess.run([*pip, *options, "--wheel-dir", folder, ROOT], check=False).returncode:
        raise WheelError(f"the wheel for {processor} cannot be built")
    (wheel,) = folder.glob("*.whl")
    return wheel


def audit(wheel: Path, folder: Path) -> Path:
    """Put a wheel into `folder` under the name of the oldest libc that will do, and return its path there.

    Raises:
        WheelError: It needs a library that not every system has.
    """
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WheelError(f"{wheel.name}: {done.stderr.strip()}")
    (audited,) = folder.glob("*.whl")
    with zipfile.ZipFile(audited) as archive:
        carried = [name for name in archive.namelist() if ".libs/" in name]
    if carried:
        raise WheelError(f"{wheel.name} needs libraries that not every system has: {', '.join(carried)}")
    return audited


def make(processor: str, folder: Path) -> Path:
    """Make the wheel for a processor in `folder`, in the place of an older one, and return its path.

    Raises:
        WheelError: The wheel cannot be made, or would not work elsewhere.
    """
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build(processor, Path(scratch) / "built")
        if processor != platform.machine():  # the build has named it after this machine
            command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", f"linux_{processor}", wheel]
            wheel = wheel.with_name(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
        audited = audit(wheel, Path(scratch) / "audited")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"skymemory-*_{processor}.whl"):
            old.unlink()
        return Path(shutil.move(audited, folder / audited.name))


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    processors = sys.argv[2:] or list(CROSS_COMPILERS)
    if unknown := set(processors) - set(CROSS_COMPILERS):
        print(f"make_wheels: no processor {', '.join(sorted(unknown))}; there are {', '.join(CROSS_COMPILERS)}", file=sys.stderr)
        return 2
    try:
        for processor in processors:
            print(f"make_wheels: building for {processor}", flush=True)
            wheel = make(processor, Path(sys.argv[1]))
            print(f"make_wheels: {wheel} ({wheel.stat().st_size / 1e6:.1f} MB)", flush=True)
    except WheelError as error:
        print(f"make_wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
