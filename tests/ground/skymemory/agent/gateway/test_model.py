"""The gateway beside a real redis-server: the same commands, the same answers."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from skymemory.bench.peer_servers import redis_client

from .raw import RawClient, encoded

NAMES = st.sampled_from([b"a", b"b", b"c", b"\0\r\n\xff", b""])
NUMBERS = st.sampled_from([b"0", b"-1", b"007", b" 1", b"1.5", b"9223372036854775807", b"-9223372036854775808"])
VALUES = st.one_of(
    st.binary(max_size=20), NUMBERS, st.sampled_from([6000, 6001, 100_000, 262_145]).map(lambda length: b"x" * length)
)
LATER = st.sampled_from(["100000", "500000", "0", "-1", "x", "9223372036854775807", "007"])
GETEX = st.one_of(
    st.sampled_from([[], ["PERSIST"], ["persist", "EX", "5"], ["EX"], ["EX", "10", "PX", "5"], ["nonsense"], ["NX"]]),
    st.tuples(st.sampled_from(["EX", "px"]), LATER).map(list),
    st.sampled_from([["EXAT", "4000000000"], ["PXAT", "4000000000000"], ["EXAT", "5"], ["EX", "9", "EX", "100000"]]),
)
OPTIONS = st.lists(
    st.one_of(
        st.sampled_from(["NX", "XX", "nx", "GET", "KEEPTTL", "ex", "PX", "nonsense"]).map(lambda one: [one]),
        st.tuples(st.sampled_from(["EX", "px"]), LATER).map(list),
        st.sampled_from([["EXAT", "4000000000"], ["PXAT", "4000000000000"], ["EXAT", "5"], ["PXAT", "1"]]),
    ),
    max_size=3,
).map(lambda several: [word for one in several for word in one])
READS = ["GET", "get", "STRLEN", "TTL", "PTTL", "PERSIST", "TYPE", "GETDEL", "INCR", "DECR"]
LIMITS = st.lists(st.sampled_from(["NX", "xx", "GT", "LT", "nonsense"]), max_size=2)
_TOLERANCE_MS = 30_000
"""the two are not asked at the same time, and the machine may be busy"""


def alike(ours: Any, theirs: Any) -> bool:
    """The same; times may differ by little."""
    if isinstance(ours, int) and isinstance(theirs, int) and theirs > 50:
        return abs(ours - theirs) <= _TOLERANCE_MS
    return bool(ours == theirs)


def plain(answer: Any) -> Any:
    """An answer with its errors as text."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    return str(answer) if isinstance(answer, Exception) else answer


