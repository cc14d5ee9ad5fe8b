"""Memory of values on their way."""

import asyncio
from dataclasses import dataclass

from skymemory.agent.gateway.arguments import WORD_BYTES_MAX
from skymemory.agent.gateway.memory import ANSWERS_BYTES_MAX, Held, Memory
from skymemory.agent.gateway.requests import BULK_BYTES_MAX

MIB = 1 << 20


@dataclass
class Waiting:
    is_due: bool = False
    ahead_bytes: int = 0


def test_values_to_be_stored_are_refused_beyond_the_half() -> None:
    memory = Memory(100)
    assert memory.admit(50)
    assert not memory.admit(1)
    memory.release(50)
    assert memory.admit(80)  # alone there is always room


def test_the_longest_value_fits_beside_the_rest_of_its_command() -> None:
    memory = Memory()
    assert memory.admit(len("SET") + WORD_BYTES_MAX)
    assert memory.admit(BULK_BYTES_MAX)


def test_answers_that_are_not_due_leave_the_other_half() -> None:
    async def use() -> None:
        memory, went = Memory(100), []
        first, later, due = Waiting(), Waiting(), Waiting(is_due=True)
        memory.fetch(first, 40, lambda: went.append("first"))
        memory.fetch(later, 40, lambda: went.append("later"))
        assert went == ["first"]
        memory.fetch(due, 60, lambda: went.append("due"))
        await asyncio.sleep(0)
        assert went == ["first", "due"]
        later.is_due = True
        memory.retry()
        await asyncio.sleep(0)
        assert went == ["first", "due"]  # there is no room even for that
        memory.release(60)
        await asyncio.sleep(0)
        assert went == ["first", "due", "later"]
        assert memory.used_bytes == 80

    asyncio.run(use())


def test_a_connection_is_bounded_too() -> None:
    async def use() -> None:
        memory, went = Memory(1 << 40), []
        full = Waiting(ahead_bytes=ANSWERS_BYTES_MAX)
        memory.fetch(full, 1, lambda: went.append("full"))
        await asyncio.sleep(0)
        assert went == []
        memory.fetch(Waiting(), MIB, lambda: went.append("other"))
        await asyncio.sleep(0)
        assert went == ["other"]
        full.ahead_bytes = 0
        memory.retry()
        await asyncio.sleep(0)
        assert went == ["other", "full"]

    asyncio.run(use())


def test_shared_memory_is_given_back_once() -> None:
    memory = Memory(100)
    memory.fetch(Waiting(), 30, lambda: None)
    held = Held(memory, 30)
    several = [held.share() for _ in range(3)]
    held.release()
    for one in several[:2]:
        one.release()
    assert memory.used_bytes == 30
    several[2].release()
    assert memory.used_bytes == 0
