"""Every ctypes structure has the size, the names and the offsets of the C structure it mirrors."""

import ctypes

import pytest

from skymemory.twin import native

MIRRORED = {
    native.Config: "SKYT_Config_t",
    native.Block: "SKYT_Block_t",
    native.Op: "SKYT_Op_t",
    native.Result: "SKYT_Result_t",
    native.Model: "SKYT_Model_t",
    native.Fault: "SKYT_Fault_t",
    native.Violation: "SKYT_Violation_t",
    native.Counters: "SKYT_Counters_t",
}


def test_every_structure_is_held_against_c() -> None:
    assert {name for name, _ in native.layouts()} == set(MIRRORED.values())


@pytest.mark.parametrize("structure", MIRRORED, ids=lambda one: one.__name__)
def test_size_names_and_offsets(structure: type[ctypes.Structure]) -> None:
    name = MIRRORED[structure]
    in_c = {field: place for (c_name, field), place in native.layouts().items() if c_name == name}
    assert in_c.pop("") == (0, ctypes.sizeof(structure))
    members = [getattr(structure, field[0]) for field in structure._fields_]
    assert list(in_c.items()) == [
        (field[0], (member.offset, member.size)) for field, member in zip(structure._fields_, members, strict=True)
    ]
