"""`skymem pic check`, as a user types it: what it opens is linked by `auto` from then on."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.manager import KVCManager
from skymemory.segments.manager import SegmentManager
from skymemory.segments.planner import NOTHING_OPEN, TOO_LARGE
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.commands import Run
from support.linkable import linkable_llama, prompt_lines
from support.waiting import wait_until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads do not wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def linkable(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    folder = tmp_path_factory.mktemp("linkable")
    linkable_llama().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def never_checked(tmp_path_factory: pytest.TempPathFactory, make_llama: Callable[..., Any], tokenizer: Any) -> Path:
    """A model of which nobody shares evidence."""
    folder = tmp_path_factory.mktemp("never")
    make_llama(seed=77).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    first, *others = prompt_lines(200)
    pieces = json.loads(first)
    pieces[-1] += "\u2028"  # a separator of lines of text, not of the file's
    file.write_text("\n".join([json.dumps(pieces, ensure_ascii=False), *others]) + "\n", encoding="utf-8")
    return file


def records(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.glob("gate-*.json")]


def test_what_a_check_opens_is_linked(
    run: Run, linkable: Path, prompts: Path, tokenizer: Any, full_sky: LocalConstellation, tmp_path: Path
) -> None:
    done = run("pic", "check", linkable, "--prompts", prompts, "--strategies", "naive", "--json")
    assert done.exit_code == 0, done.output
    assert "prompts checked ..." in done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"model", "fingerprint", "codec", "points", "seconds"}
    [point] = report["points"]
    assert (point["strategy"], point["switch_layer"], point["open"], point["prompts"]) == ("naive", 0, True, 200)
    assert len(records(tmp_path)) == 1
    with SkyStore(full_sky.constellation) as store:
        manager = KVCManager(linkable_llama(), tokenizer, store)
        assert manager.fingerprint().hex() == report["fingerprint"]
        segments = SegmentManager(manager)  # its folder is that of the command
        [verdict] = segments.gate.verdicts(report["fingerprint"])
        assert verdict.open
        covered = verdict.covered
        assert covered.segments == 2
        one, long = segments.add_all(
            [list(range(5, 5 + tokens)) for tokens in (covered.segment_tokens, covered.segment_tokens + 1)]
        )
        assert not {NOTHING_OPEN, TOO_LARGE} & set(segments.link(["a", one, "b"]).report.why.split(": "))
        assert segments.link(["a", long, "b"]).report.why.startswith(TOO_LARGE)
        other_host = SegmentManager(manager, folder=tmp_path / "other")
        wait_until(lambda: other_host.gate.verdicts(report["fingerprint"]) == [verdict], "the record has come through the sky")


def test_what_a_check_does_not_open_says_why(run: Run, model_folder: Path, prompts: Path, tmp_path: Path) -> None:
    table = run("pic", "check", model_folder, "--prompts", prompts, "--strategies", " naive, random:15 ")
    assert table.exit_code == 0, table.output
    assert f"0 of 2 are open for {model_folder} with the codec raw" in table.stderr
    assert table.stdout.count("closed: ") == 2
    [record] = records(tmp_path)
    assert {point["strategy"] for point in json.loads(record)["points"]} == {"naive", "random:15"}


def test_bad_input_is_one_clear_line(run: Run, never_checked: Path, prompts: Path, tmp_path: Path) -> None:
    lines = prompts.read_text().strip().split("\n")
    for name, content, why in (
        ("few", lines[:199], "199 different prompts; a check needs 200 or more"),
        ("broken", [*lines, "["], "line 201 is no JSON"),
        ("no_text", ['["a", {"segment": "b"}]'], "line 1: the last piece is a text"),
        ("empty", [], "0 different prompts"),
    ):
        (tmp_path / name).write_text("\n".join(content))
        done = run("pic", "check", never_checked, "--prompts", tmp_path / name)
        assert done.exit_code == 2, done.output
        assert f"{name}: {why}" in done.stderr.splitlines()[-1]
    (tmp_path / "latin").write_bytes(b"\xe9")
    for words, why in (
        (("--prompts", tmp_path / "latin"), "latin is not UTF-8"),
        (
            ("--prompts", prompts, "--strategies", "naive,auto"),
            "--strategies: the strategy 'auto' cannot be checked; allowed are naive, lego:2",
        ),
        ((), "--prompts"),
    ):
        done = run("pic", "check", never_checked, *words)
        assert done.exit_code == 2, done.output
        assert why in done.stderr.splitlines()[-1]
    assert not records(tmp_path)


def test_a_model_that_cannot_be_linked_says_why(
    run: Run, tmp_path: Path, prompts: Path, make_llama: Callable[..., Any], tokenizer: Any
) -> None:
    make_llama(num_hidden_layers=1).save_pretrained(tmp_path / "one")
    tokenizer.save_pretrained(tmp_path / "one")
    done = run("pic", "check", tmp_path / "one", "--prompts", prompts)
    assert done.exit_code == 1
    assert "the model has one layer" in done.stderr.splitlines()[-1]
