"""Lookups on the satellites: which blocks are there, how long a cached beginning is, which blocks are whole (paper, section 3.8).

Failures in the sky do not raise: a missing answer is a result of its own. The core decides who is asked, and what counts as
found, missed or unanswered (`sky_ground_find.c`, `sky_ground_check.c`).
"""

from collections.abc import Sequence

from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import BYTES_MAX, CHAIN, FRESH, Found, Outcome, to_find
from skymemory.link.structures import Kind
from skymemory.store.parts import Part
from skymemory.store.results import SILENCE, ChainResult, FindResult, Status
from skymemory.store.runner import Steps

_UNKNOWN = frozenset((Status.UNANSWERED, Status.NO_SATELLITE, Status.CANCELLED))


class Lookups(Part):
    """Lookups on the satellites of a constellation. Thread-safe."""

    def ask(self, keys: Sequence[bytes], *, fresh: bool = False) -> Steps[list[FindResult]]:
        """Ask for blocks, all at once. A result is UNANSWERED if too few satellites have said something.

        Args:
            keys: Keys of the blocks.
            fresh: All that may know a newer version of a block say what they know.
        """
        if not keys:
            return []
        outcome = yield from self._find(keys, FRESH if fresh else 0)
        return [_result(key, one) for key, one in zip(keys, outcome.found, strict=True)]

    def resolve(self, entries: Sequence[BlockEntry | bytes]) -> Steps[tuple[list[BlockEntry | None], dict[bytes, Status]]]:
        """Return what is known of each block, None if nothing, and why nothing is known of the keys that were asked for."""
        known = [self._known(entry) if isinstance(entry, bytes) else self._index.current(entry) for entry in entries]
        unknown = [entry for entry, found in zip(entries, known, strict=True) if found is None and isinstance(entry, bytes)]
        if not unknown:
            return known, {}
        told = (yield from self._find(unknown, 0)).found
        answers = iter(told)
        found = [next(answers).entry if entry is None else entry for entry in known]
        return found, {key: one.status for key, one in zip(unknown, told, strict=True) if one.entry is None}

    def longest(self, keys: Sequence[bytes], block_bytes_max: int) -> Steps[ChainResult]:
        """Find the longest beginning of a chain that is on the satellites.

        The first block is asked for first, as most chains that miss do so there. A binary search follows: if a block is there, so
        are its predecessors, unless one was evicted (paper, Get steps 3 to 6). These are asked for at the end.

        Args:
            keys: Keys of the chain, the first one first.
            block_bytes_max: A longer block ends the chain.
        """
        if not keys:
            return ChainResult([])
        outcome = yield from self._find(keys, CHAIN, block_bytes_max)
        entries = [one.entry for one in outcome.found[: outcome.chain_count] if one.entry is not None]
        return ChainResult(entries, [key for key, one in zip(keys, outcome.found, strict=True) if one.status in _UNKNOWN])

    def whole(self, entries: Sequence[BlockEntry]) -> Steps[list[bool | None]]:
        """Return for each block whether it can be had, or None if a satellite on which that depends is silent."""
        if not entries:
            return []
        told = yield [self._operation(Kind.CHECK, entry) for entry in entries]
        whole = [True if one.status is Status.DONE else False if one.status is Status.MISS else None for one in told]
        self._count(questions=sum(one.tries > 0 for one in told), unanswered=whole.count(None))
        return whole

    def _known(self, key: bytes) -> BlockEntry | None:
        """Return the entry under which a block may be fetched at once; None: satellites have to be asked.

        A value may have been replaced since, so its homes say each time which version is the newest.
        """
        entry = self._index.get(key)
        return None if entry is None or entry.version else entry

    def _find(self, keys: Sequence[bytes], ways: int, block_bytes_max: int = BYTES_MAX) -> Steps[Outcome]:
        incomplete = [key in self._incomplete for key in keys] if self._incomplete else ()
        operation = to_find(
            keys, self._tenant, self._deadline_ms, ways=ways, incomplete=incomplete, block_bytes_max=block_bytes_max
        )
        [outcome] = yield [operation]
        asked = sum(one.status is not Status.RUNNING for one in outcome.found) if outcome.tries else 0
        unanswered = len({key for key, one in zip(keys, outcome.found, strict=True) if one.status in _UNKNOWN})
        self._count(questions=asked, unanswered=unanswered)
        return outcome


def _result(key: bytes, found: Found) -> FindResult:
    """Return what was found. Whoever looks a block up needs to know only whether its absence is known."""
    status = Status.UNANSWERED if found.status in SILENCE else found.status
    return FindResult(key, found.entry, status)
