import ctypes
from ctypes import c_bool, c_char, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from skymemory.link.packed import packed


class Inner(ctypes.Structure):
    _fields_ = (("small", c_uint8), ("large", c_uint64))


class Outer(ctypes.Structure):
    _fields_ = (
        ("before", c_uint32),
        ("flag", c_bool),
        ("inner", Inner),
        ("short", c_uint16),
        ("word", c_uint32),
        ("name", c_char * 3),
        ("memory", c_void_p),
        ("after", c_uint64),
    )


def test_numbers_come_from_where_the_fields_are() -> None:
    outer = Outer(1, True, Inner(2, 3), 4, 5, b"six", 7, 8)
    memory = bytes(outer)
    assert packed(Outer, "before", "after").unpack(memory) == (1, True, 2, 3, 4, 5, b"six", 7, 8)
    assert packed(Outer, "short", "memory").unpack_from(memory, Outer.short.offset) == (4, 5, b"six", 7)
    assert packed(Outer, "flag", "inner").unpack_from(memory, Outer.flag.offset) == (True, 2, 3)


def test_what_lies_beside_the_fields_stays() -> None:
    outer = Outer(before=1, short=4, after=8)
    layout = packed(Outer, "flag", "inner")
    layout.pack_into(memory := bytearray(outer), Outer.flag.offset, True, 2, 3)
    changed = Outer.from_buffer(memory)
    assert (changed.flag, changed.inner.small, changed.inner.large) == (True, 2, 3)
    assert (changed.before, changed.short, changed.after) == (1, 4, 8)


def test_a_layout_ends_with_its_last_field() -> None:
    assert packed(Outer, "name", "name").size == 3
    assert packed(Outer, "inner", "inner").size == ctypes.sizeof(Inner)
