"""`skymem status`: shows what every satellite reports of itself, and whether blocks can be fetched."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from skymemory.cli.agent_counts import agent_counts, told
from skymemory.cli.common import BadInput, Silent, find_sky, json_option, output_console, print_json, sky_option
from skymemory.cli.status_report import SILENT, Reporter
from skymemory.cli.status_words import Part, parts, verdict
from skymemory.sky.window_state import State
from skymemory.testbed.run_record import RunSky, StateError

EVERY_S = 2.0
"""Seconds between two looks of `--watch` that names none."""
EVERY_MIN_S = 0.5
"""Least of them: each look asks all satellites."""


@click.command()
@click.option("--links", "show_links", is_flag=True, help="List every link: delays requested and measured, packets, drops.")
@click.option(
    "--check",
    is_flag=True,
    help="Print the window's state alone. Exit status: 0 whole, 1 degraded or gone, 4 no satellite can be asked.",
)
@click.option(
    "--watch",
    "every_s",
    type=click.FloatRange(min=EVERY_MIN_S),
    is_flag=False,
    flag_value=EVERY_S,
    metavar="[SECONDS]",
    help=f"Look again every SECONDS, {EVERY_S:g} by default, until Ctrl-C. With --json one line for each look.",
)
@sky_option
@json_option
@click.pass_context
def status(
    context: click.Context, show_links: bool, check: bool, every_s: float | None, constellation_path: Path | None, as_json: bool
) -> None:
    """Show what the satellites hold and have done, as a grid of planes and slots."""
    if check and every_s is not None:
        raise BadInput("--check and --watch: allowed is one of them")
    try:
        sky = find_sky(constellation_path)
    except StateError as error:
        if check:
            raise Silent(str(error)) from error
        raise
    with Reporter(sky.constellation) as reporter:

        def look() -> dict[str, Any]:
            return reporter.report(sky.playing.load())

        if every_s is None:
            state = _show(sky, look(), show_links=show_links, only_verdict=check, as_json=as_json)
            if check:
                context.exit({State.WHOLE: 0, SILENT: Silent.exit_code}.get(state, 1))
        elif as_json:
            _repeat(every_s, lambda: click.echo(json.dumps(_with_agent(look()))))
        else:
            _watch(every_s, sky, look, show_links=show_links)


def _show(sky: RunSky, report: dict[str, Any], *, show_links: bool, only_verdict: bool, as_json: bool) -> str:
    """Print a report. Return the state of the window."""
    if as_json:
        print_json(_with_agent(report))
    elif only_verdict:
        console = output_console()
        _print(console, verdict(report, console.width))
    else:
        console = output_console()
        _print(console, parts(report, sky.constellation, agent_counts(), console.width, show_links=show_links))
    state: str = report["window"]["state"]
    return state


def _print(console: Console, shown: Sequence[Part]) -> None:
    for part in shown:
        console.print(part)


def _with_agent(report: dict[str, Any]) -> dict[str, Any]:
    counts = agent_counts()
    return {**report, "agent": None if counts is None else told(counts)}


def _watch(every_s: float, sky: RunSky, look: Callable[[], dict[str, Any]], *, show_links: bool) -> None:
    """Show reports in place on a terminal, else one below the other."""
    console = output_console()
    with ExitStack() as screen:
        live = screen.enter_context(Live(console=console, auto_refresh=False)) if console.is_terminal else None

        def show() -> None:
            now = Text(f"{datetime.now():%H:%M:%S}, every {every_s:g} s until Ctrl-C", style="dim")
            shown = [now, *parts(look(), sky.constellation, agent_counts(), console.width, show_links=show_links)]
            if live is None:
                _print(console, shown)
            else:
                live.update(Group(*shown), refresh=True)

        _repeat(every_s, show)


def _repeat(every_s: float, show: Callable[[], None]) -> None:
    """Call a function again and again, until Ctrl-C."""
    try:
        while True:
            due_s = time.monotonic() + every_s
            show()
            time.sleep(max(0.0, due_s - time.monotonic()))
    except KeyboardInterrupt:
        return
