"""Wrong guesses of a source wait; those of others, and right ones, do not."""

import asyncio
from itertools import pairwise

import pytest

from skymemory.common.guesses import PLACES, WAITING_MAX, Guesses, TooManyGuessesError, source_of


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


def test_each_wrong_guess_waits_longer_up_to_a_limit_and_a_right_one_resets_that() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        guesses = Guesses(first_pause_s=0.02, pause_max_s=0.1)
        times = [loop.time()]
        for _ in range(5):
            assert not await guesses.check("192.0.2.1", wrong)
            times.append(loop.time())
        waited = [later - before for before, later in pairwise(times)]
        for one_s, least_s in zip(waited, (0.02, 0.04, 0.08, 0.1, 0.1), strict=True):
            assert one_s >= 0.9 * least_s
        assert not guesses.is_new("192.0.2.1")
        assert guesses.is_new("192.0.2.2")
        assert await guesses.check("192.0.2.1", right)
        assert guesses.is_new("192.0.2.1")
        assert len(guesses) == 0

    asyncio.run(run())


def test_more_at_a_time_are_not_faster_and_too_many_are_refused_unchecked() -> None:
    checked: list[int] = []

    async def guess(guesses: Guesses, number: int) -> bool:
        def is_right() -> bool:
            checked.append(number)
            return False

        return await guesses.check("192.0.2.1", is_right)

    async def run() -> None:
        guesses = Guesses(first_pause_s=1000.0, pause_max_s=1000.0)
        tasks = [asyncio.create_task(guess(guesses, number)) for number in range(PLACES + WAITING_MAX)]
        await asyncio.sleep(0.05)
        assert len(checked) == PLACES
        with pytest.raises(TooManyGuessesError, match="64 attempts from this address wait already"):
            await guess(guesses, -1)
        assert await guesses.check("192.0.2.2", right)  # others do not wait
        for task in tasks[:PLACES]:  # they go away; their places stay taken
            task.cancel()
        await asyncio.sleep(0.05)
        assert len(checked) == PLACES
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_sources_are_bounded_and_the_oldest_is_forgotten() -> None:
    async def run() -> None:
        guesses = Guesses(first_pause_s=0.0, pause_max_s=0.0, sources_max=3)
        for number in range(5):
            await guesses.check(f"192.0.2.{number}", wrong)
        assert len(guesses) == 3
        assert [guesses.is_new(f"192.0.2.{number}") for number in range(5)] == [True, True, False, False, False]

    asyncio.run(run())
