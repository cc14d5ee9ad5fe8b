"""Parts of a store that all its operations share."""

from collections.abc import Callable
from dataclasses import dataclass

from skymemory.link.control import ControlPlane
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.late_search import LateSearch
from skymemory.store.radix import RadixIndex
from skymemory.store.routes import Routes


@dataclass(frozen=True, slots=True)
class StoreParts:
    """Parts of one store."""

    where: Whereabouts
    """The places of the servers, and the schedule that they follow."""
    index: RadixIndex
    control: ControlPlane
    routes: Routes
    late_search: LateSearch
    tenant: int
    """Name space of the keys."""
    count: Callable[..., None]
    """Function that takes counts by the names of `StoreStatistics`."""


class Operation:
    """An operation of a store, with the store's parts at hand."""

    def __init__(self, parts: StoreParts) -> None:
        self._where = parts.where
        self._index = parts.index
        self._control = parts.control
        self._routes = parts.routes
        self._late_search = parts.late_search
        self._tenant = parts.tenant
        self._count = parts.count