class Pair(RuleBasedStateMachine):
    """Two connections to the gateway, two to Redis."""

    clients: tuple[list[RawClient], list[RawClient]]

    def __init__(self) -> None:
        super().__init__()
        for ones in self.clients:
            assert ones[0].ask("FLUSHALL") == b"OK"
            for one in ones:
                assert one.ask("SELECT", "0") == b"OK"

    def both(self, who: int, *args: bytes | str) -> None:
        ours, theirs = (ones[who].ask(*args) for ones in self.clients)
        assert alike(ours, theirs), f"{args!r}: {ours!r}, Redis says {theirs!r}"

    @rule(who=st.integers(0, 1), name=NAMES, value=VALUES, options=OPTIONS)
    def set(self, who: int, name: bytes, value: bytes, options: list[str]) -> None:
        self.both(who, "SET", name, value, *options)

    @rule(who=st.integers(0, 1), name=NAMES, value=VALUES, later=LATER, command=st.sampled_from(["SETEX", "PSETEX"]))
    def setex(self, who: int, name: bytes, value: bytes, later: str, command: str) -> None:
        self.both(who, command, name, later, value)

    @rule(who=st.integers(0, 1), name=NAMES, value=VALUES)
    def setnx(self, who: int, name: bytes, value: bytes) -> None:
        self.both(who, "SETNX", name, value)

    @rule(who=st.integers(0, 1), name=NAMES, command=st.sampled_from(READS))
    def one(self, who: int, name: bytes, command: str) -> None:
        self.both(who, command, name)

    @rule(who=st.integers(0, 1), name=NAMES, command=st.sampled_from(["EXPIRETIME", "PEXPIRETIME"]))
    def expiretime(self, who: int, name: bytes, command: str) -> None:
        self.both(who, command, name)

    @rule(
        who=st.integers(0, 1),
        names=st.lists(NAMES, max_size=4),
        command=st.sampled_from(["MGET", "EXISTS", "TOUCH", "DEL", "UNLINK"]),
    )
    def several(self, who: int, names: list[bytes], command: str) -> None:
        self.both(who, command, *names)

    @rule(who=st.integers(0, 1), name=NAMES, number=NUMBERS, command=st.sampled_from(["INCRBY", "DECRBY"]))
    def add(self, who: int, name: bytes, number: bytes, command: str) -> None:
        self.both(who, command, name, number)

    @rule(who=st.integers(0, 1), name=NAMES, options=GETEX)
    def getex(self, who: int, name: bytes, options: list[str]) -> None:
        self.both(who, "GETEX", name, *options)

    @rule(who=st.integers(0, 1), pattern=st.sampled_from([b"*", b"?", b"[ab]", b"[^a]*", b"", b"\\a", b"c*"]))
    def keys(self, who: int, pattern: bytes) -> None:
        ours, theirs = (sorted(ones[who].ask("KEYS", pattern)) for ones in self.clients)
        assert ours == theirs, pattern

    @rule(who=st.integers(0, 1), pairs=st.lists(st.tuples(NAMES, VALUES), max_size=3), odd=st.lists(NAMES, max_size=1))
    def mset(self, who: int, pairs: list[tuple[bytes, bytes]], odd: list[bytes]) -> None:
        self.both(who, "MSET", *(one for pair in pairs for one in pair), *odd)

    @rule(
        who=st.integers(0, 1),
        name=NAMES,
        at=LATER,
        options=LIMITS,
        command=st.sampled_from(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]),
    )
    def expire(self, who: int, name: bytes, at: str, options: list[str], command: str) -> None:
        self.both(who, command, name, at, *options)

    @rule(who=st.integers(0, 1), number=st.sampled_from(["0", "1", "15", "16", "-1", "x"]))
    def select(self, who: int, number: str) -> None:
        self.both(who, "SELECT", number)

    @rule(who=st.integers(0, 1), words=st.sampled_from([["FLUSHDB"], ["FLUSHALL", "SYNC"], ["FLUSHDB", "nonsense"]]))
    def flush(self, who: int, words: list[str]) -> None:
        self.both(who, *words)

    @rule(
        who=st.integers(0, 1),
        words=st.sampled_from(
            [
                ["PING"],
                ["PING", "x"],
                ["PING", "x", "y"],
                ["UNWATCH"],
                ["UNWATCH", "x"],
                ["ECHO", "x"],
                ["ECHO"],
                ["GET"],
                ["SET", "k"],
                ["nonsense"],
                ["nonsense", "a", "b" * 200, "c"],
                ["CLIENT", "GETNAME"],
                ["CLIENT", "SETNAME", "a b"],
                ["CLIENT", "nonsense"],
                ["AUTH", "secret"],
                ["AUTH", "somebody", "secret"],
                ["AUTH", "default", "secret"],
                ["HELLO", "4"],
                ["HELLO", "x"],
                ["SCAN", "x"],
                ["SCAN", "0", "COUNT", "0"],
                ["SCAN", "0", "MATCH"],
                ["SCAN", "0", "COUNT", "x"],
                ["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"],
                ["COMMAND", "GETKEYS", "GET", "a"],
                ["CONFIG", "GET", "save"],
                ["CONFIG", "nonsense"],
            ]
        ),
    )
    def others(self, who: int, words: list[str]) -> None:
        self.both(who, *words)

    @rule(who=st.integers(0, 1), data=st.data())
    def pipeline(self, who: int, data: st.DataObject) -> None:
        commands = data.draw(
            st.lists(
                st.one_of(
                    st.tuples(st.just(b"SET"), NAMES, VALUES),
                    st.tuples(st.sampled_from([b"GET", b"DEL", b"EXISTS", b"STRLEN"]), NAMES),
                    st.tuples(st.just(b"MGET"), NAMES, NAMES),
                    st.tuples(st.sampled_from([b"DBSIZE", b"FLUSHDB", b"PING"])),
                ),
                min_size=2,
                max_size=12,
            )
        )
        answers = []
        for ones in self.clients:
            ones[who].send(b"".join(encoded(*args) for args in commands))
            answers.append([ones[who].answer() for _ in commands])
        assert answers[0] == answers[1], commands

    @rule(who=st.integers(0, 1), data=st.data(), end=st.sampled_from([(b"EXEC",), (b"EXEC", b"a"), (b"DISCARD",)]))
    def batch(self, who: int, data: st.DataObject, end: tuple[bytes, ...]) -> None:
        one = st.one_of(
            st.tuples(st.just(b"SET"), NAMES, VALUES),
            st.tuples(st.sampled_from([b"GET", b"DEL", b"INCR", b"GETDEL", b"TYPE"]), NAMES),
            st.tuples(st.just(b"MGET"), NAMES, NAMES),
            st.tuples(st.sampled_from([b"DBSIZE", b"FLUSHDB", b"PING", b"MULTI", b"UNWATCH"])),
            st.sampled_from([(b"WATCH", b"a"), (b"GET",), (b"nonsense",), (b"SELECT", b"16"), (b"SET", b"a", b"1", b"nonsense")]),
        )
        commands = [(b"MULTI",), *data.draw(st.lists(one, max_size=6)), end, end]
        answers = []
        for ones in self.clients:
            ones[who].send(b"".join(encoded(*args) for args in commands))
            answers.append([plain(ones[who].answer()) for _ in commands])
        assert answers[0] == answers[1], commands

    @invariant()
    def the_same_names(self) -> None:
        for who in range(2):
            found = []
            for ones in self.clients:
                cursor, names = b"0", []
                while not names or cursor != b"0":
                    cursor, some = ones[who].ask("SCAN", cursor, "COUNT", "3")
                    names += [*some, None]
                found.append(sorted(name for name in names if name is not None))
            assert found[0] == found[1]
            self.both(who, "DBSIZE")


@pytest.fixture
def clients(port: int) -> Iterator[tuple[list[RawClient], list[RawClient]]]:
    with ExitStack() as opened:
        theirs = opened.enter_context(redis_client()).connection_pool.connection_kwargs["port"]
        ours, others = ([opened.enter_context(RawClient(one)) for _ in range(2)] for one in (port, theirs))
        yield ours, others


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_the_gateway_answers_as_redis_does(clients: tuple[list[RawClient], list[RawClient]]) -> None:
    machine = type("Machine", (Pair,), {"clients": clients})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
