"""Texts of prompts that were seen before, and the segments that they have become.

A text that comes once would cost a segment that is computed beside the prompt, a put and a look-up, and give nothing back. So a
text becomes a segment when it comes for the second time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final

SEEN_MAX: Final = 4096
"""Most texts that are remembered. If there are more, those that were seen longest ago are forgotten."""
AGAIN_S: Final = 60.0
"""Seconds for which a segment that the sky lacks is not stored again: a sky that is too small would lose it each time."""


@dataclass(slots=True)
class _Text:
    segment: str = ""
    """Id of its segment; empty if there is none."""
    stays_until_s: float = 0.0
    """Time until which the segment is taken for granted."""
    lacks_until_s: float = 0.0
    """Time until which it is not stored again though the sky lacks some of it."""


class SeenTexts:
    """Texts of one API key, by digests of them. Thread-safe."""

    def __init__(self, most: int = SEEN_MAX, clock: Callable[[], float] = monotonic) -> None:
        """Begin with none.

        Args:
            most: Most texts that are remembered.
            clock: Returns the time in seconds.
        """
        self._most = most
        self._clock = clock
        self._texts: OrderedDict[bytes, _Text] = OrderedDict()
        self._lock = Lock()

    def see(self, digest: bytes) -> bool:
        """Note that a text is seen, and return True if it was seen before."""
        with self._lock:
            is_known = digest in self._texts
            self._texts.setdefault(digest, _Text())
            self._texts.move_to_end(digest)
            if len(self._texts) > self._most:
                self._texts.popitem(last=False)
            return is_known

    def segment(self, digest: bytes) -> str:
        """Return the id of a text's segment; empty if it is to be stored, again or for the first time."""
        with self._lock:
            text = self._texts.get(digest, _Text())
            return text.segment if self._clock() < text.stays_until_s else ""

    def stored(self, digest: bytes, segment: str, stays_s: float) -> None:
        """Note that a text's segment is in the sky, and need not be stored again for so many seconds."""
        with self._lock:
            now_s = self._clock()
            if digest in self._texts:
                self._texts[digest] = _Text(segment, now_s + stays_s, now_s + AGAIN_S)

    def lack(self, segments: Collection[str]) -> None:
        """Note that the sky did not give all of some segments: they are stored again, but not at once."""
        with self._lock:
            for text in self._texts.values():
                if text.segment in segments:
                    text.stays_until_s = min(text.stays_until_s, text.lacks_until_s)
