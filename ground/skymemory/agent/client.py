"""An engine's end of the agent's socket. Needs the standard library and msgspec; no torch, no numpy.

Nothing here raises for what happens behind the socket, and nothing waits for it: the agent may be away, be killed, or come back.
What was asked then ends as `no_agent`, and the engine computes.
"""

import logging
import math
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from skymemory.agent import arena, protocol
from skymemory.agent.lease import Holder, Lease, Taking
from skymemory.agent.protocol import Found, FrameError
from skymemory.agent.socket_peers import Users, stranger, users_of
from skymemory.common.state_folder import agent_socket
from skymemory.wire.icd import Status
from skymemory.wire.key_derivation import public_name

T = TypeVar("T")
EachBlock = TypeVar("EachBlock", protocol.Known, protocol.PrefetchReply, protocol.Done)

_log = logging.getLogger(__name__)

RETRY_FIRST_S: Final = 0.1
RETRY_MAX_S: Final = 5.0
"""First and longest pause between attempts to reach the agent; the pause doubles."""
_READ_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of a client's patience."""

    hello_s: float = 5.0
    """Time that the agent may take to say `Welcome`."""
    silence_s: float = 10.0
    """Silence after which an agent that owes an answer counts as gone; it says `Alive` more often than that."""
    waiting_max: int = 1024
    """Questions that wait for their answers; more are answered `busy` here."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Name of an engine, and properties of its blocks."""

    name: str
    """Kind of engine: `vllm`, `sglang`, ..."""
    model: str
    root: bytes
    """Root of the keys of its blocks, 32 bytes. The agent is told only its public name."""
    block_tokens: int
    block_bytes: int
    """Bytes of each block as it is stored, with its header."""
    dtype: str


class Question(Future[T]):
    """The answer to a request, which comes later."""

    number: int = 0
    """Number of the request; 0: it was not sent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one block."""

    key: bytes
    status: Status
    """DONE, or the reason: MISS, EXPIRED, UNANSWERED, BAD_LENGTH (stored with another length), TOO_LARGE; NO_AGENT (away, or gone
    meanwhile), BUSY (too many questions at once); or what a satellite said."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Return True if the block is where it was to go."""
        return self.status is Status.DONE


NOTHING: Final = Found(0, 0, 0, None, None)
"""Answer about a prompt if there is no agent."""


