"""The record of a gate in the sky, by which the hosts of a tenant share what was measured of a model.

It is one sealed value for each model. Who puts it has joined it before. Records can be joined in any order and any number of
times, so a host whose record was replaced by that of another one, which did not know it, puts it again with its next evidence;
and an old record that somebody puts back takes nothing away from a host that knows more.
"""

from __future__ import annotations

import logging
from typing import Final

from skymemory.segments.gate import Gate
from skymemory.store.block_store import BlockStore
from skymemory.store.results import REPLACED, Status
from skymemory.store.versions import Versions
from skymemory.wire.envelope import BlockError, Kind, seal, unseal
from skymemory.wire.key_derivation import block_key, name_key, public_name, root_key, seal_keys

_log = logging.getLogger(__name__)

RECORD_BYTES_MAX: Final = 1 << 22
"""Most bytes of a record. The limit bounds the memory that a satellite can make a host take."""
_ATTEMPTS: Final = 3
"""Puts of a record that other hosts put at the same time."""


class GateInSky:
    """The record of one model. Nothing that happens in the sky raises."""

    def __init__(self, tenant_secret: bytes, fingerprint: bytes) -> None:
        """Derive its keys.

        Args:
            tenant_secret: Secret of the tenant.
            fingerprint: Digest of model and tokenizer.
        """
        root = root_key("gates", tenant_secret, fingerprint)
        self._fingerprint = fingerprint.hex()
        self._seals = seal_keys(root)
        self._versions = Versions()
        self.key = block_key(name_key(root), b"record")
        self.public_name = public_name(root)

    def take(self, store: BlockStore, gate: Gate) -> bool:
        """Have a gate join the record, and return True if there is one that can be used."""
        try:
            return self._take(store, gate) is not None
        except (OSError, ValueError) as error:
            _log.info("the gate's record in the sky is not used: %s", error)
            return False

    def share(self, store: BlockStore, gate: Gate) -> None:
        """Have a gate join the record, and put all evidence in its place, if that is more."""
        try:
            self._share(store, gate)
        except (OSError, ValueError) as error:
            _log.info("the gate's record is not shared: %s", error)

    def _share(self, store: BlockStore, gate: Gate) -> None:
        held, above = 0, False
        for _ in range(_ATTEMPTS):
            there = self._take(store, gate)
            text = gate.record(self._fingerprint, shared=True)
            if text == there or store.silent:
                return
            version = self._versions.choose_above(self.key, held) if above else self._versions.choose(self.key)
            if version is None or len(text) + 1024 > RECORD_BYTES_MAX:
                _log.warning("the gate's record of %d bytes cannot be put", len(text))
                return
            [result] = store.put([(self.key, seal(Kind.GATE, self.key, b"", text, keys=self._seals, version=version))])
            if result.ok:
                self._versions.stored(self.key, version)
            if result.status not in REPLACED:
                return
            held, above = result.held_version, True

    def _take(self, store: BlockStore, gate: Gate) -> bytes | None:
        """Have a gate join the record, and return the record, if there is one.

        Raises:
            ValueError: A program of another version has written it.
        """
        [result] = store.get([self.key], block_bytes_max=RECORD_BYTES_MAX)
        if result.status is Status.BAD_LENGTH:  # another host has replaced it by a longer or shorter one
            [found] = store.find([self.key], fresh=True)
            [result] = store.get([found.entry or self.key], block_bytes_max=RECORD_BYTES_MAX)
        text = store.opened(result, self._opened)
        if text is not None:
            try:
                gate.join(text)
            except ValueError as error:
                _log.warning("the gate's record in the sky stays as it is, and is not used: %s", error)
                raise
        elif result.data is not None or result.status is Status.TOO_LARGE:
            store.purge([self.key])  # nobody of the tenant made it
        return text

    def _opened(self, data: bytearray) -> bytes | None:
        try:
            _, body, version = unseal(Kind.GATE, self.key, data, keys=self._seals)
        except BlockError as error:
            _log.info("a gate's record cannot be opened: %s", error)
            return None
        self._versions.seen(self.key, version)
        return bytes(body)
