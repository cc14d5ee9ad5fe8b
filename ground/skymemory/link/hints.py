"""Hints of one process of a user to the next: which satellites were silent lately, and how long answers take.

They lie in a file of the state folder, one for each constellation. The core checks each of them (`sky_ground_hints.c`): a
satellite is asked as any other, and what it says counts. So a file that is missing, old or wrong costs a little time at most.
"""

import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Annotated, Final, NamedTuple

import msgspec

from skymemory.common.secret_files import FILE_MODE, Kept, SecretFileError, read_secret
from skymemory.common.state_folder import default_folder
from skymemory.common.whole_file import write_whole
from skymemory.sky.constellation import Constellation

HINTS_S: Final = 30.0
"""Age in seconds from which a hint is none."""
_REST_S: Final = 1.0
"""Least time between two writings that tell of the same silent satellites."""
_HINT_BYTES: Final = 64
_FRAME_BYTES: Final = 128
_US_A_S: Final = 1_000_000
_writes: Final = Lock()

_Place = Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)]
_RoundTrip = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Hint(NamedTuple):
    """Knowledge of a satellite, of the process that wrote it."""

    plane: _Place
    slot: _Place
    rtt_us: _RoundTrip
    """Round trip in microseconds; 0: none was measured."""
    silent_us: _Time
    """Microseconds on CLOCK_MONOTONIC at which it was silent last; 0: it was not."""
    is_lost: bool
    """It did not answer as many questions as make it lost; False: it was late while others answered."""


class _Content(msgspec.Struct):
    """Content of the file. Two clocks tell its age, so that no step of one of them makes it younger."""

    unix_us: _Time
    steady_us: _Time
    hints: list[Hint]

    @property
    def age_s(self) -> float:
        """Seconds since it was written; infinite if it was written in the future."""
        ages_us = _unix_us() - self.unix_us, _steady_us() - self.steady_us
        return max(ages_us) / _US_A_S if min(ages_us) >= 0 else float("inf")

    @property
    def silent(self) -> set[tuple[int, int]]:
        """Satellites that were silent."""
        return {(one.plane, one.slot) for one in self.hints if one.silent_us}


_DECODER: Final = msgspec.json.Decoder(_Content)


class HintFile:
    """File with the hints of a constellation. Nothing that is wrong with it raises."""

    def __init__(self, constellation: Constellation) -> None:
        """Name the file; nothing is read."""
        torus, network = constellation.torus, constellation.network
        self._path: Path | None = None
        self._most_bytes = _FRAME_BYTES + _HINT_BYTES * torus.planes * torus.slots
        with suppress(RuntimeError):  # a user without a home
            self._path = default_folder() / f"hints-{network.base}-{network.port}-{torus.planes}x{torus.slots}.json"

    def read(self) -> Sequence[Hint]:
        """Return the hints that were written within the last 30 s; none if the file is another user's, too large or damaged."""
        content = self._content()
        return content.hints if content is not None and content.age_s < HINTS_S else ()

    def write(self, hints: Sequence[Hint]) -> None:
        """Write hints whole, or not at all. Nothing is written twice within a second, unless other satellites are silent now."""
        content = _Content(_unix_us(), _steady_us(), list(hints))
        if self._path is None or not _writes.acquire(blocking=False):
            return
        try:
            before = self._content()
            is_news = before is None or before.age_s >= _REST_S or before.silent != content.silent
            if is_news and (hints or before is not None) and _may_write(self._path):
                self._path.touch(mode=FILE_MODE)
                write_whole(self._path, msgspec.json.encode(content))
        except OSError:  # a full disk, or a folder that is not to be written to
            pass
        finally:
            _writes.release()

    def _content(self) -> _Content | None:
        with suppress(SecretFileError, msgspec.DecodeError, RecursionError):
            if self._path is not None:
                return _DECODER.decode(read_secret(self._path, self._most_bytes, kept=Kept.OWN))
        return None


def _may_write(path: Path) -> bool:
    """Return True if there is such a file, or none in a folder that is there."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return path.parent.is_dir()


def _unix_us() -> int:
    return time.time_ns() // 1000


def _steady_us() -> int:
    return time.monotonic_ns() // 1000
