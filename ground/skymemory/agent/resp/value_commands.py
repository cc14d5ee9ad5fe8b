"""Commands on values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from skymemory.agent.activity import Outcome
from skymemory.agent.resp.numbers import SYNTAX, expiry, is_terms, terms, whole_number
from skymemory.agent.resp.operations import Delete, Needs, Read, SetTerms, State, Write
from skymemory.agent.resp.pattern import Pattern
from skymemory.agent.resp.replies import OK, CommandError, encode
from skymemory.agent.resp.requests import Large
from skymemory.agent.resp.session import error_of_length, miss_for_counting_client
from skymemory.agent.resp.slots import Slot
from skymemory.agent.resp.table import command
from skymemory.store.keyvalue import now_unix_ms

if TYPE_CHECKING:
    from skymemory.agent.resp.connection import Connection
    from skymemory.agent.resp.gateway import Gateway

_FLUSHED_AT_ONCE: Final = 512
SCAN_COUNT: Final = 10
SCAN_COUNT_MAX: Final = 100_000
"""names that one SCAN looks at, whatever was asked for: all others wait meanwhile"""
_SCAN_STEPS_MAX: Final = 1 << 22
"""bytes of names times bytes of the pattern that one SCAN looks at, but one name at least: some tenths of a second"""
_OK_BYTES: Final = len(OK)
_DIGIT_BYTES: Final = len(b":0\r\n")


def _length(data: Any) -> int:
    return data.length if isinstance(data, Large) else len(data)


def _check_length(gateway: Gateway, data: Any) -> None:
    if (why := gateway.values.too_long(_length(data))) is not None:
        raise CommandError(why)


def _refusal(connection: Connection, slot: Slot, name: bytes, count: int) -> Callable[[str], None]:
    """Tells an error; one that counts bytes gets as many as it reads."""
    if not connection.session.counts_bytes(name):
        return slot.error

    def refuse(why: str) -> None:
        connection.meter.failed("ERR")
        slot.answer(error_of_length(count))

    return refuse


def _seen(gateway: Gateway, connection: Connection, part: bytes, length: int) -> None:
    connection.session.lengths.put(part, length)
    gateway.lengths.put(part, length)


def _fetch(gateway: Gateway, connection: Connection, name: bytes, slot: Slot) -> None:
    def respond(state: State) -> None:
        missed: Outcome = "not_found" if state.lost_length is None else "not_delivered"
        gateway.sky.observer.activity.read("redis", "hit" if state.is_there else missed)
        if (part := connection.session.counted_part(name)) is not None:
            known = (state.lost_length, connection.session.lengths.get(part), gateway.lengths.get(part))
            if state.is_there:
                _seen(gateway, connection, part, state.length)
            elif (length := next((one for one in known if one is not None), None)) is not None:
                slot.answer(miss_for_counting_client(length))
                return
        slot.value(state)

    gateway.values.do(connection.session.database, name, Read(Needs.DATA, respond), slot)


@command(2, "readonly", "fast", keys=(1, 1, 1))
def get(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """The value of a name."""
    _fetch(gateway, connection, args[1], connection.slot("get"))


@command(-2, "readonly", "fast", keys=(1, -1, 1))
def mget(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """The values of names; they go out as they come, in order."""
    connection.slot(None).array(len(args) - 1)
    for at, name in enumerate(args[1:], 2):
        _fetch(gateway, connection, name, connection.slot("mget" if at == len(args) else None))


def _put(gateway: Gateway, connection: Connection, name: bytes, data: Any, slot: Slot, *, expires_unix_ms: int = 0) -> None:
    refuse = _refusal(connection, slot, name, _OK_BYTES)
    write = Write(data, lambda done, before: slot.answer(OK), refuse, expires_unix_ms=expires_unix_ms)
    gateway.values.do(connection.session.database, name, write, slot)


@command(-3, "write", "denyoom", keys=(1, 1, 1), values=slice(2, 3), name="set")
def set_(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Store a value, for a while or for good, if there is none, or if there is one."""
    name, data = args[1], args[2]
    if len(args) == 3:
        slot = connection.slot("set")
        if (why := gateway.values.too_long(_length(data))) is not None:
            _refusal(connection, slot, name, _OK_BYTES)(why)
        else:
            if (part := connection.session.counted_part(name)) is not None:
                _seen(gateway, connection, part, _length(data))
            _put(gateway, connection, name, data, slot)
        return
    if_there, returns, keeps_terms, expires_unix_ms = _options(args[3:])
    _check_length(gateway, data)
    slot = connection.slot("set")

    def respond(done: bool, before: State | None) -> None:
        if returns:
            slot.value(before or State())
        elif done:
            slot.answer(OK)
        else:
            slot.null()

    write = Write(
        data,
        respond,
        slot.error,
        expires_unix_ms=expires_unix_ms,
        if_there=if_there,
        keeps_terms=keeps_terms,
        returns=returns,
    )
    gateway.values.do(connection.session.database, name, write, slot)


