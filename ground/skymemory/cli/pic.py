"""`skymem pic`: reuse of segments anywhere in a prompt, and what it does to a model's answers (docs/pic.md)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from skymemory.cli.common import (
    BadInput,
    Failure,
    json_option,
    open_store,
    print_json,
    print_table,
    progress_lines,
    sky_option,
    tenant_secret_option,
)
from skymemory.cli.models import loaded, model_options, tell_stage
from skymemory.segments.grid import checked_strategies

_ONE_THREAD_PARAMETERS: Final = 10_000_000
"""Parameters up to which products are so small that threads spend more time waiting for each other than computing."""


@click.group()
def pic() -> None:
    """Find out whether a model keeps its answers where segments are linked."""


@pic.command()
@click.argument("model")
@click.option(
    "--prompts",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='File of 200 prompts or more, each a line: a JSON list of texts and segments {"segment": text}. The last is a text.',
)
@click.option("--strategies", default="", help="Strategies with commas between them. Default: all that `auto` chooses from.")
@click.option("--all", "run_all", is_flag=True, help="Run all prompts also with strategies that cannot open any more.")
@model_options
@sky_option
@tenant_secret_option
@json_option
def check(
    model: str,
    file: Path,
    strategies: str,
    run_all: bool,
    dtype: str,
    device: str | None,
    constellation_path: Path | None,
    tenant_secret_file: Path | None,
    as_json: bool,
) -> None:
    """Check on your prompts which strategies keep the answers of MODEL, a folder or a name on the hub, as they are.

    Those that do are open from then on: `auto` may take them, on this host and on all others of the tenant. What an earlier
    check found of the same strategies is replaced when this one has ended; if it is ended before, nothing changes.
    """
    words = [word for word in (part.strip() for part in strategies.split(",")) if word]
    try:
        lines = file.read_text(encoding="utf-8").split("\n")  # and nowhere else: texts may have other line separators
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error
    try:
        checked_strategies(words, bos=0)  # whether the model has a BOS is seen once it is loaded
    except ValueError as error:
        raise BadInput(f"--strategies: {error}") from error
    with open_store(constellation_path, tenant_secret_file) as store, loaded(model, dtype, device) as (network, tokenizer):
        import torch

        from skymemory.prompt.codecs import CodecError
        from skymemory.prompt.huggingface import UnsupportedModelError
        from skymemory.prompt.manager import KVCManager
        from skymemory.segments.check import CheckError
        from skymemory.segments.errors import SegmentError
        from skymemory.segments.manager import SegmentManager

        if network.num_parameters() <= _ONE_THREAD_PARAMETERS:
            torch.set_num_threads(1)
        tell_stage("reading all weights, for the model's fingerprint")
        manager = KVCManager(network, tokenizer, store)
        segments = SegmentManager(manager)
        start_s = time.perf_counter()
        try:
            with progress_lines("prompts checked") as progress:
                figures = segments.check(lines, words, stop_early=not run_all, progress=progress)
        except UnsupportedModelError:
            raise  # `loaded` tells of it
        except (CheckError, CodecError, SegmentError) as error:
            raise Failure(str(error)) from error
        except ValueError as error:
            raise BadInput(f"{file}: {error}") from error
        duration_s = time.perf_counter() - start_s
        about = {"model": model, "fingerprint": manager.fingerprint().hex(), "codec": manager.codec.name}
        if store.silent:
            click.echo("no satellite answers: only this host keeps what was found", err=True)
    if as_json:
        print_json({**about, "points": figures, "seconds": round(duration_s, 3)})
    else:
        print_table(_table(figures))
        are_open = sum(1 for row in figures if row["open"])
        click.echo(f"{are_open} of {len(figures)} are open for {model} with the codec {about['codec']}", err=True)


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table()
    for column in ("strategy", "m", "prompts", "KL", "agreement (bound)", "shuffled (bound)", "up to", "verdict"):
        table.add_column(column, justify="left" if column in {"strategy", "verdict"} else "right")
    for row in figures:
        table.add_row(
            row["strategy"],
            str(row["switch_layer"]),
            f"{row['prompts']:,}",
            f"{row['kl']:.4f}",
            f"{row['agreement']:.2%} ({row['agreement_bound']:.2%})",
            f"{row['shuffled_agreement']:.2%} ({row['shuffled_agreement_bound']:.2%})",
            f"{row['covered_segments']:,} x {row['covered_segment_tokens']:,}, {row['covered_tokens']:,} tokens",
            "[bold]open[/bold]" if row["open"] else f"closed: {row['why']}",
        )
    return table
