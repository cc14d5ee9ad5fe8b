"""A client of `skymem serve` that uses segments."""

from __future__ import annotations

import json
from typing import Any

from support.served import Response, Server


class SegmentClient:
    """A client of one API key, and of the model `babbler`."""

    def __init__(self, server: Server, key: str = "no key") -> None:
        self.server = server
        self.key = key
        self.openai = server.client_of(key)

    def send(self, method: str, path: str = "", body: Any = None) -> Response:
        data = None if body is None else json.dumps(body).encode()
        path = path if path.startswith("/v1/") else f"/v1/cached_contents{path}"
        return self.server.request(path, data, method=method, Authorization=f"Bearer {self.key}")

    def add(self, contents: Any, **more: Any) -> Any:
        answer = self.send("POST", body={"model": "babbler", "contents": contents, **more})
        assert answer.status == 200, answer.text
        return answer.json

    def chat(self, *parts: Any, **more: Any) -> Any:
        content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        settings = {"max_tokens": 24, "temperature": 0, **more}
        messages = [{"role": "user", "content": content}]
        return self.openai.chat.completions.create(model="babbler", messages=messages, **settings)

    def show(self, *texts: str) -> None:
        """Send texts, which become segments when they are sent again."""
        self.chat(*map(segment, texts), max_tokens=1)

    def complete(self, prompt: str, **more: Any) -> Any:
        settings = {"max_tokens": 24, "temperature": 0, **more}
        return self.openai.completions.create(model="babbler", prompt=prompt, **settings)


def segment(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "segment": True}


def cached_content(added: Any) -> dict[str, Any]:
    return {"type": "cached_content", "id": added["id"]}


def details(usage: Any) -> tuple[int, int, int]:
    """Return the numbers of cached, linked and recomputed tokens."""
    given = usage.prompt_tokens_details
    return given.cached_tokens, given.linked_tokens, given.recomputed_tokens


def text_of(answer: Any) -> str:
    return answer.choices[0].message.content
