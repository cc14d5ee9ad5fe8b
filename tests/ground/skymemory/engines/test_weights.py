"""Which files of a model are read, and how often."""

import os
import time
from pathlib import Path

import pytest

from skymemory.engines.weights import WeightsError, adapter_files, files_digest, weight_files


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where digests of files are kept."""
    folder = tmp_path / "state"
    monkeypatch.setenv("SKYMEM_STATE", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's files, an hour old."""
    made = tmp_path / "model"
    made.mkdir()
    then_s = time.time() - 3600
    for name in ("b.safetensors", "a.safetensors", "modeling.py", "config.json", "README.md"):
        made.joinpath(name).write_text(name)
        os.utime(made / name, (then_s, then_s))
    return made


def test_weights_and_code_are_read(folder: Path) -> None:
    files = weight_files(str(folder), None, None)
    assert [file.name for file in files] == ["a.safetensors", "b.safetensors", "modeling.py"]
    before = files_digest(files)
    folder.joinpath("config.json").write_text("other")  # the engine's own reading of it is part of the keys
    assert files_digest(files) == before
    folder.joinpath("modeling.py").write_text("other, and longer")
    assert files_digest(files) != before


def test_a_file_is_read_once(folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = weight_files(str(folder), None, None)
    first = files_digest(files)
    assert len(list(state.joinpath("weights").iterdir())) == 3
    stat = files[0].stat()
    files[0].write_bytes(b"Z" * stat.st_size)
    os.utime(files[0], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert files_digest(files) == first  # neither size nor time has changed
    os.utime(files[0], ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    assert files_digest(files) != first


def test_a_file_that_changed_a_moment_ago_is_read_again(folder: Path, state: Path) -> None:
    files = weight_files(str(folder), None, None)
    files[0].write_bytes(b"A" * 10)
    stat = files[0].stat()
    first = files_digest(files)
    files[0].write_bytes(b"B" * 10)
    os.utime(files[0], ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as if within a tick of the file system's clock
    assert files_digest(files) != first
    assert len(list(state.joinpath("weights").iterdir())) == 2


def test_what_is_kept_and_damaged_is_made_anew(folder: Path, state: Path) -> None:
    files = weight_files(str(folder), None, None)
    first = files_digest(files)
    for number, kept in enumerate(state.joinpath("weights").iterdir()):
        kept.write_text(["", "zz", "ab"][number])
    assert files_digest(files) == first


def test_without_a_place_to_keep_it_is_read_each_time(folder: Path, state: Path) -> None:
    state.write_text("no folder")
    files = weight_files(str(folder), None, None)
    assert files_digest(files) == files_digest(files)


def test_one_file(folder: Path) -> None:
    file = folder / "model.gguf"
    file.write_text("weights")
    assert weight_files(str(file), None, None) == [file]


def test_of_an_adapter_its_configuration_is_read_as_well(folder: Path) -> None:
    config = folder / "adapter_config.json"
    config.write_text('{"lora_alpha": 16}')
    files = adapter_files(str(folder))
    assert {"adapter_config.json", "a.safetensors"} < {file.name for file in files}
    before = files_digest(files)
    stat = config.stat()
    config.write_text('{"lora_alpha": 64}')
    os.utime(config, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))  # clocks of files tick slowly
    assert files_digest(adapter_files(str(folder))) != before
    assert adapter_files(str(folder / "a.safetensors")) == [folder / "a.safetensors"]


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="holds no weights"):
        weight_files(str(tmp_path), None, None)


@pytest.mark.model
def test_a_model_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="model no-such/model is neither"):
        weight_files("no-such/model", None, str(tmp_path))
