"""Commands that change a value by what it was, at their edges; `test_model.py` holds them against Redis."""

from typing import Any

import pytest

from skymemory.store.keyvalue import ValueKeys
from skymemory.store.results import Status

from .inside import InsideGateway
from .raw import RawClient, encoded
from .test_silence import NO_ANSWER

MOST = (1 << 63) - 1
NO_NUMBER = "ERR value is not an integer or out of range"
OVERFLOW = "ERR increment or decrement would overflow"
LATER_MS = "4000000000000"


@pytest.mark.parametrize(
    ("value", "command", "answer"),
    [
        (None, ("INCR", "k"), 1),
        (None, ("DECRBY", "k", "5"), -5),
        ("41", ("INCR", "k"), 42),
        ("-1", ("INCRBY", "k", "-9"), -10),
        (str(MOST - 1), ("INCR", "k"), MOST),
        (str(MOST), ("INCR", "k"), OVERFLOW),
        (str(-MOST - 1), ("DECR", "k"), OVERFLOW),
        ("0", ("INCRBY", "k", str(MOST + 1)), NO_NUMBER),
        ("-1", ("DECRBY", "k", str(-MOST)), MOST - 1),
        ("0", ("DECRBY", "k", str(-MOST - 1)), "ERR decrement would overflow"),
        ("x", ("INCR", "k"), NO_NUMBER),
        ("", ("INCR", "k"), NO_NUMBER),
        ("1.5", ("INCR", "k"), NO_NUMBER),
        (" 1", ("INCR", "k"), NO_NUMBER),
        ("007", ("INCR", "k"), NO_NUMBER),
        ("9" * 20, ("INCR", "k"), NO_NUMBER),
        ("1" * 200_000, ("INCR", "k"), NO_NUMBER),
        ("1", ("INCRBY", "k", "x"), NO_NUMBER),
        ("1", ("INCRBY", "k"), "ERR wrong number of arguments for 'incrby' command"),
    ],
)
def test_numbers(value: str | None, command: tuple[str, ...], answer: Any) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        if value is not None:
            assert client.ask("SET", "k", value, "PXAT", LATER_MS) == b"OK"
        assert client.ask(*command) == answer
        after = str(answer) if isinstance(answer, int) else value
        assert client.ask("GET", "k") == (None if after is None else after.encode())
        assert client.ask("PEXPIRETIME", "k") == (-1 if value is None else int(LATER_MS))


@pytest.mark.parametrize(
    ("options", "at_unix_ms"),
    [
        ((), int(LATER_MS)),
        (("PERSIST",), -1),
        (("persist", "PERSIST"), -1),
        (("EXAT", "4100000000"), 4_100_000_000_000),
        (("PXAT", "4100000000001"), 4_100_000_000_001),
        (("pxat", "1", "PXAT", "4100000000001"), 4_100_000_000_001),
        (("EXAT", "5"), -2),
        (("PXAT", "1"), -2),
        (("EX", "0"), "ERR invalid expire time in 'getex' command"),
        (("PX", "-1"), "ERR invalid expire time in 'getex' command"),
        (("EX", str(MOST)), "ERR invalid expire time in 'getex' command"),
        (("EX", "x"), NO_NUMBER),
        (("EX",), "ERR syntax error"),
        (("EX", "5", "PX", "5"), "ERR syntax error"),
        (("EX", "5", "PERSIST"), "ERR syntax error"),
        (("PERSIST", "EX", "5"), "ERR syntax error"),
        (("KEEPTTL",), "ERR syntax error"),
        (("NX",), "ERR syntax error"),
    ],
)
def test_getex(options: tuple[str, ...], at_unix_ms: int | str) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v", "PXAT", LATER_MS) == b"OK"
        assert client.ask("GETEX", "k", *options) == (at_unix_ms if isinstance(at_unix_ms, str) else b"v")
        assert client.ask("PEXPIRETIME", "k") == (int(LATER_MS) if isinstance(at_unix_ms, str) else at_unix_ms)
        missed = client.ask("GETEX", "none", *options)
        assert missed == ("ERR syntax error" if at_unix_ms == "ERR syntax error" else None)


@pytest.mark.parametrize(("option", "unit_ms"), [("EX", 1000), ("PX", 1)])
def test_getex_counts_from_now(option: str, unit_ms: int) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v") == b"OK"
        assert client.ask("GETEX", "k", option, "1000000") == b"v"
        assert 0 <= 1_000_000 * unit_ms - client.ask("PTTL", "k") < 60_000


def test_what_goes_is_told_once() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", bytes(300_000)) == b"OK"
        client.send(encoded("TYPE", "k") + encoded("GETDEL", "k") * 2 + encoded("TYPE", "k") + encoded("TOUCH", "k", "k"))
        assert [client.answer() for _ in range(5)] == [b"string", bytes(300_000), None, b"none", 0]
        assert inside.sky.left == set()
        assert client.ask("INCR", "k") == 1
        assert client.ask("TOUCH", "k", "none", "k") == 2


@pytest.mark.parametrize("change", [("INCR", "k"), ("GETDEL", "k"), ("GETEX", "k", "PERSIST")])
def test_no_answer_of_the_sky_is_told(change: tuple[str, ...]) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "7") == b"OK"
        inside.run(lambda: setattr(inside.sky, "get_status", Status.EXPIRED))
        assert client.ask(*change) == NO_ANSWER
        inside.run(lambda: setattr(inside.sky, "get_status", Status.TOO_LARGE))
        assert client.ask(*change) == "ERR the value cannot be read: too large; DEL deletes it"
        inside.run(lambda: setattr(inside.sky, "get_status", None))
        assert client.ask("GET", "k") == b"7"
        assert ValueKeys(inside.sky.tenant_secret).key_of("k") in inside.sky.blocks


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", {b"a", b"ab", b"b*", b"\xff", b""}),
        ("a*", {b"a", b"ab"}),
        ("?", {b"a", b"\xff"}),
        ("[^a]*", {b"b*", b"\xff"}),
        (r"b\*", {b"b*"}),
        ("", {b""}),
        ("x*", set()),
    ],
)
def test_keys(pattern: str, found: set[bytes]) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("MSET", *[word for name in (b"a", b"ab", b"b*", b"\xff", b"") for word in (name, "v")]) == b"OK"
        assert client.ask("SELECT", "1") == b"OK"
        assert client.ask("SET", "a of another database", "v") == b"OK"
        assert client.ask("KEYS", "*") == [b"a of another database"]
        assert client.ask("SELECT", "0") == b"OK"
        answer = client.ask("KEYS", pattern)
        assert len(answer) == len(found)
        assert set(answer) == found
        assert client.ask("KEYS", "*" * 1025) == "ERR pattern of 1,025 bytes; allowed are 0 to 1,024"
