"""What `skymem status` reads of this host's agent, whoever answers at its port."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import pytest

from skymemory.cli.agent_counts import agent_counts
from skymemory.common.state_folder import http_record

METRICS = b"""# TYPE skymem_asked_blocks counter
skymem_asked_blocks_total{outcome="hit"} 3.0
"""


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Records a server as the agent's. It answers one request with the bytes given."""
    monkeypatch.setenv("SKYMEM_AGENT_SOCKET", str(tmp_path / "agent.sock"))
    with ExitStack() as after:

        def listen(content: bytes) -> None:
            listener = after.enter_context(socket.create_server(("127.0.0.1", 0)))
            listener.settimeout(10)
            record = f"http://127.0.0.1:{listener.getsockname()[1]}"
            http_record(tmp_path / "agent.sock").write_text(record)

            def serve() -> None:
                with suppress(TimeoutError):  # nobody asks: the test tells so
                    link, _ = listener.accept()
                    with link:
                        link.recv(4096)
                        link.sendall(content)

            thread = Thread(target=serve)
            thread.start()
            after.callback(thread.join)

        yield listen


@pytest.mark.parametrize(
    "content",
    [
        b"220 mail at your service\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 90\r\n\r\nshort",
        b"HTTP/1.0 200 OK\r\n\r\n<html>{</html>",
        b"",
    ],
    ids=["no HTTP", "cut short", "no metrics", "nothing"],
)
def test_something_else_has_the_port(answer: Callable[[bytes], None], content: bytes) -> None:
    answer(content)
    assert agent_counts() is None


def test_no_proxy_is_asked(answer: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    answer(b"HTTP/1.0 200 OK\r\n\r\n" + METRICS)
    counts = agent_counts()
    assert counts is not None
    assert counts.hit == 3
