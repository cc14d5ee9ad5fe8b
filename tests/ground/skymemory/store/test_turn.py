"""`Turn`: who waits longest gets it first."""

import signal
import threading
from types import FrameType

import pytest

from skymemory.store.turn import Turn
from support.waiting import wait_until


def test_it_is_given_in_the_order_in_which_it_is_asked_for() -> None:
    turn, order = Turn(), []
    turn.take()
    waiting: list[threading.Thread] = []

    def take(number: int) -> None:
        with turn:
            order.append(number)

    for number in range(5):
        waiting.append(threading.Thread(target=take, args=(number,)))
        waiting[-1].start()
        wait_until(lambda: turn.waiting == len(waiting))
    assert not turn.take_now()
    threading.Thread(target=turn.give_back).start()  # another thread than the one that took it
    for one in waiting:
        one.join()
    assert order == [0, 1, 2, 3, 4]
    assert turn.waiting == 0
    assert turn.take_now()
    assert not turn.take_now()


def test_one_at_a_time_has_it() -> None:
    turn, counts = Turn(), [0, 0]

    def count() -> None:
        for _ in range(2000):
            with turn:
                counts[0] += 1
                counts[1] = max(counts)
                counts[0] -= 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts == [0, 1]


class InterruptedByTestError(Exception):
    pass


def test_who_is_interrupted_waits_no_more() -> None:
    """And so does nobody behind."""
    turn, got = Turn(), threading.Event()
    main = threading.get_ident()

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise InterruptedByTestError

    def wait_behind() -> None:
        with turn:
            got.set()

    def send() -> None:
        wait_until(lambda: turn.waiting == 1)
        behind.start()
        wait_until(lambda: turn.waiting == 2)
        signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    behind, sender = threading.Thread(target=wait_behind), threading.Thread(target=send)
    try:
        turn.take()
        sender.start()
        with pytest.raises(InterruptedByTestError):
            turn.take()
        sender.join()
        assert turn.waiting == 1
        turn.give_back()
        assert got.wait(60)
        behind.join()
        assert turn.take_now()
    finally:
        signal.signal(signal.SIGUSR1, before)
