"""Bad input is told by name; what asks for nothing is taken."""

import json
from typing import Any

import pytest

from skymemory.serve.errors import ApiError
from skymemory.serve.json_body import JsonLimits
from skymemory.serve.requests import FIELDS_MAX, PARTS_MAX, ChatRequest, CompletionRequest, parse

HELLO = [{"role": "user", "content": "hello"}]


def completion(**more: Any) -> CompletionRequest:
    return parse(CompletionRequest, json.dumps({"model": "m", "prompt": "p", **more}).encode(), JsonLimits())


def chat(**more: Any) -> ChatRequest:
    return parse(ChatRequest, json.dumps({"model": "m", "messages": HELLO, **more}).encode(), JsonLimits())


def message(content: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content, **more}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"model": "\\ud800"}', "not JSON"),
        (b'{"temperature": NaN}', "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
    ],
)
def test_what_is_no_json_object(body: bytes, words: str) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        parse(ChatRequest, body, JsonLimits())
    assert caught.value.status == 400
    assert caught.value.body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": ["a", [1]]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"prompt": ["a"] * 129}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"seed": 1 << 70}, "seed"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": "a" * 257}, "stop[0]"),
        ({"stop": [1]}, "stop[0]"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"echo": 1}, "echo"),
        ({"suffix": "s"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": 0}, "logprobs"),
        ({"logprobs": 3}, "logprobs"),
        ({"logit_bias": {"1": 5}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": False}, "frequency_penalty"),
        ({"messages": HELLO}, "messages"),
        ({"top_k": 5}, "top_k"),
    ],
)
def test_completions_that_are_refused(more: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        completion(**more)
    error = caught.value.body["error"]
    assert (caught.value.status, error["param"]) == (400, param)
    assert error["message"].startswith(f"{param}: ")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"content": "hello"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [*HELLO, {"role": "critic", "content": "5"}]}, "messages[1].role"),
        ({"messages": [*HELLO, {"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "messages[1].tool_calls[0].function"),
        ({"messages": [*HELLO, {"role": "assistant", "tool_calls": [1] * 129}]}, "messages[1].tool_calls"),
        ({"messages": [*HELLO, {"role": "assistant", "content": 5}]}, "messages[1].content"),
        ({"messages": [*HELLO, {"role": "tool", "content": None}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": "a", "prefix": True}]}, "messages[0].prefix"),
        ({"model": "m" * 1025}, "model"),
        (message(5), "messages[0].content"),
        (message([]), "messages[0].content"),
        (message([{"type": "text"}]), "messages[0].content[0].text"),
        (message([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]), "messages[0].content[1].type"),
        (message("a", name=3), "messages[0].name"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"store": True}, "store"),
        ({"prompt": "p"}, "prompt"),
        ({"echo": True}, "echo"),
    ],
)
def test_chats_that_are_refused(more: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat(**more)
    error = caught.value.body["error"]
    assert (caught.value.status, error["param"]) == (400, param)
    assert error["message"].startswith(f"{param}: ")


def test_what_asks_for_nothing_is_taken() -> None:
    neutral = {"logit_bias": {}, "presence_penalty": 0.0, "frequency_penalty": 0, "user": "u", "stream_options": None, "n": None}
    assert completion(**neutral, best_of=1, suffix="", logprobs=None).n == 1
    request = completion(logprobs=False, allowed_token_ids=[], samplers=[], detokenize=True, cache_salt="", stop="")
    assert (request.cache_salt, request.stop) == (None, [])
    chat(**neutral, tools=[], tool_choice="none", response_format={"type": "text"}, logprobs=False, store=False)
    chat(metadata={"a": "b"}, parallel_tool_calls=True, service_tier="auto", modalities=["text"], temperature=1, top_p=1)


def test_a_salt_is_text_and_an_empty_one_is_none() -> None:
    for given, salt in (("s", "s"), (None, None), ("", None)):
        assert completion(cache_salt=given).cache_salt == salt
    for wrong in (1, [], "s" * 1025):
        with pytest.raises(ApiError, match="cache_salt: "):
            completion(cache_salt=wrong)


def test_prompts_of_all_kinds() -> None:
    for given, prompts in (("a", ["a"]), (["a", ""], ["a", ""]), ([1, 2], [[1, 2]]), ([[1], [2, 3]], [[1], [2, 3]])):
        assert completion(prompt=given).prompt == prompts


TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (HELLO * (PARTS_MAX + 1), "^messages: 4,097 parts of messages; allowed are 4,096$"),
        (message([TEXT] * (PARTS_MAX + 1))["messages"], "^messages: 4,097 parts"),
        (message([{}] * (PARTS_MAX // 2))["messages"] * 3, "^messages: 6,144 parts"),
        ([{}] * (PARTS_MAX + 1), "^messages: 4,097 parts"),
        (
            message("a", **{f"k{number}": 1 for number in range(FIELDS_MAX)})["messages"],
            "^messages.0.: 258 fields; allowed are 256$",
        ),
        (message([{f"k{number}": 1 for number in range(FIELDS_MAX + 1)}])["messages"], "^messages.0.*: 257 fields"),
    ],
)
def test_what_has_too_many_parts_is_refused_before_each_is_looked_at(messages, words) -> None:
    with pytest.raises(ApiError, match=words):
        chat(messages=messages)
    assert len(chat(messages=message([TEXT] * PARTS_MAX)["messages"]).messages[0].content) == PARTS_MAX


def test_stop_is_one_string_or_some() -> None:
    assert completion(stop="a").stop == ["a"]
    assert completion(stop=["a", "b"]).stop == ["a", "b"]
    assert completion(stop=None).stop == []


def test_a_message_comes_back_as_clients_got_it() -> None:
    got = {"role": "assistant", "content": "hi", "refusal": None, "annotations": [], "audio": None, "tool_calls": None}
    request = chat(messages=[*HELLO, got])
    assert [one.for_template(lambda part: part.shown) for one in request.messages][1] == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": []}, {"content": ""}])
def test_an_assistant_may_have_said_nothing(content: dict[str, Any]) -> None:
    request = chat(messages=[*HELLO, {"role": "assistant", "tool_calls": [], "refusal": None, **content}])
    assert request.messages[1].for_template(lambda part: part.shown) == {"role": "assistant", "content": ""}


def test_tools_in_the_history_reach_the_template() -> None:
    call = {"id": "c", "type": "function", "index": 0, "function": {"name": "f", "arguments": '{"a": [1]}'}}
    odd = {"id": "d", "type": "function", "function": {"name": "g", "arguments": "[1]"}}
    request = chat(
        messages=[
            *HELLO,
            {"role": "assistant", "content": None, "tool_calls": [call, odd], "reasoning_content": "hm", "annotations": []},
            {"role": "tool", "tool_call_id": "c", "content": "5"},
            {"role": "function", "name": "f", "content": None},
            {"role": "assistant", "reasoning": "hm"},
        ]
    )
    assert [one.for_template(lambda part: part.shown) for one in request.messages][1:] == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": [1]}}},
                {"id": "d", "type": "function", "function": {"name": "g", "arguments": "[1]"}},
            ],
        },
        {"role": "tool", "content": "5", "tool_call_id": "c"},
        {"role": "function", "content": "", "name": "f"},
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
    ]
    assert [one.characters for one in request.messages] == [5, 2 + 2 * 2 + 10 + 3, 2, 1, 2]


def test_parts_are_lines_and_developers_are_the_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    request = chat(messages=[{"role": "developer", "content": parts, "name": "n"}])
    assert request.messages[0].for_template(lambda part: part.shown) == {"role": "system", "content": "a\nb", "name": "n"}


def test_parts_that_are_segments() -> None:
    wish = {"cache_control": {"type": "ephemeral"}}
    parts = [
        {"type": "text", "text": "a", "segment": True, **wish},
        {"type": "cached_content", "id": "x", **wish},
        {"type": "text", "text": "b", "segment": False},
        {"type": "text", "text": "", "segment": True},
    ]
    [only] = chat(**message(parts, **wish), prompt_cache_retention="24h", cache_control={}).messages
    assert [part.is_segment for part in only.content] == [True, True, False, False]
    assert only.for_template(lambda part: "<>" if part.is_segment else part.shown)["content"] == "<>\n<>\nb\n"


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "cached_content"}, "id"),
        ({"type": "cached_content", "id": ""}, "id"),
        ({"type": "cached_content", "id": 5}, "id"),
        ({"type": "cached_content", "id": "x" * 257}, "id"),
        ({"type": "cached_content", "id": "x", "text": "a"}, "text"),
        ({"type": "text", "text": "a", "segment": "yes"}, "segment"),
        ({"type": "image_url", "image_url": {}}, "type"),
        ({"type": ["text"], "text": "a"}, "type"),
        ({"text": "a"}, "type"),
    ],
)
def test_parts_that_are_refused(part: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat(**message([part]))
    assert caught.value.body["error"]["param"] == f"messages[0].content[0].{param}"
