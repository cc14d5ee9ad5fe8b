"""The compiled twin, `libskymem_twin.so`. `skymemory.twin.structures` has its structures and functions, made from `twin.h`."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from skymemory.common import compiled
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.twin import structures
from skymemory.wire import icd

START_US: Final = 1_000_000_000
"""Virtual time at the start: nothing on board shall see a clock at 0."""
PACKET_ROOM: Final = 192
"""Bytes of headers around a chunk."""
PACKET_BYTES_MIN: Final = (
    icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES + icd.HEADER_BYTES + icd.TAG_BYTES + icd.PEC_BYTES + 8 * icd.STATS_KVC_COUNT
)
"""Least `packet_bytes` of a satellite, whose counters fit one packet (`SKY_SERVICE_PACKET_MIN`)."""
_LIBRARY: Final = "libskymem_twin.so"


class TwinError(ValueError):
    """A run that is impossible; the message is one line that says why."""


@cache
def library() -> ctypes.CDLL:
    """Load the library, once.

    Raises:
        FileNotFoundError: The package was not built.
    """
    return compiled.load(compiled.library_path(_LIBRARY), structures.SIGNATURES)


class NativeTwin:
    """A constellation of flight cores under a virtual clock. A context manager.

    `library` has the functions, whose first argument is `handle`.
    """

    def __init__(self, config: structures.Config) -> None:
        """Make the satellites and hosts.

        Raises:
            TwinError: Numbers are out of range or contradict each other.
        """
        self.library = library()
        why = ctypes.create_string_buffer(structures.TEXT_BYTES)
        self.handle: int | None = self.library.SKYT_Create(ctypes.byref(config), why)
        if not self.handle:
            raise TwinError(why.value.decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory; safe to call twice."""
        if self.handle is not None:
            self.library.SKYT_Destroy(self.handle)
            self.handle = None

    def fill(
        self,
        rows: Sequence[tuple[int, Cell]],
        blocks: Sequence[structures.Block],
        faults: Sequence[structures.Fault],
        ops: Sequence[structures.Op],
    ) -> None:
        """Give the twin its schedule, blocks, faults and operations. If they do not fit, it is closed.

        Raises:
            TwinError: They do not fit the constellation, or there is not enough memory.
        """
        times = (ctypes.c_uint32 * len(rows))(*(time_ms for time_ms, _ in rows))
        planes = (ctypes.c_int32 * len(rows))(*(cell.plane for _, cell in rows))
        slots = (ctypes.c_int32 * len(rows))(*(cell.slot for _, cell in rows))
        good = (
            self.library.SKYT_SetRows(self.handle, times, planes, slots, len(rows))
            and self.library.SKYT_AddBlocks(self.handle, (structures.Block * len(blocks))(*blocks), len(blocks))
            and self.library.SKYT_AddFaults(self.handle, (structures.Fault * len(faults))(*faults), len(faults))
            and self.library.SKYT_AddOps(self.handle, (structures.Op * len(ops))(*ops), len(ops))
        )
        if not good:
            self.close()
            raise TwinError("schedule, workload or faults do not fit the constellation, or there is not enough memory")

    def set_delays(self, until_us: int, isl_us: NDArray[np.uint32], ground_us: NDArray[np.uint32]) -> None:
        """Let delays become these by a virtual time; shapes (satellites, 4) and (satellites,)."""
        self.library.SKYT_SetDelays(self.handle, until_us, *(pointer(array, ctypes.c_uint32) for array in (isl_us, ground_us)))

    def counters(self) -> structures.Counters:
        """Return what has been counted so far."""
        counters = structures.Counters()
        self.library.SKYT_Counters(self.handle, ctypes.byref(counters))
        return counters

    def results(self) -> Sequence[structures.Result]:
        """Return the result of each operation, in the order of `fill`; the twin must not be closed meanwhile."""
        count = ctypes.c_uint32()
        found = self.library.SKYT_Results(self.handle, ctypes.byref(count))
        return found[: count.value]  # type: ignore[no-any-return]


def pointer(array: NDArray[Any], kind: Any) -> Any:
    """Return a pointer to an array's first element."""
    return array.ctypes.data_as(ctypes.POINTER(kind))
