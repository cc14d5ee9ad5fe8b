"""Lines of the keys in a TOML file. `tomllib` gives lines for syntax errors only."""

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
_LITERAL = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every table and key; elements of arrays of tables have their index in the path.

    `text` must be valid TOML. Keys inside inline tables and arrays have no lines of their own: look up the key that holds them.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _statements(text):
        if header := _TABLE.match(line):
            table = ()
            parts = _parts(header[2])
            for at, part in enumerate(parts):
                table = (*table, part)
                if header[1] == "[[" and at == len(parts) - 1:
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:  # the last element of an array of tables
                    lines.setdefault(table, number)
                    table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            path = table
            for part in _parts(key[1]):
                path = (*path, part)
                lines.setdefault(path, number)
    return lines


def find_line(text: str, path: KeyPath) -> int | None:
    """Return the line of the key at `path`, or of the innermost table around it; None if neither is in the file."""
    lines = key_lines(text)
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _parts(dotted: str) -> list[str]:
    return [basic or literal or bare for basic, literal, bare in _PART.findall(dotted)]


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines on which a statement begins, without those inside a multi-line string or array."""
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        rest = line
        if quote:
            _, closed, rest = line.partition(quote)
            if not closed:
                continue
            quote = ""
            begins = False
        else:
            begins = depth == 0
        if begins:
            yield number, line
            if _TABLE.match(line):
                continue
        for token in _LITERAL.finditer(rest):
            if token[0] in ('"""', "'''"):
                if rest.count(token[0], token.end()) == 0:
                    quote = token[0]
                    break
            elif token[0] in "[{":
                depth += 1
            elif token[0] in "]}":
                depth -= 1
