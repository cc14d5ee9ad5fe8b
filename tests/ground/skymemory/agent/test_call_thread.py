"""Blocking calls gathered in one thread."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator

import pytest

from skymemory.agent.call_thread import Lane


class Held:
    """A call that waits until it is let go, and remembers what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, requests: list[int]) -> list[int]:
        self.calls.append(requests)
        self.begun.set()
        assert self.let_go.wait(60)
        if any(request < 0 for request in requests):
            raise ValueError("negative")
        return [2 * request for request in requests]

    async def until_begun(self) -> None:
        await asyncio.to_thread(self.begun.wait, 60)


def lane(call: Callable[[list[int]], Iterable[int]], most: int = 100) -> Lane[int, int]:
    return Lane("test", call, lambda batch, _: len(batch) < most)


def test_what_comes_while_a_call_runs_goes_into_the_next_one_together() -> None:
    held = Held()

    async def work() -> list[int]:
        used = lane(held, most=3)
        tasks = [asyncio.create_task(used.run(1))]
        await held.until_begun()
        tasks += [asyncio.create_task(used.run(number)) for number in range(2, 7)]
        await asyncio.sleep(0)
        held.let_go.set()
        results = await asyncio.gather(*tasks)
        await used.drained()
        used.close()
        return results

    assert asyncio.run(work()) == [2, 4, 6, 8, 10, 12]
    assert held.calls == [[1], [2, 3, 4], [5, 6]]


def test_who_gives_up_before_the_call_is_not_asked_for() -> None:
    held = Held()

    async def work() -> None:
        used = lane(held)
        first = asyncio.create_task(used.run(1))
        await held.until_begun()
        second, third = (asyncio.create_task(used.run(number)) for number in (2, 3))
        await asyncio.sleep(0)
        second.cancel()
        held.let_go.set()
        assert (await first, await third) == (2, 6)
        assert second.cancelled()
        used.close()

    asyncio.run(work())
    assert held.calls == [[1], [3]]


def test_who_gives_up_later_waits_until_the_call_has_ended() -> None:
    held = Held()

    async def work() -> None:
        used = lane(held)
        task = asyncio.create_task(used.run(1))
        await held.until_begun()
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.05)
        assert not done  # its memory is in use
        held.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        used.close()

    asyncio.run(work())


def test_what_a_call_raises_goes_to_who_asked_and_no_further() -> None:
    held = Held()
    held.let_go.set()

    async def work() -> None:
        used = lane(held)
        with pytest.raises(ValueError, match="negative"):
            await used.run(-1)
        assert await used.run(4) == 8
        used.close()

    asyncio.run(work())


def test_a_call_may_answer_one_after_another() -> None:
    let_go = threading.Event()

    def call(requests: list[int]) -> Iterator[int]:
        for request in requests:
            if request == 3:
                assert let_go.wait(60)
            if request < 0:
                raise ValueError("negative")
            yield 2 * request

    async def work() -> None:
        used = lane(call)
        tasks = [asyncio.create_task(used.run(number)) for number in (1, 2, 3)]
        assert [await tasks[0], await tasks[1]] == [2, 4]
        assert not tasks[2].done()
        let_go.set()
        assert await tasks[2] == 6
        tasks = [asyncio.create_task(used.run(number)) for number in (4, -1, 5)]
        assert await tasks[0] == 8
        for task in tasks[1:]:
            with pytest.raises(ValueError, match="negative"):
                await task
        await used.drained()
        used.close()
        assert await used.run(7) == 14  # in place

    asyncio.run(work())


def test_blocks_are_not_kept_after_the_call() -> None:
    class Block:
        pass

    async def work() -> weakref.ref[Block]:
        used: Lane[Block, Block] = Lane("test", list)
        block = Block()
        assert await used.run(block) is block
        seen = weakref.ref(block)
        del block
        await used.drained()
        used.close()
        return seen

    gc.disable()
    try:
        assert asyncio.run(work())() is None
    finally:
        gc.enable()


def test_a_loop_that_ends_leaves_nobody_waiting() -> None:
    held = Held()

    async def work() -> None:
        used = lane(held)
        asyncio.get_running_loop().create_task(used.run(1))
        await held.until_begun()
        raise RuntimeError("the loop ends while a call runs")

    threading.Timer(0.2, held.let_go.set).start()  # the loop waits for its threads
    with pytest.raises(RuntimeError, match="while a call runs"):
        asyncio.run(work())
