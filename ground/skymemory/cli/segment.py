"""`skymem segment`: segments, which any prompt can use wherever they stand in it (docs/pic.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from skymemory.cli.common import (
    BadInput,
    Failure,
    Silent,
    json_option,
    open_store,
    print_json,
    print_table,
    progress_bar,
    sky_option,
    tenant_secret_option,
)
from skymemory.cli.models import loaded, model_options, tell_stage
from skymemory.segments.directory import TTL_S_MAX, SegmentDirectory, checked_name
from skymemory.segments.errors import SegmentError, SilentSkyError
from skymemory.segments.host_list import Segment
from skymemory.segments.manifest import SINKS_MAX, shown_time


@click.group()
def segment() -> None:
    """Add, list and remove segments: texts whose keys and values any prompt of the model can use, wherever they stand in it."""


@segment.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--text", help="The text itself, instead of FILE.")
@click.option("--model", required=True, help="Model that computes it: its folder, or its name on the hub.")
@click.option(
    "--ttl",
    "ttl_s",
    metavar="SECONDS",
    type=click.IntRange(1, TTL_S_MAX),
    help="Seconds until the segment expires. Default: never.",
)
@click.option(
    "--sinks",
    default=0,
    show_default=True,
    type=click.IntRange(0, SINKS_MAX),
    help="Tokens BOS to compute it behind: 4 for the strategy lego0, else 0.",
)
@click.option("--name", default="", help="A name for people.")
@model_options
@sky_option
@tenant_secret_option
@json_option
def add(
    file: Path | None,
    text: str | None,
    model: str,
    ttl_s: int | None,
    sinks: int,
    name: str,
    dtype: str,
    device: str | None,
    constellation_path: Path | None,
    tenant_secret_file: Path | None,
    as_json: bool,
) -> None:
    """Compute the segment of FILE (- is standard input), UTF-8 text, and store it. Prints the id, by which all hosts find it.

    Only what the sky does not have is computed and stored. A segment that is there expires at the later of both times.
    """
    content = _content(file, text)
    try:
        checked_name(name)
    except SegmentError as error:
        raise BadInput(f"--name: {error}") from error
    with open_store(constellation_path, tenant_secret_file) as store, loaded(model, dtype, device) as (network, tokenizer):
        from skymemory.prompt.manager import KVCManager
        from skymemory.segments.manager import SegmentManager

        tell_stage("reading all weights, for the keys of blocks")
        segments = SegmentManager(KVCManager(network, tokenizer, store))
        start_s = time.perf_counter()
        with _told(), progress_bar("blocks up") as progress:
            added = segments.add(content, ttl_s, sinks, name, progress=progress)
        duration_s = time.perf_counter() - start_s
    if as_json:
        print_json({**_report(added), "seconds": round(duration_s, 6)})
    else:
        click.echo(f"{added.tokens:,} tokens in {added.size_bytes:,} bytes, in {duration_s:.3f} s", err=True)
        click.echo(added.id)


@segment.command("list")
@sky_option
@tenant_secret_option
@json_option
def list_(constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """Show the segments that this host has added and that have not expired. No model is loaded, and the sky is not asked."""
    with open_store(constellation_path, tenant_secret_file) as store:
        known = SegmentDirectory(store).listed()
    if as_json:
        print_json({"segments": [_report(one) for one in known]})
    elif not known:
        click.echo("this host has no segment in that sky")
    else:
        print_table(_table(known))


@segment.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@sky_option
@tenant_secret_option
@json_option
def rm(ids: tuple[str, ...], constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """Purge segments for all hosts. No model is loaded. Blocks that others of this host's segments have, too, stay."""
    purged: dict[str, bool] = {}
    failed, is_silent = [], False
    with open_store(constellation_path, tenant_secret_file) as store:
        directory = SegmentDirectory(store)
        for one in dict.fromkeys(ids):
            try:
                purged[one] = directory.expire(one)
            except SegmentError as error:
                failed.append(str(error))
                is_silent |= isinstance(error, SilentSkyError)
    if as_json:
        print_json({"purged": [{"id": one, "confirmed": confirmed} for one, confirmed in purged.items()]})
    else:
        for one, confirmed in purged.items():
            silent = "" if confirmed else "; satellites that do not answer now may bring a part of it back"
            click.echo(f"{one} is purged{silent}")
    if failed:
        raise (Silent if is_silent else Failure)("; ".join(failed))


@contextmanager
def _told() -> Iterator[None]:
    """Make one line of what the sky or the segment do not allow."""
    try:
        yield
    except SilentSkyError as error:
        raise Silent(str(error)) from error
    except SegmentError as error:
        raise Failure(str(error)) from error


def _content(file: Path | None, text: str | None) -> str:
    if (file is None) == (text is None):
        raise BadInput("wanted is one of FILE and --text")
    if file is not None:
        with click.open_file(str(file), "rb") as given:
            raw = given.read()
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error
    if not text:
        raise BadInput(f"{'--text' if file is None else file} is empty; a segment has one token or more")
    return text


def _report(one: Segment) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.display_name,
        "tokens": one.tokens,
        "bytes": one.size_bytes,
        "sinks": one.sinks,
        "codec": one.codec,
        "created_unix_s": one.created_unix_ms / 1000,
        "expires_unix_s": one.expires_unix_ms / 1000 if one.expires_unix_ms else None,
    }


def _table(known: list[Segment]) -> Table:
    table = Table()
    table.add_column("id", overflow="fold")  # whole in narrow terminals, too: `rm` wants it
    for column in ("name", "tokens", "MB", "sinks", "codec", "expires"):
        table.add_column(column, justify="right" if column in {"tokens", "MB", "sinks"} else "left")
    for one in known:
        expires = shown_time(one.expires_unix_ms) if one.expires_unix_ms else "never"
        size = f"{one.size_bytes / 1e6:,.2f}"
        table.add_row(one.id, _shown(one.display_name), f"{one.tokens:,}", size, str(one.sinks), one.codec, expires)
    return table


def _shown(name: str) -> str:
    """Return a name as a table takes it: other hosts gave it, so it may have markup or control characters."""
    return escape("".join(character if character.isprintable() else "?" for character in name))
