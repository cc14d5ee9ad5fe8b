"""The local radix index, against a plain dictionary."""

import threading
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skymemory.link.block_entry import BlockEntry
from skymemory.store.radix import RadixIndex


def chain(tokens: str) -> list[bytes]:
    """Keys of a prompt whose blocks are single letters: each hashes all before it."""
    return [sha256(tokens[: end + 1].encode()).digest() for end in range(len(tokens))]


def entry(key: bytes, epoch: int = 0) -> BlockEntry:
    return BlockEntry(key, 100, 10, 10, epoch, 1.0)


def entries(tokens: str, epoch: int = 0) -> list[BlockEntry]:
    return [entry(key, epoch) for key in chain(tokens)]


prompts = st.text("ab", max_size=6)


class AgainstDictionary(RuleBasedStateMachine):
    """Model: the set of prompts (all prefixes that are known), each with the epoch of its last block."""

    def __init__(self) -> None:
        super().__init__()
        self.index = RadixIndex()
        self.model: dict[str, int] = {}

    @rule(prompt=prompts, epoch=st.integers(0, 9))
    def insert(self, prompt: str, epoch: int) -> None:
        self.index.insert(entries(prompt, epoch))
        self.model |= {prompt[: end + 1]: epoch for end in range(len(prompt))}

    @rule(prompt=prompts.filter(bool), epoch=st.integers(0, 9))
    def add(self, prompt: str, epoch: int) -> None:
        """Only the last block: it is found by its key, and in the chain once all before it are known."""
        self.index.add([entry(chain(prompt)[-1], epoch)])
        self.model[prompt] = epoch

    @rule(prompt=prompts)
    def longest_prefix(self, prompt: str) -> None:
        expected = []
        for end, key in enumerate(chain(prompt), 1):
            if prompt[:end] not in self.model:
                break
            expected.append(entry(key, self.model[prompt[:end]]))
        assert self.index.longest_prefix(chain(prompt)) == expected

    @rule(prompt=prompts.filter(bool))
    def remove(self, prompt: str) -> None:
        # Blocks whose chain was never presented hang nowhere yet: show all, so that the model's prefixes are the tree's
        for known in sorted(self.model):
            self.index.longest_prefix(chain(known))
        linked = {known for known in self.model if self._linked(known, prompt)}
        assert self.index.remove(chain(prompt)[-1]) == len(linked)
        for known in linked:
            del self.model[known]

    def _linked(self, known: str, prompt: str) -> bool:
        if not known.startswith(prompt):
            return False
        # A descendant hangs on the removed block if some presented chain joined them: all blocks from the first on known
        return known == prompt or all(known[:end] in self.model for end in range(1, len(known) + 1))

    @rule()
    def remove_all(self) -> None:
        for prompt in self.model:
            self.index.remove(chain(prompt)[-1])
        self.model.clear()

    @invariant()
    def knows_every_key(self) -> None:
        assert len(self.index) == len(self.model)
        for prompt, epoch in self.model.items():
            assert self.index.get(chain(prompt)[-1]) == entry(chain(prompt)[-1], epoch)


TestAgainstDictionary = AgainstDictionary.TestCase
TestAgainstDictionary.settings = hypothesis_settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.lists(prompts, max_size=20), st.integers(1, 8))
def test_bound_holds_and_no_chain_gets_a_hole(inserted: list[str], bound: int) -> None:
    index = RadixIndex(bound)
    for prompt in inserted:
        index.insert(entries(prompt))
        assert len(index) <= bound
        assert len(index.longest_prefix(chain(prompt))) == min(len(prompt), bound)
    for prompt in inserted:
        known = len(index.longest_prefix(chain(prompt)))
        assert all(index.get(key) is None for key in chain(prompt)[known:])


def test_least_recently_used_goes_first() -> None:
    index = RadixIndex(4)
    index.insert(entries("ab"))
    index.insert(entries("cd"))
    index.longest_prefix(chain("ab"))
    index.insert(entries("e"))
    assert len(index.longest_prefix(chain("ab"))) == 2
    assert len(index.longest_prefix(chain("cd"))) == 1  # its end went, not its beginning


def test_remove_takes_all_that_follow() -> None:
    index = RadixIndex()
    index.insert(entries("abcd"))
    index.insert(entries("abx"))
    assert index.remove(chain("ab")[-1]) == 4
    assert len(index.longest_prefix(chain("abcd"))) == 1
    assert index.remove(chain("ab")[-1]) == 0


def test_keys_that_are_no_hashes_do_no_harm() -> None:
    a, b = bytes(32), bytes([1]) * 32
    index = RadixIndex()
    index.insert([entry(a), entry(b), entry(a)])  # a circle
    assert [found.key for found in index.longest_prefix([a, b, a])] == [a, b]
    index.insert([entry(b), entry(a)])  # each before the other
    assert [found.key for found in index.longest_prefix([b, a])] == [b, a]
    assert len(index) == 2
    assert index.remove(b) == 2
    assert len(index) == 0


def test_wrong_bound() -> None:
    with pytest.raises(ValueError, match="entries_max is 0"):
        RadixIndex(0)


def test_many_threads() -> None:
    index = RadixIndex(50)
    failures: list[BaseException] = []

    def work(letter: str) -> None:
        try:
            for length in list(range(1, 20)) * 10:
                prompt = letter * length
                index.insert(entries(prompt))
                index.longest_prefix(chain(prompt))
                index.remove(chain(prompt)[length // 2])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) <= 50


def test_the_stalest_block_is_the_one_that_was_not_moved_for_the_longest_time() -> None:
    index = RadixIndex()
    known, unknown = entries("abc"), entry(chain("x")[0])
    assert index.stalest([]) is None
    index.insert(known)
    assert index.stalest(known) == known[0]  # none of them ever was
    index.moved(one.key for one in known[:2])
    assert index.stalest(known) == known[2]
    index.moved([known[2].key, unknown.key])  # of who is not known nothing is kept
    assert index.stalest(known) == known[0]
    index.moved([known[0].key])
    assert index.stalest(known) == known[1]
    assert index.stalest([*known, unknown]) == unknown
    index.add([known[1]])  # news of a block is no use of it
    assert index.stalest(known) == known[1]
    index.remove(known[0].key)
    index.insert(known)
    assert index.stalest(known) == known[0]
