"""Redis and memcached as processes of their own on free ports of 127.0.0.1, for as long as a context lasts."""

import importlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skymemory.common.extras import how_to_install
from skymemory.testbed.leash import guarded, leashed_folder, own_leash

START_DEADLINE_S = 10.0


class ServerError(RuntimeError):
    """A program or its Python client that is not installed, does not start, or fails."""


@contextmanager
def redis_client() -> Iterator[Any]:
    """Start a redis-server that writes nothing to disk; yield a client of it with hiredis' parser.

    Raises:
        ServerError: It is not installed, or does not start.
    """
    _module("hiredis")  # redis-py uses hiredis if it is there, and is much slower without it
    redis = _module("redis")
    port = _free_tcp_port()
    with leashed_folder() as folder:
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder), "--loglevel", "warning"]
        client = redis.Redis("127.0.0.1", port)
        with _server("redis-server", ["--port", str(port), *options], client.ping):
            yield client
            client.close()


@contextmanager
def memcached_client(memory_mib: int) -> Iterator[Any]:
    """Start a memcached that takes items of up to 8 MiB; yield a client of it that waits for every answer.

    Raises:
        ServerError: It is not installed, or does not start.
    """
    pymemcache = _module("pymemcache.client.base")
    port = _free_tcp_port()
    # If root runs it, memcached must be told to stay root: the user "nobody" could not lock memory.
    options = ["-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", str(memory_mib), "-I", "8m", "-u", "nobody"]
    client = pymemcache.Client(("127.0.0.1", port), default_noreply=False, no_delay=True)
    with _server("memcached", options, client.version):
        yield client
        client.close()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ServerError(how_to_install(error.name or name, "bench")) from error


@contextmanager
def _server(program: str, options: Sequence[str], ask: Callable[[], object]) -> Iterator[None]:
    """Run a server process, and begin the context when it has answered `ask`."""
    path = shutil.which(program)
    if path is None:
        raise ServerError(f"{program} is not installed; on Debian: apt-get install {program}")
    with running([path, *options]) as child:
        _await(child, program, ask)
        yield


@contextmanager
def running(command: Sequence[str], grace_s: float = 5.0, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run a program that ends with the context, or with this process.

    Args:
        grace_s: Seconds for it to end after SIGTERM; then it is killed.
        options: Further arguments of `Popen`.
    """
    streams = {"stdin": own_leash().end, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(guarded(command), **streams | options) as child:
        try:
            yield child
        finally:
            child.terminate()
            try:
                child.wait(grace_s)
            except subprocess.TimeoutExpired:
                child.kill()


def _await(child: subprocess.Popen[Any], program: str, ask: Callable[[], object]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        try:
            ask()
        except Exception as error:  # each client has its own errors for "not yet"
            if child.poll() is not None:
                raise ServerError(f"{program} ended with status {child.returncode}") from error
            if time.monotonic() > deadline:
                raise ServerError(f"{program} does not answer: {error}") from error
            time.sleep(0.02)
        else:
            return


def _free_tcp_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
