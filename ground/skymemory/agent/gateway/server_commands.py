"""Commands on the connection and on the gateway itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from skymemory.agent.gateway.client import Client
from skymemory.agent.gateway.numbers import whole_number
from skymemory.agent.gateway.pattern import Pattern
from skymemory.agent.gateway.replies import OK, CommandError, Text, bulk, encode
from skymemory.agent.gateway.requests import BULK_BYTES_MAX
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.slots import Slot
from skymemory.agent.gateway.users import User
from skymemory.common.guesses import TooManyGuessesError

DATABASES: Final = 16
REDIS_VERSION: Final = "7.0.0"
"""Version of Redis whose commands these are: clients choose by it what they send."""
POLICY: Final = "allkeys-lru"
"""Redis' word for what satellites do when they are full."""
_ASKED_MAX: Final = 1024
"""Names and patterns in one question about commands or settings, of which there are fewer."""
_PATTERNS_BYTES_MAX: Final = 4096
"""Bytes of all patterns in one question about settings: all others wait while they are read."""
_USER: Final = b"default"
_NO_PASSWORD: Final = (
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
)
_WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."
_NOT_YET: Final = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass>"
    " option can be used to authenticate the client and select the RESP protocol version at the same time"
)


def _tell(client: Client, value: object) -> None:
    client.slot().answer(encode(value, client.session.protocol))


def _unknown(named: str, word: bytes) -> CommandError:
    return CommandError(f"ERR unknown subcommand '{word.decode('utf-8', 'replace')}'. Try {named.upper()} HELP.")


def _wrong_count(named: str) -> CommandError:
    return CommandError(f"ERR wrong number of arguments for '{named}' command")


def ping(client: Client, args: Sequence[Any]) -> None:
    """Answer with PONG, or with the argument."""
    if len(args) > 2:
        raise _wrong_count("ping")
    client.slot().answer(*(bulk(args[1]) if len(args) == 2 else (b"+PONG\r\n",)))


def echo(client: Client, args: Sequence[Any]) -> None:
    """Answer with the argument."""
    client.slot().answer(*bulk(args[1]))


def quit_(client: Client, args: Sequence[Any]) -> None:
    """End the client."""
    client.slot().answer(OK)
    client.end()


def select(client: Client, args: Sequence[Any]) -> None:
    """Take another database, with names of its own. Database 0 is what `skymem get` sees."""
    number = whole_number(args[1])
    if not 0 <= number < DATABASES:
        raise CommandError("ERR DB index is out of range")
    client.session.database = number
    client.slot().answer(OK)


def multi(client: Client, args: Sequence[Any]) -> None:
    """Let the commands up to EXEC wait for it. They are a batch: commands of others may be done between them."""
    client.begin_batch()
    client.slot().answer(OK)


def exec_(client: Client, args: Sequence[Any]) -> None:
    """Do the commands since MULTI, and answer all of them."""
    client.run_batch()


def discard(client: Client, args: Sequence[Any]) -> None:
    """Forget the commands since MULTI."""
    client.drop_batch()
    client.slot().answer(OK)


def unwatch(client: Client, args: Sequence[Any]) -> None:
    """Do nothing: no name is ever watched."""
    client.slot().answer(OK)


# ---- who is it ------------------------------------------------------------------------------------------------------


def _admit(client: Client, name: bytes, password: bytes, then: Callable[[Slot], None]) -> None:
    """Let the client be a user, and go on in `then`. The answer to a wrong password waits."""
    users, guesses, source = client.shared.users, client.shared.guesses, client.session.host
    slot = client.slot()
    if users.open_user is not None:  # as with Redis: the default user needs no password
        if name == _USER:
            client.trust(users.open_user)
            then(slot)
        else:
            slot.error(_WRONG_PASSWORD)
        return
    found: list[User] = []

    def is_right() -> bool:
        found.extend(user for user in (users.find(name, password),) if user is not None)
        return bool(found)

    async def check() -> None:
        try:
            await guesses.check(source, is_right)
        except TooManyGuessesError as error:
            slot.error(f"ERR {error}")
            return
        if found:
            client.trust(found[0])
            then(slot)
        else:
            slot.error(_WRONG_PASSWORD)

    client.work(check(), slot)


