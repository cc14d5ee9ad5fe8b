"""Settings and ways to start vLLM: what cannot be is refused, with its name."""

from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.engines.vllm.settings import ConnectorSettings, UnsupportedError, check


class FullAttentionSpec:
    """As vLLM's."""


class NonCausalSpec(FullAttentionSpec):
    non_causal = True


class MLAAttentionSpec(FullAttentionSpec):
    pass


class SlidingWindowSpec:
    sliding_window = 4096


class MambaSpec:
    pass


def test_defaults() -> None:
    settings = ConnectorSettings.of({})
    assert settings == ConnectorSettings()
    assert settings.tenant_secret_file is None


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"arena": 1}, "no setting 'arena'; there are always_fetch, arena_mib"),
        ({"arena_mib": 0}, "arena_mib is 0; allowed are whole numbers from 1"),
        ({"arena_mib": 1.5}, "arena_mib is 1.5"),
        ({"arena_mib": True}, "arena_mib is True"),
        ({"codec": "int2"}, "codec is 'int2'; allowed are raw, int8, int4"),
        ({"codec": None}, "codec is None; allowed are raw, int8, int4"),
        ({"always_fetch": 1}, "always_fetch is 1; allowed are true and false"),
        ({"lookup_timeout_s": -1}, "lookup_timeout_s is -1; allowed are numbers from 0 to 60"),
        ({"load_timeout_s": "long"}, "load_timeout_s is 'long'"),
        ({"socket": 7}, "socket is 7; allowed is a path"),
    ],
)
def test_a_wrong_setting(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        ConnectorSettings.of(extra)


def started(
    groups: list[Any] | None = None, algorithm: str = "sha256", is_caching: bool = True, **parallel: Any
) -> tuple[Any, Any]:
    specs = [FullAttentionSpec()] if groups is None else groups
    vllm = SimpleNamespace(
        parallel_config=SimpleNamespace(
            **{"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "use_ubatching": False, **parallel}
        ),
        cache_config=SimpleNamespace(prefix_caching_hash_algo=algorithm, enable_prefix_caching=is_caching),
    )
    return vllm, SimpleNamespace(kv_cache_groups=[SimpleNamespace(kv_cache_spec=spec) for spec in specs])


@pytest.mark.parametrize(
    "started",
    [
        started(),
        started(algorithm="sha256_cbor", tensor_parallel_size=2),
        started(is_caching=False),
        started([MLAAttentionSpec()]),
        started([SimpleNamespace(kv_cache_specs={"a": FullAttentionSpec(), "b": MLAAttentionSpec()})]),
    ],
)
def test_what_can_be_served(started: tuple[Any, Any]) -> None:
    check(*started)


@pytest.mark.parametrize(
    ("started", "message"),
    [
        (started(pipeline_parallel_size=2), "--pipeline-parallel-size is 2; supported is 1"),
        (started(decode_context_parallel_size=2), "--decode-context-parallel-size is 2"),
        (started(prefill_context_parallel_size=2), "--prefill-context-parallel-size is 2"),
        (started(use_ubatching=True), "leave out --enable-dbo and --ubatch-size"),
        (started(algorithm="xxhash"), "--prefix-caching-hash-algo is xxhash; supported are sha256"),
        (started([FullAttentionSpec(), MambaSpec()]), "2 groups .*FullAttentionSpec, MambaSpec"),
        (started([]), "0 groups .*none.*or without attention, cannot be served"),
        (started([MambaSpec()]), "layers of kind MambaSpec are not supported"),
        (started([SlidingWindowSpec()]), "sliding window .of 4096 tokens.* supported is --disable-sliding-window"),
        (started([NonCausalSpec()]), "supported is causal attention"),
        (started([MLAAttentionSpec()], is_caching=False), "start without --no-enable-prefix-caching.* VLLM_MLA_DISABLE=1"),
        (
            started([SimpleNamespace(kv_cache_specs={"a": FullAttentionSpec(), "b": MLAAttentionSpec()})], is_caching=False),
            "latent attention .MLA. and prefix caching is off",
        ),
    ],
)
def test_what_cannot_be_served(started: tuple[Any, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as refused:
        check(*started)
    assert "\n" not in str(refused.value)
