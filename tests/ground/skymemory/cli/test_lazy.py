"""Help and completion import no command; what they show of the commands is what the commands say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from skymemory.cli import main
from skymemory.cli.lazy import outline
from skymemory.cli.outlines import OUTLINES

SKYMEM = Path(sys.executable).with_name("skymem")
ALLOWED = {
    "skymemory",
    "skymemory.cli",
    "skymemory.cli.common",
    "skymemory.cli.lazy",
    "skymemory.cli.main",
    "skymemory.cli.outlines",
    "skymemory.common",
    "skymemory.common.file_lock",
    "skymemory.common.input_error",
    "skymemory.common.progress",
    "skymemory.common.state_folder",
    "skymemory.entry",
}
"""modules of this package that help and completion may import"""
MOST_MODULES = 150
"""modules that `import click` and the above may bring on top of those of an interpreter that has just started"""
PROGRAM = """
import atexit, json, pathlib, sys
before = set(sys.modules)
atexit.register(lambda: pathlib.Path({!r}).write_text(json.dumps(sorted(set(sys.modules) - before))))
{}
"""
COMPLETE_ALL = """
from click.shell_completion import ShellComplete
from skymemory.cli.main import main
completion = ShellComplete(main, {}, "skymem", "_SKYMEM_COMPLETE")
for words in %r:
    assert completion.get_completions(words, "--")
    completion.get_completions(words, "")
"""


def imported(program: str, *words: str, **environment: str) -> set[str]:
    """Modules that a Python program imports until its end, in a process of its own."""
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, "-c", PROGRAM.format(file.name, program), *words]
        ran = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return set(json.loads(file.read()))


def check(modules: set[str]) -> None:
    assert {name for name in modules if name.partition(".")[0] == "skymemory"} <= ALLOWED
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - {"skymemory"}
    assert foreign == {"click"}
    assert len(modules) <= MOST_MODULES, sorted(modules)


ENTRY = "import sys; sys.argv = ['skymem', *sys.argv[1:]]; from skymemory.entry import main; main()"


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("-h",)], ids=lambda words: words[0])
def test_help_imports_no_command(words: tuple[str, ...]) -> None:
    check(imported(ENTRY, *words))


def paths(outlines: dict[str, dict[str, object]] = OUTLINES, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, groups included."""
    yield before
    for name, told in outlines.items():
        yield from paths(told.get("commands", {}), (*before, name))  # type: ignore[arg-type]


def test_completion_imports_no_command() -> None:
    environment = {"_SKYMEM_COMPLETE": "bash_complete", "COMP_WORDS": "skymem simulate --", "COMP_CWORD": "2"}
    check(imported(ENTRY.replace("main()", "\ntry: main()\nexcept SystemExit: pass"), **environment))
    check(imported(COMPLETE_ALL % [list(paths())]))


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    assert imported("import skymemory") & {"click", "numpy", "pydantic", "torch"} == set()
    assert "skymemory.wire.address" in imported("import skymemory; skymemory.Satellite")


def commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command with its words, imported."""
    yield before, group
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


def test_outlines_are_what_the_commands_say() -> None:
    """If this fails: tools/gen_outlines.py."""
    context = click.Context(main)
    assert set(OUTLINES) == set(main.list_commands(context))
    for name, told in OUTLINES.items():
        command = main.get_command(context, name)
        assert command is not None
        assert told == outline(command), name


def test_completion_of_every_command_is_what_the_command_takes() -> None:
    completion = ShellComplete(main, {}, "skymem", "_SKYMEM_COMPLETE")
    for words, command in commands(main):
        options = [one for one in command.params if isinstance(one, click.Option)]
        wanted = {name for one in options for name in (*one.opts, *one.secondary_opts) if name.startswith("--")}
        assert {item.value for item in completion.get_completions(list(words), "--")} == wanted | {"--help"}, words
        for option in options:
            values = [item.value for item in completion.get_completions([*words, option.opts[0]], "")]
            assert not isinstance(option.type, click.Choice) or values == list(option.type.choices), (words, option.opts)
        if isinstance(command, click.Group):
            names = {item.value for item in completion.get_completions(list(words), "")}
            assert names == set(command.list_commands(click.Context(command)))


@pytest.mark.parametrize(
    ("words", "kind"),
    [(["put", "k"], "file"), (["status", "--constellation"], "file"), (["agent", "--replay"], "dir"), (["kill"], None)],
)
def test_the_shell_completes_files_where_files_are_taken(words: list[str], kind: str | None) -> None:
    found = ShellComplete(main, {}, "skymem", "_SKYMEM_COMPLETE").get_completions(words, "")
    assert [item.type for item in found] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("skymem sta", ["status"]),
        ("skymem keys l", ["load"]),
        ("skymem status --l", ["--links"]),
        ("skymem status --links --j", ["--json"]),
        ("skymem layout --layout all", ["all_planes"]),
        ("skymem bench prefix --r", ["--rounds"]),
        ("skymem nothing sta", ["status"]),
    ],
)
def test_bash_completes(line: str, wanted: list[str]) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = 'eval "$(_SKYMEM_COMPLETE=bash_source skymem)"; COMP_CWORD=$(($# - 1)) COMP_WORDS=("$@"); '
    script += '_skymem_completion skymem; printf "%s\\n" "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{SKYMEM.parent}:{os.environ['PATH']}"}
    command = [bash, "--norc", "-c", script, "bash", *line.split(" ")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == wanted


def test_help_shows_commands_in_sections() -> None:
    told = subprocess.run([SKYMEM, "--help"], capture_output=True, text=True, check=True).stdout
    for heading, names in main.sections.items():
        section = told.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        shown = [line.split()[0] for line in section.splitlines() if line.startswith("  ") and not line.startswith("   ")]
        assert shown == list(names)
