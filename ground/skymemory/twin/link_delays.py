"""Delays of the moment: distances of satellites from their neighbours and from the ground, for many instants at once."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from skymemory.sky.orbit.paper_distances import LIGHT_KM_PER_S
from skymemory.sky.orbit.positions import Site, Sky

Delays = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""Microseconds of the inter-satellite links, shape (satellites, 4), north, east, south, west; and of the way to the ground, shape
(satellites,)."""

_AT_ONCE: Final = 60
"""Instants at once: they bound memory to some megabytes for a thousand satellites."""


def delays(sky: Sky, site: Site, planes: int, slots: int, unix_ms: NDArray[np.int64]) -> Iterator[Delays]:
    """Yield the delays of straight lines at the speed of light, one pair of arrays for each instant.

    Satellites below the horizon have a delay too: in a logical window the ground talks to them.

    Args:
        sky: Sky with a satellite in every place of planes x slots.
        unix_ms: Instants.

    Raises:
        OrbitError: A satellite leaves its orbit.
    """
    for first in range(0, len(unix_ms), _AT_ONCE):
        positions = sky.positions_km(unix_ms[first : first + _AT_ONCE])
        grid = positions.reshape(planes, slots, -1, 3)
        east = np.linalg.norm(np.roll(grid, -1, axis=1) - grid, axis=-1)
        south = np.linalg.norm(np.roll(grid, -1, axis=0) - grid, axis=-1)
        isl = np.stack([np.roll(south, 1, axis=0), east, south, np.roll(east, 1, axis=1)], axis=-1)
        ground = np.linalg.norm(positions - site.position_km, axis=-1)
        for at in range(positions.shape[1]):
            yield _us(isl[:, :, at].reshape(-1, 4)), _us(ground[:, at])


def _us(km: NDArray[np.float64]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(np.rint(km * (1e6 / LIGHT_KM_PER_S)), dtype=np.uint32)
