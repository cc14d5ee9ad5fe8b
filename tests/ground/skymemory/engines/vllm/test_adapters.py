"""Which bytes of an adapter its blocks are keyed by, and when there are none."""

import logging
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.engines.vllm.adapters import Adapters, ChangedError, watch_loads
from skymemory.engines.weights import WeightsError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An adapter's files."""
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    made = tmp_path / "style"
    made.mkdir()
    made.joinpath("adapter_model.safetensors").write_text("weights")
    made.joinpath("adapter_config.json").write_text('{"lora_alpha": 16}')
    return made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Who reads."""
    with ThreadPoolExecutor(1) as made:
        yield made


def style(folder: Path, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(lora_name="style", lora_path=str(folder), **more)


def digest(adapters: Adapters, folder: Path, **more: Any) -> bytes:
    return adapters.digest(style(folder, **more)).result()


def test_how_much_the_weights_count_is_part_of_it(folder: Path, pool: ThreadPoolExecutor) -> None:
    before = digest(Adapters(pool), folder)
    config = folder / "adapter_config.json"
    stat = config.stat()
    config.write_text('{"lora_alpha": 64}')
    os.utime(config, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))  # clocks of files tick slowly
    assert digest(Adapters(pool), folder) != before


def test_what_is_as_before_has_the_digest_of_before(folder: Path, pool: ThreadPoolExecutor) -> None:
    adapters = Adapters(pool)
    first = digest(adapters, folder, lora_int_id=1)
    os.utime(folder / "adapter_model.safetensors")
    assert digest(adapters, folder, lora_int_id=2, load_inplace=True) == first


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_what_changes_is_cached_no_more(
    name: str, folder: Path, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    adapters = Adapters(pool)
    digest(adapters, folder)
    before = folder.joinpath(name).read_bytes()
    folder.joinpath(name).write_text("others")
    for _ in range(2):
        with pytest.raises(ChangedError):
            digest(adapters, folder)
    folder.joinpath(name).write_bytes(before)
    with pytest.raises(ChangedError):  # vLLM may still have blocks of the others
        digest(adapters, folder)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "were changed; load a changed adapter from a path of its own" in caplog.text


def test_without_files_there_is_none(tmp_path: Path, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(WeightsError, match="holds no weights"):
        digest(Adapters(pool), tmp_path)
    assert "blocks of adapter style are not cached" in caplog.text


def make_core(adapters: Adapters, *, fetches: Path | None = None) -> Any:
    """As vLLM's core, which loads an adapter, and may fetch its files before."""

    class Core:
        def add_lora(self, lora_request: Any) -> bool:
            if fetches is not None:
                fetches.rename(lora_request.lora_path)
            return True

    watch_loads(Core, adapters)
    return Core()


@pytest.mark.parametrize("in_place", [False, True])
def test_what_changes_between_its_load_and_its_first_request_is_not_cached(
    in_place: bool, folder: Path, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    adapters = Adapters(pool)
    busy = Event()
    pool.submit(busy.wait)  # reads the model's weights
    assert make_core(adapters).add_lora(style(folder))
    if in_place:
        folder.joinpath("adapter_model.safetensors").write_text("others")
    else:
        shutil.copytree(folder, folder.with_name("next"))
        folder.rename(folder.with_name("before"))
        folder.with_name("next").rename(folder)
    first = adapters.digest(style(folder))
    busy.set()
    with pytest.raises(ChangedError):
        first.result()
    assert "were changed" in caplog.text


def test_what_is_loaded_ahead_is_cached(folder: Path, pool: ThreadPoolExecutor) -> None:
    adapters = Adapters(pool)
    make_core(adapters).add_lora(style(folder))
    assert digest(adapters, folder) == digest(Adapters(pool), folder)


def test_what_the_engine_fetches_is_cached_as_it_came(folder: Path, pool: ThreadPoolExecutor) -> None:
    adapters = Adapters(pool)
    source = folder.rename(folder.with_name("hub"))
    make_core(adapters, fetches=source).add_lora(style(folder))
    assert digest(adapters, folder) == digest(Adapters(pool), folder)
    folder.joinpath("adapter_model.safetensors").write_text("others")
    with pytest.raises(ChangedError):
        digest(adapters, folder)


def test_an_adapter_is_loaded_when_the_connector_has_gone(folder: Path) -> None:
    gone = ThreadPoolExecutor(1)
    core = make_core(Adapters(gone))
    gone.shutdown()
    assert core.add_lora(style(folder))
