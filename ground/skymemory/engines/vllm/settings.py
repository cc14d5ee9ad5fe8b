"""Settings in `kv_connector_extra_config`, and the check for configurations of vLLM that cannot be served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from skymemory.store.sizing import CODECS


class UnsupportedError(ValueError):
    """vLLM was started in a way that this connector cannot serve; the message names the option."""


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """Settings of one engine; names and units are those of `kv_connector_extra_config`."""

    socket: str | None = None
    """Path of the agent's socket; by default where the agent puts it."""
    tenant_secret_file: str | None = None
    """File whose bytes go into all keys: without them blocks are neither found nor read. Default: the agent's secret."""
    arena_mib: int | None = None
    """Memory of each worker for blocks on their way; None: as much as the blocks of two steps need (`room.room_for`)."""
    always_fetch: bool = False
    """True fetches also blocks that are computed faster than they come: for energy, not time."""
    codec: str = "raw"
    """Codec of stored blocks: `raw` stores them as they are computed, `int8` and `int4` smaller and not exact."""
    lookup_timeout_s: float = 1.0
    """Seconds after which a question that is not answered is a miss."""
    load_timeout_s: float = 30.0
    """Seconds after which blocks that have not come are computed."""

    @classmethod
    def of(cls, extra: dict[str, Any]) -> ConnectorSettings:
        """Check and take the settings.

        Raises:
            UnsupportedError: A setting is wrong; the message names it and what is allowed.
        """
        allowed = {field.name for field in fields(cls)}
        if unknown := sorted(set(extra) - allowed):
            raise UnsupportedError(
                f"kv_connector_extra_config: there is no setting {unknown[0]!r}; there are {', '.join(sorted(allowed))}"
            )
        for name in ("socket", "tenant_secret_file"):
            if not isinstance(extra.get(name, ""), str):
                raise UnsupportedError(f"kv_connector_extra_config: {name} is {extra[name]!r}; allowed is a path")
        if not isinstance(extra.get("always_fetch", False), bool):
            raise UnsupportedError(
                f"kv_connector_extra_config: always_fetch is {extra['always_fetch']!r}; allowed are true and false"
            )
        if extra.get("codec", "raw") not in CODECS:
            raise UnsupportedError(f"kv_connector_extra_config: codec is {extra['codec']!r}; allowed are {', '.join(CODECS)}")
        for name, least, most in (("arena_mib", 1, 1 << 20), ("lookup_timeout_s", 0, 60), ("load_timeout_s", 0, 3600)):
            value = extra.get(name, least)
            whole = name == "arena_mib"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not least <= value <= most:
                kind = "whole numbers" if whole else "numbers"
                raise UnsupportedError(
                    f"kv_connector_extra_config: {name} is {value!r}; allowed are {kind} from {least} to {most}"
                )
        return cls(**extra)


def check(vllm_config: Any, kv_cache_config: Any) -> None:
    """Check that vLLM was started in a way that can be served.

    Raises:
        UnsupportedError: It was not; the message names the option.
    """
    parallel = vllm_config.parallel_config
    for option, name in (
        ("--pipeline-parallel-size", "pipeline_parallel_size"),
        ("--decode-context-parallel-size", "decode_context_parallel_size"),
        ("--prefill-context-parallel-size", "prefill_context_parallel_size"),
    ):
        if (size := getattr(parallel, name, 1)) > 1:
            raise UnsupportedError(f"SkyMemoryConnector: {option} is {size}; supported is 1")
    if parallel.use_ubatching:
        # The first half of a step would say "layer computed" while the tokens of the other half are not in it yet.
        raise UnsupportedError(
            "SkyMemoryConnector: steps in micro-batches are not supported: leave out --enable-dbo and --ubatch-size"
        )
    algorithm = vllm_config.cache_config.prefix_caching_hash_algo
    if not algorithm.startswith("sha256"):
        raise UnsupportedError(
            f"SkyMemoryConnector: --prefix-caching-hash-algo is {algorithm}; supported are sha256 and sha256_cbor (others "
            "can be made to collide, and start anew in every process, so nobody finds what another has stored)"
        )
    _check_layers(kv_cache_config.kv_cache_groups, is_caching=vllm_config.cache_config.enable_prefix_caching)


def _check_layers(groups: Sequence[Any], *, is_caching: bool) -> None:
    """Check that the layers of a model can be served.

    Args:
        groups: Groups of layers that share blocks.
        is_caching: True if vLLM's own prefix cache is on.

    Raises:
        UnsupportedError: They cannot; the message says what helps.
    """
    if len(groups) != 1:
        kinds = ", ".join(type(group.kv_cache_spec).__name__ for group in groups) or "none"
        raise UnsupportedError(
            f"SkyMemoryConnector: the model's layers are in {len(groups)} groups of their own blocks ({kinds}); supported is "
            "one, of full attention: a model with recurrent layers, or without attention, cannot be served: leave out "
            "--kv-transfer-config, or --no-disable-hybrid-kv-cache-manager if it is there"
        )
    spec = groups[0].kv_cache_spec
    for layer in getattr(spec, "kv_cache_specs", {"": spec}).values():
        family = [kind.__name__ for kind in type(layer).__mro__]
        if "SlidingWindowSpec" in family:
            raise UnsupportedError(
                f"SkyMemoryConnector: all layers of the model have a sliding window (of {layer.sliding_window} tokens), and no "
                "layer attends to all tokens; supported is --disable-sliding-window, which keeps prompt and answer within the "
                "window; for longer ones leave out --kv-transfer-config"
            )
        # Attention over all tokens: a full block does not change. MLA and Uniform... are of this family as well.
        if "FullAttentionSpec" not in family:
            raise UnsupportedError(
                f"SkyMemoryConnector: layers of kind {type(layer).__name__} are not supported; supported is full attention"
            )
        if getattr(layer, "non_causal", False):
            raise UnsupportedError(
                "SkyMemoryConnector: the model has layers whose tokens attend to later ones, so a block depends on what follows "
                "it; supported is causal attention: leave out --kv-transfer-config"
            )
        if "MLAAttentionSpec" in family and not is_caching:
            # The attention that vLLM takes then reads only keys and values of the same step, not those that were loaded.
            raise UnsupportedError(
                "SkyMemoryConnector: the model has latent attention (MLA) and prefix caching is off, and then vLLM does not read "
                "loaded blocks: start without --no-enable-prefix-caching; on a CPU vLLM has it with AMX only, so set "
                "VLLM_MLA_DISABLE=1 there, or leave out --kv-transfer-config"
            )
