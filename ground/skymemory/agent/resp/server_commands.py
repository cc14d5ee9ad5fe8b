"""Commands on the connection and on the gateway itself."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from skymemory.agent.resp.numbers import whole_number
from skymemory.agent.resp.pattern import Pattern
from skymemory.agent.resp.replies import OK, CommandError, Text, bulk, encode
from skymemory.agent.resp.requests import BULK_BYTES_MAX
from skymemory.agent.resp.session import Session
from skymemory.agent.resp.table import COMMANDS, Spec, command, described, documented
from skymemory.store.keyvalue import now_unix_ms

if TYPE_CHECKING:
    from skymemory.agent.resp.connection import Connection
    from skymemory.agent.resp.gateway import Gateway

DATABASES: Final = 16
REDIS_VERSION: Final = "7.0.0"
"""whose commands these are: clients choose by it what they send"""
_ASKED_MAX: Final = 1024
"""names and patterns in one question about commands or settings, of which there are fewer"""
_USER: Final = b"default"
_NO_PASSWORD: Final = (
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
)
_WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."
_NOT_YET: Final = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass>"
    " option can be used to authenticate the client and select the RESP protocol version at the same time"
)


def _tell(connection: Connection, named: str, value: object) -> None:
    connection.slot(named).answer(encode(value, connection.session.protocol))


def _unknown(named: str, word: bytes) -> CommandError:
    return CommandError(f"ERR unknown subcommand '{word.decode('utf-8', 'replace')}'. Try {named.upper()} HELP.")


def _wrong_count(named: str) -> CommandError:
    return CommandError(f"ERR wrong number of arguments for '{named}' command")


@command(-1, "fast", group="connection")
def ping(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """An answer, or the argument."""
    if len(args) > 2:
        raise _wrong_count("ping")
    connection.slot("ping").answer(*(bulk(args[1]) if len(args) == 2 else (b"+PONG\r\n",)))


@command(2, "fast", group="connection")
def echo(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """The argument."""
    connection.slot("echo").answer(*bulk(args[1]))


@command(-1, "fast", group="connection", is_open=True, name="quit")
def quit_(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """End the connection."""
    connection.slot("quit").answer(OK)
    connection.end()


@command(2, "fast", group="connection")
def select(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Another database: names of their own. Database 0 is what `skymem get` sees."""
    number = whole_number(args[1])
    if not 0 <= number < DATABASES:
        raise CommandError("ERR DB index is out of range")
    connection.session.database = number
    connection.slot("select").answer(OK)


# ---- who is it ------------------------------------------------------------------------------------------------------


def _admit(gateway: Gateway, connection: Connection, user: bytes, password: bytes) -> None:
    if gateway.password is None:  # as with Redis: the default user needs none
        if user != _USER:
            raise CommandError(_WRONG_PASSWORD)
    elif not (hmac.compare_digest(password, gateway.password) and hmac.compare_digest(user, _USER)):
        raise CommandError(_WRONG_PASSWORD)
    connection.trust()


