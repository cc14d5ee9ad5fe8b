"""One engine at the agent's socket: what it asks is checked, done, and answered in any order.

What a connection takes is bounded: an arena, which is the engine's own memory, a few requests in work, and no more bytes of them
than two frames. Who asks more waits, by not being read. An engine that breaks the protocol is told so and its connection ends;
one that dies leaves nothing behind.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import partial
from mmap import mmap
from typing import Any, Final

from skymemory.agent import arena, protocol
from skymemory.agent.arena import ArenaError
from skymemory.agent.protocol import FrameError
from skymemory.agent.shared_sky import SharedSky
from skymemory.agent.tracing import Origin
from skymemory.link.block_entry import BlockEntry
from skymemory.sky.file_sections import UINT32_MAX
from skymemory.store.results import FindResult, GetResult, PutResult, Status

_log = logging.getLogger(__name__)

HELLO_S: Final = 5.0
"""Time that an engine may take to say `Hello`."""
FRAME_S: Final = 10.0
"""Time that it may take to send a frame that it has begun."""
DRAIN_S: Final = 5.0
"""Time that requests have to end when the agent stops."""
REQUESTS_MAX: Final = 64
"""Requests of an engine in work."""
WORK_BYTES_MAX: Final = 2 * protocol.FRAME_BYTES_MAX
"""Bytes of the frames of these requests."""


class EngineConnection:
    """An engine that has connected. Used from one event loop."""

    def __init__(
        self,
        link: socket.socket,
        sky: SharedSky,
        notes: Callable[[protocol.Hello], Awaitable[list[str]]],
        stored: Callable[[protocol.Hello], None],
        answered: Callable[[str, Sequence[Status], float], None],
    ) -> None:
        """Take over a connection that an engine made.

        Args:
            link: Connected socket; it is closed when `run` has ended.
            notes: Returns the notice that an engine should be told at its Hello.
            stored: Called when an engine has stored a block.
            answered: Called with the operation of an answered request, the status of each block, and the seconds that it took.
        """
        self.hello: protocol.Hello | None = None
        """The engine's arena; None until it has sent one."""
        self._link = link
        self._sky = sky
        self._notes = notes
        self._stored = stored
        self._answered = answered
        self._memory: mmap | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._called: dict[int, asyncio.Task[None]] = {}
        """Requests in work that can be called back, by their numbers."""
        self._work_bytes = 0
        self._ended_one = asyncio.Event()
        self._ends = False
        """True once nothing is answered any more."""
        self.why = ""
        """Reason why the agent ended the connection; empty: the engine did, or nobody yet."""

    @property
    def arena_bytes(self) -> int:
        """Mapped for this engine."""
        return 0 if self._memory is None else len(self._memory)

    @property
    def in_work(self) -> int:
        """Questions that are not answered yet."""
        return len(self._tasks)

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve the engine until it goes, breaks the protocol, or `stopping` is set and its requests have ended."""
        try:
            reader = await self._greeted()
            watch = asyncio.create_task(stopping.wait())
            beat = asyncio.create_task(self._beat())
            reading = asyncio.create_task(self._read_on(reader))
            try:
                await asyncio.wait({watch, reading}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done() and self._tasks:
                    await asyncio.wait(self._tasks, timeout=DRAIN_S)
            finally:
                self._ends = True
                await _cancelled({watch, beat, reading, *self._tasks})
            if not reading.cancelled():
                reading.result()
        except (FrameError, ArenaError) as error:
            await self._refuse(str(error))
        except TimeoutError:
            await self._refuse("an engine says Hello, and a frame comes whole, within seconds")
        except (OSError, asyncio.IncompleteReadError):
            pass  # the engine is gone
        finally:
            await self._close()

    # ---- Hello ------------------------------------------------------------------------------------------------------

    async def _greeted(self) -> asyncio.StreamReader:
        descriptors: list[int] = []
        try:
            async with asyncio.timeout(HELLO_S):
                head = await self._first_bytes(descriptors)
                # The kernel closes all later descriptors, because no more room is made for them.
                reader, self._writer = await asyncio.open_unix_connection(sock=self._link)
                hello = protocol.read(protocol.HELLO, await reader.readexactly(protocol.frame_length(head)))
            if hello.version != protocol.VERSION:
                raise FrameError(f"the engine speaks version {hello.version} of the protocol, the agent {protocol.VERSION}")
            if len(descriptors) != 1:
                raise ArenaError(f"{len(descriptors)} descriptors came with Hello; one is needed, of the arena")
            self._memory = arena.adopt(descriptors[0], hello.arena_bytes)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self.hello = hello
        notes = [note[: protocol.TEXT_MAX] for note in await self._notes(hello)]
        await self._send(protocol.Welcome(protocol.VERSION, os.getpid(), notes, self._sky.observer.traces))
        return reader

    async def _first_bytes(self, descriptors: list[int]) -> bytes:
        """Return the length of the first frame, and the data that came with it."""
        head = b""
        while len(head) < protocol.LENGTH.size:
            await _readable(self._link)
            try:
                more, came, _, _ = socket.recv_fds(
                    self._link, protocol.LENGTH.size - len(head), 1, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
                )
            except BlockingIOError:
                continue
            descriptors += came
            if not more:
                raise asyncio.IncompleteReadError(head, protocol.LENGTH.size)
            head += more
        return head

    # ---- questions --------------------------------------------------------------------------------------------------

    async def _read_on(self, reader: asyncio.StreamReader) -> None:
        while True:
            length = protocol.frame_length(await reader.readexactly(protocol.LENGTH.size))
            while len(self._tasks) >= REQUESTS_MAX or (self._tasks and self._work_bytes + length > WORK_BYTES_MAX):
                self._ended_one.clear()
                await self._ended_one.wait()
            async with asyncio.timeout(FRAME_S):
                body = await reader.readexactly(length)
            asked = protocol.read(protocol.ASKED, body)
            del body
            if isinstance(asked, protocol.CallBack):
                await self._call_back(asked.id)
                continue
            if isinstance(asked, protocol.Get | protocol.Put):
                self._check_places(asked.blocks)
            task = asyncio.create_task(self._work(asked))
            if isinstance(asked, protocol.Get | protocol.LookUp):
                self._called[asked.id] = task
            self._tasks.add(task)
            self._work_bytes += length
            task.add_done_callback(partial(self._ended, length))

    async def _call_back(self, number: int) -> None:
        await asyncio.sleep(0)  # a request that has come just now has begun after this, and so will answer
        task = self._called.pop(number, None)
        if task is not None:
            task.cancel()

    def _ended(self, length: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._work_bytes -= length
        self._ended_one.set()

    async def _work(self, asked: protocol.Asked) -> None:
        """Answer a question. The engine may be gone meanwhile."""
        try:
            answer = await self._answer(asked)
            if answer is not None:
                await self._send(answer)
        except asyncio.CancelledError:
            if self._ends or not isinstance(asked, protocol.Get | protocol.LookUp):
                raise
            with suppress(OSError):
                await self._send(self._nothing(asked))
        except OSError:
            pass
        except Exception:
            _log.exception("an engine's question failed, so its connection is ended")
            if self._writer is not None:
                self._writer.transport.abort()  # an engine does better without an agent than with one that keeps it waiting
        finally:
            if isinstance(asked, protocol.Get | protocol.LookUp):
                self._called.pop(asked.id, None)

    async def _answer(self, asked: protocol.Asked) -> protocol.EngineMessage | None:
        answer: protocol.EngineMessage | None = None
        match asked:
            case protocol.Find():
                answer = await self._find(asked)
            case protocol.LookUp():
                answer = await self._look_up(asked)
            case protocol.Get():
                answer = await self._get(asked)
            case protocol.Put():
                answer = await self._put(asked)
            case protocol.Purge():
                answer = await self._purge(asked)
            case protocol.Prefetch():
                answer = await self._prefetch(asked)
            case protocol.Prefilled():
                self._prefilled(asked)
            case protocol.Used():
                await self._sky.used(asked.keys)
            case protocol.Taken():
                self._sky.observer.taken((id(self), asked.id), asked.began_ns, asked.ended_ns)
        return answer

    def _check_places(self, blocks: Sequence[protocol.Place]) -> None:
        """Check that all places lie in the arena.

        Raises:
            FrameError: A place that is not in the arena.
        """
        for _, offset, length in blocks:
            if length < 1 or offset + length > self.arena_bytes:
                raise FrameError(f"a block of {length} bytes at {offset} is not in the arena, which has {self.arena_bytes} bytes")

    @contextmanager
    def _views(self, blocks: Sequence[protocol.Place]) -> Iterator[list[memoryview]]:
        """Memory of blocks in the arena. It is let go at once, whatever still refers to it: an arena ends with its engine."""
        assert self._memory is not None
        with memoryview(self._memory) as whole:
            views = [whole[offset : offset + length] for _, offset, length in blocks]
        try:
            yield views
        finally:
            for view in views:
                view.release()

    async def _find(self, asked: protocol.Find) -> protocol.Found:
        assert self.hello is not None
        start_s = time.perf_counter()
        entries = await self._sky.find_longest(asked.keys, block_bytes=self.hello.block_bytes, cached=asked.cached)
        count, new = len(entries), entries[asked.cached :]
        size = self._sky.size(self.hello.block_bytes)
        found = protocol.Found(asked.id, count, len(new), None, None, *size)
        computing_s = None
        if new:
            tokens = self.hello.block_tokens
            worth = self._sky.observer.worth(_engine(self.hello), new, asked.cached * tokens, tokens)
            found = protocol.Found(asked.id, count, min(worth.fetch, len(new)), worth.fetch_s, worth.recompute_s, *size)
            computing_s = worth.recompute_s
        if asked.wanted:
            self._sky.observer.activity.looked_up("engine", asked.keys[asked.cached :], len(new), found.fetch, computing_s)
        statuses = [Status.DONE] * count + [Status.MISS] * (len(asked.keys) - count)
        self._answered("find", statuses, time.perf_counter() - start_s)
        return found

    async def _look_up(self, asked: protocol.LookUp) -> protocol.Known:
        start_s = time.perf_counter()
        if asked.chain:
            chain = await self._sky.find_chain(asked.keys, fresh=asked.fresh, block_bytes_max=asked.block_bytes_max)
            known = dict.fromkeys(chain.unanswered, Status.UNANSWERED) | {one.key: Status.DONE for one in chain.entries}
            entries = {one.key: one for one in chain.entries}
            results = [FindResult(key, entries.get(key), known.get(key, Status.MISS)) for key in asked.keys]
        else:
            results = await self._sky.find(asked.keys, fresh=asked.fresh)
        self._answered("find", [result.status for result in results], time.perf_counter() - start_s)
        blocks: list[tuple[str, protocol.Entry | None]] = [(one.status, _entry(one.entry)) for one in results]
        return protocol.Known(asked.id, self._sky.silent, blocks, self._sky.knows_absence)

    async def _get(self, asked: protocol.Get) -> protocol.Done:
        keys = [key for key, _, _ in asked.blocks]
        with self._views(asked.blocks) as views:
            origin = Origin(asked.traceparent, (id(self), asked.id))
            start_s = time.perf_counter()
            # The memory is the engine's own, so no other bound is needed.
            results = await self._sky.get(
                keys, into=views, block_bytes_max=UINT32_MAX, origin=origin, deadline_s=asked.deadline_s
            )
        assert self.hello is not None
        # LMCache does not tell how many tokens its chunks have, nor does a store without a model
        tokens = self.hello.block_tokens if self.hello.model and self.hello.name != "lmcache" else 0
        self._sky.observer.activity.got("engine", results, block_tokens=tokens, duration_s=time.perf_counter() - start_s)
        return self._done("get", asked.id, results)

    async def _put(self, asked: protocol.Put) -> protocol.Done:
        with self._views(asked.blocks) as views:
            items = [(key, view) for (key, _, _), view in zip(asked.blocks, views, strict=True)]
            results = await self._sky.put(items)
            left = [index for index, result in enumerate(results) if result.status is Status.BAD_KEY]
            if left:
                # The chunks are of another computation of the block, whose bytes differed.
                await self._sky.purge([items[index][0] for index in left])
                for index, result in zip(left, await self._sky.put([items[index] for index in left]), strict=True):
                    results[index] = result
        if self.hello is not None and self.hello.model and any(result.ok for result in results):
            self._stored(self.hello)
        return self._done("put", asked.id, results)

    async def _purge(self, asked: protocol.Purge) -> protocol.PurgedReply:
        start_s = time.perf_counter()
        purged = await self._sky.purge(asked.keys)
        self._answered("purge", [Status.DONE] * len(asked.keys), time.perf_counter() - start_s)
        return protocol.PurgedReply(asked.id, purged.chunks, purged.confirmed)

    async def _prefetch(self, asked: protocol.Prefetch) -> protocol.PrefetchReply:
        start_s = time.perf_counter()
        results = await self._sky.prefetch(asked.keys, asked.at_s)
        self._answered("prefetch", [result.status for result in results], time.perf_counter() - start_s)
        return protocol.PrefetchReply(asked.id, [(result.status, result.row, result.moved) for result in results])

    def _prefilled(self, asked: protocol.Prefilled) -> None:
        if self.hello is not None:
            self._sky.observer.prefilled(_engine(self.hello), asked.tokens, asked.duration_s, asked.before)

    def _nothing(self, asked: protocol.Get | protocol.LookUp) -> protocol.EngineMessage:
        """Return the answer to a request that was called back."""
        if isinstance(asked, protocol.Get):
            return protocol.Done(asked.id, [(Status.CANCELLED, 0.0) for _ in asked.blocks])
        return protocol.Known(asked.id, self._sky.silent, [(Status.UNANSWERED, None) for _ in asked.keys], knows_absence=False)

    def _done(self, operation: str, number: int, results: Sequence[GetResult | PutResult]) -> protocol.Done:
        longest_s = max((result.duration_s for result in results), default=0.0)
        self._answered(operation, [result.status for result in results], longest_s)
        return protocol.Done(number, [(result.status, result.duration_s) for result in results])

    # ---- answers ----------------------------------------------------------------------------------------------------

    async def _send(self, message: protocol.EngineMessage) -> None:
        assert self._writer is not None
        if self._writer.is_closing():
            return  # the engine is gone, as its reader will see
        self._writer.write(protocol.frame(message))
        await self._writer.drain()

    async def _beat(self) -> None:
        """Say now and then that what was asked is in work; who does not read what was said already is told nothing more."""
        assert self._writer is not None
        with suppress(OSError):
            while True:
                await asyncio.sleep(protocol.ALIVE_S)
                if self._tasks and self._writer.transport.get_write_buffer_size() == 0:
                    await self._send(protocol.Alive())

    async def _refuse(self, why: str) -> None:
        self.why = why
        if self._writer is not None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._send(protocol.Refusal(why[: protocol.TEXT_MAX]))

    async def _close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort() if self._writer.transport.get_write_buffer_size() else self._writer.close()
        else:
            self._link.close()
        if self._memory is not None:
            self._memory.close()  # nobody uses the memory: cancelled tasks end when their calls have ended
            self._memory = None


def _entry(entry: BlockEntry | None) -> protocol.Entry | None:
    return None if entry is None else astuple(entry)[1:]


def _engine(hello: protocol.Hello) -> str:
    return f"{hello.name} {hello.model}"


async def _readable(link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(link, tell)
    try:
        await ready
    finally:
        loop.remove_reader(link)


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end; what they raised is theirs."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
