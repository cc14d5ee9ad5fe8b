"""A client of `skymem serve` with a key of its own guesses another's prompt, and reads `cached_tokens`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skymemory.serve.api_keys import add_key
from skymemory.testbed.local import LocalConstellation

pytestmark = pytest.mark.model

PROMPT = "The password of the safe is 0815, and nobody else shall ever know that this was asked here."


def ask(server: Any, key: str, **more: object) -> int:
    """Return the cached tokens that the answer tells of."""
    body = json.dumps({"model": "babbler", "prompt": PROMPT, "max_tokens": 2, **more}).encode()
    answer = server.request("/v1/completions", body, Authorization=f"Bearer {key}")
    assert answer.status == 200, answer.text
    return int(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_cached_tokens_tell_nothing_of_another_key(
    start_server: Callable[..., Any], small_sky: LocalConstellation, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    alice, mallory = add_key(keys, "alice"), add_key(keys, "mallory")
    server = start_server("--api-keys", str(keys), up=small_sky)
    server.key = alice
    assert ask(server, alice) == 0
    server.wait_stored()
    assert ask(server, alice) > 0
    assert ask(server, mallory) == 0
    assert server.request("/v1/models", Authorization="Bearer sk-sky-wrong").status == 401


def test_cached_tokens_tell_nothing_of_another_salt(start_server: Callable[..., Any], small_sky: LocalConstellation) -> None:
    server = start_server(up=small_sky)
    assert ask(server, "none", cache_salt="alice") == 0
    server.wait_stored()
    assert ask(server, "none", cache_salt="alice") > 0
    assert ask(server, "none", cache_salt="mallory") == 0
    assert ask(server, "none") == 0


def test_metrics_tell_nothing_to_who_has_no_key(start_server: Callable[..., Any], small_sky: LocalConstellation) -> None:
    """Counts that grow by the tokens of each prompt would tell a stranger on the network when who asks what."""
    server = start_server("--api-key", "secret", up=small_sky)
    ask(server, "secret")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Host": "localhost"}):
        answer = server.request("/metrics", **headers)
        assert answer.status == 401
        assert "skymem" not in answer.text
    assert server.request("/health").status == 200  # probes have no key
    server.key = "secret"
    assert server.metric("skymem_serve_prompt_tokens_total") > 0
