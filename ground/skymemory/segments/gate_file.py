"""Files of a gate: the record of a model's evidence, which outlives a program, and the name under which a program counts.

A record is a file in the state folder, for a tenant and a model. It is replaced whole, and all programs of the host that have
the tenant secret share it.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from stat import S_ISREG
from typing import Final
from weakref import finalize

from skymemory.common.file_lock import BusyError, turn
from skymemory.common.state_folder import make_folders
from skymemory.common.whole_file import write_whole
from skymemory.segments.evidence import read_record
from skymemory.segments.gate import Gate

_log = logging.getLogger(__name__)

RECORDS: Final = "gate-*.json"
"""Pattern of the names of records."""
NAMES_MAX: Final = 64
"""Most programs of a host that count at the same time under names that are kept."""
RECORD_BYTES_MAX: Final = 1 << 24
"""Most bytes of a record that is read."""
_PATIENCE_S: Final = 10.0
_NAME: Final = re.compile(rb"[0-9a-f]{16}")


def read_file(path: Path) -> bytes:
    """Return the text of a record.

    Raises:
        OSError: It cannot be read.
        ValueError: It is too long, or no file.
    """
    status = path.stat()
    if not S_ISREG(status.st_mode) or status.st_size > RECORD_BYTES_MAX:
        raise ValueError(f"it is no file of at most {RECORD_BYTES_MAX:,} bytes")
    return path.read_bytes()


class GateFile:
    """The record of one model's evidence. What is wrong with the file is logged and does not raise."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Use a file, which is made when there is evidence.

        Args:
            path: The file.
            fingerprint: Fingerprint of the model, in hex.
        """
        self._path = path
        self._fingerprint = fingerprint
        self._seen: tuple[int, ...] = ()
        self.why = ""
        """Reason why the file's evidence is not used; "" if it is, or if there is no file."""

    def look(self, gate: Gate) -> None:
        """Have a gate join what was written since the last look."""
        try:
            status = self._path.stat()
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            if seen == self._seen:
                return
            self._seen = seen  # before it is read: what comes meanwhile is seen by the next look
            self._joined(gate, read_file(self._path))
            self.why = ""
        except FileNotFoundError:
            self.why = ""
        except (OSError, ValueError) as error:
            self.why = f"the gate's record {self._path} cannot be used: {error}"
            _log.warning("%s", self.why)

    def keep(self, gate: Gate) -> None:
        """Have a gate join what is in the file, then replace the file by all evidence. A damaged file is begun anew."""
        try:
            make_folders(self._path.parent)
            with turn(self._path.with_suffix(".lock"), "the gate's record", _PATIENCE_S, _log.info):
                self.look(gate)
                write_whole(self._path, gate.record(self._fingerprint, shared=False))
        except (OSError, BusyError) as error:
            _log.warning("the gate's record %s cannot be written: %s", self._path, error)

    def _joined(self, gate: Gate, text: bytes) -> None:
        if (found := read_record(text).fingerprint) != self._fingerprint:
            raise ValueError(f"it is of the model {found[:16]}, not of {self._fingerprint[:16]}")
        gate.join(text)


class HostName:
    """A name that no other program of this state folder counts under at the same time.

    A name is used again by later programs, so that records do not grow with each start. It is free again when the program has
    ended, however it did.

    Attributes:
        text: The name.
    """

    def __init__(self, folder: Path) -> None:
        """Take the first free name of a folder. Where nothing can be written, the name is for this program only."""
        self.text = secrets.token_hex(8)
        with suppress(OSError):
            make_folders(folder)
            for number in range(NAMES_MAX):
                descriptor = os.open(folder / f"gate-name-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                release = finalize(self, os.close, descriptor)
                try:
                    flock(descriptor, LOCK_EX | LOCK_NB)
                except BlockingIOError:
                    release()
                    continue
                known = os.pread(descriptor, 16, 0)
                if _NAME.fullmatch(known):
                    self.text = known.decode()
                else:
                    os.pwrite(descriptor, self.text.encode(), 0)
                return
