"""What engines and the agent say to each other over the Unix socket.

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

VERSION: Final = 2
"""of these messages; both sides must have the same"""
FRAME_BYTES_MAX: Final = 1 << 22
FIND_KEYS_MAX: Final = 1 << 16
"""a prompt of a million tokens in blocks of 16; 2.2 MB"""
BLOCKS_MAX: Final = 1 << 14
"""of one get, put or purge"""
ARENA_BYTES_MAX: Final = 1 << 38
TEXT_MAX: Final = 1024
"""characters; what is longer is cut"""
ALIVE_S: Final = 2.0
"""how often the agent says that it is still at work while somebody waits"""

LENGTH: Final = struct.Struct(">I")

Number: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 62)]
Key: TypeAlias = Annotated[bytes, Meta(min_length=32, max_length=32)]
Word: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_MAX)]
Keys: TypeAlias = Annotated[list[Key], Meta(max_length=BLOCKS_MAX)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Place: TypeAlias = tuple[Key, Number, Number]
"""key, and offset and length in the arena"""


Traceparent: TypeAlias = Annotated[str, Meta(max_length=64)]
"""of the span that a request belongs to (W3C trace context); empty: of none"""


class FrameError(ValueError):
    """A frame that is none; the message says why."""


class Message(Struct, array_like=True, tag_field="message"):
    """All of them."""


class Hello(Message, tag="hello"):
    """An engine, its blocks, and its arena, whose descriptor comes with the first byte of this frame."""

    version: Number
    name: Word
    """of the engine: `vllm`"""
    model: Text
    root: Key
    """digest of all that decides the bytes of a block"""
    block_tokens: Annotated[int, Meta(ge=1, lt=1 << 32)]
    block_bytes: Annotated[int, Meta(ge=1, lt=1 << 32)]
    """as stored, with header"""
    dtype: Word
    arena_bytes: Annotated[int, Meta(ge=1, le=ARENA_BYTES_MAX)]


class Find(Message, tag="find"):
    """How long is the cached beginning of a prompt? Answered by `Found`."""

    id: Number
    keys: Annotated[list[Key], Meta(max_length=FIND_KEYS_MAX)]
    cached: Number
    """of these blocks, the first that the engine has itself"""
    wanted: bool = True
    """False: the engine does not want these blocks, it only asks which of them it need not store"""


class Get(Message, tag="get"):
    """Fetch blocks into the arena. Answered by `Done`."""

    id: Number
    blocks: Annotated[list[Place], Meta(max_length=BLOCKS_MAX)]
    traceparent: Traceparent = ""


class Put(Message, tag="put"):
    """Store blocks from the arena. Answered by `Done`."""

    id: Number
    blocks: Annotated[list[Place], Meta(max_length=BLOCKS_MAX)]


class Purge(Message, tag="purge"):
    """Forget blocks. Answered by `Purged`."""

    id: Number
    keys: Keys


class Prefilled(Message, tag="prefilled"):
    """The engine has computed tokens in so many seconds. Not answered."""

    tokens: Number
    duration_s: Seconds
    before: Number = 0
    """tokens of the prompt that the engine had already"""


class Used(Message, tag="used"):
    """A prompt's chain of blocks was used, as far as it is in the sky: its end is to be evicted before its beginning. Not
    answered."""

    keys: Keys
    """the first block first"""


class Taken(Message, tag="taken"):
    """The engine has checked and copied what a `Get` brought. Not answered. Times are nanoseconds since 1970."""

    id: Number
    """of the `Get`"""
    began_ns: Number
    ended_ns: Number


class Welcome(Message, tag="welcome"):
    """The agent has mapped the arena."""

    version: Number
    pid: Number
    notes: list[Text]
    """what the one who runs the engine should know: other engines have stored this model's blocks in another format"""
    traces: bool = False
    """the agent makes traces, and likes to be told `Taken`"""


class Found(Message, tag="found"):
    """Answer to `Find`."""

    id: Number
    blocks: Number
    """of the longest cached beginning"""
    fetch: Number
    """how many to fetch, from the first one that the engine has not; 0: there are none, or it is faster to compute them"""
    fetch_s: Seconds | None
    """estimate for these; None: unknown"""
    recompute_s: Seconds | None
    capacity: Number = 0
    """blocks of this engine that the sky holds; 0: unknown"""
    servers: Number = 0
    store_mib: Number = 0
    """of each of these servers"""


class Done(Message, tag="done"):
    """Answer to `Get` and `Put`: for each block, in order, how it ended, and after how many seconds."""

    id: Number
    outcomes: Annotated[list[tuple[Text, Seconds]], Meta(max_length=BLOCKS_MAX)]


class Purged(Message, tag="purged"):
    """Answer to `Purge`."""

    id: Number
    chunks: Number
    """given up by satellites"""


class Refusal(Message, tag="refusal"):
    """The engine said what it must not say; the connection ends."""

    why: Text


class Alive(Message, tag="alive"):
    """The agent works at what was asked."""


Asked: TypeAlias = Find | Get | Put | Purge | Prefilled | Taken | Used
Answered: TypeAlias = Found | Done | Purged | Refusal | Alive

T = TypeVar("T")

_ENCODER: Final = msgspec.msgpack.Encoder()
HELLO: Final[msgspec.msgpack.Decoder[Hello]] = msgspec.msgpack.Decoder(Hello)
ASKED: Final[msgspec.msgpack.Decoder[Asked]] = msgspec.msgpack.Decoder(Asked)
WELCOMED: Final[msgspec.msgpack.Decoder[Welcome | Refusal]] = msgspec.msgpack.Decoder(Welcome | Refusal)
ANSWERED: Final[msgspec.msgpack.Decoder[Answered]] = msgspec.msgpack.Decoder(Answered)


def frame(message: Message) -> bytes:
    """A message as it goes over the socket.

    Raises:
        FrameError: it is too long.
    """
    body = _ENCODER.encode(message)
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(f"frame of {len(body)} bytes; {FRAME_BYTES_MAX} are allowed")
    return LENGTH.pack(len(body)) + body


def read(decoder: msgspec.msgpack.Decoder[T], body: bytes) -> T:
    """The message of a frame.

    Raises:
        FrameError: it is none that may come here.
    """
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:  # a text that is no UTF-8 is a ValueError
        raise FrameError(str(error)) from error


def frame_length(head: bytes) -> int:
    """Of the frame that begins with these four bytes.

    Raises:
        FrameError: it is not allowed.
    """
    length = int(LENGTH.unpack(head)[0])
    if not 1 <= length <= FRAME_BYTES_MAX:
        raise FrameError(f"frame of {length} bytes; allowed are 1 to {FRAME_BYTES_MAX}")
    return length


def take_frame(buffer: bytearray) -> bytes | None:
    """The body of the first frame, if all of it is there; it is taken out of the buffer.

    Raises:
        FrameError: a length that is not allowed.
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
