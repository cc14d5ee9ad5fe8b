"""What clients of other servers send to `skymem serve`: values that ask for nothing, old messages, old HTTP."""

import json
import socket

import pytest

from support.served import cpu_ticks

pytestmark = pytest.mark.model

NEUTRAL = {
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "length_penalty": 1.0,
    "ignore_eos": False,
    "min_tokens": 0,
    "stop_token_ids": [],
    "skip_special_tokens": True,
    "use_beam_search": False,
    "kv_transfer_params": {},
    "priority": 0,
    "return_token_ids": False,
}
NEUTRAL_CHAT = {
    "add_generation_prompt": True,
    "continue_final_message": False,
    "echo": False,
    "chat_template_kwargs": {},
    "documents": [],
}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def request(client, messages, **more):
    return client.chat.completions.with_raw_response.create(
        model="babbler", messages=messages, **{"max_tokens": 2, "temperature": 0, **more}
    )


def test_values_that_ask_for_nothing_are_accepted_and_change_nothing(server) -> None:
    messages = [{"role": "user", "content": "neutral"}]
    plain = request(server.client, messages)
    assert "Warning" not in plain.headers
    answer = request(
        server.client,
        messages,
        frequency_penalty=0,
        logit_bias={},
        logprobs=False,
        top_logprobs=0,
        reasoning_effort="none",
        verbosity="medium",
        store=False,
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice="none",
        service_tier="auto",
        seed=None,
        stop=None,
        extra_body=NEUTRAL | NEUTRAL_CHAT,
    )
    assert "Warning" not in answer.headers
    assert answer.parse().choices[0].message.content == plain.parse().choices[0].message.content
    server.client.completions.create(model="babbler", prompt="a", max_tokens=1, logit_bias={}, extra_body=NEUTRAL)
    stream = server.client.chat.completions.create(
        model="babbler",
        messages=messages,
        max_tokens=2,
        stream=True,
        stream_options={"include_usage": True, "include_obfuscation": False},
    )
    assert list(stream)[-1].usage.completion_tokens == 2


def test_a_history_of_another_server_is_taken(server) -> None:
    message = server.client.chat.completions.create(model="babbler", messages=[{"role": "user", "content": "a"}], max_tokens=2)
    history = [
        {"role": "user", "content": "a"},
        message.choices[0].message.model_dump() | {"annotations": [], "tool_calls": [], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c", "content": "5"},
        {"role": "function", "name": "f", "content": "6"},
        {"role": "user", "content": "b"},
    ]
    spoken = message.choices[0].message.content
    answer = request(server.client, history).parse()
    shown = f"[user] a\n[assistant] {spoken}\n[tool] 5\n[function] 6\n[user] b\n[assistant] "
    assert answer.usage.prompt_tokens == len(shown)


def test_tool_calls_are_refused_where_the_template_would_drop_them(server) -> None:
    body = {"model": "babbler", "messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "a"}]}
    answer = server.request("/v1/chat/completions", json.dumps(body).encode())
    assert (answer.status, answer.json["error"]["code"]) == (400, "unsupported_parameter")
    assert "does not show tool_calls" in answer.json["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_unknown_parameters_are_left_out_and_told(server, stream: bool) -> None:
    before = server.metric("skymem_serve_unknown_parameters_total")
    unknown = {"sparkle": 5, "glow": None, 'x"\r\nEvil: 1': [{}]}
    body = {"model": "babbler", "prompt": "a", "max_tokens": 1, "stream": stream, **unknown}
    answer = server.request("/v1/completions", json.dumps(body).encode())
    assert answer.status == 200
    assert answer.headers["Warning"] == '299 skymemory "unknown parameters were left out: glow, sparkle, 1 more"'
    assert "Evil" not in answer.headers
    assert server.metric("skymem_serve_unknown_parameters_total") == before + 3


def test_a_health_check_of_http_1_0_without_a_name_is_answered(server) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    for path in ("/health", "/metrics", "/v1/models"):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.0 200 ")


def test_a_packed_body_is_refused(server) -> None:
    answer = server.request("/v1/completions", b"\x1f\x8b", **{"Content-Encoding": "gzip"})
    assert answer.status == 415
    assert "Content-Encoding is 'gzip'; allowed is identity" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "begin", "one", "end"),
    [
        ("/v1/completions", '{"model":"babbler","prompt":[', "[1],", "[1]]}"),
        ("/v1/completions", '{"model":"babbler","prompt":"a","stop":[', "1,", "1]}"),
        ("/v1/completions", '{"model":"babbler","prompt":"a","what":[', "[],", "[]]}"),
        ("/v1/chat/completions", '{"model":"babbler","messages":[', '{"role":"user","content":[]},', "{}]}"),
        ("/v1/cached_contents", '{"model":"babbler","contents":[', "1,", "1]}"),
    ],
)
def test_lists_cost_no_more_than_text_of_their_length(server, path: str, begin: str, one: str, end: str) -> None:
    """Their length is checked before their entries are: 7 MB of small lists took seconds in the one thread that all need."""
    size = 3_000_000
    lists = (begin + one * (size // len(one)) + end).encode()
    text = json.dumps({"model": "babbler", "prompt": "a" * size}).encode()

    def ticks(path: str, body: bytes) -> int:
        before = cpu_ticks(server)
        assert server.request(path, body).status == 400
        return cpu_ticks(server) - before

    ticks("/v1/completions", text)
    assert ticks(path, lists) <= 2 * ticks("/v1/completions", text) + 20
