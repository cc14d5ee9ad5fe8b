"""What an agent knows of names."""

import sys
from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skymemory.agent.gateway.directory import Directory

NAMES = st.sampled_from([bytes([65 + number]) for number in range(8)])
DATABASES = st.integers(0, 1)


def references(several: Iterable[object]) -> list[int]:
    """How often each is referred to."""
    return [sys.getrefcount(one) for one in several]


def told(directory: Directory, *databases: int) -> list[bytes]:
    """All names."""
    return [name for database in databases for name in directory.scan(database, 0, 1 << 20, 0)[1]]


class Modelled(RuleBasedStateMachine):
    """Beside plain dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Directory()
        self.model: dict[tuple[int, bytes], tuple[int, int]] = {}
        self.now_ms = 1000

    @rule(database=DATABASES, name=NAMES, length=st.integers(0, 9), lives_ms=st.sampled_from([0, 5, 50]))
    def put(self, database: int, name: bytes, length: int, lives_ms: int) -> None:
        expires = lives_ms and self.now_ms + lives_ms
        self.directory.put(database, name, length, expires)
        self.model[database, name] = (length, expires)

    @rule(database=DATABASES, name=NAMES)
    def remove(self, database: int, name: bytes) -> None:
        self.directory.remove(database, name)
        self.model.pop((database, name), None)

    @rule(step_ms=st.integers(1, 30))
    def wait(self, step_ms: int) -> None:
        self.now_ms += step_ms
        self.model = {key: one for key, one in self.model.items() if one[1] == 0 or one[1] > self.now_ms}

    @rule(
        database=DATABASES,
        count=st.integers(1, 4),
        changes=st.lists(st.tuples(NAMES, st.booleans()), max_size=3),
    )
    def scan(self, database: int, count: int, changes: list[tuple[bytes, bool]]) -> None:
        """Names that are there all the time are told once, others once at most, whatever happens to these meanwhile."""
        steady = {name for number, name in self.model if number == database}
        found: list[bytes] = []
        cursor, first = 0, True
        while first or cursor:
            first = False
            cursor, names = self.directory.scan(database, cursor, count, self.now_ms)
            found += names
            for name, is_put in changes:
                steady.discard(name)
                if is_put:
                    self.put(database, name, 1, 0)
                else:
                    self.remove(database, name)
            changes = []
        assert steady <= set(found)
        assert len(found) == len(set(found))

    @invariant()
    def knows_the_same(self) -> None:
        for (database, name), (length, expires) in self.model.items():
            known = self.directory.get(database, name, self.now_ms)
            assert known is not None
            assert (known.length, known.expires_unix_ms) == (length, expires)
        for database in range(2):
            names = {name for number, name in self.model if number == database}
            assert self.directory.count(database, self.now_ms) == len(names)
            assert set(told(self.directory, database)) == names
        counts = self.directory.counts(self.now_ms)
        assert sum(count for count, _, _ in counts.values()) == len(self.model)
        assert sum(expiring for _, expiring, _ in counts.values()) == sum(one[1] > 0 for one in self.model.values())


TestModelled = Modelled.TestCase
TestModelled.settings = settings(max_examples=50, deadline=None)


def test_it_is_bounded_and_the_oldest_go() -> None:
    directory = Directory(entries_max=100)
    for number in range(10_000):
        directory.put(number % 3, b"%d" % number, number, 1_000_000 if number % 2 else 0)
    assert sum(directory.count(database, 0) for database in range(3)) == 100
    assert set(map(int, told(directory, *range(3)))) == set(range(9_900, 10_000))
    cursor, names = directory.scan(0, 0, 1 << 20, 0)
    assert cursor == 0
    assert len(names) == directory.count(0, 0)


def test_long_names_are_bounded_by_their_bytes() -> None:
    directory = Directory(bytes_max=1000)
    for number in range(100):
        directory.put(number % 2, b"%099d" % number, 1, 1000)
    assert set(map(int, told(directory, 0, 1))) == set(range(90, 100))
    directory.put(0, bytes(1001), 1, 1000)
    assert told(directory, 0, 1) == []


def test_nothing_is_kept_of_the_bytes_of_names_that_are_gone() -> None:
    directory, names = Directory(), [b"%01000d" % number for number in range(1000)]
    before = references(names)
    for at in range(1000):
        directory.put(0, names[at], 1, 1000)
        directory.remove(0, names[at])
    assert references(names) == before
    assert directory.count(0, 2000) == 0


def test_a_scan_of_long_names_tells_fewer() -> None:
    directory = Directory()
    names = [b"%0100d" % number for number in range(10)]
    for name in names:
        directory.put(0, name, 1, 0)
    told, cursor, rounds = [], 0, 0
    while rounds == 0 or cursor:
        cursor, some = directory.scan(0, cursor, 100, 0, bytes_max=300)
        told, rounds = told + some, rounds + 1
    assert (told, rounds) == (names[::-1], 4)
    assert directory.scan(0, 0, 100, 0, bytes_max=1)[1] == names[-1:]


def test_a_scan_ends_though_each_name_that_it_tells_is_put_again() -> None:
    directory = Directory()
    for number in range(50):
        directory.put(0, b"%d" % number, 1, 0)
    told, cursor, rounds = [], 0, 0
    while (rounds == 0 or cursor) and rounds < 100:
        cursor, some = directory.scan(0, cursor, 10, 0)
        for name in some:
            directory.remove(0, name)
            directory.put(0, name, 1, 0)
        told, rounds = told + some, rounds + 1
    assert rounds == 5
    assert len(told) == len(set(told)) == 50


def test_ends_of_values_that_were_put_again_are_forgotten() -> None:
    directory, ends = Directory(), [1_000_000 + number for number in range(10_000)]
    before = references(ends)
    for end in ends:
        directory.put(0, b"name", 1, end)
    assert sum(now > once for now, once in zip(references(ends), before, strict=True)) < 3000
    assert directory.count(0, 1_009_998) == 1
    assert directory.count(0, 1_009_999) == 0


def test_values_that_expire_together_are_dropped_some_at_a_time() -> None:
    directory = Directory()
    for number in range(2500):
        directory.put(0, b"%d" % number, 1, 1000)
    assert directory.scan(0, 0, 10, 1000) == (2491, [])  # what has expired is not told, dropped or not
    assert directory.count(0, 999) == 1500
    steps = 1
    while directory.expire(1000):
        steps += 1
    assert (steps, directory.expired) == (2, 2500)
    assert directory.counts(1000) == {}


def test_names_between_those_that_are_gone_are_told() -> None:
    directory, count = Directory(), 5000
    for number in range(count):
        directory.put(0, b"%d" % number, 1, 0)
    for number in range(count):
        if number % 1700:
            directory.remove(0, b"%d" % number)
    assert directory.scan(0, 0, 2, 0) == (1701, [b"3400", b"1700"])
    assert directory.scan(0, 1701, 2, 0) == (0, [b"0"])
