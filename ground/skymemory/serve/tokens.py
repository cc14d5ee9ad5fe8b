"""Token ids of requests."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import jinja2

from skymemory.prompt.prompts import Prompt, plain_tokens, token_list, tokens_in_front
from skymemory.segments.layout import SegmentId
from skymemory.serve.errors import ApiError
from skymemory.serve.requests import CachedContentPart, ChatMessage, Part

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_CHARACTERS_PER_TOKEN_MAX = 16
"""Most characters of a token: no text has so many on average; single tokens do, such as long runs of spaces."""
SEGMENTS_MAX = 64
"""Most segments in the prompts of a request."""
CHARACTERS_MAX = 1 << 21
"""Most characters of several prompts of a request together: a tokenizer may take seconds for so many."""
_SENTINEL_BYTES = 16
"""Random bytes of the words that stand for segments in a chat template, so that no text of a client has them."""


@dataclass(frozen=True, slots=True)
class NewSegment:
    """Tokens of a prompt that are to become a segment."""

    tokens: list[int]


PromptPiece: TypeAlias = list[int] | NewSegment | SegmentId
"""Piece of a prompt: tokens that are computed, or a segment."""


class RequestTokens:
    """Tokens of prompts and chats, for one model. For one thread: tokenizers are not made for several."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, vocabulary: int, context_tokens: int, segment_separator: str | None = None
    ) -> None:
        """Measure the tokenizer.

        Args:
            vocabulary: Number of token ids of the model, which begin at 0.
            context_tokens: Most tokens of prompt and answer together.
            segment_separator: Text around the segments of a completion's prompt; None: there are none.
        """
        self._separator = segment_separator
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._context_tokens = context_tokens
        longest = max(map(len, tokenizer.get_vocab()), default=1)
        self._characters_per_token = min(longest, _CHARACTERS_PER_TOKEN_MAX)

    def copy(self) -> RequestTokens:
        """Return one for another thread."""
        return deepcopy(self)

    def completion(self, prompts: Sequence[str | list[int]], max_tokens: int) -> list[list[PromptPiece]]:
        """Return the pieces of each prompt. Between two separators stands a segment; separators are left out.

        Args:
            prompts: Prompts as text or token ids.
            max_tokens: Tokens that were asked for.

        Raises:
            ApiError: A prompt has no token, a token id that the model does not have, too long a text, or a separator in a word,
                or is too long, or the prompts have too many segments or characters.
        """
        texts = [one for one in prompts if isinstance(one, str)]
        for one in prompts:
            if isinstance(one, str):
                self._check_length(len(one), "prompt")
            else:
                self._check_tokens(len(one), "prompt")
        characters = sum(map(len, texts))
        if len(texts) > 1 and characters > CHARACTERS_MAX:
            raise ApiError(
                f"prompt: {characters:,} characters in {len(texts)} prompts; allowed are {CHARACTERS_MAX:,} in several prompts",
                param="prompt",
                code="too_many_characters",
            )
        if self._separator is not None:
            _check_segments(sum(max(0, one.count(self._separator) - 1) for one in texts), "prompt")
        found = []
        for one in prompts:
            pieces = self._completion(one)
            self.room([sum(len(tokens_of(piece)) for piece in pieces)], max_tokens, "prompt")  # before the next one takes time
            found.append(pieces)
        return found

    def _completion(self, prompt: str | list[int]) -> list[PromptPiece]:
        separator = self._separator
        if not isinstance(prompt, str) or separator is None or separator not in prompt:
            return [self._tokens(prompt, "prompt")]
        texts = prompt.split(separator)
        for before, after in pairwise(texts):
            _check_between_words(before, separator, after)
        pieces: list[PromptPiece] = [[*tokens_in_front(self._tokenizer), *self.plain(texts[0], "prompt")]]
        pieces += [NewSegment(self.plain(text, "prompt")) for text in texts[1:-1] if text]
        pieces.append(self.plain(texts[-1], "prompt"))
        return _with_tokens(pieces, "prompt")

    def text(self, prompt: str | list[int]) -> str:
        """Return a prompt as it is echoed: as the model sees it."""
        if isinstance(prompt, str):
            return prompt if self._separator is None else prompt.replace(self._separator, "")
        text = self._tokenizer.decode(prompt, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def plain(self, content: str | list[int], param: str) -> list[int]:
        """Return the token ids of a content without special tokens; there may be none.

        Raises:
            ApiError: The text is too long, or the model does not have a token id.
        """
        if isinstance(content, str):
            self._check_length(len(content), param)
            content = plain_tokens(content, self._tokenizer)
        else:
            self._check_tokens(len(content), param)
        try:
            return token_list(content, self._tokenizer, self._vocabulary)
        except ValueError as error:
            raise ApiError(f"{param}: {error}", param=param) from error

    def segment(self, content: str | list[int]) -> list[int]:
        """Return the token ids of a segment.

        Raises:
            ApiError: It has no token, a token id that the model does not have, or more tokens than the model's context.
        """
        tokens = self.plain(content, "contents")
        if not tokens:
            raise ApiError("contents: there is no token in it; at least one is needed", param="contents")
        self._check_tokens(len(tokens), "contents")
        return tokens

    def chat(self, messages: Sequence[ChatMessage]) -> list[PromptPiece]:
        """Return the pieces of a chat, up to where the answer begins.

        Where segments stand, the chat template is given a random word for each. What it makes of the rest is cut at these words.

        Raises:
            ApiError: The tokenizer has no chat template, its template refuses the messages, does not leave each segment once and
                in order, or they are too long or have too many segments.
        """
        _check_segments(sum(part.is_segment for message in messages for part in message.content), "messages")
        self._check_length(sum(message.characters for message in messages), "messages")
        if not self._tokenizer.chat_template:
            raise ApiError(
                "the model's tokenizer has no chat template; use /v1/completions", param="messages", code="no_chat_template"
            )
        if any(message.tool_calls for message in messages) and "tool_calls" not in str(self._tokenizer.chat_template):
            raise ApiError(
                "messages: the model's chat template does not show tool_calls, so the answer would not know of them",
                param="messages",
                code="unsupported_parameter",
            )
        parts: dict[str, Part] = {}
        mark = f"segment{secrets.token_hex(_SENTINEL_BYTES)}"

        def shown(part: Part) -> str:
            if not part.is_segment:
                return part.shown
            parts[word := f"{mark}{len(parts):02}"] = part
            return word

        given = [message.for_template(shown) for message in messages]
        if not parts:
            return [self._tokens(self._rendered(given, tokenize=True), "messages")]
        return _with_tokens(self._cut(self._rendered(given, tokenize=False), mark, parts), "messages")

    def _rendered(self, messages: list[dict[str, Any]], *, tokenize: bool) -> Any:
        try:
            return self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False, tokenize=tokenize)
        except (jinja2.TemplateError, ValueError, TypeError) as error:
            raise ApiError(f"messages: the model's chat template refuses them: {error}", param="messages") from error

    def _cut(self, text: str, mark: str, parts: dict[str, Part]) -> list[PromptPiece]:
        """Return the pieces of a rendered chat with a word for each segment, which begins with the mark."""
        *cut, rest = re.split(f"({mark}[0-9]{{2}})", text)  # one pass, however many segments there are
        if cut[1::2] != list(parts):
            raise ApiError(
                "messages: the model's chat template does not leave each segment where it stands, once and in order; send these "
                "messages as text",
                param="messages",
                code="segments_misplaced",
            )
        pieces: list[PromptPiece] = []
        for before, part in zip(cut[::2], parts.values(), strict=True):
            pieces.append(self.plain(before, "messages"))
            if isinstance(part, CachedContentPart):
                pieces.append(SegmentId(part.id))
            else:
                pieces.append(NewSegment(self.plain(part.text, "messages")))
        return [*pieces, self.plain(rest, "messages")]

    def room(self, lengths: Sequence[int], max_tokens: int | None, param: str) -> int:
        """Return how many tokens an answer may have.

        Args:
            lengths: Tokens of each prompt.
            max_tokens: Tokens that were asked for; None: as many as fit.
            param: Parameter that the prompts came in.
        """
        longest = max(lengths)
        wanted = 1 if max_tokens is None else max_tokens
        if longest + wanted > self._context_tokens:
            least = "at least " if max_tokens is None else ""
            raise self._too_long(f"{longest} tokens, and the answer was to have {least}{wanted}", param)
        return self._context_tokens - longest if max_tokens is None else max_tokens

    def _check_tokens(self, tokens: int, param: str) -> None:
        """Refuse token ids that cannot fit the context before each of them is looked at."""
        if tokens >= self._context_tokens:
            raise self._too_long(f"{tokens} tokens, and the answer needs one", param)

    def _check_length(self, characters: int, param: str) -> None:
        """Refuse a text that cannot fit the context before the tokenizer reads it: it may take a minute for a few MB."""
        allowed = self._characters_per_token * self._context_tokens
        if characters > allowed:
            each = self._characters_per_token
            raise self._too_long(f"{characters} characters; allowed are {allowed}, {each} for each token", param)

    def _too_long(self, what: str, param: str) -> ApiError:
        """Return the error of a prompt that is too long. Clients know it by the code, and by words of these.

        LiteLLM looks for those before the first number, LangChain for "prompt is too long".
        """
        return ApiError(
            f"This model's maximum context length is {self._context_tokens} tokens, and the prompt is too long for it: "
            f"{param} has {what}",
            param=param,
            code="context_length_exceeded",
        )

    def _tokens(self, prompt: Prompt, param: str) -> list[int]:
        try:
            tokens = token_list(prompt, self._tokenizer, self._vocabulary)
        except ValueError as error:
            raise ApiError(f"{param}: {error}", param=param) from error
        if not tokens:
            raise ApiError(f"{param}: there is no token in it; at least one is needed", param=param)
        return tokens