def auth(client: Client, args: Sequence[Any]) -> None:
    """Take a user and its password, or the password of the user `default` alone."""
    if len(args) > 3:
        raise CommandError("ERR syntax error")
    if len(args) == 2 and not client.shared.users.has_password:
        raise CommandError(_NO_PASSWORD)
    _admit(client, args[1] if len(args) == 3 else _USER, args[-1], lambda slot: slot.answer(OK))


def acl(client: Client, args: Sequence[Any]) -> None:
    """Tell the user that this client is (WHOAMI). Users are set with the agent's settings."""
    if args[1].lower() != b"whoami":
        raise _unknown("acl", args[1])
    if len(args) > 2:
        raise _wrong_count("acl|whoami")
    assert client.session.user is not None
    client.slot().answer(*bulk(client.session.user.name.encode()))


def hello(client: Client, args: Sequence[Any]) -> None:
    """Choose RESP2 or RESP3, with AUTH and SETNAME in one."""
    session = client.session
    protocol = session.protocol
    if len(args) > 1:
        if not args[1].isdigit():
            raise CommandError("ERR Protocol version is not an integer or out of range")
        if args[1] not in (b"2", b"3"):
            raise CommandError("NOPROTO unsupported protocol version")
        protocol = int(args[1])
    user: bytes | None = None
    password: bytes | None = None
    name: str | None = None
    words = iter(args[2:])
    for word in words:
        option, values = word.lower(), [next(words, None)]
        if option == b"auth":
            values.append(next(words, None))
        if option not in (b"auth", b"setname") or None in values:
            raise CommandError(f"ERR Syntax error in HELLO option '{word.decode('utf-8', 'replace')}'")
        if option == b"auth":
            user, password = values
        else:
            name = _name(values[0] or b"")

    def greet(slot: Slot) -> None:
        session.name = session.name if name is None else name
        session.protocol = protocol
        told = {
            "server": "skymemory",
            "version": REDIS_VERSION,
            "proto": protocol,
            "id": session.told_number,
            "mode": "standalone",
            "role": "master",
            "modules": [],
        }
        slot.answer(encode(told, protocol))

    if user is not None and password is not None:
        _admit(client, user, password, greet)
    elif not session.is_trusted:
        raise CommandError(_NOT_YET)
    else:
        greet(client.slot())


def _name(raw: bytes) -> str:
    if any(not 33 <= one <= 126 for one in raw):
        raise CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
    return raw.decode()


def client_(client: Client, args: Sequence[Any]) -> None:
    """Tell or set what is known of this connection (ID, INFO, GETNAME, SETNAME, SETINFO), or of all (LIST)."""
    session, what, rest = client.session, args[1].lower(), args[2:]
    counts = {b"id": 0, b"info": 0, b"getname": 0, b"setname": 1, b"setinfo": 2, b"list": 0}
    if what not in counts:
        raise _unknown("client", args[1])
    if len(rest) != counts[what]:
        raise _wrong_count(f"client|{what.decode()}")
    answer: object = Text("OK")
    if what == b"id":
        answer = session.told_number
    elif what == b"getname":
        answer = session.name or None
    elif what == b"setname":
        session.name = _name(rest[0])
    elif what == b"setinfo":
        option = rest[0].lower()
        if option not in (b"lib-name", b"lib-ver"):
            raise CommandError(f"ERR Unrecognized option '{rest[0].decode('utf-8', 'replace')}'")
        if option == b"lib-name":
            session.library = _name(rest[1])
        else:
            session.library_version = _name(rest[1])
    else:
        listed = [session] if what == b"info" else fellows(client)
        answer = "".join(_described(one) + "\n" for one in listed)
    _tell(client, answer)


