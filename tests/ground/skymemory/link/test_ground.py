"""The ground with its thread: what it refuses, calls that end in the middle, and calls of several threads and processes."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest

from skymemory.common.compiled import extension
from skymemory.link import ground
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.link.operations import to_find
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import PacketError, decode
from support.openings import opened

HERE = Satellite(3, 10)
DIRECT = Route(HERE, HERE)


@contextmanager
def nobody() -> Iterator[Constellation]:
    """A constellation whose satellite [3, 10] hears and says nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        endpoint.bind((Constellation().address(*HERE), 0))
        yield Constellation().replace(network={"port": endpoint.getsockname()[1]})


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (Ask(DIRECT, icd.OP_HAS, key=b"short"), "bad_header: key of 5 bytes; 32 are allowed"),
        (Ask(DIRECT, icd.OP_HAS, tenant=1 << 32), "bad_header"),
        (Ask(DIRECT, icd.OP_PING, payload=bytes(65500)), "too_large: .* bytes; 65507 are allowed"),
    ],
)
def test_requests_that_cannot_be_packets(ask: Ask, why: str) -> None:
    with nobody() as sky, ControlPlane(sky) as control, pytest.raises(PacketError, match=why):
        control.exchange([Ask(DIRECT, icd.OP_PING), ask], 5)


def test_a_satellite_that_is_none_is_refused_and_others_are_asked_later() -> None:
    with nobody() as sky, ControlPlane(sky) as control:
        with pytest.raises(ValueError, match=r"\[0, 7\] is outside 5 planes x 19 slots; both count from 1"):
            control.exchange([Ask(DIRECT, icd.OP_PING), Ask(Route(Satellite(0, 7), HERE), icd.OP_PING)], 5)
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.05) == [None]
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0) == [None]


def test_an_answer_that_has_no_room_comes_without_its_payload() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        endpoint.bind((Constellation().address(*HERE), 0))
        sky = Constellation().replace(network={"port": endpoint.getsockname()[1]})

        def serve() -> None:
            for size in (0, ground.ANSWER_BYTES, ground.ANSWER_BYTES + 1):
                datagram, source = endpoint.recvfrom(65535)
                request = decode(datagram)
                if (opening := opened(request)) is not None:
                    endpoint.sendto(opening.encode(), source)
                    continue
                payload = bytes(size)
                reply = replace(request, is_request=False, src=request.dst, dst=request.src, deadline_ms=0, payload=payload)
                endpoint.sendto(reply.encode(), source)

        thread = threading.Thread(target=serve)
        thread.start()
        with ControlPlane(sky) as control:
            payloads = [
                answer.payload
                for _ in range(2)
                for answer in control.exchange([Ask(DIRECT, icd.OP_RELAY)], 10)
                if answer is not None and answer.ok
            ]
        thread.join()
    assert [len(payload) for payload in payloads] == [ground.ANSWER_BYTES, 0]


def test_an_interrupt_ends_a_long_exchange() -> None:
    """Ctrl-C in the thread that waits: not after the deadline, and the control plane can be used again."""
    with nobody() as sky, ControlPlane(sky) as control:
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
        timer.start()
        began_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            control.exchange([Ask(DIRECT, icd.OP_PING)] * 300, 600)
        assert time.monotonic() - began_s < 300
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.05) == [None]


