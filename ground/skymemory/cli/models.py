"""Options of commands that load a model, and the loading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skymemory.cli.common import BadInput, Failure, check_model, first_line, tell_of_model
from skymemory.common.extras import how_to_install

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Command = TypeVar("Command", bound=Callable[..., Any])


def model_options(command: Command) -> Command:
    """Add --dtype and --device, which `loaded` takes. Both decide the keys: programs that share segments need the same type."""
    dtype = click.option(
        "--dtype",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "float32", "float16", "bfloat16"]),
        help="Type of the weights; auto: as the model was saved.",
    )
    device = click.option(
        "--device", help="Where the model runs, in torch's words: cpu, cuda, cuda:1, mps. Default: cuda, else cpu."
    )
    return dtype(device(command))


@contextmanager
def loaded(model: str, dtype: str, device: str | None) -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerBase]]:
    """Load a model and its tokenizer. What cannot be done with the model ends the command with one line.

    Raises:
        BadInput: There is no such folder, device or dtype.
        Failure: The model cannot be loaded or used.
    """
    check_model(model)
    try:
        from skymemory.demo.model import load
        from skymemory.prompt.huggingface import UnsupportedModelError
    except ModuleNotFoundError as error:
        raise Failure(how_to_install(error.name or str(error), "model")) from error
    tell_stage("loading the model")
    try:
        both = load(model, dtype=dtype, device=device)
    except OSError as error:
        raise Failure(tell_of_model(model, error)) from error
    except (ValueError, RuntimeError) as error:  # torch raises these for an unknown device or dtype
        raise BadInput(f"model {model}: {first_line(error)}") from error
    try:
        yield both
    except UnsupportedModelError as error:
        raise Failure(f"model {model}: {error}") from error


def tell_stage(text: str) -> None:
    """Say on standard error what the command is at."""
    click.echo(f"{text} ...", err=True)
