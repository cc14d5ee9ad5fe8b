"""What cannot be done is said at once, and leaves nothing behind."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.sky.constellation import Constellation
from skymemory.store.results import GetResult, Status
from skymemory.testbed import satellite_program
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import RunRecord
from support.waiting import wait_until

CONFIG = (
    "[constellation]\nplanes = {planes}\nslots = {slots}\n[network]\nport = {port}\n"
    "[cache]\ncentre = [1, 1]\nservers = 2\nparity = 0\n"
)
DISK_BYTES = 256 * 1024
PATIENCE_S = 300.0
Skymem = Callable[..., Result]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with little room. Mounting takes root; in CI that is there."""
    (folder := tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        refused = done.stderr if done.returncode else ""
    except FileNotFoundError as error:
        refused = str(error)
    if refused:
        assert not os.environ.get("CI"), f"CI leaves nothing out: {refused}"
        pytest.skip(f"no small disk can be mounted: {refused}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Until there is no room for a byte more."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


@pytest.fixture
def skymem(tmp_path: Path) -> Skymem:
    def run(*words: str, status: int = 0, stdin: bytes | None = None, state: Path | None = None) -> Result:
        environment = {"SKYMEM_STATE": str(state or tmp_path / "state"), "HF_HUB_OFFLINE": "1"}
        result = CliRunner().invoke(main, words, input=stdin, env=environment, prog_name="skymem")
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result

    return run


def write_file(folder: Path, planes: int, slots: int) -> str:
    sky = Constellation().replace(constellation={"planes": 2, "slots": 3}, cache={"centre": [1, 1], "servers": 2, "parity": 0})
    (path := folder / "sky.toml").write_text(CONFIG.format(planes=planes, slots=slots, port=free_port(sky)))
    return str(path)


def test_up_on_a_full_disk(skymem: Skymem, tmp_path: Path, small_disk: Path) -> None:
    fill(small_disk)
    file, state = write_file(tmp_path, 2, 3), small_disk / "state"
    said = skymem("up", "--constellation", file, status=1, state=state).output.splitlines()[-1]
    assert said == f"Error: {state}/logs, where satellites write their logs: No space left on device"
    assert RunRecord(state).load() is None
    assert skymem("down", state=state).output == "no constellation is up\n"


def test_up_with_room_for_logs_only(skymem: Skymem, tmp_path: Path, small_disk: Path) -> None:
    """The record is written last: without it there is no constellation."""
    file, state = write_file(tmp_path, 2, 3), RunRecord(small_disk)
    state.log_folder.mkdir()
    state.path.with_suffix(".new").mkdir()  # nobody can write there
    said = skymem("up", "--constellation", file, status=1, state=small_disk).output.splitlines()[-1]
    assert said == f"Error: {state.path} cannot be written: Is a directory"
    assert state.find_satellites() == set()


def test_a_satellite_whose_output_is_lost_does_not_stay() -> None:
    words = ["--plane", "1", "--slot", "1", "--planes", "1", "--slots", "1", "--port"]
    sky = Constellation().replace(constellation={"planes": 1, "slots": 1}, cache={"centre": [1, 1], "servers": 1, "parity": 0})
    command = [satellite_program.program(), *words, str(free_port(sky))]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr


def test_more_satellites_than_fit(skymem: Skymem, tmp_path: Path) -> None:
    said = skymem("up", "--constellation", write_file(tmp_path, 255, 254), status=1).output.splitlines()[-1]
    assert re.fullmatch(r"Error: 64,770 satellites are more than fit: .+, which leaves room for [\d,]+", said)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("schedule", "--walker", "star:5x19", "--site", "52.5,13.4", "--hours", "24", "-o", "{}/b.csv"), "b.csv"),
        (("simulate", "--table", "-o", "{}/rows.csv"), "rows.csv"),
        (("layout", "--servers", "25", "-o", "{}/l.png"), "l.png"),
        (("layout", "--servers", "90", "-o", "{}/l.svg"), "l.svg"),
        (("compose", "-o", "{}/c.yaml"), "c.yaml"),
        (("tables", "sky.toml", "-o", "{}"), "tables/kvc_limits.c"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_full_disk_is_named_and_keeps_no_part_of_a_file(
    skymem: Skymem, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sky.toml").write_text("")
    (small_disk / name).parent.mkdir(exist_ok=True)
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    said = skymem(*(word.format(small_disk) for word in words), status=1).output.splitlines()[-1]
    assert said == f"Error: {small_disk / name}: No space left on device"
    assert {path.name for path in small_disk.rglob("*") if path.is_file()} == {"filler"}


def test_a_reader_that_has_enough_is_no_failure() -> None:
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", "simulate", "--table", "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()  # as `head` does
        assert child.stderr.read() == ""


def test_get_to_a_full_disk_leaves_what_was_there(
    skymem: Skymem, tmp_path: Path, small_disk: Path, start_sky: Callable[..., LocalConstellation]
) -> None:
    local = start_sky(constellation={"planes": 2, "slots": 3}, cache={"centre": [1, 1], "servers": 2, "parity": 0})
    file = tmp_path / "sky.toml"
    file.write_text(CONFIG.format(planes=2, slots=3, port=local.constellation.network.port))
    skymem("put", "k", "-", "--constellation", str(file), stdin=os.urandom(2 * DISK_BYTES))
    (old := small_disk / "old").write_bytes(b"old")
    for target in (small_disk / "new", old):
        said = skymem("get", "k", str(target), "--constellation", str(file), status=1).output
        assert said == f"Error: {target}: No space left on device\n"
    assert sorted(path.name for path in small_disk.iterdir()) == ["old"]
    assert old.read_bytes() == b"old"


def test_get_keeps_mode_and_link(skymem: Skymem, tmp_path: Path, start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(constellation={"planes": 2, "slots": 3}, cache={"centre": [1, 1], "servers": 2, "parity": 0})
    file = tmp_path / "sky.toml"
    file.write_text(CONFIG.format(planes=2, slots=3, port=local.constellation.network.port))
    skymem("put", "k", "-", "--constellation", str(file), stdin=b"new")
    (old := tmp_path / "old").write_bytes(b"old")
    old.chmod(0o640)
    (link := tmp_path / "link").symlink_to(old)
    skymem("get", "k", str(link), "--constellation", str(file))
    assert link.is_symlink()
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"new", 0o640)


def test_an_empty_key_is_refused(skymem: Skymem) -> None:
    said = skymem("put", "", "-", stdin=b"x", status=2).output
    assert said == "Error: KEY is empty; allowed is any text of at least one character\n"


@pytest.mark.parametrize("command", [("serve",), ("demo", "--model")], ids=lambda words: words[0])
def test_a_model_that_is_not_there_is_told_as_such(skymem: Skymem, tmp_path: Path, command: tuple[str, ...]) -> None:
    for model in (str(tmp_path / "no" / "model"), "./model", "../a/model"):
        assert skymem(*command, model, status=2).output == f"Error: model {model}: there is no such folder\n"
    (file := tmp_path / "model.gguf").touch()
    assert f"model {file} is a file" in skymem(*command, str(file), status=2).output


def test_results_show_no_payload() -> None:
    shown = repr(GetResult(bytes(32), bytearray(b"secret" * 1000), Status.DONE, 0.25))
    assert shown == f"GetResult(key={'00' * 32}, data=<6,000 bytes>, status='done', duration_s=0.250000)"
    assert "data=None" in repr(GetResult(bytes(32), None, Status.MISS, 0.0))


@pytest.mark.parametrize("seed", range(6))
def test_an_early_interrupt_prints_no_trace(tmp_path: Path, seed: int) -> None:
    """While it imports, and when it has begun."""
    file = write_file(tmp_path, 2, 3)
    program = [str(Path(sys.executable).with_name("skymem")), "bench", "idle", "--seconds", "3600", "--constellation", file]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        caught = False

        def has_begun() -> bool:
            nonlocal caught
            assert child.poll() is None
            catches = _catches_interrupt(child.pid)  # Python does at first, and then the program has its word
            caught = caught or catches
            return (caught and not catches) or bool(_children(child.pid))  # a busy machine may sleep through all of the imports

        wait_until(has_begun, patience_s=PATIENCE_S, pause_s=0)
        time.sleep(random.Random(seed).uniform(0, 0.5))
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode in (128 + signal.SIGINT, -signal.SIGINT)  # a shell shows both as 130
    assert "Traceback" not in said


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _catches_interrupt(pid: int) -> bool:
    status = dict(line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status.get("SigCgt", "0"), 16) >> (signal.SIGINT - 1) & 1)
