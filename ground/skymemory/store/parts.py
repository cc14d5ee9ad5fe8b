"""Parts of a store that all its operations share."""

from collections.abc import Callable
from dataclasses import dataclass

from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane
from skymemory.link.operations import Operation
from skymemory.link.structures import Kind
from skymemory.sky.placement.structures import Verdict
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.incomplete import IncompleteBlocks
from skymemory.store.radix import RadixIndex
from skymemory.store.runner import Runner
from skymemory.store.tidying import Tidying


@dataclass(frozen=True, slots=True)
class StoreParts:
    """Parts of one store."""

    where: Whereabouts
    """The places of the servers, and the schedule that they follow."""
    index: RadixIndex
    incomplete: IncompleteBlocks
    control: ControlPlane
    runner: Runner
    tidying: Tidying
    tenant: int
    """Name space of the keys."""
    count: Callable[..., None]
    """Function that takes counts by the names of `StoreStatistics`."""


class Part:
    """A part of a store that has operations done, with the store's parts at hand."""

    def __init__(self, parts: StoreParts) -> None:
        self._where = parts.where
        self._index = parts.index
        self._incomplete = parts.incomplete
        self._control = parts.control
        self._runner = parts.runner
        self._tidying = parts.tidying
        self._tenant = parts.tenant
        self._count = parts.count
        self._deadline_ms = parts.where.constellation.cache.deadline_ms

    def _operation(self, kind: Kind, entry: BlockEntry, ways: int = 0) -> Operation:
        """Return an operation on a block of this tenant."""
        return Operation(kind, entry, self._tenant, self._deadline_ms, ways=ways)

    def _settle(self, entry: BlockEntry, verdict: Verdict) -> bool:
        """Forget a block here by a verdict on it. Return True if its rest is to be purged on the satellites as well."""
        if verdict is Verdict.KEEP:
            return False
        self._index.remove(entry.key)
        if verdict is Verdict.FORGET:
            self._incomplete.add(entry.key)
        return verdict is Verdict.PURGE
