"""Each parameter of the table is treated as the table says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.serve.errors import ApiError
from skymemory.serve.json_body import JsonLimits
from skymemory.serve.parameters import PARAMETERS, UNKNOWN_NAMES_MAX, Parameter, Place, UnknownNames, Use, in_json, parameter
from skymemory.serve.requests import ChatMessage, ChatRequest, CompletionRequest, StreamOptions, TextPart, parse

KINDS = {
    Place.CHAT: ChatRequest,
    Place.COMPLETIONS: CompletionRequest,
    Place.MESSAGE: ChatMessage,
    Place.PART: TextPart,
    Place.STREAM_OPTIONS: StreamOptions,
}
ENDPOINTS = (Place.CHAT, Place.COMPLETIONS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.sampled_from(["", "none", "auto", "a"]),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.sampled_from(["type", "a"]), inside, max_size=2),
    max_leaves=3,
)


def of(*uses: Use, places: tuple[Place, ...] = tuple(Place)) -> st.SearchStrategy[tuple[Place, Parameter]]:
    """Parameters of the table, each with one of its places."""
    return st.sampled_from([(place, one) for one in PARAMETERS for place in one.places if one.use in uses and place in places])


def ask(place: Place, given: dict[str, Any]) -> tuple[str, set[str]]:
    """Parse a request with parameters at a place; return the name of that place in errors, and the unknown parameters."""
    message: dict[str, Any] = {"role": "user", "content": "hello"}
    body: dict[str, Any] = {"model": "m", "stream": True}
    path = ""
    if place is Place.COMPLETIONS:
        body |= {"prompt": "p"} | given
    elif place is Place.CHAT:
        body |= {"messages": [message]} | given
    elif place is Place.STREAM_OPTIONS:
        body |= {"messages": [message], "stream_options": given}
        path = "stream_options."
    elif place is Place.MESSAGE:
        body["messages"] = [message | given]
        path = "messages[0]."
    else:
        body["messages"] = [message | {"content": [{"type": "text", "text": "a"} | given]}]
        path = "messages[0].content[0]."
    unknown = UnknownNames()
    kind = CompletionRequest if place is Place.COMPLETIONS else ChatRequest
    try:
        parse(kind, json.dumps(body).encode(), JsonLimits(), unknown)
    except ApiError as error:
        error.add_note(path)
        raise
    return path, unknown.names


def test_what_is_served_has_a_type_and_nothing_else_has() -> None:
    for place, kind in KINDS.items():
        served = {one.name for one in PARAMETERS if one.use is Use.SERVED and place in one.places}
        assert served == set(kind.model_fields)


def test_no_parameter_stands_twice() -> None:
    names = [(place, one.name) for one in PARAMETERS for place in one.places]
    assert len(names) == len(set(names))


def test_every_neutral_value_is_accepted() -> None:
    for one in PARAMETERS:
        for place in one.places:
            for value in (None, *one.neutral):
                if one.use is not Use.SERVED:
                    assert not ask(place, {one.name: value})[1], (place, one.name, value)


@given(of(Use.REFUSED), VALUES)
def test_what_asks_for_something_that_is_not_served_is_refused_by_name(at: tuple[Place, Parameter], value: Any) -> None:
    place, one = at
    if one.asks_nothing(value, {}) or (place is Place.MESSAGE and value == []):
        assert ask(place, {one.name: value})
        return
    with pytest.raises(ApiError, match="not supported") as caught:
        ask(place, {one.name: value})
    error = caught.value.body["error"]
    assert (caught.value.status, error["code"]) == (400, "unsupported_parameter")
    assert error["param"] == caught.value.__notes__[0] + one.name
    assert all(in_json(neutral) in error["message"] for neutral in one.neutral)


@given(of(Use.IGNORED), VALUES)
def test_what_changes_no_answer_may_have_any_value(at: tuple[Place, Parameter], value: Any) -> None:
    place, one = at
    assert not ask(place, {one.name: value})[1]


@given(st.sampled_from(Place), st.text(st.characters(exclude_categories=["Cs"]), min_size=1), VALUES)
def test_what_is_unknown_is_left_out_and_told(place: Place, name: str, value: Any) -> None:
    if parameter(place, name) is not None:
        return
    path, unknown = ask(place, {name: value})
    assert unknown == {path.replace("[0]", "") + name}


def test_of_many_unknown_names_the_others_are_counted() -> None:
    unknown = UnknownNames()
    for number in range(1000):
        unknown.add(f"name {number}")
    unknown.add("name 0")
    assert (len(unknown.names), unknown.count) == (UNKNOWN_NAMES_MAX, 1000)


@pytest.mark.parametrize(
    ("place", "name", "value", "words"),
    [
        (Place.CHAT, "prompt", "a", "prompt: not supported here; it belongs to /v1/completions"),
        (Place.COMPLETIONS, "messages", [], "messages: not supported here; it belongs to /v1/chat/completions"),
        (Place.COMPLETIONS, "max_completion_tokens", 5, "it belongs to /v1/chat/completions"),
        (Place.CHAT, "top_k", 40, "top_k: not supported by this server, except -1 and 0"),
        (Place.CHAT, "tools", [{}], r'tools: not supported by this server, except \[\], and beside "tool_choice": "none"'),
    ],
)
def test_errors_say_what_is_allowed(place: Place, name: str, value: Any, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        ask(place, {name: value})


def test_tools_that_may_not_be_called_ask_for_nothing() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    ask(Place.CHAT, {"tools": tools, "tool_choice": "none"})
    ask(Place.CHAT, {"functions": tools, "function_call": "none"})
    for choice in ("auto", None):
        with pytest.raises(ApiError, match="tools: not supported"):
            ask(Place.CHAT, {"tools": tools, "tool_choice": choice})


def test_endpoints_know_each_others_parameters() -> None:
    for place in ENDPOINTS:
        for one in PARAMETERS:
            if set(one.places) & set(ENDPOINTS):
                assert parameter(place, one.name) is not None
