"""One run of the twin: a constellation under its schedule, with delays of the moment, a workload and faults from a seed."""

import ctypes
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import ceil
from random import Random
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from skymemory.common import defaults
from skymemory.common.progress import Progress
from skymemory.sky.constellation import Constellation
from skymemory.sky.file_sections import Security
from skymemory.sky.orbit.schedule import Schedule, WindowChange
from skymemory.sky.orbit.views import Link
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.twin import VIOLATIONS_MAX, structures
from skymemory.twin.fault_actions import Action, link_of, node_of
from skymemory.twin.faults import Faults, Jitter, Loss
from skymemory.twin.link_delays import delays
from skymemory.twin.native_twin import PACKET_BYTES_MIN, PACKET_ROOM, START_US, NativeTwin, TwinError, pointer
from skymemory.twin.structures import AttackKind, Break, Cause, Invariant, Refusal, Scheduled, Stop, Uplink
from skymemory.twin.workload import OpPlan, PlannedBlock, Workload, plan
from skymemory.wire import icd
from skymemory.wire.address import Satellite

SAMPLE_MS: Final = 60_000
"""Milliseconds between two looks at the sky; from one to the next delays change evenly."""
_QUIET_MS: Final = 90_000
"""Time after the last operation and fault: longer than a satellite pauses between two looks for what a handover has left."""
_PERIODS_REPAIR: Final = 4
"""Periods of the scrub after which what is lost is being repaired; how long that takes is below (`SKYT_Rows_RepairUs`)."""
_REPAIR_MS: Final = 120_000
_TURN_MS_MIN: Final = 20
"""Least time after which the window goes back: chunks are on their way by then."""
_TURN_MS_MOST: Final = 4000
_ACTIVE_MAX: Final = 16
_PACKETS_MAX: Final = 32_768
_QUEUE_MS: Final = 500
SuiteName = Literal["off", "gmac_header", "gmac_packet", "blake2b_header", "blake2b_packet"]
_SUITE_OF_ATTACKS: Final = "gmac_header"
"""Suite with an attacker, unless the constellation file names one."""
_SUITES: Final[dict[SuiteName, int]] = {
    "off": icd.SUITE_NONE,
    "gmac_header": icd.SUITE_GMAC_HEADER,
    "gmac_packet": icd.SUITE_GMAC_PACKET,
    "blake2b_header": icd.SUITE_BLAKE2B_HEADER,
    "blake2b_packet": icd.SUITE_BLAKE2B_PACKET,
}


