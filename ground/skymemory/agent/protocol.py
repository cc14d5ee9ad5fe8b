"""Messages between engines and the agent over the Unix socket.

A frame is its length, four bytes, big-endian, and as many bytes of MessagePack: an array of the message's name and its fields.
The engine begins with `Hello`; the first byte of that frame carries the file descriptor of its arena (SCM_RIGHTS), which is
an anonymous file in memory (memfd), sealed against shrinking and growing. The agent answers `Welcome`, or `Refusal` and ends the
connection. From then on the engine asks and the agent answers, in any order; answers bear the number of their question.

Every length and count is bounded here. Whoever sends anything else gets a `Refusal` that says what was wrong, and the
connection ends: after that nothing that comes over it can be trusted.
"""

import struct
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 6
"""Version of these messages; both sides must have the same."""
FRAME_BYTES_MAX: Final = 1 << 22
FIND_KEYS_MAX: Final = 1 << 16
"""Number of keys of one question: a prompt of a million tokens in blocks of 16, 2.2 MB."""
BLOCKS_MAX: Final = 1 << 14
"""Blocks of one get, put or purge."""
ARENA_BYTES_MAX: Final = 1 << 38
TEXT_MAX: Final = 1024
"""Characters of a text; longer texts are cut."""
ALIVE_S: Final = 2.0
"""Period in which the agent says that it is still at work while somebody waits."""

LENGTH: Final = struct.Struct(">I")

