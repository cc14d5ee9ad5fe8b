"""Redis and memcached as processes of their own on free ports of 127.0.0.1, for as long as a context lasts."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

START_DEADLINE_S = 10.0


class ServerError(RuntimeError):
    """A program or its Python client is not installed, or it does not start."""


@contextmanager
def redis_client() -> Iterator[Any]:
    """A redis-server that writes nothing to disk, and a client of it with hiredis' parser.

    Raises:
        ServerError
    """
    try:
        import hiredis  # noqa: F401  redis-py uses it when it is there, and is another thing without it
        import redis
    except ImportError as error:
        raise ServerError(f"{error.name} is not installed: pip install 'skymemory[bench]'") from error
    port = _free_tcp_port()
    with tempfile.TemporaryDirectory(prefix="skymem-") as folder:
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder, "--loglevel", "warning"]
        with _server("redis-server", ["--port", str(port), *options]) as child:
            client = redis.Redis("127.0.0.1", port)
            _await(child, "redis-server", client.ping)
            yield client
            client.close()


@contextmanager
def memcached_client(memory_mib: int) -> Iterator[Any]:
    """A memcached that takes items of up to 8 MiB, and a client of it that waits for every answer.

    Raises:
        ServerError
    """
    try:
        from pymemcache.client.base import Client
    except ImportError as error:
        raise ServerError(f"{error.name} is not installed: pip install 'skymemory[bench]'") from error
    port = _free_tcp_port()
    # As root it wants to be told that root is meant; "nobody" cannot lock memory, which is not asked for.
    options = ["-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", str(memory_mib), "-I", "8m", "-u", "nobody"]
    with _server("memcached", options) as child:
        client = Client(("127.0.0.1", port), default_noreply=False, no_delay=True)
        _await(child, "memcached", client.version)
        yield client
        client.close()


@contextmanager
def _server(program: str, options: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    path = shutil.which(program)
    if path is None:
        raise ServerError(f"{program} is not installed; on Debian: apt-get install {program}")
    child = subprocess.Popen([path, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _await(child: subprocess.Popen[bytes], program: str, ask: Callable[[], object]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        try:
            ask()
        except Exception as error:  # each client has its own classes for "not yet"
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
