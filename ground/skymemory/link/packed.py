"""Fields of a ctypes structure, written in one step: one by one takes ten times as long."""

import ctypes
import struct
from collections.abc import Iterator
from typing import Any, Final

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Codes of unsigned numbers and pointers, by their bytes."""


def _offset_of(structure: type[ctypes.Structure], name: str) -> int:
    offset: int = getattr(structure, name).offset
    return offset


def packed(structure: type[ctypes.Structure], first: str, last: str) -> struct.Struct:
    """Return the layout of some fields of a structure.

    Nested structures count as their fields. Arrays are bytes, a null pointer is 0.

    Args:
        first: First field of the layout.
        last: Last field of the layout.
    """
    names = [name for name, *_ in structure._fields_]
    kinds: dict[str, Any] = {name: kind for name, kind, *_ in structure._fields_}
    end = _offset_of(structure, first)
    code = "="
    for name in names[names.index(first) : names.index(last) + 1]:
        for offset, one, size in _flat(kinds[name], _offset_of(structure, name)):
            code += f"{offset - end}x{one}"
            end = offset + size
    return struct.Struct(code)


def _flat(kind: Any, offset: int) -> Iterator[tuple[int, str, int]]:
    """Yield the offset, the code and the size of each number in a field."""
    size = ctypes.sizeof(kind)
    if issubclass(kind, ctypes.Structure):
        for name, inner, *_ in kind._fields_:
            yield from _flat(inner, offset + _offset_of(kind, name))
    elif issubclass(kind, ctypes.Array):
        yield offset, f"{size}s", size
    else:
        yield offset, _CODES[size], size
