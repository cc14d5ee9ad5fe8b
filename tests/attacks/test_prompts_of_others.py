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


def test_cached_tokens_and_metrics_tell_nothing_of_another_key(
    start_server: Callable[..., Any], small_sky: LocalConstellation, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    alice, mallory, operator = add_key(keys, "alice"), add_key(keys, "mallory"), add_key(keys, "operator", is_operator=True)
    server = start_server("--api-keys", str(keys), up=small_sky)
    server.key = operator
    assert ask(server, alice) == 0
    server.wait_stored()
    assert ask(server, alice) > 0
    assert ask(server, mallory) == 0
    assert server.request("/v1/models", Authorization="Bearer sk-sky-wrong").status == 401

    # Counts that grow by the tokens of each prompt would tell others when who asks what
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Host": "localhost"}):
        answer = server.request("/metrics", **headers)
        assert answer.status == 401
        assert "skymem" not in answer.text
    assert server.request("/health").status == 200  # probes have no key
    tokens = {}
    for server.key in (alice, mallory, operator):
        tokens[server.key] = server.metric("skymem_serve_prompt_tokens_total")
    assert tokens == {alice: 2 * len(PROMPT), mallory: len(PROMPT), operator: 3 * len(PROMPT)}


def test_cached_tokens_tell_nothing_of_another_salt(open_server: Any) -> None:
    assert ask(open_server, "none", cache_salt="alice") == 0
    open_server.wait_stored()
    assert ask(open_server, "none", cache_salt="alice") > 0
    assert ask(open_server, "none", cache_salt="mallory") == 0
    assert ask(open_server, "none") == 0
