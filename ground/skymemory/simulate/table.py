"""Figure 16 as a table: the latency of every server, over the sweep of the authors' simulator (paper, section 4, table 2).

A server's time is the time that light takes to it plus the processing time of its chunks. Hop-aware, the model is on the
satellite in the middle and light goes from satellite to satellite: the distance is the sum of the hops. In the other two
strategies the ground is below the satellite in the middle and the distance is the straight line of equations (3) and (4).

The paper's table 2 says 2 to 21 MB and 160 to 2,000 km; the public simulator sweeps 1 to 21 MiB and 160 to 1,920 km, and so
does this file.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skymemory.orbit.geometry import cross_plane_km, in_plane_km
from skymemory.placement.torus import Satellite, Torus
from skymemory.simulate.mapping import STRATEGIES, Strategy, places

Parameter = Literal["KVC_BYTES", "SERVERS", "CHUNK_PROCESSING_TIME", "ALTITUDE"]
Times = npt.NDArray[np.float64]

LIGHT_M_PER_S = 2.998e8
"""the authors' rounded value; `orbit.geometry` has the exact one"""
TORUS = Torus(planes=15, slots=15)
CENTRE = Satellite(plane=8, slot=8)
CHUNK_BYTES = 12_288

SWEEP: dict[Parameter, tuple[float, ...]] = {
    "KVC_BYTES": tuple(mib * 2**20 for mib in range(1, 22)),
    "SERVERS": (9, 25, 49, 81),
    "CHUNK_PROCESSING_TIME": tuple(step / 500 for step in range(1, 11)),
    "ALTITUDE": tuple(range(160_000, 2_000_000, 220_000)),
}
"""bytes, count, seconds a chunk, metres; a parameter that is not swept has the last value of its list"""


class Row(NamedTuple):
    """One point of figure 16; statistics are over the servers, the deviation is the population's."""

    strategy: Strategy
    parameter: Parameter
    value: float
    max_s: float
    min_s: float
    mean_s: float
    std_s: float


def rows(*, published: bool = False) -> list[Row]:
    """All points of figure 16: three strategies, four parameters, 44 values.

    Args:
        published: with the mappings of the authors' simulator instead of the corrected ones.
    """
    return [
        Row(strategy, parameter, value, *statistics)
        for strategy in STRATEGIES
        for parameter in SWEEP
        for value, statistics in zip(SWEEP[parameter], _statistics(strategy, parameter, published), strict=True)
    ]


def _statistics(strategy: Strategy, parameter: Parameter, published: bool) -> list[list[float]]:
    """For each value of the parameter: largest, smallest, mean time and standard deviation, seconds."""
    swept = {name: np.array(values if name == parameter else values[-1:]) for name, values in SWEEP.items()}
    results = []
    for servers in swept.pop("SERVERS"):
        satellites = places(strategy, CENTRE, int(servers), TORUS, published=published)
        times_s = server_times_s(satellites, strategy == "hop", *(column[:, np.newaxis] for column in swept.values()))
        statistics = (times_s.max(axis=1), times_s.min(axis=1), times_s.mean(axis=1), times_s.std(axis=1))
        results += np.stack(statistics, axis=1).tolist()
    return results


def server_times_s(
    satellites: Sequence[Satellite], on_board: bool, kvc_bytes: Times, processing_s: Times, altitude_m: Times
) -> Times:
    """The time of each server in each case.

    Args:
        satellites: of the n servers, in their order, on the torus of 15 x 15.
        on_board: the sum of hops from the middle instead of the straight line from the ground.
        kvc_bytes, processing_s, altitude_m: shape (cases, 1) or (1, 1).

    Returns:
        Seconds, shape (cases, n).
    """
    steps = np.abs(np.array(satellites) - np.array(CENTRE))
    planes, slots = np.minimum(steps, np.array((TORUS.planes, TORUS.slots)) - steps).T
    altitudes_km = altitude_m[:, 0] / 1000
    cross_m = np.array([[cross_plane_km(TORUS.planes, altitude_km) * 1000] for altitude_km in altitudes_km])
    in_m = np.array([[in_plane_km(TORUS.slots, altitude_km) * 1000] for altitude_km in altitudes_km])
    across_m, along_m = planes * cross_m, slots * in_m
    distances_m: Times = across_m + along_m if on_board else np.hypot(np.hypot(across_m, along_m), altitude_m)
    return distances_m / LIGHT_M_PER_S + processing_s * chunks(kvc_bytes, len(satellites))


def chunks(kvc_bytes: Times, servers: int) -> Times:
    """Chunks of each server: chunk c, from 0, is on server c mod n. Shape (cases, servers)."""
    totals = np.ceil(kvc_bytes / CHUNK_BYTES)
    return np.ceil((totals - np.arange(servers)) / servers)


def held(swept: Parameter) -> dict[Parameter, float]:
    """The parameters that are not swept together with this one, and what they are meanwhile."""
    return {name: values[-1] for name, values in SWEEP.items() if name != swept}
