"""`skymem serve` as clients see it: the openai client, a real process, real satellites."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import openai
import pytest

from skymemory.bench.ttft import run_ttft_bench, ttft_table
from skymemory.sky.whereabouts import Whereabouts
from support.waiting import wait_until

BLOCK = 16
LONG = "A satellite that does not answer may be lost, or the host may be deaf. "
"""72 tokens of the babbler"""

pytestmark = pytest.mark.model


def cached(answer) -> int:
    return answer.usage.prompt_tokens_details.cached_tokens


def complete(client, prompt, **more):
    return client.completions.create(model="babbler", prompt=prompt, **{"max_tokens": 24, "temperature": 0, **more})


def chat(client, messages, **more):
    return client.chat.completions.create(model="babbler", messages=messages, **{"max_tokens": 24, "temperature": 0, **more})


def whole_blocks(tokens: int) -> int:
    """What can be cached of a prompt: the model needs one token to run."""
    return max(0, min(tokens // BLOCK * BLOCK, tokens - 1))


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def hold(server, max_tokens: int = 15_000):
    """A stream that keeps the model busy; its first chunk has come."""
    stream = server.client.completions.create(
        model=server.client.models.list().data[0].id, prompt="x", max_tokens=max_tokens, temperature=0, stream=True
    )
    next(iter(stream))
    return stream


# ---- what is served -------------------------------------------------------------------------------------------------


def test_models(server, reciting) -> None:
    assert [model.id for model in server.client.models.list()] == ["babbler"]
    assert server.client.models.retrieve("babbler").object == "model"
    with pytest.raises(openai.NotFoundError, match="served is 'babbler'") as caught:
        server.client.models.retrieve("org/other")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError, match="served is 'babbler'"):
        server.client.completions.create(model="other", prompt="a")


def test_health_and_metrics(server) -> None:
    assert server.request("/health").json == {"status": "ok"}
    text = server.request("/metrics").text
    for name in ("requests_total", "time_to_first_token_seconds_bucket", "waiting", "cache_tokens_cached_total"):
        assert f"skymem_serve_{name}" in text


def test_without_its_key_nothing_is_served(reciting) -> None:
    for key in ("wrong", "secret2"):
        with pytest.raises(openai.AuthenticationError):
            reciting.client_of(key).models.list()
    host, port = reciting.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 40")
    response = reciting.request("/v1/models")
    assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert response.json["error"]["code"] == "invalid_api_key"
    assert reciting.request("/health").status == 200
    assert len(reciting.client.models.list().data) == 1


@pytest.mark.parametrize(
    ("host", "v1", "with_key", "health"),
    [
        ("127.0.0.1:1", 200, 200, 200),
        ("localhost", 200, 200, 200),
        (socket.gethostname(), 200, 200, 200),
        ("evil.example:8000", 403, 200, 403),
        ("127.0.0.1.evil.example", 403, 200, 403),
        ("", 403, 200, 403),
    ],
)
def test_a_name_that_a_stranger_may_point_here_needs_the_key(server, reciting, host, v1, with_key, health) -> None:
    authorization = {"Authorization": "Bearer secret"}
    assert server.request("/v1/models", Host=host).status == v1
    assert reciting.request("/v1/models", Host=host, **authorization).status == with_key
    for path in ("/health", "/metrics"):
        assert server.request(path, Host=host).status == reciting.request(path, Host=host, **authorization).status == health


def test_a_refused_name_is_told_with_its_cure(server) -> None:
    body = json.dumps({"model": "babbler", "prompt": "a"}).encode()
    error = server.request("/v1/completions", body, Host="sky.example:8000").json["error"]
    assert error["code"] == "host_not_allowed"
    assert error["message"].startswith("Host is 'sky.example:8000'; allowed are addresses such as 127.0.0.1, localhost, and ")
    assert error["message"].endswith("; a server with an API key allows all")


# ---- cold and warm --------------------------------------------------------------------------------------------------


def test_a_prompt_is_cold_then_warm_and_the_tokens_are_the_same(server) -> None:
    prompt = "Cold and warm. " + LONG
    cold = complete(server.client, prompt)
    assert (cold.usage.prompt_tokens, cold.usage.completion_tokens, cached(cold)) == (len(prompt), 24, 0)
    assert cold.usage.total_tokens == len(prompt) + 24
    assert (cold.object, cold.choices[0].finish_reason, len(cold.choices[0].text)) == ("text_completion", "length", 24)
    warm = complete(server.client, prompt)
    assert warm.choices[0].text == cold.choices[0].text
    assert cached(warm) == whole_blocks(len(prompt))
    assert warm.id != cold.id


def test_another_server_finds_what_this_one_stored(server, serve_model, babbler, small_sky, tmp_path) -> None:
    prompt = "Two hosts. " + LONG
    cold = complete(server.client, prompt)
    server.wait_stored()
    file = tmp_path / "constellation.toml"
    settings = small_sky.constellation
    file.write_text(
        f"[constellation]\nplanes = 3\nslots = 5\n[network]\nport = {settings.network.port}\n"
        f"[cache]\nservers = 9\ncentre = [2, 3]\nblock_tokens = {BLOCK}\nchunk_bytes = 1000\n"
    )
    other = serve_model(babbler, "--served-model-name", "babbler", "--constellation", file)
    warm = complete(other.client, prompt)
    assert cached(warm) == whole_blocks(len(prompt))
    assert warm.choices[0].text == cold.choices[0].text


def test_a_turn_of_a_chat_finds_prompt_and_answer_of_the_turn_before(server) -> None:
    messages = user("Turns of a chat. " + LONG)
    stored = 0
    for _ in range(3):
        answer = chat(server.client, messages, max_tokens=40)
        assert cached(answer) == whole_blocks(stored)
        stored = answer.usage.total_tokens - 1  # the last token of an answer is never computed
        messages.append(answer.choices[0].message.model_dump())  # as clients do it
        messages += user("And then?")
    assert answer.choices[0].message.role == "assistant"
    assert len(answer.choices[0].message.content) == 40


def test_token_ids_and_batches(server, letters) -> None:
    prompts = ["Batches. " + LONG, "Other batches. " + LONG]
    single = [complete(server.client, prompt).choices[0].text for prompt in prompts]
    ids = [letters(prompt)["input_ids"] for prompt in prompts]
    both = complete(server.client, ids, n=2)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in both.choices] == [single[0]] * 2 + [single[1]] * 2
    assert both.usage.prompt_tokens == sum(map(len, prompts))
    assert both.usage.completion_tokens == 4 * 24
    assert cached(both) == sum(whole_blocks(len(prompt)) for prompt in prompts)
    assert complete(server.client, ids[0]).choices[0].text == single[0]


def test_sampled_answers(server) -> None:
    def texts(**more):
        answer = chat(server.client, user("Sampling. " + LONG), temperature=1, n=3, **more)
        return [choice.message.content for choice in answer.choices]

    first = texts(seed=5)
    assert len(set(first)) == 3
    assert texts(seed=5) == first  # warm as cold
    assert texts(seed=6) != first
    assert texts() != texts()
    assert len(set(texts(seed=1, top_p=1e-6))) == 1


# ---- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choices", [1, 2])
def test_a_stream_of_a_completion_is_its_text(server, choices) -> None:
    prompt = f"Streams of {choices}. " + LONG
    whole = complete(server.client, prompt, n=choices, temperature=1, seed=3)
    chunks = list(
        complete(server.client, prompt, n=choices, temperature=1, seed=3, stream=True, stream_options={"include_usage": True})
    )
    for choice in whole.choices:
        parts = [one for chunk in chunks for one in chunk.choices if one.index == choice.index]
        assert "".join(part.text for part in parts) == choice.text
        assert len(parts) == 24 + 1
        assert [part.finish_reason for part in parts] == [None] * 24 + ["length"]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 24 * choices
    assert cached(chunks[-1]) == whole_blocks(len(prompt))
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_of_a_chat_is_its_text(server) -> None:
    messages = user("Streams of chats. " + LONG)
    whole = chat(server.client, messages)
    chunks = [chunk.choices[0] for chunk in chat(server.client, messages, stream=True)]
    assert (chunks[0].delta.role, chunks[0].delta.content) == ("assistant", "")
    assert "".join(chunk.delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert [chunk.finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]


def test_the_bytes_of_a_stream(server) -> None:
    body = {"model": "babbler", "prompt": "a", "max_tokens": 2, "stream": True}
    response = server.request("/v1/completions", json.dumps(body).encode())
    assert response.headers["Content-Type"] == "text/event-stream"
    *events, last, rest = response.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    assert all(json.loads(event.removeprefix("data: "))["object"] == "text_completion" for event in events)


def test_echo(server) -> None:
    plain = complete(server.client, "Echo").choices[0].text
    assert complete(server.client, "Echo", echo=True).choices[0].text == "Echo" + plain
    assert complete(server.client, [1, 2, 3], echo=True).choices[0].text.startswith('!"#')
    chunks = complete(server.client, "Echo", echo=True, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == "Echo" + plain


# ---- text -----------------------------------------------------------------------------------------------------------


def recite(client, **more):
    return client.completions.create(model="reciter", prompt="?", **{"max_tokens": 1000, "temperature": 0, **more})


def test_characters_that_are_cut_by_tokens_come_whole(reciting, poem) -> None:
    whole = recite(reciting.client)
    assert whole.choices[0].text == poem
    assert whole.choices[0].finish_reason == "stop"
    pieces = [chunk.choices[0].text for chunk in recite(reciting.client, stream=True)]
    assert "".join(pieces) == poem
    assert len(pieces) > 20
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.mark.parametrize(
    ("stop", "end"),
    [("😀👩", "😀"), (["世界!", "naïve"], "世界"), ("The end", "The end"), ("end", "end"), (" – ¿qué?", " – "), ("G", "G")],
)
def test_stop_strings_across_tokens(reciting, poem, stop, end) -> None:
    wanted = poem[: poem.index(end)]
    whole = recite(reciting.client, stop=stop)
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (wanted, "stop")
    chunks = [chunk.choices[0] for chunk in recite(reciting.client, stop=stop, stream=True)]
    assert "".join(chunk.text for chunk in chunks) == wanted
    assert chunks[-1].finish_reason == "stop"


def test_what_only_began_like_a_stop_string_is_told(reciting, poem) -> None:
    whole = recite(reciting.client, stop=["The end?"])
    assert whole.choices[0].text == poem
    assert "".join(chunk.choices[0].text for chunk in recite(reciting.client, stop=["The end?"], stream=True)) == poem


def test_a_character_that_the_last_token_cuts(reciting, poem) -> None:
    for tokens in range(1, 20):
        whole = recite(reciting.client, max_tokens=tokens)
        assert whole.choices[0].text.rstrip("\ufffd") == poem[: len(whole.choices[0].text.rstrip("\ufffd"))]
        pieces = recite(reciting.client, max_tokens=tokens, stream=True)
        assert "".join(chunk.choices[0].text for chunk in pieces) == whole.choices[0].text


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "words"),
    [
        ("completions", b"{", 400, "invalid_json", "not JSON"),
        ("completions", {"model": "babbler"}, 400, None, "prompt: is missing"),
        ("completions", {"model": "nobody", "prompt": "a"}, 404, "model_not_found", "nobody"),
        ("completions", {"model": "babbler", "prompt": ""}, 400, None, "at least one is needed"),
        ("completions", {"model": "babbler", "prompt": ["a", ""]}, 400, None, "at least one is needed"),
        ("completions", {"model": "babbler", "prompt": [5, 96]}, 400, None, "token id 96 at position 1"),
        ("completions", {"model": "babbler", "prompt": [-1]}, 400, None, "the model has 0 to 95"),
        (
            "completions",
            {"model": "babbler", "prompt": "a", "max_tokens": 16384},
            400,
            "context_length_exceeded",
            "length is 16384 tokens, and the prompt is too long",
        ),
        (
            "completions",
            {"model": "babbler", "prompt": "a" * 16384},
            400,
            "context_length_exceeded",
            "length is 16384 tokens, and the prompt is too long",
        ),
        ("completions", {"model": "babbler", "prompt": ["a", "b"], "n": 65}, 400, None, "allowed are 128"),
        ("completions", {"model": "babbler", "prompt": "a", "logit_bias": {"1": 1}}, 400, "unsupported_parameter", "logit_bias"),
        ("chat/completions", {"model": "babbler", "messages": user("a"), "tools": [{}]}, 400, "unsupported_parameter", "tools"),
        ("chat/completions", {"model": "babbler", "messages": user("")}, 400, None, "an empty message"),
        ("chat/completions", {"model": "babbler", "messages": user("a" * 16384)}, 400, "context_length_exceeded", "at least 1"),
        ("chat/completions", b"x" * (1 << 23) + b"x", 413, None, "8,388,608 bytes"),
        ("embeddings", {"model": "babbler", "input": "a"}, 404, None, "Not Found"),
        ("models", {}, 405, None, "Method Not Allowed"),
    ],
)
def test_bad_input_over_http(server, path, body, status, code, words) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = server.request(f"/v1/{path}", data)
    error = response.json["error"]
    assert (response.status, error["code"]) == (status, code)
    assert words in error["message"]
    assert set(error) == {"message", "type", "param", "code"}


def test_what_a_page_of_another_site_could_send_is_refused(server) -> None:
    body = json.dumps({"model": "babbler", "prompt": "a"}).encode()
    response = server.request("/v1/completions", body, "text/plain")
    assert response.status == 415


def test_half_a_request_hurts_nobody(server) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    for text in (
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/compl",
        b"\x00\xff\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as half:
            half.sendall(text)
    assert complete(server.client, "still there").usage.completion_tokens == 24


def test_a_thousand_bad_clients_leave_nothing_behind(server) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    stream = json.dumps({"model": "babbler", "prompt": "a", "stream": True, "max_tokens": 16_000}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    bad = [
        b"",
        b"\x16\x03\x01\x02\x00",
        b"POST /v1/completions HTT",
        (head % 50).encode() + b"{",
        (head % 2).encode() + b"[]",
        (head % len(stream)).encode() + stream,  # and does not wait for the answer
    ]

    def descriptors() -> int:
        return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))

    server.wait("skymem_serve_running", 0)
    before = descriptors()
    for number in range(1000):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(bad[number % len(bad)])
    server.wait("skymem_serve_waiting", 0)
    server.wait("skymem_serve_running", 0)
    wait_until(lambda: descriptors() <= before, lambda: f"{descriptors()} descriptors, {before} before")
    assert complete(server.client, "still there").usage.completion_tokens == 24


def test_a_model_without_a_chat_template_says_so(reciting) -> None:
    with pytest.raises(openai.BadRequestError, match="no chat template; use /v1/completions") as caught:
        reciting.client.chat.completions.create(model="reciter", messages=user("a"))
    assert caught.value.code == "no_chat_template"


# ---- queue ----------------------------------------------------------------------------------------------------------


def test_who_goes_away_stops_the_model(server) -> None:
    before = server.metric("skymem_serve_cancelled_total")
    stream = hold(server)
    assert server.metric("skymem_serve_running") == 1
    stream.close()
    server.wait("skymem_serve_running", 0)
    server.wait("skymem_serve_cancelled_total", before + 1)
    assert server.process.poll() is None
    assert complete(server.client, "next").usage.completion_tokens == 24


def test_who_goes_away_from_the_queue_leaves_it(serve_model, babbler) -> None:
    server = serve_model(babbler, "--served-model-name", "babbler", "--max-batch", "1")
    host, port = server.address.removeprefix("http://").split(":")
    body = json.dumps({"model": "babbler", "prompt": "a"}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    before = server.metric("skymem_serve_cancelled_total")
    stream = hold(server)
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall((head % len(body)).encode() + body)
        server.wait("skymem_serve_waiting", 1)
    server.wait("skymem_serve_waiting", 0)
    server.wait("skymem_serve_cancelled_total", before + 1)
    assert server.metric("skymem_serve_running") == 1
    stream.close()
    server.wait("skymem_serve_running", 0)


def test_a_full_queue_refuses_and_says_when_to_come_again(serve_model, babbler) -> None:
    server = serve_model(babbler, "--served-model-name", "babbler", "--max-queue", "1", "--max-batch", "1")
    stream = hold(server)
    waiting: list[openai.types.Completion] = []
    second = threading.Thread(target=lambda: waiting.append(complete(server.client, "second")))
    second.start()
    server.wait("skymem_serve_waiting", 1)
    with pytest.raises(openai.RateLimitError, match="1 requests wait already") as caught:
        complete(server.client, "third")
    assert int(caught.value.response.headers["Retry-After"]) >= 1
    assert caught.value.code == "queue_full"
    stream.close()
    second.join()
    assert waiting[0].usage.completion_tokens == 24
    assert complete(server.client, "third").usage.completion_tokens == 24
    assert server.log.read_text().count("no constellation is up") == 1


# ---- satellites -----------------------------------------------------------------------------------------------------


def test_satellites_die_and_the_tokens_stay_the_same(serve_model, babbler, start_sky) -> None:
    sky = start_sky(cache={"block_tokens": BLOCK, "chunk_bytes": 1000, "deadline_ms": 2000})
    server = serve_model(babbler, "--served-model-name", "babbler", up=sky)
    prompt = "While satellites die. " + LONG
    cold = complete(server.client, prompt)
    server.wait_stored()
    assert cached(complete(server.client, prompt)) == whole_blocks(len(prompt))
    server.wait_stored()
    dead = Whereabouts(sky.constellation).servers(0)[:2]
    for satellite in dead:
        sky.kill(satellite)
    some = complete(server.client, prompt)
    for satellite in set(sky.processes) - set(dead):
        sky.kill(satellite)
    none = complete(server.client, prompt)
    assert some.choices[0].text == none.choices[0].text == cold.choices[0].text
    assert cached(none) == 0
    assert server.metric("skymem_serve_cache_errors_total") > 0


# ---- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_lets_accepted_requests_end_and_refuses_others(serve_model, babbler, number, status) -> None:
    server = serve_model(babbler, "--served-model-name", "babbler", "--max-batch", "1")
    stream = hold(server, max_tokens=1500)
    waiting: list[openai.types.Completion] = []
    second = threading.Thread(target=lambda: waiting.append(complete(server.client, "second")))
    second.start()
    server.wait("skymem_serve_waiting", 1)
    server.process.send_signal(number)
    wait_until(lambda: server.request("/health").status != 200, "it is about to end")
    assert server.request("/health").json == {"status": "draining"}
    with pytest.raises(openai.InternalServerError, match="about to end") as caught:
        complete(server.client, "third")
    assert (caught.value.status_code, caught.value.code) == (503, "shutting_down")
    *_, last = stream
    assert last.choices[0].finish_reason == "length"
    second.join()
    assert waiting[0].usage.completion_tokens == 24
    assert server.process.wait(60) == status


def test_a_second_signal_ends_it_at_once(serve_model, babbler) -> None:
    server = serve_model(babbler, "--served-model-name", "babbler")
    stream = hold(server)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.request("/health").status != 200, "it is about to end")
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(openai.APIError, match="about to end"):
        list(stream)
    assert server.process.wait(60) == 0


# ---- the start ------------------------------------------------------------------------------------------------------


def skymem(*words: object) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("skymem"), "serve", *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/nowhere",), "/nowhere"),
        (("MODEL", "--device", "abacus"), "abacus"),
    ],
)
def test_what_cannot_start_is_told_in_one_line(babbler, words, said) -> None:
    result = skymem(*(str(babbler) if word == "MODEL" else word for word in words), "--port", "0")
    assert result.returncode in (1, 2)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert said in last
    assert "Traceback" not in result.stderr


# ---- how fast ---------------------------------------------------------------------------------------------------------


def test_the_bench_of_first_tokens(server) -> None:
    report = run_ttft_bench(server.address, rounds=2, words=30)
    assert len(report["rounds"]) == 2
    for row in report["rounds"]:
        assert row["same_text"]
        assert row["cached_tokens"] == whole_blocks(row["prompt_tokens"])
        assert row["cold_s"] > 0
        assert row["warm_s"] > 0
    assert report["lookup"] is None
    assert ttft_table(report).row_count == 3


def test_answers_begin_while_others_are_under_way(server) -> None:
    streams = [hold(server) for _ in range(3)]
    assert server.metric("skymem_serve_running") == 3
    for stream in streams:
        stream.close()
    server.wait("skymem_serve_running", 0)


def test_eight_at_once_are_answered_together_and_as_one_by_one(server) -> None:
    prompts = [f"{number} beside others: " + "ab" * 20 * number for number in range(8)]
    alone = [complete(server.client, prompt, max_tokens=60).choices[0].text for prompt in prompts]
    texts: dict[str, str] = {}

    def ask(prompt: str) -> None:
        with complete(server.client, prompt, max_tokens=60, stream=True) as stream:
            texts[prompt] = "".join(chunk.choices[0].text for chunk in stream)

    threads = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [texts[prompt] for prompt in prompts] == alone
    server.wait("skymem_serve_running", 0)


def test_a_text_that_cannot_fit_is_refused_before_the_tokenizer(server) -> None:
    begun_s = time.process_time()
    for path, body in (
        ("/v1/completions", {"model": "babbler", "prompt": "a" * 6_000_000}),
        ("/v1/chat/completions", {"model": "babbler", "messages": [{"role": "user", "content": "a" * 6_000_000}]}),
    ):
        answer = server.request(path, json.dumps(body).encode())
        assert (answer.status, answer.json["error"]["code"]) == (400, "context_length_exceeded")
        message = answer.json["error"]["message"]
        assert message.startswith("This model's maximum context length is 16384 tokens, and the prompt is too long for it: ")
        assert message.endswith(" has 6000000 characters; allowed are 16384, 1 for each token")
    assert time.process_time() - begun_s < 60
