#!/usr/bin/env python3
"""Find the longest turns of the event loops of `skymem agent` and `skymem serve` while clients ask for awkward things.

usage: .venv/bin/python tools/longest_turns.py [--only WORD] [--bound-ms 50] [--json]

The tool starts 15 satellites, an agent and a server with a small model, and then case after case: many clients, pipelines,
commands on many names, large values, names that expire together, wrong passwords, large bodies. For each case it prints the
longest turn, which is the processor time of one callback in the event loop, and what that was. It also prints how late a
heartbeat of the loop was: this counts other threads that hold Python's lock, and other load of the machine. The exit status is 1
if a turn is above the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

KEPT_MS: Final = 2.0
"""Length from which turns are noted."""
BEAT_S: Final = 0.01
PASSWORD: Final = "a password of the bench"
KEY: Final = "a key of the bench"
NAMES: Final = 32_000
EXPIRING: Final = 100_000
WAIT_S: Final = 120.0


# --- within the program that is watched ------------------------------------------------------------------------------------


class Watch:
    """The turns of this process's event loops."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", buffering=1)
        self._beats: set[int] = set()

    def start(self) -> None:
        """Look at each callback from now on."""
        run, watch = asyncio.events.Handle._run, self  # noqa: SLF001  # there is no other place where each one passes
        collecting_s = began_collecting_s = 0.0

        def collected(phase: str, _: Any) -> None:
            nonlocal collecting_s, began_collecting_s
            if phase == "start":
                began_collecting_s = time.thread_time()
            else:
                collecting_s += time.thread_time() - began_collecting_s

        gc.callbacks.append(collected)

        def timed(handle: Any) -> None:
            nonlocal collecting_s
            collecting_s, began_s = 0.0, time.thread_time()
            run(handle)
            took_ms = 1e3 * (time.thread_time() - began_s)
            if took_ms >= KEPT_MS:
                collector = f", of which the garbage collector {1e3 * collecting_s:.1f} ms" if collecting_s >= 1e-3 else ""
                watch.note("turn", took_ms, described(handle) + collector)
            loop = asyncio.get_event_loop()
            if id(loop) not in watch._beats:
                watch._beats.add(id(loop))
                loop.call_later(BEAT_S, watch._beat, loop, time.monotonic() + BEAT_S)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign]  # noqa: SLF001

    def note(self, kind: str, ms: float, what: str) -> None:
        self._file.write(json.dumps([time.monotonic(), kind, ms, what]) + "\n")

    def _beat(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        late_ms = 1e3 * (time.monotonic() - due_s)
        if late_ms >= KEPT_MS:
            self.note("late", late_ms, "")
        loop.call_later(BEAT_S, self._beat, loop, time.monotonic() + BEAT_S)


def described(handle: Any) -> str:
    """Return the name of what a handle calls; of a step of a task, of its coroutine."""
    callback = handle._callback  # noqa: SLF001
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", repr(task))
    return getattr(callback, "__qualname__", repr(callback))


def inside(file: str, words: list[str]) -> None:
    """Be the command `skymem`, and watch its turns."""
    Watch(Path(file)).start()
    from skymemory.cli import main

    sys.argv = ["skymem", *words]
    main()


# --- clients ----------------------------------------------------------------------------------------------------------------


def encoded(*args: bytes | str | int) -> bytes:
    words = [one if isinstance(one, bytes) else str(one).encode() for one in args]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(one), one) for one in words)


class Client:
    """A client of the gateway that has sent the password."""

    def __init__(self, address: tuple[str, int], password: str = PASSWORD) -> None:
        import hiredis

        self.socket = socket.create_connection(address, WAIT_S)
        self._reader = hiredis.Reader()
        self.ask("AUTH", password)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Any:
        while (found := self._reader.gets()) is False:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError
            self._reader.feed(data)
        return found

    def ask(self, *args: bytes | str | int) -> Any:
        self.send(encoded(*args))
        return self.answer()

    def all_of(self, data: bytes, count: int) -> None:
        """Send commands and take so many answers, at the same time."""
        sender = threading.Thread(target=self.send, args=(data,))
        sender.start()
        for _ in range(count):
            self.answer()
        sender.join()


