"""HTTP side of the server: routes, keys, errors, streams."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from skymemory.agent.watch.origins import strange_name, strange_name_on_loopback
from skymemory.common.guesses import Guesses, TooManyGuessesError, source_of
from skymemory.segments.layout import LaidOut
from skymemory.serve.answers import CompletionAnswer, Kind, Usage
from skymemory.serve.api_keys import ApiKey, ApiKeys, scope_of
from skymemory.serve.connections import Body, BodyMemoryError, ConnectionLimits, Connections
from skymemory.serve.errors import ApiError, busy, ending, failed
from skymemory.serve.generation import Cancelled, Ended, Event, Finder, Job, Piece
from skymemory.serve.job_queue import JobQueue, QueueFullError
from skymemory.serve.json_body import JsonLimits
from skymemory.serve.lanes import Lanes
from skymemory.serve.metrics import ServeMetrics
from skymemory.serve.parameters import UnknownNames
from skymemory.serve.proxies import TrustedProxies
from skymemory.serve.requests import CHOICES_MAX, ChatRequest, CompletionRequest, parse
from skymemory.serve.sampling import Sampling
from skymemory.serve.segment_routes import SegmentRoutes
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import NewSegment, PromptPiece, RequestTokens, tokens_of

_log = logging.getLogger(__name__)

_API = "/v1/"
_METRICS = "/metrics"
_JSON = msgspec.json.Encoder()
_EVENTS_MAX = 16_384
"""Events of an answer that its client has not taken: one more ends it."""
_WORKS = ("POST", "PATCH")
"""Methods with a body, whose requests the server answers before it ends."""
_KEY = web.RequestKey("api_key", ApiKey)
"""Name under which a request keeps the API key that it came with."""
_UNKNOWN = web.RequestKey("unknown_parameters", UnknownNames)
"""Name under which a request keeps the names of its unknown parameters."""
_NAMED_MAX = 16
"""Most unknown parameters that a warning names."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of parameters that may stand in a header."""
_ECHO_CHARACTERS_MAX = 1 << 23
"""Most characters that the answers to one request echo."""
_RETRY_GUESSES_S = 10

_T = TypeVar("_T")
_Asked = TypeVar("_Asked", CompletionRequest, ChatRequest)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Properties of the served model, its own settings of sampling, and the key that clients need."""

    name: str
    """Name of the model for clients."""
    context_tokens: int
    api_keys: ApiKeys | None = None
    """Keys of which clients must send one; None: no key is asked for."""
    temperature: float = 1.0
    """Temperature of requests that do not give one."""
    top_p: float = 1.0
    """`top_p` of requests that do not give one."""


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Prompts of a request."""

    tokens: list[list[int]]
    finders: dict[int, Finder]
    """Finders of the caches of those with segments, by index."""
    scope: bytes
    """Scope of their blocks."""
    key: ApiKey | None
    """API key that they came with."""


