"""The file of hints for other processes: what is read of it, whatever lies there, and when it is written."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.link.hints import HINTS_S, Hint, HintFile
from skymemory.sky.constellation import Constellation

SKY = Constellation()
LOST = Hint(3, 10, 0, 5_000_000, True)
NEAR = Hint(3, 11, 1_200, 0, False)


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYMEM_STATE", str(folder := tmp_path_factory.mktemp("state")))
        yield folder


@pytest.fixture
def path(state: Path) -> Path:
    """The file, which holds `LOST` and `NEAR` as written just now."""
    for one in state.iterdir():
        one.unlink()
    HintFile(SKY).write([LOST, NEAR])
    [found] = state.iterdir()
    return found


def rewrite(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))


def test_what_is_written_is_read(path: Path) -> None:
    assert list(HintFile(SKY).read()) == [LOST, NEAR]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_constellation_has_a_file_of_its_own(path: Path) -> None:
    for other in (SKY.replace(network={"port": 4321}), SKY.replace(constellation={"planes": 7})):
        assert not HintFile(other).read()
        HintFile(other).write([NEAR])
    assert list(HintFile(SKY).read()) == [LOST, NEAR]


@pytest.mark.parametrize("clock", ["unix_us", "steady_us"])
@pytest.mark.parametrize("shift_s", [-HINTS_S, 5.0, 1e9])
def test_hints_that_are_old_or_of_the_future_are_none(path: Path, clock: str, shift_s: float) -> None:
    """Either clock may have stepped: what one of them calls old is old, and nothing becomes younger."""
    told = json.loads(path.read_bytes())
    rewrite(path, **{clock: max(0, told[clock] + round(shift_s * 1e6))})
    assert not HintFile(SKY).read()


@pytest.mark.parametrize(
    "hints",
    [
        [[0, 1, 0, 0, False]],
        [[3, 65_536, 0, 0, False]],
        [[3, 10, -1, 0, False]],
        [[3, 10, 0, 1 << 63, True]],
        [[3, 10, 0, 0]],
        [[3, 10, 0, 0, 1]],
        [[3, "10", 0, 0, False]],
        {"3": 10},
        None,
    ],
)
def test_one_hint_that_is_wrong_makes_all_wrong(path: Path, hints: object) -> None:
    rewrite(path, hints=hints)
    assert not HintFile(SKY).read()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_any_bytes_may_lie_there(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert not HintFile(SKY).read()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_byte_may_be_another(path: Path, data: st.DataObject) -> None:
    """What is read of a damaged file are hints in their ranges, or none."""
    HintFile(SKY).write([LOST, NEAR])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    for one in HintFile(SKY).read():
        assert 1 <= one.plane <= 0xFFFF
        assert 1 <= one.slot <= 0xFFFF
        assert 0 <= one.rtt_us < 1 << 32
        assert 0 <= one.silent_us <= 1 << 62
    path.unlink()


def test_brackets_may_be_as_deep_as_the_file(path: Path) -> None:
    content = path.read_text().removesuffix("}") + ',"more":'
    path.write_text(content + "[" * 2_500 + "]" * 2_500 + "}")
    assert path.stat().st_size < 64 * SKY.torus.planes * SKY.torus.slots
    assert not HintFile(SKY).read()


def test_a_huge_file_is_not_read(path: Path) -> None:
    rewrite(path, hints=[LOST] * 10_000)
    assert not HintFile(SKY).read()


def test_the_largest_sky_fits(path: Path) -> None:
    hints = [Hint(plane, slot, 0xFFFFFFFF, 1 << 62, True) for plane in range(1, 6) for slot in range(1, 20)]
    path.unlink()
    HintFile(SKY).write(hints)
    assert list(HintFile(SKY).read()) == hints


def test_what_others_may_change_is_not_read(path: Path, state: Path) -> None:
    path.chmod(0o644)
    assert not HintFile(SKY).read()
    path.chmod(0o600)
    assert HintFile(SKY).read()
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
        assert not HintFile(SKY).read()
    path.rename(elsewhere := state / "elsewhere")
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert not HintFile(SKY).read()
    HintFile(SKY).write([NEAR])
    assert elsewhere.read_bytes() == before


def test_a_pipe_holds_nobody_up(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    assert not HintFile(SKY).read()
    HintFile(SKY).write([NEAR])


def test_it_is_written_once_a_second_but_for_news(path: Path) -> None:
    before = path.stat().st_ino
    HintFile(SKY).write([LOST, NEAR._replace(rtt_us=7)])
    assert path.stat().st_ino == before
    HintFile(SKY).write([LOST, NEAR._replace(silent_us=7)])
    assert path.stat().st_ino != before
    told = json.loads(path.read_bytes())
    rewrite(path, **{clock: told[clock] - 1_000_000 for clock in ("unix_us", "steady_us")})
    HintFile(SKY).write([NEAR])
    assert list(HintFile(SKY).read()) == [NEAR]


def test_nothing_is_no_hint(path: Path, state: Path) -> None:
    path.unlink()
    HintFile(SKY).write([])
    assert not list(state.iterdir())


@pytest.mark.parametrize("where", ["missing", "file/below", "/proc/self"])
def test_a_folder_that_takes_no_file(state: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    (state / "file").touch()
    monkeypatch.setenv("SKYMEM_STATE", str(state / where))
    one = HintFile(SKY)
    one.write([LOST])
    assert not one.read()
    assert not (state / "missing").exists()
