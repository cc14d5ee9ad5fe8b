"""`AgentStore`: a `BlockStore` over this host's agent, so that a program shares the agent's links with the engines.

    with AgentStore() as store:
        manager = KVCManager(model, tokenizer, store)

Each block is copied once each way, between the program's memory and the memory that it shares with the agent.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate, islice, takewhile
from pathlib import Path
from typing import Final, TypeVar

from skymemory.agent import protocol
from skymemory.agent.client import AgentClient, EngineInfo, Outcome, Question
from skymemory.agent.lease import Lease
from skymemory.common.state_folder import agent_socket, named_secret
from skymemory.common.tenant_secrets import engines_secret_of, read_tenant_secret
from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.sky.file_sections import Cache
from skymemory.store.block_store import BLOCK_BYTES_MAX, BlockStore, check_keys
from skymemory.store.get import AHEAD_BYTES
from skymemory.store.results import CancelledLookupError, ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status

T = TypeVar("T")

ANSWER_S: Final = 120.0
"""Seconds until a question that the agent has not answered counts as a miss. A prefetch may take half as long."""
_LOOK_S: Final = 0.02
"""Period in which a caller is asked whether it still waits."""
_ASK_BYTES: Final = 1 << 20
"""Bytes of small blocks of a stream that the agent is asked for together."""
_AHEAD_PART: Final = 4
"""Part of the arena that a stream takes at most while its caller does something else: one of so many."""
_ENGINE: Final = EngineInfo(name="store", model="", root=bytes(32), block_tokens=1, block_bytes=1, dtype="bytes")
"""No model and no length of blocks, for a store may carry any."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Blocks that the agent was asked for."""

    run: list[tuple[int, BlockEntry]]
    """Each with its index."""
    leases: list[Lease]
    answer: Question[list[Outcome]]
    held: ExitStack
    """Holder of the leases."""

    @property
    def bytes(self) -> int:
        """Bytes of these blocks."""
        return sum(entry.block_len for _, entry in self.run)


