"""Faults of a soak, which follow from a seed, within what the promise allows: who was hurt has caught up before others are hurt.

A satellite that was killed, stopped or cut off has missed writes, or lost what it had, and hosts that take it for lost put at
others for half a minute more. Then it has caught up once each home of each key has the version that anybody has at that time, or
a newer one. Nobody else can tell: a satellite that one host could not reach does not know it.
"""

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from threading import Event, Lock
from typing import Final

from skymemory.common import defaults
from skymemory.fsw.messages import Message
from skymemory.fsw.structures import ISL_CMD_MID, IslFunctionCode, IslSetLink
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import by_share, offset_of
from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import ChunkSet
from support.paths import Cut, Paths

_ANSWER_S: Final = 2.0
_LOOK_S: Final = 0.2
_ANY_CHUNK: Final = ChunkSet(0, 1, (True,)).encode()
_NEIGHBOURS: Final = range(4)
_GROUND: Final = 4
BELIEF_S: Final = defaults.HOST_LOST_US / 1e6 + 4.0
"""Seconds in which a host that has taken a satellite for lost may still put at others, and these may not have handed over yet."""
_SAID: Final = re.compile(r"^(\S+) WARNING \S+: (\[.*\]): no answer")


@dataclass
class Fault:
    """What happened to whom. Times are seconds of the monotonic clock."""

    kind: str
    whom: str
    begin: float
    end: float = inf
    """Time at which it was over."""
    caught_up: float = inf
    """Time by which all that was missed had come home; of faults of clients the same as `end`."""
    hurt: frozenset[Satellite] = frozenset()
    """Satellites that somebody does not reach, or that have not caught up, until then."""


def beliefs(host: str, said: Path) -> list[Fault]:
    """Return the satellites that a host took for lost, right or wrong, as it wrote them down. It puts at others meanwhile."""
    now, found = time.monotonic() - time.time(), []
    for line in said.read_text().splitlines() if said.exists() else ():
        if match := _SAID.match(line):
            begin = now + datetime.fromisoformat(match[1]).timestamp()
            lost = frozenset(Satellite(int(plane), int(slot)) for plane, slot in re.findall(r"\[(\d+), (\d+)\]", match[2]))
            found.append(Fault("taken for lost", f"{match[2]} by {host}", begin, begin, begin + BELIEF_S, lost))
    return found


class Homes:
    """What the homes of keys hold, as the satellites say it."""

    def __init__(self, local: LocalConstellation, playing: PlayingRecord, keys: Sequence[bytes]) -> None:
        self._sky = local.constellation
        self._where = Whereabouts(self._sky, playing)
        self._keys = keys

    def newest(self, control: ControlPlane) -> dict[bytes, int]:
        """Return the newest version of each key that any satellite has."""
        return {key: max([version for version, _ in held.values()], default=0) for key, held in self._held(control).items()}

    def behind(self, control: ControlPlane, least: dict[bytes, int], out: Sequence[Satellite]) -> str:
        """Return who does not have these versions or newer ones, in words; '' if all homes have them.

        Args:
            least: Versions by key.
            out: Satellites that are out of order for another reason, and do not count.
        """
        held = self._held(control)
        self._where.refresh()
        servers = self._where.servers(self._where.row(time.time()))
        for key, version in least.items():
            total = max(held[key].values(), default=(0, 0))[1]
            homes = by_share(servers, offset_of(key, total, len(servers)))[:total] if total else []
            for home in homes:
                if home not in out and held[key].get(home, (0, 0))[0] < version:
                    return f"{home} has no {key.hex()[:8]} of version {version} or newer"
        return ""

    def _held(self, control: ControlPlane) -> dict[bytes, dict[Satellite, tuple[int, int]]]:
        """Return the version and the number of chunks by key and satellite."""
        places = [*self._sky.torus.satellites()]
        asks = [
            Ask(Route(one, one), icd.OP_HAS, flags=icd.FLAG_ANY, tenant=self._sky.cache.tenant, key=key, payload=_ANY_CHUNK)
            for key in self._keys
            for one in places
        ]
        found: dict[bytes, dict[Satellite, tuple[int, int]]] = {key: {} for key in self._keys}
        for ask, answer in zip(asks, control.exchange(asks, _ANSWER_S), strict=True):
            if answer is not None and answer.ok and answer.raw.block_len:
                found[ask.key][ask.route.satellite] = answer.raw.block_version, answer.raw.chunk_total
        return found


