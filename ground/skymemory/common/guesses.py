"""`Guesses`: passwords and keys are checked, and the answer to a wrong one waits, longer after each wrong one of its source.

A source is an address: an IPv4 address, or the first 64 bits of an IPv6 address, as one machine may have all of them. A guess is
checked when it comes: right ones wait for nothing, whoever guesses beside them. Only wrong ones wait. Who goes away before the
answer and comes again could try many all the same, so a source has a number of looks a second. While it has used them all, its
guesses are looked at in their order, one a millisecond: those that go away meanwhile leave the line, and the others move up.
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
LOOKS: Final = 1024
"""Wrong guesses of a source that are looked at without waiting, if it has been quiet before."""
LOOKS_PER_S: Final = 1000.0
"""Wrong guesses of a source that are looked at in a second from then on."""
WAITING_MAX: Final = 1024
"""Guesses of a source that wait to be looked at; further ones are refused unchecked."""
FORGET_S: Final = 900.0
"""Time after the last wrong guess, when a source is like new."""


class TooManyGuessesError(RuntimeError):
    """So many guesses of a source wait that no more are taken."""


@dataclass(slots=True)
class _Source:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the first guess that waits to be looked at."""
    used_s: float = float("-inf")
    """Time by which all looks that were used are given again, by the loop's clock."""
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
        looks: int = LOOKS,
        looks_per_s: float = LOOKS_PER_S,
    ) -> None:
        """Begin without sources.

        Args:
            first_pause_s: Seconds that the first wrong guess of a source waits for its answer; for each further one they double.
            pause_max_s: Most seconds.
            sources_max: Sources that are remembered.
            looks: Wrong guesses of a source that are looked at without waiting.
            looks_per_s: Wrong guesses of a source that are looked at in a second from then on.
        """
        self._first_pause_s = first_pause_s
        self._pause_max_s = pause_max_s
        self._sources_max = sources_max
        self._look_s = 1.0 / looks_per_s
        self._ahead_s = (looks - 1) / looks_per_s
        self._sources: dict[str, _Source] = {}

    def __len__(self) -> int:
        """Return the number of sources that have failed lately."""
        return len(self._sources)

    async def check(self, address: str, is_right: Callable[[], bool]) -> bool:
        """Check a guess and return whether it is right: at once if it is, after the pause of its source if it is not.

        Raises:
            TooManyGuessesError: Too many guesses from there wait to be looked at.
        """
        name = source_of(address)
        source = self._sources.get(name)
        if source is None:
            if is_right():
                return True
            source = self._sources[name] = _Source()
            while len(self._sources) > self._sources_max:
                del self._sources[next(iter(self._sources))]
        else:
            await self._turn(source)
            if is_right():
                return True
        now_s = asyncio.get_running_loop().time()
        source.used_s = max(source.used_s, now_s) + self._look_s
        return await self._failed(name, source)

    async def _turn(self, source: _Source) -> None:
        """Wait until a source may have a guess looked at, and return in the same turn of the loop."""
        loop = asyncio.get_running_loop()
        if not source.turn.locked() and source.used_s - self._ahead_s <= loop.time():
            return
        if source.waiting >= WAITING_MAX:
            raise TooManyGuessesError(f"{source.waiting} attempts from this address wait already; try again later")
        source.waiting += 1
        try:
            async with source.turn:
                while (wait_s := source.used_s - self._ahead_s - loop.time()) > 0:
                    await asyncio.sleep(wait_s)
        finally:
            source.waiting -= 1

    async def _failed(self, name: str, source: _Source) -> bool:
        """Return False after the pause of a source."""
        loop = asyncio.get_running_loop()
        if loop.time() - source.last_s >= FORGET_S:
            source.failures = 0
        source.failures += 1
        source.last_s = loop.time()
        if self._sources.pop(name, None) is not None:
            self._sources[name] = source  # behind those that failed before it
        pause_s = min(self._pause_max_s, self._first_pause_s * 2.0 ** min(source.failures - 1, 32))
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
