"""`Connection`: one Redis client. Its commands are run as they come, and answered in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from skymemory.agent.gateway.answers import Answers
from skymemory.agent.gateway.arguments import WORD_BYTES_MAX, WrongError, check_words, unknown_command
from skymemory.agent.gateway.batch import COMMANDS_MAX, LEAST_BYTES, STALL_S, Batch
from skymemory.agent.gateway.client import Spec
from skymemory.agent.gateway.lmcache import Padding
from skymemory.agent.gateway.memory import ANSWERS_BYTES_MAX, Held
from skymemory.agent.gateway.operations import Operation
from skymemory.agent.gateway.replies import QUEUED, CommandError, error
from skymemory.agent.gateway.requests import READ_BYTES, Command, ProtocolError, RequestReader
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.shared import Shared
from skymemory.agent.gateway.slots import Slot
from skymemory.agent.gateway.users import User

_log = logging.getLogger(__name__)

_ASKED_LEAST_BYTES: Final = 1 << 20
"""Bytes of commands in `STALL_S` that are progress of a client that takes no answers meanwhile."""
_UNTAKEN_S: Final = 5 * STALL_S
"""Time after which a client that takes no answers is cut off, whatever it sends meanwhile."""
TURN_S: Final = 0.001
"""Time that commands of one connection run before others have their turn: what others ask takes several turns of the loop."""
LARGE_READ_BYTES: Final = 1 << 20
"""Bytes of a long value that are read at a time, each into memory that is touched for the first time."""
_LEAST_READ_BYTES: Final = 1 << 13
"""Bytes of one read, if they are many arguments: all are taken apart at once, about a microsecond for each."""
_MANY_ARGUMENTS: Final = 128
"""Arguments of one read that are many."""
STRANGER_S: Final = 10.0
"""Time after which a client without the password is cut off: places are few."""
HALF_S: Final = 5.0
"""Time after which half a command that gets no longer does not keep its client's place."""
AHEAD_BYTES: Final = 1 << 16
"""Bytes of commands under way; a client that has more is not read from while memory is full."""
FULL_READ_BYTES: Final = 1 << 12
"""Bytes that are read from other clients at a time, meanwhile."""
_QUEUED_BYTES: Final = 256
"""Memory that a command takes besides its arguments while it waits for EXEC."""
_BROWSERS: Final = (b"post", b"host:")
"""Words of a browser, whatever its method. Redis ends these connections too: the page of a stranger that is open on this
machine could have commands of its own in the body."""
_LOADING: Final = "LOADING the agent looks for its constellation; try again"


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
            shared: State of the gateway, for all connections.
            commands: The table.
            client: Socket, connected and not blocking.
            session: State of the client.
            left: Called when the connection has ended.
            padding: Lengths of answers for LMCache's client; None: any other client.
        """
        self.shared = shared
        self.commands = commands
        self.session = session
        self.values = shared.values_of(session.user)
        """Values that the client's user sees."""
        self.padding = padding
        self.tally = shared.tally_of(session.user)
        """Numbers of the tenant that the client's user is of."""
        self.held_bytes = 0
        """Memory of the gateway for values that came or that wait to be sent."""
        self._left = left
        self._socket = client
        self._loop = asyncio.get_running_loop()
        # What is too long for one tenant is too long for all
        self._reader = RequestReader(shared.scratch, shared.admit, shared.memory.release, shared.claim)
        self._reader.is_stranger = not session.is_trusted
        self._backlog: deque[Command] = deque()
        self.answers = Answers(shared.memory, shared.joined_bytes_max, self._sent)
        self._commands_bytes = 0  # of all commands whose answers are not sent
        self._batch: Batch | None = None
        self._steps: Iterator[None] | None = None  # of the first command of the backlog, which is begun in part
        self._began_s = 0.0  # the command that was run last
        self._has_ended = False  # nothing is read any more; what was asked for is still answered
        self._wrong: str | None = None  # what is said when all that came before it is answered
        self._reads_bytes = 0  # by the client, as the answer to the command that is run
        self._is_blocked = False  # by the command that was run last
        self._tasks: set[asyncio.Task[None]] = set()  # of commands that go on in the background
        self._is_open = True
        session.used_bytes = lambda: self.held_bytes + self._commands_bytes + self._reader.taken_bytes
        self._reads = False
        self._writes = False  # the socket takes no more for now
        self._flushes = False
        self._read_bytes = _LEAST_READ_BYTES
        self._rests = False  # until its next turn
        self._moved_s = self._taken_s = time.monotonic()
        self._moved_bytes = 0  # since then
        self._update()

    # ---- for commands ---------------------------------------------------------------------------------------------------

    def slot(self) -> Slot:
        """Return the place of the next answer."""
        slot = Slot(self, self._reads_bytes)
        self.answers.slots.append(slot)
        return slot

    def do(self, name: bytes, operation: Operation, slot: Slot) -> None:
        """Do something to a value of the client's database; `slot` waits for it."""
        self.values.do(self.session.database, name, operation, slot)

    def work(self, coroutine: Coroutine[Any, Any, None], slot: Slot) -> None:
        """Let a command go on in the background until it has answered in `slot`, or the client has left."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if slot.pieces is None:
                if task.cancelled():
                    slot.answer()
                else:
                    slot.error("ERR internal error")

        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(ended)

    def answered(self, slot: Slot) -> None:
        """Take the answer of a slot."""
        if not self._is_open:
            self._free(slot)
            return
        answers = self.answers
        answers.unsent_bytes += slot.loose_bytes
        if slot is answers.slots[0] or (self._writes and answers.is_full):
            self._flush_soon()

    def hold(self, slot: Slot, held: Held) -> None:
        """Keep memory until the answer in a slot is sent."""
        slot.held += (held,)
        self.held_bytes += held.count

    def is_due(self, slot: Slot) -> bool:
        """Return whether the client has got all answers before this one."""
        return not self._is_open or self.answers.is_first(slot)

    def trust(self, user: User) -> None:
        """Let the client be this user: it has sent the password."""
        if user is self.session.user:
            return
        self.session.user = user
        self._reader.is_stranger = False
        values, tally = self.shared.values_of(user), self.shared.tally_of(user)
        if tally is not self.tally:
            tally.connections += 1
            self.session.told_number = tally.connections
            self.values, self.tally = values, tally
            if self.padding is not None:
                self.padding = Padding(values.lengths)

    def end(self) -> None:
        """Answer the commands so far, and close the connection."""
        self._has_ended = True
        begun = [] if self._steps is None else [self._backlog.popleft()]  # it goes on: others may wait for it
        self._forget(self._backlog)
        self._backlog.clear()
        self._backlog += begun
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

    # ---- for the gateway ------------------------------------------------------------------------------------------------

    def retire(self) -> None:
        """Read nothing more; close when all that came is answered."""
        self._has_ended = True
        self._update()

    def stalled(self, now_s: float) -> str | None:
        """Return the words for a client that is to be cut off; None: all is well."""
        if not self.session.is_trusted and now_s - self.session.started_s >= STRANGER_S:
            return f"no password in {STRANGER_S:.0f} s"
        if self._batch is not None and self._batch.is_stalled(now_s):
            return f"MULTI without EXEC in {STALL_S:.0f} s"
        if self._writes and now_s - self._taken_s >= _UNTAKEN_S:
            return f"no answer was taken in {_UNTAKEN_S:.0f} s"
        if now_s - self._moved_s < STALL_S:
            return None
        if self._writes:
            return f"answers are not taken in {STALL_S:.0f} s"
        is_half = self._reader.is_amid and not self._backlog and not self.answers.slots
        return f"half a command, and the rest does not come in {STALL_S:.0f} s" if is_half else None

    def spare(self, now_s: float) -> tuple[bool, float] | None:
        """Return how well this client can be spared when others want its place, the least first; None: it cannot.

        A client that has sent no password comes first, then the one that has said nothing for the longest time. A client whose
        command is on its way, or that has begun a batch, keeps its place.
        """
        if not self.session.is_trusted:
            return False, self.session.started_s
        if not self.answers.are_sent or self._backlog or self._tasks or self._batch is not None:
            return None
        if self._reader.is_amid and now_s - self._moved_s < HALF_S:
            return None
        return True, self.session.active_s

    def cut_off(self, why: str) -> None:
        """End a stalled connection; a client that has taken all answers is told."""
        self.tally.failed("stalled")
        if not self._writes:
            with suppress(OSError):
                self._socket.send(error(f"ERR Protocol error: {why}"))
        _log.info("client %s cut off: %s", self.session.address, why)
        self.close()

    def close(self) -> None:
        """End at once; safe to call twice."""
        if not self._is_open:
            return
        self._is_open, self._has_ended, self._writes = False, True, False
        self._loop.remove_writer(self._socket)
        self._update()
        self._socket.close()
        self._reader.close()
        for task in self._tasks:
            task.cancel()
        self.end()
        for slot in self.answers.slots:
            if slot.pieces is not None:  # the others give theirs back when they are answered
                self._free(slot)
        if self._steps is not None and not self._rests:
            self._rests = True
            self._loop.call_soon(self._go_on)
        self.answers.drop()
        self.shared.sessions.pop(self.session.number)
        self._left(self)
        self.shared.memory.retry()  # what waits for this client is done without waiting

    # ---- commands -------------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        buffer = self._reader.buffer()
        if buffer is self.shared.scratch:
            buffer = buffer[: FULL_READ_BYTES if self.shared.memory.is_full else self._read_bytes]
        else:
            buffer = buffer[: FULL_READ_BYTES if self.shared.memory.is_full else LARGE_READ_BYTES]
        try:
            count = self._socket.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self.retire()
            return
        self.session.active_s = time.monotonic()
        self.tally.received_bytes += count
        commands: list[Command] = []
        is_new, before = not self._reader.is_amid, self._reader.arguments
        try:
            self._reader.received(count, commands)
        except ProtocolError as wrong:
            self._wrong = str(wrong)
            self._has_ended = True
        except MemoryError:  # what came is lost, so nothing that follows can be understood
            _log.warning("no memory for a command of client %s: cut off", self.session.address)
            self.tally.failed("memory")
            self._take(commands)
            self.close()
            return
        if self._reader.arguments - before >= _MANY_ARGUMENTS:
            self._read_bytes = _LEAST_READ_BYTES
        elif count == self._read_bytes < READ_BYTES:
            self._read_bytes *= 2
        if self._writes:  # bytes that are no commands, such as empty lines, are no progress
            self._moved(count if commands or self._reader.is_amid else 0, is_enough=False, least_bytes=_ASKED_LEAST_BYTES)
        else:
            self._moved(count, is_enough=is_new or bool(commands), least_bytes=LEAST_BYTES)
        self._take(commands)
        self._dispatch()

    def _take(self, commands: list[Command]) -> None:
        self._backlog += commands
        came = sum([command.small_bytes for command in commands])
        self._commands_bytes += came
        self.shared.memory.commands_came(came)

    def _dispatch(self) -> None:
        """Run the commands that may run now."""
        until_s = time.monotonic() + TURN_S
        if self._writes:  # elsewhere answers wait for the sky, and not for the client
            self.answers.may_wait(1)
        while self._backlog and not self._rests and self._has_room():
            command = self._backlog[0]
            name = command.name
            spec = self.commands.get(name)
            if spec is None and name in _BROWSERS:
                self.tally.failed("browser")
                _log.warning("client %s speaks HTTP: cut off", self.session.address)
                self.close()
                return
            if self._steps is None:
                if self.answers.slots and (self._is_blocked or (spec is not None and spec.waits)):
                    break
                self._is_blocked = spec is not None and spec.blocks
            self._backlog.popleft()
            self._run(spec, command, until_s)
            if self._backlog and time.monotonic() >= until_s:
                self._rests = True
                self._loop.call_soon(self._go_on)
        if self._wrong is not None and not self._backlog:
            wrong, self._wrong = self._wrong, None
            self.tally.failed("protocol")
            self.slot().answer(error(f"ERR Protocol error: {wrong}"))
        self._update()

    def _go_on(self) -> None:
        self._rests = False
        if self._is_open or self._steps is not None:
            self._dispatch()

    def _has_room(self) -> bool:
        """Return whether there may be more answers now; nobody takes those of a client that has left."""
        return not self._is_open or (self.answers.has_room and self.held_bytes < ANSWERS_BYTES_MAX)

    def _run(self, spec: Spec | None, command: Command, until_s: float) -> None:
        """Begin a command, or go on with it; it is in the backlog again if there is more to begin when its turn ends."""
        session, batch = self.session, self._batch
        try:
            if self._steps is None:
                self._began_s = time.perf_counter()
                session.last_command = "unknown" if spec is None else spec.name
                if self.padding is not None:
                    self._reads_bytes = self.padding.reads_bytes(session.last_command, command.args)
                spec = self._checked(spec, command)
                if batch is not None and not spec.is_at_once:
                    self._queue(batch, command)
                    return
                self._steps = spec.run(self, command.args)
            for _ in self._steps or ():
                if time.monotonic() >= until_s or not self._has_room():
                    self._backlog.appendleft(command)
                    return
        except WrongError as wrong:
            self._abort()
            why = str(wrong)
            if session.last_command == "exec":
                self._batch, why = None, f"EXECABORT Transaction discarded because of: {why.removeprefix('ERR ')}"
            self.slot().error(why)
        except CommandError as wrong:
            self.slot().error(str(wrong))
        except Exception:  # whatever it was, other clients and this one's other commands go on
            _log.exception("command %s failed", session.last_command)
            own = [slot for slot in self.answers.slots if slot.started_s >= self._began_s]
            for slot in own or [self.slot()]:
                if slot.pieces is None:
                    slot.error("ERR internal error")
        self._ran(command)

    def _ran(self, command: Command) -> None:
        """Account for a command all of which is begun: its last answer gives its memory back."""
        self._steps = None
        self.session.commands += 1
        last = self.answers.slots[-1]
        last.metered, last.started_s = self.session.last_command, self._began_s
        last.command_bytes += command.small_bytes
        if command.large_bytes:
            self.hold(last, Held(self.shared.memory, command.large_bytes))
        if not self._is_open and last.pieces is not None:  # it was answered before this memory was its own
            self._free(last)

    def _checked(self, spec: Spec | None, command: Command) -> Spec:
        """Return the command, if it can be run with these arguments."""
        if command.refused is not None:
            raise WrongError(command.refused)
        if spec is None:
            if self._batch is not None and command.name == b"watch" and len(command.args) > 1:  # the batch stays good
                raise CommandError("ERR WATCH inside MULTI is not allowed")
            raise WrongError(unknown_command(command))
        if not spec.takes(len(command.args)):
            raise WrongError(f"ERR wrong number of arguments for '{spec.name}' command")
        user = self.session.user
        if user is None and not spec.is_open:
            raise CommandError("NOAUTH Authentication required.")
        if user is not None and user.read_only and spec.writes:
            raise CommandError(f"NOPERM User {user.name} has no permissions to run the '{spec.name}' command")
        if self.shared.sky.is_loading and not spec.is_for_loading:
            raise WrongError(_LOADING)
        if command.large_bytes or command.small_bytes > WORD_BYTES_MAX:  # else none can be long
            check_words(spec, command)
        return spec

    # ---- batches --------------------------------------------------------------------------------------------------------

    def _queue(self, batch: Batch, command: Command) -> None:
        """Let a command wait for EXEC. One too many frees the memory of all."""
        why = None
        if len(batch.commands) == COMMANDS_MAX:
            why = f"ERR {COMMANDS_MAX + 1:,} commands in a batch; allowed are up to {COMMANDS_MAX:,}"
        elif batch.held_bytes > AHEAD_BYTES and self.shared.memory.is_full:
            why = self.shared.no_room(command.small_bytes + command.large_bytes)
        if why is not None:
            self._abort()
            self._forget([command])
            self.slot().error(why)
            return
        self.slot().answer(QUEUED)
        if batch.is_aborted:
            self._forget([command])
        else:
            command.small_bytes += _QUEUED_BYTES
            self._commands_bytes += _QUEUED_BYTES
            self.shared.memory.commands_came(_QUEUED_BYTES)
            batch.add(command)

    def _abort(self) -> None:
        """Let EXEC do nothing, and free the memory of the commands that wait for it."""
        if self._batch is not None:
            self._forget(self._batch.commands)
            self._batch = Batch(is_aborted=True)

    def _forget(self, commands: Collection[Command]) -> None:
        """Free the memory of commands that are not run."""
        small_bytes = sum([command.small_bytes for command in commands])
        self._commands_bytes -= small_bytes
        self.shared.memory.commands_ended(small_bytes)
        self.shared.memory.release(sum([command.large_bytes for command in commands]))

    # ---- answers --------------------------------------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        if not self._flushes:
            self._flushes = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if self._is_open:
            if not self._writes:
                self._moved(0, is_enough=True)
            self._send()
            if self._writes and self.answers.join():
                self._dispatch()

    def _send(self) -> None:
        """Send the answers that are known, up to the first that is not."""
        is_full = False
        try:
            while not is_full and (pieces := self.answers.pieces()):
                is_full = self._took(self._socket.sendmsg(pieces)) > 0
        except (BlockingIOError, InterruptedError):
            is_full = True
        except OSError:
            self.close()
            return
        if is_full != self._writes:
            self._writes = is_full
            if is_full:
                self._loop.add_writer(self._socket, self._send)
            else:
                self._loop.remove_writer(self._socket)
        if self.answers.slots and not is_full:
            self.shared.memory.retry()  # the next answer is due now
        if self._backlog:
            self._dispatch()
        else:
            self._update()

    def _took(self, count: int) -> int:
        """Note that bytes are sent; return how many are left of the answer that is sent in part."""
        self._moved(count, is_enough=not self.held_bytes)
        self.tally.sent_bytes += count
        self._taken_s = time.monotonic()
        return self.answers.took(count)

    def _sent(self, slot: Slot, now_s: float) -> None:
        """Account for an answer that is sent, or has been joined to others."""
        if slot.metered is not None:
            self.tally.done(slot.metered, now_s - slot.started_s)
        self._free(slot)

    def _free(self, slot: Slot) -> None:
        """Give back the memory of an answer, and of its command."""
        if slot.command_bytes:
            self._commands_bytes -= slot.command_bytes
            self.shared.memory.commands_ended(slot.command_bytes)
            slot.command_bytes = 0
        if slot.held:
            held, slot.held = slot.held, ()
            for one in held:
                self.held_bytes -= one.count
                one.release()

    # ---- inside ---------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Wait for the socket if its bytes are of use; close when all is answered."""
        if self._is_open and self._has_ended and not self._backlog and self.answers.are_sent:
            self.close()
            return
        reads = self._is_open and not self._has_ended and not self._backlog and not self._waits_for_memory()
        if reads != self._reads:
            self._reads = reads
            if reads:
                self._moved(0, is_enough=not self._writes)  # it could not send before
                self._loop.add_reader(self._socket, self._readable)
            else:
                self._loop.remove_reader(self._socket)

    def _moved(self, count: int, *, is_enough: bool, least_bytes: int = LEAST_BYTES) -> None:
        """Note that the client has sent or taken something: it is not to be cut off for that, or for some bytes of it."""
        self._moved_bytes += count
        if is_enough or self._moved_bytes >= least_bytes:
            self._moved_s, self._moved_bytes = time.monotonic(), 0

    def _waits_for_memory(self) -> bool:
        """Return whether it is not read from: its own answers let it go on, whatever others do."""
        waiting = 0 if self._batch is None else self._batch.held_bytes  # not read from, it could not send EXEC
        return self._commands_bytes - waiting > AHEAD_BYTES and self.shared.memory.is_full
