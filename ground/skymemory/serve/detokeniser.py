"""Text of tokens as they come, and where it ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_UNFINISHED = "\ufffd"
"""Character that decoders write for bytes that are no character, or not yet."""
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""Token that stands for a byte, in vocabularies that fall back to bytes."""


def decoded(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Return the text of an answer."""
    text = tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


class Detokeniser:
    """Splits the text of an answer into pieces while its tokens come.

    The pieces joined are the text of all tokens. What a token adds depends on those before it: a decoder drops the first space,
    and characters are spread over tokens. So tokens are decoded behind those of the last piece, and a piece ends where a
    character does. A run of bytes in a vocabulary with byte tokens is one piece: one wrong byte changes all of it.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        """Tokens of the last piece, then those that are in no piece yet."""
        self._told_tokens = 0
        self._told = ""
        self._in_run = False

    def add(self, token: int) -> str:
        """Return the piece that is finished with this token, often ''."""
        self._tokens.append(token)
        # A token without text, such as a special one, does not end a run of tokens.
        is_byte = _BYTE.fullmatch(str(self._tokenizer.convert_ids_to_tokens(token))) is not None
        self._in_run = is_byte or (self._in_run and not decoded(self._tokenizer, [token]))
        if self._in_run:
            return ""
        text = decoded(self._tokenizer, self._tokens)
        if len(text) <= len(self._told) or text.endswith(_UNFINISHED):
            return ""
        piece = text[len(self._told) :]
        del self._tokens[: self._told_tokens]
        self._told_tokens = len(self._tokens)
        self._told = decoded(self._tokenizer, self._tokens)
        return piece

    def end(self) -> str:
        """Return the last piece: the text that no further token can change."""
        piece = decoded(self._tokenizer, self._tokens)[len(self._told) :]
        self._tokens, self._told_tokens, self._told, self._in_run = [], 0, "", False
        return piece


class StopStrings:
    """Cuts a text that comes in pieces before the first stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        """End of the text, which may be the beginning of a stop string."""

    def add(self, piece: str) -> tuple[str, bool]:
        """Return the text that can go out, and True if a stop string has come."""
        text = self._held + piece
        starts = [start for stop in self._stops if (start := text.find(stop)) >= 0]
        if starts:
            self._held = ""
            return text[: min(starts)], True
        begun = (size for stop in self._stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
        cut = len(text) - max(begun, default=0)
        self._held = text[cut:]
        return text[:cut], False

    def end(self) -> str:
        """Return the text that was held back; no more text comes."""
        held, self._held = self._held, ""
        return held
