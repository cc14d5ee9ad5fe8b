"""`BlockStore`: the interface of every store of blocks.

`SkyStore` speaks to the satellites itself, `skymemory.agent.agent_store.AgentStore` through this host's agent.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.sky.file_sections import Cache
from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult
from skymemory.wire.packets import KEY_BYTES

_T = TypeVar("_T")
BLOCK_BYTES_MAX: Final = 1 << 26
"""Bytes of the longest block fetched by default. Without a limit a satellite could make a host take any amount of memory."""


class BlockStore(ABC):
    """Blocks of 1 byte to 4 GiB - 1 under keys of 32 bytes. Thread-safe; a context manager.

    Failures behind the store do not raise: a block that does not come is a miss, and its result says why. Each method raises
    ValueError for a key of another length. A `SkyStore` that was closed raises ValueError, too.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @property
    def settings(self) -> Cache:
        """The section `[cache]` of the constellation file, as far as the store knows it: codec and block size for managers."""
        return Cache()

    @property
    @abstractmethod
    def tenant_secret(self) -> bytes:
        """The secret that managers and values on this store put into all their keys.

        Raises:
            SecretFileError: There is none, and none can be made.
        """

    @property
    @abstractmethod
    def silent(self) -> bool:
        """True while nobody answers: blocks are then neither looked for nor stored."""

    @property
    @abstractmethod
    def knows_absence(self) -> bool:
        """True if a block that was not found is not there. False: satellites that may hold it do not answer."""

    @abstractmethod
    def find(self, keys: Sequence[bytes], *, fresh: bool = False) -> list[FindResult]:
        """Return what is known of blocks.

        Args:
            keys: 32 bytes each, in any order.
            fresh: Ask the satellites whether the blocks are whole, and do not believe what was known before. Others may have
                purged blocks, and satellites may have evicted them.

        Returns:
            A result for each key, in order: DONE with the block's entry, MISS, or UNANSWERED.
        """

    @abstractmethod
    def find_longest(
        self,
        keys: Sequence[bytes],
        *,
        fresh: bool = False,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ChainResult:
        """Find the longest cached beginning of a chain of blocks.

        Args:
            keys: Keys of a prompt's blocks, the first one first; 32 bytes each.
            fresh: Ask the satellites whether the blocks are whole, and do not believe what was known before.
            block_bytes_max: A longer block ends the chain.
            cancelled: Tells, before each question to the sky, whether nobody waits for the result any more.

        Returns:
            Entries of the first blocks, without a gap, and the keys of which nobody said anything.

        Raises:
            CancelledLookupError: Nobody waits for the result any more.
        """

    def known(self, keys: Sequence[bytes]) -> int:
        """Return how many first blocks of a chain this host believes to be there. Nobody is asked.

        0 also means that the store does not know such things by itself.
        """
        return 0

    @abstractmethod
    def get(self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> list[GetResult]:
        """Fetch blocks, all at once.

        Args:
            entries: Entries from `find` or `find_longest`, or keys, which are looked up first.
            block_bytes_max: Longer blocks are misses, and no memory is taken for them.

        Returns:
            A result for each entry, in order.
        """

    def get_each(
        self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX
    ) -> Generator[GetResult, None, None]:
        """Fetch blocks, and yield the result of each as soon as it and all before it are there, if the store can.

        While the caller works on a block, others come. A caller that needs no more of them closes the generator, which ends what
        runs (`contextlib.closing`). The store may be used meanwhile, by any thread.

        Args:
            entries: Entries from `find` or `find_longest`, or keys, which are looked up first.
            block_bytes_max: Longer blocks are misses, and no memory is taken for them.

        Yields:
            A result for each entry, in order.
        """
        yield from self.get(entries, block_bytes_max=block_bytes_max)

    def opened(self, result: GetResult, opens: Callable[[bytearray], _T | None]) -> _T | None:
        """Open a block that was fetched. A store that can mend blocks then does so.

        Args:
            result: The result of `get`.
            opens: Function that opens the bytes of a block, in place if it wants, and returns None if they are not right. A store
                may call it again with other bytes of this block, also later and in another thread.

        Returns:
            What `opens` returned. None if it did for all bytes that could be had, or if nothing was fetched.
        """
        return None if result.data is None else opens(result.data)

    @abstractmethod
    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
        """Store blocks, all at once. A block that is there already is not stored twice.

        Args:
            items: Pairs of key and block. The block's memory must not change meanwhile.

        Returns:
            A result for each item, in order.

        Raises:
            ValueError: A block is empty, or larger than the store can hold.
        """

    @abstractmethod
    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks, here and on the satellites."""

    @abstractmethod
    def forget(self, results: Sequence[GetResult]) -> None:
        """Purge blocks that were fetched and are of no use, but nothing that is newer under their keys.

        Results without entries do not tell the one from the other: such blocks stay until they are evicted.

        Args:
            results: Results of `get`.
        """

    @abstractmethod
    def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        """Prefetch blocks so that they are in the window at a time to come (paper, end of section 3.7).

        Args:
            keys: Keys of the blocks.
            at_s: Unix time.

        Returns:
            A result for each key, in order.

        Raises:
            ValueError: The time is past.
        """

    @abstractmethod
    def close(self) -> None:
        """Close what the store opened; safe to call twice. Blocks stay where they are."""


def check_keys(keys: Sequence[bytes]) -> None:
    """Check the lengths of keys.

    Raises:
        ValueError: A key has another length than 32 bytes.
    """
    for key in keys:
        if len(key) != KEY_BYTES:
            raise ValueError(f"key of {len(key)} bytes; {KEY_BYTES} are allowed")
