"""The cryptographic library of the client library, through ctypes: tests hold it against other people's vectors."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skymemory.common import compiled

TAG_BYTES = 16
HASH_BYTES = 64
GMAC_SUITES = 0b00110
"""Mask of the suites with GMAC."""
BLAKE2B_SUITES = 0b11000
_PLACES = 4


class _Part(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("bytes", ctypes.c_size_t))


_PARTS = ctypes.POINTER(_Part)
_P, _S, _U32, _U64, _B = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p


class _Crypto(ctypes.Structure):
    """SKY_Crypto_t."""

    _fields_ = (
        ("context", _P),
        ("suites", _U32),
        ("key_count", _U32),
        ("hash", ctypes.CFUNCTYPE(None, _P, _B, _S, _PARTS, _U32, _P, _S)),
        ("load_key", ctypes.CFUNCTYPE(ctypes.c_bool, _P, _U32, ctypes.c_uint8, _B)),
        ("erase_key", ctypes.CFUNCTYPE(None, _P, _U32)),
        ("tag", ctypes.CFUNCTYPE(ctypes.c_bool, _P, _U32, _U64, _PARTS, _U32, _P)),
        ("seal", ctypes.CFUNCTYPE(None, _P, _B, _B, _PARTS, _B, _S, _P)),
        ("open", ctypes.CFUNCTYPE(ctypes.c_bool, _P, _B, _B, _PARTS, _B, _S, _P)),
        ("is_equal", ctypes.CFUNCTYPE(ctypes.c_bool, _P, _B, _B, _S)),
        ("wipe", ctypes.CFUNCTYPE(None, _P, _P, _S)),
    )


class _Library(ctypes.Structure):
    """SKY_CryptoLibrary_t."""

    _fields_ = (("crypto", _Crypto), ("places", _P))


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "SKY_CryptoLibrary_MemoryBytes": (_S, [_U32]),
    "SKY_CryptoLibrary_Init": (ctypes.c_bool, [_P, _P, _S, _U32]),
    "SKY_CryptoLibrary_End": (None, [_P]),
    "SKY_Crypto_Kdf": (None, [_P, _B, _PARTS, _U32, _P, _S]),
    "SKY_Crypto_Hmac": (None, [_P, _B, _S, _PARTS, _U32, _P]),
    "SKY_Crypto_SelfTest": (ctypes.c_bool, [_P]),
    "SKY_Gmac_New": (_P, []),
    "SKY_Gmac_SetKey": (ctypes.c_bool, [_P, _B]),
    "SKY_Gmac_Tag": (ctypes.c_bool, [_P, _B, _PARTS, _U32, _P]),
    "SKY_Gmac_Free": (None, [_P]),
}


def _parts(parts: Sequence[bytes]) -> Any:
    return (_Part * len(parts))(*((part, len(part)) for part in parts))


def _filled(count: int, call: Callable[[Any], object]) -> bytes:
    out = ctypes.create_string_buffer(count)
    call(out)
    return out.raw


class CryptoLibrary:
    """The functions of a SKY_Crypto_t, over bytes."""

    def __init__(self, loaded: ctypes.CDLL, crypto: _Crypto) -> None:
        self._loaded = loaded
        self._crypto = crypto
        self._context = crypto.context
        self.suites = int(crypto.suites)

    def self_test(self) -> bool:
        return bool(self._loaded.SKY_Crypto_SelfTest(ctypes.byref(self._crypto)))

    def hash(self, key: bytes, parts: Sequence[bytes], count: int) -> bytes:
        return _filled(
            count,
            lambda out: self._crypto.hash(self._context, key, len(key), _parts(parts), len(parts), ctypes.addressof(out), count),
        )

    def hmac(self, key: bytes, parts: Sequence[bytes]) -> bytes:
        crypto = ctypes.byref(self._crypto)
        return _filled(
            HASH_BYTES, lambda out: self._loaded.SKY_Crypto_Hmac(crypto, key, len(key), _parts(parts), len(parts), out)
        )

    def kdf(self, key: bytes, info: Sequence[bytes], count: int) -> bytes:
        crypto = ctypes.byref(self._crypto)
        return _filled(count, lambda out: self._loaded.SKY_Crypto_Kdf(crypto, key, _parts(info), len(info), out, count))

    def tag(self, suite: int, key: bytes, sequence: int, parts: Sequence[bytes]) -> bytes:
        """Return the tag of a key, which is loaded for it and erased again."""
        out = ctypes.create_string_buffer(TAG_BYTES)
        assert self._crypto.load_key(self._context, 1, suite, key)
        assert self._crypto.tag(self._context, 1, sequence, _parts(parts), len(parts), ctypes.addressof(out))
        self._crypto.erase_key(self._context, 1)
        return out.raw

    def seal(self, key: bytes, nonce: bytes, associated: bytes, plain: bytes) -> bytes:
        return _filled(
            len(plain) + TAG_BYTES,
            lambda out: self._crypto.seal(
                self._context, key, nonce, _parts([associated]), plain, len(plain), ctypes.addressof(out)
            ),
        )

    def open(self, key: bytes, nonce: bytes, associated: bytes, sealed: bytes) -> bytes | None:
        """Return the plain text, None if the tag is wrong."""
        count = len(sealed) - TAG_BYTES
        out = ctypes.create_string_buffer(count + 1)
        opened = self._crypto.open(self._context, key, nonce, _parts([associated]), sealed, count, ctypes.addressof(out))
        return out.raw[:count] if opened else None

    def gmac(self, key: bytes, nonce: bytes, associated: bytes) -> bytes:
        """Return the tag of GMAC under a nonce of 12 bytes, which the suites leave no choice of."""
        context = self._loaded.SKY_Gmac_New()
        out = ctypes.create_string_buffer(TAG_BYTES)
        assert self._loaded.SKY_Gmac_SetKey(context, key)
        assert self._loaded.SKY_Gmac_Tag(context, nonce, _parts([associated]), 1, out)
        self._loaded.SKY_Gmac_Free(context)
        return out.raw


@contextmanager
def crypto_library() -> Iterator[CryptoLibrary]:
    """`with crypto_library() as library`: a library with empty places."""
    loaded = compiled.load(compiled.library_path("libskymem_client.so"), _SIGNATURES)
    library = _Library()
    memory = ctypes.create_string_buffer(loaded.SKY_CryptoLibrary_MemoryBytes(_PLACES))
    assert loaded.SKY_CryptoLibrary_Init(ctypes.byref(library), memory, len(memory), _PLACES)
    try:
        yield CryptoLibrary(loaded, library.crypto)
    finally:
        loaded.SKY_CryptoLibrary_End(ctypes.byref(library))
