"""One request of the control plane, and what an answer says. What comes back is not trusted."""

from dataclasses import dataclass

from skymemory.block_entry import BlockEntry
from skymemory.placement.window import Route
from skymemory.wire import icd
from skymemory.wire.packets import NO_KEY, Packet


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: what to ask of which satellite, through which."""

    route: Route
    op: int
    apid: int = icd.APID_KVC
    flags: int = 0
    tenant: int = 0
    epoch: int = 0
    key: bytes = NO_KEY
    chunk_id: int = 0
    credit: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response and the time from the last sending of its request, in seconds."""

    packet: Packet
    rtt_s: float
    repeated: bool = False
    """the request was sent more than once: what it was to do may have been done before"""

    @property
    def ok(self) -> bool:
        """True if the satellite did what it was asked."""
        return self.packet.status == icd.STATUS_OK


def tells(answer: Answer | None) -> bool:
    """Does it say what is held, and not why it could not be asked?"""
    return answer is not None and answer.packet.status in (icd.STATUS_OK, icd.STATUS_NOT_FOUND)


def entry_of(key: bytes, answer: Answer | None) -> BlockEntry | None:
    """What a satellite says of a block; None: nothing, or nothing that could be."""
    if answer is None or not answer.ok:
        return None
    packet = answer.packet
    lengths_fit = (
        packet.chunk_total >= 1
        and 1 <= packet.chunk_len <= icd.LIMIT_CHUNK_BYTES
        and (packet.chunk_total - 1) * packet.chunk_len < packet.block_len <= packet.chunk_total * packet.chunk_len
    )
    if packet.key != key or not lengths_fit:
        return None
    return BlockEntry(key, packet.block_len, packet.chunk_len, packet.chunk_total, packet.epoch, 0.0)
