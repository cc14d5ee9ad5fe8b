"""`Guesses`: passwords and keys are checked, and the answer to a wrong one waits, longer after each wrong one of its source.

A source is an address: an IPv4 address, or the first 64 bits of an IPv6 address, as one machine may have all of them. A guess is
checked when it comes: right ones wait for nothing, whoever guesses beside them. A wrong one keeps a place of its source for its
pause, also if the client goes away meanwhile. There are more places than a source has connections that wait, so only who goes
away and comes again takes all of them. Then guesses of that source are checked when a place is free, which bounds how many of
them can be tried in a second.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final

FIRST_PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 4.0
"""Less than the five seconds after which redis-py takes a server for dead: it shall see that its password is wrong."""
SOURCES_MAX: Final = 4096
"""Sources that are remembered; the one that failed the longest time ago makes room."""
PLACES: Final = 1024
"""Wrong guesses of a source whose pauses are under way: 256 guesses a second, once its pauses are at their longest."""
WAITING_MAX: Final = 1024
"""Guesses of a source that wait for a place; further ones are refused unchecked."""
FORGET_S: Final = 900.0
"""Time after the last wrong guess, when a source is like new."""


class TooManyGuessesError(RuntimeError):
    """So many guesses of a source wait that no more are taken."""


@dataclass(slots=True)
class _Source:
    places: asyncio.Semaphore
    failures: int = 0
    last_s: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """Time of the last failure, by the loop's clock."""
    waiting: int = 0


class Guesses:
    """The memory of wrong guesses of one server. Used from one event loop."""

    def __init__(
        self,
        first_pause_s: float = FIRST_PAUSE_S,
        pause_max_s: float = PAUSE_MAX_S,
        sources_max: int = SOURCES_MAX,
        places: int = PLACES,
    ) -> None:
        """Begin without sources.

        Args:
            first_pause_s: Seconds that the first wrong guess of a source waits for its answer; for each further one they double.
            pause_max_s: Most seconds.
            sources_max: Sources that are remembered.
            places: Wrong guesses of a source whose pauses are under way.
        """
        self._first_pause_s = first_pause_s
        self._pause_max_s = pause_max_s
        self._sources_max = sources_max
        self._places = places
        self._sources: dict[str, _Source] = {}

    def __len__(self) -> int:
        """Return the number of sources that have failed lately."""
        return len(self._sources)

    async def check(self, address: str, is_right: Callable[[], bool]) -> bool:
        """Check a guess and return whether it is right: at once if it is, after the pause of its source if it is not.

        If the caller is cancelled during the pause, the place of the guess is taken until the pause is over all the same.

        Raises:
            TooManyGuessesError: Too many guesses from there wait for a place.
        """
        name = source_of(address)
        source = self._sources.get(name)
        if source is None:
            if is_right():
                return True
            source = self._sources[name] = _Source(asyncio.Semaphore(self._places))
            while len(self._sources) > self._sources_max:
                del self._sources[next(iter(self._sources))]
            await source.places.acquire()
            return await self._failed(name, source)
        if source.places.locked() and source.waiting >= WAITING_MAX:
            raise TooManyGuessesError(f"{source.waiting} attempts from this address wait already; try again later")
        source.waiting += 1
        try:
            await source.places.acquire()
        finally:
            source.waiting -= 1
        if is_right():
            source.places.release()
            return True
        return await self._failed(name, source)

    async def _failed(self, name: str, source: _Source) -> bool:
        """Keep the guess's place for its pause, and return False after it."""
        loop = asyncio.get_running_loop()
        if loop.time() - source.last_s >= FORGET_S:
            source.failures = 0
        source.failures += 1
        source.last_s = loop.time()
        if self._sources.pop(name, None) is not None:
            self._sources[name] = source  # behind those that failed before it
        pause_s = min(self._pause_max_s, self._first_pause_s * 2.0 ** min(source.failures - 1, 32))
        loop.call_later(pause_s, source.places.release)
        await asyncio.sleep(pause_s)
        return False


def source_of(address: str) -> str:
    """Return the source that an address belongs to; what is no address is a source by itself."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(IPv6Address(int(ip) >> 64 << 64))
    return str(ip)
