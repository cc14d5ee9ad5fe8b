"""Settings in `kv_connector_extra_config`, and the check for configurations of vLLM that cannot be served."""

from __future__ import annotations

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
    groups = kv_cache_config.kv_cache_groups
    if len(groups) != 1:
        kinds = ", ".join(type(group.kv_cache_spec).__name__ for group in groups)
        raise UnsupportedError(
            f"SkyMemoryConnector: the model's layers are in {len(groups)} groups of their own blocks ({kinds}); supported is "
            "one: start with --disable-hybrid-kv-cache-manager (a model with recurrent layers cannot be served)"
        )
    spec = groups[0].kv_cache_spec
    per_layer = getattr(spec, "kv_cache_specs", {"": spec}).values()
    for layer in per_layer:
        # Attention over all tokens: a full block does not change. MLA and Uniform... are of this family as well.
        if not any(kind.__name__ == "FullAttentionSpec" for kind in type(layer).__mro__):
            raise UnsupportedError(
                f"SkyMemoryConnector: layers of kind {type(layer).__name__} are not supported; supported is full attention "
                "(sliding windows are with --disable-hybrid-kv-cache-manager)"
            )
