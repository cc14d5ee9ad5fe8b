"""Times of a ground host: it waits for satellites, and asks them again."""

from dataclasses import dataclass

from skymemory.common import defaults


@dataclass(frozen=True)
class Timing:
    """Times of a ground host in seconds. The defaults are in `icd/defaults.toml`, which the twin has too."""

    first_s: float = defaults.HOST_ASK_INITIAL_US / 1e6
    """Timer of a question before a round trip was measured."""
    min_s: float = defaults.HOST_ASK_MIN_US / 1e6
    """Least timer of a question."""
    max_s: float = defaults.HOST_ASK_MAX_US / 1e6
    """Largest timer of a question. It doubles after three sendings."""
    silence_s: float = defaults.HOST_PATIENCE_MIN_US / 1e6
    """Least silence after which a satellite counts as silent."""
    lost_s: float = defaults.HOST_LOST_US / 1e6
    """Time after which a lost satellite is asked again. Until then routes avoid it."""
    doubt_s: float = defaults.HOST_DOUBT_US / 1e6
    """The same time, if a stand-in did not have a share of the lost satellite."""
    pause_first_s: float = defaults.HOST_PAUSE_FIRST_US / 1e6
    """Time without questions after no satellite has answered. It doubles with each further failure."""
    pause_max_s: float = defaults.HOST_PAUSE_MAX_US / 1e6
    """Longest such pause."""
