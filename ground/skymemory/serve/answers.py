"""Answers that clients get: the objects of OpenAI's API."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from skymemory.serve.generation import Begun, Event, Finished, Piece

Kind: TypeAlias = Literal["completion", "chat"]


@dataclass(slots=True)
class Usage:
    """Tokens of a request."""

    prompt_tokens: int
    cached_tokens: int = 0
    """Tokens of the prompt that came from the sky."""
    linked_tokens: int = 0
    """Tokens of linked segments."""
    recomputed_tokens: int = 0
    """Tokens of linked segments that were computed again."""
    completion_tokens: int = 0

    def count(self, event: Event) -> None:
        """Count the tokens of an event."""
        if isinstance(event, Begun):
            self.cached_tokens += event.cached_tokens
            self.linked_tokens += event.linked_tokens
            self.recomputed_tokens += event.recomputed_tokens
        elif isinstance(event, Finished):
            self.completion_tokens += event.tokens

    def as_json(self) -> dict[str, Any]:
        """Return the usage as OpenAI writes it."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {
                "cached_tokens": self.cached_tokens,
                "linked_tokens": self.linked_tokens,
                "recomputed_tokens": self.recomputed_tokens,
            },
        }


@dataclass(slots=True)
class CompletionAnswer:
    """The answer to one request: whole, or chunk by chunk."""

    kind: Kind
    model: str
    usage: Usage
    echoes: list[str]
    """Text before each choice."""
    usage_in_chunks: bool = False
    _head: dict[str, Any] = field(init=False)
    _texts: list[str] = field(init=False)
    _reasons: list[str | None] = field(init=False)
    _begun: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        prefix = "chatcmpl" if self.kind == "chat" else "cmpl"
        self._head = {"id": f"{prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": self.model}
        self._texts = list(self.echoes)
        self._reasons = [None] * len(self.echoes)

    def take(self, event: Event) -> list[dict[str, Any]]:
        """Take in an event, and return the chunks that tell of it."""
        self.usage.count(event)
        if isinstance(event, Piece):
            self._texts[event.choice] += event.text
            return [*self._first(event.choice), self._chunk(event.choice, event.text)]
        if isinstance(event, Finished):
            self._reasons[event.choice] = event.reason
            return [*self._first(event.choice), self._chunk(event.choice, None, event.reason)]
        return []

    def whole(self) -> dict[str, Any]:
        """Return all choices, after all have ended."""
        choices = []
        for index, (text, reason) in enumerate(zip(self._texts, self._reasons, strict=True)):
            content: dict[str, Any] = {"text": text}
            if self.kind == "chat":
                content = {"message": {"role": "assistant", "content": text, "refusal": None}}
            choices.append({"index": index, **content, "logprobs": None, "finish_reason": reason})
        name = "chat.completion" if self.kind == "chat" else "text_completion"
        return {**self._head, "object": name, "choices": choices, "usage": self.usage.as_json()}

    def last_chunk(self) -> dict[str, Any]:
        """Return the chunk with the usage."""
        return self._wrapped([]) | {"usage": self.usage.as_json()}

    def _first(self, choice: int) -> list[dict[str, Any]]:
        if choice in self._begun:
            return []
        self._begun.add(choice)
        if self.kind == "chat":
            delta = {"role": "assistant", "content": "", "refusal": None}
            return [self._wrapped([{"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}])]
        return [self._chunk(choice, self.echoes[choice])] if self.echoes[choice] else []

    def _chunk(self, choice: int, text: str | None, reason: str | None = None) -> dict[str, Any]:
        content: dict[str, Any] = {"text": text or ""}
        if self.kind == "chat":
            content = {"delta": {} if text is None else {"content": text}}
        return self._wrapped([{"index": choice, **content, "logprobs": None, "finish_reason": reason}])

    def _wrapped(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        name = "chat.completion.chunk" if self.kind == "chat" else "text_completion"
        usage = {"usage": None} if self.usage_in_chunks else {}
        return {**self._head, "object": name, "choices": choices, **usage}
