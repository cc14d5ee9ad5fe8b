"""Segments as clients of `skymem serve` see them: a real process, real satellites."""

import json
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import openai
import pytest

from skymemory.serve.api_keys import add_key
from support.segment_client import SegmentClient, cached_content, details, segment, text_of
from support.served import Response, Server, cpu_ticks, save_babbler
from support.waiting import wait_until

BLOCK = 16
SEPARATOR = " # # "
DOCUMENT = "Satellites pass over a place in ten minutes, and each hands on what it keeps."

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.toml"


@pytest.fixture(scope="module")
def alice(start_servers, babbler, small_sky, keys) -> SegmentClient:
    """A client of a server that links without proof."""
    key = add_key(keys, "alice")
    words = ("--link-strategy", "lego:8", "--segment-separator", SEPARATOR, "--api-keys", str(keys))
    server = start_servers(babbler, "--served-model-name", "babbler", *words, up=small_sky)
    server.key = add_key(keys, "operator", is_operator=True)
    return SegmentClient(server, key)


@pytest.fixture(scope="module")
def mallory(alice: SegmentClient, keys: Path) -> SegmentClient:
    return SegmentClient(alice.server, add_key(keys, "mallory"))


def error_of(answer: Response) -> tuple[int, str | None, str | None]:
    return answer.status, answer.json["error"]["param"], answer.json["error"]["code"]


def is_idle(server: Server) -> bool:
    before = cpu_ticks(server)
    time.sleep(0.5)
    return cpu_ticks(server) <= before + 1


def in_seconds(expire_time: str) -> float:
    return (datetime.fromisoformat(expire_time) - datetime.now(UTC)).total_seconds()


# ---- cached contents -------------------------------------------------------------------------------------------------


def test_the_life_of_a_cached_content(alice) -> None:
    added = alice.add("Life. " + DOCUMENT, ttl="300s", display_name="manual")
    assert added["name"] == f"cached_contents/{added['id']}"
    assert (added["model"], added["display_name"]) == ("babbler", "manual")
    assert added["usage_metadata"] == {"total_token_count": len("Life. " + DOCUMENT)}
    assert 200 < in_seconds(added["expire_time"]) <= 300
    assert -100 < in_seconds(added["create_time"]) <= 1
    assert alice.send("GET", f"/{added['id']}").json == added
    assert alice.send("GET", f"/v1/{added['name']}").json == added
    assert added in alice.send("GET").json["cached_contents"]
    later = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    changed = alice.send("PATCH", f"/{added['id']}", {"expire_time": later}).json
    assert 7000 < in_seconds(changed["expire_time"]) <= 7200
    named = alice.send("PATCH", f"/{added['id']}", {"display_name": "handbook"}).json
    assert named == {**changed, "display_name": "handbook"}
    assert alice.add("Life. " + DOCUMENT)["id"] == added["id"]
    assert (alice.send("DELETE", f"/{added['id']}").status, alice.send("GET", f"/{added['id']}").status) == (200, 404)
    assert added["id"] not in [one["id"] for one in alice.send("GET").json["cached_contents"]]
    with pytest.raises(openai.NotFoundError, match="the sky has no segment"):
        alice.chat(cached_content(added))


def test_contents_of_all_kinds(alice) -> None:
    text = alice.add("one\ntwo", ttl="60s")
    gemini = [{"role": "user", "parts": [{"text": "one"}]}, {"parts": [{"text": "two"}]}]
    assert alice.add(gemini)["id"] == text["id"]
    assert alice.add([5, 6, 7])["usage_metadata"] == {"total_token_count": 3}
    assert 3000 < in_seconds(text["expire_time"]) + 3540 <= 3600
    assert 3000 < in_seconds(alice.add("no ttl")["expire_time"]) <= 3600


def test_what_has_expired_is_unknown(alice) -> None:
    added = alice.add("Expires. " + DOCUMENT, ttl="0.5s")
    answer = wait_until(lambda: (got := alice.send("GET", f"/{added['id']}")).status != 200 and got)
    assert error_of(answer) == (404, None, "cached_content_not_found")
    for method, body in (("PATCH", {"ttl": "60s"}), ("PATCH", {"display_name": "x"})):
        assert error_of(alice.send(method, f"/{added['id']}", body)) == (404, None, "cached_content_not_found")
    with pytest.raises(openai.NotFoundError, match="expired at") as caught:
        alice.chat("Read this.", cached_content(added))
    assert (caught.value.param, caught.value.code) == ("messages", "cached_content_not_found")


