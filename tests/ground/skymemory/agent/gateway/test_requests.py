"""Commands out of bytes, however these come."""

from contextlib import suppress
from itertools import pairwise

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.gateway.requests import (
    ARGUMENT_BYTES,
    FREE_BYTES,
    LARGE_BYTES,
    READ_BYTES,
    Command,
    Large,
    ProtocolError,
    RequestReader,
    split_inline,
)
from skymemory.store.keyvalue import HEAD_BYTES

BUDGET = 1 << 30


class Stream:
    """A reader that is fed, and what it holds."""

    def __init__(self, admit: int = BUDGET) -> None:
        self.held = 0
        self._most = admit
        self.reader = RequestReader(memoryview(bytearray(READ_BYTES)), self._admit, self._release)
        self.commands: list[Command] = []

    def _admit(self, count: int) -> str | None:
        if self.held + count > self._most:
            return "ERR no memory"
        self.held += count
        return None

    def _release(self, count: int) -> None:
        self.held -= count

    def feed(self, data: bytes) -> None:
        while data:
            room = self.reader.buffer()
            some, data = data[: len(room)], data[len(room) :]
            room[: len(some)] = some
            self.reader.received(len(some), self.commands)

    def plain(self) -> list[list[bytes]]:
        return [[bytes(one.data) if isinstance(one, Large) else one for one in command.args] for command in self.commands]


def encoded(args: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%b\r\n" % (len(one), one) for one in args)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


arguments = st.one_of(st.binary(max_size=40), st.sampled_from([b"\r\n", b"*1\r\n$4\r\nPING\r\n", b"$5\r\n", b"\r\n*100000\r\n"]))
commands = st.lists(st.lists(arguments, min_size=1, max_size=5), min_size=1, max_size=12)


@given(commands=commands, places=st.lists(st.integers(0, 10_000), max_size=12))
def test_commands_are_the_same_however_they_are_cut(commands: list[list[bytes]], places: list[int]) -> None:
    stream = Stream()
    for piece in cut(b"".join(map(encoded, commands)), places):
        stream.feed(piece)
    assert stream.plain() == commands
    assert stream.held == 0
    assert not stream.reader.is_amid


@given(
    words=st.lists(st.binary(min_size=1, max_size=8).filter(lambda one: not set(one) & set(b" \t\r\n\v\f\0\"'*")), min_size=1),
    places=st.lists(st.integers(0, 500), max_size=5),
)
def test_inline_commands_and_others_may_follow_one_another(words: list[bytes], places: list[int]) -> None:
    stream = Stream()
    for piece in cut(b" ".join(words) + b"\r\n" + encoded([b"GET", b"k"]) + b"PING\n\r\n", places):
        stream.feed(piece)
    assert stream.plain() == [words, [b"GET", b"k"], [b"PING"]]


@pytest.mark.parametrize("length", [LARGE_BYTES - 1, LARGE_BYTES, READ_BYTES, 1_000_003])
@pytest.mark.parametrize("step", [3_333, 65_536, 10_000_000])
def test_large_arguments_lie_where_their_blocks_begin(length: int, step: int) -> None:
    value = bytes(range(256)) * (length // 256) + b"x" * (length % 256)
    data = encoded([b"SET", b"name", value]) + encoded([b"GET", b"name"])
    stream = Stream()
    for at in range(0, len(data), step):
        stream.feed(data[at : at + step])
    assert stream.plain() == [[b"SET", b"name", value], [b"GET", b"name"]]
    large = stream.commands[0].args[2]
    if length < LARGE_BYTES:
        assert stream.held == 0
    else:
        assert isinstance(large, Large)
        assert large.memory.nbytes == HEAD_BYTES + length + 2
        assert stream.held == length  # until the command is done


def test_what_is_not_admitted_is_passed_over_and_the_command_knows_why() -> None:
    stream = Stream(admit=150_000)
    stream.feed(encoded([b"SET", b"name", bytes(200_000)]) + encoded([b"PING"]))
    assert stream.commands[0].refused == "ERR no memory"
    assert stream.plain() == [[b"SET"], [b"PING"]]
    assert stream.commands[1].refused is None
    assert stream.held == 0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"*32769\r\n", "invalid multibulk length; allowed are up to 32768 arguments"),
        (b"*32769\r\n" + b"$0\r\n\r\n" * 32769, "invalid multibulk length"),
        (b"*12x\r\n", "invalid multibulk length"),
        (b"*" + b"1" * 40, "too big mbulk count string"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length; allowed are 0 to 536870912 bytes"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$" + b"1" * 40, "too big bulk count string"),
        (b"*1\r\n:1\r\n", "expected '\\$', got ':'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '\\$', got '\\*'"),
        (b"*1\r\n\xff", r"expected '\$', got '\\xff'"),
        (b"x" * 70_000, "too big inline request"),
        (b"get 'k\r\n", "unbalanced quotes"),
    ],
)
def test_what_is_no_command(data: bytes, why: str) -> None:
    stream = Stream()
    with pytest.raises(ProtocolError, match=why):
        stream.feed(encoded([b"PING"]) + data)
    assert stream.plain() == [[b"PING"]]  # what came before is done