class Faults:
    """Faults of satellites and of clients' paths, until they are to end."""

    def __init__(self, local: LocalConstellation, paths: Paths, clients: Sequence[int], homes: Homes, over: Event) -> None:
        """Hurt nobody yet.

        Args:
            clients: Numbers of clients in `paths`.
            over: Set when no further fault is to begin.
        """
        self.log: list[Fault] = []
        self.behind: list[str] = []
        """What did not come home in time after a fault."""
        self._local, self._paths, self._clients, self._homes, self._over = local, paths, clients, homes, over
        self._lock = Lock()
        self._out: list[Satellite] = []
        """Satellites that are out of order, or have not caught up."""
        self._cuts: dict[int, list[Cut]] = {}
        """What is cut of each client's paths now."""

    @contextmanager
    def fault(self, kind: str, whom: object) -> Iterator[Fault]:
        """Write down a fault for as long as it lasts."""
        fault = Fault(kind, str(whom), time.monotonic())
        self.log.append(fault)
        yield fault
        fault.end = time.monotonic()

    def hurt_satellites(self, seed: str, pause_s: float, bound_s: float) -> None:
        """Hurt one satellite after the other. Several threads may do so: no two of them hurt the same one.

        Args:
            seed: Seed of all that is chosen.
            pause_s: Mean time from one fault to the next.
            bound_s: Time in which a satellite has to catch up.
        """
        dice = random.Random(seed)
        kinds: Sequence[Callable[[Satellite, float, random.Random], str]] = (
            self._kill,
            self._stop,
            self._isolate,
            self._hide,
            self._cut,
            self._cut_off,
        )
        with ControlPlane(self._local.constellation) as control:
            while not self._over.wait(dice.expovariate(1 / pause_s)):
                satellite = self._chosen(dice)
                kind, length_s = dice.choice(kinds), min(dice.expovariate(1 / (2 * pause_s)), 5 * pause_s)
                with self.fault(kind.__name__.strip("_"), satellite) as fault:
                    fault.hurt = frozenset([satellite] if kind != self._cut_off else [])
                    fault.whom += kind(satellite, length_s, dice)
                self._wait_for(control, satellite, fault, bound_s)
                with self._lock:
                    self._out.remove(satellite)

    def _chosen(self, dice: random.Random) -> Satellite:
        """Return a satellite that nobody else hurts, and take it."""
        with self._lock:
            satellite = dice.choice([one for one in self._local.constellation.torus.satellites() if one not in self._out])
            self._out.append(satellite)
        return satellite

    def _wait_for(self, control: ControlPlane, satellite: Satellite, fault: Fault, bound_s: float) -> None:
        """Wait until all has come home that was missed. If that takes too long it is written down, and the wait goes on."""
        self._over.wait(BELIEF_S)
        least, is_late = self._homes.newest(control), False
        while behind := self._homes.behind(control, least, [one for one in self._out if one != satellite]):
            if not is_late and time.monotonic() > fault.end + BELIEF_S + bound_s:
                self.behind.append(f"{fault.kind} {fault.whom}: {behind}")
                is_late = True
            if is_late and self._over.is_set():
                return
            time.sleep(_LOOK_S)
        fault.caught_up = time.monotonic()

    def _cut_client(self, satellites: Sequence[Satellite], length_s: float, dice: random.Random) -> str:
        client, way = dice.choice(self._clients), dice.choice(("up", "down", "up and down"))
        cut = Cut(frozenset(satellites if "up" in way else ()), frozenset(satellites if "down" in way else ()))
        self._change(client, lambda cuts: cuts.append(cut))
        self._over.wait(length_s)
        self._change(client, lambda cuts: cuts.remove(cut))
        return f" from client {client}, {way}"

    def _change(self, client: int, change: Callable[[list[Cut]], None]) -> None:
        with self._lock:
            cuts = self._cuts.setdefault(client, [])
            change(cuts)
            up, down = (frozenset().union(*some) for some in zip(*cuts, strict=True)) if cuts else ((), ())
            self._paths.cut(client, up, down)

    # ---- kinds of faults ------------------------------------------------------------------------------------------------

    def _kill(self, satellite: Satellite, length_s: float, _: random.Random) -> str:
        with self._lock:
            self._local.kill(satellite)
        self._over.wait(length_s)
        with self._lock:
            self._local.restart(satellite)
        return ""

    def _stop(self, satellite: Satellite, length_s: float, _: random.Random) -> str:
        """Stop a process; what has come meanwhile it does when it goes on."""
        pid = self._local.processes[satellite].pid
        os.kill(pid, signal.SIGSTOP)
        self._over.wait(length_s)
        os.kill(pid, signal.SIGCONT)
        return ""

    def _isolate(self, satellite: Satellite, length_s: float, _: random.Random) -> str:
        """Cut a satellite off from its neighbours; the ground still reaches it."""
        return self._without_links(satellite, _NEIGHBOURS, length_s)

    def _hide(self, satellite: Satellite, length_s: float, _: random.Random) -> str:
        """Cut a satellite off from all of the ground; its neighbours still reach it."""
        return self._without_links(satellite, [_GROUND], length_s)

    def _without_links(self, satellite: Satellite, links: Sequence[int], length_s: float) -> str:
        seconds = max(1, round(length_s))
        commands = [Message(ISL_CMD_MID, bytes(IslSetLink(link, seconds)), IslFunctionCode.SET_LINK).encode() for link in links]
        with ControlPlane(self._local.constellation) as control:
            for command in commands:
                control.relay([Route(satellite, satellite)], command, _ANSWER_S)
        time.sleep(seconds)
        return f" {seconds} s"

    def _cut(self, satellite: Satellite, length_s: float, dice: random.Random) -> str:
        """Cut one client off from a satellite; all others still reach it."""
        return self._cut_client([satellite], length_s, dice)

    def _cut_off(self, _: Satellite, length_s: float, dice: random.Random) -> str:
        """Cut one client off from all satellites."""
        return self._cut_client([*self._local.constellation.torus.satellites()], length_s, dice)
