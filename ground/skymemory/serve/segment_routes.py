"""Routes of segments, in the shape of Gemini's CachedContent."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from aiohttp import web
from pydantic import Field, PlainValidator

from skymemory.segments.directory import TTL_S_MAX
from skymemory.segments.host_list import Segment
from skymemory.segments.manifest import NAME_CHARACTERS_MAX
from skymemory.serve.errors import ApiError
from skymemory.serve.json_body import JsonLimits
from skymemory.serve.requests import Strict, is_tokens, parse
from skymemory.serve.segments import TTL_S, ServedSegments
from skymemory.serve.tokens import RequestTokens

PATH: Final = "/v1/cached_contents"
_TTL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s")
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_CONTENTS: Final = 'allowed are text, token ids, and a list of {"role": "user", "parts": [{"text": "..."}]}'
_JSON: Final = msgspec.json.Encoder()

_T = TypeVar("_T")


def _contents(value: Any) -> str | list[int]:
    """Check contents as text, token ids, or Gemini's `Content` objects with text; raise ValueError."""
    if isinstance(value, str) or is_tokens(value):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, list) or not value:
        raise ValueError(_CONTENTS)
    texts: list[str] = []
    for content in value:
        parts = content.get("parts") if isinstance(content, dict) and content.keys() <= {"role", "parts"} else None
        if not isinstance(parts, list) or content.get("role", "user") != "user":
            raise ValueError(_CONTENTS)
        for part in parts:
            if not isinstance(part, dict) or part.keys() != {"text"} or not isinstance(part["text"], str):
                raise ValueError(_CONTENTS)
            texts.append(part["text"])
    return "\n".join(texts)


def _ttl(value: Any) -> float:
    """Return the seconds of a duration such as `300s`; raise ValueError."""
    if isinstance(value, str) and _TTL.fullmatch(value):
        return float(value[:-1])
    raise ValueError("allowed are seconds with an s behind them, such as 300s")


def _time(value: Any) -> float:
    """Return the Unix time of a time in RFC 3339; raise ValueError."""
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).timestamp()
        except (ValueError, OverflowError):
            pass
    raise ValueError("allowed is a time in RFC 3339, such as 2026-01-31T12:00:00Z")


class _Expiry(Strict):
    ttl: Annotated[float, PlainValidator(_ttl)] | None = None
    """Seconds until it expires."""
    expire_time: Annotated[float, PlainValidator(_time)] | None = None
    """Time at which it expires."""
    display_name: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None

    def ttl_s(self) -> float | None:
        """Return the seconds until it expires; None: neither way of saying it was used.

        Raises:
            ApiError: Both were, or the time is out of range.
        """
        if self.ttl is not None and self.expire_time is not None:
            raise ApiError("ttl and expire_time: allowed is one of them", param="expire_time")
        param = "ttl" if self.expire_time is None else "expire_time"
        ttl_s = self.ttl if self.expire_time is None else self.expire_time - time.time()
        if ttl_s is not None and not 0 < ttl_s <= TTL_S_MAX:
            allowed = f"more than 0 s and up to {TTL_S_MAX:,} s ({TTL_S_MAX // 86_400} days)"
            raise ApiError(f"{param}: it expires {ttl_s:,.0f} s from now; allowed are {allowed}", param=param)
        return ttl_s


class NewCachedContent(_Expiry):
    """`POST /v1/cached_contents`."""

    model: str
    contents: Annotated[str | list[int], PlainValidator(_contents)]


class ChangedCachedContent(_Expiry):
    """`PATCH /v1/cached_contents/ID`."""


class Place(Protocol):
    """Gives what a function makes of a request's body. The request has a place in the queue meanwhile."""

    def __call__(
        self, request: web.Request, read: Callable[[bytes, RequestTokens], _T], /
    ) -> AbstractAsyncContextManager[_T]: ...


class SegmentRoutes:
    """The routes. Each sees the segments of its API key."""

    def __init__(
        self,
        model: str,
        segments: ServedSegments,
        *,
        place: Place,
        scope: Callable[[web.Request], bytes],
        check_model: Callable[[str], None],
        json_limits: JsonLimits,
    ) -> None:
        """Serve the segments of a model.

        Args:
            model: Name of the model for clients.
            segments: The segments.
            place: Gives what a function makes of a request's body. The request has a place in the queue meanwhile.
            scope: Returns the scope of a request's segments.
            check_model: Raises ApiError for the name of a model that is not served.
            json_limits: Limits of bodies.
        """
        self._model = model
        self._segments = segments
        self._place = place
        self._scope = scope
        self._check_model = check_model
        self._json_limits = json_limits

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for aiohttp."""
        one = PATH + "/{id}"
        return [
            web.post(PATH, self._add),
            web.get(PATH, self._list),
            web.get(one, self._get),
            web.patch(one, self._change),
            web.delete(one, self._delete),
        ]

    async def _add(self, request: web.Request) -> web.StreamResponse:
        def read(body: bytes, request_tokens: RequestTokens) -> tuple[NewCachedContent, list[int]]:
            asked = parse(NewCachedContent, body, self._json_limits)
            self._check_model(asked.model)
            asked.ttl_s()  # refused before the tokenizer reads the contents
            return asked, request_tokens.segment(asked.contents)

        async with self._place(request, read) as (asked, tokens):
            given_s = asked.ttl_s()
            ttl_s = TTL_S if given_s is None else given_s
            is_left = threading.Event()
            add = partial(
                self._segments.add, tokens, self._scope(request), ttl_s, asked.display_name or "", cancelled=is_left.is_set
            )
            try:
                segment = await asyncio.get_running_loop().run_in_executor(self._segments.adding, add)
            finally:
                is_left.set()
        return _json(self._shown(segment))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        listed = await self._run(partial(self._segments.listed, self._scope(request)))
        return _json({"cached_contents": [self._shown(segment) for segment in listed]})

    async def _get(self, request: web.Request) -> web.StreamResponse:
        segment = await self._run(partial(self._segments.get, request.match_info["id"], self._scope(request)))
        return _json(self._shown(segment))

    async def _change(self, request: web.Request) -> web.StreamResponse:
        def read(body: bytes, _: RequestTokens) -> ChangedCachedContent:
            asked = parse(ChangedCachedContent, body, self._json_limits)
            if asked.ttl_s() is None and asked.display_name is None:
                raise ApiError("nothing is to be changed; allowed are ttl, expire_time and display_name")
            return asked

        async with self._place(request, read) as asked:
            change = partial(
                self._segments.update,
                request.match_info["id"],
                self._scope(request),
                ttl_s=asked.ttl,
                expires_unix_s=asked.expire_time,
                display_name=asked.display_name,
            )
            segment = await self._run(change)
        return _json(self._shown(segment))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        await self._run(partial(self._segments.expire, request.match_info["id"], self._scope(request)))
        return _json({})

    async def _run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._segments.threads, work)

    def _shown(self, segment: Segment) -> dict[str, Any]:
        expiry = {"expire_time": _shown_time(segment.expires_unix_ms)} if segment.expires_unix_ms else {}
        return {
            "name": f"cached_contents/{segment.id}",
            "id": segment.id,
            "model": self._model,
            "display_name": segment.display_name,
            "create_time": _shown_time(segment.created_unix_ms),
            **expiry,
            "usage_metadata": {"total_token_count": segment.tokens},
        }


def _shown_time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(value: Any) -> web.Response:
    return web.Response(body=_JSON.encode(value), content_type="application/json")
