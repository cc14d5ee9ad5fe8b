"""A soak: clients use values for minutes while satellites, links and clients fail, and all that they saw is judged at the end."""

import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Self

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.tenant_secret import secret_of
from skymemory.store.keyvalue import ValueKeys
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.run_record import Running, RunRecord
from soak import clients
from soak.faults import Fault, Faults, Homes, beliefs
from soak.log import operations
from soak.report import Report, Settings, overlap
from support.agents import AgentProcess
from support.paths import Paths
from support.ports import free_ports
from support.register import ABSENT, Operation, Violation, violations
from support.waiting import wait_until

ROW_S: Final = 4.0
"""Mean seconds from one move of the window to the next."""
_SCHEDULE_ROW_S: Final = 440.0
"""The same in the schedule."""
_EPOCH_MS: Final = 1_795_000_000_000
_STORES: Final = 2
"""Clients that open stores, and agents."""
_START_S: Final = 5.0


@dataclass
class _Running:
    """A client that runs."""

    process: Any
    orders: Connection
    start: Callable[[], "_Running"]
    """Starts another one in its place."""
    log: Path
    name: str


@dataclass
class Soak:
    """A sky, its clients and those who hurt them. A context manager."""

    folder: Path
    settings: Settings
    tell: Callable[[str], None] = print
    _stack: ExitStack = field(default_factory=ExitStack)
    _running: list[_Running] = field(default_factory=list)
    _logs: list[tuple[Path, float | None]] = field(default_factory=list)
    """Logs of clients that were killed, and when."""
    _starts: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        with self._stack:
            self._open()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self) -> None:
        chosen, seed = self.settings, self.settings.seed
        self._over = Event()
        self._keys = [f"key {seed} {number}" for number in range(chosen.keys)]
        base = Constellation().replace(
            constellation={"planes": 5, "slots": 5},
            cache={"servers": 12, "parity": 2, "centre": [3, 3], "deadline_ms": 3000},
            satellite={"store_mib": 32, "scrub_s": 2},
        )
        base = base.replace(network={"port": free_port(base)})
        self.local = self._stack.enter_context(LocalConstellation(base))
        self.record = RunRecord(self.folder / "sky")
        self.record.save(Running("local", base, dict(self.local.processes)))
        self._playing = self.record.sky(base).playing
        if chosen.turns:
            self._replay()
        self._paths = self._stack.enter_context(Paths(base, 2 * _STORES))
        self._spawn = multiprocessing.get_context("spawn")
        self._ports = free_ports(_STORES)
        self._agents = [self._agent(number) for number in range(_STORES)]
        self._stack.callback(lambda: [agent.stop() for agent in self._agents])
        self._stack.callback(self._kill_all)
        for agent in self._agents:
            agent.wait_ready()
        for number in range(_STORES):
            sky = self._paths.skies[_STORES + number]
            self._start(f"library {number}", clients.library, sky, self._playing.path.parent)
            for connection in range(2):
                self._start(f"redis {number}.{connection}", clients.gateway, self._ports[number])
        environment = {**os.environ, "SKYMEM_STATE": str(self.record.folder)}
        self._start("shell", clients.shell, environment, pause_s=100 * chosen.pause_s)

    # ---- what runs --------------------------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Let the sky turn by `skymem replay`, for longer than the soak takes."""
        hours = 1 + int(2 * self.settings.seconds / ROW_S * _SCHEDULE_ROW_S / 3600)
        orbits = Walker(5, 5, 550.0, 86.4, True, 1)
        schedule = Schedule.compute(orbits, "walker star:5x5", Site(52.5, 13.4), 10.0, _EPOCH_MS, hours * 3_600_000)
        schedule.save(file := self.folder / "schedule.csv")
        words = ["replay", str(file), "--from", "start", "--speed", str(_SCHEDULE_ROW_S / ROW_S)]
        log = self._stack.enter_context((self.folder / "replay.log").open("wb"))
        child = subprocess.Popen(
            [sys.executable, "-c", "from skymemory.cli import main; main()", *words],
            env={**os.environ, "SKYMEM_STATE": str(self.record.folder)},
            stdout=log,
            stderr=log,
        )
        self._stack.callback(child.wait)
        self._stack.callback(child.kill)
        wait_until(lambda: self._playing.load() or child.poll() is not None, "the replay has begun")
        assert child.poll() is None, (self.folder / "replay.log").read_text()

    def _agent(self, number: int) -> AgentProcess:
        """Start an agent on its own paths. It follows the schedule that the sky follows."""
        sky = self._paths.skies[number]
        record = RunRecord(self.folder / f"agent {number}")
        if not record.path.exists():
            record.save(Running("local", sky, dict(self.local.processes)))
            link = record.sky(sky).playing.path.parent
            link.parent.mkdir(parents=True, exist_ok=True)
            self._playing.path.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self._playing.path.parent)
        return AgentProcess(record.folder, "--resp-port", str(self._ports[number]))

    def _start(self, name: str, target: Callable[..., None], *args: object, pause_s: float = 0.0) -> None:
        self._running.append(self._started(name, target, args, pause_s))

    def _started(self, name: str, target: Callable[..., None], args: tuple[object, ...], pause_s: float) -> _Running:
        self._starts[name] += 1
        full = f"{name}.{self._starts[name]}"
        chosen = self.settings
        log = self.folder / f"{full}.log"
        seed = f"{chosen.seed} {full}"
        plan = clients.Plan(full, self._keys, log, seed, pause_s or chosen.pause_s, chosen.bound_s)
        orders, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=target, args=(theirs, plan, *args), daemon=True)
        process.start()
        theirs.close()
        return _Running(process, orders, partial(self._started, name, target, args, pause_s), log, full)

    def _kill_all(self) -> None:
        for one in self._running:
            one.process.kill()
            one.process.join()

    # ---- what fails -------------------------------------------------------------------------------------------------

    def _kill_clients(self, faults: Faults) -> None:
        """Kill one client, or one agent, after the other, and start it again."""
        dice = random.Random(f"{self.settings.seed} clients")
        while not self._over.wait(dice.expovariate(1 / (3 * self.settings.fault_s))):
            if dice.random() < 0.2:
                number = dice.randrange(_STORES)
                with faults.fault("kill agent", number) as fault:
                    self._agents[number].kill()
                    self._over.wait(dice.uniform(0, self.settings.fault_s))
                    self._agents[number] = self._agent(number)
            else:
                number = dice.randrange(len(self._running))
                one = self._running[number]
                with faults.fault("kill client", one.name) as fault:
                    one.process.kill()
                    one.process.join()
                    # What an agent was told goes on; a store dies with its process, and with a shell its command may go on.
                    self._logs.append((one.log, time.monotonic() if one.name.startswith("library") else None))
                    self._running[number] = one.start()
            fault.caught_up = fault.end

    # ---- the soak ---------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Use values, hurt satellites and clients, let all heal, read everything a last time, and judge."""
        chosen = self.settings
        keys = ValueKeys(secret_of(self.local.constellation))
        playing = PlayingRecord(self._playing.path.parent)
        homes = Homes(self.local, playing, [keys.key_of(name) for name in self._keys])
        faults = Faults(self.local, self._paths, range(2 * _STORES), homes, self._over)
        works: list[Callable[[], None]] = [
            partial(faults.hurt_satellites, f"{chosen.seed} {number}", chosen.fault_s, chosen.bound_s)
            for number in range(chosen.at_once)
        ]
        works.append(partial(self._kill_clients, faults))
        failed: list[BaseException] = []
        threads = [Thread(target=_guarded, args=(work, failed)) for work in works]
        end_s = time.monotonic() + chosen.seconds
        time.sleep(min(_START_S, chosen.seconds / 4))
        for thread in threads:
            thread.start()
        while (left_s := end_s - time.monotonic()) > 0 and not failed:
            time.sleep(min(left_s, 30.0))
            self.tell(f"{max(0, round(end_s - time.monotonic()))} s left: {self._counts()}, {len(faults.log)} faults")
        self._over.set()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        for one in self._running:
            one.orders.send("read all")
        unread = {one.name: one.orders.recv() for one in self._running}
        return self._report(faults, unread)

    def _counts(self) -> str:
        lines = sum(path.read_bytes().count(b'"answer"') for path in self.folder.glob("*.log") if path.name != "replay.log")
        return f"{lines:,} operations"

    def _report(self, faults: Faults, unread: dict[str, list[str]]) -> Report:
        done = [(one.log, None) for one in self._running]
        all_of_them = [one for path, killed in [*self._logs, *done] for one in operations(path, killed)]
        as_absent = [replace(one, saw=ABSENT) if _is_nil(one) else one for one in all_of_them]
        nils = [wrong for wrong in violations(as_absent) if _is_nil(wrong.read)]
        hosts = {name: self.folder / name / "agent.log" for name in map("agent {}".format, range(_STORES))}
        hosts |= {log.stem: log for log in self.folder.glob("*.said")}
        happened = sorted([*faults.log, *(one for host in hosts.items() for one in beliefs(*host))], key=lambda one: one.begin)
        quiet = sum(not any(overlap(fault, wrong.read) for fault in happened) for wrong in nils)
        found, most = violations(all_of_them), self.local.constellation.cache.parity
        excused = [wrong for wrong in found if _hurt(happened, wrong) > most]
        wrong = [wrong for wrong in found if wrong not in excused]
        return Report(self.settings, all_of_them, happened, wrong, excused, nils, quiet, faults.behind, unread)


def _hurt(faults: Sequence[Fault], wrong: Violation) -> int:
    """Return how many satellites were hurt from the begin of the write that was not seen until the read ended."""
    begin = wrong.read.begin if wrong.newest is None else wrong.newest.begin
    return len(frozenset().union(*(one.hurt for one in faults if one.begin < wrong.read.end and begin < one.caught_up)))


def _is_nil(one: Operation) -> bool:
    return one.what == "GET" and one.answer == "nil"


def _guarded(work: Callable[[], None], failed: list[BaseException]) -> None:
    try:
        work()
    except BaseException as error:  # told by the main thread
        failed.append(error)
