"""Gets of a store: repeat attempts to fetch blocks, and forget or purge the blocks that are gone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skymemory.common.progress import Progress
from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import Transfer
from skymemory.sky.entry_satellites import Route
from skymemory.store.decisions import AttemptStep, TransferAttempts, Verdict
from skymemory.store.find import Lookups
from skymemory.store.parts import Operation, StoreParts
from skymemory.store.purge import Purges
from skymemory.store.results import GetResult, Status
from skymemory.store.transfers import Transfers, memory_for


class Gets(Operation):
    """Gets of one store. Thread-safe."""

    def __init__(self, parts: StoreParts, lookups: Lookups, purges: Purges, transfers: Transfers) -> None:
        super().__init__(parts)
        self._lookups = lookups
        self._purges = purges
        self._transfers = transfers

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
        """Fetch blocks, and write their results. Blocks that are gone are forgotten.

        Args:
            results: A result for each block; those of wanted blocks are replaced.
            wanted: The entries of the wanted blocks, by their indices among the results.
            room: The memory for each result's block, or None to take new memory.
            block_bytes_max: Longer blocks are misses.
            progress: Called now and then with chunks done and chunks in all.
            aside: Use a socket of its own, so that other gets do not wait for this one.
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
        verdicts: Mapping[BlockEntry, Verdict],
        elsewhere: Mapping[bytes, BlockEntry],
        routes: Sequence[Route],
        patience_s: float | None = None,
    ) -> None:
        """Forget and purge blocks by their verdicts.

        Args:
            verdicts: The verdict on each block.
            elsewhere: Blocks that are there, but with another length or for another row. The index takes these entries.
            routes: Routes to the satellites that are told of a purge.
            patience_s: Seconds to wait for their answers; None for the usual time.
        """
        self._index.add(elsewhere.values())
        for entry, verdict in verdicts.items():
            if verdict is Verdict.FORGET and entry.key not in elsewhere:
                self._index.remove(entry.key)
                self._lookups.set_incomplete(entry.key)
        useless = [entry for entry, verdict in verdicts.items() if verdict is Verdict.PURGE]
        if useless:
            self._purges.forget(useless, routes, patience_s)

    def end_of(self, status: Status) -> Status:
        """Return the final status of a block. If nobody was asked for it, say why."""
        if status is Status.RUNNING:
            return Status.UNANSWERED if self._routes.silent else Status.NO_SATELLITE
        return status

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _get_result(self, transfer: Transfer, status: Status) -> GetResult:
        taken = transfer.data if transfer.status is Status.DONE else None
        data = taken if isinstance(taken, bytearray) else None
        is_done = transfer.status is Status.DONE
        is_degraded = is_done and transfer.decoded > 0
        return GetResult(
            transfer.entry.key,
            data,
            self.end_of(status),
            transfer.duration_s,
            entry=transfer.entry if is_done else None,
            is_degraded=is_degraded,
        )

    def _settle(self, fetched: Mapping[int, tuple[TransferAttempts, BlockEntry]]) -> dict[int, BlockEntry]:
        """Find out why blocks did not come, and forget or purge those that are gone.

        Returns:
            New entries of blocks that are to be fetched again. Another host has replaced or prefetched these.
        """
        doubtful = {index: (one, entry) for index, (one, entry) in fetched.items() if one.next() is AttemptStep.CONFIRM}
        renamed = [entry.key for one, entry in doubtful.values() if one.is_renamed]
        for key in renamed:
            self._index.remove(key)
        gone = [entry for one, entry in doubtful.values() if not one.is_renamed]
        routes = self._purges.routes([entry.key for entry in gone]) if gone else []
        elsewhere = self._lookups.newest(renamed)
        if gone:
            elsewhere |= self._lookups.prefetched_ahead([entry.key for entry in gone]) | self._lookups.replaced(gone)
        is_blind = any(entry.key not in elsewhere for entry in gone) and self._late_search.is_schedule_unknown(routes)
        for one, entry in doubtful.values():
            one.confirmed(is_other=entry.key in elsewhere, is_blind=is_blind)
        verdicts = {entry: one.verdict for one, entry in fetched.values() if one.next() is AttemptStep.END}
        self.carry_out(verdicts, elsewhere, routes)
        return {index: elsewhere[entry.key] for index, (one, entry) in doubtful.items() if one.next() is AttemptStep.ASK}
