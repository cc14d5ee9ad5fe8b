"""The compiled satellite, `libskymem_fsw.so`: its functions as ctypes sees them (`testbed/skysat/skyx.h`).

ctypes gives up the interpreter's lock during each call, so a thread that waits on a pipe stops no other.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint8, c_uint16, c_uint32
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "_native" / "libskymem_fsw.so"
WHY_BYTES = 256
MESSAGE_BYTES_MAX = 32768
"""of a Software Bus message, headers included"""


class Layout(ctypes.Structure):
    """Where a field lies in a C structure; field b"" stands for the structure itself."""

    _fields_ = (("structure", c_char_p), ("field", c_char_p), ("offset", c_size_t), ("size", c_size_t))


_U32P = POINTER(c_uint32)
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "skyx_init": (c_int, [c_int, POINTER(c_char_p), c_int, c_char_p, c_size_t]),
    "skyx_start": (c_int, [c_char_p, c_size_t]),
    "skyx_stop": (c_int, []),
    "skyx_app_open": (c_int32, [c_char_p, _U32P]),
    "skyx_app_close": (c_int32, [c_uint32]),
    "skyx_pipe_open": (c_int32, [c_uint32, c_char_p, c_uint16, _U32P]),
    "skyx_pipe_close": (c_int32, [c_uint32, c_uint32]),
    "skyx_subscribe": (c_int32, [c_uint32, c_uint32, c_uint32, c_uint16]),
    "skyx_unsubscribe": (c_int32, [c_uint32, c_uint32, c_uint32]),
    "skyx_receive": (c_int32, [c_uint32, c_uint32, c_int32, POINTER(c_uint8), POINTER(c_size_t)]),
    "skyx_transmit": (c_int32, [c_uint32, c_char_p, c_size_t, c_int]),
    "skyx_event": (c_int32, [c_uint32, c_uint16, c_uint16, c_char_p]),
    "skyx_table_load": (c_int32, [c_char_p, c_char_p, c_size_t]),
    "skyx_table_read": (c_int32, [c_char_p, c_char_p, c_size_t]),
    "skyx_bus_counters": (None, [_U32P]),
    "skyx_layouts": (POINTER(Layout), [POINTER(c_size_t)]),
}


@cache
def library() -> ctypes.CDLL:
    """Load the library, once.

    Raises:
        FileNotFoundError: the package was not built.
    """
    if not LIBRARY.exists():
        raise FileNotFoundError(f"{LIBRARY} is missing: the package was not built; `pip install .` builds it")
    loaded = ctypes.CDLL(str(LIBRARY))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def layouts() -> dict[tuple[str, str], tuple[int, int]]:
    """(structure, field) -> (offset, size) in bytes of every C structure that `structures` mirrors."""
    count = c_size_t()
    entries = library().skyx_layouts(ctypes.byref(count))
    return {(e.structure.decode(), e.field.decode()): (e.offset, e.size) for e in entries[: count.value]}
