"""Bodies are measured before they are parsed, and measured right."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.serve.errors import ApiError
from skymemory.serve.json_body import JsonLimits, parse_json

TEXTS = st.text(alphabet=st.sampled_from('a,:[]{}"\\é\n')) | st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inside: st.lists(inside) | st.dictionaries(TEXTS, inside),
    max_leaves=20,
)


def counts(value: Any) -> tuple[int, int]:
    """Return the commas, and the brackets and colons, of a value in JSON."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    below = [counts(one) for one in inside]
    own = (len(value) if isinstance(value, dict) else 0) + isinstance(value, (list, dict))
    return max(0, len(inside) - 1) + sum(one for one, _ in below), own + sum(one for _, one in below)


@given(VALUES, st.booleans(), st.integers(65_500, 65_540))
def test_what_is_within_the_limits_is_parsed_and_what_is_not_is_refused(value: Any, ascii_only: bool, padding: int) -> None:
    value = ["\\" * padding, value]  # the text ends about where the first piece does
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    elements, containers = counts(value)
    assert parse_json(body, JsonLimits(elements, containers)) == value
    for less in (JsonLimits(elements - 1, containers), JsonLimits(elements, containers - 1)):
        with pytest.raises(ApiError, match="the body has more than") as caught:
            parse_json(body, less)
        assert (caught.value.status, caught.value.body["error"]["code"]) == (400, "too_many_values")


@pytest.mark.parametrize(
    "body", [b"", b"\\", b'"' * 1_000_000, b'"\\"' * 300_000, b'{"a": "\\' + b"\\" * 70_000, b"[1, NaN]", b"[" * 500]
)
def test_what_is_no_json_is_told(body: bytes) -> None:
    with pytest.raises(ApiError, match="not JSON") as caught:
        parse_json(body)
    assert caught.value.body["error"]["code"] == "invalid_json"


def test_limits_let_the_token_ids_of_a_context_in() -> None:
    assert JsonLimits.of_context(2048) == JsonLimits()
    assert JsonLimits.of_context(200_000).elements_max == 400_000
    assert JsonLimits.of_context(1 << 62).elements_max == 1 << 19


def test_numbers_of_many_digits_are_refused_before_they_are_parsed() -> None:
    assert parse_json(b"[" + b"9" * 256 + b"]") == [int("9" * 256)]
    assert parse_json(b'["' + b"9" * 1000 + b'"]') == ["9" * 1000]
    for body in (b"[" + b"9" * 257 + b"]", b"[0." + b"1" * 1000 + b"]"):
        with pytest.raises(ApiError, match="a number of more than 256 digits"):
            parse_json(body)
