"""`skymem ls`: shows what this host knows of what it has in the sky."""

from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from skymemory.agent.models import recorded
from skymemory.agent.models import told as models_told
from skymemory.cli.common import json_option, open_store, print_json, print_table, sky_option, tenant_secret_option
from skymemory.cli.silence import silence
from skymemory.segments.directory import SegmentDirectory
from skymemory.segments.manifest import shown_time
from skymemory.store.keyvalue import KeyValue
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.value_names import ValueNames

_IN_SKY: Final = {True: "yes", False: "no longer", None: "no answer"}
_HEADINGS: Final = {"put_unix_s": "put", "in_sky": "in the sky", "block_tokens": "tokens of a block"}
_UNKNOWN: Final = (
    "Not known here: names that Redis clients set (`redis-cli --scan` asks the agent), values that programs or other hosts put, "
    "and which prompts are cached: satellites know blocks by digests only. `skymem status` says how much they hold."
)


@click.command("ls")
@sky_option
@tenant_secret_option
@json_option
def list_known(constellation_path: Path | None, tenant_secret_file: Path | None, as_json: bool) -> None:
    """List what this host knows of what it has in the sky: values by name, segments, and models whose prompts are cached.

    The sky is asked whether values are still there. Those that are not are listed once more, and then forgotten.
    """
    with open_store(constellation_path, tenant_secret_file) as store:
        report = {
            "values": _values(store),
            "segments": [
                {"id": one.id, "name": one.display_name, "tokens": one.tokens, "bytes": one.size_bytes}
                for one in SegmentDirectory(store).listed()
            ],
            "models": models_told(store.constellation, recorded()),
        }
    if as_json:
        print_json(report)
        return
    for heading, entries, columns in (
        ("values that `skymem put` stored from this host", report["values"], ("name", "bytes", "put_unix_s", "in_sky")),
        ("segments that this host added", report["segments"], ("id", "name", "tokens", "bytes")),
        ("models whose prompts engines of this host cached", report["models"], ("model", "dtype", "block_tokens")),
    ):
        click.echo(f"{heading}: {len(entries) or 'none'}")
        if entries:
            print_table(_table(entries, columns))
    click.echo(_UNKNOWN)


def _values(store: SkyStore) -> list[dict[str, Any]]:
    """Return the values of this host's list, and forget those that are not in the sky any more."""
    names = ValueNames(store)
    known = names.read()
    found = KeyValue(store).find([one.name for one in known])
    # Stand-ins deny what only satellites hold that are silent now: that is no absence.
    is_known = not silence(store, is_unanswered=False)
    if is_known:
        names.gone(*(one.name for one, result in zip(known, found, strict=True) if result.status is Status.MISS))
    answers = {Status.DONE: True, Status.MISS: False if is_known else None}
    return [
        {
            "name": one.name.encode(errors="surrogateescape").decode(errors="replace"),
            "bytes": one.size_bytes,
            "put_unix_s": one.put_unix_ms / 1000,
            "in_sky": answers.get(result.status),
        }
        for one, result in zip(known, found, strict=True)
    ]


def _table(entries: list[dict[str, Any]], columns: tuple[str, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        numbers = column in {"bytes", "tokens", "block_tokens"}
        table.add_column(_HEADINGS.get(column, column), justify="right" if numbers else "left", overflow="fold")
    for entry in entries:
        table.add_row(*(_shown(column, entry[column]) for column in columns))
    return table


def _shown(column: str, value: Any) -> str:
    if column == "in_sky":
        return _IN_SKY[value]
    if column == "put_unix_s":
        return shown_time(round(1000 * value))
    if isinstance(value, int):
        return f"{value:,}"
    return escape("".join(one if one.isprintable() else "?" for one in str(value)))  # others may have given the name
