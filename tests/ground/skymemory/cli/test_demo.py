"""`skymem demo` and the benches, as a user types them, with a model that is small enough for a test."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skymemory.cli import main
from skymemory.cli.common import first_line, tell_of_model

pytestmark = pytest.mark.model
FIELDS = {
    *("satellites", "planes", "slots", "blocks", "chunks", "bytes_up", "bytes_down", "prompt_tokens", "cached_tokens"),
    *("ttft_s_cold", "ttft_s_warm", "total_s_cold", "total_s_warm", "tokens_identical", "misses", "retries"),
}


def test_demo_of_a_model_in_a_folder(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("The satellites of a plane follow each other at equal distances. " * 30)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    words = ["demo", "--model", str(model_folder), "--prompt-file", str(prompt), "--tokens", "4"]
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report) >= FIELDS
    assert (report["satellites"], report["planes"], report["slots"]) == (95, 5, 19)
    assert report["tokens_identical"] is True
    assert report["blocks"] >= 2
    assert report["cached_tokens"] == 128 * report["blocks"]
    assert report["misses"] == 0
    assert report["bytes_down"] == report["bytes_up"]

    table = CliRunner().invoke(main, words)
    assert table.exit_code == 0
    assert "identical" in table.output
    assert "time to first token" in table.output


def test_bad_input_ends_with_2(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(main, ["demo", "--codec", "zip"]).exit_code == 2
    assert runner.invoke(main, ["demo", "--prompt-file", str(tmp_path / "nowhere")]).exit_code == 2
    assert runner.invoke(main, ["bench", "links", "--rounds", "0"]).exit_code == 2
    unknown = runner.invoke(main, ["bench", "prefix", "--codec", "zip"])
    assert unknown.exit_code == 2
    assert "--codec is zip; allowed are" in unknown.output


def test_a_model_that_is_not_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (tmp_path / "empty-folder").mkdir()
    for name, status in (("no-model", 2), ("empty-folder", 1)):
        result = CliRunner().invoke(main, ["demo", "--model", str(tmp_path / name)])
        assert result.exit_code == status
        assert result.output.count("\n") == 1
        assert name in result.output


def test_what_the_system_refuses_is_no_mistake_of_the_model(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    unreadable = "/proc/self/mem"  # can be opened, and not read from its beginning
    result = CliRunner().invoke(main, ["demo", "--model", str(model_folder), "--prompt-file", unreadable])
    assert result.exit_code == 1
    assert result.output.endswith("Error: Input/output error\n")


def test_an_error_without_a_message_has_its_kind() -> None:
    assert tell_of_model("/", OSError()) == "model /: OSError"
    assert first_line(ValueError("one\ntwo")) == "one"


def test_an_empty_prompt_is_refused_before_the_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (tmp_path / "empty.txt").touch()
    result = CliRunner().invoke(main, ["demo", "--model", "no/model", "--prompt-file", str(tmp_path / "empty.txt")])
    assert result.exit_code == 2
    assert result.output == f"Error: {tmp_path}/empty.txt: the prompt is empty; at least one character is needed\n"


def test_a_prompt_shorter_than_a_block_says_that_nothing_was_cached(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (tmp_path / "short.txt").write_text("few words")
    words = ["demo", "--model", str(model_folder), "--prompt-file", str(tmp_path / "short.txt"), "--tokens", "2"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert "nothing was cached, and both runs are the same: a block has 128 tokens" in result.output
