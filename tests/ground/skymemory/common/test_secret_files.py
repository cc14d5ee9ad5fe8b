"""Reading files with secrets: who may have put them there."""

import os
from pathlib import Path

import pytest

from skymemory.common.secret_files import Kept, SecretFileError, read_secret, replace_secret

NOBODY = 65_534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    replace_secret(tmp_path / "file", b"secret")
    return tmp_path / "file"


@pytest.mark.parametrize("kept", Kept)
def test_a_file_of_this_user_alone_is_always_right(file: Path, kept: Kept) -> None:
    assert read_secret(file, 6, kept=kept) == b"secret"
    with pytest.raises(SecretFileError, match=f"^keys {file} is too long; allowed are up to 5 bytes$"):
        read_secret(file, 5, kept=kept, what="keys")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_what_others_may_open_is_taken_from_anywhere_only(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert read_secret(file, 6, kept=Kept.ANYWHERE) == b"secret"
    for kept in (Kept.PRIVATE, Kept.OWN):
        with pytest.raises(SecretFileError, match=f"^{file} has mode {mode:04o}, so that .*; allowed are .*: chmod 600 {file}$"):
            read_secret(file, 6, kept=kept)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_others_is_taken_from_anywhere_only(file: Path) -> None:
    os.chown(file, NOBODY, -1)
    assert read_secret(file, 6, kept=Kept.ANYWHERE) == b"secret"
    with pytest.raises(SecretFileError, match=f"^{file} belongs to user {NOBODY}; allowed are this user, 0, and root$"):
        read_secret(file, 6)
    with pytest.raises(SecretFileError, match=f"^{file} belongs to user {NOBODY}; allowed is this user, 0$"):
        read_secret(file, 6, kept=Kept.OWN)
    os.chown(file.parent, NOBODY, -1)  # root's engines use agents of others in folders that are theirs
    assert read_secret(file, 6, kept=Kept.OWN) == b"secret"


def test_a_link_is_never_a_file_that_a_program_made(file: Path) -> None:
    (link := file.with_name("link")).symlink_to(file)
    assert read_secret(link, 6) == b"secret"
    with pytest.raises(SecretFileError, match=f"^{link} cannot be read: Too many levels of symbolic links$"):
        read_secret(link, 6, kept=Kept.OWN)
