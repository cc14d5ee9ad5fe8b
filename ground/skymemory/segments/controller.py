"""Controller: which strategy and switch layer, how long to wait for each layer group, or a full prefill.

Loading begins at once and goes upward from the switch layer m, while the layers below m are computed in full. So the round trip
and the first groups' transfer cost nothing, and these layers are exact. Above m a layer's rows are computed when it has come, so
the larger one of computing and loading counts (CacheBlend, section 5). Of all allowed options that take about as long as the
fastest one, the controller takes the one that computes most: what loading hides is free (section 5.1).

    computing   rows, rows x keys that they attend to, layers, linked tokens that are turned and put in their places
    loading     megabytes since the loading began, 1 (the round trip)
    decoding    megabytes

Costs of these are learned as they are measured, apart for small and for large work. Small loads tell nothing of a large one,
which is tried if none was measured. What is known of loading fades after a minute
without any, until loading looks worth a try.

A group that is late is waited for until a full prefill from m on would end as early as linking would if the group came then, but
never so long that the whole takes more than twice as long as a full prefill: that is what a silent sky costs at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from skymemory.common.fit import SizedFit
from skymemory.segments.grid import Option
from skymemory.segments.strategy import Kind, Strategy

HIDDEN: Final = 1.02
"""Time, relative to the fastest option, within which one that computes more rows is taken."""
FADE_S: Final = 60.0
"""Time without loading after which what is known of it begins to fade, and time in which it halves then."""
_FADES_MAX: Final = 60.0
LARGE_TOKENS: Final = 256
"""Tokens behind the prefix, computed or linked, from which computing is large work."""
LARGE_BYTES: Final = 1 << 16
"""Bytes from which loading and decoding are."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a model and a codec that times depend on."""

    layers: int
    """Number of layers."""
    groups: tuple[range, ...]
    """Layers of each layer group, in order; layer 0 is in none."""
    token_bytes: float
    """Bytes that a token has in one layer of a segment's blocks."""
    projection_share: float
    """Share of a row's work in a layer, without attention, that its key and value are."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt to make a cache of. Its last token is not among the tokens."""

    tokens: int
    """Tokens of the prompt."""
    linked_tokens: int
    """Tokens of segments behind the exact prefix."""
    segments: int
    """Number of these segments, without one at position 0."""
    prefix_tokens: int = 0
    """Tokens at the beginning that are found under exact keys."""
    prefix_bytes: int = 0
    """Bytes to load for them; 0 if they are at hand."""
    ahead_layers: int = 0
    """First layers of which all rows are computed already."""

    def __post_init__(self) -> None:
        if min(self.prefix_tokens, self.linked_tokens) < 0 or self.prefix_tokens + self.linked_tokens > self.tokens:
            behind = f"{self.prefix_tokens} and {self.linked_tokens} linked tokens behind"
            raise ValueError(f"a prompt of {self.tokens} tokens has no prefix of {behind}")


@dataclass(frozen=True, slots=True)
class Work:
    """Work of the model, added up over layers."""

    layers: float = 0
    """Number of layers."""
    rows: float = 0
    """Rows; one of which only key and value are computed counts as their share."""
    row_keys: float = 0
    """Pairs of a row and a key that it attends to."""
    placed: float = 0
    """Linked tokens that are turned to their positions."""

    def __add__(self, other: Work) -> Work:
        return Work(
            self.layers + other.layers, self.rows + other.rows, self.row_keys + other.row_keys, self.placed + other.placed
        )

    @property
    def tokens(self) -> float:
        """Return about how many tokens a layer computed or linked."""
        return (self.rows + self.placed) / self.layers if self.layers else 0.0

    @property
    def features(self) -> tuple[float, ...]:
        """Return these in units that make small numbers of them; what is likeliest to cost time comes first."""
        return self.rows / 1e3, self.row_keys / 1e6, self.layers, self.placed / 1e3


def full_work(shape: Shape, request: Request, begin: int, end: int, *, prefix: bool = True) -> Work:
    """Return the work of all rows in layers `begin` to `end` - 1, behind the prefix or with it.

    Of the last layer only keys and values are needed.
    """
    if begin >= end:
        return Work()
    before = request.prefix_tokens if prefix else 0
    rows = request.tokens - before
    whole = min(end, shape.layers - 1) - begin
    projected = shape.projection_share * rows if end == shape.layers else 0.0
    return Work(end - begin, max(0, whole) * rows + projected, max(0, whole) * rows * (before + rows / 2))


def linked_work(shape: Shape, request: Request, option: Option, layer: int, *, prefix: bool = True) -> Work:
    """Return the work of a layer from the switch layer on."""
    last = shape.layers - 1
    before = request.prefix_tokens if prefix else 0
    rows = chosen_rows(request, option, layer, last) + request.prefix_tokens - before
    every = shape.projection_share * (request.tokens - before) if layer == option.switch_layer else 0.0
    placed = request.linked_tokens if layer >= option.first_loaded else 0
    if layer == last:
        return Work(1, shape.projection_share * rows + every, 0, placed)
    return Work(1, rows + every, rows * request.tokens, placed)


def chosen_rows(request: Request, option: Option, layer: int, last: int) -> int:
    """Return the rows that a layer computes from the switch layer on: all but those of segments, and those that are chosen."""
    strategy, linked = option.strategy, request.linked_tokens
    rows = request.tokens - request.prefix_tokens - linked
    if strategy.kind is Kind.LEGO:
        rows += min(strategy.amount * request.segments, linked)
    elif strategy.kind is Kind.RANDOM:
        rows += round(strategy.amount / 100 * linked)
    elif strategy.kind is Kind.BLEND:
        rows += round(strategy.share(min(layer, last - 1), option.switch_layer, last - 1) * linked)
    return rows


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan for a prompt, with the times of what else there was."""

    option: Option | None
    """Strategy and switch layer; None: compute all behind the prefix."""
    prefix: bool
    """True: load the exact prefix, or use it where it is at hand."""
    expected_s: float
    """Seconds until the cache is there; infinity: unknown."""
    deadlines_s: dict[int, float] = field(default_factory=dict)
    """Seconds from the beginning to wait for a group, by its number. They rise."""
    full_s: float = math.inf
    """Seconds of a prefill without the prefix."""
    prefix_s: float = math.inf
    """Seconds of loading the exact prefix and computing the rest."""
    serial_s: float = math.inf
    """Seconds of the option if all were loaded before anything is computed."""
    explores: bool = False
    """True if it is not known how long loading takes."""

    @property
    def strategy(self) -> Strategy:
        """Return the strategy."""
        return self.option.strategy if self.option else Strategy(Kind.EXACT)


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Times of one option, from the beginning."""

    end_s: float
    serial_s: float
    needed_s: dict[int, float]
    """Time at which each group is there and wanted."""
    switch_s: float
    """Time at which the switch layer begins."""
    rest_s: float
    """Time that all rows take from the switch layer on."""
    rows: float