class Api:
    """The routes of the server."""

    def __init__(
        self,
        served: ServedModel,
        queue: JobQueue,
        request_tokens: RequestTokens,
        segments: ServedSegments,
        metrics: ServeMetrics,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008  # it never changes
        guesses: Guesses | None = None,
        proxies: TrustedProxies = TrustedProxies(),  # noqa: B008  # it never changes
    ) -> None:
        """Begin without requests.

        Args:
            limits: Limits of connections, bodies and slow readers.
            guesses: Memory of wrong keys; one of its own by default.
            proxies: Proxies whose word about their clients' addresses counts.
        """
        self.connections = Connections(limits, proxies)
        self._served = served
        self._limits = limits
        self._guesses = Guesses() if guesses is None else guesses
        self._queue = queue
        self._request_tokens = request_tokens
        self._lanes = Lanes(request_tokens)
        self._json_limits = JsonLimits.of_context(served.context_tokens)
        self._segments = segments
        self._metrics = metrics
        self._created = int(time.time())
        self._draining = False
        self._jobs: list[Job] = []
        self._coming = 0  # requests with a place in the queue that are no jobs yet
        self._accepted = 0  # requests with a body, and the right key, that are not answered yet
        self._idle = asyncio.Event()
        self._idle.set()

    def application(self) -> web.Application:
        """Return the application of aiohttp."""
        application = web.Application(middlewares=[self._guarded], client_max_size=self._limits.body_bytes_max)
        application.add_routes(
            [
                web.get("/v1/models", self._models),
                web.get("/v1/models/{name:.+}", self._model),
                web.post("/v1/completions", self._completions),
                web.post("/v1/chat/completions", self._chat),
                web.get("/health", self._health),
                web.get(_METRICS, self._scrape),
                *self._segment_routes().routes(),
            ]
        )
        application.on_response_prepare.append(self._warn)
        return application

    async def drain(self) -> None:
        """Refuse new requests, and wait until all accepted ones are answered, or until `cancel_all`."""
        self._draining = True
        await self._idle.wait()

    def cancel_all(self) -> None:
        """Take no more requests, make all jobs end now, compute no more segments, and let `drain` wait for nothing."""
        self._draining = True
        self._idle.set()
        self._segments.stop()
        for job in self._jobs:
            self._queue.cancel(job)

    def close(self) -> None:
        """End the threads that read bodies, and those of segments."""
        self._lanes.close()
        self._segments.close()

    # ---- routes -----------------------------------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return _json({"object": "list", "data": [self._card()]})

    async def _model(self, request: web.Request) -> web.StreamResponse:
        self._check_model(request.match_info["name"])
        return _json(self._card())

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return _json({"status": "draining" if self._draining else "ok"}, status=503 if self._draining else 200)

    async def _scrape(self, request: web.Request) -> web.StreamResponse:
        registry = self._metrics.seen_by(request.get(_KEY))
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        def read(body: bytes, tokens: RequestTokens) -> tuple[CompletionRequest, list[list[PromptPiece]], list[str]]:
            asked = self._parsed(request, CompletionRequest, body)
            count = len(asked.prompt)
            if count * asked.n > CHOICES_MAX:
                raise ApiError(f"n: {count} prompts with {asked.n} answers each; allowed are {CHOICES_MAX} answers", param="n")
            pieces = tokens.completion(asked.prompt, asked.max_tokens)
            echoes = [tokens.text(one) if asked.echo else "" for one in asked.prompt]
            characters = asked.n * sum(map(len, echoes))
            if characters > _ECHO_CHARACTERS_MAX:
                raise ApiError(
                    f"echo: the answers would begin with {characters:,} characters; allowed are {_ECHO_CHARACTERS_MAX:,}",
                    param="echo",
                )
            return asked, pieces, [text for text in echoes for _ in range(asked.n)]

        async with self._place(request, read) as (asked, pieces, echoes):
            prompts = await self._prompts(request, asked, pieces, asked.max_tokens, "prompt")
        max_tokens = self._request_tokens.room([*map(len, prompts.tokens)], asked.max_tokens, "prompt")
        return await self._answer(request, "completion", asked, prompts, max_tokens, echoes)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        def read(body: bytes, tokens: RequestTokens) -> tuple[ChatRequest, list[PromptPiece]]:
            asked = self._parsed(request, ChatRequest, body)
            return asked, tokens.chat(asked.messages)

        async with self._place(request, read) as (asked, pieces):
            wanted = asked.max_completion_tokens if asked.max_tokens is None else asked.max_tokens
            prompts = await self._prompts(request, asked, [pieces], wanted, "messages")
        max_tokens = self._request_tokens.room([*map(len, prompts.tokens)], wanted, "messages")
        return await self._answer(request, "chat", asked, prompts, max_tokens, [""] * asked.n)

    def _parsed(self, request: web.Request, kind: type[_Asked], body: bytes) -> _Asked:
        """Parse a request for the served model, and keep what it has of unknown parameters."""
        unknown = UnknownNames()
        request[_UNKNOWN] = unknown
        asked = parse(kind, body, self._json_limits, unknown)
        self._check_model(asked.model)
        return asked

    def _segment_routes(self) -> SegmentRoutes:
        return SegmentRoutes(
            self._served.name,
            self._segments,
            place=self._place,
            scope=_scope,
            check_model=self._check_model,
            json_limits=self._json_limits,
        )

    async def _prompts(
        self,
        request: web.Request,
        asked: CompletionRequest | ChatRequest,
        pieces: list[list[PromptPiece]],
        max_tokens: int | None,
        param: str,
    ) -> _Prompts:
        """Return the tokens of prompts, after what is to become a segment was stored.

        Raises:
            ApiError: A prompt is too long, a segment cannot be used, or a new one comes with a salt.
        """
        prompts = _Prompts([], {}, _scope(request, asked.cache_salt or ""), request.get(_KEY))
        # Nothing is computed for a prompt that cannot fit, and a segment of which only the id is known makes it but longer
        self._request_tokens.room([sum(len(tokens_of(piece)) for piece in one) for one in pieces], max_tokens, param)
        for index, one in enumerate(pieces):
            if len(one) == 1 and isinstance(one[0], list):  # a prompt without segments is one piece
                prompts.tokens.append(one[0])
                continue
            if asked.cache_salt is not None and any(isinstance(piece, NewSegment) for piece in one):
                raise ApiError(
                    "cache_salt: not allowed with text that becomes a segment, which all clients of the API key share",
                    param="cache_salt",
                )
            scope = _scope(request)
            laid = await self._laid_out(one, scope, max_tokens, param)
            prompts.tokens.append(laid.tokens)
            if laid.placed:
                prompts.finders[index] = self._segments.finder(laid, scope, prompts.scope)
        return prompts

    async def _laid_out(self, pieces: list[PromptPiece], scope: bytes, max_tokens: int | None, param: str) -> LaidOut:
        """Lay out a prompt in a thread of the segments, which learns if the client goes away."""
        is_left = threading.Event()
        lay_out = partial(
            self._segments.lay_out,
            pieces,
            scope,
            param,
            check_length=lambda tokens: self._request_tokens.room([tokens], max_tokens, param),
            cancelled=is_left.is_set,
        )
        try:
            return await asyncio.get_running_loop().run_in_executor(self._segments.threads, lay_out)
        finally:
            is_left.set()

    # ---- answers ----------------------------------------------------------------------------------------------------

    async def _answer(
        self,
        request: web.Request,
        kind: Kind,
        asked: CompletionRequest | ChatRequest,
        prompts: _Prompts,
        max_tokens: int,
        echoes: list[str],
    ) -> web.StreamResponse:
        sampling = Sampling(
            max_tokens=max_tokens,
            temperature=self._served.temperature if asked.temperature is None else asked.temperature,
            top_p=self._served.top_p if asked.top_p is None else asked.top_p,
            seed=asked.seed,
            stop=tuple(asked.stop),
            choices=asked.n,
        )
        usage = Usage(sum(map(len, prompts.tokens)))
        answer = CompletionAnswer(kind, self._served.name, usage, echoes, usage_in_chunks=asked.include_usage)
        async with aclosing(self._events(prompts, sampling, usage)) as events:
            if asked.stream:
                return await _stream(request, answer, events, self._limits.take_s, with_usage=asked.include_usage)
            async for event in events:
                answer.take(event)
        return _json(answer.whole())

    async def _events(self, prompts: _Prompts, sampling: Sampling, usage: Usage) -> AsyncGenerator[Event, None]:
        """Yield the events of a job until it ends. Leaving early cancels the job.

        Raises:
            ApiError: The generation failed, or was cancelled because the server ends.
        """
        events: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def take(event: Event) -> None:
            if events.qsize() >= _EVENTS_MAX and not isinstance(event, Ended):
                self._queue.cancel(job)  # its client takes nothing
            else:
                events.put_nowait(event)

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(take, event)

        job = Job(prompts.tokens, sampling, tell, prompts.scope, prompts.finders)
        self._queue.submit(job)
        self._jobs.append(job)
        first_s: float | None = None
        event: Event = Ended(Cancelled())  # the last event if the client goes away before the first
        try:
            while not isinstance(event := await events.get(), Ended):
                if first_s is None and isinstance(event, Piece):
                    first_s = time.monotonic() - job.submitted_s
                    for metrics in self._metrics.of(prompts.key):
                        metrics.began(first_s)
                yield event
        finally:
            self._queue.cancel(job)
            self._jobs.remove(job)
            self._count(prompts.key, usage, time.monotonic() - job.submitted_s, first_s, whole=event == Ended())
        if isinstance(event.error, Cancelled):
            raise ending() from event.error
        if event.error is not None:
            _log.error("the model failed during a generation", exc_info=event.error)
            raise failed() from event.error

    def _count(self, key: ApiKey | None, usage: Usage, duration_s: float, first_s: float | None, *, whole: bool) -> None:
        for metrics in self._metrics.of(key):
            metrics.generated(usage, duration_s, whole=whole)
        _log.info(
            "%s: %d tokens of prompt, %d of them from the sky and %d linked, %d new; first text after %s, end after %.2f s",
            "done" if whole else "cancelled or failed",
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.linked_tokens,
            usage.completion_tokens,
            "-" if first_s is None else f"{first_s:.2f} s",
            duration_s,
        )

    # ---- checks -----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the key, refuse while draining, and give every error the shape that clients know."""
        status = 500
        try:
            response = await self._admitted(request, handler)
            status = response.status
            return response
        except asyncio.CancelledError:
            status = 499  # nginx's status for a client that went away
            raise
        finally:
            resource = request.match_info.route.resource
            path = "unknown" if resource is None else resource.canonical
            for metrics in self._metrics.of(request.get(_KEY)):
                metrics.answered(path, status)
            self.connections.answered(request)

    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check_host(request)
            await self._check_key(request)
            if request.method in _WORKS:
                if self._draining:
                    raise ending()
                if (coding := request.headers.get("Content-Encoding", "identity")) != "identity":
                    raise ApiError(f"Content-Encoding is {coding[:80]!r}; allowed is identity", status=415)
                if request.content_type != "application/json":  # a browser sends the other types for a page of another site
                    raise ApiError(f"Content-Type is {request.content_type!r}; allowed is application/json", status=415)
            self.connections.at_work(request)
            with self._accepted_work() if request.method in _WORKS else nullcontext():
                return await handler(request)
        except ApiError as error:
            return _refused(error)
        except web.HTTPRequestEntityTooLarge:
            return _refused(ApiError(f"the body is too large; allowed are {self._limits.body_bytes_max:,} bytes", status=413))
        except web.HTTPException as error:
            return _refused(ApiError(f"{request.method} {request.path}: {error.reason}", status=error.status))
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return _refused(failed())

    @contextmanager
    def _accepted_work(self) -> Iterator[None]:
        """Let `drain` wait until the end of this context."""
        self._accepted += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._accepted -= 1
            if not self._accepted:
                self._idle.set()

    def _check_host(self, request: web.Request) -> None:
        """Refuse a host name of a stranger's page that points here (DNS rebinding). A server with a key needs no such check."""
        if not request.path.startswith(_API):
            why, cure = strange_name_on_loopback(request), ""
        elif self._served.api_keys is None:
            why, cure = strange_name(request), "; a server with an API key allows all"
        else:
            return
        if why is not None:
            raise ApiError(why + cure, status=403, code="host_not_allowed")

    async def _check_key(self, request: web.Request) -> None:
        """Ask for an API key. A source that has sent wrong ones waits.

        Metrics change with each answer, so they are for those who may ask. Health needs no key.
        """
        keys = self._served.api_keys
        if keys is None or not request.path.startswith((_API, _METRICS)):
            return
        kind, _, word = request.headers.get("Authorization", "").partition(" ")

        def is_right() -> bool:
            found = keys.find(word.encode("utf-8", "surrogateescape"))  # in the encoding in which headers are read
            if found is None:
                self.connections.has_wrong_key(request)
                return False
            request[_KEY] = found
            return True

        try:
            if kind.lower() == "bearer" and await self._guesses.check(self.connections.client(request), is_right):
                return
        except TooManyGuessesError as error:
            raise busy(str(error), "too_many_wrong_keys", _RETRY_GUESSES_S, 429) from error
        message = "no API key, or a wrong one; send it as Authorization: Bearer KEY"
        raise ApiError(message, status=401, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})

    def _check_model(self, name: str) -> None:
        if name != self._served.name:
            raise ApiError(
                f"the model {name!r} does not exist here; served is {self._served.name!r}",
                status=404,
                param="model",
                code="model_not_found",
            )

    @asynccontextmanager
    async def _place(self, request: web.Request, read: Callable[[bytes, RequestTokens], _T]) -> AsyncIterator[_T]:
        """Yield what `read` makes of a request's body, in a thread, and hold a place in the queue until its job exists.

        A place is taken once the body is whole: half a body keeps nobody out. The job then takes the place at once: nothing is
        awaited in between. The body counts until it was read, so that segments may be computed without it.

        Raises:
            ApiError: The queue is full, or the body does not come.
        """
        self._check_room()  # before the body takes memory
        with ExitStack() as place:
            with self.connections.body(request) as counted:
                body = await self._body(request, counted)
                self._check_room()
                self._coming += 1
                place.callback(self._leave)
                asked = await self._lanes.read(self._source(request), body, read)
                del body
            yield asked

    def _source(self, request: web.Request) -> Hashable:
        """Return who takes turns with others: a key of a file, or an address."""
        key = request.get(_KEY)
        return source_of(self.connections.client(request)) if key is None or key.is_operator else key

    def _leave(self) -> None:
        self._coming -= 1

    async def _body(self, request: web.Request, counted: Body) -> bytes:
        try:
            return await self.connections.read(request, counted)
        except TimeoutError as error:
            raise ApiError(f"the body did not come within {self._limits.body_s:.0f} s", status=408) from error
        except BodyMemoryError as error:
            raise busy(str(error), "queue_full", 1, 429) from error
        except web.HTTPRequestEntityTooLarge:
            raise
        except (ConnectionError, web.RequestPayloadError) as error:  # only half of the request came
            raise ApiError("the request ended before its body did") from error

    def _check_room(self) -> None:
        try:
            self._queue.check_room(self._coming)
        except QueueFullError as error:
            raise busy(str(error), "queue_full", error.retry_after_s, 429) from error

    def _card(self) -> dict[str, Any]:
        return {
            "id": self._served.name,
            "object": "model",
            "created": self._created,
            "owned_by": "skymemory",
            "max_model_len": self._served.context_tokens,
        }

    async def _warn(self, request: web.Request, response: web.StreamResponse) -> None:
        """Count unknown parameters of a request, and name them in a header of the answer."""
        unknown = request.get(_UNKNOWN)
        if unknown is not None and unknown.count:
            for metrics in self._metrics.of(request.get(_KEY)):
                metrics.left_out(unknown.count)
            named = sorted(name for name in unknown.names if _NAME.fullmatch(name))[:_NAMED_MAX]
            more = [f"{unknown.count - len(named)} more"] if unknown.count > len(named) else []
            response.headers["Warning"] = f'299 skymemory "unknown parameters were left out: {", ".join(named + more)}"'