def sockets() -> set[int]:
    """Descriptors of this process that are sockets."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket"):
                found.add(int(name))
    return found


def test_a_socket_that_somebody_closed_is_an_error() -> None:
    with nobody() as sky:
        before = sockets()
        control = ControlPlane(sky)
        (opened,) = sockets() - before
        with open(os.devnull, "rb") as other:  # its place is taken, so that closing the control plane closes nobody else's
            os.dup2(other.fileno(), opened)
        with pytest.raises(OSError, match="Bad file descriptor"):
            control.exchange([Ask(DIRECT, icd.OP_PING)], 60)
        control.close()


def test_nobody_waits_for_a_satellite_that_another_thread_asks() -> None:
    """A get of one thread is not held up by a look-up of another that waits for a silent satellite."""
    silent = threading.Event()
    with nobody() as sky, ControlPlane(sky) as control:

        def wait() -> None:
            control.exchange([Ask(DIRECT, icd.OP_PING)], 20)
            silent.set()

        thread = threading.Thread(target=wait)
        thread.start()
        for _ in range(20):
            assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.05) == [None]
        assert not silent.is_set()
        control.close()  # ends what the other thread waits for
        thread.join(10)
        assert silent.is_set()


@pytest.mark.parametrize(("calls", "requests"), [(64, 1), (1, 2048)])
def test_who_was_not_asked_is_not_silent(calls: int, requests: int) -> None:
    """More calls than run at once, or more requests: those of others wait, no longer than their own deadline."""
    with nobody() as sky, ControlPlane(sky) as control:
        threads = [
            threading.Thread(target=control.exchange, args=([Ask(DIRECT, icd.OP_PING)] * requests, 600)) for _ in range(calls)
        ]
        for thread in threads:
            thread.start()

        def ask_again() -> None:
            while True:  # until all of the others run
                assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.2) == [None]

        began_s = time.monotonic()
        with pytest.raises(TimeoutError, match="asks so much at once"):
            ask_again()
        assert time.monotonic() - began_s < 300
        control.close()
        for thread in threads:
            thread.join()


def test_a_child_of_this_process_is_told_to_open_its_own() -> None:
    with nobody() as sky, ControlPlane(sky) as control:
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.05) == [None]
        child = os.fork()
        if child == 0:
            try:
                control.exchange([Ask(DIRECT, icd.OP_PING)], 60)
            except OSError as error:
                control.close()
                control.close()
                del control
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0) == (child, 0)
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.05) == [None]


def forked(error: type[OSError], calls: Sequence[Callable[[], object]]) -> bool:
    """Fork, and return True if each of these calls raises that error in the child, at once."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            for call in calls:
                with pytest.raises(error, match="forked"):
                    call()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0) == (child, 0)


def test_a_child_of_this_process_is_told_so_by_everything_else() -> None:
    """A number that is none, or no word from a satellite, would be taken for a silent sky."""
    with nobody() as sky, ControlPlane(sky) as control, closing(ground.Ground(sky, Timing())) as opened_here:
        box = opened_here.box()
        operation = to_find([bytes(32)], 1, 100)
        calls: list[Callable[[], object]] = [
            lambda: control.patience_s([DIRECT]),
            lambda: control.hurry_s([DIRECT]),
            lambda: control.expect({HERE: 0.01}),
            lambda: control.host,
            lambda: control.retries,
            control.new_host,
            control.suites,
            opened_here.reach,
            opened_here.listen,
            lambda: opened_here.next_telemetry(60),
            opened_here.box,
            lambda: opened_here.run([operation]),
            lambda: box.submit(operation),
            lambda: box.cancel([0]),
            lambda: box.wait(60),
            box.take,
        ]
        assert forked(ChildProcessError, calls)


def test_a_signal_that_forks_does_not_leave_a_child_that_waits() -> None:
    with nobody() as sky, ControlPlane(sky) as control:
        children: list[int] = []

        def fork(*_: object) -> None:
            children.append(os.fork())

        before = signal.signal(signal.SIGALRM, fork)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            answers = control.exchange([Ask(DIRECT, icd.OP_PING)], 1)
        except ChildProcessError:
            os._exit(0)
        finally:
            signal.signal(signal.SIGALRM, before)
        if children == [0]:
            os._exit(1)
        assert answers == [None]
        assert os.waitpid(children[0], 0) == (children[0], 0)


def test_there_is_no_ground_without_a_socket() -> None:
    for name in ("Ground", "Box"):
        kind = getattr(extension("ground"), name)
        with pytest.raises(TypeError):
            kind.__new__(kind)


def test_a_process_that_gets_no_thread_is_told_so() -> None:
    program = """
import resource
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite

here = Satellite(3, 10)
control = ControlPlane(Constellation().replace(network={"port": 9}))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20), hard))  # a thread's stack takes 8 MiB
try:
    control.exchange([Ask(Route(here, here), icd.OP_PING)], 1)
except RuntimeError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(control.exchange([Ask(Route(here, here), icd.OP_PING)], 0.1))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the system gives no thread\n[None]\n", "")


def test_a_process_ends_though_nothing_was_closed() -> None:
    program = """
import threading
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite

here = Satellite(3, 10)
control = ControlPlane(Constellation().replace(network={"port": 9}))
ask = Ask(Route(here, here), icd.OP_PING)
for _ in range(4):
    threading.Thread(target=lambda: control.exchange([ask], 600), daemon=True).start()
control.exchange([ask], 0.1)
print("ends")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")
