"""Tokens and prompts with segments for tests of `skymem serve` without HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skymemory.segments.layout import LaidOut
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import PromptPiece

KEY: Final = b"k" * 32
"""Scope of one API key."""


def tokens_of(first: int, count: int) -> list[int]:
    return [(first + 7 * index) % 90 for index in range(count)]


def front_of(number: int) -> list[int]:
    """40 tokens that begin no other test's prompt: two blocks and a half."""
    return [number, *tokens_of(number, 39)]


DOCUMENT = tokens_of(5, 50)
QUESTION = tokens_of(11, 30)


def lay_out_again(segments: ServedSegments, pieces: Sequence[PromptPiece], scope: bytes, **more: Any) -> LaidOut:
    """Lay out a prompt whose texts were seen before."""
    segments.lay_out(pieces, scope, "messages")
    return segments.lay_out(pieces, scope, "messages", **more)
