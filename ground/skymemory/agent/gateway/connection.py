"""One connection of a Redis client: its commands go out to be done as they come, its answers back in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from skymemory.agent.gateway.batch import LEAST_BYTES, STALL_S, Batch
from skymemory.agent.gateway.client import Spec
from skymemory.agent.gateway.lmcache import Padding
from skymemory.agent.gateway.memory import ANSWERS_BYTES_MAX, Held
from skymemory.agent.gateway.operations import Operation
from skymemory.agent.gateway.replies import QUEUED, CommandError, Piece, error
from skymemory.agent.gateway.requests import Command, Large, ProtocolError, RequestReader
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.shared import Shared
from skymemory.agent.gateway.slots import Slot

_log = logging.getLogger(__name__)

PIPELINE_MAX: Final = 1024
"""answers of one connection that are under way; further commands wait, and at last in the client"""
UNSENT_BYTES_MAX: Final = 1 << 20
"""answers that the client has not taken, before further commands wait"""
TURN_S: Final = 0.01
"""commands of one connection run for so long, then others have their turn: a thousand questions of twelve bytes take seconds"""
STRANGER_S: Final = 10.0
"""who has not said the password by then is cut off: places are few"""
WORD_BYTES_MAX: Final = 1 << 16
"""of an argument that is no value: names, patterns and options are looked through byte by byte while all others wait"""
AHEAD_BYTES: Final = 1 << 16
"""of commands under way; who has more is not read from while memory is full"""
FULL_READ_BYTES: Final = 1 << 12
"""from others, at a time, meanwhile"""
_ARGUMENT_BYTES: Final = 64
"""that an argument takes besides its bytes"""
_QUEUED_BYTES: Final = 256
"""that a command takes besides its arguments while it waits for EXEC"""
_PIECES_MAX: Final = 256
"""of one system call"""
_BROWSERS: Final = (b"post", b"host:")
"""how a browser begins, whatever its method. Redis ends these connections too: the page of a stranger that is open on this
machine could have commands of its own in the body"""
_SHOWN_BYTES: Final = 128
"""of an unknown command, in the error"""


class _WrongError(CommandError):
    """A command that cannot even wait for EXEC."""


class Connection:
    """Lives until the client or the gateway ends it. Used from one event loop."""

    def __init__(
        self,
        shared: Shared,
        commands: Mapping[bytes, Spec],
        client: socket.socket,
        session: Session,
        left: Callable[[Connection], None],
        padding: Padding | None = None,
    ) -> None:
        """Begin to read.

        Args:
            shared: What all connections share.
            commands: The table.
            client: Socket, connected and not blocking.
            session: State of the client.
            left: Called when the connection has ended.
            padding: Lengths of answers for LMCache's client; None: any other client.
        """
        self.shared = shared
        self.commands = commands
        self.session = session
        self.padding = padding
        self.meter = shared.meter
        self.held_bytes = 0
        """of the gateway's memory: values that came or that wait to be sent"""
        self._left = left
        self._socket = client
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(shared.scratch, shared.admit, shared.memory.release, shared.claim)
        self._reader.is_stranger = not session.is_trusted
        self._backlog: deque[tuple[Command, int]] = deque()  # with the bytes of their short arguments
        self._slots: deque[Slot] = deque()
        self._out: deque[Piece] = deque()
        self._behind_bytes = 0  # of answers whose turn has not come; those in the gateway's memory are counted there
        self._queued_bytes = 0  # of all answers so far
        self._sent_bytes = 0
        self._held: deque[tuple[int, Slot]] = deque()  # memory that is free once so many bytes are sent
        self._commands_bytes = 0  # of all commands that are not answered
        self._said_bytes = 0  # of those of them whose answers are not taken
        self._batch: Batch | None = None
        self._has_ended = False  # nothing is read any more; what was asked for is still answered
        self._wrong: str | None = None  # what is said when all that came before it is answered
        self._reads_bytes = 0  # by the client, as the answer to the command that is run
        self._is_blocked = False  # by the command that was run last
        self._is_open = True
        self._reads = False
        self._writes = False
        self._flushes = False
        self._rests = False  # until its next turn
        self._moved_s = time.monotonic()
        self._moved_bytes = 0  # since then
        self._update()

    # ---- for commands ---------------------------------------------------------------------------------------------------

    def slot(self) -> Slot:
        """Return the place of the next answer."""
        slot = Slot(self, self._reads_bytes)
        self._slots.append(slot)
        return slot

    def do(self, name: bytes, operation: Operation, slot: Slot) -> None:
        """Do something to a value of the client's database; `slot` waits for it."""
        self.shared.values.do(self.session.database, name, operation, slot)

    def answered(self, slot: Slot) -> None:
        """A slot has its answer."""
        if not self._is_open:
            self._free(slot)
            return
        self._behind_bytes += slot.loose_bytes
        self._flush_soon(slot)

    def hold(self, slot: Slot, held: Held) -> None:
        """A slot has memory, until its answer is sent."""
        slot.held += (held,)
        self.held_bytes += held.count

    def is_due(self, slot: Slot) -> bool:
        """Has the client got all answers before this one?"""
        return not self._is_open or (self._slots[0] is slot and not self._out)

    def trust(self) -> None:
        """The client has said the password."""
        self.session.is_trusted = True
        self._reader.is_stranger = False

    def end(self) -> None:
        """Answer what was asked for, and close."""
        self._has_ended = True
        self._forget(self._backlog)
        self._backlog.clear()
        self._abort()

    def begin_batch(self) -> None:
        """Let the commands that follow wait for `run_batch`."""
        if self._batch is not None:
            raise CommandError("ERR MULTI calls can not be nested")
        self._batch = Batch()

    def drop_batch(self) -> None:
        """Forget the commands that wait."""
        if self._batch is None:
            raise CommandError("ERR DISCARD without MULTI")
        self._abort()
        self._batch = None

    def run_batch(self) -> None:
        """Run the commands that wait, before all others of this client."""
        batch, self._batch = self._batch, None
        if batch is None:
            raise CommandError("ERR EXEC without MULTI")
        if batch.is_aborted:
            raise CommandError("EXECABORT Transaction discarded because of previous errors.")
        self.slot().array(len(batch.commands))
        self._backlog.extendleft(reversed(batch.commands))

    def retire(self) -> None:
        """Read nothing more; close when all that came is answered."""
        self._has_ended = True
        self._update()

    def stalled(self, now_s: float) -> str | None:
        """What the client does not do for too long; None: all is well."""
        if not self.session.is_trusted and now_s - self.session.started_s >= STRANGER_S:
            return f"no password in {STRANGER_S:.0f} s"
        if self._batch is not None and self._batch.is_stalled(now_s):
            return f"MULTI without EXEC in {STALL_S:.0f} s"
        if now_s - self._moved_s < STALL_S:
            return None
        if self._out:
            return f"answers are not taken in {STALL_S:.0f} s"
        is_half = self._reader.is_amid and not self._backlog and not self._slots
        return f"half a command, and the rest does not come in {STALL_S:.0f} s" if is_half else None

    def cut_off(self, why: str) -> None:
        """End a stalled connection; who has taken all answers is told."""
        self.meter.failed("stalled")
        if not self._out:
            with suppress(OSError):
                self._socket.send(error(f"ERR Protocol error: {why}"))
        _log.info("client %s cut off: %s", self.session.address, why)
        self.close()

    def close(self) -> None:
        """End at once; safe to call twice."""
        if not self._is_open:
            return
        self._is_open, self._has_ended = False, True
        self._update()
        self._socket.close()
        self._reader.close()
        self.end()
        self._out.clear()
        self._commands_ended(self._said_bytes)
        self._said_bytes = 0
        for _, slot in self._held:
            self._free(slot)
        self._held.clear()
        for slot in self._slots:
            if slot.pieces is not None:  # the others give theirs back when they are answered
                self._free(slot)
        self.shared.sessions.pop(self.session.number)
        self._left(self)
        self.shared.memory.retry()  # what waits for this client is done without waiting

    # ---- commands -------------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        buffer = self._reader.buffer()
        try:
            count = self._socket.recv_into(buffer[:FULL_READ_BYTES] if self.shared.memory.is_full else buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self._has_ended = True
            self._update()
            return
        self.session.active_s = time.monotonic()
        self.meter.received_bytes += count
        commands: list[Command] = []
        is_new = not self._reader.is_amid
        try:
            self._reader.received(count, commands)
        except ProtocolError as wrong:
            self._wrong = str(wrong)
            self._has_ended = True
        except MemoryError:  # what came is lost, so nothing that follows can be understood
            _log.warning("no memory for a command of client %s: cut off", self.session.address)
            self.meter.failed("memory")
            self._backlog += [(args, 0) for args in commands]
            self.close()
            return
        if not self._out:
            self._moved(count, is_enough=is_new or bool(commands))
        if commands:
            lengths = [_small_bytes(args) for args in commands]
            self._backlog += zip(commands, lengths, strict=True)
            self._commands_bytes += (came := sum(lengths))
            self.shared.memory.commands_came(came)
        self._dispatch()

    def _dispatch(self) -> None:
        """Run the commands that may run now."""
        until_s = time.monotonic() + TURN_S
        while (
            self._backlog
            and not self._rests
            and len(self._slots) < PIPELINE_MAX
            and self._queued_bytes - self._sent_bytes + self._behind_bytes < UNSENT_BYTES_MAX
            and self.held_bytes < ANSWERS_BYTES_MAX
        ):
            args, small = self._backlog[0]
            spec = self.commands.get(args[0].lower()) if isinstance(args[0], bytes) else None
            if spec is None and isinstance(args[0], bytes) and args[0].lower() in _BROWSERS:
                self.meter.failed("browser")
                _log.warning("client %s speaks HTTP: cut off", self.session.address)
                self.close()
                return
            if self._slots and (self._is_blocked or (spec is not None and spec.waits)):
                break
            self._is_blocked = spec is not None and spec.blocks
            self._backlog.popleft()
            self._run(spec, args, small)
            if self._backlog and time.monotonic() >= until_s:
                self._rests = True
                self._loop.call_soon(self._go_on)
        if self._wrong is not None and not self._backlog:
            wrong, self._wrong = self._wrong, None
            self.meter.failed("protocol")
            self.slot().answer(error(f"ERR Protocol error: {wrong}"))
        self._update()

    def _go_on(self) -> None:
        self._rests = False
        if self._is_open:
            self._dispatch()

    def _run(self, spec: Spec | None, args: Command, small: int) -> None:
        """`small`: bytes of its short arguments."""
        before = len(self._slots)
        session, batch = self.session, self._batch
        session.commands += 1
        session.last_command = "unknown" if spec is None else spec.name
        large = _large_bytes(args)  # taken when they came, whatever becomes of the command
        self._reads_bytes = 0 if self.padding is None else self.padding.reads_bytes(session.last_command, args)
        try:
            spec = self._checked(spec, args, small + large)
            if batch is not None and not spec.is_at_once:
                self._queue(batch, args, small, large)
                return
            spec.run(self, args)
        except _WrongError as wrong:
            self._abort()
            self.slot().error(str(wrong))
        except CommandError as wrong:
            self.slot().error(str(wrong))
        except Exception:  # whatever it was, other clients and this one's other commands go on
            _log.exception("command %s failed", session.last_command)
            for slot in list(self._slots)[before:]:
                if slot.pieces is None:
                    slot.error("ERR internal error")
            if len(self._slots) == before:
                self.slot().error("ERR internal error")
        last = self._slots[-1]
        last.metered = session.last_command
        last.command_bytes += small
        if large:
            self.hold(last, Held(self.shared.memory, large))

    def _checked(self, spec: Spec | None, args: Command, args_bytes: int) -> Spec:
        """Return the command, if it can be run with these arguments."""
        if (refused := _refused(args)) is not None:
            raise _WrongError(refused)
        if spec is None:
            raise _WrongError(_unknown_command(args))
        if not spec.takes(len(args)):
            raise _WrongError(f"ERR wrong number of arguments for '{spec.name}' command")
        if not self.session.is_trusted and not spec.is_open:
            raise _WrongError("NOAUTH Authentication required.")
        if args_bytes > WORD_BYTES_MAX:  # else none can be long
            _check_words(spec, args)
        return spec

    def _queue(self, batch: Batch, args: Command, small: int, large: int) -> None:
        """Let a command wait for EXEC. One too many frees the memory of all."""
        if batch.held_bytes > AHEAD_BYTES and self.shared.memory.is_full:
            self._abort()
            self._forget([(args, small)])
            self.slot().error(self.shared.no_room(small + large))
            return
        self.slot().answer(QUEUED)
        if batch.is_aborted:
            self._forget([(args, small)])
        else:
            self._commands_bytes += _QUEUED_BYTES
            self.shared.memory.commands_came(_QUEUED_BYTES)
            batch.add(args, small + _QUEUED_BYTES, large)

    def _abort(self) -> None:
        """Let EXEC do nothing, and free the memory of the commands that wait for it."""
        if self._batch is not None:
            self._forget(self._batch.commands)
            self._batch = Batch(is_aborted=True)

    def _forget(self, commands: Iterable[tuple[Command, int]]) -> None:
        """Free the memory of commands that are not run."""
        for args, small in commands:
            self._commands_ended(small)
            self.shared.memory.release(_large_bytes(args))

    # ---- answers --------------------------------------------------------------------------------------------------------

    def _flush_soon(self, slot: Slot) -> None:
        if not self._flushes and self._slots and slot is self._slots[0]:
            self._flushes = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if not self._is_open:
            return
        now_s = time.perf_counter()
        while (
            self._slots
            and (pieces := self._slots[0].pieces) is not None
            and self._queued_bytes - self._sent_bytes < UNSENT_BYTES_MAX
        ):
            slot = self._slots.popleft()
            self._behind_bytes -= slot.loose_bytes
            if not self._out:
                self._moved(0, is_enough=True)
            self._out.extend(pieces)
            self._queued_bytes += sum(map(len, pieces))
            self._said_bytes += slot.command_bytes
            slot.command_bytes = 0
            if slot.held:
                self._held.append((self._queued_bytes, slot))
            if slot.metered is not None:
                self.meter.done(slot.metered, now_s - slot.started_s)
        self._send()

    def _send(self) -> None:
        try:
            while self._out:
                some = [self._out[at] for at in range(min(len(self._out), _PIECES_MAX))]
                self._took(self._socket.sendmsg(some))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
            return
        if self._said_bytes and not self._out:
            self._commands_ended(self._said_bytes)
            self._said_bytes = 0
        if not self._out and self._slots:
            if self._slots[0].pieces is not None:
                self._flush_soon(self._slots[0])
            self.shared.memory.retry()  # the next answer is due now
        if self._backlog:
            self._dispatch()
        self._update()

    def _took(self, count: int) -> None:
        self._moved(count, is_enough=not self._held)
        self._sent_bytes += count
        self.meter.sent_bytes += count
        while count:
            piece = self._out.popleft()
            if len(piece) > count:
                self._out.appendleft(memoryview(piece)[count:])
                break
            count -= len(piece)
        while self._held and self._held[0][0] <= self._sent_bytes:
            self._free(self._held.popleft()[1])

    # ---- inside ---------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Wait for the socket as there is use for it; close when all is said."""
        if self._is_open and self._has_ended and not (self._backlog or self._slots or self._out):
            self.close()
            return
        reads = self._is_open and not self._has_ended and not self._backlog and not self._waits_for_memory()
        if reads != self._reads:
            self._reads = reads
            if reads:
                self._moved(0, is_enough=not self._out)  # it could not send before
                self._loop.add_reader(self._socket, self._readable)
            else:
                self._loop.remove_reader(self._socket)
        writes = self._is_open and bool(self._out)
        if writes != self._writes:
            self._writes = writes
            if writes:
                self._loop.add_writer(self._socket, self._send)
            else:
                self._loop.remove_writer(self._socket)

    def _moved(self, count: int, *, is_enough: bool) -> None:
        """The client has sent or taken something: what it is not to be cut off for, or some bytes of that."""
        self._moved_bytes += count
        if is_enough or self._moved_bytes >= LEAST_BYTES:
            self._moved_s, self._moved_bytes = time.monotonic(), 0

    def _waits_for_memory(self) -> bool:
        """Its own answers let it go on, whatever others do."""
        waiting = 0 if self._batch is None else self._batch.held_bytes  # not read from, it could not send EXEC
        return self._commands_bytes - waiting > AHEAD_BYTES and self.shared.memory.is_full

    def _commands_ended(self, count: int) -> None:
        self._commands_bytes -= count
        self.shared.memory.commands_ended(count)

    def _free(self, slot: Slot) -> None:
        if slot.command_bytes:
            self._commands_ended(slot.command_bytes)
            slot.command_bytes = 0
        held, slot.held = slot.held, ()
        for one in held:
            self.held_bytes -= one.count
            one.release()


def _large_bytes(args: Command) -> int:
    return sum([one.length for one in args if type(one) is Large and one.refused is None])


def _refused(args: Command) -> str | None:
    for one in args:
        if type(one) is Large and one.refused is not None:
            return one.refused
    return None


def _small_bytes(args: Command) -> int:
    return sum([len(one) + _ARGUMENT_BYTES for one in args if type(one) is bytes])


def _check_words(spec: Spec, args: Command) -> None:
    """Raise an error if an argument is long that is no value."""
    lengths = [len(one) if isinstance(one, bytes) else one.length for one in args]
    if spec.values is not None:
        lengths[spec.values] = [0] * len(lengths[spec.values])
    if (longest := max(lengths)) > WORD_BYTES_MAX:
        raise _WrongError(f"ERR argument of {longest:,} bytes; allowed are 0 to {WORD_BYTES_MAX:,} where it is no value")


def _unknown_command(args: Command) -> str:
    """As Redis says it, with the beginning of the arguments."""
    words = [one if isinstance(one, bytes) else bytes(one.data[:_SHOWN_BYTES]) for one in args]
    shown = ""
    for word in words[1:]:
        if len(shown) >= _SHOWN_BYTES:
            break
        shown += f"'{word[: _SHOWN_BYTES - len(shown)].decode('utf-8', 'replace')}' "
    return f"ERR unknown command '{words[0][:_SHOWN_BYTES].decode('utf-8', 'replace')}', with args beginning with: {shown}"
