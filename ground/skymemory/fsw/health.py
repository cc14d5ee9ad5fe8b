"""Example of code on board in Python: a health monitor.

It asks kvc and isl for their housekeeping, judges it, and publishes a telemetry packet of its own, which isl relays to ground
hosts that listen. `python -m skymemory.fsw.health` takes the arguments of `skysat` and is a whole satellite with the monitor.
"""

import ctypes
import signal
import sys
import time
from collections.abc import Callable, Sequence
from ctypes import LittleEndianStructure, c_uint8, c_uint16, c_uint32, c_uint64
from enum import IntEnum
from typing import Final

from skymemory.fsw import structures
from skymemory.fsw.bus import FswError
from skymemory.fsw.executive import Executive
from skymemory.fsw.link_names import NEIGHBOURS, links_of
from skymemory.fsw.messages import ONBOARD_MIDS, Message
from skymemory.fsw.onboard import OnboardApp
from skymemory.fsw.structures import EventType, IslHousekeeping, KvcHousekeeping

HEALTH_MID: Final = ONBOARD_MIDS[0]
STATE_EVENT_ID: Final = 2
FULL_PERMILLE: Final = 950
PERIOD_S: Final = 10.0


class HealthState(IntEnum):
    """Health of the satellite."""

    GOOD = 0
    DEGRADED = 1
    """A link is down, the store is nearly full, or something went wrong since the last report."""
    BAD = 2
    """There is no service, no link at all, or an app that does not answer."""


class HealthTelemetry(LittleEndianStructure):
    """Payload of the health packet. Differences are against the report before."""

    state: int
    links_up: int
    links_present: int
    plane: int
    slot: int
    store_permille: int
    reports: int
    chunks: int
    new_errors: int
    new_evicted_chunks: int
    new_dropped_packets: int
    _fields_ = (
        ("state", c_uint8),
        ("links_up", c_uint8),
        ("links_present", c_uint8),
        ("spare", c_uint8),
        ("plane", c_uint16),
        ("slot", c_uint16),
        ("store_permille", c_uint32),
        ("reports", c_uint32),
        ("chunks", c_uint64),
        ("new_errors", c_uint64),
        ("new_evicted_chunks", c_uint64),
        ("new_dropped_packets", c_uint64),
    )


class HealthMonitor(OnboardApp):
    """An app that publishes `HealthTelemetry` once a period, and an event for each change of state."""

    def __init__(self, period_s: float = PERIOD_S, name: str = "HEALTH", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name, structures.KVC_HK_TLM_MID, structures.ISL_HK_TLM_MID, period_s=period_s, clock=clock)
        self.state = HealthState.GOOD
        self.reports = 0
        self._kvc: KvcHousekeeping | None = None
        self._isl: IslHousekeeping | None = None
        self._totals = (0, 0, 0)
        self._ask()

    def on_message(self, message: Message) -> None:
        """Keep housekeeping for the report."""
        if message.mid == structures.KVC_HK_TLM_MID:
            self._kvc = KvcHousekeeping.from_buffer_copy(message.payload)
        else:
            self._isl = IslHousekeeping.from_buffer_copy(message.payload)

    def on_period(self) -> None:
        """Report on what has come since the last period, and ask for the next."""
        report = self._report()
        self.app.publish(HEALTH_MID, bytes(report))
        if report.state != self.state:
            self.state = HealthState(report.state)
            kind = EventType.INFORMATION if self.state is HealthState.GOOD else EventType.ERROR
            text = f"health {self.state.name}: links {report.links_up} of {report.links_present}"
            self.app.event(STATE_EVENT_ID, f"{text}, store {report.store_permille / 10:.1f} % full", kind)
        self._ask()

    def _ask(self) -> None:
        self._kvc = self._isl = None
        self.app.command(structures.KVC_SEND_HK_MID)
        self.app.command(structures.ISL_SEND_HK_MID)

    def _report(self) -> HealthTelemetry:
        self.reports += 1
        report = HealthTelemetry(state=HealthState.BAD, reports=self.reports)
        kvc, isl = self._kvc, self._isl
        if kvc is None or isl is None:
            return report
        links = links_of(isl)
        ring = [links[name] for name in NEIGHBOURS]
        report.plane, report.slot = isl.plane, isl.slot
        report.links_present = sum(link.present for link in ring)
        report.links_up = sum(link.up for link in ring)
        report.chunks = kvc.chunks
        report.store_permille = 1000 * kvc.used_bytes // max(kvc.store_bytes, 1)
        totals = (kvc.errors, kvc.evicted_chunks, isl.dropped)
        # Counters that were reset are smaller than before, so all of their counts are new.
        new = [now - before if now >= before else now for now, before in zip(totals, self._totals, strict=True)]
        self._totals = totals
        report.new_errors, report.new_evicted_chunks, report.new_dropped_packets = new
        cut_off = report.links_present > 0 and report.links_up == 0
        worn = report.links_up < report.links_present or report.store_permille >= FULL_PERMILLE or any(new)
        if kvc.serving and not cut_off:
            report.state = HealthState.DEGRADED if worn else HealthState.GOOD
        return report


def decode(payload: bytes) -> HealthTelemetry:
    """Return the report in the payload of a message of id HEALTH_MID.

    Raises:
        ValueError: The payload has a wrong length.
    """
    if len(payload) != ctypes.sizeof(HealthTelemetry):
        raise ValueError(f"the report has {len(payload)} bytes; allowed are {ctypes.sizeof(HealthTelemetry)}")
    return HealthTelemetry.from_buffer_copy(payload)


def main(arguments: Sequence[str]) -> int:
    """Run a satellite with the monitor until SIGTERM or SIGINT; return the exit status as of `skysat`: 0, 1 failed, 2 usage."""
    words = list(arguments)
    period_s = PERIOD_S
    if "--health-s" in words:
        at = words.index("--health-s")
        try:
            period_s = float(words[at + 1])
        except (IndexError, ValueError):
            period_s = 0.0
        if not 0.1 <= period_s <= 3600:
            print("--health-s: allowed are 0.1 .. 3600", file=sys.stderr)
            return 2
        del words[at : at + 2]
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with Executive(words, quiet=False) as satellite, HealthMonitor(period_s):
            own = satellite.isl_housekeeping()
            print(f"skysat {own.plane},{own.slot} ready, health every {period_s:g} s", flush=True)
            signal.sigwait(ends)
    except FswError as error:
        print(f"skysat: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
