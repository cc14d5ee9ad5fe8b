"""This host's segments: a file in the state folder, that its programs share.

The file is a help for people and for housekeeping. If it is lost, ids still resolve.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

from skymemory.common.kept_list import KeptList

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


class HostList(KeptList[Segment]):
    """The list of one tenant's segments. Errors of the file are logged and do not raise."""

    def __init__(self, path: Path) -> None:
        """Use a file, which is made when the first segment is added."""
        super().__init__(path, Segment, lambda segment: segment.id, SEGMENTS_MAX, "list of segments")
