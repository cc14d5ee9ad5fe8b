"""This host's segments: a file in the state folder, that its programs share.

The file is a help for people and for housekeeping. If it is lost, ids still resolve.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from skymemory.common.file_lock import BusyError, turn
from skymemory.common.secret_files import FOLDER_MODE
from skymemory.common.whole_file import write_whole

_log = logging.getLogger(__name__)

_PATIENCE_S: Final = 10.0
SEGMENTS_MAX: Final = 4096
"""Most segments of the list. If there are more, those that were put first are left out."""


class Segment(Struct, frozen=True, kw_only=True):
    """Entry of the list: all of a segment but its tokens."""

    id: str
    tokens: int
    """Number of tokens."""
    size_bytes: int
    """Bytes of all blocks."""
    sinks: int
    codec: str
    created_unix_ms: int
    expires_unix_ms: int
    """Time at which the segment expires, in milliseconds since 1970; 0 if it never does."""
    display_name: str
    beginning: str
    """Name for the segment's first block: segments that share blocks have the same one."""
    version: int
    """Version of the manifest."""
    fingerprint: str = ""
    """Digest of model and tokenizer, hexadecimal."""

    def is_over(self, now_unix_ms: int) -> bool:
        """Return True if the segment has expired."""
        return 0 < self.expires_unix_ms <= now_unix_ms


_DECODER: Final = msgspec.json.Decoder(list[Segment])


class HostList:
    """The list of one tenant's segments. Errors of the file are logged and do not raise."""

    def __init__(self, path: Path) -> None:
        """Use a file, which is made when the first segment is added."""
        self._path = path

    def read(self) -> list[Segment]:
        """Return the segments, the one that was put first first."""
        try:
            return _DECODER.decode(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("the list of segments %s cannot be read: %s", self._path, error)
            return []

    def add(self, segment: Segment) -> None:
        """Add a segment, or replace what is known of it."""
        self._change(lambda known: [one for one in known if one.id != segment.id] + [segment])

    def remove(self, segment: str) -> None:
        """Leave out the segment of an id."""
        if any(one.id == segment for one in self.read()):
            self._change(lambda known: [one for one in known if one.id != segment])

    def _change(self, change: Callable[[list[Segment]], list[Segment]]) -> None:
        try:
            with self._turn():
                write_whole(self._path, msgspec.json.encode(change(self.read())[-SEGMENTS_MAX:]))
        except (OSError, BusyError) as error:
            _log.warning("the list of segments %s cannot be written: %s", self._path, error)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with turn(self._path.with_suffix(".lock"), "list of segments", _PATIENCE_S, _log.info):
            yield
