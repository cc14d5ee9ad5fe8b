"""Traces of gets: in memory, and over OTLP/HTTP to a receiver that decodes them."""

import asyncio
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from skymemory.agent.constellation_source import FixedSource
from skymemory.agent.shared_sky import SharedSky
from skymemory.agent.tracing import Origin, Tracing
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.spread import shares_of
from support.waiting import wait_until, wait_until_async

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
BLOCK = 100_000
StartSky = Callable[..., LocalConstellation]


def traced(local: LocalConstellation, use: Callable[[SharedSky], Any]) -> list[ReadableSpan]:
    """Spans of what `use` does with an agent's sky."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def run() -> None:
        sky = SharedSky(FixedSource(local.constellation), CollectorRegistry(), Tracing(provider))
        await sky.start()
        try:
            await wait_until_async(lambda: sky.reachable)
            await use(sky)
        finally:
            await sky.close()

    asyncio.run(run())
    return list(exporter.get_finished_spans())


async def put_some(sky: SharedSky, count: int) -> list[bytes]:
    items = [(random.randbytes(32), random.randbytes(BLOCK)) for _ in range(count)]
    assert all(result.ok for result in await sky.put(items))
    return [key for key, _ in items]


def named(spans: list[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def check_inside(spans: list[ReadableSpan]) -> None:
    """Children lie within their parents, and every parent but the engine's is there."""
    by_id = {span.context.span_id: span for span in spans}
    for span in spans:
        assert span.start_time <= span.end_time
        if span.parent is not None and span.parent.span_id in by_id:
            parent = by_id[span.parent.span_id]
            assert parent.start_time <= span.start_time
            assert span.end_time <= parent.end_time + 1000, (parent.name, span.name)  # microseconds were rounded


def test_a_get_with_all_its_parts(full_sky: LocalConstellation) -> None:
    data = full_sky.constellation.cache.servers - full_sky.constellation.cache.parity
    servers: set[Satellite] = set()

    async def use(sky: SharedSky) -> None:
        keys = await put_some(sky, 3)
        servers.update(*(shares_of(full_sky.constellation, key, BLOCK)[:data] for key in keys))  # those with data are asked
        await sky.get([*keys, random.randbytes(32)], origin=Origin(TRACEPARENT))

    spans = traced(full_sky, use)
    (get,) = named(spans, "skymem.get")
    assert f"{get.context.trace_id:032x}" == TRACE
    assert get.parent is not None
    assert f"{get.parent.span_id:016x}" == SPAN
    assert get.attributes == {"skymem.blocks": 4, "skymem.hits": 3}
    (transfer,) = named(spans, "skymem.transfer")
    assert transfer.attributes == {"skymem.blocks": 3, "skymem.bytes": 3 * BLOCK, "skymem.chunks": 3 * 17}
    for name in ("skymem.lookup", "skymem.transfer"):
        (one,) = named(spans, name)
        assert one.parent is not None
        assert one.parent.span_id == get.context.span_id
    bursts = named(spans, "skymem.burst")
    assert len({burst.attributes["skymem.satellite"] for burst in bursts if burst.attributes}) == len(bursts) == len(servers)
    for burst in bursts:
        assert burst.attributes is not None
        assert burst.parent is not None
        assert burst.parent.span_id == transfer.context.span_id
        assert re.fullmatch(r"\d+\.\d+", str(burst.attributes["skymem.satellite"]))
        assert burst.start_time < burst.end_time
        assert [event.name for event in burst.events] == ["first answer"]
    assert sum(int(burst.attributes["skymem.bytes"]) for burst in bursts if burst.attributes) == 3 * BLOCK
    (reassembly,) = named(spans, "skymem.reassembly")
    assert reassembly.start_time == max(burst.end_time for burst in bursts)
    check_inside(spans)


def test_gets_at_once_have_traces_of_their_own(full_sky: LocalConstellation) -> None:
    async def use(sky: SharedSky) -> None:
        keys = await put_some(sky, 6)
        await asyncio.gather(*(sky.get([key]) for key in keys), sky.get([keys[0]]))

    spans = traced(full_sky, use)
    gets = named(spans, "skymem.get")
    assert len({get.context.trace_id for get in gets}) == len(gets) == 7
    ids = {get.context.span_id for get in gets}
    fetchers = {transfer.parent.span_id for transfer in named(spans, "skymem.transfer") if transfer.parent}
    assert len(fetchers) == 6  # equal gets are one
    assert fetchers < ids
    check_inside(spans)


