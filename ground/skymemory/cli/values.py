"""`skymem put`, `skymem get`, `skymem del`: the general key-value store of the paper's section 3.10."""

from pathlib import Path
from typing import BinaryIO

import blake3
import click

from skymemory.cli.common import Failure, json_option, print_json, progress_bar, require_running
from skymemory.store import SkyStore

KEY_CONTEXT = "skymemory 2025 cli value key"
"""separates these keys from those of prompts"""


def block_key(text: str) -> bytes:
    """The 32-byte key under which the value of a text key is stored."""
    return blake3.blake3(text.encode(), derive_key_context=KEY_CONTEXT).digest()


@click.command()
@click.argument("key")
@click.argument("file", type=click.File("rb"))
@json_option
def put(key: str, file: BinaryIO, as_json: bool) -> None:
    """Store FILE (- is standard input) under KEY, any text."""
    value = file.read()
    running = require_running()
    store = SkyStore(running.constellation)
    try:
        with progress_bar("putting") as progress:
            result = store.put([(block_key(key), value)], progress)[0]
    finally:
        store.close()
    raise NotImplementedError(result, as_json, print_json, Failure)


@click.command()
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
def get(key: str, file: Path) -> None:
    """Bring the value of KEY back into FILE (- is standard output)."""


@click.command("del")
@click.argument("key")
def delete(key: str) -> None:
    """Forget the value of KEY."""
