"""`skymem bench ttft`: measures seconds to the first token of an OpenAI-compatible server, without and with the cache.

Each round has a prompt that nobody has asked before. It is computed (cold), stored, and asked again (warm). In between the
server forgets its own memory (`/reset_prefix_cache` of vLLM), so what it reports as cached must have come from the sky. A warm
answer counts only if some of it was cached; whether it is the same text is reported.
"""

import asyncio
import json
import secrets
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import cycle, islice
from typing import Any, Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table

from skymemory.bench.peer_servers import ServerError
from skymemory.common.progress import Progress, no_progress

_LOOKUP: Final = "vllm:skymemory_lookup_seconds"
_NEW_TOKENS: Final = 8
STORED_S: Final = 60.0
"""Seconds in which the sky must have the blocks of a cold prompt."""
_PAUSE_S: Final = 0.5
_ANSWER_S: Final = 1800.0
_REFUSED: Final = 400


@dataclass(frozen=True, slots=True)
class _Answer:
    first_token_s: float
    text: str
    prompt_tokens: int
    cached_tokens: int


def run_ttft_bench(
    url: str,
    *,
    rounds: int = 5,
    words: int = 1400,
    api_key: str = "-",
    progress: Progress = no_progress,
    stored_s: float = STORED_S,
) -> dict[str, Any]:
    """Measure a server that is up, with its agent and its satellites.

    Args:
        url: The server's address, without `/v1`.
        rounds: Measured prompts, after one that is not measured.
        words: Length of a prompt; its text is the shipped document.
        api_key: The server's key, if it wants one.
        progress: Called with the number of finished rounds, and of all rounds.
        stored_s: Seconds after which a prompt of which nothing comes from the sky is an error.

    Returns:
        The object that `--json` prints: `model`; `rounds`, each with `prompt_tokens`, `cached_tokens`, `cold_s`, `warm_s` and
        `same_text`; the medians `cold_s` and `warm_s`, and `ratio`, cold to warm; and `lookup`, None unless the server is a
        vLLM with our connector, else `count`, and the quantiles `p50_ms` and `p99_ms` of its histogram (interpolated within
        a bucket).

    Raises:
        ServerError: The server cannot be asked, does not tell what was cached, or finds nothing in the sky in time.
    """
    return asyncio.run(_run(url.rstrip("/"), rounds, words, api_key, progress, stored_s))


def ttft_table(report: dict[str, Any]) -> Table:
    """Return a table of the report of `run_ttft_bench`."""
    table = Table(title=f"{report['model']}: seconds to the first token")
    for column in ("tokens", "from the sky", "cold", "warm", "cold / warm", "same text"):
        table.add_column(column, justify="right")
    for row in report["rounds"]:
        table.add_row(*_cells(row), "yes" if row["same_text"] else "no")
    table.add_row("median", "", f"{report['cold_s']:.3f}", f"{report['warm_s']:.3f}", f"{report['ratio']:.1f}", "", style="bold")
    lookup = report["lookup"]
    if lookup is not None:
        table.caption = f"{lookup['count']} lookups: p50 {lookup['p50_ms']:.2f} ms, p99 {lookup['p99_ms']:.2f} ms"
    return table


def _cells(row: dict[str, Any]) -> list[str]:
    times = [f"{row['cold_s']:.3f}", f"{row['warm_s']:.3f}", f"{row['cold_s'] / row['warm_s']:.1f}"]
    return [f"{row['prompt_tokens']:,}", f"{row['cached_tokens']:,}", *times]


async def _run(url: str, rounds: int, words: int, api_key: str, progress: Progress, stored_s: float) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api_key}"}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=_ANSWER_S)) as session:
        try:
            server = _Server(session, url)
            server.model = str((await server.describe())["id"])
            await _round(server, words, stored_s)  # kernels and connections are slow only once
            before = await server.lookups()
            rows = []
            for done in range(rounds):
                rows.append(await _round(server, words, stored_s))
                progress(done + 1, rounds)
            after = await server.lookups()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServerError(f"{url}: {error or 'no answer in time'}") from error
    cold, warm = (statistics.median(row[name] for row in rows) for name in ("cold_s", "warm_s"))
    lookup = _quantiles({edge: after[edge] - before.get(edge, 0.0) for edge in after}) if after else None
    return {"model": server.model, "rounds": rows, "cold_s": cold, "warm_s": warm, "ratio": cold / warm, "lookup": lookup}