def test_a_get_of_nothing_that_is_there(full_sky: LocalConstellation) -> None:
    async def use(sky: SharedSky) -> None:
        await sky.get([random.randbytes(32)], origin=Origin("nonsense"))

    spans = traced(full_sky, use)
    (get,) = named(spans, "skymem.get")
    assert get.parent is None
    assert get.attributes == {"skymem.blocks": 1, "skymem.hits": 0}
    assert not named(spans, "skymem.burst")


def test_a_lost_satellite_is_seen_in_its_burst(start_sky: StartSky) -> None:
    local = start_sky(cache={"parity": 0, "deadline_ms": 2000})
    victim = local.constellation.cache.centre

    async def use(sky: SharedSky) -> None:
        keys = await put_some(sky, 1)
        local.kill(victim)
        await sky.get(keys)

    spans = traced(local, use)
    assert len(named(spans, "skymem.get")) == 1
    first = named(spans, "skymem.transfer")[0]
    bursts = [span for span in named(spans, "skymem.burst") if span.parent and span.parent.span_id == first.context.span_id]
    silent = [burst for burst in bursts if not burst.events]
    assert [burst.attributes["skymem.satellite"] for burst in silent if burst.attributes] == [f"{victim.plane}.{victim.slot}"]
    check_inside(spans)


def test_what_was_taken_belongs_to_its_get_once_and_only_of_late() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider)
    for tag in range(2000):
        tracing.got(Origin("", tag), [], 2, [], 3)
    exporter.clear()
    for tag in (1999, 1999, 0, "nobody"):
        tracing.taken(tag, 4, 5)
    assert [span.name for span in exporter.get_finished_spans()] == ["skymem.decode"]


# ---- configured by the environment -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nobody_wants_traces(environment: dict[str, str]) -> None:
    assert Tracing.from_environment(environment) is None


@contextmanager
def receiver() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector: its address, and what it was sent to /v1/traces."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf":
                received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_request(self, *args: object) -> None:
            """Say nothing of it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()


def one_get(agent: AgentProcess, traceparent: str = "") -> None:
    with agent.client(block_bytes=BLOCK) as client:
        assert client.wait_connected(60)
        lease = client.lease(BLOCK)
        assert lease is not None
        blocks = [(random.randbytes(32), lease)]
        assert client.put(blocks).result(60)[0].ok
        assert client.get(blocks, traceparent).result(60)[0].ok
        lease.release()
        assert client.find([blocks[0][0]]).result(60).blocks == 1  # what was said before has arrived as well


def test_an_agent_exports_over_otlp(full_sky: LocalConstellation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as (address, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        tell_up(tmp_path, full_sky)
        with AgentProcess(tmp_path) as agent:
            agent.wait_ready()
            one_get(agent, TRACEPARENT)
        resources = [spans for request in received for spans in request.resource_spans]  # its end has sent what was left
    told = {(attribute.key, attribute.value.string_value) for one in resources for attribute in one.resource.attributes}
    assert ("service.name", "skymemory-agent") in told
    spans = [span for one in resources for scope in one.scope_spans for span in scope.spans if span.trace_id.hex() == TRACE]
    assert {span.name for span in spans} == {
        *("skymem.get", "skymem.lookup", "skymem.transfer", "skymem.burst", "skymem.reassembly", "skymem.decode")
    }
    (get,) = [span for span in spans if span.name == "skymem.get"]
    assert get.parent_span_id.hex() == SPAN
    (decode,) = [span for span in spans if span.name == "skymem.decode"]
    assert decode.parent_span_id == get.span_id
    assert get.start_time_unix_nano < decode.start_time_unix_nano <= decode.end_time_unix_nano
    cache = full_sky.constellation.cache
    assert sum(span.name == "skymem.burst" for span in spans) == cache.servers - cache.parity


def test_a_collector_that_is_away_holds_up_nobody(
    full_sky: LocalConstellation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    tell_up(tmp_path, full_sky)
    with AgentProcess(tmp_path) as agent:
        agent.wait_ready()
        one_get(agent)
        agent.child.terminate()
        wait_until(lambda: agent.child.poll() is not None, "it ends all the same")
        assert agent.child.returncode == 0


def test_without_an_exporter_nothing_is_made(full_sky: LocalConstellation, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    made = []
    monkeypatch.setattr(Tracing, "got", lambda *args: made.append(args))  # that nothing is done cannot be seen from outside

    async def use() -> None:
        sky = SharedSky(FixedSource(full_sky.constellation), CollectorRegistry(), Tracing.from_environment())
        await sky.start()
        await wait_until_async(lambda: sky.reachable)
        assert all(result.ok for result in await sky.get(await put_some(sky, 2)))
        await sky.close()

    asyncio.run(use())
    assert not made
