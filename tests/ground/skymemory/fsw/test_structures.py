"""Every ctypes structure has the size and the offsets of the C structure it mirrors."""

import ctypes
import inspect

import pytest

from skymemory.fsw import native, structures
from skymemory.fsw.structures import C_NAMES


def fields_of(structure: type[ctypes.LittleEndianStructure]) -> list[tuple[int, int]]:
    members = [getattr(structure, entry[0]) for entry in structure._fields_]
    return [(member.offset, member.size) for member in members]


def test_every_structure_is_held_against_c() -> None:
    classes = {c for _, c in inspect.getmembers(structures, inspect.isclass) if issubclass(c, ctypes.LittleEndianStructure)}
    classes.discard(ctypes.LittleEndianStructure)
    assert classes == set(C_NAMES)
    assert {name for name, _ in native.layouts()} == set(C_NAMES.values())


@pytest.mark.parametrize("structure", C_NAMES, ids=lambda s: s.__name__)
def test_size_and_offsets(structure: type[ctypes.LittleEndianStructure]) -> None:
    layouts = native.layouts()
    name = C_NAMES[structure]
    assert ctypes.sizeof(structure) == layouts[name, ""][1]
    in_c = [place for (c_name, field), place in layouts.items() if c_name == name and field]
    if in_c:  # of headers only the size matters
        mirrored = [p for p, f in zip(fields_of(structure), structure._fields_, strict=True) if f[0] != "padding"]
        assert mirrored == in_c


def test_names_match_too() -> None:
    """The Python name is the C name in snake case."""
    layouts = native.layouts()
    for structure, name in C_NAMES.items():
        in_c = [field for c_name, field in layouts if c_name == name and field]
        mirrored = [f[0] for f in structure._fields_ if f[0] != "padding"]
        for c_field, python_field in zip(in_c, mirrored, strict=bool(in_c)):
            assert c_field.lower() == python_field.replace("_", "")


