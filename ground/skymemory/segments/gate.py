"""Gate: segments are linked only where it was measured that the answers stay as they are.

A point (`Point`) is a model, a codec with its block size, a strategy and a switch layer. Each is closed at first. A check
compares, over the tokens of the answer that a full prefill gives, the model's words behind linked segments with those behind the
full prefill. A point is open if

    at least 200 prompts were checked,
    their mean KL(full || linked) is at most 0.01 a token,
    the likeliest token agrees for at least 99 % of the tokens, and the lower bound of that is at least 97 %,
    with shuffled keys and values the upper bound of the agreement is below 95 %, over at least 40 prompts.

The tokens of one answer depend on each other, so the bounds count prompts, not tokens. That is right whatever the tokens do: no
variable from 0 to 1 varies more than one that is only 0 or 1 with the same mean. 198 of 200 give a bound of 97.02 %, so the
numbers fit: 97 % is what 200 prompts can show. Without the last rule, prompts that never look into the segments would open
everything.

It is open for prompts that are no larger than the checked ones: 20 of these, a tenth of 200, must have as many segments, 20 as
long a segment, and 20 as many tokens (`PromptSize`). What six segments do says nothing of twenty-eight.

An open point is watched by canaries: 2 % of its requests are computed in full, too. `Gate` keeps the last 200 in a window, in
which those that are still missing count as perfect. Their losses may add up to 2 prompts (1 % of 200), and so may their KL, of
which a prompt adds 1 at most. So:

    one bad prompt closes nothing, however bad it is, and nor do two: the check allows as many
    three that are all wrong do: after 150 requests in the mean where suddenly every answer is wrong
    any loss above 1 % that lasts closes the point about when it has filled the window, after 10,000 requests

The canaries of all hosts together may not lose more than 2 prompts either if their lower bounds are above 1 % loss or KL 0.01.
So a fault shows that reaches each of many hosts too seldom for one window. A breach drops all evidence of the point, at all
hosts.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

from skymemory.segments.evidence import (
    NO_PROMPTS,
    NO_SIZE,
    VERSION,
    Counts,
    Evidence,
    Point,
    PointRecord,
    PromptSize,
    Record,
    Sample,
    Sizes,
    Tally,
    read_record,
    write_record,
)

PROMPTS_MIN: Final = 200
"""Prompts before a point opens."""
KL_MAX: Final = 0.01
"""Largest mean KL a token, in nats."""
AGREEMENT_MIN: Final = 0.99
"""Least share of tokens whose likeliest one agrees."""
BOUND_MIN: Final = 0.97
"""Least lower bound of that share."""
POWER_PROMPTS_MIN: Final = 40
"""Prompts with shuffled keys and values before it is known that prompts can tell."""
POWER_AGREEMENT_MAX: Final = 0.95
"""Largest upper bound of the agreement with these: they must lose five times what the gate allows."""
CANARY_SHARE: Final = 0.02
"""Share of an open point's requests that are computed in full, too."""
WINDOW: Final = 200
"""Number of the last canaries that are judged together."""
CANARY_KL_MAX: Final = 1.0
"""Largest KL with which one canary counts."""
_Z: Final = 1.6448536269514722
"""95 % quantile of the normal distribution."""
_ROUNDING: Final = 1e-9
"""Error that sums of shares may have."""


