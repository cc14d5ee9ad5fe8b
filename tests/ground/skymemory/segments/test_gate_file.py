"""Records of a gate in files: kept, shared by programs of a host, damaged, on disks that take nothing."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skymemory.segments.evidence import Point, PromptSize, Sample
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.gate_file import NAMES_MAX, GateFile, HostName

MODEL = "ab" * 32
POINT = Point(MODEL, "raw", "lego:8", 1)
GOOD, BAD = Sample(0.0, 1.0), Sample(5.0, 0.0)
SIZE = PromptSize(segments=6, segment_tokens=32, tokens=197)


def opened(gate: Gate) -> Gate:
    for _ in range(PROMPTS_MIN):
        gate.checked(POINT, GOOD, SIZE)
    for _ in range(POWER_PROMPTS_MIN):
        gate.checked_shuffled(POINT, BAD)
    return gate


def file_in(folder: Path) -> GateFile:
    return GateFile(folder / "gate.json", MODEL)


def test_a_program_goes_on_with_what_the_one_before_kept(tmp_path: Path) -> None:
    before = opened(Gate("a"))
    before.canary(POINT, BAD)
    file_in(tmp_path / "deeper").keep(before)
    after = Gate("a")
    file_in(tmp_path / "deeper").look(after)
    assert after.is_open(POINT)
    assert after.record(MODEL, shared=False) == before.record(MODEL, shared=False)
    assert [bool(after.canary(POINT, BAD)) for _ in range(2)] == [False, True]  # the window went on, too


def test_no_file_is_no_evidence_and_no_error(tmp_path: Path) -> None:
    file, gate = file_in(tmp_path), Gate("a")
    file.look(gate)
    assert (file.why, gate.verdicts(MODEL)) == ("", [])
    assert not list(tmp_path.iterdir())


def test_programs_see_what_the_others_keep(tmp_path: Path) -> None:
    one, other = Gate("a"), Gate("b")
    of_one, of_other = file_in(tmp_path), file_in(tmp_path)
    of_other.look(other)
    of_one.keep(opened(one))
    of_other.look(other)
    assert other.is_open(POINT)
    other.drop(POINT, "a breach")
    of_other.keep(other)
    of_one.look(one)
    assert not one.is_open(POINT)
    assert "since a breach" in one.verdict(POINT).why


def test_programs_that_keep_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def count(number: int) -> None:
        gate, file = Gate(f"program {number}"), file_in(tmp_path)
        for _ in range(5):
            gate.checked(POINT, GOOD, SIZE)
            file.keep(gate)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    gate = Gate("later")
    file_in(tmp_path).look(gate)
    assert gate.verdict(POINT).counts.checks.prompts == 40


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "evidence is damaged"),
        (b"\0\xff" * 100, "evidence is damaged"),
        (b'{"version":3}', "evidence has version 3; this program knows 1 and 2"),
        (Gate("a").record("cd" * 32, shared=False), "it is of the model cdcdcdcdcdcdcdcd, not of abababababababab"),
    ],
)
def test_a_damaged_file_opens_nothing_and_is_begun_anew(
    tmp_path: Path, content: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "gate.json").write_bytes(content)
    file, gate = file_in(tmp_path), Gate("a")
    for _ in range(2):
        file.look(gate)
        assert file.why.startswith(f"the gate's record {tmp_path / 'gate.json'} cannot be used: ")
        assert why in file.why
        assert gate.verdicts(MODEL) == []
    assert len(caplog.records) == 1  # told once
    file.keep(opened(gate))
    file.look(gate)
    assert file.why == ""
    later = Gate("b")
    file_in(tmp_path).look(later)
    assert later.is_open(POINT)


def test_a_folder_that_cannot_be_made_is_told_and_the_gate_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").touch()
    file, gate = file_in(tmp_path / "folder"), opened(Gate("a"))
    file.keep(gate)
    assert "cannot be written" in caplog.text
    assert gate.is_open(POINT)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_and_the_gate_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "gate.json").symlink_to("/dev/full")
    gate = opened(Gate("a"))
    file_in(tmp_path).keep(gate)
    assert "No space left on device" in caplog.text
    assert gate.is_open(POINT)


# ---- names --------------------------------------------------------------------------------------------------------------


def test_names_are_unlike_while_they_are_in_use_and_used_again(tmp_path: Path) -> None:
    one, other = HostName(tmp_path), HostName(tmp_path)
    names = {one.text, other.text}
    assert len(names) == 2
    del one
    assert HostName(tmp_path).text in names - {other.text}


def test_a_program_that_was_killed_holds_no_name(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from skymemory.segments.gate_file import HostName
name = HostName(Path({str(tmp_path)!r}))
print(name.text, flush=True)
os.kill(os.getpid(), signal.SIGKILL)"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    assert HostName(tmp_path).text == done.stdout.strip()


def test_damaged_names_are_replaced_and_too_many_programs_get_new_ones(tmp_path: Path) -> None:
    (tmp_path / "gate-name-0").write_bytes(b"../../etc/passwd")
    names = [HostName(tmp_path) for _ in range(NAMES_MAX + 2)]
    assert len({name.text for name in names}) == NAMES_MAX + 2
    assert all(len(name.text) == 16 and int(name.text, 16) >= 0 for name in names)
    (tmp_path / "file").touch()
    assert len(HostName(tmp_path / "file").text) == 16
