"""Commands on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from skymemory.agent.activity import Outcome
from skymemory.agent.gateway.client import Client
from skymemory.agent.gateway.numbers import NO_NUMBER, NUMBER_MAX, SYNTAX, expiry, is_terms, terms, whole_number
from skymemory.agent.gateway.operations import Needs, Operation, State, delete, read, set_terms, store, store_if
from skymemory.agent.gateway.replies import OK, CommandError
from skymemory.agent.gateway.requests import Large
from skymemory.agent.gateway.slots import Slot
from skymemory.store.keyvalue import now_unix_ms

_DIGITS_MAX: Final = 20
"""Bytes of the longest whole number."""


def _length(data: bytes | Large) -> int:
    return data.length if isinstance(data, Large) else len(data)


def _check_length(client: Client, data: bytes | Large) -> None:
    if (why := client.values.too_long(_length(data))) is not None:
        raise CommandError(why)


def _name_of(args: Sequence[Any]) -> str:
    return str(args[0].lower().decode())


# ---- reads ----------------------------------------------------------------------------------------------------------


def _telling(client: Client, name: bytes, slot: Slot) -> Callable[[State], None]:
    """Return what answers with a value, and counts it as asked for."""
    padding, tally = client.padding, client.values.tally

    def respond(state: State) -> None:
        tally.read(is_there=state.is_there)
        missed: Outcome = "not_found" if state.lost_length is None else "not_delivered"
        client.shared.sky.observer.activity.read("redis", "hit" if state.is_there else missed)
        if padding is not None:
            if state.is_there:
                padding.seen(name, state.length)
            else:
                slot.reads_bytes = padding.header_bytes(name, state.lost_length)
        slot.value(state)

    return respond


def _fetch(client: Client, name: bytes) -> None:
    slot = client.slot()
    client.do(name, read(Needs.DATA, _telling(client, name, slot)), slot)


def get(client: Client, args: Sequence[Any]) -> None:
    """Get the value of a name."""
    _fetch(client, args[1])


def mget(client: Client, args: Sequence[Any]) -> Iterator[None]:
    """Get the values of names; they go out as they come, in order."""
    client.slot().array(len(args) - 1)
    for name in args[1:]:
        yield
        _fetch(client, name)


def strlen(client: Client, args: Sequence[Any]) -> None:
    """Get the length of a value in bytes."""
    slot, tally = client.slot(), client.values.tally

    def respond(state: State) -> None:
        tally.read(is_there=state.is_there)
        slot.integer(state.length)

    client.do(args[1], read(Needs.LENGTH, respond, asks=True), slot)


def type_(client: Client, args: Sequence[Any]) -> None:
    """Tell the type of a value: string, or none where there is none."""
    slot, tally = client.slot(), client.values.tally

    def respond(state: State) -> None:
        tally.read(is_there=state.is_there)
        slot.answer(b"+string\r\n" if state.is_there else b"+none\r\n")

    client.do(args[1], read(Needs.TERMS, respond), slot)


def exists(client: Client, args: Sequence[Any]) -> Iterator[None]:
    """Count the names that have a value (EXISTS, TOUCH). Satellites are asked whether it can be read; it is not fetched."""
    slot, tally = client.slot(), client.values.tally
    asks = client.padding is None  # LMCache asks for each chunk of a prompt, and takes a miss of GET for a miss
    all_ = Several(len(args) - 1, slot.integer, slot.error)

    def respond(state: State) -> None:
        tally.read(is_there=state.is_there)
        if not state.is_there:  # LMCache asks so before it gets, and gets only what is there
            client.shared.sky.observer.activity.read("redis", "not_found")
        all_.count(int(state.is_there))

    for name in args[1:]:
        yield
        client.do(name, read(Needs.TERMS, respond, asks=asks), slot)


# ---- changes --------------------------------------------------------------------------------------------------------


class Several:
    """The one answer to several operations: the sum of their numbers, or why one was not done."""

    def __init__(self, count: int, respond: Callable[[int], None], refuse: Callable[[str], None]) -> None:
        """Wait for `count` operations, then call `respond` or `refuse`."""
        self._left = count
        self._sum = 0
        self._why: str | None = None
        self._respond = respond
        self._refuse = refuse

    def count(self, number: int) -> None:
        """Take the number of one that is done."""
        self._sum += number
        self._left -= 1
        if self._left == 0:
            self._respond(self._sum) if self._why is None else self._refuse(self._why)

    def refuse(self, why: str) -> None:
        """Take why one is not done."""
        self._why = why
        self.count(0)


def set_(client: Client, args: Sequence[Any]) -> None:
    """Store a value, for a while or for good, if there is none, or if there is one."""
    if len(args) > 3:
        _set_if(client, args)
        return
    _check_length(client, args[2])
    if client.padding is not None:
        client.padding.seen(args[1], _length(args[2]))
    slot = client.slot()
    client.do(args[1], store(args[2], lambda _: slot.answer(OK), slot.error), slot)


def _set_if(client: Client, args: Sequence[Any]) -> None:
    if_there, returns, keeps_terms, expires_unix_ms = _options(args[3:])
    _check_length(client, args[2])
    slot, tally = client.slot(), client.values.tally

    def respond(outcome: tuple[bool, State | None]) -> None:
        done, before = outcome
        if returns:
            tally.read(is_there=before is not None)
            slot.value(before or State())
        elif done:
            slot.answer(OK)
        else:
            slot.null()

    operation = store_if(
        args[2],
        respond,
        slot.error,
        expires_unix_ms=expires_unix_ms,
        if_there=if_there,
        keeps_terms=keeps_terms,
        returns=returns,
    )
    client.do(args[1], operation, slot)


def _options(words: Sequence[bytes]) -> tuple[bool | None, bool, bool, int]:
    """Return the options of SET: only if it is there (or is not), GET, KEEPTTL, the time when it expires."""
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


def setnx(client: Client, args: Sequence[Any]) -> None:
    """Store a value if there is none."""
    _check_length(client, args[2])
    slot = client.slot()
    client.do(args[1], store_if(args[2], lambda outcome: slot.integer(int(outcome[0])), slot.error, if_there=False), slot)


def setex(client: Client, args: Sequence[Any]) -> None:
    """Store a value for some seconds (SETEX) or milliseconds (PSETEX)."""
    named = _name_of(args)
    expires_unix_ms = terms(b"ex" if named == "setex" else b"px", args[2], now_unix_ms(), named)
    _check_length(client, args[3])
    slot = client.slot()
    client.do(args[1], store(args[3], lambda _: slot.answer(OK), slot.error, expires_unix_ms), slot)


def mset(client: Client, args: Sequence[Any]) -> Iterator[None]:
    """Store values. Others may see some of them before the last."""
    if len(args) % 2 == 0:
        raise CommandError("ERR wrong number of arguments for 'mset' command")
    for data in args[2::2]:
        yield
        _check_length(client, data)
    slot = client.slot()
    all_ = Several(len(args) // 2, lambda _: slot.answer(OK), slot.error)
    for name, data in zip(args[1::2], args[2::2], strict=True):
        yield
        client.do(name, store(data, lambda _: all_.count(1), all_.refuse), slot)


def incr(client: Client, args: Sequence[Any]) -> None:
    """Add to a whole number (INCR, INCRBY), or subtract from it (DECR, DECRBY). A value that is not there counts as 0."""
    step = whole_number(args[2]) if len(args) > 2 else 1
    if args[0].lower().startswith(b"decr"):
        if step < -NUMBER_MAX:
            raise CommandError("ERR decrement would overflow")
        step = -step
    slot = client.slot()

    def act(state: State) -> int:
        number = _whole_value(state) + step
        if not -NUMBER_MAX - 1 <= number <= NUMBER_MAX:
            raise CommandError("ERR increment or decrement would overflow")
        state.put(b"%d" % number, state.expires_unix_ms)
        return number

    client.do(args[1], Operation(Needs.DATA, act, slot.integer, slot.error), slot)


def _whole_value(state: State) -> int:
    if not state.is_there:
        return 0
    if state.data is None or state.length > _DIGITS_MAX:
        raise CommandError(NO_NUMBER)
    return whole_number(bytes(state.data))


def getdel(client: Client, args: Sequence[Any]) -> None:
    """Get a value, and delete it."""

    def act(state: State) -> State:
        found = state.copy()
        if state.is_there:
            state.forget()
        return found

    slot = client.slot()
    client.do(args[1], Operation(Needs.DATA, act, _telling(client, args[1], slot), slot.error), slot)


def getex(client: Client, args: Sequence[Any]) -> None:
    """Get a value, and let it expire at a time (EX, PX, EXAT, PXAT) or never (PERSIST)."""
    limit: tuple[bytes, bytes] | None = None
    persists = False
    left = iter(args[2:])
    for word in left:
        option = word.lower()
        raw = next(left, None) if is_terms(option) else None
        if option == b"persist" and limit is None:
            persists = True
        elif raw is not None and not persists and (limit is None or limit[0] == option):
            limit = option, raw
        else:
            raise CommandError(SYNTAX)
    if limit is None and not persists:
        _fetch(client, args[1])
        return

    def act(state: State) -> State:
        found, now_ms = state.copy(), now_unix_ms()
        if state.is_there:
            set_terms(state, 0 if limit is None else terms(*limit, now_ms, "getex"), now_ms)
        return found

    slot = client.slot()
    client.do(args[1], Operation(Needs.DATA, act, _telling(client, args[1], slot), slot.error), slot)


def del_(client: Client, args: Sequence[Any]) -> Iterator[None]:
    """Delete values."""
    slot = client.slot()
    all_ = Several(len(args) - 1, slot.integer, slot.error)
    for name in args[1:]:
        yield
        client.do(name, delete(all_.count, all_.refuse), slot)


# ---- terms ----------------------------------------------------------------------------------------------------------

_TOLD: dict[str, Callable[[int], int]] = {
    "ttl": lambda at: (max(0, at - now_unix_ms()) + 500) // 1000,
    "pttl": lambda at: max(0, at - now_unix_ms()),
    "expiretime": lambda at: (at + 500) // 1000,
    "pexpiretime": lambda at: at,
}
_UNITS: dict[str, bytes] = {"expire": b"ex", "pexpire": b"px", "expireat": b"exat", "pexpireat": b"pxat"}


def ttl(client: Client, args: Sequence[Any]) -> None:
    """Tell when a value expires: in how long or at what time, in seconds or milliseconds; -1: never, -2: there is none."""
    slot, tally, tell = client.slot(), client.values.tally, _TOLD[_name_of(args)]

    def respond(state: State) -> None:
        tally.read(is_there=state.is_there)
        slot.integer(-2 if not state.is_there else tell(state.expires_unix_ms) if state.expires_unix_ms else -1)

    client.do(args[1], read(Needs.TERMS, respond), slot)


def expire(client: Client, args: Sequence[Any]) -> None:
    """Let a value expire: it is stored anew, as satellites hold it with its terms."""
    named, now_ms = _name_of(args), now_unix_ms()
    words = {word.lower() for word in args[3:]}
    if unknown := words - {b"nx", b"xx", b"gt", b"lt"}:
        raise CommandError(f"ERR Unsupported option {next(iter(unknown)).decode('utf-8', 'replace')}")
    if b"nx" in words and len(words) > 1:
        raise CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"gt", b"lt"} <= words:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    at = expiry(_UNITS[named], whole_number(args[2]), now_ms, named)

    def is_allowed(before: int) -> bool:
        if (b"nx" in words and before) or (b"xx" in words and not before):
            return False
        if b"gt" in words:
            return 0 < before < at
        return b"lt" not in words or before == 0 or at < before

    _change_terms(client, args[1], max(1, at), is_allowed)


def persist(client: Client, args: Sequence[Any]) -> None:
    """Let a value stay for good."""
    _change_terms(client, args[1], 0, lambda before: before > 0)


def _change_terms(client: Client, name: bytes, expires_unix_ms: int, is_allowed: Callable[[int], bool]) -> None:
    slot, now_ms = client.slot(), now_unix_ms()

    def act(state: State) -> int:
        if not state.is_there or not is_allowed(state.expires_unix_ms):
            return 0
        set_terms(state, expires_unix_ms, now_ms)
        return 1

    client.do(name, Operation(Needs.DATA, act, slot.integer, slot.error), slot)
