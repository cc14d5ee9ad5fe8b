"""Folders of which the oldest entries go."""

import os
from pathlib import Path

import pytest

from skymemory.common.bounded_folder import bound_folder, used_now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of four entries of 10 bytes, `a` the oldest; `b` is a folder."""
    for number, name in enumerate("abcd"):
        path = tmp_path / name
        if name == "b":
            path.mkdir()
            (path / "inside").write_bytes(bytes(10))
        else:
            path.write_bytes(bytes(10))
        os.utime(path, (number, number))
    return tmp_path


def names(folder: Path) -> str:
    return "".join(sorted(path.name for path in folder.iterdir()))


@pytest.mark.parametrize(
    ("most", "most_bytes", "left"), [(4, 40, "abcd"), (3, 40, "bcd"), (4, 39, "bcd"), (2, 40, "cd"), (9, 5, ""), (0, 0, "")]
)
def test_the_oldest_go_by_number_and_by_bytes(folder: Path, most: int, most_bytes: int, left: str) -> None:
    bound_folder(folder, most, most_bytes)
    assert names(folder) == left


def test_what_is_used_stays(folder: Path) -> None:
    used_now(folder / "a")
    bound_folder(folder, 2, 1000, lambda path: path.name == "b")
    assert names(folder) == "ab"


def test_what_is_not_there_is_bounded_as_it_is(tmp_path: Path) -> None:
    bound_folder(tmp_path / "none", 1, 1)
    used_now(tmp_path / "none")
    assert not (tmp_path / "none").exists()
