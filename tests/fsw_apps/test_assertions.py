"""The flight core states what must hold: two assertions a function on average (docs/cfs-integration.md, Assertions)."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

SKY = Path(__file__).parents[2] / "fsw_apps" / "sky"
LEAST = 2.0
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^[A-Za-z_][\w \t*]*?\b\w+\([^;{}]*\)\n\{", re.MULTILINE)
ASSERTION = re.compile(r"^\s*SKY_ASSERT\(", re.MULTILINE)
TWO_IN_ONE = re.compile(r"^\s*SKY_ASSERT\((?:[^;|?()]|\([^()|?]*\))*&&[^|?]*\);", re.MULTILINE)


class Counts(NamedTuple):
    functions: int
    assertions: int


def count(text: str) -> Counts:
    """Count functions with a body, static ones included, and assertions."""
    code = COMMENT.sub("", text)
    return Counts(len(FUNCTION.findall(code)), len(ASSERTION.findall(code)))


def sources(*folders: str) -> dict[str, str]:
    """Return what the sources of the core and the ground are, by name; private headers define functions too."""
    return {path.name: path.read_text() for folder in folders for path in sorted((SKY / folder / "src").glob("*.[ch]"))}


@pytest.mark.parametrize("folders", [("fsw", "ground"), ("fsw",)], ids=["core and ground", "core"])
def test_functions_have_two_assertions_on_average(folders: tuple[str, ...]) -> None:
    files = {name: count(text) for name, text in sources(*folders).items()}
    functions = sum(counts.functions for counts in files.values())
    assertions = sum(counts.assertions for counts in files.values())
    below = [
        f"{name} {counts.assertions}/{counts.functions}"
        for name, counts in files.items()
        if counts.assertions < LEAST * counts.functions
    ]
    assert functions > 400, "nothing was read"
    assert assertions >= LEAST * functions, (
        f"{assertions} assertions in {functions} functions are {assertions / functions:.2f} each; below: {', '.join(below)}"
    )


def test_an_assertion_states_one_thing() -> None:
    """What fails is then known by its line."""
    found = [
        f"{name}: {match.group().strip()}"
        for name, text in sources("fsw", "ground").items()
        for match in TWO_IN_ONE.finditer(COMMENT.sub("", text))
    ]
    assert not found


def test_an_assertion_stands_on_one_line() -> None:
    """The coverage report leaves out the branches of lines that begin with SKY_ASSERT, and of no others."""
    found = [
        f"{name}: {line.strip()}"
        for name, text in sources("fsw", "ground").items()
        for line in COMMENT.sub("", text).splitlines()
        if "SKY_ASSERT(" in line and not re.fullmatch(r"\s*SKY_ASSERT\(.*\);\s*", line)
    ]
    assert not found


def test_all_functions_are_counted() -> None:
    text = """
/* static void not_this(void)
{ SKY_ASSERT(1); */
static inline int one(void)
{
    SKY_ASSERT(1 == 1); /* SKY_ASSERT(2) */
    return two();
}

SKY_Status_t *SKY_Two(const char *text,
                      int (*call)(void *))
{
    if (call(text) == 0)
    {
        SKY_ASSERT(text != NULL);
    }
}

int declared(void);
static const int table[] = {1, 2};
"""
    assert count(text) == Counts(2, 2)
