"""Options `--log-level` and `--log-json` of commands that run for long."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from skymemory.common.logs import LEVELS, start_log

_Command = TypeVar("_Command", bound=Callable[..., Any])
DEFAULT_LEVEL = "info"


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value until the command begins its log."""
    context.meta[f"skymemory.{parameter.name}"] = value


def log_options(command: _Command) -> _Command:
    """Add the options to a command, which calls `begin_log` when it begins to serve."""
    for option in (
        click.option(
            "--log-json",
            is_flag=True,
            show_envvar=True,
            expose_value=False,
            callback=_remember,
            help="Log one JSON object in each line.",
        ),
        click.option(
            "--log-level",
            type=click.Choice(LEVELS, case_sensitive=False),
            default=DEFAULT_LEVEL,
            show_default=True,
            show_envvar=True,
            expose_value=False,
            callback=_remember,
            help="Least level that is logged, on standard error.",
        ),
    ):
        command = option(command)
    return command


def begin_log() -> None:
    """Begin the log as the options of the command that runs say."""
    meta = click.get_current_context().meta
    start_log(meta["skymemory.log_level"], as_json=meta["skymemory.log_json"])
