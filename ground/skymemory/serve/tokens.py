"""Token ids of requests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jinja2

from skymemory.prompt.prompts import Prompt, token_list
from skymemory.serve.errors import ApiError
from skymemory.serve.requests import ChatMessage

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_CHARACTERS_PER_TOKEN_MAX = 16
"""Most characters of a token: no text has so many on average; single tokens do, such as long runs of spaces."""


class RequestTokens:
    """Tokens of prompts and chats, for one model. For one thread: tokenizers are not made for several."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocabulary: int, context_tokens: int) -> None:
        """Measure the tokenizer.

        Args:
            vocabulary: Number of token ids of the model, which begin at 0.
            context_tokens: Most tokens of prompt and answer together.
        """
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._context_tokens = context_tokens
        longest = max(map(len, tokenizer.get_vocab()), default=1)
        self._characters_per_token = min(longest, _CHARACTERS_PER_TOKEN_MAX)

    def completion(self, prompts: Sequence[str | list[int]]) -> list[list[int]]:
        """Return the token ids of each prompt.

        Raises:
            ApiError: A prompt has no token, a token id that the model does not have, or too long a text.
        """
        for one in prompts:
            if isinstance(one, str):
                self._check_length(len(one), "prompt")
        return [self._tokens(one, "prompt") for one in prompts]

    def text(self, prompt: str | list[int]) -> str:
        """Return a prompt as it is echoed."""
        if isinstance(prompt, str):
            return prompt
        text = self._tokenizer.decode(prompt, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def chat(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the token ids of a chat, up to where the answer begins.

        Raises:
            ApiError: The tokenizer has no chat template, its template refuses the messages, or they are too long.
        """
        self._check_length(sum(len(part.text) for message in messages for part in message.content), "messages")
        if not self._tokenizer.chat_template:
            raise ApiError(
                "the model's tokenizer has no chat template; use /v1/completions", param="messages", code="no_chat_template"
            )
        try:
            ids: Any = self._tokenizer.apply_chat_template(
                [message.for_template() for message in messages], add_generation_prompt=True, return_dict=False
            )
        except (jinja2.TemplateError, ValueError, TypeError) as error:
            raise ApiError(f"messages: the model's chat template refuses them: {error}", param="messages") from error
        return self._tokens(ids, "messages")

    def room(self, prompts: Sequence[Sequence[int]], max_tokens: int | None, param: str) -> int:
        """Return how many tokens an answer may have.

        Args:
            max_tokens: Tokens that were asked for; None: as many as fit.
            param: Parameter that the prompts came in.
        """
        longest = max(map(len, prompts))
        wanted = 1 if max_tokens is None else max_tokens
        if longest + wanted > self._context_tokens:
            raise ApiError(
                f"the model's context is {self._context_tokens:,} tokens; the prompt has {longest:,} and the answer was to have "
                f"{'at least ' if max_tokens is None else ''}{wanted:,}",
                param=param,
                code="context_length_exceeded",
            )
        return self._context_tokens - longest if max_tokens is None else max_tokens

    def _check_length(self, characters: int, param: str) -> None:
        """Refuse a text that cannot fit the context before the tokenizer reads it: it may take a minute for a few MB."""
        allowed = self._characters_per_token * self._context_tokens
        if characters > allowed:
            raise ApiError(
                f"{param}: {characters:,} characters; allowed are {allowed:,}, {self._characters_per_token} for each of the "
                f"{self._context_tokens:,} tokens of the model's context",
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


def context_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the number of tokens that a model was made for; practically no limit if it does not say."""
    of_model = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return int(of_model or min(tokenizer.model_max_length, sys.maxsize))
