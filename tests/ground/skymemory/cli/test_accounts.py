"""`skymem serve-keys` and `skymem resp-users`."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main


def skymem(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)], prog_name="skymem")


@pytest.mark.parametrize(("group", "more", "shown"), [("serve-keys", (), ""), ("resp-users", ("--tenant", 7), " tenant 7")])
def test_add_list_remove(tmp_path: Path, group: str, more: tuple[object, ...], shown: str) -> None:
    path = tmp_path / "file.toml"
    added = skymem(group, "add", path, "alice", *more)
    assert (added.exit_code, len(added.output.split())) == (0, 1)
    assert added.output.strip() not in path.read_text()
    assert skymem(group, "list", path).output == f"alice{shown}\n"
    again = skymem(group, "add", path, "alice", *more)
    assert (again.exit_code, again.output) == (2, f"Error: {path}: alice is there already; remove it first\n")
    assert skymem(group, "remove", path, "alice").exit_code == 0
    assert skymem(group, "list", path).output == ""
    assert skymem(group, "remove", path, "alice").output == f"Error: {path}: there is no alice; there are none\n"
    wrong = skymem(group, "add", path, "a b", *more)
    assert wrong.exit_code == 2
    assert "'a b' is no such name; allowed are names of 1 to 64 letters" in wrong.output


def test_a_server_takes_one_key_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    skymem("serve-keys", "add", path, "alice")
    assert "allowed is one of them" in skymem("serve", "MODEL", "--api-key", "x", "--api-keys", path).output
    path.chmod(0o644)
    assert "mode 0644, so that others may read or change it" in skymem("serve", "MODEL", "--api-keys", path).output
    assert "mode 0644" in skymem("agent", "--resp-port", "0", "--resp-users", path).output