Number: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 62)]
Key: TypeAlias = Annotated[bytes, Meta(min_length=32, max_length=32)]
Word: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_MAX)]
Keys: TypeAlias = Annotated[list[Key], Meta(max_length=BLOCKS_MAX)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Place: TypeAlias = tuple[Key, Number, Number]
"""Key of a block, and its offset and length in the arena."""
Entry: TypeAlias = tuple[Number, Number, Number, Number, Seconds, Number, Number, Number, Number]
"""The fields of a `BlockEntry` after its key: block length, chunk length, chunks, epoch, time of storing, version, content, and
data and parity chunks of a row."""


Traceparent: TypeAlias = Annotated[str, Meta(max_length=64)]
"""Trace context of the span that a request belongs to (W3C); empty: none."""


class FrameError(ValueError):
    """A frame that is none; the message says why."""


class EngineMessage(Struct, array_like=True, tag_field="message"):
    """All of them."""


class Hello(EngineMessage, tag="hello"):
    """An engine, its blocks, and its arena, whose descriptor comes with the first byte of this frame."""

    version: Number
    name: Word
    """Kind of the engine: `vllm`, ..."""
    model: Text
    root: Key
    """Public name of the root of the blocks' keys (`skymemory.wire.key_derivation`): another one for other bytes."""
    block_tokens: Annotated[int, Meta(ge=1, lt=1 << 32)]
    block_bytes: Annotated[int, Meta(ge=1, lt=1 << 32)]
    """Bytes of a block as stored, with its header."""
    dtype: Word
    arena_bytes: Annotated[int, Meta(ge=1, le=ARENA_BYTES_MAX)]


class Find(EngineMessage, tag="find"):
    """Question for the cached beginning of a prompt; answered by `Found`."""

    id: Number
    keys: Annotated[list[Key], Meta(max_length=FIND_KEYS_MAX)]
    cached: Number
    """Number of these blocks, from the first, that the engine has itself."""
    wanted: bool = True
    """False: the engine does not want these blocks, it only asks which of them it need not store."""


class LookUp(EngineMessage, tag="look_up"):
    """Ask what is known of blocks of any length. Answered by `Known`."""

    id: Number
    keys: Keys
    chain: bool
    """True if only the beginning is wanted, up to the first block that is missing or longer than `block_bytes_max`."""
    fresh: bool
    """True if satellites are to be asked, also for what the agent knows."""
    block_bytes_max: Number


class Get(EngineMessage, tag="get"):
    """Fetch blocks into the arena. Answered by `Done`."""

    id: Number
    blocks: Annotated[list[Place], Meta(max_length=BLOCKS_MAX)]
    traceparent: Traceparent = ""
    deadline_s: Annotated[float, Meta(gt=0)] | None = None
    """Seconds after which blocks that have not come are `expired`; None: the constellation's deadline alone."""


class CallBack(EngineMessage, tag="call_back"):
    """End a `Get` or `LookUp` that nobody waits for any more: its answer comes at once. Not answered itself."""

    id: Number
    """Number of that request."""


class Put(EngineMessage, tag="put"):
    """Store blocks from the arena. Answered by `Done`."""

    id: Number
    blocks: Annotated[list[Place], Meta(max_length=BLOCKS_MAX)]


class Purge(EngineMessage, tag="purge"):
    """Forget blocks. Answered by `PurgedReply`."""

    id: Number
    keys: Keys


class Prefetch(EngineMessage, tag="prefetch"):
    """Prefetch blocks so that they are in the window at a time to come. Answered by `PrefetchReply`."""

    id: Number
    keys: Keys
    at_s: Seconds
    """Unix time."""


class Prefilled(EngineMessage, tag="prefilled"):
    """The engine has computed tokens in so many seconds. Not answered."""

    tokens: Number
    duration_s: Seconds
    before: Number = 0
    """Tokens of the prompt that the engine had already."""


class Used(EngineMessage, tag="used"):
    """Note that a chain of blocks was used, so that its end is evicted before its beginning; not answered."""

    keys: Keys
    """Keys of the chain, the first block first."""


class Taken(EngineMessage, tag="taken"):
    """The engine has checked and copied what a `Get` brought. Not answered. Times are nanoseconds since 1970."""

    id: Number
    """Number of the `Get`."""
    began_ns: Number
    ended_ns: Number


class Welcome(EngineMessage, tag="welcome"):
    """The agent has mapped the arena."""

    version: Number
    pid: Number
    notes: list[Text]
    """Notice for the person who runs the engine: other engines have stored this model's blocks in another format."""
    traces: bool = False
    """True if the agent makes traces, and so wants to be told `Taken`."""


class Found(EngineMessage, tag="found"):
    """The agent's answer about a prompt's blocks, to `Find`."""

    id: Number
    blocks: Number
    """Number of blocks of the longest cached beginning, from the first key on."""
    fetch: Number
    """Number of them to fetch, from the first that the engine has not itself (`keys[cached:cached + fetch]`). It is 0 if
    there are none, or if computing them is faster."""
    fetch_s: Seconds | None
    """Estimate for fetching these; None: unknown."""
    recompute_s: Seconds | None
    """Estimate for computing these; None: unknown."""
    capacity: Number = 0
    """Blocks of this engine that the sky can hold; 0: unknown."""
    servers: Number = 0
    store_mib: Number = 0
    """MiB of memory of each of these servers."""


class Known(EngineMessage, tag="known"):
    """Answer to `LookUp`: a status for each block, in order, and its entry if the status is `done`."""

    id: Number
    silent: bool
    """True if no satellite answers."""
    blocks: Annotated[list[tuple[Text, Entry | None]], Meta(max_length=BLOCKS_MAX)]
    knows_absence: bool = True
    """False if satellites that may hold what was not found do not answer."""


class PrefetchReply(EngineMessage, tag="prefetched"):
    """Answer to `Prefetch`: for each block, in order, its status, the row of the schedule, and how many shares moved."""

    id: Number
    blocks: Annotated[list[tuple[Text, Number, Number]], Meta(max_length=BLOCKS_MAX)]


class Done(EngineMessage, tag="done"):
    """Answer to `Get` and `Put`: for each block, in order, how it ended, and after how many seconds."""

    id: Number
    blocks: Annotated[list[tuple[Text, Seconds]], Meta(max_length=BLOCKS_MAX)]


class PurgedReply(EngineMessage, tag="purged"):
    """Answer to `Purge`."""

    id: Number
    chunks: Number
    """Number of chunks that satellites gave up."""
    confirmed: bool
    """True if every satellite that was asked answered."""


class Refusal(EngineMessage, tag="refusal"):
    """The engine said what it must not say; the connection ends."""

    why: Text


class Alive(EngineMessage, tag="alive"):
    """The agent works at what was asked."""


Asked: TypeAlias = Find | LookUp | Get | CallBack | Put | Purge | Prefetch | Prefilled | Taken | Used
Answered: TypeAlias = Found | Known | Done | PurgedReply | PrefetchReply | Refusal | Alive

T = TypeVar("T")

_ENCODER: Final = msgspec.msgpack.Encoder()
HELLO: Final[msgspec.msgpack.Decoder[Hello]] = msgspec.msgpack.Decoder(Hello)
ASKED: Final[msgspec.msgpack.Decoder[Asked]] = msgspec.msgpack.Decoder(Asked)
WELCOMED: Final[msgspec.msgpack.Decoder[Welcome | Refusal]] = msgspec.msgpack.Decoder(Welcome | Refusal)
ANSWERED: Final[msgspec.msgpack.Decoder[Answered]] = msgspec.msgpack.Decoder(Answered)


def frame(message: EngineMessage) -> bytes:
    """Encode a message as it goes over the socket.

    Raises:
        FrameError: The message is too long.
    """
    body = _ENCODER.encode(message)
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(f"frame of {len(body)} bytes; {FRAME_BYTES_MAX} are allowed")
    return LENGTH.pack(len(body)) + body


def read(decoder: msgspec.msgpack.Decoder[T], body: bytes) -> T:
    """Return the message of a frame.

    Raises:
        FrameError: It is no message that may come here.
    """
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:  # text that is not UTF-8 is a ValueError
        raise FrameError(str(error)) from error


def frame_length(head: bytes) -> int:
    """Return the length of the frame that begins with these four bytes.

    Raises:
        FrameError: The length is not allowed.
    """
    length = int(LENGTH.unpack(head)[0])
    if not 1 <= length <= FRAME_BYTES_MAX:
        raise FrameError(f"frame of {length} bytes; allowed are 1 to {FRAME_BYTES_MAX}")
    return length


def take_frame(buffer: bytearray) -> bytes | None:
    """Take the body of the first frame out of the buffer, if all of it is there.

    Raises:
        FrameError: A length that is not allowed.
    """
    head = LENGTH.size
    if len(buffer) < head:
        return None
    end = head + frame_length(bytes(buffer[:head]))
    if len(buffer) < end:
        return None
    body = bytes(buffer[head:end])
    del buffer[:end]
    return body