def test_strangers_may_say_little() -> None:
    for data, why in (
        (b"*11\r\n", "unauthenticated multibulk length"),
        (b"*2\r\n$4\r\nAUTH\r\n$20000\r\n", "unauthenticated bulk length"),
    ):
        stream = Stream()
        stream.reader.is_stranger = True
        with pytest.raises(ProtocolError, match=why):
            stream.feed(data)


def test_headers_alone_take_no_memory() -> None:
    stream = Stream()
    stream.feed(b"*32768\r\n")
    assert stream.reader.is_amid
    stream.feed(encoded([b"x" * 1000])[4:] * 10)
    assert stream.held == 10 * (1000 + ARGUMENT_BYTES) - FREE_BYTES
    stream.reader.close()
    assert stream.held == 0


def test_a_command_of_many_arguments_is_bounded() -> None:
    stream = Stream(admit=50_000)
    data = encoded([b"SET", *[bytes(20_000)] * 10]) + encoded([b"PING"])
    for at in range(0, len(data), 10_000):
        stream.feed(data[at : at + 10_000])
        assert stream.held <= 50_000
    assert stream.commands[0].refused == "ERR no memory"
    assert stream.plain() == [[b"SET"], [b"PING"]]
    assert stream.held == 0


@pytest.mark.parametrize("between", [b"\r\n", b"xx", b"\r\r"])
def test_a_large_header_behind_any_two_bytes_is_refused(between: bytes) -> None:
    stream = Stream()
    with pytest.raises(ProtocolError, match="invalid multibulk length"):
        stream.feed(b"*1\r\n$4\r\nPING" + between + b"*1000000000\r\n")
    assert stream.plain() == [[b"PING"]]


@given(commands=commands)
def test_what_comes_is_what_hiredis_reads(commands: list[list[bytes]]) -> None:
    reader, stream = hiredis.Reader(), Stream()
    data = b"".join(map(encoded, commands))
    reader.feed(data)
    stream.feed(data)
    assert stream.plain() == [reader.gets() for _ in commands]


@given(st.binary(max_size=300))
def test_nonsense_is_either_commands_or_an_error(data: bytes) -> None:
    stream = Stream()
    with suppress(ProtocolError):
        stream.feed(data)
    assert all(stream.plain())


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4))
def test_nonsense_is_the_same_however_it_is_cut(data: bytes, places: list[int]) -> None:
    outcomes = []
    for pieces in ([data], cut(data, places), [bytes([one]) for one in data]):
        stream = Stream()
        why = ""
        try:
            for piece in pieces:
                stream.feed(piece)
        except ProtocolError as error:
            why = str(error)
        outcomes.append((stream.plain(), why))
    assert outcomes[0][0] == outcomes[1][0] == outcomes[2][0]
    assert bool(outcomes[0][1]) == bool(outcomes[1][1]) == bool(outcomes[2][1])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b"  set  a b ", [b"set", b"a", b"b"]),
        (rb'set "a b" "\x00\n\"\\"', [b"set", b"a b", b'\0\n"\\']),
        (rb"set 'it\'s' '\n'", [b"set", b"it's", rb"\n"]),
        (b"set \"\" ''", [b"set", b"", b""]),
        (b'set "a"b', None),
        (b'set "a', None),
    ],
)
def test_inline_words(line: bytes, words: list[bytes] | None) -> None:
    assert split_inline(line) == words


def test_limits_agree() -> None:
    assert READ_BYTES > 2 * LARGE_BYTES