@dataclass(frozen=True)
class Setup:
    """All that determines a run, except the core's own code."""

    torus: Torus
    layout: LayoutName
    servers: int
    uplink: Uplink
    chunk_bytes: int
    packet_bytes: int
    credit: int
    gossip: bool
    scrub_ms: int
    lazy_purge: bool
    rate_kbps: int
    handover_ms: int
    """Time after a row's begin for which the places of earlier rows are asked first."""
    schedule: Schedule
    duration_ms: int
    parity: int = 0
    """Servers that hold parity of a row; 0: blocks have no erasure code."""
    ask_all: bool = False
    """Hosts ask for parity at once."""
    from_ms: int = 0
    """Time of the schedule at the start of the run."""
    speed: float = 1.0
    """Speed of the schedule, as in a replay; links have the delays of the moment all the same."""
    workload: Workload = field(default_factory=Workload)
    hello_ms: int = 10_000
    """Milliseconds between two greetings of neighbours."""
    slots: int | None = None
    """Slots of each store; None: twice the satellite's share of all blocks."""
    late_put_ms: int = 0
    """Milliseconds by which the hosts' clocks are late when they put."""
    turn_share: float = 0.0
    """Share of the rows after which the window goes back for a moment, so that handovers cross."""
    violations_max: int = VIOLATIONS_MAX
    """Number of violations at which the run stops; 0: it does not."""
    ask_first: int = 0
    """One get of so many is preceded by a question of its host to all servers what they hold; 0: none is."""
    look_up: int = 0
    """One get of so many is preceded by a look-up of the block by its key; 0: none is."""
    values: int = 0
    """One name of so many is that of values, which have versions; 0: none is."""
    cancelled: float = 0.0
    """Share of the operations that their host calls back."""
    suite: SuiteName = "off"
    """Security suite that satellites and hosts ask for; off: nobody has keys."""
    scheduled: Scheduled = Scheduled.ALL
    """Satellites that have the schedule. Unless all have it, the window stays as at the start, and the others have that alone."""
    quota: tuple[int, int] = (0, 0)
    """Percent of each store that are reserved for each tenant, and that it may have at most; 0 at most: there are no quotas."""

    @property
    def track(self) -> Track:
        """The track of the window in the time of the run."""
        track = self.schedule.track.played(self.from_ms, self.speed)
        return track if self.scheduled is Scheduled.ALL else replace(track, rows=track.rows[:1])

    @classmethod
    def of(cls, constellation: Constellation, schedule: Schedule, duration_ms: int, workload: Workload | None = None) -> "Setup":
        """Return a run of a constellation file under a schedule.

        Raises:
            TwinError: The schedule is for another constellation.
        """
        header, cache = schedule.header, constellation.cache
        if (header.planes, header.slots) != (constellation.planes, constellation.slots):
            raise TwinError(
                f"the schedule is for {header.planes} planes x {header.slots} slots,"
                f" the constellation has {constellation.planes} x {constellation.slots}"
            )
        uplink = Uplink.CENTRE if cache.uplink == "nearest" else Uplink.DIRECT
        packet_bytes = min(constellation.network.mtu, max(cache.chunk_bytes + PACKET_ROOM, PACKET_BYTES_MIN))
        return cls(
            torus=constellation.torus,
            layout=cache.layout,
            servers=cache.servers,
            parity=cache.parity,
            ask_all=cache.ask_all,
            uplink=Uplink.ENTRIES if cache.window == "physical" else uplink,
            chunk_bytes=cache.chunk_bytes,
            packet_bytes=packet_bytes,
            credit=constellation.satellite.credit,
            gossip=constellation.satellite.gossip,
            scrub_ms=1000 * constellation.satellite.scrub_s,
            lazy_purge=cache.lazy_purge,
            rate_kbps=constellation.links.rate_kbps,
            handover_ms=round(1000 * cache.handover_s),
            schedule=schedule,
            duration_ms=duration_ms,
            hello_ms=1000 * constellation.satellite.hello_s,
            workload=Workload(deadline_ms=cache.deadline_ms) if workload is None else workload,
            suite=_suite_of(constellation.security) if constellation.security.keyring else "off",
        )


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    time_s: float
    text: str
    satellite: Satellite | None
    operation: int | None
    block: int | None
    chunk: int | None

    def __str__(self) -> str:
        """Return one line: at 116.236 s, satellite [3, 10], operation 83, block 5, chunk 2: kept: a chunk is held nowhere..."""
        where = [
            f"{name} {value}"
            for name, value in (
                ("satellite", self.satellite),
                ("operation", self.operation),
                ("block", self.block),
                ("chunk", self.chunk),
            )
            if value is not None
        ]
        return f"at {', '.join([f'{self.time_s:.6f} s', *where])}: {self.invariant}: {self.text}"


