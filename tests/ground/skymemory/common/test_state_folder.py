"""The state folder is for its user alone."""

import stat
from pathlib import Path

import pytest

from skymemory.common.state_folder import make_private


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_it_is_made_for_this_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "parent" / "state"
    for _ in range(2):
        make_private(folder)
        assert mode_of(folder) == 0o700
    assert not caplog.records


def test_one_that_others_may_enter_is_closed_and_that_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert mode_of(tmp_path) == 0o700
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path} had mode 0755, so that others could look into it; it has 0700 now"
    ]


def test_a_folder_for_all_users_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert mode_of(tmp_path) == 0o1777