def together(count: int, what: Callable[[int], None]) -> None:
    """Do something in so many threads at once."""
    threads = [threading.Thread(target=what, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


# --- cases of the gateway ---------------------------------------------------------------------------------------------------

Case = Callable[[], None]


class GatewayCases:
    """Commands of clients, case by case."""

    def __init__(self, address: tuple[str, int], http: str) -> None:
        self.address, self.http = address, http
        self.names = [f"name {number}" for number in range(NAMES)]
        self.small = [word for name in self.names[: NAMES // 2] for word in (name, "v")]

    def all(self) -> Iterator[tuple[str, Case]]:
        yield "50 clients with 50 SET and GET each", self.crowd
        yield "MSET of 16,000", self.one("MSET", *self.small)
        yield "MGET of 32,000", self.one("MGET", *self.names)
        yield "MGET of 32,000, none there", self.one("MGET", *(f"none {number}" for number in range(NAMES)))
        yield "EXISTS of 32,000", self.one("EXISTS", *self.names)
        yield "EXISTS of one name 32,000 times", self.one("EXISTS", *[self.names[0]] * NAMES)
        yield "DEL of 32,000", self.one("DEL", *self.names)
        yield "pipeline of 100,000 PING", self.pipeline(encoded("PING"), 100_000)
        yield "pipeline of 100,000 GET of one name", self.pipeline(encoded("GET", "none"), 100_000)
        yield "pipeline of 20,000 INFO", self.pipeline(encoded("INFO"), 20_000)
        yield "pipeline of 2,000 COMMAND DOCS", self.pipeline(encoded("COMMAND", "DOCS"), 2_000)
        yield "40 MB of empty lines", lambda: Client(self.address).all_of(b"\r\n" * (20 << 20) + encoded("PING"), 1)
        yield "2 MB of lines with a space", lambda: Client(self.address).all_of(b" \n" * (1 << 20) + encoded("PING"), 1)
        yield "pipeline of 100,000 inline PING", self.pipeline(b"PING\r\n", 100_000)
        yield "4 values of 20 MB", lambda: together(4, self.large)
        yield "MULTI with 50,000 SET", self.batch
        yield "MULTI with 99,000 SET, DISCARD", self.dropped_batch
        yield "clients that leave in MSET of 16,000", self.leavers
        yield "40 MB of answers that nobody takes", self.not_taken
        yield "50 clients with wrong passwords", self.wrong
        yield f"{EXPIRING:,} names that expire together", self.expire
        yield f"SCAN of {NAMES:,}, COUNT 100,000", lambda: (self.one("MSET", *self.small)(), self.scan_all())
        yield "KEYS *", self.one("KEYS", "*")
        yield "KEYS with a pattern", self.one("KEYS", "*a*a*a*a*a*a*b")
        yield "DBSIZE", self.one("DBSIZE")
        yield "INFO all", self.one("INFO", "all")
        yield "/metrics and the page", self.scrape
        yield "FLUSHALL", self.one("FLUSHALL")

    def one(self, *args: bytes | str | int) -> Case:
        return lambda: Client(self.address).ask(*args)

    def pipeline(self, command: bytes, count: int) -> Case:
        return lambda: Client(self.address).all_of(command * count, count)

    def crowd(self) -> None:
        def some(number: int) -> None:
            client = Client(self.address)
            for index in range(50):
                client.ask("SET", f"crowd {number} {index}", "v")
                client.ask("GET", f"crowd {number} {index}")

        together(50, some)

    def large(self, number: int) -> None:
        client, value = Client(self.address), random.Random(number).randbytes(20 << 20)
        client.ask("SET", f"large {number}", value)
        assert client.ask("GET", f"large {number}") == value

    def expire(self) -> None:
        client, at_ms = Client(self.address), int(time.time() * 1000) + 60_000
        for part in range(EXPIRING // 10_000):
            data = b"".join(encoded("SET", f"expiring {part} {index}", "v", "PXAT", at_ms) for index in range(10_000))
            client.all_of(data, 10_000)
        print(f"  ({EXPIRING} set, {at_ms / 1000 - time.time():.0f} s before they expire)", file=sys.stderr)
        time.sleep(max(0.0, at_ms / 1000 - time.time()) + 0.5)
        client.ask("DBSIZE")
        client.ask("INFO")

    def wrong(self) -> None:
        def some(number: int) -> None:
            for _ in range(3):
                link = socket.create_connection(self.address, WAIT_S)
                link.sendall(encoded("AUTH", "wrong") * 20)
                link.settimeout(0.2)
                with suppress(OSError):
                    link.recv(1000)
                link.close()

        together(50, some)

    def leavers(self) -> None:
        for _ in range(5):
            client = Client(self.address)
            client.send(encoded("MSET", *self.small))
            time.sleep(0.05)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
        Client(self.address).ask("PING")

    def batch(self) -> None:
        client = Client(self.address)
        data = encoded("MULTI") + encoded("SET", "in a batch", "v") * 50_000 + encoded("EXEC")
        client.all_of(data, 50_002)

    def dropped_batch(self) -> None:
        client = Client(self.address)
        client.all_of(encoded("MULTI") + encoded("SET", "in a batch", "v") * 99_000, 99_001)
        client.ask("DISCARD")

    def not_taken(self) -> None:
        client = Client(self.address)
        client.send(encoded("ECHO", b"w" * 1000) * 40_000)
        time.sleep(2)
        client.socket.close()

    def scan_all(self) -> None:
        client, cursor = Client(self.address), b"0"
        while True:
            cursor, _ = client.ask("SCAN", cursor, "COUNT", 100_000, "MATCH", "*a*e*9*")
            if cursor == b"0":
                return

    def scrape(self) -> None:
        for path in ("/metrics", "/readyz", "/", "/api/sky"):
            with suppress(urllib.error.HTTPError):
                urllib.request.urlopen(self.http + path, timeout=WAIT_S).read()


# --- cases of the server ----------------------------------------------------------------------------------------------------


def server_cases(url: str, model: str) -> Iterator[tuple[str, Case]]:
    def post(body: bytes, key: str = KEY, path: str = "/v1/completions") -> int:
        request = urllib.request.Request(url + path, body, {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.read()
            return error.code

    def completion(prompt: Any, **more: Any) -> bytes:
        return json.dumps({"model": model, "prompt": prompt, "max_tokens": 2, **more}).encode()

    def many(count: int, body: bytes, **more: str) -> Case:
        return lambda: together(count, lambda _: post(body, **more))

    def scrape() -> None:
        request = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {KEY}"})
        for _ in range(20):
            urllib.request.urlopen(request, timeout=WAIT_S).read()

    messages = [{"role": "user", "content": "a"}] * 60_000
    deep = b'{"model":"m","prompt":' + b"[" * 60_000 + b"]" * 60_000 + b"}"
    yield "30 small completions", many(30, completion("small", stream=True))
    yield "4 bodies with 7 MB of text", many(4, completion("a" * (7 << 20)))
    yield "4 bodies with 250,000 ids", many(4, completion([5] * 250_000))
    yield "4 bodies with 3,000,000 ids", many(4, completion([5] * 3_000_000))
    yield "4 bodies with 7 MB of []", many(4, b'{"model":"m","prompt":"a","x":[' + b"[]," * (2 << 20) + b"[]]}")
    yield "4 bodies with 60,000 lists in lists", many(4, deep)
    yield (
        "4 chats with 60,000 messages",
        many(4, json.dumps({"model": model, "messages": messages}).encode(), path="/v1/chat/completions"),
    )
    yield "4 bodies with a long whole number", many(4, b'{"model":"m","prompt":"a","seed":' + b"9" * (7 << 20) + b"}")
    yield "4 prompts of 16,000 characters, echoed 8 times", many(4, completion("a" * 16_000, echo=True, n=8))
    yield "50 wrong keys", many(50, completion("a"), key="wrong")
    yield "20 times /metrics", scrape


# --- the whole ----------------------------------------------------------------------------------------------------------------


@contextmanager
def programs(folder: Path) -> Iterator[dict[str, Any]]:
    """Start satellites, agent and server; yield their addresses and the files of their turns."""
    from skymemory.common.state_folder import SECRET_VARIABLE
    from skymemory.common.tenant_secrets import made_secret
    from skymemory.sky.constellation import Constellation
    from skymemory.sky.tenant_secret import secret_file
    from skymemory.testbed.run_record import Running, RunRecord
    from support.served import save_babbler, small_sky

    os.environ["SKYMEM_STATE"] = str(folder)
    made_secret(secret := secret_file(Constellation()))
    os.environ[SECRET_VARIABLE] = str(secret)
    password = folder / "password"
    with ExitStack() as stack:
        local = stack.enter_context(small_sky())
        RunRecord(folder).save(Running("local", local.constellation, dict(local.processes)))

        def start(name: str, *words: str) -> tuple[subprocess.Popen[str], Path]:
            turns = folder / f"{name}.turns"
            command = [sys.executable, __file__, "--inside", str(turns), *words]
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)

            def end() -> None:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()

            stack.callback(end)
            return process, turns

        password.write_text(PASSWORD)
        password.chmod(0o600)
        agent, agent_turns = start("agent", "agent", "--http-port", "0", "--resp-port", "0", "--resp-password", PASSWORD)
        addresses = {}
        assert agent.stdout is not None
        for line in agent.stdout:
            name, _, address = line.strip().partition(": ")
            addresses[name] = address
            if line.strip() == "serving":
                break
        model = save_babbler(folder / "babbler")
        server, server_turns = start("serve", "serve", str(model), "--port", "0", "--served-model-name", "m", "--api-key", KEY)
        assert server.stdout is not None
        line = server.stdout.readline()
        host, _, port = addresses["redis"].removeprefix("redis://").rpartition(":")
        yield {
            "redis": (host, int(port)),
            "http": addresses["http"],
            "serve": line.split()[-1].removesuffix("/v1"),
            "turns": {"agent": agent_turns, "serve": server_turns},
            "folder": folder,
        }


def noted(file: Path, since_s: float) -> dict[str, tuple[float, str]]:
    """Return the longest turn and the latest heartbeat since a time, and what they were."""
    most: dict[str, tuple[float, str]] = {"turn": (0.0, ""), "late": (0.0, "")}
    for line in file.read_text().splitlines():
        at_s, kind, ms, what = json.loads(line)
        if at_s >= since_s and ms > most[kind][0]:
            most[kind] = ms, what
    return most


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--bound-ms", type=float, default=50.0, help="longest turn that is allowed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as temporary, programs(Path(temporary)) as started:
        cases = [("agent", *case) for case in GatewayCases(started["redis"], started["http"]).all()]
        cases += [("serve", *case) for case in server_cases(started["serve"], "m")]
        for program, name, case in cases:
            if options.only not in f"{program}: {name}":
                continue
            since_s = time.monotonic()
            case()
            time.sleep(0.2)
            most = noted(started["turns"][program], since_s)
            found.append({"program": program, "case": name, "turn_ms": most["turn"][0], "what": most["turn"][1]})
            found[-1] |= {"late_ms": most["late"][0], "took_s": time.monotonic() - since_s}
            if not options.json:
                form = "{program:6} {case:52} {turn_ms:7.1f} ms  late {late_ms:7.1f} ms  in {took_s:5.1f} s  {what}"
                print(form.format(**found[-1]), flush=True)
    if options.json:
        print(json.dumps(found, indent=2))
    return int(any(one["turn_ms"] > options.bound_ms for one in found))


if __name__ == "__main__":
    sys.exit(main())
