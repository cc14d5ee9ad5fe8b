"""Requests of the control plane and their answers. Answers are not trusted: the core judges them."""

from dataclasses import dataclass, field

from skymemory.link import structures
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.packets import NO_KEY


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: the operation, its satellite and the entry satellite."""

    route: Route
    op: int
    apid: int = icd.APID_KVC
    flags: int = 0
    tenant: int = 0
    epoch: int = 0
    """PURGE: the latest row for which the block may be kept; `SCHEDULE_STAYS`: any."""
    content: int = 0
    """PURGE: the content of that version that goes; 0: any does."""
    version: int = 0
    """PURGE: the newest version that goes; 0: any does."""
    key: bytes = NO_KEY
    chunk_id: int = 0
    credit: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class SatelliteAnswer:
    """A response, and the seconds from the last sending of its request."""

    raw: structures.Packet = field(repr=False, compare=False)
    """The response as a structure of the core."""
    payload: bytes
    rtt_s: float
    repeated: bool
    """True if the request was sent more than once: an earlier copy may have done its work."""

    @property
    def status(self) -> int:
        """The response's status (ICD)."""
        return self.raw.status

    @property
    def ok(self) -> bool:
        """True if the satellite did what it was asked."""
        return self.status == icd.STATUS_OK
