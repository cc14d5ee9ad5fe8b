"""`skymem doctor`: looks for what keeps SkyMemory from working on this machine."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
from click.formatting import wrap_text

from skymemory.cli import checks
from skymemory.cli.checks import Finding
from skymemory.cli.common import json_option, load_constellation, output_console, print_json, sky_option
from skymemory.common.input_error import InputError
from skymemory.common.secret_files import SecretFileError
from skymemory.testbed.run_record import Running, RunRecord, StateError

_WIDTH_MAX = 110


@click.command()
@sky_option
@json_option
@click.pass_context
def doctor(context: click.Context, constellation_path: Path | None, as_json: bool) -> None:
    """Look for what is wrong on this machine, and say what to do. Nothing is changed.

    Ports, memory, limits of the kernel, Docker, the agent, versions, keys, and the state folder. The exit status is 1 if
    something is to be mended, and 0 if all that was found may stay as it is.
    """
    findings = list(_findings(constellation_path))
    is_well = all(one.state != "mend" for one in findings)
    if as_json:
        print_json({"well": is_well, "findings": [asdict(one) for one in findings]})
    else:
        for one in findings:
            _print(one)
        click.echo("nothing has to be mended" if is_well else f"{sum(one.state == 'mend' for one in findings)} to mend")
    context.exit(0 if is_well else 1)


def _findings(path: Path | None) -> Iterator[Finding]:
    record = RunRecord()
    yield from checks.check_package()
    yield from checks.check_state_folder(record.folder)
    running: Running | None = None
    try:
        running = record.running()
    except StateError as error:
        yield Finding("state folder", "mend", str(error), "`skymem down`")
    try:
        constellation = running.constellation if running is not None and path is None else load_constellation(path)
        yield from checks.check_keyring(constellation)
        mine = running if running is not None and running.constellation == constellation else None
        yield from checks.check_constellation(constellation, mine, 0 if running else len(record.find_satellites()))
    except (InputError, SecretFileError) as error:
        yield Finding("constellation", "mend", str(error), "mend the file, or the keys that it names")
    yield from checks.check_kernel()
    yield from checks.check_docker()
    yield from checks.check_agent()


def _print(one: Finding) -> None:
    """Print a finding in one line, and its cure in another."""
    width = min(output_console().width, _WIDTH_MAX)
    mark = click.style(one.state.ljust(5), fg={"well": "green", "note": "yellow", "mend": "red"}[one.state])
    for text, head in ((one.found, f"{mark} {one.about}: "), (one.cure, "      -> ")):
        if text:
            click.echo(wrap_text(text, width, head, " " * 9))
