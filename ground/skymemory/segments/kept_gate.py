"""`KeptGate`: the gate of a host, whose evidence is kept in files and shared through the sky.

What one program of the host has written, the others see with their next prompt. What other hosts have shared is taken when a
program first asks about a model, in a thread of its own, and with each record that is shared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple

from skymemory.common.state_folder import default_folder
from skymemory.segments.gate import Gate
from skymemory.segments.gate_file import GateFile, HostName
from skymemory.segments.gate_in_sky import GateInSky
from skymemory.store.block_store import BlockStore

_log = logging.getLogger(__name__)


class _Places(NamedTuple):
    """Places of a model's record."""

    file: GateFile
    sky: GateInSky


class KeptGate:
    """Evidence of all models that a program uses. Thread-safe; nothing that happens to files or in the sky raises.

    Attributes:
        gate: The gate.
    """

    def __init__(self, store: Callable[[], BlockStore], tenant_secret: bytes, folder: Path | None = None) -> None:
        """Take a name to count under.

        Args:
            store: Returns the store, which may be replaced by another one.
            tenant_secret: Secret of the tenant.
            folder: Folder of the records; the state folder by default.
        """
        self._store = store
        self._tenant_secret = tenant_secret
        self._folder = folder or default_folder()
        self._name = HostName(self._folder)
        self.gate = Gate(self._name.text)
        self._lock = Lock()
        self._places: dict[bytes, _Places] = {}

    def look(self, fingerprint: bytes) -> str:
        """Join what other programs of this host have written about a model, without a wait for the sky.

        Returns:
            The reason why the host's record cannot be used, or ''.
        """
        with self._lock:
            is_new = fingerprint not in self._places
            places = self._of(fingerprint)
            places.file.look(self.gate)
            why = places.file.why
        if is_new:
            Thread(target=self._begin, args=(places,), name="skymem-gate", daemon=True).start()
        return why

    def take(self, fingerprint: bytes) -> None:
        """Join what other hosts have shared about a model. A sky that is silent gives nothing."""
        with self._lock:
            places = self._of(fingerprint)
        places.sky.take(self._store(), self.gate)

    def keep(self, fingerprint: bytes) -> None:
        """Write the evidence of a model to the host's file, then share it through the sky, and keep what came from there."""
        with self._lock:
            places = self._of(fingerprint)
            places.file.keep(self.gate)
        before = self.gate.record(fingerprint.hex(), shared=True)
        places.sky.share(self._store(), self.gate)
        if self.gate.record(fingerprint.hex(), shared=True) != before:
            with self._lock:
                places.file.keep(self.gate)

    def _begin(self, places: _Places) -> None:
        try:
            if places.sky.take(self._store(), self.gate):
                with self._lock:
                    places.file.keep(self.gate)
        except Exception:  # a record never breaks a program
            _log.exception("the gate's record could not be taken")

    def _of(self, fingerprint: bytes) -> _Places:
        if fingerprint not in self._places:
            sky = GateInSky(self._tenant_secret, fingerprint)
            name = f"gate-{sky.public_name[:8].hex()}.json"
            self._places[fingerprint] = _Places(GateFile(self._folder / name, fingerprint.hex()), sky)
        return self._places[fingerprint]
