"""Texts that become segments when this program sees them again.

Many documents come once. Computing and storing them as segments would cost more than they ever give back. So the first time a
passage is computed as text, and only a digest of it is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Final

from skymemory.prompt.prompts import Prompt

SEEN_MAX: Final = 4096
"""Most passages that are remembered. If there are more, those that were seen longest ago are forgotten."""
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True)
class Passage:
    """Piece of a prompt that becomes a segment when it is seen for the second time. It has no special tokens.

    Attributes:
        content: Text, token ids, or a tokenizer's result.
        ttl_s: Seconds until the segment expires; it never does by default.
        display_name: A name for people.
    """

    content: Prompt
    ttl_s: float | None = None
    display_name: str = ""


class SeenPassages:
    """Passages that this program has seen, and the ids of those that have become segments. Thread-safe."""

    def __init__(self, most: int = SEEN_MAX) -> None:
        """Begin with none; `most` is how many are remembered."""
        self._most = most
        self._seen: OrderedDict[bytes, str | None] = OrderedDict()
        self._adding: set[bytes] = set()
        self._lock = Lock()

    def segment(self, tokens: Sequence[int], add: Callable[[], str] | None) -> str | None:
        """Note that a passage is seen, and return the id of its segment; None if it is to be computed as text.

        Args:
            tokens: Token ids of the passage.
            add: Function that makes it a segment and returns the id. It is called when the passage is seen again, and not while
                another thread is at it. With None the passage is only noted.
        """
        digest = _digest(tokens)
        with self._lock:
            is_new = digest not in self._seen
            known = self._seen.get(digest)
            self._note(digest, known)
            if is_new or known is not None or add is None or digest in self._adding:
                return known
            self._adding.add(digest)
        try:
            known = add()
        finally:
            with self._lock:
                self._adding.discard(digest)
                self._note(digest, known)
        return known

    def forget(self, tokens: Sequence[int]) -> None:
        """Forget the segment of a passage, because the sky has it no more. It is added when the passage is seen again."""
        with self._lock:
            self._note(_digest(tokens), None)

    def _note(self, digest: bytes, segment: str | None) -> None:
        self._seen[digest] = segment
        self._seen.move_to_end(digest)
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)


def _digest(tokens: Sequence[int]) -> bytes:
    return blake2b(b"".join([token.to_bytes(8) for token in tokens]), digest_size=_DIGEST_BYTES).digest()
