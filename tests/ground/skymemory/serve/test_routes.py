"""Routes of the server without its model."""

import asyncio
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import TestClient, TestServer

from skymemory.serve.connections import ConnectionLimits
from skymemory.serve.generation import Generator
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.metrics import ServeMetrics
from skymemory.serve.routes import Api, ServedModel
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import RequestTokens

pytestmark = pytest.mark.model


def test_a_body_that_does_not_come_gives_its_place_back() -> None:
    async def body():
        yield b"{"
        await asyncio.Event().wait()

    async def ask(api: Api) -> None:
        async with TestClient(TestServer(api.application())) as client:
            for _ in range(2):  # there is one place
                answer = await client.post("/v1/completions", data=body(), headers={"Content-Type": "application/json"})
                assert (answer.status, (await answer.json())["error"]["message"]) == (408, "the body did not come within 0 s")

    queue = JobQueue(Mock(spec=Generator, answers_max=1, busy=False, room=True), 0)
    tokens, segments = Mock(spec=RequestTokens), Mock(spec=ServedSegments)
    api = Api(ServedModel("model", 100), queue, tokens, segments, ServeMetrics(), ConnectionLimits(body_s=0.01))
    try:
        asyncio.run(asyncio.wait_for(ask(api), 60))
    finally:
        api.close()
        queue.close()