@pytest.mark.parametrize(
    ("method", "body", "status", "param"),
    [
        ("POST", {"model": "babbler"}, 400, "contents"),
        ("POST", {"contents": "a"}, 400, "model"),
        ("POST", {"model": "other", "contents": "a"}, 404, "model"),
        ("POST", {"model": "babbler", "contents": ""}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": []}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": [5, 96]}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": [-1]}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": [{"role": "model", "parts": [{"text": "a"}]}]}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": [{"parts": [{"inline_data": "a"}]}]}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": "a" * 16_384}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": "a" * 20_000}, 400, "contents"),
        ("POST", {"model": "babbler", "contents": "a", "ttl": "300"}, 400, "ttl"),
        ("POST", {"model": "babbler", "contents": "a", "ttl": 300}, 400, "ttl"),
        ("POST", {"model": "babbler", "contents": "a", "ttl": "0s"}, 400, "ttl"),
        ("POST", {"model": "babbler", "contents": "a", "ttl": "99999999s"}, 400, "ttl"),
        ("POST", {"model": "babbler", "contents": "a", "ttl": "1s", "expire_time": "2100-01-01T00:00:00Z"}, 400, "expire_time"),
        ("POST", {"model": "babbler", "contents": "a", "expire_time": "2020-01-01T00:00:00Z"}, 400, "expire_time"),
        ("POST", {"model": "babbler", "contents": "a", "expire_time": "2100-01-01T00:00:00Z"}, 400, "expire_time"),
        ("POST", {"model": "babbler", "contents": "a", "expire_time": "2100-01-01T00:00:00"}, 400, "expire_time"),
        ("POST", {"model": "babbler", "contents": "a", "expire_time": "2100-13-01T00:00:00Z"}, 400, "expire_time"),
        ("POST", {"model": "babbler", "contents": "a", "display_name": "x" * 129}, 400, "display_name"),
        ("POST", {"model": "babbler", "contents": "a", "tools": [{"name": "x"}]}, 400, "tools"),
        ("POST", {"model": "babbler", "contents": "a", "system_instruction": "x"}, 400, "system_instruction"),
        ("PATCH", {}, 400, None),
        ("PATCH", {"ttl": "0s"}, 400, "ttl"),
        ("PATCH", {"ttl": "x"}, 400, "ttl"),
        ("PATCH", {"expire_time": "2020-01-01T00:00:00Z"}, 400, "expire_time"),
        ("PATCH", {"contents": "b"}, 400, "contents"),
    ],
)
def test_bad_input(alice, method, body, status, param) -> None:
    path = f"/{alice.add('Stays as it is.')['id']}" if method == "PATCH" else ""
    answer = alice.send(method, path, body)
    assert error_of(answer)[:2] == (status, param), answer.text


def test_ids_and_methods_that_there_are_not(alice) -> None:
    unknown = alice.add(DOCUMENT)["id"][:-4] + "0000"
    for segment_id in (unknown, "x", "x" * 5000, "%20", "..%2f.."):
        for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"ttl": "60s"})):
            assert error_of(alice.send(method, f"/{segment_id}", body)) == (404, None, "cached_content_not_found")
    assert alice.send("PUT", f"/{unknown}").status == 405
    refused = alice.server.request(
        f"/v1/cached_contents/{unknown}", b"{}", "text/plain", method="PATCH", Authorization=f"Bearer {alice.key}"
    )
    assert refused.status == 415


def test_segments_of_another_key_are_unknown(alice, mallory) -> None:
    added = alice.add(DOCUMENT)
    assert mallory.send("GET").json == {"cached_contents": []}
    for method, body in (("GET", None), ("PATCH", {"ttl": "1s"}), ("DELETE", None)):
        assert error_of(mallory.send(method, f"/{added['id']}", body)) == (404, None, "cached_content_not_found")
        assert SegmentClient(alice.server, "sk-sky-wrong").send(method, f"/{added['id']}", body).status == 401
    with pytest.raises(openai.NotFoundError):
        mallory.chat("Read this.", cached_content(added))
    other = mallory.add(DOCUMENT)
    assert other["id"] != added["id"]
    assert mallory.send("DELETE", f"/{other['id']}").status == 200
    assert details(alice.chat("Mallory deleted hers. ", cached_content(added)).usage)[1] == len(DOCUMENT)


