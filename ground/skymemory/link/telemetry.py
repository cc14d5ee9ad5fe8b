"""Telemetry that satellites send to this host for the time of a lease; the core says which packets count (`SKY_Host_Listen`)."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from skymemory.link.ask import Ask
from skymemory.link.association_keys import AssociationKeys
from skymemory.link.ground import Ground
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite

_RENEW_S: Final = 2.0
"""Seconds between two renewals of a lease."""
_LOOK_S: Final = 0.25
"""Seconds between two looks whether to stop, and longest wait for satellites that do not confirm a lease."""


def listen(
    constellation: Constellation,
    keys: AssociationKeys | None,
    routes: Sequence[Route],
    duration_s: float,
    stopped: Callable[[], bool],
) -> Iterator[tuple[Satellite, bytes]]:
    """Yield messages from the Software Bus of satellites as they come, each with its headers.

    Args:
        constellation: Constellation of the satellites.
        keys: Keyring of this host; None: it has none.
        routes: Satellites to listen to, and the ways to them.
        duration_s: Seconds for which to listen.
        stopped: Function that is called now and then; True ends the listening early.

    Raises:
        OSError: The system gives no socket, or somebody closed its descriptor.
    """
    end_s = time.monotonic() + duration_s
    asks = [Ask(route, icd.OP_RELAY, icd.APID_ISL, icd.FLAG_TLM) for route in routes]
    ground = Ground(constellation, Timing(), keys)
    try:
        ground.listen()
        renew_s = 0.0
        while (now_s := time.monotonic()) < end_s and not stopped():
            if now_s >= renew_s and asks:
                ground.ask(asks, round(1000 * _LOOK_S))
                renew_s = now_s + _RENEW_S
            told = ground.next_telemetry(min(end_s, now_s + _LOOK_S) - time.monotonic())
            while told is not None:
                yield told
                is_due = time.monotonic() >= min(end_s, renew_s) or stopped()
                told = None if is_due else ground.next_telemetry(0.0)
    finally:
        ground.close()
