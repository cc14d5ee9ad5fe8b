"""Routes of the server without its model."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from threading import Event, Semaphore
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from skymemory.common.guesses import Guesses
from skymemory.common.listening import bind
from skymemory.serve.api_keys import ApiKeys, add_key
from skymemory.serve.connections import ConnectionLimits
from skymemory.serve.errors import ApiError
from skymemory.serve.generation import Generator
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.metrics import ServeMetrics
from skymemory.serve.proxies import TrustedProxies, network
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
    more: dict[str, Any] | None = None,
    api_keys: ApiKeys | None = None,
    **limits: Any,
) -> None:
    """Ask an API whose model does nothing."""

    async def run(api: Api) -> None:
        async with TestClient(TestServer(api.application())) as client:
            await ask(client)

    with_api(run, segments, request_tokens, queue_max, more, api_keys, **limits)


def with_api(
    run: Callable[[Api], Awaitable[None]],
    segments: Any,
    request_tokens: Any = None,
    queue_max: int = 0,
    more: dict[str, Any] | None = None,
    api_keys: ApiKeys | None = None,
    context_tokens: int = 100,
    **limits: Any,
) -> None:
    """Run something with an API whose model does nothing."""
    queue = JobQueue(Mock(spec=Generator, answers_max=1, busy=False, room=True), queue_max)
    tokens = Mock(spec=RequestTokens) if request_tokens is None else request_tokens
    served = ServedModel("model", context_tokens, api_keys)
    api = Api(served, queue, tokens, segments, ServeMetrics(), ConnectionLimits(**limits), **(more or {}))

    async def run_it() -> None:
        await asyncio.wait_for(run(api), 60)

    try:
        asyncio.run(run_it())
    finally:
        api.close()
        queue.close()


@asynccontextmanager
async def connections_of(api: Api) -> AsyncIterator[Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]]:
    """Serve an API to connections that it watches; yield what makes one."""
    runner = web.AppRunner(api.application(), handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    assert runner.server is not None
    listeners = bind("127.0.0.1", 0)
    address = listeners[0].getsockname()
    api.connections.start(runner.server, listeners, access_log=None, auto_decompress=False)
    try:
        yield lambda: asyncio.open_connection(*address)
    finally:
        await api.connections.close()
        await runner.cleanup()


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


def test_what_bodies_of_others_take_is_not_told(segments) -> None:
    async def ask(client: TestClient[Any, Any]) -> None:
        answer = await client.post("/v1/completions", data=b" " * 4000, headers=JSON)
        message = (await answer.json())["error"]["message"]
        assert (answer.status, message) == (429, "bodies of other requests take all memory for bodies; try again")

    try_api(ask, segments, queue_max=4, bodies_bytes_max=3000)


def test_a_segment_may_have_all_token_ids_of_a_context(segments, letters) -> None:
    async def ask(client: TestClient[Any, Any]) -> None:
        body = json.dumps({"model": "model", "contents": [1] * 300_000})
        assert (await client.post("/v1/cached_contents", data=body, headers=JSON)).status == 418

    segments.add.side_effect = ApiError("computed", status=418)
    tokens = RequestTokens(letters, len(letters), 400_000)
    try_api(ask, segments, tokens, queue_max=4, context_tokens=400_000)


def test_who_guesses_keys_does_not_hold_up_the_end(segments) -> None:
    guesses = Guesses(1000.0, 1000.0)

    async def run(api: Api) -> None:
        async with TestClient(TestServer(api.application())) as client:
            wrong = [
                asyncio.create_task(client.request(method, path, headers={"Authorization": "Bearer wrong", **JSON}))
                for method, path in (("POST", "/v1/completions"), ("GET", "/v1/models"))
            ]
            while not len(guesses):
                await asyncio.sleep(0.01)
            await asyncio.wait_for(api.drain(), 30)
            assert not any(task.done() for task in wrong)
            for task in wrong:
                task.cancel()

    with_api(run, segments, more={"guesses": guesses}, api_keys=ApiKeys("right"))


def test_the_end_at_once_waits_for_no_request(segments, letters) -> None:
    has_begun, may_end = Event(), Event()

    def lay_out(*_: Any, **__: Any) -> None:
        has_begun.set()
        may_end.wait(30)

    async def run(api: Api) -> None:
        async with TestClient(TestServer(api.application())) as client:
            asked = asyncio.create_task(client.post("/v1/chat/completions", data=json.dumps(CHAT), headers=JSON))
            assert await asyncio.to_thread(has_begun.wait, 30)
            drained = asyncio.create_task(api.drain())
            await asyncio.wait([drained], timeout=0.2)
            assert not drained.done()
            api.cancel_all()
            await asyncio.wait_for(drained, 30)
            assert not asked.done()
            may_end.set()
            await asked

    segments.lay_out.side_effect = lay_out
    with_api(run, segments, RequestTokens(letters, len(letters), 100))


@pytest.mark.parametrize("more", [b"", b"GET /v1/mod"])
@pytest.mark.parametrize("key", [b"wrong", b"right"])
def test_a_connection_has_its_time_also_after_a_wrong_key(segments, key: bytes, more: bytes) -> None:
    async def run(api: Api) -> None:
        async with connections_of(api) as connect:
            reader, writer = await connect()
            writer.write(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key + b"\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200" if key == b"right" else b"HTTP/1.1 401")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            await reader.readexactly(length)
            writer.write(more)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()

    limits = {"idle_s": 1000.0 if more else 0.3, "head_s": 0.3 if more else 1000.0}
    with_api(run, segments, more={"guesses": Guesses(0.01, 0.01)}, api_keys=ApiKeys("right"), **limits)


async def models(client: TestClient[Any, Any], key: str, address: str = "") -> int:
    """Ask for the models with a key, by a proxy that tells an address; return the status."""
    forwarded = {"X-Forwarded-For": address} if address else {}
    return (await client.get("/v1/models", headers={"Authorization": f"Bearer {key}", **forwarded})).status


def test_wrong_keys_do_not_lock_out_the_right_one_of_their_address(segments) -> None:
    async def ask(client: TestClient[Any, Any]) -> None:
        wrong = [asyncio.create_task(models(client, f"wrong {number}")) for number in range(90)]
        await asyncio.wait(wrong, timeout=0.5)
        for _ in range(20):
            assert await models(client, "right") == 200
        assert not any(task.done() for task in wrong)  # they wait
        for task in wrong:
            task.cancel()

    try_api(ask, segments, more={"guesses": Guesses(1000.0, 1000.0)}, api_keys=ApiKeys("right"))


@pytest.mark.parametrize("proxies", [(), ("127.0.0.0/8", "::1")])
def test_wrong_keys_count_for_the_address_that_a_trusted_proxy_tells(segments, proxies) -> None:
    async def ask(client: TestClient[Any, Any]) -> None:
        tasks = [asyncio.create_task(models(client, "wrong", "192.0.2.1"))]
        await asyncio.wait(tasks, timeout=0.5)  # it has the only place of its address
        tasks += [asyncio.create_task(models(client, "wrong", address)) for address in ("198.51.100.5, 192.0.2.1", "192.0.2.2")]
        await asyncio.wait(tasks, timeout=0.5)
        tasks += [asyncio.create_task(models(client, "right", address)) for address in ("192.0.2.1", "192.0.2.3")]
        await asyncio.wait(tasks[3:], timeout=2.0 if proxies else 0.5, return_when=asyncio.FIRST_COMPLETED)
        assert [task.done() for task in tasks] == [False, False, False, False, bool(proxies)]
        for task in tasks:
            task.cancel()

    more = {"guesses": Guesses(1000.0, 1000.0, looks=1, looks_per_s=1e-3), "proxies": TrustedProxies(map(network, proxies))}
    try_api(ask, segments, more=more, api_keys=ApiKeys("right"))


def test_a_key_sees_its_own_numbers_and_an_operators_key_those_of_all(segments, tmp_path) -> None:
    path = tmp_path / "keys.toml"
    alice, bob, operator = add_key(path, "alice"), add_key(path, "bob"), add_key(path, "operator", is_operator=True)

    async def told(client: TestClient[Any, Any], key: str) -> tuple[dict[str, float], str]:
        async with client.get("/metrics", headers={"Authorization": f"Bearer {key}"}) as answer:
            text = await answer.text()
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("skymem_serve_requests_total{"))
        return {name: float(number) for name, _, number in lines if "/v1/models" in name}, text

    async def ask(client: TestClient[Any, Any]) -> None:
        for key in (alice, alice, bob):
            assert await models(client, key) == 200
        assert await models(client, "wrong") == 401
        right, refused = (f'skymem_serve_requests_total{{path="/v1/models",status="{status}"}}' for status in (200, 401))
        assert (await told(client, alice))[0] == {right: 2.0}
        assert (await told(client, bob))[0] == {right: 1.0}
        assert (await told(client, operator))[0] == {right: 3.0, refused: 1.0}
        _, before = await told(client, bob)
        assert await models(client, alice) == 200
        await told(client, alice)
        _, after = await told(client, bob)
        own = [line.rpartition(" ")[0] for line in before.splitlines() if "_created" not in line]
        assert own == [line.rpartition(" ")[0] for line in after.splitlines() if "_created" not in line]

    more = {"guesses": Guesses(0.0, 0.0)}
    try_api(ask, segments, more=more, api_keys=ApiKeys(path=path))
