"""Files of PyPI that tools fetch by themselves, from an index on loopback."""

import hashlib
import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import fetch_monocypher
from pypi_file import FetchError, fetch

TOOL = Path(fetch_monocypher.__file__)
CONTENT = b"some bytes"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Address of an index with the project `one`, which has the file one-1.tar.gz; its files are in tmp_path / index."""
    root = tmp_path / "index"
    (root / "one").mkdir(parents=True)
    (root / "files").mkdir()
    (root / "files" / "one-1.tar.gz").write_bytes(CONTENT)
    page = f'<a href="../files/other.whl#sha256={"0" * 64}">x</a><a href="../files/one-1.tar.gz#sha256={DIGEST}">y</a>'
    (root / "one" / "index.html").write_text(page)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def monocypher(tmp_path: Path) -> Path:
    """A folder with Monocypher as the build of this checkout has it."""
    cache = TOOL.parents[1] / ".cache" / "monocypher"
    if not cache.is_dir():
        pytest.skip("this checkout was built with SKYMEM_MONOCYPHER_DIR")
    folder = tmp_path / "monocypher"
    folder.mkdir()
    for name in fetch_monocypher.FILES:
        (folder / name).write_bytes((cache / name).read_bytes())
    return folder


def test_a_file_is_found_by_the_page_of_its_project(index: str) -> None:
    assert fetch("one", "one-1.tar.gz", index=index) == CONTENT
    assert fetch("one", "one-1.tar.gz", DIGEST, index) == CONTENT


@pytest.mark.parametrize(
    ("project", "name", "error"),
    [("one", "one-2.tar.gz", "does not list one-2.tar.gz"), ("two", "two-1.tar.gz", "cannot be read")],
)
def test_a_file_that_is_not_there_is_named(index: str, project: str, name: str, error: str) -> None:
    with pytest.raises(FetchError, match=error):
        fetch(project, name, index=index)


def test_a_file_with_another_digest_is_refused(index: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="pinned here"):
        fetch("one", "one-1.tar.gz", "1" * 64, index)
    (tmp_path / "index" / "files" / "one-1.tar.gz").write_bytes(b"other bytes")
    with pytest.raises(FetchError, match=r"page|names"):
        fetch("one", "one-1.tar.gz", index=index)


def test_another_package_of_monocypher_is_refused(index: str, tmp_path: Path) -> None:
    """Whoever can change both the page and the package still cannot change what is built."""
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as archive:
        for name in fetch_monocypher.FILES:
            archive.addfile(tarfile.TarInfo(f"{fetch_monocypher.PACKAGE}/{name}"))
    data = package.getvalue()
    project = tmp_path / "index" / fetch_monocypher.PROJECT
    project.mkdir()
    name = f"{fetch_monocypher.PACKAGE}.tar.gz"
    (project / name).write_bytes(data)
    (project / "index.html").write_text(f'<a href="./{name}#sha256={hashlib.sha256(data).hexdigest()}">z</a>')
    with pytest.raises(FetchError, match="pinned here"):
        fetch_monocypher.put(tmp_path / "out", index)
    assert not (tmp_path / "out").exists()


def test_files_that_are_right_are_kept_without_a_network(monocypher: Path) -> None:
    assert not fetch_monocypher.put(monocypher, index="http://127.0.0.1:1/")


def test_a_file_that_was_changed_is_fetched_anew(monocypher: Path) -> None:
    """An index that cannot be reached shows that it was asked."""
    (monocypher / "monocypher.c").write_text("int changed;\n")
    with pytest.raises(FetchError, match="cannot be read"):
        fetch_monocypher.put(monocypher, index="http://127.0.0.1:1/")


def test_a_folder_has_to_be_named() -> None:
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr
