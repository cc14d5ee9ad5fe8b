"""Evidence of how well answers over linked segments keep to those of a full prefill, as counts of hosts and as JSON.

Records of hosts are joined, in any order and as often as one likes, and all come to the same. Each host's counts only grow
within a generation, so of two states of one host the one with more prompts is the later one. A higher generation replaces a
lower one.

Evidence holds for prompts like those that it was measured with. So the sizes of the largest ones are kept with the counts.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 2
"""Version of the JSON text."""
READABLE: Final = (1, VERSION)
"""Versions that are read. Version 1 does not tell of which prompts it is, so what was checked then counts for nothing."""
UNSIZED: Final = "an earlier version did not note the sizes of the prompts that it checked"
LARGEST: Final = 20
"""Number of the largest prompts whose sizes are kept: a tenth of those that a check needs."""
BROKEN_KL: Final = 1e6
"""KL that stands for one that is no number: no count of good prompts makes up for it."""

_Count = Annotated[int, Meta(ge=0, le=1 << 48)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Text = Annotated[str, Meta(max_length=1000)]


class Sample(NamedTuple):
    """Comparison of one prompt's answers.

    Attributes:
        kl: Mean over the answer's tokens of KL(full prefill || linked), in nats; it may be no number.
        agreement: Share of the tokens that are likeliest with both, 0 to 1.
    """

    kl: float
    agreement: float

    @property
    def loss(self) -> float:
        """Share of the tokens that differ; 1 if it is no number."""
        return min(1.0, max(0.0, 1 - self.agreement)) if math.isfinite(self.agreement) else 1.0

    @property
    def finite_kl(self) -> float:
        """KL that can be added up. Rounding makes a KL of 0 negative at times."""
        return min(max(0.0, self.kl), BROKEN_KL) if math.isfinite(self.kl) else BROKEN_KL


class PromptSize(NamedTuple):
    """Size of a prompt, as far as the quality of its answers may depend on it.

    Attributes:
        segments: Number of its segments.
        segment_tokens: Tokens of the longest of them.
        tokens: Tokens of the whole prompt.
    """

    segments: int
    segment_tokens: int
    tokens: int

    def is_within(self, other: PromptSize) -> bool:
        """Return True if no number is larger than the other's."""
        return all(mine <= its for mine, its in zip(self, other, strict=True))

    def __str__(self) -> str:
        return f"{self.segments:,} segments, {self.segment_tokens:,} tokens in a segment and {self.tokens:,} in all"


NO_SIZE: Final = PromptSize(0, 0, 0)


class Tally(Struct, frozen=True, order=True, array_like=True, forbid_unknown_fields=True):
    """Sums over prompts. They come in the JSON text as a list of three numbers."""

    prompts: _Count
    """Number of prompts."""
    loss: float
    """Sum of the shares of tokens that differed."""
    kl: float
    """Sum of the prompts' KL."""

    def __post_init__(self) -> None:
        if not (0 <= self.loss <= self.prompts * (1 + 1e-9) and 0 <= self.kl <= self.prompts * BROKEN_KL):
            raise ValueError(f"{self.prompts} prompts have no loss of {self.loss} and no KL of {self.kl}")

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.prompts + other.prompts, self.loss + other.loss, self.kl + other.kl)

    def with_sample(self, loss: float, kl: float) -> Tally:
        """Return these sums with one prompt more."""
        return Tally(self.prompts + 1, self.loss + loss, self.kl + kl)

    @property
    def agreement(self) -> float:
        """Mean share of tokens that agreed; 1 without a prompt."""
        return 1 - self.loss / self.prompts if self.prompts else 1.0

    @property
    def mean_kl(self) -> float:
        """Mean KL of the prompts; 0 without one."""
        return self.kl / self.prompts if self.prompts else 0.0


NO_PROMPTS: Final = Tally(0, 0.0, 0.0)


_Largest = Annotated[tuple[_Count, ...], Meta(max_length=LARGEST)]


class Sizes(Struct, frozen=True, order=True, array_like=True, forbid_unknown_fields=True):
    """Sizes of the largest prompts, each number for itself, in descending order. They come in the JSON text as three lists."""

    segments: _Largest = ()
    """Numbers of segments."""
    segment_tokens: _Largest = ()
    """Tokens of the longest segment of each prompt."""
    tokens: _Largest = ()
    """Tokens of whole prompts."""

    def __post_init__(self) -> None:
        if any(list(numbers) != sorted(numbers, reverse=True) for numbers in self._all):
            raise ValueError("sizes of prompts are in descending order")

    def __add__(self, other: Sizes) -> Sizes:
        pairs = zip(self._all, other._all, strict=True)
        return Sizes(*(tuple(sorted(mine + its, reverse=True)[:LARGEST]) for mine, its in pairs))

    def with_prompt(self, size: PromptSize) -> Sizes:
        """Return these sizes with one prompt more."""
        return self + Sizes(*((number,) for number in size))

    @property
    def covered(self) -> PromptSize:
        """Return the size that `LARGEST` prompts reached, in each number; zeros if there were not as many."""
        return PromptSize(*(numbers[-1] if len(numbers) == LARGEST else 0 for numbers in self._all))

    @property
    def _all(self) -> tuple[tuple[int, ...], ...]:
        return self.segments, self.segment_tokens, self.tokens


