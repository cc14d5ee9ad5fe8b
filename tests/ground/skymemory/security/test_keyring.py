"""Keyrings: what they hold, what they show, and what is said of one that is wrong."""

import json
import traceback
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.common.secret_files import write_secret
from skymemory.security.credential import Credential, Role
from skymemory.security.derivation import RootKeys, pair_key
from skymemory.security.keyring import HostRecord, KeyringError, MissionKeyring, load_keyring, parse_keyring
from skymemory.wire.address import Satellite

ROOT = bytes(range(100, 132))
HOST = HostRecord(name="gpu-1", tenants=(0, 7))
MISSION = MissionKeyring(ROOT, 3, 4, 2, (HOST,), ("old",))


def test_a_host_has_its_own_pair_keys_and_nothing_else() -> None:
    content = MISSION.dump_host(HOST)
    host = parse_keyring(content)
    credential = Credential(Role.HOST, "gpu-1", (0, 7), 2).pack()
    assert (host.role, host.name, host.tenants, host.generation) == (Role.HOST, "gpu-1", (0, 7), 2)
    assert (host.credential, host.planes, host.slots) == (credential, 3, 4)
    keys = RootKeys(ROOT, 2)
    expected = [pair_key(keys.master_key(place), credential) for place in MISSION.satellites()]
    assert host.packed_pair_keys() == b"".join(expected)
    assert [host.pair_key(*place) for place in MISSION.satellites()] == expected
    assert set(json.loads(content)) == {
        "kind", "format", "name", "tenants", "generation", "planes", "slots", "pair_keys", "fingerprint",
    }  # fmt: skip


def test_the_mission_has_keys_of_its_own_role() -> None:
    mission = parse_keyring(MISSION.dump())
    assert isinstance(mission, MissionKeyring)
    assert (mission.role, mission.tenants, mission.hosts, mission.revoked) == (Role.MISSION, None, (HOST,), ("old",))
    assert mission.credential == Credential(Role.MISSION, "mission", None, 2).pack()
    assert len(mission.packed_pair_keys()) == 12 * 32
    at = mission.satellites().index(Satellite(2, 3)) * 32
    assert mission.packed_pair_keys()[at : at + 32] == mission.pair_key(2, 3)
    assert mission.pair_key(2, 3) == pair_key(RootKeys(ROOT, 2).master_key(Satellite(2, 3)), mission.credential)
    assert mission.pair_key(2, 3) != parse_keyring(MISSION.dump_host(HOST)).pair_key(2, 3)


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (4, 1), (1, 5), (-1, 1)])
def test_satellites_that_are_not_there_have_no_key(place: tuple[int, int]) -> None:
    for keyring in (MISSION, parse_keyring(MISSION.dump_host(HOST))):
        with pytest.raises(ValueError, match=r"is outside 3 planes x 4 slots"):
            keyring.pair_key(*place)


def test_no_secret_is_shown() -> None:
    host = parse_keyring(MISSION.dump_host(HOST))
    assert repr(host) == str(host) == "Keyring(host gpu-1, tenants 0, 7, generation 2)"
    assert repr(MISSION) == "Keyring(mission mission, tenants any, generation 2)"


def test_a_large_sky(tmp_path: Path) -> None:
    mission = MissionKeyring(ROOT, 72, 22, 1, (HOST,), ())
    write_secret(path := tmp_path / "host.json", mission.dump_host(HOST))
    host = load_keyring(path)
    assert len(host.packed_pair_keys()) == 1584 * 32
    assert host.pair_key(72, 22) == mission.host_pair_keys(host.credential)[-32:]


@pytest.mark.parametrize("content", [MISSION.dump(), MISSION.dump_host(HOST)], ids=["mission", "host"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_damage_is_found_and_shows_nothing(content: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content) - 2))  # the last byte is the end of the line
    wrong = data.draw(st.sampled_from([content[:at], content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]]))
    with suppress(ValueError):
        found = parse_keyring(wrong)  # only white space was changed
        assert json.loads(wrong) == json.loads(content)
        assert found.credential == parse_keyring(content).credential


def test_errors_show_nothing_of_a_secret() -> None:
    fields = json.loads(MISSION.dump())
    for change in ({"planes": fields["root"]}, {"root": fields["root"][:-1]}, {"hosts": [fields["root"]]}):
        with pytest.raises(ValueError, match=r"^its ") as caught:
            parse_keyring(json.dumps({**fields, **change}).encode())
        assert fields["root"][:10] not in "".join(traceback.format_exception(caught.value))


def complaint(path: Path) -> str:
    with pytest.raises(KeyringError) as caught:
        load_keyring(path)
    return str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    assert complaint(path) == f"{path} cannot be read: No such file or directory"
    assert complaint(tmp_path) == f"{tmp_path} is no file"
    write_secret(path, MISSION.dump())
    for mode in (0o640, 0o604, 0o620, 0o601):
        path.chmod(mode)
        told = (
            f"{path} has mode {mode:04o}, so that others may read or change it; allowed are modes such as 0600: chmod 600 {path}"
        )
        assert complaint(path) == told
    path.chmod(0o400)
    load_keyring(path)
    path.chmod(0o600)
    path.write_bytes(b"")
    assert complaint(path) == f"{path} is damaged: it is no keyring"
    path.write_bytes(bytes(9 << 20))
    assert complaint(path) == f"{path} is too long; allowed are up to 8,388,608 bytes"
    path.write_bytes(b"[" * 100_000)
    assert "is damaged" in complaint(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"planes": 0}, "its planes is not valid"),
        ({"slots": 255}, "its slots is not valid"),
        ({"generation": 256}, "its generation is not valid"),
        ({"format": 2}, "its format is not valid"),
        ({"extra": 1}, "its extra is not valid"),
        ({"pair_keys": "AAAA"}, "its fingerprint is another"),
        ({"kind": "satellite"}, "it is no keyring"),
    ],
)
def test_fields_that_are_wrong(change: dict[str, object], told: str) -> None:
    fields = json.loads(MISSION.dump_host(HOST))
    with pytest.raises(ValueError, match=f"^{told}$"):
        parse_keyring(json.dumps({**fields, **change}).encode())
