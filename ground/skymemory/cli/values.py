"""`skymem put`, `get`, `del`, `prefetch`: the general key-value store of the paper's section 3.10."""

import time
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import BinaryIO

import click

from skymemory.cli.common import (
    BadInput,
    Failure,
    Silent,
    json_option,
    open_store,
    print_json,
    progress_bar,
    sky_option,
    tenant_secret_option,
)
from skymemory.cli.silence import silence
from skymemory.common.whole_file import Buffer, write_whole
from skymemory.link.other_versions import other_versions, version_words
from skymemory.store.keyvalue import VALUE_BYTES_MAX, KeyValue
from skymemory.store.results import SILENCE, Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.value_names import ValueNames

DASH = "Put two dashes before a KEY that begins with one: skymem {} -- KEY{}"


class KeyCommand(click.Command):
    """A command with a KEY, which may look like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. An unknown option may be a KEY: say how to write one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = " ".join(error.format_message().split()).removesuffix(".")
            raise BadInput(f"{said}. {self.epilog}") from error


@click.command(cls=KeyCommand, epilog=DASH.format("put", " FILE"))
@click.argument("key")
@click.argument("file", type=click.File("rb"))
@sky_option
@tenant_secret_option
@json_option
def put(key: str, file: BinaryIO, constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """Store FILE (- is standard input) under KEY, any text."""
    if not key:
        raise BadInput("KEY is empty; allowed is any text of at least one character")
    value = file.read(VALUE_BYTES_MAX + 1)
    if len(value) > VALUE_BYTES_MAX:
        raise BadInput(f"{file.name} is too large; allowed are {VALUE_BYTES_MAX:,} bytes")
    with open_store(constellation_path, tenant_secret_file) as store, progress_bar("chunks up") as progress:
        try:
            result = KeyValue(store).put(key, value, progress)
        except ValueError as error:  # the value is larger than the sky
            raise BadInput(f"{file.name}: {error}") from error
        if result.status is Status.UNAUTHENTICATED:
            store.probe(store.control)  # one satellite said so: what do the others say?
        refusal = "" if result.ok else _refusal(store)
        is_silent, deadline_s = store.silent, store.constellation.cache.deadline_ms / 1000
        if result.ok:
            ValueNames(store).stored(key, len(value))
    if not result.ok or result.entry is None:
        if refusal or result.status not in SILENCE:
            raise Failure(f"{key!r} was not stored: {refusal or result.status}")
        if is_silent:
            raise Silent(f"{key!r} was not stored: no satellite answers")
        raise Silent(f"{key!r} was not stored: satellites did not acknowledge all of it within {deadline_s:g} s")
    if as_json:
        total = result.entry.chunk_total
        print_json({"key": key, "bytes": len(value), "chunks": total, "seconds": result.duration_s})
    else:
        click.echo(f"{len(value):,} bytes in {_chunks(result.entry.chunk_total)} stored in {result.duration_s:.3f} s")


@click.command(cls=KeyCommand, epilog=DASH.format("get", " FILE"))
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@sky_option
@tenant_secret_option
@json_option
def get(key: str, file: Path, constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """Write the value of KEY to FILE (- is standard output).

    Exit status 1: it is not there. 4: satellites that may have it do not answer.
    """
    if as_json and str(file) == "-":
        raise BadInput("the value and --json both go to standard output; allowed with --json is a file")
    with open_store(constellation_path, tenant_secret_file) as store, progress_bar("chunks down") as progress:
        start_s = time.perf_counter()
        values = KeyValue(store)
        value, status = values.fetch(key, progress)
        duration_s = time.perf_counter() - start_s
        entry = store.find([values.key_of(key)])[0].entry if as_json else None
        refusal = _refusal(store) if value is None else ""
        silent = silence(store, is_unanswered=status in SILENCE)
    if value is None:
        raise _not_found(key, refusal, silent, "is not there, or not whole any more")
    try:
        _write(file, value)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from error
    if as_json:
        chunks = None if entry is None else entry.chunk_total  # None: somebody has just deleted the value
        print_json({"key": key, "bytes": len(value), "chunks": chunks, "seconds": round(duration_s, 6)})


@click.command("del", cls=KeyCommand, epilog=DASH.format("del", ""))
@click.argument("key")
@sky_option
@tenant_secret_option
@json_option
def delete(key: str, constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """Delete the value of KEY.

    Exit status 1: it was not there. 4: satellites that may have it do not answer.
    """
    with open_store(constellation_path, tenant_secret_file) as store:
        start_s = time.perf_counter()
        result = KeyValue(store).erase(key)
        duration_s = time.perf_counter() - start_s
        refusal = "" if result.ok else _refusal(store)
        silent = silence(store, is_unanswered=result.status in SILENCE)
        if result.ok or (result.status is Status.MISS and not refusal and not silent):
            ValueNames(store).gone(key)
    if result.status is Status.MISS or result.status in SILENCE:
        raise _not_found(key, refusal, silent, "was not there")
    if not result.ok:
        raise Failure(f"{key!r} was not deleted: {refusal or result.status}")
    if as_json:
        print_json({"key": key, "seconds": round(duration_s, 6)})


@click.command(cls=KeyCommand, epilog=DASH.format("prefetch --at TIME", "..."))
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@click.option(
    "--at", "at", required=True, metavar="TIME", help="ISO 8601 time (local if it names no zone), or +SECONDS from now."
)
@sky_option
@tenant_secret_option
@json_option
def prefetch(
    keys: tuple[str, ...], at: str, constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool
) -> None:
    """Prefetch values.

    The values of KEYs go, once, to where the window will be at TIME.
    """
    start_s = time.time()
    at_s = _moment(at, start_s)
    with open_store(constellation_path, tenant_secret_file) as store:
        if not store.follows:
            raise Failure("the constellation follows no schedule: what it holds stays where it is")
        results = KeyValue(store).prefetch(keys, max(at_s, time.time()))
        refusal, silent = _refusal(store), silence(store, is_unanswered=False)
    duration_s = time.time() - start_s
    failed = [f"{key!r}: {result.status}" for key, result in zip(keys, results, strict=True) if not result.ok]
    moved = sum(result.moved for result in results if result.ok)
    if as_json:
        values = [
            {"key": key, "ok": result.ok, "status": result.status, "moved": result.moved}
            for key, result in zip(keys, results, strict=True)
        ]
        print_json({"row": results[0].row, "values": values, "seconds": round(duration_s, 6)})
    else:
        shares = "1 share" if moved == 1 else f"{moved:,} shares"
        done = len(keys) - len(failed)
        click.echo(f"{done} of {len(keys)} in the window of row {results[0].row}: {shares} moved in {duration_s:.3f} s")
    if failed:
        told = "; ".join(failed)
        if refusal or not silent:
            raise Failure(f"not prefetched: {told}" + (f"; {refusal}" if refusal else ""))
        raise Silent(f"not prefetched: {told}; {silent}")


def _write(file: Path, value: Buffer) -> None:
    """Write a file whole, or leave what was there as it was.

    Raises:
        OSError: The file cannot be written.
    """
    if str(file) == "-":
        with click.open_file("-", "wb") as out:
            out.write(value)
    else:
        write_whole(file, value)


def _chunks(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count:,} chunks"


def _not_found(key: str, refusal: str, silent: str, absent: str) -> click.ClickException:
    """Return the error of a value that was not found: refused, silence, or absence."""
    if refusal:
        return Failure(f"{key!r} was not found: {refusal}")
    return Silent(f"{key!r} was not found, and may be there: {silent}") if silent else Failure(f"{key!r} {absent}")


def _refusal(store: SkyStore) -> str:
    """Return in words that satellites refuse this host's keys, or speak another version; '' if they do neither."""
    if refusal := store.control.refusal():
        return "no satellite takes this host's keys" if store.silent else refusal  # the store has warned of the rest
    where = store.whereabouts
    servers = set(where.servers(where.row(time.time())))
    return version_words(other_versions(store.constellation, servers if store.silent else store.lost))


def _moment(text: str, now_s: float) -> float:
    """Return the Unix time that --at names."""
    try:
        at_s = now_s + float(text[1:]) if text.startswith("+") else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise BadInput(f"--at is {text!r}; allowed are +SECONDS and ISO 8601, as in 2026-11-20T15:00:00Z") from error
    if not isfinite(at_s) or at_s < now_s:
        raise BadInput(f"--at is {text!r}, which is past; allowed are times from now on")
    return at_s
