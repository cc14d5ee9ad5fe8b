"""Lines of keys in TOML files."""

import tomllib

import pytest

from skymemory.common.toml_lines import KeyPath, find_line, key_lines

TEXT = '''# comment [not.a.table]
top = 1
[a]            # 3
b = [          # 4
  "x = 1",
  [1, 2],
]
c.d = 2        # 8
text = """
e = 3
"""
e = 4          # 12
  [a.f]        # 13
"quoted key" = { inner = 1 }
[[g]]          # 15
h = 1
[[g]]
h = "]["       # 18
i = 2          # 19
[g.sub]        # 20
j = 1
[[g.k]]
l = 1          # 23
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("a",), 3),
        (("a", "b"), 4),
        (("a", "c", "d"), 8),
        (("a", "e"), 12),
        (("a", "f"), 13),
        (("a", "f", "quoted key"), 14),
        (("a", "f", "quoted key", "inner"), 14),
        (("g",), 15),
        (("g", 0), 15),
        (("g", 0, "h"), 16),
        (("g", 1, "h"), 18),
        (("g", 1, "i"), 19),
        (("g", 1, "sub", "j"), 21),
        (("g", 1, "k", 0, "l"), 23),
        (("a", "missing"), 3),
        (("missing",), None),
        (("missing", "too"), None),
    ],
)
def test_lines(path: KeyPath, line: int | None) -> None:
    assert find_line(TEXT, path) == line


def test_every_key_is_found() -> None:
    def paths(value: object, at: KeyPath) -> list[KeyPath]:
        if isinstance(value, dict):
            return [path for key, inner in value.items() for path in [(*at, key), *paths(inner, (*at, key))]]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [path for index, inner in enumerate(value) for path in paths(inner, (*at, index))]
        return []

    lines = key_lines(TEXT)
    expected = set(paths(tomllib.loads(TEXT), ())) - {("a", "f", "quoted key", "inner")}
    assert expected <= set(lines)