class Controller:
    """Costs, learned, and plans that follow from them. Thread-safe; no I/O; times are given."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._group = {layer: number for number, group in enumerate(shape.groups) for layer in group}
        self._lock = Lock()
        self._compute, self._load, self._decode = SizedFit(4, LARGE_TOKENS), SizedFit(2, LARGE_BYTES), SizedFit(1, LARGE_BYTES)
        self._loaded_s = -math.inf

    # ---- what was measured ------------------------------------------------------------------------------------------

    def computed(self, work: Work, duration_s: float) -> None:
        """Learn how long work of the model took, without what was waited for."""
        with self._lock:
            self._compute.learn(work.tokens, work.features, duration_s)

    def loaded(self, data_bytes: int, duration_s: float, now_s: float) -> None:
        """Learn that so many bytes had come so long after they were asked for: of a stream, each object and all before it."""
        with self._lock:
            self._load.learn(data_bytes, (data_bytes / 1e6, 1.0), duration_s, now_s)
            self._loaded_s = now_s

    def decoded(self, data_bytes: int, duration_s: float) -> None:
        """Learn how long bytes took to become tensors."""
        with self._lock:
            self._decode.learn(data_bytes, (data_bytes / 1e6,), duration_s)

    # ---- what is to be expected -------------------------------------------------------------------------------------

    def plan(self, request: Request, options: Sequence[Option], now_s: float, *, exact: bool = True) -> Plan:
        """Return the plan for a prompt.

        Args:
            request: The prompt.
            options: Strategies and switch layers that the gate allows. Those below layers that are computed already are left out.
            now_s: Time of the same clock as in `loaded`.
            exact: True: compute all behind the prefix where that is faster. False: link if there is an option.
        """
        ahead = request.ahead_layers
        options = [one for one in options if one.switch_layer >= ahead] if request.linked_tokens else ()
        with self._lock:
            explores = self._load.learned_costs(self._load_bytes(request)) is None
            if not self._compute.knows(0):
                cheapest = None if exact or not options else min(options, key=lambda option: self._rows(request, option))
                return Plan(cheapest, True, math.inf, explores=explores)
            load = self._load_costs(request, now_s)
            full_s = self._full_s(request, ahead, self.shape.layers, prefix=False)
            prefix_s = self._prefix_ready_s(request, load) + self._full_s(request, ahead, self.shape.layers)
            prefixes = (True, False) if request.prefix_bytes else (True,)
            lines = {(option, prefix): self._timeline(request, option, prefix, load) for option in options for prefix in prefixes}
        best_s = min((line.end_s for line in lines.values()), default=math.inf)
        exact_s = min(full_s, prefix_s)
        if not lines or (exact and exact_s <= HIDDEN * best_s):
            return Plan(None, prefix_s <= full_s, exact_s, {}, full_s, prefix_s, explores=explores)
        (option, prefix), line = max(
            ((choice, line) for choice, line in lines.items() if line.end_s <= HIDDEN * best_s),
            key=lambda pair: (pair[1].rows, -pair[1].end_s),
        )
        return Plan(option, prefix, line.end_s, _deadlines(line), full_s, prefix_s, line.serial_s, explores)

    # ---- inside, with the lock held ---------------------------------------------------------------------------------

    def _seconds(self, request: Request, work: Work, *, prefix: bool = True) -> float:
        tokens = request.tokens - (request.prefix_tokens if prefix else 0)
        return self._compute.duration_s(tokens, work.features)

    def _full_s(self, request: Request, begin: int, end: int, *, prefix: bool = True) -> float:
        return self._seconds(request, full_work(self.shape, request, begin, end, prefix=prefix), prefix=prefix)

    def _rows(self, request: Request, option: Option) -> float:
        last = self.shape.layers - 1
        below = (option.switch_layer - request.ahead_layers) * (request.tokens - request.prefix_tokens)
        return below + sum(chosen_rows(request, option, layer, last) for layer in range(option.switch_layer, last + 1))

    def _load_costs(self, request: Request, now_s: float) -> tuple[float, float, float]:
        """Return the round trip, and seconds of a byte loaded and decoded; nothing is expected of what is unknown."""
        fades = min(max(0.0, (now_s - self._loaded_s) / FADE_S - 1), _FADES_MAX)
        megabyte_s, round_s = self._load.learned_costs(self._load_bytes(request)) or (0.0, 0.0)
        [decode_s] = self._decode.learned_costs(LARGE_BYTES) or [0.0]
        return round_s * 0.5**fades, megabyte_s * 0.5**fades / 1e6, decode_s / 1e6

    def _load_bytes(self, request: Request) -> float:
        return request.prefix_bytes + request.linked_tokens * self.shape.token_bytes * self.shape.layers

    @staticmethod
    def _prefix_ready_s(request: Request, load: tuple[float, float, float]) -> float:
        round_s, byte_s, decode_s = load
        return round_s + request.prefix_bytes * (byte_s + decode_s) if request.prefix_bytes else 0.0

    def _timeline(self, request: Request, option: Option, prefix: bool, load: tuple[float, float, float]) -> _Timeline:
        """Play an option: the stream of the prefix and the groups, and the model beside it."""
        shape = self.shape
        round_s, byte_s, decode_s = load
        now_s = ready_s = self._prefix_ready_s(request, load) if prefix else 0.0
        come = float(request.prefix_bytes if prefix else 0)
        compute_s = self._full_s(request, request.ahead_layers, option.switch_layer, prefix=prefix)
        now_s += compute_s
        switch_s = now_s
        needed_s: dict[int, float] = {}
        for layer in range(option.switch_layer, shape.layers):
            number = self._group.get(layer)
            if number is not None and layer >= option.first_loaded and number not in needed_s:
                size = request.linked_tokens * shape.token_bytes * len(shape.groups[number])
                come += size
                ready_s = max(ready_s, round_s + come * byte_s) + size * decode_s
                needed_s[number] = now_s = max(now_s, ready_s)
            layer_s = self._seconds(request, linked_work(shape, request, option, layer, prefix=prefix), prefix=prefix)
            compute_s += layer_s
            now_s += layer_s
        rest_s = self._full_s(request, option.switch_layer, shape.layers, prefix=prefix)
        return _Timeline(now_s, ready_s + compute_s, needed_s, switch_s, rest_s, self._rows(request, option))


def _deadlines(line: _Timeline) -> dict[int, float]:
    """Return how long to wait for each group.

    Where computing would be faster from the first, the caller wants to link all the same: a group may be as late as that takes.
    """
    exact_s = line.switch_s + line.rest_s
    if line.end_s > exact_s:
        return {number: needed_s + line.end_s for number, needed_s in line.needed_s.items()}
    most_s = exact_s + line.switch_s  # and then the rest in full: twice as long as a full prefill
    return {number: min(needed_s + line.rest_s - (line.end_s - needed_s), most_s) for number, needed_s in line.needed_s.items()}
