"""`Tally`: what the clients of one tenant did, as plain numbers, because every command passes here."""

from bisect import bisect_left
from collections import Counter, deque
from typing import Final, NamedTuple

BUCKETS_S: Final = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SAMPLES: Final = 4
"""Samples over which rates are taken."""


class Rates(NamedTuple):
    """Amounts a second, of the last seconds."""

    commands: float = 0.0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0


class Tally:
    """Numbers of one tenant, or of clients that have not said who they are. Commands that do not exist are `unknown`."""

    __slots__ = (
        "_samples",
        "commands",
        "connections",
        "durations",
        "errors",
        "hits",
        "lost",
        "misses",
        "received_bytes",
        "sent_bytes",
        "sums_s",
    )

    def __init__(self) -> None:
        """Begin at zero."""
        self.durations: dict[str, list[int]] = {}
        """Commands by name, with how many took how long (`BUCKETS_S`)."""
        self.sums_s: dict[str, float] = {}
        self.errors: Counter[str] = Counter()
        self.commands = 0
        self.connections = 0
        """Clients that came."""
        self.received_bytes = 0
        self.sent_bytes = 0
        self.hits = 0
        """Reads that found a value."""
        self.misses = 0
        self.lost = 0
        """Values that were known, and are gone: satellites evicted them, or another host deleted them."""
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=_SAMPLES)

    def done(self, command: str, duration_s: float) -> None:
        """Count a command that was answered."""
        counts = self.durations.get(command)
        if counts is None:
            counts = self.durations[command] = [0] * (len(BUCKETS_S) + 1)
            self.sums_s[command] = 0.0
        counts[bisect_left(BUCKETS_S, duration_s)] += 1
        self.sums_s[command] += duration_s
        self.commands += 1

    def failed(self, kind: str) -> None:
        """Count an error that a client was told, or its end.

        Kinds: the error's first word, and `protocol`, `browser`, `stalled`, `crowded`, `memory`.
        """
        self.errors[kind] += 1

    def read(self, *, is_there: bool) -> None:
        """Count a read."""
        if is_there:
            self.hits += 1
        else:
            self.misses += 1

    def sample(self, now_s: float) -> None:
        """Note the numbers as they are now, for `rates`."""
        self._samples.append((now_s, self.commands, self.received_bytes, self.sent_bytes))

    def rates(self, now_s: float) -> Rates:
        """Return the amounts a second since the oldest sample."""
        if not self._samples or now_s <= self._samples[0][0]:
            return Rates()
        first_s, *before = self._samples[0]
        now = (self.commands, self.received_bytes, self.sent_bytes)
        return Rates(*((after - one) / (now_s - first_s) for after, one in zip(now, before, strict=True)))