def tokens_of(piece: PromptPiece) -> list[int]:
    """Return the tokens of a piece; none of a segment of which only the id is known."""
    if isinstance(piece, SegmentId):
        return []
    return piece.tokens if isinstance(piece, NewSegment) else piece


def _with_tokens(pieces: Sequence[PromptPiece], param: str) -> list[PromptPiece]:
    """Return the pieces that have tokens, in one piece if there is no segment. One of which only the id is known has some."""
    left = [
        piece for piece in pieces if isinstance(piece, SegmentId) or (piece.tokens if isinstance(piece, NewSegment) else piece)
    ]
    if not left:
        raise ApiError(f"{param}: there is no token in it; at least one is needed", param=param)
    if all(isinstance(piece, list) for piece in left):
        return [[token for piece in left for token in tokens_of(piece)]]
    return left


def _check_segments(count: int, param: str) -> None:
    if count > SEGMENTS_MAX:
        raise ApiError(f"{param}: {count:,} segments; allowed are {SEGMENTS_MAX}", param=param, code="too_many_segments")


def _check_between_words(before: str, separator: str, after: str) -> None:
    """Refuse a separator in a word: without white space at its ends, between two letters or digits."""
    if before[-1:].isalnum() and after[:1].isalnum() and not separator[0].isspace() and not separator[-1].isspace():
        raise ApiError(
            f"prompt: a segment separator stands in a word ({before[-10:]}{separator}{after[:10]}); it is allowed between words",
            param="prompt",
            code="separator_in_word",
        )


def context_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the number of tokens that a model was made for; practically no limit if it does not say."""
    of_model = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return int(of_model or min(tokenizer.model_max_length, sys.maxsize))
