"""The generated structures are up to date, and what they say of sizes, offsets and values is what the C compiler says."""

import ctypes
import dataclasses
import importlib
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import ModuleType

import pytest

import c_headers
import gen_structures
from c_headers import HeaderError
from gen_structures import MODULES, Module
from support import c_layouts

ROOT = Path(__file__).parents[2]
each = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)


def python_of(module: Module) -> ModuleType:
    path = module.path.removeprefix("ground/").removeprefix("tests/").removesuffix(".py")
    return importlib.import_module(path.replace("/", "."))


def read(folder: Path, text: str, names: tuple[str, ...] | None = None) -> c_headers.Declared:
    """What a header of this text declares."""
    path = folder / "some.h"
    path.write_text(f"#include <stdint.h>\n{text}\n")
    return c_headers.read({str(path): names})


# ---- the modules of the repository --------------------------------------------------------------------------------------


def test_generated_modules_are_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "gen_structures.py", "--check"], check=True)


@each
def test_structures_lie_in_memory_as_in_c(module: Module) -> None:
    python, layouts, signed = python_of(module), c_layouts.layouts(module.path), c_layouts.signed(module.path)
    structures = c_layouts.declared(module.path).structures
    assert structures
    for structure in structures:
        own = getattr(python, gen_structures.type_name(module, structure.c_name))
        assert (0, ctypes.sizeof(own)) == layouts[structure.c_name, ""], structure.c_name
        names = [gen_structures.field_name(module, field.c_name) for field in structure.fields]
        assert names == [name for name, *_ in own._fields_]
        for field, (name, kind, *_) in zip(structure.fields, own._fields_, strict=True):
            entry, member = (structure.c_name, field.c_name), getattr(own, name)
            assert (member.offset, member.size) == layouts[entry], entry
            if entry in signed:
                assert (kind(-1).value < 0) == signed[entry], entry


@each
def test_constants_and_enumerations_are_those_of_c(module: Module) -> None:
    python, values, own = python_of(module), c_layouts.values(module.path), c_layouts.declared(module.path)
    for constant in own.constants:
        assert getattr(python, gen_structures.constant_name(module, constant.c_name)) == values[constant.c_name]
    for enumeration in own.enumerations:
        mirror: type[IntEnum] = getattr(python, gen_structures.type_name(module, enumeration.c_name))
        names = gen_structures.member_names(enumeration)
        assert {names[member.c_name]: values[member.c_name] for member in enumeration.members} == {
            member.name: member.value for member in mirror
        }


@each
def test_every_class_is_held_against_c(module: Module) -> None:
    own = c_layouts.declared(module.path)
    named = {gen_structures.type_name(module, one.c_name) for one in (*own.structures, *own.enumerations)}
    python = python_of(module)
    classes = {name for name, value in vars(python).items() if isinstance(value, type) and value.__module__ == python.__name__}
    assert classes == named


# ---- the tool -----------------------------------------------------------------------------------------------------------


def test_a_stale_module_is_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "structures.py"
    modules = [dataclasses.replace(MODULES[1], path=str(path))]
    assert gen_structures.main(["--check"], modules) == 1
    assert f"{path} differs from the C headers: run tools/gen_structures.py" in capsys.readouterr().err
    assert not path.exists()
    assert gen_structures.main([], modules) == gen_structures.main(["--check"], modules) == 0
    path.write_text(path.read_text().replace("c_uint64", "c_uint32"))
    assert gen_structures.main(["--check"], modules) == 1


def test_a_fault_in_a_header_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, path = tmp_path / "some.h", tmp_path / "structures.py"
    module = Module(str(path), {str(header): None}, lost="SOME_")
    for text, told in (
        ("typedef struct { int a : 3; } SOME_Bits_t;", "some.h:1:22: bit fields"),
        ("typedef struct { unknown_t a; } SOME_Thing_t;", "some.h"),
    ):
        header.write_text(text)
        assert gen_structures.main([], [module]) == 1
        assert told in capsys.readouterr().err
        assert not path.exists()