@command(-2, "fast", group="connection", is_open=True)
def auth(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Say the password, alone or behind the user `default`."""
    if len(args) > 3:
        raise CommandError("ERR syntax error")
    if len(args) == 2 and gateway.password is None:
        raise CommandError(_NO_PASSWORD)
    _admit(gateway, connection, args[1] if len(args) == 3 else _USER, args[-1])
    connection.slot("auth").answer(OK)


@command(-1, "fast", group="connection", is_open=True)
def hello(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Choose RESP2 or RESP3, and AUTH and SETNAME in one."""
    session = connection.session
    protocol = session.protocol
    if len(args) > 1:
        if not args[1].isdigit():
            raise CommandError("ERR Protocol version is not an integer or out of range")
        if args[1] not in (b"2", b"3"):
            raise CommandError("NOPROTO unsupported protocol version")
        protocol = int(args[1])
    user = password = name = None
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
            name = values[0]
    if user is not None and password is not None:
        _admit(gateway, connection, user, password)
    if not session.is_trusted:
        raise CommandError(_NOT_YET)
    if name is not None:
        session.name = _name(name)
    session.protocol, session.is_plain = protocol, False
    _tell(
        connection,
        "hello",
        {
            "server": "skymemory",
            "version": REDIS_VERSION,
            "proto": protocol,
            "id": session.number,
            "mode": "standalone",
            "role": "master",
            "modules": [],
        },
    )


def _name(raw: bytes) -> str:
    if any(not 33 <= one <= 126 for one in raw):
        raise CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
    return raw.decode()


@command(-2, group="connection")
def client(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """Of this connection: ID, INFO, GETNAME, SETNAME, SETINFO; of all: LIST."""
    session, what, rest = connection.session, args[1].lower(), args[2:]
    session.is_plain = False
    counts = {b"id": 0, b"info": 0, b"getname": 0, b"setname": 1, b"setinfo": 2, b"list": 0}
    if what not in counts:
        raise _unknown("client", args[1])
    if len(rest) != counts[what]:
        raise _wrong_count(f"client|{what.decode()}")
    answer: object = Text("OK")
    if what == b"id":
        answer = session.number
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
        listed = [session] if what == b"info" else [one.session for one in gateway.connections]
        answer = "".join(_described(one) + "\n" for one in listed)
    _tell(connection, "client", answer)


def _described(session: Session) -> str:
    now_s = time.monotonic()
    return (
        f"id={session.number} addr={session.address} name={session.name} age={now_s - session.started_s:.0f}"
        f" idle={now_s - session.active_s:.0f} db={session.database} cmd={session.last_command}"
        f" tot-cmds={session.commands} user=default resp={session.protocol} lib-name={session.library}"
        f" lib-ver={session.library_version}"
    )


# ---- what is it -----------------------------------------------------------------------------------------------------


@command(-1, group="server", name="info")
def info(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """The gateway in numbers: all sections, or those that are named."""
    asked = {word.lower().decode("utf-8", "replace") for word in args[1:]} - {"all", "default", "everything"}
    sections = _sections(gateway)
    if asked:
        sections = {name: lines for name, lines in sections.items() if name.lower() in asked}
    text = "\r\n".join(
        f"# {name}\r\n" + "".join(f"{field}:{value}\r\n" for field, value in lines.items()) for name, lines in sections.items()
    )
    _tell(connection, "info", text)


def _sections(gateway: Gateway) -> dict[str, dict[str, object]]:
    store, meter = gateway.sky.store, gateway.meter
    up_s = int(time.monotonic() - gateway.started_s)
    keyspace = {
        f"db{number}": f"keys={count},expires={expiring},avg_ttl=0"
        for number, (count, expiring) in gateway.values.directory.counts(now_unix_ms()).items()
    }
    sky: dict[str, object] = {"reachable": int(gateway.sky.reachable)}
    if store is not None:
        sky |= {"value_bytes_max": gateway.values.value_bytes_max, "chunk_bytes": store.constellation.cache.chunk_bytes}
    return {
        "Server": {
            "redis_version": REDIS_VERSION,
            "redis_mode": "standalone",
            "skymemory_version": version("skymemory"),
            "process_id": os.getpid(),
            "tcp_port": gateway.port,
            "uptime_in_seconds": up_s,
            "uptime_in_days": up_s // 86_400,
        },
        "Clients": {"connected_clients": len(gateway.connections), "maxclients": gateway.clients_max},
        "Memory": {"used_memory": gateway.memory.values_bytes, "maxmemory": gateway.memory.limit_bytes},
        "Persistence": {"loading": 0},
        "Stats": {
            "total_connections_received": meter.connections_total,
            "rejected_connections": meter.rejected_total,
            "total_commands_processed": meter.commands,
            "total_net_input_bytes": meter.received_bytes,
            "total_net_output_bytes": meter.sent_bytes,
        },
        "Replication": {"role": "master", "connected_slaves": 0},
        "Sky": sky,
        "Keyspace": dict(keyspace),
    }


@command(-2, group="server")
def config(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """GET settings by patterns of their names. They are set with the agent's."""
    what = args[1].lower()
    if what not in (b"get", b"set", b"resetstat"):
        raise _unknown("config", args[1])
    if what != b"get":
        raise CommandError(f"ERR CONFIG {what.decode().upper()} is not possible here; see `skymem agent --help`")
    if len(args) < 3:
        raise _wrong_count("config|get")
    _check_asked(args)
    settings = {
        "appendonly": "no",
        "bind": gateway.host,
        "databases": str(DATABASES),
        "maxclients": str(gateway.clients_max),
        "maxmemory": str(gateway.memory.limit_bytes),
        "maxmemory-policy": "allkeys-lru",
        "port": str(gateway.port),
        "proto-max-bulk-len": str(BULK_BYTES_MAX),
        "save": "",
    }
    patterns = [Pattern(word.lower()) for word in args[2:]]
    found = {name: value for name, value in settings.items() if any(one.matches(name.encode()) for one in patterns)}
    _tell(connection, "config", found)


@command(-1, group="server", name="command")
def command_(gateway: Gateway, connection: Connection, args: Sequence[Any]) -> None:
    """The commands that there are: all, COUNT, LIST, INFO of some, DOCS, GETKEYS."""
    what, rest = (args[1].lower() if len(args) > 1 else b""), args[2:]
    _check_asked(args)
    named = [COMMANDS.get(word.lower()) for word in rest] if rest else list(COMMANDS.values())
    answer: object
    if what == b"count":
        answer = len(COMMANDS)
    elif what == b"list":
        answer = [spec.name for spec in COMMANDS.values()]
    elif what == b"docs":
        answer = {spec.name: documented(spec) for spec in named if spec is not None}
    elif what in (b"", b"info"):
        answer = [None if spec is None else described(spec) for spec in named]
    elif what == b"getkeys":
        answer = _names_in(rest)
    else:
        raise _unknown("command", args[1])
    _tell(connection, "command", answer)


def _check_asked(args: Sequence[Any]) -> None:
    if len(args) > _ASKED_MAX:
        raise CommandError(f"ERR {len(args):,} arguments; allowed are up to {_ASKED_MAX:,}")


def _names_in(args: Sequence[bytes]) -> list[bytes]:
    spec: Spec | None = COMMANDS.get(args[0].lower()) if args else None
    if spec is None:
        raise CommandError("ERR Invalid command specified")
    if not spec.takes(len(args)):
        raise CommandError("ERR Invalid number of arguments specified for command")
    if spec.first == 0:
        raise CommandError("ERR The command has no key arguments")
    last = spec.last if spec.last >= 0 else len(args) + spec.last
    return list(args[spec.first : last + 1 : spec.step])
