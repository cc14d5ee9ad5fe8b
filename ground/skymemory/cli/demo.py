"""`skymem demo`: runs a prompt without and with the cache."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from skymemory.cli.common import (
    BadInput,
    Failure,
    check_model,
    constellation_option,
    first_line,
    json_option,
    load_constellation,
    print_json,
    print_table,
    progress_bar,
    tell_of_model,
    tenant_secret_option,
)
from skymemory.common.extras import how_to_install
from skymemory.common.tenant_secrets import read_tenant_secret
from skymemory.prompt.codecs import codec_names
from skymemory.sky.constellation import Constellation
from skymemory.sky.whereabouts import Source
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import RunRecord


@click.command()
@click.option("--model", help="Llama-family model: its folder, or its name on the hub. Default: 100 M random weights, made here.")
@click.option(
    "--prompt-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="UTF-8 text. Default: a document of more than 2,000 tokens that is shipped.",
)
@click.option(
    "--codec",
    type=click.Choice(codec_names()),
    default="raw",
    show_default=True,
    help="Codec that packs the tensors; all but raw lose precision.",
)
@click.option("--tokens", default=30, show_default=True, type=click.IntRange(2, 4096), help="Tokens to generate.")
@constellation_option
@tenant_secret_option
@json_option
def demo(
    model: str | None,
    prompt_file: Path | None,
    codec: str,
    tokens: int,
    constellation_path: Path | None,
    tenant_secret_file: Path | None,
    as_json: bool,
) -> None:
    """Run a prompt without and with the cache, and compare.

    Uses the constellation that is up, unless --constellation names another one. If none is up, starts one and stops it at the
    end.
    """
    if model is not None:
        check_model(model)
    try:
        from skymemory.demo.run import DemoOptions, EmptyPromptError, ModelLoadError, demo_table, run_demo
        from skymemory.prompt.huggingface import UnsupportedModelError
    except ModuleNotFoundError as error:
        raise Failure(how_to_install(error.name or str(error), "model")) from error

    secret = None if tenant_secret_file is None else read_tenant_secret(tenant_secret_file)
    options = DemoOptions(model=model, prompt_file=prompt_file, codec=codec, new_tokens=tokens, tenant_secret=secret)
    try:
        with _constellation(constellation_path) as (constellation, playing), _stages() as progress:
            result = run_demo(options, constellation, progress, playing)
    except UnicodeDecodeError as error:
        raise BadInput(f"{prompt_file} is not UTF-8: {error.reason} at byte {error.start}") from error
    except EmptyPromptError as error:
        raise BadInput(f"{prompt_file}: {error}") from error
    except (ModelLoadError, UnsupportedModelError) as error:
        if model is None:
            raise Failure(f"model of the demo: {first_line(error)}") from error
        raise Failure(tell_of_model(model, error)) from error
    if as_json:
        print_json(asdict(result))
    else:
        print_table(demo_table(result, options, constellation))
        if not result.blocks:
            least = constellation.cache.block_tokens
            told = f"a block has {least} tokens, and the prompt {result.prompt_tokens}"
            click.echo(f"nothing was cached, and both runs are the same: {told}, of which the last is always computed")
    if codec == "raw" and not result.tokens_identical:
        raise Failure("the tokens with the cache are not those without; with the codec raw they must be")


@contextmanager
def _constellation(constellation_path: Path | None) -> Iterator[tuple[Constellation, Source | None]]:
    """Give the constellation, and what tells which schedule it follows."""
    up = (state := RunRecord()).running() if constellation_path is None else None
    if up is not None:
        yield up.constellation, state.sky(up.constellation).playing
        return
    constellation = load_constellation(constellation_path)
    constellation = constellation.replace(network={"port": free_port(constellation)})
    local = LocalConstellation(constellation)
    try:
        with progress_bar("starting satellites") as progress:
            local.start(progress)
        yield constellation, None
    finally:
        local.stop()


@contextmanager
def _stages() -> Iterator["_Stages"]:
    """Show a bar on standard error for each stage of the work."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<16}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield _Stages(bars)


class _Stages:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)
