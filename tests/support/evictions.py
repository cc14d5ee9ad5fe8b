"""Evictions, as far as a store can tell: satellites forget blocks, and nobody is told."""

from collections.abc import Sequence

from skymemory.link.control import ControlPlane, Purged
from skymemory.sky.entry_satellites import Route
from support.satellites import forget


def evict(control: ControlPlane, routes: Sequence[Route], keys: Sequence[bytes], tenant: int = 0) -> Purged:
    """Let each of these satellites forget its chunks of these blocks."""
    return forget(control, routes, keys, tenant)
