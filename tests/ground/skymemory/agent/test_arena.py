"""Memory shared with engines: what is accepted as an arena, and who gets which piece of it."""

import fcntl
import os
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skymemory.agent import arena
from skymemory.agent.arena import GRAIN_BYTES, Allocator, ArenaError

LENGTH = 1 << 16


def memfd(length: int = LENGTH, seals: int = arena.SEALS, flags: int = os.MFD_ALLOW_SEALING) -> int:
    descriptor = os.memfd_create("test", flags | os.MFD_CLOEXEC)
    os.ftruncate(descriptor, length)
    if flags & os.MFD_ALLOW_SEALING:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def test_both_sides_see_the_same_memory() -> None:
    descriptor, memory = arena.make(LENGTH)
    adopted = arena.adopt(descriptor, LENGTH)
    os.close(descriptor)
    memory[100:105] = b"hello"
    assert adopted[100:105] == b"hello"
    adopted[LENGTH - 1] = 7
    assert memory[LENGTH - 1] == 7


def test_nobody_can_cut_it_short() -> None:
    descriptor, _ = arena.make(LENGTH)
    for length in (0, LENGTH - 1, LENGTH + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, length)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: memfd(LENGTH - 1), "has 65535 bytes, and 65536 were announced"),
        (lambda: memfd(2 * LENGTH), "has 131072 bytes"),
        (lambda: memfd(seals=0), "not sealed"),
        (lambda: memfd(seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW), "not sealed"),
        (lambda: memfd(seals=fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL), "not sealed"),
        (lambda: memfd(flags=0), "not sealed"),
        (lambda: memfd(seals=arena.SEALS | fcntl.F_SEAL_WRITE), "sealed against writing"),
        (lambda: memfd(seals=arena.SEALS | 0x10), "sealed against writing"),
        (lambda: os.pipe2(os.O_CLOEXEC)[0], "no file in memory"),
        (lambda: os.open("/", os.O_RDONLY), "no file in memory"),
        (lambda: os.open("/proc/self/exe", os.O_RDONLY), "no file in memory"),
        (lambda: os.open("/dev/zero", os.O_RDWR), "no file in memory"),
        (lambda: os.open(f"/proc/self/fd/{memfd()}", os.O_RDONLY), "cannot be mapped"),
    ],
)
def test_what_is_no_arena(made: object, words: str) -> None:
    descriptor = made()  # type: ignore[operator]
    with pytest.raises(ArenaError, match=words):
        arena.adopt(descriptor, LENGTH)
    os.close(descriptor)


def test_an_ordinary_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(LENGTH))
    with (tmp_path / "file").open("r+b") as file, pytest.raises(ArenaError, match=r"no file in memory|not sealed"):
        arena.adopt(file.fileno(), LENGTH)


def test_it_is_gone_with_the_last_who_refers_to_it() -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:skymemory-arena")

    before = mapped()
    descriptor, memory = arena.make(LENGTH)
    os.close(descriptor)
    view = memoryview(memory)[10:20]
    del memory
    assert mapped() == before + 1
    del view
    assert mapped() == before


class Allocations(RuleBasedStateMachine):
    """Pieces never overlap, never leave the arena, and all of it is there again when all are given back."""

    GRAINS = 40

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(self.GRAINS * GRAIN_BYTES + 17)
        self.taken: dict[int, int] = {}

    @rule(length=st.integers(1, 12 * GRAIN_BYTES))
    def take(self, length: int) -> None:
        start = self.allocator.take(length)
        grains = -(-length // GRAIN_BYTES)
        used = {grain for at, size in self.taken.items() for grain in range(at, at + size)}
        fits = [at for at in range(self.GRAINS - grains + 1) if not used & set(range(at, at + grains))]
        if start is None:
            assert not fits
        else:
            assert start == fits[0] * GRAIN_BYTES
            self.taken[start // GRAIN_BYTES] = grains

    @rule(which=st.integers(0, 1000), odd=st.integers(0, GRAIN_BYTES - 1))
    def give_back(self, which: int, odd: int) -> None:
        if self.taken:
            at = sorted(self.taken)[which % len(self.taken)]
            self.allocator.give_back(at * GRAIN_BYTES, self.taken.pop(at) * GRAIN_BYTES - odd)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.allocator.free_bytes == (self.GRAINS - sum(self.taken.values())) * GRAIN_BYTES

    def teardown(self) -> None:
        for at, grains in self.taken.items():
            self.allocator.give_back(at * GRAIN_BYTES, grains * GRAIN_BYTES)
        assert self.allocator.take(self.GRAINS * GRAIN_BYTES) == 0


TestAllocations = Allocations.TestCase
TestAllocations.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