def wilson_bounds(share: float, count: float, z: float = _Z) -> tuple[float, float]:
    """Return the lower and the upper bound of a share that was seen in `count` independent cases.

    Each is one-sided at 95 % (Wilson, 1927: the score interval). Without a case they are 0 and 1.
    """
    if count <= 0:
        return 0.0, 1.0
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    scale = 1 + z * z / count
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def is_canary(request: bytes) -> bool:
    """Return True for 2 % of all requests, chosen by a digest.

    Args:
        request: The request's tokens, and a number of its own, so that a prompt that comes again and again is chosen at times.
    """
    digest = hashlib.blake2b(request, digest_size=8, person=b"skymem canary").digest()
    return int.from_bytes(digest, "big") < CANARY_SHARE * 2.0**64


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about one point, and the figures behind it."""

    point: Point
    """The point."""
    open: bool
    """True: linking is allowed, for prompts of a size that is covered."""
    why: str
    """Reason in words."""
    counts: Counts
    """Counts of all hosts."""
    bound: float
    """Lower bound of the agreement of checks."""
    shuffled_bound: float
    """Upper bound of the agreement with shuffled keys and values."""
    generation: int
    """Number of times that all evidence was dropped."""

    @property
    def covered(self) -> PromptSize:
        """Size of the largest prompts that the evidence is of."""
        return self.counts.sizes.covered

    def figures(self) -> dict[str, str | int | float | bool]:
        """Return all of this as JSON values."""
        checks, shuffled, canaries = self.counts.checks, self.counts.shuffled, self.counts.canaries
        return {
            "strategy": self.point.strategy,
            "switch_layer": self.point.switch_layer,
            "codec": self.point.codec,
            "block_tokens": self.point.block_tokens,
            "fingerprint": self.point.fingerprint,
            "open": self.open,
            "why": self.why,
            "prompts": checks.prompts,
            "kl": checks.mean_kl,
            "agreement": checks.agreement,
            "agreement_bound": self.bound,
            "shuffled_prompts": shuffled.prompts,
            "shuffled_agreement": shuffled.agreement,
            "shuffled_agreement_bound": self.shuffled_bound,
            "canaries": canaries.prompts,
            "canary_agreement": canaries.agreement,
            "canary_kl": canaries.mean_kl,
            "generation": self.generation,
            "covered_segments": self.covered.segments,
            "covered_segment_tokens": self.covered.segment_tokens,
            "covered_tokens": self.covered.tokens,
        }


class Gate:
    """Evidence for any number of points, and what follows from it. Thread-safe; no I/O.

    Two gates that count at the same time need different names as hosts.
    """

    def __init__(self, host: str) -> None:
        """Know nothing yet.

        Args:
            host: Name of this host and process among all that share evidence.
        """
        self.host = host
        self._lock = Lock()
        self._evidence: dict[Point, Evidence] = {}
        self._windows: dict[Point, deque[tuple[float, float]]] = {}

    # ---- what was measured ------------------------------------------------------------------------------------------

    def checked(self, point: Point, sample: Sample, size: PromptSize) -> None:
        """Count a shadow run of a prompt of some size."""
        with self._lock:
            if why := _pooled_breach(self._of(point).total):
                self._drop(point, why)
            checks = NO_PROMPTS.with_sample(sample.loss, sample.finite_kl)
            self._count(point, Counts(checks=checks, sizes=Sizes().with_prompt(size)))

    def checked_shuffled(self, point: Point, sample: Sample) -> None:
        """Count a shadow run with shuffled keys and values."""
        with self._lock:
            self._count(point, Counts(shuffled=NO_PROMPTS.with_sample(sample.loss, sample.finite_kl)))

    def canary(self, point: Point, sample: Sample) -> str:
        """Count a canary: a request whose segments were linked, none of whose layers was late.

        Returns:
            The reason if that closes the point, else ''.
        """
        kl = min(sample.finite_kl, CANARY_KL_MAX)
        with self._lock:
            self._count(point, Counts(canaries=NO_PROMPTS.with_sample(sample.loss, kl)))
            window = self._windows.setdefault(point, deque(maxlen=WINDOW))
            window.append((sample.loss, kl))
            losses, kls = zip(*window, strict=True)
            why = _breach(math.fsum(losses), math.fsum(kls), len(window))
            if why := why or _pooled_breach(self._of(point).total):
                self._drop(point, why)
            return why

    def drop(self, point: Point, why: str) -> None:
        """Drop all evidence of a point, which closes it at every host that hears of it."""
        with self._lock:
            self._drop(point, why)

    # ---- what follows -----------------------------------------------------------------------------------------------

    def verdict(self, point: Point) -> Verdict:
        """Return the decision about a point."""
        with self._lock:
            return _judge(point, self._of(point))

    def verdicts(self, fingerprint: str) -> list[Verdict]:
        """Return the decisions about all points of a model of which there is evidence."""
        with self._lock:
            return [_judge(point, self._evidence[point]) for point in self._points(fingerprint)]

    def is_open(self, point: Point, size: PromptSize = NO_SIZE) -> bool:
        """Return True if linking is allowed for a prompt of some size; by default for any."""
        verdict = self.verdict(point)
        return verdict.open and size.is_within(verdict.covered)

    def can_open(self, point: Point, prompts: int) -> bool:
        """Return False if a point stays closed however well the next `prompts` shadow runs go.

        Enough runs with shuffled keys and values are not followed by more: if the prompts cannot tell then, they never can.
        """
        with self._lock:
            counts = self._of(point).total
        checks, count = counts.checks, counts.checks.prompts + prompts
        if counts.shuffled.prompts >= POWER_PROMPTS_MIN and _cannot_tell(counts.shuffled):
            return False
        return checks.loss <= count * (1 - AGREEMENT_MIN) + _ROUNDING and checks.kl <= count * KL_MAX + _ROUNDING

    # ---- kept and shared --------------------------------------------------------------------------------------------

    def record(self, fingerprint: str, *, shared: bool) -> bytes:
        """Return all evidence of a model as JSON.

        Args:
            fingerprint: Fingerprint of the model.
            shared: True: for other hosts. False: for this host's next start, with the window of canaries.
        """
        with self._lock:
            points = [
                PointRecord(
                    point.codec,
                    point.strategy,
                    point.switch_layer,
                    self._evidence[point],
                    () if shared else tuple(self._windows.get(point, ())),
                    point.block_tokens,
                )
                for point in self._points(fingerprint)
            ]
        return write_record(Record(VERSION, fingerprint, tuple(points)))

    def join(self, text: bytes) -> str:
        """Take in evidence of another host, or of this one before it was started anew.

        Returns:
            The fingerprint of the model.

        Raises:
            ValueError: The text is damaged, or of another version. Nothing has changed.
        """
        record = read_record(text)
        with self._lock:
            for one in record.points:
                point = Point(record.fingerprint, one.codec, one.strategy, one.switch_layer, one.block_tokens)
                before = self._of(point)
                self._evidence[point] = after = before.joined(one.evidence)
                if after.generation > before.generation:
                    self._windows.pop(point, None)
                if one.window and after.generation == one.evidence.generation and not self._windows.get(point):
                    self._windows[point] = deque(one.window, maxlen=WINDOW)
        return record.fingerprint

    # ---- inside, with the lock held ---------------------------------------------------------------------------------

    def _of(self, point: Point) -> Evidence:
        return self._evidence.get(point, Evidence())

    def _points(self, fingerprint: str) -> Iterator[Point]:
        return (point for point in sorted(self._evidence) if point.fingerprint == fingerprint)

    def _count(self, point: Point, more: Counts) -> None:
        evidence = self._of(point)
        counts = evidence.hosts.get(self.host, Counts()) + more
        self._evidence[point] = Evidence(evidence.generation, evidence.why, {**evidence.hosts, self.host: counts})

    def _drop(self, point: Point, why: str) -> None:
        self._evidence[point] = Evidence(self._of(point).generation + 1, why)
        self._windows.pop(point, None)


def _breach(loss: float, kl: float, count: int) -> str:
    """Return the reason if the losses or the KL of the last canaries add up to more than a full window may have, else ''."""
    if loss > WINDOW * (1 - AGREEMENT_MIN) + _ROUNDING:
        return f"the last {count} canaries lost {loss:.2f} answers; {WINDOW * (1 - AGREEMENT_MIN):.2f} are allowed"
    if kl > WINDOW * KL_MAX + _ROUNDING:
        return f"the KL of the last {count} canaries adds up to {kl:.2f}; {WINDOW * KL_MAX:.2f} is allowed"
    return ""


def _pooled_breach(counts: Counts) -> str:
    """Return the reason if the canaries of all hosts together lost too much for sure, else ''."""
    canaries = counts.canaries
    for sum_of, limit in ((canaries.loss, 1 - AGREEMENT_MIN), (canaries.kl, KL_MAX)):
        if sum_of > WINDOW * limit + _ROUNDING and wilson_bounds(sum_of / canaries.prompts, canaries.prompts)[0] > limit:
            what = f"{canaries.loss:.2f} answers, with a KL of {canaries.kl:.2f} in all"
            return f"the {canaries.prompts} canaries of all hosts lost {what}"
    return ""


def _cannot_tell(shuffled: Tally) -> bool:
    """Return True if answers hardly change with shuffled keys and values, so that those of a check prove nothing."""
    return wilson_bounds(shuffled.agreement, shuffled.prompts)[1] >= POWER_AGREEMENT_MAX


def _judge(point: Point, evidence: Evidence) -> Verdict:
    counts = evidence.total
    checks, shuffled = counts.checks, counts.shuffled
    bound, _ = wilson_bounds(checks.agreement, checks.prompts)
    _, shuffled_bound = wilson_bounds(shuffled.agreement, shuffled.prompts)
    breach = _pooled_breach(counts)
    if breach:
        why = breach
    elif checks.kl > max(checks.prompts, PROMPTS_MIN) * KL_MAX + _ROUNDING:
        why = f"KL {checks.mean_kl:.4f} a token over {checks.prompts} prompts; {KL_MAX} is allowed"
    elif checks.loss > max(checks.prompts, PROMPTS_MIN) * (1 - AGREEMENT_MIN) + _ROUNDING:
        why = f"{checks.agreement:.2%} of the tokens of {checks.prompts} prompts agree; {AGREEMENT_MIN:.0%} must"
    elif shuffled.prompts >= POWER_PROMPTS_MIN and _cannot_tell(shuffled):
        why = f"the prompts cannot tell: {shuffled.agreement:.2%} of the tokens agree with shuffled keys and values, too"
    elif checks.prompts < PROMPTS_MIN:
        why = f"{checks.prompts} of {PROMPTS_MIN} prompts were checked"
    elif bound < BOUND_MIN:
        why = f"the agreement may be as low as {bound:.2%} after {checks.prompts} prompts; {BOUND_MIN:.0%} is allowed"
    elif shuffled.prompts < POWER_PROMPTS_MIN:
        why = f"{shuffled.prompts} of {POWER_PROMPTS_MIN} prompts were checked with shuffled keys and values"
    elif not all(counts.sizes.covered):
        why = "its evidence does not tell of which prompts it is"
    else:
        return Verdict(point, True, "open", counts, bound, shuffled_bound, evidence.generation)
    if evidence.why and not breach:
        why = f"{why}, since {evidence.why}"
    return Verdict(point, False, why, counts, bound, shuffled_bound, evidence.generation)
