"""Commands on the names that the agent knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from skymemory.agent.gateway.client import Client
from skymemory.agent.gateway.memory import Held
from skymemory.agent.gateway.numbers import SYNTAX, whole_number
from skymemory.agent.gateway.operations import delete
from skymemory.agent.gateway.pattern import Pattern
from skymemory.agent.gateway.replies import OK, CommandError, encode, header
from skymemory.agent.gateway.value_commands import Several
from skymemory.store.keyvalue import now_unix_ms

_FLUSHED_AT_ONCE: Final = 512
SCAN_COUNT: Final = 10
SCAN_COUNT_MAX: Final = 100_000
"""Names that one SCAN looks at, whatever was asked for: all others wait meanwhile."""
LOOKED_BYTES_MAX: Final = 1 << 16
"""Bytes of names that SCAN looks at, or KEYS in one step, but one name at least: about 10 ms, whatever the pattern."""
_KEYS_AT_ONCE: Final = 1000
"""Names that KEYS looks at in one step."""


def scan(client: Client, args: Sequence[Any]) -> None:
    """Tell names that this agent knows, some at a time: MATCH a pattern, COUNT how many to look at, TYPE string."""
    if not args[1].isdigit() or int(args[1]) >= 1 << 64:
        raise CommandError("ERR invalid cursor")
    pattern, count, is_string = None, SCAN_COUNT, True
    words = iter(args[2:])
    for word in words:
        option, value = word.lower(), next(words, None)
        if value is None or option not in (b"match", b"count", b"type"):
            raise CommandError(SYNTAX)
        if option == b"match":
            pattern = Pattern(value)
        elif option == b"type":
            is_string = value.lower() == b"string"
        else:
            count = whole_number(value)
            if count < 1:
                raise CommandError(SYNTAX)
    directory, database = client.values.directory, client.session.database
    count = min(count, SCAN_COUNT_MAX)
    cursor, names = directory.scan(database, int(args[1]), count, now_unix_ms(), LOOKED_BYTES_MAX)
    found = [name for name in names if is_string and (pattern is None or pattern.matches(name))]
    client.slot().answer(encode([str(cursor), found], client.session.protocol))


def keys(client: Client, args: Sequence[Any]) -> None:
    """Tell all names that this agent knows and that match a pattern. Others have their turn meanwhile."""
    pattern, slot, shared = Pattern(args[1]), client.slot(), client.shared
    directory, database, protocol = client.values.directory, client.session.database, client.session.protocol

    async def work() -> None:
        found = bytearray()  # encoded names
        count = taken = 0
        cursor: int | None = None
        try:
            while cursor != 0:
                async with shared.step():
                    cursor, names = directory.scan(database, cursor or 0, _KEYS_AT_ONCE, now_unix_ms(), LOOKED_BYTES_MAX)
                    some = [encode(name, protocol) for name in names if pattern.matches(name)]
                more = sum(map(len, some))
                if more and (why := shared.admit(more)) is not None:
                    slot.error(why)
                    return
                taken += more
                count += len(some)
                found += b"".join(some)
            client.hold(slot, Held(shared.memory, taken))
            taken = 0
            slot.answer(header(b"*", count), memoryview(found))
        finally:
            shared.memory.release(taken)

    client.work(work(), slot)


def dbsize(client: Client, args: Sequence[Any]) -> None:
    """Count the names that this agent knows."""
    client.slot().integer(client.values.directory.count(client.session.database, now_unix_ms()))


def flush(client: Client, args: Sequence[Any]) -> None:
    """Delete the values that this agent knows, in the database (FLUSHDB) or in all (FLUSHALL)."""
    if len(args) > 2 or (len(args) == 2 and args[1].lower() not in (b"sync", b"async")):
        raise CommandError(SYNTAX)
    slot, shared = client.slot(), client.shared
    values, directory = client.values, client.values.directory
    databases = [client.session.database] if args[0].lower() == b"flushdb" else directory.databases

    async def flushed(database: int, names: Sequence[bytes]) -> str | None:
        done: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def end(why: str | None) -> None:
            if not done.cancelled():
                done.set_result(why)

        all_ = Several(len(names), lambda _: end(None), end)
        for name in names:
            values.do(database, name, delete(all_.count, all_.refuse), slot)
        return await done

    async def work() -> None:
        for database in databases:
            cursor: int | None = None
            while cursor != 0:
                async with shared.step():
                    cursor, names = directory.scan(database, cursor or 0, _FLUSHED_AT_ONCE, now_unix_ms())
                if names and (why := await flushed(database, names)) is not None:
                    slot.error(why)
                    return
        slot.answer(OK)

    client.work(work(), slot)
