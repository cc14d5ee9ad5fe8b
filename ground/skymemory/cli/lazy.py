"""A command group that imports a command when it is run: help and completion come from an outline of all commands.

Importing all commands takes a second of processor time, and each key press of completion would pay for it.
"""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, TypeAlias

import click

from skymemory.cli.common import Commands

Outline: TypeAlias = dict[str, Any]
"""Short help and parameters of a command, and the outlines of its commands if it is a group; only literals."""
_PATHS: Final = {"file": click.Path(), "folder": click.Path(file_okay=False)}
_HELP_WIDTH: Final = 200
"""Columns of a short help, so that none is cut."""


@contextmanager
def ctrl_c_ends_the_process() -> Iterator[None]:
    """Let Ctrl-C end this process without a trace while it imports, as nothing is there yet to clear up."""
    is_first = threading.current_thread() is threading.main_thread()
    if not is_first or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # so it is in a shell's background
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class LazyCommands(Commands):
    """The commands of several modules, in sections of the help.

    Args:
        sections: `module:name` of each command in the package `skymemory.cli`, by the section's heading and the command's name.
        outlines: Outline of each command.
    """

    def __init__(self, *, sections: Mapping[str, Mapping[str, str]], outlines: Mapping[str, Outline], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.sections = sections
        self._outlines = outlines
        self._places = {name: place for section in sections.values() for name, place in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; for completion, which runs none, a sketch of it."""
        if cmd_name not in self._places:
            return None
        if ctx.resilient_parsing:
            return sketch(cmd_name, self._outlines[cmd_name])
        if cmd_name not in self.commands:
            module, _, name = self._places[cmd_name].partition(":")
            with ctrl_c_ends_the_process():
                self.commands[cmd_name] = getattr(import_module(f"skymemory.cli.{module}"), name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the short helps, section by section."""
        widest = max(map(len, self._places))
        for heading, names in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), self._outlines[name]["help"]) for name in names])


def outline(command: click.Command) -> Outline:
    """Return the outline of a command."""
    made: Outline = {"help": command.get_short_help_str(_HELP_WIDTH), "parameters": [_parameter(one) for one in command.params]}
    if isinstance(command, click.Group):
        made["commands"] = {name: outline(one) for name, one in command.commands.items()}
    return made


def _parameter(parameter: click.Parameter) -> Outline:
    """Return what completion needs of a parameter: its names, and its values as far as they are known."""
    kind = parameter.type
    made: Outline = {"names": [*parameter.opts, *parameter.secondary_opts]}
    if isinstance(parameter, click.Option):
        made |= {"help": parameter.help} | ({"flag": True} if parameter.is_flag else {})
    else:
        made["names"] = [parameter.name]
    if parameter.multiple or parameter.nargs != 1:
        made["many"] = True
    if isinstance(kind, click.Choice):
        made["choices"] = [str(one) for one in kind.choices]
    elif isinstance(kind, click.File | click.Path):
        made["path"] = "file" if isinstance(kind, click.File) or kind.file_okay else "folder"
    return made


def sketch(name: str, told: Outline) -> click.Command:
    """Return a command that completes as the outlined one does, and does nothing."""
    parameters = [_sketch_parameter(**one) for one in told["parameters"]]
    if "commands" not in told:
        return click.Command(name, params=parameters, help=told["help"])
    commands = {name: sketch(name, one) for name, one in told["commands"].items()}
    return click.Group(name, commands, params=parameters, help=told["help"])


def _sketch_parameter(
    names: list[str],
    help: str | None = None,  # noqa: A002 - as click names it
    flag: bool = False,
    many: bool = False,
    choices: list[str] | None = None,
    path: str | None = None,
) -> click.Parameter:
    kind: click.ParamType[Any] = click.STRING
    if choices is not None:
        kind = click.Choice(choices)
    elif path is not None:
        kind = _PATHS[path]
    if not names[0].startswith("-"):
        return click.Argument(names, type=kind, nargs=-1 if many else 1)
    if flag:
        return click.Option(names, is_flag=True, help=help)
    return click.Option(names, type=kind, multiple=many, help=help)