def test_without_a_constellation_there_are_no_segments(reciting) -> None:
    client = SegmentClient(reciting, "secret")
    for answer in (client.send("GET"), client.send("POST", body={"model": "reciter", "contents": [1]}), client.send("GET", "/x")):
        assert error_of(answer) == (503, None, "no_sky")
        assert int(answer.headers["Retry-After"]) > 0


def test_a_segment_whose_client_leaves_is_not_computed_to_its_end(serve_model, small_sky, tmp_path) -> None:
    slow = save_babbler(tmp_path, intermediate_size=4096, num_hidden_layers=8)
    client = SegmentClient(serve_model(slow, "--served-model-name", "babbler", up=small_sky), "no key")
    added = client.add("The first one takes longer. ")
    before_ticks = cpu_ticks(client.server)
    body = json.dumps({"model": "babbler", "contents": "Left alone. " * 150}).encode()
    host, port = client.server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as left:
        head = f"POST /v1/cached_contents HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        left.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: cpu_ticks(client.server) > before_ticks + 20, "it is computed")
    wait_until(lambda: 'cached_contents",status="499"' in client.server.request("/metrics").text, "the server knows")
    wait_until(lambda: is_idle(client.server), "nothing is computed or stored any more")
    assert [one["id"] for one in client.send("GET").json["cached_contents"]] == [added["id"]]


# ---- in chats --------------------------------------------------------------------------------------------------------


def test_a_chat_links_segments_wherever_they_stand(alice) -> None:
    added = alice.add(DOCUMENT)
    first = alice.chat("In a chat.", cached_content(added), "What was said?")
    prompt = f"[user] In a chat.\n{DOCUMENT}\nWhat was said?\n[assistant] "
    assert first.usage.prompt_tokens == len(prompt)
    assert details(first.usage) == (0, len(DOCUMENT), 8)
    alice.show(DOCUMENT, "A first one. " * 3)
    second = alice.chat("In another one.", segment("A first one. " * 3), "Then:", cached_content(added), "What was said?")
    assert details(second.usage) == (0, len("A first one. " * 3) + len(DOCUMENT), 16)
    before = alice.server.metric("skymem_serve_linked_tokens_total")
    *_, last = alice.chat("Streamed.", segment(DOCUMENT), stream=True, stream_options={"include_usage": True})
    assert details(last.usage) == (0, len(DOCUMENT), 8)
    assert alice.server.metric("skymem_serve_linked_tokens_total") == before + len(DOCUMENT)
    assert alice.server.metric("skymem_serve_recomputed_tokens_total") >= 8


def test_a_segment_by_content_is_the_one_by_id(alice) -> None:
    text = "By content. " + DOCUMENT
    alice.show(text)
    by_content = alice.chat("Same text.", segment(text), "And?")
    [listed] = [one for one in alice.send("GET").json["cached_contents"] if one["id"] == alice.add(text)["id"]]
    by_id = alice.chat("Same text.", cached_content(listed), "And?")
    assert text_of(by_id) == text_of(by_content)
    assert details(by_id.usage)[1] == details(by_content.usage)[1] == len(text)


