"""Seconds to the first token, of a server that plays a vLLM. `serve/test_serve.py` has a real server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from skymemory.bench.peer_servers import ServerError
from skymemory.bench.ttft import run_ttft_bench, ttft_table

LOOKUP_EDGES = ("0.001", "0.002", "+Inf")


class Vllm(BaseHTTPRequestHandler):
    """Knows prompts once it has been asked for them; each look-up takes 1 to 2 ms."""

    known: ClassVar[set[str]] = set()
    tells: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    stores: ClassVar[bool] = True
    lookups: ClassVar[int] = 0

    def do_GET(self) -> None:
        if self.path == "/metrics":
            name = "vllm:skymemory_lookup_seconds"
            counts = (0, type(self).lookups, type(self).lookups)
            rows = [f'{name}_bucket{{engine="0",le="{edge}"}} {count}' for edge, count in zip(LOOKUP_EDGES, counts, strict=True)]
            self._answer("\n".join([f"# HELP {name} x", f"# TYPE {name} histogram", *rows, ""]))
        elif self.path == "/v1/models":
            self._answer(json.dumps({"data": [{"id": "llama", "owned_by": "vllm"}]}))
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/reset_prefix_cache" and self.forgets:
            self._answer("")
        elif self.path == "/v1/completions":
            prompt = json.loads(body)["prompt"]
            type(self).lookups += 1
            cached = 128 if prompt in self.known else 0
            if self.stores:
                self.known.add(prompt)
            usage: dict[str, Any] = {"prompt_tokens": 150, "completion_tokens": 1}
            if self.tells:
                usage["prompt_tokens_details"] = {"cached_tokens": cached} if cached else {"cached_tokens": None}
            events = [{"choices": [{"text": "a"}]}, {"choices": [], "usage": usage}]
            self._answer("".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")
        else:
            self.send_error(404)

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/plain")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def vllm() -> Iterator[tuple[str, type[Vllm]]]:
    class One(Vllm):
        known: ClassVar[set[str]] = set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), One)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", One
    server.shutdown()
    server.server_close()


def test_each_round_has_a_prompt_of_its_own_and_the_lookups_of_the_rounds_count(vllm: tuple[str, type[Vllm]]) -> None:
    url, server = vllm
    calls: list[tuple[int, int]] = []
    report = run_ttft_bench(url + "/", rounds=3, words=20, progress=lambda done, total: calls.append((done, total)))
    assert len(server.known) == 4
    assert [(row["prompt_tokens"], row["cached_tokens"], row["same_text"]) for row in report["rounds"]] == [(150, 128, True)] * 3
    assert report["ratio"] == report["cold_s"] / report["warm_s"]
    assert report["lookup"] == {"count": 6, "p50_ms": pytest.approx(1.5), "p99_ms": pytest.approx(1.99)}
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert ttft_table(report).row_count == 4


@pytest.mark.parametrize(
    ("lacks", "told"), [("tells", "--enable-prompt-tokens-details"), ("forgets", "VLLM_SERVER_DEV_MODE=1"), ("stores", "/readyz")]
)
def test_a_server_that_cannot_be_measured(vllm: tuple[str, type[Vllm]], lacks: str, told: str) -> None:
    url, server = vllm
    setattr(server, lacks, False)
    with pytest.raises(ServerError, match=told):
        run_ttft_bench(url, rounds=1, words=20, stored_s=0.0)


def test_nobody_there() -> None:
    with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:1: "):
        run_ttft_bench("http://127.0.0.1:1")
