"""Keys of links, against the HKDF of RFC 5869 written out with the standard library's HMAC."""

import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.security.credential import Credential, CredentialError, Role
from skymemory.security.derivation import RootKeys, pair_key
from skymemory.security.keyring import HostRecord, MissionKeyring
from skymemory.wire.address import Satellite

ROOT = bytes(range(32))
NAMES = st.text("abcXYZ019-_", min_size=1, max_size=12)
TENANTS = st.none() | st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=8).map(lambda found: tuple(sorted(found)))
PLACES = st.builds(Satellite, st.integers(1, 255), st.integers(1, 254))


def kdf(key: bytes, info: bytes) -> bytes:
    extracted = hmac.digest(bytes(64), key, "blake2b")
    return hmac.digest(extracted, info + b"\x01", "blake2b")[:32]


@given(st.binary(min_size=32, max_size=32), PLACES, st.integers(0, 255))
def test_master_keys(root: bytes, place: Satellite, generation: int) -> None:
    info = b"skymemory 2 master" + struct.pack(">HHB", *place, generation)
    assert RootKeys(root, generation).master_key(place) == kdf(root, info)


@given(PLACES, PLACES, st.integers(0, 255))
def test_peer_keys_are_the_same_at_both_ends(one: Satellite, other: Satellite, generation: int) -> None:
    lower, higher = sorted(struct.pack(">HH", *place) for place in (one, other))
    expected = kdf(ROOT, b"skymemory 2 peers" + lower + higher + bytes([generation]))
    keys = RootKeys(ROOT, generation)
    assert keys.peer_key(one, other) == keys.peer_key(other, one) == expected


@given(st.sampled_from(Role), NAMES, TENANTS, st.integers(0, 255))
def test_credentials_and_pair_keys(role: Role, name: str, tenants: tuple[int, ...] | None, generation: int) -> None:
    listed = tenants or ()
    count = 255 if tenants is None else len(listed)
    packed = bytes([role, generation, count, 0]) + name.encode().ljust(12, b"\0")
    packed += b"".join(tenant.to_bytes(4, "big") for tenant in listed)
    credential = Credential(role, name, tenants, generation).pack()
    assert credential == packed.ljust(48, b"\0")
    assert pair_key(ROOT, credential) == kdf(ROOT, b"skymemory 2 pair" + credential)


def test_vectors_of_root_0_to_31() -> None:
    """Numbers that a second implementation can be held against."""
    keys = RootKeys(ROOT, 1)
    master = keys.master_key(Satellite(3, 10))
    credential = Credential(Role.HOST, "host", (0, 7), 1).pack()
    assert credential.hex() == "00010200" + "686f7374" + "00" * 8 + "00000000" + "00000007" + "00" * 24
    assert master.hex() == MASTER
    assert keys.peer_key(Satellite(3, 10), Satellite(2, 19)).hex() == PEERS
    assert pair_key(master, credential).hex() == PAIR


MASTER = "433512ae9de456ac59a757dae30952b2b196395e646b1c6c96baa26a43068703"
PEERS = "191dd9634b53c270107f85b4f240e29afaad499f90e06c8d22e5b262d3f8c40c"
PAIR = "969115711fc9193edea1154f8f7368b5414ec9e89f0a5ef6c4f6e0b7b139e509"


@pytest.mark.parametrize(
    ("name", "tenants", "generation", "told"),
    [
        ("", None, 1, "name is ''; allowed are 1 to 12 ASCII letters, digits, - and _"),
        ("a" * 13, None, 1, "name is 'aaaaaaaaaaaaa'; allowed are 1 to 12"),
        ("../x", None, 1, r"name is '\.\./x'; allowed"),
        ("h\u00f6st", None, 1, r"name is 'h\\xf6st'; allowed"),
        ("host\n", None, 1, r"name is 'host\\n'; allowed"),
        ("host", (), 1, "0 tenants; allowed are 1 to 8, or any"),
        ("host", tuple(range(9)), 1, "9 tenants; allowed are 1 to 8, or any"),
        ("host", (2**32,), 1, "tenant is 4294967296; allowed are 0 to 4294967295"),
        ("host", (-1,), 1, "tenant is -1; allowed are 0"),
        ("host", (7, 0), 1, "tenants are 7, 0; allowed is each once, in rising order"),
        ("host", (7, 7), 1, "tenants are 7, 7; allowed is each once, in rising order"),
        ("host", (0,), 256, "generation is 256; allowed are 0 to 255"),
    ],
)
def test_credentials_that_cannot_exist(name: str, tenants: tuple[int, ...] | None, generation: int, told: str) -> None:
    with pytest.raises(CredentialError, match=told):
        Credential(Role.HOST, name, tenants, generation)


def test_new_master_keys_are_all_others() -> None:
    mission = MissionKeyring(ROOT, 2, 3, 1, (HostRecord(name="a", tenants="any"),), ())
    before, after = mission.master_keys(), mission.changed(generation=2).master_keys()
    assert list(before) == list(after) == mission.satellites()
    assert len({*before.values(), *after.values()}) == 12
    assert after[Satellite(2, 1)] == kdf(ROOT, b"skymemory 2 master" + bytes([0, 2, 0, 1, 2]))
