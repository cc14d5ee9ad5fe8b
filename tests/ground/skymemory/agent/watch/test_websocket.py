"""Browsers at the WebSocket: what they are sent, and what becomes of those that send nonsense."""

import asyncio
import json
import os
from collections.abc import Callable
from socket import SHUT_RDWR

from aiohttp import ClientWebSocketResponse, WSMsgType

from skymemory.agent.watch.commands import MESSAGE_BYTES_MAX, MESSAGES_MAX, MISTAKES_MAX
from skymemory.agent.watch.sampler import SkySampler
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.pages import Client, OnlyStore, Serve, run, served
from support.waiting import wait_until_async

StartSky = Callable[..., LocalConstellation]
EVENTS = 1000
NONSENSE = ["", "{", '{"do":"dance"}', "[" * 100, "\u0000", '{"do":"pause","and":"more"}', "pause", "9" * 200]


async def error_of(socket: ClientWebSocketResponse) -> str:
    """What it is told next that is no state."""
    while "error" not in (told := await socket.receive_json()):
        pass
    return str(told["error"])


async def close_of(socket: ClientWebSocketResponse) -> int | None:
    """With which code it is closed."""
    while (await socket.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
        pass
    return socket.close_code


def test_who_looks_is_sent_every_state_and_the_constellation_once(serve: Serve, start_sky: StartSky) -> None:
    async def scenario() -> None:
        with SkyStore(start_sky().constellation) as store:
            async with serve(store) as (client, _, sky), client.ws_connect("/api/live") as socket:
                told = await socket.receive_json()
                while told["state"] != "up":
                    told = await socket.receive_json()
                assert (told["sky"]["planes"], told["sky"]["slots"]) == (3, 5)
                assert len(told["frame"]["chunks"]) == 15
                times = [told["frame"]["time_ms"]]
                for _ in range(4):
                    told = await socket.receive_json()
                    times.append(told["frame"]["time_ms"])
                    # Again only if it told something else meanwhile: how much a store holds is known from the first answers
                    assert "sky" not in told or told["sky"]["store_bytes"]
                assert times == sorted(set(times))
                sky.store = None
                while told["state"] != "none":
                    told = await socket.receive_json()
                assert told["sky"] is None

    run(scenario())


def test_nonsense_is_told_and_then_closed(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve() as (client, _sampler, _), client.ws_connect("/api/live") as other:
            async with client.ws_connect("/api/live") as socket:
                for _ in range(MISTAKES_MAX):
                    await socket.send_str("nonsense")
                    assert 'allowed are {"do":"pause"} and {"do":"resume"}' in await error_of(socket)
                await socket.send_str('{"do":"resume"}')  # right in between changes nothing
                await socket.send_bytes(b"nonsense")
                assert "a binary message" in await error_of(socket)
                assert await close_of(socket) == 1008
            assert not other.closed  # everyone else is served
            assert (await other.receive_json())["state"] == "none"

    run(scenario())


def test_oversize_and_too_many_are_closed(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve() as (client, _, _):
            async with client.ws_connect("/api/live") as socket:
                await socket.send_str(" " * (MESSAGE_BYTES_MAX + 1))
                assert await close_of(socket) == 1009
            async with client.ws_connect("/api/live") as socket:
                for _ in range(MESSAGES_MAX + 1):
                    await socket.send_str('{"do":"pause"}')
                assert await close_of(socket) == 1008

    run(scenario())


def test_nothing_is_left_of_a_thousand_bad_browsers(serve: Serve) -> None:
    """Sockets of browsers that send nonsense, too much, or vanish without a word; while one looks on undisturbed."""

    async def scenario() -> None:
        async with serve() as (client, sampler, _), client.ws_connect("/api/live") as other:
            await other.receive_json()

            async def bad(number: int) -> None:
                socket = await client.ws_connect("/api/live")
                if number % 4 == 0:
                    await socket.send_str("x" * 5000)
                    await close_of(socket)
                elif number % 4 == 1:
                    for text in NONSENSE:
                        await socket.send_str(text)
                    await close_of(socket)
                elif number % 4 == 2:
                    os.write(
                        socket.get_extra_info("socket").fileno(), b"\xff" + os.urandom(199)
                    )  # no frame: reserved bits are set
                    await close_of(socket)
                else:
                    socket.get_extra_info("socket").shutdown(SHUT_RDWR)
                await socket.close()

            async def many(numbers: range) -> None:
                for number in numbers:
                    await bad(number)

            await many(range(20))
            await wait_until_async(lambda: sampler.watchers == 1)
            before = len(os.listdir("/proc/self/fd"))
            await asyncio.gather(*(many(range(first, EVENTS, 8)) for first in range(8)))
            await wait_until_async(lambda: sampler.watchers == 1)
            kept = 8  # connections that the client keeps for later requests
            await wait_until_async(lambda: len(os.listdir("/proc/self/fd")) <= before + kept)
            assert (await other.receive_json())["state"] == "none"

    run(scenario())


def test_there_is_room_for_so_many(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve(browsers_max=2) as (client, _, _), client.ws_connect("/api/live"), client.ws_connect("/api/live"):
            answer = await client.get("/api/live", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
            assert answer.status == 503
            assert await answer.text() == "2 browsers look already; close one"

    run(scenario())


def test_a_browser_that_does_not_read_is_dropped() -> None:
    async def scenario() -> None:
        async with served(unready="x" * (4 << 20), send_s=0.2) as (client, sampler, _):
            reader, writer = await asyncio.open_connection(client.host, client.port, limit=1024)
            lines = f"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            writer.write(f"{lines}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
            assert b"101" in await reader.readline()
            await wait_until_async(lambda: sampler.watchers == 0)
            writer.close()

    run(scenario())


def test_satellites_are_asked_while_somebody_looks(start_sky: StartSky) -> None:
    """Nobody looks: not for an hour. Somebody does: at once. The page is hidden: not again."""

    async def scenario() -> None:
        paces = {"watched_s": 0.01, "alone_s": 3600.0, "asked_s": 0.0}
        with SkyStore(start_sky().constellation) as store:
            async with served(store, **paces) as (client, sampler, sky):
                await scene(client, sampler, sky)

    async def scene(client: Client, sampler: SkySampler, sky: OnlyStore) -> None:
        await wait_until_async(lambda: sky.looks >= 1)
        await asyncio.sleep(0.1)
        assert sky.looks == 1
        async with client.ws_connect("/api/live") as socket:
            for _ in range(5):
                await socket.receive_json()
            await socket.send_str('{"do":"pause"}')
            await socket.send_str('{"do":"pause"}')
            await wait_until_async(lambda: sampler.watchers == 0)
            await sampler.frames_text([])  # in the same thread: a look that had begun has ended
            before = sky.looks
            await asyncio.sleep(0.1)
            assert sky.looks == before
            await socket.send_str('{"do":"resume"}')
            await wait_until_async(lambda: sky.looks >= before + 2)

    run(scenario())


def test_the_agent_says_goodbye() -> None:
    async def scenario() -> None:
        async with served() as (client, _, _):
            socket = await client.ws_connect("/api/live")
            await socket.receive_json()
            closing = asyncio.create_task(close_of(socket))
            await client.server.close()
            assert await closing == 1001

    run(scenario())


def test_states_are_json(serve: Serve) -> None:
    async def scenario() -> None:
        async with serve() as (_, sampler, _):
            assert json.loads(sampler.text())["state"] == "none"
            assert "sky" not in json.loads(sampler.text(whole=False))

    run(scenario())
