"""WebSockets of browsers: the agent sends each newer state, and browsers send small commands.

The agent buffers only the state that it sends now. A browser that reads slowly skips states, and one that does not read at all is
dropped. The agent answers a wrong message with an error, and closes the socket after too many of them.
"""

import asyncio
import logging
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from skymemory.agent.watch import commands
from skymemory.agent.watch.limits import PageLimits
from skymemory.agent.watch.sampler import SkySampler

_log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 20.0


class Live:
    """The WebSockets of all browsers that show the page."""

    def __init__(self, sampler: SkySampler, limits: PageLimits) -> None:
        self._sampler = sampler
        self._limits = limits
        self._open: set[web.WebSocketResponse] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def close(self) -> None:
        """Close all WebSockets because the agent stops."""
        for socket in set(self._open):
            with suppress(TimeoutError):
                await asyncio.wait_for(socket.close(code=WSCloseCode.GOING_AWAY, message=b"the agent stops"), 1.0)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one browser until either side closes the WebSocket."""
        if len(self._open) >= self._limits.browsers_max:
            raise web.HTTPServiceUnavailable(text=f"{self._limits.browsers_max} browsers look already; close one")
        most = commands.MESSAGE_BYTES_MAX
        socket = web.WebSocketResponse(max_msg_size=most, heartbeat=HEARTBEAT_S, compress=False, timeout=2.0)
        await socket.prepare(request)
        self._open.add(socket)
        sender = asyncio.create_task(self._send(request, socket))
        try:
            await self._receive(socket)
        finally:
            sender.cancel()
            with suppress(asyncio.CancelledError):
                await sender
            self._open.discard(socket)
        return socket

    async def _send(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        known = None
        async for _ in self._sampler.news():
            version = self._sampler.version
            text = self._sampler.text(whole=version != known).decode()
            known = version
            try:
                await asyncio.wait_for(socket.send_str(text), self._limits.send_s)
            except TimeoutError:
                _log.info("a browser does not read its frames, so its connection is ended")
                if request.transport is not None:
                    request.transport.abort()
                return
            except (ConnectionError, RuntimeError):
                return  # the browser has gone, which `_receive` notices too

    async def _receive(self, socket: web.WebSocketResponse) -> None:
        mistakes = 0
        times: deque[float] = deque(maxlen=commands.MESSAGES_MAX)
        with ExitStack() as looking:
            looking.enter_context(self._sampler.watching())
            looks = True
            async for message in socket:
                now_s = time.monotonic()
                if len(times) == times.maxlen and now_s - times[0] < commands.MESSAGES_S:
                    what = f"more than {commands.MESSAGES_MAX} messages in {commands.MESSAGES_S:g} s"
                    await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=what.encode())
                    return
                times.append(now_s)
                try:
                    if message.type is not WSMsgType.TEXT:
                        raise commands.PageCommandError("a binary message; allowed are texts")
                    command = commands.decode(message.data)
                except commands.PageCommandError as error:
                    mistakes += 1
                    await self._tell(socket, str(error))
                    if mistakes > commands.MISTAKES_MAX:
                        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too many messages that are no commands")
                        return
                    continue
                if isinstance(command, commands.Resume) and not looks:
                    looking.enter_context(self._sampler.watching())
                elif isinstance(command, commands.Pause):
                    looking.close()
                looks = isinstance(command, commands.Resume)

    async def _tell(self, socket: web.WebSocketResponse, error: str) -> None:
        with suppress(ConnectionError, RuntimeError, TimeoutError):
            await asyncio.wait_for(socket.send_str(msgspec.json.encode({"error": error}).decode()), self._limits.send_s)
