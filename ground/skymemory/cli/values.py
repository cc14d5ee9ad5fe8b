"""`skymem put`, `skymem get`, `skymem del`: the general key-value store of the paper's section 3.10."""

from pathlib import Path
from typing import BinaryIO

import click

from skymemory.cli.common import BadInput, Failure, json_option, print_json, progress_bar, require_running
from skymemory.keyvalue import VALUE_BYTES_MAX, KeyValue
from skymemory.store import SkyStore


@click.command()
@click.argument("key")
@click.argument("file", type=click.File("rb"))
@json_option
def put(key: str, file: BinaryIO, as_json: bool) -> None:
    """Store FILE (- is standard input) under KEY, any text."""
    value = file.read(VALUE_BYTES_MAX + 1)
    if len(value) > VALUE_BYTES_MAX:
        raise BadInput(f"{file.name} is too large; allowed are {VALUE_BYTES_MAX:,} bytes")
    with SkyStore(require_running().constellation) as store, progress_bar("chunks up") as progress:
        result = KeyValue(store).put(key, value, progress)
    if not result.ok or result.entry is None:
        raise Failure(f"{key!r} was not stored: {result.status}")
    if as_json:
        report = {"key": key, "bytes": len(value), "chunks": result.entry.chunk_total, "seconds": result.duration_s}
        print_json(report)
    else:
        chunks = "1 chunk" if result.entry.chunk_total == 1 else f"{result.entry.chunk_total:,} chunks"
        click.echo(f"{len(value):,} bytes in {chunks} stored in {result.duration_s:.3f} s")


@click.command()
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
def get(key: str, file: Path) -> None:
    """Bring the value of KEY back into FILE (- is standard output)."""
    with SkyStore(require_running().constellation) as store, progress_bar("chunks down") as progress:
        value = KeyValue(store).get(key, progress)
    if value is None:
        raise Failure(f"{key!r} is not there, or not whole any more")
    with click.open_file(str(file), "wb") as out:
        out.write(value)


@click.command("del")
@click.argument("key")
def delete(key: str) -> None:
    """Forget the value of KEY."""
    with SkyStore(require_running().constellation) as store:
        if not KeyValue(store).delete(key):
            raise Failure(f"{key!r} was not there")
