"""Values of Redis clients in the sky: for each name a line of operations, done in the order in which they came.

Lines of different names go side by side. What they ask of the sky in one turn of the event loop is asked in one call, and any
number of calls run at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from skymemory.agent.gateway.directory import Directory
from skymemory.agent.gateway.lmcache import Lengths
from skymemory.agent.gateway.memory import Answer, Held, Memory
from skymemory.agent.gateway.operations import Needs, Operation, State
from skymemory.agent.gateway.requests import BULK_BYTES_MAX
from skymemory.agent.gateway.tally import Tally
from skymemory.agent.gateway.users import Tenancy
from skymemory.agent.shared_sky import SharedSky
from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.store.deletions import is_deletion
from skymemory.store.keyvalue import (
    FRAME_BYTES_MAX,
    HEAD_BYTES,
    Value,
    ValueKeys,
    block_length,
    may_expire,
    now_unix_ms,
)
from skymemory.store.results import REPLACED, SILENCE, FindResult, GetResult, PutResult, Status
from skymemory.store.versions import Versions, now_unix_us

_log = logging.getLogger(__name__)

BLOCK_BYTES_MAX: Final = BULK_BYTES_MAX + FRAME_BYTES_MAX
_IN_THREAD_BYTES: Final = 1 << 18
"""Length of values that are sealed and opened in the event loop, and not beside it."""
_CALL_ITEMS: Final = 512
_TAKEN_AT_ONCE: Final = 64
"""Results of a call that are taken before others have their turn."""
_TOGETHER: Final = 512
"""Operations on one value that are done together, before others have their turn."""
_ALONE_BYTES: Final = 1 << 18
"""Length of values from which each has a call of its own: others do not wait for it."""
_BREATH_S: Final = 0.002
NO_ANSWER: Final = "ERR the constellation does not answer; nothing was stored, try again"
REFUSED: Final = (
    "ERR satellites refuse the keys of this agent; nothing was stored. Put a keyring of a generation that they serve in place: "
    "the agent takes it while it runs"
)

Item = TypeVar("Item")
Result = TypeVar("Result")
Done = TypeVar("Done")


def namespace_of(database: int) -> str:
    """Return the namespace of a database; that of `skymem put` and `skymem get` is database 0."""
    return "" if database == 0 else str(database)


class _Calls(Generic[Item, Result]):
    """Items that are asked for in one turn of the event loop go into one call, as a call costs as much as many blocks."""

    def __init__(
        self,
        call: Callable[[list[Item]], Awaitable[Sequence[Result]]],
        otherwise: Callable[[Item], Result],
        length: Callable[[Item], int] = lambda item: 0,
    ) -> None:
        """Begin without items.

        Args:
            call: Asks the sky.
            otherwise: Makes the result of an item if the call raises, which is a fault of ours.
            length: Returns the bytes that an item moves.
        """
        self._call = call
        self._otherwise = otherwise
        self._length = length
        self._asked: list[tuple[Item, Callable[[Result], None]]] = []
        self._running: set[asyncio.Task[None]] = set()

    def ask(self, item: Item, take: Callable[[Result], None]) -> None:
        """Ask for an item; `take` is called with the result."""
        if self._length(item) >= _ALONE_BYTES:
            self._begin([(item, take)])
            return
        if not self._asked:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._asked.append((item, take))

    def _end_turn(self) -> None:
        asked, self._asked = self._asked, []
        for first in range(0, len(asked), _CALL_ITEMS):
            self._begin(asked[first : first + _CALL_ITEMS])

    def _begin(self, some: list[tuple[Item, Callable[[Result], None]]]) -> None:
        task = asyncio.create_task(self._run(some))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, some: list[tuple[Item, Callable[[Result], None]]]) -> None:
        results = await self._results([item for item, _ in some])
        for number, ((_, take), result) in enumerate(zip(some, results, strict=True), 1):
            if number % _TAKEN_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                take(result)
            except Exception:  # the others are waited for, too
                _log.exception("an answer of the sky could not be used")

    async def _results(self, items: list[Item]) -> Sequence[Result]:
        try:
            return await self._call(items)
        except Exception:  # somebody waits for each of these
            _log.exception("the sky was asked in vain")
            return [self._otherwise(item) for item in items]


class _Line:
    """Operations on one value."""

    __slots__ = ("awaits_memory", "database", "doing", "held", "key", "keys", "name", "waiting")

    def __init__(self, database: int, name: bytes) -> None:
        self.database = database
        self.name = name
        self.key = b""
        """Key of the name under `keys`."""
        self.keys: ValueKeys | None = None
        """Keys of the tenant, while operations are done; None: no constellation is known."""
        self.waiting: list[tuple[Operation, Answer]] = []
        self.doing: list[tuple[Operation, Answer]] = []
        self.held: Held | None = None
        """Memory for the value, while its operations are done."""
        self.awaits_memory = False

    @property
    def is_due(self) -> bool:
        """True: a client waits for this, and for nothing else."""
        return any(answer.is_due for some in (self.doing, self.waiting) for _, answer in some)

    @property
    def ahead_bytes(self) -> int:
        """Memory that the client with the least has taken already."""
        if not self.waiting and len(self.doing) == 1:  # as nearly always
            return self.doing[0][1].ahead_bytes
        return min(answer.ahead_bytes for some in (self.doing, self.waiting) for _, answer in some)


class Values:
    """Values of one gateway and tenant. Used from one event loop."""

    def __init__(self, sky: SharedSky, memory: Memory, directory: Directory, tenancy: Tenancy | None = None) -> None:
        """Begin without operations.

        Args:
            tenancy: Tenant of the values; None: the constellation's, as `skymem put` has it.
        """
        self._sky = sky
        self._memory = memory
        self.directory = directory
        self.lengths = Lengths()
        """Lengths of values that clients of LMCache have put or seen."""
        self.tally = Tally()
        """Numbers of the tenant's clients."""
        self._tenant = tenant = None if tenancy is None else tenancy.number
        self._own_secret = b"" if tenancy is None else tenancy.secret
        """Secret of the tenant; empty: it has none of its own, and the sky's counts."""
        self._lines: dict[tuple[int, bytes], _Line] = {}
        self._finds: _Calls[bytes, FindResult] = _Calls(
            lambda keys: sky.find(keys, tenant=tenant), lambda key: FindResult(key, None, Status.UNANSWERED)
        )
        self._asks: _Calls[bytes, FindResult] = _Calls(
            lambda keys: sky.find(keys, fresh=True, tenant=tenant), lambda key: FindResult(key, None, Status.UNANSWERED)
        )
        self._gets: _Calls[tuple[bytes, int], GetResult] = _Calls(  # keys, with the lengths of their blocks
            lambda items: sky.get([key for key, _ in items], block_bytes_max=BLOCK_BYTES_MAX, tenant=tenant),
            lambda item: GetResult(item[0], None, Status.UNANSWERED, 0.0),
            lambda item: item[1],
        )
        self._puts: _Calls[tuple[bytes, Buffer], PutResult] = _Calls(
            lambda items: sky.put(items, tenant=tenant),
            lambda item: PutResult(item[0], Status.UNANSWERED, None, 0.0),
            lambda item: memoryview(item[1]).nbytes,
        )
        self._purges: _Calls[bytes, bool] = _Calls(self._purge, lambda item: False)
        self._working: set[asyncio.Task[None]] = set()
        self._keys: tuple[bytes, ValueKeys] | None = None
        """The tenant secret that was used last, and the keys of it."""
        self._versions = Versions()

    async def drained(self) -> None:
        """Wait until all operations are done."""
        while self._lines:
            await asyncio.sleep(_BREATH_S)

    @property
    def value_bytes_max(self) -> int:
        """Length of the longest value that can be stored now."""
        store = self._sky.store
        most = BULK_BYTES_MAX if store is None else store.capacity_bytes - FRAME_BYTES_MAX
        return min(BULK_BYTES_MAX, most)

    def too_long(self, length: int) -> str | None:
        """Return the error for a value that is too long; None: it can be stored."""
        if length <= self.value_bytes_max:
            return None
        text = f"ERR value of {length:,} bytes; allowed are 0 to {self.value_bytes_max:,}"
        store = self._sky.store
        if store is None or length > BULK_BYTES_MAX:
            return text
        return f"{text} ({store.constellation.cache.servers} servers of {store.constellation.satellite.store_mib} MiB)"

    def do(self, database: int, name: bytes, operation: Operation, answer: Answer) -> None:
        """Do something to a value once all before it is done; `answer` waits for it."""
        line = self._lines.get((database, name))
        if line is not None:
            line.waiting.append((operation, answer))
            if line.awaits_memory:  # for a client that has enough of it; this one may have none
                self._memory.retry()
            return
        line = self._lines[database, name] = _Line(database, name)
        line.doing.append((operation, answer))
        self._begin(line)

    def _keys_now(self) -> ValueKeys | None:
        """Return the keys for the constellation that is served now."""
        secret = self._own_secret or self._sky.tenant_secret
        if secret is None:
            return None
        if self._keys is None or self._keys[0] != secret:
            self._keys = secret, ValueKeys(secret, self._tenant)
        return self._keys[1]

    @property
    def _silence(self) -> str:
        """Error of a change that no satellite has confirmed."""
        return REFUSED if self._sky.is_refused else NO_ANSWER

    # ---- what must be known --------------------------------------------------------------------------------------------

    def _begin(self, line: _Line) -> None:
        needs, asks, deletes = Needs.NOTHING, False, False
        for operation, _ in line.doing:
            needs, asks, deletes = max(needs, operation.needs), asks or operation.asks, deletes or operation.deletes
            if operation.decides:
                break
        store = self._sky.store
        line.keys = self._keys_now()
        if line.keys is not None:
            line.key = line.keys.key_of(line.name, namespace_of(line.database))
        if store is None or line.keys is None or store.silent:
            self._refuse(line, self._silence)
        elif needs is Needs.NOTHING:
            self._apply(line, State())
        elif needs is Needs.DATA and not asks and not deletes and (entry := store.index.get(line.key)) is not None:
            self._fetch(line, entry.block_len)  # its homes are asked for the newest version then
        else:
            store.index.remove(line.key)  # what this host knew may be out of date
            (self._asks if asks else self._finds).ask(line.key, lambda found: self._answered(line, needs, found))

    def _answered(self, line: _Line, needs: Needs, found: FindResult) -> None:
        if found.status in SILENCE:
            self._unanswered(line)
        elif found.entry is None or (is_deletion(found.entry.block_len) and needs is not Needs.DATA):
            self._missed(line)
        else:
            self._looked(line, needs, found.entry)

    def _looked(self, line: _Line, needs: Needs, entry: BlockEntry) -> None:
        """Go on: the satellites know of a block.

        A deletion is fetched: another host may have put a value since this one saw it, or it is old, and is to be purged.
        """
        known = self.directory.get(line.database, line.name, now_unix_ms())
        block_len = entry.block_len
        if known is not None and (
            known.version != entry.version or block_length(known.length, known.expires_unix_ms) != block_len
        ):
            known = None  # another host put another value
        if known is None:
            is_enough = needs is Needs.TERMS and not may_expire(block_len) and not is_deletion(block_len)
        else:
            is_enough = needs is Needs.TERMS or (needs is Needs.LENGTH and known.is_exact)
        if not is_enough:
            self._fetch(line, block_len)
        elif known is None:
            length = max(0, block_len - HEAD_BYTES)
            self.directory.put(line.database, line.name, length, 0, entry.version, is_exact=False)
            self._apply(line, State(is_there=True, length=length))
        else:
            self._apply(line, State(is_there=True, length=known.length, expires_unix_ms=known.expires_unix_ms))

    def _fetch(self, line: _Line, block_len: int) -> None:
        def go() -> None:
            line.awaits_memory = False
            line.held = Held(self._memory, block_len)
            self._gets.ask((line.key, block_len), lambda result: self._fetched(line, result))

        line.awaits_memory = True
        self._memory.fetch(line, block_len, go)

    def _fetched(self, line: _Line, result: GetResult) -> None:
        data, keys = result.data, line.keys
        assert keys is not None
        if data is None and result.status in SILENCE:
            self._unanswered(line)
        elif data is None and result.status is Status.MISS:
            self._missed(line)
        elif data is None:
            self._unread(line, result.status)
        else:
            opens = partial(keys.unpack, line.key)
            if result.entry is not None and result.entry.code_m:  # it may have to be fetched again
                self._beside(
                    line, lambda: self._sky.opened(result, opens, self._tenant), lambda one: self._opened(line, result, one)
                )
            elif len(data) <= _IN_THREAD_BYTES:
                self._opened(line, result, opens(data))
            else:
                self._beside(line, lambda: opens(data), lambda value: self._opened(line, result, value))

    def _opened(self, line: _Line, result: GetResult, value: Value | None) -> None:
        if value is None:  # of no use to others either
            self._sky.forget([result], tenant=self._tenant)
            self._missed(line)
        elif not self._versions.seen(line.key, value.version):  # somebody put back what was replaced
            self._missed(line)
        elif value.is_old_deletion(now_unix_us()):
            self._sky.forget([result], tenant=self._tenant)
            self._missed(line)
        elif value.is_deleted:
            self._missed(line)
        elif value.is_over(now_unix_ms()):
            assert line.keys is not None
            deletion = line.keys.pack_deletion(line.key, version=value.version + 1)  # a newer value stays
            self._puts.ask((line.key, deletion), lambda _: self._missed(line))
        else:
            length = len(value.data)
            self.directory.put(line.database, line.name, length, value.expires_unix_ms, value.version)
            self._apply(line, State(True, value.data, length, value.expires_unix_ms, held=line.held))

    def _missed(self, line: _Line) -> None:
        known = self.directory.get(line.database, line.name, now_unix_ms())
        self.directory.remove(line.database, line.name)
        self.tally.lost += known is not None
        self._apply(line, State(lost_length=None if known is None else known.length))

    def _unanswered(self, line: _Line) -> None:
        """Go on where nobody says whether there is a value: reads miss it, and changes that depend on it cannot be done."""
        first = next((at for at, (operation, _) in enumerate(line.doing) if operation.decides), len(line.doing))
        self._fail(line, line.doing[:first], self._silence)
        line.doing = line.doing[first:]
        if line.doing:
            self._apply(line, State())
        else:
            self._next(line)

    def _unread(self, line: _Line, status: Status) -> None:
        """Go on where something cannot be read: a longer block than a value's, or shares of several.

        It can be deleted, or another be put in its place; reads miss it, and changes that depend on it cannot be done.
        """
        goes = (at for at, (operation, _) in enumerate(line.doing) if operation.decides or operation.deletes)
        first = next(goes, len(line.doing))
        self._fail(line, line.doing[:first], f"ERR the value cannot be read: {status.replace('_', ' ')}; DEL deletes it")
        line.doing = line.doing[first:]
        if line.doing:
            self._apply(line, State(is_there=True))
        else:
            self._next(line)

    # ---- what is left in the end ---------------------------------------------------------------------------------------

    def _apply(self, line: _Line, state: State) -> None:
        """Do the operations."""
        for operation, _ in line.doing:
            operation.do(state)
        if not state.is_changed:
            self._finish(line)
        elif state.is_there and not 0 < state.expires_unix_ms <= now_unix_ms():
            self._store(line, state)
        else:
            self._delete(line, self._versions.choose(line.key))

    def _delete(self, line: _Line, version: int, *, is_first: bool = True) -> None:
        assert line.keys is not None
        self._put(line, line.keys.pack_deletion(line.key, version=version), None, 0, version, is_first=is_first)

    def _store(self, line: _Line, state: State) -> None:
        data, large, terms, keys = state.data, state.large, state.expires_unix_ms, line.keys
        assert data is not None
        assert keys is not None
        version, length = self._versions.choose(line.key), len(data)

        def sealed() -> Buffer:
            # What is sealed in place cannot be read any more. Operations beside this one may still have to answer with it
            if large is None or len(line.doing) > 1:
                return keys.pack(line.key, data, terms, version=version)
            block = large.memory[: block_length(length, terms)]
            keys.pack_in_place(line.key, block, length, terms, version=version)
            return block

        if length <= _IN_THREAD_BYTES:
            self._put(line, sealed(), length, terms, version)
        else:
            self._beside(line, sealed, lambda block: self._put(line, block, length, terms, version))

    def _put(self, line: _Line, block: Buffer, length: int | None, terms: int, version: int, *, is_first: bool = True) -> None:
        """Store a block in place of another one. If satellites hold a newer version, store it once more as a newer one.

        Args:
            line: Operations that end with it.
            block: The block.
            length: Length of the value; None: the block is a deletion.
            terms: Time when the value expires; 0: never.
            version: Version of the block.
            is_first: False: it was tried with another version.
        """

        def stored(result: PutResult) -> None:
            if result.ok:
                self._versions.stored(line.key, version)
                if length is None:
                    self.directory.remove(line.database, line.name)
                else:
                    self.directory.put(line.database, line.name, length, terms, version)
                self._finish(line)
                return
            above = self._versions.choose_above(line.key, result.held_version)
            if is_first and result.status in REPLACED and above is not None:
                if length is None:
                    self._delete(line, above, is_first=False)
                else:
                    self._put_above(line, block, length, terms, above)
                return
            self.directory.remove(line.database, line.name)
            if length is None and result.status in REPLACED and above is None:  # no deletion can be newer
                self._purges.ask(line.key, lambda gone: self._finish(line) if gone else self._refuse(line, self._silence))
                return
            if result.status is Status.UNAUTHENTICATED:
                why = REFUSED
            elif result.status in SILENCE:
                why = self._silence
            else:
                why = f"ERR not stored: {result.status.replace('_', ' ')}"
            self._refuse(line, why)

        self._puts.ask((line.key, block), stored)

    def _put_above(self, line: _Line, block: Buffer, length: int, terms: int, version: int) -> None:
        keys = line.keys
        assert keys is not None

        def sealed() -> Buffer:
            # The value may have been sealed where it was, so nothing but its block is left
            memory = memoryview(block)
            keys.unpack(line.key, memory)
            keys.pack_in_place(line.key, memory, length, terms, version=version)
            return block

        self._beside(line, sealed, lambda again: self._put(line, again, length, terms, version, is_first=False))

    async def _purge(self, keys: list[bytes]) -> list[bool]:
        """Purge all that lies under keys, and return whether that is sure, for each."""
        return [one.confirmed for one in await asyncio.gather(*(self._sky.purge([key], tenant=self._tenant) for key in keys))]

    # ---- the end -------------------------------------------------------------------------------------------------------

    def _refuse(self, line: _Line, why: str) -> None:
        """End the operations: the value cannot be changed now, and reads miss it."""
        self._fail(line, line.doing, why)
        self._next(line)

    def _fail(self, line: _Line, some: list[tuple[Operation, Answer]], why: str) -> None:
        known = self.directory.get(line.database, line.name, now_unix_ms())
        for operation, _ in some:
            operation.failed(why, None if known is None else known.length)

    def _finish(self, line: _Line) -> None:
        for operation, _ in line.doing:
            operation.done()
        self._next(line)

    def _next(self, line: _Line) -> None:
        if line.held is not None:
            line.held.release()
            line.held = None
        were_many = len(line.doing) >= _TOGETHER
        line.doing, line.waiting = line.waiting[:_TOGETHER], line.waiting[_TOGETHER:]
        if not line.doing:
            del self._lines[line.database, line.name]
        elif were_many:
            asyncio.get_running_loop().call_soon(self._begin, line)
        else:
            self._begin(line)

    def _beside(self, line: _Line, work: Callable[[], Done], take: Callable[[Done], None]) -> None:
        """Do work on long values beside the event loop, and go on with its result."""

        async def do() -> None:
            try:
                done = await asyncio.to_thread(work)
            except Exception:  # somebody waits for this
                _log.exception("a value could not be worked on")
                self._refuse(line, "ERR internal error")
            else:
                take(done)

        task = asyncio.create_task(do())
        self._working.add(task)
        task.add_done_callback(self._working.discard)
