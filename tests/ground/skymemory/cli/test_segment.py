"""`skymem segment`, as a user types it, with a small model under real satellites."""

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.segments.directory import SegmentDirectory
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import Running, RunRecord
from support.commands import Run

pytestmark = pytest.mark.model

TEXT = "Satellites of a plane follow each other at equal distances, and each hands on what it holds. " * 8


def report(done: Result) -> dict:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_segment_is_added_listed_and_removed(
    run: Run, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("segment", "list").stdout == "this host has no segment in that sky\n"
    assert report(run("segment", "list", "--json")) == {"segments": []}
    file = tmp_path / "document.txt"
    file.write_text(TEXT)
    add = ("segment", "add", "--model", model_folder)
    added = report(run(*add, file, "--ttl", "3600", "--name", "the [/] document", "--json"))
    assert set(added) == {"id", "name", "tokens", "bytes", "sinks", "codec", "created_unix_s", "expires_unix_s", "seconds"}
    assert added["tokens"] > 128
    assert added["bytes"] > 0
    assert added["expires_unix_s"] == pytest.approx(added["created_unix_s"] + 3600, abs=60)

    again = run(*add, "-", input=TEXT)
    assert again.stdout == added["id"] + "\n"
    assert f"{added['tokens']:,} tokens in {added['bytes']:,} bytes" in again.stderr
    behind = report(run(*add, "--text", TEXT, "--sinks", "4", "--json"))
    assert behind["id"] != added["id"]

    listed = report(run("segment", "list", "--json"))["segments"]
    assert [one["id"] for one in listed] == [added["id"], behind["id"]]
    assert (listed[0]["name"], listed[0]["expires_unix_s"], listed[1]["sinks"]) == ("the [/] document", None, 4)
    monkeypatch.setenv("COLUMNS", "80")
    folded = [line.split("\u2502")[1].strip() for line in run("segment", "list").stdout.splitlines() if "\u2502" in line]
    assert "".join(folded) == added["id"] + behind["id"]
    monkeypatch.setenv("COLUMNS", "160")
    table = run("segment", "list").stdout
    assert added["id"] in table
    assert "never" in table
    assert "the [/]" in table

    removed = run("segment", "rm", added["id"], "seg-" + "0" * 32)
    assert removed.exit_code == 1
    assert f"{added['id']} is purged\n" in removed.stdout
    assert removed.stderr.startswith("Error: the sky has no segment seg-0000")
    gone = report(run("segment", "rm", behind["id"], "--json"))
    assert gone == {"purged": [{"id": behind["id"], "confirmed": True}]}
    assert report(run("segment", "list", "--json")) == {"segments": []}


def test_a_segment_that_has_expired_is_not_listed_and_can_be_removed(
    run: Run, full_sky: LocalConstellation, model_folder: Path, tmp_path: Path
) -> None:
    added = report(run("segment", "add", "--model", model_folder, "--text", TEXT, "--json"))
    with SkyStore(full_sky.constellation) as store:
        later = SegmentDirectory(store, folder=tmp_path)
        assert later.update(added["id"], ttl_s=math.inf).expires_unix_ms == 0
        later.update(added["id"], ttl_s=0.001)
    assert report(run("segment", "list", "--json")) == {"segments": []}
    assert run("segment", "rm", added["id"]).exit_code == 0
    assert run("segment", "rm", added["id"]).exit_code == 1


def test_a_silent_sky_is_one_clear_line(
    start_sky: Callable[..., LocalConstellation],
    stopped: Callable[..., AbstractContextManager[None]],
    run: Run,
    model_folder: Path,
    tmp_path: Path,
) -> None:
    sky = start_sky(cache={"deadline_ms": 300})
    RunRecord(tmp_path).save(Running("local", sky.constellation, dict(sky.processes)))
    added = report(run("segment", "add", "--model", model_folder, "--text", TEXT, "--json"))
    with stopped(sky):
        for words in (("add", "--model", model_folder, "--text", "other"), ("rm", added["id"])):
            done = run("segment", *words)
            assert done.exit_code == 4
            assert "nobody answers" in done.stderr.splitlines()[-1]
        assert [one["id"] for one in report(run("segment", "list", "--json"))["segments"]] == [added["id"]]


def test_without_a_sky_it_is_told_that_none_is_up(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    for words in (["add", "--model", str(model_folder), "--text", "a"], ["list"], ["rm", "seg-" + "0" * 32]):
        done = CliRunner().invoke(main, ["segment", *words])
        assert done.exit_code == 1
        assert done.output.count("\n") == 1
        assert "skymem up" in done.output


def test_bad_input_ends_with_2(run: Run, model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    add = ("segment", "add", "--model", model_folder)
    for words, why in (
        (add, "wanted is one of FILE and --text"),
        ((*add, tmp_path / "empty", "--text", "a"), "wanted is one of FILE and --text"),
        ((*add, tmp_path / "empty"), "empty is empty"),
        ((*add, "--text", ""), "--text is empty"),
        ((*add, tmp_path / "latin"), "latin is not UTF-8"),
        ((*add, tmp_path / "nowhere"), "does not exist"),
        ((*add, "--text", "a", "--ttl", "0"), "--ttl"),
        ((*add, "--text", "a", "--ttl", "nan"), "--ttl"),
        ((*add, "--text", "a", "--sinks", "65"), "--sinks"),
        ((*add, "--text", "a", "--name", "n" * 129), "--name: the display name has 129 characters"),
        (("segment", "add", "--text", "a"), "--model"),
        (("segment", "add", "--text", "a", "--model", "./nowhere"), "there is no such folder"),
        ((*add, "--text", "a", "--device", "toaster"), "toaster"),
        (("segment", "rm"), "ID"),
    ):
        done = run(*words)
        assert done.exit_code == 2, (words, done.output)
        assert why in done.stderr


def test_a_model_that_cannot_be_linked_says_why(run: Run, tmp_path: Path, make_llama: Callable, tokenizer: object) -> None:
    make_llama(num_hidden_layers=1).save_pretrained(tmp_path / "one")
    tokenizer.save_pretrained(tmp_path / "one")
    done = run("segment", "add", "--model", tmp_path / "one", "--text", TEXT)
    assert done.exit_code == 1
    assert "the model has one layer" in done.stderr.splitlines()[-1]