class AgentClient:
    """A connection to this host's agent, made and made again by a thread of its own. Thread-safe; one per engine process.

    Not to be carried over a fork: make it in the process that uses it. Callbacks of futures run in the client's thread and must
    be short.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        engine: EngineInfo,
        arena_bytes: int = 1 << 28,
        limits: ClientLimits | None = None,
        users: Callable[[socket.socket], Users] = users_of,
    ) -> None:
        """Return at once; whether there is an agent shows later (`connected`).

        Args:
            path: Path of the agent's socket. Default: `$SKYMEM_AGENT_SOCKET`, else `agent.sock` in the state folder.
            arena_bytes: Memory for blocks on their way; it is taken page by page as it is used.
            limits: Limits of the client's patience.
            users: Tells whose agent listens at a socket, and for whom this engine runs.

        Raises:
            ValueError: A number that the protocol does not allow.
        """
        self.path = path or agent_socket()
        self.engine = engine
        self.notes: list[str] = []
        """Notice of the agent at the last connection, for the person who runs the engine."""
        self.silent = False
        self.knows_absence = True
        """True if no satellite answered when the agent was last asked by `look_up`."""
        if not 1 <= arena_bytes <= protocol.ARENA_BYTES_MAX:
            raise ValueError(f"arena_bytes is {arena_bytes}; allowed are 1 to {protocol.ARENA_BYTES_MAX}")
        self._hello = _hello(engine, arena_bytes)
        self._arena_bytes = arena_bytes
        self._limits = limits or ClientLimits()
        self._users = users
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._holder: Holder | None = None
        """Socket of this connection; None: there is none."""
        self._waiting: dict[int, Callable[[Any], None]] = {}
        """Callbacks for each answer; they get None if there will be none."""
        self._outbox: deque[bytes] = deque()
        self._outgoing = memoryview(b"")
        """Rest of the frame that is being sent."""
        self._link: socket.socket | None = None
        """Socket to the agent, once it has said `Welcome`; the asking thread sends as much as it takes."""
        self._next_id = 0
        self._closed = False
        self._heard_s = 0.0
        self._traces = False
        self._connected = threading.Event()
        self._trouble = ""
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="skymem-agent-client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @property
    def arena_bytes(self) -> int:
        """Memory for blocks on their way."""
        return self._arena_bytes

    @property
    def connected(self) -> bool:
        """The agent is there, and has mapped the arena."""
        return self._connected.is_set()

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until the agent is there, for engines that like to begin with it. False: it is not."""
        return self._connected.wait(timeout_s)

    def lease(self, length: int, timeout_s: float | None = 0) -> Lease | None:
        """Lease memory of the arena, for a block that is to be fetched or stored.

        Args:
            timeout_s: Longest wait for room; 0 never waits, None waits until there is room.

        Returns:
            None: No room in time, or no agent.

        Raises:
            ValueError: A length that the arena never holds.
        """
        if not 1 <= length <= self._arena_bytes:
            raise ValueError(f"lease of {length} bytes; allowed are 1 to {self._arena_bytes}, the length of the arena")
        holder = self._current()
        if holder is None:
            return None
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        with holder.room:
            while self._holder is holder:
                offset = holder.allocator.take(length)
                if offset is not None:
                    return Lease(holder, offset, length)
                left_s = None if end_s is None else end_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return None
                holder.room.wait(left_s)
        return None

    def find(self, keys: Sequence[bytes], *, cached: int = 0, wanted: bool = True) -> Question[Found]:
        """Ask for the cached beginning of a prompt, and whether it is worth fetching.

        Args:
            keys: Keys of its blocks, the first one first; what is beyond the protocol's limit is not asked for.
            cached: Number of these blocks, from the first, that the engine has itself.
            wanted: False: the blocks are to be stored, not fetched, so what is not there counts as no miss.
        """
        asked = list(keys[: protocol.FIND_KEYS_MAX])
        return self._ask(lambda number: protocol.Find(number, asked, cached, wanted), _as(Found), lambda _: NOTHING)

    def get(
        self, blocks: Sequence[tuple[bytes, Lease]], traceparent: str = "", *, deadline_s: float | None = None
    ) -> Question[list[Outcome]]:
        """Fetch blocks into leased memory, whose length each must have. What is not `done` may have been written in part.

        Args:
            blocks: Keys of the blocks, and memory.
            traceparent: Trace context of the engine's span, so that the agent's become its children (W3C).
            deadline_s: Seconds after which blocks that have not come are EXPIRED; None: the constellation's deadline alone.

        Raises:
            ValueError: More blocks than the protocol allows at once, or a deadline that is not above 0.
        """
        if deadline_s is not None and not deadline_s > 0:
            raise ValueError(f"deadline of {deadline_s} s; allowed is more than 0")
        return self._move(blocks, lambda number, places: protocol.Get(number, places, traceparent, deadline_s))

    def call_back(self, question: Question[T]) -> None:
        """End a `get` or `look_up` that nobody waits for any more. Its answer comes at once: CANCELLED, or UNANSWERED."""
        if question.number and not question.done():
            self._tell(protocol.CallBack(question.number))

    def put(self, blocks: Sequence[tuple[bytes, Lease]]) -> Question[list[Outcome]]:
        """Store blocks from leased memory, which must not change until the answer is there.

        Raises:
            ValueError: More blocks than the protocol allows at once.
        """
        return self._move(blocks, protocol.Put)

    def look_up(
        self, keys: Sequence[bytes], *, chain: bool, fresh: bool, block_bytes_max: int
    ) -> Question[list[tuple[Status, protocol.Entry | None]]]:
        """Ask what is known of blocks of any length.

        Args:
            keys: Keys of the blocks; of a chain the first one first.
            chain: True if only the beginning is wanted, up to the first block that is missing or too long.
            fresh: True if satellites are to be asked, also for what the agent knows.
            block_bytes_max: A longer block ends the chain.

        Returns:
            A status for each block, and its entry if the status is DONE. The answer also sets `silent` and
            `knows_absence`.

        Raises:
            ValueError: There are more blocks than the protocol allows at once.
        """
        _check_count(keys)
        asked = list(keys)

        def read(answer: protocol.Known) -> list[tuple[Status, protocol.Entry | None]]:
            self.silent, self.knows_absence = answer.silent, answer.knows_absence
            return [(_status_of(word), entry) for word, entry in answer.blocks]

        return self._ask(
            lambda number: protocol.LookUp(number, asked, chain, fresh, block_bytes_max),
            _each(protocol.Known, len(asked), read),
            lambda status: [(status, None) for _ in asked],
        )

    def purge(self, keys: Sequence[bytes]) -> Question[protocol.PurgedReply]:
        """Forget blocks, and tell how many chunks satellites gave up.

        Raises:
            ValueError: There are more blocks than the protocol allows at once.
        """
        _check_count(keys)
        nothing = protocol.PurgedReply(0, 0, False)
        return self._ask(lambda number: protocol.Purge(number, list(keys)), _as(protocol.PurgedReply), lambda _: nothing)

    def prefetch(self, keys: Sequence[bytes], at_s: float) -> Question[list[tuple[Status, int, int]]]:
        """Prefetch blocks so that they are in the window at a time to come.

        Args:
            keys: Keys of the blocks.
            at_s: Unix time.

        Returns:
            For each block its status, the row of the schedule that holds then, and how many shares moved.

        Raises:
            ValueError: There are more blocks than the protocol allows at once.
        """
        _check_count(keys)
        asked = list(keys)

        def read(answer: protocol.PrefetchReply) -> list[tuple[Status, int, int]]:
            return [(_status_of(word), row, moved) for word, row, moved in answer.blocks]

        return self._ask(
            lambda number: protocol.Prefetch(number, asked, at_s),
            _each(protocol.PrefetchReply, len(asked), read),
            lambda status: [(status, 0, 0) for _ in asked],
        )

    def used(self, keys: Sequence[bytes]) -> None:
        """Tell the agent that a prompt has used a chain of blocks, so that satellites evict its end before its beginning.

        `keys`: the first block first; what is beyond the protocol's limit is not told.
        """
        self._tell(protocol.Used(list(keys[: protocol.BLOCKS_MAX])))

    def prefilled(self, tokens: int, duration_s: float, before: int = 0) -> None:
        """Tell the agent how fast this engine computes: so many tokens of a prompt in so many seconds.

        `before`: tokens of that prompt that it had already, for attention looks at them too.
        """
        self._tell(protocol.Prefilled(tokens, duration_s, before))

    def close(self) -> None:
        """End the connection; what is not answered ends as `no_agent`. Safe to call twice."""
        with self._lock:
            first, self._closed = not self._closed, True
            if first and self._process == os.getpid():
                os.eventfd_write(self._wake, 1)
        if threading.current_thread() is not self._thread and self._process == os.getpid():
            self._thread.join()

    def _tell(self, message: protocol.EngineMessage) -> None:
        """Say something that is not answered, if somebody is there."""
        told = protocol.frame(message)
        with self._lock:
            if self._current() is not None and len(self._outbox) < self._limits.waiting_max:
                self._say(told)

    # ---- questions --------------------------------------------------------------------------------------------------

    def _move(
        self, blocks: Sequence[tuple[bytes, Lease]], kind: Callable[[int, list[protocol.Place]], protocol.EngineMessage]
    ) -> Question[list[Outcome]]:
        _check_count(blocks)
        asked = list(blocks)
        leases = [lease for _, lease in asked]

        def read(answer: protocol.Done) -> list[Outcome]:
            if self._traces and kind is not protocol.Put:
                self._begin_taking(answer, leases)
            told = zip(asked, answer.blocks, strict=True)
            return [Outcome(key, _status_of(word), seconds) for (key, _), (word, seconds) in told]

        return self._ask(
            lambda number: kind(number, [lease.place(key) for key, lease in asked]),
            _each(protocol.Done, len(asked), read),
            lambda status: [Outcome(key, status, 0.0) for key, _ in asked],
            leases,
        )

    def _begin_taking(self, answer: protocol.Done, leases: Sequence[Lease]) -> None:
        holder = self._current()
        if holder is not None:
            with holder.room:
                came = [lease for lease, (status, _) in zip(leases, answer.blocks, strict=True) if status == Status.DONE]
                kept = [lease for lease in came if not lease.released]
                if kept:
                    Taking(answer.id, kept, self._tell)

    def _current(self) -> Holder | None:
        """Return the arena of the connection; None in a forked process, which lacks the client's thread."""
        return self._holder if self._process == os.getpid() else None

    def _ask(
        self,
        question: Callable[[int], protocol.EngineMessage],
        read: Callable[[Any], T | None],
        without: Callable[[Status], T],
        leases: Sequence[Lease] = (),
    ) -> Question[T]:
        """Send a request whose answer will be the future's result.

        Args:
            question: Function that makes the message from its number.
            read: Function that makes the result from an answer, or returns None if the answer is of another kind.
            without: Function that makes the result from a status if there is no answer.
            leases: Memory that the agent uses until it has answered.
        """
        future: Question[T] = Question()
        future.set_running_or_notify_cancel()  # a request that was sent cannot be cancelled
        holder = self._current()
        if holder is None or any(lease.holder is not holder for lease in leases):
            future.set_result(without(Status.NO_AGENT))
            return future
        with holder.room:
            if any(lease.released for lease in leases):
                raise ValueError("a lease was released before its use")
            for lease in leases:
                lease.uses += 1

        def end(answer: Any, why: Status = Status.NO_AGENT) -> None:
            with holder.room:
                for lease in leases:
                    lease.drop()
            result = None if answer is None else read(answer)
            future.set_result(without(why) if result is None else result)

        with self._lock:
            is_busy = len(self._waiting) >= self._limits.waiting_max
            why = Status.NO_AGENT if self._holder is not holder else Status.BUSY if is_busy else None
            if why is None:
                self._next_id += 1
                future.number = self._next_id
                if not self._waiting:
                    self._heard_s = time.monotonic()
                self._waiting[self._next_id] = end
                self._say(protocol.frame(question(self._next_id)))
        if why is not None:
            end(None, why)
        return future

    def _say(self, frame: bytes) -> None:
        """Send a frame. The thread sends the rest when the socket takes no more now. The caller holds the lock."""
        self._outbox.append(frame)
        self._flush()
        if self._outgoing or self._outbox:
            os.eventfd_write(self._wake, 1)

    def _flush(self) -> None:
        """Send as much as the socket takes now. The caller holds the lock."""
        while self._link is not None and (self._outgoing or self._outbox):
            self._outgoing = self._outgoing or memoryview(self._outbox.popleft())
            try:
                self._outgoing = self._outgoing[self._link.send(self._outgoing) :]
            except OSError:  # the socket is full, or the agent has gone, as the receiving thread notices
                return

    # ---- the client's thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause_s = RETRY_FIRST_S
        while not self._closed:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as link:
                    inbox = self._connect(link)
                    pause_s = RETRY_FIRST_S
                    try:
                        self._serve(link, inbox)
                    finally:
                        with self._lock:
                            self._link = None
            except (OSError, _GoneError, FrameError) as error:
                self._lose(str(error))
            except Exception as error:  # even after a bug of this client no caller waits for ever
                _log.exception("the agent's client failed")
                self._lose(repr(error))
            if not self._closed:
                self._poll(None, sending=False, timeout_s=pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)
        self._lose("closed")
        with self._lock:
            os.close(self._wake)

    def _connect(self, link: socket.socket) -> bytearray:
        """Say Hello with a new arena, and return the bytes that followed the answer. `_run` handles the errors raised."""
        end_s = time.monotonic() + self._limits.hello_s
        link.settimeout(self._limits.hello_s)
        link.connect(str(self.path))
        if why := stranger(self._users(link), self.path):
            raise _GoneError(why)
        descriptor, memory = arena.make(self._arena_bytes)
        try:
            socket.send_fds(link, [self._hello], [descriptor])  # a frame this short is sent in one piece
        finally:
            os.close(descriptor)
        link.setblocking(False)
        buffer = bytearray()
        while (body := protocol.take_frame(buffer)) is None:
            left_s = end_s - time.monotonic()
            if left_s <= 0 or self._closed:
                raise _GoneError(f"it has not answered Hello within {self._limits.hello_s:g} s")
            if self._poll(link, sending=False, timeout_s=left_s):
                _receive(link, buffer)
        welcome = protocol.read(protocol.WELCOMED, body)
        if isinstance(welcome, protocol.Refusal):
            raise _GoneError(f"it refuses this engine: {_printable(welcome.why)}")
        self.notes = [_printable(note) for note in welcome.notes]
        self._traces = welcome.traces
        for note in self.notes:
            _log.warning("agent: %s", note)
        if self._trouble:
            _log.warning("agent at %s: it is there again", self.path)
            self._trouble = ""
        with self._lock:
            self._holder = Holder(memory)
        self._connected.set()
        return buffer

    def _serve(self, link: socket.socket, inbox: bytearray) -> None:
        """Exchange questions and answers until an error or `close`; `inbox`: bytes received before. `_run` handles errors."""
        silence_s = self._limits.silence_s
        with self._lock:
            self._link = link
        while not self._closed:
            while (body := protocol.take_frame(inbox)) is not None:
                self._take(protocol.read(protocol.ANSWERED, body))
            now_s = time.monotonic()
            with self._lock:
                self._flush()
                sending = bool(self._outgoing or self._outbox)
                left_s = self._heard_s + silence_s - now_s if self._waiting else silence_s
            if left_s <= 0:
                raise _GoneError(f"it owes answers and has been silent for {silence_s:g} s")
            if self._poll(link, sending=sending, timeout_s=left_s):
                _receive(link, inbox)
                self._heard_s = time.monotonic()

    def _take(self, answer: protocol.Answered) -> None:
        if isinstance(answer, protocol.Refusal):
            raise _GoneError(f"it refuses: {_printable(answer.why)}")
        if isinstance(answer, protocol.Alive):
            return
        with self._lock:
            end = self._waiting.pop(answer.id, None)
        if end is not None:
            end(answer)

    def _lose(self, why: str) -> None:
        """Note that there is no agent, and end all waiting requests."""
        with self._lock:
            holder, self._holder = self._holder, None
            waiting, self._waiting = self._waiting, {}
            self._outbox.clear()
            self._outgoing = memoryview(b"")
        self._connected.clear()
        if holder is not None:
            with holder.room:
                holder.room.notify_all()
        for end in waiting.values():
            end(None)
        if not self._closed and why != self._trouble:
            _log.warning("agent at %s: %s; the engine computes every block until the agent is there", self.path, why)
        self._trouble = why

    def _poll(self, link: socket.socket | None, *, sending: bool, timeout_s: float | None) -> bool:
        """Wait for the socket, or to be woken. Return True if the socket has something to receive."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if link is not None:
            poll.register(link, select.POLLIN | (select.POLLOUT if sending else 0))
        ready = dict(poll.poll(None if timeout_s is None else max(0, math.ceil(timeout_s * 1000))))
        if self._wake in ready:
            os.eventfd_read(self._wake)
        return link is not None and bool(ready.get(link.fileno(), 0) & ~select.POLLOUT)


class _GoneError(Exception):
    """The agent is not there, or no use."""


def _hello(engine: EngineInfo, arena_bytes: int) -> bytes:
    """Return the first frame of a connection.

    Raises:
        ValueError: Something that the protocol does not allow.
    """
    told = protocol.Hello(
        protocol.VERSION,
        engine.name,
        engine.model,
        public_name(engine.root),
        engine.block_tokens,
        engine.block_bytes,
        engine.dtype,
        arena_bytes,
    )
    hello = protocol.frame(told)
    protocol.read(protocol.HELLO, hello[protocol.LENGTH.size :])
    return hello


def _as(kind: type[T]) -> Callable[[Any], T | None]:
    """Return a function that reads an answer of this kind, and returns None for any other answer."""
    return lambda answer: answer if isinstance(answer, kind) else None


def _each(kind: type[EachBlock], count: int, read: Callable[[EachBlock], list[T]]) -> Callable[[Any], list[T] | None]:
    """Return a function that reads an answer of this kind about so many blocks, and returns None for any other answer."""
    return lambda answer: read(answer) if isinstance(answer, kind) and len(answer.blocks) == count else None


def _check_count(blocks: Sequence[object]) -> None:
    if len(blocks) > protocol.BLOCKS_MAX:
        raise ValueError(f"{len(blocks)} blocks at once; allowed are up to {protocol.BLOCKS_MAX}")


def _status_of(word: str) -> Status:
    """Return the status that the agent names. One that this version does not know is REFUSED: an agent may be newer."""
    try:
        return Status(word)
    except ValueError:
        return Status.REFUSED


def _printable(told: str) -> str:
    """For a log that somebody may look at in a terminal."""
    return "".join(one if one.isprintable() else "?" for one in told)


def _receive(link: socket.socket, buffer: bytearray) -> None:
    """Read and add the bytes that are there. `_run` handles the errors raised."""
    try:
        data = link.recv(_READ_BYTES)
    except BlockingIOError:
        return
    if not data:
        raise _GoneError("it has ended the connection")
    buffer += data
