"""Files of keys and users: who may read them, and what is wrong with them."""

import re
from pathlib import Path

import pytest

from skymemory.agent.gateway.users import Tenancy, Users, add_user, list_users, remove_user
from skymemory.common.secret_files import SecretFileError
from skymemory.serve.api_keys import ApiKeys, add_key, list_keys, remove_key, scope_of


def test_a_key_is_shown_once_and_its_digest_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    one, other = add_key(path, "one"), add_key(path, "other")
    assert path.stat().st_mode & 0o777 == 0o600
    assert one not in path.read_text()
    keys = ApiKeys(path=path)
    found = keys.find(one.encode())
    assert found is not None
    assert found.name == "one"
    assert len(found.root) == 32
    second = keys.find(other.encode())
    assert second is not None
    assert second.root != found.root
    assert keys.find(b"sk-sky-wrong") is keys.find(b"") is None
    with pytest.raises(SecretFileError, match="one is there already"):
        add_key(path, "one")
    remove_key(path, "one")  # a server that runs follows
    assert keys.find(one.encode()) is None
    assert [entry.name for entry in list_keys(path)] == ["other"]
    with pytest.raises(SecretFileError, match="there is no one; there are other"):
        remove_key(path, "one")


def test_a_file_that_becomes_wrong_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    word = add_key(path, "one").encode()
    keys = ApiKeys(path=path)
    path.write_text("what?")
    assert keys.find(word) is not None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    keys, users = tmp_path / "keys.toml", tmp_path / "users.toml"
    add_key(keys, "one")
    add_user(users, "one", 1)
    for path in (keys, users):
        path.chmod(mode)
    with pytest.raises(SecretFileError, match=f"mode {mode:04o}, so that others may read or change it; allowed are"):
        ApiKeys(path=keys)
    with pytest.raises(SecretFileError, match=f"mode {mode:04o}"):
        Users(path=users)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[user]]\nname = 'a b'\n", ':2: user.name is "a b"; allowed are names of 1 to 64 letters'),
        (
            "[[user]]\nname = 'a'\ndigest = 'x'\ntenant = 1\n",
            ':3: user.digest is "x"; allowed are digests of 64 hexadecimal digits',
        ),
        ("[[user]]\nname = 'a'\ntenant = -1\n", ":3: user.tenant is -1; allowed are whole numbers from 0 to 4294967295"),
        ("[[users]]\n", "users is unknown (did you mean user?)"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "users.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SecretFileError, match=re.escape(said)):
        list_users(path)


def test_users_have_tenants(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    (tmp_path / "secret").write_text("of tenant 7\n")
    (tmp_path / "secret").chmod(0o600)
    alice = add_user(path, "alice", 7, tenant_secret_file="secret").encode()
    bob = add_user(path, "bob", 7, tenant_secret_file="secret", read_only=True).encode()
    eve = add_user(path, "eve", 7).encode()
    users = Users("own", path)
    found = [users.find(name, word) for name, word in ((b"alice", alice), (b"bob", bob), (b"eve", eve), (b"default", b"own"))]
    assert [None if user is None else (user.name, user.tenancy, user.read_only) for user in found] == [
        ("alice", Tenancy(7, b"of tenant 7\n"), False),
        ("bob", Tenancy(7, b"of tenant 7\n"), True),
        ("eve", Tenancy(7, b""), False),
        ("default", None, False),
    ]
    assert users.find(b"alice", bob) is users.find(b"nobody", alice) is users.find(b"default", b"") is None
    assert len(users.tenancies) == 2
    with pytest.raises(SecretFileError, match="default has its password from --resp-password"):
        add_user(path, "default", 1)
    remove_user(path, "eve")
    assert [entry.name for entry in list_users(path)] == ["alice", "bob"]
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(SecretFileError, match="secret has mode 0644"):
        Users(path=path)


def test_without_users_the_default_user_is_open_and_with_a_file_alone_it_is_off(tmp_path: Path) -> None:
    assert Users().open_user is not None
    add_user(tmp_path / "users.toml", "alice", 1)
    users = Users(path=tmp_path / "users.toml")
    assert users.open_user is None
    assert users.find(b"default", b"") is None


def test_scopes_differ_by_key_and_by_salt() -> None:
    assert scope_of(b"", "") == b""
    found = {scope_of(root, salt) for root in (b"", bytes(32), bytes([1]) * 32) for salt in ("", "a", "b")}
    assert len(found) == 9
