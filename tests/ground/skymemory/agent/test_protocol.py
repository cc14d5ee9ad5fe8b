"""Frames between engines and the agent: what is sent is read back, and anything else is refused with its reason."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.agent import protocol
from skymemory.agent.protocol import FrameError

NUMBER = st.integers(0, (1 << 62) - 1)
KEY = st.binary(min_size=32, max_size=32)
SECONDS = st.floats(0, 1e6)
PLACES = st.lists(st.tuples(KEY, NUMBER, NUMBER), max_size=5)
ENTRY = st.tuples(NUMBER, NUMBER, NUMBER, NUMBER, SECONDS, NUMBER, NUMBER, NUMBER, NUMBER)
WORD = st.text(min_size=1, max_size=64)

ASKED = st.one_of(
    st.builds(protocol.Find, NUMBER, st.lists(KEY, max_size=5), NUMBER),
    st.builds(protocol.LookUp, NUMBER, st.lists(KEY, max_size=5), st.booleans(), st.booleans(), NUMBER),
    st.builds(protocol.Get, NUMBER, PLACES),
    st.builds(protocol.Put, NUMBER, PLACES),
    st.builds(protocol.Purge, NUMBER, st.lists(KEY, max_size=5)),
    st.builds(protocol.Prefetch, NUMBER, st.lists(KEY, max_size=5), SECONDS),
    st.builds(protocol.Prefilled, NUMBER, SECONDS, NUMBER),
    st.builds(protocol.Taken, NUMBER, NUMBER, NUMBER),
)
ANSWERED = st.one_of(
    st.builds(protocol.Found, NUMBER, NUMBER, NUMBER, st.none() | SECONDS, st.none() | SECONDS),
    st.builds(protocol.Done, NUMBER, st.lists(st.tuples(st.text(max_size=20), SECONDS), max_size=5)),
    st.builds(protocol.PurgedReply, NUMBER, NUMBER, st.booleans()),
    st.builds(protocol.Known, NUMBER, st.booleans(), st.lists(st.tuples(st.text(max_size=20), st.none() | ENTRY), max_size=5)),
    st.builds(protocol.PrefetchReply, NUMBER, st.lists(st.tuples(st.text(max_size=20), NUMBER, NUMBER), max_size=5)),
    st.builds(protocol.Refusal, st.text(max_size=1024)),
    st.just(protocol.Alive()),
)


def body(message: protocol.EngineMessage) -> bytes:
    return protocol.frame(message)[protocol.LENGTH.size :]


@settings(deadline=None)
@given(asked=ASKED, answered=ANSWERED)
def test_what_is_sent_is_read_back(asked: Any, answered: Any) -> None:
    assert protocol.ASKED.decode(body(asked)) == asked
    assert protocol.ANSWERED.decode(body(answered)) == answered


@settings(deadline=None)
@given(messages=st.lists(ANSWERED, max_size=6), cut=st.integers(1, 50))
def test_frames_are_found_however_they_come(messages: list[Any], cut: int) -> None:
    stream = b"".join(map(protocol.frame, messages))
    buffer, found = bytearray(), []
    for at in range(0, len(stream), cut):
        buffer += stream[at : at + cut]
        while (one := protocol.take_frame(buffer)) is not None:
            found.append(protocol.ANSWERED.decode(one))
    assert found == messages
    assert not buffer


@settings(max_examples=500, deadline=None)
@given(data=st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    for decoder in (protocol.HELLO, protocol.ASKED, protocol.WELCOMED, protocol.ANSWERED):
        with suppress(FrameError):  # and nothing else
            protocol.read(decoder, data)


@settings(deadline=None)
@given(asked=ASKED, at=st.integers(0, 1 << 16), to=st.integers(0, 255))
def test_a_byte_that_changed_is_another_message_or_none(asked: Any, at: int, to: int) -> None:
    data = bytearray(body(asked))
    data[at % len(data)] = to
    try:
        again: Any = protocol.read(protocol.ASKED, bytes(data))
    except FrameError:
        return
    for name in ("keys", "blocks"):
        for one in getattr(again, name, []):
            assert len(one if name == "keys" else one[0]) == 32
    assert min([value for place in getattr(again, "blocks", []) for value in place[1:]], default=0) >= 0


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (["find", 1, [bytes(31)], 0], "32"),
        (["find", 1, [bytes(32)] * (protocol.FIND_KEYS_MAX + 1), 0], "65536"),
        (["get", 1, [[bytes(32), -1, 1]]], ">= 0"),
        (["get", 1, [[bytes(32), 0]]], "length 3"),
        (["get", 1, [[bytes(32), 0, 1]] * (protocol.BLOCKS_MAX + 1)], "16384"),
        (["get", -1, []], ">= 0"),
        (["get", 1.5, []], "int"),
        (["put", 1, [[bytes(32), 0, 1 << 63]]], "<="),
        (["take", 1], "take"),
        (["prefilled", 1, -1.0], ">= 0"),
        ({"find": 1}, "array"),
        ([], "at least"),
    ],
)
def test_refusals_say_why(message: Any, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        protocol.read(protocol.ASKED, msgspec.msgpack.encode(message))


def test_a_list_that_claims_to_be_long_takes_no_memory() -> None:
    claims = b"\x94\xa4find\x01\xdd\xff\xff\xff\xff"
    with pytest.raises(FrameError):
        protocol.read(protocol.ASKED, claims)


@pytest.mark.parametrize("length", [0, protocol.FRAME_BYTES_MAX + 1, 0xFFFFFFFF])
def test_lengths_are_bounded(length: int) -> None:
    with pytest.raises(FrameError, match=f"frame of {length} bytes; allowed are 1 to 4194304"):
        protocol.frame_length(protocol.LENGTH.pack(length))


def test_the_largest_questions_fit_a_frame() -> None:
    key, far = b"\xff" * 32, (1 << 62) - 1
    protocol.frame(protocol.Find(far, [key] * protocol.FIND_KEYS_MAX, far))
    protocol.frame(protocol.Get(far, [(key, far, far)] * protocol.BLOCKS_MAX))
    protocol.frame(protocol.Done(far, [("a status of the ICD", 1e-9)] * protocol.BLOCKS_MAX))
    with pytest.raises(FrameError):
        protocol.frame(protocol.Find(far, [key] * (2 * protocol.FIND_KEYS_MAX), far))
