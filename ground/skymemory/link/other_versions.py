"""Satellites that speak another version of the SkyMemory header: they answer, and take no packet of this program.

The ground discards their answers, as their fields may mean something else, so they look silent. This module asks silent
satellites once more, and reads only what every version has (`skymemory.wire.packets.decode_base`).
"""

import secrets
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from skymemory.sky.constellation import Constellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, Packet, PacketError, decode_base

DEADLINE_S: Final = 0.5
"""Seconds to wait for satellites of this machine or of near ones."""
AGAIN_S: Final = 30.0
"""Seconds after which a satellite that is still silent is asked again."""
_SENDINGS: Final = 3
"""Times that a satellite is asked, as packets get lost."""
_DATAGRAM_BYTES: Final = 65536


def other_versions(
    constellation: Constellation, satellites: Iterable[Satellite], deadline_s: float = DEADLINE_S
) -> dict[Satellite, int]:
    """Ask satellites, all at once and each at its own address, which version of the header they speak.

    Args:
        constellation: Constellation of the satellites.
        satellites: The satellites to ask; those that do not answer other questions.
        deadline_s: Seconds from now.

    Returns:
        The versions of those that speak another one than this program. Satellites that do not answer are left out.

    Raises:
        OSError: The system gives no socket.
    """
    waiting = {(constellation.address(*one), constellation.network.port): one for one in satellites}
    found: dict[Satellite, int] = {}
    if not waiting:
        return found
    end_s = time.monotonic() + deadline_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        number, request_id = secrets.randbelow(0xFFFF) + 1, secrets.randbits(64)
        for sending in range(1, _SENDINGS + 1):
            for address, satellite in waiting.items():
                with suppress(OSError):  # the other satellites have to be asked all the same
                    asking.sendto(_ping(satellite, number, request_id), address)
            until_s = end_s - deadline_s * (_SENDINGS - sending) / _SENDINGS
            while waiting and (left_s := until_s - time.monotonic()) > 0:
                if select.select([asking], [], [], left_s)[0]:
                    _take(asking, request_id, waiting, found)
    return found


def _ping(satellite: Satellite, number: int, request_id: int) -> bytes:
    """Return a request that satellites of any version answer."""
    host = Satellite(GROUND_PLANE, number)
    return Packet(
        is_request=True,
        apid=icd.APID_KVC,
        op=icd.OP_PING,
        src=host,
        dst=satellite,
        gateway=satellite,
        hop_limit=icd.LIMIT_HOP_LIMIT,
        request_id=request_id,
    ).encode()


def _take(asking: socket.socket, request_id: int, waiting: dict[tuple[str, int], Satellite], found: dict[Satellite, int]) -> None:
    """Take one datagram; note the version of its satellite."""
    try:
        datagram, address = asking.recvfrom(_DATAGRAM_BYTES)
        answer = decode_base(datagram)
    except (OSError, PacketError):  # nobody listens at some address, or these bytes are no packet
        return
    if answer.is_request or answer.request_id != request_id or (satellite := waiting.pop(address, None)) is None:
        return
    if answer.version != icd.VERSION:
        found[satellite] = answer.version


def version_words(found: Mapping[Satellite, int]) -> str:
    """Return a sentence about satellites that speak other versions, and what to do; '' if there are none."""
    if not found:
        return ""
    groups = sorted(Counter(found.values()).items())
    told = [f"{count} satellite{' speaks' if count == 1 else 's speak'} version {version}" for version, count in groups]
    return f"{' and '.join(told)} of the packets, and this program version {icd.VERSION}: see docs/upgrading.md"


class VersionWatch:
    """Knowledge of the versions of satellites that do not answer. Silent ones are asked again now and then."""

    def __init__(self, constellation: Constellation, clock: Callable[[], float] = time.monotonic) -> None:
        self._constellation, self._clock = constellation, clock
        self._asked_s: dict[Satellite, float] = {}
        self.found: dict[Satellite, int] = {}
        """Satellites that speak another version, with it."""

    def look(self, silent: Collection[Satellite]) -> None:
        """Ask the silent satellites that were not asked of late, and forget all others.

        If the system gives no socket, none is known to speak another version, and they are asked again after `AGAIN_S`.
        """
        now_s = self._clock()
        self._asked_s = {one: asked_s for one, asked_s in self._asked_s.items() if one in silent and now_s - asked_s < AGAIN_S}
        due = [one for one in silent if one not in self._asked_s]
        self.found = {one: version for one, version in self.found.items() if one in self._asked_s}
        self._asked_s |= dict.fromkeys(due, now_s)
        with suppress(OSError):  # satellites that answer are there all the same
            self.found |= other_versions(self._constellation, due)
