"""Routes of the server without its model."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import TestClient, TestServer

from skymemory.serve.connections import ConnectionLimits
from skymemory.serve.errors import ApiError
from skymemory.serve.generation import Generator
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.metrics import ServeMetrics
from skymemory.serve.routes import Api, ServedModel
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import RequestTokens
from support.waiting import wait_until

pytestmark = pytest.mark.model


JSON = {"Content-Type": "application/json"}
CHAT = {"model": "model", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "cached_content", "id": "one"}]}]}


def try_api(
    ask: Callable[[TestClient[Any, Any]], Awaitable[None]],
    segments: Any,
    request_tokens: Any = None,
    queue_max: int = 0,
    **limits: Any,
) -> None:
    """Ask an API whose model does nothing."""
    queue = JobQueue(Mock(spec=Generator, answers_max=1, busy=False, room=True), queue_max)
    tokens = Mock(spec=RequestTokens) if request_tokens is None else request_tokens
    api = Api(ServedModel("model", 100), queue, tokens, segments, ServeMetrics(), ConnectionLimits(**limits))

    async def run() -> None:
        async with TestClient(TestServer(api.application())) as client:
            await ask(client)

    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        api.close()
        queue.close()


@pytest.fixture
def segments() -> Iterator[Mock]:
    """Segments that are not there, and threads for them."""
    with ThreadPoolExecutor(2) as threads:
        yield Mock(spec=ServedSegments, threads=threads, adding=threads)


def test_a_body_that_does_not_come_gives_its_place_back(segments) -> None:
    async def body():
        yield b"{"
        await asyncio.Event().wait()

    async def ask(client: TestClient[Any, Any]) -> None:
        for _ in range(2):  # there is one place
            answer = await client.post("/v1/completions", data=body(), headers=JSON)
            assert (answer.status, (await answer.json())["error"]["message"]) == (408, "the body did not come within 0 s")

    try_api(ask, segments, body_s=0.01)


def test_the_length_of_a_prompt_is_checked_before_its_segments_are_put_together(segments, letters) -> None:
    def lay_out(*_: Any, check_length: Callable[[int], None], **__: Any) -> None:
        check_length(1_000_000)

    async def ask(client: TestClient[Any, Any]) -> None:
        answer = await client.post("/v1/chat/completions", data=json.dumps(CHAT), headers=JSON)
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "context_length_exceeded")

    segments.lay_out.side_effect = lay_out
    try_api(ask, segments, RequestTokens(letters, len(letters), 100))


def test_segments_learn_that_a_client_has_left(segments, letters) -> None:
    has_begun, has_learned = Event(), Event()

    def lay_out(*_: Any, cancelled: Callable[[], bool], **__: Any) -> None:
        has_begun.set()
        wait_until(cancelled)
        has_learned.set()

    async def ask(client: TestClient[Any, Any]) -> None:
        asked = asyncio.create_task(client.post("/v1/chat/completions", data=json.dumps(CHAT), headers=JSON))
        assert await asyncio.to_thread(has_begun.wait, 30)
        asked.cancel()
        assert await asyncio.to_thread(has_learned.wait, 30)

    segments.lay_out.side_effect = lay_out
    try_api(ask, segments, RequestTokens(letters, len(letters), 100))


@pytest.mark.parametrize(
    ("method", "path", "asked", "name"),
    [
        ("POST", "/v1/chat/completions", CHAT, "lay_out"),
        ("POST", "/v1/cached_contents", {"model": "model", "contents": "a"}, "add"),
        ("PATCH", "/v1/cached_contents/one", {"ttl": "60s"}, "update"),
    ],
)
def test_bodies_do_not_count_while_segments_are_computed(segments, letters, method, path, asked, name) -> None:
    begun, may_end = Semaphore(0), Event()

    def compute(*_: Any, **__: Any) -> None:
        begun.release()
        may_end.wait(30)
        raise ApiError("computed", status=418)

    async def ask(client: TestClient[Any, Any]) -> None:
        async def send() -> int:
            return (await client.request(method, path, data=json.dumps(asked) + " " * 2000, headers=JSON)).status

        first = asyncio.create_task(send())
        assert await asyncio.to_thread(begun.acquire, timeout=30)
        second = asyncio.create_task(send())
        while not (second.done() or begun.acquire(blocking=False)):
            await asyncio.sleep(0.01)
        may_end.set()
        assert [await first, await second] == [418, 418]

    getattr(segments, name).side_effect = compute
    try_api(ask, segments, RequestTokens(letters, len(letters), 100), queue_max=4, bodies_bytes_max=3000)
