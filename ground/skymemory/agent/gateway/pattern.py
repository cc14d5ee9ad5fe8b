"""Patterns of names, as Redis has them: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a character that means itself."""

from typing import Final

from skymemory.agent.gateway.replies import CommandError

PATTERN_BYTES_MAX: Final = 1024
"""Length of a pattern: matching takes time in proportion, and all other clients wait."""
_STAR: Final = None
_ANY: Final = frozenset(range(256))


class Pattern:
    """A pattern that matches in time proportional to pattern times name, whatever the pattern."""

    def __init__(self, pattern: bytes) -> None:
        """Read a pattern.

        Raises:
            CommandError: It is too long.
        """
        if len(pattern) > PATTERN_BYTES_MAX:
            raise CommandError(f"ERR pattern of {len(pattern):,} bytes; allowed are 0 to {PATTERN_BYTES_MAX:,}")
        self._tokens: list[frozenset[int] | None] = []
        at = 0
        while at < len(pattern):
            at = self._take(pattern, at)

    def matches(self, name: bytes) -> bool:
        """Return whether all of a name matches."""
        tokens = self._tokens
        at = token = 0
        star, resume = -1, 0
        while at < len(name):
            one = tokens[token] if token < len(tokens) else frozenset()
            if one is _STAR:
                star, resume = token, at
                token += 1
            elif name[at] in one:
                at, token = at + 1, token + 1
            elif star >= 0:  # the last star takes one more
                resume += 1
                at, token = resume, star + 1
            else:
                return False
        return all(one is _STAR for one in tokens[token:])

    def _take(self, pattern: bytes, at: int) -> int:
        one = pattern[at : at + 1]
        if one == b"*":
            if self._tokens[-1:] != [_STAR]:
                self._tokens.append(_STAR)
        elif one == b"?":
            self._tokens.append(_ANY)
        elif one == b"[":
            return self._take_set(pattern, at + 1)
        else:
            at += one == b"\\" and at + 1 < len(pattern)
            self._tokens.append(frozenset(pattern[at : at + 1]))
        return at + 1

    def _take_set(self, pattern: bytes, at: int) -> int:
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
        self._tokens.append(_ANY - found if negated else frozenset(found))
        return at + 1
