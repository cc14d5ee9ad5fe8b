"""Evictions, as far as a store can tell: satellites forget blocks, and nobody is told."""

from collections.abc import Sequence

from skymemory.link.ask import is_confirmed
from skymemory.link.control import ControlPlane, Purged, PurgeOrder
from skymemory.sky.entry_satellites import Route


def evict(control: ControlPlane, routes: Sequence[Route], keys: Sequence[bytes], tenant: int = 0) -> Purged:
    """Let each of these satellites forget its chunks of these blocks."""
    answers = control.purge([PurgeOrder(key, routes) for key in keys], tenant, 10)
    return Purged(sum(one.chunks for one in answers), all(map(is_confirmed, answers)))
