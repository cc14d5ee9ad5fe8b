"""`skymem bench pic`: times until the cache of a prompt is there, with segments from the sky, over emulated links.

The model is a Llama with random weights and about 150 M parameters. The prompt is a few tokens, three segments, and a question.
Torch has one thread. Each link has a sky of its own: one satellite, whose link to the ground the flight code delays and slows
down. So all bytes are packets in real time, each way. One store puts; another one, which has talked to the satellite and looked
up the segments before, fetches. A run that waited for a processor, because of other processes, is repeated; the calmest of three
counts. Once all three were disturbed, nothing more is repeated in that round. The report says what part of the time was waited.

Ways, which take turns in each round:

    full prefill            nothing is asked of the sky
    exact prefix            all full blocks of the prompt come under exact keys; the rest is computed
    serial STRATEGY         all of the segments is loaded; then they are linked
    STRATEGY, m = LAYER     segments are linked while they come, with this switch layer
    auto                    gate and controller choose among the above, but the exact prefix and serial loads

The gate is forced open with made-up evidence for the strategies and switch layers that are measured, and closed for all others,
so that the best open choice is among what is measured. Answers of random weights mean nothing.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from rich.table import Table
from transformers import DynamicCache, LlamaConfig

from skymemory.bench.pic_times import (
    AUTO,
    FULL,
    PREFIX,
    SERIAL,
    Link,
    Point,
    Run,
    aims,
    break_even,
    delayed_sentence,
    delayed_share,
)
from skymemory.common.progress import Progress, no_progress
from skymemory.demo.model import demo_tokenizer, random_llama
from skymemory.prompt.manager import KVCManager
from skymemory.segments.evidence import PromptSize, Sample
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.grid import Option, options
from skymemory.segments.groups import layer_groups
from skymemory.segments.host_list import Segment
from skymemory.segments.linker import Linker
from skymemory.segments.manager import SegmentManager
from skymemory.segments.pieces import Piece, TensorSource
from skymemory.segments.prompt_pieces import PromptPiece
from skymemory.segments.sky_segments import SegmentModel, SkySegments
from skymemory.segments.strategy import Strategy
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port

RATES_MBIT_S: Final = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
ROUND_TRIPS_MS: Final = (5.0, 30.0, 100.0)
CODECS: Final = ("int8", "raw", "int4g32")
ROUNDS: Final = 5
SEGMENTS: Final = 3
SEGMENT_TOKENS: Final = 256
BEGIN_TOKENS: Final = 8
END_TOKENS: Final = 24
STRATEGIES: Final = ("lego:16", "blend:15")
SLOW: Final = 2.0
"""Time relative to a full prefill beyond which a way is measured once: five loads of a minute each would tell no more."""
_DELAYS: Final = Path("/proc/thread-self/schedstat")
_SEED: Final = 7
_STORE_MIB: Final = 256
_DEADLINE_MS: Final = 600_000
_TEACHING: Final = 3
"""Prefills from which the controller learns what computing costs."""


def bench_llama() -> LlamaConfig:
    """Return the sizes of the model: 146 M parameters in 16 layers, 12 heads of 64 channels, 2 of them with keys and values."""
    return LlamaConfig(
        hidden_size=768,
        intermediate_size=3328,
        num_hidden_layers=16,
        num_attention_heads=12,
        num_key_value_heads=2,
        vocab_size=1024,
        max_position_embeddings=8192,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )


@dataclass(frozen=True)
class PicLoad:
    """Sizes and links of one run of the bench."""

    rates_mbit_s: Sequence[float] = RATES_MBIT_S
    """Rates of links, ascending; one link without a limit is measured besides."""
    round_trips_ms: Sequence[float] = ROUND_TRIPS_MS
    """Round trips, ascending."""
    codecs: Sequence[str] = CODECS
    """Codecs. The first is measured with all round trips, the others with the middle one."""
    rounds: int = ROUNDS
    """Runs of each way."""
    segment_tokens: int = SEGMENT_TOKENS
    """Tokens of each segment."""
    block_tokens: int = 128
    """Tokens of a block."""
    tries: int = 3
    """Most runs of which the calmest one counts."""

    def links(self) -> list[tuple[Link, list[str]]]:
        """Return the links, each with its codecs."""
        middle = self.round_trips_ms[len(self.round_trips_ms) // 2]
        limited = [
            (Link(rate, round_trip), list(self.codecs if round_trip == middle else self.codecs[:1]))
            for rate in reversed(self.rates_mbit_s)
            for round_trip in self.round_trips_ms
        ]
        return [(Link(0, 0), list(self.codecs)), *limited]


def run_pic_bench(
    constellation: Constellation,
    load: PicLoad = PicLoad(),
    config: LlamaConfig | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure all links and codecs.

    Args:
        constellation: Its network and satellites' settings are kept; the sky is one satellite.
        load: Sizes and links.
        config: Sizes of the model; None: those of `bench_llama`.
        progress: Called with the number of finished rounds, and of all rounds.

    Returns:
        The object that `--json` prints: the sizes; `points`, each with the `ways` (medians, processor time and all runs), what
        `auto` took, and its ratio to the best open choice; `break_even` (`pic_times.break_even`) and `aims` (`pic_times.aims`).

    Raises:
        StartError: The satellite does not start.
    """
    with _one_thread(), tempfile.TemporaryDirectory(prefix="skymem-pic-") as folder:
        bench = _Bench(load, config or bench_llama(), Path(folder))
        places = load.links()
        total = sum(load.rounds * len(codecs) for _, codecs in places)
        for link, codecs in places:
            sky = _sky(constellation, link)
            with LocalConstellation(sky):
                with SkyStore(sky, tenant_secret=b"") as store:
                    stored = {codec: bench.stored(codec, store) for codec in codecs}
                with SkyStore(sky, tenant_secret=b"") as store:
                    bench.measure(link, stored, store, lambda done: progress(done, total))
        return bench.report()


