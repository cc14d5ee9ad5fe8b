"""Declarations of C headers, as Python's ctypes needs them: structures, enumerations, constants, functions.

The preprocessor is the compiler's, the parser is pycparser. Only names that a caller wants are looked at closely, so a header may
include others that declare what ctypes cannot express.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pycparser import c_ast, c_parser
from pycparser.c_ast import Node

ROOT = Path(__file__).resolve().parent.parent
APPS = ("isl", "kvc")
FOLDERS = (
    "testbed/exec/inc",
    *(f"fsw_apps/{app}/fsw/inc" for app in ("isl", "kvc", "sky")),
    "fsw_apps/sky/ground/inc",
    "ground/native",
    "testbed/twin",
)

INTEGERS = {f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)}
SIMPLE = {**INTEGERS, "size_t": "c_size_t", "_Bool": "c_bool", "char": "c_char", "int": "c_int", "unsigned int": "c_uint"}

# pycparser knows no extension of a compiler, and a C library's own headers are full of them. These stand-ins say enough.
STANDARD_HEADERS = {
    "stdint.h": "".join(f"typedef int {name};\n" for name in (*INTEGERS, "intptr_t", "uintptr_t"))
    + "#define UINT16_MAX 65535u\n#define UINT32_MAX 4294967295u\n",
    "stddef.h": "typedef unsigned long size_t;\ntypedef long ptrdiff_t;\n#define NULL ((void *)0)\n",
    "stdarg.h": "typedef int va_list;\n",
    **dict.fromkeys(("stdio.h", "stdlib.h", "string.h"), ""),
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
}


_VALUE = "value_of_"
"""Begin of the name of a variable that stands for a macro: pycparser does not see macros."""


class HeaderError(Exception):
    """A header has a declaration without an equivalent here; the text says where."""


@dataclass(frozen=True)
class Field:
    """A field of a structure. `kind` is the ctypes expression of its type."""

    c_name: str
    kind: str
    doc: str


@dataclass(frozen=True)
class Structure:
    """A structure by the name under which C programs use it."""

    c_name: str
    fields: tuple[Field, ...]
    doc: str


@dataclass(frozen=True)
class Constant:
    """An enumerator, or a macro with a value."""

    c_name: str
    value: int | str
    doc: str


@dataclass(frozen=True)
class Enumeration:
    """An enumeration by the name under which C programs use it."""

    c_name: str
    members: tuple[Constant, ...]
    doc: str


@dataclass(frozen=True)
class Function:
    """A function: ctypes expressions of the types of its result and of its arguments."""

    c_name: str
    result: str
    arguments: tuple[str, ...]


@dataclass
class Declared:
    """Declarations of some headers, each kind in their order."""

    structures: list[Structure] = field(default_factory=list)
    enumerations: list[Enumeration] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)


Wanted = Mapping[str, Sequence[str] | None]
"""Wanted names of each header, by its path from the root of the repository; None: all."""


def write_app_headers(folder: Path) -> None:
    """Make each default header of the apps available under its own name, as a mission's build does."""
    for app in APPS:
        for path in (ROOT / "fsw_apps" / app / "config").glob(f"default_{app}_*.h"):
            (folder / path.name.removeprefix("default_")).write_text(f'#include "{path}"\n')


def include_options(folder: Path) -> list[str]:
    """Return the compiler's options for the headers of the repository; `folder` has those of `write_app_headers`."""
    return [f"-I{place}" for place in (folder, *(ROOT / name for name in FOLDERS))]


def compiler() -> list[str]:
    """Return the command of the C compiler."""
    return shlex.split(os.environ.get("CC") or "cc")


def read(wanted: Wanted) -> Declared:
    """Read headers.

    Raises:
        HeaderError: A wanted name is missing, or something in its declaration is not supported.
        CalledProcessError: The compiler found a fault; it says which on stderr.
    """
    return _Reader(wanted).declared