async def _round(server: "_Server", words: int, stored_s: float) -> dict[str, Any]:
    prompt = _prompt(words)
    cold = await server.complete(prompt)
    if cold.cached_tokens:
        raise ServerError(
            f"{server.url}: the server says that it had {cold.cached_tokens} tokens of a new prompt in its cache; allowed are 0"
        )
    end_s = time.monotonic() + stored_s
    while True:
        await server.forget()
        warm = await server.complete(prompt)
        if warm.cached_tokens:
            break
        if time.monotonic() > end_s:
            raise ServerError(
                f"{server.url}: nothing of a prompt of {cold.prompt_tokens} tokens came from the sky within {stored_s:.0f} s: "
                "is it longer than a block, and the server switched to SkyMemory? Its log and the agent's /readyz say more"
            )
        await asyncio.sleep(_PAUSE_S)  # a prompt is stored after its answer
    return {
        "prompt_tokens": cold.prompt_tokens,
        "cached_tokens": warm.cached_tokens,
        "cold_s": cold.first_token_s,
        "warm_s": warm.first_token_s,
        "same_text": warm.text == cold.text,
    }


def _prompt(words: int) -> str:
    document = files("skymemory.demo").joinpath("handbook.txt").read_text(encoding="utf-8").split()
    return " ".join([secrets.token_hex(8), *islice(cycle(document), words)])


class _Server:
    """A server that is asked one thing at a time."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.url = url
        self.model = ""
        self._session = session

    async def describe(self) -> dict[str, Any]:
        """Return what the server says about its model."""
        async with self._asked("GET", "/v1/models") as answer:
            return dict((await answer.json())["data"][0])

    async def complete(self, prompt: str) -> _Answer:
        """Generate greedily; return the answer, and when its first token came."""
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": _NEW_TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        begin_s = time.perf_counter()
        first_s, texts, usage = 0.0, [], None
        async with self._asked("POST", "/v1/completions", json=body) as answer:
            async for event in _events(answer):
                if event.get("choices") and not first_s:
                    first_s = time.perf_counter() - begin_s
                texts += [choice["text"] for choice in event.get("choices", ())]
                usage = event.get("usage") or usage
        if not first_s or usage is None:
            raise ServerError(f"{self.url}: the answer has no tokens or no usage; it must have both")
        details = usage.get("prompt_tokens_details")
        if details is None:
            raise ServerError(f"{self.url} does not tell what was cached: start vLLM with --enable-prompt-tokens-details")
        return _Answer(first_s, "".join(texts), usage["prompt_tokens"], details.get("cached_tokens") or 0)

    async def forget(self) -> None:
        """Make the server drop what it keeps in its own memory."""
        async with self._session.post(f"{self.url}/reset_prefix_cache") as answer:
            if answer.status < _REFUSED:
                return
        if (await self.describe()).get("owned_by") != "skymemory":  # `skymem serve` keeps nothing
            raise ServerError(
                f"{self.url}/reset_prefix_cache: {answer.status} {answer.reason}: what comes from the sky cannot be told from "
                "the server's own cache; start vLLM with VLLM_SERVER_DEV_MODE=1 in its environment"
            )

    async def lookups(self) -> dict[float, float]:
        """Return how many of vLLM's lookups took at most so many seconds; an empty dict if the server has none."""
        async with self._session.get(f"{self.url}/metrics") as answer:
            text = await answer.text() if answer.status < _REFUSED else ""
        counts: dict[float, float] = {}
        for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
            if sample.name == f"{_LOOKUP}_bucket":
                edge = float(sample.labels["le"])
                counts[edge] = counts.get(edge, 0.0) + sample.value  # sum over all engines
        return counts

    @asynccontextmanager
    async def _asked(self, method: str, path: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._session.request(method, f"{self.url}{path}", **options) as answer:
            if answer.status >= _REFUSED:
                raise ServerError(f"{self.url}{path}: {answer.status} {answer.reason}: {(await answer.text())[:200]}")
            yield answer


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        data = line.strip().removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def _quantiles(counts: dict[float, float]) -> dict[str, float] | None:
    """Return quantiles of a histogram's cumulated counts by upper edge, as Prometheus' histogram_quantile does."""
    total = counts.get(float("inf"), 0.0)
    if not total:
        return None

    def at(share: float) -> float:
        below, low = 0.0, 0.0
        for edge, count in sorted(counts.items()):
            if count >= share * total:
                return low if edge == float("inf") else low + (edge - low) * (share * total - below) / (count - below)
            below, low = count, edge
        return low

    return {"count": int(total), "p50_ms": at(0.5) * 1e3, "p99_ms": at(0.99) * 1e3}
