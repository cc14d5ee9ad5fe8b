"""`skymem put`, `skymem get`, `skymem del`: the general key-value store of the paper's section 3.10."""

import time
from pathlib import Path
from typing import BinaryIO

import click

from skymemory.cli.common import BadInput, Failure, json_option, print_json, progress_bar, require_running
from skymemory.keyvalue import VALUE_BYTES_MAX, KeyValue, key_of
from skymemory.store import SkyStore

DASH = "A KEY that begins with a dash goes behind two of them: skymem {} -- KEY{}"


class KeyCommand(click.Command):
    """A command with a KEY, which may look like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As ever; what is taken for an option and is none may be a KEY."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = " ".join(error.format_message().split()).removesuffix(".")
            raise BadInput(f"{said}. {self.epilog}") from error


@click.command(cls=KeyCommand, epilog=DASH.format("put", " FILE"))
@click.argument("key")
@click.argument("file", type=click.File("rb"))
@json_option
def put(key: str, file: BinaryIO, as_json: bool) -> None:
    """Store FILE (- is standard input) under KEY, any text."""
    value = file.read(VALUE_BYTES_MAX + 1)
    if len(value) > VALUE_BYTES_MAX:
        raise BadInput(f"{file.name} is too large; allowed are {VALUE_BYTES_MAX:,} bytes")
    with SkyStore(require_running().constellation) as store, progress_bar("chunks up") as progress:
        try:
            result = KeyValue(store).put(key, value, progress)
        except ValueError as error:  # larger than the sky
            raise BadInput(f"{file.name}: {error}") from error
    if not result.ok or result.entry is None:
        raise Failure(f"{key!r} was not stored: {result.status}")
    if as_json:
        report = {"key": key, "bytes": len(value), "chunks": result.entry.chunk_total, "seconds": result.duration_s}
        print_json(report)
    else:
        chunks = "1 chunk" if result.entry.chunk_total == 1 else f"{result.entry.chunk_total:,} chunks"
        click.echo(f"{len(value):,} bytes in {chunks} stored in {result.duration_s:.3f} s")


@click.command(cls=KeyCommand, epilog=DASH.format("get", " FILE"))
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@json_option
def get(key: str, file: Path, as_json: bool) -> None:
    """Bring the value of KEY back into FILE (- is standard output)."""
    if as_json and str(file) == "-":
        raise BadInput("the value and --json both go to standard output; allowed with --json is a file")
    with SkyStore(require_running().constellation) as store, progress_bar("chunks down") as progress:
        start_s = time.perf_counter()
        value = KeyValue(store).get(key, progress)
        duration_s = time.perf_counter() - start_s
        entry = store.find(key_of(key)) if as_json else None
    if value is None:
        raise Failure(f"{key!r} is not there, or not whole any more")
    with click.open_file(str(file), "wb") as out:
        out.write(value)
    if as_json:
        chunks = None if entry is None else entry.chunk_total  # None: it was deleted in this very moment
        print_json({"key": key, "bytes": len(value), "chunks": chunks, "seconds": round(duration_s, 6)})


@click.command("del", cls=KeyCommand, epilog=DASH.format("del", ""))
@click.argument("key")
@json_option
def delete(key: str, as_json: bool) -> None:
    """Forget the value of KEY."""
    with SkyStore(require_running().constellation) as store:
        start_s = time.perf_counter()
        purged = store.purge([key_of(key)])
        duration_s = time.perf_counter() - start_s
    if not purged.chunks:
        raise Failure(f"{key!r} was not there")
    if as_json:
        print_json({"key": key, "chunks": purged.chunks, "seconds": round(duration_s, 6)})