def pic_points_table(report: dict[str, Any]) -> Table:
    """Return a table of the medians."""
    sizes = f"{report['tokens']:,} tokens, {report['linked_tokens']:,} of them in {report['segments']} segments"
    model = f"{report['parameters'] / 1e6:.0f} M parameters, {report['layers']} layers, one thread"
    table = Table(title=f"{sizes}; {model}\nmedians of {report['rounds']} runs, s")
    table.caption = delayed_sentence(report)
    ways = list(report["points"][0]["ways"])
    table.add_column("codec")
    for column in ("Mbit/s", "round trip, ms", *ways, "auto / best open", "auto took"):
        table.add_column(column, justify="left" if column == "auto took" else "right")
    for point in report["points"]:
        table.add_row(
            point["codec"],
            f"{point['rate_mbit_s']:g}" if point["rate_mbit_s"] else "no limit",
            f"{point['round_trip_ms']:g}",
            *(f"{point['ways'][way]['median_s']:.2f}" for way in ways),
            f"{point['auto_ratio']:.2f}",
            ", ".join(point["auto_choices"]),
        )
    return table


def pic_break_even_table(report: dict[str, Any]) -> Table:
    """Return a table of the rates from which on ways are as fast as a full prefill."""
    table = Table(title="Mbit/s from which on it is as fast as a full prefill")
    table.add_column("codec")
    ways = list(report["break_even"][0]["rates_mbit_s"]) if report["break_even"] else []
    for column in ("round trip, ms", *ways):
        table.add_column(column, justify="right")
    for row in report["break_even"]:
        rates = [_rate_text(rate, row["lowest_mbit_s"]) for rate in row["rates_mbit_s"].values()]
        table.add_row(row["codec"], f"{row['round_trip_ms']:g}", *rates)
    return table


def pic_aims_table(report: dict[str, Any]) -> Table:
    """Return a table of what was aimed at."""
    table = Table(title="aims")
    for column in ("", "measured", "met", "where"):
        table.add_column(column, justify="right" if column == "measured" else "left")
    for row in report["aims"]:
        table.add_row(row["aim"], f"{row['ratio']:.2f}", "yes" if row["met"] else "no", row["where"])
    return table


def _rate_text(rate: float | None, lowest: float) -> str:
    if rate is None:
        return "never"
    return f"<= {rate:g}" if rate <= lowest else f"{rate:g}"


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _sky(constellation: Constellation, link: Link) -> Constellation:
    sky = constellation.replace(
        constellation={"planes": 1, "slots": 1},
        cache={"servers": 1, "parity": 0, "centre": [1, 1], "window": "logical", "uplink": "window", "deadline_ms": _DEADLINE_MS},
        satellite={"store_mib": _STORE_MIB},
        links={
            "model": "off",
            "delay_us": round(link.round_trip_ms * 500),
            "jitter_us": 0,
            "rate_kbps": round(link.rate_mbit_s * 1000),
            "loss_ppm": 0,
            "override": [],
        },
    )
    return sky.replace(network={"port": free_port(sky)})


@dataclass(frozen=True)
class _Stored:
    """Contents of a sky for one codec."""

    segments: list[Segment]
    prompt: list[int]
    """Prompt whose full blocks it has under exact keys."""


