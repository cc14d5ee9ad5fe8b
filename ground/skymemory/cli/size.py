"""`skymem size`: tells how many tokens of a model a constellation holds, and how large its stores have to be."""

import json
from pathlib import Path
from typing import Any

import click

from skymemory.cli.common import BadInput, check_model, constellation_option, json_option, load_constellation, print_json
from skymemory.common.defaults import MOST_STORE_MIB
from skymemory.engines.framing import HEADER_BYTES
from skymemory.sky.constellation import Constellation
from skymemory.store.sizing import CODECS, ModelShape, ShapeError, blocks_held, model_shape, servers_for, store_mib_for


@click.command()
@click.argument("model", type=click.Path())
@constellation_option
@click.option("--block-tokens", type=click.IntRange(min=1), help="Tokens of a block. Default: the file's cache.block_tokens.")
@click.option("--codec", type=click.Choice(CODECS), help="Codec of the stored values. Default: the file's cache.codec.")
@click.option("--dtype", help="Type of the cache, if it is not the model's own (vLLM's --kv-cache-dtype): bfloat16, fp8, ...")
@click.option("--tokens", type=click.IntRange(min=1), help="Tokens to hold: say which store_mib they need.")
@json_option
def size(
    model: str,
    constellation_path: Path | None,
    block_tokens: int | None,
    codec: str | None,
    dtype: str | None,
    tokens: int | None,
    as_json: bool,
) -> None:
    """Tell how many tokens of a model the constellation holds.

    MODEL is a model's folder, its config.json, or its name on the hub if this machine has loaded it before. Nothing is started or
    asked: the numbers follow from the two files.
    """
    sky = load_constellation(constellation_path)
    block_tokens = sky.cache.block_tokens if block_tokens is None else block_tokens
    codec = sky.cache.codec if codec is None else codec
    if codec not in CODECS:
        raise BadInput(f'cache.codec is "{codec}", whose blocks cannot be sized; `--codec` takes {", ".join(CODECS)}')
    try:
        shape = model_shape(_config_of(model), dtype)
        report = sized(shape, sky, block_tokens, codec, tokens)
    except ShapeError as error:
        raise BadInput(f"{model}: {error}") from error
    if as_json:
        print_json(report)
        return
    click.echo(text_of(report))


def _config_of(name: str) -> dict[str, Any]:
    check_model(name, files=True)
    model = Path(name).expanduser()
    if not model.exists():
        model = _from_hub(name)
    file = model / "config.json" if model.is_dir() else model
    if not file.is_file():
        raise BadInput(f"{model} has no config.json; give a model's folder or its config.json")
    try:
        config = json.loads(file.read_text())
    except ValueError as error:
        raise BadInput(f"{file} is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise BadInput(f"{file} holds no JSON object")
    return config


def _from_hub(name: str) -> Path:
    """Return the config.json that the hub's libraries keep of a model on this machine; the hub is not asked."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        kept = try_to_load_from_cache(name, "config.json")
    except (ModuleNotFoundError, HFValidationError):
        kept = None
    if not isinstance(kept, str):
        raise BadInput(
            f"model {name} is no folder here, and was not loaded from the hub before; the hub is not asked: download the model's "
            "config.json, and name that"
        )
    return Path(kept)


def sized(shape: ModelShape, sky: Constellation, block_tokens: int, codec: str, tokens: int | None) -> dict[str, Any]:
    """Return the numbers of the report, by name.

    Args:
        tokens: Tokens that the sky shall hold; None leaves out what they need.

    Raises:
        ShapeError: The codec does not go with the model.
    """
    token_bytes = shape.token_bytes(block_tokens, codec)
    block_bytes = round(token_bytes * block_tokens) + HEADER_BYTES
    held = blocks_held(sky, block_bytes) * block_tokens
    report: dict[str, Any] = {
        "layers": shape.layers,
        "kv_heads": None if shape.latent else shape.kv_heads,
        "head_dim": None if shape.latent else shape.head_dim,
        "latent": shape.latent or None,
        "sliding_window": shape.window,
        "dtype": shape.dtype,
        "codec": codec,
        "block_tokens": block_tokens,
        "token_bytes": token_bytes,
        "block_bytes": block_bytes,
        "servers": sky.cache.servers,
        "parity": sky.cache.parity,
        "store_mib": sky.satellite.store_mib,
        "tokens": held,
    }
    if tokens is not None:
        blocks = -(-tokens // block_tokens)
        needed = store_mib_for(sky, block_bytes, blocks)
        report |= {"tokens_wanted": tokens, "store_mib_needed": needed, "servers_needed": sky.cache.servers}
        if needed > MOST_STORE_MIB:
            report["servers_needed"] = servers_for(sky, block_bytes, blocks)
    return report


def text_of(report: dict[str, Any]) -> str:
    """Return the report in words."""
    heads = f"{report['kv_heads']} KV heads of {report['head_dim']}"
    kept = f"a latent vector of {report['latent']} (MLA)" if report["latent"] else heads
    parity = f", {report['parity']} of parity," if report["parity"] else ""
    lines = [
        f"{report['layers']} layers, {kept}, {report['dtype']}, codec {report['codec']}: "
        f"{report['token_bytes']:,.0f} bytes a token",
        f"a block of {report['block_tokens']} tokens has {report['block_bytes'] / 1e6:,.2f} MB",
        f"{report['servers']} servers{parity} with store_mib {report['store_mib']} hold {report['tokens']:,} tokens",
    ]
    if "tokens_wanted" in report:
        line = f"{report['tokens_wanted']:,} tokens need store_mib {report['store_mib_needed']:,} on each satellite"
        if report["store_mib_needed"] > MOST_STORE_MIB:
            servers = report["servers_needed"]
            cure = f"at least {servers} servers of {MOST_STORE_MIB} hold them" if servers else "there cannot be enough servers"
            line += f"; allowed are up to {MOST_STORE_MIB}: {cure}"
        lines.append(line)
    if report["sliding_window"]:
        lines.append(f"layers with a sliding window of {report['sliding_window']:,} tokens count whole: blocks hold all layers")
    return "\n".join(lines)
