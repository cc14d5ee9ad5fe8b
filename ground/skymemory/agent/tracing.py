"""OpenTelemetry traces of a get: how long each satellite took. A get that waited for an equal one has no transfer.

    skymem.get            from the request on; child of the engine's span, if that said which
      skymem.lookup       which blocks, and where: the index, or satellites
      skymem.transfer     blocks that were fetched at once; a get of many blocks has several
        skymem.burst      of one satellite, from its first request to its last answer
        skymem.reassembly from the last answer of all: chunks are where they belong as they come, so little is left to do
      skymem.decode       the engine checks digests and copies to its tensors: from the answer until it released all memory

Spans are made when a get has ended, from times that were taken anyway. Where no exporter is configured nothing is made at all.
Configured as everywhere: `OTEL_EXPORTER_OTLP_ENDPOINT` switches it on, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` and the others
mean what they mean elsewhere. It needs the extra `tracing`.
"""

import logging
import os
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from threading import Lock
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from skymemory.common.extras import how_to_install
from skymemory.link.operations import Served
from skymemory.store.results import GetResult
from skymemory.store.runner import Moved
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)

SERVICE: Final = "skymemory-agent"
_FLUSH_MS: Final = 2000
_GETS_MAX: Final = 1024
"""Gets of which the engine has not yet taken what came."""
_PROPAGATOR: Final = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a request."""

    traceparent: str = ""
    """Trace context of its parent span (W3C); empty: none."""
    tag: Hashable = None
    """Tag by which `Tracing.taken` will name it."""


NOWHERE: Final = Origin()


class Tracing:
    """Makes the spans. Thread-safe."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("skymemory", version("skymemory"))
        self._provider = provider
        self._lock = Lock()
        self._gets: OrderedDict[Hashable, NonRecordingSpan] = OrderedDict()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Tracing | None":
        """Return tracing as the variables `OTEL_*` set it; None if they ask for no traces or the SDK is not installed."""
        endpoints = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        wanted = any(environment.get(name) for name in endpoints) or environment.get("OTEL_TRACES_EXPORTER", "") == "otlp"
        if (
            not wanted
            or environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
            or environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
        ):
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import SERVICE_NAME, Resource
            from opentelemetry.sdk.trace import TracerProvider as SdkProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            _log.warning("traces are wanted (OTEL_*), but %s", how_to_install("the SDK", "tracing"))
            return None
        # This is the default, before which the service name of the environment counts.
        named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = SdkProvider(resource=Resource.create({} if named else {SERVICE_NAME: SERVICE}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def close(self) -> None:
        """Export what is left, for some seconds."""
        provider = self._provider
        if hasattr(provider, "force_flush") and hasattr(provider, "shutdown"):
            provider.force_flush(_FLUSH_MS)
            provider.shutdown()

    def got(self, origin: Origin, results: Sequence[GetResult], began_ns: int, moves: Sequence[Moved], ended_ns: int) -> None:
        """Note that a get has ended. Times are nanoseconds since 1970.

        Args:
            origin: Origin of the request.
            results: Results of the get.
            began_ns: Time of the request.
            moves: Blocks that were moved together, in the order of time.
            ended_ns: Time of the answer.
        """
        span = self._tracer.start_span(
            "skymem.get",
            context=_PROPAGATOR.extract({"traceparent": origin.traceparent}, Context()),
            kind=SpanKind.SERVER,
            start_time=began_ns,
        )
        if span.is_recording():
            span.set_attribute("skymem.blocks", len(results))
            span.set_attribute("skymem.hits", sum(result.ok for result in results))
            self._moved(trace.set_span_in_context(span), began_ns, moves)
        span.end(ended_ns)
        if origin.tag is not None:
            self._remember(origin.tag, span)

    def taken(self, tag: Hashable, began_ns: int, ended_ns: int) -> None:
        """Note that an engine has checked and copied what a late get brought, at times of its own on the same clock."""
        with self._lock:
            get = self._gets.pop(tag, None)
        if get is not None:
            self._span("skymem.decode", trace.set_span_in_context(get, Context()), began_ns, ended_ns)

    def _remember(self, tag: Hashable, span: Span) -> None:
        with self._lock:
            self._gets[tag] = NonRecordingSpan(span.get_span_context())
            while len(self._gets) > _GETS_MAX:
                self._gets.popitem(last=False)

    def _moved(self, here: Context, began_ns: int, moves: Sequence[Moved]) -> None:
        if moves:
            self._span("skymem.lookup", here, began_ns, moves[0].call.started_ns)
        for move in moves:
            call = move.call
            transfers = move.transfers
            attributes = {
                "skymem.blocks": len(transfers),
                "skymem.bytes": sum(transfer.bytes for transfer in transfers),
                "skymem.chunks": sum(transfer.chunks for transfer in transfers),
            }
            span = self._tracer.start_span("skymem.transfer", here, attributes=attributes, start_time=call.started_ns)
            inside = trace.set_span_in_context(span)
            last_ns = call.started_ns
            for one in call.served:
                last_ns = max(last_ns, self._burst(inside, call.started_ns, one))
            self._span("skymem.reassembly", inside, last_ns, call.ended_ns)
            span.end(call.ended_ns)

    def _burst(self, here: Context, started_ns: int, one: Served) -> int:
        """Add the span of one satellite's work in a call, and return its end, Unix time in ns."""
        asked_ns = started_ns + _ns(one.asked_s)
        ended_ns = asked_ns if one.last_s is None else started_ns + _ns(one.last_s)
        attributes: dict[str, str | int | float] = {
            "skymem.satellite": _name(one.satellite),
            "skymem.entry": _name(one.entry),
            "skymem.chunks": one.chunks,
            "skymem.bytes": one.bytes,
            "skymem.requests": one.requests,
            "skymem.repeats": one.repeats,
        }
        if one.rtt_s is not None:
            attributes["skymem.rtt"] = one.rtt_s
        span = self._tracer.start_span("skymem.burst", here, SpanKind.CLIENT, attributes, start_time=asked_ns)
        if one.first_s is not None:
            span.add_event("first answer", timestamp=started_ns + _ns(one.first_s))
        span.end(ended_ns)
        return ended_ns

    def _span(self, name: str, here: Context, start_ns: int, end_ns: int) -> None:
        self._tracer.start_span(name, here, start_time=start_ns).end(max(start_ns, end_ns))


def _ns(seconds: float | None) -> int:
    return round((seconds or 0.0) * 1e9)


def _name(satellite: Satellite) -> str:
    """Return `plane.slot`, as in addresses."""
    return f"{satellite.plane}.{satellite.slot}"