def test_types_and_comments_of_a_header(tmp_path: Path) -> None:
    own = read(
        tmp_path,
        """
#define SOME_COUNT (2u * SOME_HALF) /* no comment of Doxygen */
#define SOME_HALF 3u /**< of them */
#define SOME_FLAGS(x) (x)
#define SOME_TEXT "text"
/** Kinds.
 *  Two lines. */
typedef enum
{
    SOME_KIND_ONE = 1, /**< the @c first */
    SOME_KIND_TWO
} SOME_Kind_t;
typedef struct SOME_Hidden SOME_Hidden_t;
/** A pair. */
typedef struct
{
    uint16_t a, b; /**< both */
} SOME_Pair_t;
typedef struct
{
    SOME_Pair_t        pairs[2][SOME_COUNT];
    const SOME_Pair_t *at;    /**< where
                                   they are */
    SOME_Hidden_t     *hidden;
    SOME_Kind_t        kind;
    const char        *text;
    uint8_t           *bytes;
    char               name[SOME_KIND_TWO + 1];
} SOME_All_t;
const SOME_Pair_t *SOME_Do(SOME_Hidden_t *hidden, const uint8_t *data, uint32_t sizes[4], const char *const *names);
void SOME_Nothing(void);
static inline uint8_t SOME_Inline(void) { return 1; }
""",
    )
    assert [(one.c_name, one.value, one.doc) for one in own.constants] == [
        ("SOME_COUNT", 6, ""),
        ("SOME_HALF", 3, "of them"),
        ("SOME_TEXT", "text", ""),
    ]
    (kind,) = own.enumerations
    assert (kind.c_name, kind.doc) == ("SOME_Kind_t", "Kinds. Two lines.")
    assert [(one.c_name, one.value, one.doc) for one in kind.members] == [
        ("SOME_KIND_ONE", 1, "the first"),
        ("SOME_KIND_TWO", 2, ""),
    ]
    pair, everything = own.structures
    assert (pair.doc, everything.doc) == ("A pair.", "")
    assert [dataclasses.astuple(field) for field in pair.fields] == [("a", "c_uint16", "both"), ("b", "c_uint16", "both")]
    assert [dataclasses.astuple(field) for field in everything.fields] == [
        ("pairs", "(SOME_Pair_t * 6) * 2", ""),
        ("at", "POINTER(SOME_Pair_t)", "where they are"),
        ("hidden", "c_void_p", ""),
        ("kind", "c_uint", ""),
        ("text", "c_char_p", ""),
        ("bytes", "c_void_p", ""),
        ("name", "c_char * 3", ""),
    ]
    do, nothing = own.functions
    assert (do.c_name, do.result) == ("SOME_Do", "POINTER(SOME_Pair_t)")
    assert do.arguments == ("c_void_p", "c_void_p", "POINTER(c_uint32)", "POINTER(c_char_p)")
    assert (nothing.result, nothing.arguments) == ("None", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("typedef struct { uint8_t a : 4; } T_t;", ":2.*bit fields"),
        ("typedef struct { uint8_t count; uint8_t rest[]; } T_t;", ":2.*without a length"),
        ("typedef struct { union { uint8_t a; uint16_t b; } u; } T_t;", ":2.*ctypes needs a name"),
        ("typedef struct { union { uint8_t a; uint16_t b; }; } T_t;", ":2.*without a name"),
        ("#define T_SIZE sizeof(int)", ": T_SIZE: .*cannot compute"),
    ],
)
def test_what_is_not_supported_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(HeaderError, match=rf"some\.h{told}"):
        read(tmp_path, text)


def test_names_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(HeaderError, match=r"some\.h does not declare T_Gone_t"):
        read(tmp_path, "typedef struct { uint8_t a; } T_t;", ("T_t", "T_Gone_t"))


def test_a_structure_of_a_header_that_is_not_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.h").write_text("typedef struct { int a; } OTHER_t;\n")
    with pytest.raises(HeaderError, match="OTHER_t is in none of the headers"):
        read(tmp_path, '#include "other.h"\ntypedef struct { OTHER_t other; } T_t;')


@pytest.mark.parametrize(
    ("kind", "python"),
    [
        ("c_uint32", "int"),
        ("c_bool", "bool"),
        ("c_char * 4", "bytes"),
        ("c_void_p", "int | None"),
        ("c_uint8 * 4", "Array[c_uint8]"),
        ("(c_uint8 * 4) * 2", "Any"),
        ("POINTER(Pair)", "Any"),
        ("Pair", "Pair"),
    ],
)
def test_types_that_mypy_sees(kind: str, python: str) -> None:
    assert gen_structures.annotation(kind) == python
