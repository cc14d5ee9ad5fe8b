"""A stranger tries passwords of the gateway, or API keys, as fast as the program answers."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S

GUESSERS = 8
ELSEWHERE = "127.0.0.2"
"""Another address of this machine."""


class Guesser(Thread):
    """Sends wrong guesses, and counts the answers."""

    def __init__(self, address: tuple[str, int], guess: bytes, pipelined: int) -> None:
        super().__init__(daemon=True)
        self.answers = 0
        self.stopped = Event()
        self._address, self._guess, self._pipelined = address, guess, pipelined

    def run(self) -> None:
        while not self.stopped.is_set():
            with suppress(OSError), socket.create_connection(self._address, PATIENCE_S) as link:
                while not self.stopped.is_set():
                    link.sendall(self._guess * self._pipelined)
                    answer = link.recv(1 << 16)
                    if not answer:
                        break
                    self.answers += answer.count(b"WRONGPASS") + answer.count(b"invalid_api_key")


def most_in_a_while(address: tuple[str, int], guess: bytes, pipelined: int, honest: Callable[[], None]) -> tuple[int, int]:
    """Return how many guesses were answered, and how many rounds of an honest client from elsewhere, until that had 200."""
    guessers = [Guesser(address, guess, pipelined) for _ in range(GUESSERS)]
    for one in guessers:
        one.start()
    rounds = 0
    end_s = time.monotonic() + PATIENCE_S
    while rounds < 200 and time.monotonic() < end_s:
        honest()
        rounds += 1
    for one in guessers:
        one.stopped.set()
    return sum(one.answers for one in guessers), rounds


def test_passwords_are_not_guessed_faster_than_an_honest_client_works(
    start_agent: Callable[..., AgentProcess], full_sky: LocalConstellation
) -> None:
    agent = start_agent(full_sky, "--resp-port", "0", "--resp-password", "right")
    address = urlsplit(agent.addresses["redis"])
    assert address.hostname is not None
    assert address.port is not None
    guess = b"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n"

    def honest() -> None:  # from an address of its own; it signs in each time
        link = socket.create_connection((address.hostname, address.port), PATIENCE_S, source_address=(ELSEWHERE, 0))
        with link:
            link.sendall(b"*2\r\n$4\r\nAUTH\r\n$5\r\nright\r\n")
            assert link.recv(100) == b"+OK\r\n"

    guesses, rounds = most_in_a_while((address.hostname, address.port), guess, 100, honest)
    assert rounds == 200
    assert guesses < rounds

    with redis.Redis(port=address.port, password="right") as here:  # from the guesser's own address: it waits, and comes in
        assert here.ping()


@pytest.mark.model
def test_api_keys_are_not_guessed_faster_than_an_honest_client_works(start_server: Callable[..., Any]) -> None:
    server = start_server("--api-key", "right")
    address = urlsplit(server.address)
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "

    def honest() -> None:
        link = socket.create_connection((address.hostname, address.port), PATIENCE_S, source_address=(ELSEWHERE, 0))
        with link:
            link.sendall(head + b"right\r\n\r\n")
            assert link.recv(100).startswith(b"HTTP/1.1 200")

    guesses, rounds = most_in_a_while((address.hostname, address.port), head + b"wrong\r\n\r\n", 20, honest)
    assert rounds == 200
    assert guesses < rounds
