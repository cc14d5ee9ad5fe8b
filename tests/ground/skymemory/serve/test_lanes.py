"""Sources take turns in a thread, whatever one of them has sent."""

import asyncio
from collections.abc import Callable
from threading import Event

from skymemory.serve.lanes import FairThread


def test_a_source_waits_for_one_piece_of_work_of_another() -> None:
    done: list[str] = []

    async def run() -> None:
        thread, begins = FairThread("test"), Event()

        def first() -> None:
            begins.wait(60)
            done.append("a")

        def work(name: str) -> Callable[[], None]:
            return lambda: done.append(name)

        tasks = [asyncio.create_task(thread.run("a", first))]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(thread.run("a", work("a"))) for _ in range(3)]
        tasks += [asyncio.create_task(thread.run(name, work(name))) for name in ("b", "c", "b")]
        await asyncio.sleep(0)
        begins.set()
        await asyncio.gather(*tasks)
        thread.close()

    asyncio.run(run())
    assert "".join(done) == "abacbaa"


def test_who_goes_away_gives_the_turn_to_the_next_one() -> None:
    async def run() -> None:
        thread, begins = FairThread("test"), Event()
        running = asyncio.create_task(thread.run("a", lambda: begins.wait(60)))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(thread.run(number, lambda number=number: number)) for number in range(6)]
        await asyncio.sleep(0)
        for one in waiting[:3]:
            one.cancel()
        begins.set()
        await running
        waiting[3].cancel()  # its turn has come
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert found[4:] == [4, 5]
        assert await thread.run("b", lambda: "last") == "last"
        thread.close()

    asyncio.run(run())
