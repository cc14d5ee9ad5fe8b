"""`skymem serve-keys`: API keys of `skymem serve`."""

from pathlib import Path

import click

from skymemory.cli.common import BadInput
from skymemory.cli.parameters import AccountName
from skymemory.common.secret_files import SecretFileError
from skymemory.serve.api_keys import add_key, list_keys, remove_key

_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("serve-keys")
def serve_keys() -> None:
    """Add, list and remove API keys of `skymem serve --api-keys FILE`.

    A server that runs reads the file again when it changes.
    """


@serve_keys.command()
@_FILE
@click.argument("name", type=AccountName())
@click.option("--operator", "is_operator", is_flag=True, help="With it /metrics has the numbers of all keys, and not its own.")
def add(file: Path, name: str, *, is_operator: bool) -> None:
    """Make a key for NAME and show it, once: FILE, which only you may read, has its digest."""
    try:
        click.echo(add_key(file, name, is_operator=is_operator))
    except SecretFileError as error:
        raise BadInput(str(error)) from error


@serve_keys.command("list")
@_FILE
def list_(file: Path) -> None:
    """Show the names in FILE."""
    try:
        for entry in list_keys(file):
            click.echo(entry.name)
    except SecretFileError as error:
        raise BadInput(str(error)) from error


@serve_keys.command()
@_FILE
@click.argument("name", type=AccountName())
def remove(file: Path, name: str) -> None:
    """Take the key of NAME out of FILE."""
    try:
        remove_key(file, name)
    except SecretFileError as error:
        raise BadInput(str(error)) from error