def fellows(client: Client) -> list[Session]:
    """Return the sessions of all clients that see the same values."""
    shared, values = client.shared, client.values
    return [one for one in shared.sessions.values() if one.user is not None and shared.values_of(one.user) is values]


def _described(session: Session) -> str:
    now_s = time.monotonic()
    user = "(none)" if session.user is None else session.user.name
    return (
        f"id={session.told_number} addr={session.address} name={session.name} age={now_s - session.started_s:.0f}"
        f" idle={now_s - session.active_s:.0f} db={session.database} cmd={session.last_command}"
        f" tot-cmds={session.commands} user={user} resp={session.protocol} lib-name={session.library}"
        f" lib-ver={session.library_version}"
    )


# ---- what is it -----------------------------------------------------------------------------------------------------


def config(client: Client, args: Sequence[Any]) -> None:
    """Tell settings by patterns of their names. They are set with the agent's."""
    what = args[1].lower()
    if what not in (b"get", b"set", b"resetstat"):
        raise _unknown("config", args[1])
    if what != b"get":
        raise CommandError(f"ERR CONFIG {what.decode().upper()} is not possible here; see `skymem agent --help`")
    if len(args) < 3:
        raise _wrong_count("config|get")
    _check_asked(args)
    if (length := sum(map(len, args[2:]))) > _PATTERNS_BYTES_MAX:
        raise CommandError(f"ERR patterns of {length:,} bytes; allowed are up to {_PATTERNS_BYTES_MAX:,}")
    settings = {
        "appendonly": "no",
        "bind": client.shared.host,
        "databases": str(DATABASES),
        "maxclients": str(client.shared.clients_max),
        "maxmemory": str(client.shared.memory.limit_bytes),
        "maxmemory-policy": POLICY,
        "port": str(client.shared.port),
        "proto-max-bulk-len": str(BULK_BYTES_MAX),
        "save": "",
    }
    found: dict[str, str] = {}
    for word in args[2:]:
        pattern = Pattern(word.lower())
        found |= {name: value for name, value in settings.items() if pattern.matches(name.encode())}
    _tell(client, found)


def command(client: Client, args: Sequence[Any]) -> None:
    """Tell the commands that there are: all, COUNT, LIST, INFO of some, DOCS, GETKEYS."""
    what, rest = (args[1].lower() if len(args) > 1 else b""), args[2:]
    _check_asked(args)
    named = [client.commands.get(word.lower()) for word in rest] if rest else list(client.commands.values())
    answer: object
    if what == b"count":
        answer = len(client.commands)
    elif what == b"list":
        answer = [spec.name for spec in client.commands.values()]
    elif what == b"docs":
        answer = {spec.name: spec.documented() for spec in named if spec is not None}
    elif what in (b"", b"info"):
        answer = [None if spec is None else spec.described() for spec in named]
    elif what == b"getkeys":
        answer = _names_in(client, rest)
    else:
        raise _unknown("command", args[1])
    _tell(client, answer)


def _check_asked(args: Sequence[Any]) -> None:
    if len(args) > _ASKED_MAX:
        raise CommandError(f"ERR {len(args):,} arguments; allowed are up to {_ASKED_MAX:,}")


def _names_in(client: Client, args: Sequence[bytes]) -> list[bytes]:
    spec = client.commands.get(args[0].lower()) if args else None
    if spec is None:
        raise CommandError("ERR Invalid command specified")
    if not spec.takes(len(args)):
        raise CommandError("ERR Invalid number of arguments specified for command")
    if spec.names[0] == 0:
        raise CommandError("ERR The command has no key arguments")
    first, last, step = spec.names
    return list(args[first : (last if last >= 0 else len(args) + last) + 1 : step])