class _Bench:
    """Model, prompt and what was measured. Managers are kept from link to link, as the controller knows what computing costs."""

    def __init__(self, load: PicLoad, config: LlamaConfig, folder: Path) -> None:
        self._load = load
        self._folder = folder
        self._model = random_llama(config, seed=_SEED)
        self._tokenizer = demo_tokenizer()
        self._linker = Linker(self._model)
        draw = random.Random(_SEED)

        def ids(count: int) -> list[int]:
            return [draw.randrange(2, config.vocab_size) for _ in range(count)]

        self._documents = [ids(load.segment_tokens) for _ in range(SEGMENTS)]
        self._begin, self._end, other_begin = ids(BEGIN_TOKENS), ids(END_TOKENS), ids(BEGIN_TOKENS)
        inside = [token for document in self._documents for token in document]
        self._prompt = [*self._begin, *inside, *self._end]
        self._other_prompt = [*other_begin, *inside, *self._end]
        self._tensors = [self._linker.compute(document) for document in self._documents]
        self._other_cache: DynamicCache | None = None
        self._groups = layer_groups(self._linker.layers)
        self._options = _open_options(self._groups)
        self._managers: dict[str, tuple[KVCManager, SegmentManager]] = {}
        self._points: list[Point] = []
        self._sizes: dict[str, int] = {}
        self._done = 0

    def stored(self, codec: str, store: SkyStore) -> _Stored:
        """Put the segments, and the exact blocks of a prompt with another beginning."""
        manager, _ = self._manager(codec, store)
        sky = self._sky_segments(manager)
        segments = [sky.put(*one) for one in zip(self._documents, self._tensors, strict=True)]
        if self._other_cache is None:
            self._other_cache = manager.engine.prefill(self._other_prompt)
        manager.add_blocks(self._other_prompt, self._other_cache)
        self._sizes[codec] = sum(segment.size_bytes for segment in segments)
        return _Stored(segments, self._other_prompt)

    def measure(self, link: Link, stored: dict[str, _Stored], store: SkyStore, progress: Callable[[int], None]) -> None:
        """Measure all ways of all codecs over one link, in turn."""
        points = {codec: Point(link, codec) for codec in stored}
        ways = {codec: self._ways(codec, one, store) for codec, one in stored.items()}
        for number in range(self._load.rounds):
            tries = self._load.tries
            for codec, point in points.items():
                of_codec = list(ways[codec].items())
                start = number % len(of_codec)  # `auto` is last in the first round: it has learned the link then
                for way, run in of_codec[start:] + of_codec[:start]:
                    runs = point.runs.setdefault(way, [])
                    if number == 0 or runs[0].seconds <= SLOW * point.runs[FULL][0].seconds:
                        runs.append(calmest := _calm(run, tries))
                        tries = 1 if calmest.is_disturbed else tries
                self._done += 1
                progress(self._done)
        self._points += points.values()

    def report(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "parameters": sum(weight.numel() for weight in self._model.parameters()),
            "layers": self._linker.layers,
            "tokens": len(self._prompt),
            "segments": SEGMENTS,
            "linked_tokens": SEGMENTS * self._load.segment_tokens,
            "segment_bytes": self._sizes,
            "rounds": self._load.rounds,
            "delayed_share": round(delayed_share(self._points), 3),
            "points": [point.row() for point in self._points],
            "break_even": break_even(self._points),
            "aims": aims(self._points),
        }

    # ---- ways -------------------------------------------------------------------------------------------------------

    def _ways(self, codec: str, stored: _Stored, store: SkyStore) -> dict[str, Callable[[], str]]:
        """Return functions that make the prompt's cache, by way; they return what was chosen. The last one is `auto`."""
        manager, segments = self._manager(codec, store)
        sky = self._sky_segments(manager)
        for segment in stored.segments:
            segments.get(segment.id)  # as a host that has linked them before knows their tokens
        pieces: list[PromptPiece] = [self._begin, *stored.segments, self._end]

        def full() -> str:
            manager.engine.prefill(self._prompt[:-1])
            return ""

        def prefix() -> str:
            cache = manager.get_cache(stored.prompt)
            in_blocks = len(stored.prompt) // self._load.block_tokens * self._load.block_tokens
            if cache.get_seq_length() < min(in_blocks, len(stored.prompt) - 1):
                raise RuntimeError(f"{codec}: the sky gave {cache.get_seq_length()} of {len(stored.prompt)} tokens")
            manager.engine.prefill(stored.prompt[:-1], cache)
            return ""

        def serial(option: Option) -> str:
            manager.get_cache(self._prompt)  # looks for an exact prefix, as linking does
            starts = [BEGIN_TOKENS + number * self._load.segment_tokens for number in range(SEGMENTS)]
            loaded = self._loaded(sky, stored.segments, starts)
            self._linker.link(self._prompt, loaded, option.strategy, switch_layer=option.switch_layer)
            return ""

        def linked(option: Option) -> str:
            report = segments.link(pieces, str(option.strategy), switch_layer=option.switch_layer).report
            if report.why:
                raise RuntimeError(f"{codec}, {option}: {report.why}")
            return ""

        def auto() -> str:
            report = segments.link(pieces).report
            chosen = report.switch_layer < self._linker.layers
            return _name(Option(report.strategy, report.switch_layer)) if chosen else FULL

        shallow = [min((one for one in self._options if str(one.strategy) == word), key=_switch) for word in STRATEGIES]
        return {
            FULL: full,
            PREFIX: prefix,
            **{f"{SERIAL}{one.strategy}": partial(serial, one) for one in shallow},
            **{_name(one): partial(linked, one) for one in self._options},
            AUTO: auto,
        }

    def _loaded(self, sky: SkySegments, segments: Sequence[Segment], starts: Sequence[int]) -> list[Piece]:
        """Load segments as a whole, and return them as pieces of the prompt."""
        with sky.fetch(list(sky.get_all([segment.id for segment in segments]).values())) as fetch:
            return [
                Piece(start + part.first, part.tokens, TensorSource(self._whole(part.layer)), first=part.first)
                for start, parts in zip(starts, fetch.parts, strict=True)
                for part in parts
            ]

    def _whole(self, layer: Callable[[int], torch.Tensor | None]) -> torch.Tensor:
        layers = [layer(index) for index in range(1, self._linker.layers)]
        came = [one for one in layers if one is not None]
        if len(came) < len(layers):
            raise RuntimeError("a layer of a segment did not come")
        return torch.stack(came)

    # ---- managers ---------------------------------------------------------------------------------------------------

    def _manager(self, codec: str, store: SkyStore) -> tuple[KVCManager, SegmentManager]:
        if codec not in self._managers:
            block_tokens = self._load.block_tokens
            manager = KVCManager(self._model, self._tokenizer, store, codec=codec, block_tokens=block_tokens)
            gate = self._gate(codec, manager.fingerprint())
            # No request is computed twice beside those that are measured
            segments = SegmentManager(manager, gate=gate, folder=self._folder, is_canary=lambda _: False)
            for number in range(_TEACHING):
                segments.link([self._prompt[: len(self._prompt) * (number + 1) // _TEACHING]], "exact")
            self._managers[codec] = manager, segments
        manager, segments = self._managers[codec]
        manager.use(store)
        return manager, segments

    def _sky_segments(self, manager: KVCManager) -> SkySegments:
        engine = manager.engine
        return SkySegments(
            manager.store,
            SegmentModel(manager.fingerprint, engine.geometry, engine.vocabulary),
            codec=manager.codec,
            block_tokens=manager.block_tokens,
            tenant_secret=manager.tenant_secret,
            folder=self._folder,
        )

    def _gate(self, codec: str, fingerprint: bytes) -> Gate:
        """Return a gate that is open for the options alone, with made-up evidence."""
        gate = Gate("bench")
        size = PromptSize(len(self._documents), self._load.segment_tokens, len(self._prompt))
        for option in self._options:
            point = option.point(fingerprint.hex(), codec, self._load.block_tokens)
            for _ in range(PROMPTS_MIN):
                gate.checked(point, Sample(0.0, 1.0), size)
            for _ in range(POWER_PROMPTS_MIN):
                gate.checked_shuffled(point, Sample(5.0, 0.0))
        return gate


def _open_options(groups: Sequence[range]) -> list[Option]:
    """Return the strategies, each with the lowest and the middle switch layer of the grid."""
    found = []
    for word in STRATEGIES:
        grid = options([Strategy.parse(word)], groups)
        middle = groups[len(groups) // 2].start
        found += [grid[0], *(one for one in grid[1:] if one.first_loaded == middle)]
    return found


def _switch(option: Option) -> int:
    return option.switch_layer


def _name(option: Option) -> str:
    return f"{option.strategy}, m = {option.switch_layer}"


def _calm(run: Callable[[], str], tries: int) -> Run:
    """Return the calmest of some runs: the first one that other processes did not disturb, or the least disturbed one."""
    runs: list[Run] = []
    while len(runs) < tries and all(one.is_disturbed for one in runs):
        runs.append(_timed(run))
    return min(runs, key=lambda one: one.delayed_s / one.seconds)


def _timed(run: Callable[[], str]) -> Run:
    begin_s, begin_cpu_s, begin_delayed_s = time.perf_counter(), time.process_time(), _delayed_s()
    choice = run()
    delayed_s = _delayed_s() - begin_delayed_s
    return Run(time.perf_counter() - begin_s, time.process_time() - begin_cpu_s, delayed_s, choice)


def _delayed_s() -> float:
    """Return for how long this thread could have run, but other processes had the processors; 0 if the system does not tell."""
    try:
        return int(_DELAYS.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