class Counts(Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of one host, or of all hosts together, for one point."""

    checks: Tally = NO_PROMPTS
    """Shadow runs."""
    shuffled: Tally = NO_PROMPTS
    """Shadow runs with shuffled keys and values."""
    canaries: Tally = NO_PROMPTS
    """Requests that were also computed in full; the KL of each counts as 1 at most."""
    sizes: Sizes = Sizes()
    """Sizes of the prompts of shadow runs."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.checks + other.checks, self.shuffled + other.shuffled, self.canaries + other.canaries, self.sizes + other.sizes
        )

    @property
    def age(self) -> tuple[int, Tally, Tally, Tally, Sizes]:
        """Number of prompts, then what tells apart two states that should be one."""
        prompts = self.checks.prompts + self.shuffled.prompts + self.canaries.prompts
        return prompts, self.checks, self.shuffled, self.canaries, self.sizes


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence for one point."""

    generation: _Count = 0
    """Number of times that all evidence was dropped."""
    why: _Text = ""
    """Reason of the last time."""
    hosts: dict[_Text, Counts] = {}
    """Counts by host."""

    def joined(self, other: Evidence) -> Evidence:
        """Return what two records of one point tell together."""
        if self.generation != other.generation:
            return max(self, other, key=lambda one: one.generation)
        hosts = dict(self.hosts)
        for host, counts in other.hosts.items():
            hosts[host] = max(counts, hosts.get(host, counts), key=lambda state: state.age)
        return Evidence(self.generation, max(self.why, other.why), hosts)

    @property
    def without_checks(self) -> Evidence:
        """Only what canaries have shown."""
        hosts = {host: Counts(canaries=counts.canaries) for host, counts in self.hosts.items()}
        return Evidence(self.generation, self.why or UNSIZED, hosts)

    @property
    def total(self) -> Counts:
        """Sum over all hosts, in the order of their names, so that all hosts get the same bits."""
        return sum((self.hosts[host] for host in sorted(self.hosts)), Counts())


class Point(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One thing that the gate decides about. Only its evidence counts for it, and for nothing else."""

    fingerprint: _Text
    """Fingerprint of the model, in hex. Another model has another one."""
    codec: _Text
    """Name of the codec that the segments went through."""
    strategy: _Text
    """Strategy with its amount, such as `blend:15`."""
    switch_layer: _Count
    """Layer below which all rows are computed."""
    block_tokens: _Count = 0
    """Tokens of a block, which the codec encodes together; 0 for a codec that loses nothing."""


class PointRecord(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Evidence of one point as it is written down."""

    codec: _Text
    """Name of the codec."""
    strategy: _Text
    """Strategy with its amount."""
    switch_layer: _Count
    """Switch layer."""
    evidence: Evidence
    """Counts of all hosts."""
    window: tuple[tuple[_Share, _Share], ...] = ()
    """Loss and KL of the writer's last canaries; empty in what hosts share."""
    block_tokens: _Count = 0
    """Tokens of a block (`Point.block_tokens`)."""


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """All evidence of one model."""

    version: int
    """`VERSION`."""
    fingerprint: _Text
    """Fingerprint of the model, in hex."""
    points: tuple[PointRecord, ...]
    """Evidence by point."""


_DECODER: Final = msgspec.json.Decoder(Record)


def write_record(record: Record) -> bytes:
    """Return the JSON text of a record."""
    return msgspec.json.encode(record)


def read_record(text: bytes) -> Record:
    """Return the record of a JSON text.

    Raises:
        ValueError: The text is damaged, or of another version.
    """
    try:
        version = msgspec.json.decode(text, type=dict[str, msgspec.Raw]).get("version", msgspec.Raw(b"none"))
        if bytes(version) not in {str(one).encode() for one in READABLE}:
            known = " and ".join(map(str, READABLE))
            raise ValueError(f"evidence has version {bytes(version)[:20].decode(errors='replace')}; this program knows {known}")
        record = _DECODER.decode(text)
        if record.version == VERSION:
            return record
        points = [msgspec.structs.replace(one, evidence=one.evidence.without_checks) for one in record.points]
        return Record(VERSION, record.fingerprint, tuple(points))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"evidence is damaged: {error}") from error
