"""The table of all commands."""

from typing import Final

from skymemory.agent.gateway.client import Spec
from skymemory.agent.gateway.info import info
from skymemory.agent.gateway.name_commands import dbsize, flush, keys, scan
from skymemory.agent.gateway.server_commands import (
    acl,
    auth,
    client_,
    command,
    config,
    discard,
    echo,
    exec_,
    hello,
    multi,
    ping,
    quit_,
    select,
    unwatch,
)
from skymemory.agent.gateway.value_commands import (
    del_,
    exists,
    expire,
    get,
    getdel,
    getex,
    incr,
    mget,
    mset,
    persist,
    set_,
    setex,
    setnx,
    strlen,
    ttl,
    type_,
)

_ONE: Final = (1, 1, 1)
_ALL: Final = (1, -1, 1)
_PAIRS: Final = (1, -1, 2)

_SPECS: Final = (
    Spec("get", get, 2, "readonly fast", _ONE),
    Spec("mget", mget, -2, "readonly fast", _ALL),
    Spec("strlen", strlen, 2, "readonly fast", _ONE),
    Spec("set", set_, -3, "write denyoom", _ONE, slice(2, 3)),
    Spec("setnx", setnx, 3, "write denyoom fast", _ONE, slice(2, 3)),
    Spec("setex", setex, 4, "write denyoom", _ONE, slice(3, 4)),
    Spec("psetex", setex, 4, "write denyoom", _ONE, slice(3, 4)),
    Spec("mset", mset, -3, "write denyoom", _PAIRS, slice(2, None, 2)),
    Spec("incr", incr, 2, "write denyoom fast", _ONE),
    Spec("decr", incr, 2, "write denyoom fast", _ONE),
    Spec("incrby", incr, 3, "write denyoom fast", _ONE),
    Spec("decrby", incr, 3, "write denyoom fast", _ONE),
    Spec("getdel", getdel, 2, "write fast", _ONE),
    Spec("getex", getex, -2, "write fast", _ONE),
    Spec("type", type_, 2, "readonly fast", _ONE, group="generic"),
    Spec("exists", exists, -2, "readonly fast", _ALL, group="generic"),
    Spec("touch", exists, -2, "readonly fast", _ALL, group="generic"),
    Spec("del", del_, -2, "write", _ALL, group="generic"),
    Spec("unlink", del_, -2, "write fast", _ALL, group="generic"),
    Spec("ttl", ttl, 2, "readonly fast", _ONE, group="generic"),
    Spec("pttl", ttl, 2, "readonly fast", _ONE, group="generic"),
    Spec("expiretime", ttl, 2, "readonly fast", _ONE, group="generic"),
    Spec("pexpiretime", ttl, 2, "readonly fast", _ONE, group="generic"),
    Spec("expire", expire, -3, "write fast", _ONE, group="generic"),
    Spec("pexpire", expire, -3, "write fast", _ONE, group="generic"),
    Spec("expireat", expire, -3, "write fast", _ONE, group="generic"),
    Spec("pexpireat", expire, -3, "write fast", _ONE, group="generic"),
    Spec("persist", persist, 2, "write fast", _ONE, group="generic"),
    Spec("scan", scan, -2, "readonly", waits=True, group="generic"),
    Spec("keys", keys, 2, "readonly", waits=True, blocks=True, group="generic"),
    Spec("dbsize", dbsize, 1, "readonly fast", waits=True, group="server"),
    Spec("flushdb", flush, -1, "write", waits=True, blocks=True, group="server"),
    Spec("flushall", flush, -1, "write", waits=True, blocks=True, group="server"),
    Spec("ping", ping, -1, "fast", group="connection"),
    Spec("echo", echo, 2, "fast loading", group="connection"),
    Spec("quit", quit_, -1, "fast loading", is_at_once=True, is_open=True, group="connection"),
    Spec("multi", multi, 1, "fast loading", is_at_once=True, group="transactions"),
    Spec("exec", exec_, 1, "loading", is_at_once=True, group="transactions"),
    Spec("discard", discard, 1, "fast loading", is_at_once=True, group="transactions"),
    Spec("unwatch", unwatch, 1, "fast loading", group="transactions"),
    Spec("select", select, 2, "fast loading", group="connection"),
    Spec("auth", auth, -2, "fast loading", blocks=True, is_open=True, group="connection"),
    Spec("hello", hello, -1, "fast loading", blocks=True, is_open=True, group="connection"),
    Spec("acl", acl, -2, "loading", group="server"),
    Spec("client", client_, -2, "loading", group="connection"),
    Spec("info", info, -1, "loading", group="server"),
    Spec("config", config, -2, "loading", group="server"),
    Spec("command", command, -1, "loading", group="server"),
)

COMMANDS: Final = {spec.name.encode(): spec for spec in _SPECS}
"""All commands, by their names in small letters."""
