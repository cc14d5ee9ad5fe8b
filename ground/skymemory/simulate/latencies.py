"""Figure 16 as a table: the latency of every server, over the sweep of the authors' simulator (paper, section 4, table 2).

A server's time is the time that light takes to it plus the processing time of its chunks. In the hop-aware layout the model is on
the satellite in the middle and light goes from satellite to satellite: the distance is the sum of the hops. In the other two
layouts the ground is below the satellite in the middle and the distance is the straight line of equations (3) and (4).

The paper's table 2 has 2 to 21 MB and 160 to 2,000 km. The public simulator sweeps 1 to 21 MiB and 160 to 1,920 km, and so does
this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skymemory.simulate.mapping import PAPER_LAYOUTS, places
from skymemory.sky.orbit.paper_distances import cross_plane_km, in_plane_km
from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

Parameter = Literal["KVC_BYTES", "SERVERS", "CHUNK_PROCESSING_TIME", "ALTITUDE"]
Times = npt.NDArray[np.float64]

LIGHT_M_PER_S = 2.998e8
"""The authors' rounded value; `orbit.paper_distances` has the exact one."""
CHUNK_BYTES = 12_288

_SIZES_BYTES = tuple(mib * 2**20 for mib in range(1, 22))
_SERVERS = (9, 25, 49, 81)
_PROCESSING_S = tuple(step / 500 for step in range(1, 11))
_ALTITUDES_KM = tuple(range(160, 2000, 220))


@dataclass(frozen=True)
class Sweep:
    """A constellation, and the values that each parameter takes in figure 16."""

    torus: Torus
    centre: Satellite
    servers: int
    """Number of servers where it is not swept."""
    altitude_km: float
    """Altitude where it is not swept."""

    def values(self, parameter: Parameter) -> tuple[float, ...]:
        """Return the values of a parameter: bytes, a count, seconds a chunk, or metres.

        The values of servers and altitude include the one that is held elsewhere. Numbers of servers that exceed the
        constellation's satellites are left out.
        """
        if parameter == "KVC_BYTES":
            return _SIZES_BYTES
        if parameter == "CHUNK_PROCESSING_TIME":
            return _PROCESSING_S
        if parameter == "ALTITUDE":
            return tuple(km * 1000 for km in sorted({*_ALTITUDES_KM, self.altitude_km}))
        satellites = self.torus.planes * self.torus.slots
        return tuple(sorted({*(count for count in _SERVERS if count <= satellites), self.servers}))

    def held(self, swept: Parameter) -> dict[Parameter, float]:
        """Return the parameters that are held while this one is swept, with their values."""
        values: dict[Parameter, float] = {
            "KVC_BYTES": _SIZES_BYTES[-1],
            "SERVERS": self.servers,
            "CHUNK_PROCESSING_TIME": _PROCESSING_S[-1],
            "ALTITUDE": self.altitude_km * 1000,
        }
        del values[swept]
        return values


PAPER = Sweep(Torus(planes=15, slots=15), Satellite(plane=8, slot=8), servers=_SERVERS[-1], altitude_km=_ALTITUDES_KM[-1])
PARAMETERS: tuple[Parameter, ...] = ("KVC_BYTES", "SERVERS", "CHUNK_PROCESSING_TIME", "ALTITUDE")


class Row(NamedTuple):
    """A point of figure 16. Statistics are over the servers.

    They are not numbers (NaN) where a published mapping has no satellite for a server: the block never comes.
    """

    layout: LayoutName
    parameter: Parameter
    value: float
    max_s: float
    min_s: float
    mean_s: float
    std_s: float
    """Standard deviation; all servers are counted, so it is divided by their number."""
    se_s: float
    """Standard error of the mean, std_s / sqrt(servers), a column of the authors' files; figure 16 does not show it."""


def most_servers(torus: Torus) -> int:
    """Return the paper's largest number of servers that a constellation has satellites for."""
    satellites = torus.planes * torus.slots
    return max((count for count in _SERVERS if count <= satellites), default=satellites)


def rows(sweep: Sweep = PAPER, *, published: bool = False) -> list[Row]:
    """Compute all points of figure 16: three layouts, four parameters; 44 values each with the paper's sweep.

    Args:
        published: True for the mappings of the authors' simulator instead of the corrected ones.

    Raises:
        ValueError: Servers or centre do not fit the torus.
    """
    return [
        Row(layout, parameter, value, *statistics)
        for layout in PAPER_LAYOUTS
        for parameter in PARAMETERS
        for value, statistics in zip(sweep.values(parameter), _statistics(sweep, layout, parameter, published), strict=True)
    ]


def _statistics(sweep: Sweep, layout: LayoutName, parameter: Parameter, published: bool) -> list[list[float]]:
    """Return for each value of the parameter: largest, smallest, mean time, standard deviation and error, seconds."""
    held = sweep.held(parameter)
    swept = {name: np.array(sweep.values(name) if name == parameter else (held[name],)) for name in PARAMETERS}
    results: list[list[float]] = []
    for servers in map(int, swept.pop("SERVERS")):
        satellites = places(layout, sweep.centre, servers, sweep.torus, published=published)
        if len(satellites) < servers:
            results += [[nan] * 5] * max(map(len, swept.values()))
            continue
        times_s = server_times_s(sweep, satellites, layout == "hop", *(column[:, np.newaxis] for column in swept.values()))
        deviation_s = times_s.std(axis=1)
        statistics = (
            times_s.max(axis=1),
            times_s.min(axis=1),
            times_s.mean(axis=1),
            deviation_s,
            deviation_s / np.sqrt(servers),
        )
        results += np.stack(statistics, axis=1).tolist()
    return results


def server_times_s(
    sweep: Sweep, satellites: Sequence[Satellite], on_board: bool, kvc_bytes: Times, processing_s: Times, altitude_m: Times
) -> Times:
    """Compute the time of each server in each case.

    Args:
        satellites: Satellites of the n servers, in their order.
        on_board: True for the sum of hops from the middle instead of the straight line from the ground.
        kvc_bytes, processing_s, altitude_m: Values of the cases; shape (cases, 1) or (1, 1).

    Returns:
        Seconds, shape (cases, n).
    """
    torus = sweep.torus
    steps = np.abs(np.array(satellites) - np.array(sweep.centre))
    planes, slots = np.minimum(steps, np.array((torus.planes, torus.slots)) - steps).T
    altitudes_km = altitude_m[:, 0] / 1000
    cross_m = np.array([[cross_plane_km(torus.planes, altitude_km) * 1000] for altitude_km in altitudes_km])
    in_m = np.array([[in_plane_km(torus.slots, altitude_km) * 1000] for altitude_km in altitudes_km])
    across_m, along_m = planes * cross_m, slots * in_m
    distances_m: Times = across_m + along_m if on_board else np.hypot(np.hypot(across_m, along_m), altitude_m)
    return distances_m / LIGHT_M_PER_S + processing_s * chunks(kvc_bytes, len(satellites))


def chunks(kvc_bytes: Times, servers: int) -> Times:
    """Count the chunks of each server: chunk c, from 0, is on server c mod n. Shape (cases, servers)."""
    totals = np.ceil(kvc_bytes / CHUNK_BYTES)
    return np.ceil((totals - np.arange(servers)) / servers)
