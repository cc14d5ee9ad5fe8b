"""`skymem serve`: runs an OpenAI-compatible server."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from skymemory.agent.constellation_source import ConstellationSource, FixedSource, RunningSource
from skymemory.cli.common import (
    VARIABLE,
    BadInput,
    Failure,
    check_model,
    find_sky,
    first_line,
    tell_of_model,
    tenant_secret_option,
)
from skymemory.cli.log_options import begin_log, log_options
from skymemory.common.extras import how_to_install
from skymemory.common.listening import bind
from skymemory.common.secret_files import SecretFileError
from skymemory.common.tenant_secrets import read_tenant_secret
from skymemory.segments.strategy import Strategy
from skymemory.serve.api_keys import list_keys
from skymemory.serve.proxies import Network, network
from skymemory.sky.tenant_secret import secret_of

_GUESSED_CHARACTERS = 16
"""Characters of an API key that nobody finds by trying, if they are random: some hundred a second can be tried."""


class _NetworkType(click.ParamType[Network]):
    name = "network"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Network:
        try:
            return network(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(context_settings={"auto_envvar_prefix": "SKYMEM_SERVE", "show_default": True})
@click.argument("model")
@click.option("--host", show_envvar=True, default="127.0.0.1", help="Address to listen at.")
@click.option(
    "--port", default=8000, type=click.IntRange(0, 65535), show_envvar=True, help="Port to listen at; 0 takes a free one."
)
@click.option(
    "--served-model-name",
    "served_name",
    envvar="SKYMEM_SERVE_MODEL_NAME",
    show_envvar=True,
    help="The model's name for clients. Default: MODEL.",
)
@click.option(
    "--api-key",
    show_envvar=True,
    help="Key that clients must send. Other users of this machine can see options: rather set the variable.",
)
@click.option(
    "--api-keys",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_envvar=True,
    help="File of keys, made by `skymem serve-keys`: prompts of one key are never found by another's.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    type=_NetworkType(),
    multiple=True,
    envvar="SKYMEM_SERVE_TRUSTED_PROXY",
    show_envvar=True,
    help="Address or network of proxies that tell their clients' addresses in X-Forwarded-For, such as 10.0.0.0/8; repeatable. "
    "Default: none, and the header is not read.",
)
@click.option(
    "--max-queue",
    default=32,
    type=click.IntRange(0),
    show_envvar=True,
    help="Most requests that wait for the model; more are refused with status 429.",
)
@click.option(
    "--max-batch",
    default=8,
    type=click.IntRange(1),
    show_envvar=True,
    help="Most answers generated together; each takes the memory of its prompt's keys and values.",
)
@click.option(
    "--max-model-len",
    type=click.IntRange(2),
    show_envvar=True,
    help="Most tokens of prompt and answer together. Default: as many as the model was made for.",
)
@click.option(
    "--dtype",
    default="auto",
    type=click.Choice(["auto", "float32", "float16", "bfloat16"]),
    show_envvar=True,
    help="Type of the weights; auto: as the model was saved.",
)
@click.option(
    "--device",
    show_envvar=True,
    help="Where the model runs, in torch's words: cpu, cuda, cuda:1, mps. Default: cuda if there is one, else cpu.",
)
@click.option(
    "--link-strategy",
    default="auto",
    show_envvar=True,
    help="How segments are linked: auto takes what the gate allows for this model and else computes them; exact, naive, lego:K, "
    "lego0, blend:R and random:R are taken without proof.",
)
@click.option(
    "--segment-separator",
    show_envvar=True,
    help="Text around the segments of a prompt of /v1/completions; the model does not see it. Default: there are none.",
)
@click.option(
    "--constellation",
    "constellation_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar=["SKYMEM_SERVE_CONSTELLATION", VARIABLE],
    show_envvar=True,
    help="File of the constellation to use. Default: the one that `skymem up` starts, now or later.",
)
@tenant_secret_option
@log_options
def serve(
    model: str,
    host: str,
    port: int,
    served_name: str | None,
    api_key: str | None,
    api_keys: Path | None,
    trusted_proxies: tuple[Network, ...],
    max_queue: int,
    max_batch: int,
    max_model_len: int | None,
    dtype: str,
    device: str | None,
    link_strategy: str,
    segment_separator: str | None,
    constellation_path: Path | None,
    tenant_secret_file: Path | None,
) -> None:
    """Serve MODEL over HTTP as OpenAI does, with its prompts cached in the sky.

    MODEL is a folder or a name on the hub: a causal language model of transformers with full attention in all layers. Clients
    use http://HOST:PORT/v1 as their base URL. The first SIGTERM or Ctrl-C lets accepted requests end; the second cancels them.
    """
    if api_key and api_keys is not None:
        raise BadInput("--api-key and --api-keys: allowed is one of them")
    try:
        Strategy.parse(link_strategy)
    except ValueError as error:
        raise BadInput(f"--link-strategy: {error}") from error
    if segment_separator == "":
        raise BadInput("--segment-separator: allowed is text of one character or more")
    if tenant_secret_file is not None:
        read_tenant_secret(tenant_secret_file)
    secret = partial(secret_of, file=tenant_secret_file)
    source: ConstellationSource = RunningSource(secret=secret)
    if constellation_path is not None:
        sky = find_sky(constellation_path)
        source = FixedSource(sky.constellation, sky.playing, secret)
    if api_keys is not None:
        try:
            list_keys(api_keys)  # a mistake is told before the model is loaded
        except SecretFileError as error:
            raise BadInput(str(error)) from error
    if api_key and len(api_key) < _GUESSED_CHARACTERS:
        click.echo(f"the API key has {len(api_key)} characters, so it may be guessed; {_GUESSED_CHARACTERS} are enough", err=True)
    with ExitStack() as stack:
        listeners = [stack.enter_context(one) for one in bind(host, port)]  # first, because torch and models take long to load
        check_model(model)
        try:
            from skymemory.prompt.huggingface import UnsupportedModelError
            from skymemory.serve.service import ServeOptions, serve
        except ModuleNotFoundError as error:
            raise Failure(how_to_install(error.name or str(error), "model")) from error

        begin_log()
        options = ServeOptions(
            model=model,
            served_name=served_name,
            api_key=api_key or None,
            api_keys=api_keys,
            queue_max=max_queue,
            answers_max=max_batch,
            dtype=dtype,
            device=device,
            context_tokens=max_model_len,
            link_strategy=link_strategy,
            segment_separator=segment_separator,
            trusted_proxies=trusted_proxies,
        )
        try:
            serve(
                options,
                source,
                listeners,
                stage=lambda text: click.echo(f"{text} ...", err=True),
                ready=lambda address: click.echo(f"{served_name or model} at {address}/v1"),
            )
        except OSError as error:
            raise Failure(tell_of_model(model, error)) from error
        except UnsupportedModelError as error:
            raise Failure(f"model {model}: {error}") from error
        except (ValueError, RuntimeError) as error:  # torch raises these for an unknown device or dtype
            raise BadInput(f"model {model}: {first_line(error)}") from error
