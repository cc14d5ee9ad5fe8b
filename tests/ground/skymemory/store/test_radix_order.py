"""In which order satellites would evict a chain, as far as the index knows."""

from skymemory.link.block_entry import BlockEntry
from skymemory.store.radix import RadixIndex

KEYS = [bytes([number]) * 32 for number in range(4)]


def index(*moved: bytes) -> RadixIndex:
    """All blocks are known, and these were moved in this order."""
    made = RadixIndex()
    made.insert([BlockEntry(key, 100, 100, 1, 0, 0.0) for key in KEYS])
    made.moved(moved)
    return made


def test_a_chain_that_was_stored_from_its_beginning_on_loses_that_first() -> None:
    assert not index(*KEYS).is_tail_oldest(KEYS, 10)


def test_a_chain_that_was_touched_loses_its_end_first() -> None:
    assert index(*reversed(KEYS)).is_tail_oldest(KEYS, 10)


def test_a_chain_whose_end_was_not_moved_for_long() -> None:
    made = index(*reversed(KEYS[:2]), KEYS[2], KEYS[3])
    assert made.is_tail_oldest(KEYS[:2], 2)
    assert not made.is_tail_oldest(KEYS[:2], 1)


def test_blocks_of_the_chain_itself_do_not_count_as_others() -> None:
    assert index(*reversed(KEYS)).is_tail_oldest(KEYS, 0)


def test_a_block_that_this_host_never_moved() -> None:
    assert not index(KEYS[0]).is_tail_oldest(KEYS[:3], 10)
    assert index().is_tail_oldest([], 0)
