"""Operations of a ground on bad terms with its surroundings: forged answers, host numbers in use.

Somebody sits on the paths to all satellites. What he does costs a host the block at most: it never gets wrong bytes, never takes
for stored what no satellite has, and never has a block purged that there is.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane
from skymemory.link.structures import Kind
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.structures import Verdict
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from skymemory.wire.packets import ChunkSet, Packet, decode
from support.on_path import Change, on_path
from support.operations import asked, entry_of, fetched, found, got, opened, put, scatter, turned
from support.raw_host import RawHost
from support.satellites import holds_share

StartSky = Callable[..., LocalConstellation]
Answers = Iterator[Packet]
A, B, C = Satellite(2, 2), Satellite(2, 3), Satellite(2, 4)
SIZE = 30_000
SHORT_MS = 2000
MOVES = (icd.OP_GET, icd.OP_HAS)


def new_block(name: object) -> tuple[bytes, bytes]:
    return sha256(f"{__name__} {name}".encode()).digest(), os.urandom(SIZE)


@pytest.fixture
def sky(full_sky: LocalConstellation) -> Constellation:
    return full_sky.constellation.replace(cache={"parity": 0})


def stored(sky: Constellation, key: bytes, data: bytes) -> BlockEntry:
    with opened(sky) as ground:
        assert [one.status for one in put(ground, sky, {key: data})] == [Status.DONE]
    return entry_of(sky, key, len(data))


def check_still_there(sky: Constellation, key: bytes, data: bytes) -> None:
    """Whoever is alone with the satellites gets the block."""
    with opened(sky) as ground:
        assert got(ground, sky, [entry_of(sky, key, len(data))]) == [data]


# ---- what comes back, changed -------------------------------------------------------------------------------------------


def as_it_is(packet: Packet) -> Answers:
    yield packet


def from_another_satellite(packet: Packet) -> Answers:
    yield replace(packet, src=Satellite(3, 3) if packet.src != (3, 3) else Satellite(3, 4))


def of_another_number(packet: Packet) -> Answers:
    yield replace(packet, request_id=packet.request_id ^ 1 << 40)


def as_a_request(packet: Packet) -> Answers:
    yield replace(packet, is_request=True, time_s=0, time_subs=0, status=0, word=0)


def of_another_operation(packet: Packet) -> Answers:
    yield replace(packet, op=icd.OP_PING if packet.op != icd.OP_PING else icd.OP_HAS, payload=b"")


UNBELIEVED: list[Change] = [from_another_satellite, of_another_number, as_a_request, of_another_operation]


def test_through_an_honest_path_all_comes_through(sky: Constellation) -> None:
    key, data = new_block("honest")
    with on_path(sky) as seen, opened(seen) as ground:
        assert [one.status for one in put(ground, seen, {key: data})] == [Status.DONE]
        assert got(ground, seen, [entry_of(seen, key, SIZE)]) == [data]
    check_still_there(sky, key, data)


@pytest.mark.parametrize(("change", "from_elsewhere"), [(as_it_is, True), *((change, False) for change in UNBELIEVED)])
def test_answers_count_only_from_where_they_are_waited_for(sky: Constellation, change: Change, from_elsewhere: bool) -> None:
    key, data = new_block(f"from {change} {from_elsewhere}")
    entry, (other, _) = stored(sky, key, data), new_block(f"other {change} {from_elsewhere}")
    with on_path(sky, change, from_elsewhere=from_elsewhere) as seen, opened(seen) as ground:
        outcome, room = fetched(ground, seen, entry, SHORT_MS)
        assert outcome.status in (Status.EXPIRED, Status.UNANSWERED)
        assert outcome.verdict is Verdict.KEEP
        assert (outcome.chunks, outcome.bytes, room) == (0, 0, bytes(SIZE))
        [told] = found(ground, seen, [key])
        assert told is Status.UNANSWERED
        assert [one.status for one in put(ground, seen, {other: data})] != [Status.DONE]
    check_still_there(sky, key, data)


@pytest.mark.parametrize("code", [icd.STATUS_EXPIRED, *sorted(icd.HOST_STATUSES), icd.STATUS_COUNT, 255])
def test_a_satellite_cannot_say_what_is_for_the_host_to_say(sky: Constellation, code: int) -> None:
    """A miss, for one, would have the block purged, and a put that is done would be one that never was."""

    def with_the_status_of_a_host(packet: Packet) -> Answers:
        if packet.op in MOVES:
            packet = replace(packet, status=code, payload=b"", chunk_len=0, offset=0, chunk_crc=0)
        yield packet

    key, data = new_block(f"said {code}")
    entry, (other, _) = stored(sky, key, data), new_block(f"put {code}")
    with on_path(sky, with_the_status_of_a_host) as seen:
        with opened(seen) as ground:
            outcome, room = fetched(ground, seen, entry, SHORT_MS)
            assert (outcome.status, outcome.last_status, outcome.verdict) == (Status.REFUSED, code, Verdict.KEEP)
            assert (outcome.chunks, room) == (0, bytes(SIZE))
            [gone] = put(ground, seen, {other: data})
            assert (gone.status, gone.chunks) == (Status.REFUSED, 0)
        with SkyStore(seen, tenant_secret=b"") as store:
            [one] = store.get([key])
            assert not one.ok
            assert one.data is None
    check_still_there(sky, key, data)


def spoilt(packet: Packet) -> Packet:
    return replace(packet, payload=bytes([packet.payload[0] ^ 1]) + packet.payload[1:]) if packet.payload else packet


def another_sum(packet: Packet) -> Packet:
    return replace(packet, chunk_crc=packet.chunk_crc ^ 1)


def shorter(packet: Packet) -> Packet:
    return replace(packet, payload=packet.payload[:-1])


def of_no_chunk(packet: Packet) -> Packet:
    return replace(packet, chunk_id=packet.chunk_id + packet.chunk_total)


def behind_all_chunks(packet: Packet) -> Packet:
    return replace(packet, chunk_id=0xFFFFFFFF)


CHUNKS = [spoilt, another_sum, shorter, of_no_chunk, behind_all_chunks]


@pytest.mark.parametrize("spoil", CHUNKS)
def test_no_wrong_chunk_is_taken(sky: Constellation, spoil: Callable[[Packet], Packet]) -> None:
    """Those that are spoilt once are asked for again; where all are, the block is missed and stays."""
    key, data = new_block(f"chunk {spoil}")
    entry, spoilt_ones = stored(sky, key, data), set[int]()

    def once(packet: Packet) -> Answers:
        is_new = packet.op == icd.OP_GET and packet.status == icd.STATUS_OK and packet.chunk_id not in spoilt_ones
        if is_new:
            spoilt_ones.add(packet.chunk_id)
        yield spoil(packet) if is_new else packet

    def always(packet: Packet) -> Answers:
        yield spoil(packet) if packet.op == icd.OP_GET and packet.status == icd.STATUS_OK else packet

    with on_path(sky, once) as seen, opened(seen) as ground:
        outcome, room = fetched(ground, seen, entry)
        assert (outcome.status, room) == (Status.DONE, data)
        assert len(spoilt_ones) == entry.chunk_total
        assert outcome.repeats > 0
        assert outcome.corrupt == (0 if spoil is shorter else entry.chunk_total)  # that one is a part
    with on_path(sky, always) as seen, opened(seen) as ground:
        outcome, _ = fetched(ground, seen, entry, SHORT_MS)
        assert outcome.status is not Status.DONE
        assert outcome.verdict is Verdict.KEEP
        assert (outcome.chunks, outcome.bytes) == (0, 0)
    check_still_there(sky, key, data)


@pytest.mark.parametrize(
    "fields",
    [
        {"chunk_len": 6001},
        {"chunk_len": 6001, "offset": 1},
        {"chunk_len": 60_000, "offset": 54_000},
        {"block_len": SIZE - 1},
        {"block_len": 0xFFFFFFFF},
        {"chunk_total": 4},
        {"chunk_total": 0},
        {"chunk_total": 0xFFFFFFFF},
        {"code_k": 7, "code_m": 2, "code_scheme": 1},
        {"content": 12345},
        {"block_version": 9},
    ],
)
def test_chunks_of_another_block_are_not_taken(sky: Constellation, fields: dict[str, int]) -> None:
    key, data = new_block(f"other {fields}")
    entry = stored(sky, key, data)

    def of_another(packet: Packet) -> Answers:
        yield replace(packet, **fields) if packet.op == icd.OP_GET and packet.status == icd.STATUS_OK else packet  # type: ignore[arg-type]

    with on_path(sky, of_another) as seen, opened(seen) as ground:
        outcome, room = fetched(ground, seen, entry, SHORT_MS)
        assert outcome.status is not Status.DONE
        assert outcome.verdict is not Verdict.PURGE  # to forget that block costs another look-up
        assert (outcome.chunks, room) == (0, bytes(SIZE))
    check_still_there(sky, key, data)


def test_what_is_lost_of_a_put_is_not_taken_for_stored(sky: Constellation) -> None:
    """Somebody keeps the chunks for himself, and says of another satellite's word that it is this one's."""
    key, data = new_block("kept")

    def keeps(_: Satellite, request: Packet) -> Sequence[Packet] | None:
        return () if request.op == icd.OP_PUT else None

    with on_path(sky, lie=keeps) as seen, opened(seen) as ground:
        [outcome] = put(ground, seen, {key: data})
        assert outcome.status is not Status.DONE
        assert outcome.chunks == 0
    with opened(sky) as ground:
        assert found(ground, sky, [key]) == [Status.MISS]


def no_set(packet: Packet) -> Packet:
    return replace(packet, payload=packet.payload[:7])


def too_short_a_set(packet: Packet) -> Packet:
    return replace(packet, payload=packet.payload[:-1])


def chunks_that_it_was_not_asked_for(packet: Packet) -> Packet:
    return replace(packet, chunk_id=packet.chunk_id + 1, payload=ChunkSet(packet.chunk_id + 1, 1, (True,) * 64).encode())


def all_that_there_could_be(packet: Packet) -> Packet:
    whole = ChunkSet(0xFFFFFFFF, 1, (True,) * icd.LIMIT_CHUNK_SET)
    return replace(packet, chunk_id=whole.first, payload=whole.encode())


@pytest.mark.parametrize("spoil", [no_set, too_short_a_set, chunks_that_it_was_not_asked_for, all_that_there_could_be])
def test_only_a_sound_word_about_its_chunks_makes_a_put_done(sky: Constellation, spoil: Callable[[Packet], Packet]) -> None:
    """The chunks are lost on the way. Satellites that were asked are answered for with what they may not say."""
    key, data = new_block(f"word {spoil}")

    def keeps(_: Satellite, request: Packet) -> Sequence[Packet] | None:
        return () if request.op == icd.OP_PUT else None

    def lies(packet: Packet) -> Answers:
        if packet.op == icd.OP_HAS and packet.payload:
            yield spoil(replace(packet, status=icd.STATUS_OK, chunk_total=5, block_len=SIZE, chunk_len=6000))
        else:
            yield packet

    with on_path(sky, lies, keeps) as seen, opened(seen) as ground:
        [outcome] = put(ground, seen, {key: data})
        assert outcome.status is not Status.DONE
        assert outcome.chunks == 0


# ---- a satellite that says what it likes ------------------------------------------------------------------------------------


def answer(request: Packet, **fields: object) -> Packet:
    base = replace(request, is_request=False, src=request.dst, dst=request.src, deadline_ms=0, seq_count=0, flags=icd.FLAG_LAST)
    return replace(base, **fields)  # type: ignore[arg-type]  # fields are named here


def denial(request: Packet, chunks: ChunkSet) -> Packet:
    return answer(request, status=icd.STATUS_NOT_FOUND, chunk_id=chunks.first, payload=chunks.encode())


def again_and_again(request: Packet) -> Answers:
    for _ in range(5):
        yield denial(request, ChunkSet.of(request))


def one_at_a_time(request: Packet) -> Answers:
    for chunk in ChunkSet.of(request).chunks():
        yield denial(request, ChunkSet(chunk, 1, (True,)))


def also_what_was_not_asked_for(request: Packet) -> Answers:
    yield denial(request, ChunkSet(0, 7, (True,) * icd.LIMIT_CHUNK_SET))
    yield denial(request, ChunkSet(0xFFFFFFFF, 1, (True,)))
    yield denial(request, ChunkSet(0, 1, (True,) * icd.LIMIT_CHUNK_SET))


def numbers_of_requests_to_come(request: Packet) -> Answers:
    for number in (0, request.request_id + 1, request.request_id + 40_000, request.request_id | 0xFFFF):
        yield denial(replace(request, request_id=number & 0xFFFFFFFFFFFFFFFF), ChunkSet.of(request))


def a_set_that_is_none(request: Packet) -> Answers:
    yield replace(denial(request, ChunkSet.of(request)), payload=b"\0" * 7)


def hop_limit(request: Packet) -> Answers:
    yield answer(request, status=icd.STATUS_HOP_LIMIT, payload=b"")


def another_block(request: Packet) -> Answers:
    yield answer(request, status=icd.STATUS_OK, chunk_total=3, block_len=3, chunk_len=1, payload=b"x")


LIES = [
    again_and_again,
    one_at_a_time,
    also_what_was_not_asked_for,
    numbers_of_requests_to_come,
    a_set_that_is_none,
    hop_limit,
    another_block,
]


def of_one(liar: Satellite, lie: Callable[[Packet], Answers]) -> Callable[[Satellite, Packet], Answers | None]:
    """A satellite that answers gets as it likes, and is honest otherwise."""

    def told(satellite: Satellite, request: Packet) -> Answers | None:
        return lie(request) if satellite == liar and request.op == icd.OP_GET else None

    return told


@pytest.mark.parametrize("lie", LIES)
def test_no_word_of_one_place_keeps_from_asking_the_next(sky: Constellation, lie: Callable[[Packet], Answers]) -> None:
    one = sky.replace(cache={"servers": 1, "chunk_bytes": 1000})
    key, data = new_block(f"lie {lie}")
    entry = entry_of(one, key, SIZE)
    scatter(one, entry, data, lambda number: (B, C)[number % 2])
    with on_path(one, lie=of_one(A, lie)) as seen, opened(seen, turned(seen, A, B, C)) as ground:
        outcome, room = fetched(ground, seen, entry)
        assert (outcome.status, room) == (Status.DONE, data)
        nowhere, _ = fetched(ground, seen, replace(entry, key=new_block(f"nowhere {lie}")[0]), SHORT_MS)
        assert nowhere.status is not Status.DONE  # however often it is asked, that has an end
        assert (nowhere.chunks, nowhere.bytes) == (0, 0)


def test_refusals_of_the_request_itself_end_the_block(sky: Constellation) -> None:
    one = sky.replace(cache={"servers": 1, "chunk_bytes": 1000})
    key, data = new_block("refused")
    entry = entry_of(one, key, SIZE)
    scatter(one, entry, data, lambda _: B)

    def refuse(_: Satellite, request: Packet) -> list[Packet] | None:
        return [answer(request, status=icd.STATUS_TOO_LARGE, payload=b"")] if request.op == icd.OP_GET else None

    with on_path(one, lie=refuse) as seen, opened(seen, turned(seen, A, B)) as ground:
        outcome, room = fetched(ground, seen, entry)
        assert (outcome.status, outcome.last_status) == (Status.TOO_LARGE, icd.STATUS_TOO_LARGE)
        assert outcome.failed in (A, B)
        assert outcome.verdict is Verdict.KEEP
        assert (outcome.chunks, room) == (0, bytes(SIZE))
    with opened(one, turned(one, A, B)) as ground:
        assert got(ground, one, [entry]) == [data]


def test_a_satellite_that_denies_its_share_cannot_have_others_lose_theirs_at_once(start_sky: StartSky) -> None:
    """One that lies can have a block that depends on it missed; with parity the block comes all the same."""
    sky = start_sky(cache={"servers": 12, "parity": 2}).constellation
    key, data = new_block("denied")
    entry = stored(sky, key, data)
    liar = next(iter(sky.torus.satellites()))
    with on_path(sky, lie=of_one(liar, again_and_again)) as seen, opened(seen) as ground:
        assert got(ground, seen, [entry]) == [data]
    with ControlPlane(sky) as control:
        assert any(holds_share(control, Route(one, one), entry, 0, 12) for one in sky.torus.satellites())


# ---- what a satellite says that it holds ------------------------------------------------------------------------------------


def of_has(tell: Callable[[Packet], Answers]) -> Callable[[Satellite, Packet], Answers | None]:
    """Satellites that answer questions for what they hold as they like, and are honest otherwise."""

    def told(_: Satellite, request: Packet) -> Answers | None:
        return tell(request) if request.op == icd.OP_HAS else None

    return told


@pytest.mark.parametrize(
    "fields",
    [
        {"chunk_total": 0, "block_len": 0, "chunk_len": 10},
        {"chunk_total": 2, "block_len": 10, "chunk_len": 10},
        {"chunk_total": 2, "block_len": 21, "chunk_len": 10},
        {"chunk_total": 1, "block_len": 1, "chunk_len": 0},
        {"chunk_total": 1, "block_len": 61441, "chunk_len": 61441},
        {"chunk_total": 2, "block_len": 20, "chunk_len": 10, "key": bytes(32)},
        {"chunk_total": 20, "block_len": 100, "chunk_len": 10, "code_k": 5, "code_m": 5, "code_scheme": 1},  # for more servers
    ],
)
def test_blocks_whose_numbers_contradict_are_not_found(sky: Constellation, fields: dict[str, Any]) -> None:
    one = sky.replace(cache={"servers": 1})
    key, _ = new_block(f"contradicts {fields}")

    def tell(request: Packet) -> Answers:
        yield answer(request, payload=b"", **fields)

    with on_path(one, lie=of_has(tell)) as seen, opened(seen) as ground:
        [told] = found(ground, seen, [key])
    assert told in (Status.MISS, Status.UNANSWERED)


def test_keys_of_which_nothing_is_said_are_told_apart(sky: Constellation) -> None:
    """Of those whose question or answer is lost, and of those whose question did not get there."""
    one = sky.replace(cache={"servers": 1})
    held, gone, lost, cut_off = (new_block(f"apart {name}")[0] for name in ("held", "gone", "lost", "cut off"))

    def tell(request: Packet) -> Answers:
        if request.key == held:
            yield answer(request, chunk_total=1, block_len=10, chunk_len=10, payload=b"")
        elif request.key != lost:
            yield answer(request, status=icd.STATUS_NOT_FOUND if request.key == gone else icd.STATUS_UNREACHABLE, payload=b"")

    with on_path(one, lie=of_has(tell)) as seen, opened(seen) as ground:
        known, *others = found(ground, seen, [held, gone, lost, cut_off])
    assert known == BlockEntry(held, 10, 10, 1, 0, 0.0)
    assert others == [Status.MISS, Status.UNANSWERED, Status.UNANSWERED]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"payload": ChunkSet(0, 1, (True, True)).encode()}, Status.DONE),
        ({"payload": ChunkSet(0, 1, (True, False)).encode()}, Status.MISS),
        ({"payload": ChunkSet(0, 1, (True, True)).encode()[:-1]}, Status.UNANSWERED),
        ({"payload": b""}, Status.UNANSWERED),
        ({"payload": ChunkSet(0, 1, (True, True)).encode(), "chunk_total": 3}, Status.UNANSWERED),
        ({"status": icd.STATUS_NOT_FOUND}, Status.MISS),
        ({"status": icd.STATUS_UNREACHABLE}, Status.UNANSWERED),
    ],
)
def test_only_what_can_be_read_denies_a_chunk(sky: Constellation, fields: dict[str, Any], told: Status) -> None:
    """A block that is missed has its rest purged."""
    one = sky.replace(cache={"servers": 1})
    key, _ = new_block(f"denies {fields}")

    def tell(request: Packet) -> Answers:
        yield answer(request, **{"chunk_total": 2, "block_len": 20, "chunk_len": 10, **fields})

    with on_path(one, lie=of_has(tell)) as seen, opened(seen) as ground:
        [outcome] = asked(ground, seen, Kind.CHECK, [BlockEntry(key, 20, 10, 2, 0, 0.0)])
    assert outcome.status is told
    assert outcome.verdict is not Verdict.PURGE or told is Status.MISS


# ---- host numbers -------------------------------------------------------------------------------------------------------------


def test_a_host_number_in_use_is_drawn_again(sky: Constellation) -> None:
    near = sky.replace(cache={"uplink": "nearest"})  # so that most chunks are forwarded
    entry = Satellite(*near.cache.centre)
    far = next(one for one in near.torus.satellites() if one != entry)
    key, data = new_block("number")
    with opened(near) as ground:
        number = ground.number
        with RawHost(near, number) as other:
            other.open(entry)
            ping = replace(other.request(icd.OP_PING, far), cookie=other.cookies[entry])
            other.send(ping.encode(), entry)
            told = decode(other.receive())
            assert told.status == icd.STATUS_OK  # the number is the other's now
            assert [one.status for one in put(ground, near, {key: data})] == [Status.DONE]
            assert got(ground, near, [entry_of(near, key, SIZE)]) == [data]
            assert ground.number != number
