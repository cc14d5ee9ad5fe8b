import threading
from pathlib import Path

import pytest

from skymemory.segments.host_list import SEGMENTS_MAX, HostList, Segment


def made(number: int, **changes: object) -> Segment:
    fields = {
        "id": f"seg-{number}",
        "tokens": 3,
        "size_bytes": 100,
        "sinks": 0,
        "codec": "raw",
        "created_unix_ms": number,
        "expires_unix_ms": 0,
        "display_name": "",
        "beginning": "00",
        "version": 1,
    }
    return Segment(**{**fields, **changes})


def test_segments_are_added_replaced_and_removed(tmp_path: Path) -> None:
    known = HostList(tmp_path / "made" / "on" / "demand" / "list.json")
    assert known.read() == []
    for number in range(3):
        known.add(made(number))
    known.add(made(1, display_name="later"))
    known.remove("seg-0")
    known.remove("seg-9")
    assert known.read() == [made(2), made(1, display_name="later")]
    assert (tmp_path / "made" / "on" / "demand").stat().st_mode & 0o777 == 0o700


def test_programs_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def add(first: int) -> None:
        known = HostList(tmp_path / "list.json")
        for number in range(first, first + 10):
            known.add(made(number))

    threads = [threading.Thread(target=add, args=(first,)) for first in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.created_unix_ms for one in HostList(tmp_path / "list.json").read()) == list(range(80))


@pytest.mark.parametrize("content", [b"", b"{}", b"[{}]", b"\xff", b'[{"id": 3}]'])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "list.json").write_bytes(content)
    known = HostList(tmp_path / "list.json")
    assert known.read() == []
    assert "cannot be read" in caplog.text
    known.add(made(1))
    assert known.read() == [made(1)]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    known = HostList(tmp_path / "file" / "list.json")
    known.add(made(1))
    assert "cannot be written" in caplog.text
    assert known.read() == []


def test_the_list_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    known = HostList(path)
    known.add(made(0))
    text = path.read_bytes()[1:-1]
    others = [text.replace(b'"seg-0"', f'"seg-{number}"'.encode()) for number in range(SEGMENTS_MAX)]
    path.write_bytes(b"[" + b",".join(others) + b"]")
    known.add(made(9999))
    assert len(known.read()) == SEGMENTS_MAX
    assert known.read()[-1] == made(9999)
    assert known.read()[0].id == "seg-1"
