"""`Shared`: the state of a gateway that all its connections use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skymemory.agent.gateway.directory import ENTRIES_MAX, NAMES_BYTES_MAX, Directory
from skymemory.agent.gateway.memory import JOINED_BYTES_MAX, Memory
from skymemory.agent.gateway.meter import Meter
from skymemory.agent.gateway.requests import READ_BYTES
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.tally import Tally
from skymemory.agent.gateway.users import Tenancy, User, Users
from skymemory.agent.gateway.values import Values
from skymemory.agent.shared_sky import SharedSky
from skymemory.common.guesses import Guesses
from skymemory.store.keyvalue import now_unix_ms


class Shared:
    """Values, memory and settings of one gateway. Used from one event loop."""

    def __init__(
        self,
        sky: SharedSky,
        host: str,
        users: Users,
        memory_bytes: int,
        clients_max: int,
        guesses: Guesses | None = None,
        joined_bytes_max: int = JOINED_BYTES_MAX,
    ) -> None:
        """Make it; arguments are those of `Gateway`."""
        self.sky = sky
        self.host = host
        self.port = 0
        """Port where the gateway listens, once it was started."""
        self.users = users
        self.guesses = Guesses() if guesses is None else guesses
        self.clients_max = clients_max
        self.joined_bytes_max = joined_bytes_max
        self.memory = Memory(memory_bytes)
        tenancies = users.tenancies
        share = 1 + len(tenancies)

        def values_of(tenancy: Tenancy | None) -> Values:
            return Values(sky, self.memory, Directory(ENTRIES_MAX // share, NAMES_BYTES_MAX // share), tenancy)

        self.values = values_of(None)
        """Values of the agent's own tenant."""
        self._tenants = {tenancy: values_of(tenancy) for tenancy in tenancies}
        self._all = (self.values, *self._tenants.values())
        self.sessions: dict[int, Session] = {}
        """Sessions of all connections, by their numbers."""
        self._strangers = Tally()
        """Numbers of clients that have not said who they are."""
        tallies = [self._strangers, *(values.tally for values in self._all)]
        self.meter = Meter(tallies, lambda: len(self.sessions), lambda: self.memory.used_bytes)
        self.scratch = memoryview(bytearray(READ_BYTES))
        """Buffer where every connection's next bytes lie until they are taken in."""
        self.started_s = time.monotonic()
        self._step = asyncio.Lock()

    def values_of(self, user: User | None) -> Values:
        """Return the values that a user sees; None: that of clients that have not said who they are."""
        return self.values if user is None or user.tenancy is None else self._tenants[user.tenancy]

    def tally_of(self, user: User | None) -> Tally:
        """Return the numbers of the tenant that a user is of; None: those of clients that have not said who they are."""
        return self._strangers if user is None else self.values_of(user).tally

    async def drained(self) -> None:
        """Wait until all operations on values are done."""
        for values in self._all:
            await values.drained()

    async def expire(self) -> None:
        """Forget the names of values whose time has come. Others have their turn meanwhile."""
        for values in self._all:
            while values.directory.expire(now_unix_ms()):
                await asyncio.sleep(0)

    def claim(self, length: int) -> str | None:
        """Return why a large argument of this length may not come, as far as is known now; None: it may."""
        if (why := self.values.too_long(length)) is not None:
            return why
        return None if self.memory.has_room(length) else self.no_room(length)

    def admit(self, length: int) -> str | None:
        """Take memory for bytes that came; return None, or why there is none."""
        return None if self.memory.admit(length) else self.no_room(length)

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Wait for a turn of the loop in which no other command goes through names: clients wait for one step at a time."""
        async with self._step:
            await asyncio.sleep(0)
            yield

    def no_room(self, length: int) -> str:
        """Return the error where memory for so many bytes is lacking."""
        return f"ERR no memory for {length:,} bytes: too much of {self.memory.limit_bytes // 2:,} is on its way; try again"
