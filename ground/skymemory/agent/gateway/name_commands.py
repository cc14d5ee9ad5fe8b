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
from skymemory.agent.gateway.replies import OK, CommandError, encode
from skymemory.agent.gateway.value_commands import Several
from skymemory.store.keyvalue import now_unix_ms

_FLUSHED_AT_ONCE: Final = 512
SCAN_COUNT: Final = 10
SCAN_COUNT_MAX: Final = 100_000
"""Names that one SCAN looks at, whatever was asked for: all others wait meanwhile."""
_SCAN_STEPS_MAX: Final = 1 << 22
"""Bytes of names times bytes of the pattern that one SCAN looks at, but one name at least: some tenths of a second."""

_KEYS_AT_ONCE: Final = 1000
_KEYS_STEPS_MAX: Final = 1 << 16
"""Names, and bytes of names times bytes of the pattern, that KEYS looks at before others have their turn."""
_NAME_BYTES: Final = 64
"""Memory that a name takes in an answer besides its bytes."""


def scan(client: Client, args: Sequence[Any]) -> None:
    """Tell names that this agent knows, some at a time: MATCH a pattern, COUNT how many to look at, TYPE string."""
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
    directory, database = client.shared.values.directory, client.session.database
    most = _SCAN_STEPS_MAX // max(1, steps)
    cursor, names = directory.scan(database, int(args[1]), min(count, SCAN_COUNT_MAX), now_unix_ms(), bytes_max=most)
    found = [name for name in names if is_string and (pattern is None or pattern.matches(name))]
    client.slot().answer(encode([str(cursor), found], client.session.protocol))


def keys(client: Client, args: Sequence[Any]) -> None:
    """Tell all names that this agent knows and that match a pattern. Others have their turn meanwhile."""
    pattern, slot, shared = Pattern(args[1]), client.slot(), client.shared
    database, most = client.session.database, _KEYS_STEPS_MAX // max(1, len(args[1]))

    async def work() -> None:
        found: list[bytes] = []
        taken = cursor = 0
        while True:
            cursor, names = shared.values.directory.scan(database, cursor, _KEYS_AT_ONCE, now_unix_ms(), bytes_max=most)
            some = [name for name in names if pattern.matches(name)]
            more = sum(len(name) + _NAME_BYTES for name in some)
            if more and (why := shared.admit(more)) is not None:
                shared.memory.release(taken)
                slot.error(why)
                return
            taken += more
            found += some
            if cursor == 0:
                break
            await asyncio.sleep(0)
        client.hold(slot, Held(shared.memory, taken))
        slot.answer(encode(found, client.session.protocol))

    shared.work(work())


def dbsize(client: Client, args: Sequence[Any]) -> None:
    """Count the names that this agent knows."""
    client.slot().integer(client.shared.values.directory.count(client.session.database, now_unix_ms()))


def flush(client: Client, args: Sequence[Any]) -> None:
    """Delete the values that this agent knows, in the database (FLUSHDB) or in all (FLUSHALL)."""
    if len(args) > 2 or (len(args) == 2 and args[1].lower() not in (b"sync", b"async")):
        raise CommandError(SYNTAX)
    slot, values = client.slot(), client.shared.values
    names = values.directory.names(client.session.database if args[0].lower() == b"flushdb" else None)

    async def flushed(some: Sequence[tuple[int, bytes]]) -> str | None:
        ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        all_ = Several(len(some), lambda _: ended.set_result(None), ended.set_result)
        for number, name in some:
            values.do(number, name, delete(all_.count, all_.refuse), slot)
        return await ended

    async def work() -> None:
        for at in range(0, len(names), _FLUSHED_AT_ONCE):
            if (why := await flushed(names[at : at + _FLUSHED_AT_ONCE])) is not None:
                slot.error(why)
                return
        slot.answer(OK)

    client.shared.work(work())
