"""The content of a picture of a layout: servers on the torus, and the moves of the last rotation."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

from skymemory.simulate.mapping import LAYOUT_TEXTS, centre_after, places
from skymemory.simulate.survival import Tolerated
from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite


class GridMove(NamedTuple):
    """Effect of a rotation on a server, counted from 1."""

    server: int
    origin: Satellite
    target: Satellite


@dataclass(frozen=True)
class Grid:
    """A layout after some rotations. Servers count from 1, as in the paper's figures: server k has chunks k, k + n, ..."""

    layout: LayoutName
    torus: Torus
    centre: Satellite
    """Centre after the rotations."""
    rotations: int
    published: bool
    satellites: list[Satellite]
    """Satellites of server 1, 2, ...; the published mapping may lack those of the last servers."""
    servers: int
    moves: list[GridMove]
    """Moves by the last rotation; none where a full turn has brought all servers back."""
    back: bool
    """True if servers have moved, and are where they were before the first rotation."""
    parity: int = 0
    """Servers of these that hold parity: the last ones."""

    @classmethod
    def of(
        cls,
        layout: LayoutName,
        centre: Satellite,
        servers: int,
        torus: Torus,
        *,
        parity: int = 0,
        rotations: int = 0,
        published: bool = False,
    ) -> "Grid":
        """Lay out the servers and turn the sky.

        Raises:
            ValueError: Servers or centre do not fit the torus, or no such mapping was published.
        """
        now = places(layout, centre, servers, torus, rotations=rotations, published=published)
        before, first = (
            places(layout, centre, servers, torus, rotations=earlier, published=published)
            for earlier in (max(0, rotations - 1), 0)
        )
        back = before != now == first
        moves = [
            GridMove(server, origin, target)
            for server, (origin, target) in enumerate(zip(before, now, strict=True), start=1)
            if origin != target and not back
        ]
        middle = centre_after(layout, centre, torus, rotations, published=published)
        return cls(layout, torus, middle, rotations, published, now, servers, moves, back, parity)

    def servers_at(self) -> dict[Satellite, list[int]]:
        """Return the servers of each satellite that has any."""
        held: dict[Satellite, list[int]] = {}
        for server, satellite in enumerate(self.satellites, start=1):
            held.setdefault(satellite, []).append(server)
        return held

    def is_parity(self, server: int) -> bool:
        """Return True if a server, counted from 1, holds parity."""
        return server > self.servers - self.parity

    def hops(self, satellite: Satellite) -> int:
        """Return the number of hops from the centre."""
        return self.torus.hops(self.centre, satellite)

    def title(self) -> str:
        """Return the title of the picture, in a line."""
        size = f"{_counted(self.torus.planes, 'plane')} x {_counted(self.torus.slots, 'slot')}"
        turned = f" after {_counted(self.rotations, 'rotation')}" if self.rotations else ""
        published = ", as published" if self.published else ""
        parity = f", {self.parity} of parity," if self.parity else ""
        return f"{LAYOUT_TEXTS[self.layout]}: {_counted(self.servers, 'server')}{parity} on {size}{turned}{published}"

    def told(self) -> list[str]:
        """Describe the picture in sentences, with the faults of a published mapping."""
        sentences = [self._motion()] if self.rotations else []
        held = self.servers_at()
        if outside := [satellite for satellite in held if satellite not in self.torus]:
            servers = sorted(server for satellite in outside for server in held[satellite])
            where = ", ".join(map(str, sorted(outside)))
            sentences.append(f"{_named(servers)} outside the grid, at [plane, slot] {where}.")
        if shared := [servers for servers in held.values() if len(servers) > 1]:
            sentences.append(f"{sum(map(len, shared))} servers share {_counted(len(shared), 'satellite')}.")
        if missing := list(range(len(self.satellites) + 1, self.servers + 1)):
            sentences.append(f"{_named(missing)} on no satellite at all.")
        if inside := held.keys() - set(outside):
            farthest = max(map(self.hops, inside))
            sentences.append(f"The farthest server is {_counted(farthest, 'hop')} from the centre.")
        if self.parity:
            sentences += self._losses()
        return sentences

    def heading(self) -> str:
        """Return the number of servers, and of those without a satellite of their own, in a few words."""
        side = isqrt(self.servers)
        square = f" ({side} x {side})" if self.layout != "hop" and side * side == self.servers else ""
        held = self.servers_at()
        counts = {
            "on no satellite": self.servers - len(self.satellites),
            "outside the grid": sum(len(servers) for satellite, servers in held.items() if satellite not in self.torus),
            "on shared satellites": sum(len(servers) for servers in held.values() if len(servers) > 1),
        }
        return ", ".join([f"{_counted(self.servers, 'server')}{square}", *(f"{n} {what}" for what, n in counts.items() if n)])

    def _losses(self) -> Iterator[str]:
        near = self.satellites[: self.servers - self.parity]
        yield f"The farthest with data is {_counted(max(map(self.hops, near)), 'hop')} away."
        tolerated = Tolerated.of(self.satellites, self.parity)
        yield _may_be_lost(tolerated.satellites, "satellite")
        for noun, lost, axis in (("plane", tolerated.planes, 0), ("slot", tolerated.slots, 1)):
            most = max(Counter(satellite[axis] for satellite in self.satellites).values())
            yield _may_be_lost(lost, noun) if lost else f"No {noun} may be lost: one has {_counted(most, 'server')}."

    def _motion(self) -> str:
        if self.layout == "hop" and not self.published:
            return "Nothing moves: the model is on board of the satellite in the centre."
        if self.back:
            return f"A full turn: after {_counted(self.rotations, 'rotation')} every server is where it was."
        if not self.moves:
            return "The last rotation moved nothing."
        columns = sorted({move.origin.slot for move in self.moves}), sorted({move.target.slot for move in self.moves})
        leaves, enters = (", ".join(map(str, slots)) for slots in columns)
        servers = ", ".join(str(move.server) for move in self.moves)
        return f"The last rotation moved server{'s' * (len(self.moves) > 1)} {servers} from slot {leaves} to slot {enters}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _may_be_lost(lost: int, noun: str) -> str:
    return f"Any {noun if lost == 1 else _counted(lost, noun)} may be lost."


def _named(servers: list[int]) -> str:
    if len(servers) == 1:
        return f"Server {servers[0]} is"
    ordered = len(servers) > 2 and servers == list(range(servers[0], servers[-1] + 1))
    return f"Servers {f'{servers[0]} to {servers[-1]}' if ordered else ', '.join(map(str, servers))} are"
