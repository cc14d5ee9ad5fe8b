"""Memory of blocks on their way."""

import pytest

from skymemory.store.transfers import memory_for

MIB = 1 << 20


@pytest.mark.parametrize("length", [1, 6000, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 13 * MIB + 7])
def test_memory_that_is_taken_in_steps_is_all_there(length: int) -> None:
    assert memory_for(length) == bytes(length)
