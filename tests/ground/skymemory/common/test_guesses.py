"""Answers to wrong guesses of a source wait; right ones do not, whoever guesses beside them."""

import asyncio
from itertools import pairwise

import pytest

from skymemory.common.guesses import WAITING_MAX, Guesses, TooManyGuessesError, source_of


def wrong() -> bool:
    return False


def right() -> bool:
    return True


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("a socket", "a socket"),
    ],
)
def test_a_source_is_what_one_machine_has(address: str, source: str) -> None:
    assert source_of(address) == source


def test_each_wrong_guess_waits_longer_up_to_a_limit_whatever_right_ones_come_between() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        guesses = Guesses(first_pause_s=0.02, pause_max_s=0.1)
        times = [loop.time()]
        for _ in range(5):
            assert await guesses.check("192.0.2.1", right)
            assert not await guesses.check("192.0.2.1", wrong)
            times.append(loop.time())
        waited = [later - before for before, later in pairwise(times)]
        for one_s, least_s in zip(waited, (0.02, 0.04, 0.08, 0.1, 0.1), strict=True):
            assert one_s >= 0.9 * least_s

    asyncio.run(run())


def test_a_right_guess_waits_for_no_wrong_one_of_its_source() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=1000.0, pause_max_s=1000.0)
        tasks = [asyncio.create_task(guesses.check("192.0.2.1", wrong)) for _ in range(500)]
        await asyncio.sleep(0)
        for _ in range(100):
            assert await guesses.check("192.0.2.1", right)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_who_goes_away_before_the_answer_tries_no_more_than_there_are_looks() -> None:
    checked: list[int] = []

    async def guess(guesses: Guesses, number: int) -> bool:
        def is_right() -> bool:
            checked.append(number)
            return False

        return await guesses.check("192.0.2.1", is_right)

    async def run() -> None:
        guesses = Guesses(first_pause_s=1000.0, pause_max_s=1000.0, looks=4, looks_per_s=1e-3)
        gone = [asyncio.create_task(guess(guesses, number)) for number in range(4)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        waiting = [asyncio.create_task(guess(guesses, number)) for number in range(WAITING_MAX)]
        await asyncio.sleep(0)
        assert len(checked) == 4
        with pytest.raises(TooManyGuessesError, match=f"{WAITING_MAX} attempts from this address wait already"):
            await guess(guesses, -1)
        assert await guesses.check("192.0.2.2", right)  # other addresses do not wait
        for task in waiting:
            task.cancel()
        await asyncio.gather(*gone, *waiting, return_exceptions=True)

    asyncio.run(run())


def test_a_right_guess_waits_for_looks_of_others_and_not_for_their_pauses() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=1000.0, pause_max_s=1000.0, looks=2, looks_per_s=1000.0)
        others = [asyncio.create_task(guesses.check("192.0.2.1", wrong)) for _ in range(50)]
        await asyncio.sleep(0)
        assert await guesses.check("192.0.2.1", right)  # behind 48 guesses that wait to be looked at
        assert not any(task.done() for task in others)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(run())


def test_a_right_guess_moves_up_when_those_before_it_go_away() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=1000.0, pause_max_s=1000.0, looks=1, looks_per_s=10.0)
        others = [asyncio.create_task(guesses.check("192.0.2.1", wrong)) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0)
        honest = asyncio.create_task(guesses.check("192.0.2.1", right))
        await asyncio.sleep(0)
        for task in others:
            task.cancel()
        assert await asyncio.wait_for(honest, 50.0)  # and not 102.4 s
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(run())


def test_right_guesses_use_no_looks() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=0.0, pause_max_s=0.0, looks=2, looks_per_s=1e-3)
        assert not await guesses.check("192.0.2.1", wrong)
        for _ in range(100):
            assert await guesses.check("192.0.2.1", right)

    asyncio.run(run())


def test_sources_are_bounded_and_the_oldest_is_forgotten() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=0.0, pause_max_s=0.0, sources_max=3)
        for number in range(5):
            await guesses.check(f"192.0.2.{number}", wrong)
        assert len(guesses) == 3

    asyncio.run(run())
