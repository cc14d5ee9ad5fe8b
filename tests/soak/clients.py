"""Clients of a soak, each in a process of its own. What they do with values follows from a seed, and all is written down."""

import logging
import random
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from skymemory.sky.constellation import Constellation
from skymemory.store.keyvalue import KeyValue
from skymemory.store.results import PutResult, Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.playing_record import PlayingRecord
from soak.log import Log
from support.register import ABSENT, PRESENT

_SIZES: Final = ((60, (1, 500)), (25, (500, 6000)), (15, (6000, 80_000)))
"""Of 100 values so many have lengths from and to, in bytes."""
_WAIT_S: Final = 60.0
SAID: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s"
SAID_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_SILENT: Final = 4
"""Exit status of `skymem` if satellites do not answer."""


def value_of(name: str) -> bytes:
    """Return the bytes of a value: its name says how many, and all of them follow from the name."""
    length = int(name.rpartition(" ")[2])
    return (name.encode() + b"|" + random.Random(name).randbytes(64)).ljust(length, b".")[:length]


def name_of(value: bytes | bytearray) -> str:
    """Return the name of a value that came; of one that is not whole, words that name no value."""
    name = bytes(value).partition(b"|")[0].decode(errors="replace")
    try:
        return name if value_of(name) == value else f"broken: {name[:40]}"
    except ValueError:
        return f"broken: {bytes(value[:40])!r}"


@dataclass(frozen=True)
class Plan:
    """What a client is to do."""

    name: str
    keys: Sequence[str]
    log: Path
    seed: str
    pause_s: float
    """Mean time between two operations."""
    bound_s: float
    """Time in which each key has to be read in the end, when nothing is wrong any more."""


class Client(ABC):
    """A client of the sky."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._random = random.Random(plan.seed)
        self._log = Log(plan.log, plan.name)
        self._values = 0

    def run(self, orders: Connection) -> None:
        """Use values until the order comes to read all of them a last time; then tell the keys of which nothing could be read."""
        while not orders.poll(self._random.expovariate(1 / self._plan.pause_s)):
            self.act(self._random.choice(self._plan.keys))
        orders.recv()
        orders.send(self.read_all())

    def read_all(self) -> list[str]:
        """Read each key until something is said of it. Return the keys of which nothing was."""
        left, end_s = list(self._plan.keys), time.monotonic() + self._plan.bound_s
        while left and time.monotonic() < end_s:
            left = [key for key in left if not self.read(key)]
            time.sleep(0.1 if left else 0)
        return left

    def new_value(self) -> str:
        """Return the name of a new value."""
        self._values += 1
        [(_, (least, most))] = self._random.choices(_SIZES, [one[0] for one in _SIZES])
        name = f"{self._plan.name} {self._values} "
        return f"{name}{max(self._random.randint(least, most), len(name) + 8)}"

    @abstractmethod
    def act(self, key: str) -> None:
        """Do something to a key."""

    @abstractmethod
    def read(self, key: str) -> bool:
        """Read a key. Return False if nothing was said of it."""


class LibraryClient(Client):
    """A store in a program's own process."""

    def __init__(self, plan: Plan, sky: Constellation, playing: Path) -> None:
        super().__init__(plan)
        self._store = SkyStore(sky, playing=PlayingRecord(playing))
        self._kv = KeyValue(self._store)

    def act(self, key: str) -> None:
        dice = self._random.random()
        if dice < 0.5:
            self.read(key)
        elif dice < 0.88:
            value = self.new_value()
            with self._log.operation(key, "put", value) as outcome:
                result = self._kv.put(key, value_of(value))
                outcome.is_acknowledged, outcome.version, outcome.answer = result.ok, _version(result), result.status
        else:
            with self._log.operation(key, "erase", ABSENT) as outcome:
                result = self._kv.erase(key)
                outcome.is_acknowledged, outcome.version, outcome.answer = result.ok, _version(result), result.status
                outcome.is_no_write = result.status is Status.MISS
                outcome.saw = PRESENT if result.ok else ABSENT if outcome.is_no_write else None

    def read(self, key: str) -> bool:
        with self._log.operation(key, "fetch") as outcome:
            value, status = self._kv.fetch(key)
            outcome.answer = status
            if value is not None:
                outcome.saw = name_of(value)
            elif status is Status.MISS:
                outcome.saw = ABSENT
        return outcome.saw is not None


def _version(result: PutResult) -> int:
    return 0 if result.entry is None else result.entry.version


