"""Wrapped master keys: what they are bound to, and that no nonce comes twice. Satellites read them in `link/test_rekeying.py`."""

import hashlib
import hmac

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from skymemory.security.keyring import MissionKeyring
from skymemory.security.wrapped_keys import PEERS_MOST, KeyCommand, load_payload, peer_payloads, plain_payload, wrap
from skymemory.wire import icd
from skymemory.wire.address import Satellite

HERE = Satellite(3, 10)
VALID, KEY = bytes(range(32)), bytes(range(100, 132))
AT_NONCE, AT_SEALED = icd.REKEY_OFF_NONCE, icd.REKEY_BYTES


def test_a_wrap_is_what_the_header_says() -> None:
    payload = wrap(KeyCommand.LOAD, VALID, 4, HERE, 5, KEY)
    assert len(payload) == icd.REKEY_BYTES + 48
    bound = payload[:AT_NONCE] + bytes([0, 3, 0, 10])
    assert bound[:4] == bytes([KeyCommand.LOAD, 5, 4, 0])
    extracted = hmac.new(bytes(64), VALID, hashlib.blake2b).digest()
    keys = hmac.new(extracted, b"skymemory 2 wrap" + bound + b"\1", hashlib.blake2b).digest()
    nonce = payload[AT_NONCE:AT_SEALED]
    assert nonce == hashlib.blake2b(bound + KEY, key=keys[32:], digest_size=12).digest()
    assert ChaCha20Poly1305(keys[:32]).decrypt(nonce, payload[AT_SEALED:], bound) == KEY
    with pytest.raises(InvalidTag):
        ChaCha20Poly1305(keys[:32]).decrypt(nonce, payload[AT_SEALED:], bound[:-1] + b"\0")


def test_no_nonce_comes_twice_with_another_key() -> None:
    assert wrap(KeyCommand.LOAD, VALID, 4, HERE, 5, KEY) == wrap(KeyCommand.LOAD, VALID, 4, HERE, 5, KEY)
    others = [
        wrap(KeyCommand.LOAD, VALID, 4, HERE, 5, bytes(32)),
        wrap(KeyCommand.LOAD, VALID, 4, HERE, 6, KEY),
        wrap(KeyCommand.LOAD, VALID, 3, HERE, 5, KEY),
        wrap(KeyCommand.LOAD, VALID, 4, Satellite(3, 11), 5, KEY),
        wrap(KeyCommand.LOAD, KEY, 4, HERE, 5, KEY),
        wrap(KeyCommand.LOAD_PEERS, VALID, 4, HERE, 5, KEY),
        wrap(KeyCommand.LOAD, VALID, 4, HERE, 5, KEY),
    ]
    assert len({payload[AT_NONCE:AT_SEALED] for payload in others}) == len(others)
    assert len({payload[AT_SEALED:] for payload in others}) == len(others)


def test_keys_go_forward() -> None:
    first = MissionKeyring(bytes(32), 5, 19, 1, (), ())
    second = first.changed(generation=2)
    assert load_payload(second, first, HERE) == wrap(KeyCommand.LOAD, first.master_key(HERE), 1, HERE, 2, second.master_key(HERE))
    for old in (second, second.changed(generation=3)):
        with pytest.raises(ValueError, match="allowed are later ones under earlier ones"):
            load_payload(second, old, HERE)


def test_keys_with_all_others_come_in_pages() -> None:
    first = MissionKeyring(bytes(32), 5, 19, 1, (), ())
    second = first.changed(generation=2)
    pages = list(peer_payloads(second, first, HERE))
    places = second.satellites()
    assert [len(page) - icd.REKEY_BYTES - 16 for page in pages] == [4 + 32 * PEERS_MOST, 4 + 32 * PEERS_MOST, 4 + 32 * 31]
    text = (32).to_bytes(4) + b"".join(second.peer_key(HERE, other) for other in places[32:64])
    assert pages[1] == wrap(KeyCommand.LOAD_PEERS, first.master_key(HERE), 1, HERE, 2, text)
    text = (64).to_bytes(4) + b"".join(second.peer_key(HERE, other) for other in places[64:])
    assert list(peer_payloads(second, second, HERE))[2] == wrap(KeyCommand.LOAD_PEERS, second.master_key(HERE), 2, HERE, 2, text)


def test_other_commands_have_no_key() -> None:
    assert plain_payload(KeyCommand.ACTIVATE, 255) == bytes([2, 255]).ljust(icd.REKEY_BYTES, b"\0")
    assert plain_payload(KeyCommand.FORGET, 1) == bytes([3, 1]).ljust(icd.REKEY_BYTES, b"\0")
