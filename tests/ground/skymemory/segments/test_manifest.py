import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.segments.keys import segment_id
from skymemory.segments.manifest import MANIFEST_BYTES_MAX, TOKENS_MAX, Manifest, ManifestKeys, shown_time
from skymemory.wire.envelope import BlockError, Kind, seal
from skymemory.wire.key_derivation import block_key, name_key, root_key, seal_keys

KEYS = ManifestKeys(b"secret")


def made(**changes: object) -> Manifest:
    fields = {
        "id": segment_id(bytes(32), [1, 2, 3]),
        "fingerprint": bytes(32),
        "layout": "layers",
        "codec": "raw",
        "block_tokens": 128,
        "groups": 3,
        "sinks": 0,
        "tokens": [1, 2, 3],
        "size_bytes": 100,
        "created_unix_ms": 5,
        "expires_unix_ms": 0,
        "display_name": "name",
    }
    return Manifest(**{**fields, **changes})


def forged(manifest: object) -> bytearray:
    """A block with a right seal, as another program of the tenant might make it."""
    root = root_key("manifests", b"secret")
    key = block_key(name_key(root), made().id.encode())
    return seal(Kind.MANIFEST, key, b"", msgspec.msgpack.encode(manifest), keys=seal_keys(root), version=7)


@given(
    tokens=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50),
    expires=st.integers(0, 2**53 - 1),
    name=st.text(max_size=128),
    version=st.integers(0, 2**64 - 1),
)
def test_a_manifest_comes_back(tokens: list[int], expires: int, name: str, version: int) -> None:
    manifest = made(tokens=tokens, expires_unix_ms=expires, display_name=name)
    assert KEYS.unpack(manifest.id, KEYS.pack(manifest, version)) == (manifest, version)


@given(position=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=200)
def test_no_flipped_bit_goes_unseen(position: int, bit: int) -> None:
    block = KEYS.pack(made(), 1)
    block[position % len(block)] ^= 1 << bit
    with pytest.raises(BlockError):
        KEYS.unpack(made().id, block)


@given(st.binary(max_size=200))
def test_garbage_is_no_manifest(garbage: bytes) -> None:
    with pytest.raises(BlockError):
        KEYS.unpack(made().id, bytearray(garbage))


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": []},
        {"tokens": [-1]},
        {"tokens": [2**32]},
        {"tokens": ["a"]},
        {"groups": 0},
        {"groups": 9},
        {"block_tokens": 0},
        {"fingerprint": b"short"},
        {"sinks": -1},
        {"expires_unix_ms": -1},
        {"created_unix_ms": 2**53},
        {"display_name": "x" * 129},
        {"layout": 3},
    ],
)
def test_fields_out_of_range_are_refused(change: dict[str, object]) -> None:
    fields = msgspec.structs.asdict(made())
    with pytest.raises(BlockError, match="the manifest cannot be read"):
        KEYS.unpack(made().id, forged({**fields, **change}))
    assert KEYS.unpack(made().id, forged({**fields, "a field of a later version": 1}))[0] == made()


def test_a_manifest_of_another_id_tenant_or_scope_is_refused() -> None:
    other = "seg-" + "0" * 32
    with pytest.raises(BlockError, match="the seal does not match"):
        KEYS.unpack(other, KEYS.pack(made(), 1))
    with pytest.raises(BlockError, match="the manifest is of"):
        KEYS.unpack(made().id, forged(made(id=other)))
    for keys in (ManifestKeys(b"another"), ManifestKeys(b"secret", b"user")):
        assert keys.key_of(made().id) != KEYS.key_of(made().id)
        assert keys.public_name != KEYS.public_name
        with pytest.raises(BlockError, match="the seal does not match"):
            keys.unpack(made().id, KEYS.pack(made(), 1))


def test_the_longest_manifest_fits() -> None:
    manifest = made(tokens=[2**32 - 1] * TOKENS_MAX, display_name="\U0001f6f0" * 128, layout="x" * 1024)
    assert len(KEYS.pack(manifest, 2**64 - 1)) <= MANIFEST_BYTES_MAX


def test_times_for_people() -> None:
    assert shown_time(0) == "1970-01-01 00:00:00 UTC"
    assert shown_time(2**53 - 1) == f"{2**53 - 1} ms since 1970"
