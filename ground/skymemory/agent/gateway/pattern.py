"""Patterns of names, as Redis has them: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a character that means itself."""

from collections.abc import Collection
from typing import Final

from skymemory.agent.gateway.replies import CommandError

PATTERN_BYTES_MAX: Final = 1024
"""Length of a pattern: a byte of a name takes time in proportion to it, though little, and all other clients wait."""
_BYTES: Final = frozenset(range(256))


class Pattern:
    """A pattern that reads each byte of a name once: it keeps the set of all places that it may have reached, as bits.

    Place n lies behind n characters of the pattern. A star is no character: it lets a place stay reached.
    """

    def __init__(self, pattern: bytes) -> None:
        """Read a pattern.

        Raises:
            CommandError: It is too long.
        """
        if len(pattern) > PATTERN_BYTES_MAX:
            raise CommandError(f"ERR pattern of {len(pattern):,} bytes; allowed are 0 to {PATTERN_BYTES_MAX:,}")
        self._goes = [0] * 256  # by byte of the name: places from which it leads to the next one
        self._stays = 0  # places at a star
        self._end = 1  # the last place
        at, goes_always = 0, 0
        while at < len(pattern):
            one = pattern[at : at + 1]
            if one == b"*":
                self._stays |= self._end
            elif one == b"?":
                goes_always |= self._end
                self._end <<= 1
            elif one == b"[":
                at = self._take_set(pattern, at + 1)
            else:
                at += one == b"\\" and at + 1 < len(pattern)
                self._take(pattern[at : at + 1])
            at += 1
        if goes_always:
            self._goes = [places | goes_always for places in self._goes]
        self._enough = self._end if self._stays & self._end else self._end << 1  # more than this: whatever follows

    def matches(self, name: bytes) -> bool:
        """Return whether all of a name matches."""
        goes, stays, enough = self._goes, self._stays, self._enough
        places = 1
        for byte in name:
            places = (places & goes[byte]) << 1 | places & stays
            if not 0 < places < enough:
                return places > 0
        return places & self._end > 0

    def _take(self, characters: Collection[int]) -> None:
        """Let the next character be one of these."""
        for one in characters:
            self._goes[one] |= self._end
        self._end <<= 1

    def _take_set(self, pattern: bytes, at: int) -> int:
        """Take what stands behind `[`; return the place of `]`."""
        negated = pattern[at : at + 1] == b"^"
        at += negated
        found: set[int] = set()
        while at < len(pattern) and pattern[at : at + 1] != b"]":
            if pattern[at : at + 1] == b"\\" and at + 1 < len(pattern):
                found.add(pattern[at + 1])
                at += 2
            elif pattern[at + 1 : at + 2] == b"-" and at + 2 < len(pattern):
                first, last = sorted((pattern[at], pattern[at + 2]))
                found.update(range(first, last + 1))
                at += 3
            else:
                found.add(pattern[at])
                at += 1
        self._take(_BYTES - found if negated else found)
        return at
