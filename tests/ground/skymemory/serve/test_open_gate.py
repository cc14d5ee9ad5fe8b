"""Segments through `skymem serve` where the gate is open: `auto` links, in a real process, with real satellites.

The model computes long and has few keys and values, so that linking is faster by far on any machine.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from skymemory.demo.model import load
from support.open_gates import open_gate
from support.segment_client import SegmentClient, cached_content, details, segment, text_of
from support.served import BLOCK, cpu_ticks, save_babbler
from support.waiting import wait_until

SEPARATOR = " # # "
MANUAL = "".join([f"Satellite {number} hands on what it keeps to satellite {number + 1}. " for number in range(9)])
LOG = "".join([f"Pass {number} was shorter than pass {7 * number % 10}. " for number in range(12)])
BOTH = len(MANUAL) + len(LOG)

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_babbler(tmp_path_factory.mktemp("slow"), intermediate_size=8192, num_hidden_layers=8)


@pytest.fixture(scope="module")
def serve_open(start_servers, slow, tmp_path_factory) -> Callable[..., SegmentClient]:
    """Starts a server on a constellation, with a gate that is open for lego:8 from the first layer on."""

    def serve(up: Any) -> SegmentClient:
        state = tmp_path_factory.mktemp("state")
        open_gate(*load(str(slow), device="cpu"), up.constellation, "lego:8", 0, state)
        words = ("--served-model-name", "babbler", "--segment-separator", SEPARATOR)
        return SegmentClient(start_servers(slow, *words, up=up, state=state))

    return serve


@pytest.fixture(scope="module")
def client(serve_open, small_sky) -> SegmentClient:
    made = serve_open(small_sky)
    made.show(MANUAL, LOG)
    return made


def exact(client: SegmentClient, *texts: str) -> str:
    """The answer that a full prefill gives; the salt keeps its blocks from being found for other prompts."""
    answer = client.chat(*texts, extra_body={"cache_salt": "exact"})
    assert details(answer.usage)[1] == 0
    return text_of(answer)


def test_what_the_gate_allows_is_linked(client) -> None:
    manual = client.add(MANUAL)
    parts = ("Both.", cached_content(manual), segment(LOG), "What was handed on?")
    linked = client.chat(*parts)
    assert details(linked.usage) == (0, BOTH, 16)
    assert linked.usage.prompt_tokens == len(f"[user] Both.\n{MANUAL}\n{LOG}\nWhat was handed on?\n[assistant] ")
    assert text_of(linked) != exact(client, "Both.", MANUAL, LOG, "What was handed on?"), "nothing would show"
    *chunks, last = client.chat(*parts, stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text_of(linked)
    assert details(last.usage) == (0, BOTH, 16)
    completed = client.complete(SEPARATOR.join(("Both. ", LOG, MANUAL, "What was handed on?")))
    assert details(completed.usage) == (0, BOTH, 16)
    assert client.server.metric("skymem_serve_linked_tokens_total") >= 3 * BOTH
    assert client.server.metric("skymem_gate_open") >= 1


def test_what_is_linked_is_not_found_as_exact(client) -> None:
    parts = ("Then this.", segment(LOG), "Which pass was short?")
    linked = client.chat(*parts)
    assert details(linked.usage) == (0, len(LOG), 8)
    client.server.wait_stored()
    plain = client.chat("Then this.", LOG, "Which pass was short?")
    assert details(plain.usage) == (len("[user] Then this.\n") // BLOCK * BLOCK, 0, 0)
    assert text_of(plain) == exact(client, "Then this.", LOG, "Which pass was short?") != text_of(linked)


def test_a_segment_that_is_gone_between_two_requests(client) -> None:
    expires = client.add("Soon gone. " + MANUAL, ttl="1s")
    wait_until(lambda: client.send("GET", f"/{expires['id']}").status == 404, "it expires")
    deleted = client.add(LOG)
    assert client.send("DELETE", f"/{deleted['id']}").status == 200
    for gone in (expires, deleted):
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat("There?", cached_content(gone))
        assert (caught.value.param, caught.value.code) == ("messages", "cached_content_not_found")
    answer = client.chat("There?", segment(LOG))
    assert details(answer.usage) == (0, len(LOG), 8), "text is stored again"
    assert client.send("GET", f"/{deleted['id']}").status == 200


def test_several_requests_at_once_get_what_each_gets_alone(client) -> None:
    def ask(number: int) -> Any:
        return client.chat(f"No. {number}.", segment(MANUAL), segment(LOG), f"What of {number}?")

    alone = [ask(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(ask, range(4)))
    assert [text_of(answer) for answer in together] == [text_of(answer) for answer in alone]
    assert {details(answer.usage) for answer in (*alone, *together)} == {(0, BOTH, 16)}


def test_who_uses_a_segment_does_not_wait_for_all_that_are_posted(client) -> None:
    manual = client.add(MANUAL)
    before_ticks = cpu_ticks(client.server)
    with ThreadPoolExecutor(8) as pool:
        posted = [pool.submit(client.add, f"Document {number}. " + MANUAL) for number in range(8)]
        wait_until(lambda: cpu_ticks(client.server) > before_ticks + 10, "they are computed")
        assert client.send("GET", f"/{manual['id']}").status == 200
        # On a busy machine the sky may miss its deadline: then all is computed, and nobody waits for the others either
        assert details(client.chat("Wait?", cached_content(manual)).usage) in {(0, len(MANUAL), 8), (0, 0, 0)}
        is_done = [one.done() for one in posted]
    assert sum(is_done) < 5, "it has waited until a thread was free"
    assert len({one.result()["id"] for one in posted}) == 8
    assert details(client.chat("Nobody waits now.", cached_content(manual)).usage) == (0, len(MANUAL), 8)


def test_a_sky_that_falls_silent_has_all_computed(serve_open, start_sky, stopped) -> None:
    sky = start_sky(cache={"block_tokens": BLOCK, "chunk_bytes": 1000, "deadline_ms": 500})
    client = serve_open(sky)
    manual = client.add(MANUAL)
    client.show(LOG)

    def ask() -> Any:
        return client.chat("Both.", cached_content(manual), segment(LOG), "What was handed on?")

    wanted = exact(client, "Both.", MANUAL, LOG, "What was handed on?")
    linked = ask()
    assert details(linked.usage) == (0, BOTH, 16)
    client.server.wait_stored()
    before_ticks = cpu_ticks(client.server)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        wait_until(lambda: cpu_ticks(client.server) > before_ticks, "the server works on it")
        with stopped(sky):
            halfway = asked.result()
            silent = ask()
    assert (details(silent.usage), text_of(silent)) == ((0, 0, 0), wanted)
    if (got := details(halfway.usage)) in {(0, 0, 0), (0, BOTH, 16)}:  # else one of the two segments has come
        assert text_of(halfway) == (text_of(linked) if got[1] else wanted)
