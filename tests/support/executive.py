"""What tests ask of a satellite in their own process beside its apps: events one by one, tables, counters of the bus."""

import ctypes

from skymemory.fsw import Pipe
from skymemory.fsw.bus import check
from skymemory.fsw.native_satellite import library
from skymemory.fsw.structures import EVENT_MID, EventPayload

_COUNTERS = ("no_subscribers", "message_limit", "pipe_overflow", "pool_empty")


def next_event(pipe: Pipe) -> EventPayload | None:
    """Return the next event on a pipe that is subscribed to `EVENT_MID`; None if none came within five seconds."""
    message = pipe.receive_where(lambda m: m.mid == EVENT_MID, 5)
    return None if message is None else EventPayload.from_buffer_copy(message.payload)


def load_table(name: str, image: ctypes.Structure | bytes) -> None:
    """Load a table as the ground would: its app validates it at the next wake-up and takes it over, or refuses it.

    Raises:
        FswError: There is no such table, the size is wrong, or a load is pending.
    """
    data = bytes(image)
    check(library().skyx_table_load(name.encode(), data, len(data)), f"table {name}")


def read_table(name: str, size: int) -> bytes:
    """Return the present content of a table, as the ground would dump it.

    Raises:
        FswError: There is no such table, or it has another size.
    """
    image = ctypes.create_string_buffer(size)
    check(library().skyx_table_read(name.encode(), image, size), f"table {name}")
    return image.raw


def bus_counters() -> dict[str, int]:
    """Return the counts of messages that the Software Bus could not deliver, by cause."""
    counters = (ctypes.c_uint32 * len(_COUNTERS))()
    library().skyx_bus_counters(counters)
    return dict(zip(_COUNTERS, counters, strict=True))
