"""The C compiler's view of the headers from which `tools/gen_structures.py` makes Python modules."""

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import c_headers
from c_headers import ROOT, Declared
from gen_structures import MODULES, Module

FSW = next(module.path for module in MODULES if "/fsw/" in module.path)


@cache
def declared(path: str) -> Declared:
    """Return the declarations of a module's headers, as the tool reads them; `path` is the module's."""
    return c_headers.read(_module(path).wanted)


@cache
def layouts(path: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return (structure, field) -> (offset, size) in bytes of every structure; field "" is the structure itself."""
    entries = [(one.c_name, name) for one in declared(path).structures for name in ("", *(f.c_name for f in one.fields))]
    lines = [
        f'printf("%zu %zu\\n", offsetof({structure}, {field}), sizeof((({structure} *)0)->{field}));'
        if field
        else f'printf("0 %zu\\n", sizeof({structure}));'
        for structure, field in entries
    ]
    told = (tuple(map(int, line.split())) for line in _run(_module(path), lines))
    return {entry: (offset, size) for entry, (offset, size) in zip(entries, told, strict=True)}


@cache
def signed(path: str) -> dict[tuple[str, str], bool]:
    """Return (structure, field) -> True if it takes negative numbers, for every integer field."""
    entries = [
        (one.c_name, field.c_name)
        for one in declared(path).structures
        for field in one.fields
        if field.kind.startswith(("c_int", "c_uint", "c_size_t")) and " " not in field.kind
    ]
    lines = [f'puts((__typeof__((({structure} *)0)->{field}))-1 < 1 ? "1" : "0");' for structure, field in entries]
    return {entry: line == "1" for entry, line in zip(entries, _run(_module(path), lines), strict=True)}


@cache
def values(path: str) -> dict[str, int | str]:
    """Return the value of every constant and enumerator."""
    own = declared(path)
    names = {one.c_name: one.value for one in (*own.constants, *(m for e in own.enumerations for m in e.members))}
    lines = [
        f"puts({name});" if isinstance(value, str) else f'printf("%lld\\n", (long long)({name}));'
        for name, value in names.items()
    ]
    told = _run(_module(path), lines)
    return {name: int(line) if isinstance(names[name], int) else line for name, line in zip(names, told, strict=True)}


def _module(path: str) -> Module:
    return next(module for module in MODULES if module.path == path)


def _run(module: Module, lines: list[str]) -> list[str]:
    """Return the lines that a program prints which includes the headers of a module."""
    includes = [f'#include "{name}"' for name in ("stdio.h", "stddef.h", *(ROOT / name for name in module.wanted))]
    with TemporaryDirectory() as made:
        folder = Path(made)
        c_headers.write_app_headers(folder)
        source, program = folder / "told.c", folder / "told"
        source.write_text("\n".join([*includes, "int main(void)", "{", *lines, "return 0;", "}", ""]))
        subprocess.run([*c_headers.compiler(), *c_headers.include_options(folder), "-o", program, source], check=True)
        return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
