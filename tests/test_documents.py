"""What the documents tell people to type is what the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from math import comb
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skymemory.cli import main
from skymemory.common.extras import how_to_install

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _commands(document: Path) -> Iterator[tuple[int, list[str]]]:
    """The line number and the words behind `skymem` of each command in the document's code, without what a shell does with it."""
    fenced = False
    text = re.sub(r"\\\n\s*", " ", document.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            found = re.match(r"\s*(?:\S*\$ )?(?:[A-Z_]+=\S+ )*(?:\S+/)?skymem (.*)", line)
            if found:
                words = shlex.split(found[1], comments=True)
                if any(word.startswith(("[", "$")) for word in words):
                    continue  # a synopsis, or what a shell fills in
                ends = [index for index, word in enumerate(words) if word in {"&", "|", ">", ">>", "&&", ";"}]
                yield number, [word.removeprefix("~/").removesuffix(";") for word in words[: ends[0] if ends else None]]


def _check(words: list[str]) -> None:
    """Read a command line as click does, and do nothing of it. Raises UsageError."""
    command: click.Command = main
    context = click.Context(main, info_name="skymem")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)
    if not {"--help", "--version"} & set(words):
        command.make_context(context.info_name, list(words), parent=context.parent)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_is_one(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for number, words in _commands(document):
        for word in words:  # files that the reader is to have
            if re.fullmatch(r"[\w.-]+", word) and not word.startswith("-"):
                Path(word).touch()
            elif re.fullmatch(r"[\w.-]+/[\w./-]*", word) and not Path(word).exists():
                Path(word).parent.mkdir(parents=True, exist_ok=True)
                Path(word).mkdir() if word.endswith("/") else Path(word).touch()
        try:
            _check([word for word in words if word != "..."])
        except click.UsageError as error:
            wrong.append(f"{document.name}:{number}: skymem {shlex.join(words)}: {error.format_message()}")
    assert not wrong, "\n".join(wrong)


PARITY = ROOT / "docs" / "parity.md"


def test_tables_of_layouts_are_what_is_printed() -> None:
    shown = re.findall(r"^    \$ skymem (layout .*)\n((?:    .*\n)+)", PARITY.read_text(), re.MULTILINE)
    assert len(shown) == 3
    for words, table in shown:
        result = CliRunner().invoke(main, shlex.split(words), env={"COLUMNS": "200"})
        lines = [line.rstrip() for line in result.output.splitlines()]
        assert table == "".join(f"    {line}\n" for line in lines), words


def _table(heading: str) -> tuple[list[tuple[int, int]], list[list[str]]]:
    """Return the codes (servers, parity) in the head of a table of the page about parity, and its rows."""
    _, _, table = PARITY.read_text().partition(f"| {heading} | ")
    head, _, *lines = table.split("\n\n")[0].splitlines()
    codes = [tuple(map(int, re.findall(r"\d+", cell))) for cell in head.split("|") if cell.strip()]
    return [(servers, parity) for servers, parity in codes], [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_misses_of_the_page_about_parity() -> None:
    codes, rows = _table("p")
    assert rows
    for percent, *cells in rows:
        lost = float(percent.removesuffix(" %")) / 100
        for (servers, parity), cell in zip(codes, cells, strict=True):
            more = range(parity + 1, servers + 1)
            misses = 1e6 * sum(comb(servers, count) * lost**count * (1 - lost) ** (servers - count) for count in more)
            number = float(cell.replace(",", ""))
            assert number == pytest.approx(misses, rel=0.005 if number >= 100 else 0.05 if number >= 0.01 else 0.5), (
                percent,
                cell,
            )


def test_bytes_of_the_page_about_parity() -> None:
    codes, rows = _table("bytes of a value")
    assert rows
    for value, *cells in rows:
        whole, rest = divmod(int(value.replace(",", "")), 6000)
        chunks = [6000] * whole + [rest] * (rest > 0)
        for (servers, parity), cell in zip(codes, cells, strict=True):
            stored = sum(chunks) + sum(parity * chunks[first] for first in range(0, len(chunks), servers - parity))
            assert cell == f"{stored / sum(chunks):.2f}", (value, servers, parity)


def test_make_installs_what_commands_ask_for() -> None:
    """The commands of the documents work after `make`: it installs the extras that a command may miss."""
    code = "".join(file.read_text() for file in (ROOT / "ground" / "skymemory").rglob("*.py"))
    asked = set(re.findall(r'how_to_install\([^\n]*["\'](\w+)["\']\)', code))
    assert asked >= {"model", "figures", "bench"}
    recipe = re.search(
        r"^\$\(VENV\)/\.run:.*\n\t.*setup_venv\.py \$\(VENV\) (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert recipe is not None
    assert asked - set(recipe[1].split()) <= {"tracing"}  # traces go to a collector that somebody else has


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name)
def test_drawings_know_dark_pages(picture: Path) -> None:
    assert "@media (prefers-color-scheme: dark)" in picture.read_text()


def test_the_readme_has_commands() -> None:
    assert len(list(_commands(ROOT / "README.md"))) >= 10


def test_a_missing_library_is_installed_from_the_checkout() -> None:
    assert how_to_install("matplotlib", "figures").endswith("in the checkout of SkyMemory run: pip install '.[figures]'")
    named = re.compile(r"pip install[^`\n]*['\" ]skymemory(?:\[|['\"\s`]|$)")
    texts = [*DOCUMENTS, *(ROOT / "ground" / "skymemory").rglob("*.py")]
    assert [str(path) for path in texts if named.search(path.read_text())] == []
