#!/usr/bin/env python3
"""Check what ruff's D rules do not: attribute docstrings, sections such as Args, and phrases that lack their noun.

usage: tools/check_docstrings.py [FILE ...]     without a file: all of ground/ and tools/

Attribute docstrings and the entries of a section begin with a capital and end with a full stop. No docstring begins with a word
such as "What" or "Why": name the thing instead. Files that pyproject.toml excuses from ruff's D rules are excused here.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_QUESTION = re.compile(r"(?:How|What|When|Where|Whether|Which|Who|Whom|Whose|Why)\b")
_SECTION = re.compile(r"(?:Args|Attributes|Raises|Returns|Yields):$")
_ENTRY = re.compile(r"    \*{0,2}[\w., ]+: (.+)$")


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and a description of each fault in the docstrings of a Python source text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                expression = node.body[0]
                yield from ((expression.lineno, fault) for fault in _faults_of_docstring(text))
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield from _faults_of_attributes(value)


def excused(project: str) -> list[str]:
    """Return the patterns of the files that a pyproject.toml excuses from ruff's D rules."""
    ignores: dict[str, list[str]] = tomllib.loads(project)["tool"]["ruff"]["lint"]["per-file-ignores"]
    return [pattern for pattern, rules in ignores.items() if "D" in rules]


def _faults_of_attributes(body: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for before, node in pairwise(body):
        if not (isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Expr)):
            continue
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for fault in _faults_of_phrase(inspect.cleandoc(node.value.value)):
                yield node.lineno, f"attribute docstring {fault}"


def _faults_of_docstring(text: str) -> Iterator[str]:
    if fault := _headless(text):
        yield f"docstring {fault}"
    for entry in _entries(text):
        for fault in _faults_of_phrase(entry):
            yield f"entry {fault}"


def _faults_of_phrase(text: str) -> Iterator[str]:
    if text[:1].islower():
        yield f"does not begin with a capital: {_short(text)}"
    if not text.endswith("."):
        yield f"does not end with a full stop: {_short(text)}"
    if fault := _headless(text):
        yield fault


def _headless(text: str) -> str:
    return f"lacks its noun or its verb: {_short(text)}" if _QUESTION.match(text) else ""


def _entries(text: str) -> Iterator[str]:
    """Yield the text of each entry of a docstring's sections, without its name."""
    inside, entry = False, ""
    for line in [*text.splitlines(), "end"]:
        named = _ENTRY.match(line) if inside else None
        if named or not line.startswith("     "):
            if entry:
                yield entry
            entry = named[1] if named else ""
        elif entry:
            entry += " " + line.strip()
        if line and not line.startswith(" "):
            inside = bool(_SECTION.match(line))


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return f'"{line}"' if len(line) <= 60 else f'"{line[:30]} ... {line[-25:]}"'


def main(names: list[str]) -> int:
    """Print the faults of the files, and return the exit status."""
    files = [Path(name).resolve() for name in names]
    if not files:
        patterns = excused((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        names = [path.relative_to(ROOT).as_posix() for top in ("ground", "tools") for path in sorted((ROOT / top).rglob("*.py"))]
        files = [ROOT / name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)]
    found = 0
    for path in files:
        for line, fault in faults(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(ROOT)}:{line}: {fault}", file=sys.stderr)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