def test_where_nothing_is_open_all_is_computed_and_kept(server, alice) -> None:
    """The other server has the same model, and links by the gate."""
    client = SegmentClient(server, "no key")
    text = "Closed gate. " + DOCUMENT
    answer = client.chat("Read this.", segment(text), "And?")
    assert details(answer.usage) == (0, 0, 0)
    server.wait_stored()
    plain = client.chat("Read this.", text, "And?")
    assert text_of(plain) == text_of(answer)
    assert details(plain.usage) == (plain.usage.prompt_tokens // BLOCK * BLOCK, 0, 0)
    alice.show(text)
    linked = alice.chat("Read this.", segment(text), "And?")
    assert text_of(linked) != text_of(answer), "the test would not notice what is approximate"
    alice.server.wait_stored()
    again = alice.chat("Read this.", text, "And?")
    assert details(again.usage) == (len("[user] Read this.\n") // BLOCK * BLOCK, 0, 0)
    assert text_of(again) == text_of(answer)


def test_wishes_to_cache_are_taken_without_effect(alice) -> None:
    wish = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    alice.show(DOCUMENT)
    plain = alice.chat("Wishes.", segment(DOCUMENT))
    asked = alice.openai.chat.completions.create(
        model="babbler",
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Wishes.", **wish}, {**segment(DOCUMENT), **wish}], **wish}
        ],
        max_tokens=24,
        temperature=0,
        extra_body={"prompt_cache_retention": "24h", "prompt_cache_key": "x", "tools": [], **wish},
    )
    assert text_of(asked) == text_of(plain)
    assert alice.complete("w", extra_body={"prompt_cache_retention": "in_memory"}).usage.prompt_tokens == 1


def test_salts_keep_prompts_apart_and_not_segments(alice) -> None:
    added = alice.add(DOCUMENT)
    for salt in ("one", "two"):
        answer = alice.chat("Salts. " * 5, cached_content(added), extra_body={"cache_salt": salt})
        assert details(answer.usage)[:2] == (0, len(DOCUMENT))
        alice.server.wait_stored()
    with pytest.raises(openai.BadRequestError, match="all clients of the API key share") as caught:
        alice.chat(segment(DOCUMENT), extra_body={"cache_salt": "one"})
    assert caught.value.param == "cache_salt"


def test_a_prompt_that_is_too_long_with_its_segments_is_refused(alice) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        alice.chat(cached_content(alice.add(DOCUMENT)), max_tokens=16_300)
    assert caught.value.code == "context_length_exceeded"
    before = alice.send("GET").json
    with pytest.raises(openai.BadRequestError) as caught:
        alice.chat("b" * 16_000, segment("cd" * 150 + DOCUMENT))
    assert caught.value.code == "context_length_exceeded"
    assert alice.send("GET").json == before, "nothing is computed for it"


# ---- in completions --------------------------------------------------------------------------------------------------


def test_separators_stand_around_segments_and_are_not_shown(alice) -> None:
    text_of_segment = "In a completion. " + DOCUMENT
    other = "Blocks are cut into chunks. "
    prompt = SEPARATOR.join(("Completion. ", text_of_segment, other, "What was said?"))
    first = alice.complete("First. " + prompt)
    assert details(first.usage)[1:] == (0, 0), "it is text when it comes first"
    answer = alice.complete(prompt, echo=True)
    shown = "Completion. " + text_of_segment + other + "What was said?"
    assert answer.choices[0].text.startswith(shown)
    assert answer.usage.prompt_tokens == len(shown)
    assert details(answer.usage) == (0, len(text_of_segment) + len(other), 16)
    text = answer.choices[0].text.removeprefix(shown)
    chunks = alice.complete(prompt, stream=True, stream_options={"include_usage": True})
    streamed = list(chunks)
    assert "".join(chunk.choices[0].text for chunk in streamed[:-1]) == text
    assert details(streamed[-1].usage)[1:] == (len(text_of_segment) + len(other), 16)
    with pytest.raises(openai.BadRequestError, match="no token"):
        alice.complete(SEPARATOR * 2)
    with pytest.raises(openai.BadRequestError, match="cache_salt"):
        alice.complete(prompt, extra_body={"cache_salt": "s"})


def test_batches_of_prompts_with_segments_and_without(alice) -> None:
    prompts = [f"Batch.{SEPARATOR}{DOCUMENT}{SEPARATOR}Well?", "Batch without.", f"Batch.{SEPARATOR}{DOCUMENT}{SEPARATOR}And?"]
    alice.show(DOCUMENT)
    alone = [alice.complete(prompt) for prompt in prompts]
    both = alice.openai.completions.create(model="babbler", prompt=prompts, max_tokens=24, temperature=0, n=2)
    assert [choice.text for choice in both.choices] == [one.choices[0].text for one in alone for _ in range(2)]
    assert details(both.usage)[1:] == (2 * len(DOCUMENT), 16)
