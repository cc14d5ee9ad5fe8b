"""Files of tenant secrets: made once, for this user only, and clear words where they cannot be."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from skymemory.common.secret_files import Kept, SecretFileError
from skymemory.common.tenant_secrets import made_secret, read_tenant_secret, share_secret

MAKE = (
    "import sys\nfrom pathlib import Path\nfrom skymemory.common.tenant_secrets import made_secret\n"
    "sys.stdin.read()\nprint(made_secret(Path(sys.argv[1])).hex())"
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "deep" / "secret"
    mask = os.umask(0)
    try:
        secret = made_secret(file)
    finally:
        os.umask(mask)
    assert len(secret) == 32
    assert mode_of(file) == 0o600
    assert mode_of(file.parent) == 0o700
    assert made_secret(file) == read_tenant_secret(file) == file.read_bytes() == secret
    assert os.listdir(file.parent) == ["secret"]
    assert made_secret(tmp_path / "other") != secret


def test_processes_that_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    """All wait until their input ends, then make it."""
    file = tmp_path / "secret"
    command = [sys.executable, "-c", MAKE, str(file)]
    makers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.close()
        maker.stdin = None
    made = {maker.communicate()[0].strip() for maker in makers}
    assert made == {file.read_bytes().hex()}
    assert os.listdir(tmp_path) == ["secret"]


def test_a_new_file_takes_over_a_secret(tmp_path: Path) -> None:
    first = made_secret(tmp_path / "first")
    assert made_secret(tmp_path / "second", tmp_path / "first") == first
    assert mode_of(tmp_path / "second") == 0o600
    there = made_secret(tmp_path / "there")
    assert made_secret(tmp_path / "there", tmp_path / "first") == there != first
    assert len(made_secret(tmp_path / "third", tmp_path / "nothing")) == 32


def test_a_secret_is_shared(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "shared"
    for secret in (b"one", b"another", b"another"):
        share_secret(file, secret)
        assert read_tenant_secret(file, Kept.OWN) == secret
    file.chmod(0o644)
    share_secret(file, b"another")
    assert mode_of(file) == 0o600
    assert os.listdir(file.parent) == ["shared"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_default_secret_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    secret = made_secret(file)
    file.chmod(mode)
    with pytest.raises(SecretFileError, match=rf"{file} has mode {mode:04o}.*; allowed are modes such as 0600"):
        made_secret(file)
    assert read_tenant_secret(file) == secret  # a file that a person or an orchestrator names may be so


def test_a_link_is_no_default_secret(tmp_path: Path) -> None:
    made_secret(tmp_path / "secret")
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(SecretFileError, match="cannot be read: Too many levels of symbolic links"):
        made_secret(tmp_path / "link")
    assert read_tenant_secret(tmp_path / "link") == read_tenant_secret(tmp_path / "secret")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty; allowed are 1 to 4,096 bytes"),
        (bytes(4097), "is too long; allowed are up to 4,096 bytes"),
    ],
)
def test_a_file_without_a_secret_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretFileError, match=f"tenant secret {file} {words}"):
        read_tenant_secret(file)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SecretFileError, match=f"tenant secret {path} is no file"):
            read_tenant_secret(path)


def test_the_longest_and_the_shortest_secret(tmp_path: Path) -> None:
    for content in (b"\n", bytes(4096)):
        (tmp_path / "secret").write_bytes(content)
        assert read_tenant_secret(tmp_path / "secret") == content


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SecretFileError, match="secret cannot be read: Not a directory"):
        made_secret(tmp_path / "file" / "secret")
    with pytest.raises(SecretFileError, match="secret cannot be written: "):
        share_secret(tmp_path / "file" / "secret", b"x")


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A process that may write files of no bytes: as on a full disk the file comes to be, and its content does not."""
    program = (
        "import resource, signal, sys\nfrom pathlib import Path\n"
        "from skymemory.common.secret_files import SecretFileError\nfrom skymemory.common.tenant_secrets import made_secret\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n    made_secret(Path(sys.argv[1]))\nexcept SecretFileError as error:\n    sys.exit(str(error))"
    )
    file = tmp_path / "secret"
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"tenant secret {file} cannot be made: File too large" in done.stderr
    assert os.listdir(tmp_path) == []