async def _stream(
    request: web.Request, answer: CompletionAnswer, events: AsyncGenerator[Event, None], take_s: float, *, with_usage: bool
) -> web.StreamResponse:
    """Send server-sent events. The response begins when the model does, so that an earlier failure has a status of its own.

    Args:
        take_s: Seconds in which the client must take each part: one that takes nothing is cut off.
    """
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})

    async def send(data: bytes) -> None:
        if not response.prepared:
            await response.prepare(request)
        async with asyncio.timeout(take_s):
            await response.write(b"data: " + data + b"\n\n")

    try:
        async for event in events:
            for chunk in answer.take(event):
                await send(_JSON.encode(chunk))
        if with_usage:
            await send(_JSON.encode(answer.last_chunk()))
        await send(b"[DONE]")
        await response.write_eof()
    except ApiError as error:
        if not response.prepared:
            raise
        with suppress(ConnectionError, TimeoutError):
            await send(_JSON.encode(error.body))
    except TimeoutError:
        _log.info("the client of a stream took nothing for %.0f s: cut off", take_s)
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        _log.info("the client of a stream went away before its end")
    return response


def _scope(request: web.Request, salt: str = "") -> bytes:
    """Return the scope of a request's API key, with a salt or without."""
    key = request.get(_KEY)
    return scope_of(b"" if key is None else key.root, salt)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=_JSON.encode(value), status=status, content_type="application/json")


def _refused(error: ApiError) -> web.Response:
    response = _json(error.body, error.status)
    response.headers.update(error.headers)
    return response