class AgentStore(BlockStore):
    """Blocks that this host's agent fetches and stores. Blocks are at most as long as the arena."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        arena_bytes: int = 1 << 28,
        settings: Cache | None = None,
        tenant_secret: bytes | None = None,
    ) -> None:
        """Return at once. All is a miss until the agent is there (`wait_connected`).

        Args:
            path: Path of the agent's socket; `$SKYMEM_AGENT_SOCKET` by default, else `agent.sock` in the state folder.
            arena_bytes: Memory for blocks on their way. It is taken page by page as it is used.
            settings: Codec and block size for managers: the section `[cache]` of the constellation file, which the agent does
                not tell. Its defaults by default.
            tenant_secret: The secret of what is stored; by default the one that the agent leaves beside its socket.

        Raises:
            ValueError: The protocol does not allow `arena_bytes`.
        """
        self._client = AgentClient(path, engine=_ENGINE, arena_bytes=arena_bytes)
        self._settings = Cache() if settings is None else settings
        self._socket = agent_socket() if path is None else path
        self._tenant_secret = tenant_secret

    @property
    def settings(self) -> Cache:
        """The settings that the store was given."""
        return self._settings

    @property
    def tenant_secret(self) -> bytes:
        """The secret of what is stored, see `BlockStore.tenant_secret`."""
        if self._tenant_secret is None:
            named = named_secret()
            self._tenant_secret = engines_secret_of(self._socket) if named is None else read_tenant_secret(named)
        return self._tenant_secret

    @property
    def silent(self) -> bool:
        """True if there is no agent, or if no satellite answered when the agent was last asked."""
        return not self._client.connected or self._client.silent

    @property
    def knows_absence(self) -> bool:
        """True if enough satellites answered for that when the agent was last asked (`SkyStore.knows_absence`)."""
        return not self.silent and self._client.knows_absence

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until the agent is there, and return False if it is not there in time."""
        return self._client.wait_connected(timeout_s)

    def find(self, keys: Sequence[bytes], *, fresh: bool = False) -> list[FindResult]:
        """Return what the agent knows of blocks, see `BlockStore.find`. Without an agent all are UNANSWERED."""
        check_keys(keys)
        results: list[FindResult] = []
        for part in _parts(keys):
            results += self._look_up(part, chain=False, fresh=fresh, block_bytes_max=0)
        return results

    def find_longest(
        self,
        keys: Sequence[bytes],
        *,
        fresh: bool = False,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ChainResult:
        """Find the longest cached beginning of a chain, see `BlockStore.find_longest`. At most 16,384 blocks are looked for."""
        check_keys(keys)
        if cancelled():
            raise CancelledLookupError
        asked = keys[: protocol.BLOCKS_MAX]
        results: list[FindResult] = []
        if asked:
            results = self._look_up(asked, chain=True, fresh=fresh, block_bytes_max=block_bytes_max, cancelled=cancelled)
        entries = [result.entry for result in results if result.entry is not None]
        return ChainResult(entries, [result.key for result in results if result.status is Status.UNANSWERED])

    def get(self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> list[GetResult]:
        """Fetch blocks, see `BlockStore.get`. Without an agent all are UNANSWERED."""
        results, wanted = self._begun(entries, block_bytes_max)
        while wanted:
            with ExitStack() as held:
                leases = self._leases([entry.block_len for _, entry in wanted], held)
                run, wanted = wanted[: max(1, len(leases))], wanted[max(1, len(leases)) :]
                for (index, entry), (status, data, duration_s) in zip(run, self._fetched(run, leases), strict=True):
                    results[index] = GetResult(entry.key, data, status, duration_s)
        return results

    def get_each(
        self, entries: Sequence[BlockEntry | bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX
    ) -> Generator[GetResult, None, None]:
        """Fetch blocks and yield each as it comes, see `BlockStore.get_each`. Without an agent all are UNANSWERED.

        The agent is asked for some at a time, and for more as soon as those that have not come leave room in 16 MiB.
        """
        check_keys([entry if isinstance(entry, bytes) else entry.key for entry in entries])
        return self._each(entries, block_bytes_max)

    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> list[PutResult]:
        """Store blocks, see `BlockStore.put`. Results carry no entries. Without an agent all are UNANSWERED."""
        check_keys([key for key, _ in items])
        blocks = [(key, memoryview(data).cast("B")) for key, data in items]
        for _, view in blocks:
            if not 1 <= view.nbytes <= self._client.arena_bytes:
                raise ValueError(f"block of {view.nbytes:,} bytes; allowed are 1 to {self._client.arena_bytes:,}")
        results: list[PutResult] = []
        while len(results) < len(blocks):
            with ExitStack() as held:
                left = blocks[len(results) :]
                leases = self._leases([view.nbytes for _, view in left], held)
                for (_, view), lease in zip(left, leases, strict=False):
                    lease.view[:] = view
                pairs = [(key, lease) for (key, _), lease in zip(left, leases, strict=False)]
                outcomes = self._answer(self._client.put(pairs)) if pairs else None
                if outcomes is None:
                    results += [PutResult(key, Status.UNANSWERED, None, 0.0) for key, _ in left[: max(1, len(pairs))]]
                else:
                    results += [PutResult(one.key, _told(one.status), None, one.seconds) for one in outcomes]
        return results

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks, see `BlockStore.purge`. Without an agent nothing is confirmed."""
        check_keys(keys)
        answers = [self._answer(self._client.purge(part)) for part in _parts(keys)]
        chunks = sum(answer.chunks for answer in answers if answer is not None)
        return Purged(chunks, all(answer is not None and answer.confirmed for answer in answers))

    def forget(self, results: Sequence[GetResult]) -> None:
        """Do nothing: the agent tells no entries (`BlockStore.forget`)."""

    def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        """Prefetch blocks for a time to come, see `BlockStore.prefetch`. Without an agent all are UNANSWERED."""
        check_keys(keys)
        if not at_s >= time.time():
            raise ValueError(f"the time {at_s:.0f} is past; allowed are Unix times from now on")
        results: list[PrefetchResult] = []
        for part in _parts(keys):
            told = self._answer(self._client.prefetch(part, at_s)) or [(Status.UNANSWERED, 0, 0)] * len(part)
            results += [PrefetchResult(key, _told(one), row, moved) for key, (one, row, moved) in zip(part, told, strict=True)]
        return results

    def close(self) -> None:
        """End the connection; safe to call twice. Blocks stay where they are, and all is a miss from then on."""
        self._client.close()

    def _look_up(
        self,
        keys: Sequence[bytes],
        *,
        chain: bool,
        fresh: bool,
        block_bytes_max: int,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[FindResult]:
        asked = self._client.look_up(keys, chain=chain, fresh=fresh, block_bytes_max=block_bytes_max)
        end_s = time.monotonic() + ANSWER_S
        while not asked.done() and time.monotonic() < end_s:
            if cancelled():
                self._client.call_back(asked)
                raise CancelledLookupError
            wait([asked], _LOOK_S)
        told = asked.result() if asked.done() else None
        if told is None:
            return [FindResult(key, None, Status.UNANSWERED) for key in keys]
        return [
            FindResult(key, None if entry is None else BlockEntry(key, *entry), _told(status))
            for key, (status, entry) in zip(keys, told, strict=True)
        ]

    def _resolved(self, entries: Sequence[BlockEntry | bytes]) -> list[FindResult]:
        """Return what is known of blocks, and ask the agent for those of which only the key is given."""
        asked = iter(self.find([entry for entry in entries if isinstance(entry, bytes)]))
        return [next(asked) if isinstance(entry, bytes) else FindResult(entry.key, entry, Status.DONE) for entry in entries]

    def _begun(
        self, entries: Sequence[BlockEntry | bytes], block_bytes_max: int
    ) -> tuple[list[GetResult], list[tuple[int, BlockEntry]]]:
        """Return results that are misses so far, and the blocks that may be fetched, each with its index."""
        keys = [entry if isinstance(entry, bytes) else entry.key for entry in entries]
        most = min(block_bytes_max, self._client.arena_bytes)
        results: list[GetResult] = []
        wanted: list[tuple[int, BlockEntry]] = []
        for index, (key, one) in enumerate(zip(keys, self._resolved(entries), strict=True)):
            is_too_large = one.entry is not None and one.entry.block_len > most
            status = Status.TOO_LARGE if is_too_large else one.status
            results.append(GetResult(key, None, status, 0.0, known=one.entry is not None))
            if one.entry is not None and not is_too_large:
                wanted.append((index, one.entry))
        return results, wanted

    def _each(self, entries: Sequence[BlockEntry | bytes], block_bytes_max: int) -> Generator[GetResult, None, None]:
        results, wanted = self._begun(entries, block_bytes_max)
        left = deque(wanted)
        asked: deque[_Asked] = deque()
        ready: deque[tuple[int, GetResult]] = deque()
        try:
            for index, result in enumerate(results):
                if not asked and left and left[0][0] == index:
                    self._ask_ahead(left, asked, is_first=True)
                    if not asked:  # there is no memory for it
                        left.popleft()
                        result = replace(result, status=Status.UNANSWERED)
                if asked and asked[0].run[0][0] == index:
                    ready.extend(self._taken(asked.popleft()))
                    self._ask_ahead(left, asked)
                if ready and ready[0][0] == index:
                    _, result = ready.popleft()
                yield result
                del result
        finally:
            for one in asked:
                self._client.call_back(one.answer)
                one.held.close()

    def _ask_ahead(self, left: deque[tuple[int, BlockEntry]], asked: deque["_Asked"], *, is_first: bool = False) -> None:
        """Ask for the first blocks that are left, as far as there is room.

        Args:
            left: Blocks that were not asked for yet.
            asked: Blocks that were.
            is_first: True if the next block is needed now: wait for room for it. It is taken before the caller goes on, so it may
                have any length. All others leave most of the arena to whatever the caller does meanwhile.
        """
        most = min(AHEAD_BYTES, self._client.arena_bytes // _AHEAD_PART)
        ahead_bytes = sum(one.bytes for one in asked)
        while left:
            small = takewhile(lambda size: size <= min(most, _ASK_BYTES), accumulate(entry.block_len for _, entry in left))
            sizes = list(islice(small, protocol.BLOCKS_MAX)) or [left[0][1].block_len]
            if not is_first and ahead_bytes + sizes[-1] > most:
                return
            with ExitStack() as held:
                patience_s = ANSWER_S if is_first else 0.0
                leases = self._leases([entry.block_len for _, entry in islice(left, len(sizes))], held, patience_s)
                if not leases:
                    return
                run = [left.popleft() for _ in leases]
                answer = self._client.get([(entry.key, lease) for (_, entry), lease in zip(run, leases, strict=True)])
                asked.append(_Asked(run, leases, answer, held.pop_all()))
            ahead_bytes += 0 if is_first else asked[-1].bytes
            is_first = False

    def _taken(self, one: "_Asked") -> list[tuple[int, GetResult]]:
        """Wait for blocks, copy them out, and give the memory back."""
        with one.held:
            outcomes = self._answer(one.answer) or [Outcome(entry.key, Status.UNANSWERED, 0.0) for _, entry in one.run]
            return [
                (index, GetResult(entry.key, bytearray(lease.view) if came.ok else None, _told(came.status), came.seconds))
                for (index, entry), lease, came in zip(one.run, one.leases, outcomes, strict=True)
            ]

    def _fetched(
        self, run: Sequence[tuple[int, BlockEntry]], leases: Sequence[Lease]
    ) -> list[tuple[Status, bytearray | None, float]]:
        """Fetch blocks into leases and copy them out."""
        pairs = [(entry.key, lease) for (_, entry), lease in zip(run, leases, strict=False)]
        outcomes = self._answer(self._client.get(pairs)) if pairs else None
        if outcomes is None:
            return [(Status.UNANSWERED, None, 0.0)] * len(run)
        moved = zip(outcomes, leases, strict=True)
        return [(_told(one.status), bytearray(lease.view) if one.ok else None, one.seconds) for one, lease in moved]

    def _leases(self, lengths: Sequence[int], held: ExitStack, patience_s: float = ANSWER_S) -> list[Lease]:
        """Lease memory for as many of the first blocks as there is room for now, and wait for room for the first one."""
        leases: list[Lease] = []
        for length in lengths[: protocol.BLOCKS_MAX]:
            lease = self._client.lease(length, timeout_s=0 if leases else patience_s)
            if lease is None:
                break
            leases.append(held.enter_context(lease))
        return leases

    def _answer(self, asked: Question[T]) -> T | None:
        try:
            return asked.result(ANSWER_S)
        except FutureTimeoutError:
            self._client.call_back(asked)
            return None


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield as many keys at a time as the protocol allows."""
    return (keys[first : first + protocol.BLOCKS_MAX] for first in range(0, len(keys), protocol.BLOCKS_MAX))


def _told(status: Status) -> Status:
    """Return the status as stores name it: without an agent nobody answers."""
    return Status.UNANSWERED if status in (Status.NO_AGENT, Status.BUSY) else status
