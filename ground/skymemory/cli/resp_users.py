"""`skymem resp-users`: users of the agent's Redis gateway."""

from pathlib import Path

import click

from skymemory.agent.gateway.users import add_user, list_users, remove_user
from skymemory.cli.common import BadInput
from skymemory.cli.parameters import AccountName
from skymemory.common.secret_files import SecretFileError
from skymemory.sky.file_sections import UINT32_MAX

_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("resp-users")
def resp_users() -> None:
    """Add, list and remove users of `skymem agent --resp-users FILE`. An agent reads the file when it starts."""


@resp_users.command()
@_FILE
@click.argument("name", type=AccountName())
@click.option("--tenant", type=click.IntRange(0, UINT32_MAX), required=True, help="Number of the tenant whose values it sees.")
@click.option("--tenant-secret-file", default="", help="File with the tenant's secret, seen from the folder of FILE.")
@click.option("--read-only", is_flag=True, help="The user may not change values.")
def add(file: Path, name: str, tenant: int, tenant_secret_file: str, read_only: bool) -> None:
    """Make a password for NAME and show it, once: FILE, which only you may read, has its digest."""
    try:
        click.echo(add_user(file, name, tenant, tenant_secret_file=tenant_secret_file, read_only=read_only))
    except SecretFileError as error:
        raise BadInput(str(error)) from error


@resp_users.command("list")
@_FILE
def list_(file: Path) -> None:
    """Show the users in FILE, each with its tenant."""
    try:
        for entry in list_users(file):
            click.echo(f"{entry.name} tenant {entry.tenant}{' read-only' if entry.read_only else ''}")
    except SecretFileError as error:
        raise BadInput(str(error)) from error


@resp_users.command()
@_FILE
@click.argument("name", type=AccountName())
def remove(file: Path, name: str) -> None:
    """Take NAME out of FILE."""
    try:
        remove_user(file, name)
    except SecretFileError as error:
        raise BadInput(str(error)) from error