class _Reader:
    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._texts = {name: (ROOT / name).read_text() for name in wanted}
        self._names = {str(ROOT / name): name for name in wanted}
        self._typedefs: dict[str, Node] = {}
        self._tags: dict[tuple[type[Node], str], str] = {}
        """Name of the type of each `struct tag` and `enum tag`."""
        self._enumerators: dict[str, int] = {}
        self._known: dict[str, type[Node]] = {}
        """Structures and enumerations that were taken, by name."""
        self.declared = Declared()
        macros = [(name, macro) for name in wanted for macro in self._macros(name)]
        nodes = self._parse([macro for _, macro in macros])
        self._note_names(nodes)
        values = {}
        for node in nodes:
            if isinstance(node, c_ast.Decl) and (node.name or "").startswith(_VALUE):
                values[node.name.removeprefix(_VALUE)] = node.init
            elif (header := self._names.get(node.coord.file)) is not None:
                self._take(node, header)
        self.declared.constants = [self._constant(header, macro, values[macro]) for header, macro in macros]
        self._check_all_found()

    # ---- reading

    def _macros(self, header: str) -> Iterator[str]:
        """Yield the names of the wanted macros that have a value."""
        for name in re.findall(r"^#define (\w+)[ \t]+(?!__attribute__)[^\s/].*$", self._texts[header], re.MULTILINE):
            names = self._wanted[header]
            if not name.startswith("DEFAULT_") and (names is None or name in names):
                yield name

    def _parse(self, macros: Sequence[str]) -> list[Node]:
        program = [f'#include "{ROOT / name}"' for name in self._wanted]
        program += [f"static const int {_VALUE}{macro} = {macro};" for macro in macros]
        with TemporaryDirectory() as made:
            folder = Path(made)
            write_app_headers(folder)
            for name, text in STANDARD_HEADERS.items():
                (folder / name).write_text(text)
            command = [*compiler(), "-E", "-nostdinc", "-D__attribute__(x)=", *include_options(folder), "-x", "c", "-"]
            done = subprocess.run(command, input="\n".join(program), stdout=subprocess.PIPE, text=True, check=True)
        try:
            return list(c_parser.CParser().parse(done.stdout, "headers").ext)
        except c_parser.ParseError as error:
            raise HeaderError(f"pycparser does not understand {error}") from error

    def _note_names(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, c_ast.Typedef):
                self._typedefs[node.name] = node.type
                inner = node.type.type
                if isinstance(inner, c_ast.Struct | c_ast.Enum) and inner.name:
                    self._tags[type(inner), inner.name] = node.name
            for inner in (node, getattr(node, "type", None), getattr(getattr(node, "type", None), "type", None)):
                if isinstance(inner, c_ast.Enum) and inner.values:
                    self._number(inner)

    def _number(self, node: c_ast.Enum) -> None:
        value = -1
        for one in node.values.enumerators:
            value = value + 1 if one.value is None else self._integer(one.value)
            self._enumerators[one.name] = value

    # ---- taking what is wanted

    def _constant(self, header: str, macro: str, node: Node) -> Constant:
        try:
            return Constant(macro, self._value(node), self._macro_doc(header, macro))
        except HeaderError as error:
            raise HeaderError(f"{header}: {macro}: {error}") from error

    def _take(self, node: Node, header: str) -> None:
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            if self._wants(header, node.name):
                self._take_function(node)
            return
        inner = node.type.type if isinstance(node, c_ast.Typedef) else getattr(node, "type", None)
        if not isinstance(inner, c_ast.Struct | c_ast.Enum):
            return
        name = node.name if isinstance(node, c_ast.Typedef) else self._tags.get((type(inner), inner.name))
        if isinstance(inner, c_ast.Struct) and inner.decls and name and self._wants(header, name):
            fields = tuple(self._field(one, header) for one in inner.decls)
            self._known[name] = c_ast.Struct
            self.declared.structures.append(Structure(name, fields, self._doc_before(header, name)))
        elif isinstance(inner, c_ast.Enum) and inner.values:
            name = name or f"enum {inner.name}"
            if self._wants(header, name):
                members = tuple(
                    Constant(one.name, self._enumerators[one.name], self._doc(header, one)) for one in inner.values.enumerators
                )
                self._known[name] = c_ast.Enum
                self.declared.enumerations.append(Enumeration(name, members, self._doc_before(header, name)))

    def _field(self, node: Node, header: str) -> Field:
        if not getattr(node, "name", None) or node.bitsize is not None:
            raise HeaderError(f"{node.coord}: bit fields, and fields without a name, are not supported")
        return Field(node.name, self._kind(node.type), self._doc(header, node))

    def _wants(self, header: str, name: str) -> bool:
        names = self._wanted[header]
        return names is None or name in names

    def _take_function(self, node: c_ast.Decl) -> None:
        parameters = node.type.args.params if node.type.args else []
        kinds = [self._kind(one.type, in_call=True) for one in parameters]
        arguments = () if kinds == ["None"] else tuple(kinds)
        self.declared.functions.append(Function(node.name, self._kind(node.type.type, in_call=True), arguments))

    def _check_all_found(self) -> None:
        own = self.declared
        found = {one.c_name for one in (*own.structures, *own.enumerations, *own.constants, *own.functions)}
        for header, names in self._wanted.items():
            if missing := set(names or ()) - found:
                raise HeaderError(f"{header} does not declare {', '.join(sorted(missing))}")

    # ---- types and values

    def _kind(self, node: Node, *, in_call: bool = False) -> str:
        """Return the ctypes expression of a type. In a call an array is a pointer."""
        if isinstance(node, c_ast.ArrayDecl) and not in_call:
            if node.dim is None:
                raise HeaderError(f"{node.coord}: an array without a length is not supported")
            inner = self._kind(node.type)
            return f"{f'({inner})' if ' ' in inner else inner} * {self._integer(node.dim)}"
        if isinstance(node, c_ast.PtrDecl | c_ast.ArrayDecl):
            return self._pointer(node.type)
        inner = node.type if isinstance(node, c_ast.TypeDecl) else node
        if isinstance(inner, c_ast.IdentifierType):
            return self._kind_of_name(" ".join(inner.names), node, in_call=in_call)
        if isinstance(inner, c_ast.Enum):
            return "c_uint"  # as compilers do where no value is negative
        raise HeaderError(f"{node.coord}: ctypes needs a name for this type")

    def _kind_of_name(self, name: str, node: Node, *, in_call: bool) -> str:
        if name == "void":
            return "None"
        if name in SIMPLE:
            return SIMPLE[name]
        if self._known.get(name) is c_ast.Struct:
            return name
        target = self._typedefs[name]
        if isinstance(target, c_ast.TypeDecl) and isinstance(target.type, c_ast.Struct):
            raise HeaderError(f"{node.coord}: {name} is in none of the headers that are read before it")
        return self._kind(target, in_call=in_call)

    def _pointer(self, target: Node) -> str:
        """Return the expression of a pointer: c_char_p to text, c_void_p to bytes or to an unknown type, for bytes and arrays."""
        if isinstance(target, c_ast.FuncDecl):
            return "c_void_p"
        name = " ".join(target.type.names) if isinstance(getattr(target, "type", None), c_ast.IdentifierType) else None
        if name in ("void", "uint8_t") or (name in self._typedefs and name not in SIMPLE and name not in self._known):
            return "c_void_p"
        inner = self._kind(target)
        return "c_char_p" if inner == "c_char" else f"POINTER({inner})"

    def _integer(self, node: Node) -> int:
        value = self._value(node)
        if not isinstance(value, int):
            raise HeaderError(f"{node.coord}: {value!r} is no integer")
        return value

    def _value(self, node: Node) -> int | str:
        """Return the value of a constant expression."""
        if isinstance(node, c_ast.Cast):
            kind = getattr(ctypes, self._kind(node.to_type.type))
            return int(kind(self._integer(node.expr)).value)
        if isinstance(node, c_ast.Constant):
            if node.type == "string":
                return str(node.value[1:-1])
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID) and node.name in self._enumerators:
            return self._enumerators[node.name]
        if isinstance(node, c_ast.UnaryOp) and node.op in ("-", "+"):
            return self._integer(node.expr) * (-1 if node.op == "-" else 1)
        if isinstance(node, c_ast.BinaryOp) and node.op in _OPERATORS:
            return _OPERATORS[node.op](self._integer(node.left), self._integer(node.right))
        raise HeaderError(f"{node.coord}: a value that this tool cannot compute ({type(node).__name__})")

    # ---- comments

    def _doc(self, header: str, node: Node) -> str:
        """Return the comment behind a field or an enumerator."""
        lines = self._texts[header].splitlines()[node.coord.line - 1 :]
        match = re.match(r"[^\n]*?/\*\*<(.*?)\*/", "\n".join(lines), re.DOTALL)
        return _plain(match[1]) if match else ""

    def _doc_before(self, header: str, name: str) -> str:
        """Return the comment before a type."""
        named = re.escape(name)
        end = rf"{named}\s*\{{" if " " in name else rf"typedef (?:struct|enum)\b[^;{{}}]*\{{[^{{}}]*\}}\s*{named};"
        match = re.search(rf"/\*\*(?!<)((?:(?!\*/).)*)\*/\s*{end}", self._texts[header], re.DOTALL)
        return _plain(match[1]) if match else ""

    def _macro_doc(self, header: str, name: str) -> str:
        """Return the comment behind a macro on its line, or before it."""
        match = re.search(rf"^#define {name}[ \t][^\n]*?/\*\*<(.*?)\*/", self._texts[header], re.MULTILINE | re.DOTALL)
        match = match or re.search(rf"/\*\*(?!<)((?:(?!\*/).)*)\*/\n#define {name}[ \t]", self._texts[header], re.DOTALL)
        return _plain(match[1]) if match else ""


_OPERATORS = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": int.__floordiv__,
    "<<": int.__lshift__,
    "|": int.__or__,
}


def _plain(comment: str) -> str:
    """Return a comment as one line, without Doxygen's commands."""
    lines = (re.sub(r"^\s*\*", "", line) for line in comment.splitlines())
    return re.sub(r"@[cp] ", "", " ".join(" ".join(lines).split()))
