"""Gets of a store: blocks are asked for as often as makes sense, and what is gone is forgotten or purged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skymemory.attempts import Attempts, AttemptStep, Verdict
from skymemory.block_entry import BlockEntry
from skymemory.clearing import Clearing
from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.native import Transfer
from skymemory.lookup import Lookup
from skymemory.placement.window import Route
from skymemory.progress import Progress
from skymemory.reach import Reach
from skymemory.results import GetResult, Status
from skymemory.transfers import Transfers, memory_for


class Retrieval:
    """Of one store. Thread-safe."""

    def __init__(
        self,
        index: RadixIndex,
        reach: Reach,
        handovers: Handovers,
        lookup: Lookup,
        clearing: Clearing,
        transfers: Transfers,
        tenant: int,
    ) -> None:
        self._index = index
        self._reach = reach
        self._handovers = handovers
        self._lookup = lookup
        self._clearing = clearing
        self._transfers = transfers
        self._tenant = tenant

    def fetch(
        self,
        results: list[GetResult],
        wanted: Mapping[int, BlockEntry],
        room: Sequence[memoryview | None],
        block_bytes_max: int,
        progress: Progress | None,
        *,
        aside: bool,
    ) -> None:
        """Fill in the results of the wanted blocks. What is gone is forgotten.

        Args:
            results: changed in place.
            wanted: what is known of the blocks, by their places among the results.
            room: memory for each result's block; None: it is taken.
            block_bytes_max: longer blocks are misses.
        """
        attempts = {index: self._transfers.to_get() for index in wanted}
        while wanted:
            transfers: dict[int, Transfer] = {}
            for index, entry in wanted.items():
                data = room[index]
                if entry.block_len > block_bytes_max:
                    results[index] = replace(results[index], status=Status.TOO_LARGE, known=True)
                elif data is not None and data.nbytes != entry.block_len:
                    results[index] = replace(results[index], status=Status.BAD_LENGTH, known=True)
                else:
                    transfers[index] = Transfer(entry, self._tenant, memory_for(entry.block_len) if data is None else data)
            self._transfers.get([attempts[index] for index in transfers], list(transfers.values()), progress, aside=aside)
            for index, transfer in transfers.items():
                results[index] = self._get_result(transfer, attempts[index].status)
            wanted = self._settle({index: (attempts[index], transfer.entry) for index, transfer in transfers.items()})

    def carry_out(
        self,
        verdicts: Mapping[bytes, Verdict],
        elsewhere: Mapping[bytes, BlockEntry],
        routes: Sequence[Route],
        patience_s: float | None = None,
    ) -> None:
        """Forget and purge blocks. What is there with other lengths or for another row (`elsewhere`) is known as that."""
        self._index.add(elsewhere.values())
        for key, verdict in verdicts.items():
            if verdict is Verdict.FORGET and key not in elsewhere:
                self._index.remove(key)
                self._lookup.set_incomplete(key)
        useless = [key for key, verdict in verdicts.items() if verdict is Verdict.PURGE]
        if useless:
            self._clearing.forget(useless, routes, patience_s)

    def end_of(self, status: Status) -> Status:
        """What became of a block, also if nobody was asked for it."""
        if status is Status.RUNNING:
            return Status.UNANSWERED if self._reach.silent else Status.NO_SATELLITE
        return status

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _get_result(self, transfer: Transfer, status: Status) -> GetResult:
        taken = transfer.data if transfer.status is Status.DONE else None
        data = taken if isinstance(taken, bytearray) else None
        return GetResult(transfer.entry.key, data, self.end_of(status), transfer.duration_s)

    def _settle(self, fetched: Mapping[int, tuple[Attempts, BlockEntry]]) -> dict[int, BlockEntry]:
        """Find out what became of blocks that did not come, and forget or purge those that are gone.

        Returns:
            Those that are to be fetched as satellites know them now: another host has replaced them, or laid them ahead.
        """
        doubtful = {index: (one, entry) for index, (one, entry) in fetched.items() if one.next() is AttemptStep.CONFIRM}
        renamed = [entry.key for one, entry in doubtful.values() if one.is_renamed]
        for key in renamed:
            self._index.remove(key)
        gone = [entry for one, entry in doubtful.values() if not one.is_renamed]
        routes = self._clearing.routes([entry.key for entry in gone]) if gone else []
        elsewhere = {told.key: told.entry for told in self._lookup.ask(renamed) if told.entry is not None} if renamed else {}
        if gone:
            elsewhere |= self._lookup.laid_ahead([entry.key for entry in gone]) | self._lookup.replaced(gone)
        is_blind = any(entry.key not in elsewhere for entry in gone) and self._handovers.is_schedule_unknown(routes)
        for one, entry in doubtful.values():
            one.confirmed(is_other=entry.key in elsewhere, is_blind=is_blind)
        verdicts = {entry.key: one.verdict for one, entry in fetched.values() if one.next() is AttemptStep.END}
        self.carry_out(verdicts, elsewhere, routes)
        return {index: elsewhere[entry.key] for index, (one, entry) in doubtful.items() if one.next() is AttemptStep.ASK}