@dataclass(frozen=True)
class Report:
    """Result of a run. Nothing in it depends on the machine: two runs of one seed give equal reports."""

    seed: int
    digest: str
    """Digest of every event: the same for the same seed, faults, schedule and build."""
    virtual_s: float
    events: int
    packets: int
    packet_bytes: int
    packets_on_way_most: int
    puts: int
    puts_failed: int
    gets: int
    hits: int
    fallback_hits: int
    """Hits that needed more than one place of a server."""
    misses: dict[str, int]
    """Misses by cause."""
    purges: int
    touches: int
    touched: int
    """Blocks of chains that satellites took for used."""
    prefetches: int
    prefetched: int
    """Prefetches that ended well."""
    mends: int
    """Blocks that were put again well, as a get lacked shares."""
    handovers: int
    migrated_chunks: int
    migrated_bytes: int
    handover_mean_s: float
    """Mean time from a row's begin until its last chunk has come."""
    handover_most_s: float
    evicted_chunks: int
    blocks_checked: int
    """Blocks at the end that were put and that nothing took."""
    blocks_misplaced: int
    """Checked blocks of which a chunk was not where the schedule has it."""
    faults: dict[str, int]
    """Faults by kind; for faults of packets the number of packets."""
    sealed: int
    """Packets that were given a tag under a session key."""
    session_keys: int
    """Session keys under which at least one packet was sealed."""
    commands: int
    """Commands of the mission that satellites have obeyed."""
    attacks: dict[str, int]
    """Actions of the attacker, by kind."""
    refusals: dict[str, int]
    """Packets of the attacker that have arrived and of which nothing came, by reason."""
    violations: dict[str, int]
    """Violations by invariant."""
    stopped: str
    """Reason for an early end: `violations` (as many as it was to stop at) or `livelock`; empty if it did not end early."""
    first: tuple[Violation, ...] = field(repr=False)
    """First violations."""

    @property
    def violated(self) -> int:
        """Violations in all."""
        return sum(self.violations.values())

    def as_json(self) -> dict[str, Any]:
        """Return everything, for `--json`."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "first"}
        return {**told, "first": [asdict(one) for one in self.first]}


class Twin:
    """A constellation under a virtual clock. A context manager; runs once."""

    def __init__(self, setup: Setup, seed: int, faults: Faults | None = None, broken: Break = Break.NOTHING) -> None:
        """Prepare the run; nothing happens yet.

        Args:
            faults: Faults; the seed draws their times, as part of the run. None: none.
            broken: A way to break the core on purpose.

        Raises:
            TwinError: Numbers contradict each other.
        """
        header = setup.schedule.header
        most_ms = int((header.duration_ms - setup.from_ms) / setup.speed)
        if not 0 < setup.duration_ms <= most_ms:
            raise TwinError(f"the run has {setup.duration_ms} ms; allowed are 1 to {most_ms}, what is left of the schedule")
        if setup.servers > setup.torus.planes * setup.torus.slots:
            raise TwinError(
                f"there are {setup.servers} servers; the constellation has {setup.torus.planes * setup.torus.slots} satellites"
            )
        self.setup, self.seed = setup, seed
        self._sky = setup.schedule.full_sky
        track = setup.track
        rows = _turned(track.rows, setup.turn_share, seed)
        self._track = Track(track.torus, tuple(row for row in rows if row[0] < setup.duration_ms))
        rows_ms = [time_ms for time_ms, _ in self._track.rows]
        blocks, ops = plan(setup.workload, seed, rows_ms, setup.duration_ms, setup.chunk_bytes)
        faults = Faults() if faults is None else faults
        if faults.attack and setup.suite == "off":
            raise TwinError("the faults have an attack, and nobody has keys; without them whoever can send may do everything")
        actions = faults.actions(setup.torus, setup.duration_ms, seed)
        self._begun = Counter(action.begins for action in actions if action.begins)
        self.ops: Sequence[OpPlan] = ops
        """Operations, in order of time."""
        self.native = NativeTwin(self._config(blocks))
        self._fill(blocks, actions)
        self._library = self.native.library
        self._library.SKYT_Break(self.native.handle, int(broken))

    def __enter__(self) -> "Twin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory; safe to call twice."""
        self.native.close()

    def run(self, progress: Progress | None = None) -> Report:
        """Run to the end.

        Args:
            progress: Function that is called with (milliseconds passed, all).

        Raises:
            OrbitError: A satellite leaves its orbit.
        """
        assert self.native.handle is not None
        end_ms = self.setup.duration_ms + self.setup.workload.deadline_ms + self._quiet_ms()
        looks = self._looks(end_ms)
        for time_ms, until_ms in zip(looks, [*looks[1:], end_ms], strict=True):
            self._look(time_ms)
            if not self._library.SKYT_Run(self.native.handle, START_US + 1000 * until_ms):
                break
            if progress is not None:
                progress(until_ms, end_ms)
        self._library.SKYT_Finish(self.native.handle)
        return self._report()

    def _quiet_ms(self) -> int:
        """Return the time after the last operation and fault: handovers end, and what was lost is repaired."""
        setup = self.setup
        return _QUIET_MS + (_PERIODS_REPAIR * setup.scrub_ms + _REPAIR_MS if setup.parity and setup.scrub_ms else 0)

    # ---- before the run

    def _config(self, blocks: Sequence[PlannedBlock]) -> structures.Config:
        setup = self.setup
        data = [-(-block.block_len // setup.chunk_bytes) for block in blocks]
        chunks = sum(count + setup.parity * -(-count // (setup.servers - setup.parity)) for count in data)
        slots = 2 * (chunks // setup.servers + 2 * len(blocks)) + 64 if setup.slots is None else setup.slots
        return structures.Config(
            seed=self.seed,
            start_us=START_US,
            planes=setup.torus.planes,
            slots=setup.torus.slots,
            seam_cut=int(setup.torus.seam_cut),
            layout=LAYOUT_IDS[setup.layout],
            servers=setup.servers,
            parity=setup.parity,
            asks_all=int(setup.ask_all),
            uplink=int(setup.uplink),
            hosts=setup.workload.hosts,
            tenants=setup.workload.tenants,
            slot_bytes=setup.chunk_bytes,
            slot_count=slots,
            packet_bytes=setup.packet_bytes,
            credit=setup.credit,
            part_lifetime_ms=defaults.DEFAULT_PART_LIFETIME_MS,
            chunk_bytes=setup.chunk_bytes,
            block_bytes=max((block.block_len for block in blocks), default=1),
            handover_ms=setup.handover_ms,
            active_max=_ACTIVE_MAX,
            packets_max=_PACKETS_MAX,
            isl_kbps=setup.rate_kbps,
            ground_kbps=setup.rate_kbps,
            queue_ms=_QUEUE_MS,
            gossip=int(setup.gossip),
            scrub_ms=setup.scrub_ms,
            lazy_purge=int(setup.lazy_purge),
            hello_ms=setup.hello_ms,
            late_put_ms=setup.late_put_ms,
            violations_max=setup.violations_max,
            ask_first=setup.ask_first,
            look_up=setup.look_up,
            values=setup.values,
            cancel_ppm=round(1e6 * setup.cancelled),
            scheduled=int(setup.scheduled),
            suite=_SUITES[setup.suite],
            quota_reserved=setup.quota[0],
            quota_most=setup.quota[1],
        )

    def _fill(self, blocks: Sequence[PlannedBlock], actions: Sequence[Action]) -> None:
        deadline_ms = self.setup.workload.deadline_ms
        self.native.fill(
            self._track.rows,
            [structures.Block(*block) for block in blocks],
            [
                structures.Fault(START_US + one.time_us, one.kind, one.node, one.link, one.value, structures.Model(*one.model))
                for one in actions
            ],
            [structures.Op(START_US + op.time_us, op.kind, op.block, op.host, deadline_ms, op.epoch) for op in self.ops],
        )

    # ---- the sky

    def _looks(self, end_ms: int) -> list[int]:
        """Return the times at which delays change in another way, other links are up, or other satellites are in sight."""
        looks = set(range(0, end_ms, SAMPLE_MS))
        begin_ms, speed = self.setup.from_ms, self.setup.speed
        self._windows = {
            max(ceil((change.time_ms - begin_ms) / speed), 0): change
            for change in self.setup.schedule.changes
            if isinstance(change, WindowChange) and change.time_ms - begin_ms < speed * self.setup.duration_ms
        }
        looks.update(self._windows)
        self._down: frozenset[Link] | None = None
        first = self.setup.from_ms + np.arange(0, end_ms + SAMPLE_MS, SAMPLE_MS)
        header = self.setup.schedule.header
        self._delays = delays(
            self._sky, self.setup.schedule.site, header.planes, header.slots, header.epoch_ms + first.astype(np.int64)
        )
        return sorted(looks)

    def _look(self, time_ms: int) -> None:
        if time_ms % SAMPLE_MS == 0:
            if time_ms == 0:
                self._move_delays(0)
            self._move_delays(time_ms + SAMPLE_MS)
        change = self._windows.get(time_ms)
        if change is None:
            return
        down = self.setup.schedule.links_down(max(change.time_ms, self.setup.from_ms))
        if down != self._down:
            self._down = down
            self._library.SKYT_SetLinksDown(self.native.handle, pointer(self._links_down(down), ctypes.c_uint8))
        stays = self.setup.scheduled is not Scheduled.ALL and time_ms > 0  # so do the ways in: else the window goes out of sight
        if self.setup.uplink is Uplink.ENTRIES and not stays:
            nodes = [node_of(satellite, self.setup.torus) for satellite in change.in_sight]
            self._library.SKYT_SetEntries(self.native.handle, (ctypes.c_uint32 * len(nodes))(*nodes), len(nodes))

    def _move_delays(self, until_ms: int) -> None:
        """Let delays become those of the next look at the sky by this time."""
        self.native.set_delays(START_US + 1000 * until_ms, *next(self._delays))

    def _links_down(self, links: frozenset[Link]) -> NDArray[np.uint8]:
        """Return which of each satellite's links are down; a seam that is declared logical is up."""
        torus = self.setup.torus
        down = np.zeros((torus.planes * torus.slots, 4), dtype=np.uint8)
        star = self.setup.schedule.header.pattern == "star"
        for origin, target in links:
            over_seam = star and origin.plane == torus.planes and target.plane == 1 and torus.planes > 1
            if over_seam and origin.slot == target.slot:
                continue  # the torus has no such link
            down[node_of(origin, torus), link_of(torus, origin, target)] = 1
            down[node_of(target, torus), link_of(torus, target, origin)] = 1
        return down

    # ---- after the run

    def _report(self) -> Report:
        counters = self.native.counters()
        faults = {
            "loss": counters.lost,
            "burst": counters.lost_burst,
            "jitter": counters.jittered,
            "reorder": counters.reordered,
            "duplicate": counters.duplicated,
            "flip": counters.flipped,
            "corrupt": counters.corrupted,
            **{kind: self._begun[kind] for kind in ("cut", "partition", "crash", "pressure", "late_clock")},
        }
        return Report(
            seed=self.seed,
            digest=f"{counters.digest:016x}",
            virtual_s=(counters.now_us - START_US) / 1e6,
            handover_mean_s=counters.handover_us / 1e6 / max(counters.handovers, 1),
            handover_most_s=counters.handover_most_us / 1e6,
            misses={cause.name.lower(): counters.misses[cause] for cause in Cause if counters.misses[cause]},
            faults=faults,
            attacks={kind.name.lower(): counters.attacks[kind] for kind in AttackKind},
            refusals={why.name.lower(): counters.refusals[why] for why in Refusal},
            violations={one.name.lower(): counters.violations[one] for one in Invariant},
            stopped="" if counters.stopped == Stop.NOT else Stop(counters.stopped).name.lower(),
            first=tuple(self._violations()),
            **{name: getattr(counters, name) for name, kind in Report.__annotations__.items() if kind is int and name != "seed"},
        )

    def _violations(self) -> Iterator[Violation]:
        found, index = structures.Violation(), 0
        while self._library.SKYT_Violation(self.native.handle, index, ctypes.byref(found)):
            index += 1
            slots = self.setup.torus.slots
            yield Violation(
                Invariant(found.invariant).name.lower(),
                (found.time_us - START_US) / 1e6,
                found.text.decode(),
                None if found.node == structures.NONE else Satellite(found.node // slots + 1, found.node % slots + 1),
                _some(found.op),
                _some(found.block),
                _some(found.chunk),
            )


def _turned(rows: Sequence[tuple[int, Cell]], share: float, seed: int) -> Iterator[tuple[int, Cell]]:
    """Yield the rows of a track. After some of them the window goes back to the row before, and on again after as long."""
    rng = Random(f"turns {seed}")
    for number, (time_ms, cell) in enumerate(rows):
        yield time_ms, cell
        end_ms = rows[number + 1][0] if number + 1 < len(rows) else time_ms + 1_000_000
        after_ms = _TURN_MS_MIN + int(rng.random() ** 2 * _TURN_MS_MOST)
        if number > 0 and rng.random() < share and time_ms + 2 * after_ms < end_ms:
            yield time_ms + after_ms, rows[number - 1][1]
            yield time_ms + 2 * after_ms, cell


def _some(number: int) -> int | None:
    return None if number == structures.NONE else number


def _suite_of(security: Security) -> SuiteName:
    return _SUITE_OF_ATTACKS if security.suite == "auto" else security.suite


def with_keys(setup: Setup, faults: Faults) -> Setup:
    """Return the setup, with keys if there is an attacker."""
    return replace(setup, suite=_SUITE_OF_ATTACKS) if faults.attack and setup.suite == "off" else setup


def with_links(faults: Faults, constellation: Constellation) -> Faults:
    """Return the faults together with the loss and jitter that the constellation file sets for all links."""
    links = constellation.links
    loss = (Loss(rate=links.loss_ppm / 1e6),) if links.loss_ppm else ()
    jitter = (Jitter(ms=min(links.jitter_us / 1000, 1000.0)),) if links.jitter_us else ()
    return faults.model_copy(update={"loss": (*faults.loss, *loss), "jitter": (*faults.jitter, *jitter)})