class RedisClient(Client):
    """A client of an agent's Redis port."""

    def __init__(self, plan: Plan, port: int) -> None:
        super().__init__(plan)
        self._redis: Any = redis.Redis(port=port, socket_timeout=_WAIT_S, retry=Retry(NoBackoff(), 0))

    def act(self, key: str) -> None:
        dice = self._random.random()
        if dice < 0.5:
            self._do("GET", key)
        elif dice < 0.8:
            self._do("SET", key, value=self.new_value())
        elif dice < 0.86:
            self._do("SET", key, value=self.new_value(), words=("NX",))
        elif dice < 0.9:
            self._do("SET", key, value=self.new_value(), words=("XX",))
        elif dice < 0.96:
            self._do("DEL", key, value=ABSENT)
        else:
            self._do("EXISTS", key)

    def read(self, key: str) -> bool:
        """Read a key. A nil tells nothing, as it may be that nobody answered; a condition is never judged without an answer."""
        return self._do("GET", key) is not None or self._do("SET", key, value=self.new_value(), words=("XX",)) is not None

    def _do(self, command: str, key: str, value: str | None = None, words: Sequence[str] = ()) -> str | None:
        """Send a command. Return what it saw."""
        with self._log.operation(key, " ".join((command, *words)), value) as outcome:
            data = () if not value else (value_of(value),)
            try:
                answer = self._redis.execute_command(command, key, *data, *words)
            except redis.TimeoutError:
                outcome.may_go_on = True
            except redis.ConnectionError:  # with the agent all ends that it had begun
                outcome.answer = "no agent"
            except redis.ResponseError as error:
                outcome.answer = str(error)[:60]
            else:
                self._note(outcome, " ".join((command, *words)), answer)
        return outcome.saw

    def _note(self, outcome: Any, what: str, answer: Any) -> None:
        outcome.answer = "nil" if answer is None else "value" if isinstance(answer, bytes) else str(answer)
        if what == "GET":
            outcome.saw = None if answer is None else name_of(answer)
        elif what == "EXISTS":
            outcome.saw = PRESENT if answer else None
        elif what == "DEL":
            outcome.saw, outcome.is_acknowledged = (PRESENT, True) if answer else (ABSENT, False)
            outcome.is_no_write = not answer
        else:  # SET, with or without a condition
            outcome.is_acknowledged, outcome.is_no_write = answer is not None, answer is None
            if what == "SET NX":
                outcome.saw = PRESENT if answer is None else ABSENT
            elif what == "SET XX":
                outcome.saw = ABSENT if answer is None else PRESENT


class CommandClient(Client):
    """Commands of a shell: each one is a process, which knows nothing yet."""

    def __init__(self, plan: Plan, environment: Mapping[str, str]) -> None:
        super().__init__(plan)
        self._environment = dict(environment)

    def act(self, key: str) -> None:
        dice = self._random.random()
        if dice < 0.5:
            self.read(key)
        elif dice < 0.9:
            value = self.new_value()
            with self._log.operation(key, "skymem put", value) as outcome:
                done = self._skymem("put", key, "-", data=value_of(value))
                outcome.is_acknowledged, outcome.answer = done.returncode == 0, _words(done)
        else:
            with self._log.operation(key, "skymem del", ABSENT) as outcome:
                done = self._skymem("del", key)
                outcome.is_acknowledged, outcome.answer = done.returncode == 0, _words(done)
                outcome.is_no_write = _denies(done)
                outcome.saw = PRESENT if done.returncode == 0 else ABSENT if outcome.is_no_write else None

    def read(self, key: str) -> bool:
        with self._log.operation(key, "skymem get") as outcome:
            done = self._skymem("get", key, "-")
            outcome.answer = _words(done)
            if done.returncode == 0:
                outcome.saw = name_of(done.stdout)
            elif _denies(done):
                outcome.saw = ABSENT
        return outcome.saw is not None

    def _skymem(self, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        return subprocess.run(command, input=data, capture_output=True, env=self._environment, check=False)


def _denies(done: subprocess.CompletedProcess[bytes]) -> bool:
    """Return True if a command says that there is no value."""
    return done.returncode == 1 and (b"is not there" in done.stderr or b"was not there" in done.stderr)


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    last = done.stderr.decode().strip().splitlines()[-1:]
    return "done" if done.returncode == 0 else f"{done.returncode}: {''.join(last)[-80:]}"


def library(orders: Connection, plan: Plan, sky: Constellation, playing: Path) -> None:
    """Run a store in this process, and write down what it warns of as an agent does."""
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(filename=plan.log.with_suffix(".said"), format=SAID, datefmt=SAID_TIME)
    LibraryClient(plan, sky, playing).run(orders)


def gateway(orders: Connection, plan: Plan, port: int) -> None:
    """Run a client of an agent in this process."""
    RedisClient(plan, port).run(orders)


def shell(orders: Connection, plan: Plan, environment: Mapping[str, str]) -> None:
    """Run commands, one after the other."""
    CommandClient(plan, environment).run(orders)