def _options(words: Sequence[bytes]) -> tuple[bool | None, bool, bool, int]:
    """Of SET: only if it is there (or is not), GET, KEEPTTL, when it expires."""
    if_there: bool | None = None
    returns = keeps_terms = False
    limit: tuple[bytes, bytes] | None = None
    left = iter(words)
    for word in left:
        option = word.lower()
        if option in (b"nx", b"xx") and if_there in (None, option == b"xx"):
            if_there = option == b"xx"
        elif option == b"get":
            returns = True
        elif option == b"keepttl" and limit is None:
            keeps_terms = True
        elif is_terms(option) and (limit is None or limit[0] == option) and not keeps_terms:
            raw = next(left, None)
            if raw is None:
                raise CommandError(SYNTAX)
            limit = option, raw
        else:
            raise CommandError(SYNTAX)
    return if_there, returns, keeps_terms, 0 if limit is None else terms(*limit, now_unix_ms(), "set")


@command(3, "write", "denyoom", "fast", keys=(1, 1, 1), values=slice(2, 3))
def setnx(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Store a value if there is none."""
    _check_length(gateway, args[2])
    slot = connection.slot("setnx")
    write = Write(args[2], lambda done, before: slot.integer(int(done)), slot.error, if_there=False)
    gateway.values.do(connection.session.database, args[1], write, slot)


@command(4, "write", "denyoom", keys=(1, 1, 1), values=slice(3, 4))
def setex(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Store a value for some seconds."""
    _put_for_a_while(gateway, connection, args, b"ex", "setex")


@command(4, "write", "denyoom", keys=(1, 1, 1), values=slice(3, 4))
def psetex(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Store a value for some milliseconds."""
    _put_for_a_while(gateway, connection, args, b"px", "psetex")


def _put_for_a_while(gateway: Gateway, connection: Connection, args: Sequence[Any], unit: bytes, named: str) -> None:
    expires_unix_ms = terms(unit, args[2], now_unix_ms(), named)
    _check_length(gateway, args[3])
    _put(gateway, connection, args[1], args[3], connection.slot(named), expires_unix_ms=expires_unix_ms)


class _Several:
    """One end of several operations."""

    def __init__(self, count: int, ended: Callable[[int, str | None], None]) -> None:
        """`ended`: takes the sum of the numbers that each said; and, if one could not be done, why."""
        self._left = count
        self._sum = 0
        self._ended = ended
        self._why: str | None = None

    def count(self, number: int) -> None:
        """One is done."""
        self._sum += number
        self._left -= 1
        if self._left == 0:
            self._ended(self._sum, self._why)

    def refuse(self, why: str) -> None:
        """One is not."""
        self._why = why
        self.count(0)


def _summed(slot: Slot) -> Callable[[int, str | None], None]:
    return lambda total, why: slot.integer(total) if why is None else slot.error(why)


@command(-3, "write", "denyoom", keys=(1, -1, 2), values=slice(2, None, 2))
def mset(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Store values. Others may see some of them before the last."""
    if len(args) % 2 == 0:
        raise CommandError("ERR wrong number of arguments for 'mset' command")
    for data in args[2::2]:
        _check_length(gateway, data)
    slot = connection.slot("mset")
    all_ = _Several(len(args) // 2, lambda _, why: slot.answer(OK) if why is None else slot.error(why))
    for name, data in zip(args[1::2], args[2::2], strict=True):
        write = Write(data, lambda done, before: all_.count(1), all_.refuse)
        gateway.values.do(connection.session.database, name, write, slot)


@command(-2, "readonly", "fast", keys=(1, -1, 1), group="generic")
def exists(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """How many of these names have a value, as far as is known without fetching it."""
    slot = connection.slot("exists")
    all_ = _Several(len(args) - 1, _summed(slot))

    def respond(state: State) -> None:
        if not state.is_there:  # LMCache asks so before it gets, and gets only what is there
            gateway.sky.observer.activity.read("redis", "not_found")
        all_.count(int(state.is_there))

    for name in args[1:]:
        read = Read(Needs.TERMS, respond)
        gateway.values.do(connection.session.database, name, read, slot)


def _delete(gateway: Gateway, connection: Connection, args: Sequence[Any], named: str) -> None:
    slot = connection.slot(named)
    if len(args) == 2:
        delete = Delete(slot.integer, _refusal(connection, slot, args[1], _DIGIT_BYTES))
        gateway.values.do(connection.session.database, args[1], delete, slot)
        return
    all_ = _Several(len(args) - 1, _summed(slot))
    for name in args[1:]:
        gateway.values.do(connection.session.database, name, Delete(all_.count, all_.refuse), slot)


@command(-2, "write", keys=(1, -1, 1), group="generic", name="del")
def del_(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Delete values."""
    _delete(gateway, connection, args, "del")


@command(-2, "write", "fast", keys=(1, -1, 1), group="generic")
def unlink(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Delete values."""
    _delete(gateway, connection, args, "unlink")


@command(2, "readonly", "fast", keys=(1, 1, 1))
def strlen(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Bytes of a value."""
    slot = connection.slot("strlen")
    read = Read(Needs.LENGTH, lambda state: slot.integer(state.length if state.is_there else 0))
    gateway.values.do(connection.session.database, args[1], read, slot)


# ---- terms ----------------------------------------------------------------------------------------------------------


def _left(gateway: Gateway, connection: Connection, args: Sequence[Any], tell: Callable[[int], int]) -> None:
    slot = connection.slot(args[0].lower().decode())

    def respond(state: State) -> None:
        if not state.is_there:
            slot.integer(-2)
        else:
            slot.integer(tell(state.expires_unix_ms) if state.expires_unix_ms else -1)

    gateway.values.do(connection.session.database, args[1], Read(Needs.TERMS, respond), slot)


@command(2, "readonly", "fast", keys=(1, 1, 1), group="generic")
def ttl(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Seconds until a value expires; -1: never, -2: there is none."""
    _left(gateway, connection, args, lambda at: (max(0, at - now_unix_ms()) + 500) // 1000)


@command(2, "readonly", "fast", keys=(1, 1, 1), group="generic")
def pttl(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Milliseconds until a value expires; -1: never, -2: there is none."""
    _left(gateway, connection, args, lambda at: max(0, at - now_unix_ms()))


@command(2, "readonly", "fast", keys=(1, 1, 1), group="generic")
def expiretime(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """When a value expires, in seconds since 1970; -1: never, -2: there is none."""
    _left(gateway, connection, args, lambda at: (at + 500) // 1000)


@command(2, "readonly", "fast", keys=(1, 1, 1), group="generic")
def pexpiretime(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """When a value expires, in milliseconds since 1970; -1: never, -2: there is none."""
    _left(gateway, connection, args, lambda at: at)


def _limit(gateway: Gateway, connection: Connection, args: Sequence[Any], unit_ms: int, is_relative: bool) -> None:
    named, now_ms = args[0].lower().decode(), now_unix_ms()
    words = {word.lower() for word in args[3:]}
    if unknown := words - {b"nx", b"xx", b"gt", b"lt"}:
        raise CommandError(f"ERR Unsupported option {next(iter(unknown)).decode('utf-8', 'replace')}")
    if b"nx" in words and len(words) > 1:
        raise CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"gt", b"lt"} <= words:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    at = expiry(whole_number(args[2]), unit_ms, is_relative, now_ms, named)

    def is_allowed(before: int) -> bool:
        if (b"nx" in words and before) or (b"xx" in words and not before):
            return False
        if b"gt" in words:
            return 0 < before < at
        return b"lt" not in words or before == 0 or at < before

    slot = connection.slot(named)
    terms_ = SetTerms(max(1, at), now_ms, is_allowed, slot.integer, slot.error)
    gateway.values.do(connection.session.database, args[1], terms_, slot)


@command(-3, "write", "fast", keys=(1, 1, 1), group="generic")
def expire(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Let a value expire in some seconds: it is stored anew, as satellites hold it with its terms."""
    _limit(gateway, connection, args, 1000, is_relative=True)


@command(-3, "write", "fast", keys=(1, 1, 1), group="generic")
def pexpire(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Let a value expire in some milliseconds."""
    _limit(gateway, connection, args, 1, is_relative=True)


@command(-3, "write", "fast", keys=(1, 1, 1), group="generic")
def expireat(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Let a value expire at a time in seconds since 1970."""
    _limit(gateway, connection, args, 1000, is_relative=False)


@command(-3, "write", "fast", keys=(1, 1, 1), group="generic")
def pexpireat(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Let a value expire at a time in milliseconds since 1970."""
    _limit(gateway, connection, args, 1, is_relative=False)


@command(2, "write", "fast", keys=(1, 1, 1), group="generic")
def persist(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Let a value stay for good."""
    slot = connection.slot("persist")
    terms_ = SetTerms(0, now_unix_ms(), lambda before: before > 0, slot.integer, slot.error)
    gateway.values.do(connection.session.database, args[1], terms_, slot)


# ---- what is there --------------------------------------------------------------------------------------------------


@command(-2, "readonly", waits=True, group="generic")
def scan(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Names that this agent knows, some at a time: MATCH a pattern, COUNT how many to look at, TYPE string."""
    if not args[1].isdigit() or int(args[1]) >= 1 << 64:
        raise CommandError("ERR invalid cursor")
    pattern, steps, count, is_string = None, 0, SCAN_COUNT, True
    words = iter(args[2:])
    for word in words:
        option, value = word.lower(), next(words, None)
        if value is None or option not in (b"match", b"count", b"type"):
            raise CommandError(SYNTAX)
        if option == b"match":
            pattern, steps = Pattern(value), len(value)
        elif option == b"type":
            is_string = value.lower() == b"string"
        else:
            count = whole_number(value)
            if count < 1:
                raise CommandError(SYNTAX)
    directory, database = gateway.values.directory, connection.session.database
    most = _SCAN_STEPS_MAX // max(1, steps)
    cursor, names = directory.scan(database, int(args[1]), min(count, SCAN_COUNT_MAX), now_unix_ms(), bytes_max=most)
    found = [name for name in names if is_string and (pattern is None or pattern.matches(name))]
    connection.slot("scan").answer(encode([str(cursor), found], connection.session.protocol))


@command(1, "readonly", "fast", waits=True, group="server")
def dbsize(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """How many names this agent knows."""
    connection.slot("dbsize").integer(gateway.values.directory.count(connection.session.database, now_unix_ms()))


@command(-1, "write", waits=True, blocks=True, group="server")
def flushdb(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Delete the values that this agent knows in the database."""
    _flush(gateway, connection, args, connection.session.database)


@command(-1, "write", waits=True, blocks=True, group="server")
def flushall(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Delete the values that this agent knows."""
    _flush(gateway, connection, args, None)


def _flush(gateway: Gateway, connection: Connection, args: Sequence[Any], database: int | None) -> None:
    if len(args) > 2 or (len(args) == 2 and args[1].lower() not in (b"sync", b"async")):
        raise CommandError(SYNTAX)
    slot = connection.slot(args[0].lower().decode())
    names = gateway.values.directory.names(database)

    async def delete(some: Sequence[tuple[int, bytes]]) -> str | None:
        ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        all_ = _Several(len(some), lambda _, why: ended.set_result(why))
        for number, name in some:
            gateway.values.do(number, name, Delete(all_.count, all_.refuse), slot)
        return await ended

    async def flush() -> None:
        for at in range(0, len(names), _FLUSHED_AT_ONCE):
            if (why := await delete(names[at : at + _FLUSHED_AT_ONCE])) is not None:
                slot.error(why)
                return
        slot.answer(OK)

    gateway.work(flush())
